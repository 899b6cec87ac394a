"""How the categories of a nominal column may be parted by a target."""

from functools import cache
from itertools import combinations

import numpy as np

from anonlib.block import Bools, Floats, Ints

#: With at most so many categories in a node, every subset is tried.
MOST_EXHAUSTIVE = 8
#: A nominal column with more categories is cut by groups of them.
MOST_CATEGORIES = 64
MOST_GROUPS = 32
#: How many rows of the mean a category's own mean is worth where categories are grouped.
SHRINKAGE = 10.0


def subsets(sums: Floats, rows: Ints) -> Bools:
    """bool[s, c]: which of c categories go left, for each of s cuts, none twice.

    sums: float64[c, t], by category, the rows of each of t classes, or the sum of a numeric target
    (t is 1); rows: int64[c], all positive. Of up to MOST_EXHAUSTIVE categories all cuts are tried:
    where sides need so many rows, no order has them. Of more, those of the categories sorted by
    their mean, which without such a need has the best cut for two classes and for numbers
    (Breiman et al., Classification and regression trees, 1984, section 4.2.2); of more classes,
    sorted along the first principal component of their shares (Coppersmith, Hong, Hosking, 1999),
    and one category against the rest.
    """
    c = len(rows)
    if c <= MOST_EXHAUSTIVE:
        return _all(c)
    place = np.empty(c, np.int64)
    place[np.argsort(means(sums, rows), kind="stable")] = np.arange(c)
    prefixes: Bools = place[None, :] < np.arange(1, c)[:, None]
    if sums.shape[1] <= 2:
        return prefixes
    return np.concatenate([prefixes, np.eye(c, dtype=np.bool_)])


def groups(sums: Floats, rows: Ints) -> Ints:
    """int64[c]: the group, 0..MOST_GROUPS - 1, of each of many categories, in the order of the
    target and of like numbers of rows; the arguments as for `subsets`, rows may be 0.

    Rare categories are drawn to the mean of all: theirs is chance.
    """
    weight = SHRINKAGE / max(rows.sum(), 1)
    along = means(sums + sums.sum(axis=0) * weight, rows + rows.sum() * weight)
    order = np.argsort(along, kind="stable")
    before = np.cumsum(rows[order]) - rows[order] / 2
    group = np.empty(len(rows), np.int64)
    group[order] = np.minimum(before * MOST_GROUPS / max(rows.sum(), 1), MOST_GROUPS - 1)
    return group


def means(sums: Floats, rows: Floats | Ints) -> Floats:
    """float64[c]: where each category stands: its mean, or share of the last of two classes, or its
    shares along their first principal component."""
    shares = sums / rows[:, None]
    if sums.shape[1] <= 2:
        return np.asarray(shares[:, -1], np.float64)
    apart = shares - sums.sum(axis=0) / rows.sum()
    axis = np.linalg.svd(apart * np.sqrt(rows)[:, None], full_matrices=False)[2][0]
    along: Floats = apart @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    return along


@cache
def _all(c: int) -> Bools:
    """Each way to part c categories in two, once: the first goes left."""
    found = np.zeros((2 ** (c - 1) - 1, c), np.bool_)
    found[:, 0] = True
    place = 0
    for others in range(c - 1):
        for chosen in combinations(range(1, c), others):
            found[place, [*chosen]] = True
            place += 1
    return found
