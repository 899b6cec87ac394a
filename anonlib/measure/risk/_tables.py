"""Rows to look at together."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

#: A table has a cost of its own, for each predicate or person: few large ones are cheaper.
ROWS = 250_000


def join_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows as tables of at least ROWS rows, but for the last one."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if sum(each.num_rows for each in waiting):
        yield pa.concat_tables(waiting)
