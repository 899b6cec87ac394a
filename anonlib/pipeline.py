"""The verbs that need Spark: release, audit, evaluate, sweep, check. They are the same from the
command line, from a job and from a notebook, on the session that is there."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from anonlib.auditing import AuditReport
from anonlib.config.checks.context_section import require_reviewed
from anonlib.config.keys import (
    derive_backlog_key,
    derive_ledger_key,
    derive_pseudonym_key,
    require_master_keys,
)
from anonlib.config.model import Config, EvaluateSection
from anonlib.config.places import check_overlaps, list_private_places
from anonlib.config.policies.judgement import require_policy
from anonlib.config.reading import GivenConfig, add_usual_measures, as_config
from anonlib.config.summary import digest_config
from anonlib.errors import ConfigError, InfeasibleError, InputError, Problem
from anonlib.evaluation import require_gates_of_releases
from anonlib.progress import Progress
from anonlib.run.account import spell_path
from anonlib.run.block_plan import refuse_inexact
from anonlib.run.check import resolve_check
from anonlib.run.completion import complete_last, is_owed
from anonlib.run.controller_plan import list_controllers, name_as_rows
from anonlib.run.endings import describe_waiting, finish, require_own_record, tell_published
from anonlib.run.evaluate import evaluate_published
from anonlib.run.figure_table import open_figure_table
from anonlib.run.manifest_persons import read_persons_return
from anonlib.run.manifest_reading import read_publication
from anonlib.run.obstacles import find_obstacles
from anonlib.run.operator_limits import require_minimum_k, require_words
from anonlib.run.past import PriorRelease, look_back, open_books
from anonlib.run.publish import Target
from anonlib.run.purge import is_registered
from anonlib.run.result import CheckResult, ReleaseResult
from anonlib.run.run_table import RunNotes, keep_account, open_run_table
from anonlib.run.scan import Scan, scan
from anonlib.run.shortfalls import find_shortfalls
from anonlib.run.staged_audit import audit_published
from anonlib.run.steps import Run
from anonlib.source.given import require_frame
from anonlib.source.other_table import require_other_tables
from anonlib.source.resolved_source import Source, open_source
from anonlib.source.steady import explain_lost_pin
from anonlib.spark.delta_files import explain_damage
from anonlib.spark.lease import Lease, lease, tidy
from anonlib.spark.session import find_minimum_k, session
from anonlib.spark.storage import Storage, spelling
from anonlib.spark.tasks import fit_shuffles, settle_tasks
from anonlib.spark.translation import translate_errors
from anonlib.sweeps.file import as_sweep
from anonlib.sweeps.in_spark import run_sweep
from anonlib.sweeps.results import SweepResult
from anonlib.sweeps.settings import Sweep, find_sweep_problems

if TYPE_CHECKING:
    from anonlib.pages.seal import Certificate
    from anonlib.run.confirmation import LineVerdict


def release(
    config: GivenConfig, progress: Progress | None = None, dataframe: DataFrame | None = None
) -> ReleaseResult:
    """Anonymizes a table and publishes what its audit passed.

    A run whose id is already in the target's history is done: nothing happens again. A batch that
    can't hold the models alone waits, if the config has a backlog. After an error the target is as
    it was, but for PublishedError.

    Args:
        config: A dict, the path of a YAML file, or a Config.
        progress: Hears of every stage; silent by default.
        dataframe: The rows, with `source: {format: dataframe}`. Else the config's source is read.

    Returns:
        Rows in and out, the audit's report, losses, the places of table and record.

    Raises:
        ConfigError, InputError, InfeasibleError: Before anything is written.
        AuditError: A model does not hold.
        GateError: What was measured is not within the config's gates.
        BusyError: Another run holds the target.
        PublishedError: The release is published; what follows the commit failed.
        StorageError: Reading or writing failed.

    Example:
        anonlib.release("conf/quickstart.yaml")
    """
    config = as_config(config)
    progress = progress or Progress()
    if dataframe is not None:
        require_frame(dataframe, "dataframe")
        if config.source.format != "dataframe":
            raise ConfigError(
                [Problem("source.format", "must be dataframe where a DataFrame is released")]
            )
    require_reviewed(config.review)
    require_gates_of_releases(config.gates, config.evaluate)
    run_id = config.release.run_id or _new_run_id()
    with keep_account("release", config, run_id, progress) as run_notes:
        result = _release(config, run_notes, progress, dataframe)
        return run_notes.account.end(result.with_plain_paths())


def _release(
    config: Config, run_notes: RunNotes, progress: Progress, dataframe: DataFrame | None
) -> ReleaseResult:
    account = run_notes.account
    run_id = account.run_id
    require_master_keys(config.attributes, config.pseudonyms, config.release)
    with progress.stage("start"):
        there = None if dataframe is None else dataframe.sparkSession
        spark = session(config.spark.conf, there)
        require_minimum_k(spark, config.privacy.models)
        _require_apart(spark, config)
    run_notes.use_session(spark)
    target = Target(spark, config.release)
    run_notes.set_target(target.path)
    # A name that is taken is refused before anything is written.
    is_registered(spark, config.release)
    key, ledger_key = _derive_keys(config, run_id, target)
    backlog_key = derive_backlog_key(config.attributes, config.pseudonyms, config.release)
    books = open_books(spark, config, target, ledger_key, backlog_key)
    if run_id in target.runs():
        return finish(spark, config, target, run_id, books)
    require_own_record(spark, config.record_folder, target, run_id)
    _clean_up(spark, config, target, run_id)
    target.check_free()
    if books.backlog is not None and books.backlog.of(run_id) is not None:
        return describe_waiting(spark, config, target, run_id, books.backlog)
    with progress.stage("open", spark):
        _open_other_tables(spark, config.evaluate)
        source = open_source(spark, config, dataframe, books.waiting_rows())
    account.source_version = source.version
    progress.stops = books.can_wait
    with tell_published(target, run_id), closing(source), explain_lost_pin(source):
        try:
            with progress.stage("scan", spark):
                books.require_new_rows(source, config.one_row_per_person)
                prior = look_back(config, target, source, books.ledger)
                scan = _scan(source, config, prior.rows)
            account.n_rows_in = scan.n_rows
            run = Run(spark, config, progress, account, target, key, prior, books)
            # Before anything is written: a run that could not be recorded is not begun.
            _make_private_folders(spark, config)
            with _hold(spark, target, run_id, scan.n_rows) as own_lease:
                return run.release(source, scan, own_lease)
        except InfeasibleError as error:  # by the scan, or by the plan: nothing is staged
            if books.backlog is None or not books.can_wait(error):
                raise
            _make_private_folders(spark, config)
            with _hold(spark, target, run_id):
                books.backlog.add(run_id, source, digest_config(config))
            return describe_waiting(spark, config, target, run_id, books.backlog, error)


@contextmanager
def _hold(spark: SparkSession, target: Target, run_id: str, n_rows: int = 0) -> Iterator[Lease]:
    """The lease of a target. When the body ends no task runs on; its shuffles fit the rows."""
    with (
        lease(spark, target.path, run_id, target.runs) as own_lease,
        settle_tasks(spark),
        fit_shuffles(spark, n_rows),
    ):
        yield own_lease


def _require_apart(spark: SparkSession, config: Config) -> None:
    """Raises ConfigError where what is private and what is public are one place, also where only
    their stores know that."""
    private = list_private_places(config)
    spelled = partial(spelling, spark)
    problems = [*check_overlaps(config.source, config.release, private, spelled)]
    if problems:
        raise ConfigError(problems)


def _clean_up(spark: SparkSession, config: Config, target: Target, run_id: str) -> None:
    """Removes what a dead run left, and does what it owes if it was committed."""
    tidy(spark, target.path, run_id, target.runs)
    if is_owed(spark, target):
        with lease(spark, target.path, run_id, target.runs) as own_lease:
            complete_last(spark, config, target, own_lease)
        target.renew()


def _make_private_folders(spark: SparkSession, config: Config) -> None:
    records = Storage(spark, config.record_folder)
    records.make_private(records.root)
    if config.evaluate is not None:
        open_figure_table(spark, config.metrics_folder).make_folder()
    open_run_table(spark, config.runs_folder, config.release.path).make_folder()


def _open_other_tables(spark: SparkSession, evaluate: EvaluateSection | None) -> None:
    """Raises an error if a table that a measure reads can't be opened."""
    if evaluate is not None:
        require_other_tables(spark, evaluate.measures)


def _scan(source: Source, config: Config, prior_rows: DataFrame | None = None) -> Scan:
    if config.spark.grouped_map == "pandas":
        refuse_inexact(source)
    require_policy(config, source.schema)
    found = scan(source, config, prior_rows)
    require_policy(config, source.schema, found.content.kinds)
    return found


def audit_delta(
    table: str, config: GivenConfig, progress: Progress | None = None, version: int | None = None
) -> AuditReport:
    """Audits a Delta table, as `anonlib.audit` says."""
    config = as_config(config)
    progress = progress or Progress()
    progress.target = progress.target or spell_path(table)
    with progress.stage("start"):
        spark = session(config.spark.conf)
        require_minimum_k(spark, config.privacy.models)
    where = f"table {table}"
    damage = explain_damage(spark, table, where)
    with progress.stage("audit", spark), damage, translate_errors(where):
        rows = _read_version(spark, table, version)
        publication = read_publication(spark, table, version)
        manifest = publication.manifest
        # An unknown manifest may say that they do.
        again = manifest is None or read_persons_return(manifest)
        report = audit_published(rows, config, persons_return=again)
    premises = (*report.premises, *publication.list_premises(report.n_rows))
    return replace(report, premises=premises, shortfalls=find_shortfalls(config, manifest))


def verify_delta(
    certificate: "Certificate", table: str, progress: Progress, version: int | None = None
) -> "tuple[LineVerdict, ...]":
    """Compares a certificate with a Delta table, as `anonlib.verify` says."""
    from anonlib.run.confirmation import confirm_lines  # this imports matplotlib
    from anonlib.run.testimony import take_testimony

    with progress.stage("start"):
        spark = session({})
    where = f"table {table}"
    damage = explain_damage(spark, table, where)
    with progress.stage("audit", spark), damage, translate_errors(where):
        rows = _read_version(spark, table, version)
        return confirm_lines(certificate, take_testimony(rows, table, version))


def _read_version(spark: SparkSession, table: str, version: int | None) -> DataFrame:
    """The rows of a Delta table, at its newest version if none is given."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(table)


def verify_frame(certificate: "Certificate", table: DataFrame) -> "tuple[LineVerdict, ...]":
    """Compares a certificate with a DataFrame, as `anonlib.verify` says."""
    from anonlib.run.confirmation import confirm_lines
    from anonlib.run.testimony import take_testimony

    require_frame(table, "table")
    with translate_errors("table"):
        return confirm_lines(certificate, take_testimony(table, None))


def audit_frame(table: DataFrame, config: GivenConfig) -> AuditReport:
    """Audits a DataFrame, as `anonlib.audit` says."""
    config = as_config(config)
    require_frame(table, "table")
    require_minimum_k(table.sparkSession, config.privacy.models)
    with translate_errors("table"):
        return audit_published(table, config)


def evaluate_delta(
    config: GivenConfig, progress: Progress | None = None, *, trial: bool = False
) -> ReleaseResult:
    """Measures the Delta table of a config, or a trial, as `anonlib.evaluate` says."""
    config = add_usual_measures(as_config(config))
    progress = progress or Progress()
    verb = "trial" if trial else "evaluate"
    with keep_account(verb, config, _new_run_id(), progress) as run_notes:
        result = _evaluate(config, run_notes, progress, trial=trial)
        return run_notes.account.end(result.with_plain_paths())


def _evaluate(
    config: Config, run_notes: RunNotes, progress: Progress, *, trial: bool
) -> ReleaseResult:
    account = run_notes.account
    run_id = account.run_id
    with progress.stage("start"):
        spark = session(config.spark.conf)
        require_minimum_k(spark, config.privacy.models)
        _require_apart(spark, config)
    run_notes.use_session(spark)
    target = Target(spark, config.release)
    run_notes.set_target(target.path)
    if not trial and target.version < 0:
        raise InputError(
            f"release.path: no table is at {target.path}; release it first, or measure a "
            "trial (--trial)"
        )
    _clean_up(spark, config, target, run_id)
    if trial and config.release.mode == "append":
        target.check_free()
    with progress.stage("open", spark):
        _open_other_tables(spark, config.evaluate)
        source = open_source(spark, config)
    account.source_version = source.version
    with closing(source), explain_lost_pin(source):
        key, ledger_key = _derive_keys(config, run_id, target) if trial else (b"", b"")
        books = open_books(spark, config, target, ledger_key, b"")
        with progress.stage("scan", spark):
            prior = look_back(config, target, source, books.ledger) if trial else PriorRelease()
            scan = _scan(source, config, prior.rows)
        account.n_rows_in = scan.n_rows
        run = Run(spark, config, progress, account, target, key, prior, books)
        _make_private_folders(spark, config)
        with _hold(spark, target, run_id, scan.n_rows) as own_lease:
            if trial:
                return run.trial(source, scan, own_lease)
            report = audit_delta(target.path, config, progress, target.version)
            return evaluate_published(run, source, scan, own_lease, report)


def _derive_keys(config: Config, run_id: str, target: Target) -> tuple[bytes, bytes]:
    """The keys of the pseudonyms and of the ledger. What is published already needs neither."""
    return (
        derive_pseudonym_key(config.attributes, config.pseudonyms, run_id, target.path),
        derive_ledger_key(config.attributes, config.pseudonyms, config.release),
    )


def sweep(
    sweep: Sweep | Mapping[str, Any] | str | Path,
    progress: Progress | None = None,
    *,
    retry: bool = False,
) -> SweepResult:
    """Tries the points of a sweep that have no result yet, each in memory; publishes nothing.

    Args:
        sweep: A dict, the path of a YAML file, or a Sweep.
        progress: Hears of every stage; silent by default.
        retry: Also tries again the points that failed.

    Returns:
        The results of all points, and where they are kept.

    Raises:
        ConfigError: The file is not valid, a table does not fit it, or a point's k is below the
            operator's minimum.
        InputError, StorageError: Reading or writing failed.

    Example:
        anonlib.sweep("conf/papers/ta_da.yaml")
    """
    sweep = as_sweep(sweep)
    progress = progress or Progress()
    with progress.stage("start"):
        spark = session(sweep.file.spark.conf)
        if problems := [*find_sweep_problems(sweep, *find_minimum_k(spark))]:
            raise ConfigError(problems)
    return run_sweep(spark, sweep, progress, retry=retry)


def check(config: GivenConfig, progress: Progress | None = None) -> CheckResult:
    """Resolves a config against its source, and scans it; publishes nothing.

    Args:
        config: A dict, the path of a YAML file, or a Config.
        progress: Hears of every stage; silent by default.

    Returns:
        What becomes of each column, the models, what is left to be trusted, and what stands in the
        way of a release besides.

    Raises:
        ConfigError: Lists all problems of the config and of its columns.
        InputError: The source can't be read.
        InfeasibleError: The models can't hold on this table.

    Example:
        anonlib.check("conf/quickstart.yaml").notes
    """
    config = as_config(config)
    require_words(config.accountability, config.context)
    require_gates_of_releases(config.gates, config.evaluate)
    progress = progress or Progress()
    progress.target = spell_path(config.release.path)
    with progress.stage("start"):
        spark = session(config.spark.conf)
        require_minimum_k(spark, config.privacy.models)
        _require_apart(spark, config)
    with progress.stage("scan", spark):
        is_registered(spark, config.release)
        _open_other_tables(spark, config.evaluate)
        source = open_source(spark, config)
        with closing(source), explain_lost_pin(source):
            scan = _scan(source, config)
            if (step := name_as_rows(config, source.schema).controller) is not None:
                list_controllers(source.rows(), source.schema, step)
            obstacles = tuple(find_obstacles(spark, config, source))
    return resolve_check(config, source.schema, scan, obstacles, source.notes)


def _new_run_id() -> str:
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
