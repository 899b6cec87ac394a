"""Steps that open a class of the lattice: the cells that its tuples come from are built anew."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Ints
from anonlib.compiled import njit
from anonlib.kernels.peel.cells import (
    EVERY,
    MOVED,
    TupleCells,
    cheapest,
    describe_tuples,
    enter,
    move_tuple,
    rank,
    shift,
    strike,
    undo,
)
from anonlib.kernels.peel.core import (
    CLASSES,
    LISTED,
    Lattice,
    Peeling,
    TupleTable,
    classify,
    diverse,
    make_peeling,
)

#: A class has the tuples that would lose at most NEAR more in it (units of 2^-20: 0.4 of a column).
NEAR = 2**20 * 2 // 5

#: Classes are listed until together they have ROOM times the tuples of the table.
ROOM = 64

#: The places of the counters in `Listing.n`: classes, and their tuples together.
LISTED_CLASSES, LISTED_TUPLES = range(2)


class LatticeClasses(NamedTuple):
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
    """The classes listed so far, and work space for the classes of one node.

    Attributes:
        tuples: int64[ROOM t]. Their tuples, class by class.
        ends: int64[ROOM t]. Where the tuples of each class end.
        loss: int64[ROOM t]. The loss of a row of each class.
        n: int64[2]. Counters, by `LISTED_CLASSES` and `LISTED_TUPLES`.
        size: int64[t]. Tuples of each class of the node; 0 if it is not listed.
        spot: int64[t]. Where the next tuple of each class goes.
        lost: int64[t]. The loss of a row of each class.
    """

    tuples: Ints
    ends: Ints
    loss: Ints
    n: Ints
    size: Ints
    spot: Ints
    lost: Ints


def find_classes(given: TupleTable, lattice: Lattice, state: TupleCells) -> LatticeClasses:
    """The classes of a lattice with stages that hold what a cell must have for sure, of the tuples
    that are `NEAR`, where some tuples lose less than now. Cost O(t n) for n nodes."""
    now = np.where(state.cell >= 0, state.loss[state.cell], -EVERY)
    t = len(now)
    tuples, ends, loss = np.zeros((3, ROOM * t), np.int64)
    size, spot, lost = np.zeros((3, t), np.int64)
    found = Listing(tuples, ends, loss, np.zeros(2, np.int64), size, spot, lost)
    list_classes(given, lattice, make_peeling(given), now, found)
    n = found.n[LISTED_CLASSES]
    order = np.argsort(loss[:n], kind="stable")
    sizes = np.diff(ends[:n], prepend=0)[order]
    start = np.append(0, np.cumsum(sizes))
    number = np.repeat(np.arange(n), sizes)
    tuples = tuples[np.arange(start[-1]) + (ends[order] - start[1:])[number]]
    place = np.append(0, np.cumsum(np.bincount(tuples, minlength=t)))
    return LatticeClasses(
        start, tuples, loss[order], place, number[np.argsort(tuples, kind="stable")]
    )


@njit
def list_classes(
    given: TupleTable, lattice: Lattice, work: Peeling, now: Ints, found: Listing
) -> None:
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
    work.at[LISTED] = n
    return True


@njit
def _append(left: Codes, right: Codes, now: Ints, work: Peeling, found: Listing) -> bool:
    """Adds the classes at hand that may be cells and gain; False if there is no room."""
    size, spot, lost, n = found.size, found.spot, found.lost, found.n
    size[: work.at[CLASSES]], spot[: work.at[CLASSES]] = 0, 0
    for i in range(work.at[LISTED]):
        t, g = work.item[i], work.group[i]
        spot[g] += 1
        lost[g] = left[t] + right[t]
        if work.fits[g] and lost[g] < now[t]:
            size[g] = 1
    total = n[LISTED_TUPLES]
    for g in range(work.at[CLASSES]):
        size[g] *= spot[g]
        total += size[g]
    if total > len(found.tuples):
        return False
    for g in range(work.at[CLASSES]):
        spot[g] = n[LISTED_TUPLES]
        if size[g] > 0:
            n[LISTED_TUPLES] += size[g]
            found.ends[n[LISTED_CLASSES]] = n[LISTED_TUPLES]
            found.loss[n[LISTED_CLASSES]] = lost[g]
            n[LISTED_CLASSES] += 1
    for i in range(work.at[LISTED]):
        t, g = work.item[i], work.group[i]
        if size[g] > 0:
            found.tuples[spot[g]] = t
            spot[g] += 1
    return True


#: The most tuples that a step frees.
MOST_FREED = 300

#: The expected loss of tuples that no new cell takes, as a fraction (numerator, denominator) of
#: their loss before.
DEAR = 6, 5

#: The places of the counters in `Site.n`: donors; freed tuples; near classes; new cells.
DONORS, FREED, CLOSE, BUILT = range(4)


class Site(NamedTuple):
    """The cells that a step takes down and builds. n: int64[4], counters, by `DONORS` to `BUILT`.

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


def make_site(state: TupleCells, classes: LatticeClasses) -> Site:
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
def rebuild_cells(given: TupleTable, state: TupleCells, classes: LatticeClasses, site: Site) -> int:
    """A pass of steps that open one class each, if the loss falls in all: its tuples' cells are
    taken down, the class and then others that hold are made of their tuples, those that lose least
    a row first; the tuples that are left join cells where that adds least. Returns how many."""
    n = 0
    rank(state)
    for s in range(len(classes.loss)):
        if _choose(given, state, classes, site, s) and _take_down(state, site):
            before = 0
            for c in site.donors[: site.n[DONORS]]:
                before += state.rows[c] * state.loss[c]
            if _build(given, state, classes, site, s, before) < before:
                n += _carry_out(given, state, site, before)
        for i in range(site.n[DONORS]):
            site.chosen[site.donors[i]] = False
    return n


@njit
def _choose(
    given: TupleTable, state: TupleCells, classes: LatticeClasses, site: Site, s: int
) -> bool:
    """Chooses as donors the cells with tuples of the class that lose more than it, and where these
    have too few rows, more cells, those that lose most first."""
    site.n[DONORS] = 0
    members = classes.tuples[classes.start[s] : classes.start[s + 1]]
    bound, rows = classes.loss[s] + 1, 0
    while True:
        most = -1
        for t in members:
            c = state.cell[t]
            if not site.chosen[c] and state.loss[c] >= bound:
                site.chosen[c] = True
                site.donors[site.n[DONORS]] = c
                site.n[DONORS] += 1
            elif not site.chosen[c]:
                most = max(most, state.loss[c])
        rows = 0
        for t in members:
            if site.chosen[state.cell[t]]:
                rows += given.weight[t]
        if site.n[DONORS] == 0 or most < 0 or rows >= given.k:
            break
        bound = most
    return site.n[DONORS] > 0 and rows >= given.k


@njit
def _take_down(state: TupleCells, site: Site) -> bool:
    """Lists the tuples of the donors, these by ascending loss; False if there are too many."""
    donors = site.donors[: site.n[DONORS]]
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
    site.begin[len(donors)] = site.n[FREED] = n
    return True


@njit
def _build(
    given: TupleTable, state: TupleCells, classes: LatticeClasses, site: Site, s: int, before: int
) -> int:
    """Parts the freed tuples among new cells, class s first, and says what they may lose then; it
    stops where that is not less than before."""
    freed = site.freed[: site.n[FREED]]
    for t in freed:
        site.free[t], site.part[t] = True, -1
    _meet(given, classes, site)
    site.n[BUILT] = 0
    members, start = classes.tuples, classes.start
    total = _take(given, state, site, members[start[s] : start[s + 1]], classes.loss[s])
    possible = site.n[BUILT] == 1  # else the values of its tuples in the donors are too few
    donor = 0
    for i in range(site.n[CLOSE] + 1):
        near = site.near[i]
        while donor < site.n[DONORS] and (
            i == site.n[CLOSE] or state.loss[site.donors[donor]] <= classes.loss[near]
        ):
            own = freed[site.begin[donor] : site.begin[donor + 1]]
            total += _take(given, state, site, own, state.loss[site.donors[donor]])
            donor += 1
        if i == site.n[CLOSE] or total >= before:
            break
        own = members[start[near] : start[near + 1]]
        total += _take(given, state, site, own, classes.loss[near])
    for t in freed:
        if site.free[t]:
            site.free[t] = False
            total += given.weight[t] * site.loss[t] * DEAR[0] // DEAR[1]
    return total if possible else before


@njit
def _meet(given: TupleTable, classes: LatticeClasses, site: Site) -> None:
    """Lists the classes that have enough freed rows, those that lose least first."""
    near, rows, n = site.near, site.rows, 0
    for t in site.freed[: site.n[FREED]]:
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
    site.n[CLOSE] = kept


@njit
def _take(given: TupleTable, state: TupleCells, site: Site, tuples: Ints, loss: int) -> int:
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
            site.free[t], site.part[t] = False, site.n[BUILT]
    site.n[BUILT] += 1
    return rows * loss


@njit
def _carry_out(given: TupleTable, state: TupleCells, site: Site, before: int) -> bool:
    """Makes the new cells and finds one for each tuple left, if the loss falls in all."""
    spare = np.flatnonzero(state.rows == 0)
    if len(spare) < site.n[BUILT]:
        return False
    zero = np.zeros(given.code.shape[1], np.int32)
    donors, freed, now = site.donors[: site.n[DONORS]], site.freed[: site.n[FREED]], 0
    state.n[MOVED] = 0
    for t in freed:
        if site.part[t] >= 0:
            shift(given, state, t, spare[site.part[t]])
    for c in spare[: site.n[BUILT]]:
        describe_tuples(given, state, c)
        enter(state, c)
        now += state.rows[c] * state.loss[c]
    state.step[donors] = 0  # no tuple joins them
    for t in freed:
        if site.part[t] < 0 and now < before:
            c, growth = cheapest(given, state, t, before - now, zero)
            now = now + growth if c >= 0 else before
            if c >= 0:
                move_tuple(given, state, t, c)
    state.step[donors] = -1
    if now < before:
        for c in donors:
            describe_tuples(given, state, c)
    else:
        undo(given, state, 0)
    strike(state)
    state.n[MOVED] = 0
    return now < before
