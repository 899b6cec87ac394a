"""The profile of a Spark DataFrame in hand: what a call without a config guesses by."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anonlib.config.guess import ColumnProfile
from anonlib.errors import run_sanitized
from anonlib.local.column_facts import ColumnFacts, find_facts, make_profile
from anonlib.local.rows import to_plain_type


def take_no_rows(frame: DataFrame, names: Sequence[str]) -> pa.Table:
    """Columns without their rows: their names and types. No job."""
    return frame.select(*[_select(frame, name).alias(name) for name in names]).limit(0).toArrow()


def profile_frame(frame: DataFrame, names: Sequence[str]) -> Mapping[str, ColumnProfile]:
    """By name: the profiles of columns, by all rows: guesses depend neither on the order of the
    rows nor on partitions.

    Cost: one pass through Python, and some thousand distinct values of each column on the driver.
    """
    columns = [_select(frame, name).alias(f"c{i}") for i, name in enumerate(names)]
    found = frame.select(*columns).mapInArrow(_tell_facts, "place int, facts string")
    facts: dict[int, ColumnFacts] = {}
    for place, text in found.toLocalIterator() if columns else ():
        part = ColumnFacts.from_json(text)
        facts[place] = facts[place].merge(part) if place in facts else part
    types = take_no_rows(frame, names)
    plain = {name: to_plain_type(name, types.column(name)) for name in names}
    return {
        name: make_profile(name, plain[name].type, facts.get(i) or find_facts(plain[name]))
        for i, name in enumerate(names)
    }


def _select(frame: DataFrame, name: str) -> SparkColumn:
    """A column; what is no UTF-8 in it, which Python can't read, gets a sign of its own."""
    column = F.col(f"`{name.replace('`', '``')}`")
    return (
        F.make_valid_utf8(column) if isinstance(frame.schema[name].dataType, StringType) else column
    )


def _tell_facts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The facts of each column, by its place, for the rows of one task."""
    texts = run_sanitized("the profile of columns", lambda: _add_up(batches))
    yield pa.record_batch(
        {"place": pa.array(range(len(texts)), pa.int32()), "facts": pa.array(texts, pa.string())}
    )


def _add_up(batches: Iterator[pa.RecordBatch]) -> list[str]:
    facts: list[ColumnFacts] = []
    for batch in batches:
        table = pa.Table.from_batches([batch])
        parts = [find_facts(to_plain_type(name, table[name])) for name in table.column_names]
        facts = [a.merge(b) for a, b in zip(facts, parts, strict=True)] if facts else parts
    return [each.to_json() for each in facts]
