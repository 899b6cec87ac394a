"""What the report of an audit derives from its verdicts and class sizes."""

import pytest

from anonlib.auditing.report import (
    EACH_CONTROLLER,
    AuditReport,
    Verdict,
    list_worst,
    rate_risk,
    rate_sizes,
)
from anonlib.errors import AuditError


def verdict(model: str, value: float | None, required: float, *, holds: bool = True) -> Verdict:
    return Verdict(model, holds, value, required, 0 if holds else 2, () if holds else (1, 3))


def report(*verdicts: Verdict) -> AuditReport:
    return AuditReport(10, 2, verdicts, (), ((4, 1), (6, 1)), "none")


K4, L2 = verdict("k_anonymity k=4", 4, 4), verdict("l_diversity s l=2", 2, 2)


@pytest.mark.parametrize(
    ("verdicts", "smallest"),
    [
        ((), None),
        ((L2,), None),
        ((L2, K4), 4),
        ((K4, verdict(f"{EACH_CONTROLLER}: k_anonymity k=3", 3, 3)), 3),
        ((verdict("k_anonymity k=5", None, 5),), 5),  # it holds: so no class has fewer
        ((verdict("k_anonymity k=5", None, 5, holds=False), K4), None),
        ((verdict("k_anonymity k=5", 3, 5, holds=False),), 3),
    ],
)
def test_the_smallest_class(verdicts: tuple[Verdict, ...], smallest: int | None) -> None:
    assert report(*verdicts).smallest_class == smallest


def test_whether_the_smallest_class_is_exact() -> None:
    bound = Verdict("k_anonymity k=4", True, 4, 4, 0, (), exact=False)
    inexact = Verdict("l_diversity s l=2", True, 2, 2, 0, (), exact=False)
    assert report(K4, inexact).knows_smallest is True
    assert report(K4, bound).knows_smallest is False


def test_the_whole_table() -> None:
    """Names of columns can begin as parts of the table do."""
    named = verdict(f"l_diversity of {EACH_CONTROLLER}: x l=2", 2, 2)
    parts = verdict(f"{EACH_CONTROLLER}: k_anonymity k=4", 4, 4)
    assert report(K4, parts, named).of_whole.verdicts == (K4, named)


def test_advice_is_given_where_a_model_fails() -> None:
    report(K4).require_passed("the audit", "merge cells")
    failing = report(K4, verdict("l_diversity s l=2", 1, 2, holds=False))
    with pytest.raises(AuditError, match=r"l_diversity s l=2: 2 classes fail; merge cells$"):
        failing.require_passed("the audit", "merge cells")
    with pytest.raises(AuditError, match=r"nothing was released: $"):
        report().require_passed("the audit", "merge cells")


def test_the_smallest_failing_classes() -> None:
    """The first size is exact; others above 1024 are rounded down."""
    worst = Verdict("k_anonymity", False, 1, 4, 3, (1500, 1024, 2048))
    assert list_worst(worst) == "1,500, 1,024, at least 2,048"


def test_the_chances_to_be_found() -> None:
    """Of 3 classes of 2 rows, 2 of 11, 1 of 12: 1/11 is above 0.09, 1/12 is not."""
    rows = [2] * 3 + [11] * 2 + [12]
    chances = [1 / size for size in rows for _ in range(size)]
    found = rate_risk(((2, 3), (11, 2), (12, 1)), 6, sum(rows))
    assert found == {
        "prosecutor_max": max(chances),
        "marketer": pytest.approx(sum(chances) / len(chances)),
        "prosecutor_at_risk": sum(chance > 0.09 for chance in chances) / len(chances),
    }
    assert rate_sizes({2: 3, 11: 2, 12: 1}, 2) == found


def test_chances_where_less_is_known() -> None:
    """Rows that are no persons have no sizes; without a model on persons nothing is told."""
    assert rate_sizes({}, 4) == {"prosecutor_max": 0.25}
    assert rate_sizes({2: 3}, 0) == rate_sizes({}, 0) == {}
