"""What plug-ins must give to a worker: the checks where it calls them.

Their errors name the plug-in, never a value. The checks are cheap, since there may be a block for
every few rows: about one `bincount` each.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Ints
from anonlib.errors import ContractError
from anonlib.kernels import Kernel, KernelResult
from anonlib.loss import Metric, ReleasedBlock
from anonlib.recode import Cells, Column, Domain, Recoder
from anonlib.registry import run_plugin
from anonlib.table.block import Block


def find_cells(kernel: Kernel, block: Block) -> tuple[Ints, int]:
    """`Kernel.cells` of a block, checked.

    Returns:
        int64[n]. The cell of each row, 0..m-1 without gaps; -1 for suppressed rows. Then m.

    Raises:
        ContractError: The kernel failed, or gave something else.
    """
    return check_cells(kernel, run_plugin(kernel, lambda: kernel.cells(block)), block)


def check_cells(kernel: Kernel, answer: Any, block: Block) -> tuple[Ints, int]:
    """What a kernel gave for the cells of a block, as `find_cells` returns it, and checks it."""
    if not (
        isinstance(answer, np.ndarray) and answer.dtype.kind in "iu" and answer.shape == (block.n,)
    ):
        raise ContractError(
            f"kernel {kernel.type}: its cells must be an array of {block.n} integers, one for "
            "each row of the block"
        )
    ids = answer.astype(np.int64, copy=False)
    kept = _check_suppressed(kernel, ids, block) if kernel.suppresses else ids
    m = int(kept.max(initial=-1)) + 1
    if m > len(kept) or not _is_dense(kept, m):
        raise ContractError(
            f"kernel {kernel.type}: its cells must be numbered 0..m-1, without gaps; a row may be "
            "without a cell, -1, only if the kernel has `suppresses`"
        )
    return ids, m


def _is_dense(ids: Ints, m: int) -> bool:
    """Whether ids are 0..m-1, and each is there."""
    try:
        return int(np.count_nonzero(np.bincount(ids))) == m
    except ValueError:  # one is negative
        return False


def _check_suppressed(kernel: Kernel, ids: Ints, block: Block) -> Ints:
    """The cells of the rows that have one."""
    left = ids == -1
    if not left.any():
        return ids
    n_left = int(left.sum() if block.weight is None else block.weight[left].sum())
    if n_left > block.may_suppress:
        raise ContractError(
            f"kernel {kernel.type}: {n_left} rows have no cell, at most {block.may_suppress} may "
            "be without"
        )
    kept: Ints = ids[~left]
    return kept


def search_cells(kernel: Kernel, block: Block) -> KernelResult:
    """`Kernel.find` of a block, checked.

    Raises:
        ContractError: The kernel failed, or gave something else.
    """
    found = cast(Any, run_plugin(kernel, lambda: kernel.find(block)))
    if not (isinstance(found, KernelResult) and isinstance(found.note, str | None)):
        raise ContractError(f"kernel {kernel.type}: `find` must give a KernelResult")
    cell_id, _ = check_cells(kernel, found.cell_id, block)
    q, levels = block.nominal.shape[1], cast(Any, found.levels)
    if levels is not None and not (
        isinstance(levels, np.ndarray)
        and levels.dtype.kind in "iu"
        and levels.shape == (q,)
        and all(0 <= levels[j] <= block.tree(j).heights[-1] for j in range(q))
    ):
        raise ContractError(
            f"kernel {kernel.type}: its levels must be an array of {q} integers, one for each "
            "nominal column, from 0 to the height of its hierarchy"
        )
    return KernelResult(cell_id, levels, found.note)


def recode_column(recoder: Recoder, values: Column, cells: Cells, domain: Domain) -> Column:
    """`Recoder.recode` of a column, checked. Cost beyond the recoder's: O(m).

    Raises:
        ContractError: The recoder failed, or gave something else.
    """
    found = run_plugin(recoder, lambda: recoder.recode(values, cells, domain))
    wanted = run_plugin(recoder, lambda: recoder.output(values.type))
    if not (isinstance(found, pa.Array) and len(found) == cells.m and found.type == wanted):
        raise ContractError(
            f"recoder {recoder.type}: must give an Arrow array of {cells.m} values of type "
            f"{wanted}, one for each cell"
        )
    if not _is_finite(found) and _is_finite(values):
        raise ContractError(
            f"recoder {recoder.type}: released values must be finite where those of the column "
            "are; give null for none"
        )
    return found


def _is_finite(values: Column) -> bool:
    """Whether no number in an Arrow array is NaN or infinite."""
    return all(pc.all(pc.is_finite(part), min_count=0).as_py() for part in _list_floats(values))


def _list_floats(values: Column) -> Iterator[Column]:
    """The arrays of floats in an Arrow array: itself, or its fields and items."""
    kind = values.type
    if pa.types.is_floating(kind):
        yield values
    elif pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _list_floats(part)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _list_floats(values.flatten())


def update_metric(metric: Metric, released: ReleasedBlock) -> Floats:
    """`Metric.update` of a block, checked.

    Raises:
        ContractError: The metric failed, or gave something else.
    """
    return _check_state(metric, run_plugin(metric, lambda: metric.update(released)))


def merge_states(metric: Metric, a: Floats, b: Floats) -> Floats:
    """`Metric.merge`, checked. Raises as `update_metric`."""
    return _check_state(metric, run_plugin(metric, lambda: metric.merge(a, b)))


def lose_rows(metric: Metric, state: Floats, n_rows: int) -> Floats:
    """`Metric.add_lost`, checked. Raises as `update_metric`."""
    return _check_state(metric, run_plugin(metric, lambda: metric.add_lost(state, n_rows)))


def _check_state(metric: Metric, state: Any) -> Floats:
    """A state that a metric gave, and checks it."""
    if not (isinstance(state, np.ndarray) and state.dtype == np.float64 and state.ndim == 1):
        raise ContractError(f"metric {metric.type}: a state must be an array float64[x]")
    return state
