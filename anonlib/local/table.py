"""Releases a small table in memory, without Spark, for sweeps. Nothing is published."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib import registry
from anonlib.arrays import MISSING, Ints
from anonlib.config.model import Config, PartitionSection
from anonlib.errors import AuditError, ConfigError, InfeasibleError, InputError, Problem
from anonlib.kernels import Kernel, KernelResult
from anonlib.local.protected import require_values
from anonlib.local.refusals import refuse_categories
from anonlib.loss import ReleasedBlock, list_metrics
from anonlib.partition.chain import blocks
from anonlib.recode import Cells
from anonlib.table.block import Block, part
from anonlib.table.encoding import Encoding, fit_whole
from anonlib.table.schema import Column, Role, Schema
from anonlib.worker.setup import TableFit, make_task
from anonlib.worker.task import (
    Task,
    find_released_extents,
    find_released_levels,
    person_codes,
    recode_cells,
    spread_cells,
    to_block,
)
from anonlib.worker.tuple_search import at_levels

#: The column with the place of each row in the original table.
_PLACE = "__anonlib_place"


@dataclass(frozen=True)
class InMemory:
    """The release of a table in memory.

    Attributes:
        released: The released columns, by id: quasi-identifiers are recoded, other columns are
            unchanged. There are no pseudonyms.
        rows: int64[rows of `released`], ascending. The place of each released row in the table. All
            other rows are suppressed.
        n_cells: The number of cells.
        sizes: The number of classes of `released`, by their size in persons.
        losses: By metric: its value.
    """

    released: pa.Table
    rows: Ints
    n_cells: int
    sizes: dict[int, int]
    losses: dict[str, float | None]

    @property
    def least_persons(self) -> int:
        """Persons of the smallest class."""
        return min(self.sizes)


def anonymize_table(
    table: pa.Table, schema: Schema, config: Config, owner: Ints | None = None
) -> InMemory:
    """Anonymizes a table by a config, and measures it.

    The cells are the same as in a release of these rows whose sample is the whole table, with one
    difference. A block that can't hold the models may be merged with any other, not only with one
    of its unit. Cost: the kernel's.

    Args:
        table: The schema's columns by id, as a source reads them, and HASH, a hash of each row.
        schema: The columns.
        config: The config.
        owner: int64[n], 0..c-1. The controller of each row. Controllers share no cells. None for a
            single controller.

    Raises:
        InfeasibleError: The models can't hold.
        InputError: Values can't be anonymized.
        AuditError: The result does not hold the models.
    """
    task = _task(table, schema, config)
    place = pa.array(np.arange(table.num_rows))
    block, table = to_block(table.append_column(_PLACE, place), task)
    if config.kernel.needs_classes:
        from anonlib.kernels.discriminant import class_moments

        block = replace(block, moments=class_moments(block))
    rows_of_table = table.column(_PLACE).to_numpy()
    owner = np.zeros(block.n, np.int64) if owner is None else owner[rows_of_table]
    result, block_id = _find_cells(block, owner, config)
    task = at_levels(task, result.levels)
    places = np.flatnonzero(result.cell_id >= 0)
    cells = _make_cells(result.cell_id[places], block_id[places])
    own, kept = part(block, places), table.take(pa.array(places))
    of_cells = recode_cells(kept, cells, task)
    extents = find_released_extents(own, kept, cells, of_cells, task)
    released = _with_other_columns(kept, spread_cells(of_cells, cells), schema)
    sizes = _verify(released, own, schema)
    # Losses are of all rows: suppressed ones have lost all.
    levels = find_released_levels(task)
    whole = ReleasedBlock(block, result.cell_id, cells.m, levels, least_extents=extents)
    metrics = [registry.build("metric", spec) for spec in list_metrics(config.bound)]
    losses = {metric.type: metric.value(metric.update(whole)) for metric in metrics}
    order = np.argsort(rows_of_table[places], kind="stable")
    return InMemory(
        released.take(pa.array(order)), rows_of_table[places][order], cells.m, sizes, losses
    )


def _task(table: pa.Table, schema: Schema, config: Config) -> Task:
    """The worker's task of a release. Nothing is staged."""

    def fit(column: Column) -> Encoding:
        values, tokens = table.column(column.id), config.privacy.missing_tokens
        return fit_column(column, values, config.max_categories, tokens)

    target = schema.target
    table_fit = TableFit(
        encodings=tuple(map(fit, schema.quasi_identifiers)),
        target=None if target is None else fit(target),
        context=tuple(map(fit, schema.context)),
        values=require_values(table, schema, config),
    )
    return make_task(config, schema, table_fit, pa.schema([]))


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


def _make_cells(cell_id: Ints, block_id: Ints) -> Cells:
    """The cells of rows, by the cell and the block of each."""
    n_cells = int(cell_id.max(initial=-1)) + 1
    block_of_cell = np.empty(n_cells, np.int64)
    block_of_cell[cell_id] = block_id
    return Cells(cell_id, n_cells, block=block_of_cell)


def _find_cells(block: Block, owner: Ints, config: Config) -> tuple[KernelResult, Ints]:
    """Finds cells for the rows of each owner, one owner after the other; and int64[n], the block of
    each row, in the order of the cells."""
    cell_id, block_id = np.full(block.n, -1, np.int64), np.zeros(block.n, np.int64)
    levels, n_cells, n_blocks = None, 0, 0
    for each in range(int(owner.max(initial=-1)) + 1):
        rows = np.flatnonzero(owner == each)
        mine = part(block, rows)
        if config.partition.by_tuples:
            mine = replace(mine, may_suppress=config.privacy.may_suppress(mine.n))
            result = config.kernel.find(mine)
            found, levels, places = result.cell_id, result.levels, np.zeros(mine.n, np.int64)
        else:
            found, places = _cells_of_blocks(mine, config.kernel, config.partition, config.seed)
        block_id[rows] = places + n_blocks
        n_blocks += int(places.max(initial=-1)) + 1
        kept = found >= 0
        cell_id[rows[kept]] = found[kept] + n_cells
        n_cells += int(found.max(initial=-1)) + 1
    if not n_cells:
        raise InfeasibleError([Problem("source", "no rows are left")])
    return KernelResult(cell_id, levels), block_id


def _cells_of_blocks(
    block: Block, kernel: Kernel, partition: PartitionSection, seed: int
) -> tuple[Ints, Ints]:
    """int64[n]. The cell and the block of each row: the kernel works on each block of a table
    separately."""
    from anonlib.kernels.merge import merge_failing

    place = np.random.default_rng([seed, 1]).permutation(block.n)
    steps, bound = partition.steps, partition.max_rows
    block_id = np.empty(block.n, np.int64)
    for i, rows in enumerate(blocks(block, steps, bound, seed, place)):
        block_id[rows] = i
    block_id = merge_failing(block, block_id)
    cell_id, n_cells = np.empty(block.n, np.int64), 0
    for i in range(int(block_id.max()) + 1):
        rows = np.flatnonzero(block_id == i)
        found = kernel.cells(part(block, rows))
        cell_id[rows] = found + n_cells
        n_cells += int(found.max()) + 1
    return cell_id, block_id


def _with_other_columns(table: pa.Table, quasi: Mapping[str, pa.Array], schema: Schema) -> pa.Table:
    others = [c.id for c in schema.released if c.role is not Role.IDENTIFIER]
    return pa.table({id: quasi.get(id, table.column(id)) for id in others})


def _verify(released: pa.Table, block: Block, schema: Schema) -> dict[int, int]:
    """Verifies the classes of equal released values.

    Returns:
        The number of classes, by their size in persons.

    Raises:
        AuditError: A class does not hold the models.
    """
    class_id = number_classes([released.column(c.id) for c in schema.quasi_identifiers])
    person = np.arange(block.n) if block.unit is None else block.unit
    known = person != MISSING
    pairs = np.unique(np.column_stack([class_id[known], person[known]]), axis=0)
    n_persons = np.bincount(pairs[:, 0], minlength=int(class_id.max()) + 1)
    least = int(n_persons.min())
    k = max(model.min_persons for model in block.models)
    if least < k:
        raise AuditError(f"the smallest class has {least} persons, k_anonymity asks for {k}")
    failing = int((~block.holds(class_id, int(class_id.max()) + 1)).sum())
    if failing:
        raise AuditError(f"{failing} classes do not hold the models")
    counts = zip(*np.unique(n_persons, return_counts=True), strict=True)
    return {int(size): int(n) for size, n in counts}


def number_classes(columns: Sequence[Any]) -> Ints:
    """int64[n]. Rows with equal values in all columns get the same number. Takes nested types."""
    return _equal([column.combine_chunks() for column in columns])


def _equal(arrays: Sequence[pa.Array]) -> Ints:
    """int64[n]. Rows with equal values get the same number. Missing values are equal."""
    code = np.zeros(len(arrays[0]), np.int64)
    for values in arrays:
        found = _codes(values)
        both = code * (int(found.max(initial=0)) + 1) + found
        code = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return code


def _codes(values: pa.Array) -> Ints:
    if pa.types.is_struct(values.type):
        return _equal([values.is_null(), *values.flatten()])
    if pa.types.is_nested(values.type):
        values = _as_bytes(values)
    encoded = values.dictionary_encode("encode").indices
    codes: Ints = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _as_bytes(lists: pa.Array) -> pa.Array:
    """Turns lists or maps into the bytes of the codes of their elements. Null stays null."""
    is_map = pa.types.is_map(lists.type)
    inner = _equal([lists.keys, lists.items] if is_map else [lists.values])
    stops = lists.offsets.to_numpy().astype(np.int64) * inner.itemsize
    buffers = [None, pa.py_buffer(stops), pa.py_buffer(inner)]
    texts = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), texts, None)


def persons(table: pa.Table, unit: Iterable[str]) -> Ints:
    """int64[n], from 0. The person of each row, by the columns of a unit. Without a unit, each row
    is a person."""
    codes = person_codes([table.column(id).combine_chunks() for id in unit])
    return np.arange(table.num_rows) if codes is None else np.unique(codes, return_inverse=True)[1]


def split_persons(
    table: pa.Table, unit: Iterable[str], share: float, seed: int, what: str, by: str | None = None
) -> tuple[Ints, Ints]:
    """Splits rows at random into two parts. All rows of a person are in the same part.

    The split depends on the order of the rows.

    Args:
        table: The rows.
        unit: The columns that identify a person.
        share: The share of persons in the first part.
        seed: The seed.
        what: The purpose. Different purposes get different splits.
        by: A column to stratify by; None for none.

    Returns:
        int64, ascending. The rows of the first part, and the rows of the second.

    Raises:
        InputError: A person has several values of `by`, and could be in both parts.
    """
    n = table.num_rows
    person = persons(table, unit)
    random = np.random.default_rng([seed, *what.encode()])
    group = np.zeros(n, np.int64) if by is None else number_classes([table.column(by)])
    if by is not None and len(np.unique(np.stack([person, group]), axis=1).T) > len(set(person)):
        raise InputError("`by`: there are persons with several values of this column; leave it out")
    chosen = np.zeros(n, np.bool_)
    for each in range(int(group.max(initial=-1)) + 1):
        mine = np.unique(person[group == each])
        some = random.permutation(mine)[: round(share * len(mine))]
        chosen |= (group == each) & np.isin(person, some)
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)
