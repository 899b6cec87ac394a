"""Kernels: functions from a block to cell ids. One file each: a checking shell around a compiled
core on arrays and scalars."""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from anonlib.arrays import Ints
from anonlib.registry import Plugin
from anonlib.table.block import Block


class KernelResult(NamedTuple):
    """The result of a kernel.

    Attributes:
        cell_id: int64[n]. As `Kernel.cells` returns it.
        levels: int64[q] or None. The height that each nominal column is released at, where the
            kernel finds one height for the whole table. The values of a cell may have a common
            node below that height, which is then not released.
    """

    cell_id: Ints
    levels: Ints | None = None


class Kernel(Plugin):
    """Groups the rows of a block into cells.

    `cost` and `reference` are for the listing: the running time in n, k, d, and the source.
    """

    family: ClassVar[str] = "kernel"
    cost: ClassVar[str]
    reference: ClassVar[str]
    #: whether it takes blocks whose rows stand for several of the table
    takes_weights: ClassVar[bool] = False
    #: whether it generalizes along hierarchies: all quasi-identifiers must be nominal (one without
    #: a hierarchy of its own is released as it is, or not at all)
    needs_hierarchies: ClassVar[bool] = False
    #: whether it may leave rows without a cell, as far as the block allows
    suppresses: ClassVar[bool] = False

    #: whether it finds one level per column: it sees the whole table, and `lca` goes by the levels
    finds_levels: ClassVar[bool] = False

    @property
    def needs_target(self) -> bool:
        """Whether it looks at the block's target, with these parameters."""
        return self.needs_classes

    @property
    def needs_classes(self) -> bool:
        """Whether the target it looks at must be one of classes; then it uses their moments."""
        return False

    @abstractmethod
    def cells(self, block: Block) -> Ints:
        """int64[n]: the cell of every row, ids 0..m-1, each in use; every cell holds every model
        of the block. Of kernels that suppress, -1 for rows without a cell, which stand for at most
        `block.may_suppress` rows. The block is left untouched.

        Raises InfeasibleError when the block does not hold its models as one cell.
        """

    def find(self, block: Block) -> KernelResult:
        """The cells, and the levels that go with them: one search for both."""
        return KernelResult(self.cells(block))
