"""MDAV-generic: MDAV on records of continuous, ordinal and nominal columns."""

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import Codes, Floats, Ints
from anonlib.hierarchy.tree import Tree
from anonlib.kernels import Kernel
from anonlib.kernels.merge import make_writable, merge_failing, require_feasible
from anonlib.table.block import Block

if TYPE_CHECKING:  # a core, which needs numba
    from anonlib.kernels._generic_core import LossTrees


class MdavGeneric(Kernel):
    """Maximum distance to average record: MDAV by ranks and hierarchies, for mixed tables.

    k is the block's `min_rows`.
    While at least 3k rows remain, two cells are made. P is the row farthest from the average record
    of the remaining rows, Q the row farthest from P. P and its k - 1 nearest rows become a cell.
    Then Q and its k - 1 nearest remaining rows become a cell. With ties, Q may already be in P's
    cell; then Q is the remaining row farthest from P. At the end, 2k to 3k - 1 rows become P's cell
    and one cell of the others; fewer rows become one cell.

    The squared distance of two records is a sum of squares, over the continuous, then the ordinal,
    then the nominal columns. Each column adds the square of:

    - continuous: the standardized difference. A missing value counts as the mean; its 0/1 flag is
      one more continuous column.
    - ordinal: the difference of ranks / the number of categories. A missing value counts as the
      rank nearest to the mean; its 0/1 flag is a continuous column.
    - nominal: 1 if the values differ. With `nominal: hierarchy`, a column with a hierarchy uses
      (leaves under the lowest common ancestor - 1) / (all leaves - 1) instead. This is 1 if the
      ancestor is the root. A missing value is a child of the root.

    The average record has the mean of each continuous column, the lower median of the ranks, and
    the most frequent category (of several, the lowest code). For the convex median, each frequency
    is first raised to min(the largest frequency at or below its rank, the largest at or above its
    rank). The lower median of these frequencies can be a category that no row has. All sums are
    float64, rounded after every operation. Of equally near or far rows, the first one is taken.

    The paper leaves open how to combine the distances of columns. For continuous columns alone its
    distance is the sum of squares, which gives the cells of `mdav` with `variant: generic`.
    Cells that fail the models are merged with near ones (`merge_failing`).
    """

    type: ClassVar[str] = "mdav_generic"
    cost: ClassVar[str] = "O(n^2 d / k)"
    reference: ClassVar[str] = (
        "J. Domingo-Ferrer, V. Torra, Ordinal, continuous and heterogeneous k-anonymity through "
        "microaggregation, Data Mining and Knowledge Discovery 11(2), 2005; convex median: the "
        "same, Median-based aggregation operators for prototype construction in ordinal scales, "
        "International Journal of Intelligent Systems 18(6), 2003"
    )
    ordinal: Literal["median", "convex_median"] = Field(
        "median", description="the average of an ordinal column"
    )
    nominal: Literal["equal", "hierarchy"] = Field(
        "equal", description="the distance in a nominal column: 0 or 1, or by its hierarchy"
    )

    @property
    def for_hierarchies(self) -> tuple[str, ...]:
        return ("nominal",) if self.nominal == "hierarchy" else ()

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        from anonlib.kernels._generic_core import make_generic_cells

        number, code, n_ranks = _records(block)
        cell_id = make_generic_cells(
            number,
            code,
            n_ranks,
            _trees(block, hierarchies=self.nominal == "hierarchy"),
            block.tuples.first,
            block.tuples.count,
            block.min_rows,
            self.ordinal == "convex_median",
        )
        return merge_failing(block, cell_id)


def _records(block: Block) -> tuple[Floats, Codes, Ints]:
    """Returns the arguments `number`, `code` and `n_ranks` of `make_generic_cells`."""
    x = block.numeric[block.tuples.first].T
    ranks = block.ranks or (None,) * len(x)
    ordinal = {j: each for j, each in enumerate(ranks) if each is not None}
    columns = [x[j] for j in range(len(x)) if j not in ordinal]
    columns += [np.rint((x[j] - each.low) / each.step) for j, each in ordinal.items()]
    number = np.array(columns, np.float64).reshape(x.shape)
    code = np.array(block.nominal[block.tuples.first].T, order="C")
    return number, code, np.array([each.n for each in ordinal.values()], np.int64)


def _trees(block: Block, *, hierarchies: bool) -> "LossTrees":
    """The hierarchies side by side. Without a hierarchy, all leaves are children of the root."""
    from anonlib.kernels._generic_core import LossTrees

    trees = [
        block.tree(j) if hierarchies else Tree.flat(int(n))
        for j, n in enumerate(block.n_categories)
    ]
    nodes = np.array([len(tree.parent) for tree in trees], np.int64)

    def join(arrays: list[Ints]) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *arrays])

    return LossTrees(
        join([tree.parent for tree in trees]),
        join([tree.low for tree in trees]),
        join([tree.high for tree in trees]),
        np.concatenate([np.zeros(0), *(tree.loss**2 for tree in trees)]),
        np.cumsum(nodes) - nodes,
        make_writable(block.n_categories),
    )
