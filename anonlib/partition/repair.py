"""Repair: merges leaves that fail the privacy models with the nearest leaves, and deals those that
are too large for a task to several blocks. Whoever counts the rows, in memory or in Spark, gets the
same blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

import numpy as np

from anonlib.arrays import MISSING, Bools, Floats, Ints
from anonlib.partition.cuts import Singles, TreeShape, no_cuts
from anonlib.privacy import CellCounts, KnownGroups, PrivacyModel, Reference, SparseCounts
from anonlib.privacy.shares import group_codes, sum_counts

#: Blocks of up to this many times max_rows are bisected in their task; larger ones are dealt out.
IN_TASK = 4
#: Sketches of distinct values have 64-bit words, this many values of l each.
VALUES_PER_WORD = 16


@dataclass(frozen=True)
class Joint:
    """How often each combination of protected values occurs in each leaf.

    Attributes:
        ids: The s protected columns.
        leaf: int64[e]. The leaf of each entry.
        value: int64[e, s]. The codes of each entry; MISSING for a missing value.
        count: int64[e]. The persons of each entry, counted as in cells: at least one. Combinations
            that only rows without a person have are no entries.
    """

    ids: tuple[str, ...]
    leaf: Ints
    value: Ints
    count: Ints

    def merge(self, group: Ints) -> "Joint":
        """The counts with leaves replaced by their groups. Leaves of group -1 are left out."""
        leaf = group[self.leaf]
        kept = leaf >= 0
        return Joint(self.ids, leaf[kept], self.value[kept], self.count[kept])

    def known(self, id: str, references: dict[str, Reference], shared: bool) -> KnownGroups:
        """The groups of rows that agree on all protected columns but one.

        Args:
            id: The column that may differ.
            references: The distribution of each column in the whole table.
            shared: Whether a person may have several rows. If so, groups count 0 persons, since no
                larger number is certain, and a person with several values counts several times.
        """
        j = self.ids.index(id)
        others = np.delete(self.value, j, axis=1)
        group, leaf = group_codes(self.leaf, np.unique(others, axis=0, return_inverse=True)[1])
        n_rows = np.bincount(group, self.count, len(leaf)).astype(np.int64)
        n_persons = np.zeros_like(n_rows) if shared else n_rows
        present = self.value[:, j] != MISSING
        counts = sum_counts(group[present], self.value[present, j], self.count[present])
        n_missing = np.bincount(group[~present], self.count[~present], len(leaf))
        counts = replace(counts, n_missing=n_missing.astype(np.int64))
        return KnownGroups(leaf, CellCounts(n_rows, n_persons, {id: counts}, references))


@dataclass(frozen=True)
class BlockCounts:
    """Exact counts of b leaves.

    Attributes:
        n_rows: int64[b]. Rows.
        n_persons: int64[b]. Persons.
        sketches: By protected column: int64[b, words]. A sketch of its values in each leaf. A
            sketch has at most as many bits set as there are distinct values.
        shared: Whether a person may have rows in several leaves.
        counts: By protected column that a model counts: the counts of its values. In merged leaves,
            counts are sums, so persons whom the leaves share count several times.
        references: By the same columns: their distributions in the whole table.
        joint: The joint counts of all protected columns, if models must hold even against an
            attacker who knows all but one of them; else None.
    """

    n_rows: Ints
    n_persons: Ints
    sketches: dict[str, Ints]
    shared: bool
    counts: dict[str, SparseCounts] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)
    joint: Joint | None = None

    def merge(self, group: Ints, n_groups: int) -> "BlockCounts":
        """The counts of groups of leaves. Leaves of group -1 are left out.

        With `shared`, persons are a lower bound.
        """
        in_group = group >= 0
        sketches = {}
        for id, words in self.sketches.items():
            union = np.zeros((n_groups, words.shape[1]), np.int64)
            np.bitwise_or.at(union, group[in_group], words[in_group])
            sketches[id] = union
        n_rows = np.bincount(group[in_group], self.n_rows[in_group], n_groups).astype(np.int64)
        n_persons = n_rows
        if self.shared:
            # The leaves may share their persons. Only the largest count is certain.
            n_persons = np.zeros(n_groups, np.int64)
            np.maximum.at(n_persons, group[in_group], self.n_persons[in_group])
        counts = {id: _unite(counted, group, n_groups) for id, counted in self.counts.items()}
        joint = None if self.joint is None else self.joint.merge(group)
        return BlockCounts(n_rows, n_persons, sketches, self.shared, counts, self.references, joint)

    def of(self, leaves: Ints) -> "BlockCounts":
        """The counts of some leaves, renumbered from 0."""
        sketches = {id: words[leaves] for id, words in self.sketches.items()}
        counts = {id: self._some(id, leaves) for id in self.counts}
        joint = None
        if self.joint is not None:
            number = np.full(len(self.n_rows), -1)
            number[leaves] = np.arange(len(leaves))
            joint = self.joint.merge(number)
        sizes = self.n_rows[leaves], self.n_persons[leaves]
        return BlockCounts(*sizes, sketches, self.shared, counts, self.references, joint)

    def _some(self, id: str, leaves: Ints) -> SparseCounts:
        of, start = self.counts[id], self._starts[id]
        length = start[leaves + 1] - start[leaves]
        before = np.cumsum(length) - length
        place = np.arange(length.sum()) + np.repeat(start[leaves] - before, length)
        cell = np.repeat(np.arange(len(leaves)), length)
        n_missing = None if of.n_missing is None else of.n_missing[leaves]
        n_known = None if of.n_known is None else of.n_known[leaves]
        return SparseCounts(cell, of.value[place], of.count[place], n_missing, n_known)

    @cached_property
    def _starts(self) -> dict[str, Ints]:
        """Where the entries of each leaf begin, and the end of all: int64[b + 1] for each
        column."""
        leaves = np.arange(len(self.n_rows) + 1)
        return {id: np.searchsorted(of.cell, leaves) for id, of in self.counts.items()}

    def hold(self, models: Sequence[PrivacyModel]) -> Bools:
        """bool[b]. Whether each leaf holds every model.

        The answer True is certain, unless leaves that share persons were merged and a model looks
        at counts. Values that share a bit of a sketch count as one, so a leaf can look less diverse
        than it is, but never more.
        """
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
    """The models that leaves must hold. A union of leaves must hold all models of its leaves.

    Attributes:
        sets: Sets of models.
        must_hold: bool[b, sets]. Whether each leaf must hold each set.
    """

    sets: tuple[tuple[PrivacyModel, ...], ...]
    must_hold: Bools

    def holds(self, counts: BlockCounts) -> Bools:
        """bool[b]. Whether each leaf certainly holds its models."""
        result = np.ones(len(self.must_hold), np.bool_)
        for s, models in enumerate(self.sets):
            if self.must_hold[:, s].any():
                result &= ~self.must_hold[:, s] | counts.hold(models)
        return result

    def merge(self, group: Ints, n_groups: int) -> "Demands":
        """The demands on groups of leaves. Leaves of group -1 are left out."""
        must_hold = np.zeros((n_groups, len(self.sets)), np.bool_)
        np.logical_or.at(must_hold, group[group >= 0], self.must_hold[group >= 0])
        return Demands(self.sets, must_hold)


def make_one_demand(models: Sequence[PrivacyModel], n_leaves: int) -> Demands:
    """Demands with the same models for all leaves."""
    return Demands((tuple(models),), np.ones((n_leaves, 1), np.bool_))


def _unite(counts: SparseCounts, group: Ints, n_groups: int) -> SparseCounts:
    """The counts with leaves replaced by their groups. Leaves of group -1 are left out."""
    cell = group[counts.cell]
    in_group = cell >= 0

    def total(of_leaves: Ints | None) -> Ints | None:
        if of_leaves is None:
            return None
        there = group >= 0
        return np.bincount(group[there], of_leaves[there], n_groups).astype(np.int64)

    summed = sum_counts(cell[in_group], counts.value[in_group], counts.count[in_group])
    return replace(summed, n_missing=total(counts.n_missing), n_known=total(counts.n_known))


def _bits(words: Ints) -> SparseCounts:
    """The set bits of sketches, as values that occur once."""
    flat = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1)
    cell, value = np.nonzero(flat)
    return SparseCounts(cell.astype(np.int64), value.astype(np.int64), np.ones(len(cell), np.int64))


def merge_small(
    cuts: TreeShape, root: Ints, counts: BlockCounts, centers: Floats, demands: Demands
) -> Ints:
    """Merges leaves until every block holds its models.

    While a group of leaves fails, it joins the group with the nearest centre in the smallest
    subtree around it that has another group, or in the whole tree. Every tree must hold its models
    as a whole; at worst it becomes one block. Cost O(b log b) if few leaves fail.

    Args:
        cuts: The forest.
        root: int64[b]. The tree of each leaf; -1 leaves the leaf out. Leaves that are not in `cuts`
            are children of their roots.
        counts: The counts of the b leaves.
        centers: float64[b, f]. The centre of each leaf.
        demands: The models of each leaf.

    Returns:
        int64[b]. The block of each leaf, 0..m-1; -1 if `root` is -1.
    """
    group = np.where(root >= 0, np.arange(len(root)), -1)
    members = {leaf: np.array([leaf]) for leaf in np.flatnonzero(root >= 0).tolist()}
    around = _around(cuts, root)
    for failing in np.flatnonzero(~demands.holds(counts) & (root >= 0)).tolist():
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
    """Whether a union of leaves certainly holds its models."""
    one = np.zeros(len(leaves), np.int64)
    asked = Demands(demands.sets, demands.must_hold[leaves]).merge(one, 1)
    return bool(asked.holds(counts.of(leaves).merge(one, 1))[0])


def _around(cuts: TreeShape, root: Ints) -> list[list[Ints]]:
    """For each leaf: the leaves of each subtree around it, smallest first, then those of its
    tree."""
    below: list[Ints] = [np.zeros(0, np.int64)] * len(cuts.left)
    around: list[list[Ints]] = [[] for _ in root]
    for j in range(len(cuts.left) - 1, -1, -1):
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


@dataclass(frozen=True)
class Leaves:
    """The b leaves of a plan before its repair.

    Attributes:
        cuts: The forest. Leaves of heavy tuples are not in it.
        controller: int64[b]. Whose rows a leaf has: leaves of two controllers are never merged. -1
            for rows that are left out.
        centers: float64[b, f]. The centre of each leaf.
        heavy: The leaves of heavy tuples.
    """

    cuts: TreeShape
    controller: Ints
    centers: Floats
    heavy: tuple[int, ...] = ()


@dataclass(frozen=True)
class Deal:
    """How the rows of leaves become blocks: the block of a row is `first[leaf]` plus a hash of the
    row modulo `buckets[leaf]`.

    Attributes:
        first: int64[leaves]. The first block of each leaf; 0 for a leaf that is left out.
        buckets: int64[leaves]. The blocks that a leaf is dealt to.
        sizes: int64[blocks]. The rows of each block; estimated where a leaf is dealt to several.
        n_merged: Leaves that were merged with others.
        largest: Rows of the largest leaf.
        spread: Leaves of heavy tuples that are alone in their blocks. However their rows are
            dealt, the tuple itself is released.
    """

    first: Ints
    buckets: Ints
    sizes: Ints
    n_merged: int = 0
    largest: int = 0
    spread: tuple[int, ...] = ()


def deal_one_each(n_leaves: int) -> Deal:
    """Each leaf is a block."""
    one = np.ones(n_leaves, np.int64)
    return Deal(np.arange(n_leaves), one, np.zeros(n_leaves, np.int64))


def repair(
    leaves: Leaves,
    count: Callable[[Deal], BlockCounts],
    demand: Callable[[Ints], Demands],
    max_rows: int | None,
) -> Deal:
    """Merges leaves until all blocks hold their models, and deals leaves that are too large for a
    task (most of such a leaf is one repeated tuple) into as many buckets as hold the models.

    Args:
        leaves: The leaves.
        count: Counts the blocks of a deal exactly.
        demand: The models that the rows of each of these controllers must hold.
        max_rows: The rows of a block; None if leaves stay whole, however large they are.
    """
    n, controller = len(leaves.controller), leaves.controller
    counts = count(deal_one_each(n))
    group = merge_small(leaves.cuts, controller, counts, leaves.centers, demand(controller))
    if counts.shared and counts.counts:
        group = _merge_again(leaves, count, demand, group)
    has_block = group >= 0
    sizes = np.bincount(group[has_block], counts.n_rows[has_block]).astype(np.int64)
    dealt = np.ones_like(sizes)
    if max_rows is not None:
        dealt = np.where(sizes > IN_TASK * max_rows, -(-sizes // max_rows), 1)
    group_controller = np.zeros(len(sizes), np.int64)
    group_controller[group[has_block]] = controller[has_block]
    alone = np.bincount(group[has_block], minlength=len(sizes)) == 1
    while True:
        start = np.cumsum(dealt) - dealt
        deal = Deal(
            first=np.where(has_block, start[group], 0),
            buckets=np.where(has_block, dealt[group], 1),
            sizes=np.repeat(-(-sizes // dealt), dealt),
            n_merged=int(has_block.sum() - len(sizes)),
            largest=int(sizes.max()),
            spread=tuple(i for i in leaves.heavy if has_block[i] and alone[group[i]]),
        )
        if (dealt == 1).all():
            return deal
        counts = count(deal)
        each = np.repeat(np.arange(len(dealt)), dealt)
        holds = demand(group_controller[each]).holds(counts) | (counts.n_rows == 0)
        short = np.unique(each[~holds & (dealt[each] > 1)])
        if not len(short):
            return deal
        dealt[short] //= 2


def _merge_again(
    leaves: Leaves,
    count: Callable[[Deal], BlockCounts],
    demand: Callable[[Ints], Demands],
    group: Ints,
) -> Ints:
    """int64[b]. The block of each leaf, 0..m-1; -1 for none.

    Sums over merged leaves count a person with rows in several of them several times. So blocks are
    counted again, and merged until they hold their models.
    """
    has_block, centers = group >= 0, leaves.centers
    each = deal_one_each(len(group))
    while True:
        first = np.unique(group[has_block], return_index=True)[1]
        some = np.flatnonzero(has_block)[first]  # one leaf of each block
        counts = count(replace(each, first=np.where(has_block, group, 0)))
        controller, none = leaves.controller[some], no_cuts(centers.shape[1], 0)
        merged = merge_small(none, controller, counts, centers[some], demand(controller))
        if int(merged.max()) + 1 == len(some):
            return group
        group = np.where(has_block, merged[group], -1)


def find_centers(leaf: Ints, coordinates: Singles, n_leaves: int) -> Floats:
    """float64[leaves, f]. The mean coordinates of the sampled rows of each leaf; 0 if none was
    sampled. leaf: int64[m], the leaf of each."""
    values = coordinates.astype(np.float64)
    count = np.maximum(np.bincount(leaf, minlength=n_leaves), 1)
    sums = [np.bincount(leaf, values[:, f], n_leaves) for f in range(values.shape[1])]
    return np.column_stack([np.empty((n_leaves, 0)), *sums]) / count[:, None]


def as_values(leaf: Ints, size: Ints) -> SparseCounts:
    """Counts of as many distinct values as leaves are known to have, each of one person. Leaves
    that are merged have then as many as the richest of them, which is a lower bound.

    Args:
        leaf: int64[l], ascending. Leaves.
        size: int64[l]. The distinct values of each.
    """
    value = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    return SparseCounts(np.repeat(leaf, size), value, np.ones(size.sum(), np.int64))


def count_words(models: Sequence[PrivacyModel]) -> int:
    """The words of a sketch that shows whether leaves have the values that models ask for."""
    return max(1, ceil(max((m.min_values for m in models), default=0) / VALUES_PER_WORD))
