"""Steps that open a class of the lattice: the cells that its tuples come from are built anew."""

from typing import NamedTuple

import numpy as np

from anonlib.block import Bools, Ints
from anonlib.kernels._numba import njit
from anonlib.kernels._peel_classes import Classes
from anonlib.kernels._peel_core import Table, diverse
from anonlib.kernels._peel_state import (
    State,
    cheapest,
    describe,
    enter,
    move,
    rank,
    shift,
    strike,
    undo,
)

#: A step frees so many tuples at most.
MOST_FREED = 300
#: What tuples that no new cell takes are expected to lose, as a share of what they lost.
DEAR = 6, 5


class Site(NamedTuple):
    """What a step takes down and builds. n: of donors, freed tuples, classes near, and new cells.

    donors: int64[m], cells whose tuples are freed; begin: int64[m + 1], where those of each begin
    among freed: int64[t]; chosen: bool[m], whether a cell is a donor; loss: int64[t], what a row
    lost before. free: bool[t], whether a tuple has no new cell yet; part: int64[t], which new cell
    it has, -1 for none. near: int64[s + 1], classes with enough freed rows; rows:
    int64[s + 1], their number, 0 between steps.
    """

    n: Ints
    donors: Ints
    begin: Ints
    freed: Ints
    chosen: Bools
    loss: Ints
    free: Bools
    part: Ints
    near: Ints
    rows: Ints


def make_site(state: State, classes: Classes) -> Site:
    t, m, s = len(state.cell), len(state.rows), len(classes.loss)
    freed, loss, part = np.zeros((3, t), np.int64)
    near, rows = np.zeros((2, s + 1), np.int64)
    return Site(
        np.zeros(4, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m + 1, np.int64),
        freed,
        np.zeros(m, np.bool_),
        loss,
        np.zeros(t, np.bool_),
        part,
        near,
        rows,
    )


@njit
def rebuild_cells(given: Table, state: State, classes: Classes, site: Site) -> int:
    """A pass of steps that open one class each, if the loss falls in all: its tuples' cells are
    taken down, the class and then others that hold are made of their tuples, those that lose least
    a row first; the tuples that are left join cells where that adds least. Returns how many."""
    n = 0
    rank(state)
    for s in range(len(classes.loss)):
        if _choose(given, state, classes, site, s) and _take_down(state, site):
            before = 0
            for c in site.donors[: site.n[0]]:
                before += state.rows[c] * state.loss[c]
            if _build(given, state, classes, site, s, before) < before:
                n += _carry_out(given, state, site, before)
        for i in range(site.n[0]):
            site.chosen[site.donors[i]] = False
    return n


@njit
def _choose(given: Table, state: State, classes: Classes, site: Site, s: int) -> bool:
    """Chooses as donors the cells with tuples of the class that lose more than it, and where these
    have too few rows, more cells, those that lose most first."""
    site.n[0] = 0
    members = classes.tuples[classes.start[s] : classes.start[s + 1]]
    bound, rows = classes.loss[s] + 1, 0
    while True:
        most = -1
        for t in members:
            c = state.cell[t]
            if not site.chosen[c] and state.loss[c] >= bound:
                site.chosen[c] = True
                site.donors[site.n[0]] = c
                site.n[0] += 1
            elif not site.chosen[c]:
                most = max(most, state.loss[c])
        rows = 0
        for t in members:
            if site.chosen[state.cell[t]]:
                rows += given.weight[t]
        if site.n[0] == 0 or most < 0 or rows >= given.k:
            break
        bound = most
    return site.n[0] > 0 and rows >= given.k


@njit
def _take_down(state: State, site: Site) -> bool:
    """Lists the tuples of the donors, these by ascending loss; False if there are too many."""
    donors = site.donors[: site.n[0]]
    donors[:] = donors[np.argsort(state.loss[donors], kind="mergesort")]
    n = 0
    for i in range(len(donors)):
        site.begin[i] = n
        t = state.first[donors[i]]
        while t >= 0:
            if n == MOST_FREED:
                return False
            site.freed[n], site.loss[t] = t, state.loss[donors[i]]
            n += 1
            t = state.after[t]
    site.begin[len(donors)] = site.n[1] = n
    return True


@njit
def _build(given: Table, state: State, classes: Classes, site: Site, s: int, before: int) -> int:
    """Parts the freed tuples among new cells, class s first, and says what they may lose then; it
    stops where that is not less than before."""
    freed = site.freed[: site.n[1]]
    for t in freed:
        site.free[t], site.part[t] = True, -1
    _meet(given, classes, site)
    site.n[3] = 0
    members, start = classes.tuples, classes.start
    total = _take(given, state, site, members[start[s] : start[s + 1]], classes.loss[s])
    possible = site.n[3] == 1  # else the values of its tuples in the donors are too few
    donor = 0
    for i in range(site.n[2] + 1):
        near = site.near[i]
        while donor < site.n[0] and (
            i == site.n[2] or state.loss[site.donors[donor]] <= classes.loss[near]
        ):
            own = freed[site.begin[donor] : site.begin[donor + 1]]
            total += _take(given, state, site, own, state.loss[site.donors[donor]])
            donor += 1
        if i == site.n[2] or total >= before:
            break
        own = members[start[near] : start[near + 1]]
        total += _take(given, state, site, own, classes.loss[near])
    for t in freed:
        if site.free[t]:
            site.free[t] = False
            total += given.weight[t] * site.loss[t] * DEAR[0] // DEAR[1]
    return total if possible else before


@njit
def _meet(given: Table, classes: Classes, site: Site) -> None:
    """Lists the classes that have enough freed rows, those that lose least first."""
    near, rows, n = site.near, site.rows, 0
    for t in site.freed[: site.n[1]]:
        for c in classes.classes[classes.place[t] : classes.place[t + 1]]:
            if rows[c] == 0:
                near[n] = c
                n += 1
            rows[c] += given.weight[t]
    kept = 0
    for i in range(n):
        c = near[i]
        near[kept] = c
        kept += rows[c] >= given.k
        rows[c] = 0
    near[:kept] = np.sort(near[:kept])
    site.n[2] = kept


@njit
def _take(given: Table, state: State, site: Site, tuples: Ints, loss: int) -> int:
    """Makes a new cell of those of the tuples that are free, if it holds, and says what it loses at
    most, 0 if it is not made."""
    rows, state.bits[:] = 0, 0
    for t in tuples:
        if site.free[t]:
            rows += given.weight[t]
            for word in range(len(state.bits)):
                state.bits[word] |= given.bits[t, word]
    if rows < given.k or not diverse(given, state.bits):
        return 0
    for t in tuples:
        if site.free[t]:
            site.free[t], site.part[t] = False, site.n[3]
    site.n[3] += 1
    return rows * loss


@njit
def _carry_out(given: Table, state: State, site: Site, before: int) -> bool:
    """Makes the new cells and finds one for each tuple left, if the loss falls in all."""
    spare = np.flatnonzero(state.rows == 0)
    if len(spare) < site.n[3]:
        return False
    zero = np.zeros(given.code.shape[1], np.int32)
    donors, freed, now = site.donors[: site.n[0]], site.freed[: site.n[1]], 0
    state.n[2] = 0
    for t in freed:
        if site.part[t] >= 0:
            shift(given, state, t, spare[site.part[t]])
    for c in spare[: site.n[3]]:
        describe(given, state, c)
        enter(state, c)
        now += state.rows[c] * state.loss[c]
    state.step[donors] = 0  # no tuple joins them
    for t in freed:
        if site.part[t] < 0 and now < before:
            c, growth = cheapest(given, state, t, before - now, zero)
            now = now + growth if c >= 0 else before
            if c >= 0:
                move(given, state, t, c)
    state.step[donors] = -1
    if now < before:
        for c in donors:
            describe(given, state, c)
    else:
        undo(given, state, 0)
    strike(state)
    state.n[2] = 0
    return now < before
