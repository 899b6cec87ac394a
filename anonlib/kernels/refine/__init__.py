"""Refine: lowers the loss of another kernel's cells by moving and swapping rows."""

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
#: After this many rounds, the long search computes the near cells anew.
REFRESH = 16
#: The initial state of the random numbers.
SEED = 88172645463325252


class Start(BaseModel):
    """A kernel as in a config: its type, and its parameters beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: str


def _start(start: Any) -> Any:
    return {"type": start} if isinstance(start, str) else start


class Refine(Kernel):
    """Descent from the cells of another kernel, or a longer search that begins there.

    The loss is the sum, over the rows, of the squared distance from the centroid of the row's cell,
    as for `mdav`. k is the block's `min_rows`.

    A step moves one row to another cell, or swaps two rows of two cells. It must lower the loss,
    and both cells must hold the models. Cells of 2k rows or more are split: the row farthest from
    the centroid and its k - 1 nearest rows become a cell. Steps are searched between a cell and
    each of the `n_neighbours` cells with the nearest centroids, in order; the best step of two
    cells is taken. The descent ends when no step is left, or after `passes`. If models look at more
    than the number of rows, a pass takes at most one step per cell, and tries only the best 4 steps
    of two cells. A step must gain at least 1e-9 of the distances from which it is computed. So the
    cells never lose more than those of the start.

    The long search has `effort` rounds. A round makes groups, each of a cell and its neighbours,
    and upsets the first cell of each group: that cell is merged with another one of the group. If
    only the number of rows counts, k rows around a random row are then split off the merged cell;
    or the first cell is not merged, and its rows are distributed to the others. Then the round
    descends within the groups. It takes back groups that have lost more than a slack, which shrinks
    to 0. At the end, the cells of the least loss seen descend once more. A round takes about as
    long as a pass; 4000 rounds bring the usual benchmark tables within 1 % of the least known loss.
    Random numbers have a fixed seed.
    """

    type: ClassVar[str] = "refine"
    cost: ClassVar[str] = "O(n d L) a pass or round, L neighbours, and what the start costs"
    reference: ClassVar[str] = (
        "J. A. Hartigan, M. A. Wong, Algorithm AS 136, Applied Statistics 28(1), 1979 (transfers); "
        "H. R. Lourenco, O. C. Martin, T. Stutzle, Iterated local search, 2003 (the long search)"
    )
    start: Annotated[
        Start,
        BeforeValidator(_start),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object", "required": ["type"]}]}),
    ] = Field(Start(type="mdav"), description="the kernel whose cells are refined, by `type`")
    effort: int = Field(0, ge=0, le=10**9, description="rounds of the long search; 0 for none")
    passes: int = Field(100, ge=1, le=10**9, description="most passes over all cells in a descent")
    n_neighbours: int = Field(
        16, ge=1, le=1000, description="number of nearest cells that a cell exchanges rows with"
    )

    @field_validator("start")
    @classmethod
    def _find_start(cls, start: Start) -> Start:
        """Raises ValueError if there is no such kernel. Its text shows none of the given values."""
        try:
            registry.build("kernel", start.model_dump())
        except ConfigError as error:
            raise ValueError(error.line) from None
        return start

    @property
    def needs_target(self) -> bool:
        return self._kernel.needs_target

    @property
    def needs_classes(self) -> bool:
        return self._kernel.needs_classes

    @property
    def _kernel(self) -> Kernel:
        kernel: Kernel = registry.build("kernel", self.start.model_dump())
        return kernel

    def cells(self, block: Block) -> Ints:
        cell_id = self._kernel.cells(block)
        if block.n == 0:
            return cell_id
        cell_id = self._run_descent(block, cell_id)
        if self.effort > 0:
            cell_id = self._run_descent(block, self._run_search(block, cell_id))
        return by_first_row(cell_id)

    def _run_descent(self, block: Block, cell_id: Ints) -> Ints:
        work = _work(block, cell_id, self.n_neighbours)
        _descend(block, work, self.passes)
        found: Ints = work.state.cell
        return found

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
    from anonlib.kernels.refine.descent import make_batch, near_cells
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
