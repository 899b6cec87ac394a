"""What V-MDAV and the kernels that look at a target are compared with, slow and obvious."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from anonlib.arrays import snap
from anonlib.kernels.discriminant import RIDGE
from anonlib.table.block import Block
from tests.oracles import to_centroid, to_row, with_tail


def vmdav_plain(block: Block, gamma: float) -> list[list[int]]:
    """The cells of V-MDAV before those that fail are merged."""
    k = block.min_rows
    everything = list(range(block.n))
    outside = to_centroid(block, everything, everything)
    apart = np.array([to_row(block, everything, row) for row in everything])
    left = list(everything)
    cells: list[list[int]] = []
    while len(left) >= 2 * k:
        start = left[int(np.argmax(outside[left]))]
        near = np.argsort(apart[start, left], kind="stable")[:k]
        cell = [left[i] for i in near]
        assert start in cell
        left = [row for row in left if row not in cell]
        while len(cell) < 2 * k - 1:
            d_in = apart[cell][:, left].min(axis=0)
            nearest = left[int(np.argmin(d_in))]
            others = [row for row in left if row != nearest]
            d_out = apart[nearest, others].min()
            if not d_in.min() < gamma * gamma * d_out:
                break
            cell.append(nearest)
            left.remove(nearest)
        cells.append(cell)
    return with_tail(block, cells, left, k)


def with_target(block: Block, lambda_: float) -> Block:
    """The block in which MDAV is MDAV by the distortion, column by column."""
    d = block.numeric.shape[1] + block.nominal.shape[1]
    weight = 1.0 if lambda_ == 1.0 else lambda_ * d / (1.0 - lambda_)
    assert block.target is not None
    if block.n_classes > 2:
        present = sorted(set(block.target.tolist()))
        added = [(block.target == c) * np.sqrt(0.5) * np.sqrt(weight) for c in present]
    else:
        added = [block.target * np.sqrt(weight)]
    numeric = [*block.numeric.T, *(snap(column) for column in added)]
    if lambda_ < 1.0:
        return replace(block, numeric=np.column_stack(numeric))
    only = np.column_stack(numeric[block.numeric.shape[1] :])
    nothing = np.zeros((block.n, 0), np.int32)
    return replace(block, numeric=only, nominal=nothing, n_categories=np.zeros(0, np.int64))


def distortion(block: Block, one: int, other: int, lambda_: float) -> float:
    """(1 - lambda) D_X + lambda D_Y of two rows, D_X per column."""
    assert block.target is not None
    d_x = float(to_row(block, [one], other)[0]) / (block.numeric.shape[1] + block.nominal.shape[1])
    gap = block.target[one] - block.target[other]
    d_y = float(gap != 0) if block.n_classes else float(gap**2)
    return (1.0 - lambda_) * d_x + lambda_ * d_y


def embedded(block: Block) -> Any:
    """The points whose squared distances are those of MDAV, all numbers."""
    columns = list(block.numeric.T)
    for codes, n_categories in zip(block.nominal.T, block.n_categories, strict=True):
        columns += [np.sqrt(0.5) * (codes == c) for c in range(n_categories)]
    return np.column_stack(columns)


def covariances(x: Any, y: Any) -> tuple[Any, Any]:
    """Within and between classes, by their definitions, the former with the ridge."""
    d = x.shape[1]
    within, between_ = np.zeros((d, d)), np.zeros((d, d))
    for c in np.unique(y):
        of_class = x[y == c]
        share = len(of_class) / len(x)
        within += share * np.cov(of_class.T, bias=True).reshape(d, d)
        gap = of_class.mean(axis=0) - x.mean(axis=0)
        between_ += share * np.outer(gap, gap)
    total = np.cov(x.T, bias=True).reshape(d, d)
    return within + RIDGE * np.trace(total) / d * np.eye(d), between_


def rotation(x: Any, y: Any) -> tuple[Any, int]:
    """An orthonormal base whose first axes are the discriminants, and how many of them: for two
    classes by solving, for more by the leading generalized eigenvectors; both by full QR."""
    within, between_ = covariances(x, y)
    classes = np.unique(y)
    if len(classes) == 2:
        one, other = (x[y == c].mean(axis=0) for c in classes)
        leading = np.linalg.solve(within, one - other)[:, None]
    else:
        vectors = scipy.linalg.eigh(between_, within)[1]
        leading = vectors[:, ::-1][:, : len(classes) - 1]
    return np.linalg.qr(leading, mode="complete")[0], leading.shape[1]


def rotated(block: Block, alpha: float) -> Block:
    """The points after rotation and scaling, all numbers."""
    x = embedded(block)
    base, leading = rotation(x, block.target)
    scale = np.ones(x.shape[1])
    scale[:leading] = alpha
    nothing = np.zeros((block.n, 0), np.int32)
    points = (x @ base) * scale
    return replace(block, numeric=points, nominal=nothing, n_categories=np.zeros(0, np.int64))
