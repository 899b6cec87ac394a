"""Blocks by Mondrian: the top levels of its tree on the whole table."""

from math import ceil
from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.partition import Below, Grower, Leaf, Sample, TreePartitioner


class MondrianPartitioner(TreePartitioner):
    """Cuts at medians until blocks are small enough, like the kernel `mondrian` in mode `strict`.

    Widths, boundaries, order of dimensions and privacy models are those of the kernel, which goes
    on inside the blocks. If a table has at most `sample_rows` rows, the release is that of Mondrian
    on the whole table. For a larger table, medians are those of the sample, and each side needs the
    sampled share of the rows that the models require. Numbers beyond 16 standard deviations are
    compared in 24 bits.

    Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE
    2006. Cost O(m (d + log m) log(blocks)) for a sample of m rows and d dimensions.
    """

    type: ClassVar[str] = "mondrian"
    bounds: ClassVar[bool] = True

    def grow(
        self, sample: Sample, grower: Grower, leaf: Leaf, most: float, seed: int
    ) -> list[Leaf]:
        leaves: list[Leaf] = []
        todo = [leaf]
        while todo:
            node = todo.pop()
            cut = _cut(sample, node.rows) if len(node.rows) > most else None
            if cut is None:
                leaves.append(node)
                continue
            left, right = grower.cut(node.id, cut)
            low = sample.left(cut, node.rows)
            todo += [Leaf(right, node.rows[~low]), Leaf(left, node.rows[low])]
        return leaves


def _cut(sample: Sample, rows: Ints) -> Below | None:
    """The median cut of the widest dimension that allows it; None if there is none."""
    width = _widths(sample, rows)
    for j in np.argsort(-width, kind="stable").tolist():
        if width[j] <= 0.0:
            break
        cut = Below(j, _median(sample.values[rows, j]))
        if _is_allowed(sample, rows, cut):
            return cut
    return None


def _widths(sample: Sample, rows: Ints) -> Floats:
    """The range of each dimension, divided by its range in the whole table; 0 if that is 0."""
    block = sample.block
    scale = np.concatenate([block.widths, np.maximum(block.n_categories - 1, 0)])
    ranges = [np.ptp(block.numeric[rows], axis=0), np.ptp(block.nominal[rows], axis=0)]
    width: Floats = np.concatenate(ranges) / np.where(scale > 0, scale, np.inf)
    return width


def _median(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> float:
    """The lowest value on the right of the median boundary.

    This is the boundary whose left side comes nearest to half of the rows; of two, the lower one.
    """
    distinct, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts)[:-1]
    return float(distinct[1 + np.argmin(np.abs(2 * below - len(values)))])


def _is_allowed(sample: Sample, rows: Ints, cut: Below) -> bool:
    low = sample.left(cut, rows)
    if sample.share == 1.0:
        return bool(sample.block.holds((~low).astype(np.int64), 2, rows).all())
    least = max(1, ceil(sample.block.min_rows * sample.share))
    return min(int(low.sum()), int((~low).sum())) >= least
