"""The profile of a Spark DataFrame in hand: what a call without a config guesses by."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anonlib.errors import run_sanitized
from anonlib.guesses.guess import ColumnProfile
from anonlib.local.column_facts import NO_FACTS, ColumnFacts, find_facts, make_profile
from anonlib.spark.loan import return_session
from anonlib.spark.session import session
from anonlib.table.plain_types import to_plain_type

#: What tasks tell: a column by its place, and its facts.
_FACTS = "place int, facts string"


def take_no_rows(frame: DataFrame, names: Sequence[str]) -> pa.Table:
    """Columns without their rows: their names and types. No job."""
    return frame.select(*[_select(frame, name).alias(name) for name in names]).limit(0).toArrow()


@return_session
def profile_frame(frame: DataFrame, names: Sequence[str]) -> Mapping[str, ColumnProfile]:
    """By name: the profiles of columns, by all rows: guesses depend neither on the order of the
    rows nor on partitions.

    Cost: one pass through Python, and a shuffle of some thousand distinct values of each column and
    task.

    Raises InputError if the session writes what is shuffled to disks in clear.
    """
    if not names:
        return {}
    session({}, frame.sparkSession)
    columns = [_select(frame, name).alias(f"c{i}") for i, name in enumerate(names)]
    of_tasks = frame.select(*columns).mapInArrow(_tell_facts, _FACTS)
    merged = of_tasks.repartition(len(names), "place").mapInArrow(_merge_facts, _FACTS)
    facts = {place: ColumnFacts.from_json(text) for place, text in merged.collect()}
    empty = take_no_rows(frame, names)
    types = {name: to_plain_type(name, empty.column(name)).type for name in names}
    return {n: make_profile(n, types[n], facts.get(i, NO_FACTS)) for i, n in enumerate(names)}


def _select(frame: DataFrame, name: str) -> SparkColumn:
    """A column; what is no UTF-8 in it, which Python can't read, gets a sign of its own."""
    column = F.col(f"`{name.replace('`', '``')}`")
    return (
        F.make_valid_utf8(column) if isinstance(frame.schema[name].dataType, StringType) else column
    )


def _tell_facts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The facts of each column, by its place, for the rows of one task."""
    yield _to_batch(run_sanitized("the profile of columns", lambda: _add_up(batches)))


def _merge_facts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The facts of some columns, by their places, for the rows of all tasks."""
    yield _to_batch(run_sanitized("the profile of columns", lambda: _add_up_tasks(batches)))


def _add_up(batches: Iterator[pa.RecordBatch]) -> dict[int, ColumnFacts]:
    facts: dict[int, ColumnFacts] = {}
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for place, name in enumerate(table.column_names):
            part = find_facts(to_plain_type(name, table[name]))
            facts[place] = facts.get(place, NO_FACTS).merge(part)
    return facts


def _add_up_tasks(batches: Iterator[pa.RecordBatch]) -> dict[int, ColumnFacts]:
    facts: dict[int, ColumnFacts] = {}
    for batch in batches:
        for place, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            facts[place] = facts.get(place, NO_FACTS).merge(ColumnFacts.from_json(text))
    return facts


def _to_batch(facts: Mapping[int, ColumnFacts]) -> pa.RecordBatch:
    texts = [each.to_json() for each in facts.values()]
    return pa.record_batch(
        {"place": pa.array([*facts], pa.int32()), "facts": pa.array(texts, pa.string())}
    )
