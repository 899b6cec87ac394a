"""From rows to blocks: grow the forest on the sample, count its leaves exactly, repair, and number
the blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Floats, Ints
from anonlib.config.model import Config
from anonlib.errors import ConfigError, Problem
from anonlib.partition import Cut, Plane, Sample
from anonlib.partition.chain import FILL, grow
from anonlib.partition.cuts import Cuts
from anonlib.partition.repair import Counts, Demands, merge_small, one_demand
from anonlib.privacy import PrivacyModel
from anonlib.run.leaves import LEAF, Feature, compiled, counted, with_leaf
from anonlib.run.owners import Owners, built, owned
from anonlib.run.scan import Scan, tuple_hash
from anonlib.spark.values import at, looked_up
from anonlib.table.columns import BLOCK, CONTROLLER, DEAL, OWNER, TUPLE
from anonlib.table.encoding import Values
from anonlib.table.schema import Schema
from anonlib.worker.task import Task, to_block

#: The fewest sampled rows of a leaf that plans aim at.
MIN_PER_LEAF = 8
#: Blocks of up to this many times max_rows are bisected in their task; larger ones are dealt out.
IN_TASK = 4


@dataclass(frozen=True)
class Plan:
    """Rows -> blocks: the leaf of a row is that of its quasi-identifiers among the `heavy` tuples,
    else where `cuts` send it from the root of its controller; then `first[leaf]` plus a hash modulo
    `buckets[leaf]` is the block. `spread` are the leaves of heavy tuples that are alone in their
    blocks: however these rows are dealt, the tuple is what is released of them.

    owners: what became of the controllers, None where there are none. heavy: hash -> leaf.
    split_by: the ids of the columns that single-column cuts are of. n_rows: the rows that are kept;
    values: what the protected columns have there.
    """

    owners: Owners | None
    features: tuple[Feature, ...]
    cuts: Cuts
    heavy: Mapping[int, int]
    first: Ints
    buckets: Ints
    n_rows: int
    values: dict[str, Values]
    split_by: tuple[str, ...] = ()
    n_merged: int = 0
    largest: int = 0
    spread: tuple[int, ...] = ()

    @property
    def n_blocks(self) -> int:
        return int(max(self.first + self.buckets, default=0))

    @property
    def own(self) -> dict[int, tuple[PrivacyModel, ...]]:
        """The models that controllers are asked besides those of all."""
        return {} if self.owners is None else self.owners.own

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "features": [{"column": f.id, "form": f.form} for f in self.features],
            "cuts": self.cuts.to_dict(),
            "n_leaves": self.cuts.n_leaves,
            "n_heavy_tuples": len(self.heavy),
            "controllers": None if self.owners is None else self.owners.to_dict(),
            "n_blocks": self.n_blocks,
            "n_merged": self.n_merged,
            "largest_leaf": self.largest,
        }


def plan(rows: DataFrame, schema: Schema, scan: Scan, config: Config, task: Task) -> Plan:
    """The frozen plan. Raises ConfigError when `single` meets a table larger than its limit,
    InfeasibleError when controllers with more rows than may be suppressed can't hold the models."""
    owners = owned(rows, schema, scan, config, task)
    n_rows = np.array([scan.n_rows]) if owners is None else owners.n_rows
    _refuse_large(config, n_rows if owners is None else owners.kept_rows)
    sample, root, tuples = _sample(scan, task, owners)
    _refuse_thin(config, sample, scan.n_rows)
    steps, bound = config.partition.steps, config.partition.max_rows
    grown = grow(sample, steps, bound, config.seed, root, n_rows)
    features, cuts = compiled(grown.tree, sample, scan.encodings, scan.hashes)
    heavy: dict[int, int] = {}
    leaf = grown.leaf
    if not any(step.whole for step in steps):
        heavy, leaf = _heavy(tuples, IN_TASK * bound * sample.share, leaf, cuts.n_leaves)
    n_leaves = cuts.n_leaves + len(heavy)
    draft = Plan(
        owners=owners,
        features=features,
        cuts=cuts,
        heavy=heavy,
        first=np.arange(n_leaves),
        buckets=np.ones(n_leaves, np.int64),
        n_rows=scan.n_rows if owners is None else int(n_rows[owners.owner >= 0].sum()),
        values=scan.values if owners is None else owners.values,
        split_by=_split_by(grown.tree.cuts, scan),
        largest=int(n_rows.max()),
    )
    if n_leaves == 1:
        return draft  # the table holds the models as a whole
    heavy_roots = [root[leaf == id][0] for id in heavy.values()]
    roots = np.concatenate([cuts.root_of_leaf, np.array(heavy_roots, np.int64)])
    centers = _centers(leaf, sample.coordinates.astype(np.float64), n_leaves)
    return _repaired(draft, Rows(rows, schema, config, task), roots, centers)


@dataclass(frozen=True)
class Rows:
    """A table and what is known of it."""

    frame: DataFrame
    schema: Schema
    config: Config
    task: Task

    def counted(self, plan: Plan) -> Counts:
        """The exact counts of a plan's blocks."""
        own = [m for models in plan.own.values() for m in models]
        models = (*built(self.task.models), *own)
        blocks = with_blocks(self.frame, self.schema, plan)
        return counted(
            blocks, self.schema, plan.values, models, self.config, plan.n_blocks, by=BLOCK
        )

    def demands(self, plan: Plan, owner: Ints) -> Demands:
        """The models that the rows of each of these controllers must hold."""
        if plan.owners is None:
            return one_demand(built(self.task.models), len(owner))
        return plan.owners.demands(owner)


def _repaired(draft: Plan, rows: Rows, root: Ints, centers: Floats) -> Plan:
    """The plan whose blocks hold the models: leaves merged, and what is too large for a task (most
    of it is then one repeated tuple) dealt into as many buckets as hold them."""
    owner = root if draft.owners is None else draft.owners.owner[root]
    counts = rows.counted(draft)
    demands = rows.demands(draft, owner)
    group = merge_small(draft.cuts, owner, counts, centers, demands)
    placed = group >= 0
    sizes = np.bincount(group[placed], counts.n_rows[placed]).astype(np.int64)
    bound = rows.config.partition.max_rows
    dealt = np.where(sizes > IN_TASK * bound, -(-sizes // bound), 1)
    if any(step.whole for step in rows.config.partition.steps):
        dealt = np.ones_like(dealt)
    group_owner = np.zeros(len(sizes), np.int64)
    group_owner[group[placed]] = owner[placed]
    alone = np.bincount(group[placed], minlength=len(sizes)) == 1
    heavy = [leaf for leaf in draft.heavy.values() if placed[leaf] and alone[group[leaf]]]
    while True:
        start = np.cumsum(dealt) - dealt
        made = replace(
            draft,
            first=np.where(placed, start[group], 0),
            buckets=np.where(placed, dealt[group], 1),
            n_merged=int(placed.sum() - len(sizes)),
            largest=int(sizes.max()),
            spread=tuple(heavy),
        )
        if (dealt == 1).all():
            return made
        counts = rows.counted(made)
        each = np.repeat(np.arange(len(dealt)), dealt)
        holds = rows.demands(draft, group_owner[each]).held(counts) | (counts.n_rows == 0)
        short = np.unique(each[~holds & (dealt[each] > 1)])
        if not len(short):
            return made
        dealt[short] //= 2


def _refuse_large(config: Config, n_rows: Ints) -> None:
    for i, step in enumerate(config.partition.steps):
        if step.whole is not None and n_rows.max() > step.whole:
            text = f"one block takes at most {step.whole} rows, the source has {n_rows.max()}"
            raise ConfigError([Problem(f"partition.steps.{i}", f"{text}; use kmeans")])


def _refuse_thin(config: Config, sample: Sample, n_rows: int) -> None:
    """A plan can't aim at blocks of which the sample has a few rows each."""
    per_leaf = FILL * config.partition.max_rows * sample.share
    if sample.share < 1.0 and per_leaf < MIN_PER_LEAF:
        wanted = ceil(MIN_PER_LEAF * n_rows / (FILL * config.partition.max_rows))
        text = f"blocks of max_rows need a sample of at least {wanted} rows of these {n_rows}"
        raise ConfigError([Problem("partition.sample_rows", f"{text}; or raise max_rows")])


def _sample(scan: Scan, task: Task, owners: Owners | None) -> tuple[Sample, Ints, Ints]:
    """The sample as partitioners see it; of each row its root, and the hash of its tuple."""
    place = pa.array(np.arange(len(scan.sample)))
    block, table = to_block(scan.sample.append_column("place", place), replace(task, own={}))
    root = np.zeros(block.n, np.int64)
    if owners is not None:
        hashes = np.array(owners.hashes, np.int64)  # ascending
        root = np.searchsorted(hashes, table.column(OWNER).to_numpy())
    share = 1.0 if block.n == scan.n_rows else block.n / scan.n_rows
    sample = Sample(block, table.column("place").to_numpy(), share)
    return sample, root, table.column(TUPLE).to_numpy()


def _heavy(tuples: Ints, most: float, leaf: Ints, n_leaves: int) -> tuple[dict[int, int], Ints]:
    """The tuples of more than `most` sampled rows, by hash, with leaves of their own, and the leaf
    of each sampled row."""
    unique, count = np.unique(tuples, return_counts=True)
    many = unique[count > most].tolist()
    heavy = {tuple_: n_leaves + i for i, tuple_ in enumerate(many)}
    leaf = leaf.copy()
    for tuple_, id in heavy.items():
        leaf[tuples == tuple_] = id
    return heavy, leaf


def _split_by(cuts: Sequence[Cut], scan: Scan) -> tuple[str, ...]:
    """The ids of the columns that single-column cuts are of."""
    numeric = [e.id for e in scan.encodings if not e.nominal for _ in e.widths]
    ids = numeric + [e.id for e in scan.encodings if e.nominal]
    return tuple(sorted({ids[cut.column] for cut in cuts if not isinstance(cut, Plane)}))


def _centers(leaf: Ints, values: Floats, n_leaves: int) -> Floats:
    """Mean coordinates of the sampled rows of each leaf; 0 where none was sampled."""
    count = np.maximum(np.bincount(leaf, minlength=n_leaves), 1)
    sums = [np.bincount(leaf, values[:, f], n_leaves) for f in range(values.shape[1])]
    return np.column_stack([np.empty((n_leaves, 0)), *sums]) / count[:, None]


def with_blocks(rows: DataFrame, schema: Schema, plan: Plan) -> DataFrame:
    """The rows that are kept, with BLOCK and, where there are controllers, CONTROLLER, computed in
    the JVM row by row."""
    root = F.lit(0)
    if plan.owners is not None:
        root = plan.owners.number
        rows = rows.withColumn(CONTROLLER, at(plan.owners.owner, root))
        if (plan.owners.owner < 0).any():
            rows = rows.where(F.col(CONTROLLER) >= 0)
    if plan.n_blocks == 1:
        return rows.withColumn(BLOCK, F.lit(0)).drop(DEAL)
    rows = with_leaf(rows, schema, plan.features, plan.cuts, root)
    leaf, deal = F.col(LEAF), F.col(DEAL)
    if plan.heavy:
        own = looked_up(tuple_hash(rows, schema), list(plan.heavy), plan.heavy.values(), -1)
        leaf = F.when(own >= 0, own).otherwise(leaf)
        # Its rows may agree in all columns: nothing of theirs tells them apart.
        spread = F.xxhash64(deal, F.monotonically_increasing_id())
        deal = F.when(leaf.isin(*plan.spread), spread).otherwise(deal)
    block = at(plan.first, leaf)
    if plan.buckets.max() > 1:
        block = block + F.pmod(deal, at(plan.buckets, leaf))
    return rows.withColumn(BLOCK, block.cast("int")).drop(LEAF, DEAL)
