"""The release of a table that a point of a sweep tries. Nothing is published."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonlib.arrays import MISSING, Ints
from anonlib.auditing.report import EACH_CONTROLLER, AuditReport
from anonlib.config.model import Config
from anonlib.config.resolve import with_ids
from anonlib.decisions.protected import require_values
from anonlib.errors import InfeasibleError, Problem
from anonlib.evaluation.published_spec import make_published_spec
from anonlib.local.engine import release_columns
from anonlib.local.rows import Rows
from anonlib.table.block import Block
from anonlib.table.columns import CONTROLLER, HASH, TOKEN
from anonlib.table.encoding import code_known, encode_block
from anonlib.table.schema import Role, Schema
from anonlib.worker.task import code_persons

#: The column with the place of each row in the table.
_ROW = "__anonlib_row"


@dataclass(frozen=True)
class PointRelease:
    """The release of a table.

    Attributes:
        released: The released columns, by id: quasi-identifiers are recoded, other columns are
            unchanged. There are no pseudonyms.
        rows: int64[rows of `released`], ascending. The place of each released row in the table. All
            others are suppressed.
        n_cells: Cells.
        sizes: The number of classes, by their size in rows.
        least_persons: Persons of the smallest class; 0 if no model on persons counts them.
        losses: By metric: its value; None if it is not defined. Suppressed rows have lost all.
        n_tried: Rows that were to be released.
    """

    released: pa.Table
    rows: Ints
    n_cells: int
    sizes: dict[int, int]
    least_persons: int
    losses: dict[str, float | None]
    n_tried: int


def release_point(
    table: pa.Table, schema: Schema, config: Config, controller: Ints | None = None
) -> PointRelease:
    """Anonymizes a table by a config as a release does, and measures it. Cost: that of a release.

    Args:
        table: The schema's columns by id, as a source reads them, and HASH, a hash of each row.
        schema: The columns.
        config: The config.
        controller: int64[n], 0..c-1. The data controller of each row. None for a single controller.

    Raises:
        ConfigError: The config does not fit the table.
        InfeasibleError: The models can't hold.
        BlockError: The kernel can't go on.
        AuditError: The audit of the result fails.
    """
    from anonlib.kernels.merge import require_feasible
    from anonlib.table.hashes import hash_seeded  # these import numba

    block = _to_block(table, schema, config)
    require_feasible(block)
    if controller is not None:
        _require_controllers(block, controller, config.privacy.may_suppress(block.n))
    row_hash = table.column(HASH).to_numpy()
    order = np.lexsort((row_hash, hash_seeded(config.seed, row_hash)))
    ordered = table.append_column(_ROW, pa.array(np.arange(len(order)))).take(pa.array(order))
    columns = [c for c in schema.released if c.role is not Role.IDENTIFIER]
    fields = [pa.field(c.id, c.released_type) for c in columns]
    output = pa.schema([*fields, pa.field(_ROW, pa.int64())])
    dealt = None if controller is None else controller[order]
    made = release_columns(Rows(ordered.combine_chunks(), schema), config, output, controller=dealt)
    by_row = made.table.take(pa.array(np.argsort(made.table.column(_ROW).to_numpy())))
    rows, released = by_row.column(_ROW).to_numpy(), by_row.drop_columns([_ROW])
    kept = pa.array(rows)
    whose = None if controller is None else controller[rows]
    report = _audit(released, table.take(kept), schema, config, whose)
    return PointRelease(
        released,
        rows,
        made.n_cells,
        dict(report.sizes),
        report.of_whole.smallest_class or 0,
        made.losses,
        table.num_rows,
    )


def _require_controllers(block: Block, controller: Ints, max_suppressed: int) -> None:
    """Raises InfeasibleError if controllers that can't hold the models have more rows than may be
    suppressed. controller: As for `release_point`."""
    n_rows = np.bincount(controller)
    failing = ~block.holds(controller, len(n_rows))
    if (n_lost := int(n_rows[failing].sum())) > max_suppressed:
        raise InfeasibleError(
            [
                Problem(
                    "controllers",
                    f"{failing.sum()} of {len(n_rows)}, with {n_lost} of {block.n} rows, can't "
                    f"hold the models alone; suppression_limit allows {max_suppressed} rows. Deal "
                    "rows to fewer, weaken the models, or raise the limit",
                )
            ]
        )


def _to_block(table: pa.Table, schema: Schema, config: Config) -> Block:
    """The rows in their order, as models see them: without quasi-identifiers."""
    tokens = config.privacy.missing_tokens
    values = require_values(table, schema, config)
    columns = {id: table.column(id).combine_chunks() for id in (*schema.protected, *schema.unit)}
    codes = {id: code_known(columns[id], tokens, values.get(id)) for id in schema.protected}
    models = with_ids(config.bound_models, schema)
    return replace(
        encode_block((), {}, codes, models, None, table.num_rows),
        unit=code_persons([columns[id] for id in schema.unit]),
        references={id: each.reference for id, each in values.items()},
        joint=schema.joint,
    )


def _audit(
    released: pa.Table, source: pa.Table, schema: Schema, config: Config, controller: Ints | None
) -> AuditReport:
    """Audits a release as one that is published, but for rare combinations of insensitive columns:
    a part of a table has other ones than the table.

    Args:
        released: The released columns, by id.
        source: The same rows before.
        schema: The columns.
        config: The config.
        controller: int64[rows]. The data controller of each row. None for a single controller.

    Raises:
        InfeasibleError: No row is left.
        AuditError: A model does not hold, or the table is not as it should be.
    """
    from anonlib.auditing.in_memory import audit_in_memory

    if not released.num_rows:
        raise InfeasibleError([Problem("source", "no rows are left")])
    names = [schema.by_id(id).name for id in released.column_names]
    table = released.rename_columns(names)
    spec = make_published_spec(config)
    spec = replace(spec, columns=tuple(names), pseudonyms=(), acknowledge_unique=True)
    if schema.unit:
        token = code_persons([source.column(id).combine_chunks() for id in schema.unit])
        assert token is not None  # of no columns
        table = table.append_column(TOKEN, pa.array(token, mask=token == MISSING))
        spec = replace(spec, persons="token", token=TOKEN)
    report = audit_in_memory(table, spec, exact_sizes=True)
    if controller is not None:
        table = table.append_column(CONTROLLER, pa.array(controller))
        apart = replace(spec, apart=CONTROLLER, private=(*spec.private, CONTROLLER))
        report = report.and_(EACH_CONTROLLER, audit_in_memory(table, apart))
    report.require_passed("the audit")
    return report
