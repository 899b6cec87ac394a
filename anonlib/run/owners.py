"""Data controllers: which are kept, merged or suppressed, and the models that each must hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anonlib.arrays import Bools, Floats, Ints
from anonlib.config.model import Attribute, PartitionSection
from anonlib.config.resolve import bind_models, with_ids
from anonlib.errors import ConfigError, InfeasibleError, Problem
from anonlib.partition.controller import Controller
from anonlib.partition.cuts import no_cuts
from anonlib.partition.repair import BlockCounts, Demands, merge_small
from anonlib.privacy import PrivacyModel, Reference, build_models
from anonlib.run.leaves import count_leaves, exact_values
from anonlib.run.scan import Scan
from anonlib.spark.constants import at, look_up
from anonlib.table.columns import CONTROLLER, OWNER
from anonlib.table.encoding import Values
from anonlib.table.schema import Schema
from anonlib.worker.task import Task

#: Most controllers. A column with more distinct values hardly names institutions.
MAX_CONTROLLERS = 100_000


@dataclass(frozen=True)
class Owners:
    """The data controllers 0..c-1 of a table, in the order of Spark's hashes of their values.

    Attributes:
        n_rows: int64[c]. Rows of each controller.
        owner: int64[c]. The controller that the rows count for: itself, another one after a
            merger, -1 if suppressed.
        must_hold: bool[c, sets]. The `sets` of models that each owner asks; the config's are first.
        values: By id: the values of protected columns in the rows that are kept.
    """

    id: str
    hashes: tuple[int, ...]
    n_rows: Ints
    owner: Ints
    must_hold: Bools
    sets: tuple[tuple[PrivacyModel, ...], ...]
    values: dict[str, Values]

    @property
    def number(self) -> Column:
        """The controller of a row."""
        hashes = np.array(self.hashes, np.int64)
        return look_up(F.xxhash64(F.col(self.id)), hashes, np.arange(len(hashes)), -1)

    @property
    def kept_rows(self) -> Ints:
        """int64[owners that are kept]: their rows."""
        kept = self.owner >= 0
        return np.bincount(self.owner[kept], self.n_rows[kept]).astype(np.int64)

    @cached_property
    def own(self) -> dict[int, tuple[PrivacyModel, ...]]:
        """By owner: the models that it must hold besides those of the config."""
        own = {}
        kept = self.owner == np.arange(len(self.owner))
        for c in np.flatnonzero(self.must_hold[:, 1:].any(axis=1) & kept).tolist():
            which = np.flatnonzero(self.must_hold[c, 1:]) + 1
            own[c] = tuple(model for s in which for model in self.sets[s])
        return own

    def with_own_models(self) -> list[tuple[tuple[int, ...], tuple[PrivacyModel, ...]]]:
        """Groups of owners that must hold the same models of their own, and these models."""
        alike: dict[tuple[PrivacyModel, ...], list[int]] = {}
        for owner, models in self.own.items():
            alike.setdefault(models, []).append(owner)
        return [(tuple(owners), models) for models, owners in alike.items()]

    def demands(self, owner: Ints) -> Demands:
        """The models that the rows of each of these owners must hold."""
        return Demands(self.sets, self.must_hold[owner])

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "n": len(self.hashes),
            "n_suppressed": int((self.owner < 0).sum()),
            "n_merged": int((self.owner[self.owner >= 0] != np.flatnonzero(self.owner >= 0)).sum()),
        }


def resolve_owners(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    partition: PartitionSection,
    attributes: Mapping[str, Attribute],
    max_suppressed: int,
    task: Task,
) -> Owners | None:
    """Decides which controllers of a table are kept, merged or suppressed.

    At most `max_suppressed` rows are suppressed. None if the config has no controllers.

    Raises:
        ConfigError: `models` names controllers that the table does not have.
        InfeasibleError: Controllers that can't hold their models have more rows than may be
            suppressed.
    """
    step = partition.controller
    if step is None:
        return None
    all_owners = _find_owners(rows, schema, scan, attributes, step, build_models(task.models))

    def count(owners: Owners) -> BlockCounts:
        return _counts(rows, schema, task.missing_tokens, owners)

    if step.merge:
        return _merge(all_owners, count(all_owners), _centers(scan, all_owners))
    return _suppress(all_owners, count, max_suppressed, scan.n_rows)


def _counts(
    rows: DataFrame, schema: Schema, missing_tokens: tuple[str, ...], owners: Owners
) -> BlockCounts:
    """The counts of the kept controllers. They are exact where the sketches do not suffice."""
    models = tuple(model for models in owners.sets for model in models)
    number = at(owners.owner, owners.number)
    kept = rows.withColumn(CONTROLLER, number).where(F.col(CONTROLLER) >= 0)
    n = len(owners.hashes)
    counts = count_leaves(kept, schema, owners.values, models, missing_tokens, n, by=CONTROLLER)
    if not owners.demands(np.arange(n)).holds(counts)[owners.owner >= 0].all():
        counts = exact_values(kept, schema, models, missing_tokens, counts, by=CONTROLLER)
    return counts


def _find_owners(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    attributes: Mapping[str, Attribute],
    step: Controller,
    models: tuple[PrivacyModel, ...],
) -> Owners:
    assert schema.controller is not None
    rows_of = list_controllers(rows, schema, step)
    names = [row["value"] for row in rows_of]
    must_hold = np.zeros((len(names), 1 + len(step.models)), np.bool_)
    must_hold[:, 0] = True
    for s, name in enumerate(step.models, 1):
        must_hold[names.index(name), s] = True
    own = [with_ids(bind_models(each, attributes), schema) for each in step.models.values()]
    return Owners(
        schema.controller,
        tuple(row["h"] for row in rows_of),
        np.array([row["n"] for row in rows_of], np.int64),
        np.arange(len(rows_of)),
        must_hold,
        (models, *own),
        scan.values,
    )


def list_controllers(rows: DataFrame, schema: Schema, step: Controller) -> list[Row]:
    """Lists the controllers of a table: `h`, Spark's hash of each value, `value` as text, and `n`,
    its rows. Cost: one aggregate.

    Raises ConfigError if there are too many, or `models` names others.
    """
    assert schema.controller is not None
    value = F.col(schema.controller)
    counts = rows.groupBy(value.alias("value")).agg(F.count(F.lit(1)).alias("n"))
    hashed = counts.select(F.xxhash64("value").alias("h"), F.col("value").cast("string"), "n")
    rows_of = hashed.orderBy("h").limit(MAX_CONTROLLERS + 1).collect()
    if len(rows_of) > MAX_CONTROLLERS:
        raise ConfigError(
            [
                Problem(
                    f"column {step.column}",
                    f"has more than {MAX_CONTROLLERS} values, too many for data controllers",
                )
            ]
        )
    names = {row["value"] for row in rows_of}
    if absent := [name for name in step.models if name not in names]:
        raise ConfigError(
            [
                Problem(
                    "partition.steps.0.models",
                    (
                        f"{len(absent)} of {len(step.models)} are not values of column "
                        f"{step.column} (booleans and dates as Spark writes them as text); "
                        "correct or remove them"
                    ),
                )
            ]
        )
    return rows_of


def _centers(scan: Scan, owners: Owners) -> Floats:
    """float64[c, p]. The mean of each standardized column in the sampled rows of a controller."""
    owner = np.searchsorted(np.array(owners.hashes), scan.sample.column(OWNER).to_numpy())
    count = np.maximum(np.bincount(owner, minlength=len(owners.hashes)), 1)
    columns = [
        e.numeric(scan.sample.column(e.id).combine_chunks())[:, 0]
        for e in scan.encodings
        if not e.nominal
    ]
    sums = [np.bincount(owner, x, len(count)) for x in columns]
    return np.column_stack([np.zeros((len(count), 1)), *sums]) / count[:, None]


def _merge(owners: Owners, counts: BlockCounts, centers: Floats) -> Owners:
    """Merges each failing controller with the nearest, until all hold their models. Raises
    InfeasibleError if all merged ones still fail."""
    n = len(owners.hashes)
    demands = owners.demands(owners.owner)
    group = merge_small(no_cuts(0, 0), np.zeros(n, np.int64), counts, centers, demands)
    first = np.unique(group, return_index=True)[1]
    held = demands.merge(group, len(first)).holds(counts.merge(group, len(first)))
    if not (held.all() or counts.shared):  # with shared persons, counts are lower bounds
        raise InfeasibleError(
            [
                Problem(
                    "partition.steps.0.models",
                    (
                        "even merged into one, the controllers don't hold the `models` of some of "
                        "them; weaken these models"
                    ),
                )
            ]
        )
    owner = first[group]
    must_hold = np.zeros_like(owners.must_hold)
    np.logical_or.at(must_hold, owner, owners.must_hold)
    return replace(owners, owner=owner, must_hold=must_hold)


def _suppress(
    owners: Owners, count: Callable[[Owners], BlockCounts], max_suppressed: int, n_rows: int
) -> Owners:
    """Suppresses controllers that fail, `max_suppressed` rows at most. The references are
    then counted without them, so that others may fail in the next round."""
    everyone = np.arange(len(owners.owner))
    while True:
        stays = owners.owner >= 0
        counts = count(owners)
        lost = stays & ~owners.demands(everyone).holds(counts)
        if not lost.any():
            return owners
        stays &= ~lost
        n_lost = int(owners.n_rows[~stays].sum())
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
        owners = replace(
            owners,
            owner=np.where(stays, owners.owner, -1),
            values=_of_kept(counts, owners.values, stays),
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
