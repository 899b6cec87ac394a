"""What `check` says of a config that a table can't tell."""

from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import anonlib
from anonlib.cli.show.summaries import print_check
from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.config.summary import note_seed
from anonlib.content.content_rules import Content, Repetition
from anonlib.local.advice import note_midnights, note_repetitions, note_times
from anonlib.recode.centroid import Centroid
from anonlib.recode.interval import Interval
from anonlib.run.check import _note_persons, resolve_check
from anonlib.run.result import CheckResult
from anonlib.run.scan import Scan
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Field, Role, Scale, Schema
from anonlib.table.table_digest import Digest
from tests.unit.test_config import GOOD


def test_a_seed_that_nobody_drew() -> None:
    """All can guess the default, also where the config has it."""
    unseeded = {key: value for key, value in GOOD.items() if key != "seed"}
    assert [*note_seed(parse({**unseeded, "seed": 7}).seed)] == []
    for config in (unseeded, {**unseeded, "seed": 0}):
        (note,) = note_seed(parse(config).seed)
        assert note == "seed is 0, as all can guess: set one of your own, and keep it private"


def test_persons_that_are_declared() -> None:
    (note,) = _note_persons(True)
    assert note.startswith("one_row_per_person is declared")


def test_identifiers_of_persons_that_repeat() -> None:
    found = [*note_repetitions([Repetition("mrn", 60, 6000), Repetition("ssn", 4, 200)], 5)]
    assert "repeat: 60 values in 6,000 rows; " in found[0]
    assert "repeat: fewer than 5 values in 200 rows; " in found[1]


def test_a_check_says_what_the_release_would_say() -> None:
    config = parse(GOOD)
    arrow = {"age": pa.int64()}
    schema = resolve(config, [Field(n, "", arrow.get(n, pa.string())) for n in config.attributes])
    (age,) = (column.id for column in schema.columns if column.name == "age")
    large = Encoding(age, Scale.CONTINUOUS, False, 0.0, 1.0, 0.0, 2.0**60)
    sample = pa.table({column.id: pa.array([], column.type) for column in schema.columns})
    repeated = Content(1.0, {}, (), {}, (Repetition("mrn", 60, 6000),))
    scan = Scan(9, {}, {}, (large,), sample, {}, Digest(), repeated)
    found = [*scan.list_notes(schema, config)]
    assert sum("numbers of 2^53 or more" in note for note in found) == 1
    assert sum("values repeat" in note for note in found) == 1
    assert {*found} <= {*resolve_check(config, schema, scan, ()).notes}


def test_the_names_of_controllers_are_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    """They are values of the table."""
    models = {"St Mary": [{"type": "k_anonymity", "k": 20}]}
    steps = [{"type": "controller", "column": "city", "models": models}, {"type": "single"}]
    config = parse({**GOOD, "partition": {"steps": steps}})
    arrow = {"age": pa.int64()}
    fields = [Field(n, "", arrow.get(n, pa.string())) for n in config.attributes]
    schema = resolve(config, fields)
    sample = pa.table({column.id: pa.array([], column.type) for column in schema.columns})
    scan = Scan(9, {}, {}, (), sample, {}, Digest(), Content(1.0, {}, (), {}))
    found = resolve_check(config, schema, scan, ())
    assert found.partition.startswith("controller column=city models=[1] ")
    assert [note for note in found.notes if note.startswith("no model protects illness")]
    print_check(found, "conf.yaml")
    for text in (capsys.readouterr().out, str(asdict(found))):
        assert "controller column=city" in " ".join(text.split())
        assert "Mary" not in text


def test_a_check_shows_itself_in_a_line() -> None:
    found = CheckResult(1_200, (), ("k_anonymity k=5",), "mdav", "kmeans", ("a note",))
    assert repr(found) == "<CheckResult: 1,200 rows, 0 columns, mdav, k_anonymity k=5; notes: 1>"


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1950-01-02", None, "1980-12-31"], "`type: date`"),
        (["1950-01-02 10:00:00", "1980-12-31 11:00:00"], "`type: timestamp`"),
        (["1950-01-02", "at dawn"], None),
        (["1010", "1020"], None),  # codes of places
        ([None], None),
    ],
)
def test_dates_that_are_told_apart_as_texts(texts: list[str | None], kind: str | None) -> None:
    column = Column("born", "c0", Role.QUASI_IDENTIFIER, pa.string(), "string", scale=Scale.NOMINAL)
    sample = pa.table({"c0": pa.array(texts, pa.string())})
    notes = [*note_times(Schema((column,)), sample)]
    assert len(notes) == (kind is not None)
    assert all("column born: these texts look like dates" in n and str(kind) in n for n in notes)


@pytest.mark.parametrize(
    ("values", "scale", "doubt"),
    [
        (pa.array([20240131, 20231231]), Scale.CONTINUOUS, "numbers look like days written as"),
        (pa.array([1_700_000_000.0, 1_700_000_001.0]), Scale.CONTINUOUS, "numbers look like codes"),
        (pa.array([1_700_000_000]), Scale.NOMINAL, None),
        (pa.array([20, 31]), Scale.CONTINUOUS, None),
        (pa.array(["12,50 EUR", "7 EUR"]), Scale.NOMINAL, "texts look like numbers with a unit"),
        (pa.array(["01/02/1980"]), Scale.NOMINAL, "texts look like dates of which day and month"),
        (pa.array(["north"]), Scale.NOMINAL, None),
    ],
)
def test_doubts_are_told(values: pa.Array, scale: Scale, doubt: str | None) -> None:
    quasi = Role.QUASI_IDENTIFIER
    column = Column("x", "c0", quasi, values.type, str(values.type), scale=scale)
    notes = [*note_times(Schema((column,)), pa.table({"c0": values}))]
    assert len(notes) == (doubt is not None)
    assert all(note.startswith(f"column x: these {doubt}") for note in notes)


DAYS = pd.date_range("1960-03-01", periods=300)


@pytest.mark.parametrize(
    ("times", "recoder", "said"),
    [
        (DAYS, Centroid(), "look like midnights"),
        (DAYS.tz_localize("Europe/Berlin"), Centroid(), "look like midnights"),
        (DAYS.tz_localize("Asia/Tokyo"), Centroid(), "look like midnights"),
        (DAYS.tz_localize("UTC"), Interval(round_to="month"), "`round_to: month` is of UTC"),
        (DAYS.insert(0, pd.NaT), Centroid(), "look like midnights"),
        (DAYS[:1], Centroid(), "look like midnights"),
        (DAYS, Interval(round_to="month"), None),
        (DAYS + pd.Timedelta(1, "us"), Centroid(), None),
        (pd.date_range("1960-03-01", periods=99, freq="7h", tz="UTC"), Centroid(), None),
        (DAYS[:0], Centroid(), None),
    ],
)
def test_times_that_are_days(times: Any, recoder: Any, said: str | None) -> None:
    kind = pa.timestamp("us", None if times.tz is None else "UTC")
    values = pa.Array.from_pandas(times).cast(kind)
    role = (Role.QUASI_IDENTIFIER, kind, "timestamp")
    column = Column("born", "c0", *role, scale=Scale.CONTINUOUS, recoder=recoder)
    notes = [*note_midnights(Schema((column,)), pa.table({"c0": values}))]
    assert len(notes) == (said is not None)
    assert all(n.startswith("column born: ") and str(said) in n and "`.dt.date" in n for n in notes)


def test_days_of_a_table_in_hand() -> None:
    data = pd.DataFrame({"born": DAYS})
    found = anonlib.anonymize(data, quasi_identifiers=["born"], k=5, one_row_per_person=True)
    assert sum("look like midnights" in note for note in found.notes) == 1
    data["born"] = data["born"].dt.date
    found = anonlib.anonymize(data, quasi_identifiers=["born"], k=5, one_row_per_person=True)
    assert not any("midnights" in note for note in found.notes)
