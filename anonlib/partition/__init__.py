"""Partitioners: the steps that turn a table into blocks.

Most partitioners grow a tree on a sample. The tree is then frozen and gives every row its leaf.
Others split blocks inside the tasks.
"""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from anonlib.arrays import Ints
from anonlib.partition._tree import (
    Among,
    Below,
    Cut,
    CutTree,
    Grower,
    Plane,
    Sample,
    flatten_tree,
    send_rows,
)
from anonlib.partition.cuts import INDICATOR, FlatTree
from anonlib.registry import Plugin
from anonlib.table.block import Block

__all__ = [
    "INDICATOR",
    "Among",
    "Below",
    "Cut",
    "CutTree",
    "FlatTree",
    "Grower",
    "Leaf",
    "Partitioner",
    "Plane",
    "Sample",
    "TaskPartitioner",
    "TreePartitioner",
    "flatten_tree",
    "send_rows",
]


class Leaf(NamedTuple):
    """A leaf of a growing tree.

    Attributes:
        id: The leaf's id in its `Grower`.
        rows: int64[], ascending. The sampled rows in the leaf.
    """

    id: int
    rows: Ints


class Partitioner(Plugin):
    """One step of `partition.steps`."""

    family: ClassVar[str] = "partitioner"

    @property
    def needs_target(self) -> bool:
        """Whether the step reads the target."""
        return False

    @property
    def needs_context(self) -> bool:
        """Whether the step reads the insensitive columns."""
        return False

    @property
    def max_block_rows(self) -> int | None:
        """The most rows that the step keeps in one block; None if it cuts the table."""
        return None


class TreePartitioner(Partitioner):
    """Cuts the leaves of the steps before it."""

    #: Whether the step bounds leaves: it cuts until each has at most the rows of a block.
    bounds: ClassVar[bool] = False

    @abstractmethod
    def grow(
        self, sample: Sample, grower: Grower, leaf: Leaf, most: float, seed: int
    ) -> list[Leaf]:
        """Cuts one leaf. The result depends on the arguments only.

        Args:
            sample: The sampled rows.
            grower: The tree, which gets the new cuts.
            leaf: The leaf to cut.
            most: The largest size to aim for, in sampled rows, for steps that bound leaves.
            seed: The seed of random choices.

        Returns:
            The leaves that replace `leaf`.
        """


class TaskPartitioner(Partitioner):
    """Splits each block inside its task, before the kernel. The last step of a chain."""

    @abstractmethod
    def parts(self, block: Block, seed: int) -> list[Ints]:
        """Splits a block that holds the models into parts that hold them too.

        Returns:
            The rows of each part, ascending.
        """
