"""Tables of pandas, polars and other libraries as Arrow tables, and back."""

from typing import Any

import pyarrow as pa

from anonlib.errors import InputError


def to_arrow(data: Any) -> pa.Table:
    """The rows of a table in memory, as an Arrow table.

    Args:
        data: A pandas DataFrame, an Arrow table or record batch, or any table that speaks Arrow's
            PyCapsule interface, as polars and duckdb do. An index of pandas is left out.

    Raises:
        InputError: It is no table, its names are not text or repeat, or a column of pandas has
            values of several types.
    """
    if is_pandas(data):
        table = _of_pandas(data)
    elif isinstance(data, pa.Table):
        table = data
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
    else:
        raise InputError(
            f"data: a {type(data).__name__} is no table; give a pandas, polars or Arrow table, or "
            "a Spark DataFrame (of a lazy table, call .collect() first)"
        )
    names = table.column_names
    if len(set(names)) < len(names):
        raise InputError("data: several columns have the same name; rename them")
    return table


def is_pandas(data: Any) -> bool:
    """Whether this is a DataFrame of pandas. pandas is not imported for other tables."""
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def like(table: pa.Table, data: Any) -> Any:
    """An Arrow table as a table of the type of `data`: of pandas or polars; else an Arrow table."""
    if is_pandas(data):
        return _to_pandas(table)
    if type(data).__module__.partition(".")[0] == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def _of_pandas(data: Any) -> pa.Table:
    if not all(isinstance(name, str) for name in data.columns):
        raise InputError("data: the names of columns must be text; rename the others")
    columns = {}
    for name, values in data.items():
        try:
            columns[name] = pa.Array.from_pandas(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):  # may quote values
            raise InputError(
                f"column {name}: its values are not of one type; convert them (`astype`)"
            ) from None
    if len(columns) < len(data.columns):
        raise InputError("data: several columns have the same name; rename them")
    return pa.table(columns)


def _to_pandas(table: pa.Table) -> Any:
    """The table in pandas. Whole numbers with missing values stay whole numbers."""
    import pandas as pd

    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = pd.array(column.to_pylist(), pd.Int64Dtype())
    return frame
