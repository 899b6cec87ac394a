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

#: How many steps between two cells are judged at once where models look at more than rows.
OPTIONS = 4
#: The long search keeps groups that have lost up to this share of the loss of a cell, at first.
SLACK = 0.35
#: Rounds of the long search until the near cells are looked for anew.
REFRESH = 16
#: The state of the random numbers at the start of the long search.
SEED = 88172645463325252


class Start(BaseModel):
    """A kernel as a config names it: its type, and its parameters beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: str


def _start(given: Any) -> Any:
    return {"type": given} if isinstance(given, str) else given


class Refine(Kernel):
    """Descent from the cells of another kernel, or a longer search that begins there.

    The loss is the sum over the rows of the squared distance from the centroid of their cell, as
    for `mdav`. A step moves one row to another cell, or swaps two rows of two cells, so that the
    loss falls and both cells hold the models; cells of 2k rows or more are split (the row farthest
    from the centroid and the k - 1 nearest to it make a cell), k being the block's `min_rows`.
    Steps are looked for between a cell and the `n_neighbours` whose centroids are nearest, in
    order; the best one is taken. The descent ends where there is none left, or after `passes`.
    Where models look at more than the number of rows, a pass takes at most one step a cell, and
    of two cells only the best 4 steps are tried. A step must gain 1e-9 of the distances it is
    computed from: the cells never lose more than those of the start.

    The long search is `effort` rounds. Each makes groups of a cell and its neighbours, changes the
    first cell of each (its rows go to the others, or it is merged with one and, where rows only
    count, cut off again around a row that is drawn), descends within the groups, and takes back
    those that have lost more than a slack, which shrinks to nothing. The cells of the least loss
    ever seen descend once more. A round takes about as long as a pass; 4000 bring the usual
    benchmark tables within 1 % of the least loss known. Random numbers have a fixed seed.
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
        16, ge=1, le=1000, description="cells that a cell exchanges rows with: so many nearest ones"
    )

    @field_validator("start")
    @classmethod
    def _known(cls, start: Start) -> Start:
        """Raises ValueError, without the values given, when there is no such kernel."""
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
        cell_id = self._descended(block, cell_id)
        if self.effort > 0:
            cell_id = self._descended(block, self._searched(block, cell_id))
        return by_first_row(cell_id)

    def _descended(self, block: Block, cell_id: Ints) -> Ints:
        work = _work(block, cell_id, self.n_neighbours)
        _descend(block, work, self.passes)
        found: Ints = work.state.cell
        return found

    def _searched(self, block: Block, cell_id: Ints) -> Ints:
        """The cells of least loss that the long search saw."""
        from anonlib.kernels.refine.search import group_loss, take_back_groups, upset

        work = _work(block, cell_id, self.n_neighbours)
        best, least = cell_id, work.state.loss.sum()
        k = block.min_rows if block.counts_rows_only else 0
        random, order = np.array([SEED], np.uint64), np.zeros_like(work.state.rows)
        for done in range(self.effort):
            if done % REFRESH == REFRESH - 1:
                work = _work(block, cell_id, self.n_neighbours)
            state, changed = work.state, work.state.changed.copy()
            before = upset(state, work.near, random, order, k)
            _descend(block, work, self.passes)
            slack = SLACK * (1.0 - done / self.effort) * state.loss.sum() / (state.rows > 0).sum()
            after = group_loss(state, len(before))
            take_back_groups(state, cell_id, changed, after > before + slack)
            cell_id = state.cell.copy()
            if state.loss.sum() < least:
                best, least = cell_id, state.loss.sum()
        return best


class Work(NamedTuple):
    """What the cores work on; `batch` is None where steps need no judging."""

    state: Any
    near: Ints
    seen: Codes
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
    """Descends in the core alone where rows only count, else judges every batch of steps."""
    from anonlib.kernels.refine.descent import descend, propose_steps, take

    state, near, seen, steps, batch = work
    if batch is None:
        descend(state, near, seen, block.min_rows, passes, steps)
        return
    for _ in range(passes):
        propose_steps(state, near, seen, block.min_rows, steps, batch)
        n_steps, n_rows = batch.size
        if n_steps == 0:
            return
        holds = block.holds(batch.side[:n_rows], 2 * n_steps, batch.row[:n_rows])
        take(state, near, seen, batch, holds[0::2] & holds[1::2])
