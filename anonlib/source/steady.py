"""Checks that a source did not change while a run read it."""

from collections.abc import Iterator
from contextlib import contextmanager

from anonlib.errors import BusyError, InputError, StorageError
from anonlib.source.resolved_source import Source, rename_columns
from anonlib.spark.digest import digest
from anonlib.spark.translation import NO_FILE, translate_errors
from anonlib.table.table_digest import Digest


def require_same(before: Digest, now: Digest) -> None:
    """Raises BusyError unless two readings of a source gave the same rows."""
    if before != now:
        raise BusyError(
            "source: it changed while it was read, nothing was published; run again when nobody "
            "writes to it, or on a copy"
        )


def require_one_state(source: Source, where: str | None) -> None:
    """Raises BusyError unless all connections saw the same state of a database's table.

    Several connections read at different moments. A row that moves from one part of the table to
    another meanwhile may be read twice, or never.

    Args:
        source: The source.
        where: The condition on its rows, `source.where`.

    Cost: two passes over the table; the first one keeps its rows for later passes. Nothing if the
    table is pinned, or if one connection reads it.
    """
    database = source.database
    if database is None or database.pinned or not database.in_parts:
        return
    with translate_errors("source"):
        found = digest(source.fresh.select(*source.columns))
        _, again = rename_columns(database.again(), where, source.seen_as)
        require_same(found, digest(again.select(*source.columns)))


@contextmanager
def explain_lost_pin(source: Source) -> Iterator[None]:
    """Explains errors of its body that come from a source that is not any more as it was pinned: by
    a connection that is lost, or at a version whose files are gone."""
    try:
        yield
    except StorageError as error:
        if source.database is not None and source.database.lost:
            raise StorageError(
                "source: the connection that kept the table as it was is lost; run it again"
            ) from error
        raise
    except InputError as error:
        if source.version is not None and str(error) == f"source: {NO_FILE}":
            raise InputError(
                f"source: files of version {source.version} of the table are gone, such as after a "
                "VACUUM; read a version that it still has, such as the latest"
            ) from error
        raise
