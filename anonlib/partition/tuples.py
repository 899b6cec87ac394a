"""No blocks: one search over the distinct tuples of the whole table."""

from typing import ClassVar

from pydantic import Field

from anonlib.partition import Partitioner


class TuplesPartitioner(Partitioner):
    """One search over the whole table, for kernels that take weights.

    Spark counts the distinct tuples (with the values of protected columns), one task searches them,
    and every row is released like its tuple. Nothing is lost at the edges of blocks, and the cost
    of the search does not depend on the number of rows.

    It must be the only step. Recoders must work on tuples: `lca`, `suppress`, `proportional`. Every
    row counts as a person; a config with a `unit` needs blocks, which count persons.

    Cost: one aggregate of the table, the kernel on `max_tuples` tuples, and a broadcast join.
    """

    type: ClassVar[str] = "tuples"
    max_tuples: int = Field(
        500_000,
        ge=1,
        le=20_000_000,
        description="most distinct combinations of quasi-identifiers and protected columns",
    )
