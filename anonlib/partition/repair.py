"""Repair: leaves that could not hold the privacy models are merged with the nearest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anonlib.arrays import MISSING, Bools, Floats, Ints
from anonlib.partition.cuts import Cuts
from anonlib.privacy import CellCounts, KnownGroups, PrivacyModel, Reference, SparseCounts
from anonlib.privacy.shares import group_codes, sum_counts


@dataclass(frozen=True)
class Joint:
    """How often each combination of the protected columns occurs in each leaf.

    Attributes:
        ids: The protected columns.
        leaf: int64[e]. The leaf of each entry.
        value: int64[e, s]. Its codes; MISSING where missing.
        count: int64[e]. Its rows.
    """

    ids: tuple[str, ...]
    leaf: Ints
    value: Ints
    count: Ints

    def merged(self, group: Ints) -> "Joint":
        """The same with leaves as groups; those of group -1 are left out."""
        leaf = group[self.leaf]
        kept = leaf >= 0
        return Joint(self.ids, leaf[kept], self.value[kept], self.count[kept])

    def known(self, id: str, references: dict[str, Reference], shared: bool) -> KnownGroups:
        """The groups of rows that agree on all but one column. Persons who may have several rows
        are not counted in them: none is certain."""
        j = self.ids.index(id)
        others = np.delete(self.value, j, axis=1)
        group, leaf = group_codes(self.leaf, np.unique(others, axis=0, return_inverse=True)[1])
        n_rows = np.bincount(group, self.count, len(leaf)).astype(np.int64)
        n_persons = np.zeros_like(n_rows) if shared else n_rows
        present = self.value[:, j] != MISSING
        counts = sum_counts(group[present], self.value[present, j], self.count[present])
        return KnownGroups(leaf, CellCounts(n_rows, n_persons, {id: counts}, references))


@dataclass(frozen=True)
class BlockCounts:
    """Exact counts of b leaves.

    Attributes:
        n_rows: int64[b]. Rows.
        n_persons: int64[b]. Persons.
        sketches: By protected column: int64[b, words]. A sketch of its values; no more bits are
            set than there are distinct values.
        shared: Whether a person may have rows in several leaves.
        counts: By protected column that a model counts: its exact counts.
        references: By the same columns: their distributions.
        joint: Counts of all protected columns together, if models are to hold where the others are
            known; else None.
    """

    n_rows: Ints
    n_persons: Ints
    sketches: dict[str, Ints]
    shared: bool
    counts: dict[str, SparseCounts] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)
    joint: Joint | None = None

    def merged(self, group: Ints, n_groups: int) -> "BlockCounts":
        """The counts of unions of leaves, with a lower bound of the persons. Leaves of group -1 are
        left out."""
        kept = group >= 0
        sketches = {}
        for id, words in self.sketches.items():
            union = np.zeros((n_groups, words.shape[1]), np.int64)
            np.bitwise_or.at(union, group[kept], words[kept])
            sketches[id] = union
        n_rows = np.bincount(group[kept], self.n_rows[kept], n_groups).astype(np.int64)
        n_persons = n_rows
        if self.shared:
            # All persons of one leaf may be among those of another: the largest count is certain.
            n_persons = np.zeros(n_groups, np.int64)
            np.maximum.at(n_persons, group[kept], self.n_persons[kept])
        counts = {id: _united(counted, group) for id, counted in self.counts.items()}
        joint = None if self.joint is None else self.joint.merged(group)
        return BlockCounts(n_rows, n_persons, sketches, self.shared, counts, self.references, joint)

    def of(self, leaves: Ints) -> "BlockCounts":
        """The counts of some leaves, numbered anew."""
        sketches = {id: words[leaves] for id, words in self.sketches.items()}
        counts = {id: self._some(id, leaves) for id in self.counts}
        joint = None
        if self.joint is not None:
            number = np.full(len(self.n_rows), -1)
            number[leaves] = np.arange(len(leaves))
            joint = self.joint.merged(number)
        sizes = self.n_rows[leaves], self.n_persons[leaves]
        return BlockCounts(*sizes, sketches, self.shared, counts, self.references, joint)

    def _some(self, id: str, leaves: Ints) -> SparseCounts:
        of, start = self.counts[id], self._starts[id]
        length = start[leaves + 1] - start[leaves]
        before = np.cumsum(length) - length
        place = np.arange(length.sum()) + np.repeat(start[leaves] - before, length)
        cell = np.repeat(np.arange(len(leaves)), length)
        return SparseCounts(cell, of.value[place], of.count[place])

    @cached_property
    def _starts(self) -> dict[str, Ints]:
        """Where the entries of each leaf begin, and where the last one's end."""
        leaves = np.arange(len(self.n_rows) + 1)
        return {id: np.searchsorted(of.cell, leaves) for id, of in self.counts.items()}

    def hold(self, models: Sequence[PrivacyModel]) -> Bools:
        """bool[b]: which leaves certainly hold every model. Values that share a bit count as one,
        which can only make a leaf look less diverse than it is."""
        sensitive = {id: _bits(words) for id, words in self.sketches.items()} | self.counts
        known = {}
        if self.joint is not None:
            ids = {model.column for model in models if model.column is not None}
            known = {id: self.joint.known(id, self.references, self.shared) for id in ids}
        cells = CellCounts(self.n_rows, self.n_persons, sensitive, self.references, known)
        result = np.ones(len(self.n_rows), np.bool_)
        for model in models:
            result &= model.holds_within(cells)
        return result


@dataclass(frozen=True)
class Demands:
    """The models that leaves must hold: `sets` of models, and bool[b, sets], which of them each
    leaf is asked. A union of leaves is asked all that its leaves are."""

    sets: tuple[tuple[PrivacyModel, ...], ...]
    asked: Bools

    def held(self, counts: BlockCounts) -> Bools:
        """bool[b]: which leaves hold what they are asked."""
        result = np.ones(len(self.asked), np.bool_)
        for s, models in enumerate(self.sets):
            if self.asked[:, s].any():
                result &= ~self.asked[:, s] | counts.hold(models)
        return result

    def merged(self, group: Ints, n_groups: int) -> "Demands":
        """The demands on unions of leaves; leaves of group -1 are left out."""
        asked = np.zeros((n_groups, len(self.sets)), np.bool_)
        np.logical_or.at(asked, group[group >= 0], self.asked[group >= 0])
        return Demands(self.sets, asked)


def one_demand(models: Sequence[PrivacyModel], n_leaves: int) -> Demands:
    """The same models for all leaves."""
    return Demands((tuple(models),), np.ones((n_leaves, 1), np.bool_))


def _united(counts: SparseCounts, group: Ints) -> SparseCounts:
    """The counts with leaves as groups."""
    cell = group[counts.cell]
    kept = cell >= 0
    return sum_counts(cell[kept], counts.value[kept], counts.count[kept])


def _bits(words: Ints) -> SparseCounts:
    """The set bits as values that stand once."""
    flat = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1)
    cell, value = np.nonzero(flat)
    return SparseCounts(cell.astype(np.int64), value.astype(np.int64), np.ones(len(cell), np.int64))


def merge_small(
    cuts: Cuts, root: Ints, counts: BlockCounts, centers: Floats, demands: Demands
) -> Ints:
    """int64[b]: the block of every leaf, ids 0..m-1; -1 where its root is.

    `root` is the tree of each leaf; those beyond the leaves of `cuts` hang directly on their roots.
    While a group of leaves fails, it joins the group with the nearest centre within the smallest
    subtree that holds another one, then within its tree. Every tree must hold the models as a
    whole: it ends as one block at worst. Cost O(b log b) when few fail.
    """
    group = np.where(root >= 0, np.arange(len(root)), -1)
    members = {leaf: np.array([leaf]) for leaf in np.flatnonzero(root >= 0).tolist()}
    around = _around(cuts, root)
    for failing in np.flatnonzero(~demands.held(counts) & (root >= 0)).tolist():
        while not _holds(members[int(group[failing])], counts, demands):
            partner = _nearest(group, failing, around[failing], centers, counts.n_rows)
            if partner is None:
                break
            joining = members.pop(int(group[failing]))
            members[partner] = np.concatenate([members[partner], joining])
            group[joining] = partner
    placed = group >= 0
    group[placed] = np.unique(group[placed], return_inverse=True)[1]
    return group


def _holds(leaves: Ints, counts: BlockCounts, demands: Demands) -> bool:
    """Whether the union of some leaves certainly holds what it is asked."""
    one = np.zeros(len(leaves), np.int64)
    asked = Demands(demands.sets, demands.asked[leaves]).merged(one, 1)
    return bool(asked.held(counts.of(leaves).merged(one, 1))[0])


def _around(cuts: Cuts, root: Ints) -> list[list[Ints]]:
    """For each leaf the sets of leaves around it, smallest first: its subtrees, and its tree."""
    below: list[Ints] = [np.zeros(0, np.int64)] * len(cuts.threshold)
    around: list[list[Ints]] = [[] for _ in root]
    for j in range(len(cuts.threshold) - 1, -1, -1):
        parts = [below[c] if c >= 0 else np.array([-1 - c]) for c in (cuts.left[j], cuts.right[j])]
        below[j] = np.concatenate(parts)
        for leaf in below[j]:
            around[leaf].append(below[j])
    order = np.argsort(root, kind="stable")
    for tree in np.split(order, np.flatnonzero(np.diff(root[order])) + 1):
        for leaf in tree:
            around[leaf].append(tree)
    return around


def _nearest(
    group: Ints, leaf: int, around: list[Ints], centers: Floats, n_rows: Ints
) -> int | None:
    for leaves in around:
        others = leaves[(group[leaves] != group[leaf]) & (n_rows[leaves] > 0)]
        if len(others):
            distance = np.sum((centers[others] - centers[leaf]) ** 2, axis=1)
            return int(group[others[np.argmin(distance)]])
    return None
