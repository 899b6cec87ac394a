"""Tables of pandas, polars and other libraries as Arrow tables, and back."""

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.errors import InputError
from anonlib.recode.proportional import SHARES
from anonlib.text import join_names

#: Shares as pandas gives them back: it does not know how wide the numbers of nodes are.
_WIDE_SHARES = pa.list_(pa.struct([("node", pa.int64()), ("share", pa.float64())]))


def require_distinct_names(what: str, names: Iterable[object]) -> None:
    """Raises InputError if several columns of a table have the same name.

    Args:
        what: The argument that is the table.
        names: The names of its columns.
    """
    if same := [str(name) for name, n in Counter(names).items() if n > 1]:
        raise InputError(
            f"{what}: several columns have the same name: {join_names(same)}; rename them"
        )


def require_table(data: Any) -> Any:
    """A table of pandas, polars or Arrow, as it is; any other table that speaks Arrow's PyCapsule
    interface (duckdb and many more), read into an Arrow table.

    Raises InputError if it is not a table, or its columns are not told apart by names of text.
    """
    if not (_is_of("pandas", data) or _is_of("polars", data) or isinstance(data, pa.Table)):
        data = _read_stream(data)
    names = [*data.columns] if not isinstance(data, pa.Table) else data.column_names
    if not all(isinstance(name, str) for name in names):
        raise InputError("data: the names of columns must be text; rename the others")
    require_distinct_names("data", names)
    if not len(data):
        raise InputError("data: has no rows")
    return data


def read_parquet_file(path: str | Path) -> pa.Table:
    """The table of a file. Raises InputError if it is no Parquet file."""
    from pyarrow import parquet

    try:
        # Not `read_table`: it takes the names of folders for columns.
        with parquet.ParquetFile(path) as file:
            return file.read()
    except (pa.ArrowException, OSError):  # may quote values
        raise InputError(
            f"{path}: can't be read as Parquet; TABLE is a Parquet file, or the folder of a Delta "
            "table"
        ) from None


def list_names(data: Any) -> list[str]:
    """The names of the columns of a table, as `require_table` returns it."""
    return [*data.columns] if not isinstance(data, pa.Table) else list(data.column_names)


def list_index(data: Any) -> list[str]:
    """The names of an index of pandas that says more than the place of a row, `index` for none."""
    if not _is_of("pandas", data):
        return []
    import pandas as pd

    index = data.index
    plain = isinstance(index, pd.RangeIndex) and index.name is None
    return [] if plain else ["index" if name is None else str(name) for name in index.names]


def note_index(data: Any) -> Iterator[str]:
    """A note if a table has an index that is audited with its columns."""
    if list_index(data):
        yield (
            "the index counts as columns, since pandas writes it with the table; "
            "`reset_index(drop=True)` removes it"
        )


def to_arrow(data: Any, names: Collection[str]) -> pa.Table:
    """Columns of a table, as `require_table` returns it. An index of pandas is left out.

    Raises InputError if Arrow has no type for the values of a column.
    """
    wanted = [name for name in list_names(data) if name in names]
    if isinstance(data, pa.Table):
        return data.select(wanted)
    read = _of_pandas if _is_of("pandas", data) else _of_polars
    return pa.table({name: read(name, _take_column(data, name)) for name in wanted})


def _take_column(data: Any, name: str) -> Any:
    """The column of pandas or polars of this very name. In expressions of polars, as `select` takes
    them, some names mean other columns: `*`, and those from `^` to `$`.

    Raises InputError if the library gives another column.
    """
    column = data[name] if _is_of("pandas", data) else data.get_column(name)
    if getattr(column, "name", None) != name:
        raise InputError(
            f"column {name!r}: its {type(data).__name__} gives another column under this name; "
            "rename it"
        )
    return column


def to_arrow_with_index(data: Any) -> pa.Table:
    """All columns of a table, as `require_table` returns it, and last the index of pandas where it
    says more than the place of a row: whoever writes such a table writes its index, too. A name
    that is taken gets ` (index)` after it.

    Raises InputError as `to_arrow`.
    """
    names = list_names(data)
    table = to_arrow(data, names)
    for level, name in enumerate(list_index(data)):
        while name in table.column_names:
            name += " (index)"
        values = data.index.get_level_values(level).to_series()
        table = table.append_column(name, _of_pandas(name, values))
    return table


def is_of_spark(data: Any) -> bool:
    """Whether this is a table of Spark, of any kind. Spark is not imported for other tables."""
    return type(data).__module__.partition(".")[0] == "pyspark"


def like(table: pa.Table, data: Any, names: Collection[str] = ()) -> Any:
    """An Arrow table as a table of the type of `data`: of pandas or polars; else an Arrow table.
    Times within lists and structs get the zone of their column. Of others than pandas, polars and
    Arrow, which may be read once only, no types are known.

    names: Columns that get the type that they have in `data`, if all their values fit. Categories
        that no row has are left out: they are values of rows that are not released.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    for i, field in enumerate(table.schema):
        zone = _find_zone(data, field.name) if pa.types.is_nested(field.type) else None
        if zone is not None:
            column = table.column(i).cast(_set_zone(field.type, zone))
            table = table.set_column(i, field.name, column)
    if _is_of("pandas", data):
        frame = _to_pandas(table)
        for name in names:
            model = _take_column(data, name)
            frame[name] = _cast_in_pandas(frame[name], model.dtype, table.column(name))
        return frame
    if _is_of("polars", data):
        frame = sys.modules["polars"].from_arrow(table)
        frame.columns = table.column_names  # of a blank name it makes another
        for name in names:
            cast = _cast_in_polars(frame.get_column(name), data.schema[name])
            frame.replace_column(frame.get_column_index(name), cast)
        return frame
    for name in names if isinstance(data, pa.Table) else ():
        column = _cast_in_arrow(table.column(name), data.column(name))
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _find_zone(data: Any, name: str) -> str | None:
    """The time zone of a column, if all of it has one."""
    if isinstance(data, pa.Table):
        return getattr(data.schema.field(name).type, "tz", None)
    if _is_of("polars", data):
        return getattr(data.schema[name], "time_zone", None)
    if not _is_of("pandas", data):
        return None
    zone = getattr(data[name].dtype, "tz", None)
    return None if zone is None else str(zone)


def _set_zone(kind: pa.DataType, zone: str) -> pa.DataType:
    """The type with this zone of its times."""
    at = pa.types
    if at.is_struct(kind):
        return pa.struct([(field.name, _set_zone(field.type, zone)) for field in kind.fields])
    if at.is_list(kind):
        return pa.list_(kind.value_field.with_type(_set_zone(kind.value_type, zone)))
    return pa.timestamp(kind.unit, zone) if at.is_timestamp(kind) else kind


def _cast_in_arrow(column: pa.ChunkedArray, model: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of Arrow in the type of a model; as it is if its values are others then."""
    kind = model.type
    if column.type == kind:
        return column
    try:
        if pa.types.is_dictionary(kind):
            return _encode_in_arrow(column, model)
        cast = column.cast(kind)
        return cast if cast.cast(column.type).equals(column) else column
    except pa.ArrowException:
        return column


def _encode_in_arrow(column: pa.ChunkedArray, model: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of Arrow by the categories of a model, as far as a row has them: in their order
    if they are ordered, else sorted, since perhaps they stand in the order of the source's rows."""
    kind = model.type
    plain = column.combine_chunks().cast(kind.value_type)
    there = plain.unique().drop_null()
    if kind.ordered and model.num_chunks:
        categories = model.unify_dictionaries().chunk(0).dictionary
        there = categories.filter(pc.is_in(categories, value_set=there))
    else:
        there = there.take(pc.sort_indices(there))
    indices = pc.index_in(plain, value_set=there).cast(kind.index_type)
    coded = pa.DictionaryArray.from_arrays(indices, there, ordered=kind.ordered)
    return pa.chunked_array([coded], kind)


def _cast_in_pandas(column: Any, dtype: Any, values: pa.ChunkedArray) -> Any:
    """A column of pandas in a type of pandas; as it is if its values are others then."""
    import pandas as pd

    if dtype in (column.dtype, object):
        return column
    if isinstance(dtype, pd.CategoricalDtype):
        there = dtype.categories[dtype.categories.isin(column.dropna())]
        if not dtype.ordered:  # perhaps they stand in the order of the source's rows
            there = there.sort_values()
        dtype = pd.CategoricalDtype(there, dtype.ordered)
    try:
        cast = column.astype(dtype)
        back = pa.chunked_array([pa.Array.from_pandas(cast).cast(values.type)])
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return column
    return cast if back.equals(values) else column


def _cast_in_polars(column: Any, dtype: Any) -> Any:
    """A column of polars in a type of polars; as it is if its values are others then."""
    polars = sys.modules["polars"]
    if column.dtype == dtype:
        return column
    try:
        if isinstance(dtype, polars.Enum):
            there = {*column.unique()}
            dtype = polars.Enum([each for each in dtype.categories if each in there])
        cast = column.cast(dtype)
        back = cast.cast(column.dtype)
    except polars.exceptions.PolarsError:
        return column
    return cast if back.equals(column, null_equal=True) else column


def _is_of(library: str, data: Any) -> bool:
    """Whether this is a DataFrame of a library, which is not imported for that."""
    frame = getattr(sys.modules.get(library), "DataFrame", None)
    return frame is not None and isinstance(data, frame)


def _read_stream(data: Any) -> pa.Table:
    try:
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if not isinstance(data, pa.ChunkedArray) and hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except (pa.ArrowException, TypeError):  # of a single column, for example
        pass
    if isinstance(data, str | os.PathLike):
        raise InputError(
            "data: is a path, not a table; read it first, such as with pandas.read_csv or "
            "pandas.read_parquet, or release it by a config: `anonlib init` drafts one"
        )
    raise InputError(
        f"data: a {type(data).__name__} is not a table; give a pandas, polars or Arrow table, or a "
        "Spark DataFrame (of a lazy table, call .collect() first)"
    )


def _of_pandas(name: str, values: Any) -> pa.Array:
    import pandas as pd

    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    try:
        array = pa.Array.from_pandas(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # may quote values
        raise InputError(f"column {name}: {_explain(values)}") from None
    return array.cast(SHARES) if array.type == _WIDE_SHARES else array


def _explain(values: Any) -> str:
    """Why Arrow has no type for a column of pandas, and what to do."""
    if values.dtype.kind == "c":
        return "has complex numbers; make two columns of them (`.real`, `.imag`)"
    kinds = sorted({type(each).__name__ for each in values.dropna()})
    if len(kinds) > 1:
        return (
            f"its values are not of one type that Arrow has, but of {', '.join(kinds)}; convert "
            "them (`astype`)"
        )
    if kinds == ["int"]:
        return "has whole numbers of more than 64 bits; make them text (`.astype(str)`)"
    if kinds == ["str"]:
        return (
            "has texts that are not Unicode: half a character is missing; replace it "
            '(`.str.encode("utf-8", "replace").str.decode("utf-8")`)'
        )
    return (
        f"Arrow has no type for values of {', '.join(kinds)}; convert them, such as to text "
        "(`.astype(str)`)"
    )


def _of_polars(name: str, values: Any) -> Any:
    """A column of polars as an Arrow column."""
    refusal = InputError(
        f"column {name}: Arrow has no type for {values.dtype}; cast it, or leave it out"
    )
    if values.dtype == sys.modules["polars"].Object:  # Arrow would get addresses
        raise refusal
    try:
        return pa.table(values.to_frame()).column(0)
    except pa.ArrowException:  # its text may hold values
        raise refusal from None


def _to_pandas(table: pa.Table) -> Any:
    """The table in pandas. Whole numbers with missing values stay whole numbers, also within lists
    and structs, which become those of Python."""
    import pandas as pd

    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    flat = table.drop_columns(nested)
    try:
        frame = flat.to_pandas()
    except (ValueError, OverflowError):  # Python has no dates of these years
        dates = {pa.date32(): pd.ArrowDtype(pa.date32())}
        frame = flat.to_pandas(types_mapper=dates.get)
    for name, column in zip(flat.column_names, flat.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = pd.array(column.to_pylist(), pd.Int64Dtype())
    for name in nested:
        frame[name] = _to_objects(table.column(name))
    return frame[table.column_names]


def _to_objects(column: pa.ChunkedArray) -> Any:
    """A nested column in pandas."""
    import pandas as pd

    try:
        # Not `to_pandas`: whole numbers beside a missing one become floats there.
        return pd.Series(column.to_pylist(), dtype=object)
    except (ValueError, OverflowError):  # Python has no dates of these years
        return pd.Series(column, dtype=pd.ArrowDtype(column.type))
