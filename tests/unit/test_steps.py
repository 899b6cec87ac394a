"""One run, without Spark: what it knows of the table that it leaves."""

from types import SimpleNamespace
from typing import Any

import pytest

from anonlib import auditing
from anonlib.auditing import AuditReport, Verdict
from anonlib.errors import AuditError
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.run.steps import Run
from tests.support import audit_spec


def test_the_account_has_the_audit_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the table, not that of the batch, which passed."""
    holding, failing = Verdict("k", True, 5, 5, 0, ()), Verdict("k", False, 4, 5, 1, (4,))
    batch, of_table = (
        AuditReport(n, 1, (verdict,), (), ((n, 1),), "none")
        for n, verdict in ((5, holding), (9, failing))
    )
    monkeypatch.setattr(auditing, "audit_table", lambda *_: of_table)
    none: Any = None
    made: Any = Run(none, none, none, none, none, b"", none, none)
    made.account = SimpleNamespace(report=batch)
    made.prior = SimpleNamespace(known=None, n_rows=4, persons_return=False)
    table: Any = "table"
    with pytest.raises(AuditError, match="the audit of the table with the batch failed"):
        made._audit_table(table, None, audit_spec(("a",), ("a",), (KAnonymity(k=5),)), batch)
    assert made.account.report is of_table
