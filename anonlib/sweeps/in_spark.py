"""Runs a sweep on Spark: one task per point. Points with a result are not tried again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.config.model import Config
from anonlib.config.resolve import find_ordered_columns, resolve
from anonlib.config.summary import find_installed_version
from anonlib.errors import AnonlibError, ConfigError, InputError, Problem
from anonlib.progress import Progress
from anonlib.run.scan import require_readable
from anonlib.source.readers import read_source
from anonlib.source.resolved_source import open_source
from anonlib.spark.expressions import require_plain
from anonlib.spark.private_table import PrivateTable
from anonlib.spark.storage import Storage
from anonlib.spark.tasks import count_cores, run_each, send_broadcast, settle_tasks
from anonlib.spark.translation import find_conditions, translate, translate_errors
from anonlib.sweeps.point_work import try_point
from anonlib.sweeps.results import (
    ResultRow,
    SweepResult,
    as_csv,
    format_markdown,
    format_parameters,
    list_notes,
    render_results,
    sort_figures,
)
from anonlib.sweeps.settings import Point, Sweep
from anonlib.table.columns import DEAL, HASH, HIGH, LOW
from anonlib.table.schema import Field, Schema

#: Results are written about once per this many seconds.
SECONDS_PER_BATCH = 60.0
#: A batch has at least this many tasks per core.
TASKS_PER_CORE = 2

#: The folder of the table of results, below OUT.
RESULTS = "results"
_SCHEMA = T.StructType(
    [
        T.StructField("key", T.StringType(), nullable=False),
        T.StructField("case", T.StringType(), nullable=False),
        T.StructField("parameters", T.StringType(), nullable=False),  # JSON
        T.StructField("seed", T.LongType(), nullable=False),
        T.StructField("figures", T.MapType(T.StringType(), T.DoubleType()), nullable=False),
        T.StructField("n_rows", T.LongType(), nullable=False),
        T.StructField("n_cells", T.LongType(), nullable=False),
        T.StructField("least_persons", T.LongType(), nullable=False),
        T.StructField("seconds", T.DoubleType(), nullable=False),
        T.StructField("error", T.StringType(), nullable=True),
        T.StructField("version", T.StringType(), nullable=False),
        T.StructField("at", T.TimestampType(), nullable=False),
        T.StructField("sizes", T.MapType(T.LongType(), T.LongType()), nullable=True),
        T.StructField("n_tried", T.LongType(), nullable=True),
        T.StructField("n_table", T.LongType(), nullable=True),
    ]
)


@dataclass(frozen=True)
class _Table:
    """The table of a case, in memory.

    Attributes:
        rows: The rows, in a fixed order.
        fields: The columns of the source.
        digest: SHA-256 of the columns and the rows, in hex.
    """

    rows: pa.Table
    fields: tuple[Field, ...]
    digest: str


@dataclass(frozen=True)
class _Item:
    """A point to try.

    Attributes:
        key: The key of its result: a hash of the version of anonlib, the case, the table and the
            point.
        point: The point.
        schema: The columns.
        version: The columns as released by the point's `version`; None without one.
        table: The index of its table.
    """

    key: str
    point: Point
    schema: Schema
    version: Schema | None
    table: int


def run_sweep(
    spark: SparkSession, sweep: Sweep, progress: Progress, *, retry: bool = False
) -> SweepResult:
    """Tries all points that have no result yet.

    Batches of results are appended to the Delta table OUT/results. At the end OUT/results.csv,
    OUT/summary.md and OUT/report.html are written anew. All are private.

    Args:
        spark: The session.
        sweep: The sweep.
        progress: Shows the progress.
        retry: Whether to try failed points again.

    Returns:
        The results of all points, including those of earlier runs.

    Raises:
        ConfigError: A table has more than `max_rows` rows, or does not fit its configs. Raised
            before any point is tried.
    """
    store = Storage(spark, sweep.file.out)
    store.make_private(store.root)
    with progress.stage("read", spark):
        tables, items = _items(spark, sweep)
        table = PrivateTable(spark, f"{store.root.rstrip('/')}/{RESULTS}", RESULTS)
        result_of = _results(table)
    again = [key for key, row in result_of.items() if retry and row.error is not None]
    missing = [item for item in items if item.key not in result_of or item.key in again]
    if missing:
        with progress.stage("sweep", spark), settle_tasks(spark):
            # Bytes, since Spark's broadcasts can't pickle Arrow's buffers.
            broadcast = send_broadcast(spark, [_to_bytes(table) for table in tables])
            try:
                for rows in _batches(spark, missing, broadcast, progress):
                    _append(table, rows)
                    result_of |= {row.key: row for row in rows}
            finally:
                broadcast.destroy()
    ordered = tuple(sort_figures(result_of[item.key]) for item in items)
    said = list_notes(sweep.points, sweep.file.figures, ordered)
    result = SweepResult(
        ordered,
        len(items),
        len(missing),
        table.path,
        str(store.root),
        sweep.file,
        said,
        sweep.bases,
    )
    store.write(f"{store.root}/results.csv", as_csv(result))
    store.write(f"{store.root}/summary.md", format_markdown(result))
    store.write(f"{store.root}/report.html", render_results(result))
    return result


def _items(spark: SparkSession, sweep: Sweep) -> tuple[list[pa.Table], list[_Item]]:
    """Reads each table once.

    Returns:
        The tables, and the points with their schemas.

    Raises:
        ConfigError: All problems of all points.
    """
    tables: list[_Table] = []
    places: dict[str, int] = {}
    schemas: dict[str, tuple[Schema, Schema | None]] = {}
    items, problems = [], []
    for point in sweep.points:
        view = f"{point.case} {_as_read(point.config)}"
        try:
            if view not in places:
                tables.append(_read(spark, point, sweep))
                places[view] = len(tables) - 1
            table = tables[places[view]]
            whole_table = f"{view} {point.text.partition(' ')[2]}"
            if whole_table not in schemas:
                other = point.version
                version = None if other is None else resolve(other, table.fields)
                schemas[whole_table] = resolve(point.config, table.fields), version
        except ConfigError as error:
            problems += [_in_case(point.case, problem) for problem in error.problems]
            continue
        key = sha256(
            f"{find_installed_version('anonlib')} {point.case} {table.digest} {point.text}".encode()
        )
        items.append(_Item(key.hexdigest(), point, *schemas[whole_table], places[view]))
    if problems:
        raise ConfigError(problems)
    return [table.rows for table in tables], items


def _in_case(case: str, problem: Problem) -> Problem:
    """A problem of a case, by its place in the sweep's file, or of the case's config."""
    of_case = problem.where.startswith("derive.")
    return Problem(f"cases.{case}{'.' if of_case else ': '}{problem.where}", problem.text)


def _as_read(config: Config) -> str:
    """The parts of a config that the table depends on, as a text."""
    persons = config.one_row_per_person, config.unit, config.person, config.privacy.missing_tokens
    numbers = find_ordered_columns(config.all_models, config.attributes)
    return repr((config.source, config.attributes, persons, sorted(numbers)))


def _read(spark: SparkSession, point: Point, sweep: Sweep) -> _Table:
    """Reads the table of a point. Raises ConfigError if it has more than `max_rows` rows."""
    config, most = point.config, sweep.file.max_rows
    frame: DataFrame | None = None
    derived = sweep.file.cases[point.case].derive
    with _blame_derived(spark, config, derived):
        if derived:
            frame = _derive(spark, config, derived)
        source = open_source(spark, config, frame)
        with (
            closing(source),
            translate_errors(f"source of {point.case}", permission_error=InputError),
        ):
            require_readable(source, config.privacy.missing_tokens)
            rows = source.rows().limit(most + 1).toArrow()
    if rows.num_rows > most:
        raise ConfigError(
            [
                Problem(
                    "source",
                    (
                        f"the table has more than max_rows = {most:,} rows; filter it by "
                        "source.where, or raise max_rows: every core holds it"
                    ),
                )
            ]
        )
    order = np.lexsort((rows.column(DEAL).to_numpy(), rows.column(HASH).to_numpy()))
    rows = rows.take(pa.array(order)).combine_chunks()
    hashed = sha256(repr([(f.name, f.type) for f in source.fields]).encode())
    hashed.update(rows.column(DEAL).to_numpy().tobytes())
    return _Table(rows.drop([DEAL, LOW, HIGH]), source.fields, hashed.hexdigest())


def _derive(spark: SparkSession, config: Config, columns: Mapping[str, str]) -> DataFrame:
    """The rows of a config's source with columns of SQL. Raises ConfigError for SQL that Spark
    refuses."""
    with translate_errors("source", permission_error=InputError):
        frame, _ = read_source(spark, config.source, config.attributes)
        for name, text in columns.items():
            require_plain(frame, text, f"derive.{name}")
        frame = frame.withColumns({name: F.expr(text) for name, text in columns.items()})
        frame.schema  # noqa: B018 (wrong expressions show here)
    return frame


@contextmanager
def _blame_derived(
    spark: SparkSession, config: Config, columns: Mapping[str, str]
) -> Iterator[None]:
    """Raises ConfigError with the columns whose SQL fails on values, for a failure of the body: all
    that Spark says there is that some expression failed."""
    try:
        yield
    except InputError:
        problems = [*_find_failing(spark, config, columns)] if columns else []
        if not problems:
            raise
    else:
        return
    raise ConfigError(problems)


def _find_failing(
    spark: SparkSession, config: Config, columns: Mapping[str, str]
) -> Iterator[Problem]:
    """The columns whose SQL fails on values: each is computed on its own."""
    with translate_errors("source", permission_error=InputError):
        frame, _ = read_source(spark, config.source, config.attributes)
        for name, text in columns.items():
            try:
                frame.agg(F.count(F.expr(text))).collect()
            except PySparkException as error:
                of_values = [c for c, state in find_conditions(error) if state.startswith("22")]
                if not of_values:
                    raise
                yield Problem(
                    f"derive.{name}",
                    f"fails on a value, with {of_values[0]}; use what gives null instead, such as "
                    "try_cast or try_divide",
                )


def _batches(
    spark: SparkSession, items: Sequence[_Item], broadcast: Any, progress: Progress
) -> Iterator[list[ResultRow]]:
    """The results in batches, each of about SECONDS_PER_BATCH."""
    cores = count_cores(spark)
    n_done, size = 0, TASKS_PER_CORE * cores
    while n_done < len(items):
        begun, batch = monotonic(), items[n_done : n_done + size]
        yield _try_batch(spark, batch, broadcast)
        n_done += len(batch)
        # Only the latest batch counts: workers are slow in the first, while they warm up.
        each = (monotonic() - begun) / len(batch)
        size = max(TASKS_PER_CORE * cores, int(SECONDS_PER_BATCH / each))
        progress.advanced("sweep", n_done, len(items), each * (len(items) - n_done))


def _try_batch(spark: SparkSession, items: Sequence[_Item], broadcast: Any) -> list[ResultRow]:
    """The results of one batch.

    If the job fails (for example, a worker runs out of memory), each point is tried alone. The
    result of a point that fails again is the error.
    """

    def run(item: _Item) -> ResultRow:
        return _row(item, broadcast.value)

    try:
        return run_each(spark, items, run)
    except Exception as error:
        if len(items) > 1:
            return [row for item in items for row in _try_batch(spark, [item], broadcast)]
        told: AnonlibError = translate(error, "the task")
        point = items[0].point
        text = f"{type(told).__name__}: {told}"
        return [ResultRow(items[0].key, point.case, point.parameters, point.seed, {}, error=text)]


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _row(item: _Item, tables: Sequence[bytes]) -> ResultRow:
    table = pa.ipc.open_stream(tables[item.table]).read_all()
    result = try_point(item.point, table, item.schema, item.version)
    return ResultRow(
        key=item.key,
        case=item.point.case,
        parameters=item.point.parameters,
        seed=item.point.seed,
        figures=result.figures or {},
        n_rows=result.n_rows,
        n_tried=result.n_tried,
        n_table=result.n_table,
        n_cells=result.n_cells,
        least_persons=result.least_persons,
        seconds=result.seconds,
        error=result.error,
        sizes=result.sizes,
    )


def _results(table: PrivateTable) -> dict[str, ResultRow]:
    """By key: the latest stored result."""
    there = table.rows()
    if there is None:
        return {}
    with translate_errors(RESULTS):
        rows = there.orderBy("at").collect()
    # Earlier versions of anonlib have none of these.
    later: dict[str, Any] = {"sizes": {}, "n_tried": 0, "n_table": 0}
    fields = [name for name in _SCHEMA.names if name not in ("version", "at", *later)]
    return {
        row.key: ResultRow(
            **{name: row[name] for name in fields} | {"parameters": json.loads(row.parameters)},
            **{n: (row[n] if n in there.columns else None) or none for n, none in later.items()},
        )
        for row in rows
    }


def _append(table: PrivateTable, rows: Sequence[ResultRow]) -> None:
    now = datetime.now(UTC)
    known = [vars(row) | {"parameters": format_parameters(row.parameters)} for row in rows]
    values = [
        tuple(
            {**each, "version": find_installed_version("anonlib"), "at": now}[name]
            for name in _SCHEMA.names
        )
        for each in known
    ]
    table.append(values, _SCHEMA)
