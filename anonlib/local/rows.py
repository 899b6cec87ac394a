"""Reads a table in memory as a run reads its source: columns by id, one form for each value, the
hash of each row."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING
from anonlib.config.model import Attribute, Config
from anonlib.config.resolve import resolve
from anonlib.errors import ConfigError, InputError, Problem
from anonlib.table.columns import HASH
from anonlib.table.encoding import one_zero
from anonlib.table.schema import Column, Field, Role, Schema
from anonlib.text import identify
from anonlib.worker.task import person_codes

#: Roles of columns in which NaN is a missing value. (A unit may have the role drop.)
WITHOUT_NAN = (Role.QUASI_IDENTIFIER, Role.IDENTIFIER, Role.DROP)

#: Arrow's names of types -> Spark's. Parameters of decimals follow.
_SPARK_NAMES = {
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
#: Other names of Spark's types.
_OTHER_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
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
}


class Rows(NamedTuple):
    """The rows of a table in memory, as a run needs them.

    Attributes:
        table: The columns of the schema by id, and HASH. The rows are in the order of a seeded
            hash of their values: the first ones are the sample that a plan is made on.
        schema: The columns.
    """

    table: pa.Table
    schema: Schema

    @property
    def n_nobody(self) -> int:
        """Rows without a person: a column of the unit is missing."""
        codes = person_codes([self.table.column(id).combine_chunks() for id in self.schema.unit])
        return 0 if codes is None else int((codes == MISSING).sum())


def list_needed(config: Config) -> set[str]:
    """The columns that a run reads."""
    kept = {name for name, a in config.attributes.items() if a.role is not Role.DROP}
    controller = config.partition.controller_column
    return kept | {*config.unit} | ({controller} if controller else set())


def read_rows(table: pa.Table, names: Sequence[str], config: Config) -> Rows:
    """Reads a table in memory by a config.

    Args:
        table: The columns that the run needs (`list_needed`), as far as they are there.
        names: All columns that are there.
        config: The config. It must need nothing that only Spark does (`find_unsupported`).

    Raises:
        ConfigError: All mismatches of config and table.
        InputError: Values can't be read as Spark would read them.
    """
    from anonlib.local.hashes import hash_rows, hash_seeded  # this imports numba

    plain = {f.name: to_plain_type(f.name, table.column(f.name)) for f in table.schema}
    fields = [
        _field(name, plain[name].type) if name in plain else Field(name, "not read", None)
        for name in names
    ]
    if problems := [*_find_casts(config.attributes, fields)]:
        raise ConfigError(problems)
    schema = resolve(config, fields)
    _require_atomic(schema)
    fold_case = config.person.fold_case
    columns = {
        c.id: _read(plain[c.name], c, schema.unit, fold_case=fold_case) for c in schema.columns
    }
    private = (*schema.unit, schema.controller)
    hashed = [columns[c.id] for c in schema.columns if c.released or c.id in private]
    row_hash = hash_rows(hashed)
    seeded = hash_seeded(config.seed, row_hash)
    order = pa.array(np.lexsort((row_hash, seeded)))
    columns[HASH] = pa.array(row_hash)
    return Rows(pa.table(columns).take(order).combine_chunks(), schema)


def sample_rows(rows: Rows, most: int) -> Rows:
    """At most about this many rows, of persons who are drawn at random, always the same. All rows
    of a person are in the sample, or none."""
    table, n = rows.table, rows.table.num_rows
    if n <= most:
        return rows
    person = person_codes([table.column(id).combine_chunks() for id in rows.schema.unit])
    if person is None:
        person = np.arange(n, dtype=np.int32)
    known, place = np.unique(person, return_inverse=True)
    drawn = np.random.default_rng(0).random(len(known)) < most / n
    return Rows(table.filter(pa.array(drawn[place])).combine_chunks(), rows.schema)


def to_plain_type(name: str, column: pa.ChunkedArray) -> pa.Array:
    """The column in a type that Spark has. Times are in microseconds, and in UTC if they have a
    zone, as in Spark.

    Raises InputError if there is none for its values.
    """
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
            f"column {name}: has values of type {column.type} that Spark has no type for; cast it"
        ) from None


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


def name_type(type: pa.DataType) -> str:
    """Spark's name of a type; Arrow's where Spark has none."""
    if pa.types.is_decimal128(type):
        return f"decimal({type.precision},{type.scale})"
    return _SPARK_NAMES.get(str(type), str(type))


def _field(name: str, type: pa.DataType) -> Field:
    at = pa.types
    known = at.is_decimal128(type) or at.is_nested(type) or str(type) in _SPARK_NAMES
    return Field(name, name_type(type), type if known else None)


def _find_casts(attributes: dict[str, Attribute], fields: list[Field]) -> Iterator[Problem]:
    """The columns that the config casts to another type."""
    for field in fields:
        attribute = attributes.get(field.name)
        if attribute is None or attribute.type is None or attribute.role is Role.DROP:
            continue
        wanted = attribute.type.replace(" ", "")
        if _OTHER_NAMES.get(wanted, wanted) != field.type:
            yield Problem(
                f"attributes.{field.name}.type",
                f"a table in memory is not cast: the column is {field.type}; convert it before, "
                "or leave `type` out",
            )


def _require_atomic(schema: Schema) -> None:
    """Raises ConfigError for columns of types whose rows can't be hashed here."""
    nested = [c for c in schema.columns if pa.types.is_nested(c.type)]
    if nested:
        raise ConfigError(
            [
                Problem(
                    f"column {column.name}",
                    f"type {column.source_type} is not supported in memory, only in Spark; give it "
                    "`role: drop`",
                )
                for column in nested
            ]
        )


def _read(values: pa.Array, column: Column, unit: Sequence[str], *, fold_case: bool) -> pa.Array:
    """The values as Spark's source reads them: one zero, null for NaN where it means missing, one
    text for each person."""
    if pa.types.is_floating(values.type):
        values = one_zero(values)
        if column.role in WITHOUT_NAN:
            values = pc.if_else(pc.is_nan(values), None, values)
    identifies = column.role is Role.IDENTIFIER or column.id in unit
    if identifies and pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        known = [
            identify(text, folded=fold_case) or None for text in encoded.dictionary.to_pylist()
        ]
        return pa.array(known, pa.string()).take(encoded.indices)
    return values
