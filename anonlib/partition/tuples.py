"""No blocks: one search over the distinct tuples of the whole table."""

from typing import ClassVar

from pydantic import Field

from anonlib.partition import Partitioner


class TuplesPartitioner(Partitioner):
    """One search over the whole table, for kernels that take multiplicities: Spark counts the
    distinct tuples (with the values of protected columns), one task searches them, and every row is
    released as its tuple is. Nothing is lost at the edges of blocks, and the search's cost does not
    depend on the number of rows.

    It is the only step; recoders are those that work on tuples (`lca`, `suppress`, `proportional`).
    Every row is a person: with a `unit`, blocks count persons.

    Cost: an aggregate of the table, the kernel's on `max_tuples`, and a broadcast join.
    """

    type: ClassVar[str] = "tuples"
    max_tuples: int = Field(
        500_000,
        ge=1,
        le=20_000_000,
        description="most distinct combinations of quasi-identifiers and protected columns",
    )
