"""Data controllers: which are kept, merged or suppressed, and the models that each must hold."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anonlib.arrays import Bools, Floats, Ints
from anonlib.errors import InfeasibleError, Problem
from anonlib.partition.cuts import no_cuts
from anonlib.partition.repair import BlockCounts, Demands, make_one_demand, merge_small
from anonlib.privacy import PrivacyModel, Reference
from anonlib.table.encoding import Values


@dataclass(frozen=True)
class Controllers:
    """The data controllers 0..c-1 of a table, in the order of Spark's hashes of their values.

    Attributes:
        hashes: int64[c], ascending. These hashes.
        n_rows: int64[c]. Rows of each controller.
        head: int64[c]. The controller that the rows count for: itself, another one after a
            merger, -1 if suppressed.
        must_hold: bool[c, sets]. The `sets` of models that each asks; the config's are first.
        values: By id: the values of protected columns in the rows that are kept.
    """

    hashes: Ints
    n_rows: Ints
    head: Ints
    must_hold: Bools
    sets: tuple[tuple[PrivacyModel, ...], ...]
    values: dict[str, Values]

    @property
    def kept_rows(self) -> Ints:
        """int64[o]. By number of a controller, up to the last that is kept: its rows."""
        kept = self.head >= 0
        return np.bincount(self.head[kept], self.n_rows[kept]).astype(np.int64)

    @cached_property
    def own(self) -> dict[int, tuple[PrivacyModel, ...]]:
        """By controller: the models that it must hold besides those of the config."""
        own = {}
        kept = self.head == np.arange(len(self.head))
        for c in np.flatnonzero(self.must_hold[:, 1:].any(axis=1) & kept).tolist():
            which = np.flatnonzero(self.must_hold[c, 1:]) + 1
            own[c] = tuple(model for s in which for model in self.sets[s])
        return own

    def with_own_models(self) -> list[tuple[tuple[int, ...], tuple[PrivacyModel, ...]]]:
        """Groups of controllers that must hold the same models of their own, and these models."""
        alike: dict[tuple[PrivacyModel, ...], list[int]] = {}
        for controller, models in self.own.items():
            alike.setdefault(models, []).append(controller)
        return [(tuple(controllers), models) for models, controllers in alike.items()]

    def demands(self, controller: Ints) -> Demands:
        """The models that the rows of each of these controllers must hold."""
        return Demands(self.sets, self.must_hold[controller])

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "n": len(self.hashes),
            "n_suppressed": int((self.head < 0).sum()),
            "n_merged": int((self.head[self.head >= 0] != np.flatnonzero(self.head >= 0)).sum()),
        }


def find_demands(
    controllers: Controllers | None, models: tuple[PrivacyModel, ...], controller: Ints
) -> Demands:
    """The models that the rows of each of these controllers must hold: `models`, those of the
    config, if there are no data controllers."""
    if controllers is None:
        return make_one_demand(models, len(controller))
    return controllers.demands(controller)


def merge_controllers(
    controllers: Controllers, count: Callable[[Controllers], BlockCounts], centers: Floats
) -> Controllers:
    """Merges each failing controller with the nearest, until all hold their models.

    Where controllers share persons, counts of several are no sums of theirs: they are counted
    again, and merged on, until all hold their models.

    Args:
        controllers: All of them.
        count: Counts the rows of each head exactly.
        centers: float64[c, f]. The centre of each controller.

    Raises InfeasibleError if all merged ones still fail.
    """
    while True:
        heads, place = np.unique(controllers.head, return_inverse=True)
        counts, demands = count(controllers).of(heads), controllers.demands(heads)
        tree = np.zeros(len(heads), np.int64)
        group = merge_small(no_cuts(0, 0), tree, counts, centers[heads], demands)
        first = np.unique(group, return_index=True)[1]
        n = len(first)
        is_exact = n == len(heads) or not counts.shared
        if is_exact and not demands.merge(group, n).holds(counts.merge(group, n)).all():
            raise InfeasibleError(
                [
                    Problem(
                        "partition.steps.0.models",
                        (
                            "all controllers together don't hold the `models` that some of them "
                            "ask for; weaken these models"
                        ),
                    )
                ]
            )
        head = heads[first[group]][place]
        must_hold = np.zeros_like(controllers.must_hold)
        np.logical_or.at(must_hold, head, controllers.must_hold)
        controllers = replace(controllers, head=head, must_hold=must_hold)
        if is_exact:
            return controllers


def suppress_controllers(
    controllers: Controllers,
    count: Callable[[Controllers], BlockCounts],
    max_suppressed: int,
    n_rows: int,
) -> Controllers:
    """Suppresses controllers that fail, `max_suppressed` rows at most. The references are
    then counted without them, so that others may fail in the next round."""
    everyone = np.arange(len(controllers.head))
    while True:
        stays = controllers.head >= 0
        counts = count(controllers)
        lost = stays & ~controllers.demands(everyone).holds(counts)
        if not lost.any():
            return controllers
        stays &= ~lost
        n_lost = int(controllers.n_rows[~stays].sum())
        if n_lost > max_suppressed or not stays.any():
            raise InfeasibleError(
                [
                    Problem(
                        "partition.steps.0",
                        (
                            f"{(~stays).sum()} of {len(stays)} controllers, with {n_lost} of "
                            f"{n_rows} rows, can't hold their models alone; suppression_limit "
                            f"allows {max_suppressed} rows. Raise it, weaken the models, or set "
                            "`merge: true`"
                        ),
                    )
                ]
            )
        controllers = replace(
            controllers,
            head=np.where(stays, controllers.head, -1),
            values=_of_kept(counts, controllers.values, stays),
        )


def _of_kept(counts: BlockCounts, values: dict[str, Values], stays: Bools) -> dict[str, Values]:
    """The values of protected columns in the rows of kept controllers.

    With a unit all values stay: a person may have rows at several controllers, and no model of the
    config compares cells with the whole table.
    """
    if counts.shared:
        return values
    return {id: _without(counts, id, each, ~stays) for id, each in values.items()}


def _without(counts: BlockCounts, id: str, values: Values, gone: Bools) -> Values:
    of, reference = counts.counts[id], values.reference
    lost = gone[of.cell]
    n_lost = np.bincount(of.value[lost], of.count[lost], len(values.categories)).astype(np.int64)
    total = reference.count - n_lost
    there = total > 0
    levels = None if reference.levels is None else reference.levels[:, there]
    n_missing = reference.n_missing - int(counts.n_rows[gone].sum() - n_lost.sum())
    return Values(values.categories.filter(there), Reference(total[there], n_missing, levels))
