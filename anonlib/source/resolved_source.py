"""Opens a source: any Spark format, a catalog table, a DataFrame, or the generator."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from anonlib.config.model import RESERVED_PREFIX, Attribute, Config
from anonlib.config.places import lies_in, list_private_places
from anonlib.config.resolve import resolve
from anonlib.errors import ConfigError, InputError, Problem
from anonlib.source.casts import (
    Cast,
    declare_cast,
    find_casts,
    infer_casts,
    list_inferred,
    read_as,
    require_readable_as,
)
from anonlib.source.condition import filter_rows
from anonlib.source.contract import require_contract
from anonlib.source.database import Database, open_database
from anonlib.source.given import find_zone, in_zone
from anonlib.source.identity import identify_person, is_known_equality
from anonlib.source.readers import is_temporary_view, names_pattern, read_source
from anonlib.spark.digest import with_halves
from anonlib.spark.file_list import (
    Listing,
    can_read_again,
    digest_listing,
    hide_values,
    list_files,
    list_roots,
    require_same_files,
)
from anonlib.spark.lease import work_folder
from anonlib.spark.storage import spelling
from anonlib.spark.translation import translate_errors
from anonlib.spark.values import hash_row, read_field
from anonlib.table.columns import DEAL, HASH, HIGH, LOW
from anonlib.table.schema import WITHOUT_NAN, Field, Role, Schema, is_atomic

#: Most files that a record names.
MOST_FILES = 1000

#: The beginning of types of text whose equality is not that of bytes, and the collation of bytes.
COLLATION, PLAIN = "string collate ", "UTF8_BINARY"

#: The unchanged row, beside its columns as `source.where` sees them.
_ROW = f"{RESERVED_PREFIX}row"


@dataclass(frozen=True)
class Source:
    """A resolved source.

    Attributes:
        raw: The rows, with the source's columns renamed c0..cN.
        fresh: `raw` without rows of the backlog.
        columns: By id: the expression that reads the column from `raw`. It casts, and turns NaN of
            quasi-identifiers into null.
        casts: By id: what a column is read as, if that is not its own type.
        schema: The columns of the run.
        version: The pinned version of a Delta source; else None.
        fields: All columns of the source, after the casts.
        files: The files of the source when it was opened.
        seen_as: By name of a text column: what it is read as in `source.where`.
        zone: The time zone of a caller's DataFrame, as `find_zone` tells it.
        database: The connection of `format: jdbc`; else None.
        waiting: Rows of the backlog, by the run that left them, with the columns of `raw`.
        is_pattern: Whether nothing is at the source's path by that very name, so that it is a
            pattern of others, which `files` has.
    """

    raw: DataFrame
    fresh: DataFrame
    columns: dict[str, Column]
    casts: dict[str, Cast]
    schema: Schema
    version: int | None
    fields: tuple[Field, ...]
    files: Listing
    seen_as: Mapping[str, Cast]
    zone: str | None = None
    database: Database | None = None
    waiting: Mapping[str, DataFrame] = field(default_factory=dict)
    is_pattern: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the source's files its path does not say."""
        if not self.is_pattern:
            return ()
        n = f"{len(self.files):,} file" + ("s" if len(self.files) != 1 else "")
        return (f"source.path: nothing has just this name; as a pattern it reads {n}",)

    @property
    def readings(self) -> dict[str, Cast | None]:
        """By name of each column that is text in the source: what it is read as; None if as
        text."""
        return {
            column.name: self.casts.get(column.id)
            for column in self.schema.columns
            if isinstance(self.fresh.schema[column.id].dataType, StringType)
        }

    def summarize_files(self) -> dict[str, Any]:
        """The part `source_files` of a record, if the source is of files: how many, the digest of
        their listing, and the names of the first, without values in the names of folders."""
        if not self.files:
            return {}
        names = [hide_values(path) for path in sorted(self.files)[:MOST_FILES]]
        found = {"n": len(self.files), "sha256": digest_listing(self.files), "names": names}
        return {"source_files": found}

    def rows(self, *, all_columns: bool = False) -> DataFrame:
        """The rows as blocks need them, or with all columns of the schema. Further columns:

        - HASH, the hash of the columns of the block.
        - DEAL, the hash of these and of identifiers, to deal out rows that have the same HASH.
        - LOW and HIGH, the halves of the hash for the digest of the source: of the rows as they
          were read, before casts, and before texts are the identities of persons.
        """
        private = (*self.schema.unit, self.schema.controller)
        ids = [c.id for c in self.schema.columns if c.released or c.id in private]
        columns = [column.alias(id) for id, column in self.columns.items()]
        frame = self.hashed().select(*columns, LOW, HIGH)
        all_hash = hash_row(frame.select(*self.columns)).alias(DEAL)
        kept = self.columns if all_columns else ids
        own_hash = hash_row(frame.select(*ids)).alias(HASH)
        return frame.select(*kept, own_hash, all_hash, LOW, HIGH)

    def hashed(self) -> DataFrame:
        """`raw` with LOW and HIGH."""
        return with_halves(self.raw.select(*self.columns), [*self.columns])

    def where(self, condition: Column) -> "Source":
        """The source with only the rows for which a condition on the columns of `rows` is true."""
        frame = self.raw.select(*[column.alias(id) for id, column in self.columns.items()])
        deal = hash_row(frame).alias(DEAL)
        kept = frame.select("*", deal).where(condition).drop(DEAL)
        same = {id: F.col(id) for id in self.columns}
        return replace(self, raw=kept, fresh=kept, columns=same, casts={}, waiting={})

    def require_same_files(self) -> None:
        """Raises BusyError unless the files are those that were there when it was opened."""
        # Names of folders are read anew: those of the caller's DataFrame in the caller's zone.
        with in_zone(self.fresh.sparkSession, self.zone):
            require_same_files(self.files, self.fresh)

    def close(self) -> None:
        """Frees the persisted rows, and closes the connection."""
        self.fresh.unpersist()
        if self.database is not None:
            self.database.close()


def open_source(
    spark: SparkSession,
    config: Config,
    frame: DataFrame | None = None,
    waiting: Mapping[str, DataFrame] | None = None,
) -> Source:
    """Opens the config's source and resolves the config against it.

    Args:
        spark: The session.
        config: The config.
        frame: A DataFrame to release; the config's source by default.
        waiting: Rows of the backlog to add, by the run that left them.

    Raises:
        ConfigError: All mismatches of config and source.
        InputError, StorageError: The source can't be read.
    """
    if frame is not None or config.source.format != "jdbc":
        return _open(spark, config, frame, waiting or {})
    with translate_errors("source", permission_error=InputError):
        database = open_database(spark, config.source)
    try:
        return replace(_open(spark, config, database.frame, waiting or {}), database=database)
    except BaseException:
        database.close()
        raise


def _open(
    spark: SparkSession,
    config: Config,
    frame: DataFrame | None,
    waiting: Mapping[str, DataFrame],
) -> Source:
    version, zone, pattern = None, None, False
    if frame is not None or is_temporary_view(spark, config.source):
        zone = find_zone(spark)
    with translate_errors("source", permission_error=InputError):
        with in_zone(spark, zone):
            if frame is None:
                frame, version = read_source(spark, config.source, find_used(config))
                pattern = names_pattern(spark, config.source)
            else:
                require_contract(frame, find_used(config))
            files = list_files(frame)
        keep = not can_read_again(frame)
        _require_apart(spark, config, list_roots(frame), files)
        seen_as = _find_condition_casts(config, frame)
        frame, fresh = rename_columns(frame, config.source.where, seen_as)
        names = frame.columns
        needed = {*config.unit, config.partition.controller_column}
        given = config.attributes
        before = {id: _like(rows, frame, given, needed) for id, rows in waiting.items()}
        raw = _together(fresh, before.values())
        casts = _restore_widths(fresh, raw) | find_casts(config, names, raw)
        columns = {f"c{i}": read_as(F.col(f"c{i}"), casts.get(f"c{i}")) for i in range(len(names))}
        typed = raw.select(*[column.alias(id) for id, column in columns.items()]).schema
    fields = tuple(read_field(name, typed[i]) for i, name in enumerate(names))
    schema = resolve(config, fields)
    _require_known_equality(schema)
    plain_columns = _list_plain_columns(schema, columns, config.person.fold_case)
    if keep or zone:
        # On local disks during the run, encrypted like Spark's spilled data.
        with translate_errors("source", permission_error=InputError):
            fresh = fresh.select(*plain_columns).persist(StorageLevel.DISK_ONLY)
            if zone:
                _fill(fresh, zone)
            before = {id: rows.select(*plain_columns) for id, rows in before.items()}
            raw = _together(fresh, before.values())
    casts = {id: type for id, type in casts.items() if id in plain_columns}
    made = Source(raw, fresh, plain_columns, casts, schema, version, fields, files, seen_as, zone)
    return replace(made, waiting=before, is_pattern=pattern)


def _list_plain_columns(
    schema: Schema, columns: Mapping[str, Column], fold_case: bool
) -> dict[str, Column]:
    """By id: the columns with one form for each value: no NaN where that is missing, texts in the
    collation of bytes, by which blocks, audits and hashes compare them, as Arrow does, and one text
    for each person."""
    plain = {c.id: _plain_floats(columns[c.id], c.type, c.role) for c in schema.columns}
    collated = [c.id for c in schema.columns if c.source_type.startswith(COLLATION)]
    plain |= {id: F.collate(columns[id], PLAIN) for id in collated}
    return plain | {
        c.id: identify_person(plain[c.id], c.source_type, fold_case) for c in schema.identifying
    }


def _fill(cache: DataFrame, zone: str) -> None:
    """Reads all rows of a DataFrame that is to be persisted, in the time zone of its caller."""
    try:
        with in_zone(cache.sparkSession, zone):
            cache.count()
    except BaseException:
        cache.unpersist()
        raise


def _require_apart(
    spark: SparkSession, config: Config, roots: Collection[str], files: Listing
) -> None:
    """Raises ConfigError for files of the source that are the release's, or private, and for
    folders of it that have the release in them."""
    places = {"release.path": config.release.path, **list_private_places(config)}
    own = {where: spelling(spark, path) for where, path in places.items() if where != "events"}
    tables = {spelling(spark, path) for path in roots}
    folders = tables | {spelling(spark, path.rpartition("/")[0]) for path in files}
    read = {where for where, place in own.items() if any(lies_in(f, place) for f in folders)}
    release = own["release.path"]
    if any(lies_in(folder, work_folder(release)) for folder in folders) or any(
        lies_in(release, table) for table in tables
    ):
        read.add("release.path")
    text = "the source reads files there: a run would read what it writes; name another folder, or "
    text += "a source that does not reach there"
    if read:
        raise ConfigError([Problem(where, text) for where in read])


def _require_known_equality(schema: Schema) -> None:
    """Raises ConfigError if it is unknown which texts of a person's column are equal, or if texts
    of controllers may be equal that differ."""
    problems = [
        Problem(
            f"column {column.name}",
            f"its type {column.source_type} does not say which controllers are the same, as names "
            f"in `models` do; read it with the collation {PLAIN}",
        )
        for column in schema.columns
        if column.id == schema.controller and column.source_type.startswith(COLLATION)
    ]
    problems += [
        Problem(
            f"column {column.name}",
            f"its type {column.source_type} does not say which persons are the same; read it with "
            "the collation UTF8_BINARY, UTF8_LCASE, UNICODE or UNICODE_CI",
        )
        for column in schema.identifying
        if not is_known_equality(column.source_type)
    ]
    if problems:
        raise ConfigError(problems)


def rename_columns(
    frame: DataFrame, where: str | None, casts: Mapping[str, Cast]
) -> tuple[DataFrame, DataFrame]:
    """The rows for which `source.where` is true, and the same rows with columns c0..cN.

    Args:
        frame: The rows.
        where: The condition; None for all rows.
        casts: By name of a text column: what it is read as in the condition.
    """
    names, ids = frame.columns, [f"c{i}" for i in range(len(frame.columns))]
    raw = frame.toDF(*ids)
    if casts:
        seen = [read_as(F.col(id), casts.get(n)).alias(n) for id, n in zip(ids, names, strict=True)]
        frame = filter_rows(raw.select(*seen, F.struct(*ids).alias(_ROW)), where)
        raw = frame.select(f"{_ROW}.*")
        return raw.toDF(*names), raw
    frame = filter_rows(frame, where)
    return frame, frame.toDF(*ids)


def _find_condition_casts(config: Config, frame: DataFrame) -> dict[str, Cast]:
    """What text columns are read as in `source.where`: as declared, or inferred from all rows.

    Raises InputError if values can't be read as their type: the condition would lose their rows.
    """
    where = (config.source.where or "").casefold()
    ids = {
        f"c{i}": field.name
        for i, field in enumerate(frame.schema)
        if isinstance(field.dataType, StringType) and field.name.casefold() in where
    }
    if not ids:
        return {}
    raw = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])
    declared = {n: cast for n, a in config.attributes.items() if (cast := declare_cast(a))}
    inferred = {id for id in list_inferred(config, frame.columns, raw) if id in ids}
    tokens = config.privacy.missing_tokens
    casts = {
        id: declared[name]
        for id, name in ids.items()
        if name in declared and declared[name].type != "string"
    }
    require_readable_as(raw, casts, tokens, ids)
    casts |= infer_casts(raw, sorted(inferred), tokens)
    return {ids[id]: cast for id, cast in casts.items()}


def open_columns(spark: SparkSession, config: Config, names: Sequence[str]) -> DataFrame:
    """Columns of the config's source, read like nominal quasi-identifiers and renamed v0, v1, ...

    Raises ConfigError when the source lacks one, else as `open_source`.
    """
    with translate_errors("source", permission_error=InputError):
        frame, _ = read_source(spark, config.source, find_used(config) | {*names})
        seen_as = _find_condition_casts(config, frame)
        frame, raw = rename_columns(frame, config.source.where, seen_as)
        there = frame.columns
        if missing := [name for name in names if name not in there]:
            raise ConfigError(
                [Problem(f"column {name}", "the source has no such column") for name in missing]
            )
        casts = find_casts(config, there, raw)
        ids = [f"c{there.index(name)}" for name in names]
        tokens = config.privacy.missing_tokens
        wanted = dict(zip(ids, names, strict=True))
        require_readable_as(raw, {id: casts[id] for id in ids if id in casts}, tokens, wanted)
        typed = raw.select(*[read_as(F.col(id), casts.get(id)) for id in ids])
        typed = typed.toDF(*[f"v{i}" for i in range(len(names))])
        arrow = [read_field(f.name, f).arrow for f in typed.schema.fields]
        if other := [n for n, t in zip(names, arrow, strict=True) if t is None or not is_atomic(t)]:
            raise ConfigError(
                [Problem(f"column {name}", "its type has no hierarchy") for name in other]
            )
        role = Role.QUASI_IDENTIFIER
        plain = [_plain_floats(F.col(f"v{i}"), t, role).alias(f"v{i}") for i, t in enumerate(arrow)]
        return typed.select(*plain)


def _together(fresh: DataFrame, before: Iterable[DataFrame]) -> DataFrame:
    """All rows. Whole numbers are as wide as the widest of them."""
    return reduce(DataFrame.unionAll, before, fresh)


def _restore_widths(fresh: DataFrame, raw: DataFrame) -> dict[str, Cast]:
    """By id: the type in the source, `fresh`, of each column that waiting rows made wider in
    `raw`."""
    return {
        field.name: Cast(field.dataType.simpleString())
        for field in fresh.schema
        if isinstance(field.dataType, IntegralType)
        and field.dataType != raw.schema[field.name].dataType
    }


def _like(
    rows: DataFrame,
    frame: DataFrame,
    attributes: Mapping[str, Attribute],
    names: Collection[str | None],
) -> DataFrame:
    """Rows of the backlog with the columns of the source, renamed c0..cN.

    Args:
        rows: The rows. They may lack columns with `role: drop`, which are then null.
        frame: The source.
        attributes: The columns of the config, by name.
        names: Columns that rows may not lack: the unit and the data controller.

    Raises InputError if the rows have other columns or types than the source; whole numbers may
    have any width.
    """
    there = {field.name: i for i, field in enumerate(rows.schema)}
    plain = rows.toDF(*[f"w{i}" for i in range(len(there))])
    columns = []
    for i, wanted in enumerate(frame.schema):
        attribute = attributes.get(wanted.name)
        dropped = attribute is None or attribute.role is Role.DROP
        place = there.get(wanted.name)
        if place is None and (not dropped or wanted.name in names):
            raise InputError(f"release.backlog: waiting rows have no column {wanted.name}")
        waits = wanted.dataType if place is None else rows.schema[place].dataType
        whole = all(isinstance(type, IntegralType) for type in (waits, wanted.dataType))
        if waits.simpleString() != wanted.dataType.simpleString() and not whole:
            raise InputError(
                f"release.backlog: column {wanted.name} is {waits.simpleString()} in waiting rows, "
                f"and {wanted.dataType.simpleString()} in the source; read it with its former type"
            )
        value = F.lit(None).cast(wanted.dataType) if place is None else F.col(f"w{place}")
        columns.append(value.alias(f"c{i}"))
    return plain.select(*columns)


def find_used(config: Config) -> set[str]:
    """The columns that a run uses: to release them, to count persons, or to choose rows."""
    used = {name for name, a in config.attributes.items() if a.role is not Role.DROP}
    used |= {name for name in config.attributes if name == config.one_row_per_person}
    condition = (config.source.where or "").casefold()
    chosen = {name for name in config.attributes if name.casefold() in condition}
    controller = config.partition.controller_column
    return used | chosen | {*config.unit} | ({controller} if controller else set())


def read_plain(column: Column, cast: Cast | None, arrow: pa.DataType) -> Column:
    """A column of another table as a quasi-identifier: cast, and without NaN."""
    return _plain_floats(read_as(column, cast), arrow, Role.QUASI_IDENTIFIER)


def _plain_floats(column: Column, type: pa.DataType, role: Role) -> Column:
    """Floats with 0.0 for -0.0, so that equal values have equal hashes; with null for NaN in the
    roles of WITHOUT_NAN."""
    if not pa.types.is_floating(type):
        return column
    column = column + F.lit(0.0).cast("float" if pa.types.is_float32(type) else "double")
    return F.when(~F.isnan(column), column) if role in WITHOUT_NAN else column
