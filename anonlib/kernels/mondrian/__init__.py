"""Mondrian: cuts the block along its widest dimension, and the parts again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from anonlib.arrays import Bools, Floats, Ints
from anonlib.kernels import Kernel
from anonlib.kernels._trees import Trees, side_by_side
from anonlib.kernels.merge import by_first_row, points, require_feasible, writable_contiguous
from anonlib.table.block import Block

if TYPE_CHECKING:  # a core, which needs numba
    from anonlib.kernels.mondrian.gain import GainSearch


class Mondrian(Kernel):
    """Greedy multidimensional partitioning.

    The dimensions are the numeric columns, then the nominal ones by their codes, which are in the
    order of the hierarchy's leaves where there is one. A node without an allowed cut, one that
    leaves sides which both hold the models, is a cell. A dimension whose range over the whole table
    is 0 is never cut.

    `median`: a dimension's range in a node is measured against `widths` (numeric) or
    n_categories - 1 (nominal). The dimensions are tried from the widest, the first of several:

    - strict: the cut lies between two distinct values, at the boundary with nearest to half of the
      node's rows on its left, the lower of two. No boundary of that dimension has more rows on its
      smaller side: if this one has fewer than `min_rows` there, they all have. Dimensions that are
      constant in the node have no cut.
    - relaxed: the rows are sorted by value, then by row order, and cut after the first half,
      rounded down, whatever the values: by k-anonymity alone, cells have k to 2k - 1 rows.

    `information_gain`, for what is to predict the block's target: of the boundaries between two
    distinct values of a dimension that leave `min_rows` rows on both sides, the one after which
    the entropy of the target's classes is lowest, or the sum of squared deviations of a numeric
    target; the lowest of several. The dimensions are tried from the largest gain, the first of
    several. So by k-anonymity alone it is the best allowed cut; where other models refuse the best
    boundary of a dimension, the rest of that dimension is not searched. Where no cut that gains is
    allowed, `median` cuts: small cells lose less, whatever they are for. Entropies are of exact
    c log2(c), rounded to 2^-10 bits; what may be rounding alone is no gain.

    With `nominal: hierarchy`, strict median cuts in numeric dimensions only: a nominal one is cut
    into the children of the lowest common ancestor of the node's codes, one part for each child
    that has rows, if they all hold the models (into single codes, where there is no hierarchy).
    Its width is that ancestor's loss: the leaves under it minus 1, over all leaves minus 1. So a
    cell's codes are released as tree nodes that other cells' nodes hardly overlap.
    """

    type: ClassVar[str] = "mondrian"
    cost: ClassVar[str] = "O(n d log(n / k)); with information_gain, times log n"
    reference: ClassVar[str] = (
        "K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE 2006; "
        "information gain: the same, Workload-aware anonymization, KDD 2006; along hierarchies: "
        "Q. Gong, Basic Mondrian, https://github.com/qiyuangong/Basic_Mondrian"
    )
    mode: Literal["strict", "relaxed"] = Field(
        "strict", description="whether rows of equal value stay on one side of a median cut"
    )
    cut: Literal["median", "information_gain"] = Field(
        "median", description="where nodes are cut: at medians, or where the target gains most"
    )
    nominal: Literal["codes", "hierarchy"] = Field(
        "codes", description="how nominal columns are cut: by their codes, or along hierarchies"
    )

    @model_validator(mode="after")
    def _strict_medians_along_hierarchies(self) -> Self:
        if self.nominal == "hierarchy" and (self.mode, self.cut) != ("strict", "median"):
            raise ValueError("nominal: hierarchy goes with mode: strict and cut: median only")
        return self

    @property
    def needs_target(self) -> bool:
        return self.cut == "information_gain"

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        strict = self.mode == "strict"
        items = _tuples(block) if strict else _rows(block)
        item_id = block.tuples.id if strict else np.arange(block.n)
        search = _search(block, items, item_id) if self.needs_target else None
        trees = _trees(block) if self.nominal == "hierarchy" else None
        return by_first_row(_Cutting(block, items, search, trees, strict).cells()[item_id])


def _trees(block: Block) -> Trees:
    trees = [block.tree(j) for j in range(block.nominal.shape[1])]
    return side_by_side(trees, [tree.loss for tree in trees])


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
    value = writable_contiguous(np.concatenate([block.numeric, block.nominal], axis=1))
    return Items(value, np.ones(block.n, np.int64), np.arange(block.n), np.arange(block.n))


def _search(block: Block, items: Items, item_id: Ints) -> "GainSearch":
    from anonlib.kernels.mondrian.gain import GainSearch

    assert block.target is not None
    m, d = items.value.shape
    order, rank = np.empty((d, m), np.int32), np.empty((d, m), np.int32)
    for j in range(d):
        order[j] = np.argsort(items.value[:, j], kind="stable")
        rank[j] = np.unique(items.value[:, j], return_inverse=True)[1]
    if block.n_classes == 0:
        none = np.zeros(0, np.int32)
        total = np.bincount(item_id, block.target).astype(np.float64)
        start = information = np.zeros(0, np.int64)
        return GainSearch(
            rank, order, items.weight.copy(), 0, start, none, none, information, total
        )
    pair = item_id * block.n_classes + block.target.astype(np.int64)
    pair, rows = np.unique(pair, return_counts=True)
    c = np.arange(block.n + 1)
    return GainSearch(
        rank,
        order,
        items.weight.copy(),
        block.n_classes,
        np.searchsorted(pair, np.arange(m + 1) * block.n_classes),
        (pair % block.n_classes).astype(np.int32),
        rows.astype(np.int32),
        np.rint(c * np.log2(np.maximum(c, 1)) * 2.0**10).astype(np.int64),
        np.zeros(0),
    )


@dataclass(frozen=True)
class MondrianNodes:
    """Open nodes: the items start..stop, and by dimension the width, and the gain and the boundary
    of the best cut; those of what has been tried are no longer positive."""

    start: Ints
    stop: Ints
    width: Floats
    gain: Floats
    bound: Ints

    def of(self, which: Bools) -> "MondrianNodes":
        return MondrianNodes(*(array[which] for array in vars(self).values()))

    def and_(self, others: "MondrianNodes") -> "MondrianNodes":
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return MondrianNodes(*(np.concatenate(pair) for pair in pairs))


class NodeParts(NamedTuple):
    """The next cuts of some nodes: the items start..stop of each part, and which node it is of,
    ascending. Nodes without a cut have no parts."""

    node: Ints
    start: Ints
    stop: Ints

    def of(self, which: Bools) -> "NodeParts":
        return NodeParts(*(array[which] for array in self))


@dataclass(frozen=True)
class _Cutting:
    """What nodes are cut by."""

    block: Block
    items: Items
    search: "GainSearch | None"
    trees: Trees | None
    strict: bool

    def cells(self) -> Ints:
        """int64[m], the cell of item 0, 1, ...

        All open nodes are handled together, level by level: the core proposes the next cut of each,
        one look at the models judges them all, a refused node comes again with its next dimension.
        """
        item = self.items.id
        begins = np.zeros(len(item), np.bool_)
        begins[0] = True
        nodes = self._measured(np.array([0]), np.array([len(item)]))
        while len(nodes.start) > 0:
            parts = self._propose(nodes)
            open_ = np.zeros(len(nodes.start), np.bool_)
            open_[parts.node] = True
            allowed = open_.copy()
            allowed[parts.node[~self._judge(parts)]] = False
            parts = parts.of(allowed[parts.node])
            begins[parts.start] = True
            if self.search is not None:
                from anonlib.kernels.mondrian.gain import part_orders

                left, right = parts.start[0::2], parts.start[1::2]
                part_orders(self.search, item, left, right, nodes.stop[allowed])
            nodes = nodes.of(open_ & ~allowed).and_(self._measured(parts.start, parts.stop))
        cell_id = np.empty(len(item), np.int64)
        cell_id[item] = np.cumsum(begins) - 1
        return cell_id

    def _measured(self, start: Ints, stop: Ints) -> MondrianNodes:
        from anonlib.kernels.mondrian.core import measure_ranges

        block, items = self.block, self.items
        scale = np.concatenate([block.widths, np.maximum(block.n_categories - 1, 0)])
        width = measure_ranges(items.value, items.weight, start, stop, scale, block.min_rows)
        if self.trees is not None:
            from anonlib.kernels.mondrian.core import measure_along

            measure_along(self.trees, items.value, start, stop, width, len(block.widths))
        if self.search is None:
            nothing = np.zeros(width.shape)
            return MondrianNodes(start, stop, width, nothing, nothing.astype(np.int64))
        from anonlib.kernels.mondrian.gain import gains

        return MondrianNodes(
            start, stop, width, *gains(self.search, start, stop, width, block.min_rows)
        )

    def _propose(self, nodes: MondrianNodes) -> NodeParts:
        items, min_rows = self.items, self.block.min_rows
        if self.trees is None:
            middle = _middles(items, nodes, min_rows, self.strict)
            cut = np.flatnonzero(middle >= 0)
            of, start = np.repeat(cut, 2), np.stack([nodes.start[cut], middle[cut]], axis=1).ravel()
        else:
            from anonlib.kernels.mondrian.core import propose_along

            p = len(self.block.widths)
            run = items.value, items.weight, items.id, nodes.start, nodes.stop
            of, start = propose_along(self.trees, *run, nodes.width, min_rows, p)
        stop = np.append(start[1:], 0)
        last = np.append(of[1:] != of[:-1], True)[: len(of)]
        return NodeParts(of, start, np.where(last, nodes.stop[of], stop[: len(of)]))

    def _judge(self, parts: NodeParts) -> Bools:
        """bool[parts]: which hold the models."""
        block, items = self.block, self.items
        if block.counts_rows_only:
            return np.ones(len(parts.node), np.bool_)
        length = parts.stop - parts.start
        place = _ranges(parts.start, length)
        weight = items.weight[place]
        rows = _ranges(items.first[items.id[place]], weight)
        part = np.repeat(np.arange(len(length)), length)
        return block.holds(np.repeat(part, weight), len(length), rows)


def _middles(items: Items, nodes: MondrianNodes, min_rows: int, strict: bool) -> Ints:
    """int64[nodes], where the right side of each one's next cut begins; -1 without a cut."""
    from anonlib.kernels.mondrian.core import propose_cuts

    arrays = items.value, items.weight, items.id
    middle = np.full(len(nodes.start), -1)
    if nodes.gain.any():
        from anonlib.kernels.mondrian.gain import propose_best

        middle = propose_best(*arrays, nodes.start, nodes.stop, nodes.gain, nodes.bound)
    rest = np.flatnonzero(middle < 0)
    width = nodes.width[rest]
    start, stop = nodes.start[rest], nodes.stop[rest]
    middle[rest] = propose_cuts(*arrays, start, stop, width, min_rows, strict)
    nodes.width[rest] = width
    return middle


def _ranges(start: Ints, length: Ints) -> Ints:
    """start[0], start[0] + 1, ... (length[0] of them), start[1], ..."""
    end = np.cumsum(length)
    return np.arange(length.sum()) + np.repeat(start - end + length, length)
