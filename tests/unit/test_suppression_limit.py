"""No more rows are suppressed than the config allows, to the row; none are lost or invented."""

from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.config.model import PrivacySection
from anonlib.errors import AuditError
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.run.staged_audit import require_audited


def privacy(limit: float) -> PrivacySection:
    return PrivacySection(models=(KAnonymity(k=2),), suppression_limit=limit)


@pytest.mark.parametrize(
    ("limit", "n_rows", "most"),
    [(0.0, 1000, 0), (0.1, 100, 10), (0.1, 99, 9), (0.5, 1, 0), (0.29, 100, 29), (0.57, 100, 57)],
)
def test_the_most_rows(limit: float, n_rows: int, most: int) -> None:
    assert privacy(limit).may_suppress(n_rows) == most


def counts(kept: int, *, audited: int | None = None, made: int = 100, planned: int = 100) -> Any:
    audited = kept if audited is None else audited
    return (
        SimpleNamespace(require_passed=lambda *_: None, n_rows=audited),
        SimpleNamespace(digest=SimpleNamespace(n_rows=kept), n_rows=made),
        SimpleNamespace(n_rows=planned),
        SimpleNamespace(n_rows=100),
    )


@pytest.mark.parametrize("kept", [100, 91, 90])
def test_within_the_limit(kept: int) -> None:
    require_audited(*counts(kept), privacy(0.1))


@pytest.mark.parametrize(
    "found",
    [
        counts(89),
        counts(101),
        counts(100, audited=99),
        counts(100, made=99),
        counts(100, planned=101),
    ],
)
def test_beyond_it(found: Any) -> None:
    with pytest.raises(AuditError, match="rows don't add up, nothing was published: 100 scanned"):
        require_audited(*found, privacy(0.1))
