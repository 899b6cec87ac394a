"""Reads another release from Parquet files, without Spark."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonlib.errors import ConfigError, InputError, Problem
from anonlib.table.schema import Column

_WHERE = "measure differencing"


def read_release(source: Mapping[str, Any], columns: Sequence[Column]) -> pa.Table:
    """The rows of another release, with columns of this one.

    Args:
        source: Its table, as a config's `source`.
        columns: The columns, which it has by the same names and types as this release.

    Raises:
        ConfigError: The table lacks a column, or a column has another type.
        InputError: It is not Parquet, or can't be read.
    """
    if source.get("format") != "parquet" or source.get("where") or source.get("options"):
        raise InputError(
            "measure differencing: without Spark, another release is read from Parquet files only, "
            "without `where` and `options`"
        )
    try:
        found = parquet.read_table(source["path"])
    except (OSError, pa.ArrowException):
        raise InputError(
            "measure differencing: source.path: no Parquet files that can be read"
        ) from None
    return pa.table({column.id: _read_column(found, column) for column in columns})


def _read_column(table: pa.Table, column: Column) -> pa.Array:
    if column.name not in table.column_names:
        text = f"the table has no column {column.name}"
        raise ConfigError([Problem(f"{_WHERE}: columns", text)])
    values, wanted = table.column(column.name).combine_chunks(), column.released_type
    try:
        return values.cast(wanted)
    except pa.ArrowException:  # its text may hold a value
        text = (
            f"the column {column.name} is {values.type} there, and {wanted} here; `columns` names "
            "the quasi-identifiers that agree"
        )
        raise ConfigError([Problem(f"{_WHERE}: columns", text)]) from None
