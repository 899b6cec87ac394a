"""The profiles of the columns of a Spark DataFrame: what a call without a config guesses by, and a
draft. Tasks look at the values; the driver sees profiles and hashes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anonlib.arrays import Ints
from anonlib.errors import run_sanitized
from anonlib.guesses.guess import ColumnProfile
from anonlib.local.column_facts import (
    MOST_VALUES,
    NO_FACTS,
    ColumnFacts,
    find_facts,
    list_token_hashes,
    look_at_rows,
    make_profile,
)
from anonlib.spark.expressions import quote_name
from anonlib.spark.loan import return_session
from anonlib.spark.session import session
from anonlib.table.plain_types import to_plain_type

#: What a task tells of a column, by its place: the task, the column's facts and, where they are
#: asked for, the hashes of its rows.
_FACTS = "place int, task int, facts string, hashes binary"
#: What is made of them, with two of the facts: the numbers of rows and of distinct values.
_PROFILES = "place int, profile string, hashes binary, n_rows bigint, n_distinct bigint"


def take_no_rows(frame: DataFrame, names: Sequence[str]) -> pa.Table:
    """Columns without their rows: their names and types. No job."""
    return frame.select(*[_select(frame, name).alias(name) for name in names]).limit(0).toArrow()


@return_session
def profile_frame(frame: DataFrame, names: Sequence[str]) -> Mapping[str, ColumnProfile]:
    """By name: the profiles of columns, by all rows: guesses depend neither on the order of the
    rows nor on partitions, and are those of the same table in memory.

    Cost: one pass through Python, and a shuffle of some thousand distinct values of each column and
    task. Where a column has more, one more pass, and a shuffle of their hashes.

    Raises InputError if the session writes what is shuffled to disks in clear.
    """
    session({}, frame.sparkSession)
    return _profile(frame, names, with_hashes=False)[0]


def profile_sample(
    frame: DataFrame, names: Sequence[str]
) -> tuple[dict[str, ColumnProfile], dict[str, Ints]]:
    """By name: the profiles of columns; and int64[n]: the hash of each row's value, 0 where it is
    missing.

    Args:
        frame: The sample, in a session of this package.
        names: The columns.

    Cost: one pass, as for `profile_frame`, and 8 bytes for each value.
    """
    return _profile(frame, names, with_hashes=True)


def _profile(
    frame: DataFrame, names: Sequence[str], *, with_hashes: bool
) -> tuple[dict[str, ColumnProfile], dict[str, Ints]]:
    if not names:
        return {}, {}
    empty = take_no_rows(frame, names)
    types = [to_plain_type(name, empty.column(name)).type for name in names]
    of_tasks = frame.select(*[_select(frame, name).alias(f"c{i}") for i, name in enumerate(names)])
    facts = of_tasks.mapInArrow(partial(_tell_facts, with_hashes=with_hashes), _FACTS)
    by_place = facts.repartition("place")
    profiles = by_place.mapInArrow(partial(_tell_profiles, types=types), _PROFILES)
    made = {place: rest for place, *rest in profiles.collect()}
    many = [place for place, (_, _, _, n) in made.items() if n == MOST_VALUES and not with_hashes]
    counts = _count_values(of_tasks, many)
    found, hashes = {}, {}
    for place, (name, type) in enumerate(zip(names, types, strict=True)):
        nothing = make_profile("", type, NO_FACTS).to_json(), b"", 0, 0
        text, data, n_rows, n_known = made.get(place, nothing)
        column = replace(ColumnProfile.from_json(text), name=name)
        if place in counts:
            n_distinct = column.n_distinct - n_known + counts[place]
            is_unique = n_rows == column.n_present == n_distinct
            column = replace(column, n_distinct=n_distinct, unique=is_unique)
        found[name] = column
        hashes[name] = np.frombuffer(data, np.int64)
    return found, hashes


def _count_values(frame: DataFrame, places: Sequence[int]) -> dict[int, int]:
    """By place of a column: its distinct values, as `ColumnFacts` counts them. frame: The columns,
    named by their places."""
    if not places:
        return {}
    columns = frame.select(*[f"c{place}" for place in places])
    hashes = columns.mapInArrow(_tell_values, "place int, hash bigint").distinct()
    return {places[i]: n for i, n in hashes.groupBy("place").count().collect()}


def _select(frame: DataFrame, name: str) -> SparkColumn:
    """A column; what is no UTF-8 in it, which Python can't read, gets a sign of its own."""
    column = F.col(quote_name(name))
    return (
        F.make_valid_utf8(column) if isinstance(frame.schema[name].dataType, StringType) else column
    )


def _tell_facts(
    batches: Iterator[pa.RecordBatch], *, with_hashes: bool
) -> Iterator[pa.RecordBatch]:
    """The facts of each column, by its place, for the rows of one task."""
    add_up = partial(_add_up, batches, with_hashes=with_hashes)
    yield run_sanitized("the profile of columns", add_up)


def _tell_values(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The hashes of the distinct values of each column, by its place."""
    for batch in batches:
        yield run_sanitized("the profile of columns", partial(_list_values, batch))


def _tell_profiles(
    batches: Iterator[pa.RecordBatch], *, types: Sequence[pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """The profiles of some columns, by their places, for the rows of all tasks."""
    yield run_sanitized("the profile of columns", partial(_make_profiles, batches, types))


def _add_up(batches: Iterator[pa.RecordBatch], *, with_hashes: bool) -> pa.RecordBatch:
    facts: dict[int, ColumnFacts] = {}
    hashes: dict[int, list[bytes]] = {}
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for place, name in enumerate(table.column_names):
            values = to_plain_type(name, table[name])
            part, of_rows = look_at_rows(values) if with_hashes else (find_facts(values), b"")
            facts[place] = facts.get(place, NO_FACTS).merge(part)
            hashes.setdefault(place, []).append(bytes(of_rows))
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    return pa.record_batch(
        {
            "place": pa.array([*facts], pa.int32()),
            "task": pa.array([task] * len(facts), pa.int32()),
            "facts": pa.array([each.to_json() for each in facts.values()], pa.string()),
            "hashes": pa.array([b"".join(each) for each in hashes.values()], pa.binary()),
        }
    )


def _list_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    table, hashes = pa.Table.from_batches([batch]), []
    for name in table.column_names:
        facts, of_rows = look_at_rows(to_plain_type(name, table[name]))
        hashes.append(np.setdiff1d(of_rows, [0, *facts.tokens]))
    places = np.repeat(np.arange(len(hashes), dtype=np.int32), [*map(len, hashes)])
    return pa.record_batch({"place": places, "hash": np.concatenate(hashes)})


def _make_profiles(
    batches: Iterator[pa.RecordBatch], types: Sequence[pa.DataType]
) -> pa.RecordBatch:
    facts: dict[int, ColumnFacts] = {}
    hashes: dict[int, dict[int, bytes]] = {}
    for batch in batches:
        for place, task, text, data in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            facts[place] = facts.get(place, NO_FACTS).merge(ColumnFacts.from_json(text))
            hashes.setdefault(place, {})[task] = data
    profiles, kept, sizes = [], [], []
    for place, found in facts.items():
        of_rows = np.frombuffer(
            b"".join(data for _, data in sorted(hashes[place].items())), np.int64
        )
        if len(of_rows):
            others = of_rows[(of_rows != 0) & ~np.isin(of_rows, [*found.tokens])]
            found = replace(found, n_distinct=len(np.unique(others)))
            is_missing = np.isin(of_rows, list_token_hashes(types[place], found))
            of_rows = np.where(is_missing, 0, of_rows)
        profiles.append(make_profile("", types[place], found).to_json())
        kept.append(of_rows.tobytes())
        sizes.append((found.n_rows, found.n_distinct))
    return pa.record_batch(
        {
            "place": pa.array([*facts], pa.int32()),
            "profile": pa.array(profiles, pa.string()),
            "hashes": pa.array(kept, pa.binary()),
            "n_rows": pa.array([n for n, _ in sizes], pa.int64()),
            "n_distinct": pa.array([n for _, n in sizes], pa.int64()),
        }
    )
