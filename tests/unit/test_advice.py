"""Notes on tables in hand: what `anonlib init` would ask of their columns."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonlib
from anonlib.errors import InfeasibleError


def test_what_init_would_ask_is_told() -> None:
    """Numbers far from the others, and a number of its own in every row, whatever their role."""
    random = np.random.default_rng(1)
    n = 2000
    table = pd.DataFrame(
        {
            "age": random.integers(20, 60, n),
            "score": np.where(random.random(n) < 0.05, 9999, random.integers(1, 60, n)),
            "nr": random.permutation(n) + 100_000,
            "pulse": np.where(random.random(n) < 0.05, 999, random.integers(50, 90, n)),
            "until": np.where(random.random(n) < 0.05, date(9999, 12, 31), date(2021, 5, 1)),
        }
    )
    notes = anonlib.anonymize(
        table,
        quasi_identifiers=["age", "score", "until"],
        sensitive=["nr", "pulse"],
        one_row_per_person=True,
        k=5,
        l=2,
    ).notes
    assert "column score: does 9999 mean missing? Then make it null" in notes
    end = "column until: does 9999-12-31 mean missing, or no end? Then make it null"
    assert end in notes
    assert "column pulse: does 999 mean missing? Then make it null" in notes
    assert (
        "column nr: every row has a whole number of its own; it is published as it is: if it is an "
        "identifier, name it in `identifiers`"
    ) in notes
    assert not any("column age" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Kundennummer", "as persons do"),
        ("K", "and 2 other columns follow from it"),
    ],
)
def test_a_key_of_persons_that_repeats_is_asked_about(name: str, why: str) -> None:
    """Whatever its name, where each row is said to be another person; not where a unit is named."""
    random = np.random.default_rng(1)
    of_person = random.integers(0, 200, 600)
    table = pd.DataFrame(
        {
            name: of_person + 1000,
            "sex": random.integers(0, 2, 200)[of_person],
            "town": random.integers(0, 9, 200)[of_person],
            "visit": random.integers(0, 50, 600),
        }
    )

    def notes(**persons: object) -> str:
        found = anonlib.anonymize(table, quasi_identifiers=[*table], k=5, **persons)
        return "\n".join(found.notes)

    told = f"column {name}: repeats, {why}; if it stands for a person who has several rows"
    assert told in notes(one_row_per_person=True)
    plain = table.assign(**{name: np.arange(600) // 2 % 7})
    found = anonlib.anonymize(plain, quasi_identifiers=[*plain], k=5, one_row_per_person=True)
    assert "name it in `unit`" not in "\n".join(found.notes)


@pytest.mark.parametrize("name", ["patient_id", "Patientennummer", "id"])
def test_an_identifier_of_persons_that_repeats_is_told(name: str) -> None:
    """Wherever rows count as persons: by arguments, a config, a column that is checked; in notes,
    the record, the report and the certificate."""
    random = np.random.default_rng(1)
    of_person = random.integers(0, 60, 600)
    table = pd.DataFrame(
        {
            name: [f"P{i:04d}" for i in of_person],
            "visit": random.permutation(600) + 1000,
            "age": random.integers(18, 90, 60)[of_person],
        }
    )
    told = (
        f"column {name}: each row counts as another person, but values repeat: 60 values in 600 "
        "rows; if they stand for persons, name the column in `unit`: else classes of k rows may be "
        "of fewer persons"
    )
    columns: dict[str, list[str]] = {"identifiers": [name, "visit"], "quasi_identifiers": ["age"]}
    release = anonlib.anonymize(table, **columns, k=5, one_row_per_person=True)
    assert [*release.notes].count(told) == 1
    assert not any("name it in `unit`" in note for note in release.notes if note != told)
    assert f"Each row counts as another person, but {name} repeats." in release.report()
    again = anonlib.anonymize(table, release.config)
    assert told in again.notes
    assert again.record["content"]["repetitions"] == [
        {"column": name, "n_values": 60, "n_rows": 600}
    ]
    checked = anonlib.anonymize(table, **columns, k=5, one_row_per_person="visit")
    assert told in checked.notes
    by_person = anonlib.anonymize(table, quasi_identifiers=["age"], k=5, unit=[name])
    assert told not in by_person.notes
    unique = table.assign(**{name: table["visit"]})
    found = anonlib.anonymize(unique, **columns, k=5, one_row_per_person=True)
    assert not any("repeats" in note for note in found.notes)


@pytest.mark.parametrize("persons", [True, "member_id"])
def test_identifiers_that_differ_in_case_do_not_repeat(persons: bool | str) -> None:
    """They are of two persons, as the run itself has checked; unless the config folds case."""
    ids = [a + b + c for a in "abcdeABCDE" for b in "abcdeABCDE" for c in "012345"]
    random = np.random.default_rng(1)
    table = pd.DataFrame({"member_id": ids, "age": random.integers(18, 90, len(ids))})
    columns: dict[str, Any] = {"identifiers": ["member_id"], "quasi_identifiers": ["age"], "k": 5}
    release = anonlib.anonymize(table, **columns, one_row_per_person=persons)
    assert not any("repeat" in note for note in release.notes)
    assert release.record["content"]["repetitions"] == []
    if persons is True:
        folded = anonlib.anonymize(
            table, **columns, one_row_per_person=True, person={"fold_case": True}
        )
        assert any("values repeat: 150 values in 600 rows" in note for note in folded.notes)


@pytest.mark.parametrize("kind", ["text", "numbers", "mails", "unsigned"])
def test_an_identifier_that_persons_follow_from_is_asked_about(kind: str) -> None:
    """Whatever its name: by the columns that follow from it, and by its texts."""
    random = np.random.default_rng(1)
    of_person = random.integers(0, 200, 600)
    values = {
        "text": [f"x{i}" for i in of_person],
        "numbers": of_person + 1000,
        "mails": [f"ana{i}@example.org" for i in of_person],
        "unsigned": of_person.astype(np.uint64) + np.uint64(2**63),
    }
    table = pd.DataFrame(
        {
            "K": values[kind],
            "sex": random.integers(0, 2, 200)[of_person],
            "town": random.integers(0, 9, 200)[of_person],
            "visit": random.integers(0, 50, 600),
        }
    )
    found = anonlib.anonymize(
        table,
        identifiers=["K"],
        quasi_identifiers=["sex", "town", "visit"],
        k=5,
        one_row_per_person=True,
    )
    asked = any(note.startswith("column K: repeats, ") for note in found.notes)
    assert asked is (kind != "unsigned")  # Spark has no type for that one


def test_a_key_can_be_protected_by_l() -> None:
    """The text for a column that is a key names the argument, unless the models are given."""
    table = pd.DataFrame({"age": np.arange(60) % 9, "wage": np.arange(60) * 17})
    asked = {"quasi_identifiers": ["age"], "sensitive": ["wage"], "one_row_per_person": True}
    with pytest.raises(InfeasibleError, match="coarsen it, protect it by `l=2`, or name"):
        anonlib.anonymize(table, **asked, k=5)
    models = {"models": [{"type": "k_anonymity", "k": 5}]}
    with pytest.raises(InfeasibleError, match="protect it by a model such as l_diversity"):
        anonlib.anonymize(table, **asked, privacy=models)
    found = anonlib.anonymize(table, **asked, k=5, l=2)
    assert found.audit.passed
    losses = [line for line in repr(found).splitlines() if "loss " in line]
    assert losses
    assert all("; 0 to 1, more is worse)" in line for line in losses)
