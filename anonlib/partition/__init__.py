"""Partitioners: the steps that turn a table into blocks. Most grow a frozen tree on a sample, which
gives every row its leaf, row by row; some work inside the tasks."""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from anonlib.arrays import Ints
from anonlib.partition._tree import INDICATOR, Among, Below, Cut, CutTree, Grower, Plane, Sample
from anonlib.registry import Plugin
from anonlib.table.block import Block

__all__ = [
    "INDICATOR",
    "Among",
    "Below",
    "Cut",
    "CutTree",
    "Grower",
    "Leaf",
    "Partitioner",
    "Plane",
    "Sample",
    "TaskPartitioner",
    "TreePartitioner",
]


class Leaf(NamedTuple):
    """A leaf of a tree that grows, and the sampled rows in it, ascending."""

    id: int
    rows: Ints


class Partitioner(Plugin):
    """One step of `partition.steps`."""

    family: ClassVar[str] = "partitioner"

    @property
    def needs_target(self) -> bool:
        """Whether it looks at the target."""
        return False

    @property
    def needs_context(self) -> bool:
        """Whether it looks at the insensitive columns."""
        return False

    @property
    def whole(self) -> int | None:
        """The most rows of a table that it keeps in one block; None where it cuts."""
        return None


class TreePartitioner(Partitioner):
    """Cuts the leaves of the steps before it."""

    #: Whether it goes on until leaves have at most as many rows as a block may have.
    bounds: ClassVar[bool] = False

    @abstractmethod
    def grow(
        self, sample: Sample, grower: Grower, leaf: Leaf, most: float, seed: int
    ) -> list[Leaf]:
        """Cuts a leaf of `grower`; returns the leaves that it became.

        most: the sampled rows that leaves aim at having at most, for steps that bound them. A pure
        function of the arguments.
        """


class TaskPartitioner(Partitioner):
    """Parts each block inside its task, before the kernel: the last step of a chain."""

    @abstractmethod
    def parts(self, block: Block, seed: int) -> list[Ints]:
        """The rows, ascending, of the parts of a block that holds the models: so does each."""
