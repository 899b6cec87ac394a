"""What `check` says of a config that a table can't tell."""

from anonlib.config.reading import parse
from anonlib.pipeline import _notes
from tests.unit.test_config import GOOD


def test_a_seed_that_nobody_drew() -> None:
    seeded = {**GOOD, "one_row_per_person": "id"}
    unseeded = {key: value for key, value in seeded.items() if key != "seed"}
    assert [*_notes(parse({**seeded, "seed": 0}))] == []
    (note,) = _notes(parse(unseeded))
    assert note == "seed is 0, as all can guess: set one of your own, and keep it private"


def test_persons_that_are_declared() -> None:
    (note,) = _notes(parse({**GOOD, "one_row_per_person": True, "seed": 5}))
    assert note.startswith("one_row_per_person is declared")
