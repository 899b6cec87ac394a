"""Runs that end without publishing: their rows are published already, or wait for more rows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from anonlib import registry
from anonlib.config.model import Config, SourceSection
from anonlib.config.paths import find_manifest_path
from anonlib.config.summary import bare, digest_config
from anonlib.errors import (
    AnonlibError,
    ConfigError,
    InfeasibleError,
    InputError,
    Problem,
    PublishedError,
    describe_unexpected,
)
from anonlib.run.backlog import Backlog, Waiting
from anonlib.run.completion import complete_last, locate_record, read_ahead
from anonlib.run.past import Books
from anonlib.run.publish import Target
from anonlib.run.purge import register
from anonlib.run.result import ReleaseResult
from anonlib.source.readers import find_files, find_version
from anonlib.spark.file_list import digest_listing
from anonlib.spark.lease import lease
from anonlib.spark.storage import Storage


def finish(
    spark: SparkSession, config: Config, target: Target, run_id: str, books: Books
) -> ReleaseResult:
    """Ends a run that was committed before: finishes an interrupted clean-up, and adds what may be
    missing, its record and the table's name in the catalog.

    Raises ConfigError if the committed run had another config, or a RESTORE took its rows out of
    the table again.
    """
    ahead = read_ahead(spark, target)
    is_own = ahead is not None and ahead["run_id"] == run_id
    kept = ahead if is_own else read_record(spark, config.record_folder, run_id)
    if kept is not None:
        _require_config(config, run_id, kept.get("config_sha256"), "was published with")
    elif not _may_be_of(config, target, run_id):
        _require_config(config, run_id, None, "was published with")
    with lease(spark, target.path, run_id, target.runs) as own_lease:
        complete_last(spark, config, target, own_lease)
        require_there(target, run_id)
        books.settle(target)
        register(spark, config.release)
    result = _describe_done(spark, config.record_folder, target, run_id)
    notes = _describe_published(spark, config, target, result)
    return replace(result, notes=(*notes, *result.notes))


def _require_config(config: Config, run_id: str, digest: str | None, did: str) -> None:
    """Raises ConfigError unless a run that is repeated had this config. did: What it did with its
    own, for the error."""
    if digest != digest_config(config):
        raise ConfigError(
            [
                Problem(
                    "release.run_id",
                    f"run {run_id} {did} another config; choose another run id",
                )
            ]
        )


def _describe_change(
    spark: SparkSession, source: SourceSection, version: int | None, files: str | None
) -> Iterator[str]:
    """A note if the source of a run that is repeated has changed since. No rows are read.

    Args:
        spark: The session.
        source: The source, as the run had it.
        version: The version that it was at, if it has versions.
        files: The digest of the listing of its files, if it is of files.
    """
    with suppress(Exception):  # the source may be gone, and the run is done all the same
        if version is not None and source.version is None:
            newest = find_version(spark, source)
            if newest is not None and newest != version:
                yield (
                    f"the source has changed since: version {version} was read, and it is at "
                    f"{newest}; another run id reads that"
                )
        elif files is not None:
            now = find_files(spark, source)
            if now is not None and digest_listing(now) != files:
                yield (
                    "the source has changed since: files were added, removed or written again; "
                    "another run id reads them"
                )


def require_there(target: Target, run_id: str) -> None:
    """Raises ConfigError if a RESTORE took the rows of a run that was committed out of the table
    again."""
    found = target.taken_back(run_id)
    if found is None:
        return
    commit, restoration = found
    if restoration.to < 0:
        how = (
            "restored the table to an earlier time, so its rows may be gone; restore the table to "
            "a version by its number (RESTORE ... TO VERSION AS OF), or"
        )
    else:
        how = f"restored the table to version {restoration.to}: its rows are not there;"
    raise ConfigError(
        [
            Problem(
                "release.run_id",
                f"run {run_id} was published as version {commit.version}, and version "
                f"{restoration.version} {how} release its rows under a new run id; a ledger knows "
                "their persons as released: this then needs `release.acknowledge_returning`",
            )
        ]
    )


def _may_be_of(config: Config, target: Target, run_id: str) -> bool:
    """Whether a run whose record is not there may be of a config, by what its manifest has."""
    text = next((commit.text for commit in target.commits() if commit.run_id == run_id), "{}")
    there = json.loads(text)
    holds = {verdict["model"] for verdict in there.get("verdicts", ())}
    specs = map(registry.spec, config.bound_models)
    asked = {registry.build("audit", spec).label for spec in specs}
    steps = [step.type for step in config.partition.steps]
    return not there or (asked <= holds and there["partition"]["steps"] == steps)


@contextmanager
def tell_published(target: Target, run_id: str) -> Iterator[None]:
    """Wraps a run, to its very end: if it is interrupted or fails after its commit, the error says
    that the release is published.

    Raises:
        PublishedError: The body failed after the commit.
        KeyboardInterrupt: It was interrupted after it.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        version = target.published_version(run_id)
        if version is None:
            raise
        where = f"version {version} of {target.path}" if version >= 0 else target.path
        text = (
            f"release is published all the same ({where}); only its manifest, record, name in the "
            f"catalog or clean-up may be missing. Release again with `--run-id {run_id}`"
        )
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted: the {text}") from error
        raise PublishedError(f"{_what_happened(error)}. The {text}") from error


def _what_happened(error: Exception) -> str:
    if isinstance(error, AnonlibError):
        return str(error)
    return describe_unexpected(error, "ANONLIB_DEBUG=1 in the environment shows it")


def _describe_published(
    spark: SparkSession, config: Config, target: Target, result: ReleaseResult
) -> Iterator[str]:
    """Notes on a run that was committed before: what it published, and whether the table or its
    source has changed since. The source is not read again."""
    kept = read_record(spark, config.record_folder, result.run_id) or {}
    n_rows = f", {kept['n_rows_out']:,} rows" if "n_rows_out" in kept else ""
    version = "" if result.table_version < 0 else f" as version {result.table_version}"
    yield f"published before{version}{n_rows}; the source was not read again"
    if not version:
        yield "the log does not describe it any more: whether its rows are still there is unknown"
    elif not target.is_as_left(result.table_version, with_batches=True):
        yield (
            "the table has changed since, so that the rows of this run may not be there any more: "
            "see what the table holds (`anonlib audit`)"
        )
    files = kept.get("source_files", {}).get("sha256")
    yield from _describe_change(spark, config.source, kept.get("source_version"), files)


def require_own_record(spark: SparkSession, records: str, target: Target, run_id: str) -> None:
    """Raises ConfigError if the private record in the folder `records` of a run that the target
    does not know belongs to another table: by its path, or since its run was published."""
    kept = read_record(spark, records, run_id)
    if kept is None:
        return
    if kept.get("table") != bare(target.path):
        whose = "another table's run"
    elif kept.get("outcome") == "published":
        whose = "a run that published to a table that is not there any more"
    else:
        return
    raise ConfigError(
        [
            Problem(
                "release.run_id",
                f"{locate_record(spark, records, run_id)} is the record of {whose}; choose another "
                "run id, or another `release.record`",
            )
        ]
    )


def read_record(spark: SparkSession, records: str, run_id: str) -> dict[str, Any] | None:
    """The private record of a run in the folder `records`; None if there is none.

    Raises InputError if it is damaged.
    """
    path = locate_record(spark, records, run_id)
    storage = Storage(spark, records)
    if not storage.exists(path):
        return None
    try:
        content: dict[str, Any] = json.loads(storage.read(path))
    except ValueError:
        raise InputError(
            f"release.record: {path} is damaged; restore it from a copy, or choose another run id"
        ) from None
    return content


def describe_waiting(
    spark: SparkSession,
    config: Config,
    target: Target,
    run_id: str,
    backlog: Backlog,
    why: InfeasibleError | None = None,
) -> ReleaseResult:
    """The result of a run whose rows wait in the backlog. why: The reason, if this call added them;
    None if an earlier call did.

    Raises ConfigError if that call had another config, or if the rows were published to a table
    that is gone, or that a RESTORE took them out of.
    """
    runs, left = target.runs(), backlog.of(run_id)
    notes = [str(problem) for problem in why.problems] if why else []
    if left is not None and why is None:
        notes = [*_describe_left(spark, config, left)]
    if left is not None and left.taken_by in runs:
        require_there(target, left.taken_by or "")
        result = _describe_done(spark, config.record_folder, target, left.taken_by or "")
        note = f"published by run {left.taken_by}"
        return replace(result, run_id=run_id, waited=True, notes=(note, *notes, *result.notes))
    if left is not None and left.settled:
        raise ConfigError(
            [
                Problem(
                    "release.run_id",
                    f"run {left.taken_by} published the rows of run {run_id} to a table that is "
                    "not there any more; choose another run id",
                )
            ]
        )
    waiting = backlog.waiting(runs)
    if len(waiting) > 1:
        rows = ", ".join(f"{entry.n_rows} of run {entry.run_id}" for entry in waiting)
        notes.append(f"the rows that wait: {rows}")
    return ReleaseResult(
        run_id=run_id,
        outcome="waiting" if why else "done",
        waited=True,
        n_waiting=sum(entry.n_rows or 0 for entry in waiting),
        table=target.path,
        notes=tuple(notes),
    )


def _describe_left(spark: SparkSession, config: Config, left: Waiting) -> Iterator[str]:
    """Notes on rows that an earlier call of a run left in the backlog: whether its source has
    changed since. The source is not read again. Raises ConfigError if it had another config."""
    yield "an earlier call put its rows into the backlog; the source was not read again"
    if left.config_sha256 is None:
        yield (
            "an earlier version of anonlib put them there: whether by this config and from this "
            "source can't be told"
        )
        return
    _require_config(config, left.run_id, left.config_sha256, "left its rows in the backlog with")
    yield from _describe_change(spark, config.source, left.source_version, left.source_files)


def _describe_done(spark: SparkSession, records: str, target: Target, run_id: str) -> ReleaseResult:
    """The result of a run that was committed before."""
    record = locate_record(spark, records, run_id)
    report, storage = f"{record.removesuffix('.json')}.html", Storage(spark, records)
    has_record = storage.exists(record)
    note = (
        f"{record} is not there: the run was stopped after its commit, or it was moved; whether it "
        "was of this seed, these roles and this source can't be told"
    )
    return ReleaseResult(
        run_id=run_id,
        outcome="done",
        table=target.path,
        table_version=target.version_of(run_id),
        manifest=find_manifest_path(target.path),
        record=record if has_record else "",
        report=report if has_record and storage.exists(report) else "",
        notes=() if has_record else (note,),
    )
