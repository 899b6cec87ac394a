"""One run, without Spark: what it knows of the table that it leaves."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib import auditing
from anonlib.auditing import AuditReport, Verdict
from anonlib.errors import AuditError
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.run.steps import Run
from tests.support import audit_spec
from tests.unit.test_history import FORM


def run(manifest: dict[str, Any], **release: Any) -> Run:
    """A run to a table with this manifest."""
    given: Any = SimpleNamespace(
        release=SimpleNamespace(**{"mode": "append", "acknowledge_returning": False, **release})
    )
    target: Any = SimpleNamespace(newest_manifest=lambda: json.dumps(manifest))
    none: Any = None
    return Run(none, given, none, none, target, b"", none, none)


@pytest.mark.parametrize(
    ("manifest", "release", "persons_return"),
    [
        ({**FORM, "persons_return": False}, {}, False),
        ({**FORM, "persons_return": False}, {"acknowledge_returning": True}, True),
        # An earlier run had accepted it: its rows are still there.
        ({**FORM, "persons_return": True}, {}, True),
        ({**FORM, "persons_return": True}, {"mode": "overwrite"}, False),
        # Damaged: nobody knows.
        ({"persons_return": False}, {}, True),
    ],
)
def test_persons_may_be_in_several_batches(
    manifest: dict[str, Any], release: dict[str, Any], persons_return: bool
) -> None:
    assert run(manifest, **release).persons_return is persons_return


def test_the_account_has_the_audit_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the table, not that of the batch, which passed."""
    holding, failing = Verdict("k", True, 5, 5, 0, ()), Verdict("k", False, 4, 5, 1, (4,))
    batch, of_table = (
        AuditReport(n, 1, (verdict,), (), ((n, 1),), "none")
        for n, verdict in ((5, holding), (9, failing))
    )
    monkeypatch.setattr(auditing, "audit_table", lambda *_: of_table)
    made: Any = run({})
    made.account = SimpleNamespace(report=batch)
    made.prior = SimpleNamespace(known=None, n_rows=4)
    table: Any = "table"
    with pytest.raises(AuditError, match="the audit of the table with the batch failed"):
        made._audit_table(table, audit_spec(("a",), ("a",), (KAnonymity(k=5),)), batch)
    assert made.account.report is of_table
