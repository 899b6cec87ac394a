"""The identity of a person: one text, whatever the ways to write it."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.source.identity import is_folded, is_known_equality
from anonlib.text import fold_text, identify, show

ONE = [
    "Ana \u00c9lan",
    "Ana E\u0301lan",
    " Ana \u00c9lan\t",
    "\u3000Ana \u00c9lan\u00a0",
    "Ana \u00c9lan\n",
    "\ufeffA\u200bna \u00c9l\u00adan\u200f",
    "Ana E\u200d\u0301lan\x00",
]


def test_one_person() -> None:
    assert {identify(text, folded=False) for text in ONE} == {"Ana \u00c9lan"}
    upper = [text.upper() for text in ONE]
    assert {identify(text, folded=True) for text in [*ONE, *upper]} == {"ana \u00e9lan"}


@pytest.mark.parametrize("other", ["ana \u00c9lan", "Ana  \u00c9lan", "Ana Elan", "Ana\u00c9lan"])
def test_other_persons(other: str) -> None:
    assert identify(other, folded=False) != identify(ONE[0], folded=False)


def test_long_texts_are_not_looked_at_character_by_character() -> None:
    n_calls = 0

    def count(*_: object) -> None:
        nonlocal n_calls
        n_calls += 1

    for text in ("word \t7 " * 2_000, "\u00c9lan\u200b \u2800" * 2_000):
        identify(text, folded=True)
        n_calls = 0
        sys.setprofile(count)
        try:
            identify(text, folded=True)
        finally:
            sys.setprofile(None)
        assert n_calls < 100


@given(st.text())
def test_what_has_a_picture_is_shown(text: str) -> None:
    kept = [c for c in text if c.isspace() or fold_text(f"a{c}a") != "aa"]
    assert show(text) == "".join(kept)


@given(st.text(), st.booleans())
def test_identity_of_an_identity(text: str, folded: bool) -> None:
    found = identify(text, folded=folded)
    assert identify(found, folded=False) == found


@pytest.mark.parametrize(
    ("type", "known", "folded"),
    [
        ("string", True, False),
        ("string collate UTF8_BINARY", True, False),
        ("string collate UTF8_LCASE", True, True),
        ("string collate UNICODE_RTRIM", True, False),
        ("string collate UNICODE_CI_RTRIM", True, True),
        ("string collate UNICODE_AI", False, False),
        ("string collate de_CI", False, False),
        ("int", True, False),
    ],
)
def test_collations(type: str, known: bool, folded: bool) -> None:
    assert is_known_equality(type) is known
    assert is_folded(type, fold_case=False) is folded
    assert is_folded(type, fold_case=True) is (known and type != "int")
