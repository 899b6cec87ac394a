"""The categories of columns: their distinct values in order, each with Spark's hash of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.decisions.refusals import refuse_categories
from anonlib.errors import ConfigError, Problem
from anonlib.table.encoding import sort_categories
from anonlib.table.schema import Schema


@dataclass(frozen=True)
class Categories:
    """The categories of all nominal and ordinal columns.

    Attributes:
        values: By id: the categories in order. Declared orders and hierarchies give the order.
        hashes: By id: int64, Spark's hash of each category; 0 for one that does not occur.
    """

    values: dict[str, pa.Array]
    hashes: dict[str, Ints]


def order_categories(
    schema: Schema,
    values_of: Mapping[str, tuple[pa.Array, pa.Array]],
    most: int,
    missing_tokens: tuple[str, ...],
) -> tuple[Categories, list[Problem]]:
    """Orders the values that columns have.

    Args:
        schema: The columns.
        values_of: By id of a column: its distinct values, and int64 the hash of each.
        most: The most categories that a column may have.
        missing_tokens: Texts that mean a missing value.

    Returns:
        The categories of columns that have no problem, and what is wrong with others.
    """
    ordered = Categories({}, {})
    problems: list[Problem] = []
    for id, (values, hash_of) in values_of.items():
        column = schema.by_id(id)
        if len(values) > most:
            problems.append(refuse_categories(column, most))
        try:
            ordered.values[id] = sort_categories(column, values, missing_tokens)
        except ConfigError as error:
            problems += error.problems
            continue
        place = pc.index_in(ordered.values[id], value_set=values)
        ordered.hashes[id] = hash_of.take(place).fill_null(0).to_numpy(zero_copy_only=False)
    return ordered, problems
