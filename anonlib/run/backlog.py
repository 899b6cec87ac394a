"""The backlog of a table: rows of batches that could not hold the models wait here for the next
batch. They are encrypted."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from anonlib.config.keys import derive_entry_key, derive_key_check
from anonlib.errors import (
    BlockError,
    ConfigError,
    InfeasibleError,
    InputError,
    Problem,
    StorageError,
    run_sanitized,
)
from anonlib.source.resolved_source import Source
from anonlib.spark.file_list import digest_listing
from anonlib.spark.own_files import read_exactly
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors

SEALED = "n int, sealed binary"


@dataclass(frozen=True)
class Waiting:
    """The waiting rows of one run.

    Attributes:
        run_id: The run.
        table: The table that they will be added to.
        key_check: A check value of the key that encrypted them.
        columns: The names of their columns in the source.
        types: Spark's schema, as JSON.
        n_rows: Their number; None until all are written.
        taken_by: The last run that took them along. Once it is committed, the rows are published,
            and only this note is kept.
        settled: Whether that run was committed: the rows are removed, and wait no more, even if
            the table is dropped.
        config_sha256: The digest of the run's config; None in entries of earlier versions.
        source_version: The version of its source, if that has versions.
        source_files: The digest of the listing of its files, if it is of files.
        readings: By name of each column of text that has a `type` in the config: what it was read
            as, in words. None in entries of earlier versions.
    """

    run_id: str
    table: str
    key_check: str
    columns: tuple[str, ...]
    types: str
    n_rows: int | None = None
    taken_by: str | None = None
    settled: bool = False
    config_sha256: str | None = None
    source_version: int | None = None
    source_files: str | None = None
    readings: Mapping[str, str] | None = None


class Backlog:
    """The waiting rows of one table. All changes are made under the table's lease."""

    def __init__(self, spark: SparkSession, path: str, table: str, key: bytes):
        self._spark = spark
        self._table = table
        self._key = key
        self._storage = Storage(spark, path)

    def of(self, run_id: str) -> Waiting | None:
        """The waiting rows of a run; None if they were not written in full."""
        found = self._read(run_id)
        return None if found is None or found.n_rows is None else found

    def unpublished(self, runs: frozenset[str]) -> list[Waiting]:
        """The rows that still wait, given the committed runs. Needs no key."""
        found = [entry for entry in self._entries() if entry.n_rows is not None]
        return [entry for entry in found if not entry.settled and entry.taken_by not in runs]

    def waiting(self, runs: frozenset[str]) -> list[Waiting]:
        """The same, to be read. Raises ConfigError if they were encrypted with another key."""
        found, own = self.unpublished(runs), derive_key_check(self._key)
        if other := [entry.run_id for entry in found if entry.key_check != own]:
            raise ConfigError(
                [
                    Problem(
                        "release.backlog",
                        "it was written with another key: the rows of run "
                        f"{', '.join(other)} wait in {', '.join(map(self.folder, other))}; give "
                        "the key of that time (`key_env`), or remove these folders and release the "
                        "rows from their source by another run id",
                    )
                ]
            )
        return found

    def rows(self, entries: Iterable[Waiting]) -> dict[str, DataFrame]:
        """By run: the rows of each entry, with the column names of their source.

        Raises StorageError if some are gone, InputError if all of an entry are.
        """
        return {entry.run_id: self._rows(entry) for entry in entries}

    def add(self, run_id: str, source: Source, config_sha256: str) -> None:
        """Writes the source's own rows, of the columns that a run needs, to wait.

        Raises ConfigError when a run of another table has this id in this backlog.
        """
        there = self._read(run_id, any_table=True)
        if there is not None and there.table != self._table:
            raise ConfigError(
                [
                    Problem(
                        "release.backlog.path",
                        f"run {run_id} of another table is in this backlog; take another id or "
                        "folder",
                    )
                ]
            )
        ids = [column.id for column in source.schema.columns]
        frame = source.fresh.select(*ids)
        names = tuple(column.name for column in source.schema.columns)
        entry = Waiting(
            run_id,
            self._table,
            derive_key_check(self._key),
            names,
            frame.schema.json(),
            config_sha256=config_sha256,
            source_version=source.version,
            source_files=digest_listing(source.files) if source.files else None,
            readings=describe_readings(source),
        )
        folder, key = self.folder(run_id), derive_entry_key(self._key, run_id)
        self._storage.make_private(self._storage.root)
        self._write(entry)
        with translate_errors("release.backlog"):
            # pyspark can't read the annotations of a partial; a lambda has none.
            sealed = frame.mapInArrow(lambda batches: _seal_batches(batches, key), SEALED)
            # An attempt that died may have left some.
            sealed.write.mode("overwrite").parquet(f"{folder}/rows")
        self._storage.close(self._storage.root)
        self._write(replace(entry, n_rows=self._count(entry)))

    def take(self, run_id: str, entries: Iterable[Waiting]) -> None:
        """Notes that a run is about to publish these rows. Once it is committed, they count as
        published."""
        for entry in entries:
            self._write(replace(entry, taken_by=run_id))

    def settle(self, runs: frozenset[str]) -> None:
        """Removes rows that these runs published, and entries that were not written in full."""
        for entry in self._entries():
            if entry.n_rows is None:
                self._storage.delete(self.folder(entry.run_id))
            elif entry.settled or entry.taken_by in runs:
                if not entry.settled:
                    self._write(replace(entry, settled=True))
                self._storage.delete(f"{self.folder(entry.run_id)}/rows")

    def _rows(self, entry: Waiting) -> DataFrame:
        folder = self.folder(entry.run_id)
        if not self._storage.exists(f"{folder}/rows"):
            taken_by = entry.taken_by
            why = "" if taken_by is None else f": run {taken_by} took them, which the table lacks"
            raise InputError(
                f"release.backlog: the rows that run {entry.run_id} left are not there{why}; if "
                "they are to be released, do it by another run id, from their source; remove "
                f"{folder}"
            )
        key, n = derive_entry_key(self._key, entry.run_id), self._count(entry)
        if n != entry.n_rows:
            raise StorageError(
                f"release.backlog: {n} of the {entry.n_rows} rows that run {entry.run_id} "
                f"left are there; restore {folder} from a copy, or remove it and release its rows "
                "from their source"
            )
        types = StructType.fromJson(json.loads(entry.types))
        plain = StructType([StructField(f"w{i}", f.dataType) for i, f in enumerate(types)])
        with translate_errors("release.backlog"):
            rows = self._read_rows(entry).mapInArrow(
                lambda batches: _unseal_batches(batches, key), plain
            )
        return rows.toDF(*entry.columns)

    def _count(self, entry: Waiting) -> int:
        with translate_errors("release.backlog"):
            return int(self._read_rows(entry).agg({"n": "sum"}).collect()[0][0] or 0)

    def _read_rows(self, entry: Waiting) -> DataFrame:
        folder = f"{self.folder(entry.run_id)}/rows"
        return read_exactly(self._spark, "parquet", SEALED, [folder])

    def _entries(self) -> list[Waiting]:
        names = [name.removeprefix("run-") for name in self._storage.listed(self._storage.root)]
        return [entry for name in names if (entry := self._read(name)) is not None]

    def folder(self, run_id: str) -> str:
        """The folder of a run's waiting rows."""
        return f"{self._storage.root}/run-{run_id}"

    def _read(self, run_id: str, *, any_table: bool = False) -> Waiting | None:
        path = f"{self.folder(run_id)}/entry.json"
        if not self._storage.exists(path):
            return None
        try:
            found = json.loads(self._storage.read(path))
            entry = Waiting(**{**found, "columns": tuple(found["columns"])})
        except (ValueError, TypeError, KeyError):  # the driver died while it wrote
            if not self._storage.exists(f"{self.folder(run_id)}/rows"):
                return None
            raise InputError(
                f"release.backlog.path: {path} is damaged, so that nobody knows whether the rows "
                "beside it still wait; restore it from a copy, or remove its folder and release "
                f"the rows of run {run_id} anew"
            ) from None
        return entry if any_table or entry.table == self._table else None

    def _write(self, entry: Waiting) -> None:
        text = json.dumps(asdict(entry), ensure_ascii=False)
        self._storage.write(f"{self.folder(entry.run_id)}/entry.json", text)


def describe_readings(source: Source) -> dict[str, str]:
    """By name of each column of text that has a `type` in the config: what it is read as, in words.
    A type that was inferred from the texts is left out: it tells no layout."""
    readings = source.readings.items()
    return {name: str(cast) for name, cast in readings if cast is not None and not cast.was_seen}


def can_wait(error: InfeasibleError) -> bool:
    """Whether more rows may help: the only problem is that the models do not hold."""
    return all(problem.where.startswith(("privacy.", "partition.")) for problem in error.problems)


def _seal_batches(batches: Iterable[pa.RecordBatch], key: bytes) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        if rows.num_rows:
            what = f"sealing {rows.num_rows} rows"
            sealed = run_sanitized(what, partial(seal, rows, key))
            columns = [pa.array([rows.num_rows], pa.int32()), pa.array([sealed])]
            yield pa.RecordBatch.from_arrays(columns, ["n", "sealed"])


def _unseal_batches(batches: Iterable[pa.RecordBatch], key: bytes) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for n, sealed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rows = run_sanitized(f"unsealing {n} rows", partial(unseal, sealed, key))
            yield rows.rename_columns([f"w{i}" for i in range(rows.num_columns)])


NONCE_BYTES = 12


def seal(rows: pa.RecordBatch, key: bytes) -> bytes:
    """The rows as an Arrow stream, encrypted and authenticated by AES-256-GCM (NIST SP 800-38D)
    with a key of 32 bytes, behind a fresh nonce."""
    nonce = os.urandom(NONCE_BYTES)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return nonce + AESGCM(key).encrypt(nonce, sink.getvalue().to_pybytes(), None)


def unseal(message: bytes, key: bytes) -> pa.RecordBatch:
    """The inverse of `seal`. Raises BlockError for another key, or if a bit changed."""
    try:
        data = AESGCM(key).decrypt(message[:NONCE_BYTES], message[NONCE_BYTES:], None)
    except InvalidTag:
        raise BlockError("sealed rows were changed, or sealed with another key") from None
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
