"""The risks of a certificate, and the points of its annexes that speak of attacks."""

import json

import pytest

from anonlib.pages import render
from anonlib.pages.seal import seal_record
from tests import reports
from tests.unit.test_certificate import attack, facts, record, texts


def test_attacks_that_were_made() -> None:
    measures = attack("singling_out", ("", 0.02, 0.01, 0.04))
    measures |= attack("inference", ("age", 0.1, 0.05, 0.2), ("diagnosis", 0.3, 0.2, 0.4))
    measures |= attack("linkability", ("", 0.02, 0.01, 0.1)) | attack("downcoding")
    gates = [{"gate": "inference.risk at most 0.5", "passed": True, "found": "x"}]
    measures["disclosure"] = reports.findings([reports.figure("certain", 0.996, "diagnosis")])
    measures |= attack("differencing", ("diagnosis", 0.02, 0.01, 0.04))
    found = facts(evaluation={"measures": measures, "gates": gates})
    risks = texts(found, "Risks")
    assert risks["singling out"] == (
        "0.12 (2,000) | 0.1 | 0.02, 0.01 to 0.04 | no gate; upper end within 0.09"
    )
    assert risks["linkability"].endswith("| no gate; upper end above 0.09")
    assert risks["differencing of diagnosis"].endswith(
        "0.01 to 0.04 | no gate; upper end within 0.09"
    )
    assert "downcoding" not in risks
    assert risks["inference of diagnosis"] == (
        "0.4 (2,000) | 0.1 | 0.3, 0.2 to 0.4 | inference.risk at most 0.5"
    )
    assert risks["rows whose class all but tells diagnosis"].startswith("0.996 | – | share of rows")
    wp216 = texts(found, "Annex: Opinion 05/2014")
    assert wp216["3 singling out"] == "k = 10; attacked, see Risks"
    assert texts(found, "Annex: ISO/IEC")["8.2.3 adversarial testing"] == (
        "singling out, linkability, inference, differencing, disclosure"
    )
    nothing = facts(evaluation={"measures": {"linkability": reports.findings([])}, "gates": []})
    assert texts(nothing, "Annex: Opinion 05/2014")["3 linkability"] == "not covered"


def test_only_a_gate_on_a_risk_takes_the_place_of_the_threshold() -> None:
    """One on another column, on another figure, or from below, is no bound of this risk."""
    measures = attack("inference", ("age", 0.1, 0.05, 0.2), ("illness", 0.3, 0.2, 0.4))
    gates = [
        {"gate": f"inference.{text}", "passed": True, "found": "x"}
        for text in ("high of age at most 0.25", "attempts at least 100", "risk at least 0")
    ]
    found = facts(evaluation={"measures": measures, "gates": gates})
    risks = texts(found, "Risks")
    assert risks["inference of illness"].endswith(
        "| inference.attempts at least 100; inference.risk at least 0; upper end above 0.09"
    )
    assert risks["inference of age"].endswith(
        "high of age at most 0.25; inference.attempts at least 100; inference.risk at least 0"
    )
    ema = texts(found, "Annex: EMA")
    assert ema["4 threshold"].endswith(
        "above 0.09; k = 10, so at most 1/10; policy ours: what we ask"
    )
    assert "inference" not in ema["4 threshold"]


def test_other_subjects_of_an_attack_are_told() -> None:
    """All of few. Of many those whose interval excludes 0, or is unknown, and how many others."""
    few = attack("inference", ("a", 0.1, 0.0, 0.2), ("b", 0.05, 0.0, 0.1), ("c", 0.0, 0.0, 0.0))
    risks = texts(facts(evaluation={"measures": few, "gates": []}), "Risks")
    assert [name for name in risks if name.startswith("inference")] == [
        f"inference of {name}" for name in "abc"
    ]
    more = [("d", 0.01, 0.001, 0.02), ("e", 0.0, 0.0, 0.05)]
    many = attack("inference", ("a", 0.1, 0.0, 0.2), ("b", 0.05, 0.0, 0.1), *more)
    risks = texts(facts(evaluation={"measures": many, "gates": []}), "Risks")
    assert [name for name in risks if name.startswith("inference")] == [
        "inference of a",
        "inference of d",
        "inference of 2 other columns",
    ]
    assert risks["inference of 2 other columns"] == "attacked | – | each interval begins at 0 | –"


def test_annexes_cover_what_the_run_speaks_to() -> None:
    """And say of a point no more than that: a purpose is no legal basis."""
    context = {"recipient": "a university", "may_know": ["age"]}
    measures = attack("inference", ("diagnosis", 0.3, 0.2, 0.4))
    found = facts(context=context, evaluation={"measures": measures, "gates": []})
    wp216, ema, iso = (texts(found, f"Annex: {name}") for name in ("Opinion", "EMA", "ISO"))
    assert texts(found, "Who, what for")["recipients"] == "a university"
    assert iso["9.2.4 managing a disclosure"] == (
        "recipients: a university; what binds them is not covered"
    )
    assert wp216["2.2.1 lawfulness of the process"] == (
        "purpose: a <study>; a legal basis is not covered"
    )
    told = "attackers may know age; tried: inference, see Risks"
    assert ema["2 adversaries and attacks"] == told
    chance = "largest chance to be found: at most 1/10 by class size: above 0.09"
    assert wp216["2.2.2 potential identifiability"] == f"{chance}; {told}"
    assert iso["8.3.3 transforming the data"] == (
        "classes by mdav; quasi-identifiers are released as: interval, set"
    )
    nothing = facts(context={}, accountability={}, evaluation={"measures": {}, "gates": []})
    assert texts(nothing, "Annex: EMA")["2 adversaries and attacks"] == "not covered"
    assert texts(nothing, "Annex: ISO")["9.2.4 managing a disclosure"] == "not covered"


def test_annexes_name_the_column_of_each_model() -> None:
    given = record()
    given["settings"]["models"] = [
        *("k_anonymity k=10", "l_diversity l=2", "l_diversity l=2 attribute=income")
    ]
    diverse = texts(seal_record(json.dumps(given)), "Annex: Opinion")[
        "3.2.2 l-diversity, t-closeness"
    ]
    assert diverse == "l-diversity of diagnosis, l = 2; l-diversity of income, l = 2"
    of_thal = {**given["audit"]["verdicts"][1], "model": "l_diversity l=2 attribute=thal"}
    given["audit"]["verdicts"].append(of_thal)
    found = seal_record(json.dumps(given))
    diverse = "l-diversity of diagnosis, thal, l = 2; l-diversity of income, l = 2"
    wp216 = texts(found, "Annex: Opinion")
    assert wp216["3.2.2 l-diversity, t-closeness"] == diverse
    assert wp216["3 inference"].startswith(diverse)
    assert texts(found, "Annex: EMA")["6 methodology"].endswith(diverse)
    assert texts(found, "Annex: ISO/IEC")["7.3.4 data privacy models"].endswith(diverse)


def test_annexes_name_the_tests_that_the_risks_show() -> None:
    linkage = [reports.figure("record", 0.05), reports.figure("record_guess", 0.002)]
    measures = {"linkage": reports.findings(linkage)}
    found = facts(evaluation={"measures": measures, "gates": []}, n_suppressed=0)
    risks = texts(found, "Risks")
    line = "linkage: sampled rows found by the nearest released tuple"
    assert risks[line] == "0.05 | 0.002 by guessing | share of rows | no gate"
    iso = texts(found, "Annex: ISO/IEC")
    assert iso["8.2.3 adversarial testing"] == "linkage of rows to the nearest tuples"
    assert texts(found, "Annex: Opinion 05/2014")["3 linkability"] == "not covered"
    gates = [{"gate": "linkage.record at most 0.1", "passed": True, "found": "x"}]
    few = facts(evaluation={"measures": measures, "gates": gates}, n_suppressed=3)
    told = texts(few, "Risks")[line]
    assert told.startswith("withheld: ")
    assert told.endswith("linkage.record at most 0.1")
    measures |= {"linkage": reports.findings([reports.figure("record_bound", 0.1)])}
    measures |= {"disclosure": reports.findings([reports.figure("lone", 0.1, "age")])}
    found = facts(evaluation={"measures": measures, "gates": []})
    assert line not in texts(found, "Risks")
    assert texts(found, "Annex: ISO/IEC")["8.2.3 adversarial testing"] == "not covered"


@pytest.mark.parametrize(
    ("high", "word"), [(0.2, "upper end above"), (None, "not known to be within")]
)
def test_the_subject_whose_risk_may_be_the_highest(high: float | None, word: str) -> None:
    """As in the report: few attempts on it prove little."""
    measures = attack("inference", ("occupation", 0.05, 0.04, 0.06), ("rare", 0.01, 0.0, high))
    found = facts(evaluation={"measures": measures, "gates": []})
    line = texts(found, "Risks")["inference of rare"]
    assert line.endswith(f"no gate; {word} 0.09")


def test_the_release_that_attacks_are_made_on() -> None:
    settings = record()["settings"]
    settings["measures"] = ["linkability attempts=2000 holdout=0.25", "membership holdout=0.4"]
    measures = attack("linkability", ("", 0.02, 0.01, 0.1)) | attack("membership")
    given = record(settings=settings, evaluation={"measures": measures, "gates": []})
    text = texts(seal_record(json.dumps(given)), "Risks")["attacks"]
    told = "from which 25 % of the persons were held out; these are the control."
    assert text.endswith(f"{told} The excess is (attack - control) / (1 - control).")
    assert told in render(given).partition('<section id="risk"')[2]
    assert "attacks" not in texts(facts(settings=settings), "Risks")
