"""The compiled core of what follows peeling: leftovers are merged, then steps lower the loss.

A step changes some cells and counts as a gain only if these lose less in all afterwards. Where
cells must be judged, the steps of a pass share no cell, so that each can be taken back by itself.
"""

import numpy as np

from anonlib.block import Bools, Ints
from anonlib.kernels._numba import njit
from anonlib.kernels._peel_core import Table, diverse
from anonlib.kernels._peel_state import (
    EVERY,
    State,
    back,
    cheapest,
    describe,
    link,
    move,
    nearest,
    rank,
    span,
    undo,
    unlink,
    without,
)


@njit
def move_tuples(given: Table, state: State, judged: bool) -> int:
    """A pass of steps that move one tuple to where it adds least. Returns how many there are."""
    zero = np.zeros(given.code.shape[1], np.int32)
    n = 0
    rank(state)
    for t in range(len(state.cell)):
        a = state.cell[t]
        if a < 0 or state.loss[a] == 0 or state.step[a] >= 0:
            continue
        left = state.rows[a] - given.weight[t]
        if left < given.k:
            continue
        without(given, state, a, t)
        if not diverse(given, state.bits):
            continue
        gain = state.rows[a] * state.loss[a] - left * span(given, state)
        b, _ = cheapest(given, state, t, gain, zero)
        if b >= 0:
            move(given, state, t, b)
            describe(given, state, a)
            _mark(state, a, b, judged)
            state.n[1] += 1
            n += 1
            if not judged:
                state.n[2] = 0
    return n


@njit
def dissolve_cells(given: Table, state: State, judged: bool) -> int:
    """A pass of steps that give all tuples of a cell to others, each to where it adds least then.
    Returns how many there are."""
    zero = np.zeros(given.code.shape[1], np.int32)
    n = 0
    rank(state)
    for place in range(state.n[0] - 1, -1, -1):
        a, begin = state.ranked[place], state.n[2]
        if state.step[a] >= 0:
            continue
        budget = state.rows[a] * state.loss[a]
        while state.first[a] >= 0 and budget > 0:
            b, growth = cheapest(given, state, state.first[a], budget, zero)
            if b < 0:
                break
            move(given, state, state.first[a], b)
            budget -= growth
        if state.first[a] >= 0:
            undo(given, state, begin)
            continue
        describe(given, state, a)
        for i in range(begin, state.n[2]):
            _mark(state, a, state.cell[state.moved[i]], judged)
        state.n[1] += 1
        n += 1
        if not judged:
            state.n[2] = 0
    return n


@njit
def _mark(state: State, a: int, b: int, judged: bool) -> None:
    if judged:
        state.step[a] = state.step[b] = state.n[1]


@njit
def take_back(given: Table, state: State, fails: Bools) -> int:
    """Takes back the steps of the pass that have changed a cell that fails. Returns how many."""
    bad = np.zeros(state.n[1], np.bool_)
    for c in range(len(fails)):
        if fails[c] and state.step[c] >= 0:
            bad[state.step[c]] = True
    for i in range(state.n[2] - 1, -1, -1):
        if bad[state.step[state.cell[state.moved[i]]]]:
            back(given, state, i)
    return int(bad.sum())


@njit
def growth(given: Table, state: State, tuples: Ints) -> Ints:
    """How much more is lost if each of these tuples, which are in no cell, joins one."""
    zero = np.zeros(given.code.shape[1], np.int32)
    result = np.zeros(len(tuples), np.int64)
    rank(state)
    for i in range(len(tuples)):
        result[i] = cheapest(given, state, tuples[i], EVERY, zero)[1]
    return result


@njit
def merge(given: Table, state: State, failing: Ints) -> None:
    """Merges each of these cells, in order, with the one with which it adds least; one that an
    earlier one has been merged with is left as it is."""
    every, levels = np.arange(len(state.rows)), np.zeros(len(state.rows), np.int64)
    waits = np.zeros(len(state.rows), np.bool_)
    state.step[:] = -1
    for a in failing:
        if waits[a]:
            continue
        w = state.rows[a]
        b, _ = nearest(given, state, every, levels, a, state.height[a], state.code[a], w, EVERY)
        while state.first[a] >= 0:
            t = state.first[a]
            unlink(given, state, t)
            link(given, state, t, b)
        describe(given, state, a)
        describe(given, state, b)
        waits[b] = True
