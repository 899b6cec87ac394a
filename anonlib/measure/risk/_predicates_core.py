"""The compiled core of counts by predicates: looks at the rows of each one's rarest condition."""

import numpy as np

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.compiled import njit, njit_in_place


@njit
def arrange_rows(code: Ints, start: Ints) -> tuple[Codes, Codes]:
    """Sorts n rows by their codes. Cost: O(n).

    Args:
        code: int64[n]. The code of each row.
        start: int64[d + 1]. How many rows have a lower code, for each of d codes; then n.

    Returns:
        int32[n]. The rows by their codes.
        int32[n]. The place of each row in this order.
    """
    free = start.copy()
    order, place = np.empty(len(code), np.int32), np.empty(len(code), np.int32)
    for row in range(len(code)):
        at = free[code[row]]
        order[at], place[row] = row, at
        free[code[row]] = at + 1
    return order, place


@njit_in_place
def tally_rows(
    order: Codes,
    place: Codes,
    first: Ints,
    stop: Ints,
    bounds: Ints,
    condition: Ints,
    turn: Ints,
    number: Floats,
    flag: Bools,
    until_several: bool,
    tally: Floats,
) -> None:
    """Adds up the rows for which predicates hold. Cost: for each predicate, the rows of its rarest
    condition, and for each of these the other conditions up to one that fails.

    Args:
        order: int32[k, n]. n rows in each of k orders.
        place: int32[n, k]. The place of each row in these.
        first: int64[r]. Ranges of places: the first one of each.
        stop: int64[r]. The place after the last one.
        bounds: int64[c + 1]. Where the ranges of each of c conditions begin and end. Those of one
            condition ascend.
        condition: int64[p, k]. The condition of each of p predicates in each order; -1 for none.
        turn: int64[p, k]. The orders of each predicate's conditions, the rarest first; then the
            other orders.
        number: float64[n]. The number of each row; empty for none.
        flag: bool[n]. The side of each row.
        until_several: Whether a predicate's rows are counted only until two of the first side have
            different numbers.
        tally: float64[2, p, 3]. By side and predicate: the number of rows, their least and their
            greatest number. The rows are added to it.
    """
    for i in range(len(condition)):
        if until_several and tally[0, i, 1] < tally[0, i, 2]:
            continue
        rarest = turn[i, 0]
        c = condition[i, rarest]
        for r in range(bounds[c], bounds[c + 1]):
            for at in range(first[r], stop[r]):
                row = order[rarest, at]
                if not _holds(row, i, place, first, stop, bounds, condition, turn):
                    continue
                side = int(flag[row])
                tally[side, i, 0] += 1
                if len(number):
                    tally[side, i, 1] = min(tally[side, i, 1], number[row])
                    tally[side, i, 2] = max(tally[side, i, 2], number[row])
                    if until_several and tally[0, i, 1] < tally[0, i, 2]:
                        break
            if until_several and tally[0, i, 1] < tally[0, i, 2]:
                break


@njit_in_place
def _holds(
    row: int,
    i: int,
    place: Codes,
    first: Ints,
    stop: Ints,
    bounds: Ints,
    condition: Ints,
    turn: Ints,
) -> bool:
    """Whether all conditions of a predicate but its rarest one hold for a row."""
    for j in range(1, turn.shape[1]):
        k = turn[i, j]
        c = condition[i, k]
        if c < 0:
            break
        at, low, high = place[row, k], bounds[c], bounds[c + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if first[middle] <= at:
                low = middle
            else:
                high = middle
        if at < first[low] or at >= stop[low]:
            return False
    return True
