"""Full-domain recoding: one level per column for the whole table."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.kernels import Kernel, KernelResult
from anonlib.kernels.full_domain.heuristic import HeuristicSearch
from anonlib.kernels.full_domain.search import MOST_NODES, HeightLattice, LatticeSearch, NodeSearch
from anonlib.kernels.merge import number_by_first_row, require_feasible
from anonlib.table.block import Block


class FullDomain(Kernel):
    """One level of the hierarchy for each column, the same in the whole table, at the least loss.

    That is the node of the generalization lattice at which the table loses least.
    A lattice node has a height for each nominal column. A value is released as the highest tree
    node at or above it whose own height is at most that height (`Tree.raised`). Rows released alike
    are a class. Each class that holds the models is a cell; the rows of other classes are
    suppressed. A lattice node is allowed if it suppresses at most `block.may_suppress` rows. Its
    loss is the sum, over rows and the columns that vary in the whole table, of `Tree.loss` of the
    released tree nodes, and of 1 for suppressed rows, in whole steps of GRID (2^-20). Of equal
    losses, the lattice node with the least sum of heights is taken, then the one with the least
    heights in order of columns.

    Lattices of at most 2^22 nodes are searched exactly. The result is that of a search of all
    lattice nodes, but most nodes are ruled out:

    - Generalization alone loses no less at higher nodes. A node is ruled out if its generalization
      alone loses more than the best node so far.
    - Classes of fewer than `min_rows` rows fail, and so do their parts at the nodes below. If these
      rows are too many to suppress, the nodes below are ruled out. Otherwise, the nodes below lose
      at least as much by suppression. The same is true of all failing classes if no row may be
      suppressed, or under models that a class holds as soon as a part of it does (k-anonymity,
      distinct l-diversity, p-sensitivity). It is not true under models of shares and distances,
      where a failing class may have parts that hold.
    - If all classes of a node hold, the nodes above lose no less, and are never preferred.

    The exact search first descends from the roots. Then it evaluates the nodes that may still be
    the best, most general first.

    Larger lattices are searched by a heuristic, which keeps only the nodes that it looks at, and
    uses the same bounds. It descends as above, and by the node of least loss among those one level
    lower, until none loses less. Of the ends of such descents, it takes the one of least loss,
    raises one column by any number of levels, and descends again. It stops after `looks` nodes. If
    no such end is left before, it looks at the nodes that may still be the best, and the result may
    be exact. The heuristic has no chance in it, and what it finds never loses more than the first
    descent. A note of the release says which search it was.

    Numeric columns are ignored.
    """

    type: ClassVar[str] = "full_domain"
    cost: ClassVar[str] = (
        "O(v (m q + L)), v of L lattice nodes looked at, m distinct tuples; O(v q (m + v)) where "
        "L is above 2^22"
    )
    reference: ClassVar[str] = (
        "K. LeFevre, D. DeWitt, R. Ramakrishnan, Incognito: efficient full-domain k-anonymity, "
        "SIGMOD 2005; tagging as in K. El Emam et al., A globally optimal k-anonymity method for "
        "the de-identification of health data, JAMIA 16(5), 2009, and F. Kohlmayer et al., Flash: "
        "efficient, stable and optimal k-anonymity, PASSAT 2012; in large lattices iterated local "
        "search, H. R. Lourenco, O. C. Martin, T. Stutzle, 2003, where F. Prasser et al., "
        "Lightning: utility-driven anonymization of high-dimensional data, Transactions on Data "
        "Privacy 9(2), 2016, search best first"
    )
    takes_weights: ClassVar[bool] = True
    needs_hierarchies: ClassVar[bool] = True
    suppresses: ClassVar[bool] = True
    finds_levels: ClassVar[bool] = True
    looks: int = Field(
        5000,
        ge=1,
        le=10**6,
        description="most lattice nodes that the search looks at after its first descent, if the "
        "lattice has more than 2^22 nodes",
    )

    def cells(self, block: Block) -> Ints:
        return self.find(block).cell_id

    def find(self, block: Block) -> KernelResult:
        """Returns the cells, the chosen height of every column, and which search found it.

        Raises:
            InfeasibleError: The block does not hold its models as one cell.
        """
        if block.n == 0:
            return KernelResult(np.zeros(0, np.int64), np.zeros(block.nominal.shape[1], np.int64))
        require_feasible(block)
        search = self._choose(HeightLattice(block))
        heights = search.run()
        classes = search.lattice.classes(heights)
        cell_id = np.where(search.lattice.holding(classes), np.arange(len(classes.rows)), -1)
        cell_id = cell_id[classes.id[block.tuples.id]]
        kept = cell_id >= 0
        cell_id[kept] = number_by_first_row(cell_id[kept])
        return KernelResult(cell_id, np.array(heights, np.int64), search.describe())

    def _choose(self, lattice: HeightLattice) -> NodeSearch:
        exact = lattice.n_nodes <= MOST_NODES
        return LatticeSearch(lattice) if exact else HeuristicSearch(lattice, self.looks)
