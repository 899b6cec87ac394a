"""The audit in memory by models of other packages: what is wrong with them fails closed."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from anonlib import registry
from anonlib.auditing import audit_in_memory
from anonlib.auditing.class_counts import ClassCounts
from anonlib.auditing.models import AuditModel, Judgement, UnverifiableError
from anonlib.auditing.models.k_anonymity import KAnonymityAudit
from anonlib.privacy.k_anonymity import KAnonymity
from tests.support import audit_spec


class Foreign(AuditModel):
    """A model for Spark only."""

    type: ClassVar[str] = "k_anonymity"
    k: int = 2
    required: ClassVar[float] = 0  # type: ignore[misc]

    def judge(self, view: Any, part: Any) -> Judgement:
        raise AssertionError


class Inherited(KAnonymityAudit):
    """It changes what decides in Spark, but measures as before in memory."""

    def judge(self, view: Any, part: Any) -> Judgement:
        raise AssertionError


class Short(Foreign):
    def measure(self, counts: ClassCounts) -> Any:
        return 7


class Texts(Foreign):
    def measure(self, counts: ClassCounts) -> Any:
        return counts.n_rows.astype(str)


class OneForAll(Foreign):
    """Its threshold gives one answer for all classes."""

    answer: ClassVar[Any] = True

    def holds(self, value: Any) -> Any:
        return self.answer

    def measure(self, counts: ClassCounts) -> Any:
        return counts.n_rows


class OneOfOne(OneForAll):
    answer: ClassVar[Any] = np.ones(1, np.bool_)


class Ones(OneForAll):
    def holds(self, value: Any) -> Any:
        return np.ones(len(value), np.int64)

    def measure(self, counts: ClassCounts) -> Any:
        return counts.n_rows


class Unable(Foreign):
    def measure(self, counts: ClassCounts) -> Any:
        raise UnverifiableError("there is no moon")


class Lax(Foreign):
    """Its threshold takes what has no value."""

    def holds(self, value: Any) -> Any:
        return ~(value > 1e9)

    def measure(self, counts: ClassCounts) -> Any:
        return np.where(counts.n_rows == 2, np.nan, 1.0)


@pytest.mark.parametrize(
    ("model", "note", "failing"),
    [
        (Foreign, "k_anonymity has no `measure` of its own", 0),
        (Inherited, "k_anonymity has no `measure` of its own", 0),
        (Short, "the `measure` of k_anonymity gives no value for each class", 0),
        (Texts, "the `measure` of k_anonymity gives no value for each class", 0),
        (OneForAll, "the `holds` of k_anonymity gives no truth value for each class", 0),
        (OneOfOne, "the `holds` of k_anonymity gives no truth value for each class", 0),
        (Ones, "the `holds` of k_anonymity gives no truth value for each class", 0),
        (Unable, "there is no moon", 0),
        (Lax, "", 1),
    ],
)
def test_foreign_models_fail_closed(
    monkeypatch: pytest.MonkeyPatch, model: type[AuditModel], note: str, failing: int
) -> None:
    monkeypatch.setattr(registry, "build", lambda family, spec: model(k=2))
    for persons in ("rows", "unknown"):
        spec = audit_spec(
            columns=("q",), quasi_identifiers=("q",), models=(KAnonymity(k=2),), persons=persons
        )
        (verdict,) = audit_in_memory(pa.table({"q": [1, 1, 1, 2, 2]}), spec).verdicts
        assert not verdict.holds
        # What fails by rows need not fail by persons, unless the model says so.
        assert verdict.n_failing == (failing if persons == "rows" else 0)
        if persons == "rows":
            assert verdict.note.startswith(note)
            assert not verdict.at_release
