"""Anonymizing every block in Spark's grouped-map UDFs, and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib import registry
from anonlib.arrays import Floats
from anonlib.config.model import Config
from anonlib.errors import ConfigError, Problem
from anonlib.run.plan import Plan, with_blocks
from anonlib.run.whole_table import Whole
from anonlib.source import Source
from anonlib.spark.digest import Digest, read, sums
from anonlib.spark.values import spark_schema
from anonlib.table.columns import BLOCK, CONTROLLER, COST, HASH, HELD, LINK, STATE, TOKEN
from anonlib.table.schema import Schema
from anonlib.worker.task import STATE_TYPE, Task, anonymize

#: Rows that a task of the main shuffle aims at.
ROWS_PER_TASK = 250_000


def output_schema(
    schema: Schema, *, costs: bool = False, pairs: bool = False, held: bool = False
) -> pa.Schema:
    """The staged columns: the released ones by id, the person's token, the controller, the cost of
    the cell, what links a row to its person or tells it apart, the loss states."""
    fields = [pa.field(column.id, column.released_type) for column in schema.released]
    if schema.unit:
        fields.append(pa.field(TOKEN, pa.string()))
    if schema.controller is not None:
        fields.append(pa.field(CONTROLLER, pa.int32()))
    if costs:
        fields.append(pa.field(COST, pa.int32()))
    if pairs:
        fields.append(pa.field(LINK, pa.int64()))
    if held:
        fields.append(pa.field(HELD, pa.bool_()))
    return pa.schema([*fields, pa.field(STATE, STATE_TYPE)])


def anonymized(
    rows: DataFrame, schema: Schema, plan: Plan, task: Task, config: Config
) -> DataFrame:
    """The staged rows, lazily: one shuffle by block, one crossing into Python."""
    spark = rows.sparkSession
    frame = with_blocks(rows, schema, plan)
    frame = frame.repartition(_n_tasks(spark, plan, config), BLOCK)
    names = tuple(frame.columns)
    groups = frame.groupBy(BLOCK)
    released = spark_schema(task.output)
    if config.spark.grouped_map == "arrow":
        # pyspark can't read the annotations of a partial; a lambda has none.
        return groups.applyInArrow(lambda table: anonymize(table, task), released)
    types = pa.schema([(n, _input_type(n, schema)) for n in names])
    return groups.applyInPandas(lambda frame: _anonymize_pandas(frame, task, types), released)


def _anonymize_pandas(frame: Any, task: Task, types: pa.Schema) -> Any:
    table = pa.Table.from_pandas(frame, schema=types, preserve_index=False)
    return anonymize(table, task).to_pandas(date_as_object=True)


def _input_type(name: str, schema: Schema) -> pa.DataType:
    private = {HASH: pa.int64(), BLOCK: pa.int32(), CONTROLLER: pa.int32()}
    private |= {LINK: pa.int64(), HELD: pa.bool_()}
    return private[name] if name in private else schema.by_id(name).type


def _n_tasks(spark: SparkSession, plan: Plan, config: Config) -> int:
    if config.spark.partitions is not None:
        return config.spark.partitions
    cores = spark.sparkContext.defaultParallelism
    wanted = max(4 * cores, ceil(plan.n_rows / ROWS_PER_TASK))
    return max(1, min(wanted, plan.n_blocks))


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


@dataclass(frozen=True)
class Outcome:
    """What the blocks report together."""

    n_rows: int
    n_cells: int
    n_blocks: int
    losses: dict[str, float | None]
    digest: Digest
    losses_by_column: dict[str, dict[str, float]] = field(default_factory=dict)


def kept(config: Config, staged: DataFrame, n_rows: int, n_planned: int) -> Column | None:
    """Which staged rows are released of so many, of which some were not planned for; None where
    that is all."""
    privacy = config.privacy
    if privacy.suppress != "costliest":
        return None
    allowed = privacy.may_suppress(n_rows) - (n_rows - n_planned)
    cost = _least_cost_suppressed(staged, allowed)
    return None if cost is None else F.col(COST) < cost


def _least_cost_suppressed(staged: DataFrame, allowed: int) -> int | None:
    """The least cost of cells that are suppressed, so that these have at most `allowed` rows; None
    where that is none. All cells of one cost are suppressed, or none."""
    costs = staged.groupBy(COST).count().orderBy(F.col(COST).desc())
    counts = costs.limit(max(allowed, 0) + 1).collect()  # each has a row at least
    found, rows = None, 0
    for row in counts:
        rows += row["count"]
        if rows > allowed or row[COST] == 0:
            break
        found = int(row[COST])
    return found


def outcome(
    staged: DataFrame, kept: Column | None, schema: Schema, task: Task, plan: Plan | Whole
) -> Outcome:
    """The loss states of all blocks, merged in block order, and the digest of the rows that are
    `kept`. Losses are those of the suppressed cells, too."""
    released = staged.select(*[column.id for column in schema.released])
    digest = sums(released, kept)
    if isinstance(plan, Whole):
        whole = read(staged.agg(*digest).collect()[0])
        losses = _losses(task, plan.states), whole, _by_column(task, plan.states, schema)
        return Outcome(whole.n_rows, plan.n_cells, 1, *losses)
    row = staged.agg(*digest, F.collect_list(STATE).alias("states")).collect()[0]
    states = [state.asDict() for state in row.states]
    metrics = [registry.build("metric", spec) for spec in task.metrics]
    merged: list[Floats | None] = [None] * len(metrics)
    for state in sorted(states, key=lambda state: state["block"]):
        for i, metric in enumerate(metrics):
            found = np.array(state["states"][i], np.float64)
            known = merged[i]
            merged[i] = found if known is None else metric.merge(known, found)
    return Outcome(
        sum(state["n_rows"] for state in states),
        sum(state["n_cells"] for state in states),
        len(states),
        _losses(task, merged),
        read(row),
        _by_column(task, merged, schema),
    )


def _losses(task: Task, states: Sequence[Floats | None]) -> dict[str, float | None]:
    metrics = [registry.build("metric", spec) for spec in task.metrics]
    return {
        metric.type: None if state is None else metric.value(state)
        for metric, state in zip(metrics, states, strict=True)
    }


def _by_column(
    task: Task, states: Sequence[Floats | None], schema: Schema
) -> dict[str, dict[str, float]]:
    """The figures of numeric columns by their names, of the metrics that have any."""
    names = []
    for e in task.encodings:
        if not e.nominal:
            name = schema.by_id(e.id).name
            names += [name, f"{name} is missing"][: len(e.widths)]
    found = {}
    for spec, state in zip(task.metrics, states, strict=True):
        figures = None if state is None else registry.build("metric", spec).by_column(state)
        if figures is not None:
            found[spec["type"]] = dict(zip(names, figures.tolist(), strict=True))
    return found
