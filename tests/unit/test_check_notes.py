"""What `check` says of a config that a table can't tell."""

from anonlib.config.reading import parse
from anonlib.pipeline import _notes
from tests.unit.test_config import GOOD


def test_a_seed_that_nobody_drew() -> None:
    assert [*_notes("id", 0, is_set=True)] == []
    unseeded = {key: value for key, value in GOOD.items() if key != "seed"}
    assert "seed" not in parse(unseeded).model_fields_set
    assert "seed" in parse({**unseeded, "seed": 0}).model_fields_set
    (note,) = _notes("id", 0, is_set=False)
    assert note == "seed is 0, as all can guess: set one of your own, and keep it private"


def test_persons_that_are_declared() -> None:
    (note,) = _notes(True, 5, is_set=True)
    assert note.startswith("one_row_per_person is declared")
