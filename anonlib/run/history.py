"""What the log of a Delta table tells of its versions: which runs made them, which keep the rows of
others, which a RESTORE took back."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anonlib.config.paths import find_manifest_path
from anonlib.errors import InputError
from anonlib.run.data_files import APP
from anonlib.run.log_actions import find_restored, read_actions
from anonlib.spark.delta_files import digest_files, explain_damage, open_delta_log
from anonlib.spark.delta_log import has_property, list_applications, read_snapshot
from anonlib.spark.expressions import quote_name
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors

#: Spark's names of the modes of a release.
SAVE_MODES = {"error": "ErrorIfExists", "append": "Append", "overwrite": "Overwrite"}
FORGETTING = "delta.setTransactionRetentionDuration"
#: Checkpoints repeat the names and partition values of removed files for this long.
RETENTION = "delta.deletedFileRetentionDuration"
#: The key that marks the commits of a purge in their metadata, with the version that it keeps.
PURGE_OF = "purge_of"
#: Domains of Delta's metadata that say nothing of rows or columns: which numbers rows have, and by
#: which columns files are clustered.
DOMAINS = frozenset({"delta.rowTracking", "delta.clustering"})


@dataclass(frozen=True)
class Commit:
    """A commit of a run, or of the purge after it, as the log describes it.

    Attributes:
        version: The version that it made.
        run_id: The run.
        mode: One of SAVE_MODES for commits that wrote rows, else None.
        text: The manifest.
        purge_of: For commits of a purge: the version of the run when the purge began.
    """

    version: int
    run_id: str
    mode: str | None
    text: str
    purge_of: int | None = None


@dataclass(frozen=True)
class Restoration:
    """A commit that gave a table the rows of an earlier version (RESTORE).

    Attributes:
        version: The version that it made.
        to: The earlier version; -1 if the log does not tell.
    """

    version: int
    to: int


class History:
    """The versions of the table that a run publishes to.

    Attributes:
        path: The folder of the table.
        version: The version that the table was at when the run began; -1 without a table.
    """

    def __init__(self, spark: SparkSession, path: str):
        self._spark = spark
        self._storage = Storage(spark, path)
        self.path = self._storage.root
        self._snapshot: Any = None
        self._runs: frozenset[str] | None = None
        self._events: list[Commit | Restoration] | None = None
        self._made: dict[str, int] = {}  # by run: the version that this driver committed
        where = "release.path"
        with explain_damage(spark, self.path, where), translate_errors(where):
            self._log: Any = open_delta_log(spark, self.path)
            self.version = self._latest()

    def _latest(self) -> int:
        """The newest version. Reads the log again if it has grown."""
        found = read_snapshot(self._spark, self._log)
        if found != self._snapshot:
            self._snapshot, self._runs, self._events = found, None, None
        return int(found.version())

    def runs(self) -> frozenset[str]:
        """The ids of all runs that were ever committed here. They stay when Delta or a purge
        removes log entries."""
        if self._latest() < 0:
            return frozenset()
        if self._runs is None:
            with translate_errors("release.path"):
                self._runs = self._list_committed()
        return self._runs

    def published_version(self, run_id: str) -> int | None:
        """The version that a run left; -1 if the log does not describe it any more. None if the run
        was not committed, or that is unknown."""
        found = self._made.get(run_id)
        with suppress(Exception):  # the store may be gone, or the JVM
            if found is not None or run_id in self.runs():
                found = max(self.version_of(run_id), -1 if found is None else found)
        return found

    def _list_committed(self) -> frozenset[str]:
        if has_property(self._snapshot, FORGETTING):
            raise InputError(
                f"release.path: the table property {FORGETTING} makes Delta forget which "
                "runs published; unset it"
            )
        ids = list_applications(self._snapshot)
        return frozenset(id.removeprefix(APP) for id in ids if id.startswith(APP))

    def commits(self, upto: int | None = None) -> list[Commit]:
        """The commits of runs that the log still describes and no RESTORE took back, newest first.

        upto: As of this version; by default as of the newest.
        """
        return [commit for commit, taken_back in self._judge(upto) if taken_back is None]

    def taken_back(self, run_id: str) -> tuple[Commit, Restoration] | None:
        """A run's commit and the RESTORE that took its rows out of the table again. None if none
        did, or the log does not describe it any more."""
        found = [each for each in self._judge() if each[0].run_id == run_id]
        restorations = [restoration for _, restoration in found if restoration is not None]
        taken = bool(found) and len(restorations) == len(found)
        return (found[-1][0], restorations[-1]) if taken else None

    def _judge(self, upto: int | None = None) -> Iterator[tuple[Commit, Restoration | None]]:
        """Each commit of a run, newest first, with the RESTORE that took it back."""
        last = None
        for event in self._list_events():
            if upto is not None and event.version > upto:
                continue
            is_back = last is not None and event.version > last.to
            if isinstance(event, Commit):
                yield event, last if is_back else None
            elif not is_back:  # else another RESTORE took this one back
                last = event

    def _list_events(self) -> list[Commit | Restoration]:
        if self._latest() < 0:
            return []
        if self._events is None:
            self._events = self._list_described()
        return self._events

    def _list_described(self) -> list[Commit | Restoration]:
        parameters = F.col("operationParameters")
        restores = F.col("operation").eqNullSafe("RESTORE").alias("restores")
        mode, to = parameters["mode"].alias("mode"), parameters["version"].alias("to")
        with translate_errors("release.path"):
            table = self._spark.sql(f"DESCRIBE HISTORY delta.{quote_name(self.path)}")
            found = table.select("version", "userMetadata", mode, restores, to)
            rows = found.where("userMetadata is not null or restores").collect()
        # Who else writes may have a `run_id` of its own in its metadata.
        events: list[Commit | Restoration] = []
        for row in rows:
            version, text = int(row["version"]), row["userMetadata"]
            if row["restores"]:
                to = row["to"]  # None if it was to a time
                known = find_restored(self._storage, self.path, version) if to is None else int(to)
                events.append(Restoration(version, known))
            elif (commit := _describe(version, row["mode"], text)) is not None:
                events += [commit] if commit.run_id in self.runs() else []
        return events

    def is_before_runs(self, version: int) -> bool:
        """Whether it is certain that no run had published when a version was made: the log
        describes all runs, and they came later."""
        made = [event for event in self._list_events() if isinstance(event, Commit)]
        is_later = all(commit.version > version for commit in made)
        return is_later and self.runs() <= {commit.run_id for commit in made}

    def newest_manifest(self) -> str:
        """The manifest of the newest run whose rows the table has: as the log has it or, where that
        does not describe it any more, from beside the table. Empty without one, and where that
        beside the table may be of a run that a RESTORE took back."""
        newest = next(iter(self.commits()), None)
        if newest is not None:
            return newest.text
        is_known = not any(isinstance(event, Restoration) for event in self._list_events())
        return self.manifest() if is_known else ""

    def manifest(self) -> str:
        """The text of the manifest beside the table; empty without one."""
        path = find_manifest_path(self.path)
        return self._storage.read(path) if self._storage.exists(path) else ""

    def version_of(self, run_id: str) -> int:
        """The newest version that holds just what a run's commit left; -1 if the log does not
        describe it any more. It is that commit's, or one of the purge after it, as long as nobody's
        commit lies between."""
        own = [commit for commit in self.commits() if commit.run_id == run_id]
        purges = {c.version: c.purge_of for c in own if c.purge_of is not None}
        committed = [c.version for c in own if c.mode is not None]
        version = min([*committed, *purges.values()], default=-1)
        while version + 1 in purges:
            version += 1
        return version

    def keeps_rows_since(self, version: int) -> bool:
        """Whether every commit after a version, up to where the run began, kept rows and columns as
        they were."""
        return self._keep_rows(range(version + 1, self.version + 1))

    def is_as_left(
        self, version: int, upto: int | None = None, *, with_batches: bool = False
    ) -> bool:
        """Whether another version, by default the newest, has rows and columns as a version left
        them: later commits kept them, or were taken back by a RESTORE. with_batches: Also with rows
        that runs appended since."""
        events = {event.version: event for event in self._list_events()}
        at = self._latest() if upto is None else upto
        while at > version:
            event = events.get(at)
            if isinstance(event, Restoration) and event.to >= version:
                at = event.to
            elif (with_batches and _appends(event)) or self._keeps_rows(at):
                at -= 1
            else:
                return False
        return True

    def _keep_rows(self, versions: Iterable[int]) -> bool:
        return all(map(self._keeps_rows, versions))

    def _keeps_rows(self, version: int) -> bool:
        """Whether a version's commit only moved the same rows to other files, or is of a purge. Any
        writer can say that rows are the same: so those of these files are compared. False if they
        can't be read any more."""
        found = read_actions(self._storage, self.path, version)
        if found is None:
            return False
        files = [(kind, each) for kind, each in found if kind in ("add", "remove")]
        told = {"add", "remove", "commitInfo"}
        others = {kind for kind, each in found if kind not in told and not _is_aside(kind, each)}
        if not files and others == {"metaData"}:
            return _is_of_purge(dict(found).get("commitInfo", {}), self.runs())
        if others or any(each["dataChange"] is not False for _, each in files):
            return False
        if not files:
            return True
        old, new = (
            {unquote(each["path"]).rpartition("/")[2] for kind, each in files if kind == wanted}
            for wanted in ("remove", "add")
        )
        with suppress(Exception):  # files that a VACUUM removed
            (before, removed), (after, added) = (
                digest_files(self._spark, self.path, each, old | new)
                for each in (version - 1, version)
            )
            # Files that were not found by their names would be equal, too: there are no rows.
            return before == after and old <= removed and new <= added
        return False


def mark_purge(newest: Commit, version: int) -> str:
    """The metadata of a purge's commits: the manifest, since the newest commit that has it may be
    removed, and the version of its run."""
    return json.dumps({**json.loads(newest.text), PURGE_OF: version}, ensure_ascii=False)


def _describe(version: int, mode: str | None, metadata: str) -> Commit | None:
    """A commit by its metadata; None if this is not of a run."""
    try:
        found = json.loads(metadata)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("run_id"), str):
        return None
    purge_of = found.pop(PURGE_OF, None)
    if mode is not None or not isinstance(purge_of, int):
        return Commit(version, found["run_id"], mode, metadata)
    # As it is written beside the table.
    text = json.dumps(found, indent=2, ensure_ascii=False)
    return Commit(version, found["run_id"], mode, text, purge_of)


def _appends(event: Commit | Restoration | None) -> bool:
    return isinstance(event, Commit) and event.mode == SAVE_MODES["append"]


def _is_aside(kind: str, action: Mapping[str, Any]) -> bool:
    """Whether an action of a commit says nothing of rows or columns."""
    return kind == "domainMetadata" and action.get("domain") in DOMAINS


def _is_of_purge(info: Mapping[str, Any], runs: Collection[str]) -> bool:
    """Whether a commit that changes a table's metadata is of a purge of ours, and changes only what
    such a purge does. info: What the commit says of itself."""
    commit = _describe(0, None, info.get("userMetadata") or "")
    if commit is None or commit.purge_of is None or commit.run_id not in runs:
        return False
    with suppress(KeyError, TypeError, ValueError):
        changed = json.loads(info["operationParameters"]["properties"])
        is_change = info.get("operation") in ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")
        return is_change and {*changed} == {RETENTION}
    return False
