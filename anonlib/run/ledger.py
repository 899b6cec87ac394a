"""The ledger of a table: keyed tokens of the persons in each of its runs, and the models that were
verified then. It is private, and useless without its key."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.config.keys import derive_key_check
from anonlib.config.model import Config
from anonlib.config.resolve import find_unacknowledged
from anonlib.config.summary import bare
from anonlib.errors import ConfigError, InputError, Problem, StorageError, run_sanitized
from anonlib.source.identity import is_folded
from anonlib.source.resolved_source import Source
from anonlib.spark.own_files import read_exactly
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.table.columns import key_values
from anonlib.table.schema import Column, Schema
from anonlib.table.table_digest import Digest
from anonlib.text import identify

TOKEN_SCHEMA = "token binary"
#: What a run did with a person.
Fate = Literal[
    "released", "released or suppressed", "not released", "unknown", "waits, not searched"
]
_WHOLE = frozenset(map(str, (pa.int8(), pa.int16(), pa.int32(), pa.int64())))
#: The type of texts that are one person whatever their case.
FOLDED = "string, case folded"


@dataclass(frozen=True)
class Entry:
    """The entry of a run, besides its tokens.

    Attributes:
        run_id: The run.
        table: The path of its table.
        key_check: A check value of the ledger's key.
        persons: Name and type of each column that identifies persons, in the order of the tokens:
            by name; in entries of earlier versions as in their config.
        digest: Of all rows of the table after the run; None in entries of earlier versions whose
            table had rows of unknown persons.
        verdicts: The models that held with persons counted.
        insensitive: How insensitive columns were checked, as in `AuditReport`.
        n_tokens: The number of tokens; None until all are written.
        unnamed: Whether one token stands for rows without a person.
        gap: Why some rows of the table are of unknown persons; empty if none are.
        is_whole: Whether all rows of the source were released. Else there are also tokens of
            persons whose rows were suppressed.
        columns: Name and type of each column, in the order of the digest; empty in entries of
            earlier versions.
    """

    run_id: str
    table: str
    key_check: str
    persons: tuple[tuple[str, str], ...]
    digest: Digest | None
    verdicts: tuple[str, ...]
    insensitive: str
    n_tokens: int | None = None
    unnamed: bool = False
    gap: str = ""
    is_whole: bool = False
    columns: tuple[tuple[str, str], ...] = ()


class TableRows:
    """The rows of a table, known by their digest. They are those that a run left if each column,
    found by its name, has the same values. The order of the columns and the width of whole numbers
    do not matter."""

    def __init__(
        self,
        columns: Sequence[tuple[str, str]],
        digest: Digest,
        take_digest: Callable[[Sequence[tuple[int, str]]], Digest | None],
    ):
        """The rows of a table.

        Args:
            columns: The name and the type of each column, in its order.
            digest: The digest in that order.
            take_digest: The digest by the places of the columns in the order wanted, read as these
                types; None if these can't hold all values. Cost: a pass or two.
        """
        self._columns, self._take_digest = tuple(columns), take_digest
        self._digests: dict[tuple[tuple[str, str], ...], Digest | None] = {self._columns: digest}
        self._n_rows = digest.n_rows

    def are_of(self, entry: Entry) -> bool:
        """Whether the run of an entry left just these rows."""
        digest, columns = entry.digest, entry.columns or self._columns
        if digest is None or digest.n_rows != self._n_rows:
            return False
        if columns not in self._digests:
            place = {name: i for i, (name, _) in enumerate(self._columns)}
            there = dict(self._columns)
            if place.keys() != dict(columns).keys():
                return False
            if any(
                there[name] != type and not is_widened(there[name], type) for name, type in columns
            ):
                return False
            wanted = [(place[name], type) for name, type in columns]
            self._digests[columns] = self._take_digest(wanted)
        return self._digests[columns] == digest


def is_widened(now: str, before: str) -> bool:
    """Whether a type of Spark holds all whole numbers of another one, and more."""
    wide = ("tinyint", "smallint", "int", "bigint")
    return {now, before} <= {*wide} and wide.index(now) > wide.index(before)


class Ledger:
    """The entries of one table. An entry is written before the commit, and counts only if its run
    was committed."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        table: str,
        key: bytes,
        one_row_per_person: bool | str,
        *,
        insensitive: tuple[str, ...],
        fold_case: bool,
    ):
        self._spark = spark
        self._one_row_per_person = one_row_per_person
        self._insensitive = insensitive
        self._fold_case = fold_case
        self._table = table
        self._key = key
        self._storage = Storage(spark, path)
        self._known: dict[str, Entry | None] = {}  # entries as they were first read

    def entries(self, runs: Iterable[str]) -> list[Entry]:
        """The complete entries of these runs."""
        self._known |= {run_id: self._read(run_id) for run_id in {*runs} - self._known.keys()}
        found = [self._known[run_id] for run_id in sorted(runs)]
        return [entry for entry in found if entry is not None and entry.n_tokens is not None]

    def gap(self, runs: frozenset[str], rows: TableRows, schema: Schema) -> str | None:
        """Why persons of the table's runs may not be recognised; None if all will be, but for those
        of `known_gap`."""
        entries = self.entries(runs)
        if paths := self.other_paths(runs):
            return (
                f"the ledger has runs of this table under another path, {', '.join(paths)}: it was "
                "moved, or is reached by a link; name it by that path, since the ledger finds no "
                "person by this one"
            )
        if len(entries) < len(runs):
            n = len(runs) - len(entries)
            return f"the ledger lacks {n} of the {len(runs)} runs that published here"
        if (reason := self.doubt(runs, schema)) is not None:
            return reason
        if not self.knows(runs, rows):
            return (
                "the table is not as any run of the ledger left it: others changed or deleted its "
                "rows, or a run without the ledger added some; see what it holds (`anonlib audit`)"
            )
        return None

    def known_gap(self, runs: Iterable[str], rows: TableRows) -> str | None:
        """Why persons of a table may not be recognised although a run of the ledger left just these
        rows: it accepted that, or one before it did. None if all will be, or no run left them."""
        gaps = [entry.gap for entry in self.entries(runs) if rows.are_of(entry)]
        return min(gaps, default="") or None

    def doubt(self, runs: Iterable[str], schema: Schema) -> str | None:
        """Why persons of these runs' entries may not be recognised; None if all will be."""
        entries = self.entries(runs)
        if any(entry.key_check != derive_key_check(self._key) for entry in entries):
            return "the ledger was written with another key"
        own = sorted(_widest(self._persons(schema)))
        if any(sorted(_widest(entry.persons)) != own for entry in entries):
            return "the ledger knows persons by other columns, or by columns of other types"
        if any(entry.unnamed for entry in entries):
            return "rows that were released before name no person"
        return None

    def other_paths(self, runs: Iterable[str]) -> list[str]:
        """The paths of the tables, other than this one, that the entries of these runs name."""
        found = [self._read(run_id, any_table=True) for run_id in runs]
        tables = {entry.table for entry in found if entry is not None}
        return sorted(map(bare, tables - {self._table}))

    def list_runs(self) -> frozenset[str]:
        """The runs with a complete entry of this table, whether or not they were committed."""
        names = self._storage.listed(self._storage.root)
        runs = {name.removeprefix("run-") for name in names if name.startswith("run-")}
        return frozenset(entry.run_id for entry in self.entries(runs))

    def knows(self, runs: Iterable[str], rows: TableRows) -> bool:
        """Whether one of these runs left a table with exactly these rows."""
        return any(rows.are_of(entry) for entry in self.entries(runs))

    def proves(self, runs: frozenset[str], rows: TableRows, verdicts: Iterable[str]) -> bool:
        """Whether a run left exactly these rows, knew whose they are, and verified these models,
        and the insensitive columns that must not be rare, with persons counted."""
        wanted = {*verdicts, *self._checks()}
        states = () if self._insensitive else ("acknowledged",)
        return any(
            not entry.gap
            and wanted <= {*entry.verdicts}
            and entry.insensitive in ("none", "checked", *states)
            and rows.are_of(entry)
            for entry in self.entries(runs)
        )

    def returning(self, source: Source, runs: Iterable[str]) -> tuple[int, bool]:
        """The number of the source's persons of whom these runs have tokens, and whether rows have
        no person.

        Cost: a pass over the columns that identify persons, and a join with the ledger. Raises
        StorageError if tokens are gone.
        """
        by_order = self._group(self.entries(runs), source.schema)
        with translate_errors("release.ledger"):
            n, wanted, joined = 0, 0, self._tokens(source, by_order)
            for i, entries in enumerate(by_order.values()):
                known = self._read_tokens(
                    *[f"{self._folder(each.run_id)}/tokens" for each in entries]
                )
                n += known.count()
                wanted += sum(entry.n_tokens or 0 for entry in entries)
                known = known.distinct().toDF(f"token{i}").withColumn(f"known{i}", F.lit(True))
                joined = joined.join(known, f"token{i}", "left")
            if n != wanted:
                raise StorageError(
                    f"release.ledger: {n} of its {wanted} tokens are there: files are gone; "
                    "restore the folder of the ledger from a copy"
                )
            found = F.coalesce(*[F.col(f"known{i}") for i in range(len(by_order))])
            row = joined.agg(
                F.count(found).alias("n"), F.count_if(F.col("token0").isNull()).alias("unnamed")
            ).collect()[0]
        return int(row["n"]), bool(row["unnamed"])

    def all_released(self, runs: Iterable[str]) -> bool:
        """Whether these runs released all persons whose tokens they have."""
        return all(entry.is_whole for entry in self.entries(runs))

    def released(self, person: Mapping[str, str], runs: Iterable[str]) -> dict[str, Fate]:
        """By run: what it did with a person. Unknown if the ledger lacks the run, or has another
        key.

        The person is given by the values of the identifying columns, as in the source. Raises
        InputError if other columns are given, StorageError if tokens are gone.
        """
        found: dict[str, Fate] = dict.fromkeys(runs, "unknown")
        for entry in self.entries(found):
            if entry.key_check == derive_key_check(self._key):
                has = self._has(entry, _token(entry.persons, person, self._key))
                sure: Fate = "released" if entry.is_whole else "released or suppressed"
                found[entry.run_id] = sure if has else "not released"
        return found

    def _has(self, entry: Entry, token: bytes) -> bool:
        with translate_errors("release.ledger"):
            tokens = self._read_tokens(f"{self._folder(entry.run_id)}/tokens")
            hits = F.count_if(F.col("token") == F.lit(token)).alias("hits")
            row = tokens.agg(F.count("*").alias("n"), hits).collect()[0]
        if row["n"] != entry.n_tokens:
            raise StorageError(
                f"release.ledger: {row['n']} of the {entry.n_tokens} tokens of run "
                f"{entry.run_id} are there: files are gone; restore the folder of the ledger from "
                "a copy"
            )
        return bool(row["hits"])

    def write(
        self,
        run_id: str,
        source: Source,
        digest: Digest,
        columns: tuple[tuple[str, str], ...],
        verdicts: Iterable[str],
        state: str,
        *,
        gap: str,
        is_whole: bool,
    ) -> None:
        """Writes the source's persons as a run's, in place of what it may have left before.

        columns: Those of the table, with their types, in the order of the digest. gap: Why some
        rows of the table are of unknown persons. is_whole: Whether all rows of the source are
        released.

        Raises ConfigError when a run of another table has this id in this ledger.
        """
        there = self._read(run_id, any_table=True)
        if there is not None and there.table != self._table:
            raise ConfigError(
                [
                    Problem(
                        "release.ledger.path",
                        f"run {run_id} of another table is in this ledger; take another id or "
                        "folder",
                    )
                ]
            )
        entry = Entry(
            run_id,
            self._table,
            derive_key_check(self._key),
            self._persons(source.schema),
            digest,
            (*verdicts, *(self._checks() if state == "checked" else ())),
            state,
            gap=gap,
            is_whole=is_whole,
            columns=columns,
        )
        folder = self._folder(run_id)
        self._storage.make_private(self._storage.root)
        self._storage.delete(folder)
        self._known.pop(run_id, None)
        self._storage.write(f"{folder}/entry.json", json.dumps(asdict(entry)))
        with translate_errors("release.ledger"):
            # Some object stores go on to list a folder that was removed.
            tokens = self._tokens(source).toDF("token")
            tokens.write.mode("overwrite").parquet(f"{folder}/tokens")
            written = self._read_tokens(f"{folder}/tokens")
            nobody = F.count_if(F.col("token").isNull()).alias("nobody")
            row = written.agg(F.count("*").alias("n"), nobody).collect()[0]
        self._storage.close(self._storage.root)
        whole = replace(entry, n_tokens=int(row["n"]), unnamed=row["nobody"] > 0)
        self._storage.write(f"{folder}/entry.json", json.dumps(asdict(whole)))

    def _read_tokens(self, *folders: str) -> DataFrame:
        """`token` of everyone in these folders, which are there."""
        return read_exactly(self._spark, "parquet", TOKEN_SCHEMA, folders)

    def _checks(self) -> list[str]:
        """What stands among the verdicts for the insensitive columns."""
        return [f"no rare combinations with {name}" for name in self._insensitive]

    def _folder(self, run_id: str) -> str:
        return f"{self._storage.root}/run-{run_id}"

    def _read(self, run_id: str, *, any_table: bool = False) -> Entry | None:
        path = f"{self._folder(run_id)}/entry.json"
        if not self._storage.exists(path):
            return None
        try:
            entry = _entry(json.loads(self._storage.read(path)))
        except (ValueError, TypeError, KeyError):  # the driver died while it wrote
            return None
        return entry if any_table or entry.table == self._table else None

    def _persons(self, schema: Schema) -> tuple[tuple[str, str], ...]:
        """Name and type of each column that identifies persons, sorted by name: their order in the
        config makes no other persons."""
        columns = [schema.by_id(id) for id in self._ids(schema)]
        return tuple(sorted((column.name, self._type(column)) for column in columns))

    def _group(
        self, entries: Iterable[Entry], schema: Schema
    ) -> dict[tuple[str, ...], list[Entry]]:
        """Entries by the order of the columns that their tokens are made of. Entries with columns
        of other names count as of this run's order."""
        own = tuple(name for name, _ in self._persons(schema))
        groups: dict[tuple[str, ...], list[Entry]] = {}
        for entry in entries:
            order = tuple(name for name, _ in entry.persons)
            groups.setdefault(order if {*order} == {*own} else own, []).append(entry)
        return groups or {own: []}

    def _type(self, column: Column) -> str:
        return FOLDED if is_folded(column.source_type, self._fold_case) else str(column.type)

    def _ids(self, schema: Schema) -> tuple[str, ...]:
        name = self._one_row_per_person
        return (schema[name].id,) if isinstance(name, str) else schema.unit

    def _tokens(self, source: Source, orders: Iterable[tuple[str, ...]] = ()) -> DataFrame:
        """The tokens of persons: one row per person, and one of nulls if rows name no person.

        Args:
            source: The source.
            orders: Orders of the names of the columns; empty for one order, by name.

        Returns:
            `token0`, `token1`, ...: 32 bytes, by each order.
        """
        schema, key = source.schema, self._key
        ids = self._ids(schema)
        place = {schema.by_id(id).name: i for i, id in enumerate(ids)}
        places = [[place[name] for name in order] for order in orders or [tuple(sorted(place))]]
        frame = source.raw.select(*[source.columns[id].alias(id) for id in ids])
        names = [f"token{i}" for i in range(len(places))]
        # pyspark can't read the annotations of a partial; a lambda has none.
        tokens = frame.mapInArrow(
            lambda batches: _tokens(batches, places, key), ", ".join(f"{n} string" for n in names)
        )
        return tokens.select(*[F.unhex(name).alias(name) for name in names]).distinct()


def _tokens(
    batches: Iterable[pa.RecordBatch], orders: Sequence[Sequence[int]], key: bytes
) -> Iterator[pa.RecordBatch]:
    """The token of each row as hex, by each order. orders: The places of columns in batches."""
    for batch in batches:
        what = f"the tokens of {batch.num_rows} rows"
        columns = [[batch.columns[place] for place in order] for order in orders]
        found = [run_sanitized(what, partial(key_values, each, key)) for each in columns]
        yield pa.RecordBatch.from_arrays(found, [f"token{i}" for i in range(len(orders))])


def open_ledger(spark: SparkSession, config: Config, table: str, key: bytes) -> Ledger:
    """The ledger of a config, for the table at a path."""
    return Ledger(
        spark,
        config.ledger_folder,
        table,
        key,
        config.one_row_per_person,
        insensitive=find_unacknowledged(config.attributes, config.privacy),
        fold_case=config.person.fold_case,
    )


def _token(persons: Sequence[tuple[str, str]], values: Mapping[str, str], key: bytes) -> bytes:
    """The token of a person, from the values of the identifying columns."""
    wanted = [name for name, _ in persons]
    if {*wanted} != {*values}:
        raise InputError(f"the ledger knows persons by: {', '.join(wanted)}; name these columns")
    columns = []
    for name, type in persons:
        if type in ("string", FOLDED):
            text = identify(values[name], folded=type == FOLDED)
            columns.append(pa.array([text], pa.string()))
            continue
        kind = _find_type(type)
        try:
            columns.append(_read(values[name], kind))
        except pa.ArrowInvalid:
            raise InputError(
                f"{name}: the value can't be read as {type}, which the ledger knows"
            ) from None
    return bytes.fromhex(key_values(columns, key)[0].as_py())


def _widest(persons: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Columns that identify persons, whole numbers as of one type: their tokens are the same."""
    wide = str(pa.int64())
    return [(name, wide if type in _WHOLE else type) for name, type in persons]


def _find_type(text: str) -> pa.DataType:
    """The Arrow type that an entry names: an atomic one, since its column identifies persons."""
    if match := re.fullmatch(r"decimal128\((\d+), (-?\d+)\)", text):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", text):
        return pa.timestamp(match[1], match[2])
    return pa.type_for_alias(text)


def _read(text: str, type: pa.DataType) -> pa.Array:
    """A value from its text. Times without an offset are in UTC, as a run reads them."""
    values = pa.array([text], pa.string())
    if pa.types.is_timestamp(type) and type.tz is not None:
        with suppress(pa.ArrowInvalid):
            return values.cast(pa.timestamp(type.unit)).cast(type)
    return values.cast(type)


def _entry(content: dict[str, Any]) -> Entry:
    digest = content["digest"]
    return Entry(
        **{
            **content,
            "persons": tuple((name, type) for name, type in content["persons"]),
            "digest": None if digest is None else Digest(**digest),
            "verdicts": tuple(content["verdicts"]),
            "columns": tuple((name, type) for name, type in content.get("columns", ())),
        }
    )
