"""One block: the whole table goes to one task."""

from typing import ClassVar

from pydantic import Field

from anonlib.partition import Partitioner


class Single(Partitioner):
    """Keeps all rows in one block, for tables that fit in a worker.

    A table of more than `limit` rows is refused. Cost: none.
    """

    type: ClassVar[str] = "single"
    limit: int = Field(200_000, ge=1, description="most rows that one block may have")

    @property
    def max_block_rows(self) -> int:
        return self.limit
