"""Peel: releases classes of the generalization lattice, least loss first."""

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import Bools, Ints
from anonlib.kernels import Kernel
from anonlib.kernels.merge import number_by_first_row, require_feasible
from anonlib.table.block import Block

if TYPE_CHECKING:  # cores, which need numba
    from anonlib.kernels.peel.cells import TupleCells
    from anonlib.kernels.peel.core import Lattice, Peeling, TupleTable


class Peel(Kernel):
    """The lowest loss along hierarchies: one search over the whole table's distinct tuples.

    Local recoding by peeling the generalization lattice, then by steps that lower the loss.
    The loss of a row is the sum, over the columns, of the loss of the lowest common ancestor of its
    cell's codes (`Tree.loss`, in multiples of 2^-20). A column without a hierarchy has a flat one.
    All rows of a tuple are in one cell.

    Peeling: A lattice node has a height for each column. A code is generalized to the highest tree
    node at or above it whose own height is at most that height. Tuples without a cell that become
    equal are a class. Lattice nodes are tried in order. At each node, the classes that hold all
    models become cells. Nodes are ordered by the sum, over the columns, of the squared mean loss of
    the rows, ascending.

    - With `order: node`, all nodes are tried once.
    - With `order: class`, they are tried in stages. A stage takes only classes whose own loss per
      row is in its range. Ranges are 1/16 of a column wide up to 4 columns; the last stage has no
      upper limit. This takes a few hundred bytes per tuple, and up to 4,000 with rebuilding. If
      more than 2^26 losses are needed, or models look at more than rows and distinct values, the
      order is that of `node`.

    With more than 20000 lattice nodes, only the first ones are tried, and a path up to the root.

    Leftovers: The tuples that would add most loss per row are suppressed, as far as `may_suppress`
    allows. Then the other leftover tuples and failing cells, fewest rows first, are each merged
    with the cell where this adds least.

    Search: It makes `effort` passes, or fewer if one gains nothing. First, each tuple moves to the
    cell where it lowers the loss most, if its old cell still holds. Then cells are dissolved,
    highest loss per row first: each of their tuples joins the cell where it adds least, if the
    total loss falls. If models look at more than rows and distinct values, the steps of a pass
    share no cell, and steps after which a cell fails are undone.

    Rebuilding: With `order: class`, each pass but the first begins with it. A step tries to make
    one lattice class a cell. It tries every class in which some tuples would lose less; tuples that
    would lose 0.4 of a column more are left out of the class. A step has four parts:

    1. It takes down the cells that have tuples of the class and lose more per row than it. If these
       cells have fewer than k rows of the class, it takes down cells of the next lower losses too.
       It frees at most 300 tuples.
    2. The class becomes a cell. Then other classes of freed tuples, or the remains of a cell,
       become cells if they hold, lowest loss first.
    3. The remaining tuples join other cells.
    4. The step is undone unless the total loss falls.

    Such steps split cells, merge and split them elsewhere, and move tuples in groups.
    """

    type: ClassVar[str] = "peel"
    cost: ClassVar[str] = (
        "O(n log n + t L d) for t distinct tuples and L nodes of the lattice; a pass of the search "
        "O(t c d) for c cells, that rebuilds O(t L d) more"
    )
    reference: ClassVar[str] = (
        "this project; the lattice: K. LeFevre, D. DeWitt, R. Ramakrishnan, Incognito: efficient "
        "full-domain k-anonymity, SIGMOD 2005; recoding what is left again and again: F. Prasser "
        "et al., Flexible data anonymization using ARX, Software: Practice and Experience 50, 2020"
    )
    takes_weights: ClassVar[bool] = True
    needs_hierarchies: ClassVar[bool] = True
    suppresses: ClassVar[bool] = True
    order: Literal["class", "node"] = Field(
        "class", description="whether classes come by their own loss, or by that of their node"
    )
    effort: int = Field(
        1,
        ge=0,
        le=10**9,
        description="most passes of the search: 0 none, 1 moves tuples, 2 and more rebuild cells",
    )

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        table, lattice, cell = self._peel(block)
        _suppress(block, table, cell)
        state = _place_tuples(block, table, cell)
        self._search(block, table, lattice, state)
        cell_id = state.cell[block.tuples.id]
        kept = cell_id >= 0
        cell_id[kept] = number_by_first_row(cell_id[kept])
        return cell_id

    def _peel(self, block: Block) -> tuple["TupleTable", "Lattice", Ints]:
        from anonlib.kernels.peel.core import make_cells, make_peeling, peel
        from anonlib.kernels.peel.lattice import make_lattice, make_table

        table, columns = make_table(block)
        judged = _must_judge(block)
        lattice = make_lattice(table, columns, by_class=self.order == "class" and not judged)
        work = make_peeling(table)
        while peel(table, lattice, work, judged):
            _judge(block, work)
            make_cells(table, work)
        return table, lattice, work.cell

    def _search(
        self, block: Block, table: "TupleTable", lattice: "Lattice", state: "TupleCells"
    ) -> None:
        from anonlib.kernels.peel.cells import dissolve_cells, move_tuples, undo_failing_steps
        from anonlib.kernels.peel.rebuild import find_classes, make_site, rebuild_cells

        judged = _must_judge(block)
        rebuilds = len(lattice.bound) > 2
        for i in range(self.effort):
            n_steps = 0
            if rebuilds and i > 0:
                classes = find_classes(table, lattice, state)
                n_steps += rebuild_cells(table, state, classes, make_site(state, classes))
            for steps in (move_tuples, dissolve_cells):
                n_steps += steps(table, state, judged)
                if judged:
                    n_steps -= undo_failing_steps(
                        table, state, ~_holds(block, state.cell, len(state.rows))
                    )
            if n_steps == 0 and (i > 0 or not rebuilds):
                return


def _must_judge(block: Block) -> bool:
    """Whether a cell with enough rows and enough distinct values may still fail."""
    counts = any(model.looks_at == "counts" for model in block.models)
    return counts or block.joint or block.unit is not None


def _judge(block: Block, work: "Peeling") -> None:
    """Judges the classes with `fits` by all models, and updates their `fits`."""
    from anonlib.kernels.peel.core import CLASSES, LISTED

    n, m = int(work.at[LISTED]), int(work.at[CLASSES])
    fits = work.fits[:m]
    number = np.cumsum(fits) - 1
    chosen = fits[work.group[:n]]
    cell = np.full(len(work.cell), -1)
    cell[work.item[:n][chosen]] = number[work.group[:n][chosen]]
    fits[fits] = _holds(block, cell, int(fits.sum()))


def _holds(block: Block, cell: Ints, n_cells: int) -> Bools:
    """bool[n_cells]. Which cells hold every model. cell: the cell of each tuple; -1 for none."""
    cell_id = cell[block.tuples.id]
    rows = np.flatnonzero(cell_id >= 0)
    return block.holds(cell_id[rows], n_cells, rows)


def _suppress(block: Block, table: "TupleTable", cell: Ints) -> None:
    """Makes each tuple without a cell a cell of its own. Suppresses the tuples that would add most
    loss per row, as far as the block allows; they stay without a cell."""
    left = np.flatnonzero(cell < 0)
    if len(left) == 0:
        return
    from anonlib.kernels.peel.cells import find_growth, make_tuple_cells

    stays = np.ones(len(left), np.bool_)
    if block.may_suppress > 0:
        rows = table.weight[left]
        added = find_growth(table, make_tuple_cells(table, cell.copy()), left) // rows
        n_suppressed = 0
        for i in np.argsort(-added, kind="stable"):
            if n_suppressed + rows[i] <= block.may_suppress:
                n_suppressed += rows[i]
                stays[i] = False
    cell[left[stays]] = cell.max() + 1 + np.arange(stays.sum())


def _place_tuples(block: Block, table: "TupleTable", cell: Ints) -> "TupleCells":
    """Merges failing cells with others until all cells hold. Returns the state of the cells."""
    from anonlib.kernels.peel.cells import make_tuple_cells, merge_into_nearest

    state = make_tuple_cells(table, cell)
    while True:
        holds = _holds(block, state.cell, len(state.rows))
        failing = np.flatnonzero(~holds & (state.rows > 0))
        if len(failing) == 0:
            return state
        if (state.rows > 0).sum() == 1:  # it fails without the suppressed rows
            return make_tuple_cells(table, np.zeros_like(cell))
        merge_into_nearest(table, state, failing[np.argsort(state.rows[failing], kind="stable")])
