"""How often a row's class is not the most frequent one of its cell."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class Classification(Metric):
    """The classification metric: the share of rows that are suppressed, or whose target is not the
    most frequent class of their cell.

    A missing target is a class of its own. Cost O(n log n).

    Reference: V. Iyengar, Transforming data to satisfy privacy constraints, KDD 2002, section 3.

    State: rows, penalized rows.
    """

    type: ClassVar[str] = "classification"
    subject: ClassVar[Subject] = "target"
    meaning: ClassVar[str] = (
        "share of rows whose target is not the most frequent one of their cell; 0 to 1, more is"
        " worse"
    )
    undefined: ClassVar[str] = (
        "there is no target of classes, or neither the kernel nor a partitioner looks at it"
    )

    def update(self, released: ReleasedBlock) -> Floats:
        block, kept = released.block, released.order
        if block.target is None or block.n_classes == 0:
            return np.zeros(2)
        label = released.id[kept] * block.n_classes + block.target[kept].astype(np.int64)
        pair, place = np.unique(label, return_inverse=True)
        count = np.bincount(place, released.weight[kept], len(pair))
        start = np.searchsorted(pair, np.arange(released.m) * block.n_classes)
        majority = np.maximum.reduceat(count, start) if released.m else count
        return np.array([released.n, released.n - majority.sum()], np.float64)

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        return state + n_rows if state[0] else state

    def value(self, state: Floats) -> float | None:
        return float(state[1] / state[0]) if state[0] else None
