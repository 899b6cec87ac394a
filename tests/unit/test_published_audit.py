"""What is known of published rows without reading them, and what puts it in doubt."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.auditing.report import AuditReport, Verdict
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.t_closeness import TCloseness
from anonlib.run.history import Commit
from anonlib.run.promise import DECLARED, Promise
from anonlib.run.published_audit import PublishedAudit, find_published_audit
from anonlib.table.table_digest import Digest

ROOT, RECORDS = "file:/out/people", "file:/out/people.private"
PROMISE = Promise(
    models=(KAnonymity(k=3), LDiversity(l=2, attribute="ill")),
    controllers={},
    columns={"age": "quasi_identifier centroid", "ill": "sensitive"},
    persons=DECLARED,
    joint=False,
    tokens=(),
)
VERDICTS = (Verdict("k_anonymity k=3", True, 3, 3, 0, ()),)
REPORT = AuditReport(30, 8, VERDICTS, (), ((3, 2), (4, 6)), "none")
DIGEST = Digest(30, 5, 7)
RECORD: dict[str, Any] = {
    "outcome": "published",
    "table": ROOT,
    "table_version": 4,
    "promise": PROMISE.to_dict(),
    "table_digest": DIGEST.text,
    "audit": REPORT.to_dict(),
}


def known(
    record: Any = RECORD,
    promise: Promise = PROMISE,
    *,
    n_commits: int = 2,
    n_rows: int = 30,
    keeps_rows: bool = True,
    **manifest: Any,
) -> PublishedAudit | None:
    """What is known of a table whose newest run has this record; None without one."""
    commits = [
        Commit(4, "two", "Append", json.dumps(manifest)),
        Commit(1, "one", "ErrorIfExists", "{}"),
    ]
    asked: list[int] = []

    def keeps_rows_since(version: int) -> bool:
        asked.append(version)
        return keeps_rows

    target: Any = SimpleNamespace(
        path=ROOT,
        commits=lambda: commits[:n_commits],
        version_of={"two": 4}.__getitem__,
        keeps_rows_since=keeps_rows_since,
    )
    text = record if isinstance(record, str) else json.dumps(record)
    files = {} if record is None else {f"{RECORDS}/two.json": text}
    records: Any = SimpleNamespace(root=RECORDS, exists=files.__contains__, read=files.__getitem__)
    found = find_published_audit(promise, target, records, n_rows)
    assert asked in ([], [4])
    return found


def test_what_is_known() -> None:
    trees = {"city": {"names": ["a", None, "b"]}}
    found = known(hierarchies=trees)
    assert found == PublishedAudit("two", REPORT, DIGEST, {"city": frozenset({0, 2})})
    assert known() == PublishedAudit("two", REPORT, DIGEST, {})


@pytest.mark.parametrize(
    "change",
    [
        {"table_version": 1},
        {"table": "/out/elsewhere"},
        {"outcome": "stopped"},
        {"audit": {"passed": True}},
        {"audit": []},
        {"table_digest": "30:5"},
        {"table_digest": None},
        {"promise": {}},
        {"promise": replace(PROMISE, models=(KAnonymity(k=3),)).to_dict()},
    ],
    ids=str,
)
def test_records_in_doubt(change: dict[str, Any]) -> None:
    assert known({**RECORD, **change}) is None


@pytest.mark.parametrize("name", RECORD)
def test_records_that_lack_something(name: str) -> None:
    assert known({key: value for key, value in RECORD.items() if key != name}) is None


@pytest.mark.parametrize("record", [None, "", "no JSON", "[]", "1"])
def test_no_record(record: str | None) -> None:
    assert known(record) is None


def test_rows_in_doubt() -> None:
    assert known(keeps_rows=False) is None
    assert known(n_commits=0) is None
    assert known(n_rows=29) is None
    assert known({**RECORD, "audit": replace(REPORT, n_rows=31).to_dict()}, n_rows=31) is None


@pytest.mark.parametrize(
    "change",
    [
        {"models": (*PROMISE.models, KAnonymity(k=4))},  # stronger: nobody has looked
        {"models": (KAnonymity(k=2),)},
        {"exempt": ("note",)},
        {"joint": True},
    ],
    ids=str,
)
def test_other_promises(change: dict[str, Any]) -> None:
    assert known(promise=replace(PROMISE, **change)) is None


@pytest.mark.parametrize(
    "model",
    [
        BetaLikeness(beta=1.0, attribute="ill"),
        TCloseness(t=0.3, attribute="ill"),
        TCloseness(t=0.3, attribute="ill", distance="ordered"),
        TCloseness(t=0.3, attribute="ill", distance="hierarchical"),
    ],
)
def test_models_that_other_rows_change(model: Any) -> None:
    promise = replace(PROMISE, models=(*PROMISE.models, model))
    assert known({**RECORD, "promise": promise.to_dict()}, promise) is None
