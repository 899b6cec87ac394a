"""The operator's minimum k: the largest counts, and one that can't be read stops everything."""

from typing import Any

import pytest

from anonlib.config import Config
from anonlib.config_file import parse
from anonlib.minimum_k import VARIABLE, minimum_k_problems


def config(*k: int) -> Config:
    raw: dict[str, Any] = {
        "source": {"format": "csv", "path": "people.csv"},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "l_diversity", "l": 50, "attribute": "illness"},
                *[{"type": "k_anonymity", "k": each} for each in k],
            ]
        },
        "release": {"path": "out/people"},
    }
    return parse(raw)


def places(*k: int, properties: tuple[str | None, ...] = ()) -> list[str]:
    return [problem.where for problem in minimum_k_problems(config(*k), *properties)]


def test_below_at_and_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert places(2) == []
    monkeypatch.setenv(VARIABLE, "10")
    assert places(9) == ["privacy.models.1.k"]  # whatever l is
    assert places(10) == places(11) == places(2, 10) == []
    assert places(9, 2) == ["privacy.models.1.k"]
    (problem,) = minimum_k_problems(config(9))
    assert problem.text == "k is 9; the operator of this installation allows no k below 10"


def test_the_largest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "5")
    assert places(7, properties=("3", None)) == []
    assert places(7, properties=("3", "8")) == ["privacy.models.1.k"]
    monkeypatch.delenv(VARIABLE)
    assert places(7, properties=("8", "3")) == ["privacy.models.1.k"]


@pytest.mark.parametrize(
    "value", ["", "ten", "0", "-5", "1.5", "1e3", " 5", "5 ", "\u0665", "9" * 50]
)
def test_what_can_not_be_read_stops_all(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert places(1_000) == [f"environment variable {VARIABLE}"]
    monkeypatch.delenv(VARIABLE)
    assert places(1_000, properties=(value,)) == ["Spark property spark.anonlib.minimumK"]
