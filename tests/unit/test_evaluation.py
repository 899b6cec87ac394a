"""Gates: a figure that is too high, too low, without a value or not there stops a release."""

from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import pytest

import anonlib
from anonlib import pipeline, registry
from anonlib.config.model import Config, Gate
from anonlib.decisions.limits import find_void_gates
from anonlib.errors import ConfigError, ContractError, GateError, Problem
from anonlib.evaluation import Evaluation, judge, require_gates_of_releases
from anonlib.measure import Figure, Findings, Measure, Series

if TYPE_CHECKING:
    from anonlib.measure.case import Case

FOUND = Evaluation(
    {
        "risk": Findings(
            (
                *(Figure("share", 0.2, "a"), Figure("share", 0.4, "b"), Figure("most", 0.5)),
                *(Figure("near", 0.15000001), Figure("next", 0.15000000000000002)),
            )
        ),
        "worth": Findings((Figure("loss", None, note="no target"),)),
    }
)


class Invented(Measure):
    """Finds nothing."""

    type: ClassVar[str] = "risk"
    names: ClassVar[dict[str, str]] = {"share": "of it; 0 to 1", "most": "of it; 0 to 1"}

    def measure(self, case: "Case") -> Findings:
        return Findings()


@pytest.mark.parametrize(
    ("gate", "passed", "text"),
    [
        ({"figure": "risk.share", "at_most": 0.4}, True, "risk.share at most 0.4: 0.4 of b"),
        ({"figure": "risk.share", "at_most": 0.3}, False, "risk.share at most 0.3: 0.4 of b"),
        ({"figure": "risk.share", "of": "a", "at_most": 0.3}, True, "risk.share of a at most 0.3"),
        ({"figure": "risk.share", "of": "c", "at_most": 0.3}, False, "not measured"),
        ({"figure": "risk.most", "at_least": 0.5}, True, "risk.most at least 0.5: 0.5"),
        ({"figure": "risk.most", "at_least": 0.6}, False, "risk.most at least 0.6: 0.5"),
        ({"figure": "risk.most", "at_least": 0.1, "at_most": 0.4}, False, "at most 0.4 and at"),
        ({"figure": "risk.share", "at_most": 0.39999999}, False, "most 0.39999999: 0.4 of b"),
        ({"figure": "risk.near", "at_most": 0.15}, False, "at most 0.15: 0.15000001"),
        ({"figure": "risk.near", "at_most": 0.15000002}, True, "at most 0.15000002: 0.15"),
        ({"figure": "risk.near", "at_least": 0.150001, "at_most": 1}, False, ": 0.15"),
        ({"figure": "risk.next", "at_most": 0.15}, False, "0.15: 0.15000000000000002"),
        ({"figure": "risk.next", "at_most": 1200000}, True, "at most 1200000: 0.15"),
        ({"figure": "risk.least", "at_most": 1}, False, "not measured"),
        ({"figure": "worth.loss", "at_most": 1}, False, "not computable, no target"),
    ],
)
def test_gates(gate: dict[str, Any], passed: bool, text: str) -> None:
    found = judge(Gate(**gate), FOUND)
    assert found.passed is passed
    assert text in found.text


def test_all_gates_that_fail_are_told() -> None:
    gates = [Gate(figure=name, at_most=0.1) for name in ("risk.most", "worth.loss", "risk.share")]
    found = Evaluation(FOUND.findings, tuple(judge(gate, FOUND) for gate in gates))
    with pytest.raises(GateError, match=r"risk.most at most 0.1: 0.5; worth.loss .*; risk.share"):
        found.require()
    assert [gate["passed"] for gate in found.to_dict()["gates"]] == [False] * 3
    Evaluation(FOUND.findings).require()


def config(**changes: Any) -> Config:
    return anonlib.parse(
        {
            "source": {"format": "parquet", "path": "people"},
            "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}},
            "one_row_per_person": True,
            "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
            "release": {"path": "out"},
            **changes,
        }
    )


def test_problems_of_gates_and_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.plugins
    monkeypatch.setattr(
        registry,
        "plugins",
        lambda family: {"risk": Invented} if family == "measure" else known(family),
    )
    usual = config(evaluate={}).evaluate
    assert usual is not None
    assert [measure.type for measure in usual.measures] == ["risk"]
    with pytest.raises(ConfigError) as caught:
        config(
            evaluate={"measures": ["risk", "risk"]},
            gates=[{"figure": "risk.share"}, {"figure": "risk.none", "at_most": 1}],
        )
    told = {problem.where: problem.text for problem in caught.value.problems}
    assert told.keys() == {"evaluate.measures.1", "gates.0", "gates.1.figure"}
    assert "risk.most, risk.share" in told["gates.1.figure"]
    with pytest.raises(ConfigError, match=r"evaluate\.metrics: lies in the release"):
        config(evaluate={"metrics": "out/metrics"})
    with pytest.raises(ConfigError, match=r"add `evaluate: \{measures: \[risk\]\}`"):
        config(gates=[{"figure": "risk.share", "at_most": 1}])


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ("disclosure.gian", "has this figure; did you mean disclosure.gain? disclosure has: dis"),
        ("disclosur.gain", "has this figure; did you mean disclosure.gain? they have: "),
        ("queries.x", "has this figure; they have: disclosure."),
    ],
)
def test_a_figure_that_is_nearly_there(figure: str, text: str) -> None:
    measures = ["disclosure", "reidentification"]
    with pytest.raises(ConfigError) as caught:
        config(evaluate={"measures": measures}, gates=[{"figure": figure, "at_most": 1}])
    (problem,) = caught.value.problems
    assert text in problem.text
    assert ("reidentification." in problem.text) == ("they have" in problem.text)


@pytest.mark.parametrize(
    ("figure", "bound", "value"),
    [
        ("reidentification.prosecutor_max", "at_most", 30),
        ("disclosure.gain", "at_least", 1.01),
        ("disclosure.gain", "at_most", -0.1),
    ],
)
def test_a_share_is_no_percentage(figure: str, bound: str, value: float) -> None:
    given = {
        "evaluate": {"measures": ["disclosure", "reidentification", "overview"]},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "ill": {"role": "sensitive"},
        },
    }
    with pytest.raises(ConfigError) as caught:
        config(**given, gates=[{"figure": figure, bound: value}])
    (problem,) = caught.value.problems
    assert problem == Problem(f"gates.0.{bound}", "this figure is from 0 to 1: 0.05 is 5 %")
    config(**given, gates=[{"figure": figure, bound: 1}])


@pytest.mark.parametrize("verb", [anonlib.release, pipeline.check])
def test_no_release_has_gates_on_what_is_found_after_it(verb: Any) -> None:
    late = config(
        evaluate={"measures": ["order", "reidentification"]},
        gates=[
            {"figure": "reidentification.marketer", "at_most": 0.5},
            {"figure": "order.correlation", "at_most": 0.5},
        ],
    )
    with pytest.raises(ConfigError, match=r"gates\.1\.figure: is found in published tables only"):
        verb(late)
    require_gates_of_releases(late.gates[:1], late.evaluate)


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_no_number_passes_no_gate(order: int) -> None:
    figures = tuple(Figure("share", value) for value in (0.5, float("nan"))[::order])
    found = Evaluation({"risk": Findings(figures)})
    for bound in ({"at_least": 0.1}, {"at_most": 1.0}):
        assert not judge(Gate(figure="risk.share", **bound), found).passed


@pytest.mark.parametrize(
    ("gate", "where", "text"),
    [
        ({"of": "agee"}, "gates.0.of", "did you mean age?"),
        ({"of": "name"}, "gates.0.of", "a column that has the figure marginals.wasserstein: "),
        ({"at_least": 0.2}, "gates.0", "`at_least` is above `at_most`"),
        ({"at_most": float("nan")}, "gates.0.at_most", "finite"),
        ({"at_most": float("inf")}, "gates.0.at_most", "finite"),
        (
            {"figure": "reidentification.marketer", "of": "age"},
            "gates.0.of",
            "figures of reidentification are about the whole table",
        ),
    ],
)
def test_gates_that_nothing_can_pass(gate: dict[str, Any], where: str, text: str) -> None:
    """They are told before a run, not at its end."""
    wanted = {"figure": "marginals.wasserstein", "of": "age", "at_most": 0.1}
    evaluate = {"measures": ["marginals", "reidentification"]}
    config(evaluate=evaluate, gates=[wanted])
    with pytest.raises(ConfigError) as caught:
        config(evaluate=evaluate, gates=[{**wanted, **gate}])
    (problem,) = caught.value.problems
    assert problem.where == where
    assert text in problem.text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_records_get_no_number_that_json_lacks(number: float) -> None:
    figure = Figure("share", number)
    assert figure.value is None
    assert figure.note == "it is not a finite number"
    assert Figure("share", number, note="no target").note == "no target"
    with pytest.raises(ContractError, match="series shares: a number is not finite"):
        Series("shares", "age", ("age", "share"), (("30", 0.5), ("40", number)))


TARGET = {"role": "target", "scale": "nominal", "public": True}
WAGE = {"role": "target", "scale": "continuous", "public": True}
HALF = {"type": "linkability", "first_half": ["nope"]}


@pytest.mark.parametrize(
    ("measure", "gate", "label", "where", "text"),
    [
        ("learning", {"figure": "learning.accuracy", "of": "x"}, TARGET, "of", "logistic_regr"),
        ("learning", {"figure": "learning.rmse"}, TARGET, "figure", "the target has classes"),
        ("learning", {"figure": "learning.raw_auc"}, WAGE, "figure", "the target has numbers"),
        ("learning", {"figure": "learning.f1_loss"}, None, "figure", "with the role target"),
        ("learning", {"figure": "learning.baseline_f1", "of": "x"}, TARGET, "of", "whole table"),
        ("clustering", {"figure": "clustering.ari", "of": "x"}, None, "of", "the whole table"),
        ("linkability", {"figure": "linkability.risk"}, None, "figure", "no two halves"),
        ("inference", {"figure": "inference.risk"}, TARGET, "figure", "no released column"),
        ("disclosure", {"figure": "disclosure.gain", "of": "age"}, None, "figure", "no released"),
        (
            "disclosure",
            {"figure": "disclosure.lone", "of": "x"},
            None,
            "of",
            "disclosure.lone: age",
        ),
    ],
)
def test_no_release_has_such_a_figure(
    measure: str, gate: dict[str, Any], label: dict[str, Any] | None, where: str, text: str
) -> None:
    """It would be told after a whole run only, as a gate that is not passed."""
    age = {"age": {"role": "quasi_identifier", "scale": "continuous"}}
    attributes = age if label is None else {**age, "label": label}
    with pytest.raises(ConfigError) as caught:
        config(
            attributes=attributes,
            evaluate={"measures": [measure]},
            gates=[{"at_most": 1, **gate}],
        )
    (problem,) = caught.value.problems
    assert problem.where == f"gates.0.{where}"
    assert text in problem.text


def test_what_a_release_may_have_is_no_problem() -> None:
    """Also where only the table tells, as of a target whose type decides."""
    ill = {"ill": {"role": "sensitive"}, "label": {"role": "target", "public": True}}
    age = {"age": {"role": "quasi_identifier", "scale": "continuous"}}
    named = [("learning.accuracy", "logistic_regression"), ("learning.rmse", "linear_regression")]
    named += [("learning.baseline_r2", None), ("inference.risk", "ill"), ("linkability.high", None)]
    named += [("disclosure.gain", "ill"), ("disclosure.lone", "age"), ("clustering.ari", None)]
    measures = sorted({figure.partition(".")[0] for figure, _ in named})
    gates = [{"figure": figure, "of": of, "at_most": 1} for figure, of in named]
    config(attributes={**age, **ill}, evaluate={"measures": measures}, gates=gates)


def test_a_half_of_columns_that_are_not_there() -> None:
    with pytest.raises(ConfigError, match=r"evaluate\.measures\.0\.first_half: nope must be"):
        config(evaluate={"measures": [HALF]})


@pytest.mark.parametrize(
    ("measure", "figure", "text"),
    [
        ({"type": "clustering", "clusters": 201}, "clustering.ari", "201 `clusters` of 200 rows"),
        ({"type": "reidentification", "population": 189}, "reidentification.marketer", "is 189; "),
        ({"type": "uniqueness", "population": 10}, "uniqueness.population_unique", "is 10; "),
    ],
)
def test_gates_that_so_few_rows_can_not_pass(
    measure: dict[str, Any], figure: str, text: str
) -> None:
    """A twentieth of the rows may be suppressed, so 190 are released, or more."""
    given = config(
        privacy={"models": [{"type": "k_anonymity", "k": 3}], "suppression_limit": 0.05},
        evaluate={"measures": [measure]},
        gates=[{"figure": figure, "at_most": 1}],
    )
    (problem,) = find_void_gates(given, 200)
    assert problem.where == "gates.0.figure"
    assert text in problem.text
    assert given.evaluate is not None
    free = given.evaluate.measures[0].model_copy(update={"clusters": 200, "population": 190})
    enough = given.evaluate.model_copy(update={"measures": (free,)})
    assert not [*find_void_gates(given.model_copy(update={"evaluate": enough}), 200)]
    age = {"age": {"role": "quasi_identifier", "scale": "continuous"}}
    whole = given.model_dump(include={"one_row_per_person"})
    whole |= {"attributes": age, "privacy": {"models": [{"type": "k_anonymity", "k": 3}]}}
    whole |= {"evaluate": {"measures": [measure]}, "gates": [{"figure": figure, "at_most": 1}]}
    with pytest.raises(ConfigError, match=r"gates\.0\.figure: no release passes"):
        anonlib.anonymize(pd.DataFrame({"age": range(200)}), whole)
