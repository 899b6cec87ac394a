"""Prices of rows for `_bound`: the search for k rows whose prices exceed their squares.

`share` is float64[n, n] throughout: the squared distances of rows, divided by k. So the sum of
squares of k rows about their mean is the sum of `share` over their pairs. The slack of k rows is
this sum minus their prices.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, sort

#: With more rows to choose from, a search uses the nearest rows of the whole block.
CLOSE = 500


class Branches(NamedTuple):
    """A depth-first search for the k rows of least slack. Level t has chosen t + 1 rows.

    Attributes:
        item: int64[k, n]. The rows that a level can choose from, by ascending `key`.
        total: float64[k, n]. For each of them: the sum of its `share` with the rows chosen.
        key: float64[k, n]. For each: a lower bound of what it adds to the slack.
        size: int64[k]. How many rows a level can choose from.
        place: int64[k]. The next one it tries.
        slack: float64[k]. The slack of the rows chosen.
        choice: int64[k]. The rows chosen.
        half: float64[n, k]. For each row: half the sum of its m least `share` with rows that the
            first level can choose from.
        least: float64[k]. Scratch.
        one: float64[n]. Scratch.
        sorting: int64[n]. Scratch.
    """

    item: Ints
    total: Floats
    key: Floats
    size: Ints
    place: Ints
    slack: Floats
    choice: Ints
    half: Floats
    least: Floats
    one: Floats
    sorting: Ints


@njit
def make_branches(n: int, k: int) -> Branches:
    return Branches(
        np.empty((k, n), np.int64),
        np.empty((k, n)),
        np.empty((k, n)),
        np.zeros(k, np.int64),
        np.zeros(k, np.int64),
        np.zeros(k),
        np.zeros(k, np.int64),
        np.zeros((n, k)),
        np.empty(k),
        np.empty(n),
        np.empty(n, np.int64),
    )


@njit
def lower_prices(
    share: Floats,
    near: Floats,
    price: Floats,
    order: Ints,
    tolerance: float,
    nodes: int,
    sets: Ints,
) -> int:
    """Lowers prices until no k rows have a slack below -tolerance.

    Each search looks only at sets of a row and rows before it, so that a price that was lowered
    stays as it is. Cost: O(n) a row, and the search.

    Args:
        share: float64[n, n].
        near: float64[n, k]. Half the sum of the m least `share` of each row, m < k.
        price: float64[n]. The prices, lowered in place.
        order: int64[n]. The rows; searches are quickest by ascending price.
        tolerance: How far below 0 a slack may stay.
        nodes: The most choices that the search of a row follows. What it leaves out counts by its
            bound.
        sets: int64[., k]. Room for sets of k rows whose slack was negative, several per row.

    Returns:
        The number of sets in `sets`.
    """
    n, k = near.shape
    branches, n_found = make_branches(n, k), 0
    for rank in range(k - 1, n):
        row = order[rank]
        if _begin(share, near, price, order[:rank], row, branches, -tolerance):
            low, n_found = _search(share, price, branches, -tolerance, nodes, sets, n_found)
            price[row] += low
    return n_found


@njit
def _begin(
    share: Floats,
    near: Floats,
    price: Floats,
    others: Ints,
    row: int,
    branches: Branches,
    most: float,
) -> bool:
    """Fills level 0 with the rows that can be in a set with `row` and a slack below `most`.
    Returns whether there are enough."""
    k = near.shape[1]
    item, key, half = branches.item[0], branches.key[0], branches.half
    for i in range(len(others)):
        item[i] = others[i]
        key[i] = share[row, others[i]] + near[others[i], k - 2] - price[others[i]]
    n = _leave(item, key, len(others), k - 1, most + price[row], branches.least)
    if n < k - 1:
        return False
    if n > CLOSE:
        for i in range(n):
            for m in range(k):
                half[item[i], m] = near[item[i], m]
    else:
        for i in range(n):
            for j in range(n):
                branches.one[j] = share[item[i], item[j]] if i != j else np.inf
            _smallest(branches.one, n, k - 2, branches.least)
            half[item[i], 0] = 0.0
            for m in range(k - 2):
                half[item[i], m + 1] = half[item[i], m] + 0.5 * branches.least[m]
            key[i] = share[row, item[i]] + half[item[i], k - 2] - price[item[i]]
        n = _leave(item, key, n, k - 1, most + price[row], branches.least)
    branches.size[0], branches.place[0] = n, 0
    branches.slack[0], branches.choice[0] = -price[row], row
    for i in range(n):
        branches.total[0, i] = share[row, item[i]]
    _sort(branches, 0)
    return bool(n >= k - 1)


@njit
def _leave(item: Ints, key: Floats, n: int, r: int, room: float, least: Floats) -> int:
    """Leaves in the list only items whose key and the r - 1 least of the others add up to less than
    `room`. Returns their number."""
    if n < r:
        return 0
    _smallest(key, n, r, least)
    total = 0.0
    for i in range(r - 1):
        total += least[i]
    left = 0
    for i in range(n):
        if max(key[i], least[r - 1]) + total < room:
            item[left], key[left] = item[i], key[i]
            left += 1
    return left


@njit
def _smallest(value: Floats, n: int, r: int, least: Floats) -> None:
    """Writes the r least of the first n values to `least`, ascending."""
    filled = 0
    for i in range(n):
        x = value[i]
        if filled < r:
            place = filled
            filled += 1
        elif r > 0 and x < least[r - 1]:
            place = r - 1
        else:
            continue
        while place > 0 and least[place - 1] > x:
            least[place] = least[place - 1]
            place -= 1
        least[place] = x
    for i in range(filled, r):
        least[i] = np.inf


@njit
def _sort(branches: Branches, level: int) -> None:
    """Sorts what a level can choose from by `key`."""
    n, item, total = branches.size[level], branches.item[level], branches.total[level]
    for i in range(n):
        branches.sorting[i] = i
    sort(branches.key[level], branches.sorting, n)
    for i in range(n):
        branches.one[i] = total[branches.sorting[i]]
        branches.sorting[i] = item[branches.sorting[i]]
    for i in range(n):
        total[i], item[i] = branches.one[i], branches.sorting[i]


@njit
def _search(
    share: Floats,
    price: Floats,
    branches: Branches,
    most: float,
    nodes: int,
    sets: Ints,
    n_found: int,
) -> tuple[float, int]:
    """A lower bound of the least slack if that is below `most`, else 0; and the sets found so far.
    The bound is the least slack itself, if `nodes` choices are enough."""
    k = len(branches.size)
    low, level = 0.0, 0
    while level >= 0:
        place, r = branches.place[level], k - 1 - level
        bound = branches.slack[level]
        for i in range(place, min(place + r, branches.size[level])):
            bound += branches.key[level, i]
        if place + r > branches.size[level] or bound >= most:
            level -= 1
            continue
        if nodes <= 0:
            low = min(low, bound)
            level -= 1
            continue
        nodes -= 1
        branches.place[level] += 1
        branches.choice[level + 1] = branches.item[level, place]
        if r > 2:
            level = _descend(share, price, branches, level, most)
            continue
        # With one row to choose, the first is the best, and its bound is the slack.
        slack = bound if r == 1 else _complete(share, price, branches, level)
        if slack < most:
            most = low = min(low, slack)
            if n_found < len(sets):
                for i in range(k):
                    sets[n_found, i] = branches.choice[i]
                n_found += 1
    return low, n_found


@njit
def _descend(share: Floats, price: Floats, branches: Branches, level: int, most: float) -> int:
    """Prepares the level below for the row that `level` has just chosen. Returns the level to go on
    with: the one below, if it has enough rows to choose from."""
    below, place = level + 1, branches.place[level] - 1
    r = len(branches.size) - 1 - below
    row = branches.choice[below]
    slack = branches.slack[level] + branches.total[level, place] - price[row]
    n, key = 0, branches.key[below]
    for i in range(place + 1, branches.size[level]):
        item = branches.item[level, i]
        branches.item[below, n] = item
        branches.total[below, n] = branches.total[level, i] + share[row, item]
        key[n] = branches.total[below, n] + branches.half[item, r - 1] - price[item]
        n += 1
    _smallest(key, n, r, branches.least)
    total = slack
    for i in range(r - 1):
        total += branches.least[i]
    left = 0
    for i in range(n):
        if max(key[i], branches.least[r - 1]) + total < most:
            branches.item[below, left] = branches.item[below, i]
            branches.total[below, left] = branches.total[below, i]
            key[left] = key[i]
            left += 1
    branches.size[below], branches.place[below], branches.slack[below] = left, 0, slack
    if left < r:
        return level
    _sort(branches, below)
    return below


@njit
def _complete(share: Floats, price: Floats, branches: Branches, level: int) -> float:
    """Chooses the best last row beside the one that `level`, the last but one, has just chosen.
    Returns the slack of the k rows."""
    place, last = branches.place[level] - 1, len(branches.size) - 1
    row, best = branches.choice[last - 1], np.inf
    for i in range(place + 1, branches.size[level]):
        item = branches.item[level, i]
        added = branches.total[level, i] + share[row, item] - price[item]
        if added < best:
            best = added
            branches.choice[last] = item
    return float(branches.slack[level] + branches.total[level, place] - price[row] + best)
