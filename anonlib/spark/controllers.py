"""The data controllers of a table, the models that each must hold, and what becomes of those that
can't."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib import registry
from anonlib.block import Bools, Floats, Ints
from anonlib.config import Config
from anonlib.encoding import Values
from anonlib.errors import ConfigError, InfeasibleError, Problem
from anonlib.partition._plan import no_cuts
from anonlib.partition._repair import Counts, Demands, merge_small
from anonlib.partition.controller import Controller
from anonlib.privacy import PrivacyModel, Reference, SparseCounts
from anonlib.resolve import bound, with_ids
from anonlib.schema import Schema
from anonlib.spark.leaves import counted, exact_values
from anonlib.spark.lookup import looked_up
from anonlib.spark.scan import Scan
from anonlib.work import CONTROLLER, OWNER, Task

#: More controllers than this are another kind of column.
MAX_CONTROLLERS = 100_000


@dataclass(frozen=True)
class Owners:
    """The controllers 0..c-1 of a table, in the order of Spark's hashes of their values.

    n_rows: int64[c]. owner: int64[c], the controller that each one's rows are counted to: another
    if it was merged, -1 if it is suppressed. asked: bool[c, sets], which of the `sets` of models
    each owner is asked, the config's first. values: those of the rows that are kept.
    """

    id: str
    hashes: tuple[int, ...]
    n_rows: Ints
    owner: Ints
    asked: Bools
    sets: tuple[tuple[PrivacyModel, ...], ...]
    values: dict[str, Values]

    @property
    def number(self) -> Column:
        """The controller of a row."""
        return looked_up(F.xxhash64(F.col(self.id)), self.hashes, range(len(self.hashes)), -1)

    @cached_property
    def own(self) -> dict[int, tuple[PrivacyModel, ...]]:
        """The models that owners are asked besides those of all."""
        found = {}
        for c in np.flatnonzero(self.asked[:, 1:].any(axis=1)).tolist():
            which = np.flatnonzero(self.asked[c, 1:]) + 1
            found[c] = tuple(model for s in which for model in self.sets[s])
        return found

    def with_own_models(self) -> list[tuple[tuple[int, ...], tuple[PrivacyModel, ...]]]:
        """The owners that are asked the same models of their own, and these."""
        alike: dict[tuple[PrivacyModel, ...], list[int]] = {}
        for owner, models in self.own.items():
            alike.setdefault(models, []).append(owner)
        return [(tuple(owners), models) for models, owners in alike.items()]

    def demands(self, owner: Ints) -> Demands:
        """The models that the rows of each of these owners must hold."""
        return Demands(self.sets, self.asked[owner])

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "n": len(self.hashes),
            "n_suppressed": int((self.owner < 0).sum()),
            "n_merged": int((self.owner[self.owner >= 0] != np.flatnonzero(self.owner >= 0)).sum()),
        }


def built(specs: tuple[dict[str, Any], ...]) -> tuple[PrivacyModel, ...]:
    """The models of a task."""
    return tuple(registry.build("privacy model", spec) for spec in specs)


def owned(rows: DataFrame, schema: Schema, scan: Scan, config: Config, task: Task) -> Owners | None:
    """The controllers of a table; None where the config has none.

    Raises ConfigError for models of controllers that are not there, InfeasibleError where those
    that can't hold their models have more rows than may be suppressed.
    """
    step = config.partition.controller
    if step is None:
        return None
    found = _found(rows, schema, scan, config, step, built(task.models))
    models = tuple(model for models in found.sets for model in models)
    numbered = rows.withColumn(CONTROLLER, found.number)
    n = len(found.hashes)
    counts = counted(numbered, schema, scan.values, models, config, n, by=CONTROLLER)
    if not found.demands(found.owner).held(counts).all():
        counts = exact_values(numbered, schema, config, counts, by=CONTROLLER)
    if step.merge:
        return _merged(found, counts, _centers(scan, found))
    return _suppressed(found, counts, config, scan.n_rows)


def _found(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    config: Config,
    step: Controller,
    models: tuple[PrivacyModel, ...],
) -> Owners:
    assert schema.controller is not None
    value = F.col(schema.controller)
    counts = rows.groupBy(value.alias("value")).agg(F.count(F.lit(1)).alias("n"))
    hashed = counts.select(F.xxhash64("value").alias("h"), F.col("value").cast("string"), "n")
    found = hashed.orderBy("h").limit(MAX_CONTROLLERS + 1).collect()
    if len(found) > MAX_CONTROLLERS:
        text = f"has more than {MAX_CONTROLLERS} values, too many for data controllers"
        raise ConfigError([Problem(f"column {step.column}", text)])
    names = [row["value"] for row in found]
    if absent := [name for name in step.models if name not in names]:
        text = f"{len(absent)} of {len(step.models)} are not values of column {step.column}"
        raise ConfigError([Problem("partition.steps.0.models", text)])
    asked = np.zeros((len(names), 1 + len(step.models)), np.bool_)
    asked[:, 0] = True
    for s, name in enumerate(step.models, 1):
        asked[names.index(name), s] = True
    own = [with_ids(bound(each, config), schema) for each in step.models.values()]
    return Owners(
        schema.controller,
        tuple(row["h"] for row in found),
        np.array([row["n"] for row in found], np.int64),
        np.arange(len(found)),
        asked,
        (models, *own),
        scan.values,
    )


def _centers(scan: Scan, found: Owners) -> Floats:
    """float64[c, p]: the mean standardized numbers of the sampled rows of each controller."""
    owner = np.searchsorted(np.array(found.hashes), scan.sample.column(OWNER).to_numpy())
    count = np.maximum(np.bincount(owner, minlength=len(found.hashes)), 1)
    columns = [
        e.numeric(scan.sample.column(e.id).combine_chunks())[:, 0]
        for e in scan.encodings
        if not e.nominal
    ]
    sums = [np.bincount(owner, x, len(count)) for x in columns]
    return np.column_stack([np.zeros((len(count), 1)), *sums]) / count[:, None]


def _merged(found: Owners, counts: Counts, centers: Floats) -> Owners:
    """Those that fail join the nearest until all hold."""
    n = len(found.hashes)
    demands = found.demands(found.owner)
    group = merge_small(no_cuts(0, 0), np.zeros(n, np.int64), counts, centers, demands)
    first = np.unique(group, return_index=True)[1]
    owner = first[group]
    asked = np.zeros_like(found.asked)
    np.logical_or.at(asked, owner, found.asked)
    return replace(found, owner=owner, asked=asked)


def _suppressed(found: Owners, counts: Counts, config: Config, n_rows: int) -> Owners:
    """Those that fail are suppressed; the references are then of the others, who may fail now."""
    allowed = int(config.privacy.suppression_limit * n_rows)
    while True:
        kept = found.owner >= 0
        lost = kept & ~found.demands(np.arange(len(kept))).held(counts)
        if not lost.any():
            return found
        kept &= ~lost
        found = replace(found, owner=np.where(kept, found.owner, -1))
        n_lost = int(found.n_rows[~kept].sum())
        if n_lost > allowed or not kept.any():
            text = (
                f"{(~kept).sum()} of {len(kept)} controllers, with {n_lost} of {n_rows} rows, "
                f"can't hold their models alone; suppression_limit allows {allowed} rows. Raise "
                "it, ask less, or set `merge: true`"
            )
            raise InfeasibleError([Problem("partition.steps.0", text)])
        if found.values:
            counts, values = _of_kept(counts, found.values, kept)
            found = replace(found, values=values)


def _of_kept(
    counts: Counts, values: dict[str, Values], kept: Bools
) -> tuple[Counts, dict[str, Values]]:
    """The counts with references of the kept controllers' rows, and the values there."""
    n_rows = np.where(kept, counts.n_rows, 0)
    sparse, found = dict(counts.counts), {}
    for id, known in values.items():
        of = sparse[id]
        mine = kept[of.cell]
        total = np.bincount(of.value[mine], of.count[mine], len(known.categories)).astype(np.int64)
        there = total > 0
        number = np.cumsum(there) - 1
        sparse[id] = SparseCounts(of.cell[mine], number[of.value[mine]], of.count[mine])
        levels = known.reference.levels
        levels = None if levels is None else levels[:, there]
        reference = Reference(total[there], int(n_rows.sum() - total.sum()), levels)
        found[id] = Values(known.categories.filter(there), reference)
    references = {id: each.reference for id, each in found.items()}
    return replace(counts, n_rows=n_rows, counts=sparse, references=references), found
