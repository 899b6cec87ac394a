"""The first screen of a report: three risks and three utilities, judged, and what to do."""

from typing import Any

import pytest

from anonlib import registry
from anonlib.auditing.report import THRESHOLD
from anonlib.guesses.draft import LEAST_K
from anonlib.loss import Metric
from anonlib.measure import Measure
from anonlib.measure.attempts import RISK_NAMES
from anonlib.measure.risk.reidentification import Reidentification
from anonlib.pages import render
from anonlib.pages.front import JudgedFigure, judge_risks, judge_utilities, list_actions
from anonlib.pages.specs import ATTACKS
from anonlib.text import read_worse
from tests import reports

FOUND, TOLD, ATTACKED = range(3)
KEPT, SHAPED, RELATED = range(3)
#: A figure that bounds the chance to be found.
REACHED = "reidentification.prosecutor_max"
#: Figures that no direction is worse of: they are bounds or counts for comparison.
FOR_COMPARISON = {"attempts", "chance", "raw_ari", "raw_nmi"}


def risk(record: dict[str, Any], which: int) -> JudgedFigure:
    return judge_risks(record)[which]


def gate(figure: str, bound: str, found: str, *, passed: bool) -> dict[str, Any]:
    text = f"{figure} {bound}"
    return {"gate": text, "passed": passed, "found": f"{text}: {found}"}


def guess_known(*columns: str) -> dict[str, Any]:
    """The findings of the measure disclosure on sensitive columns."""
    return reports.findings([reports.figure("correct", 0.2, column) for column in columns])


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
        assert 1 / LEAST_K <= THRESHOLD < 1 / (LEAST_K - 1)

    @pytest.mark.parametrize(("size", "state"), [(11, "look"), (12, "good")])
    def test_a_class_of_eleven_is_too_small(self, size: int, state: str) -> None:
        record = reports.unevaluated()
        record["audit"]["sizes"] = [[size, 100]]
        found = risk(record, FOUND)
        assert found.state == state
        assert found.value == 1 / size
        assert "0.09, the most by EMA Policy 0070 and Health Canada" in found.reason
        assert ("raise k to 12" in found.advice) is (state == "look")

    def test_what_attacks_go_by_is_named(self) -> None:
        """The bound is of the chance to be found: it is only borrowed here."""
        record = measured("singling_out", reports.figure("high", 0.58, "multivariate"))
        columns = {
            "id": {"role": "identifier", "pseudonym": True},
            "age": {"role": "quasi_identifier", "recoder": "centroid"},
            "name": {"role": "identifier"},
            "ward": {"role": "insensitive"},
            "illness": {"role": "sensitive"},
        }
        record["settings"]["columns"] = columns
        found = risk(record, ATTACKED)
        assert (
            "the most by anonlib's default (EMA Policy 0070 and Health Canada set it for"
            in found.reason
        )
        assert "0.58 of singling out (multivariate)" in found.reason
        assert found.advice.endswith("released as they are: ward, illness.")
        record["settings"]["columns"] = {"age": columns["age"]}
        assert risk(record, ATTACKED).advice == "raise k, or leave out quasi-identifiers."

    def test_rows_that_an_identifier_says_are_of_one_person(self) -> None:
        """Also where a gate bounds the chance: it counts rows."""
        gates = [gate(f"{REACHED} at most", "0.2", "0.05", passed=True)]
        for given in ([], gates):
            record = reports.unevaluated()
            record["audit"]["sizes"] = [[20, 100]]
            record["evaluation"] = {"measures": {}, "gates": given}
            assert risk(record, FOUND).state == "good"
            record["content"] = {"repetitions": [{"column": "patient_id"}]}
            found = risk(record, FOUND)
            assert found.state == "look"
            assert found.reason == "Each row counts as another person, but patient_id repeats."
            assert found.advice == "name patient_id in unit if it stands for a person."

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
        asked = gate("reidentification.prosecutor_max", "at most 0.2", "0.3", passed=passed)
        record["evaluation"] = {"measures": {}, "gates": [asked]}
        found = risk(record, FOUND)
        assert found.state == ("good" if passed else "stop")
        assert "that the person is in the release: 0.3." in found.reason
        assert "class" not in found.reason
        assert f"{'Within' if passed else 'Beyond'} the gate of the config, at most 0.2." in (
            found.reason
        )

    @pytest.mark.parametrize(
        ("figure", "bound", "state"),
        [
            *(("uniqueness.release_unique", "at most 0.5", "look"),),
            *(("reidentification.marketer", "at most 0.5", "look"),),
            *(("population.journalist_max", "at least 0", "look"),),
            *(("population.journalist_max", "at most 0.2", "good"),),
            *(("population.k_map", "at least 5", "good"),),
        ],
    )
    def test_a_gate_bounds_what_it_names(self, figure: str, bound: str, state: str) -> None:
        """The classes have 10 persons: 0.1 is beyond 0.09."""
        record = reports.unevaluated()
        columns = record["settings"]["columns"].values()
        n = sum(column["role"] == "quasi_identifier" for column in columns)
        record["settings"]["measures"] = [f"population source=[3] columns=[{n}]"]
        record["evaluation"] = {"measures": {}, "gates": [gate(figure, bound, "0", passed=True)]}
        found = risk(record, FOUND)
        assert found.state == state
        assert ("smallest class: 0.1. Beyond 0.09" in found.reason) is (state == "look")
        assert ("gate" in found.reason) is (state == "good")

    @pytest.mark.parametrize("figure", ["population.k_map", "population.journalist_max"])
    def test_a_gate_on_a_part_of_the_columns_is_not_on_the_chance(self, figure: str) -> None:
        """A population that has one of the quasi-identifiers tells nothing of who knows all."""
        record = reports.unevaluated()
        record["settings"]["measures"] = ["population source=[3] columns=[1]"]
        bound = "at least 10" if figure.endswith("k_map") else "at most 0.1"
        asked = gate(figure, bound, "7302", passed=True)
        record["evaluation"] = {"measures": {}, "gates": [asked]}
        found = risk(record, FOUND)
        assert found.state == "look"
        assert "smallest class: 0.1. Beyond 0.09" in found.reason
        failed = [gate(figure, bound, "2", passed=False)]
        record["evaluation"]["gates"] = failed
        assert risk(record, FOUND).state == "stop"

    def test_attacks_without_a_gate_are_judged(self) -> None:
        record = measured("singling_out", reports.figure("high", 0.02, "multivariate"))
        evaluation = record["evaluation"]
        evaluation["measures"]["inference"] = reports.findings(
            [reports.figure("high", 0.4, "a job"), reports.figure("high", 0.3, "income")]
        )
        evaluation["gates"] = [
            gate("singling_out.high", "at most 0.1", "0.02 of multivariate", passed=True)
        ]
        found = risk(record, ATTACKED)
        assert (found.state, found.value) == ("look", 0.4)
        evaluation["measures"]["disclosure"] = guess_known("diagnosis")
        asked = gate("inference.risk of a job", "at most 0.5", "0.3", passed=True)
        evaluation["gates"].append(asked)
        assert risk(record, ATTACKED).value == 0.3
        assert risk(record, TOLD).state == "good"
        evaluation["gates"][1] = gate("inference.risk", "at most 0.5", "0.3 of income", passed=True)
        found = risk(record, ATTACKED)
        assert (found.state, found.value) == ("good", None)
        assert "0.02 of singling out (multivariate). Within" in found.reason
        assert "0.3 of inference (income). Within the gate of the config, at most" in found.reason
        evaluation["gates"] = [gate("linkage.cell", "at most 0.5", "0.3", passed=True)]
        assert risk(record, ATTACKED).value == 0.4
        evaluation["measures"] = {}
        assert risk(record, ATTACKED).reason == "Not measured."

    def test_a_broken_gate_comes_before_all(self) -> None:
        record = reports.unevaluated()
        broken = gate("uniqueness.release_unique", "at most 0.1", "0.5", passed=False)
        kept = gate("special_uniques.score", "at most 0.1", "0", passed=True)
        record["evaluation"] = {"measures": {}, "gates": [kept, broken]}
        found = risk(record, FOUND)
        assert found.state == "stop"
        assert found.reason.endswith("0.5. Beyond the gate of the config, at most 0.1.")
        assert "Within" not in found.reason
        assert "class" not in found.reason

    def test_parameters_have_their_numbers(self) -> None:
        record = reports.unevaluated()
        record["settings"]["measures"] = ["uniqueness", "dominance n_largest=2 share=0.9 p=10"]
        asked = gate("dominance.nk_rows", "at most 1", "1 of age", passed=True)
        known = {"disclosure": guess_known("diagnosis")}
        record["evaluation"] = {"measures": known, "gates": [asked]}
        assert "the 2 largest contributors have more than 0.9 of the total: 1 of age" in (
            risk(record, TOLD).reason
        )

    def test_chances_of_groups_are_risks(self) -> None:
        record = reports.unevaluated()
        asked = gate("fairness.worst_risk", "at most 0.05", "0.1 of sex", passed=False)
        record["evaluation"] = {"measures": {}, "gates": [asked]}
        assert risk(record, FOUND).state == "stop"
        assert judge_utilities(record)[KEPT].state == "good"
        record["evaluation"]["gates"] = [
            gate("fairness.worst_loss", "at most 0.1", "1", passed=False)
        ]
        assert judge_utilities(record)[KEPT].state == "stop"

    def test_models_guard_sensitive_columns(self) -> None:
        record = reports.unevaluated()
        found = risk(record, TOLD)
        assert (found.state, found.reason) == (
            "look",
            "Not measured: what classes tell of diagnosis.",
        )
        assert found.advice.startswith("name the measure disclosure in evaluate")
        known = {"disclosure": guess_known("diagnosis", "income level")}
        record["evaluation"] = {"measures": known, "gates": []}
        assert risk(record, TOLD).state == "good"
        assert "l-diversity of diagnosis, l = 2, found 2 or better" in risk(record, TOLD).reason
        record["audit"]["verdicts"][1]["holds"] = False
        assert risk(record, TOLD).state == "stop"
        record["settings"]["columns"]["income level"] = {"role": "sensitive"}
        assert "No privacy model protects income level:" in risk(record, TOLD).reason
        del record["settings"]["columns"]["income level"]
        record["settings"]["columns"]["diagnosis"] = {"role": "target", "public": True}
        found = risk(record, TOLD)
        assert found.reason == "No column is declared sensitive."
        assert found.advice == "confirm that no released column is sensitive."

    def test_a_target_is_sensitive_unless_public(self) -> None:
        record = reports.unevaluated()
        known = {"disclosure": guess_known("diagnosis", "label")}
        record["evaluation"] = {"measures": known, "gates": []}
        record["settings"]["columns"]["label"] = {"role": "target"}
        assert "label" in risk(record, TOLD).reason
        record["settings"]["columns"]["label"]["public"] = True
        assert risk(record, TOLD).state == "good"

    def test_guesses_are_bounded_as_in_drafts(self) -> None:
        def found(gain: float) -> JudgedFigure:
            known = reports.figure("correct", 0.2, "diagnosis")
            return risk(measured("disclosure", reports.figure("gain", gain, "income"), known), TOLD)

        assert [found(0.3).state, found(0.31).state] == ["good", "look"]  # 1/k + 0.2
        assert "0.31 of income" in found(0.31).reason

    def test_a_measure_hides_no_column_without_a_model(self) -> None:
        known = [reports.figure("gain", 0.01, column) for column in ("diagnosis", "wage")]
        record = measured("disclosure", *known)
        assert risk(record, TOLD).state == "good"
        record["settings"]["columns"]["wage"] = {"role": "sensitive"}
        found = risk(record, TOLD)
        assert (found.state, found.value) == ("look", None)
        assert found.reason.startswith("No privacy model protects wage:")
        record["evaluation"]["measures"]["disclosure"]["figures"][0]["value"] = 0.9
        found = risk(record, TOLD)
        assert "0.9 of diagnosis. Beyond 0.3" in found.reason
        assert "No privacy model protects wage" in found.reason
        assert "for the column. Name a model for wage" in found.advice

    def test_classes_that_all_but_tell(self) -> None:
        figures = [reports.figure("gain", 0.01, "income"), reports.figure("certain", 0.0, "income")]
        figures.append(reports.figure("correct", 0.2, "diagnosis"))
        record = measured("disclosure", *figures)
        record["settings"]["measures"] = ["disclosure threshold=0.8"]
        assert risk(record, TOLD).state == "good"
        figures[1]["value"] = 0.02
        found = risk(record, TOLD)
        assert (found.state, found.value) == ("look", 0.02)
        assert "one value has the share 0.8 or more: 0.02 of income." in found.reason
        asked = gate("disclosure.certain", "at most 0.1", "0.02 of income", passed=True)
        record["evaluation"]["gates"] = [asked]
        assert risk(record, TOLD).state == "good"

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

    def test_attacks_are_those_with_a_control(self) -> None:
        known = registry.plugins("measure").items()
        assert {*ATTACKS} == {
            type for type, plugin in known if {*RISK_NAMES} <= {*getattr(plugin, "names", ())}
        }

    def test_a_release_that_was_attacked_in_one_way(self) -> None:
        downcoded = measured("downcoding", reports.figure("high", 0.2, "age"))
        assert "0.2 of downcoding (age)" in risk(downcoded, ATTACKED).reason
        linked = measured("linkage", reports.figure("record", 0.05))
        found = risk(linked, ATTACKED)
        assert (found.state, found.value) == ("look", 0.05)
        assert found.reason.startswith("Only linkage was tried, without a control. Share of")
        assert "was not attacked" not in found.advice

    def test_few_attempts_prove_little(self) -> None:
        figures = [reports.figure("risk", 0.0, ""), reports.figure("high", 0.1, "")]
        found = risk(measured("singling_out", *figures), ATTACKED)
        assert (found.state, found.value) == ("look", 0.1)


class TestUtilities:
    def test_suppressed_rows_count_as_lost(self) -> None:
        """The losses are of released rows."""
        record = {**reports.unevaluated(), "n_rows_in": 200, "losses": {"ncp": 0.0}}
        kept = [judge_utilities({**record, "n_suppressed": n})[KEPT] for n in (0, 20, 22)]
        assert [each.state for each in kept] == ["good", "good", "look"]
        assert "Rows suppressed: 0.11. Beyond 0.1" in kept[2].reason

    def test_losses_and_overview_without_any_measure(self) -> None:
        record = reports.unevaluated()
        record["overview"] = reports.findings([reports.figure("total_variation", 0.2, "age")])
        found = judge_utilities(record)
        assert [each.state for each in found] == ["good", "look", "look"]
        assert found[KEPT].value == record["losses"]["ncp"]
        assert "0.2 of age. Beyond 0.1, the most by anonlib's default." in found[SHAPED].reason
        assert found[RELATED].reason == "Not measured."

    def test_measuring_more_hides_no_column(self) -> None:
        record = measured("marginals", reports.figure("total_variation", 0.02, "sex"))
        record["overview"] = reports.findings(
            [reports.figure("total_variation", v, n) for v, n in ((0.2, "age"), (0.03, "sex"))]
        )
        found = judge_utilities(record)[SHAPED]
        assert (found.state, found.value) == ("look", 0.2)
        gates = [gate("marginals.total_variation", "at most 0.1", "0.02 of sex", passed=True)]
        record["evaluation"]["gates"] = gates
        assert judge_utilities(record)[SHAPED].value == 0.2
        record["overview"]["figures"][0]["value"] = 0.04
        found = judge_utilities(record)[SHAPED]
        assert (found.state, found.value) == ("good", 0.04)
        record["evaluation"]["gates"] = []
        record["overview"]["figures"][1]["value"] = 0.15
        assert judge_utilities(record)[SHAPED].value == 0.15

    def test_columns_that_nothing_measured(self) -> None:
        record = reports.unevaluated()
        figures = [(0.01, "age"), (None, "zip"), (None, "diagnosis")]
        record["overview"] = reports.findings(
            [reports.figure("total_variation", v, n) for v, n in figures]
        )
        found = judge_utilities(record)[SHAPED]
        assert (found.state, found.value) == ("look", None)
        assert found.reason == "Not measured: zip; name marginals."
        assert found.advice == "name the measure marginals in evaluate."
        distance = reports.findings([reports.figure("wasserstein", 0.3, "zip")])
        record["evaluation"] = {"measures": {"marginals": distance}, "gates": []}
        found = judge_utilities(record)[SHAPED]
        assert (found.state, found.value) == ("look", 0.3)
        assert "Not measured" not in found.reason
        distance["figures"][0]["of"] = "age"  # of which the share of rows is known
        assert judge_utilities(record)[SHAPED].reason == "Not measured: zip; name marginals."

    def test_gates_on_what_is_learned(self) -> None:
        record = measured("learning", reports.figure("accuracy_loss", 0.2, "a"))
        asked = gate("learning.auc_loss", "at most 0.3", "0.2 of a", passed=True)
        record["evaluation"]["gates"] = [asked]
        assert judge_utilities(record)[RELATED].value == 0.2
        record["evaluation"]["gates"] = [{**asked, "gate": "learning.accuracy_loss at most 0.3"}]
        assert judge_utilities(record)[RELATED].state == "good"

    @pytest.mark.parametrize("gated", [False, True])
    def test_what_its_own_measure_doubts_is_not_good(self, gated: bool) -> None:
        note = "fewer than 200 rows to test on"
        figure = reports.figure("accuracy_loss", -0.01, "a", note)
        record = measured("learning", figure)
        asked = gate("learning.accuracy_loss", "at most 0.1", "-0.01 of a", passed=True)
        record["evaluation"]["gates"] = [asked] if gated else []
        assert judge_utilities(record)[RELATED].state == "good"  # other notes are no doubt
        figure["doubtful"] = True
        found = judge_utilities(record)[RELATED]
        assert found.state == "look"
        assert found.reason.endswith(f" The measure doubts it: {note}.")
        assert "Within" in found.reason
        assert found.advice.startswith("decide whether the figure proves enough")
        asked["passed"] = False
        figure["value"] = 0.2
        found = judge_utilities(record)[RELATED]
        assert found.state == ("stop" if gated else "look")
        assert found.advice.startswith("declare the target")

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
        record["settings"]["source"]["filtered"] = True
        record["accountability"] = {"approver": "A. Officer", "purpose": "planning"}
        record["context"] = {"recipient": "the city", "access": "contract", "data": "adults only"}
        head = render(record).partition('<section id="verdicts"')[0]
        for name, value in (
            *(("approved by", "A. Officer"), ("purpose", "planning"), ("recipients", "the city")),
            *(("released", "2026-01-31 10:16 UTC"), ("filter", "adults only")),
            *(("access", "contract"), ("until", "no last day is set")),
        ):
            assert f"<dt>{name}</dt><dd>{value}</dd>" in head
        assert head.count("✓ good") == 4
        # The gate on the mean chance leaves the largest one: 10 persons are too few.
        assert head.count("! look") == 2
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
        record["audit"]["sizes"] = [[12, 2500]]
        assert "Nothing stands against it." in render(record)
