"""A lower bound of the within-cell sum of squares."""

from itertools import pairwise
from math import ceil
from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject
from anonlib.loss._bound import CUT_SHORT, LP, NEAREST, bound_squares
from anonlib.loss.sse import Sse

#: How the bound of a block was found, in words.
_KINDS = {
    LP: "the optimum of a linear program",
    CUT_SHORT: "a linear program cut short",
    NEAREST: "the nearest rows of each row",
}
#: Above the optimum by more than this share, it is the bound that is far off, as far as is known.
MOST_EXCESS = 1.0
#: The numbers of a state before those of `sse`: the bound, blocks by kind, blocks without a bound.
_OWN = 2 + len(_KINDS)


class SseBound(Metric):
    """A lower bound of `sse`: no cells of at least k rows, within the same blocks, lose less.

    It holds for every kernel. Models beyond k-anonymity, nominal columns and recoders can only make
    the least loss that is possible larger; then the release is nearer to it than the bound tells.
    The bound is of the rows that count in `sse`: others may be suppressed. It has no value for
    tuples of the partitioner `tuples`, since their rows are not there.

    Blocks of at most 1,500 rows and k up to 5: a linear program over all sets of k rows, by column
    generation, which ends with its
    optimum or after 80 rounds. Other blocks: half the squared distances to the k - 1 nearest rows,
    over k. `anonlib/loss/_bound.py` has the proofs.

    State: the bound of the sum of squares; the number of blocks with each kind of bound, and
    without one; then the state of `sse`.
    """

    type: ClassVar[str] = "sse_bound"
    subject: ClassVar[Subject] = "numbers"
    meaning: ClassVar[str] = (
        "the least `sse` that any cells of these blocks can have; 0 to 1, for comparison"
    )
    undefined: ClassVar[str] = "no continuous or ordinal column varies, or rows were one tuple each"
    is_bound: ClassVar[bool] = True

    def update(self, released: ReleasedBlock) -> Floats:
        block, own = released.block, np.zeros(_OWN)
        start = np.zeros(1, np.int64) if released.block_start is None else released.block_start
        for first, end in pairwise([*start.tolist(), block.n]):
            cell_id = released.id[first:end]
            kept = cell_id >= 0
            if block.weight is not None:
                own[_OWN - 1] += 1
            elif kept.any():
                x = np.ascontiguousarray(block.numeric[first:end][kept])
                found = bound_squares(x, block.min_rows, cell_id[kept])
                own[0] += found.value
                own[1 + found.kind] += 1
        return np.concatenate([own, Sse().update(released)])

    def value(self, state: Floats) -> float | None:
        bound, within, loss = state[0], state[_OWN + 1], Sse().value(state[_OWN:])
        if loss is None or state[_OWN - 1]:
            return None
        return float(loss * bound / within) if within > 0 else 0.0

    def describe(self, state: Floats) -> str | None:
        if self.value(state) is None or state[_OWN + 1] <= 0:
            return None
        if state[0] <= 0:
            return "sse: no bound above 0 was proved"
        excess = max(0.0, state[_OWN + 1] / state[0] - 1)
        counts = {text: int(state[1 + kind]) for kind, text in _KINDS.items() if state[1 + kind]}
        n_blocks = sum(counts.values())
        kinds = ", ".join(f"{what} in {n:,}" for what, n in counts.items())
        if n_blocks == 1:
            kinds = next(iter(counts))
        if excess > MOST_EXCESS:
            return f"sse: the bound is too weak here to tell how near the optimum is ({kinds})"
        text = f"sse: at most {ceil(10_000 * excess) / 100:g} % above the optimum"
        if n_blocks == 1:
            return f"{text} (bound by {kinds})"
        return f"{text} of these {n_blocks:,} blocks (bound by {kinds}); blocks may cost, too"
