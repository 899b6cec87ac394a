"""Which version of a table is a run's: what a purge commits after it, what others commit."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from anonlib.errors import BusyError
from anonlib.run.publish import APP, RETENTION, Commit, Target, mark_purge
from tests.unit import test_target
from tests.unit.test_target import ROOT, Log, Snapshot, Store, history, target

store, log, no_columns = test_target.store, test_target.log, test_target.no_columns

MANIFEST = json.dumps({"run_id": "one", "é": 0.1}, indent=2, ensure_ascii=False)


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
    made = target(log, Snapshot(6, (f"{APP}one",)), history(*rows))
    assert made.version_of("one") == version
    assert {commit.text for commit in made.commits()} == {MANIFEST}


def test_the_version_of_a_run_that_published(
    store: Store, log: Log, no_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest one that has its rows. What this driver has committed is known without the
    log."""
    text = json.dumps({"run_id": "one"})
    spark = history((1, purge_text(0), None), (0, text, "Overwrite"))
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
