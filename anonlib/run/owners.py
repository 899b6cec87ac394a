"""The data controllers of a table, the models that each must hold, and what becomes of those that
can't."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib import registry
from anonlib.arrays import Bools, Floats, Ints
from anonlib.config.model import Attribute, PartitionSection
from anonlib.config.resolve import bind_models, with_ids
from anonlib.errors import ConfigError, InfeasibleError, Problem
from anonlib.partition.controller import Controller
from anonlib.partition.cuts import no_cuts
from anonlib.partition.repair import BlockCounts, Demands, merge_small
from anonlib.privacy import PrivacyModel, Reference
from anonlib.run.leaves import count_leaves, exact_values
from anonlib.run.scan import Scan
from anonlib.spark.values import at, look_up
from anonlib.table.columns import CONTROLLER, OWNER
from anonlib.table.encoding import Values
from anonlib.table.schema import Schema
from anonlib.worker.task import Task

#: More controllers than this are another kind of column.
MAX_CONTROLLERS = 100_000


@dataclass(frozen=True)
class Owners:
    """The data controllers 0..c-1 of a table, in the order of Spark's hashes of their values.

    Attributes:
        n_rows: int64[c]. Rows of each controller.
        owner: int64[c]. The controller that the rows count for: itself, another one after a
            merger, -1 if suppressed.
        asked: bool[c, sets]. The `sets` of models that each owner asks; the config's are first.
        values: By id: the values of protected columns in the rows that are kept.
    """

    id: str
    hashes: tuple[int, ...]
    n_rows: Ints
    owner: Ints
    asked: Bools
    sets: tuple[tuple[PrivacyModel, ...], ...]
    values: dict[str, Values]

    @property
    def number(self) -> Column:
        """The controller of a row."""
        return look_up(F.xxhash64(F.col(self.id)), self.hashes, range(len(self.hashes)), -1)

    @property
    def kept_rows(self) -> Ints:
        """int64[owners that are kept]: their rows."""
        kept = self.owner >= 0
        return np.bincount(self.owner[kept], self.n_rows[kept]).astype(np.int64)

    @cached_property
    def own(self) -> dict[int, tuple[PrivacyModel, ...]]:
        """The models that owners are asked besides those of all."""
        found = {}
        kept = self.owner == np.arange(len(self.owner))
        for c in np.flatnonzero(self.asked[:, 1:].any(axis=1) & kept).tolist():
            which = np.flatnonzero(self.asked[c, 1:]) + 1
            found[c] = tuple(model for s in which for model in self.sets[s])
        return found

    def with_own_models(self) -> list[tuple[tuple[int, ...], tuple[PrivacyModel, ...]]]:
        """The owners that are asked the same models of their own, and these."""
        alike: dict[tuple[PrivacyModel, ...], list[int]] = {}
        for owner, models in self.own.items():
            alike.setdefault(models, []).append(owner)
        return [(tuple(owners), models) for models, owners in alike.items()]

    def demands(self, owner: Ints) -> Demands:
        """The models that the rows of each of these owners must hold."""
        return Demands(self.sets, self.asked[owner])

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "n": len(self.hashes),
            "n_suppressed": int((self.owner < 0).sum()),
            "n_merged": int((self.owner[self.owner >= 0] != np.flatnonzero(self.owner >= 0)).sum()),
        }


def build_models(specs: tuple[dict[str, Any], ...]) -> tuple[PrivacyModel, ...]:
    """The models of a task."""
    return tuple(registry.build("privacy model", spec) for spec in specs)


def resolve_owners(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    partition: PartitionSection,
    attributes: Mapping[str, Attribute],
    allowed: int,
    task: Task,
) -> Owners | None:
    """Resolves the controllers of a table: which are kept, merged or suppressed. None if the config
    has no controllers. At most `allowed` rows are suppressed.

    Raises:
        ConfigError: `models` names controllers that the table does not have.
        InfeasibleError: Controllers that can't hold their models have more rows than may be
            suppressed.
    """
    step = partition.controller
    if step is None:
        return None
    found = _found(rows, schema, scan, attributes, step, build_models(task.models))

    def count(owners: Owners) -> BlockCounts:
        return _counts(rows, schema, task.missing_tokens, owners)

    if step.merge:
        return _merged(found, count(found), _centers(scan, found))
    return _suppressed(found, count, allowed, scan.n_rows)


def _counts(
    rows: DataFrame, schema: Schema, missing_tokens: tuple[str, ...], owners: Owners
) -> BlockCounts:
    """The counts of the controllers that are kept, exact if they fail by the sketches."""
    models = tuple(model for models in owners.sets for model in models)
    number = at(owners.owner, owners.number)
    kept = rows.withColumn(CONTROLLER, number).where(F.col(CONTROLLER) >= 0)
    n = len(owners.hashes)
    counts = count_leaves(kept, schema, owners.values, models, missing_tokens, n, by=CONTROLLER)
    if not owners.demands(np.arange(n)).held(counts)[owners.owner >= 0].all():
        counts = exact_values(kept, schema, models, missing_tokens, counts, by=CONTROLLER)
    return counts


def _found(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    attributes: Mapping[str, Attribute],
    step: Controller,
    models: tuple[PrivacyModel, ...],
) -> Owners:
    assert schema.controller is not None
    value = F.col(schema.controller)
    counts = rows.groupBy(value.alias("value")).agg(F.count(F.lit(1)).alias("n"))
    hashed = counts.select(F.xxhash64("value").alias("h"), F.col("value").cast("string"), "n")
    found = hashed.orderBy("h").limit(MAX_CONTROLLERS + 1).collect()
    if len(found) > MAX_CONTROLLERS:
        raise ConfigError(
            [
                Problem(
                    f"column {step.column}",
                    f"has more than {MAX_CONTROLLERS} values, too many for data controllers",
                )
            ]
        )
    names = [row["value"] for row in found]
    if absent := [name for name in step.models if name not in names]:
        raise ConfigError(
            [
                Problem(
                    "partition.steps.0.models",
                    (
                        f"{len(absent)} of {len(step.models)} are not values of column "
                        f"{step.column} (booleans and dates as Spark writes them as text); "
                        "correct or remove them"
                    ),
                )
            ]
        )
    asked = np.zeros((len(names), 1 + len(step.models)), np.bool_)
    asked[:, 0] = True
    for s, name in enumerate(step.models, 1):
        asked[names.index(name), s] = True
    own = [with_ids(bind_models(each, attributes), schema) for each in step.models.values()]
    return Owners(
        schema.controller,
        tuple(row["h"] for row in found),
        np.array([row["n"] for row in found], np.int64),
        np.arange(len(found)),
        asked,
        (models, *own),
        scan.values,
    )


def _centers(scan: Scan, found: Owners) -> Floats:
    """float64[c, p]: the mean standardized numbers of the sampled rows of each controller."""
    owner = np.searchsorted(np.array(found.hashes), scan.sample.column(OWNER).to_numpy())
    count = np.maximum(np.bincount(owner, minlength=len(found.hashes)), 1)
    columns = [
        e.numeric(scan.sample.column(e.id).combine_chunks())[:, 0]
        for e in scan.encodings
        if not e.nominal
    ]
    sums = [np.bincount(owner, x, len(count)) for x in columns]
    return np.column_stack([np.zeros((len(count), 1)), *sums]) / count[:, None]


def _merged(found: Owners, counts: BlockCounts, centers: Floats) -> Owners:
    """Merges controllers that fail with the nearest, until all hold. Raises InfeasibleError if none
    is left to merge with."""
    n = len(found.hashes)
    demands = found.demands(found.owner)
    group = merge_small(no_cuts(0, 0), np.zeros(n, np.int64), counts, centers, demands)
    first = np.unique(group, return_index=True)[1]
    held = demands.merged(group, len(first)).held(counts.merged(group, len(first)))
    if not (held.all() or counts.shared):  # shared persons are counted from below
        raise InfeasibleError(
            [
                Problem(
                    "partition.steps.0.models",
                    (
                        "all controllers merged don't hold what single ones ask for in "
                        "`models`; ask less"
                    ),
                )
            ]
        )
    owner = first[group]
    asked = np.zeros_like(found.asked)
    np.logical_or.at(asked, owner, found.asked)
    return replace(found, owner=owner, asked=asked)


def _suppressed(
    found: Owners, count: Callable[[Owners], BlockCounts], allowed: int, n_rows: int
) -> Owners:
    """Suppresses controllers that fail, with at most `allowed` rows. The references are then of the
    others, which may fail now."""
    everyone = np.arange(len(found.owner))
    while True:
        kept = found.owner >= 0
        counts = count(found)
        lost = kept & ~found.demands(everyone).held(counts)
        if not lost.any():
            return found
        kept &= ~lost
        n_lost = int(found.n_rows[~kept].sum())
        if n_lost > allowed or not kept.any():
            raise InfeasibleError(
                [
                    Problem(
                        "partition.steps.0",
                        (
                            f"{(~kept).sum()} of {len(kept)} controllers, with {n_lost} of "
                            f"{n_rows} rows, can't hold their models alone; suppression_limit "
                            f"allows {allowed} rows. Raise it, ask less, or set `merge: true`"
                        ),
                    )
                ]
            )
        found = replace(
            found,
            owner=np.where(kept, found.owner, -1),
            values=_of_kept(counts, found.values, kept),
        )


def _of_kept(counts: BlockCounts, values: dict[str, Values], kept: Bools) -> dict[str, Values]:
    """The values of protected columns without the rows of the controllers that are not kept. With a
    unit they stay: a person may have rows of several controllers, and the config has no model that
    compares cells with the whole table."""
    if counts.shared:
        return values
    return {id: _without(counts, id, each, ~kept) for id, each in values.items()}


def _without(counts: BlockCounts, id: str, known: Values, gone: Bools) -> Values:
    of, reference = counts.counts[id], known.reference
    lost = gone[of.cell]
    n_lost = np.bincount(of.value[lost], of.count[lost], len(known.categories)).astype(np.int64)
    total = reference.count - n_lost
    there = total > 0
    levels = None if reference.levels is None else reference.levels[:, there]
    n_missing = reference.n_missing - int(counts.n_rows[gone].sum() - n_lost.sum())
    return Values(known.categories.filter(there), Reference(total[there], n_missing, levels))
