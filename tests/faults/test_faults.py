"""The quick part of the harness: a few tries of fixed seeds. `scripts/faults` makes many."""

from collections.abc import Iterator

import pytest

from tests.faults.tries import Tries

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUICK = {"worker": 1, "signals": 1, "source": 1, "disk": 1, "machine": 1}


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tries]:
    made = Tries(tmp_path_factory.mktemp("faults"))
    yield made
    made.stop()


@pytest.mark.parametrize("kind", QUICK)
def test_fault(tries: Tries, kind: str) -> None:
    made = tries.make(kind, QUICK[kind])
    assert not made.broken, made
