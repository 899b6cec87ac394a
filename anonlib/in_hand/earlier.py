"""Measures a release in hand that was made earlier, without links to its source."""

import secrets
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anonlib.auditing.report import AuditReport
from anonlib.config.minimum_k import check_minimum_k
from anonlib.config.model import Config
from anonlib.config.policies.judgement import require_policy
from anonlib.config.reading import GivenConfig, add_usual_measures
from anonlib.errors import ConfigError, InputError
from anonlib.evaluation import evaluate_case
from anonlib.local.arguments import config_in_hand
from anonlib.local.frames import (
    is_of_spark,
    list_names,
    note_index,
    require_table,
    to_arrow,
    to_arrow_with_index,
)
from anonlib.local.spark_only import find_accounts, find_unsupported
from anonlib.progress import Progress
from anonlib.run.result import ReleaseResult
from anonlib.table.schema import Schema

if TYPE_CHECKING:
    from anonlib.local.rows import Rows


def evaluate_tables(
    config: GivenConfig, released: Any, source: Any, progress: Progress
) -> ReleaseResult:
    """Audits and measures a release in hand, as `anonlib.evaluate` says."""
    from anonlib.auditing.in_memory import audit_in_memory
    from anonlib.evaluation.published_spec import explain_audit, make_auditable_spec

    config = add_usual_measures(config_in_hand(config, in_memory=True))
    for name, table in (("released", released), ("source", source)):
        if table is None or is_of_spark(table):
            raise InputError(
                f"{name}: give `released` and `source`, both of pandas, polars or Arrow; tables of "
                "Spark are measured by a config alone, which names their places"
            )
    found = [*find_accounts(), *find_unsupported(config), *check_minimum_k(config.all_models)]
    if found:
        raise ConfigError(found)
    released = require_table(released)
    given = to_arrow_with_index(released)
    rows = _read_source(require_table(source), config)
    n_in, n_out = rows.table.num_rows, given.num_rows
    if n_out > n_in:
        raise InputError(
            f"released: has {n_out} rows, more than the {n_in} of its source; give the whole source"
        )
    table = _as_released(given, rows.schema)
    with progress.stage("audit"):
        report = audit_in_memory(given, make_auditable_spec(config))
        report = explain_audit(report, config, note_index(released))
    return _measure(config, rows, table, report, progress)


def _read_source(data: Any, config: Config) -> "Rows":
    """The rows of the source, as measures take them."""
    from anonlib.in_hand.measuring import mark_rows
    from anonlib.local.rows import list_needed, read_rows
    from anonlib.worker.marks import NO_MARKS

    rows = read_rows(to_arrow(data, list_needed(config)), list_names(data), config)
    require_policy(config, rows.schema)
    return mark_rows(rows, config.seed, NO_MARKS)


def _as_released(table: pa.Table, schema: Schema) -> pa.Table:
    """The released columns by id, in the types of a release by the config."""
    from anonlib.table.plain_types import to_plain_type

    columns = {}
    for column in schema.released:
        if column.name not in table.column_names:
            raise InputError(
                f"released: has no column {column.name}, so it is no release of this config"
            )
        values = to_plain_type(column.name, table.column(column.name))
        try:
            columns[column.id] = values.cast(column.released_type)
        except pa.ArrowException:  # its text may hold values
            raise InputError(
                f"released: column {column.name} has the type {values.type}, and a release of this "
                f"config {column.released_type}; measure it by the config that it was made with"
            ) from None
    return pa.table(columns)


def _measure(
    config: Config, rows: "Rows", table: pa.Table, report: AuditReport, progress: Progress
) -> ReleaseResult:
    from anonlib.in_hand.measuring import make_case
    from anonlib.local.engine import MemoryRelease, fit_table

    encodings = fit_table(rows.table, rows.schema, config).encodings
    release = MemoryRelease(table, 0, 0, {}, {}, encodings, counts={}, fits={}, notes=())
    case = make_case(release, rows, config, b"")
    evaluation = evaluate_case(config.evaluate, config.gates, case, progress)
    return ReleaseResult.of_evaluation(
        config,
        rows.schema,
        report,
        evaluation,
        run_id=f"in-memory-{secrets.token_hex(4)}",
        n_rows_in=rows.table.num_rows,
        n_nobody=rows.n_nobody,
        seconds=dict(progress.seconds),
    )
