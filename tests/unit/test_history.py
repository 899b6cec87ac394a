"""Which runs a log knows, and which versions are theirs: what a purge commits after them, what
others commit, what a RESTORE takes back."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from anonlib.errors import BusyError, InputError
from anonlib.run import history
from anonlib.run.history import RETENTION, Commit, mark_purge
from anonlib.run.log_actions import find_restored, read_actions
from anonlib.run.publish import APP, Target
from anonlib.spark.delta_files import find_damage
from tests.stores import Disk
from tests.unit import test_target
from tests.unit.test_target import ROOT, Log, Snapshot, Store, target

store, log = test_target.store, test_target.log

MANIFEST = json.dumps({"run_id": "one", "é": 0.1}, indent=2, ensure_ascii=False)


def test_runs(store: Store, log: Log) -> None:
    """Only ours, without the prefix; asked anew only after a commit."""
    made = target(log, Snapshot(2, ("anonlib:one", "another", "anonlib:two")))
    assert made.runs() == {"one", "two"}
    log.snapshot.setTransactions = None  # type: ignore[method-assign, assignment]
    assert made.runs() == {"one", "two"}
    log.snapshot = Snapshot(3, ("anonlib:three",))
    assert made.runs() == {"three"}
    assert target(log, Snapshot(-1, ("anonlib:x",))).runs() == frozenset()
    assert target(log, Snapshot(0, ("anonlib:x",))).runs() == {"x"}
    assert {*log.asked} == {(False, None, None)}


def test_a_table_that_forgets_its_runs(store: Store, log: Log) -> None:
    made = target(log, Snapshot(0, forgets=True))
    with pytest.raises(InputError, match="makes Delta forget which runs published; unset it"):
        made.runs()


def session(*rows: tuple[int, str | None, str | None]) -> Any:
    """A session whose SQL answers with the history of a table: the version, the metadata and the
    mode of each commit. A mode such as `to 3` is that of a RESTORE."""
    asked: list[str] = []

    def sql(text: str) -> Any:
        asked.append(text)
        found = []
        for version, metadata, mode in rows:
            restores = mode is not None and mode.startswith("to")
            to = (mode or "")[3:] or None if restores else None
            row = {"version": version, "userMetadata": metadata, "mode": mode}
            found.append({**row, "restores": restores, "to": to})
        frame = SimpleNamespace(collect=lambda: found)
        frame.select = frame.where = lambda *_: frame
        return frame

    return SimpleNamespace(sql=sql, asked=asked)


@pytest.fixture
def no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    same: Any = lambda column, _: column
    column = type("C", (), {"__getitem__": same, "alias": same, "eqNullSafe": same})()
    monkeypatch.setattr(history, "F", SimpleNamespace(col=lambda name: column))


def test_the_manifest(store: Store, log: Log) -> None:
    made = target(log, Snapshot(0))
    assert made.manifest() == ""
    store.files[f"{ROOT}/_anonlib/manifest.json"] = "text"
    assert made.manifest() == "text"


def test_commits(store: Store, log: Log, no_columns: None) -> None:
    """Of runs, as their metadata says; others are passed over, even if they name a run that the
    table does not know. Asked anew only after a commit."""
    one, two = json.dumps({"run_id": "one"}), json.dumps({"run_id": "two"})
    foreign, runs = json.dumps({"run_id": "airflow-7"}), (f"{APP}one", f"{APP}two", "airflow-7")
    rows = (3, two, "Append"), (2, "no json", None), (1, "[1]", None), (0, one, None)
    spark = session((4, foreign, None), *rows)
    made = target(log, Snapshot(3, runs), spark)
    assert made.commits() == [Commit(3, "two", "Append", two), Commit(0, "one", None, one)]
    assert [made.version_of(run) for run in ("one", "two", "three")] == [-1, 3, -1]
    assert len(spark.asked) == 1
    log.snapshot = Snapshot(4, runs)
    made.commits()
    assert len(spark.asked) == 2
    assert target(log, Snapshot(-1), spark).commits() == []
    assert len(spark.asked) == 2
    assert len(target(log, Snapshot(0, runs), spark).commits()) == 2


KEEP, CHANGE = [{"commitInfo": {}}], [{"metaData": {}}]
FORM: dict[str, Any] = {
    "run_id": "one",
    "promise_sha256": "5e",
    "software": {"anonlib": "0.1.0"},
    "persons": "counted by unit",
    "persons_kind": "unit",
    "persons_return": True,
    "columns": [
        {"name": "age", "role": "quasi_identifier", "form": "value", "parameters": {}},
        {"name": "ill", "role": "sensitive"},
    ],
    "verdicts": [{"model": "k_anonymity k=4", "holds": True}],
    "rows_released": 9,
    "rows_added": 2,
    "rows_suppressed": "<5",
    "losses": {"ncp": 0.25, "sse": 3, "nllm": None},
}
ONE, TWO = (json.dumps({**FORM, "run_id": run_id}) for run_id in ("one", "two"))


@pytest.mark.parametrize(
    ("later", "standing", "taken_back"),
    [
        ([], ["two", "one"], None),
        ([(2, None, "to 0")], ["one"], (2, 0)),
        ([(2, None, "to 1")], ["two", "one"], None),
        ([(2, TWO, "to 0")], ["one"], (2, 0)),  # whatever the session's commits are marked with
        ([(3, None, "to 1"), (2, None, "to 0")], ["two", "one"], None),
        ([(4, None, "to 2"), (3, None, "to 1"), (2, None, "to 0")], ["one"], (2, 0)),
        ([(3, None, "to 0"), (2, None, "to 0")], ["one"], (3, 0)),
        ([(3, TWO, "Append"), (2, None, "to 0")], ["two", "one"], None),
        ([(2, None, "to")], [], (2, -1)),
    ],
)
def test_what_a_restore_takes_back(
    store: Store, log: Log, no_columns: None, later: Any, standing: Any, taken_back: Any
) -> None:
    spark = session(*later, (1, TWO, "Append"), (0, ONE, "ErrorIfExists"))
    made = target(log, Snapshot(4, (f"{APP}one", f"{APP}two")), spark)
    assert [commit.run_id for commit in made.commits()] == standing
    found = made.taken_back("two")
    assert taken_back == (found and (found[1].version, found[1].to))
    assert found is None or found[0].version == 1
    assert (made.taken_back("one") is None) == ("one" in standing)
    assert made.taken_back("three") is None
    assert [commit.run_id for commit in made.commits(1)] == ["two", "one"]
    assert [commit.run_id for commit in made.commits(0)] == ["one"]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([(1, TWO, "Append"), (0, ONE, "ErrorIfExists")], TWO),
        ([(2, None, "to 0"), (1, TWO, "Append"), (0, ONE, "ErrorIfExists")], ONE),
        ([], "beside"),
        # That beside the table may be the manifest of a run that was taken back.
        ([(2, None, "to 0")], ""),
    ],
)
def test_the_newest_manifest(
    store: Store, log: Log, no_columns: None, rows: Any, wanted: str
) -> None:
    store.files[f"{ROOT}/_anonlib/manifest.json"] = "beside"
    made = target(log, Snapshot(2, (f"{APP}one", f"{APP}two")), session(*rows))
    assert made.newest_manifest() == wanted


def purge_text(version: int) -> str:
    """What the commits of a purge after the run `one` say, which left a version."""
    return mark_purge(Commit(version, "one", "Overwrite", MANIFEST), version)


@pytest.mark.parametrize(
    ("written", "purges", "others", "version"),
    [
        (3, {}, {}, 3),
        (3, {4: 3}, {}, 4),
        (3, {4: 3, 5: 3}, {}, 5),
        (None, {4: 3, 5: 3}, {}, 5),
        (None, {4: 3, 5: 4, 6: 4}, {}, 6),  # the purge was stopped, and begun again
        (3, {5: 3, 6: 3}, {}, 3),  # 4 is of others
        (None, {5: 3, 6: 3}, {}, 3),
        (None, {4: 3, 6: 3}, {}, 4),
        (3, {}, {4: MANIFEST}, 3),  # as purges said it before they had a mark
        (None, {}, {4: MANIFEST, 5: MANIFEST}, -1),
    ],
)
def test_the_version_of_a_run_with_a_purge(
    store: Store,
    log: Log,
    no_columns: None,
    written: int | None,
    purges: dict[int, int],
    others: dict[int, str],
    version: int,
) -> None:
    """Commits of others lie between: what they did is not of the run. All have its manifest."""
    texts = {**{each: purge_text(of) for each, of in purges.items()}, **others}
    rows: list[Any] = [(each, text, None) for each, text in sorted(texts.items(), reverse=True)]
    rows += [] if written is None else [(written, MANIFEST, "Overwrite")]
    made = target(log, Snapshot(6, (f"{APP}one",)), session(*rows))
    assert made.version_of("one") == version
    assert {commit.text for commit in made.commits()} == {MANIFEST}


def test_the_version_of_a_run_that_published(
    store: Store, log: Log, no_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest one that has its rows. What this driver has committed is known without the
    log."""
    text = json.dumps({"run_id": "one"})
    spark = session((1, purge_text(0), None), (0, text, "Overwrite"))
    made = target(log, Snapshot(2, (f"{APP}one",)), spark)
    assert made.published_version("one") == 1
    assert made.published_version("two") is None
    made._made["one"] = 0
    assert made.published_version("one") == 1
    made._made["two"] = 1
    assert made.published_version("two") == 1
    monkeypatch.setattr(Target, "version_of", lambda *_: 1 // 0)
    assert made.published_version("two") == 1
    monkeypatch.setattr(Target, "runs", lambda *_: 1 // 0)
    assert made.published_version("three") is None


def test_the_version_of_a_run_that_the_log_forgot(store: Store, log: Log, no_columns: None) -> None:
    made = target(log, Snapshot(2, (f"{APP}one", f"{APP}two")), session((2, TWO, "Append")))
    assert made.published_version("one") == -1


def test_versions_before_all_runs(store: Store, log: Log, no_columns: None) -> None:
    """The version that a run made is not before it; where runs are not described, none is."""
    runs, rows = (f"{APP}one", f"{APP}two"), [(5, TWO, "Append"), (2, ONE, "Append")]
    made = target(log, Snapshot(5, runs), session(*rows))
    assert [made.is_before_runs(version) for version in (1, 2, 3, 5)] == [True, *[False] * 3]
    assert not target(log, Snapshot(5, runs), session(rows[0])).is_before_runs(1)


def test_rows_that_were_kept_up_to_the_begin_of_the_run(store: Store, log: Log) -> None:
    """What a version's own commit did is not asked, nor what comes after the begin."""
    for version, actions in {2: CHANGE, 3: CHANGE, 4: KEEP, 5: CHANGE}.items():
        lines = "\n".join(map(json.dumps, actions))
        store.files[f"{ROOT}/_delta_log/{version:020}.json"] = lines
    made = target(log, Snapshot(4))
    assert [made.keeps_rows_since(version) for version in (2, 3, 4)] == [False, True, True]


def purge_info(**changes: Any) -> dict[str, Any]:
    """What the first commit of a purge says of itself, with changes."""
    set_retention = {"properties": json.dumps({RETENTION: "interval 0 seconds"})}
    info = {
        "operation": "SET TBLPROPERTIES",
        "operationParameters": set_retention,
        "userMetadata": purge_text(4),
    }
    return {**info, **changes}


UNSET = {"properties": json.dumps([RETENTION]), "ifExists": "true"}
MORE = {"properties": json.dumps({RETENTION: "x", "delta.appendOnly": "true"})}


@pytest.mark.parametrize(
    ("info", "others", "kept"),
    [
        (purge_info(), [], True),
        (purge_info(operation="UNSET TBLPROPERTIES", operationParameters=UNSET), [], True),
        (purge_info(operation="ADD COLUMNS"), [], False),
        (purge_info(operationParameters=MORE), [], False),
        (purge_info(operationParameters={}), [], False),
        (purge_info(operationParameters={"properties": "no json"}), [], False),
        (purge_info(operationParameters=None), [], False),
        (purge_info(userMetadata=MANIFEST), [], False),
        (purge_info(userMetadata=purge_text(4).replace("one", "two")), [], False),
        (purge_info(userMetadata=None), [], False),
        (purge_info(), [{"add": {"path": "new", "dataChange": False}}], False),
        (purge_info(), [{"protocol": {}}], False),
    ],
)
def test_the_commits_of_a_purge(
    store: Store, log: Log, info: dict[str, Any], others: list[dict[str, Any]], kept: bool
) -> None:
    """They change a property of the table, and nothing else."""
    made = target(log, Snapshot(4, (f"{APP}one",)))
    log.snapshot = Snapshot(5, (f"{APP}one",))
    actions = [{"commitInfo": info}, {"metaData": {}}, *others]
    store.files[f"{ROOT}/_delta_log/{5:020}.json"] = "\n".join(map(json.dumps, actions))
    assert made.keeps_rows_since(3) is False  # its commit is not there
    with nullcontext() if kept else pytest.raises(BusyError):
        made.require_unchanged()


A, B, C = ({"path": name, "dataChange": True} for name in "abc")
SAME = {"dataChange": False}
ADD_A, ADD_B, DROP_A, DROP_B = {"add": A}, {"add": B}, {"remove": A}, {"remove": B}
DELETED = {**A, "deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "offset": 1}}


@pytest.mark.parametrize(
    ("first", "commits", "to"),
    [
        (0, [[ADD_A], [ADD_B], [DROP_B]], 0),
        (0, [[ADD_A], [ADD_B], []], 1),
        (
            0,
            [[ADD_A], [ADD_B], [{"metaData": {}}], [DROP_A, {"add": C}], [{"remove": C}, ADD_A]],
            2,
        ),
        (0, [[ADD_A], [DROP_A, {"add": DELETED}], [{"remove": DELETED}, ADD_A]], 0),
        (0, [[ADD_A], [DROP_A, {"add": DELETED}], [ADD_B], [DROP_B]], 1),
        # Added once more, with other figures on it.
        (0, [[ADD_A], [ADD_B], [{"add": {**B, **SAME}}], [DROP_B]], 0),
        (0, [[ADD_A], [{"add": C}]], -1),
        # The log has been cleaned up.
        (5, [[ADD_B], [DROP_A], [ADD_A, DROP_B]], 4),
        (5, [[ADD_B], [DROP_B, {"add": {**C, **SAME}}], [{"remove": C}, ADD_B]], -1),
        (7, [], -1),
    ],
)
def test_what_a_restore_to_a_time_gave_back(
    store: Store, log: Log, no_columns: None, first: int, commits: Any, to: int
) -> None:
    """The files tell, whatever the times and their zones."""
    for version, actions in enumerate(commits, first):
        lines = "\n".join(map(json.dumps, [{"commitInfo": {}}, *actions]))
        store.files[f"{ROOT}/_delta_log/{version:020}.json"] = lines
    newest = first + len(commits) - 1
    made = target(
        log, Snapshot(newest, (f"{APP}one",)), session((newest, None, "to"), (0, ONE, ""))
    )
    found = made.taken_back("one")
    assert (found is None) == (to >= 0)
    assert find_restored(cast(Any, store), ROOT, newest) == to


@pytest.mark.parametrize(
    ("rows", "commits", "kept"),
    [
        ([], {1: KEEP}, (True, True)),
        ([(1, TWO, "Append")], {1: CHANGE}, (False, True)),
        ([(1, TWO, "Overwrite")], {1: CHANGE}, (False, False)),
        ([(1, TWO, "Append")], {1: CHANGE, 2: CHANGE}, (False, False)),
        ([(3, None, "to 1"), (1, TWO, "Append")], {1: CHANGE, 2: CHANGE, 3: CHANGE}, (False, True)),
    ],
)
def test_rows_of_a_run_that_are_still_there(
    store: Store, log: Log, no_columns: None, rows: Any, commits: Any, kept: Any
) -> None:
    """With those of later batches, or alone."""
    for each, actions in commits.items():
        lines = "\n".join(map(json.dumps, actions))
        store.files[f"{ROOT}/_delta_log/{each:020}.json"] = lines
    runs = (f"{APP}one", f"{APP}two")
    made = target(log, Snapshot(max(commits), runs), session(*rows, (0, ONE, "ErrorIfExists")))
    assert (made.is_as_left(0), made.is_as_left(0, with_batches=True)) == kept


def test_values_in_a_log_may_have_any_end_of_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    stats = json.dumps({"minValues": {"city": "K\u2028ln\x85\u2029"}}, ensure_ascii=False)
    lines = [{"add": {"path": "a", "stats": stats}}, {"commitInfo": {}}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
    (folder / f"{0:020}.json").write_text(text, "utf-8")
    disk = cast(Any, Disk(tmp_path))
    assert read_actions(disk, disk.root, 0) == [pair for each in lines for pair in each.items()]
    assert find_damage(disk) is None
