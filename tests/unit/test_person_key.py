"""The column that stands for persons with several rows, by what other columns say of it."""

from pathlib import Path

import numpy as np

from anonlib.arrays import Ints
from anonlib.guesses.draft import Draft, TableProfile, format_draft, make_draft
from anonlib.guesses.guess import ColumnProfile

N, PERSONS = 753, 250


def draft(columns: dict[str, Ints], type: str = "string") -> Draft:
    profiles = [
        ColumnProfile(name, type, N, n := len(np.unique(values)), unique=n == N)
        for name, values in columns.items()
    ]
    return make_draft(TableProfile("csv", "a.csv", None, N, N, tuple(profiles), hashes=columns))


def visits() -> dict[str, Ints]:
    """Rows of persons, of whom sex and town stay the same."""
    random = np.random.default_rng(3)
    of_person = random.integers(0, PERSONS, N)
    return {
        "Fall": of_person,
        "sex": random.integers(0, 2, PERSONS)[of_person],
        "town": random.integers(0, 9, PERSONS)[of_person],
        "hour": random.integers(0, 24, N),
    }


def test_a_key_by_what_follows_from_it() -> None:
    found = draft(visits())
    assert found.guesses["Fall"].role == "identifier"
    assert found.persons.unit == ("Fall",)
    text = format_draft(found, Path())
    assert "unit: [Fall]" in text
    assert "repeats, and 2 other columns follow from it (" in text
    assert draft(visits(), "bigint").persons.unit == ("Fall",)
    assert draft(visits(), "double").persons.unit == ()


def test_what_persons_have_is_no_key() -> None:
    """Of a town its county and state follow, but these from each other, too; a shop is in many
    rows; and nothing is looked for where persons have a number."""
    random = np.random.default_rng(3)
    town = random.integers(0, PERSONS, N)
    sex = random.integers(0, 2, N)
    places = {"town": town, "county": town // 10, "state": town // 50, "sex": sex}
    assert draft(places).persons.unit == ()
    shop = random.integers(0, 60, N)
    of_shop = {name: random.integers(0, 3, 60)[shop] for name in ("kind", "area")}
    assert draft({"shop": shop, **of_shop}).persons.unit == ()
    assert draft({**places, "kind": random.integers(0, 3, PERSONS)[town]}).persons.unit == ("town",)
    named = draft({**visits(), "Patientennummer": np.arange(N)})
    assert named.persons.column == "Patientennummer"
    assert named.guesses["Fall"].role == "quasi_identifier"


def test_names_are_said_to_be_read() -> None:
    columns = visits()
    text = " ".join(format_draft(draft(columns), Path()).replace("# ", "").split())
    assert "No sensitive column was recognised: name what nobody may find out" in text
    columns["Diagnose"] = columns.pop("hour")
    text = " ".join(format_draft(draft(columns), Path()).replace("# ", "").split())
    assert "No sensitive column" not in text
    assert "Names are read in English, German, French, Polish, Spanish, Italian or Dutch." in text


def test_a_number_of_persons_that_repeats_is_the_unit() -> None:
    """By its name, though nothing follows from it."""
    of_person = visits()["Fall"]
    for name in (
        "Patientennummer",
        "Personalnummer",
        "Kunden-Nr.",
        "Pat-Nr",
        "nr_klienta",
        "mrn",
        "bsn",
    ):
        assert draft({name: of_person, "hour": visits()["hour"]}).persons.unit == (name,)
