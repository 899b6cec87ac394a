"""One run that makes a release: stages, audits and measures it, then publishes it or not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.auditing import AuditReport, AuditSpec
from anonlib.auditing.verdicts import advise_equal_cells
from anonlib.config.checks.context_section import require_current
from anonlib.config.keys import new_token_key
from anonlib.config.model import Config
from anonlib.config.paths import find_manifest_path
from anonlib.config.summary import digest_config
from anonlib.errors import GateError
from anonlib.evaluation import Evaluation, evaluate_case
from anonlib.evaluation.published_spec import (
    counts_persons,
    make_measured_spec,
    make_published_spec,
)
from anonlib.measure import Findings
from anonlib.measure.fidelity.overview import Overview
from anonlib.progress import Progress
from anonlib.run.account import Account
from anonlib.run.audited_release import AuditedRelease
from anonlib.run.completion import locate_record, write_ahead, write_manifest
from anonlib.run.figure_table import write_metrics
from anonlib.run.manifest_reading import find_least_levels
from anonlib.run.past import Books, PriorRelease
from anonlib.run.plan import Plan
from anonlib.run.promise import make_promise
from anonlib.run.publish import Target, note_readers
from anonlib.run.purge import purge, register
from anonlib.run.records import format_manifest, format_record
from anonlib.run.result import Ending, ReleaseResult
from anonlib.run.run_case import make_run_case
from anonlib.run.scan import Scan
from anonlib.run.staged_audit import (
    audit_staged,
    audit_with_published,
    find_released_nodes,
    judge_audited,
    require_audited,
    require_with_published,
)
from anonlib.run.staging import Place, stage_release
from anonlib.run.suppression import find_least_cost
from anonlib.source.resolved_source import Source
from anonlib.source.steady import require_same
from anonlib.spark.digest import digest, digest_halves, with_halves
from anonlib.spark.lease import Lease
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.table.columns import COST, FILE
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest
from anonlib.table.type_words import spell_type
from anonlib.text import drop_file_scheme
from anonlib.worker.marks import find_marks


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
        prior: The releases before this run.
        books: Ledger, backlog and waiting rows.
    """

    spark: SparkSession
    config: Config
    progress: Progress
    account: Account
    target: Target
    key: bytes
    prior: PriorRelease
    books: Books

    @property
    def run_id(self) -> str:
        return self.account.run_id

    def release(self, source: Source, scan: Scan, lease: Lease) -> ReleaseResult:
        """Stages, audits, measures, judges by the gates, publishes and records.

        Raises GateError if a gate is not passed: the figures are recorded, nothing is published.
        """
        release = self._audit(source, scan, lease)
        evaluation, overview = self._evaluate(source, scan, release, lease)
        try:
            if evaluation is not None:
                evaluation.require()
        except GateError as error:
            stopped = self._result(scan, release, evaluation, overview, "stopped")
            kept = self._keep(stopped, source, scan, release)
            page = drop_file_scheme(kept.report or kept.record)
            raise GateError(f"{error}; all figures: {page}") from None
        with self.progress.stage("publish", self.spark):
            result = self._result(scan, release, evaluation, overview, "published")
            notes = (*source.notes, *self.prior.notes, *note_readers(source.schema))
            digest_of_rows = self._digest(release, source.schema)
            names = self.prior.names(source.schema)
            after = self.prior.digest + digest_of_rows
            result = replace(
                result,
                notes=(
                    *notes,
                    *scan.list_notes(source.schema, self.config),
                    *result.notes,
                ),
                time=datetime.now(UTC).isoformat(timespec="seconds"),
                table_digest=after.text,
                table_columns=tuple(names.values()),
                table_types=tuple(
                    spell_type(source.schema.by_id(id).released_type) for id in names
                ),
                replaces=self._list_replaced(),
            )
            self._write_ahead(result, source, scan, release, lease)
            version = self._publish(source, scan, release, lease, digest_of_rows)
        result = replace(result, table_version=version, seconds=dict(self.progress.seconds))
        result = self._keep(result, source, scan, release)
        register(self.spark, self.config.release)
        return result

    def _list_replaced(self) -> tuple[str, ...]:
        """The runs whose rows this one replaces, or that another replaced before it: the purge
        after the commit removes them from the log."""
        if self.config.release.mode != "overwrite":
            return ()
        return tuple(sorted(self.target.runs()))

    def _write_ahead(
        self,
        result: ReleaseResult,
        source: Source,
        scan: Scan,
        release: AuditedRelease,
        lease: Lease,
    ) -> None:
        """Writes the record before the commit, for a run that dies right after it."""
        promise = make_promise(self.config, source.schema)
        text = format_record(self.config, result, source, scan, release.staging.plan, promise)
        lease.require()
        write_ahead(self.spark, lease.work, text)

    def trial(self, source: Source, scan: Scan, lease: Lease) -> ReleaseResult:
        """The same without publishing, and gates don't stop it."""
        release = self._audit(source, scan, lease)
        evaluation, overview = self._evaluate(source, scan, release, lease)
        result = self._result(scan, release, evaluation, overview, "evaluated")
        return self._keep(result, source, scan, release)

    def _audit(self, source: Source, scan: Scan, lease: Lease) -> AuditedRelease:
        config, schema = self.config, source.schema
        token = new_token_key() if schema.unit else b""
        marks = find_marks(config.evaluate)
        place = Place(f"{lease.work}/staging", self.prior.names(schema), self.run_id)
        staging = stage_release(source, scan, config, place, self.key, token, marks, self.progress)
        source.require_same_files()
        with self.progress.stage("audit", self.spark), translate_errors("audit"):
            n_planned = staging.plan.n_rows
            least = find_least_cost(config.privacy, staging.rows, scan.n_rows, n_planned)
            released = None if least is None else F.col(COST) < least
            hashed = with_halves(staging.rows, [column.id for column in schema.released])
            digest_of_rows = digest_halves(hashed, released)
            figures = staging.plan.add_up(digest_of_rows, staging.totals, schema, staging.task)
            require_same(scan.source_digest, figures.source_digest + staging.left_out)
            rows, by_file = staging.rows, staging.with_file(FILE)
            if released is not None:
                rows = rows.where(released)
                by_file = None if by_file is None else by_file.where(released)
            table = self.prior.with_batch(rows, schema)
            spec = make_published_spec(config)
            report = audit_staged(rows, spec, schema, staging.plan, table, by_file)
            self.account.report = report
            n_more = figures.n_cells - report.n_classes
            advice = advise_equal_cells(report.verdicts, spec, n_more)
            require_audited(report, figures, staging.plan, scan, config.privacy, advice)
            table_report = report
            if table is not None:
                table_report = self._audit_table(table, self.prior.alone(schema), spec, report)
            rules = judge_audited(config, schema, (report, table_report), scan.content.kinds)
            nodes = self._find_nodes(rows, schema, table, table_report)
        return AuditedRelease(staging, rows, figures, report, table_report, nodes, rules, least)

    def _audit_table(
        self, table: DataFrame, alone: DataFrame | None, spec: AuditSpec, report: AuditReport
    ) -> AuditReport:
        """The audit of a table with this run's rows, whose own is `report`. The account has it also
        if it fails: else it would tell that all models hold in a run that was stopped by one."""
        known = None if self.prior.known is None else self.prior.known.report
        if self.prior.persons_return and alone is None and not self.config.unit:
            spec = make_measured_spec(self.config, persons_return=True)
        of_table = audit_with_published(table, spec, report, known, alone)
        self.account.report = of_table
        require_with_published(of_table, spec, self.prior.n_rows, report.n_rows)
        return of_table

    def _find_nodes(
        self, rows: DataFrame, schema: Schema, table: DataFrame | None, report: AuditReport
    ) -> dict[str, frozenset[int]]:
        """By column: the nodes of its hierarchy that the table has with these rows."""
        known = self.prior.known if report.by_batch else None
        if known is None and table is not None:
            return find_released_nodes(table, schema)
        added = find_released_nodes(_with_published_names(rows, schema), schema)
        return added if known is None else {n: added[n] | known.nodes[n] for n in added}

    def _evaluate(
        self, source: Source, scan: Scan, release: AuditedRelease, lease: Lease
    ) -> tuple[Evaluation | None, Findings]:
        """What the config's measures found, and the overview of all columns."""
        with translate_errors("evaluate"):
            case = make_run_case(
                self.config, source, scan, release, self.prior.rows, lease.work, self.progress
            )
            overview = Overview().measure(case)
        if self.config.evaluate is None:
            return None, overview
        found = evaluate_case(
            evaluate=self.config.evaluate,
            gates=self.config.gates,
            case=case,
            progress=self.progress,
            spark=source.raw.sparkSession,
            guard=translate_errors,
        )
        return found, overview

    def _digest(self, release: AuditedRelease, schema: Schema) -> Digest:
        """The digest of the released rows, in the order of the table's columns."""
        names = self.prior.names(schema)
        if [*names] == [column.id for column in schema.released]:
            return release.figures.digest
        return digest(release.rows.select(*names))

    def _publish(
        self,
        source: Source,
        scan: Scan,
        release: AuditedRelease,
        lease: Lease,
        digest_of_rows: Digest,
    ) -> int:
        """Notes the persons, commits, and writes the manifest. Returns the new version."""
        schema, figures = source.schema, release.figures
        text = self._describe(schema, scan, release)
        lease.require()
        require_current(self.config.context)
        names = self.prior.names(schema)
        self.target.require_unchanged()
        self.books.note_commit(
            self.run_id,
            source,
            self.prior.digest + digest_of_rows,
            self.prior.columns(schema),
            release.table_report,
            gap=self.prior.gap,
            is_whole=figures.digest.n_rows == scan.n_rows,
        )
        source.require_same_files()
        staging = release.staging
        files = staging.files if staging.is_release else None
        version = self.target.publish(
            staged_rows=release.rows,
            names=names,
            staged_digest=digest_of_rows,
            is_dealt=staging.is_dealt,
            files=files,
            lease=lease,
            run_id=self.run_id,
            text=text,
        )
        write_manifest(self.spark, self.target.path, text)
        self.books.settle(self.target)
        if self.config.release.mode != "overwrite":
            return version
        purge(self.spark, self.target, lease)
        return max(version, self.target.version_of(self.run_id))

    def _describe(self, schema: Schema, scan: Scan, release: AuditedRelease) -> str:
        """The text of the manifest."""
        split_by = tuple(schema.by_id(id).name for id in release.staging.plan.split_by)
        trees = {name: (tree, release.nodes[name]) for name, tree in schema.hierarchies.items()}
        return format_manifest(
            self.config,
            self.run_id,
            release.table_report,
            release.figures,
            scan.n_rows,
            split_by,
            trees,
            promise=make_promise(self.config, schema),
            levels=find_least_levels(release.staging.plan.levels or {}, self._list_manifests()),
            persons_return=self.prior.persons_return,
        )

    def _list_manifests(self) -> list[str]:
        """The manifests of the runs before this one whose rows stay; an empty one for runs that
        the log does not describe any more."""
        if self.config.release.mode != "append":
            return []
        found = {commit.run_id: commit.text for commit in self.target.commits()}
        return [*found.values(), *[""] * (not self.target.runs() <= found.keys())]

    def _result(
        self,
        scan: Scan,
        release: AuditedRelease,
        evaluation: Evaluation | None,
        overview: Findings,
        ending: Ending,
    ) -> ReleaseResult:
        figures, again = release.figures, self.prior.persons_return
        return ReleaseResult(
            run_id=self.run_id,
            outcome=ending,
            n_rows_in=scan.n_rows,
            n_rows_out=figures.digest.n_rows,
            n_suppressed=scan.n_rows - figures.digest.n_rows,
            n_nobody=scan.n_nobody,
            n_blocks=figures.n_blocks,
            n_cells=figures.n_cells,
            audit=release.table_report,
            losses=figures.losses,
            losses_by_column=figures.losses_by_column,
            notes=(*figures.notes, *self._note_known(release)),
            evaluation=evaluation,
            policy=release.rules,
            overview=overview,
            table=self.target.path,
            persons_return=again,
            auditable=counts_persons(self.config, persons_return=again),
            manifest=find_manifest_path(self.target.path) if ending == "published" else "",
            record=locate_record(self.spark, self.config.record_folder, self.run_id),
            seconds=dict(self.progress.seconds),
        )

    def _note_known(self, release: AuditedRelease) -> Iterator[str]:
        if self.prior.known is not None and release.table_report.by_batch:
            yield (
                f"the published rows are as run {self.prior.known.run_id} left and audited them, "
                "so they were not read again: classes were counted in each batch as it was added; "
                "`anonlib audit` counts those of the whole table"
            )

    def _keep(
        self, result: ReleaseResult, source: Source, scan: Scan, release: AuditedRelease
    ) -> ReleaseResult:
        complete = keep(self.spark, self.config, result, source, scan, release.staging.plan)
        self.account.result = complete
        return complete


def keep(
    spark: SparkSession,
    config: Config,
    result: ReleaseResult,
    source: Source,
    scan: Scan,
    plan: Plan | None,
) -> ReleaseResult:
    """Writes the private record of a run, its figures if it was measured, and the report."""
    promise = make_promise(config, source.schema)
    text = format_record(config, result, source, scan, plan, promise)
    Storage(spark, result.record).write(result.record, text)
    # Whatever is wrong with figures or a page, the run is over and in its record.
    try:
        write_metrics(spark, config.metrics_folder, digest_config(config), result)
    except Exception as error:
        note = f"evaluate.metrics: the figures could not be added ({type(error).__name__})"
        result = replace(result, notes=(*result.notes, f"{note}; the record has them"))
    from anonlib.pages.output import report  # this imports matplotlib

    try:
        return replace(result, report=report(result.record))
    except Exception as error:
        note = f"the report could not be written ({type(error).__name__}); see `anonlib report`"
        return replace(result, notes=(*result.notes, note))


def _with_published_names(staged_rows: DataFrame, schema: Schema) -> DataFrame:
    """The released columns under the names that will be published."""
    return staged_rows.select(*[F.col(column.id).alias(column.name) for column in schema.released])
