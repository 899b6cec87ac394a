"""Plans by blocks: each leaf of a tree on the sample is a block. Spark sends rows to pools of them.
Tasks find the blocks of their rows, count them and merge those that fail the models; where a task
can't, Spark finds and counts all blocks, and the plan is repaired."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib import registry
from anonlib.arrays import Floats, Ints
from anonlib.config.model import Attribute, PartitionSection
from anonlib.decisions.limits import refuse_large
from anonlib.errors import ConfigError, Problem
from anonlib.partition import Cut, FlatTree, Plane, Sample, flatten_tree
from anonlib.partition.cuts import Cuts
from anonlib.partition.leaf_plan import Pools, plan_leaves
from anonlib.partition.repair import (
    BlockCounts,
    Deal,
    deal_one_each,
    repair,
)
from anonlib.partition.settlement import Controllers, find_demands
from anonlib.privacy import build_models
from anonlib.run.controller_plan import number_rows, resolve_controllers
from anonlib.run.leaves import LEAF, CutFeature, compile_tree, count_leaves, with_leaf
from anonlib.run.plan import Plan, StagedFigures, merge_read
from anonlib.run.sample import hash_tuple
from anonlib.run.scan import Scan
from anonlib.source.resolved_source import Source
from anonlib.spark.constants import at, look_up
from anonlib.spark.tasks import ROWS_PER_TASK, count_cores, deal_out, find_task_keys
from anonlib.spark.values import find_spark_schema
from anonlib.table.columns import (
    BLOCK,
    CONTROLLER,
    CONTROLLER_HASH,
    DEAL,
    HASH,
    HELD,
    HIGH,
    LINK,
    LOW,
    POOL,
    TUPLE,
)
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest
from anonlib.worker.cell_counts import merge_counts
from anonlib.worker.contracts import lose_rows, merge_states
from anonlib.worker.losses import describe_losses, rate_losses, rate_losses_by_column
from anonlib.worker.task import Task, Totals, anonymize_batches, anonymize_blocks, to_block

#: The fewest blocks, and pools of neighbours, that share a file, on average.
BLOCKS_PER_FILE, UNITS_PER_FILE = 4, 2


@dataclass(frozen=True, kw_only=True)
class BlockPlan(Plan):
    """Deals rows to blocks. A row whose tuple is `heavy` goes to that tuple's leaf; `cuts` send
    other rows from the root of their controller to a leaf. `deal` makes blocks of leaves.

    Attributes:
        features: What cuts look at.
        cuts: The forest; with pools, their trunk.
        heavy: Hash of a tuple -> its leaf.
        deal: The blocks of the leaves. By their sizes they are dealt out to tasks.
        pools: The pools of the blocks, if blocks were not counted: tasks get whole pools, count
            their blocks, and merge those that fail the models within their pool. None if blocks
            were counted and hold the models.
        tree: With pools, the forest: tasks find the blocks of their rows by it.
    """

    features: tuple[CutFeature, ...]
    cuts: Cuts
    heavy: Mapping[int, int]
    deal: Deal
    pools: Pools | None = None
    tree: FlatTree | None = None

    @property
    def n_blocks(self) -> int:
        return int(max(self.deal.first + self.deal.buckets, default=0))

    @property
    def most_files(self) -> int:
        return max(1, min(self._n_parts // UNITS_PER_FILE, self.n_blocks // BLOCKS_PER_FILE))

    @property
    def _n_parts(self) -> int:
        """The parts that tasks get whole."""
        return self.n_blocks if self.pools is None else int(self.pools.of_leaf.max()) + 1

    def stage(
        self,
        rows: DataFrame,
        schema: Schema,
        task: Task,
        totals: "Accumulator[list[Totals]]",
        *,
        n_partitions: int | None,
        pandas: bool,
    ) -> DataFrame:
        """One shuffle, which brings whole blocks together, and one crossing into Python."""
        n_tasks = n_partitions or self._n_tasks(rows.sparkSession)
        key = find_task_keys(n_tasks)[self._deal(n_tasks)]
        if self.pools is None:
            frame = with_blocks(rows, schema, self)
            frame = frame.repartition(n_tasks, at(key, F.col(BLOCK)))
        else:
            frame = with_pools(rows, schema, self)
            frame = frame.repartition(n_tasks, at(key, F.col(POOL)))
            task = replace(task, pools=self.pools.of_leaf, tree=self.tree)
        released = find_spark_schema(task.output)

        def tell(own: Totals) -> None:
            totals.add([own])

        # pyspark can't read the annotations of a partial; a lambda has none.
        if not pandas:
            return frame.mapInArrow(lambda rows: anonymize_batches(rows, task, tell), released)
        types = pa.schema([(n, _input_type(n, schema)) for n in frame.columns])
        return frame.mapInPandas(lambda rows: _anonymize_pandas(rows, task, types, tell), released)

    def _deal(self, n_tasks: int) -> Ints:
        """int64[parts]. The task of each block, or pool: dealt by size, in an order that nobody
        knows, since readers may see which rows a task wrote."""
        sizes = self.deal.sizes
        if self.pools is not None:
            sizes = np.bincount(self.pools.of_leaf, sizes).astype(np.int64)
        random, task = np.random.default_rng(), np.empty(len(sizes), np.int64)
        order = random.permutation(len(sizes))
        task[order] = random.permutation(n_tasks)[deal_out(sizes[order], n_tasks)]
        return task

    def _n_tasks(self, spark: SparkSession) -> int:
        wanted = max(4 * count_cores(spark), ceil(self.n_rows / ROWS_PER_TASK))
        return max(1, min(wanted, self._n_parts))

    def left_out(self, rows: DataFrame, schema: Schema) -> DataFrame:
        """The rows of controllers that are suppressed."""
        assert self.controllers is not None  # else every row has a block
        controller = at(self.controllers.head, number_rows(schema, self.controllers))
        return rows.where(F.coalesce(controller, F.lit(-1)) < 0)

    def add_up(
        self, released: Digest, totals: Sequence[Totals], schema: Schema, task: Task
    ) -> StagedFigures:
        """The loss states of all tasks, merged in the order of their lowest blocks. Rows of
        suppressed controllers have lost all."""
        metrics = [registry.build("metric", spec) for spec in task.metrics]
        merged: list[Floats | None] = [None] * len(metrics)
        for each in sorted(totals, key=lambda each: each.block):
            for i, metric in enumerate(metrics):
                found, known = each.states[i], merged[i]
                merged[i] = found if known is None else merge_states(metric, known, found)
        n_lost = 0 if self.controllers is None else int(self.controllers.n_rows.sum()) - self.n_rows
        if n_lost:
            merged = [
                None if state is None else lose_rows(metric, state, n_lost)
                for metric, state in zip(metrics, merged, strict=True)
            ]
        return StagedFigures(
            sum(each.n_rows for each in totals),
            sum(each.n_cells for each in totals),
            sum(each.n_blocks for each in totals),
            rate_losses(task, merged),
            released,
            merge_read(totals),
            rate_losses_by_column(task, merged, schema),
            merge_counts(task.counters, (each.counts for each in totals)),
            describe_losses(task, merged),
        )

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "features": [{"column": f.id, "form": f.form} for f in self.features],
            "cuts": self.cuts.to_dict(),
            "n_leaves": self.cuts.n_leaves if self.pools is None else self.n_blocks,
            "n_pools": None if self.pools is None else self._n_parts,
            "n_heavy_tuples": len(self.heavy),
            "controllers": None if self.controllers is None else self.controllers.to_dict(),
            "n_blocks": self.n_blocks,
            "n_merged": self.deal.n_merged,
            "largest_leaf": self.deal.largest,
        }


def plan_blocks(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    partition: PartitionSection,
    attributes: Mapping[str, Attribute],
    max_suppressed: int,
    task: Task,
    *,
    count: bool,
) -> BlockPlan:
    """Makes the frozen plan. At most `max_suppressed` rows of controllers are suppressed.

    Blocks are counted, and merged until they hold the models, if `count`, if models look at the
    counts of values or at several columns, or if there are controllers or tuples too large for a
    task. Otherwise tasks do both, and nothing reads the source only to count.

    Raises:
        ConfigError: `single` meets a table above its limit.
        InfeasibleError: Controllers with more rows than may be suppressed can't hold the models.
    """
    controllers = resolve_controllers(
        rows, schema, scan, partition, attributes, max_suppressed, task
    )
    n_rows = np.array([scan.n_rows]) if controllers is None else controllers.n_rows
    refuse_large(partition, n_rows if controllers is None else controllers.kept_rows)
    sample, root, tuples = _sample(scan, task, controllers)
    its_controller = None if controllers is None else controllers.head
    steps, max_rows = partition.steps, partition.max_rows
    leaf_plan = plan_leaves(
        sample, root, tuples, n_rows, its_controller, steps, max_rows, task.seed
    )
    n_leaves = len(leaf_plan.sizes)
    pools, tree = None if count else leaf_plan.pools, leaf_plan.tree
    compiled = tree if pools is None else pools.trunk
    features, cuts = compile_tree(compiled, sample, scan.encodings, scan.hashes)
    draft = BlockPlan(
        controllers=controllers,
        features=features,
        cuts=cuts,
        heavy=leaf_plan.heavy,
        deal=replace(deal_one_each(n_leaves), largest=int(n_rows.max())),
        n_rows=scan.n_rows if controllers is None else int(n_rows[controllers.head >= 0].sum()),
        values=scan.values if controllers is None else controllers.values,
        split_by=_split_by(tree.cuts, scan),
    )
    if n_leaves == 1:
        return draft  # the table holds the models as a whole
    if pools is not None:
        deal = replace(draft.deal, sizes=leaf_plan.sizes, largest=int(leaf_plan.sizes.max()))
        return replace(draft, deal=deal, pools=pools, tree=flatten_tree(tree, sample))
    counter, models = BlockCounter(rows, schema, task), build_models(task.models)
    deal = repair(
        leaf_plan.leaves,
        lambda deal: counter.count(replace(draft, deal=deal)),
        lambda controller: find_demands(controllers, models, controller),
        leaf_plan.max_rows,
    )
    return replace(draft, deal=deal)


@dataclass(frozen=True)
class BlockCounter:
    """Counts the blocks of a plan on a table."""

    frame: DataFrame
    schema: Schema
    task: Task

    def count(self, plan: BlockPlan) -> BlockCounts:
        """The exact counts of a plan's blocks."""
        own = [m for models in plan.own.values() for m in models]
        models = (*build_models(self.task.models), *own)
        blocks = with_blocks(self.frame, self.schema, plan)
        tokens, n = self.task.missing_tokens, plan.n_blocks
        return count_leaves(blocks, self.schema, plan.values, models, tokens, n, by=BLOCK)


def _sample(scan: Scan, task: Task, controllers: Controllers | None) -> tuple[Sample, Ints, Ints]:
    """The sample as partitioners see it, and the root and the tuple's hash of each row."""
    place = pa.array(np.arange(len(scan.sample)))
    block, table = to_block(scan.sample.append_column("place", place), task)
    root = np.zeros(block.n, np.int64)
    if controllers is not None:
        root = np.searchsorted(controllers.hashes, table.column(CONTROLLER_HASH).to_numpy())
    share = 1.0 if block.n == scan.n_rows else block.n / scan.n_rows
    sample = Sample(block, table.column("place").to_numpy(), share)
    return sample, root, table.column(TUPLE).to_numpy()


def _split_by(cuts: Sequence[Cut], scan: Scan) -> tuple[str, ...]:
    """The ids of the columns that single-column cuts are of."""
    numeric = [e.id for e in scan.encodings if not e.nominal for _ in e.widths]
    ids = numeric + [e.id for e in scan.encodings if e.nominal]
    return tuple(sorted({ids[cut.column] for cut in cuts if not isinstance(cut, Plane)}))


def with_blocks(rows: DataFrame, schema: Schema, plan: BlockPlan) -> DataFrame:
    """The kept rows with BLOCK, and with CONTROLLER if there are controllers; computed row by row
    in the JVM."""
    root = F.lit(0)
    if plan.controllers is not None:
        root = number_rows(schema, plan.controllers)
        rows = rows.withColumn(CONTROLLER, at(plan.controllers.head, root))
        if (plan.controllers.head < 0).any():
            rows = rows.where(F.col(CONTROLLER) >= 0)
    if plan.n_blocks == 1:
        return rows.withColumn(BLOCK, F.lit(0)).drop(DEAL)
    rows = with_leaf(rows, schema, plan.features, plan.cuts, root)
    leaf, deal = F.col(LEAF), F.col(DEAL)
    if plan.heavy:
        heavy, own_leaf = np.array(list(plan.heavy)), np.array(list(plan.heavy.values()))
        own = look_up(hash_tuple(rows, schema), heavy, own_leaf, -1)
        leaf = F.when(own >= 0, own).otherwise(leaf)
        # Its rows may agree in all columns: nothing of theirs tells them apart.
        spread = F.xxhash64(deal, F.monotonically_increasing_id())
        deal = F.when(leaf.isin(*plan.deal.spread), spread).otherwise(deal)
    block = at(plan.deal.first, leaf)
    if plan.deal.buckets.max() > 1:
        block = block + F.pmod(deal, at(plan.deal.buckets, leaf))
    return rows.withColumn(BLOCK, block.cast("int")).drop(LEAF, DEAL)


def with_pools(rows: DataFrame, schema: Schema, plan: BlockPlan) -> DataFrame:
    """The rows with POOL; computed row by row in the JVM."""
    assert plan.pools is not None  # else rows have blocks
    rows = with_leaf(rows, schema, plan.features, plan.cuts, F.lit(0))
    return rows.withColumn(POOL, at(plan.pools.of_trunk, F.col(LEAF))).drop(LEAF, DEAL)


def _anonymize_pandas(
    frames: Iterator[Any], task: Task, types: pa.Schema, tell: Callable[[Totals], None]
) -> Iterator[Any]:
    """`anonymize_blocks` for the frames of one partition."""
    tables = [
        pa.Table.from_pandas(frame, schema=types, preserve_index=False)
        for frame in frames
        if len(frame)
    ]
    if tables:
        released, totals = anonymize_blocks(pa.concat_tables(tables), task)
        tell(totals)
        yield released.to_pandas(date_as_object=True)


def _input_type(name: str, schema: Schema) -> pa.DataType:
    private = {HASH: pa.int64(), BLOCK: pa.int32(), POOL: pa.int32(), CONTROLLER: pa.int32()}
    private |= {LOW: pa.int64(), HIGH: pa.int64(), LINK: pa.int64(), HELD: pa.bool_()}
    return private[name] if name in private else schema.by_id(name).type


def refuse_inexact(source: Source) -> None:
    """Raises ConfigError naming the columns that pandas can't carry exactly."""
    problems = []
    aggregates = []
    for column in source.schema.columns:
        value, type = source.columns[column.id], column.type
        if pa.types.is_nested(type) or pa.types.is_binary(type):
            aggregates.append(F.lit(1).alias(column.id))
        elif pa.types.is_int64(type):
            aggregates.append(F.count_if(value.isNull()).alias(column.id))
        elif pa.types.is_date(type) or pa.types.is_timestamp(type):
            year = F.year(value)
            outside = (year < 1678) | (year > 2261)
            aggregates.append(F.count_if(outside).alias(column.id))
    if not aggregates:
        return
    found = source.raw.agg(*aggregates).head()
    for column in source.schema.columns:
        if found is not None and column.id in found and found[column.id]:
            text = (
                f"pandas can't carry this column of type {column.source_type} exactly (64-bit "
                "integers with nulls, dates outside 1678 to 2261, nested and binary types); use "
                "`grouped_map: arrow`"
            )
            problems.append(Problem(f"spark.grouped_map, column {column.name}", text))
    if problems:
        raise ConfigError(problems)
