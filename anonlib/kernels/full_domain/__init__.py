"""Full-domain recoding: one level for each column, the same for the whole table."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Ints
from anonlib.kernels import Kernel, KernelResult
from anonlib.kernels.full_domain.search import LatticeSearch
from anonlib.kernels.merge import by_first_row, require_feasible
from anonlib.table.block import Block


class FullDomain(Kernel):
    """The node of the generalization lattice at which the table loses least.

    A node has a height for each nominal column: values are released as the highest node above them
    (or themselves) that is no higher (`Tree.raised`); the highest node is all roots. Rows with
    equal nodes are a cell; the rows of cells that fail a model are suppressed, and a node is
    allowed where these are at most `block.may_suppress`. The loss is the sum over rows and columns
    of `Tree.loss` of the released node, 1 for suppressed rows, in whole steps of GRID (2^-20). Of
    equal losses, the node of the least sum of heights, then of the least heights in order of
    columns. The same as of looking at all nodes:

    - generalizing alone loses more further up, so nodes that lose more by that than the best one
      found are left out;
    - classes of fewer than `min_rows` rows fail, and so do the classes that they are made of: the
      nodes below one where these have too many rows are left out, and the others lose at least
      what these do. With models of which a class holds when a part of it does (k-anonymity,
      distinct l-diversity, p-sensitivity), or if no row may be suppressed, it is so for all that
      fail. With others, of shares and distances, a union with a class that fails may fail;
    - the nodes above one where all classes hold lose more than that.

    After a first descent from the roots, nodes are looked at from the most general of those that
    may be the best. Numeric columns are not looked at. The lattice has at most 2^22 nodes.
    """

    type: ClassVar[str] = "full_domain"
    cost: ClassVar[str] = "O(v (m q + L)), v of L lattice nodes looked at, m distinct tuples"
    reference: ClassVar[str] = (
        "K. LeFevre, D. DeWitt, R. Ramakrishnan, Incognito: efficient full-domain k-anonymity, "
        "SIGMOD 2005; tagging as in K. El Emam et al., A globally optimal k-anonymity method for "
        "the de-identification of health data, JAMIA 16(5), 2009, and F. Kohlmayer et al., Flash: "
        "efficient, stable and optimal k-anonymity, PASSAT 2012"
    )
    takes_weights: ClassVar[bool] = True
    needs_hierarchies: ClassVar[bool] = True
    suppresses: ClassVar[bool] = True
    finds_levels: ClassVar[bool] = True

    def cells(self, block: Block) -> Ints:
        return self.find(block).cell_id

    def find(self, block: Block) -> KernelResult:
        """The cells, and the chosen height of every column.

        Raises InputError when the lattice has too many nodes.
        """
        if block.n == 0:
            return KernelResult(np.zeros(0, np.int64), np.zeros(block.nominal.shape[1], np.int64))
        require_feasible(block)
        search = LatticeSearch(block)
        heights = search.run()
        classes = search.lattice.classes(heights)
        cell_id = np.where(search.lattice.holding(classes), np.arange(len(classes.rows)), -1)
        cell_id = cell_id[classes.id[block.tuples.id]]
        kept = cell_id >= 0
        cell_id[kept] = by_first_row(cell_id[kept])
        return KernelResult(cell_id, np.array(heights, np.int64))
