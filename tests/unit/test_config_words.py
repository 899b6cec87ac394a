"""Who answers for a release: words that say something."""

from datetime import date

import pytest

from anonlib.config.reading import parse
from tests.unit.test_config import GOOD, problems

BLANK = ["", " ", "\t\n", "\u200b", "\u00a0\u2060", "\ufeff", "\u202e", "\u2800", "--", "."]


@pytest.mark.parametrize("text", BLANK)
def test_blank_words_answer_for_nothing(text: str) -> None:
    for field, value in (("approver", text), ("purpose", text), ("recipients", ["us", text])):
        found = problems({**GOOD, "accountability": {field: value}})
        ((where, said),) = found.items()
        assert where == f"accountability.{field}" + (".1" if field == "recipients" else "")
        assert "letters or digits" in said or "at least 1 character" in said


def test_words_are_kept_without_what_nobody_sees() -> None:
    given = {"approver": " \u200bdata office\ufeff\n", "recipients": ["\tus", "2"]}
    words = parse({**GOOD, "accountability": given}).accountability
    assert (words.approver, words.recipients) == ("data office", ("us", "2"))


def test_the_context_of_a_release() -> None:
    given = {
        "data": "adults",
        "recipient": "a university",
        "access": "contract",
        "expires": "2027-11-30",
    }
    context = parse({**GOOD, "context": {**given, "may_know": ["age"]}}).context
    assert context.expires == date(2027, 11, 30)
    assert context.model_dump(mode="json") == {**given, "may_know": ["age"]}
    wrong = {"access": "all", "expires": "30.11.2027", "may_know": ["agee"], "until": 1}
    found = problems({**GOOD, "context": wrong})
    assert found["context.expires"] == "must be a date such as 2027-11-30"
    assert {"context.access", "context.until"} <= found.keys()
    assert problems({**GOOD, "context": {"expires": 20271130}}).keys() == {"context.expires"}
    found = problems({**GOOD, "context": {"may_know": ["agee"]}})
    assert found == {"context.may_know.0": "no column agee under `attributes`; did you mean age?"}


@pytest.mark.parametrize(
    ("role", "joint", "counted"),
    [
        ("quasi_identifier", False, True),
        ("drop", False, True),  # it is not released
        ("insensitive", False, False),
        ("sensitive", False, False),
        ("sensitive", True, True),
    ],
)
def test_what_attackers_know_must_be_counted(role: str, *, joint: bool, counted: bool) -> None:
    scale = {"scale": "nominal"} if role == "quasi_identifier" else {}
    attributes = {
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "illness": {"role": "sensitive"},
        "job": {"role": role, **scale},
    }
    models = [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]
    raw = {
        **GOOD,
        "attributes": attributes,
        "one_row_per_person": True,
        "privacy": {"models": models, "joint": joint},
        "context": {"may_know": ["age", "job"]},
    }
    if counted:
        assert parse(raw).context.may_know == ("age", "job")
    else:
        assert [*problems(raw)] == ["context.may_know.1"]
