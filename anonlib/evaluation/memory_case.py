"""The case of a release in memory: answers what measures ask, without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Codes, Ints
from anonlib.auditing import AuditSpec
from anonlib.auditing.arrow_values import RowNumbers, combine, number_keys, number_protected
from anonlib.auditing.in_memory import count_lone
from anonlib.errors import InputError
from anonlib.evaluation.memory_classes import (
    count_certainty,
    count_released_sizes,
    count_source_sizes,
    hash_keys,
    number_released_classes,
)
from anonlib.evaluation.memory_release import read_release
from anonlib.evaluation.memory_samples import (
    draw_sample,
    find_held_out,
    pair_rows,
    take_first_of_each,
)
from anonlib.evaluation.memory_tables import MemoryTables, make_memory_tables
from anonlib.measure import examples
from anonlib.measure.alike import count_alike, count_others, read_keys
from anonlib.measure.case import (
    Case,
    CertaintyBin,
    Comparison,
    OtherRelease,
    Part,
    Parts,
    PersonRows,
    Sizes,
    score_learners,
)
from anonlib.measure.centres import count_pairs, find_centres
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.nearest import Attack, Links
from anonlib.measure.regions import RegionCounts, Regions
from anonlib.measure.scores import Scores
from anonlib.measure.states import Count, Merge, States
from anonlib.table.columns import HELD, LINK
from anonlib.table.encoding import to_float
from anonlib.table.schema import Column, may_be_continuous
from anonlib.worker.task import code_persons

#: Rows to look at together.
ROWS = 50_000


@dataclass(frozen=True, kw_only=True)
class MemoryCase(Case):
    """One release and its source, as Arrow tables; see `Case`.

    Attributes:
        spec: The audit's spec of the released table.
    """

    has_spark: ClassVar[bool] = False
    spec: AuditSpec

    @cached_property
    def _classes(self) -> RowNumbers:
        return number_released_classes(self.released, self.schema, self.spec)

    @cached_property
    def sizes(self) -> Sizes:
        return count_released_sizes(self.released, self._classes, self.schema, self.spec)

    def source_sizes(self) -> Sizes:
        return count_source_sizes(self.source, self.schema)

    @cached_property
    def pairs(self) -> tuple[pa.Table, pa.Table] | None:
        if LINK not in self.released.column_names:
            return None
        return pair_rows(self.source, self.released, self.schema, self.link_key)

    def person_rows(self) -> PersonRows:
        person = self._code_persons()
        if person is None:
            return PersonRows(1, 0)
        most = int(np.bincount(person[person >= 0]).max(initial=0))
        return PersonRows(max(1, most), int((person < 0).sum()))

    def _code_persons(self) -> Codes | None:
        """The person of each row of the source, as `code_persons` gives it."""
        return code_persons([self.source.column(id).combine_chunks() for id in self.schema.unit])

    def count_value_persons(self, id: str) -> tuple[pa.Array, Ints]:
        numbers = combine([number_keys(self.source.column(id))], self.n_source)
        found = self._code_persons()
        person = np.arange(self.n_source) if found is None else found.astype(np.int64)
        pairs = np.unique(np.column_stack([numbers.of_row, person])[person >= 0], axis=0)
        first = take_first_of_each(numbers.of_row, numbers.size)
        values = self.source.column(id).take(pa.array(first)).combine_chunks()
        return values, np.bincount(pairs[:, 0], minlength=numbers.size)

    def summarize(self, columns: Sequence[Column]) -> dict[str, tuple[float, ...]]:
        return {column.id: tuple(self._summarize(column)) for column in columns}

    def _summarize(self, column: Column) -> Iterator[float]:
        values = self.source.column(column.id).combine_chunks()
        if not may_be_continuous(column.type):
            yield float(pc.count_distinct(values.drop_null()).as_py())
            return
        x = to_float(values)
        x = x[np.isfinite(x)]
        yield from (float(f(x)) if len(x) else 0.0 for f in (np.min, np.max, np.mean, np.std))

    def distinct_values(self, ids: Sequence[str]) -> dict[str, pa.Array]:
        return {id: pc.unique(self.source.column(id)).drop_null() for id in ids}

    def tuples(
        self, ids: Sequence[str], most: int, *, released: bool
    ) -> tuple[pa.Table, Ints] | None:
        rows = self.released if released else self.source
        numbers = combine([number_keys(rows.column(id)) for id in ids], rows.num_rows)
        if numbers.size > most:
            return None
        first = take_first_of_each(numbers.of_row, numbers.size)
        found = rows.select(ids).take(pa.array(first)).combine_chunks()
        return found, np.bincount(numbers.of_row, minlength=numbers.size)

    def count_alike(
        self, combinations: Sequence[tuple[int, ...]], size: int, *, released: bool
    ) -> Ints:
        rows, sets = (self.released, self.spec.sets) if released else (self.source, ())
        quasi = self.schema.quasi_identifiers
        numbers = [number_keys(rows.column(c.id), is_set=c.name in sets) for c in quasi]
        person = None if released else self._code_persons()
        if person is not None:
            numbers.append(RowNumbers(person.astype(np.int64), self.n_source))
        keys = hash_keys(numbers)
        sampled = read_keys(draw_sample(keys, size, self.seed))

        def count(choices: Sequence[tuple[int, ...]]) -> Ints:
            found = count_alike(sampled, choices, _cut(keys))
            counts = [found[str(i)] for i in range(len(choices))]
            return np.array(counts).astype(np.int64).reshape(len(choices), len(sampled))

        return (
            count(combinations) if person is None else count_others(count, combinations, len(quasi))
        )

    def count_population(
        self, source: Mapping[str, Any], columns: Mapping[str, str], regions: Regions
    ) -> RegionCounts:
        raise InputError("the table of a population is read by a release in Spark only")

    def open_release(self, source: Mapping[str, Any], columns: Sequence[Column]) -> OtherRelease:
        rows = read_release(source, columns)

        def fold_rows(ids: Sequence[str], count: Count, _: Merge) -> States:
            return count(_cut(rows.select(ids)))

        return OtherRelease(rows.num_rows, fold_rows)

    def link(self, attack: Attack, n: int) -> Links:
        size = attack.chunk
        found = [attack.linked(slice(i, min(n, i + size))) for i in range(0, n, size)]
        return Links(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def places(self, most: int) -> pa.Table | None:
        return None

    def certainty(
        self, name: str, protected: Sequence[str], threshold: float, n_bins: int
    ) -> tuple[list[CertaintyBin], int, int]:
        column = self.released.column(self.schema[name].id)
        values = number_protected(column, self.spec.missing_tokens)
        return count_certainty(self._classes, values, threshold, n_bins)

    def lone_rows(self, protected: Sequence[str]) -> dict[str, int]:
        named = {c.name: self.released.column(c.id) for c in self.schema.released}
        return count_lone(pa.table(named), self._classes, self.spec.shares)

    def fold(self, ids: Sequence[str], count: Count, merge: Merge, *, released: bool) -> States:
        return count(_cut((self.released if released else self.source).select(ids)))

    def part(self, ids: Sequence[str], size: int, *, released: bool) -> Part:
        return self._part(self.released if released else self.source, ids, size, released=released)

    def _part(self, rows: pa.Table, ids: Sequence[str], size: int, *, released: bool) -> Part:
        rows = rows.select([*dict.fromkeys(ids)])
        drawn = draw_sample(rows, size, self.seed)
        return Part(rows, released=released, n=rows.num_rows, sample=drawn)

    def parts(self, share: float, ids: Sequence[str], size: int, *, after: bool) -> Parts | None:
        if after and HELD not in self.released.column_names:
            return None
        out = find_held_out(self.source, self.schema, self.seed, share)
        raw_test = self._part(self.source.filter(pa.array(out)), ids, size, released=False)
        test = raw_test
        if after:
            held = self.released.column(HELD)
            train = self.released.filter(pc.invert(held))
            test = self._part(self.released.filter(held), ids, size, released=True)
        else:
            train = self.shadow(share)
        raw = self._part(self.source.filter(pa.array(~out)), ids, size, released=False)
        return Parts(self._part(train, ids, size, released=True), raw, test, raw_test)

    def _make_attack_tables(self, holdout: float, attempts: int) -> MemoryTables:
        return make_memory_tables(
            source=self.source,
            released=self.shadow(holdout),
            schema=self.schema,
            seed=self.seed,
            holdout=holdout,
            attempts=attempts,
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
        def view(part: Part) -> Any:
            return examples.take_examples(part.sample, features, target, released=part.released)

        how = {"n_classes": target.n_classes, "seed": self.seed}
        return score_learners(examples, parts, view, learners, **how)

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
        fits = (raw, self.seed), (released, self.seed), (raw, self.seed + 1)
        centres = [
            find_centres(
                features.matrix(part.sample, released=part.released), n_clusters, max_iter, seed
            )
            for part, seed in fits
        ]
        counts = [count_pairs(rows, features, centres) for rows in _cut(raw.rows)]
        return [*np.sum(counts, axis=0)]


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    """The rows as tables of ROWS rows; one table at least."""
    for start in range(0, max(table.num_rows, 1), ROWS):
        yield table.slice(start, ROWS).combine_chunks()
