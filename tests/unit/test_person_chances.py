"""Each person counts once, by the smallest class that they have rows in."""

import json
from typing import Any

import pandas as pd
import pytest

import anonlib
from anonlib.errors import GateError
from anonlib.in_hand.released_table import Release
from anonlib.pages.seal import seal_record

MEASURES: dict[str, Any] = {"measures": ["reidentification", "uniqueness"]}


def visits() -> pd.DataFrame:
    """200 persons in 20 months. In 19 months they are one class, in the last one 20 of 10."""
    return pd.DataFrame(
        {
            "month": f"m{month}",
            "clinic": f"c{person // 10 if month == 19 else 0}",
            "ill": ("flu", "cold", "gout")[(person + month) % 3],
            "person": person,
        }
        for month in range(20)
        for person in range(200)
    )


def released(**changes: Any) -> Release:
    given = {"quasi_identifiers": ["month", "clinic"], "sensitive": ["ill"], "k": 10, "l": 2}
    return anonlib.anonymize(visits(), **{**given, "unit": ["person"], **changes})


def figures(release: Release) -> dict[tuple[str, str], float | None]:
    assert release.evaluation is not None
    return {(f"{m}.{f.name}", f.of): f.value for m, f in release.evaluation.figures()}


def test_everybody_is_found_in_a_class_of_ten() -> None:
    found = released(evaluate=MEASURES)
    assert found.audit.n_classes == 39
    assert found.risk == {"prosecutor_max": 0.1, "marketer": 0.1, "prosecutor_at_risk": 1.0}
    assert "mean chance to be found: 0.1" in repr(found)
    values = figures(found)
    for name in ("prosecutor_max", "prosecutor_mean", "journalist_max", "marketer"):
        assert values[f"reidentification.{name}", ""] == 0.1
    for name in ("prosecutor_at_risk", "journalist_at_risk"):
        assert values[f"reidentification.{name}", ""] == 1.0
    assert found.evaluation is not None
    measured = found.evaluation.findings["reidentification"]
    assert all("counts once, by the smallest" in figure.note for figure in measured.figures)
    histogram, above = measured.series
    assert histogram.rows == ((10, 10, 20, 200), (200, 200, 19, 0))
    assert [row[1] for row in above.rows if row[0] <= 0.1] == [1, 1, 1, 1, 0]


def test_gates_are_judged_by_persons() -> None:
    bounds = {"prosecutor_at_risk": 0.1, "marketer": 0.02}
    gates = [{"figure": f"reidentification.{n}", "at_most": most} for n, most in bounds.items()]
    said = r"prosecutor_at_risk at most 0.1: 1; reidentification.marketer at most 0.02: 0.1$"
    with pytest.raises(GateError, match=said):
        released(evaluate=MEASURES, gates=gates)


def test_the_certificate_has_the_persons_own_chance() -> None:
    sealed = seal_record(json.dumps(dict(released(evaluate=MEASURES).record)))
    (risks,) = [each for each in sealed.content["sections"] if each["title"] == "Risks"]
    lines = {line["cells"][0]: line["cells"][1:] for line in risks["lines"]}
    how = "measured, each person by the smallest class"
    assert [*lines["mean chance to be found by class size"]] == ["0.1", "–", how, "above 0.09"]


def test_rows_of_nobody_are_not_counted_and_one_class_each_is_no_note() -> None:
    data = visits()
    data.loc[data["month"] != "m19", "person"] = None
    found = anonlib.anonymize(
        data, quasi_identifiers=["clinic"], sensitive=[], unit=["person"], k=10, evaluate=MEASURES
    )
    assert found.risk == {"prosecutor_max": 0.1, "marketer": 0.1, "prosecutor_at_risk": 1.0}
    assert found.evaluation is not None
    notes = [figure.note for _, figure in found.evaluation.figures()]
    assert not any("several classes" in note for note in notes)


def test_rows_of_one_person_do_not_hide_each_other() -> None:
    """Everybody has 20 equal rows, in a ward and a bed of their own."""
    data = visits().assign(ward=lambda d: d["person"] // 15, bed=lambda d: d["person"] % 15)
    found = anonlib.anonymize(
        data,
        quasi_identifiers=["ward", "bed"],
        sensitive=[],
        unit=["person"],
        k=10,
        evaluate={"measures": ["special_uniques"]},
    )
    values = figures(found)
    assert values["special_uniques.singled_out", ""] == 1
    assert values["special_uniques.singled_out_after", ""] == 0


def test_chances_of_rows_pass_no_gate_on_persons() -> None:
    fairness = {"type": "fairness", "columns": ["clinic"]}
    gates = [{"figure": "fairness.worst_risk", "at_most": 0.9}]
    said = "fairness.worst_risk at most 0.9: unknown for persons of clinic, each row counts; by the"
    with pytest.raises(GateError, match=said):
        released(evaluate={"measures": [fairness]}, gates=gates)
    gates = [{"figure": "fairness.worst_loss", "at_most": 1}]
    assert released(evaluate={"measures": [fairness]}, gates=gates).evaluation


def test_who_is_alone_in_one_row_is_unique() -> None:
    """10 of 200 persons have a row of their own, and 19 rows or 20 that hide them."""
    data = visits()
    data.loc[(data["month"] == "m19") & (data["person"] < 10), "clinic"] = [*"abcdefghij"]
    population = {"type": "uniqueness", "population": 4000}
    found = anonlib.anonymize(
        data,
        quasi_identifiers=["month", "clinic"],
        sensitive=[],
        unit=["person"],
        k=10,
        evaluate={"measures": [population]},
    )
    values = figures(found)
    assert values["uniqueness.source_unique", ""] == 10 / 200
    assert values["uniqueness.population_unique", "Zayatz"] is None
    assert values["uniqueness.population_unique", "Pitman"] is None
