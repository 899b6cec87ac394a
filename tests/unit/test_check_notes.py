"""What `check` says of a config that a table can't tell."""

from anonlib.config.reading import parse
from anonlib.config.summary import note_seed
from anonlib.pipeline import _note_persons
from anonlib.run.result import CheckResult
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


def test_a_check_shows_itself_in_a_line() -> None:
    found = CheckResult(1_200, (), ("k_anonymity k=5",), "mdav", "kmeans", ("a note",))
    assert repr(found) == "<CheckResult: 1,200 rows, 0 columns, mdav, k_anonymity k=5; notes: 1>"
