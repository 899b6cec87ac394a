"""Refine: lowers the loss of other kernels' cells by moving and swapping rows."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
)

from anonlib import registry
from anonlib.arrays import Codes, Ints
from anonlib.errors import ConfigError
from anonlib.kernels import Kernel
from anonlib.kernels.merge import make_writable, number_by_first_row
from anonlib.table.block import Block

#: The most steps between two cells that are judged at once, if models look at more than rows.
OPTIONS = 4
#: The initial slack of a search, as a share of the mean loss of a cell: of an upset, and of a group
#: of a round. What ends worse by no more than the slack is kept.
UPSET_SLACK, SLACK = 0.1, 0.35
#: The share of the loss that a descent must lower for another one to follow.
RENEWAL = 1e-3
#: After this many rounds, the near cells are computed anew.
REFRESH = 16
#: The initial state of the random numbers.
SEED = 88172645463325252


#: The JSON schemas of a kernel by its name or spec, and of `start`.
_KERNEL = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["type"]}]}
_STARTS = {"anyOf": [*_KERNEL["anyOf"], {"type": "array", "items": _KERNEL, "minItems": 1}]}


class Start(BaseModel):
    """A kernel as in a config: its type, and its parameters beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: str


def _list_starts(starts: Any) -> Any:
    """A single kernel as a list, and a kernel's name as its spec."""
    found = starts if isinstance(starts, list | tuple) else [starts]
    return [{"type": each} if isinstance(each, str) else each for each in found]


class Refine(Kernel):
    """The lowest loss: moves and swaps rows between the cells of other kernels.

    Descends from the cells of several kernels, and searches from the end that loses least.

    With `loss: sse`, the loss is the sum, over the rows, of the squared distance from the centroid
    of the row's cell, as for `mdav`. k is the block's `min_rows`.

    A step moves one row to another cell, or swaps two rows of two cells. It must lower the loss,
    and both cells must hold the models. Cells of 2k rows or more are split: the row farthest from
    the centroid and its k - 1 nearest rows become a cell. Steps are searched between a cell and
    each of the `n_neighbours` cells with the nearest centroids, in order; the best step of two
    cells is taken. A descent ends when no step is left, or after `passes`. If models look at more
    than the number of rows, a pass takes at most one step per cell, and tries only the best 4 steps
    of two cells. A step must gain at least 1e-9 of the distances from which it is computed. So the
    cells never lose more than those of any start.

    With `loss: auto`, it is what the released values lose: `ncp` if all of them are intervals, sets
    or nodes, else `sse`.

    With `loss: ncp`, it is the normalized certainty penalty, as the metric `ncp` measures it: the
    sum, over the rows and columns, of the range of the cell / that of the table, or of the loss of
    the lowest common ancestor in the hierarchy; without one, of (distinct values - 1) / (all values
    - 1). Rows that are equal move together, as many as their cell can spare: a step transfers those
    of one tuple, or swaps those of two. Near cells are those that gain most by such a transfer. A
    large cell is split only where that gains, from the rows without which the penalty falls most.

    With an `effort` above 0, a search follows. It upsets random cells, `effort` times as many as
    there is room for. If only the number of rows counts, an upset makes a new cell of a random row
    and near ones, or dissolves a cell, and descends from there, among the cells that it has changed
    and those near them. It is taken back if it ends worse by more than a slack, which shrinks to 0.
    If models look at more, a round upsets many groups of near cells at once, by merging two cells
    of each, and takes back those that end worse, so that the models judge many steps together.
    Random numbers have a fixed seed. The time grows with `effort` and the number of rows.

    At the end it descends again from the cells of least loss that it saw: it finds the near cells
    anew as long as a descent lowers the loss by 0.1 % or a cell was dissolved. Of cells with the
    same rows one is near, so that rows that repeat do not hide the others. If only the number of
    rows counts, a cell is dissolved where that gains: its rows go to the near cells with the
    nearest centroids.
    """

    type: ClassVar[str] = "refine"
    cost: ClassVar[str] = (
        "O(n d L) a pass or round, O(n L^2 / k) a descent, L neighbours; with `loss: ncp`, "
        "O(t n d / k) to find the near cells of t distinct tuples; and the starts"
    )
    reference: ClassVar[str] = (
        "J. A. Hartigan, M. A. Wong, Algorithm AS 136, Applied Statistics 28(1), 1979 (transfers); "
        "H. R. Lourenco, O. C. Martin, T. Stutzle, Iterated local search, 2003 (the search)"
    )
    start: Annotated[tuple[Start, ...], BeforeValidator(_list_starts), WithJsonSchema(_STARTS)] = (
        Field(
            (Start(type="mdav"), Start(type="mondrian")),
            description="the kernels whose cells are refined, by `type`; one, or a list",
        )
    )
    effort: int = Field(1, ge=0, le=10**9, description="upsets per cell of the search; 0 for none")
    passes: int = Field(100, ge=1, le=10**9, description="most passes over all cells in a descent")
    loss: Literal["auto", "sse", "ncp"] = Field(
        "auto",
        description="what steps lower: `sse`, squared distances from the centroids; `ncp`, the "
        "normalized certainty penalty: the extents of released intervals, sets and nodes; or "
        "`auto`, `ncp` if all columns are released as these",
    )
    n_neighbours: int = Field(
        16, ge=1, le=1000, description="number of nearest cells that a cell exchanges rows with"
    )

    @field_validator("start")
    @classmethod
    def _find_starts(cls, starts: tuple[Start, ...]) -> tuple[Start, ...]:
        """Raises ValueError without a kernel, or if there is no such kernel. Its text shows none of
        the given values."""
        if not starts:
            raise ValueError("name a kernel, such as mdav")
        for start in starts:
            try:
                registry.build("kernel", start.model_dump())
            except ConfigError as error:
                raise ValueError(error.line) from None
        return starts

    @property
    def needs_nominal(self) -> bool:
        return any(kernel.needs_nominal for kernel in self._kernels)

    @property
    def needs_target(self) -> bool:
        return any(kernel.needs_target for kernel in self._kernels)

    @property
    def needs_classes(self) -> bool:
        return any(kernel.needs_classes for kernel in self._kernels)

    @property
    def _kernels(self) -> list[Kernel]:
        return [registry.build("kernel", start.model_dump()) for start in self.start]

    def _find_loss(self, block: Block) -> str:
        """`sse` or `ncp`."""
        if self.loss != "auto":
            return self.loss
        return "ncp" if block.extents else "sse"

    def cells(self, block: Block) -> Ints:
        from anonlib.kernels.refine.near import renew_near

        if block.n == 0:
            return self._kernels[0].cells(block)
        work = self._descend_from_starts(block)
        if self.effort == 0:
            renew_near(work.state, work.near, work.last_search)
        elif block.counts_rows_only:
            work = self._run_upsets(block, work)
        else:
            work = self._run_rounds(block, work)
        self._run_descents(block, work)
        return number_by_first_row(work.state.cell)

    def _descend_from_starts(self, block: Block) -> "Work":
        """The lowest of the ends of a descent from the cells of each start."""

        def descend(kernel: Kernel) -> Work:
            work = self._make_work(block, self._make_state(block, kernel.cells(block)))
            _descend(block, work, self.passes)
            return work

        return min(map(descend, self._kernels), key=lambda work: float(work.state.loss.sum()))

    def _make_state(self, block: Block, cell_id: Ints) -> Any:
        return make_state(block, cell_id, self._find_loss(block))

    def _make_work(self, block: Block, state: Any) -> "Work":
        """Finds the near cells of a state, and makes what steps need."""
        from anonlib.kernels.refine.descent import make_batch
        from anonlib.kernels.refine.near import find_near_cells
        from anonlib.kernels.refine.step_list import make_steps

        c = len(state.rows)
        near = find_near_cells(state, min(self.n_neighbours, c))
        judged = not block.counts_rows_only
        batch = make_batch(block.n, c, OPTIONS) if judged else None
        steps = make_steps(OPTIONS if judged else 1)
        return Work(state, near, np.zeros(near.shape, np.int32), steps, batch)

    def _run_descents(self, block: Block, work: "Work") -> None:
        """Descends, dissolves cells and finds the near cells anew, while a descent gains RENEWAL or
        a cell was dissolved, `passes` times at most."""
        from anonlib.kernels.refine.near import dissolve_near, renew_near

        state, before, dissolved = work.state, work.state.loss.sum(), False
        for _ in range(self.passes):
            _descend(block, work, self.passes)
            gains = state.loss.sum() < (1.0 - RENEWAL) * before
            before = state.loss.sum()
            if block.counts_rows_only:
                dissolved = dissolve_near(state, work.near)
            if not gains and not dissolved:
                return
            renew_near(state, work.near, work.last_search)
        _descend(block, work, self.passes)

    def _run_upsets(self, block: Block, work: "Work") -> "Work":
        """Searches by upsets, if only the number of rows counts. Returns the work of the cells of
        least loss that it saw."""
        from anonlib.kernels.refine.upsets import upset_cells

        state, near, last_search, _, _ = work
        slack = UPSET_SLACK * state.loss.sum() / (state.rows > 0).sum()
        random = np.array([SEED], np.uint64)
        best = upset_cells(state, near, last_search, random, block.min_rows, self.effort, slack)
        if (best == state.cell).all():  # the search has just found their near cells
            # What an upset searched before it was taken back counts as searched until here.
            last_search[:] = 0
            return work
        return self._make_work(block, self._make_state(block, best))

    def _run_rounds(self, block: Block, work: "Work") -> "Work":
        """Searches by rounds whose steps the models judge. Returns the work of the cells of least
        loss that it saw."""
        from anonlib.kernels.refine.search import group_loss, take_back_groups, upset_groups

        cell_id = work.state.cell.copy()
        best, least = cell_id, work.state.loss.sum()
        random, order = np.array([SEED], np.uint64), np.zeros_like(work.state.rows)
        n_upsets = self.effort * len(order)
        done = n_rounds = 0
        while done < n_upsets:
            n_rounds += 1
            if n_rounds % REFRESH == 0:
                work = self._make_work(block, self._make_state(block, cell_id))
            state, last_change = work.state, work.state.last_change.copy()
            before = upset_groups(state, work.near, random, order)
            _descend(block, work, self.passes)
            slack = SLACK * (1.0 - done / n_upsets) * state.loss.sum() / (state.rows > 0).sum()
            after = group_loss(state, len(before))
            take_back_groups(state, cell_id, last_change, after > before + slack)
            cell_id = state.cell.copy()
            if state.loss.sum() < least:
                best, least = cell_id, state.loss.sum()
            done += max(len(before), 1)
        return self._make_work(block, self._make_state(block, best))


class Work(NamedTuple):
    """The arrays of the cores.

    Attributes:
        state: A `RefineState`.
        near: int64[c, L]. The cells near each cell, nearest first; -1 for none.
        last_search: int32[c, L]. The clock when each pair of near cells was last searched.
        steps: A `Steps`.
        batch: A `Batch`; None if steps need no judging.
    """

    state: Any
    near: Ints
    last_search: Codes
    steps: Any
    batch: Any


def make_state(block: Block, cell_id: Ints, loss: str, c: int | None = None) -> Any:
    """The `RefineState` of a block's cells, with room for c cells: if None, for all that there can
    be."""
    from anonlib.kernels.refine.extents import make_extents
    from anonlib.kernels.refine.state import fill_refine_state

    c = block.n // block.min_rows if c is None else c
    numeric, nominal = make_writable(block.numeric), make_writable(block.nominal)
    sizes = block.n_categories.astype(np.int64)
    extents = None
    if loss == "ncp":
        values = np.concatenate([numeric, nominal.astype(np.float64)], axis=1)
        trees = block.trees or (None,) * len(sizes)
        extents = make_extents(values, block.widths, sizes, trees, block.tuples.id, c)
    return fill_refine_state(numeric, nominal, sizes, cell_id, c, extents)


def _descend(block: Block, work: Work, passes: int) -> None:
    """Descends. If only the number of rows counts, the core does all of it. Otherwise, the models
    judge each batch of steps."""
    from anonlib.kernels.refine.descent import descend, propose_steps, take

    state, near, last_search, steps, batch = work
    if batch is None:
        descend(state, near, last_search, block.min_rows, passes, steps)
        return
    for _ in range(passes):
        propose_steps(state, near, last_search, block.min_rows, steps, batch)
        n_steps, n_rows = batch.size
        if n_steps == 0:
            return
        holds = block.holds(batch.side[:n_rows], 2 * n_steps, batch.row[:n_rows])
        take(state, near, last_search, batch, holds[0::2] & holds[1::2])
