"""The verbs: release, audit, check. The same from the command line, a job, or a notebook."""

import secrets
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from anonlib import audit as auditing
from anonlib import registry
from anonlib.audit import AuditReport
from anonlib.config import Config
from anonlib.errors import InfeasibleError, StorageError
from anonlib.keys import backlog_key, ledger_key, pseudonym_key, token_key
from anonlib.partition import TaskPartitioner
from anonlib.privacy import PrivacyModel
from anonlib.progress import Progress
from anonlib.recode import Domain
from anonlib.records import manifest, record
from anonlib.resolve import (
    bound_models,
    with_ids,
)
from anonlib.results import CheckResult, ColumnPlan, ReleaseResult
from anonlib.schema import Column, Role, Schema
from anonlib.spark.backlog import can_wait
from anonlib.spark.blocks import Plan, plan
from anonlib.spark.digest import digest
from anonlib.spark.done import finish, manifest_path, record_path, waits, write_manifest
from anonlib.spark.earlier import Earlier, look_back
from anonlib.spark.errors import translated
from anonlib.spark.grouped import (
    Outcome,
    anonymized,
    least_cost_suppressed,
    outcome,
    output_schema,
    refuse_inexact,
)
from anonlib.spark.lease import Lease, lease, tidy
from anonlib.spark.moments import table_moments
from anonlib.spark.nodes import released_nodes
from anonlib.spark.past import Past, open_past
from anonlib.spark.publish import Target, name_mapping
from anonlib.spark.purge import owed, purge
from anonlib.spark.scan import Scan, scan
from anonlib.spark.session import session
from anonlib.spark.source import Source, open_source
from anonlib.spark.storage import Storage
from anonlib.spark.tasks import settled
from anonlib.spark.verify import audited, audited_whole, published_spec, require
from anonlib.spark.whole import Whole, released_rows, searched
from anonlib.work import COST, Task


def release(
    config: Config, progress: Progress | None = None, dataframe: DataFrame | None = None
) -> ReleaseResult:
    """Anonymizes the config's source (or the DataFrame) and publishes what its audit passed.

    A run whose id is already in the target's history is done: nothing happens again. A batch that
    can't hold the models alone waits, if the config has a backlog. Raises ConfigError, InputError,
    InfeasibleError before anything is written, AuditError when a model does not hold, BusyError
    when another run holds the target, StorageError when reading or writing fails; the target is
    then as it was (or, where only the old version's removal failed, as it was published).
    """
    progress = progress or Progress()
    run_id = config.release.run_id or _new_run_id()
    key = pseudonym_key(config, run_id)
    private = ledger_key(config), backlog_key(config)
    with progress.stage("start"):
        spark = dataframe.sparkSession if dataframe is not None else session(config.spark.conf)
    target = Target(spark, config.release)
    past = open_past(spark, config, target, *private)
    if run_id in target.runs():
        return finish(spark, config, target, run_id, past)
    _clean_up(spark, target, run_id)
    target.check_free()
    if past.backlog is not None and past.backlog.of(run_id) is not None:
        return waits(spark, config, target, run_id, past.backlog)
    with progress.stage("open", spark):
        source = open_source(spark, config, dataframe, past.waiting_rows())
    with closing(source):
        try:
            with progress.stage("scan", spark):
                earlier = look_back(config, target, source, past.ledger)
                scanned = _scan(source, config, earlier.published)
            run = _Run(spark, config, progress, run_id, target, key, earlier, past)
            # Before anything is written: a run that could not be recorded is not begun.
            _make_record_folder(spark, config)
            with lease(spark, target.path, run_id) as held, settled(spark):
                return run.through(source, scanned, held)
        except InfeasibleError as error:  # by the scan, or by the plan: nothing is staged
            if past.backlog is None or not can_wait(error):
                raise
            _make_record_folder(spark, config)
            with lease(spark, target.path, run_id), settled(spark):
                past.backlog.add(run_id, source)
            return waits(spark, config, target, run_id, past.backlog, error)


def _clean_up(spark: SparkSession, target: Target, run_id: str) -> None:
    """Removes what a dead run left, and finishes a purge that it began."""
    tidy(spark, target.path, run_id)
    if owed(target):
        with lease(spark, target.path, run_id):
            purge(spark, target)
        target.renew()


def _make_record_folder(spark: SparkSession, config: Config) -> None:
    records = Storage(spark, config.record_path)
    records.make_private(records.root)


def _scan(source: Source, config: Config, published: DataFrame | None = None) -> Scan:
    if config.spark.grouped_map == "pandas":
        refuse_inexact(source, config)
    return scan(source, config, published)


def audit(
    table: str, config: Config, progress: Progress | None = None, version: int | None = None
) -> AuditReport:
    """The verdict on any Delta table against a config's privacy models, counted on the table."""
    progress = progress or Progress()
    with progress.stage("start"):
        spark = session(config.spark.conf)
    with progress.stage("audit", spark), translated(f"table {table}"):
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return auditing.audit(reader.load(table), published_spec(config))


def check(config: Config, progress: Progress | None = None) -> CheckResult:
    """Resolves a config against its source, with all that the figures of a scan rule out."""
    progress = progress or Progress()
    with progress.stage("start"):
        spark = session(config.spark.conf)
    with progress.stage("scan", spark):
        source = open_source(spark, config)
        with closing(source):
            scanned = _scan(source, config)
    notes = []
    if config.one_row_per_person is True:
        notes.append("one_row_per_person is declared, and can't be checked")
    return CheckResult(
        n_rows=scanned.n_rows,
        columns=tuple(_column_plan(config, source, name) for name in config.attributes),
        models=tuple(_labels(config)),
        kernel=_label(config.kernel),
        partition=" > ".join(_label(step) for step in config.partition.steps),
        notes=tuple(notes),
    )


@dataclass
class _Run:
    """One release on its way."""

    spark: SparkSession
    config: Config
    progress: Progress
    run_id: str
    target: Target
    key: bytes
    earlier: Earlier
    past: Past

    def through(self, source: Source, scanned: Scan, held: Lease) -> ReleaseResult:
        """Partition, anonymize to staging, audit, publish, record."""
        config, schema = self.config, source.schema
        rows = source.rows()
        with self.progress.stage("partition", self.spark), translated("partition"):
            task = self._task(schema, scanned, with_ids(bound_models(config), schema))
            planned = self._planned(rows, schema, scanned, task)
            own = {c: tuple(map(registry.spec, models)) for c, models in planned.own.items()}
            task = replace(task, own=own, values=planned.values)
            if config.kernel.needs_classes:
                task = replace(task, moments=table_moments(rows, task))
        staging = f"{held.work}/staging"
        with self.progress.stage("anonymize", self.spark), translated("anonymize"):
            if isinstance(planned, Whole):
                frame = released_rows(rows, schema, planned, task)
            else:
                frame = anonymized(rows, schema, planned, task, config)
            # Statistics for skipping files cost as much as writing them, and none is skipped here.
            options = {"delta.dataSkippingNumIndexedCols": "0", **name_mapping(frame.schema)}
            frame.write.format("delta").options(**options).mode("error").save(staging)
        staged = self.spark.read.format("delta").option("versionAsOf", 0).load(staging)
        with self.progress.stage("audit", self.spark), translated("audit"):
            kept = self._kept(staged, planned, scanned)
            found = outcome(staged, kept, schema, task, planned)
            staged = staged if kept is None else staged.where(kept)
            table = self.earlier.with_batch(staged, schema)
            report = audited(staged, config, schema, planned, table)
            require(report, found, planned, scanned, config)
            whole = report
            if table is not None:
                whole = audited_whole(table, config, report, self.target.published().count())
            nodes = released_nodes(_published(staged, schema) if table is None else table, schema)
        split_by = tuple(schema.by_id(id).name for id in planned.split_by)
        trees = {name: (tree, nodes[name]) for name, tree in schema.hierarchies.items()}
        text = manifest(config, self.run_id, whole, found, scanned.n_rows, split_by, trees)
        with self.progress.stage("publish", self.spark):
            version = self._publish(source, staged, found, whole, text, held)
        return self._record(source, scanned, planned, found, whole, version)

    def _planned(self, rows: DataFrame, schema: Schema, scanned: Scan, task: Task) -> Plan | Whole:
        if self.config.partition.by_tuples:
            return searched(rows, schema, scanned, self.config, task)
        return plan(rows, schema, scanned, self.config, task)

    def _kept(self, staged: DataFrame, planned: Plan | Whole, scanned: Scan) -> SparkColumn | None:
        """The staged rows that are released; None where that is all."""
        privacy = self.config.privacy
        if privacy.suppress != "costliest":
            return None
        allowed = privacy.may_suppress(scanned.n_rows)
        cost = least_cost_suppressed(staged, allowed - (scanned.n_rows - planned.n_rows))
        return None if cost is None else F.col(COST) < cost

    def _publish(
        self,
        source: Source,
        staged: DataFrame,
        found: Outcome,
        whole: AuditReport,
        text: str,
        held: Lease,
    ) -> int:
        """Notes the persons, commits, writes the manifest; the new version."""
        if not held.still_held():
            raise StorageError("the lease on the target was lost; nothing was published")
        names = self.earlier.names(source.schema)
        self.target.require_unchanged()
        expected = found.digest
        if [*names] != [column.id for column in source.schema.released]:
            expected = digest(staged.select(*names))  # hashes go by the order of columns
        after = self.earlier.digest_with(expected)
        self.past.before_commit(self.run_id, source, after, whole)
        self.target.publish(staged, names, expected, self.run_id, text)
        write_manifest(self.spark, self.target.path, text)
        self.past.after_commit(self.target.runs())
        purge(self.spark, self.target)
        return self.target.version_of(self.run_id)

    def _task(self, schema: Schema, scanned: Scan, models: tuple[PrivacyModel, ...]) -> Task:
        return Task(
            encodings=scanned.encodings,
            target=scanned.target,
            context=scanned.context,
            recoders=tuple(
                (c.id, registry.spec(c.recoder), Domain(c.order, c.hierarchy))
                for c in schema.quasi_identifiers
            ),
            kernel=registry.spec(self.config.kernel),
            models=tuple(registry.spec(model) for model in models),
            metrics=tuple({"type": name} for name in registry.plugins("metric")),
            protected=schema.protected,
            missing_tokens=self.config.privacy.missing_tokens,
            unit=schema.unit,
            token_key=token_key() if schema.unit else b"",
            pseudonyms=tuple(c.id for c in schema.of(Role.IDENTIFIER) if c.pseudonym),
            pseudonym_key=self.key,
            output=output_schema(schema, costs=self.config.privacy.suppress == "costliest"),
            max_rows=_task_rows(self.config),
            values=scanned.values,
            steps=tuple(
                registry.spec(s)
                for s in self.config.partition.steps
                if isinstance(s, TaskPartitioner)
            ),
            seed=self.config.seed,
            joint=schema.joint,
        )

    def _record(
        self,
        source: Source,
        scanned: Scan,
        planned: Plan | Whole,
        found: Outcome,
        report: AuditReport,
        version: int,
    ) -> ReleaseResult:
        result = ReleaseResult(
            run_id=self.run_id,
            already_done=False,
            n_rows_in=scanned.n_rows,
            n_rows_out=found.digest.n_rows,
            n_suppressed=scanned.n_rows - found.digest.n_rows,
            n_blocks=found.n_blocks,
            n_cells=found.n_cells,
            audit=report,
            losses=found.losses,
            table=self.target.path,
            table_version=version,
            manifest=manifest_path(self.target.path),
            record=record_path(self.spark, self.config, self.run_id),
            seconds=dict(self.progress.seconds),
        )
        text = record(self.config, result, source, scanned, planned)
        Storage(self.spark, result.record).write(result.record, text)
        return result


def _published(staged: DataFrame, schema: Schema) -> DataFrame:
    """The released columns under the names that will be published."""
    return staged.select(*[F.col(column.id).alias(column.name) for column in schema.released])


def _new_run_id() -> str:
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"


def _task_rows(config: Config) -> int:
    """Most rows that a kernel sees at once: a single block is not cut in its task."""
    limits = [step.whole or 0 for step in config.partition.steps]
    return max(config.partition.max_rows, *limits)


def _label(plugin: registry.Plugin) -> str:
    given = plugin.model_dump(exclude_none=True)
    return " ".join([plugin.type, *[f"{key}={value}" for key, value in given.items()]])


def _labels(config: Config) -> Iterator[str]:
    """The privacy models, those that hold where other columns are known marked."""
    for model in bound_models(config):
        joint = config.privacy.joint and model.column is not None
        yield _label(model) + (" joint=True" if joint else "")


def _column_plan(config: Config, source: Source, name: str) -> ColumnPlan:
    attribute = config.attributes[name]
    column: Column | None = next((c for c in source.schema.columns if c.name == name), None)
    if column is None or not column.released:
        released = "dropped"
    elif column.pseudonym:
        released = "pseudonym (string)"
    else:
        how = column.recoder.type if column.recoder else "as it is"
        released = f"{how} ({from_arrow_type(column.released_type).simpleString()})"
    return ColumnPlan(
        name=name,
        role=attribute.role,
        scale=attribute.scale,
        source_type=column.source_type if column else "",
        released_as=released,
    )
