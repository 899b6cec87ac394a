"""Stages a release: plans it, anonymizes the rows and writes them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import ceil

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib import registry
from anonlib.config.model import Config, ReleaseSection, SparkSection
from anonlib.errors import run_sanitized
from anonlib.evaluation.samples import is_held_out, is_sampled
from anonlib.kernels.discriminant import measure_classes
from anonlib.progress import Progress
from anonlib.run.block_plan import plan_blocks
from anonlib.run.controller_plan import name_as_rows
from anonlib.run.data_files import DataFiles, count_files, order_in_files, write_files
from anonlib.run.plan import Plan
from anonlib.run.scan import Scan
from anonlib.run.tuple_plan import plan_tuples
from anonlib.source.resolved_source import Source
from anonlib.spark.digest import digest_halves
from anonlib.spark.storage import Storage
from anonlib.spark.tasks import ROWS_PER_TASK, count_cores, fit_batches, hear_tasks
from anonlib.spark.translation import translate_errors
from anonlib.table.block import ClassMoments
from anonlib.table.columns import DEAL, HASH, HELD, LINK, NO_LINK, TOKEN
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest
from anonlib.worker.cell_counts import make_counter
from anonlib.worker.marks import Marks
from anonlib.worker.setup import TableFit, make_output_schema, make_task
from anonlib.worker.task import Task, Totals, to_block


@dataclass(frozen=True)
class Place:
    """Where the rows of a run are staged.

    Attributes:
        folder: The folder of their files. It must not exist.
        names: By id: the names of the released columns, in the order of the table.
        run_id: The run.
    """

    folder: str
    names: Mapping[str, str]
    run_id: str


@dataclass(frozen=True)
class Staging:
    """A release in staging.

    Attributes:
        plan: Its plan.
        task: Its worker's task.
        rows: The staged rows.
        totals: What the tasks told of them.
        files: The files of the rows.
        is_dealt: Whether each file has whole cells, and its rows in random order.
        is_release: Whether the files can be the release as they are: they are dealt, and nothing
            private is in them.
        left_out: Digest of the source's rows that are not staged.
    """

    plan: Plan
    task: Task
    rows: DataFrame
    totals: tuple[Totals, ...]
    files: DataFiles
    is_dealt: bool
    is_release: bool
    left_out: Digest = field(default_factory=Digest)

    def with_file(self, name: str) -> DataFrame | None:
        """The staged rows with a column of their files; None if the files of the release will have
        other rows, or there is a single one."""
        if not self.is_dealt or len(self.files.paths) == 1:
            return None
        return self.files.read(self.rows.schema, file=name)


def stage_release(
    source: Source,
    scan: Scan,
    config: Config,
    place: Place,
    pseudonym_key: bytes,
    token_key: bytes,
    marks: Marks,
    progress: Progress,
) -> Staging:
    """Plans and anonymizes a source, and writes the rows as files that can be the release, if
    nothing private is in them.

    Args:
        source: The source.
        scan: Its scan.
        config: The config.
        place: Where the files are written.
        pseudonym_key: The key of the pseudonyms.
        token_key: The key of the persons' tokens.
        marks: What measures need.
        progress: Hears of every stage.

    Raises:
        InfeasibleError, ConfigError: As `plan_blocks`.
        BlockError: A kernel can't go on.
    """
    rows, schema, spark = source.rows(), source.schema, source.raw.sparkSession
    with progress.stage("partition", spark), translate_errors("partition"):
        task = make_run_task(config, schema, scan, pseudonym_key, token_key, marks)
        plan = _plan(rows, schema, scan, config, task, count=False)
        if config.kernel.needs_classes:
            task = replace(task, moments=count_moments(rows, task))
    marked = _mark(rows, schema, config.seed, scan.n_rows, marks)
    write = partial(_write, marked, schema, config.release, config.spark, place, scan.row_bytes)
    with progress.stage("anonymize", spark), translate_errors("anonymize"):
        staging = write(plan, task)
    if any(each.failed for each in staging.totals):
        # Blocks are then merged beyond their pool, by the counts of all.
        with progress.stage("partition", spark), translate_errors("partition"):
            Storage(spark, place.folder).delete(place.folder)
            plan = _plan(rows, schema, scan, config, task, count=True)
        with progress.stage("anonymize", spark), translate_errors("anonymize"):
            staging = write(plan, task)
    if plan.n_rows == scan.n_rows:
        return staging
    with translate_errors("anonymize"):
        return replace(staging, left_out=digest_halves(plan.left_out(rows, schema)))


def _plan(
    rows: DataFrame, schema: Schema, scan: Scan, config: Config, task: Task, *, count: bool
) -> Plan:
    """The plan of a source. count: As for `plan_blocks`."""
    partition = name_as_rows(config, schema)
    allowed = config.privacy.may_suppress(scan.n_rows)
    if partition.by_tuples:
        return plan_tuples(rows, schema, scan, partition, allowed, task)
    attributes = config.attributes
    return plan_blocks(rows, schema, scan, partition, attributes, allowed, task, count=count)


def _write(
    rows: DataFrame,
    schema: Schema,
    release: ReleaseSection,
    how: SparkSection,
    place: Place,
    row_bytes: int | None,
    plan: Plan,
    task: Task,
) -> Staging:
    """Anonymizes rows, and writes them: dealt to files, if each can have whole cells."""
    spark, names = rows.sparkSession, place.names
    own = {c: tuple(map(registry.spec, models)) for c, models in plan.own.items()}
    task = replace(task, own=own, values=plan.values)
    wanted = count_files(plan.n_rows, release.rows_per_file, count_cores(spark))
    n_files = min(wanted, plan.most_files)
    is_dealt = may_deal(plan.n_rows, n_files, release, how, task.output)
    is_release = is_dealt and tells_nothing_private(task.output, names)
    # As many for each file.
    n_tasks = n_files * ceil(plan.n_rows / ROWS_PER_TASK / n_files) if is_dealt else None
    with hear_tasks(spark) as totals, fit_batches(spark, row_bytes):
        frame = plan.stage(
            rows,
            schema,
            task,
            totals,
            n_partitions=how.partitions or n_tasks,
            pandas=how.grouped_map == "pandas",
        )
        if is_release:
            frame = frame.select(*names)
        if is_dealt:
            frame = order_in_files(frame, n_files)
        named = frame.toDF(*names.values()) if is_release else frame
        files = write_files(spark, place.folder, named, place.run_id)
    staged = files.read(frame.schema)
    return Staging(plan, task, staged, tuple(totals.value), files, is_dealt, is_release)


def may_deal(
    n_rows: int, n_files: int, release: ReleaseSection, how: SparkSection, output: pa.Schema
) -> bool:
    """Whether rows are dealt to files that each have whole cells, which are audited by file. Not
    with tokens of persons: to count these in each file costs more than to deal the rows anew.

    Args:
        n_rows: The rows.
        n_files: As many files as are wanted, or as the plan can fill with whole cells.
        release: The section of the config on the target: its files are laid out by nothing else,
            and have no more rows than are asked for.
        how: The section of the config on Spark: its tasks write as many files.
        output: What tasks tell of a row.
    """
    laid_out = release.order == "file" and not release.partition_by
    enough = n_files * release.rows_per_file >= n_rows
    return (
        laid_out and enough and n_files <= (how.partitions or n_files) and TOKEN not in output.names
    )


def tells_nothing_private(output: pa.Schema, names: Iterable[str]) -> bool:
    """Whether what tasks tell of a row are the released columns, with these ids, and nothing
    else."""
    return {*output.names} == {*names}


def _mark(rows: DataFrame, schema: Schema, seed: int, n_rows: int, marks: Marks) -> DataFrame:
    if marks.link_key:
        # Not null: pandas would make floats of hashes among nulls.
        link = F.when(is_sampled(n_rows), F.col(DEAL)).otherwise(NO_LINK)
        rows = rows.withColumn(LINK, link)
    if marks.share:
        rows = rows.withColumn(HELD, is_held_out(schema, seed, marks.share))
    return rows


def make_run_task(
    config: Config,
    schema: Schema,
    scan: Scan,
    pseudonym_key: bytes,
    token_key: bytes,
    marks: Marks,
) -> Task:
    """The task of a run's workers."""
    table_fit = TableFit(scan.encodings, scan.target, scan.context, scan.values)
    task = make_task(config, schema, table_fit, make_output_schema(schema, config, marks))
    encodings, sample = scan.encodings, scan.sample
    counters = [make_counter(each, schema, encodings, sample) for each in marks.counting]
    return replace(
        task,
        pseudonym_key=pseudonym_key,
        token_key=token_key,
        link_key=marks.link_key,
        counters=tuple(counters),
    )


def count_moments(rows: DataFrame, task: Task) -> ClassMoments:
    """The moments of all rows, exact: one pass through Python, without a shuffle."""
    assert task.target is not None
    ids = [encoding.id for encoding in (*task.encodings, task.target)]
    # What is not needed for moments stays here: keys, sensitive values.
    slim = replace(
        task,
        protected=(),
        values={},
        unit=(),
        models=(),
        context=(),
        own={},
        token_key=b"",
        pseudonym_key=b"",
    )
    frame = rows.select(*ids, HASH)
    found = frame.mapInArrow(lambda batches: _partial(batches, slim), "moments string").collect()
    return reduce(ClassMoments.merge, (ClassMoments.from_json(row.moments) for row in found))


def _partial(batches: Iterator[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """The moments of the rows of one task."""
    texts = run_sanitized("class moments", partial(_added_up, batches, task))
    yield pa.record_batch({"moments": pa.array(texts, pa.string())})


def _added_up(batches: Iterator[pa.RecordBatch], task: Task) -> list[str]:
    """The moments of all batches together, as JSON; empty without batches."""
    found = (_moments(batch, task) for batch in batches)
    first = next(found, None)
    return [] if first is None else [reduce(ClassMoments.merge, found, first).to_json()]


def _moments(batch: pa.RecordBatch, task: Task) -> ClassMoments:
    return measure_classes(to_block(pa.Table.from_batches([batch]), task)[0])
