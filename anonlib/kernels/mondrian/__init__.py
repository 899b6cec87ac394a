"""Mondrian: cuts the block along its widest dimension, and the parts again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from anonlib.arrays import Bools, Floats, Ints
from anonlib.kernels import Kernel
from anonlib.kernels._trees import Trees, join_trees
from anonlib.kernels.merge import list_points, make_writable, number_by_first_row, require_feasible
from anonlib.table.block import Block

if TYPE_CHECKING:  # a core, which needs numba
    from anonlib.kernels.mondrian.gain import GainSearch


class Mondrian(Kernel):
    """Greedy multidimensional partitioning: the fastest, for very large blocks and for intervals.

    The dimensions are the numeric columns, then the nominal ones. A nominal dimension is ordered by
    code: the order of the hierarchy's leaves, if it has one. A cut of a node is allowed if all its
    sides hold the models; a node without an allowed cut is a cell. A dimension whose range over
    the whole table is 0 is never cut.

    `median`: The width of a dimension is its range in the node / `widths` (numeric) or
    / (n_categories - 1) (nominal). Dimensions are tried by descending width; of equal ones, the
    first.

    - strict: The cut lies between two distinct values, at the boundary whose left side comes
      nearest to half of the node's rows; of two such boundaries, at the lower one. No other
      boundary of the dimension has more rows on its smaller side. So if that side has fewer than
      `min_rows` rows, the dimension has no cut. A constant dimension has no cut either.
    - relaxed: Rows are sorted by value, then by row order, and cut after the first half, rounded
      down. Equal values may be separated. By k-anonymity alone, cells have k to 2k - 1 rows.

    `information_gain`, for releases from which models predict the block's target: A boundary lies
    between two distinct values and leaves `min_rows` rows on both sides. The best boundary of a
    dimension leaves the lowest entropy of the target's classes, or the lowest sum of squared
    deviations of a numeric target; of several, the lowest boundary. Dimensions are tried by
    descending gain; of equal ones, the first. So with k-anonymity alone, the cut is the best
    allowed one. If other models refuse the best boundary of a dimension, its other boundaries are
    not searched. If no cut with a gain is allowed, the node is cut as by `median`, because small
    cells lose less for any use. Entropies are sums of c log2(c), each rounded to 2^-10 bits. A gain
    that rounding alone could explain counts as none.

    `nominal: hierarchy`: Numeric dimensions get strict median cuts. A nominal dimension is cut into
    the children of the lowest common ancestor of the node's codes (without a hierarchy: into single
    codes). Each child with rows becomes one part; all parts must hold the models. The width is the
    ancestor's loss: (leaves under it - 1) / (all leaves - 1). So the tree nodes released for
    different cells hardly overlap.
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
        return number_by_first_row(_Cutting(block, items, search, trees, strict).cells()[item_id])


def _trees(block: Block) -> Trees:
    trees = [block.tree(j) for j in range(block.nominal.shape[1])]
    return join_trees(trees, [tree.loss for tree in trees])


class Items(NamedTuple):
    """The m items to cut: tuples (strict) or rows (relaxed).

    A node is a run of items. Cuts reorder all arrays but `first`.

    Attributes:
        value: float64[m, d]. The dimensions of each item.
        weight: int64[m]. The rows of each item.
        id: int64[m]. The number of the item at each place.
        first: int64[m]. The first row of item 0, 1, ...
    """

    value: Floats
    weight: Ints
    id: Ints
    first: Ints


def _tuples(block: Block) -> Items:
    tuples = block.tuples
    m = len(tuples.first)
    value = np.array(list_points(block))  # a copy, in any case
    return Items(value, tuples.count.copy(), np.arange(m), tuples.first)


def _rows(block: Block) -> Items:
    value = make_writable(np.concatenate([block.numeric, block.nominal], axis=1))
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
    """Open nodes, each with d dimensions.

    Attributes:
        start: int64[nodes]. The first item of each node.
        stop: int64[nodes]. The item after the last one of each node.
        width: float64[nodes, d]. The width of each dimension; -1 without a (further) median cut.
        gain: float64[nodes, d]. The gain of the best boundary of each dimension; 0 if there is none
            or it was tried.
        bound: int64[nodes, d]. The first item on the right side of that boundary.
    """

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
    """The parts that the next cuts make of nodes. Nodes without a cut have no parts.

    Attributes:
        node: int64[parts]. The node of each part, ascending.
        start: int64[parts]. The first item of each part.
        stop: int64[parts]. The item after the last one of each part.
    """

    node: Ints
    start: Ints
    stop: Ints

    def of(self, which: Bools) -> "NodeParts":
        return NodeParts(*(array[which] for array in self))


@dataclass(frozen=True)
class _Cutting:
    """The cuts of one block.

    Attributes:
        block: The block.
        items: Its items.
        search: Finds cuts by information gain; None for medians only.
        trees: The hierarchies, for cuts along them; None otherwise.
        strict: Whether equal values stay on one side of a median cut.
    """

    block: Block
    items: Items
    search: "GainSearch | None"
    trees: Trees | None
    strict: bool

    def cells(self) -> Ints:
        """int64[m]. The cell of item 0, 1, ...

        All open nodes are cut together, in rounds. The core proposes the next cut of each node, and
        the models judge all these cuts at once. If a cut is refused, the next round proposes the
        node's next one.
        """
        item = self.items.id
        begins = np.zeros(len(item), np.bool_)
        begins[0] = True
        nodes = self._measure(np.array([0]), np.array([len(item)]))
        while len(nodes.start) > 0:
            parts = self._propose(nodes)
            open_ = np.zeros(len(nodes.start), np.bool_)
            open_[parts.node] = True
            allowed = open_.copy()
            allowed[parts.node[~self._judge(parts)]] = False
            parts = parts.of(allowed[parts.node])
            begins[parts.start] = True
            if self.search is not None:
                from anonlib.kernels.mondrian.gain import split_orders

                left, right = parts.start[0::2], parts.start[1::2]
                split_orders(self.search, item, left, right, nodes.stop[allowed])
            nodes = nodes.of(open_ & ~allowed).and_(self._measure(parts.start, parts.stop))
        cell_id = np.empty(len(item), np.int64)
        cell_id[item] = np.cumsum(begins) - 1
        return cell_id

    def _measure(self, start: Ints, stop: Ints) -> MondrianNodes:
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
        from anonlib.kernels.mondrian.gain import find_gains

        return MondrianNodes(
            start, stop, width, *find_gains(self.search, start, stop, width, block.min_rows)
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
        """bool[parts]. Which parts hold the models."""
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
    """int64[nodes]. Where the right side of each node's next cut begins; -1 without a cut."""
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
