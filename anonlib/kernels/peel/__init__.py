"""Peel: releases classes of the generalization lattice, those that lose least first."""

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import Bools, Ints
from anonlib.kernels import Kernel
from anonlib.kernels.merge import by_first_row, require_feasible
from anonlib.table.block import Block

if TYPE_CHECKING:  # cores, which need numba
    from anonlib.kernels.peel.cells import TupleCells
    from anonlib.kernels.peel.core import Lattice, Peeling, TupleTable


class Peel(Kernel):
    """Local recoding by peeling the generalization lattice, then by steps that lower the loss.

    A cell loses its rows times the sum over the columns of the loss of the lowest common ancestor
    of its codes (`Tree.loss`, in multiples of 2^-20); a column without a hierarchy has a flat one.
    All rows of a tuple are in one cell.

    A node of the lattice is a height for each column: codes are generalized to the highest node of
    their tree that is no higher. The nodes are gone through by ascending sum, over the columns, of
    the square of what the rows lose there on average: classes of the tuples that are left and hold
    all models become cells, the others go on. By `node` that is all. By `class` they are gone
    through in stages: in each one only classes whose own loss is in its range, 1/16 of a column
    wide up to 4 columns, then what is left. Of more than 20000 nodes the first ones are taken, and
    a way up to the root. By `class` takes a few hundred bytes a tuple, and up to 4,000 to rebuild;
    where losses would be more than 2^26, and under models that look at more than rows and distinct
    values, it is by `node`.

    What is left in the end, and cells that fail, are merged with the cell where that adds least,
    those of fewest rows first; but the tuples that would add most a row are left without a cell as
    far as `may_suppress` allows.

    The search then makes `effort` passes, fewer if one gains nothing: each tuple moves to the cell
    where that lowers the loss most, if what it leaves still holds; then each cell, from the one
    that loses most a row, gives its tuples to other cells, each where it adds least, if the loss
    falls in all. Where cells must be judged, steps of a pass share no cell, and those after which
    one fails are taken back.

    By `class`, each pass but the first begins by rebuilding: the classes of the lattice in which
    some tuples would lose less, and none over 0.4 of a column more, are opened one after the other.
    The cells that lose more than the class and share tuples with it are taken down (if the class
    would not have k rows of theirs, those next in loss as well): their tuples are the class, then
    others of these classes or what is left of the cells, those that hold and lose least first; the
    rest joins other cells. It stays so if the loss falls in all. That splits cells, merges and
    splits them elsewhere, and moves tuples in groups. A step frees at most 300 tuples.
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
        table, lattice, cell = self._peeled(block)
        _suppress(block, table, cell)
        state = _placed(block, table, cell)
        self._search(block, table, lattice, state)
        cell_id = state.cell[block.tuples.id]
        kept = cell_id >= 0
        cell_id[kept] = by_first_row(cell_id[kept])
        return cell_id

    def _peeled(self, block: Block) -> tuple["TupleTable", "Lattice", Ints]:
        from anonlib.kernels.peel.core import make_cells, make_peeling, peel
        from anonlib.kernels.peel.lattice import make_lattice, make_table

        table, columns = make_table(block)
        judged = _judged(block)
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

        judged = _judged(block)
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


def _judged(block: Block) -> bool:
    """Whether cells that have enough rows, and enough values, may still fail."""
    counts = any(model.looks_at == "counts" for model in block.models)
    return counts or block.joint or block.unit is not None


def _judge(block: Block, work: "Peeling") -> None:
    """Looks at the classes that may be cells with all models."""
    from anonlib.kernels.peel.core import CLASSES, LISTED

    n, m = int(work.at[LISTED]), int(work.at[CLASSES])
    fits = work.fits[:m]
    number = np.cumsum(fits) - 1
    chosen = fits[work.group[:n]]
    cell = np.full(len(work.cell), -1)
    cell[work.item[:n][chosen]] = number[work.group[:n][chosen]]
    fits[fits] = _holds(block, cell, int(fits.sum()))


def _holds(block: Block, cell: Ints, n_cells: int) -> Bools:
    """bool[n_cells]: which cells of distinct tuples hold every model (-1: in none)."""
    cell_id = cell[block.tuples.id]
    rows = np.flatnonzero(cell_id >= 0)
    return block.holds(cell_id[rows], n_cells, rows)


def _suppress(block: Block, table: "TupleTable", cell: Ints) -> None:
    """Numbers the tuples that peeling has left as cells of their own, but for those that would add
    most, as many as may be suppressed."""
    left = np.flatnonzero(cell < 0)
    if len(left) == 0:
        return
    from anonlib.kernels.peel.cells import growth, make_tuple_cells

    kept = np.ones(len(left), np.bool_)
    if block.may_suppress > 0:
        rows = table.weight[left]
        added = growth(table, make_tuple_cells(table, cell.copy()), left) // rows
        n_suppressed = 0
        for i in np.argsort(-added, kind="stable"):
            if n_suppressed + rows[i] <= block.may_suppress:
                n_suppressed += rows[i]
                kept[i] = False
    cell[left[kept]] = cell.max() + 1 + np.arange(kept.sum())


def _placed(block: Block, table: "TupleTable", cell: Ints) -> "TupleCells":
    """The cells, those that fail merged with others until all hold."""
    from anonlib.kernels.peel.cells import make_tuple_cells, merge_into_nearest

    state = make_tuple_cells(table, cell)
    while True:
        holds = _holds(block, state.cell, len(state.rows))
        failing = np.flatnonzero(~holds & (state.rows > 0))
        if len(failing) == 0:
            return state
        if (state.rows > 0).sum() == 1:  # it lacks what was suppressed
            return make_tuple_cells(table, np.zeros_like(cell))
        merge_into_nearest(table, state, failing[np.argsort(state.rows[failing], kind="stable")])
