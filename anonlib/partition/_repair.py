"""Repair: leaves that could not hold the privacy models are merged with the nearest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.block import Bools, Floats, Ints
from anonlib.partition._plan import Cuts
from anonlib.privacy import CellCounts, PrivacyModel, SparseCounts


@dataclass(frozen=True)
class Counts:
    """Exact counts of b leaves: rows and persons, int64[b], and for each protected column a sketch
    of its values, int64[b, words], whose set bits are at most as many as there are values.
    `shared`: whether a person may have rows in several leaves."""

    n_rows: Ints
    n_persons: Ints
    sketches: dict[str, Ints]
    shared: bool

    def merged(self, group: Ints, n_groups: int) -> "Counts":
        """The counts of unions of leaves, persons as a lower bound."""
        sketches = {}
        for id, words in self.sketches.items():
            union = np.zeros((n_groups, words.shape[1]), np.int64)
            np.bitwise_or.at(union, group, words)
            sketches[id] = union
        n_rows = np.bincount(group, self.n_rows, n_groups).astype(np.int64)
        n_persons = n_rows
        if self.shared:
            # All persons of one leaf may be among those of another: the largest count is certain.
            n_persons = np.zeros(n_groups, np.int64)
            np.maximum.at(n_persons, group, self.n_persons)
        return Counts(n_rows, n_persons, sketches, self.shared)

    def hold(self, models: Sequence[PrivacyModel]) -> Bools:
        """bool[b]: which leaves certainly hold every model. Values that share a bit count as one,
        which can only make a leaf look less diverse than it is."""
        sensitive = {id: _bits(words) for id, words in self.sketches.items()}
        cells = CellCounts(self.n_rows, self.n_persons, sensitive)
        result = np.ones(len(self.n_rows), np.bool_)
        for model in models:
            result &= model.holds(cells)
        return result


def _bits(words: Ints) -> SparseCounts:
    """The set bits as values that stand once."""
    flat = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1)
    cell, value = np.nonzero(flat)
    return SparseCounts(cell.astype(np.int64), value.astype(np.int64), np.ones(len(cell), np.int64))


def merge_small(
    cuts: Cuts, counts: Counts, centers: Floats, models: Sequence[PrivacyModel]
) -> Ints:
    """int64[b]: the block of every leaf, ids 0..m-1.

    While a group of leaves fails, it joins the group with the nearest centre within the smallest
    subtree that holds another one. Ends with one block at worst. Cost O(b log b) when few fail.
    """
    group = np.arange(cuts.n_leaves)
    parents = _leaf_ranges(cuts)
    holds = counts.hold(models)
    for failing in np.flatnonzero(~holds):
        while not _group_holds(group, group[failing], counts, models):
            partner = _nearest(group, int(failing), parents, centers, counts.n_rows)
            if partner is None:
                break
            group[group == group[failing]] = partner
    return np.unique(group, return_inverse=True)[1]


def _group_holds(group: Ints, id: int, counts: Counts, models: Sequence[PrivacyModel]) -> bool:
    members = np.flatnonzero(group == id)
    part = Counts(
        counts.n_rows[members],
        counts.n_persons[members],
        {name: words[members] for name, words in counts.sketches.items()},
        counts.shared,
    )
    return bool(part.merged(np.zeros(len(members), np.int64), 1).hold(models)[0])


def _leaf_ranges(cuts: Cuts) -> list[list[Ints]]:
    """For each leaf the leaf sets of the subtrees around it, smallest first."""
    below: list[Ints] = [np.zeros(0, np.int64)] * len(cuts.threshold)
    around: list[list[Ints]] = [[] for _ in range(cuts.n_leaves)]
    for j in range(len(cuts.threshold) - 1, -1, -1):
        parts = [below[c] if c >= 0 else np.array([-1 - c]) for c in (cuts.left[j], cuts.right[j])]
        below[j] = np.concatenate(parts)
        for leaf in below[j]:
            around[leaf].append(below[j])
    return around


def _nearest(
    group: Ints, leaf: int, around: list[list[Ints]], centers: Floats, n_rows: Ints
) -> int | None:
    for subtree in around[leaf]:
        others = subtree[(group[subtree] != group[leaf]) & (n_rows[subtree] > 0)]
        if len(others):
            distance = np.sum((centers[others] - centers[leaf]) ** 2, axis=1)
            return int(group[others[np.argmin(distance)]])
    return None


def size_bound(counts: Counts, models: Sequence[PrivacyModel]) -> Bools:
    """bool[b]: which buckets hold the models; an empty one does not matter."""
    holding: Bools = counts.hold(models) | (counts.n_rows == 0)
    return holding
