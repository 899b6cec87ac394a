"""Makes a release in memory as a run in Spark makes it: the same sample, encodings, tree,
blocks and worker. The audit is elsewhere (`anonlib.auditing`)."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib import registry
from anonlib.arrays import Floats, Ints
from anonlib.config.model import Config, PartitionSection, PrivacySection
from anonlib.decisions.costs import choose_least_cost
from anonlib.decisions.limits import size_sample
from anonlib.decisions.protected import require_values
from anonlib.decisions.refusals import refuse_categories
from anonlib.errors import ConfigError, Problem
from anonlib.local.memory_plan import plan_rows
from anonlib.local.rows import Rows
from anonlib.measure.cell_sums import CellMeasure
from anonlib.measure.fidelity.overview import Overview
from anonlib.measure.states import States
from anonlib.partition.repair import deal_one_each
from anonlib.partition.settlement import Controllers
from anonlib.partition.tuples import TuplesPartitioner
from anonlib.table.columns import COST, HASH, TUPLE
from anonlib.table.encoding import Encoding, fit_encoding, fit_whole
from anonlib.table.row_numbers import number_classes
from anonlib.table.schema import Column, Schema
from anonlib.worker.cell_counts import (
    COST_STEP,
    CellStates,
    make_counter,
    merge_counts,
    read_counts,
)
from anonlib.worker.contracts import lose_rows
from anonlib.worker.losses import describe_losses, rate_losses, rate_losses_by_column
from anonlib.worker.marks import NO_MARKS, Marks
from anonlib.worker.setup import TableFit, make_output_schema, make_task
from anonlib.worker.task import Task, anonymize_blocks, complete_rows
from anonlib.worker.tuple_search import CHECK, COUNT, SUMMARY, Bounds, search


@dataclass(frozen=True)
class MemoryRelease:
    """A release in memory that no audit has seen yet.

    Attributes:
        table: The released columns by id, TOKEN if there is a unit, and the columns that measures
            need (`Marks`). The order of rows is that of the kernel: it tells of the source, and
            must not be shown.
        n_blocks: Blocks.
        n_cells: Cells.
        losses: By metric: its value; None if it is not defined.
        losses_by_column: By metric and numeric column: the value.
        encodings: The encodings of the quasi-identifiers.
        counts: By type of measure: what was counted in the cells.
        fits: By type of measure: what it fitted to the whole table.
        notes: What the kernel says about its search, and the metrics about their figures.
        least_cost: The least cost of suppressed cells; None if no cell is.
        further_ncp: What the rows of these cells lost beyond their penalties, added up. Losses
            count them as rows of their cells.
        controllers: What became of the data controllers; None without any.
    """

    table: pa.Table
    n_blocks: int
    n_cells: int
    losses: dict[str, float | None]
    losses_by_column: dict[str, dict[str, float]]
    encodings: tuple[Encoding, ...]
    counts: Mapping[str, States]
    fits: Mapping[str, Any]
    notes: tuple[str, ...]
    least_cost: int | None = None
    further_ncp: float = 0.0
    controllers: Controllers | None = None


def make_release(
    rows: Rows,
    config: Config,
    token_key: bytes,
    marks: Marks = NO_MARKS,
    pseudonym_key: bytes = b"",
) -> MemoryRelease:
    """Anonymizes the rows of a table in memory.

    The released rows are those of a release in Spark. Cost: that of the kernel, and O(n log n).

    Args:
        rows: The rows, as `read_rows` gives them.
        config: The config.
        token_key: The key of the tokens of persons.
        marks: What measures need. The rows have LINK and HELD, if links and persons held out are
            among it.
        pseudonym_key: The key of the pseudonyms. Without one they are under a key that nobody has.

    Raises:
        ConfigError: The config does not fit the rows: their number, or the categories of a column.
        InfeasibleError: The models can't hold.
        BlockError: The kernel can't go on.
    """
    return release_columns(
        rows,
        config,
        make_output_schema(rows.schema, config, marks),
        marks.counting or (Overview(),),
        token_key=token_key,
        pseudonym_key=pseudonym_key,
        link_key=marks.link_key,
    )


def release_columns(
    rows: Rows,
    config: Config,
    output: pa.Schema,
    counting: Sequence[CellMeasure] = (),
    *,
    controller: Ints | None = None,
    token_key: bytes = b"",
    pseudonym_key: bytes = b"",
    link_key: bytes = b"",
) -> MemoryRelease:
    """The same release with these columns: released ones, and others of the rows as they are.

    Args:
        rows: The rows.
        config: The config.
        output: The columns, by id.
        counting: The measures to count cells for.
        controller: int64[n], 0..c-1. The data controller of each row, where no column tells it.
            None if a step of the config does, or there are no controllers.
        token_key: The key of the tokens of persons.
        pseudonym_key: The key of the pseudonyms, as for `make_release`.
        link_key: The key of the links.

    Raises: As `make_release`.
    """
    table, schema = rows
    table_fit = fit_table(table, schema, config)
    sample = table.slice(0, size_sample(config.partition, table.num_rows))
    task = replace(
        make_task(config, schema, table_fit, output),
        token_key=token_key,
        pseudonym_key=pseudonym_key or secrets.token_bytes(32),
        link_key=link_key,
        counters=tuple(make_counter(m, schema, table_fit.encodings, sample) for m in counting),
    )
    if config.partition.by_tuples:
        return _search_tuples(table, schema, config.partition, config.privacy, task)
    release = _release_blocks(table, schema, config, task, controller)
    if COST not in output.names:
        return release
    n_lost = table.num_rows - release.table.num_rows
    return _suppress_costliest(release, config.privacy.may_suppress(table.num_rows) - n_lost)


def fit_table(table: pa.Table, schema: Schema, config: Config) -> TableFit:
    """What is fitted to the rows of a table: encodings, values. Raises ConfigError if a column has
    values that the config does not allow."""
    n_sampled = size_sample(config.partition, table.num_rows)
    target = [] if schema.target is None else [schema.target]
    encodings: dict[str, Encoding] = {}
    problems: list[Problem] = []
    for column in (*schema.quasi_identifiers, *target, *schema.context):
        values = table.column(column.id)
        try:
            whole = fit_column(column, values, config.max_categories, config.privacy.missing_tokens)
        except ConfigError as error:
            problems += error.problems
            continue
        encodings[column.id] = whole
        if not whole.nominal and len(values) > n_sampled:
            sampled, ends = values.combine_chunks().slice(0, n_sampled), (whole.low, whole.high)
            encodings[column.id] = fit_encoding(
                column, sampled, whole.missing, ends, whole.categories, whole.is_empty
            )
    if problems:
        raise ConfigError(problems)
    return TableFit(
        encodings=tuple(encodings[column.id] for column in schema.quasi_identifiers),
        target=encodings[target[0].id] if target else None,
        context=tuple(encodings[column.id] for column in schema.context),
        values=require_values(table, schema, config),
    )


def fit_column(
    column: Column,
    column_values: pa.ChunkedArray,
    max_categories: int,
    missing_tokens: tuple[str, ...],
) -> Encoding:
    """The encoding of a column of the whole table. Raises ConfigError for too many categories."""
    values = column_values.combine_chunks()
    if column.by_category and pc.count_distinct(values.drop_null()).as_py() > max_categories:
        raise ConfigError([refuse_categories(column, max_categories)])
    return fit_whole(column, values, missing_tokens)


def _release_blocks(
    table: pa.Table, schema: Schema, config: Config, task: Task, controller: Ints | None
) -> MemoryRelease:
    plan = plan_rows(table, schema, config, task, controller)
    task, pools = plan.task, plan.leaf_plan.pools
    if pools is None:
        deal = plan.deal()
    else:
        deal, task = deal_one_each(len(pools.of_leaf)), replace(task, pools=pools.of_leaf)
    released, totals = anonymize_blocks(plan.with_blocks(deal), task)
    if totals.failed:  # blocks are then merged beyond their pool, by the counts of all
        released, totals = anonymize_blocks(plan.with_blocks(plan.deal()), task)
    states: list[Floats] = [*totals.states]
    if n_lost := table.num_rows - plan.rows.num_rows:
        metrics = [registry.build("metric", spec) for spec in task.metrics]
        pairs = zip(metrics, states, strict=True)
        states = [lose_rows(metric, state, n_lost) for metric, state in pairs]
    made = totals.n_blocks, totals.n_cells
    release = _describe(released, *made, task, schema, states, totals.counts)
    return replace(release, controllers=plan.controllers)


def _suppress_costliest(release: MemoryRelease, max_suppressed: int) -> MemoryRelease:
    """Removes the costliest cells, at most `max_suppressed` rows in all, and the column COST."""
    cost = release.table.column(COST).to_numpy()
    costs, counts = np.unique(cost, return_counts=True)
    each = zip(costs[::-1].tolist(), counts[::-1].tolist(), strict=True)
    least = choose_least_cost(each, max_suppressed)
    kept = release.table.drop_columns([COST])
    if least is None:
        return replace(release, table=kept)
    further = float((1.0 - cost[cost >= least] * COST_STEP).sum())
    kept = kept.filter(pa.array(cost < least))
    return replace(release, table=kept, least_cost=least, further_ncp=further)


def _search_tuples(
    table: pa.Table,
    schema: Schema,
    partition: PartitionSection,
    privacy: PrivacySection,
    task: Task,
) -> MemoryRelease:
    """One search over the distinct tuples of the table."""
    step = next(s for s in partition.steps if isinstance(s, TuplesPartitioner))
    ids = [column.id for column in schema.quasi_identifiers]
    apart = [id for id in schema.protected if id not in ids]
    tuples = number_classes([table.column(id) for id in ids])
    combined = number_classes([table.column(id) for id in [*ids, *apart]])
    _, first, count = np.unique(combined, return_index=True, return_counts=True)
    # Other columns differ within a tuple: those of its first row say nothing of all its rows.
    counted = table.select([*ids, *apart, HASH]).take(pa.array(first))
    number = pa.array(tuples[first])
    for name, values in ((TUPLE, number), (CHECK, number), (COUNT, pa.array(count))):
        counted = counted.append_column(name, values)
    bounds = Bounds(step.max_tuples, privacy.may_suppress(table.num_rows))
    found = search(counted, task, bounds)
    summary = found.column(SUMMARY).drop_null()[0].as_py()
    place = np.full(int(tuples.max()) + 1, -1)
    place[found.column(TUPLE).to_numpy()] = np.arange(found.num_rows)
    place = place[tuples]
    kept, its = table.filter(pa.array(place >= 0)), pa.array(place[place >= 0])
    columns = complete_rows(kept, {id: found.column(id).take(its) for id in ids}, task)
    states: list[Floats] = [np.array(state, np.float64) for state in summary["states"]]
    released, counts = (
        pa.table([columns[name] for name in task.output.names], schema=task.output),
        read_counts(summary["counts"]),
    )
    made = _describe(released, 1, summary["n_cells"], task, schema, states, counts)
    note = summary["note"]
    return made if note is None else replace(made, notes=(note, *made.notes))


def _describe(
    released: pa.Table,
    n_blocks: int,
    n_cells: int,
    task: Task,
    schema: Schema,
    states: Sequence[Floats],
    counts: CellStates,
) -> MemoryRelease:
    """The release, with what metrics and measures made of its cells."""
    return MemoryRelease(
        table=released,
        n_blocks=n_blocks,
        n_cells=n_cells,
        losses=rate_losses(task, states),
        losses_by_column=rate_losses_by_column(task, states, schema),
        encodings=task.encodings,
        counts=merge_counts(task.counters, [counts]),
        fits={counter.measure["type"]: counter.fit for counter in task.counters},
        notes=describe_losses(task, states),
    )
