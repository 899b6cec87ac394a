"""One run that makes a release: staged, audited, measured, and then published or not."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.auditing import AuditReport
from anonlib.config.keys import new_token_key
from anonlib.config.model import Config
from anonlib.config.summary import digest_config
from anonlib.errors import GateError
from anonlib.evaluation import Evaluation
from anonlib.evaluation.classes import make_published_spec
from anonlib.progress import Progress
from anonlib.run.account import Account
from anonlib.run.endings import record_path, tell_published, write_ahead, write_manifest
from anonlib.run.evaluate import case_of, evaluate_case, marks_of, write_metrics
from anonlib.run.past import Earlier, Past
from anonlib.run.plan import Outcome, Plan
from anonlib.run.promise import make_promise
from anonlib.run.publish import Target, manifest_path, reader_notes
from anonlib.run.purge import purge, register
from anonlib.run.records import manifest, record
from anonlib.run.result import Ending, ReleaseResult
from anonlib.run.scan import Scan
from anonlib.run.staging import Staging, stage_release
from anonlib.run.suppression import find_released
from anonlib.run.verify import (
    audit_staged,
    audit_with_published,
    counts_persons,
    find_released_nodes,
    require,
)
from anonlib.source import Source
from anonlib.source.file_list import require_same_files
from anonlib.source.steady import require_same
from anonlib.spark.digest import digest
from anonlib.spark.lease import Lease
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.table.schema import Schema


@dataclass(frozen=True)
class AuditedRelease:
    """A staged release that passed its audit.

    Attributes:
        made: The staged rows, and how they were made.
        rows: The staged rows that are released.
        found: The outcome.
        report: The audit of these rows.
        whole: The audit of the table with these rows.
        nodes: By column: the nodes of its hierarchy that the release has.
    """

    made: Staging
    rows: DataFrame
    found: Outcome
    report: AuditReport
    whole: AuditReport
    nodes: dict[str, frozenset[int]]


@dataclass
class Run:
    """One run.

    Attributes:
        spark: The session.
        config: The config.
        progress: Hears of every stage.
        account: What the table of runs keeps of this run.
        target: The table to publish.
        key: Key of the pseudonyms.
        earlier: What was published before.
        past: Ledger, backlog and waiting rows.
    """

    spark: SparkSession
    config: Config
    progress: Progress
    account: Account
    target: Target
    key: bytes
    earlier: Earlier
    past: Past

    @property
    def run_id(self) -> str:
        return self.account.run_id

    def through(self, source: Source, scanned: Scan, held: Lease) -> ReleaseResult:
        """Stages, audits, measures, judges by the gates, publishes and records.

        Raises GateError if a gate is not passed: the figures are recorded, nothing is published.
        """
        done = self._audited(source, scanned, held)
        evaluation = self._evaluated(source, scanned, done, held)
        try:
            if evaluation is not None:
                evaluation.require()
        except GateError:
            self._keep(self._result(scanned, done, evaluation, "stopped"), source, scanned, done)
            raise
        with self.progress.stage("publish", self.spark):
            result = self._result(scanned, done, evaluation, "published")
            notes = (*self.earlier.notes, *reader_notes(source.schema))
            result = replace(result, notes=notes)
            text = record(
                self.config,
                result,
                source,
                scanned,
                done.made.plan,
                make_promise(self.config, source.schema),
            )
            held.require()
            write_ahead(self.spark, held.work, text)
            version = self._publish(source, scanned, done, held)
        result = replace(result, table_version=version, seconds=dict(self.progress.seconds))
        with tell_published(self.target.path, version, self.run_id):
            result = self._keep(result, source, scanned, done)
        register(self.spark, self.config.release, self.run_id, version)
        return result

    def trial(self, source: Source, scanned: Scan, held: Lease) -> ReleaseResult:
        """The same without publishing, whatever the gates say."""
        done = self._audited(source, scanned, held)
        evaluation = self._evaluated(source, scanned, done, held)
        result = self._result(scanned, done, evaluation, "evaluated")
        return self._keep(result, source, scanned, done)

    def _audited(self, source: Source, scanned: Scan, held: Lease) -> AuditedRelease:
        config, schema = self.config, source.schema
        token = new_token_key() if schema.unit else b""
        staging = f"{held.work}/staging"
        marks = marks_of(config.evaluate)
        made = stage_release(
            source, scanned, config, staging, self.key, token, marks, self.progress
        )
        require_same_files(source.files, source.fresh)
        with self.progress.stage("audit", self.spark), translate_errors("audit"):
            chosen = find_released(config.privacy, made.staged, scanned.n_rows, made.plan.n_rows)
            found = made.plan.outcome(made.staged, chosen, schema, made.task)
            require_same(scanned.read, found.read + made.left_out)
            rows = made.staged if chosen is None else made.staged.where(chosen)
            table = self.earlier.with_batch(rows, schema)
            spec = make_published_spec(config)
            report = audit_staged(rows, spec, schema, made.plan, table)
            self.account.report = report
            require(report, found, made.plan, scanned, config.privacy)
            whole = report
            if table is not None:
                whole = audit_with_published(table, spec, report, self.target.published().count())
                self.account.report = whole
            nodes = find_released_nodes(
                _published(rows, schema) if table is None else table, schema
            )
        return AuditedRelease(made, rows, found, report, whole, nodes)

    def _evaluated(
        self, source: Source, scanned: Scan, done: AuditedRelease, held: Lease
    ) -> Evaluation | None:
        if self.config.evaluate is None:
            return None
        with translate_errors("evaluate"):
            n_released, published = done.found.digest.n_rows, self.earlier.published
            case = case_of(
                self.config,
                source,
                scanned,
                done.rows,
                n_released,
                held.work,
                self.progress,
                published,
                done.made.task.link_key,
            )
        return evaluate_case(self.config.evaluate, self.config.gates, case, self.progress)

    def _publish(self, source: Source, scanned: Scan, done: AuditedRelease, held: Lease) -> int:
        """Notes the persons, commits, writes the manifest; the new version."""
        schema, found = source.schema, done.found
        split_by = tuple(schema.by_id(id).name for id in done.made.plan.split_by)
        trees = {name: (tree, done.nodes[name]) for name, tree in schema.hierarchies.items()}
        text = manifest(
            self.config,
            self.run_id,
            done.whole,
            found,
            scanned.n_rows,
            split_by,
            trees,
            promise=make_promise(self.config, schema),
        )
        held.require()
        names = self.earlier.names(schema)
        self.target.require_unchanged()
        expected = found.digest
        if [*names] != [column.id for column in schema.released]:
            expected = digest(done.rows.select(*names))  # hashes go by the order of columns
        after = self.earlier.digest_with(expected)
        self.past.before_commit(self.run_id, source, after, done.whole)
        require_same_files(source.files, source.fresh)
        version = self.target.publish(done.rows, names, expected, held, self.run_id, text)
        with tell_published(self.target.path, version, self.run_id):
            write_manifest(self.spark, self.target.path, text)
            self.past.after_commit(self.target)
            if self.config.release.mode != "overwrite":
                return version
            purge(self.spark, self.target, held)
            return self.target.version_of(self.run_id)

    def _result(
        self, scanned: Scan, done: AuditedRelease, evaluation: Evaluation | None, ending: Ending
    ) -> ReleaseResult:
        found = done.found
        return ReleaseResult(
            run_id=self.run_id,
            outcome=ending,
            n_rows_in=scanned.n_rows,
            n_rows_out=found.digest.n_rows,
            n_suppressed=scanned.n_rows - found.digest.n_rows,
            n_nobody=scanned.n_nobody,
            n_blocks=found.n_blocks,
            n_cells=found.n_cells,
            audit=done.whole,
            losses=found.losses,
            losses_by_column=found.losses_by_column,
            evaluation=evaluation,
            table=self.target.path,
            auditable=counts_persons(self.config),
            manifest=manifest_path(self.target.path) if ending == "published" else "",
            record=record_path(self.spark, self.config.record_path, self.run_id),
            seconds=dict(self.progress.seconds),
        )

    def _keep(
        self, result: ReleaseResult, source: Source, scanned: Scan, done: AuditedRelease
    ) -> ReleaseResult:
        kept = keep(self.spark, self.config, result, source, scanned, done.made.plan)
        self.account.result = kept
        return kept


def keep(
    spark: SparkSession,
    config: Config,
    result: ReleaseResult,
    source: Source,
    scanned: Scan,
    plan: Plan | None,
) -> ReleaseResult:
    """Writes the private record of a run, its figures if it was measured, and the report."""
    promise = make_promise(config, source.schema)
    text = record(config, result, source, scanned, plan, promise)
    Storage(spark, result.record).write(result.record, text)
    # Whatever is wrong with figures or a page, the run is over and in its record.
    try:
        write_metrics(spark, config.metrics_path, digest_config(config), result)
    except Exception as error:
        note = f"evaluate.metrics: the figures could not be added ({type(error).__name__})"
        result = replace(result, notes=(*result.notes, f"{note}; the record has them"))
    from anonlib.pages.output import report  # this imports matplotlib

    try:
        return replace(result, report=report(result.record))
    except Exception as error:
        note = f"the report could not be written ({type(error).__name__}); see `anonlib report`"
        return replace(result, notes=(*result.notes, note))


def _published(staged: DataFrame, schema: Schema) -> DataFrame:
    """The released columns under the names that will be published."""
    return staged.select(*[F.col(column.id).alias(column.name) for column in schema.released])
