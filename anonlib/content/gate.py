"""The content gate for tables in memory: columns that show who a person is, by their values.

The rules are those of a release in Spark (`anonlib/content/content_rules.py`). All rows are there,
so that all values are compared, and nothing is an estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from anonlib.arrays import MISSING, Ints
from anonlib.config.model import PrivacySection
from anonlib.content.content_rules import (
    Content,
    ContentCounter,
    Sketch,
    judge_columns,
    list_compared,
)
from anonlib.content.forms import choose_rows, is_form_of
from anonlib.content.relations import expect_equal
from anonlib.content.text_columns import TextColumn, list_source_texts, to_text_columns
from anonlib.content.value_parts import count_parts
from anonlib.errors import Problem
from anonlib.table.row_numbers import number_classes, number_tuples
from anonlib.table.schema import Column, Schema


def find_disclosing_columns(
    table: pa.Table, schema: Schema, privacy: PrivacySection
) -> tuple[Content, list[Problem]]:
    """Finds the columns that are released although they show who a person is.

    Cost O(n log n), and for each column that may be made of an identifier a comparison of texts in
    all rows.

    Args:
        table: The schema's columns by id. Texts of identifiers and of the unit are identities
            (`identify_person`).
        schema: The columns.
        privacy: The section of the config that acknowledges columns.

    Returns:
        The figures, and what is wrong.
    """
    persons, candidates = list_compared(schema)
    ids = [c.id for c in dict.fromkeys([*persons, *candidates])]
    columns = to_text_columns({id: table.column(id).combine_chunks() for id in ids}, _number_texts)
    counter = _TextCounter(columns, table, schema.unit)
    sketches = {
        id: Sketch(1.0, *each.unique(), each.count_present()) for id, each in columns.items()
    }
    equal = {(c.id, p.id): counter.count_equal(c, p) for c in candidates for p in persons}
    named = frozenset(schema.by_id(id).name for id in schema.protected)
    return judge_columns(schema, sketches, equal, counter, privacy, named)


def _number_texts(texts: Sequence[pa.Array]) -> list[Ints]:
    """int64[v] for each column: the numbers of its texts, from 0; MISSING for none."""
    every = pa.concat_arrays([pa.array([], pa.string()), *texts]).dictionary_encode()
    numbers = every.indices.fill_null(MISSING).to_numpy().astype(np.int64)
    ends = np.cumsum([0, *map(len, texts)])
    return [numbers[low:high] for low, high in pairwise(ends)]


@dataclass(frozen=True)
class _TextCounter(ContentCounter):
    """Counts in memory.

    Attributes:
        columns: By id: the columns as texts.
        table: All columns, by id.
        unit: Ids of the columns that identify a person.
        samples: By id: some rows of columns, as far as they were asked for.
    """

    columns: Mapping[str, TextColumn]
    table: pa.Table
    unit: tuple[str, ...]
    samples: dict[str, TextColumn] = field(default_factory=dict)

    def count_equal(self, column: Column, other: Column) -> int:
        return self.columns[column.id].count_equal(self.columns[other.id])

    def expect_equal(self, column: Column, other: Column) -> float:
        a, b = (self.columns[c.id].code for c in (column, other))
        both = (a != MISSING) & (b != MISSING)
        return expect_equal(a[both], b[both], np.ones(int(both.sum()), np.int64))

    def count_distinct(self, column: Column) -> int:
        code = self.columns[column.id].code
        return _count_distinct(code[code != MISSING])

    def count_identities(self, column: Column) -> int:
        return int((self.columns[column.id].number != MISSING).sum())

    def count_pairs(self, column: Column, other: Column, share: float) -> tuple[int, int, int]:
        """All values are in the sketch."""
        a, b = (self.columns[c.id].code for c in (column, other))
        both = (a != MISSING) & (b != MISSING)
        a, b = a[both], b[both]
        return _count_distinct(a), _count_distinct(b), _count_distinct(_pair(a, b))

    def count_parts(
        self, pairs: Sequence[tuple[Column, Column]], sizes: Sequence[int]
    ) -> list[list[int]]:
        return [count_parts(self.columns[c.id], self.columns[p.id], sizes) for c, p in pairs]

    def is_form_of(self, column: Column, quasi: Column) -> bool:
        return is_form_of(self._sample(column.id), self._sample(quasi.id))

    def _sample(self, id: str) -> TextColumn:
        """Some rows of a column."""
        if id not in self.samples:
            self.samples[id] = self.columns[id].take(choose_rows(self.table.num_rows))
        return self.samples[id]

    def list_texts(self, column: Column) -> list[str]:
        return list_source_texts(self.columns[column.id].values)

    def count_alone(self, column: Column) -> tuple[int, int]:
        code = self.columns[column.id].code
        present = code != MISSING
        code, person = code[present], self._person[present]
        n_rows = np.unique(code, return_counts=True)[1]
        # One row of each person with a value.
        first = np.unique(_pair(code, person), return_index=True)[1]
        alone = np.unique(code[first], return_counts=True)[1] == 1
        several = n_rows > 1
        return int(several.sum()), int((several & alone).sum())

    @cached_property
    def _person(self) -> Ints:
        """int64[n]. The person of each row. Missing values count as one."""
        codes = [
            self.columns[id].code if id in self.columns else number_classes([self.table.column(id)])
            for id in self.unit
        ]
        return number_tuples(codes, self.table.num_rows)


def _count_distinct(numbers: Ints) -> int:
    """The distinct numbers. Sorts them: numpy's own way is slow for numbers in a row."""
    ordered = np.sort(numbers)
    return int((ordered[1:] != ordered[:-1]).sum()) + min(1, len(ordered))


def _pair(a: Ints, b: Ints) -> Ints:
    """One number for each pair of numbers; these may be MISSING."""
    return a * (int(b.max(initial=MISSING)) + 2) + b
