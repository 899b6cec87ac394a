"""What a run asks of its target, without Spark: its state, other people's commits, what a failure
leaves."""

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from anonlib.config.model import ReleaseSection
from anonlib.errors import BusyError, InputError, StorageError
from anonlib.run import history, publish
from anonlib.run.publish import CHANGED, Target, note_readers
from anonlib.spark import delta_files, delta_log
from anonlib.spark.delta_files import Transaction
from anonlib.table.schema import Column, Role, Schema
from tests.stores import Far

ROOT = Far.root


class Snapshot:
    """A version of a table, as Delta has it."""

    def __init__(
        self,
        version: int,
        runs: tuple[str, ...] = (),
        *,
        forgets: bool = False,
        append_only: str | None = None,
    ):
        self._version, self._runs, self._forgets = version, runs, forgets
        value = append_only
        option = SimpleNamespace(isDefined=lambda: value is not None, get=lambda: value)
        self._get = {"delta.appendOnly": option}.__getitem__

    def version(self) -> int:
        return self._version

    def metadata(self) -> Any:
        contains = {history.FORGETTING: self._forgets}.__getitem__
        return SimpleNamespace(
            configuration=lambda: SimpleNamespace(contains=contains, get=self._get)
        )

    def setTransactions(self) -> Any:
        return Sequence([SimpleNamespace(appId=lambda id=id: id) for id in self._runs])


class Sequence:
    """A Scala sequence."""

    def __init__(self, values: list[Any]):
        self._values = values

    def size(self) -> int:
        return len(self._values)

    def apply(self, i: int) -> Any:
        return self._values[i]


class Log:
    """A log whose newest version is `snapshot`."""

    def __init__(self, snapshot: Snapshot):
        self.snapshot = snapshot
        self.asked: list[tuple[Any, ...]] = []

    def update(self, *how: Any) -> Snapshot:
        self.asked.append(how)
        return self.snapshot


class Store(Far):
    """A store that the target of these tests lies in."""

    def delete_empty(self, path: str) -> None:
        pass


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    monkeypatch.setattr(history, "Storage", lambda spark, path: made)
    monkeypatch.setattr(delta_log, "make_none", lambda spark: None)
    return made


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log(Snapshot(-1))
    monkeypatch.setattr(history, "open_delta_log", lambda spark, path: made)
    return made


def target(log: Log, snapshot: Snapshot, spark: Any = None, **release: Any) -> Target:
    log.snapshot = snapshot
    return Target(spark, ReleaseSection(path=ROOT, **release))


# --- its state


@pytest.mark.parametrize(
    ("version", "mode", "files", "text"),
    [
        (-1, "error", [], ""),
        (-1, "overwrite", [], ""),
        (-1, "error", ["_delta_log/x"], ""),
        (-1, "error", ["mine"], "holds other files"),
        (-1, "overwrite", ["mine", "_delta_log/x"], "holds other files"),
        (-1, "append", [], "no table is at"),
        (0, "error", [], "a table is already at"),
        (0, "append", ["part"], ""),
        (3, "overwrite", ["part"], ""),
    ],
)
def test_free(store: Store, log: Log, version: int, mode: str, files: list[str], text: str) -> None:
    store.files = {f"{ROOT}/{name}": "x" for name in files}
    made = target(log, Snapshot(version), mode=mode)
    assert made.version == version
    if text:
        with pytest.raises(InputError, match=text):
            made.check_free()
    else:
        made.check_free()


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ([], ""),
        (["_anonlib/manifest.json", "_anonlib/dictionary.md"], ""),
        (["_anonlib"], "_anonlib must be a folder"),
        (["_anonlib/manifest.json/x"], "manifest.json must be a file"),
        (["_anonlib/dictionary.md/x"], "dictionary.md must be a file"),
    ],
)
def test_the_place_of_the_manifest(store: Store, log: Log, files: list[str], wrong: str) -> None:
    """A run is refused before its work if it could not write its manifest or its dictionary."""
    store.files = {f"{ROOT}/{name}": "x" for name in ["part", *files]}
    made = target(log, Snapshot(0), mode="append")
    with pytest.raises(InputError, match=wrong) if wrong else nullcontext():
        made.check_free()


@pytest.mark.parametrize(
    ("version", "mode", "replaces"),
    [
        (-1, "overwrite", False),
        (0, "overwrite", True),
        (3, "overwrite", True),
        (0, "append", False),
        (-1, "error", False),
    ],
)
def test_the_files_that_an_overwrite_replaces(
    store: Store, log: Log, version: int, mode: str, replaces: bool
) -> None:
    """All of the first version, too."""
    made = target(log, Snapshot(version), mode=mode)
    own: Any = SimpleNamespace(with_removals=lambda actions, of_all: (actions, of_all))
    assert made._with_removals(own, "added") == ("added", replaces)


AGE = StructType([StructField("age", LongType())])
NEVER_NULL = StructType([StructField("age", LongType(), nullable=False)])
OTHER = StructType([StructField("years", LongType())])


@pytest.mark.parametrize(
    ("version", "table", "by", "properties", "features", "files", "takes"),
    [
        (-1, OTHER, ["x"], {"p"}, {"f"}, NEVER_NULL, True),
        (0, AGE, ["a"], set(), set(), AGE, True),
        (3, AGE, ["a"], publish.PLAIN, publish.FEATURES, AGE, True),
        (0, OTHER, ["a"], set(), set(), AGE, False),
        (0, NEVER_NULL, ["a"], set(), set(), NEVER_NULL, False),
        (0, AGE, [], set(), set(), AGE, False),
        (0, AGE, ["a"], {"delta.enableChangeDataFeed"}, set(), AGE, False),
        (0, AGE, ["a"], set(), {"columnMapping"}, AGE, False),
    ],
)
def test_tables_that_take_files_as_they_are(
    store: Store,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    table: StructType,
    by: list[str],
    properties: set[str],
    features: set[str],
    files: StructType,
    takes: bool,
) -> None:
    """A new one does, and one with the same columns and folders that asks for nothing else."""
    there = SimpleNamespace(schema=table, properties=properties, features=features)
    monkeypatch.setattr(publish, "read_metadata", lambda spark, snapshot: there)
    monkeypatch.setattr(publish, "read_partitioning", lambda log: by)
    assert target(log, Snapshot(version), partition_by=["a"])._takes(files) is takes


def test_a_table_that_only_grows(store: Store, log: Log) -> None:
    """Delta would refuse to replace it, after all the work."""
    for mode, value, is_free in (
        ("overwrite", "true", False),
        ("overwrite", "TRUE", False),
        ("overwrite", "false", True),
        ("append", "true", True),
    ):
        made = target(log, Snapshot(3, append_only=value), mode=mode)
        with nullcontext() if is_free else pytest.raises(InputError, match="unset it"):
            made.check_free()


@pytest.mark.parametrize(
    ("names", "mapping", "said"),
    [
        (["a"], None, ""),
        (["a b"], None, "columns with names that Delta takes by column mapping only"),
        (["a b"], "none", "SET TBLPROPERTIES .'delta.columnMapping.mode' = 'name'"),
        (["a b"], "Name", ""),
        (["a", "Id"], None, "makes the values of column iD itself"),
        (["a", "by default"], "id", ""),
    ],
)
def test_names_that_delta_can_not_put_in_place_of_others(
    store: Store,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    mapping: str | None,
    said: str,
) -> None:
    """Told before the work, not by Delta at its end."""
    snapshot, explicit = Snapshot(3), "delta.identity.allowExplicitInsert"
    option = SimpleNamespace(isDefined=lambda: mapping is not None, get=lambda: mapping)
    snapshot._get = {"delta.columnMapping.mode": option}.__getitem__
    there = [
        StructField("iD", LongType(), metadata={explicit: False}),
        StructField("by default", LongType(), metadata={explicit: True}),
        StructField("a", LongType()),
    ]
    metadata = delta_log.TableMetadata(StructType(there), frozenset(), frozenset())
    monkeypatch.setattr(publish, "read_metadata", lambda *_: metadata)
    made = target(log, snapshot, mode="overwrite")
    columns = StructType([StructField(name, LongType()) for name in names])
    with pytest.raises(InputError, match=said) if said else nullcontext():
        made.require_names(columns)


@pytest.mark.parametrize(
    ("clustering", "said"),
    [
        (None, "had: NOT NULL of a, b; comments of b; generated values of c, d. Set"),
        ([], "had: NOT NULL of a, b; comments of b; generated values of c, d. Set that"),
        (["b", "a"], "generated values of c, d; CLUSTER BY b, a. Set that"),
    ],
)
def test_what_an_overwrite_leaves_out(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch, clustering: Any, said: str
) -> None:
    there = [
        StructField("a", LongType(), nullable=False),
        StructField("b", LongType(), nullable=False, metadata={"comment": "secret"}),
        StructField("c", LongType(), metadata={"delta.generationExpression": "a + b"}),
        StructField("d", LongType(), metadata={"delta.identity.start": 1}),
        StructField("e", LongType()),
    ]
    features = frozenset[str]() if clustering is None else frozenset({"clustering"})
    metadata = delta_log.TableMetadata(StructType(there), frozenset(), features)
    monkeypatch.setattr(publish, "read_metadata", lambda *_: metadata)
    monkeypatch.setattr(publish, "list_clustering", lambda *_: clustering)
    made = target(log, Snapshot(3), mode="overwrite")
    (note,) = made.describe_losses()
    assert said in note
    assert "secret" not in note
    plain = delta_log.TableMetadata(StructType(there[4:]), frozenset(), features - {"clustering"})
    monkeypatch.setattr(publish, "read_metadata", lambda *_: plain)
    assert [*made.describe_losses()] == []


def test_a_checkpoint(store: Store, log: Log) -> None:
    made, kept = target(log, Snapshot(0)), []
    log.checkpoint = lambda *how: kept.append(how)  # type: ignore[attr-defined]
    assert made.checkpoint() == 0
    assert kept == [(log.snapshot, None)]
    assert log.asked[-1] == (False, None, None)


def test_the_table_as_it_was_when_the_run_began(store: Store, log: Log) -> None:
    asked: list[Any] = []

    class Reader:
        def option(self, *how: Any) -> "Reader":
            asked.append(how)
            return self

        format = option

        def load(self, path: str) -> str:
            return f"table at {path}"

    made = target(log, Snapshot(4), SimpleNamespace(read=Reader()))
    log.snapshot = Snapshot(5)
    assert made.published() == f"table at {ROOT}"
    assert asked == [("delta",), ("versionAsOf", 4)]


def test_columns_that_files_are_laid_out_by(store: Store, log: Log) -> None:
    metadata = SimpleNamespace(partitionColumns=lambda: Sequence(["a", "b"]))
    log.unsafeVolatileMetadata = lambda: metadata  # type: ignore[attr-defined]
    assert target(log, Snapshot(0)).partitioned_by() == ["a", "b"]


def test_the_files_of_the_newest_version(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = target(log, Snapshot(0))
    files = SimpleNamespace(toDF=lambda: f"files of {len(log.asked)} looks")
    log.unsafeVolatileSnapshot = lambda: SimpleNamespace(allFiles=lambda: files)  # type: ignore[attr-defined]
    frame = SimpleNamespace(select=lambda *names: names)
    given: list[Any] = []
    monkeypatch.setattr(delta_log, "DataFrame", lambda *how: given.append(how) or frame)
    assert made.files() == ("path", "deletionVector")
    assert given == [("files of 2 looks", None)]


def test_renewed(store: Store, log: Log) -> None:
    made = target(log, Snapshot(0))
    log.snapshot = Snapshot(5)
    made.renew()
    assert made.version == 5


# --- other people's commits

INFO: dict[str, Any] = {"commitInfo": {}}
OLD, NEW = ({"dataChange": False, "path": name} for name in ("a=b%20c/old", "new"))
LAID_OUT = [INFO, {"add": NEW}, {"remove": OLD}]


@pytest.mark.parametrize(
    ("actions", "kept"),
    [
        (LAID_OUT, True),
        ([INFO], True),
        ([], True),
        ([INFO, {"add": {**NEW, "dataChange": True}}], False),
        ([{"remove": {**OLD, "dataChange": True}}, *LAID_OUT], False),
        ([{"metaData": {"dataChange": False}}], False),
        ([INFO, {"txn": {}}], False),
        # As OPTIMIZE leaves it with row tracking, and with other columns to cluster by.
        ([*LAID_OUT, {"domainMetadata": {"domain": "delta.rowTracking"}}], True),
        ([INFO, {"domainMetadata": {"domain": "delta.clustering"}}], True),
        ([*LAID_OUT, {"domainMetadata": {"domain": "mine"}}], False),
        ([*LAID_OUT, {"domainMetadata": {}}], False),
        (None, False),
    ],
)
def test_commits_that_change_no_row(
    store: Store,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    actions: list[dict[str, Any]] | None,
    kept: bool,
) -> None:
    read = []

    def digest_files(_: Any, root: str, version: int, names: Any) -> Any:
        read.append((root, version, names))
        return "the same rows", {"old"} if len(read) % 2 else {"new"}

    monkeypatch.setattr(history, "digest_files", digest_files)
    made = target(log, Snapshot(4))
    made.require_unchanged()
    log.snapshot = Snapshot(6)
    texts = {5: actions, 6: LAID_OUT}
    for version, found in texts.items():
        if found is not None:
            lines = "\n".join(map(json.dumps, found)) + "\n\n"
            store.files[f"{ROOT}/_delta_log/{version:020}.json"] = lines
    if kept:
        made.require_unchanged()
        assert made.version == 6
        assert read[-2:] == [(ROOT, version, {"old", "new"}) for version in (5, 6)]
    else:
        with pytest.raises(BusyError) as error:
            made.require_unchanged()
        assert str(error.value) == CHANGED
        assert made.version == 4


BOTH = {"old", "new"}


@pytest.mark.parametrize(
    "found",
    [
        [(1, BOTH), (2, BOTH)],
        [(1, BOTH), OSError("gone")],
        [(0, set()), (0, set())],
        [(0, {"old"}), (0, set())],
        [(0, set()), (0, {"new"})],
    ],
)
def test_commits_that_only_say_so(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch, found: list[Any]
) -> None:
    """Other rows in the new files, files that are gone, or that are not found by their names."""
    monkeypatch.setattr(history, "digest_files", Mock(side_effect=found))
    made = target(log, Snapshot(4))
    log.snapshot = Snapshot(5)
    store.files[f"{ROOT}/_delta_log/{5:020}.json"] = "\n".join(map(json.dumps, LAID_OUT))
    with pytest.raises(BusyError):
        made.require_unchanged()


def test_the_newest_commit_counts_too(store: Store, log: Log) -> None:
    made = target(log, Snapshot(4))
    log.snapshot = Snapshot(5)
    store.files[f"{ROOT}/_delta_log/{5:020}.json"] = json.dumps({"metaData": {}})
    with pytest.raises(BusyError):
        made.require_unchanged()


@pytest.mark.parametrize(("read", "whole"), [(3, True), (4, False)])
def test_a_transaction_is_of_the_version_and_all_of_it(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch, read: int, whole: bool
) -> None:
    asked = []
    handle = SimpleNamespace(readVersion=lambda: read, readWholeTable=lambda: asked.append(True))
    begin = SimpleNamespace(begin=lambda spark, path: SimpleNamespace(handle=handle, path=path))
    monkeypatch.setattr(publish, "Transaction", begin)
    made = target(log, Snapshot(3))
    if whole:
        assert made._begin().handle is handle
    else:
        with pytest.raises(BusyError):
            made._begin()
    assert asked == [True] * whole
    log.snapshot = Snapshot(4)
    with pytest.raises(BusyError):
        made._begin()


class Action:
    """An action of Delta's; removed ones say when."""

    def __init__(self, kind: str, name: str):
        self.kind, self.name = kind, name

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: self.kind)

    def removeWithTimestamp(self, now: int, changes: bool) -> tuple[str, int, bool]:
        return self.name, now, changes


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("same", [True, False])
def test_a_transaction_after_an_optimization(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch, mode: str, same: bool
) -> None:
    """Its files are those to remove: what was to be removed is gone already."""
    monkeypatch.setattr(delta_files, "make_scala_seq", lambda spark, values: values)
    monkeypatch.setattr(delta_files, "time_ns", lambda: 7_000_000 * 10**6 + 999_999)
    updated: list[Any] = []
    there = Sequence([Action("AddFile", "new")])
    handle = SimpleNamespace(
        metadata=lambda: "mine" if same else "theirs",
        updateMetadata=lambda *how: updated.append(how),
        filterFiles=lambda: there,
    )
    before: Any = SimpleNamespace(handle=SimpleNamespace(metadata=lambda: "mine"))
    made = target(log, Snapshot(3), mode=mode)
    begun: Any = Transaction(None, ROOT, None, handle)  # type: ignore[arg-type]
    monkeypatch.setattr(made, "_begin", lambda: begun)
    added = Action("AddFile", "added")
    actions = Sequence([added, Action("RemoveFile", "old")])
    transaction, found = made._begin_again(before, actions)
    assert transaction.handle is handle
    assert found == [added, *[("new", 7_000_000, True)] * (mode == "overwrite")]
    assert updated == ([] if same else [("mine", False)])


def test_what_the_history_says(store: Store, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode, layout and manifest, whatever else Delta's class takes."""
    constructor = SimpleNamespace(getParameterCount=lambda: 6)
    kind = SimpleNamespace(getConstructors=lambda: [constructor])
    monkeypatch.setattr(delta_log, "find_class", lambda spark, name: kind)
    monkeypatch.setattr(delta_log, "find_java_class", lambda spark, name: lambda *how: how)
    monkeypatch.setattr(delta_log, "make_scala_seq", lambda spark, values: [*values])
    monkeypatch.setattr(delta_log, "make_some", lambda spark, value: ("some", value))
    monkeypatch.setattr(publish, "save_mode", lambda spark, name: name)
    made = target(log, Snapshot(-1), mode="append", partition_by=["a"])
    found = made._operation("text")
    assert found == ("Append", ("some", ["a"]), None, ("some", "text"), None, None)


# --- the commit, and what a failure leaves


class Held:
    """A lease."""

    def __init__(self, *, remote: bool = False):
        self.remote, self.doubtful, self.removed = remote, False, 0
        self.work = "work"
        self.holds = True

    def doubt(self) -> None:
        self.doubtful = True

    def still_held(self) -> bool:
        return self.holds

    def remove_files(self) -> None:
        self.removed += 1


@pytest.mark.parametrize(
    ("remote", "error", "doubtful"),
    [
        (True, StorageError("no answer"), True),
        (True, BusyError("another was faster"), False),
        (False, StorageError("full"), False),
    ],
)
def test_a_commit_that_failed(
    store: Store,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    remote: bool,
    error: Exception,
    doubtful: bool,
) -> None:
    monkeypatch.setattr(publish, "translate", lambda error, where: error)
    held, made = Held(remote=remote), target(log, Snapshot(0))

    def commit(actions: Any, operation: Any) -> int:
        if actions == "well":
            return 7
        raise error

    transaction = SimpleNamespace(handle=SimpleNamespace(commit=commit))
    assert made._commit(transaction, "well", "as", held) == 7  # type: ignore[arg-type]
    with pytest.raises(type(error)):
        made._commit(transaction, "ill", "as", held)  # type: ignore[arg-type]
    assert held.doubtful == doubtful


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(
    ("version", "runs", "actions", "gone"),
    [
        (-1, (), "some", ["a", "b"]),
        (0, (), "some", ["a", "b"]),
        (0, ("anonlib:other",), "some", ["a", "b"]),
        (0, ("anonlib:mine",), "some", []),
        (0, (), None, []),
    ],
)
def test_what_a_failed_publication_wrote(
    store: Store,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    runs: tuple[str, ...],
    actions: Any,
    gone: list[str],
    holds: bool,
) -> None:
    """Its files go, those that it listed and those of Delta's writer, unless its commit has come
    through. The list may be another's once the lease is lost."""
    monkeypatch.setattr(publish, "list_added_files", lambda actions: ["a", "b"])
    store.files = {f"{ROOT}/{name}": "x" for name in "abc"}
    held: Any = Held()
    held.holds = holds
    target(log, Snapshot(version, runs))._remove(actions, held, "mine")
    assert store.files.keys() == {f"{ROOT}/{name}" for name in "abc" if name not in gone}
    assert held.removed == holds


def test_a_store_that_is_gone_hides_no_error(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = target(log, Snapshot(0))
    monkeypatch.setattr(log, "update", None)
    store.files = {f"{ROOT}/a": "x"}
    held: Any = Held()
    made._remove("some", held, "mine")
    assert store.files


def transaction(schema: str, root: str, done: list[Any]) -> Any:
    """A transaction that notes the columns that its table gets."""
    metadata = SimpleNamespace(schema=lambda: SimpleNamespace(json=lambda: schema))
    handle = SimpleNamespace(
        metadata=lambda: metadata, updateMetadata=lambda *how: done.append(how)
    )
    plain = {"delta.dataSkippingNumIndexedCols": metadata}
    return SimpleNamespace(handle=handle, root=root, metadata_without=plain.get)


@pytest.mark.parametrize(
    ("version", "table", "fails"),
    [(-1, "a", ""), (-1, "b", "Delta gives the table other columns"), (0, "b", "")],
)
def test_files_are_listed_before_they_are_in_the_table(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch, version: int, table: str, fails: str
) -> None:
    done: list[Any] = []
    held: Any = Held()
    held.list_files = lambda paths: done.append(("list", *paths))
    mine, theirs = transaction("a", "work/files", done), transaction(table, ROOT, done)
    files: Any = SimpleNamespace(transaction=mine, actions="actions", paths=["p/0"])
    store.move = lambda *how: done.append(("move", *how))  # type: ignore[attr-defined]
    made = target(log, Snapshot(version))
    monkeypatch.setattr(made, "_with_removals", lambda _, actions: (actions, "removals"))
    noted = [(mine.handle.metadata(), False)] if version < 0 else []
    if fails:
        with pytest.raises(StorageError, match=fails):
            made._adopt(files, theirs, held)
        assert done == noted
    else:
        assert made._adopt(files, theirs, held) == ("actions", "removals")
        moved = ("move", "work/files/p/0", f"{ROOT}/p/0")
        assert done == [*noted, ("list", "p/0"), moved]


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_how_deltas_writer_is_asked(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """The commit names the run, and a table that is added to keeps its columns."""
    monkeypatch.setattr(publish, "save_mode", lambda spark, name: name)
    given: list[Any] = []

    def write(*how: Any) -> str:
        given.extend(how)
        return "actions"

    own: Any = SimpleNamespace(write=write)
    made: Any = target(log, Snapshot(0), mode=mode, partition_by=["a"])
    assert made._add("frame", own, "mine") == "actions"
    options = {"txnAppId": "anonlib:mine", "txnVersion": "1"}
    if mode != "append":
        options["overwriteSchema"] = "true"
    names = {"error": "ErrorIfExists", "append": "Append", "overwrite": "Overwrite"}
    isolation = {"delta.isolationLevel": "Serializable"}
    assert given == ["frame", names[mode], ("a",), options, isolation]


# --- readers without Spark


def test_names_that_other_readers_cannot_read() -> None:
    def schema(*names: str) -> Schema:
        columns = [
            Column(name, f"c{i}", Role.SENSITIVE, pa.string(), "string")
            for i, name in enumerate(names)
        ]
        return Schema(tuple(columns))

    assert note_readers(schema("plain", "_x")) == ()
    (note,) = note_readers(schema("plain", "a b", "c;d"))
    assert note.startswith("columns a b, c;d: ")
