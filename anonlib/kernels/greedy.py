"""Greedy: merges the smallest failing class with the class where this loses least."""

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import GRID, Floats, Ints
from anonlib.hierarchy.tree import Tree
from anonlib.kernels import Kernel
from anonlib.kernels._trees import Trees, join_trees
from anonlib.kernels.merge import number_by_first_row, require_feasible
from anonlib.table.block import Block

if TYPE_CHECKING:  # a core, which needs numba
    from anonlib.kernels._greedy_core import LiveClasses


class Greedy(Kernel):
    """Greedy k-anonymization along hierarchies: the smallest class merges where it loses least.

    At first, every distinct tuple is a class. While classes fail the models, the failing class of
    fewest rows is merged with the class of least cost, whether that one fails or not. Ties are
    broken by fewest rows, then by the first row. A class is generalized to the lowest common
    ancestor of its values in each nominal column (to all values, if the column has no hierarchy),
    and to the range of its values in each numeric column. The cost of merging S and C into M is
    the growth of the table's loss:

        rows(S) (loss(M) - loss(S)) + rows(C) (loss(M) - loss(C))

    The loss of a class is a sum over the columns. A nominal column adds, with `loss`:

    - nllm, Normalized Lost Leaves Metric: (leaves under the node - 1) / (all leaves - 1). All
      leaves of the hierarchy count, even if they do not occur in the table.
    - ncp, Normalized Certainty Penalty: categories under the node / all categories of the table; 0
      for one category.
    - entropy, non-uniform entropy: log2(rows of the block under the node) / the column's entropy.
      Before the division, a row loses log2(rows under the node / rows of its value). A column
      generalized to its root loses 1 per row on average.

    A numeric column, or the 0/1 flag of missing values, adds its range / the range over the whole
    table. A column's loss is rounded to 2^-20; all else is exact.

    This is Algorithm 1 of the proportional representation paper. The paper leaves open whose cost
    is minimized "for mu". Here it is the cost of the whole table: both classes count with their
    rows, as in KACA's distance between classes. Of the variants tried on Adult, this one loses
    least.
    """

    type: ClassVar[str] = "greedy"
    cost: ClassVar[str] = "O(m^2 d), m the number of distinct tuples"
    reference: ClassVar[str] = (
        "KACA: J. Li et al., Achieving k-anonymity by clustering in attribute hierarchical "
        "structures, DaWaK 2006; NCP: J. Xu et al., KDD 2006; entropy: A. Gionis, "
        "T. Tassa, k-anonymization with minimal loss of information, IEEE TKDE 21(2), 2009"
    )
    takes_weights: ClassVar[bool] = True
    loss: Literal["nllm", "ncp", "entropy"] = Field(
        "nllm", description="what generalizing a value to a node of its hierarchy loses"
    )

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        from anonlib.kernels._greedy_core import ASK, HOLDS, merge_classes

        trees = _trees(block, self.loss)
        classes = _classes(block, trees)
        reached = HOLDS if block.counts_rows_only else ASK
        while not merge_classes(classes, trees, block.min_rows, reached):
            _judge(block, classes)
        return number_by_first_row(_roots(classes.into)[block.tuples.id])


def _trees(block: Block, loss: str) -> Trees:
    trees = [block.tree(j) for j in range(block.nominal.shape[1])]
    return join_trees(
        trees, [_units(_losses(block, j, tree, loss)) for j, tree in enumerate(trees)]
    )


def _units(losses: Floats) -> Ints:
    units: Ints = np.rint(losses / GRID).astype(np.int64)
    return units


def _losses(block: Block, j: int, tree: Tree, loss: str) -> Floats:
    """float64[nodes]. The loss of each node of nominal column j."""
    if loss == "nllm":
        return tree.loss
    if loss == "ncp":
        categories = tree.high - tree.low
        return (categories > 1) * categories / float(block.n_categories[j])
    code, tuples = block.nominal[block.tuples.first, j], block.tuples
    rows = np.bincount(code, tuples.count, int(block.n_categories[j]))
    below = np.append(0.0, np.cumsum(rows))
    bits = np.log2(np.maximum(below[tree.high] - below[tree.low], 1.0))
    whole = float((rows * (bits[-1] - bits[: len(rows)])).sum())
    return bits * (below[-1] / whole) if whole > 0 else np.zeros(len(bits))


def _classes(block: Block, trees: Trees) -> "LiveClasses":
    """One class for each distinct tuple."""
    from anonlib.kernels._greedy_core import ASK, FAILS, HOLDS, LiveClasses

    tuples = block.tuples
    m, each = len(tuples.first), np.arange(len(tuples.first))
    node = block.nominal[tuples.first].T + trees.start[:-1, None]
    varying = np.flatnonzero(block.widths > 0)
    x = block.numeric[np.ix_(tuples.first, varying)].T
    at = _units((x - x.min(axis=1, keepdims=True)) / block.widths[varying, None])
    enough = HOLDS if block.counts_rows_only else ASK
    status = np.where(tuples.count >= block.min_rows, enough, FAILS)
    heap = np.zeros(2 * m, np.int64)
    open_ = np.flatnonzero(status != HOLDS)
    heap[: len(open_)] = np.sort(tuples.count[open_] * m + open_)
    return LiveClasses(
        np.ascontiguousarray(node, np.int32),
        at.copy(),
        at.copy(),
        tuples.count.copy(),
        trees.loss[node].sum(axis=0),
        each.copy(),
        each.copy(),
        each.copy(),
        status,
        heap,
        np.array([m]),
        np.array([len(open_)]),
    )


def _judge(block: Block, classes: "LiveClasses") -> None:
    """Judges by the models all live classes of status ASK."""
    from anonlib.kernels._greedy_core import ASK, FAILS, HOLDS

    waiting = (classes.status == ASK) & (classes.place >= 0)
    number = np.cumsum(waiting) - 1
    class_id = _roots(classes.into)[block.tuples.id]
    rows = np.flatnonzero(waiting[class_id])
    holds = block.holds(number[class_id[rows]], int(waiting.sum()), rows)
    classes.status[waiting] = np.where(holds, HOLDS, FAILS)


def _roots(into: Ints) -> Ints:
    """int64[m]. The live class that each class now belongs to."""
    while True:
        further = into[into]
        if (further == into).all():
            return into
        into = further
