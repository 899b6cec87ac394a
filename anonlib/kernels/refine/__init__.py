"""Refine: lowers the loss of other kernels' cells by moving and swapping rows."""

from typing import Annotated, Any, ClassVar, NamedTuple

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
from anonlib.kernels.merge import by_first_row, writable_contiguous
from anonlib.table.block import Block

#: The most steps between two cells that are judged at once, if models look at more than rows.
OPTIONS = 4
#: The initial slack of the long search, as a share of the mean loss of a cell. A group that ends
#: worse by no more than the slack is kept.
SLACK = 0.35
#: The share of its loss that a descent must lower after the near cells were found anew, to go on.
RENEWAL = 1e-3
#: After this many rounds, the long search computes the near cells anew.
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

    Descent from the cells of several kernels, the best kept, or a longer search from there.

    The loss is the sum, over the rows, of the squared distance from the centroid of the row's cell,
    as for `mdav`. k is the block's `min_rows`.

    A step moves one row to another cell, or swaps two rows of two cells. It must lower the loss,
    and both cells must hold the models. Cells of 2k rows or more are split: the row farthest from
    the centroid and its k - 1 nearest rows become a cell. Steps are searched between a cell and
    each of the `n_neighbours` cells with the nearest centroids, in order; the best step of two
    cells is taken. A descent ends when no step is left, or after `passes`. If models look at more
    than the number of rows, a pass takes at most one step per cell, and tries only the best 4 steps
    of two cells. A step must gain at least 1e-9 of the distances from which it is computed. So the
    cells never lose more than those of any start.

    After a descent the near cells are found anew, and another one begins, while that lowers the
    loss by 0.1 % or more. Of cells with the same rows one is near, so that rows that repeat do not
    hide the others. If only the number of rows counts, cells are dissolved before: the rows of a
    cell go to the near cells with the nearest centroids, if they lose less there.

    The long search has `effort` rounds. A round makes groups, each of a cell and its neighbours,
    and upsets the first cell of each group: that cell is merged with another one of the group. If
    only the number of rows counts, k rows around a random row are then split off the merged cell;
    or the first cell is dissolved into the others. Then the round descends within the groups. It
    takes back groups that have lost more than a slack, which shrinks to 0. At the end, the cells of
    the least loss seen descend once more. A round takes about as long as a pass; 4000 rounds bring
    the usual benchmark tables within 1 % of the least known loss. Random numbers have a fixed seed.
    """

    type: ClassVar[str] = "refine"
    cost: ClassVar[str] = (
        "O(n d L) a pass or round, O(n L^2 / k) a descent, L neighbours; and the starts"
    )
    reference: ClassVar[str] = (
        "J. A. Hartigan, M. A. Wong, Algorithm AS 136, Applied Statistics 28(1), 1979 (transfers); "
        "H. R. Lourenco, O. C. Martin, T. Stutzle, Iterated local search, 2003 (the long search)"
    )
    start: Annotated[tuple[Start, ...], BeforeValidator(_list_starts), WithJsonSchema(_STARTS)] = (
        Field(
            (Start(type="mdav"), Start(type="mondrian")),
            description="the kernels whose cells are refined, by `type`; one, or a list",
        )
    )
    effort: int = Field(0, ge=0, le=10**9, description="rounds of the long search; 0 for none")
    passes: int = Field(100, ge=1, le=10**9, description="most passes over all cells in a descent")
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
    def needs_target(self) -> bool:
        return any(kernel.needs_target for kernel in self._kernels)

    @property
    def needs_classes(self) -> bool:
        return any(kernel.needs_classes for kernel in self._kernels)

    @property
    def _kernels(self) -> list[Kernel]:
        return [registry.build("kernel", start.model_dump()) for start in self.start]

    def cells(self, block: Block) -> Ints:
        starts = [kernel.cells(block) for kernel in self._kernels]
        if block.n == 0:
            return starts[0]
        ends = [self._run_descent(block, cell_id) for cell_id in starts]
        cell_id = min(ends, key=lambda end: end[0])[1]
        if self.effort > 0:
            cell_id = self._run_descent(block, self._run_search(block, cell_id))[1]
        return by_first_row(cell_id)

    def _run_descent(self, block: Block, cell_id: Ints) -> tuple[float, Ints]:
        """Descends, finds the near cells anew, and goes on while that gains RENEWAL. Returns the
        loss and the cells."""
        from anonlib.kernels.refine.near import dissolve_near, renew_near

        work = _work(block, cell_id, self.n_neighbours)
        state, before = work.state, np.inf
        while True:
            _descend(block, work, self.passes)
            now = state.loss.sum()
            if now >= (1.0 - RENEWAL) * before:
                break
            before = now
            if block.counts_rows_only:
                dissolve_near(state, work.near)
            renew_near(state, work.near, work.last_search)
        return float(now), state.cell

    def _run_search(self, block: Block, cell_id: Ints) -> Ints:
        """The cells of the least loss that the long search has seen."""
        from anonlib.kernels.refine.search import group_loss, take_back_groups, upset

        work = _work(block, cell_id, self.n_neighbours)
        best, least = cell_id, work.state.loss.sum()
        k = block.min_rows if block.counts_rows_only else 0
        random, order = np.array([SEED], np.uint64), np.zeros_like(work.state.rows)
        for done in range(self.effort):
            if done % REFRESH == REFRESH - 1:
                work = _work(block, cell_id, self.n_neighbours)
            state, last_change = work.state, work.state.last_change.copy()
            before = upset(state, work.near, random, order, k)
            _descend(block, work, self.passes)
            slack = SLACK * (1.0 - done / self.effort) * state.loss.sum() / (state.rows > 0).sum()
            after = group_loss(state, len(before))
            take_back_groups(state, cell_id, last_change, after > before + slack)
            cell_id = state.cell.copy()
            if state.loss.sum() < least:
                best, least = cell_id, state.loss.sum()
        return best


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


def _work(block: Block, cell_id: Ints, n_neighbours: int) -> Work:
    from anonlib.kernels.refine.descent import make_batch
    from anonlib.kernels.refine.near import near_cells
    from anonlib.kernels.refine.state import make_refine_state, make_steps

    c = block.n // block.min_rows
    numeric, nominal = writable_contiguous(block.numeric), writable_contiguous(block.nominal)
    state = make_refine_state(numeric, nominal, writable_contiguous(block.n_categories), cell_id, c)
    near = near_cells(state, min(n_neighbours, c))
    judged = not block.counts_rows_only
    batch = make_batch(block.n, c, OPTIONS) if judged else None
    return Work(
        state, near, np.zeros(near.shape, np.int32), make_steps(OPTIONS if judged else 1), batch
    )


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
