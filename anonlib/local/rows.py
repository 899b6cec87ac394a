"""Reads a table in memory as a run reads its source: columns by id, one form for each value, the
hash of each row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING
from anonlib.config.model import Attribute, Config
from anonlib.config.resolve import resolve
from anonlib.errors import ConfigError, Problem
from anonlib.table.columns import HASH
from anonlib.table.encoding import clear_nan, one_zero
from anonlib.table.plain_types import SPARK_NAMES, name_type, to_plain_type
from anonlib.table.schema import WITHOUT_NAN, Column, Field, Role, Schema
from anonlib.text import identify
from anonlib.worker.task import code_persons

#: Other names of Spark's types.
_OTHER_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
#: How columns become texts.
_AS_TEXT = "in pandas `.astype(str)`, in polars `.cast(pl.String)`"
#: The most digits of Spark's decimals.
MOST_DIGITS = 38


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
        codes = code_persons([self.table.column(id).combine_chunks() for id in self.schema.unit])
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
    from anonlib.table.hashes import hash_rows, hash_seeded  # this imports numba

    plain = {f.name: _to_type(f.name, table.column(f.name), config) for f in table.schema}
    fields = [
        _field(name, plain[name].type) if name in plain else Field(name, "not read", None)
        for name in names
    ]
    problems = [*_find_unread(plain), *_find_casts(config.attributes, fields)]
    if problems:
        raise ConfigError(problems)
    schema = resolve(config, fields)
    fold_case = config.person.fold_case
    columns = {c.id: _read(plain[c.name], c) for c in schema.columns}
    columns |= {c.id: _identify(columns[c.id], fold_case=fold_case) for c in schema.identifying}
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
    person = code_persons([table.column(id).combine_chunks() for id in rows.schema.unit])
    if person is None:
        person = np.arange(n, dtype=np.int32)
    known, place = np.unique(person, return_inverse=True)
    drawn = np.random.default_rng(0).random(len(known)) < most / n
    return Rows(table.filter(pa.array(drawn[place])).combine_chunks(), rows.schema)


def _to_type(name: str, column: pa.ChunkedArray, config: Config) -> pa.Array:
    """The column in a type that Spark has, where its role allows one."""
    role = config.attributes[name].role if name in config.attributes else None
    is_controller = name == config.partition.controller_column
    if role in (Role.IDENTIFIER, Role.DROP) and not is_controller:
        column = _as_identity(column, in_unit=name in config.unit)
    return to_plain_type(name, column)


def _as_identity(column: pa.ChunkedArray, *, in_unit: bool) -> pa.ChunkedArray:
    """A column that is looked at and not released, as text or bytes where Spark has no type for its
    values. What was equal stays equal, and nothing else is.

    in_unit: Whether the column is of the unit, which takes no bytes: it gets their hex digits.
    """
    kind, at = column.type, pa.types
    if str(kind) == "extension<arrow.uuid>":
        return _map_to_text(column, str)
    if isinstance(kind, pa.BaseExtensionType):
        storage = kind.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], storage)
        return _as_identity(column, in_unit=in_unit)
    if at.is_fixed_size_binary(kind) and not at.is_decimal(kind):
        return _map_to_text(column, bytes.hex) if in_unit else column.cast(pa.binary())
    wide = at.is_decimal(kind) and kind.precision > MOST_DIGITS
    if at.is_uint64(kind):
        wide = (pc.max(column).as_py() or 0) >= 2**63
    return column.cast(pa.string()) if wide else column


def _map_to_text(column: pa.ChunkedArray, spell: Callable[[Any], str]) -> pa.ChunkedArray:
    """The texts of the values; null stays null."""
    texts = [None if each is None else spell(each) for each in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def note_cut_times(table: pa.Table, schema: Schema) -> Iterator[str]:
    """Notes on released times of a table that are finer than Spark's."""
    for column in schema.released:
        kind = table.schema.field(column.name).type
        if not pa.types.is_timestamp(kind) or kind.unit != "ns":
            continue
        moments = table.column(column.name).cast(pa.int64()).drop_null().to_numpy()
        if (moments % 1000).any():
            yield f"column {column.name}: nanoseconds are cut to microseconds, as Spark has them"


def _field(name: str, type: pa.DataType) -> Field:
    at = pa.types
    known = at.is_decimal128(type) or at.is_nested(type) or str(type) in SPARK_NAMES
    return Field(name, name_type(type), type if known else None)


def _find_casts(attributes: dict[str, Attribute], fields: list[Field]) -> Iterator[Problem]:
    """The columns that the config casts to another type."""
    for field in fields:
        attribute = attributes.get(field.name)
        if attribute is None or attribute.type is None or attribute.role is Role.DROP:
            continue
        if attribute.layout is not None:
            yield Problem(
                f"attributes.{field.name}.layout",
                "texts of a table in memory are not read as numbers or dates; convert them before, "
                "and leave `layout` out",
            )
        wanted = attribute.type.replace(" ", "")
        if _OTHER_NAMES.get(wanted, wanted) != field.type:
            yield Problem(
                f"attributes.{field.name}.type",
                f"a table in memory is not cast: the column is {field.type}; convert it before, "
                "or leave `type` out",
            )


def _find_unread(columns: Mapping[str, pa.Array]) -> Iterator[Problem]:
    """The columns of types that nothing in memory can read, and what helps."""
    at = pa.types
    for name, column in columns.items():
        kind = column.type
        if at.is_union(kind):
            how = "; make a column of each of its types, or text"
        elif at.is_nested(kind):
            how = " in memory, only in Spark; make columns of its parts"
        elif at.is_duration(kind):
            how = "; make it a number (in pandas and polars `.dt.total_seconds()`)"
        elif at.is_time(kind):
            how = f"; make it text ({_AS_TEXT}), or a number of seconds"
        elif str(kind).startswith("extension<pandas.period"):
            how = "; make it a time (in pandas `.dt.to_timestamp()`)"
        elif isinstance(kind, pa.BaseExtensionType):
            how = f"; make it text ({_AS_TEXT})"
        else:
            continue
        yield Problem(
            f"column {name}",
            f"type {name_type(kind)} is not supported{how}, or give it `role: drop`",
        )


def _read(values: pa.Array, column: Column) -> pa.Array:
    """The values as Spark's source reads them: one zero, null for NaN where it means missing."""
    values = one_zero(values)
    return clear_nan(values) if column.role in WITHOUT_NAN else values


def _identify(values: pa.Array, *, fold_case: bool) -> pa.Array:
    """One text for each person, if the values are texts."""
    if not pa.types.is_string(values.type):
        return values
    encoded = values.dictionary_encode()
    known = [identify(text, folded=fold_case) or None for text in encoded.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(encoded.indices)
