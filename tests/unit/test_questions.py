"""`anonlib init --ask`: questions in the terminal, and the draft that their answers make."""

from pathlib import Path

import pytest

from anonlib.cli.questions import ask_all
from anonlib.config.reading import load
from anonlib.guesses.draft import Draft, TableProfile, format_draft, make_draft
from anonlib.guesses.guess import ColumnProfile

N = 1_000
COLUMNS = (
    ColumnProfile("customer_id", "bigint", N, N, unique=True),
    ColumnProfile("mail", "string", N, 300, kind="e-mail addresses"),
    ColumnProfile("age", "int", N, 80),
    ColumnProfile("city", "string", N, 20),
)


def answered(*answers: str) -> tuple[Draft, list[str]]:
    draft = make_draft(TableProfile("csv", "in/people.csv", None, N, N, COLUMNS))
    left, lines = list(answers), []

    def ask(question: str) -> str:
        lines.append(question)
        return f"{left.pop(0)}\n"

    found = ask_all(draft, ask, lines.append)
    assert left == []
    return found, lines


def test_enter_takes_every_guess(tmp_path: Path) -> None:
    plain = make_draft(TableProfile("csv", "in/people.csv", None, N, N, COLUMNS))
    found, lines = answered(*[""] * 8)
    assert found.guesses == plain.guesses
    assert found.persons.unit == plain.persons.unit == ("mail",)
    assert found.review == ["gates", "release.path"]
    assert "role [i]: " in lines
    assert "scale (c continuous, n nominal, o ordinal) [c]: " in lines
    assert "person [mail]: " in lines


def test_answers(tmp_path: Path) -> None:
    found, lines = answered("", "d", "q", "o", "x", "s", "customer_id", "1", "25")
    (tmp_path / "c.yaml").write_text(format_draft(found, Path()))
    config = load(tmp_path / "c.yaml")
    roles = {name: str(attribute.role) for name, attribute in config.attributes.items()}
    assert roles == {
        "customer_id": "identifier",
        "mail": "drop",
        "age": "quasi_identifier",
        "city": "sensitive",
    }
    assert config.attributes["age"].scale == "ordinal"
    assert config.one_row_per_person == "customer_id"
    assert config.k == 25
    assert [gate.at_most for gate in config.gates] == [0.24]
    assert config.review == ("gates", "release.path")
    assert [line for line in lines if "to leave it for later" in line] == [
        "one of i, q, s, t, n, d, or ? to leave it for later",
        "a whole number, at least 2, or ? to leave it for later",
    ]


def test_later() -> None:
    found, _ = answered("", "?", "q", "?", "?", "?", "?")
    assert found.review == [
        *("attributes.mail", "attributes.age", "attributes.city", "unit", "privacy.models"),
        *("gates", "release.path"),
    ]


def test_each_row_is_another_person() -> None:
    found, _ = answered("", "", "", "", "", "", "-", "")
    assert "\none_row_per_person: true\n" in format_draft(found, Path())
    assert "Nothing unique" not in format_draft(found, Path())
    # a column that is released can't count persons
    found, _ = answered("", "q", "n", "", "", "", "", "?", "")
    assert (found.persons.unit, found.persons.column) == ((), None)
    assert "one_row_per_person" in found.review


def test_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from anonlib.cli import main

    assert main(["init", "people.csv", "--ask"]) == 2
    assert "--ask: needs a terminal, and stdin is not one" in capsys.readouterr().err
