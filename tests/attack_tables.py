"""What attacks see, in memory: rows, a release of some of them, and persons held out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

import anonlib
from anonlib.arrays import Bools, Ints
from anonlib.config.model import Config
from anonlib.config.resolve import with_ids
from anonlib.local.engine import fit_column, make_release
from anonlib.local.rows import Rows, read_rows
from anonlib.measure import Findings, Measure
from anonlib.measure.attack_tables import OUT, PERSON, ROW, AttackedPersons, AttackTables
from anonlib.measure.case import Case, OtherRelease, PersonRows
from anonlib.measure.states import Count, Merge, States
from anonlib.privacy import PrivacyModel
from anonlib.recode import Cells, Domain
from anonlib.table.encoding import Encoding
from anonlib.table.row_numbers import number_classes
from anonlib.table.schema import Column, Scale, Schema
from anonlib.worker.task import code_persons

#: From the rows to release to the released columns by id.
Make = Callable[[Rows], pa.Table]


def fold_parts(rows: pa.Table, count: Count, merge: Merge, n_parts: int) -> States:
    """The states of rows in a number of parts, of two tables each."""
    merged: dict[str, Any] = {}
    for places in np.array_split(np.arange(rows.num_rows), n_parts):
        tables = [rows.take(pa.array(half)) for half in np.array_split(places, 2)]
        for name, state in count(tables).items():
            merged[name] = merge(name, merged[name], state) if name in merged else state
    return merged


@dataclass(frozen=True)
class MemoryTables(AttackTables):
    """Attack tables in memory, which are read in `n_parts` parts.

    Attributes:
        source: The original rows, with OUT, and with PERSON if there is a unit.
        released: The released rows, with ROW.
        members: See `AttackedPersons`.
        others: See `AttackedPersons`.
    """

    source: pa.Table
    released: pa.Table
    members: pa.Table
    others: pa.Table
    n_parts: int = 3

    def persons(self) -> AttackedPersons:
        return AttackedPersons(self.members, self.others)

    @property
    def n_released(self) -> int:  # type: ignore[override]
        return int(self.released.num_rows)

    def sample(self, ids: Sequence[str], size: int) -> pa.Table:
        first = np.unique(self.released.column(ROW).to_numpy(), return_index=True)[1]
        drawn = np.random.default_rng(0).permutation(len(first))[:size]
        return self.released.take(pa.array(first[np.sort(drawn)])).select([*ids, ROW])

    def fold_released(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        return fold_parts(self.released.select([*ids, ROW]), count, merge, self.n_parts)

    def fold_source(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        numbers = [PERSON] if PERSON in self.source.column_names else []
        return fold_parts(self.source.select([*ids, OUT, *numbers]), count, merge, self.n_parts)


@dataclass(frozen=True)
class AttackedCase:
    """As much of a case as attacks look at.

    Attributes:
        rows: The original rows. The first ones of their random order are held out.
        make: Makes the release of the others, and of all.
        other: Another release, with columns by id.
        target_scale: The scale that the config gives the target.
        find_out: Finds the rows that are held out instead: bool[n].
    """

    rows: Rows
    make: Make
    encodings: Mapping[str, Encoding]
    k: int
    models: tuple[PrivacyModel, ...]
    seed: int
    cache: dict[Any, Any] = field(default_factory=dict)
    other: pa.Table | None = None
    n_parts: int = 3
    target_scale: Scale | None = None
    find_out: Callable[[pa.Table], Bools] | None = None

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    def person_rows(self) -> PersonRows:
        table, schema = self.rows
        codes = code_persons([table.column(id).combine_chunks() for id in schema.unit])
        return PersonRows(1 if codes is None else int(np.bincount(codes).max()), 0)

    def fold(self, ids: Sequence[str], count: Count, merge: Merge, *, released: bool) -> States:
        assert released
        if "whole" not in self.cache:
            self.cache["whole"] = self.make(self.rows)
        return fold_parts(self.cache["whole"].select([*ids]), count, merge, self.n_parts)

    def open_release(self, source: Mapping[str, Any], columns: Sequence[Column]) -> OtherRelease:
        other = cast(pa.Table, self.other).select([column.id for column in columns])

        def fold(ids: Sequence[str], count: Count, merge: Merge) -> States:
            return fold_parts(other.select([*ids]), count, merge, self.n_parts)

        return OtherRelease(other.num_rows, fold)

    def attack_tables(self, holdout: float, attempts: int) -> MemoryTables:
        table, schema = self.rows
        codes = code_persons([table.column(id).combine_chunks() for id in schema.unit])
        person = np.arange(table.num_rows) if codes is None else codes
        names = np.random.default_rng(self.seed).permutation(int(person.max()) + 1)
        out = names[person] < holdout * len(names)
        if self.find_out is not None:
            out = self.find_out(table)
        key = "release", holdout
        if key not in self.cache:
            train = Rows(table.filter(pa.array(~out)).combine_chunks(), schema)
            released = self.make(train)
            number = number_classes([released.column(c) for c in released.column_names])
            self.cache[key] = released.append_column(ROW, pa.array(number))
        first = np.sort(np.unique(person, return_index=True)[1])
        sides = (first[out[first] == side][:attempts] for side in (False, True))
        members, others = (table.take(pa.array(places)) for places in sides)
        source = table.append_column(OUT, pa.array(out))
        if codes is not None:
            source = source.append_column(PERSON, pa.array(person.astype(np.int64)))
        return MemoryTables(source, self.cache[key], members, others)

    def findings(self, measure: Measure) -> Findings:
        return measure.measure(cast(Case, self))


def make_case(data: pa.Table, config: Mapping[str, Any], make: Make | None = None) -> AttackedCase:
    """The case of a table and a config. Without `make`, the engine in memory releases it."""
    parsed = anonlib.parse(config)
    rows = read_rows(data, data.column_names, parsed)
    encodings = {
        column.id: fit_column(
            column,
            rows.table.column(column.id),
            parsed.max_categories,
            parsed.privacy.missing_tokens,
        )
        for column in rows.schema.quasi_identifiers
    }
    make = make or by_engine(parsed)
    models = with_ids(parsed.bound_models, rows.schema)
    return AttackedCase(
        rows, make, encodings, parsed.k, models, parsed.seed, target_scale=parsed.target_scale
    )


def by_engine(config: Config) -> Make:
    """The release of a config, by the engine in memory."""

    def make(rows: Rows) -> pa.Table:
        released = make_release(rows, config, b"of these tests").table
        return released.select([column.id for column in rows.schema.released])

    return make


def by_cells(choose: Callable[[pa.Table], Ints]) -> Make:
    """A release into cells of the test's own choice, by the column's recoders."""

    def make(rows: Rows) -> pa.Table:
        table, schema = rows
        id = choose(table)
        columns = {}
        for column in schema.released:
            values = table.column(column.id).combine_chunks()
            if column.recoder is not None:
                domain = Domain(column.order, column.hierarchy)
                cells = Cells(id, int(id.max()) + 1)
                values = column.recoder.recode(values, cells, domain).take(pa.array(id))
            columns[column.id] = values
        return pa.table(columns)

    return make


#: The raw table: every row is a cell of its own.
as_it_is = by_cells(lambda table: np.arange(table.num_rows))


def figures_of(found: Findings) -> dict[tuple[str, str], float | None]:
    """The figures by name and subject."""
    return {(figure.name, figure.of): figure.value for figure in found.figures}
