"""Audits and measures a table in hand, a published one, or a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonlib.auditing.report import AuditReport
from anonlib.config.minimum_k import check_minimum_k
from anonlib.config.reading import GivenConfig
from anonlib.errors import ConfigError, InputError
from anonlib.evaluation.published_spec import explain_audit, make_auditable_spec
from anonlib.local.arguments import config_in_hand
from anonlib.local.frames import (
    is_of_spark,
    note_index,
    read_parquet_file,
    require_table,
    to_arrow_with_index,
)

if TYPE_CHECKING:
    from anonlib.progress import Progress
    from anonlib.run.result import ReleaseResult


def audit(
    table: Any,
    config: GivenConfig,
    progress: "Progress | None" = None,
    version: int | None = None,
) -> AuditReport:
    """Counts whether a table holds a config's privacy models, whoever published it.

    Args:
        table: The folder of a Delta table; a Parquet file, or a table in hand of pandas, polars or
            Arrow, which need no Spark; or a Spark DataFrame.
        config: A dict, the path of a YAML file, or a Config.
        progress: Hears of every stage; silent by default. For a Delta table.
        version: The version of a Delta table; the latest by default.

    Returns:
        A verdict for each model, what is wrong with the columns, and what the verdicts rest on. Of
        a Delta table that anonlib has published also `shortfalls`: what the release promised and
        the config does not ask.

    Raises:
        ConfigError: The config is not valid.
        InputError, StorageError: The table can't be read.

    Example:
        assert anonlib.audit("out/adult", "conf/adult.yaml").passed
    """
    is_path = isinstance(table, str | Path)
    if is_path and not Path(table).is_file():
        from anonlib.pipeline import audit_delta

        return audit_delta(str(table), config, progress, version)
    if version is not None:
        raise InputError("version: only a Delta table has versions")
    if is_of_spark(table):
        from anonlib.pipeline import audit_frame

        return audit_frame(table, config)
    from anonlib.auditing.in_memory import audit_in_memory

    chosen = config_in_hand(config, in_memory=True)
    if problems := [*check_minimum_k(chosen.all_models)]:
        raise ConfigError(problems)
    data = require_table(read_parquet_file(table) if is_path else table)
    report = audit_in_memory(to_arrow_with_index(data), make_auditable_spec(chosen))
    return explain_audit(report, chosen, note_index(data))


def evaluate(
    config: GivenConfig,
    progress: "Progress | None" = None,
    *,
    trial: bool = False,
    released: Any = None,
    source: Any = None,
) -> "ReleaseResult":
    """Measures what a release is worth against its source, and how risky it is.

    By the config alone it is a table that Spark has published, and its source: the figures go to a
    private record and to the table of figures. Tables in hand need no Spark, and nothing is
    written. Measures that follow rows to their origin, or count in cells, give no figures then: the
    section `evaluate` of the release's own config does. Gates are judged, and stop nothing.

    Args:
        config: A dict, the path of a YAML file, or a Config. Without `evaluate` the usual measures.
        progress: Hears of every stage; silent by default.
        trial: Measures a release that is made, audited and not published.
        released: A release that was made earlier: a pandas, polars or Arrow table.
        source: The table that it was made of, likewise.

    Returns:
        The audit's report and the evaluation, with the verdict of each gate.

    Raises:
        ConfigError: The config is not valid, or does not fit the source.
        InputError: No table is published, or the tables can't be of this config. Else as `release`.

    Example:
        anonlib.evaluate("conf/adult.yaml", trial=True).evaluation
        anonlib.evaluate(release.config, released=release.table, source=people).evaluation
    """
    if released is None and source is None:
        from anonlib.pipeline import evaluate_delta

        return evaluate_delta(config, progress, trial=trial)
    if trial:
        raise InputError("trial: makes a release; leave it out where `released` is one")
    from anonlib.in_hand.earlier import evaluate_tables
    from anonlib.progress import Progress

    return evaluate_tables(config, released, source, progress or Progress())
