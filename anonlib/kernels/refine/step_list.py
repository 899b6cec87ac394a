"""The list of the best steps between two cells."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, njit_in_place

#: The least gain of a step, as a share of the losses or distances from which it is computed.
LEAST = 1e-9


class Steps(NamedTuple):
    """The best steps between two cells, best first.

    Attributes:
        gain: float64[room]. The gain of each step.
        leaves: int64[room]. The row that moves from the first cell to the second; -1 for none.
        comes: int64[room]. The row that moves from the second cell to the first; -1 for none.
        n_out: int64[room]. The rows that move from the first cell to the second: those equal to
            `leaves`.
        n_in: int64[room]. The rows that move from the second cell to the first.
    """

    gain: Floats
    leaves: Ints
    comes: Ints
    n_out: Ints
    n_in: Ints


@njit
def make_steps(room: int) -> Steps:
    """An empty list for `room` steps."""
    ones = np.ones(room, np.int64)
    return Steps(np.zeros(room), np.full(room, -1), np.full(room, -1), ones, ones.copy())


@njit_in_place
def clear_steps(steps: Steps, least: float) -> None:
    """Empties the list. Steps that are then added must gain more than `least`."""
    for i in range(len(steps.gain)):
        steps.gain[i] = least
        steps.leaves[i] = steps.comes[i] = -1


@njit_in_place
def offer_step(steps: Steps, gain: float) -> int:
    """Makes room for a step of single rows that gains more than the last one. Returns its place."""
    i = len(steps.gain) - 1
    while i > 0 and steps.gain[i - 1] < gain:
        steps.gain[i] = steps.gain[i - 1]
        steps.leaves[i], steps.comes[i] = steps.leaves[i - 1], steps.comes[i - 1]
        steps.n_out[i], steps.n_in[i] = steps.n_out[i - 1], steps.n_in[i - 1]
        i -= 1
    steps.gain[i] = gain
    steps.leaves[i] = steps.comes[i] = -1
    steps.n_out[i] = steps.n_in[i] = 1
    return i
