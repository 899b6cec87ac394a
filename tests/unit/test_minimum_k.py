"""The operator's minimum k: the largest counts, and one that can't be read stops everything."""

from typing import Any

import pytest

from anonlib.config.minimum_k import PROPERTY, VARIABLE, check_minimum_k
from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.errors import ConfigError
from anonlib.sweeps.file import parse_sweep
from anonlib.sweeps.settings import Sweep, find_sweep_problems

RAW: dict[str, Any] = {
    "source": {"format": "csv", "path": "people.csv"},
    "attributes": {
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "illness": {"role": "sensitive"},
    },
    "one_row_per_person": True,
    "release": {"path": "out/people"},
}


def config(*k: int) -> Config:
    models = [{"type": "l_diversity", "l": 50, "attribute": "illness"}]
    models += [{"type": "k_anonymity", "k": each} for each in k]
    return parse({**RAW, "privacy": {"models": models}})


def places(*k: int, properties: tuple[str | None, ...] = ()) -> list[str]:
    return [problem.where for problem in check_minimum_k(config(*k).privacy.models, *properties)]


def test_below_at_and_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert places(2) == []
    monkeypatch.setenv(VARIABLE, "10")
    assert places(9) == ["privacy.models.1.k"]  # whatever l is
    assert places(10) == places(11) == places(2, 10) == []
    assert places(9, 2) == ["privacy.models.1.k"]
    (problem,) = check_minimum_k(config(9).privacy.models)
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


def two_cases(**changes: Any) -> Sweep:
    small, large = (
        {"config": {**RAW, "privacy": {"models": [{"type": "k_anonymity", "k": k}]}}}
        for k in (3, 30)
    )
    given = {"cases": {"small": small, "large": large}, "out": "out/sweep", **changes}
    return parse_sweep(given)


def test_points_of_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "10")
    (problem,) = set(find_sweep_problems(two_cases(seeds=2)))
    assert problem.where == "cases.small: privacy.models.0.k"
    assert problem.text == "k is 3; the operator of this installation allows no k below 10"
    grid = {"privacy.models.0.k": [10, 9, 8]}
    found = sorted(set(find_sweep_problems(two_cases(grid=grid))))
    assert [(p.where, p.text[:6]) for p in found] == [
        (f"cases.{case}: privacy.models.0.k", f"k is {k}")
        for case in ("large", "small")
        for k in (8, 9)
    ]
    assert [*find_sweep_problems(two_cases(grid={"privacy.models.0.k": [10]}))] == []
    assert {p.text[:6] for p in find_sweep_problems(two_cases(grid=grid), "9", "20")} == {
        *("k is 8", "k is 9", "k is 1")
    }


def test_versions_that_points_learn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "10")
    version = {"set": {"privacy.models.0.k": 5}}
    learn = {"model": "mlp", "target": "illness", "split": "after", "version": version}
    given = two_cases(grid={"privacy.models.0.k": [10]}, learn=learn)
    assert {problem.where for problem in find_sweep_problems(given)} == {
        f"cases.{case}: learn.version.set: privacy.models.0.k" for case in ("small", "large")
    }


def test_sweeps_with_a_minimum_that_can_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "ten")
    assert {p.where for p in find_sweep_problems(two_cases())} == {
        f"environment variable {VARIABLE}"
    }


class Session:
    """A session with a minimum k of the application."""

    def __init__(self, minimum: str):
        self.sparkContext = self
        self.conf: dict[str, str] = {}
        self._conf = {PROPERTY: minimum}


def test_a_sweep_is_refused_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    from anonlib import pipeline

    ran: list[Sweep] = []
    monkeypatch.setattr(pipeline, "run_sweep", lambda spark, sweep, *_, **__: ran.append(sweep))
    monkeypatch.setattr(pipeline, "session", lambda *_: Session("10"))
    with pytest.raises(ConfigError, match=r"^cases\.small: privacy\.models\.0\.k: k is 3; "):
        pipeline.sweep(two_cases())
    assert ran == []
    monkeypatch.setattr(pipeline, "session", lambda *_: Session("3"))
    pipeline.sweep(two_cases())
    assert len(ran) == 1
