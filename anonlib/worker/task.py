"""The work of one task, without Spark: the Arrow table of some blocks becomes released rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pyarrow as pa

from anonlib import registry
from anonlib.arrays import MISSING, Codes, Floats, Ints
from anonlib.errors import BlockError, InfeasibleError, run_sanitized
from anonlib.kernels import Kernel
from anonlib.loss import ReleasedBlock
from anonlib.partition import FlatTree, send_rows
from anonlib.partition.bisection import bisect
from anonlib.partition.chain import cut_parts
from anonlib.privacy import PrivacyModel, build_models
from anonlib.recode import EXTENTS, Cells, Domain, Recoder
from anonlib.table.block import Block, ClassMoments, Context, part
from anonlib.table.canonical_order import order_rows
from anonlib.table.columns import (
    BLOCK,
    CONTROLLER,
    COST,
    HASH,
    HIGH,
    LINK,
    LOW,
    POOL,
    TOKEN,
    key_links,
    key_values,
)
from anonlib.table.encoding import (
    Encoding,
    Values,
    code_known,
    encode_block,
    encode_rows,
    mix,
    one_zero,
)
from anonlib.table.row_numbers import number_tuples
from anonlib.worker.cell_counts import CellCounter, CellStates, count_cells, find_cell_costs
from anonlib.worker.contracts import find_cells, recode_column, update_metric
from anonlib.worker.least_extents import find_least_extents
from anonlib.worker.unions import merge_failing_unions


@dataclass(frozen=True)
class Totals:
    """What a task tells the driver of its rows.

    Attributes:
        n_rows: Rows.
        low: The sum of the rows' LOW, modulo 2**64, as a signed integer.
        high: The same of HIGH.
        block: The lowest of their blocks.
        n_blocks: Their blocks.
        n_cells: Their cells.
        states: By metric: its state.
        counts: By counter of the task: its states.
        failed: Whether a pool of theirs can't hold the models. Then none of the rows is released.
    """

    n_rows: int
    low: int
    high: int
    block: int = 0
    n_blocks: int = 0
    n_cells: int = 0
    states: tuple[Floats, ...] = ()
    counts: CellStates = field(default=(), repr=False)
    failed: bool = False


@dataclass(frozen=True)
class Task:
    """All that a worker needs besides the rows: plain values, and plug-ins by their spec.

    Attributes:
        encodings: The encodings of the quasi-identifiers, in the schema's order.
        recoders: (column id, spec, domain) of each quasi-identifier's recoder.
        kernel: The spec of the kernel.
        models: The specs of the privacy models that hold for all rows.
        metrics: The specs of the metrics.
        protected: The ids of the columns that models look at.
        missing_tokens: Texts that mean a missing value.
        unit: The ids of the columns that identify a person; empty without a unit.
        token_key: The key of the persons' tokens in staging.
        pseudonyms: The ids of the columns that are released as pseudonyms.
        pseudonym_key: The key of the pseudonyms.
        output: The schema of the staged columns.
        max_rows: The most rows that the kernel gets at once.
        link_key: The key of the links of sampled rows; empty without links.
        target: The encoding of the target, if a kernel or partitioner looks at it.
        context: The encodings of the insensitive columns, if a partitioner looks at them.
        moments: The moments of the target's classes over the whole table, if the kernel needs them.
        values: By id of a protected column with a reference: its values and the reference.
        steps: The specs of the partitioners that work inside the task.
        seed: The seed of these partitioners.
        own: By controller: the specs of its own models, in addition to `models`.
        joint: Whether models must also hold if the other protected columns are known.
        pools: int64[blocks]. The pool within which a block that fails the models is merged with
            others; None if all blocks hold them.
        tree: The forest whose leaves are the blocks, if rows come with POOL; None if they come with
            BLOCK.
        counters: What is counted in the cells.
    """

    encodings: tuple[Encoding, ...]
    recoders: tuple[tuple[str, dict[str, Any], Domain], ...]
    kernel: dict[str, Any]
    models: tuple[dict[str, Any], ...]
    metrics: tuple[dict[str, Any], ...]
    protected: tuple[str, ...]
    missing_tokens: tuple[str, ...]
    unit: tuple[str, ...]
    token_key: bytes = field(repr=False)
    pseudonyms: tuple[str, ...]
    pseudonym_key: bytes = field(repr=False)
    output: pa.Schema
    max_rows: int
    link_key: bytes = field(default=b"", repr=False)
    target: Encoding | None = None
    context: tuple[Encoding, ...] = ()
    moments: ClassMoments | None = None
    values: dict[str, Values] = field(default_factory=dict)
    steps: tuple[dict[str, Any], ...] = ()
    seed: int = 0
    own: dict[int, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    joint: bool = False
    pools: Ints | None = None
    tree: FlatTree | None = None
    counters: tuple[CellCounter, ...] = ()


def anonymize_batches(
    batches: Iterable[pa.RecordBatch], task: Task, tell: Callable[[Totals], None]
) -> Iterator[pa.RecordBatch]:
    """`anonymize_blocks` for the batches of one partition. It has all rows of its blocks."""
    found = [batch for batch in batches if batch.num_rows]
    if found:
        released, totals = anonymize_blocks(pa.Table.from_batches(found), task)
        tell(totals)
        yield from released.to_batches()


def anonymize_blocks(table: pa.Table, task: Task) -> tuple[pa.Table, Totals]:
    """Anonymizes some blocks.

    Encoding, sorting, recoding and metrics are done once for all blocks.

    Args:
        table: The rows of the blocks.
        task: The task.

    Returns:
        The released rows, with the private columns of staging, and their totals.

    Raises:
        BlockError: Any error of a block. Its cause is dropped, since its text may contain data.
    """
    what = f"a task of {table.num_rows} rows"
    return run_sanitized(what, lambda: _anonymize(table.combine_chunks(), task))


def _anonymize(table: pa.Table, task: Task) -> tuple[pa.Table, Totals]:
    block, table = to_block(table, task)
    blocks = table.column(BLOCK).to_numpy()
    if task.pools is not None:
        try:
            merged = _merge_blocks(block, blocks, task.pools)
        except InfeasibleError:
            return task.output.empty_table(), replace(total_rows(table), failed=True)
        if merged is not blocks:
            place = table.schema.get_field_index(BLOCK)
            block, table = to_block(table.set_column(place, BLOCK, pa.array(merged)), task)
            blocks = table.column(BLOCK).to_numpy()
    start = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 1))
    controller = table.column(CONTROLLER).to_numpy()[start] if task.own else None
    own_blocks = _split_blocks(block, start, controller, task)
    cells, of_cells = _recode_blocks(own_blocks, start, table, task)
    seen = ReleasedBlock(
        block,
        cells.id,
        cells.m,
        find_released_levels(task),
        start,
        find_released_extents(block, table, cells, of_cells, task),
    )
    released = complete_rows(table, spread_cells(of_cells, cells), task)
    costs = COST in task.output.names
    if costs:
        released[COST] = pa.array(find_cell_costs(seen)[seen.id], pa.int32())
    totals = replace(
        total_rows(table),
        block=int(blocks[0]),
        n_blocks=len(start),
        n_cells=cells.m,
        states=tuple(update_metric(registry.build("metric", m), seen) for m in task.metrics),
        counts=count_cells(table, of_cells, seen, task.counters, costs=costs),
    )
    return pa.table([released[name] for name in task.output.names], schema=task.output), totals


def _merge_blocks(block: Block, blocks: Codes, pools: Ints) -> Codes:
    """int32[n]. The block of each row, after blocks that fail the models were merged with others of
    their pool; `blocks` itself if none fails. A block keeps the lowest number of those in it.

    Args:
        block: The rows of whole pools, block after block.
        blocks: int32[n]. Their blocks, ascending.
        pools: int64[blocks]. The pool of each block.

    Raises:
        InfeasibleError: A pool does not hold the models as one block.
    """
    from anonlib.kernels.merge import merge_failing

    numbers, place = np.unique(blocks, return_inverse=True)
    failing = ~block.holds(place, len(numbers))
    if not failing.any():
        return blocks
    merged = blocks.copy()
    for pool in np.unique(pools[numbers[failing]]):
        rows = np.flatnonzero(pools[blocks] == pool)
        group = merge_failing(part(block, rows), place[rows])
        lowest = np.full(int(group.max()) + 1, len(pools))
        np.minimum.at(lowest, group, blocks[rows])
        merged[rows] = lowest[group]
    return merged


def _split_blocks(block: Block, start: Ints, controller: Ints | None, task: Task) -> list[Block]:
    """Blocks that follow one after the other, each with the models that it must hold.

    Args:
        block: The rows of all blocks, block after block.
        start: int64[b]. The first row of each block.
        controller: int32[b]. The controller of each block; None if none has models of its own.
        task: The task.
    """
    bounds = pairwise([*start.tolist(), block.n])
    blocks = [part(block, slice(first, end)) for first, end in bounds]
    if controller is None:
        return blocks
    models = _models_by_controller(controller, task)
    of_each = zip(blocks, controller.tolist(), strict=True)
    return [replace(one, models=models[number]) for one, number in of_each]


def _recode_blocks(
    blocks: Sequence[Block], start: Ints, table: pa.Table, task: Task
) -> tuple[Cells, dict[str, pa.Array]]:
    """The cells of blocks, and by id their released values.

    Cells that share persons are judged together where their released values are equal. table: The
    rows of all blocks, as for `_split_blocks`.
    """
    cells = _cells(blocks, start, task)
    of_cells = recode_cells(table, cells, task)
    shares = task.unit and any(m.looks_at == "counts" for each in blocks for m in each.models)
    while shares and (merged := merge_failing_unions(blocks, start, cells, of_cells)) is not cells:
        cells, of_cells = merged, recode_cells(table, merged, task)
    return cells, of_cells


def _cells(blocks: Sequence[Block], start: Ints, task: Task) -> Cells:
    """The cells of some blocks.

    A block is bisected to `max_rows`, then split by the chain's task steps. The kernel works on
    each part separately. start: As for `_split_blocks`.
    """
    kernel: Kernel = registry.build("kernel", task.kernel)
    steps = [registry.build("partitioner", spec) for spec in task.steps]
    n = int(start[-1]) + blocks[-1].n
    cell_id = np.empty(n, np.int64)
    n_cells = 0
    for first, one in zip(start.tolist(), blocks, strict=True):
        for outer in bisect(one, task.max_rows):
            fitting = _some(one, outer)
            for inner in cut_parts(fitting, steps, task.seed):
                found, m = find_cells(kernel, _some(fitting, inner))
                cell_id[first + outer[inner]] = found + n_cells
                n_cells += m
    block_of_cell = np.empty(n_cells, np.int64)
    block_of_cell[cell_id] = np.repeat(np.arange(len(start)), np.diff(start, append=n))
    return Cells(cell_id, n_cells, block=block_of_cell)


def _some(block: Block, rows: Ints) -> Block:
    """The block of some rows, which are ascending. For all rows it is the block itself."""
    return block if len(rows) == block.n else part(block, rows)


def to_block(table: pa.Table, task: Task) -> tuple[Block, pa.Table]:
    """The block of a table, and the table itself, both in canonical order. If the rows belong to
    several blocks, these follow one after the other, each in canonical order. Rows with POOL get
    their BLOCK."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    tokens, values = task.missing_tokens, task.values
    protected = {id: code_known(columns[id], tokens, values.get(id)) for id in task.protected}
    models = build_models(task.models)
    n = table.num_rows
    block = encode_block(task.encodings, columns, protected, models, task.target, n)
    block = replace(
        block,
        unit=code_persons([columns[id] for id in task.unit]),
        moments=task.moments,
        context=Context(*encode_rows(task.context, columns, n)) if task.context else None,
        references={id: each.reference for id, each in values.items()},
        joint=task.joint,
        extents=all(_recoder(spec).releases in EXTENTS for _, spec, _ in task.recoders),
    )
    target = [] if block.target is None else [block.target]
    if POOL in columns:
        blocks = _find_leaves(block, columns[POOL].to_numpy(), task)
        table = table.append_column(BLOCK, pa.array(blocks)).drop_columns([POOL])
    else:
        blocks = columns[BLOCK].to_numpy() if BLOCK in columns else np.zeros(n, np.int32)
    # Rows that are equal for kernels are neighbours.
    value_hash = mix(block.numeric, block.nominal)
    order = order_rows(blocks, value_hash, [columns[HASH].to_numpy(), *target])
    return part(block, order), table.take(pa.array(order))


def _find_leaves(block: Block, pool: Codes, task: Task) -> Codes:
    """int32[n]. The leaf of each row.

    Args:
        block: The rows.
        pool: int32[n]. The pool that Spark sent each of them to.
        task: The task.

    Raises:
        BlockError: Rows of one leaf may be in several tasks.
    """
    assert task.tree is not None  # else rows come with their blocks
    assert task.pools is not None
    leaf = send_rows(task.tree, block, np.zeros(block.n, np.int64))
    if (task.pools[leaf] != pool).any():
        raise BlockError(
            "Spark sent rows to another task than the plan says, so blocks may be incomplete; "
            "please report this, with the versions of Spark, Java and numpy"
        )
    return leaf.astype(np.int32)


def _models_by_controller(controller: Ints, task: Task) -> dict[int, tuple[PrivacyModel, ...]]:
    """By controller: the models that its rows must hold."""
    models = {}
    for id in np.unique(controller).tolist():
        specs = (*task.models, *task.own.get(id, ()))
        models[id] = build_models({repr(spec): spec for spec in specs}.values())
    return models


def code_persons(columns: list[pa.Array]) -> Codes | None:
    """int32[n]. The person of each row, by the unit's columns; MISSING if one of them is null. None
    without columns."""
    if not columns:
        return None
    n = len(columns[0])
    absent = np.zeros(n, np.bool_)
    for column in columns:
        absent |= column.is_null().to_numpy(zero_copy_only=False)
    encoded = [one_zero(column).dictionary_encode().indices.fill_null(0) for column in columns]
    codes = number_tuples([each.to_numpy(zero_copy_only=False) for each in encoded], n)
    return np.where(absent, MISSING, codes).astype(np.int32)


def complete_rows(
    table: pa.Table, of_rows: Mapping[str, pa.Array], task: Task
) -> dict[str, pa.Array]:
    """All released columns by name, with the private ones of staging, but for the cost. This is the
    only place where rows get pseudonyms, tokens and links: whoever makes rows calls it.

    Args:
        table: The rows.
        of_rows: By name: what is released of their cells.
        task: The task.
    """
    released = {**of_rows}
    for name in task.output.names:
        if name in released:
            continue
        if name in task.pseudonyms:
            released[name] = key_values([table.column(name)], task.pseudonym_key)
        elif name == TOKEN:
            released[name] = key_values([table.column(id) for id in task.unit], task.token_key)
        elif name == LINK:
            released[name] = key_links(table.column(name), task.link_key)
        elif name != COST:
            released[name] = table.column(name).combine_chunks()
    return released


def find_released_levels(task: Task) -> Ints | None:
    """int64[q]. The least height at which each nominal column is released; None if all are 0."""
    least = {id: _recoder(spec).least_level for id, spec, _ in task.recoders}
    levels = [least[e.id] for e in task.encodings if e.nominal]
    return np.array(levels, np.int64) if any(levels) else None


def find_released_extents(
    block: Block, table: pa.Table, cells: Cells, of_cells: Mapping[str, pa.Array], task: Task
) -> dict[int, Floats]:
    """`ReleasedBlock.least_extents` of cells and their released values."""
    recoders = {id: _recoder(spec) for id, spec, _ in task.recoders}
    types = {id: table.schema.field(id).type for id in recoders}
    return find_least_extents(block, cells, task.encodings, recoders, of_cells, types)


def recode_cells(table: pa.Table, cells: Cells, task: Task) -> dict[str, pa.Array]:
    """By id: the released quasi-identifier, with the value of every cell."""
    return {
        id: recode_column(_recoder(spec), table.column(id).combine_chunks(), cells, domain)
        for id, spec, domain in task.recoders
    }


def spread_cells(of_cells: Mapping[str, pa.Array], cells: Cells) -> dict[str, pa.Array]:
    """The values of every row, from those of every cell."""
    index = pa.array(cells.id)
    return {id: values.take(index) for id, values in of_cells.items()}


def _recoder(spec: dict[str, Any]) -> Recoder:
    return cast(Recoder, registry.build("recoder", spec))


def total_rows(rows: pa.Table | pa.RecordBatch) -> Totals:
    """The totals of rows as they were read."""
    return Totals(rows.num_rows, _sum(rows.column(LOW)), _sum(rows.column(HIGH)))


def _sum(column: pa.ChunkedArray | pa.Array) -> int:
    return int(column.to_numpy().sum(dtype=np.int64))  # modulo 2**64, since integers of NumPy wrap
