"""The case of a release on Spark: answers what measures ask about a release and its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.auditing import AuditSpec
from anonlib.auditing.rules import find_lone_rows
from anonlib.config.model import Config
from anonlib.config.resolve import with_ids
from anonlib.evaluation.attacks import make_attack_tables
from anonlib.evaluation.classes import (
    make_release_view,
    rate_certainty,
    tally_released_sizes,
    tally_source_sizes,
)
from anonlib.evaluation.clusters import ClusterModel, count_contingencies
from anonlib.evaluation.fold import fold
from anonlib.evaluation.likeness import count_in_table, hash_released_keys, hash_source_keys
from anonlib.evaluation.linking import count_tuples, link_rows
from anonlib.evaluation.population_counts import count_regions
from anonlib.evaluation.published_spec import make_measured_spec
from anonlib.evaluation.row_places import find_first_places
from anonlib.evaluation.samples import is_held_out, pair_samples
from anonlib.evaluation.source_figures import (
    count_person_rows,
    count_value_persons,
    list_distinct_values,
    summarize,
)
from anonlib.evaluation.splits import learn, make_part
from anonlib.measure.alike import count_others
from anonlib.measure.attack_tables import AttackTables
from anonlib.measure.case import (
    Case,
    CertaintyBin,
    Comparison,
    OtherRelease,
    Part,
    Parts,
    PersonRows,
    Sizes,
)
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.nearest import Attack, Links
from anonlib.measure.regions import RegionCounts, Regions
from anonlib.measure.scores import Scores
from anonlib.measure.states import Count, Merge, States
from anonlib.source.other_table import open_other_table
from anonlib.table.columns import HELD, LINK
from anonlib.table.schema import Column, Schema


@dataclass(frozen=True, kw_only=True)
class SparkCase(Case):
    """One release and its source, as DataFrames; see `Case`.

    Attributes:
        spec: The audit's spec of the published table.
    """

    has_spark: ClassVar[bool] = True
    source: DataFrame
    released: DataFrame
    spec: AuditSpec

    @classmethod
    def of(
        cls, config: Config, schema: Schema, *, persons_return: bool = False, **rest: Any
    ) -> "SparkCase":
        """The case of a release by a config.

        Args:
            config: The config.
            schema: The columns.
            persons_return: Whether persons may be in several batches of the released rows.
            rest: The fields that the config lacks.
        """
        return cls(
            schema=schema,
            k=config.k,
            models=with_ids(config.bound_models, schema),
            seed=config.seed,
            measures=config.measures,
            target_scale=config.target_scale,
            looked_at_target=config.needs_target,
            partitioned=bool(config.release.partition_by),
            spec=make_measured_spec(config, persons_return=persons_return),
            **rest,
        )

    @cached_property
    def sizes(self) -> Sizes:
        return tally_released_sizes(self.released, self.schema, self.spec)

    def source_sizes(self) -> Sizes:
        return tally_source_sizes(self.source, self.schema)

    @cached_property
    def pairs(self) -> tuple[pa.Table, pa.Table] | None:
        if LINK not in self.released.columns:
            return None
        return pair_samples(self.source, self.released, self.schema, self.n_source, self.link_key)

    def person_rows(self) -> PersonRows:
        return count_person_rows(self.source, self.schema.unit)

    def count_value_persons(self, id: str) -> tuple[pa.Array, Ints]:
        return count_value_persons(self.source, self.schema.unit, id)

    def summarize(self, columns: Sequence[Column]) -> dict[str, tuple[float, ...]]:
        return summarize(self.source, columns)

    def distinct_values(self, ids: Sequence[str]) -> dict[str, pa.Array]:
        return list_distinct_values(self.source, ids)

    def tuples(
        self, ids: Sequence[str], most: int, *, released: bool
    ) -> tuple[pa.Table, Ints] | None:
        return count_tuples(self.released if released else self.source, ids, most)

    def count_alike(
        self, combinations: Sequence[tuple[int, ...]], size: int, *, released: bool
    ) -> Ints:
        if released:
            keys = hash_released_keys(self.released, self.schema, self.spec)
            return count_in_table(keys, self.n_released, combinations, size, self.seed)
        keys = hash_source_keys(self.source, self.schema)

        def count(choices: Sequence[tuple[int, ...]]) -> Ints:
            return count_in_table(keys, self.n_source, choices, size, self.seed)

        person = len(self.schema.quasi_identifiers)
        return (
            count_others(count, combinations, person) if self.schema.unit else count(combinations)
        )

    def count_population(
        self, source: Mapping[str, Any], columns: Mapping[str, str], regions: Regions
    ) -> RegionCounts:
        named = {id: (name, self.schema.by_id(id).type) for id, name in columns.items()}
        spark, tokens = self.source.sparkSession, self.spec.missing_tokens
        rows = open_other_table(spark, source, named, tokens, "measure population")
        return count_regions(rows, regions)

    def open_release(self, source: Mapping[str, Any], columns: Sequence[Column]) -> OtherRelease:
        named = {column.id: (column.name, column.released_type) for column in columns}
        spark, tokens = self.source.sparkSession, self.spec.missing_tokens
        rows = open_other_table(spark, source, named, tokens, "measure differencing")

        def fold_rows(ids: Sequence[str], count: Count, merge: Merge) -> States:
            return fold(rows.select(*ids), count, merge)

        return OtherRelease(rows.count(), fold_rows)

    def link(self, attack: Attack, n: int) -> Links:
        return link_rows(self.source.sparkSession, attack, n)

    def places(self, most: int) -> pa.Table | None:
        if LINK in self.released.columns:
            return None
        types = {column.id: column.released_type for column in self.schema.released}
        return find_first_places(self.released, types, most)

    def certainty(
        self, name: str, protected: Sequence[str], threshold: float, n_bins: int
    ) -> tuple[list[CertaintyBin], int, int]:
        view, _ = make_release_view(self.released, self.schema, self.spec, protected)
        return rate_certainty(view, view.sensitive[name], threshold, n_bins)

    def lone_rows(self, protected: Sequence[str]) -> dict[str, int]:
        return find_lone_rows(*make_release_view(self.released, self.schema, self.spec, protected))

    def fold(self, ids: Sequence[str], count: Count, merge: Merge, *, released: bool) -> States:
        rows = self.released if released else self.source
        return fold(rows.select(*ids), count, merge)

    def part(self, ids: Sequence[str], size: int, *, released: bool) -> Part:
        rows = self.released if released else self.source
        return make_part(rows, ids, size, self.seed, released=released)

    def parts(self, share: float, ids: Sequence[str], size: int, *, after: bool) -> Parts | None:
        # One hash chooses the held-out persons, both of a shadow and in the release (HELD).
        if after and HELD not in self.released.columns:
            return None
        out = is_held_out(self.schema, self.seed, share)
        how = ids, size, self.seed
        columns = [column.id for column in self.schema.released]
        raw_test = make_part(self.source.where(out).select(*columns), *how, released=False)
        test = raw_test
        if after:
            train = self.released.where(~F.col(HELD))
            test = make_part(self.released.where(HELD), *how, released=True)
        else:
            train = self.shadow(share)
        raw = make_part(self.source.where(~out).select(*columns), *how, released=False)
        return Parts(make_part(train.select(*columns), *how, released=True), raw, test, raw_test)

    def _make_attack_tables(self, holdout: float, attempts: int) -> AttackTables:
        return make_attack_tables(
            source=self.source,
            released=self.shadow(holdout),
            schema=self.schema,
            seed=self.seed,
            holdout=holdout,
            attempts=attempts,
            n_source=self.n_source,
        )

    def learn(
        self,
        parts: Parts,
        features: Features,
        target: LearnTarget,
        learners: Sequence[Learner],
        *,
        in_spark: bool,
    ) -> tuple[Scores, list[Comparison]]:
        return learn(parts, features, target, learners, in_spark=in_spark, seed=self.seed)

    def cluster(
        self,
        raw: Part,
        released: Part,
        features: Features,
        n_clusters: int,
        max_iter: int,
        *,
        in_spark: bool,
    ) -> list[Ints]:
        model = ClusterModel(n_clusters, max_iter, in_spark=in_spark)
        fits = (raw, self.seed), (released, self.seed), (raw, self.seed + 1)
        centres = [model.centres(part, features, start) for part, start in fits]
        return count_contingencies(raw.rows, features, centres)
