"""The types of columns as Spark has them: their names, and values in them."""

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.errors import InputError

#: Arrow's names of types -> Spark's. Parameters of decimals follow.
SPARK_NAMES = {
    "null": "void",
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date32[day]": "date",
    "timestamp[us]": "timestamp_ntz",
    "timestamp[us, tz=UTC]": "timestamp",
}
#: Types of Arrow that Spark reads as others.
_READ_AS = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),  # without a value any type would do
}


def name_type(type: pa.DataType) -> str:
    """Spark's name of a type; Arrow's where Spark has none."""
    if pa.types.is_decimal128(type):
        return f"decimal({type.precision},{type.scale})"
    return SPARK_NAMES.get(str(type), str(type))


def to_plain_type(name: str, column: pa.ChunkedArray) -> pa.Array:
    """The column in a type that Spark has. Times are in microseconds, and in UTC if they have a
    zone, as in Spark.

    Raises InputError if there is none for its values.
    """
    if pa.types.is_run_end_encoded(column.type):
        decoded = [pc.run_end_decode(chunk) for chunk in column.chunks]
        column = pa.chunked_array(decoded, column.type.value_type)
    chunks = column.chunks or [pa.array([], column.type)]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowException:  # its text may hold values
            raise InputError(
                f"column {name}: has texts that are not UTF-8; decode their bytes before"
            ) from None
    try:
        if pa.types.is_dictionary(column.type):
            chunks = [_cast(chunk.dictionary).take(chunk.indices) for chunk in chunks]
        return _cast(pa.concat_arrays(chunks))
    except (pa.ArrowException, ValueError):  # its text may hold values
        raise InputError(
            f"column {name}: has values of type {column.type} that Spark has no type for; cast "
            "it (whole numbers above 2^63 - 1 to decimals or texts), or leave it out"
        ) from None


def to_file_type(name: str, column: pa.ChunkedArray, known: pa.DataType) -> pa.ChunkedArray:
    """A released column as files have it: in a type that Spark has, also within lists and structs.

    known: The type of the release. It counts where no value tells one, as in a column of pandas
        without a value.
    """
    if not (pa.types.is_nested(column.type) or pa.types.is_null(column.type)):
        return pa.chunked_array([to_plain_type(name, column)])
    return column.cast(_complete_type(column.type, known))


def _complete_type(kind: pa.DataType, known: pa.DataType | None) -> pa.DataType:
    """A type with its parts in types that Spark has; that of `known` where it is null."""
    at = pa.types
    if at.is_null(kind):
        return kind if known is None else known
    if at.is_struct(kind):
        parts = known if known is not None and at.is_struct(known) else pa.struct([])
        types = {field.name: field.type for field in parts.fields}
        return pa.struct([(f.name, _complete_type(f.type, types.get(f.name))) for f in kind.fields])
    if _is_list(kind):
        element = known.value_type if known is not None and _is_list(known) else None
        return pa.list_(pa.field("element", _complete_type(kind.value_type, element)))
    if at.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return _READ_AS.get(kind, kind)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) and not (pa.types.is_struct(kind) or pa.types.is_map(kind))


def _cast(values: pa.Array) -> pa.Array:
    kind = values.type
    if kind in _READ_AS:
        return values.cast(_READ_AS[kind])
    if pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if not pa.types.is_timestamp(kind):
        return values
    if kind.unit == "ns":  # rounded down, as Spark does
        moments = values.cast(pa.int64())
        rest = pa.array(moments.fill_null(0).to_numpy() % 1000)
        values = pc.subtract(moments, rest).cast(pa.timestamp("ns", kind.tz))
    zone = None if kind.tz is None else "UTC"
    return values.cast(pa.timestamp("us", kind.tz)).cast(pa.timestamp("us", zone))
