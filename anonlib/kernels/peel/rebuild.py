"""Rebuilding: steps that make a class of the lattice a cell, and rebuild the cells that its tuples
came from."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Ints
from anonlib.compiled import njit
from anonlib.kernels.peel.cells import (
    INFINITE_LOSS,
    MOVED,
    TupleCells,
    describe_tuples,
    enter,
    find_cheapest_cell,
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
    is_diverse,
    make_peeling,
)

#: Tuples that would lose NEAR more in a class than now are left out of it. NEAR is 0.4 of a column,
#: in units of 2^-20.
NEAR = 2**20 * 2 // 5

#: Room for listed classes: their tuples, in total, are at most ROOM times the tuples of the table.
ROOM = 64

#: The counters of `Listing.n`: classes (LISTED_CLASSES), and the sum of their tuples
#: (LISTED_TUPLES).
LISTED_CLASSES, LISTED_TUPLES = range(2)


class LatticeClasses(NamedTuple):
    """s classes of t tuples, by ascending loss.

    Attributes:
        start: int64[s + 1]. Where the tuples of each class begin in `tuples`.
        tuples: int64. The tuples, class by class.
        loss: int64[s]. The loss of one row of each class.
        place: int64[t + 1]. Where the classes of each tuple begin in `classes`.
        classes: int64. The classes, tuple by tuple.
    """

    start: Ints
    tuples: Ints
    loss: Ints
    place: Ints
    classes: Ints


class Listing(NamedTuple):
    """The classes listed so far, and scratch for the classes of one node.

    Attributes:
        tuples: int64[ROOM t]. The tuples of the listed classes, class by class.
        ends: int64[ROOM t]. Where the tuples of each class end.
        loss: int64[ROOM t]. The loss of one row of each class.
        n: int64[2]. Counters, see `LISTED_CLASSES` and `LISTED_TUPLES`.
        size: int64[t]. Scratch: the tuples of each class of the node; 0 if it is not listed.
        spot: int64[t]. Scratch: the place of the next tuple of each class.
        node_loss: int64[t]. Scratch: the loss of one row of each class.
    """

    tuples: Ints
    ends: Ints
    loss: Ints
    n: Ints
    size: Ints
    spot: Ints
    node_loss: Ints


def find_classes(table: TupleTable, lattice: Lattice, state: TupleCells) -> LatticeClasses:
    """Finds the lattice classes that may become cells.

    Such a class has enough rows and distinct values, and some of its tuples lose less in it than
    now. Tuples that would lose `NEAR` more are left out. The lattice must have stages. Cost O(t n)
    for n nodes.
    """
    now = np.where(state.cell >= 0, state.loss[state.cell], -INFINITE_LOSS)
    t = len(now)
    tuples, ends, loss = np.zeros((3, ROOM * t), np.int64)
    size, spot, node_loss = np.zeros((3, t), np.int64)
    listing = Listing(tuples, ends, loss, np.zeros(2, np.int64), size, spot, node_loss)
    list_classes(table, lattice, make_peeling(table), now, listing)
    n = listing.n[LISTED_CLASSES]
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
    table: TupleTable, lattice: Lattice, work: Peeling, now: Ints, listing: Listing
) -> None:
    """Adds the classes of all nodes that may become cells (see `find_classes`) to `listing`, while
    there is room.

    now: int64[t]. The present loss of one row of each tuple.
    """
    most = now.max()
    for node in range(len(lattice.height)):
        if lattice.low[node] >= most:
            continue
        left, right = lattice.left[lattice.part[0, node]], lattice.right[lattice.part[1, node]]
        if not _select(left, right, now, work):
            continue
        classify(table, lattice, work, node)
        if not _append(left, right, now, work, listing):
            return


@njit
def _select(left: Codes, right: Codes, now: Ints, work: Peeling) -> bool:
    """Lists the tuples that would not lose `NEAR` more at the node. Returns whether any tuple would
    lose less than now."""
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
def _append(left: Codes, right: Codes, now: Ints, work: Peeling, listing: Listing) -> bool:
    """Adds the current classes that fit and in which some tuple loses less than now. Returns False
    if there is no room."""
    size, spot, node_loss, n = listing.size, listing.spot, listing.node_loss, listing.n
    size[: work.at[CLASSES]], spot[: work.at[CLASSES]] = 0, 0
    for i in range(work.at[LISTED]):
        t, g = work.item[i], work.group[i]
        spot[g] += 1
        node_loss[g] = left[t] + right[t]
        if work.fits[g] and node_loss[g] < now[t]:
            size[g] = 1
    total = n[LISTED_TUPLES]
    for g in range(work.at[CLASSES]):
        size[g] *= spot[g]
        total += size[g]
    if total > len(listing.tuples):
        return False
    for g in range(work.at[CLASSES]):
        spot[g] = n[LISTED_TUPLES]
        if size[g] > 0:
            n[LISTED_TUPLES] += size[g]
            listing.ends[n[LISTED_CLASSES]] = n[LISTED_TUPLES]
            listing.loss[n[LISTED_CLASSES]] = node_loss[g]
            n[LISTED_CLASSES] += 1
    for i in range(work.at[LISTED]):
        t, g = work.item[i], work.group[i]
        if size[g] > 0:
            listing.tuples[spot[g]] = t
            spot[g] += 1
    return True


#: The most tuples that a step frees.
MOST_FREED = 300

#: The expected loss of tuples that get no new cell, as a fraction (numerator, denominator) of their
#: loss before.
DEAR = 6, 5

#: The counters of `Site.n`: donors (DONORS), freed tuples (FREED), near classes (CLOSE), and new
#: cells (BUILT).
DONORS, FREED, CLOSE, BUILT = range(4)


class Site(NamedTuple):
    """The cells that a step takes down (donors), and the new cells.

    Attributes:
        n: int64[4]. Counters, see `DONORS`, `FREED`, `CLOSE` and `BUILT`.
        donors: int64[m]. The donors: cells whose tuples are freed.
        begin: int64[m + 1]. Where the tuples of each donor begin in `pool`.
        pool: int64[t]. The freed tuples, donor by donor.
        is_donor: bool[m]. Whether each cell is a donor.
        loss: int64[t]. The loss of one row of each freed tuple, before the step.
        free: bool[t]. Whether a freed tuple has no new cell yet.
        part: int64[t]. The new cell of each freed tuple; -1 for none.
        near: int64[s + 1]. The near classes: those with k or more freed rows.
        rows: int64[s + 1]. The freed rows of each class; 0 between steps.
    """

    n: Ints
    donors: Ints
    begin: Ints
    pool: Ints
    is_donor: Bools
    loss: Ints
    free: Bools
    part: Ints
    near: Ints
    rows: Ints


def make_site(state: TupleCells, classes: LatticeClasses) -> Site:
    t, m, s = len(state.cell), len(state.rows), len(classes.loss)
    pool, loss, part = np.zeros((3, t), np.int64)
    near, rows = np.zeros((2, s + 1), np.int64)
    return Site(
        np.zeros(4, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m + 1, np.int64),
        pool,
        np.zeros(m, np.bool_),
        loss,
        np.zeros(t, np.bool_),
        part,
        near,
        rows,
    )


@njit
def rebuild_cells(table: TupleTable, state: TupleCells, classes: LatticeClasses, site: Site) -> int:
    """A pass of steps. Each step makes one class a cell, if the total loss falls.

    A step takes down cells that have tuples of the class. It makes new cells of the freed tuples:
    first the class, then other classes or remains that hold, lowest loss per row first. The other
    freed tuples join the cells where they add least. Returns the number of steps.
    """
    n = 0
    rank(state)
    for s in range(len(classes.loss)):
        if _choose(table, state, classes, site, s) and _take_down(state, site):
            before = 0
            for c in site.donors[: site.n[DONORS]]:
                before += state.rows[c] * state.loss[c]
            if _build(table, state, classes, site, s, before) < before:
                n += _carry_out(table, state, site, before)
        for i in range(site.n[DONORS]):
            site.is_donor[site.donors[i]] = False
    return n


@njit
def _choose(
    table: TupleTable, state: TupleCells, classes: LatticeClasses, site: Site, s: int
) -> bool:
    """Chooses the donors: cells that have tuples of the class and lose more per row than it. While
    the donors have too few rows of the class, it adds the cells of the next lower loss. Returns
    whether there are enough rows."""
    site.n[DONORS] = 0
    members = classes.tuples[classes.start[s] : classes.start[s + 1]]
    bound, rows = classes.loss[s] + 1, 0
    while True:
        most = -1
        for t in members:
            c = state.cell[t]
            if not site.is_donor[c] and state.loss[c] >= bound:
                site.is_donor[c] = True
                site.donors[site.n[DONORS]] = c
                site.n[DONORS] += 1
            elif not site.is_donor[c]:
                most = max(most, state.loss[c])
        rows = 0
        for t in members:
            if site.is_donor[state.cell[t]]:
                rows += table.weight[t]
        if site.n[DONORS] == 0 or most < 0 or rows >= table.k:
            break
        bound = most
    return site.n[DONORS] > 0 and rows >= table.k


@njit
def _take_down(state: TupleCells, site: Site) -> bool:
    """Sorts the donors by ascending loss, and lists their tuples. Returns False if there are too
    many tuples."""
    donors = site.donors[: site.n[DONORS]]
    donors[:] = donors[np.argsort(state.loss[donors], kind="mergesort")]
    n = 0
    for i in range(len(donors)):
        site.begin[i] = n
        t = state.first[donors[i]]
        while t >= 0:
            if n == MOST_FREED:
                return False
            site.pool[n], site.loss[t] = t, state.loss[donors[i]]
            n += 1
            t = state.after[t]
    site.begin[len(donors)] = site.n[FREED] = n
    return True


@njit
def _build(
    table: TupleTable, state: TupleCells, classes: LatticeClasses, site: Site, s: int, before: int
) -> int:
    """Assigns the freed tuples to new cells, class s first. Returns an estimate of their loss.

    It stops early, and returns at least `before`, if the loss would not fall.
    """
    pool = site.pool[: site.n[FREED]]
    for t in pool:
        site.free[t], site.part[t] = True, -1
    _meet(table, classes, site)
    site.n[BUILT] = 0
    members, start = classes.tuples, classes.start
    total = _take(table, state, site, members[start[s] : start[s + 1]], classes.loss[s])
    possible = site.n[BUILT] == 1  # else the freed tuples of class s have too few distinct values
    donor = 0
    for i in range(site.n[CLOSE] + 1):
        near = site.near[i]
        while donor < site.n[DONORS] and (
            i == site.n[CLOSE] or state.loss[site.donors[donor]] <= classes.loss[near]
        ):
            own = pool[site.begin[donor] : site.begin[donor + 1]]
            total += _take(table, state, site, own, state.loss[site.donors[donor]])
            donor += 1
        if i == site.n[CLOSE] or total >= before:
            break
        own = members[start[near] : start[near + 1]]
        total += _take(table, state, site, own, classes.loss[near])
    for t in pool:
        if site.free[t]:
            site.free[t] = False
            total += table.weight[t] * site.loss[t] * DEAR[0] // DEAR[1]
    return total if possible else before


@njit
def _meet(table: TupleTable, classes: LatticeClasses, site: Site) -> None:
    """Lists the near classes: those with at least k freed rows, by ascending loss."""
    near, rows, n = site.near, site.rows, 0
    for t in site.pool[: site.n[FREED]]:
        for c in classes.classes[classes.place[t] : classes.place[t + 1]]:
            if rows[c] == 0:
                near[n] = c
                n += 1
            rows[c] += table.weight[t]
    kept = 0
    for i in range(n):
        c = near[i]
        near[kept] = c
        kept += rows[c] >= table.k
        rows[c] = 0
    near[:kept] = np.sort(near[:kept])
    site.n[CLOSE] = kept


@njit
def _take(table: TupleTable, state: TupleCells, site: Site, tuples: Ints, loss: int) -> int:
    """Makes a new cell of the free tuples among `tuples`, if they have enough rows and distinct
    values. Returns an upper bound of its loss; 0 without a cell. loss: a bound for one row."""
    rows, state.bits[:] = 0, 0
    for t in tuples:
        if site.free[t]:
            rows += table.weight[t]
            for word in range(len(state.bits)):
                state.bits[word] |= table.bits[t, word]
    if rows < table.k or not is_diverse(table, state.bits):
        return 0
    for t in tuples:
        if site.free[t]:
            site.free[t], site.part[t] = False, site.n[BUILT]
    site.n[BUILT] += 1
    return rows * loss


@njit
def _carry_out(table: TupleTable, state: TupleCells, site: Site, before: int) -> bool:
    """Makes the new cells, and moves each remaining tuple to the cell where it adds least. Undoes
    all this if the total loss does not fall. Returns whether it falls."""
    spare = np.flatnonzero(state.rows == 0)
    if len(spare) < site.n[BUILT]:
        return False
    zero = np.zeros(table.code.shape[1], np.int32)
    donors, pool, now = site.donors[: site.n[DONORS]], site.pool[: site.n[FREED]], 0
    state.n[MOVED] = 0
    for t in pool:
        if site.part[t] >= 0:
            shift(table, state, t, spare[site.part[t]])
    for c in spare[: site.n[BUILT]]:
        describe_tuples(table, state, c)
        enter(state, c)
        now += state.rows[c] * state.loss[c]
    state.step[donors] = 0  # no tuple joins them
    for t in pool:
        if site.part[t] < 0 and now < before:
            c, growth = find_cheapest_cell(table, state, t, before - now, zero)
            now = now + growth if c >= 0 else before
            if c >= 0:
                move_tuple(table, state, t, c)
    state.step[donors] = -1
    if now < before:
        for c in donors:
            describe_tuples(table, state, c)
    else:
        undo(table, state, 0)
    strike(state)
    state.n[MOVED] = 0
    return now < before
