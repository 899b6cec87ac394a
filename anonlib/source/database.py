"""Reads from databases through JDBC: options with secrets and defaults, PostgreSQL's driver, and
one state of a table for all connections of a run."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anonlib.config.keys import read_all_options
from anonlib.config.model import SourceSection
from anonlib.spark.jdbc import add_driver, take_snapshot

URL, DRIVER = "jdbc:postgresql:", "org.postgresql.Driver"
#: Rows per fetch. Without it, PostgreSQL's driver holds a whole part of the table in memory.
FETCH_ROWS = "10000"
#: The option with a session's first statement. The config's own statement comes after it.
FIRST = "sessionInitStatement"
PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class Database:
    """A table of a database as one run reads it.

    Attributes:
        frame: Its rows.
        connection: The connection that pins the table's state. None if the database can't do that:
            then rows may differ from one reading to the next.
        in_parts: Whether several connections read it.
        again: Reads it anew.
    """

    frame: DataFrame
    connection: Any
    in_parts: bool
    again: Callable[[], DataFrame]

    @property
    def pinned(self) -> bool:
        """Whether every reading sees the same rows."""
        return self.connection is not None

    @property
    def lost(self) -> bool:
        """Whether it was pinned and the connection is gone."""
        return self.pinned and not self.connection.isValid(PATIENCE_SECONDS)

    def close(self) -> None:
        """Releases the table."""
        if self.pinned:
            with suppress(Exception):  # the connection is lost, so the table is free
                self.connection.close()


def open_database(spark: SparkSession, source: SourceSection) -> Database:
    """Opens the source's table. PostgreSQL pins its state until `close`; until then the table can't
    be truncated or altered, as during pg_dump."""
    options = read_jdbc_options(spark, source)
    in_parts = "partitioncolumn" in _names(options)
    connection = None
    if options["url"].startswith(URL):
        connection, snapshot = take_snapshot(spark, options)
        options = _first(options, snapshot)

    def again() -> DataFrame:
        return spark.read.format("jdbc").options(**options).load()

    try:
        return Database(again(), connection, in_parts, again)
    except BaseException:
        if connection is not None:
            connection.close()
        raise


def read_jdbc_options(spark: SparkSession, source: SourceSection) -> dict[str, str]:
    """The options of a JDBC reader, with secret options and defaults. Adds PostgreSQL's driver to
    the session's jars if it is needed."""
    options = read_all_options(source)
    url = next(text for name, text in options.items() if name.lower() == "url")
    # Times without a zone stay the same in every time zone of the JVM.
    usual = {"url": url, "fetchsize": FETCH_ROWS, "preferTimestampNTZ": "true"}
    if url.startswith(URL):
        usual |= {"driver": DRIVER, "tcpKeepAlive": "true"}
        if "driver" not in _names(options):
            add_driver(spark, DRIVER)
    names = _names(options)
    added = {name: text for name, text in usual.items() if name.lower() not in names}
    return {**{n: t for n, t in options.items() if n.lower() != "url"}, **added, "url": url}


def _names(options: Mapping[str, str]) -> set[str]:
    return {name.lower() for name in options}


def _first(options: Mapping[str, str], snapshot: str) -> dict[str, str]:
    """The options, with a first statement that takes the snapshot."""
    rest = {name: text for name, text in options.items() if name.lower() != FIRST.lower()}
    said = [text for name, text in options.items() if name.lower() == FIRST.lower()]
    level = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    return {**rest, FIRST: "; ".join([level, f"SET TRANSACTION SNAPSHOT '{snapshot}'", *said])}
