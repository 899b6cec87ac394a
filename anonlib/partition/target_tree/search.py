"""The search of a target-aware tree: subsets of categories, the best cut of a node, and the test
whether the gain of a cut is chance."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import combinations
from math import ceil, exp, lgamma
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.partition._tree import Among, Below, Cut, Sample
from anonlib.partition.cuts import Singles
from anonlib.partition.target_tree.core import (
    Impurity,
    find_boundary_deviations,
    find_boundary_gains,
    find_deviation_fall,
    find_side_gains,
    make_impurity,
    part_lines,
)

#: The fewest sampled rows of a side, if the sample is not the whole table.
MIN_SAMPLED = 50

#: At most this many cuts of a column are tried, best first, before the next column.
TRIES = 32

#: One in FOLDS persons is held back, to judge cuts.
FOLDS = 3


class Proposals(NamedTuple):
    """The s possible cuts of a column in a node.

    Attributes:
        column: 0..p-1 is a numeric column, p..p+q-1 a nominal one.
        gain: float64[s]. The gain of each cut; 0 if it is not allowed.
        left: bool[s, c]. For a nominal column: whether each cut sends each group left.
        groups: int64[c]. For a nominal column: the groups of codes in the node.
    """

    column: int
    gain: Floats
    left: Bools | None = None
    groups: Ints | None = None


class NodeCut(NamedTuple):
    """A cut of a node.

    Attributes:
        cut: The cut.
        side: bool[rows of the node]. Whether each row goes left.
    """

    cut: Cut
    side: Bools


@lru_cache(maxsize=1)
def _shared_groups(sample: Sample, held_back: bool) -> list[Ints | None]:
    """The group of each code, by nominal column; None for at most MOST_CATEGORIES categories.

    All trees of a sample share the groups, because the trees are compiled together. This costs the
    more, the more sets of codes they distinguish.
    """
    search = TreeSearch(sample, np.arange(sample.block.n), "", 1.0 if held_back else None)
    guiding = np.flatnonzero(search.guides)
    found: list[Ints | None] = []
    for codes in sample.block.nominal.T:
        n = int(codes.max(initial=-1)) + 1
        many = n > MOST_CATEGORIES
        found.append(group_categories(*search._sums(codes[guiding], guiding, n)) if many else None)
    return found


@dataclass(frozen=True, eq=False)
class TreeSearch:
    """The search on a leaf of m rows. A node of its tree is a run start..stop in `order`.

    Attributes:
        sample: The sampled rows.
        rows: int64[m]. The rows of the leaf.
        criterion: The criterion of `TargetTree`.
        significance: The significance of `TargetTree`; None if no evidence is required.
    """

    sample: Sample
    rows: Ints
    criterion: str
    significance: float | None

    @property
    def p(self) -> int:
        """The number of numeric columns: p is the first nominal column."""
        return int(self.sample.block.numeric.shape[1])

    @cached_property
    def value(self) -> Singles:
        """float32[p + q, m]. The columns that cuts use, one per line."""
        return np.ascontiguousarray(self.sample.values[self.rows].T)

    @cached_property
    def order(self) -> Codes:
        """int32[p + 1, m]. The rows of each node, sorted by each numeric column, and in the leaf's
        order."""
        lines = [np.argsort(column, kind="stable") for column in self.value[: self.p]]
        return np.array([*lines, np.arange(len(self.rows))], np.int32)

    @cached_property
    def target(self) -> Floats:
        assert self.sample.block.target is not None
        found: Floats = self.sample.block.target[self.rows]
        return found

    @cached_property
    def label(self) -> Codes:
        """int32[m]. The class of each row, numbered among the classes in the leaf; 0 for a numeric
        target."""
        if not self.sample.block.n_classes:
            return np.zeros(len(self.rows), np.int32)
        return np.unique(self.target, return_inverse=True)[1].astype(np.int32)

    @cached_property
    def n_classes(self) -> int:
        """The classes of the target; 0 for a numeric target."""
        return int(self.label.max(initial=-1)) + 1 if self.sample.block.n_classes else 0

    @cached_property
    def impurity(self) -> Impurity:
        return make_impurity(len(self.rows), self.criterion == "gini")

    @cached_property
    def guides(self) -> Bools:
        """bool[m]. Whether a row helps to choose cuts: all rows of a person do, or none."""
        if self.significance is None:
            return np.ones(len(self.rows), np.bool_)
        guides: Bools = self._first_place % FOLDS != 0
        return guides

    @cached_property
    def judges(self) -> Bools:
        """bool[m]. Whether a row judges cuts: one row of each person held back."""
        judges: Bools = ~self.guides & (self._first_place == self.sample.place[self.rows])
        return judges

    @cached_property
    def _first_place(self) -> Ints:
        """int64[m]. The lowest place, in the leaf, of the person of each row."""
        place, unit = self.sample.place[self.rows], self.sample.block.unit
        if unit is None:
            return place
        person = np.unique(unit[self.rows], return_inverse=True)[1]
        first = np.full(len(place), np.iinfo(np.int64).max)
        np.minimum.at(first, person, place)
        found: Ints = first[person]
        return found

    @cached_property
    def least(self) -> int:
        """The fewest rows of a side."""
        least = self.sample.block.min_rows
        if self.sample.share == 1.0:
            return least
        return max(ceil(least * self.sample.share), MIN_SAMPLED)

    @cached_property
    def group_of(self) -> list[Ints]:
        """The group of each code: int64[codes] for each nominal column.

        A column of more than MOST_CATEGORIES categories has the same groups in all leaves. In other
        columns, each code in the leaf is its own group, and other codes have the group -1.
        """
        shared = _shared_groups(self.sample, self.significance is not None)
        groups = []
        for column, group in zip(self.value[self.p :], shared, strict=True):
            if group is None:
                rows = np.bincount(column.astype(np.int64))
                there = np.flatnonzero(rows)
                group = np.full(len(rows), -1)
                group[there] = np.arange(len(there))
            groups.append(group)
        return groups

    def best(self, start: int, stop: int, depth: int) -> NodeCut | None:
        """The cut of largest gain that is allowed and has evidence.

        Args:
            start: The first place of the node in `order`.
            stop: The place after its last.
            depth: The number of cuts between the leaf and the node.

        Returns:
            The cut; None if there is none.
        """
        if stop - start < 2 * self.least:
            return None
        rows = self.order[-1, start:stop].astype(np.int64)
        n_tried = 0
        for proposals in self._columns(start, stop, rows):
            cut = self._first_allowed(proposals, start, rows)
            if cut is None:
                continue
            n_tried += 1
            if self._convinces(cut.side, rows, n_tried, depth):
                return cut
        return None

    def part(self, cut: NodeCut, start: int, stop: int) -> int:
        """Partitions the rows of a node by a cut. Returns where the right child begins."""
        left = np.zeros(len(self.rows), np.bool_)
        left[self.order[-1, start:stop]] = cut.side
        return part_lines(self.order, start, stop, left)

    def _columns(self, start: int, stop: int, rows: Ints) -> list[Proposals]:
        """The columns with a gain, best first; ties in the order of columns."""
        guides = self.guides[rows]
        every = np.bincount(self.label[rows[guides]], minlength=max(self.n_classes, 1))
        if not guides.any() or (self.n_classes and np.count_nonzero(every) < 2):
            return []
        found = [self._boundaries(j, start, stop, every) for j in range(self.p)]
        found += [self._subsets(j, rows, guides, every) for j in range(self.p, len(self.value))]
        gaining = [each for each in found if each.gain.max(initial=0.0) > 0]
        if self.criterion == "gain_ratio" and self.n_classes:
            return self._by_ratio(gaining, start, rows)
        return sorted(gaining, key=lambda each: -float(each.gain.max()))

    def _by_ratio(self, gaining: list[Proposals], start: int, rows: Ints) -> list[Proposals]:
        """Sorts columns by gain ratio: gain / information of the split itself.

        Columns of at least mean gain come first (Quinlan, C4.5, 1993, section 2.2).
        """
        f = self.impurity.f
        gain = [float(each.gain.max()) for each in gaining]
        ratio = []
        for each, most in zip(gaining, gain, strict=True):
            side = self._make_cut(each, int(np.argmax(each.gain)), start, rows).side
            guides = self.guides[rows]
            n, below = int(guides.sum()), int((side & guides).sum())
            ratio.append(most / max(int(f[n] - f[below] - f[n - below]), 1))
        enough = sum(gain) / max(len(gain), 1)
        keys = [(most < enough, -r) for most, r in zip(gain, ratio, strict=True)]
        return [gaining[i] for i in sorted(range(len(gain)), key=lambda i: keys[i])]

    def _boundaries(self, j: int, start: int, stop: int, every: Ints) -> Proposals:
        order, value = self.order[j, start:stop], self.value[j]
        if value[order[0]] == value[order[-1]]:
            return Proposals(j, np.zeros(0))
        if self.n_classes:
            guide = self.label, self.guides, every
            return Proposals(
                j, find_boundary_gains(order, value, *guide, self.least, self.impurity)
            )
        gain = find_boundary_deviations(order, value, self.target, self.guides, self.least)
        return Proposals(j, gain)

    def _subsets(self, j: int, rows: Ints, guides: Bools, every: Ints) -> Proposals:
        group = self._groups(j, rows)
        n = int(group.max()) + 1
        sums, count = self._sums(group[guides], rows[guides], n)
        there = np.flatnonzero(count)
        if len(there) < 2:
            return Proposals(j, np.zeros(0))
        sums, count = sums[there], count[there]
        left = list_subsets(sums[:, every > 0], count)
        seen = np.bincount(group, minlength=n)[there]
        # Categories without a guide in this node go right. So the larger side must be the right.
        left = left ^ (2 * (left @ seen) > seen.sum())[:, None]
        below = left @ seen
        if self.n_classes:
            gain = find_side_gains((left @ sums).astype(np.int64), every, self.impurity)
        else:
            total, whole = int(count.sum()), float(sums.sum())
            each = zip(left @ count, left @ sums[:, 0], strict=True)
            gain = np.array([find_deviation_fall(int(b), float(s), total, whole) for b, s in each])
        gain[(below < self.least) | (len(rows) - below < self.least)] = 0.0
        return Proposals(j, gain, left, there)

    def _groups(self, j: int, rows: Ints) -> Ints:
        """int64[rows]. The group of each row's code in a nominal column."""
        group = self.group_of[j - self.p]
        found: Ints = group[self.value[j, rows].astype(np.int64)]
        return found

    def _sums(self, group: Ints, rows: Ints, n: int) -> tuple[Floats, Ints]:
        """Sums the target over the groups 0..n-1 of some rows.

        Returns:
            float64[n, classes]. The rows of each class; for a numeric target float64[n, 1], its
            sum.
            int64[n]. The rows of each group.
        """
        count: Ints = np.bincount(group, minlength=n)
        if not self.n_classes:
            return np.bincount(group, self.target[rows], n)[:, None].astype(np.float64), count
        pair = group * self.n_classes + self.label[rows]
        table = np.bincount(pair, minlength=n * self.n_classes).reshape(n, self.n_classes)
        return table.astype(np.float64), count

    def _first_allowed(self, proposals: Proposals, start: int, rows: Ints) -> NodeCut | None:
        for at in _from_the_best(proposals.gain):
            found = self._make_cut(proposals, at, start, rows)
            if self._is_allowed(found.side, rows):
                return found
        return None

    def _make_cut(self, proposals: Proposals, at: int, start: int, rows: Ints) -> NodeCut:
        j = proposals.column
        if proposals.left is None or proposals.groups is None:
            threshold = self.value[j, self.order[j, start + at + 1]]
            return NodeCut(Below(j, float(threshold)), self.value[j, rows] < threshold)
        chosen = proposals.groups[proposals.left[at]]
        group = self.group_of[j - self.p]
        codes = np.flatnonzero(np.isin(group, chosen))
        return NodeCut(Among(j, codes), np.isin(self._groups(j, rows), chosen))

    def _is_allowed(self, side: Bools, rows: Ints) -> bool:
        """Whether both sides hold the models. True without a check if models count rows only, or on
        a sample: then `least` decides."""
        block = self.sample.block
        if self.sample.share < 1.0 or block.counts_rows_only:
            return True
        return bool(block.holds((~side).astype(np.int64), 2, self.rows[rows]).all())

    def _convinces(self, side: Bools, rows: Ints, n_tried: int, depth: int) -> bool:
        """Whether the rows held back agree with a cut.

        The cuts tried in a node share its significance: they get 1/2, 1/6, 1/12, ... of it, which
        sum to 1. The significance doubles with each cut above the node, up to 1. Below accepted
        cuts, the columns are known to predict the target. There, a cut too many costs less than a
        missing one, because kernels cut on without looking at the target.
        """
        if self.significance is None:
            return True
        judges = self.judges[rows]
        p = find_p_value(side[judges], self._target_left(side, rows)[judges])
        significance = min(1.0, self.significance * 2.0 ** min(depth, 64))
        return p <= significance / (n_tried * (n_tried + 1))

    def _target_left(self, side: Bools, rows: Ints) -> Bools:
        """bool[rows]. Whether a row belongs on the left by its target.

        It does if its class has a larger share on the left than in the node. For a numeric target,
        it does if its number is on the same side of the node's mean as the mean of the left.
        """
        guides = self.guides[rows]
        left = guides & side
        n, below = int(guides.sum()), int(left.sum())
        if not self.n_classes:
            target = self.target[rows]
            whole, there = float(target[guides].sum()), float(target[left].sum())
            return target * n > whole if there * n > whole * below else target * n < whole
        label = self.label[rows]
        of_all = np.bincount(label[guides], minlength=self.n_classes)
        of_left = np.bincount(label[left], minlength=self.n_classes)
        expected: Bools = (of_left * n > of_all * below)[label]
        return expected


def _from_the_best(gain: Floats) -> Iterator[int]:
    """The places of the largest gains, at most TRIES, best first; ties in the order of places."""
    yield int(np.argmax(gain))
    gaining = np.flatnonzero(gain > 0)
    if len(gaining) > TRIES:
        least = np.partition(gain[gaining], -TRIES)[-TRIES]
        gaining = gaining[gain[gaining] >= least]
    yield from gaining[np.argsort(-gain[gaining], kind="stable")][1:TRIES].tolist()


#: A node with at most this many categories tries every subset.
MOST_EXHAUSTIVE = 8

#: If a nominal column has more categories, groups of them are cut.
MOST_CATEGORIES = 64

#: The most groups of categories.
MOST_GROUPS = 32

#: When categories are grouped, each gets this many extra rows with the mean of all.
SHRINKAGE = 10.0


def list_subsets(sums: Floats, rows: Ints) -> Bools:
    """The cuts of c categories to try, each once.

    For up to MOST_EXHAUSTIVE categories, all cuts are tried: with a least size of sides, no order
    of the categories is sure to contain the best cut. More categories are sorted, and cut between
    two neighbours:

    - Two classes or a numeric target: sorted by their mean. Without a least size, this order has
      the best cut (Breiman et al., Classification and regression trees, 1984, section 4.2.2).
    - More classes: sorted along the first principal component of their shares (Coppersmith, Hong,
      Hosking, 1999). Cuts of one category against the rest are tried too.

    Args:
        sums: float64[c, t]. For each category, the rows of each of t classes; for a numeric target
            its sum, with t = 1.
        rows: int64[c]. The rows of each category, all positive.

    Returns:
        bool[s, c]. Whether each of s cuts sends each category left.
    """
    c = len(rows)
    if c <= MOST_EXHAUSTIVE:
        return _all(c)
    place = np.empty(c, np.int64)
    place[np.argsort(find_means(sums, rows), kind="stable")] = np.arange(c)
    prefixes: Bools = place[None, :] < np.arange(1, c)[:, None]
    if sums.shape[1] <= 2:
        return prefixes
    return np.concatenate([prefixes, np.eye(c, dtype=np.bool_)])


def group_categories(sums: Floats, rows: Ints) -> Ints:
    """Groups neighbouring categories in the order of the target. Groups have similar numbers of
    rows.

    Rare categories are drawn to the mean of all, since their own mean is chance. The arguments are
    those of `list_subsets`, but `rows` may be 0.

    Returns:
        int64[c]. The group of each category, 0..MOST_GROUPS - 1.
    """
    weight = SHRINKAGE / max(rows.sum(), 1)
    along = find_means(sums + sums.sum(axis=0) * weight, rows + rows.sum() * weight)
    order = np.argsort(along, kind="stable")
    before = np.cumsum(rows[order]) - rows[order] / 2
    group = np.empty(len(rows), np.int64)
    group[order] = np.minimum(before * MOST_GROUPS / max(rows.sum(), 1), MOST_GROUPS - 1)
    return group


def find_means(sums: Floats, rows: Floats | Ints) -> Floats:
    """float64[c]. The position of each category by its target.

    This is the mean of a numeric target, or the share of the second of two classes. For more
    classes it is the projection of their shares on the first principal component.
    """
    shares = sums / rows[:, None]
    if sums.shape[1] <= 2:
        return np.asarray(shares[:, -1], np.float64)
    apart = shares - sums.sum(axis=0) / rows.sum()
    axis = np.linalg.svd(apart * np.sqrt(rows)[:, None], full_matrices=False)[2][0]
    along: Floats = apart @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    return along


@cache
def _all(c: int) -> Bools:
    """bool[s, c]. Every split of c categories in two, once. The first category always goes left."""
    found = np.zeros((2 ** (c - 1) - 1, c), np.bool_)
    found[:, 0] = True
    place = 0
    for others in range(c - 1):
        for chosen in combinations(range(1, c), others):
            found[place, [*chosen]] = True
            place += 1
    return found


def find_p_value(left: Bools, target_left: Bools) -> float:
    """The probability that a meaningless cut agrees at least as well with the target.

    One-sided exact test of independence (R. A. Fisher, 1935). Cost O(n).

    Args:
        left: bool[n]. Whether each row is on the left. There is one row per person, and these
            persons did not choose the cut.
        target_left: bool[n]. Whether each row belongs on the left by its target.

    Returns:
        The probability; 1 if the agreement is no better than by chance.
    """
    n, a, b = len(left), int(left.sum()), int(target_left.sum())
    both = int((left & target_left).sum())
    if both * n <= a * b:
        return 1.0
    # The hypergeometric tail: the probability of `both`, times 1 plus the sum of the running
    # products of the ratios between successive probabilities.
    more = np.arange(both, min(a, b), dtype=np.float64)
    ratios = (a - more) * (b - more) / ((more + 1) * (n - a - b + more + 1))
    ways = _log_choose(a, both) + _log_choose(n - a, b - both) - _log_choose(n, b)
    return min(1.0, exp(ways) * (1.0 + float(np.cumprod(ratios).sum())))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
