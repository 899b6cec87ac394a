"""Whether a source kept still, or could be kept still, while a run read it."""

from collections.abc import Iterator
from contextlib import contextmanager

from anonlib.errors import BusyError, StorageError
from anonlib.source import Source, rename_columns
from anonlib.spark.digest import Digest, digest
from anonlib.spark.translation import translate_errors


def require_same(before: Digest, now: Digest) -> None:
    """Raises BusyError unless two readings of a source saw the same rows."""
    if before != now:
        raise BusyError(
            "source: it changed while it was read, nothing was published; run it again, when "
            "nobody writes to it or on a copy"
        )


def require_one_state(source: Source, where: str | None) -> None:
    """Raises BusyError unless all connections saw one state of a database's table.

    Where several connections read it, each at its own moment, a row that moves from one part of
    the table to another may be read twice, or never.

    Args:
        source: The source.
        where: The condition on its rows, `source.where`.

    Cost: two passes over the table; the first keeps its rows for the passes that follow. None if
    it is pinned, or if one connection reads it.
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
    """Explains a failure of the body that comes from a lost pin on the source's table."""
    try:
        yield
    except StorageError as error:
        if source.database is not None and source.database.lost:
            raise StorageError(
                "source: the connection that kept the table as it was is lost; run it again"
            ) from error
        raise
