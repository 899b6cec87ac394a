"""What users write, fuzzed from a fixed seed without Spark; what the fuzzer finds is told."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from anonlib.errors import InputError

ROOT = Path(__file__).parents[2]
TARGETS = ("config", "mapping", "overrides", "sweep", "hierarchy-csv", "hierarchy-yaml")


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of scripts/fuzz."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "lib"))
    import fuzz

    monkeypatch.setenv(fuzz.VARIABLE, fuzz.MARK)
    return fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_only_user_errors(fuzz: Any, tmp_path: Path, name: str) -> None:
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    target = next(t for t in fuzz.plain_targets(tmp_path / "conf") if t.name == name)
    fuzzer = fuzz.Fuzzer(tmp_path, until=time.monotonic() + 600)
    fuzzer.round(target, 0, 25)
    assert fuzzer.found == {}
    assert fuzzer.n_tries[name] >= 20
    assert fuzzer.n_refused[name] > 0


def raising(error: Exception) -> Callable[..., None]:
    def attempt(*_: object) -> None:
        raise error

    return attempt


def endless(*_: object) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("attempt", "way"),
    [
        (raising(ValueError("x")), "ValueError at "),
        (raising(InputError("column city: RAWVALUE is odd")), "InputError shows a value"),
        (endless, "too slow"),
    ],
)
def test_finds(fuzz: Any, tmp_path: Path, attempt: Callable[..., None], way: str) -> None:
    target = fuzz.Target("odd", st.just(b"some"), attempt, cpu_seconds=0.05)
    fuzzer = fuzz.Fuzzer(tmp_path, until=time.monotonic() + 600)
    with pytest.raises(fuzz.Found):
        fuzzer.round(target, 0, 3)
    assert [found.startswith(way) for _, found in fuzzer.found] == [True]
    fuzzer.round(target, 0, 3)  # known by now
