"""Mondrian: cuts the block along its widest dimension, and the parts again."""

from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from anonlib.block import Block, Bools, Floats, Ints
from anonlib.kernels import Kernel
from anonlib.kernels._merge import by_first_row, plain, points, require_feasible


class Mondrian(Kernel):
    """Greedy multidimensional partitioning.

    The dimensions are the numeric columns, then the nominal ones by their codes. A dimension's
    range in a node is measured against `widths` (numeric) or n_categories - 1 (nominal). The
    dimensions are tried from the widest, the first of several, and the first cut that is allowed
    is taken: both sides hold the models. A node without one is a cell.

    - strict: the cut lies between two distinct values, at the boundary with nearest to half of the
      node's rows on its left, the lower of two. No boundary of that dimension has more rows on its
      smaller side: if this one has fewer than `min_rows` there, they all have. Dimensions that are
      constant in the node have no cut.
    - relaxed: the rows are sorted by value, then by row order, and cut after the first half,
      rounded down, whatever the values: by k-anonymity alone, cells have k to 2k - 1 rows.

    A dimension whose range over the whole table is 0 is never cut.
    """

    type: ClassVar[str] = "mondrian"
    cost: ClassVar[str] = "O(n d log(n / k))"
    reference: ClassVar[str] = (
        "K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE 2006"
    )
    mode: Literal["strict", "relaxed"] = Field(
        "strict", description="whether rows of equal value stay on one side of a cut"
    )

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        strict = self.mode == "strict"
        items = _tuples(block) if strict else _rows(block)
        cell_id = _cut(block, items, strict)
        return by_first_row(cell_id[block.tuples.id] if strict else cell_id)


class Items(NamedTuple):
    """What is cut. value: float64[m, d], weight: the rows an item has, id: which item it is,
    first: the first row of item 0, 1, ... All but `first` are reordered: a node is a run of them.
    """

    value: Floats
    weight: Ints
    id: Ints
    first: Ints


def _tuples(block: Block) -> Items:
    tuples = block.tuples
    m = len(tuples.first)
    value = np.array(points(block))  # a copy, in any case
    return Items(value, tuples.count.copy(), np.arange(m), tuples.first)


def _rows(block: Block) -> Items:
    value = plain(np.concatenate([block.numeric, block.nominal], axis=1))
    return Items(value, np.ones(block.n, np.int64), np.arange(block.n), np.arange(block.n))


def _cut(block: Block, items: Items, strict: bool) -> Ints:
    """int64[m], the cell of item 0, 1, ...

    All open nodes are handled together, level by level: the core proposes the next cut of each,
    one look at the models judges them all, a refused node comes again with its next dimension.
    """
    from anonlib.kernels._mondrian_core import measure, propose

    value, weight, id, _ = items
    scale = np.concatenate([block.widths, np.maximum(block.n_categories - 1, 0)])
    begins = np.zeros(len(id), np.bool_)
    begins[0] = True
    start, stop = np.array([0]), np.array([len(id)])
    width = measure(value, weight, start, stop, scale, block.min_rows)
    while len(start) > 0:
        middle = propose(value, weight, id, start, stop, width, block.min_rows, strict)
        open_ = middle >= 0
        start, stop, middle, width = start[open_], stop[open_], middle[open_], width[open_]
        allowed = _judge(block, items, start, middle, stop)
        begins[middle[allowed]] = True
        left = np.concatenate([start[allowed], middle[allowed]])
        right = np.concatenate([middle[allowed], stop[allowed]])
        measured = measure(value, weight, left, right, scale, block.min_rows)
        start = np.concatenate([start[~allowed], left])
        stop = np.concatenate([stop[~allowed], right])
        width = np.concatenate([width[~allowed], measured])
    cell_id = np.empty(len(id), np.int64)
    cell_id[id] = np.cumsum(begins) - 1
    return cell_id


def _judge(block: Block, items: Items, start: Ints, middle: Ints, stop: Ints) -> Bools:
    """bool[nodes]: whether both sides of each cut hold the models."""
    if block.counts_rows_only:
        return np.ones(len(start), np.bool_)
    place = _ranges(start, stop - start)
    node = np.repeat(np.arange(len(start)), stop - start)
    side = 2 * node + (place >= middle[node])
    weight = items.weight[place]
    rows = _ranges(items.first[items.id[place]], weight)
    holds = block.holds(np.repeat(side, weight), 2 * len(start), rows)
    both: Bools = holds[0::2] & holds[1::2]
    return both


def _ranges(start: Ints, length: Ints) -> Ints:
    """start[0], start[0] + 1, ... (length[0] of them), start[1], ..."""
    end = np.cumsum(length)
    return np.arange(length.sum()) + np.repeat(start - end + length, length)
