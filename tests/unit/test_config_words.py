"""Who answers for a release: words that say something."""

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
