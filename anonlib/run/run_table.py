"""The private table of runs: a row for every run that ended, successful or not."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.config.keys import derive_ledger_key
from anonlib.config.model import Config
from anonlib.config.paths import find_manifest_path, find_record_folder, find_runs_folder
from anonlib.config.summary import bare
from anonlib.errors import AnonlibError, ConfigError, InputError, Problem, StorageError
from anonlib.progress import Progress, restore_group, set_group
from anonlib.run.account import Account, find_runs_path, spell_path
from anonlib.run.backlog import Backlog
from anonlib.run.endings import read_record
from anonlib.run.events import Events
from anonlib.run.history import SAVE_MODES, Commit
from anonlib.run.ledger import Fate, open_ledger
from anonlib.run.operator_limits import require_words
from anonlib.run.publish import Target
from anonlib.spark.delta_files import forget
from anonlib.spark.private_table import PrivateTable
from anonlib.spark.session import session
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.text import drop_file_scheme


def _verdict_type(name: str) -> T.ArrayType:
    """The type of a list of verdicts."""
    verdict = "passed" if name == "gate" else "holds"
    fields = [T.StructField(name, T.StringType()), T.StructField(verdict, T.BooleanType())]
    return T.ArrayType(T.StructType(fields))


RUN_COLUMNS = T.StructType(
    [
        T.StructField("run_id", T.StringType()),
        T.StructField("verb", T.StringType()),  # release, evaluate, trial
        T.StructField("begun", T.TimestampType()),
        T.StructField("ended", T.TimestampType()),
        # published, waiting, evaluated; stopped (by a gate), audit failed, infeasible, interrupted,
        # failed
        T.StructField("outcome", T.StringType()),
        T.StructField("error", T.StringType()),  # its type
        T.StructField("exit_code", T.IntegerType()),
        T.StructField("target", T.StringType()),
        T.StructField("version", T.LongType()),  # of the target that the run made or measured
        T.StructField("source_format", T.StringType()),
        T.StructField("source", T.StringType()),
        T.StructField("source_version", T.LongType()),
        T.StructField("config_sha256", T.StringType()),
        T.StructField("anonlib", T.StringType()),
        T.StructField("k", T.IntegerType()),
        T.StructField("models", T.ArrayType(T.StringType())),
        T.StructField("verdicts", _verdict_type("model")),
        T.StructField("gates", _verdict_type("gate")),
        T.StructField("rows_in", T.LongType()),
        T.StructField("rows_out", T.LongType()),
        T.StructField("rows_suppressed", T.LongType()),
        T.StructField("rows_waiting", T.LongType()),
        T.StructField("approver", T.StringType()),
        T.StructField("purpose", T.StringType()),
        T.StructField("recipients", T.ArrayType(T.StringType())),
        T.StructField("recipient", T.StringType()),  # from here to expires: of `context`
        T.StructField("access", T.StringType()),
        T.StructField("may_know", T.ArrayType(T.StringType())),
        T.StructField("expires", T.DateType()),
        T.StructField("policy", T.StringType()),
        T.StructField("record", T.StringType()),
        T.StructField("report", T.StringType()),
    ]
)


class RunNotes:
    """Notes a run: in events while it runs, in the table of runs at its end."""

    def __init__(self, account: Account, progress: Progress, events: Events):
        self.account = account
        self._progress = progress
        self._events = events
        self._spark: SparkSession | None = None
        self._group: dict[str, str | None] = {}
        self._path = ""

    def begin(self) -> None:
        """Begins the run: from now on stages send events."""
        self._events.begin()
        progress = self._progress
        progress.run_id, progress.target = self.account.run_id, self.account.target
        progress.watcher = self._events

    def use_session(self, spark: SparkSession) -> None:
        """Sets the session: from now on the run gets a row in the table of runs, and Spark's jobs
        have its name."""
        self._spark = spark
        self._group = set_group(spark, self._progress.group())

    def set_target(self, path: str) -> None:
        """Sets the path of the target, as Spark resolved it."""
        self._path = path
        self.account.target = self._progress.target = spell_path(path)

    def note(self) -> None:
        """Adds the run's row. A run that was committed before gets one only if it is missing,
        because its driver died after the commit."""
        if self._spark is None:
            return
        config = self.account.config
        table = open_run_table(self._spark, config.runs_folder, config.release.path)
        set_group(self._spark, self._progress.group())
        _close_folder(self._spark, config.record_folder, table.path)
        row = self.account.row()
        if self.account.outcome == "done":
            if _note(table, self.account):
                return
            waited = self.account.result is not None and self.account.result.waited
            row |= {"outcome": "waiting" if waited else "published", "begun": None}
        table.append([tuple(row[name] for name in RUN_COLUMNS.names)], RUN_COLUMNS)

    def end(self) -> None:
        """The run is over."""
        self._events.end()
        self._progress.watcher = None
        if self._spark is not None:
            restore_group(self._spark, self._group)
            if self._path:
                forget(self._spark, self._path)


def _close_folder(spark: SparkSession, records: str, table: str) -> None:
    """Makes the folder of the private records for its owner only, if the table of runs is to be
    made in it: a run that is refused makes nothing else there."""
    storage = Storage(spark, records)
    if table.startswith(f"{storage.root}/") and not storage.exists(storage.root):
        storage.make_private(storage.root)


def open_run_table(spark: SparkSession, path: str, release: str) -> PrivateTable:
    """The table of runs. Its arguments are those of `find_runs_path`."""
    return PrivateTable(spark, find_runs_path(path, release), "accountability.runs")


@contextmanager
def keep_account(verb: str, config: Config, run_id: str, progress: Progress) -> Iterator[RunNotes]:
    """Notes a run, successful or not. A run that fails before there is a session is only in its
    events.

    Raises ConfigError if the config lacks fields that the operator requires, StorageError if a
    successful run can't be noted.
    """
    if verb == "release":
        require_words(config.accountability, config.context)
    account = Account(verb, run_id, config, spell_path(config.release.path))
    run_notes = RunNotes(account, progress, Events(account))
    run_notes.begin()
    try:
        try:
            yield run_notes
        except BaseException as error:
            account.fail(error)
            with suppress(Exception):  # what is wrong with the run is what must be told
                run_notes.note()
            raise
        _note_success(run_notes)
    finally:
        with suppress(Exception, KeyboardInterrupt):  # the session may be gone; the run is over
            run_notes.end()


def _note_success(run_notes: RunNotes) -> None:
    account = run_notes.account
    ended = f"run {account.run_id} ended well ({account.outcome}), but"
    done = account.outcome in ("published", "done")
    again = f"; run it again with `--run-id {account.run_id}`" if done else ""
    try:
        run_notes.note()
    except AnonlibError as error:
        text = f"{ended} could not be noted in the table of runs: {error}{again}"
        raise StorageError(text) from error
    except KeyboardInterrupt as error:
        text = f"interrupted: {ended} may not be noted in the table of runs{again}"
        raise KeyboardInterrupt(text) from error


def _note(table: PrivateTable, account: Account) -> bool:
    rows = table.rows()
    if rows is None:
        return False
    # Runs of other targets in the same table may have the same id.
    own = (F.col("run_id") == account.run_id) & (F.col("target") == account.target)
    return bool(rows.where(own & F.col("outcome").isin("published", "waiting")).limit(1).count())


def list_past_runs(
    path: str, since: datetime | None = None, target: str | None = None
) -> list[dict[str, Any]]:
    """The rows of a table of runs, newest first. Raises InputError if there is no such table.

    path: Its folder, or a released table, whose own is beside it. since: Only runs that ended then
    or later. target: Only runs on this target.
    """
    spark = session()
    rows = _read_runs(spark, path)
    if since is not None:
        rows = rows.where(F.col("ended") >= F.lit(since))
    if target is not None:
        rows = rows.where(F.col("target") == spell_path(Storage(spark, target).root))
    columns = [_column(field) for field in RUN_COLUMNS if field.name in rows.columns]
    with translate_errors("table of runs"):
        found = rows.orderBy(F.desc("ended"), "run_id").select(*columns).collect()
    return [row.asDict(recursive=True) for row in found]


def _read_runs(spark: SparkSession, path: str) -> DataFrame:
    storage = Storage(spark, path)
    place, root = path, storage.root
    if storage.exists(find_manifest_path(root)):
        place = find_runs_folder(find_record_folder(root))
        if not storage.has_table(place):
            raise InputError(
                f"{path}: is a released table, and its runs are not in {drop_file_scheme(place)}; "
                "name its config, or the folder that the config names as `accountability.runs`: by "
                "default `runs` in `release.record`"
            )
    rows = PrivateTable(spark, place, "table of runs").rows()
    if rows is None:
        raise InputError(f"{path}: no table of runs is there; runs that end make it")
    if missing := {"run_id", "ended", "outcome", "target"} - {*rows.columns}:
        raise InputError(f"{path}: no table of runs; it has no column {', '.join(sorted(missing))}")
    return rows


def _column(field: T.StructField) -> Column:
    """A column as it is in JSON; times are in UTC."""
    column = F.col(field.name)
    if isinstance(field.dataType, T.DateType):
        return column.cast("string").alias(field.name)
    if isinstance(field.dataType, T.TimestampType):
        return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss'Z'").alias(field.name)
    return column


def find_runs_of_person(config: Config, person: Mapping[str, str]) -> dict[str, str]:
    """By run that published to a config's target: what it did with a person, by its ledger, and
    which run replaced its rows since, by the private records and the table's log; and the runs
    whose rows wait in the backlog. Raises ConfigError without a ledger."""
    key = derive_ledger_key(config.attributes, config.pseudonyms, config.release)
    if not key:
        raise ConfigError(
            [
                Problem(
                    "release.ledger",
                    "required: without a ledger nobody knows which persons a run released",
                )
            ]
        )
    spark = session(config.spark.conf)
    target = Target(spark, config.release)
    ledger = open_ledger(spark, config, target.path, key)
    backlog = Backlog(spark, config.backlog_folder, target.path, b"")
    waiting = [entry.run_id for entry in backlog.unpublished(target.runs())]
    fates = ledger.released(person, sorted(target.runs()))
    replaced = find_replacements(_list_replaced(spark, config.record_folder, target))
    found: dict[str, str] = {
        run_id: f"{fate}, replaced by run {replaced[run_id]}"
        if run_id in replaced and fate.startswith("released")
        else fate
        for run_id, fate in fates.items()
    }
    waits: Fate = "waits, not searched"
    return found | dict.fromkeys(waiting, waits)


def _list_replaced(spark: SparkSession, records: str, target: Target) -> dict[str, set[str]]:
    """By run that replaced a table: the runs before it. The log has them until the purge; from then
    on only the private record does."""
    found = list_replaced(target.commits())
    for run_id in target.runs():
        kept = read_record(spark, records, run_id) or {}
        is_of_table = kept.get("table") == bare(target.path) and target.taken_back(run_id) is None
        if is_of_table and kept.get("replaces"):
            found[run_id] = found.get(run_id, set()) | {*kept["replaces"]}
    return found


def list_replaced(commits: Sequence[Commit]) -> dict[str, set[str]]:
    """By run that replaced a table, as far as its log tells: the runs before it. commits: Newest
    first."""
    return {
        commit.run_id: {before.run_id for before in commits[i + 1 :]} - {commit.run_id}
        for i, commit in enumerate(commits)
        if commit.mode == SAVE_MODES["overwrite"]
    }


def find_replacements(predecessors: Mapping[str, Collection[str]]) -> dict[str, str]:
    """By run whose rows another run replaced: the first that did. predecessors: By run that
    replaced a table: all runs before it."""
    found: dict[str, str] = {}
    for run_id, older in predecessors.items():
        for each in older:
            if found.get(each) not in older:
                found[each] = run_id
    return found
