"""Metrics of what a release is worth: mergeable states, the same on a block, in Spark, in a test.

A state is a float64 array of fixed length; `merge` is commutative up to rounding and is applied
in block order, so that a figure repeats exactly.
"""

from abc import abstractmethod
from typing import ClassVar

from anonlib.block import Block, Floats, Ints
from anonlib.registry import Plugin


class Metric(Plugin):
    """A figure of the information lost, from the cells of every block."""

    family: ClassVar[str] = "metric"

    @abstractmethod
    def update(self, block: Block, cell_id: Ints, n_cells: int) -> Floats:
        """The state of one block."""

    def merge(self, a: Floats, b: Floats) -> Floats:
        """The state of both."""
        return a + b

    @abstractmethod
    def value(self, state: Floats) -> float | None:
        """The figure; None where it is not defined, as `undefined` explains."""

    #: why `value` can be None
    undefined: ClassVar[str] = ""
