"""The distinct values of columns, by one pass over the source: the categories that plans need, and
the sketches by which the content gate compares columns.

Rows cross into Python, where a text is made of each distinct value of some thousand rows, and not
in each row. Hashes of texts are keyed: nobody can prepare values that a sketch leaves out.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import MISSING, Floats, Ints
from anonlib.content.content_rules import ContentCounter, Sketch, bound_hashes, list_compared
from anonlib.content.forms import choose_rows, is_form_of
from anonlib.content.relations import expect_equal
from anonlib.content.text_columns import TextColumn, list_source_texts, to_text_columns
from anonlib.content.value_parts import count_parts
from anonlib.errors import run_sanitized
from anonlib.identifiers.direct import MOST_TEXTS
from anonlib.source.resolved_source import Source
from anonlib.spark.values import find_arrow_type, find_spark_schema, hash_row
from anonlib.table.encoding import clear_nan
from anonlib.table.schema import Column

#: Rows that a task looks at together, and bytes of them: it stops at the first of both.
CHUNK_ROWS, CHUNK_BYTES = 2**16, 2**26
#: The columns of what a task tells: what it is of, a hash, a number, a count of rows.
_PLACE, _HASH, _NUMBER, _N = "place", "hash", "number", "n"


@dataclass(frozen=True)
class ColumnValues:
    """What a pass found.

    Attributes:
        categories: By id: the distinct values, and int64 Spark's hash of each.
        sketches: By id: the sketch of a column.
        equal: By the ids of a released and an identifying column: the rows where both are equal.
    """

    categories: dict[str, tuple[pa.Array, pa.Array]]
    sketches: dict[str, Sketch]
    equal: dict[tuple[str, str], int]


@dataclass(frozen=True)
class Look:
    """What a pass looks for.

    Attributes:
        categorical: Ids of the columns whose distinct values are wanted.
        shares: By id of a column that is compared: the share of its values that a sketch keeps.
        pairs: Ids of columns whose equal rows are counted.
        key: The key of the hashes.
    """

    categorical: tuple[str, ...]
    shares: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]
    key: int = field(repr=False)

    @property
    def n_places(self) -> int:
        """A place for the values of each compared column, for its rows, for each pair, and for the
        values of each categorical column, in this order."""
        return 2 * len(self.shares) + len(self.pairs) + len(self.categorical)


def new_key() -> int:
    """A fresh key of hashes, of 63 bits."""
    return secrets.randbits(63)


def find_values(source: Source, look: Look) -> ColumnValues:
    """Looks at all rows of a source. One pass; a shuffle of what the tasks found."""
    ids = [*dict.fromkeys([*look.categorical, *look.shares])]
    if not ids:
        return ColumnValues({}, {}, {})
    frame = source.raw.select(*[select_column(source, id).alias(id) for id in ids])
    types = {id: find_arrow_type(frame.schema[id]) for id in look.categorical}
    output = pa.schema(
        {_PLACE: pa.int32(), _HASH: pa.int64(), _NUMBER: pa.float64(), _N: pa.int64(), **types}
    )

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = run_sanitized("the values of columns", lambda: _look_at(batches, look, output))
        yield from found

    merged = (
        frame.mapInArrow(work, find_spark_schema(output))
        .groupBy(_PLACE, _HASH, *look.categorical)
        .agg(F.max(_NUMBER).alias(_NUMBER), F.sum(_N).alias(_N))
    )
    return _read(merged.toArrow(), look)


def select_column(source: Source, id: str) -> SparkColumn:
    """A column as it is compared. Text goes without the identity of persons, which costs as much:
    what that removes, texts as people see them lack, too. What is no UTF-8 in it, which Python
    can't read, gets a sign of its own: where that matters, the figures of the scan tell it."""
    column = source.schema.by_id(id)
    if not pa.types.is_string(column.type):
        return source.columns[id]
    plain = not column.by_category and id not in source.casts
    return F.make_valid_utf8(F.col(id) if plain else source.columns[id])


def chunk_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of a task, CHUNK_ROWS or CHUNK_BYTES at a time, or some more."""
    waiting: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        n_bytes += batch.nbytes
        if n_rows >= CHUNK_ROWS or n_bytes >= CHUNK_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, n_rows, n_bytes = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def number_texts(texts: Sequence[pa.Array], key: int) -> list[Ints]:
    """int64[v] for each column: the keyed hashes of its texts; MISSING for none."""
    from anonlib.table.hashes import hash_seeded, hash_values  # this imports numba

    numbers = []
    for each in texts:
        # The key is there before and after the text, so that no text undoes it.
        hashes = hash_seeded(key, hash_values(each, key))
        hashes[hashes == MISSING] += 1
        hashes[each.is_null().to_numpy(zero_copy_only=False)] = MISSING
        numbers.append(hashes)
    return numbers


def read_texts(chunk: pa.Table, ids: Iterable[str], key: int) -> dict[str, TextColumn]:
    """By id: some columns of a chunk as texts."""
    return to_text_columns(
        {id: chunk.column(id).combine_chunks() for id in ids}, partial(number_texts, key=key)
    )


class _Sight:
    """What a task has seen so far.

    Attributes:
        hashes: By id of a compared column: int64[u], the hashes that its sketch keeps, ascending.
        numbers: By the same: float64[u], their texts as numbers.
        counts: The rows of each compared column that have a text, then the equal ones of each pair.
        values: By id of a categorical column: its distinct values.
    """

    def __init__(self, look: Look):
        self.look = look
        self.hashes = {id: np.zeros(0, np.int64) for id in look.shares}
        self.numbers = {id: np.zeros(0) for id in look.shares}
        self.counts = np.zeros(len(look.shares) + len(look.pairs), np.int64)
        self.values: dict[str, pa.Array] = {}

    def add(self, chunk: pa.Table) -> None:
        """Looks at some rows."""
        look = self.look
        texts = read_texts(chunk, look.shares, look.key)
        for id, column in texts.items():
            self._add_sketch(id, *column.unique(bound_hashes(look.shares[id])))
        counts = [column.count_present() for column in texts.values()]
        counts += [texts[c].count_equal(texts[p]) for c, p in look.pairs]
        self.counts += np.array(counts, np.int64)
        for id in look.categorical:
            seen = texts[id].values if id in texts else pc.unique(chunk.column(id))
            if id in self.values:
                seen = pc.unique(pa.concat_arrays([self.values[id], seen]))
            self.values[id] = seen

    def _add_sketch(self, id: str, hashes: Ints, numbers: Floats) -> None:
        both = np.concatenate([self.hashes[id], hashes])
        self.hashes[id], first = np.unique(both, return_index=True)
        self.numbers[id] = np.concatenate([self.numbers[id], numbers])[first]


def _look_at(
    batches: Iterable[pa.RecordBatch], look: Look, output: pa.Schema
) -> list[pa.RecordBatch]:
    """What a task tells: a row for each hash of a sketch, each count and each categorical value."""
    from anonlib.table.hashes import hash_values  # this imports numba

    seen = _Sight(look)
    for chunk in chunk_rows(batches):
        seen.add(chunk)
    parts = [
        _tell(
            output, place, pa.array(seen.hashes[id]), pa.array(seen.numbers[id], from_pandas=True)
        )
        for place, id in enumerate(look.shares)
    ]
    first = len(look.shares)
    parts += [
        _tell(output, first + i, pa.array([0]), count=pa.array([n]))
        for i, n in enumerate(seen.counts.tolist())
    ]
    for place, id in enumerate(seen.values, first + len(seen.counts)):
        values = clear_nan(seen.values[id]).drop_null()
        parts.append(_tell(output, place, pa.array(hash_values(values)), value={id: values}))
    return [batch for part in parts for batch in part.to_batches()]


def _tell(
    output: pa.Schema,
    place: int,
    hashes: pa.Array,
    numbers: pa.Array | None = None,
    count: pa.Array | None = None,
    value: Mapping[str, pa.Array] | None = None,
) -> pa.Table:
    """Rows of what a task tells; what is not given is null, and 0 rows."""
    n = len(hashes)
    columns = {
        _PLACE: pa.array(np.full(n, place, np.int32)),
        _HASH: hashes,
        _NUMBER: pa.nulls(n, pa.float64()) if numbers is None else numbers,
        _N: pa.array(np.zeros(n, np.int64)) if count is None else count,
        **(value or {}),
    }
    return pa.table([columns.get(f.name, pa.nulls(n, f.type)) for f in output], schema=output)


def _read(output: pa.Table, look: Look) -> ColumnValues:
    """What all tasks told together. output: The rows that they told."""
    output = output.combine_chunks()
    place, hashes, numbers, count = (
        output.column(name).to_numpy() for name in (_PLACE, _HASH, _NUMBER, _N)
    )
    order = np.lexsort((hashes, place))
    start = np.searchsorted(place[order], np.arange(look.n_places + 1))
    rows = [order[low:high] for low, high in pairwise(start)]
    n_columns, n_pairs = len(look.shares), len(look.pairs)
    counts = [int(count[some].sum()) for some in rows[n_columns : 2 * n_columns + n_pairs]]
    sketches = {
        id: Sketch(share, hashes[rows[i]], numbers[rows[i]], counts[i])
        for i, (id, share) in enumerate(look.shares.items())
    }
    equal = dict(zip(look.pairs, counts[n_columns:], strict=True))
    categories = {}
    for id, some in zip(look.categorical, rows[2 * n_columns + n_pairs :], strict=True):
        values = output.column(id).combine_chunks().take(pa.array(some))
        categories[id] = values, pa.array(hashes[some])
    return ColumnValues(categories, sketches, equal)


@dataclass(frozen=True)
class SourceCounter(ContentCounter):
    """Counts rows and values of a source, each time by a pass over it.

    Attributes:
        source: The source.
        values: What a pass over it found.
        key: The key of hashes.
        sample: Rows of the source in random order: its quasi-identifiers, sensitive columns and
            target by id.
    """

    source: Source
    values: ColumnValues
    key: int = field(repr=False)
    sample: pa.Table

    def count_equal(self, column: Column, other: Column) -> int:
        ids = (column.id, other.id)
        return self._count(ids, lambda texts: [texts[ids[0]].count_equal(texts[ids[1]])])[0]

    def expect_equal(self, column: Column, other: Column) -> float:
        ids = (column.id, other.id)
        cells = self._hash_texts(*ids).na.drop().groupBy(*ids).count().toArrow()
        return expect_equal(*(each.to_numpy() for each in cells.columns))

    def count_parts(
        self, pairs: Sequence[tuple[Column, Column]], sizes: Sequence[int]
    ) -> list[list[int]]:
        both = [(c.id, p.id) for c, p in pairs]

        def count(texts: dict[str, TextColumn]) -> list[int]:
            return [n for c, p in both for n in count_parts(texts[c], texts[p], sizes)]

        found = self._count([id for pair in both for id in pair], count)
        return [found[i : i + len(sizes)] for i in range(0, len(found), len(sizes))]

    def count_distinct(self, column: Column) -> int:
        return self._hash_texts(column.id).na.drop().distinct().count()

    def count_identities(self, column: Column) -> int:
        id = column.id
        identities = self.source.raw.select(self.source.columns[id].alias(id))
        return identities.na.drop().distinct().count()

    def count_pairs(self, column: Column, other: Column, share: float) -> tuple[int, int, int]:
        c, q = column.id, other.id
        both = self._hash_texts(c, q).na.drop().where(F.col(c) <= F.lit(bound_hashes(share)))
        row = both.agg(*[F.count_distinct(*ids) for ids in ([c], [q], [c, q])]).collect()[0]
        return row[0], row[1], row[2]

    def is_form_of(self, column: Column, quasi: Column) -> bool:
        """It needs no pass."""
        return is_form_of(self._samples[column.id], self._samples[quasi.id])

    @cached_property
    def _samples(self) -> dict[str, TextColumn]:
        """By id: some rows of the sample."""
        _, candidates = list_compared(self.source.schema)
        ids = [c.id for c in candidates if c.id in self.sample.column_names]
        rows = pa.array(choose_rows(self.sample.num_rows))
        return read_texts(self.sample.select(ids).take(rows), ids, self.key)

    def list_texts(self, column: Column) -> list[str]:
        """It needs a pass for a column of which values may be elsewhere than in the sample."""
        if column.id in self.values.categories:
            return list_source_texts(self.values.categories[column.id][0])
        if self._samples_all(column.id):
            return list_source_texts(self.sample.column(column.id).combine_chunks())
        values = self._select([column.id]).na.drop().distinct()
        first = values.orderBy(F.xxhash64(column.id), column.id).limit(MOST_TEXTS)
        return list_source_texts(first.toArrow().column(column.id))

    def _samples_all(self, id: str) -> bool:
        """Whether the sample has all texts of a column, as the sketch counted them."""
        sketch = self.values.sketches[id]
        if id not in self.sample.column_names or sketch.share < 1.0:
            return False
        sampled = read_texts(self.sample.select([id]), [id], self.key)[id]
        return len(sampled.unique()[0]) >= len(sketch.hashes)

    def count_alone(self, column: Column) -> tuple[int, int]:
        unit = self.source.schema.unit
        texts = self._hash_texts(*dict.fromkeys([column.id, *unit])).na.drop(subset=[column.id])
        rows = texts.select(column.id, hash_row(texts.select(*unit)).alias("person"))
        by_value = rows.groupBy(column.id).agg(
            F.count("*").alias("n"), F.min("person").alias("low"), F.max("person").alias("high")
        )
        row = (
            by_value.where("n > 1")
            .agg(F.count("*"), F.count_if(F.col("low") == F.col("high")))
            .collect()[0]
        )
        return row[0], row[1]

    def _count(
        self, ids: Iterable[str], count: Callable[[dict[str, TextColumn]], Sequence[int]]
    ) -> list[int]:
        """What `count` tells of the texts of each chunk, added up."""
        names, key = [*dict.fromkeys(ids)], self.key

        def work(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
            totals = [count(read_texts(chunk, names, key)) for chunk in chunk_rows(batches)]
            return [pa.record_batch({"n": pa.array(totals, pa.list_(pa.int64()))})]

        def count_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from run_sanitized("counts of equal values", lambda: work(batches))

        rows = self._select(names).mapInArrow(count_all, "n array<bigint>").collect()
        return [sum(counts) for counts in zip(*[row.n for row in rows], strict=True)]

    def _hash_texts(self, *ids: str) -> DataFrame:
        """The hash of each row's texts, by id."""
        key = self.key

        def work(chunk: pa.Table) -> pa.RecordBatch:
            texts = read_texts(chunk, ids, key)
            hashes = {
                id: pa.array(column.code, mask=column.code == MISSING)
                for id, column in texts.items()
            }
            return pa.record_batch(hashes)

        def hash_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for chunk in chunk_rows(batches):
                yield run_sanitized("hashes of texts", partial(work, chunk))

        types = ", ".join(f"{id} bigint" for id in ids)
        return self._select(ids).mapInArrow(hash_all, types)

    def _select(self, ids: Iterable[str]) -> DataFrame:
        return self.source.raw.select(*[select_column(self.source, id).alias(id) for id in ids])
