"""What pages take from the fields of a record, and from the texts of old ones."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonlib
from anonlib.config.model import Gate
from anonlib.evaluation import Evaluation, judge
from anonlib.measure import Figure, Findings
from anonlib.pages.front import find_chance, judge_risks
from anonlib.pages.specs import (
    find_measure,
    list_gates,
    list_models,
    read_persons,
    read_verdict_spec,
)


def make(**changes: Any) -> dict[str, Any]:
    """The record of a release whose columns have names that look like parts of labels."""
    random = np.random.default_rng(0)
    names = ("a", "pay", "pay l=9", "one row per person")
    data = pd.DataFrame({name: random.choice(list("uvwxyz"), 300) for name in names})
    roles = {"pay": "sensitive", "pay l=9": "sensitive", "one row per person": "drop"}
    config = {
        "attributes": {
            "a": {"role": "quasi_identifier", "scale": "nominal"},
            **{name: {"role": role} for name, role in roles.items()},
        },
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 5},
                {"type": "l_diversity", "l": 2, "attribute": "pay l=9"},
            ]
        },
        **changes,
    }
    record: dict[str, Any] = anonlib.anonymize(data, config).record
    return record


def as_earlier(record: dict[str, Any]) -> dict[str, Any]:
    """The record as versions without specs wrote it."""
    verdicts = [
        {name: value for name, value in each.items() if name != "spec"}
        for each in record["audit"]["verdicts"]
    ]
    audit = {**record["audit"], "verdicts": verdicts}
    return {name: v for name, v in {**record, "audit": audit}.items() if name != "specs"}


def test_a_column_named_like_a_part_of_a_label() -> None:
    record = make()
    assert "No privacy model protects pay:" in judge_risks(record)[1].reason
    assert [read_verdict_spec(each) for each in record["audit"]["verdicts"]] == [
        {"type": "k_anonymity", "k": 5},
        {"type": "l_diversity", "l": 2, "attribute": "pay l=9"},
    ]
    assert list_models(record)[1]["attribute"] == "pay l=9"


def test_a_joint_verdict_says_so_in_its_spec() -> None:
    pair = [{"type": "l_diversity", "l": 2, "attribute": name} for name in ("pay", "pay l=9")]
    models = [{"type": "k_anonymity", "k": 5}, *pair]
    record = make(privacy={"models": models, "joint": True})
    joint = [read_verdict_spec(each).get("joint") for each in record["audit"]["verdicts"]]
    assert joint == [None] * 3 + [True] * 2


def test_persons_by_a_column_named_like_a_text() -> None:
    record = make(one_row_per_person=False, unit=["one row per person"])
    persons = read_persons(record)
    assert (persons.kind, persons.are_rows) == ("unit", False)
    assert read_persons(as_earlier(record)) == persons
    assert record["settings"]["persons"] == "unit of 1 column: one row per person"


@pytest.mark.parametrize(
    ("returned", "by_batch", "are_rows"),
    [(False, False, True), (True, True, True), (True, False, False)],
)
def test_persons_of_several_batches(*, returned: bool, by_batch: bool, are_rows: bool) -> None:
    """A class of the whole table may have several rows of a person; a class of a batch has one."""
    record = make()
    record["persons_return"] = returned
    record["audit"]["by_batch"] = by_batch
    assert read_persons(record).are_rows is are_rows
    assert read_persons(as_earlier(record)).are_rows is are_rows
    assert (find_chance(record) is not None) is are_rows


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("unit of 1 columns: id", "unit"),
        ("one row per person, declared", "declared"),
        ("one row per person: id", "checked"),
        ("one row per person", "checked"),
        ("", ""),
    ],
)
def test_persons_of_earlier_versions(text: str, kind: str) -> None:
    assert read_persons({"settings": {"persons": text}}).kind == kind


def test_measures() -> None:
    record = make(evaluate={"measures": [{"type": "disclosure", "threshold": 0.7}]})
    assert find_measure(record, "disclosure")["threshold"] == 0.7
    assert find_measure(as_earlier(record), "disclosure")["threshold"] == "0.7"
    assert find_measure(record, "linkage") == {}


@pytest.mark.parametrize("value", [0.25, None])
def test_gates(value: float | None) -> None:
    """Columns may have names like the words of a gate."""
    of = "x at most 1"
    figures = (Figure("certain", value, of, "too small"), Figure("certain", 0.1, "y"))
    found = Evaluation({"disclosure": Findings(figures)})
    gates = [
        Gate(figure="disclosure.certain", of=of, at_least=0.5),
        Gate(figure="disclosure.certain", at_most=0.2),
    ]
    judged = Evaluation(found.findings, tuple(judge(gate, found) for gate in gates))
    first, second = list_gates({"evaluation": judged.to_dict()})
    assert (first.of, first.bound, first.least, first.most) == (of, "at least 0.5", True, False)
    assert first.measure == "disclosure"
    amount = "" if value is None else "0.25"
    assert (first.amount, first.subject) == (amount, of)
    assert (second.of, second.amount, second.subject) == (None, amount, of)
