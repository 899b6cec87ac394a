"""Tables of databases: whether they kept still, or could be kept still, while a run read them."""

from collections.abc import Iterator
from contextlib import contextmanager

from anonlib.errors import BusyError, StorageError
from anonlib.source import Source, rename_columns
from anonlib.spark.digest import Digest, digest
from anonlib.spark.translation import translate_errors

CHANGED = "source: the table changed while it was read, nothing was published; run it again, when "
CHANGED += "nobody writes to it or on a copy"


def observe(source: Source, where: str | None) -> Digest | None:
    """The digest of the source's rows if they may change; None if they can't.

    Args:
        source: The source.
        where: The condition on its rows, `source.where`.

    Cost: one pass over the rows, which keeps them for the passes that follow. If several
    connections read them, each at its own moment, another pass over the table.

    Raises BusyError if the two passes differ.
    """
    database = source.database
    if database is None or database.pinned:
        return None
    with translate_errors("source"):
        found = digest(source.fresh)
        if database.in_parts:
            _, again = rename_columns(database.again(), where, source.seen_as)
            if digest(again.select(*source.columns)) != found:
                raise BusyError(CHANGED)
    return found


def require_steady(source: Source, before: Digest | None) -> None:
    """Raises BusyError unless the rows are those that were observed. What was kept of them is
    read from the table again where it was lost, by an executor that died for example."""
    if before is not None:
        with translate_errors("source"):
            if digest(source.fresh) != before:
                raise BusyError(CHANGED)


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
