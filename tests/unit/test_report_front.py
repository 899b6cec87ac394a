"""The first screen of a report: three risks and three utilities, judged, and what to do."""

from typing import Any

import pytest

from anonlib import registry
from anonlib.auditing.report import THRESHOLD
from anonlib.loss import Metric
from anonlib.measure import Measure
from anonlib.measure.risk.reidentification import Reidentification
from anonlib.pages import render
from anonlib.pages.front import JudgedFigure, judge_risks, judge_utilities, list_actions
from anonlib.text import read_worse
from tests import reports

FOUND, TOLD, ATTACKED = range(3)
KEPT, SHAPED, RELATED = range(3)
#: Figures that no direction is worse of: they are bounds or counts for comparison.
FOR_COMPARISON = {"attempts", "chance", "raw_ari", "raw_nmi"}


def risk(record: dict[str, Any], which: int) -> JudgedFigure:
    return judge_risks(record)[which]


def gate(figure: str, bound: str, found: str, *, passed: bool) -> dict[str, Any]:
    text = f"{figure} {bound}"
    return {"gate": text, "passed": passed, "found": f"{text}: {found}"}


def measured(type: str, *figures: dict[str, Any]) -> dict[str, Any]:
    record = reports.unevaluated()
    record["evaluation"] = {"measures": {type: reports.findings(figures)}, "gates": []}
    return record


class TestDirections:
    def test_every_figure_tells_the_worse_one(self) -> None:
        for plugin in registry.plugins("measure").values():
            assert issubclass(plugin, Measure)
            for name, meaning in plugin.names.items():
                plain = "for comparison" in meaning or name in FOR_COMPARISON
                assert bool(read_worse(meaning)) is not plain, name

    def test_every_loss_tells_the_worse_one(self) -> None:
        for name, plugin in registry.plugins("metric").items():
            assert issubclass(plugin, Metric)
            worse = read_worse(plugin.meaning)
            assert worse == {"precision": "less", "sse_bound": ""}.get(name, "more")

    def test_words_before_the_semicolon_tell_nothing(self) -> None:
        assert read_worse("where less is safer; 0 to 1, for comparison") == ""
        assert read_worse("k; a number, more is safer") == "less"
        assert read_worse("less is safer") == "more"


class TestRisks:
    def test_one_threshold_for_a_chance(self) -> None:
        assert Reidentification().threshold == THRESHOLD

    @pytest.mark.parametrize(("size", "state"), [(11, "look"), (12, "good")])
    def test_a_class_of_eleven_is_too_small(self, size: int, state: str) -> None:
        record = reports.unevaluated()
        record["audit"]["sizes"] = [[size, 100]]
        found = risk(record, FOUND)
        assert found.state == state
        assert found.value == 1 / size
        assert "0.09, the most by EMA Policy 0070 and Health Canada" in found.reason
        assert ("raise k to 12" in found.advice) is (state == "look")

    def test_persons_of_a_unit_are_those_that_the_audit_counted(self) -> None:
        record = reports.unevaluated()
        record["settings"]["persons"] = "unit of 1 columns: id"
        record["audit"]["verdicts"][0]["value"] = 20
        assert risk(record, FOUND).value == 0.05
        record["audit"]["verdicts"][0]["value"] = None
        assert risk(record, FOUND).reason == "Not measured."
        assert risk(record, FOUND).state == "look"

    @pytest.mark.parametrize("passed", [True, False])
    def test_gates_come_before_thresholds(self, passed: bool) -> None:
        record = reports.unevaluated()
        asked = gate("reidentification.marketer", "at most 0.2", "0.3", passed=passed)
        record["evaluation"] = {"measures": {}, "gates": [asked]}
        found = risk(record, FOUND)
        assert found.state == ("good" if passed else "stop")
        assert "right, on average: 0.3." in found.reason
        assert f"{'Within' if passed else 'Beyond'} the gate of the config, at most 0.2." in (
            found.reason
        )

    def test_models_guard_sensitive_columns(self) -> None:
        record = reports.unevaluated()
        assert risk(record, TOLD).state == "good"
        assert "l-diversity of diagnosis, l = 2, found 2 or better" in risk(record, TOLD).reason
        record["audit"]["verdicts"][1]["holds"] = False
        assert risk(record, TOLD).state == "stop"
        record["settings"]["columns"]["income level"] = {"role": "sensitive"}
        assert "No privacy model protects income level:" in risk(record, TOLD).reason
        del record["settings"]["columns"]["income level"]
        record["settings"]["columns"]["diagnosis"] = {"role": "target", "public": True}
        assert risk(record, TOLD).reason == "No column is declared sensitive."

    def test_a_target_is_sensitive_unless_public(self) -> None:
        record = reports.unevaluated()
        record["settings"]["columns"]["label"] = {"role": "target"}
        assert "label" in risk(record, TOLD).reason
        record["settings"]["columns"]["label"]["public"] = True
        assert risk(record, TOLD).state == "good"

    def test_guesses_are_bounded_as_in_drafts(self) -> None:
        def found(gain: float) -> JudgedFigure:
            return risk(measured("disclosure", reports.figure("gain", gain, "income")), TOLD)

        assert [found(0.3).state, found(0.31).state] == ["good", "look"]  # 1/k + 0.2
        assert "0.31 of income" in found(0.31).reason

    def test_the_worst_attack(self) -> None:
        record = measured("singling_out", reports.figure("high", 0.02, "multivariate"))
        own = record["evaluation"]["measures"]
        own["inference"] = reports.findings([reports.figure("high", 0.2, "income")])
        own["membership"] = reports.findings([reports.figure("high", None, "", "no parts")])
        found = risk(record, ATTACKED)
        assert (found.state, found.value) == ("look", 0.2)
        assert "0.2 of inference (income)" in found.reason
        own["differencing"] = reports.findings([reports.figure("high", 0.3, "income")])
        assert "0.3 of differencing (income)" in risk(record, ATTACKED).reason
        assert risk(reports.unevaluated(), ATTACKED).reason == "Not measured."

    def test_few_attempts_prove_little(self) -> None:
        figures = [reports.figure("risk", 0.0, ""), reports.figure("high", 0.1, "")]
        found = risk(measured("singling_out", *figures), ATTACKED)
        assert (found.state, found.value) == ("look", 0.1)


class TestUtilities:
    def test_losses_and_overview_without_any_measure(self) -> None:
        record = reports.unevaluated()
        record["overview"] = reports.findings([reports.figure("total_variation", 0.2, "age")])
        found = judge_utilities(record)
        assert [each.state for each in found] == ["good", "look", "look"]
        assert found[KEPT].value == record["losses"]["ncp"]
        assert "0.2 of age. Beyond 0.1, the most by anonlib's default." in found[SHAPED].reason
        assert found[RELATED].reason == "Not measured."

    def test_the_first_figure_with_a_value(self) -> None:
        record = measured("queries", reports.figure("median", 0.04))
        assert judge_utilities(record)[RELATED].value == 0.04
        figures = [reports.figure("accuracy_loss", v, m) for v, m in ((0.2, "a"), (None, "b"))]
        record["evaluation"]["measures"]["learning"] = reports.findings(figures)
        assert judge_utilities(record)[RELATED].value == 0.2


class TestPage:
    def test_who_answers_and_what_to_do(self) -> None:
        record = reports.record()
        record["time"] = "2026-01-31T10:16:40+00:00"
        record["accountability"] = {"approver": "A. Officer", "purpose": "planning"}
        record["context"] = {"recipient": "the city", "access": "contract", "data": "adults only"}
        head = render(record).partition('<section id="verdicts"')[0]
        for name, value in (
            *(("approved by", "A. Officer"), ("purpose", "planning"), ("recipients", "the city")),
            *(("released", "2026-01-31 10:16 UTC"), ("filter", "adults only")),
            *(("access", "contract"), ("until", "no last day is set")),
        ):
            assert f"<dt>{name}</dt><dd>{value}</dd>" in head
        assert head.count("✓ good") == 5
        assert head.count("! look") == 1
        assert "<li>To fall to an attack: name singling_out, linkability" in head

    def test_what_broke_comes_first(self) -> None:
        record = reports.unevaluated()
        record["audit"]["verdicts"][0] |= {"holds": False, "value": 3}
        record["policy"] = [{"rule": "r1", "state": "not kept"}, {"rule": "r2", "state": "kept"}]
        asked = gate("mine.figure", "at most 1", "not measured", passed=False)
        record["evaluation"] = {"measures": {}, "gates": [asked]}
        assert [*list_actions(record, ())] == [
            "Don't use it: k-anonymity, k = 10 does not hold.",
            "Don't use it: the gate mine.figure at most 1 is not passed.",
            "Don't use it: rule r1 of the policy is not kept.",
        ]

    def test_what_was_audited_at_release_has_not_failed(self) -> None:
        """As in the evaluation of a published table of a unit."""
        record = reports.unevaluated()
        lost = {"holds": False, "value": None, "at_release": True}
        record["audit"]["verdicts"][0] |= lost
        assert [*list_actions(record, ())] == []
        text = render(record)
        assert 'class="lead good"' in text
        assert "1 of 3 privacy models can't be counted here" in text.replace("&#39;", "'")
        assert text.count(">audited at release<") == 1
        assert "FAILS" not in text

    def test_nothing_to_do(self) -> None:
        record = reports.record()
        found = reports.findings([reports.figure("high", 0.01, "multivariate")])
        record["evaluation"]["measures"]["singling_out"] = found
        assert "Nothing stands against it." in render(record)
