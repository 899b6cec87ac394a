"""The measures of a table that is published."""

from anonlib.auditing import AuditReport
from anonlib.errors import InputError
from anonlib.evaluation import evaluate_case
from anonlib.run.completion import locate_record
from anonlib.run.past import have_returned
from anonlib.run.result import ReleaseResult
from anonlib.run.run_case import make_published_case
from anonlib.run.scan import Scan
from anonlib.run.steps import Run, keep
from anonlib.source.resolved_source import Source
from anonlib.spark.lease import Lease
from anonlib.spark.translation import translate_errors


def evaluate_published(
    run: Run, source: Source, scan: Scan, lease: Lease, report: AuditReport
) -> ReleaseResult:
    """What the published table is worth, as far as it can be told without links to its source.

    report: The audit of that table. Raises InputError if it is no release of the source.
    """
    config, schema = run.config, source.schema
    run.account.report = report
    table = run.target.published()
    place = {name: f"p{i}" for i, name in enumerate(table.columns)}
    if missing := [column.name for column in schema.released if column.name not in place]:
        raise InputError(
            f"release.path: the table has no column {', '.join(missing)}; it is no "
            "release of this config"
        )
    plain = table.toDF(*place.values())
    rows = plain.select(*[plain[place[c.name]].alias(c.id) for c in schema.released])
    n_released = report.n_rows
    if n_released > scan.n_rows:
        raise InputError(
            f"release.path: the table has {n_released} rows, and the source "
            f"{scan.n_rows}: it has other batches too; measure each when it is released"
        )
    work, progress = lease.work, run.progress
    again = have_returned(run.target)
    case = make_published_case(
        config, source, scan, rows, n_released, work, progress, persons_return=again
    )
    evaluation = evaluate_case(
        config.evaluate, config.gates, case, progress, spark=run.spark, guard=translate_errors
    )
    result = ReleaseResult.of_evaluation(
        config,
        schema,
        report,
        evaluation,
        run_id=run.run_id,
        n_rows_in=scan.n_rows,
        n_nobody=scan.n_nobody,
        kinds=scan.content.kinds,
        table=run.target.path,
        table_version=run.target.version,
        persons_return=again,
        record=locate_record(run.spark, config.record_folder, run.run_id),
        seconds=dict(progress.seconds),
    )
    return keep(run.spark, config, result, source, scan, None)
