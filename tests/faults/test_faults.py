"""The quick part of the harness: a few tries of fixed seeds. `scripts/faults` makes many."""

import re
from collections.abc import Iterator

import pytest

from tests.faults.kinds import KINDS
from tests.faults.tries import Tries

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUICK = {"worker": 1, "signals": 1, "source": 1}
#: Whatever needs another driver than these share, or executors; two drivers have their own test.
OTHERS = sorted(KINDS.keys() - QUICK.keys() - {"two"})


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tries]:
    made = Tries(tmp_path_factory.mktemp("faults"))
    yield made
    made.stop()


@pytest.mark.parametrize("kind", QUICK)
def test_a_fault(tries: Tries, kind: str) -> None:
    made = tries.make(kind, QUICK[kind])
    assert not made.broken, made


@pytest.mark.cluster
@pytest.mark.parametrize("kind", OTHERS)
def test_other_faults(tries: Tries, kind: str) -> None:
    made = tries.make(kind, 3)
    assert not made.broken, made


@pytest.mark.cluster
def test_two_drivers(tries: Tries) -> None:
    """The first is stopped while it has the lease: the second is told, and goes."""
    made = tries.make("two", 68)
    assert not made.broken, made
    assert "the first is stopped at anonymize" in made.what
    assert re.search(
        r"^exit code 0, new table; the second: exit code 1 \(error: another run "
        r"\(run, on \S+, process \d+\) is writing this target",
        made.outcome,
    ), made
