"""Classes of the lattice that may replace cells: what `_peel_rebuild` tries."""

from typing import NamedTuple

import numpy as np

from anonlib.block import Codes, Ints
from anonlib.kernels._numba import njit
from anonlib.kernels._peel_core import Lattice, Peeling, Table, classify, make_peeling
from anonlib.kernels._peel_state import EVERY, State

#: A class has the tuples that would lose at most so much more in it, in units of 2^-20.
NEAR = 2**20 * 2 // 5
#: Classes are listed until they have so many times the tuples of the table together.
ROOM = 64


class Classes(NamedTuple):
    """s classes, by ascending loss.

    tuples: int64, those of class i from start[i] to start[i + 1] - 1; loss: int64[s], what a row
    loses. classes: int64, those of tuple t from place[t] to place[t + 1] - 1.
    """

    start: Ints
    tuples: Ints
    loss: Ints
    place: Ints
    classes: Ints


class Listing(NamedTuple):
    """Classes as they are found. tuples: int64[64 t], class by class; ends: int64[64 t], where
    those of each end; loss: int64[64 t]. n: of classes, of tuples. Of the classes at a node: size:
    int64[t], 0 for those that are not kept; spot: int64[t], where the next tuple goes; lost: int64
    [t], what a row loses."""

    tuples: Ints
    ends: Ints
    loss: Ints
    n: Ints
    size: Ints
    spot: Ints
    lost: Ints


def find_classes(given: Table, lattice: Lattice, state: State) -> Classes:
    """The classes of a lattice with stages that hold what a cell must have for sure, of the tuples
    that are `NEAR`, where some tuples lose less than now. Cost O(t n) for n nodes."""
    now = np.where(state.cell >= 0, state.loss[state.cell], -EVERY)
    t = len(now)
    tuples, ends, loss = np.zeros((3, ROOM * t), np.int64)
    size, spot, lost = np.zeros((3, t), np.int64)
    found = Listing(tuples, ends, loss, np.zeros(2, np.int64), size, spot, lost)
    list_classes(given, lattice, make_peeling(given), now, found)
    n = found.n[0]
    order = np.argsort(loss[:n], kind="stable")
    sizes = np.diff(ends[:n], prepend=0)[order]
    start = np.append(0, np.cumsum(sizes))
    number = np.repeat(np.arange(n), sizes)
    tuples = tuples[np.arange(start[-1]) + (ends[order] - start[1:])[number]]
    place = np.append(0, np.cumsum(np.bincount(tuples, minlength=t)))
    return Classes(start, tuples, loss[order], place, number[np.argsort(tuples, kind="stable")])


@njit
def list_classes(given: Table, lattice: Lattice, work: Peeling, now: Ints, found: Listing) -> None:
    """now: int64[t], what a row of each tuple loses."""
    most = now.max()
    for node in range(len(lattice.height)):
        if lattice.low[node] >= most:
            continue
        left, right = lattice.left[lattice.part[0, node]], lattice.right[lattice.part[1, node]]
        if not _select(left, right, now, work):
            continue
        classify(given, lattice, work, node)
        if not _append(left, right, now, work, found):
            return


@njit
def _select(left: Codes, right: Codes, now: Ints, work: Peeling) -> bool:
    """Lists the tuples that are near; whether any loses less at the node."""
    n = gaining = 0
    for t in range(len(now)):
        gaining += left[t] + right[t] < now[t]
    if gaining == 0:
        return False
    for t in range(len(now)):
        work.item[n] = t
        n += left[t] + right[t] < now[t] + NEAR
    work.at[5] = n
    return True


@njit
def _append(left: Codes, right: Codes, now: Ints, work: Peeling, found: Listing) -> bool:
    """Adds the classes at hand that may be cells and gain; False if there is no room."""
    size, spot, lost, n = found.size, found.spot, found.lost, found.n
    size[: work.at[4]], spot[: work.at[4]] = 0, 0
    for i in range(work.at[5]):
        t, g = work.item[i], work.group[i]
        spot[g] += 1
        lost[g] = left[t] + right[t]
        if work.fits[g] and lost[g] < now[t]:
            size[g] = 1
    total = n[1]
    for g in range(work.at[4]):
        size[g] *= spot[g]
        total += size[g]
    if total > len(found.tuples):
        return False
    for g in range(work.at[4]):
        spot[g] = n[1]
        if size[g] > 0:
            n[1] += size[g]
            found.ends[n[0]] = n[1]
            found.loss[n[0]] = lost[g]
            n[0] += 1
    for i in range(work.at[5]):
        t, g = work.item[i], work.group[i]
        if size[g] > 0:
            found.tuples[spot[g]] = t
            spot[g] += 1
    return True
