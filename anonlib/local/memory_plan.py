"""Plans a table in memory as Spark plans it (`anonlib/run/block_plan.py`): the same trees on the
same sample, and the same repair."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonlib import registry
from anonlib.arrays import Ints
from anonlib.config.model import Config
from anonlib.decisions.controllers import find_controller_centers, identify_names, take_controllers
from anonlib.decisions.limits import refuse_large, size_sample
from anonlib.local.leaf_counts import count_in_memory
from anonlib.local.memory_controllers import find_controllers, settle_controllers
from anonlib.partition import Sample, flatten_tree, send_rows
from anonlib.partition.leaf_plan import LeafPlan, plan_leaves
from anonlib.partition.repair import (
    BlockCounts,
    Deal,
    deal_one_each,
    repair,
)
from anonlib.partition.settlement import Controllers, find_demands
from anonlib.privacy import build_models
from anonlib.table.block import Block, part
from anonlib.table.columns import BLOCK, CONTROLLER, HASH, HIGH, LOW
from anonlib.table.schema import Schema
from anonlib.worker.task import Task, to_block

#: The column with the place of each row in the order of the seeded hash.
PLACE = "__anonlib_place"


@dataclass(frozen=True)
class MemoryPlan:
    """The rows of a table and their leaves.

    Attributes:
        rows: The kept rows, in canonical order, with PLACE.
        schema: Their columns.
        task: The worker's task.
        leaf_plan: The leaves.
        leaf: int64[n]. The leaf of each row.
        controller: int64[n] or None. The controller that each row counts for.
        controllers: What became of the data controllers; None without any.
    """

    rows: pa.Table
    schema: Schema
    task: Task
    leaf_plan: LeafPlan
    leaf: Ints
    controller: Ints | None
    controllers: Controllers | None

    def deal(self) -> Deal:
        """The blocks of the leaves, which hold their models. Cost: some counts of all rows."""
        leaves, models = self.leaf_plan.leaves, build_models(self.task.models)
        if len(leaves.controller) == 1:
            return deal_one_each(1)  # the table holds the models as a whole
        return repair(
            leaves,
            self._count,
            lambda controller: find_demands(self.controllers, models, controller),
            self.leaf_plan.max_rows,
        )

    def with_blocks(self, deal: Deal) -> pa.Table:
        """The rows as the worker gets them."""
        added = {BLOCK: pa.array(self._find_blocks(deal), pa.int32())}
        if self.controller is not None:
            added[CONTROLLER] = pa.array(self.controller, pa.int32())
        # A worker adds up the halves of rows' digests; a table in memory can't change meanwhile.
        added |= dict.fromkeys((LOW, HIGH), self.rows.column(HASH))
        rows = self.rows
        for name, column in added.items():
            rows = rows.append_column(name, column)
        return rows

    def _find_blocks(self, deal: Deal) -> Ints:
        """int64[n]. The block of each row."""
        block, buckets = deal.first[self.leaf], deal.buckets[self.leaf]
        if deal.buckets.max() == 1:
            return block
        from anonlib.table.hashes import hash_rows  # this imports numba

        hashes = hash_rows([self.rows.column(c.id).combine_chunks() for c in self.schema.columns])
        # Rows of a heavy tuple may agree in all columns: nothing of theirs tells them apart.
        dealt: Ints = np.where(np.isin(self.leaf, deal.spread), np.arange(len(block)), hashes)
        return block + dealt % buckets

    def _count(self, deal: Deal) -> BlockCounts:
        models = build_models(self.task.models)
        if self.controllers is not None:
            models += tuple(m for own in self.controllers.own.values() for m in own)
        return count_in_memory(
            self.rows,
            self._find_blocks(deal),
            int((deal.first + deal.buckets).max()),
            self.schema,
            self.task.values,
            models,
            self.task.missing_tokens,
            exact=False,
        )


def plan_rows(
    table: pa.Table, schema: Schema, config: Config, task: Task, controller: Ints | None = None
) -> MemoryPlan:
    """Makes the plan of a table.

    Args:
        table: The rows, in the order of the seeded hash.
        schema: Their columns.
        config: The config.
        task: The worker's task.
        controller: int64[n], 0..c-1. The data controller of each row, where no column tells it.
            None if a step of the config does, or there are no controllers.

    Raises:
        ConfigError: A step keeps too large a table whole, or names controllers that are not there.
        InfeasibleError: Controllers can't hold their models.
    """
    partition, n = config.partition, table.num_rows
    block, rows = to_block(table.append_column(PLACE, pa.array(np.arange(n))), task)
    if config.kernel.needs_classes:
        from anonlib.kernels.discriminant import measure_classes

        task = replace(task, moments=measure_classes(block))
    place, most = rows.column(PLACE).to_numpy(), size_sample(partition, n)
    in_sample = np.flatnonzero(place < most)
    controllers, root = _find_controllers(rows, schema, config, task, in_sample, controller)
    refuse_large(partition, np.array([n]) if controllers is None else controllers.kept_rows)
    share = 1.0 if len(in_sample) == n else len(in_sample) / n
    sample = Sample(part(block, in_sample), place[in_sample], share)
    leaf_plan, leaf = _plan_leaves(
        block, rows, sample, in_sample, root, schema, config, controllers
    )
    if controllers is None:
        return MemoryPlan(rows, schema, task, leaf_plan, leaf, None, None)
    own = {c: tuple(map(registry.spec, models)) for c, models in controllers.own.items()}
    task, its = replace(task, values=controllers.values, own=own), controllers.head[root]
    kept = np.flatnonzero(its >= 0)
    rows = rows.take(pa.array(kept))
    return MemoryPlan(rows, schema, task, leaf_plan, leaf[kept], its[kept], controllers)


def _find_controllers(
    rows: pa.Table,
    schema: Schema,
    config: Config,
    task: Task,
    in_sample: Ints,
    root: Ints | None,
) -> tuple[Controllers | None, Ints]:
    """What becomes of the data controllers, and int64[n], the controller of each row: its tree.

    Args:
        rows: The rows, in canonical order.
        schema: Their columns.
        config: The config.
        task: The worker's task.
        in_sample: int64[m]. The places of sampled rows.
        root: int64[n] or None. The controller of each row in the order of the table, where no
            column tells it.
    """
    n, centers = rows.num_rows, None
    named = identify_names(config.partition, schema, folded=config.person.fold_case)
    step = named.controller
    if root is not None:
        root = root[rows.column(PLACE).to_numpy()]
        controllers = take_controllers(root, build_models(task.models), task.values)
    elif step is not None:
        controllers, root = find_controllers(rows, schema, step, config.attributes, task)
        if step.merge:
            sample, n_controllers = rows.take(pa.array(in_sample)), len(controllers.head)
            centers = find_controller_centers(
                sample, task.encodings, root[in_sample], n_controllers
            )
    else:
        return None, np.zeros(n, np.int64)
    most = config.privacy.may_suppress(n)
    return settle_controllers(
        controllers, root, rows, schema, task.missing_tokens, centers, most
    ), root


def _plan_leaves(
    block: Block,
    rows: pa.Table,
    sample: Sample,
    in_sample: Ints,
    root: Ints,
    schema: Schema,
    config: Config,
    controllers: Controllers | None,
) -> tuple[LeafPlan, Ints]:
    """The leaves, and int64[n], the leaf of each row.

    Args:
        block: All rows.
        rows: The same rows by id.
        sample: Those that trees grow on.
        in_sample: int64[m]. Their places in the block.
        root: int64[n]. The tree of each row.
        schema: The columns.
        config: The config.
        controllers: What became of the data controllers.
    """
    n_rows = np.array([block.n]) if controllers is None else controllers.n_rows
    controller = None if controllers is None else controllers.head
    tuples = _hash_tuples(rows, schema, root)
    plan = plan_leaves(
        sample,
        root[in_sample],
        tuples[in_sample],
        n_rows,
        controller,
        config.partition.steps,
        config.partition.max_rows,
        config.seed,
    )
    if sample.share == 1.0:
        return plan, plan.leaf
    leaf = send_rows(flatten_tree(plan.tree, sample), block, root)
    for number, its_leaf in plan.heavy.items():
        leaf = np.where(tuples == number, its_leaf, leaf)
    return plan, leaf


def _hash_tuples(rows: pa.Table, schema: Schema, root: Ints) -> Ints:
    """int64[n]. Spark's hash of the quasi-identifiers and the controller of each row."""
    from anonlib.table.hashes import hash_rows  # this imports numba

    ids = dict.fromkeys(column.id for column in schema.quasi_identifiers)
    ids |= {} if schema.controller is None else {schema.controller: None}
    columns = [rows.column(id).combine_chunks() for id in ids]
    if schema.controller is None and root.any():
        columns.append(pa.array(root))
    return hash_rows(columns)
