"""Kernels: functions from a block to the cell of every row.

Each kernel is one file. It checks the block, then calls a compiled core on arrays and numbers.
"""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from anonlib.arrays import Ints
from anonlib.registry import Plugin
from anonlib.table.block import Block


class KernelResult(NamedTuple):
    """The result of a kernel.

    Attributes:
        cell_id: int64[n]. The cell of each row, as `Kernel.cells` returns it.
        levels: int64[q] or None. The height at which each nominal column is released; None for
            kernels that do not find one height for the whole table. A cell is released at this
            height even if its values have a common node below it.
        note: What the notes of a release say about the search; None for nothing. It has no values
            of the table.
    """

    cell_id: Ints
    levels: Ints | None = None
    note: str | None = None


class Kernel(Plugin):
    """Groups the rows of a block into cells.

    Attributes:
        cost: The running time for n rows, d columns and cells of k rows, for listings.
        reference: The publication, for listings.
        takes_weights: Whether a row of a block may stand for several rows of the table.
        needs_hierarchies: Whether it generalizes along hierarchies. A column without a hierarchy is
            released as it is, or not at all.
        suppresses: Whether it may leave rows without a cell, within `block.may_suppress`.
        finds_levels: Whether it finds one level per column. If so, its block is the whole table,
            and the recoder `lca` releases these levels.
    """

    family: ClassVar[str] = "kernel"
    cost: ClassVar[str]
    reference: ClassVar[str]
    takes_weights: ClassVar[bool] = False
    needs_hierarchies: ClassVar[bool] = False
    suppresses: ClassVar[bool] = False
    finds_levels: ClassVar[bool] = False

    @property
    def needs_nominal(self) -> bool:
        """Whether all quasi-identifiers must be nominal, with these parameters."""
        return self.needs_hierarchies

    @property
    def needs_target(self) -> bool:
        """Whether the kernel reads the block's target, with these parameters."""
        return self.needs_classes

    @property
    def needs_classes(self) -> bool:
        """Whether the target must have classes. If so, the kernel uses their moments."""
        return False

    @property
    def for_hierarchies(self) -> tuple[str, ...]:
        """The names of its parameters that change nothing where no column has a hierarchy."""
        return ()

    @abstractmethod
    def cells(self, block: Block) -> Ints:
        """Puts every row into a cell, such that every cell holds every model of the block.

        Args:
            block: The rows. The block is not changed.

        Returns:
            int64[n]. The cell of each row. Cells are numbered 0..m-1, without gaps. Kernels with
            `suppresses` may give -1 to rows that stand for at most `block.may_suppress` rows of
            the table.

        Raises:
            InfeasibleError: The block does not hold its models as one cell.
        """

    def find(self, block: Block) -> KernelResult:
        """Returns the cells, their levels and the note, from one search."""
        return KernelResult(self.cells(block))
