"""The releases before this run: their rows and persons, and the rows that wait in the backlog."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from anonlib import registry
from anonlib.auditing import AuditReport
from anonlib.config.model import Config
from anonlib.errors import AuditError, ConfigError, InfeasibleError, InputError, Problem
from anonlib.evaluation.published_spec import make_measured_spec
from anonlib.privacy import PrivacyModel
from anonlib.run.backlog import Backlog, Waiting, can_wait
from anonlib.run.ledger import Ledger, TableRows, is_widened, open_ledger
from anonlib.run.manifest_persons import read_persons_return
from anonlib.run.manifest_reading import parse_manifest
from anonlib.run.promise import describe_change, make_promise, require_kept
from anonlib.run.publish import Target
from anonlib.run.published_audit import PublishedAudit, find_published_audit
from anonlib.run.waiting_rows import require_new_rows, require_same_readings
from anonlib.source.resolved_source import Source
from anonlib.spark.digest import digest_as, digest_table
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.spark.values import find_spark_type
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest

#: Ends the error where the table's columns differ from the batch's.
ALTERATION = (
    "; if the table was altered after its release, undo that, or publish all rows anew (`mode: "
    "overwrite`)"
)

#: What the ledger notes once it is accepted that it does not know the persons of some rows.
UNKNOWN_ROWS = (
    "others had changed or deleted rows of the table, or a run without the ledger had added some, "
    "when a batch was appended with `acknowledge_returning`"
)


@dataclass(frozen=True)
class Books:
    """The ledger and the backlog of a table, if the config has them, and the waiting rows that this
    run publishes."""

    ledger: Ledger | None
    backlog: Backlog | None
    waiting: tuple[Waiting, ...]

    def waiting_rows(self) -> dict[str, DataFrame]:
        """The waiting rows, by the run that added them."""
        return self.backlog.rows(self.waiting) if self.backlog else {}

    def can_wait(self, error: BaseException) -> bool:
        """Whether a run that ends by this error leaves its rows in the backlog instead."""
        return self.backlog is not None and isinstance(error, InfeasibleError) and can_wait(error)

    def require_new_rows(self, source: Source, one_row_per_person: bool | str) -> None:
        """Raises ConfigError, InputError if the source has no rows to add to those that wait, or
        some of the same, or if the waiting rows would be read otherwise than when they came."""
        if self.backlog is not None:
            require_same_readings(source, self.waiting, self.backlog.folder)
            require_new_rows(source, one_row_per_person, self.backlog.folder)

    def note_commit(
        self,
        run_id: str,
        source: Source,
        after: Digest,
        columns: tuple[tuple[str, str], ...],
        report: AuditReport,
        *,
        gap: str,
        is_whole: bool,
    ) -> None:
        """Notes what a run is about to publish. The notes count once the run is committed.

        Args:
            run_id: The run.
            source: Its source.
            after: The digest of the table after the run.
            columns: Those of the table, with their types, in its order.
            report: The audit of that table.
            gap: Why some of its rows are of unknown persons.
            is_whole: Whether all rows of the source are released.
        """
        if self.ledger is not None:
            verdicts = [verdict.model for verdict in report.verdicts]
            self.ledger.write(
                run_id,
                source,
                after,
                columns,
                verdicts,
                report.insensitive,
                gap=gap,
                is_whole=is_whole,
            )
        if self.backlog is not None:
            self.backlog.take(run_id, self.waiting)

    def settle(self, target: Target) -> None:
        """Removes the rows that have been published."""
        if self.backlog is not None:
            self.backlog.settle(target.runs())


def open_books(
    spark: SparkSession, config: Config, target: Target, ledger_key: bytes, backlog_key: bytes
) -> Books:
    """Opens the ledger and the backlog of a target. Only batches use the backlog."""
    ledger = open_ledger(spark, config, target.path, ledger_key) if ledger_key else None
    if config.release.mode != "append" or not backlog_key:
        return Books(ledger, None, ())
    backlog = Backlog(spark, config.backlog_folder, target.path, backlog_key)
    return Books(ledger, backlog, tuple(backlog.waiting(target.runs())))


@dataclass(frozen=True)
class PriorRelease:
    """The releases before this run.

    Attributes:
        rows: The rows that a batch is appended to: columns in the table's order, named by the
            batch's ids. None in other modes.
        n_rows: Their number, by the table's own count.
        digest: Their digest.
        notes: What the report must say about them.
        known: What the run that left them found of them, if they need not be read for that.
        gap: Why the ledger does not know the persons of some of these rows; empty if it does.
        persons_return: Whether persons may be in several batches of the table: this run accepts
            that, or an earlier one did whose rows are still there.
        is_apart: Whether classes of these rows and of the batch are counted apart: persons may be
            in both, and nothing in the table tells them.
    """

    rows: DataFrame | None = None
    n_rows: int = 0
    digest: Digest = field(default_factory=Digest)
    notes: tuple[str, ...] = ()
    known: PublishedAudit | None = None
    gap: str = ""
    persons_return: bool = False
    is_apart: bool = False

    def names(self, schema: Schema) -> dict[str, str]:
        """By id: the names of the released columns, in the order in which they are written."""
        names = {column.id: column.name for column in schema.released}
        return names if self.rows is None else {id: names[id] for id in self.rows.columns}

    def columns(self, schema: Schema) -> tuple[tuple[str, str], ...]:
        """The names of the released columns and their types, in the order in which they are
        written."""
        types = _types(_columns(schema))
        return tuple((name, types[name]) for name in self.names(schema).values())

    def with_batch(self, staged_rows: DataFrame, schema: Schema) -> DataFrame | None:
        """The table with the batch added, under the published names; None without a table to add
        to."""
        if self.rows is None:
            return None
        names = self.names(schema)
        # By position: names may hold anything.
        return self.rows.unionAll(staged_rows.select(*names)).toDF(*names.values())

    def alone(self, schema: Schema) -> DataFrame | None:
        """The rows under the published names, if classes are counted by batch: persons may be in
        several batches, and no column names them, so each counts once in each. None if classes are
        counted in the whole table."""
        if self.rows is None or not self.is_apart:
            return None
        return self.rows.toDF(*self.names(schema).values())


def look_back(
    config: Config, target: Target, source: Source, ledger: Ledger | None
) -> PriorRelease:
    """Checks this run against the releases before it.

    Cost of a batch: a pass over the target, unless its rows are known (`find_published_audit`),
    and with a ledger one over the columns that identify persons; also of a new table, if the ledger
    knows of another one here.

    Raises:
        InputError: This batch does not fit the target.
        ConfigError: Rows wait that a new table may have already. Persons return, or may return, and
            that is not acknowledged.
    """
    mode = config.release.mode
    if mode != "append":
        _require_none_waiting(source.raw.sparkSession, config, target)
    if target.version < 0 or mode == "error":
        if target.version < 0 and ledger is not None and not config.release.acknowledge_overwrite:
            _require_new(target, source, ledger, config.release.run_id)
        return PriorRelease()
    promise = make_promise(config, source.schema)
    records = Storage(source.raw.sparkSession, config.record_folder)
    if mode == "overwrite":
        target.require_names(_columns(source.schema))
        target.require_constraints(_columns(source.schema))
        if not config.release.acknowledge_overwrite:
            _require_others(target, source, ledger)
        changes = describe_change(promise, target, records)
        return PriorRelease(notes=(*changes, *target.describe_losses()))
    rows = _read_target(config.release.partition_by, target, source.schema)
    require_kept(promise, target, records)
    with translate_errors("release.path"):
        n_rows = target.published().count()
    known = find_published_audit(promise, target, records, n_rows)
    returned = have_returned(target)
    again = returned or bool(config.release.acknowledge_returning)
    measured = make_measured_spec(config, persons_return=again)
    apart = again and not config.unit and measured.persons == "unknown"
    # An earlier version of anonlib counted the rows of all batches as persons.
    if returned and not config.unit and known is not None and not known.report.by_batch:
        known = None
    if returned and apart and known is None:
        _refuse_uncountable(target, config.record_folder)
    digest = digest_table(target.published()) if known is None else known.digest
    if ledger is None:
        return PriorRelease(rows, n_rows, digest, known=known, persons_return=again, is_apart=apart)
    runs, there = target.runs(), _find_rows(target, digest)
    known_gap = ledger.known_gap(runs, there)
    gap = ledger.gap(runs, there, source.schema)
    if config.unit:
        models = config.bound_models
        _require_counted(models, target, ledger, there)
    accepted = config.release.acknowledge_returning
    if accepted is not True:
        problems = _returning(source, target, ledger, gap, accepts_unknown=accepted == "unknown")
        if texts := list(problems):
            raise ConfigError([Problem("release.acknowledge_returning", text) for text in texts])
    notes = tuple(f"some persons can't be recognised: {each}" for each in (gap, known_gap) if each)
    unknown = known_gap or ("" if ledger.knows(runs, there) else UNKNOWN_ROWS)
    return PriorRelease(rows, n_rows, digest, notes, known, unknown, again, apart)


def have_returned(target: Target) -> bool:
    """Whether persons may be in several batches of a table already. An unknown manifest may say
    that they are."""
    manifest = parse_manifest(target.newest_manifest())
    return manifest is None or read_persons_return(manifest)


def _refuse_uncountable(target: Target, records: str) -> None:
    """Raises InputError: the persons of the published rows can't be counted again."""
    raise InputError(
        f"release.path: persons may be in several batches of {target.path}, so its rows are no "
        "persons. Its classes can't be counted again for a config that promises something else, "
        "for models that compare classes with the whole table, after others changed rows, or "
        f"without the private record of the last run in {records}; append with what that run "
        "promised, put its record there, or publish all rows anew (`mode: overwrite`)"
    )


def _find_rows(target: Target, digest: Digest) -> TableRows:
    """The rows of the target. digest: Theirs, by the order of its columns."""
    table = target.published()
    columns = [(field.name, field.dataType.simpleString()) for field in table.schema]
    return TableRows(columns, digest, partial(digest_as, table))


def _require_none_waiting(spark: SparkSession, config: Config, target: Target) -> None:
    """Raises ConfigError if rows wait for the table that is to be replaced, or was here: nobody
    knows whether the source has them, too."""
    backlog = Backlog(spark, config.backlog_folder, target.path, b"")
    if waiting := backlog.unpublished(target.runs()):
        rows = ", ".join(f"{entry.n_rows} of run {entry.run_id}" for entry in waiting)
        folders = ", ".join(backlog.folder(entry.run_id) for entry in waiting)
        raise ConfigError(
            [
                Problem(
                    "release.backlog",
                    f"rows wait for this table ({rows}), and the next append would add them to the "
                    "new one, a second time if the source has them: remove "
                    f"{folders}, and put the rows into the source if they are to be released",
                )
            ]
        )


def _read_target(partition_by: tuple[str, ...], target: Target, schema: Schema) -> DataFrame:
    """The target's rows, with columns named by the batch's ids. Raises InputError if it has other
    columns, or its files are not laid out by `partition_by`."""
    table = target.published()
    columns = [*_mismatches(table.schema, schema)]
    problems = sorted([*columns, *_narrow(table.schema, schema), *_other_trees(target, schema)])
    by = target.partitioned_by()
    if by != list(partition_by):
        shown = ", ".join(by) or "no column"
        problems.append(f"its files are laid out by {shown}; set release.partition_by to that")
    if not target.commits() and not target.runs():
        problems.append("anonlib has not published it")
    if problems:
        raise InputError(
            f"release.path: nothing can be appended to {target.path}: {'; '.join(problems)}"
            f"{ALTERATION if columns else ''}"
        )
    ids = {column.name: column.id for column in schema.released}
    return table.toDF(*[ids[name] for name in table.columns])


def _columns(schema: Schema) -> StructType:
    """The columns of a release, as the table has them."""
    found = [StructField(c.name, find_spark_type(c.released_type)) for c in schema.released]
    return StructType(found)


def _types(columns: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in columns}


def _mismatches(table: StructType, schema: Schema) -> Iterator[str]:
    there, ours = _types(table), _types(_columns(schema))
    for name in sorted({*there} | {*ours}):
        if name not in there:
            yield f"it lacks column {name}"
        elif name not in ours:
            yield f"the batch has no column {name}"
        elif there[name] != ours[name] and not is_widened(there[name], ours[name]):
            yield f"column {name} is {there[name]} in the table, and {ours[name]} in the batch"


def _narrow(table: StructType, schema: Schema) -> Iterator[str]:
    """Columns of whole numbers that are wider in the table: no table can undo that."""
    there, ours = _types(table), _types(_columns(schema))
    for name in sorted({*there} & {*ours}):
        if is_widened(there[name], ours[name]):
            yield (
                f"column {name} is {there[name]} in the table, and {ours[name]} in the batch: set "
                f"attributes.{name}.type to {there[name]}"
            )


def _other_trees(target: Target, schema: Schema) -> Iterator[str]:
    """Compares hierarchies with the table's. Released nodes are names, and released shares carry
    the numbers of nodes: in another hierarchy both mean something else."""
    try:
        there = json.loads(target.newest_manifest())["hierarchies"]
    except (ValueError, KeyError, TypeError):
        there = {}
    for name, ours in schema.hierarchies.items():
        old_tree = there.get(name, {"names": [], "parents": []})
        known = zip(old_tree["names"], ours.names, strict=False)
        same = old_tree["parents"] == ours.tree.parent.tolist()
        if not same or any(old not in (None, new) for old, new in known):
            yield f"the hierarchy of column {name} differs from the table's"


def _require_counted(
    models: Iterable[PrivacyModel], target: Target, ledger: Ledger, there: TableRows
) -> None:
    """Raises ConfigError unless the ledger proves that the published rows hold these models, with
    persons counted."""
    audits = [registry.build("audit", registry.spec(model)) for model in models]
    counting = [model.label for model in audits]
    if not ledger.proves(target.runs(), there, counting):
        raise ConfigError(
            [
                Problem(
                    "unit",
                    "the published rows can't be shown to hold the models, persons counted: no run "
                    "of the ledger had these models and left exactly these rows; append with the "
                    "models of that run, or publish all rows anew",
                )
            ]
        )


def _returning(
    source: Source, target: Target, ledger: Ledger, gap: str | None, *, accepts_unknown: bool
) -> Iterator[str]:
    """What is not acknowledged of persons who come again. Those whom the ledger still has are
    looked for also where it has a gap."""
    runs = target.runs()
    if gap is not None and ledger.other_paths(runs):
        # To accept them is no way around a path: the ledger would never find anybody again.
        yield gap
        return
    if gap is not None and not accepts_unknown:
        yield (
            f"{gap}; set this to `unknown` to append although persons may have been released "
            "before: those whom the ledger has are still recognised"
        )
    if not ledger.entries(runs) or not any(ledger.returning(source, runs)):
        return
    for whose, how, part in _parts(source):
        n, unnamed = ledger.returning(part, runs)
        if n:
            was = _describe_returning(ledger, runs)
            yield f"{n} persons of {whose} {was}; {how}, or set this to true"
        if unnamed and not accepts_unknown:
            yield f"rows of {whose} do not say whose they are; {how}, or set this to true"


def _describe_returning(ledger: Ledger, runs: frozenset[str]) -> str:
    """What happened to persons whom the ledger knows by these runs."""
    if ledger.all_released(runs):
        return "were released before"
    return "were released before, or were in the source of a run that suppressed rows"


def _parts(source: Source) -> Iterator[tuple[str, str, Source]]:
    """The rows of a batch by where they come from: what they are called, how they are left out, and
    the source with only these."""
    yield "the source", "leave them out", replace(source, raw=source.fresh)
    for run_id, rows in source.waiting.items():
        how = "remove that run from the backlog and release its other rows anew"
        yield f"run {run_id}, which wait in the backlog,", how, replace(source, raw=rows)


def _require_others(target: Target, source: Source, ledger: Ledger | None) -> None:
    """Raises ConfigError unless it is certain that no person is in both tables."""
    if ledger is None:
        reason = "without a ledger it is unknown who is in it"
    else:
        there = _find_rows(target, digest_table(target.published()))
        reason = ledger.gap(target.runs(), there, source.schema) or ""
        # It was accepted of the batches of that table, not of another in its place.
        reason = reason or ledger.known_gap(target.runs(), there) or ""
        reason = reason or _overlap(ledger, target.runs(), source)
    if reason:
        raise ConfigError(
            [
                Problem(
                    "release.acknowledge_overwrite",
                    f"a table exists already, and {reason}: anyone who kept it can find persons by "
                    "comparing it with the new one; set this to true to replace it all the same",
                )
            ]
        )


def _require_new(target: Target, source: Source, ledger: Ledger, run_id: str | None) -> None:
    """Raises ConfigError unless it is certain that no person was in a table that was here before.
    No log says which runs of the ledger were committed to it, so all count; an earlier attempt of
    this run does not."""
    runs = ledger.list_runs() - {run_id}
    if not runs:
        return
    reason = ledger.doubt(runs, source.schema) or _overlap(ledger, runs, source)
    if reason:
        raise ConfigError(
            [
                Problem(
                    "release.acknowledge_overwrite",
                    f"no table is at {target.path}, but the ledger has one that was there, or that "
                    f"a run was about to publish, and {reason}: anyone who kept it can find "
                    "persons by comparing it with the new one; set this to true to release them "
                    "all the same; a run that failed goes on by its own run id",
                )
            ]
        )


def _overlap(ledger: Ledger, runs: frozenset[str], source: Source) -> str:
    """What persons, or possible persons, of these runs the source has; empty without any."""
    n, unnamed = ledger.returning(source, runs)
    if n and not ledger.all_released(runs):
        return f"{n} persons of the source are in it, or in rows that were suppressed"
    if n:
        return f"{n} persons of the source are in it"
    return "rows of the source do not say whose they are" if unnamed else ""


def require_whole(n_there: int, n_added: int, n_audited: int) -> None:
    """Raises AuditError unless the audited rows are the published and the added ones."""
    if n_there + n_added != n_audited:
        raise AuditError(
            f"rows don't add up, nothing was published: {n_there} there, {n_added} added, "
            f"{n_audited} audited; see what is there (anonlib audit), or release all rows to a new "
            "table"
        )
