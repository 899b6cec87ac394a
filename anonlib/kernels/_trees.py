"""Hierarchies of several columns side by side, for compiled cores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.block import Ints, Tree


class Trees(NamedTuple):
    """Column j of q has the nodes start[j]..start[j + 1] - 1, numbered through.

    parent: a node comes before its own, the last one of a column is its root. low, high: the codes
    under a node are low..high - 1, and code c is the node start[j] + c. loss: of each node, in
    whatever unit.
    """

    start: Ints
    parent: Ints
    low: Ints
    high: Ints
    loss: npt.NDArray[Any]


def side_by_side(trees: Sequence[Tree], losses: Sequence[npt.NDArray[Any]]) -> Trees:
    """The trees as one, with these losses of their nodes."""
    start = np.cumsum([0, *(len(tree.parent) for tree in trees)])
    none = np.zeros(0, np.int64)
    return Trees(
        start,
        np.concatenate([none, *(t.parent + first for t, first in zip(trees, start, strict=False))]),
        np.concatenate([none, *(tree.low for tree in trees)]),
        np.concatenate([none, *(tree.high for tree in trees)]),
        np.concatenate(losses) if losses else none,
    )
