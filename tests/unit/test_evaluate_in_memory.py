"""Measures and gates of a release in memory, without Spark."""

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonlib
from anonlib.auditing.arrow_values import RowNumbers
from anonlib.errors import ConfigError, GateError
from anonlib.evaluation.memory_classes import count_certainty
from anonlib.evaluation.memory_samples import draw_sample, take_first_of_each
from anonlib.in_hand.released_table import Release

GIVEN: dict[str, Any] = {
    "quasi_identifiers": ["age", "city"],
    "sensitive": ["illness"],
    "one_row_per_person": True,
    "k": 5,
    "seed": 3,
}


def people(n: int = 600) -> pa.Table:
    random = np.random.default_rng(4)
    age = random.integers(18, 90, n)
    return pa.table(
        {
            "age": age,
            "city": random.choice(["Aberdeen", "Bonn", "Cork"], n),
            "illness": np.where(age > 50, "flu", random.choice(["cold", "none"], n)),
            "person": np.arange(n) // 2,
        }
    )


def released(*measures: str | dict[str, Any], **changes: Any) -> Release:
    named = [each if isinstance(each, dict) else {"type": each} for each in measures]
    return anonlib.anonymize(people(), **{**GIVEN, "evaluate": {"measures": named}, **changes})


def figures(release: Release) -> dict[tuple[str, str], float | None]:
    assert release.evaluation is not None
    return {(m, f.name): f.value for m, f in release.evaluation.figures()}


def test_gates_stop_a_release() -> None:
    gate = {"figure": "disclosure.gain", "at_most": 0.01}
    with pytest.raises(GateError, match=r"gates not passed.*disclosure\.gain"):
        released("disclosure", gates=[gate])


def test_a_gain_at_its_bound_passes() -> None:
    """9 of 10 less 7 of 10 is 2 of 10, not what is left of two rounded quotients."""
    table = pa.table({"g": [*"aabbccddee"], "s": [*"xxyxxxxxyy"]})
    k2 = {"models": [{"type": "k_anonymity", "k": 2}]}
    release = anonlib.anonymize(
        table,
        quasi_identifiers=["g"],
        sensitive=["s"],
        one_row_per_person=True,
        privacy=k2,
        evaluate={"measures": ["disclosure"]},
        gates=[{"figure": "disclosure.gain", "at_most": 0.2}],
    )
    assert figures(release)["disclosure", "gain"] == 0.2


def test_gates_that_pass_are_said() -> None:
    gate = {"figure": "uniqueness.release_unique", "at_most": 0}
    found = released("uniqueness", gates=[gate])
    assert "gate passed: uniqueness.release_unique at most 0: 0" in repr(found)
    assert found.record["evaluation"]["gates"][0]["passed"]
    assert "uniqueness" in found.report()
    assert found.table.column_names == ["age", "city", "illness"]  # no links, no marks


def test_every_class_has_the_rows_that_the_audit_counts() -> None:
    found = figures(released("reidentification"))
    table = released().table
    n = table.group_by(["age", "city"]).aggregate([([], "count_all")]).column("count_all")
    assert found["reidentification", "prosecutor_max"] == 1 / pc.min(n).as_py()
    assert found["reidentification", "prosecutor_mean"] == pytest.approx(len(n) / len(table))


def test_persons_of_a_unit_are_counted() -> None:
    persons = {"one_row_per_person": None, "unit": ["person"], "identifiers": ["person"]}
    found = figures(released("reidentification", "uniqueness", "singling_out", **persons))
    assert found["reidentification", "prosecutor_max"] == pytest.approx(1 / 5, abs=0.09)
    assert found["singling_out", "attempts"]


def test_what_needs_spark_has_no_value_and_passes_no_gate() -> None:
    source = {"format": "csv", "path": "nowhere.csv"}
    population = {"type": "population", "source": source, "columns": {"age": "age"}}
    learning = {"type": "learning", "engine": "spark"}
    found = released(population, learning, target="illness", sensitive=[], target_is_public=True)
    assert found.evaluation is not None
    notes = {(m, f.note) for m, f in found.evaluation.figures() if m != "overview"}
    assert any("released as intervals" in note or "in Spark only" in note for _, note in notes)
    assert set(figures(found).values()) == {None}
    gate = {"figure": "learning.accuracy", "at_least": 0}
    with pytest.raises(GateError, match="not computable"):
        released(learning, target="illness", sensitive=[], target_is_public=True, gates=[gate])


def test_figures_of_published_tables_are_no_gates() -> None:
    with pytest.raises(ConfigError, match="published tables only"):
        released("order", gates=[{"figure": "order.correlation", "at_most": 1}])


def test_spark_is_not_imported() -> None:
    code = (
        "import sys; from tests.unit.test_evaluate_in_memory import released; "
        "released('moments', 'linkage', 'membership', 'special_uniques', 'disclosure'); "
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 80))
def test_a_sample_has_each_value_by_its_share(values: list[int], size: int) -> None:
    table = pa.table({"x": pa.array(values, pa.int64())})
    found = draw_sample(table, size, 7)
    assert found.equals(draw_sample(table.take(pa.array(np.argsort(values))), size, 7))
    count = np.bincount(found.column("x").to_numpy(), minlength=6)
    expected = np.bincount(values, minlength=6) * min(1.0, size / len(values))
    assert (np.abs(count - expected) < 1 + 1e-9).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_certainty_is_counted(rows: list[tuple[int, int]]) -> None:
    keys, values = (np.array(each, np.int64) for each in zip(*rows, strict=True))
    known, place = np.unique(keys, return_inverse=True)
    bins, present, most = count_certainty(
        RowNumbers(place, len(known)), RowNumbers(values, 4), threshold=0.5, n_bins=4
    )
    by_class = [np.bincount(values[place == i], minlength=4) for i in range(len(known))]
    some = [each for each in by_class if each[1:].any()]
    assert sum(each.classes for each in bins) == len(some)
    assert sum(each.rows for each in bins) == sum(int(each.sum()) for each in some)
    assert sum(each.most for each in bins) == sum(int(each[1:].max()) for each in some)
    certain = [int(e[1:].sum()) for e in some if 2 * e[1:].max() >= e[1:].sum()]
    assert sum(each.certain for each in bins) == sum(certain)
    assert present == int((values > 0).sum())
    assert most == int(np.bincount(values, minlength=4)[1:].max())


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_first_of_each(numbers: list[int]) -> None:
    known, place = np.unique(numbers, return_inverse=True)
    first = take_first_of_each(place, len(known))
    assert [numbers.index(each) for each in known.tolist()] == first.tolist()


@pytest.mark.parametrize("kernel", ["peel", "greedy", "full_domain"])
def test_a_search_over_tuples_counts_no_other_columns(kernel: str) -> None:
    """Rows of one tuple differ in columns that no model protects: the first says nothing of all."""
    table = pa.table(
        {
            "city": ["a", "b"] * 20,
            "illness": [f"case {i}" for i in range(40)],
            "sex": ["f"] * 23 + ["m"] * 17,
        }
    )
    given: dict[str, Any] = {
        "quasi_identifiers": ["city"],
        "sensitive": ["illness", "sex"],
        "scales": {"city": "nominal"},
        "recode": {"nominal": "lca"},
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}], "acknowledge_unique": True},
        "evaluate": {"measures": [{"type": "fairness", "columns": ["sex"]}]},
    }
    found = anonlib.anonymize(
        table,
        **{**GIVEN, "k": None, **given},
        partition={"steps": [{"type": "tuples"}]},
        kernel=kernel,
    )
    series = {each["of"]: each["rows"] for each in found.record["overview"]["series"]}
    assert series["sex"] == (("f", 0.575, 0.575), ("m", 0.425, 0.425))
    assert "case " not in str(series)
    assert {value for (measure, _), value in figures(found).items() if measure == "fairness"} == {
        None
    }


def test_a_column_whose_released_values_are_all_missing() -> None:
    """Shares of no rows are 0, and a record is JSON."""
    table = pa.table({"age": [10.0] * 5 + [20.0] * 5 + [None] * 20, "illness": ["a"] * 29 + ["b"]})
    scales = {"age": "continuous"}
    given = {**GIVEN, "quasi_identifiers": ["age"], "scales": scales, "l": 2}
    found = anonlib.anonymize(table, **given, evaluate={"measures": [{"type": "marginals"}]})
    assert found.table.column("age").null_count == 30
    shares = [
        row[1:]
        for findings in (
            found.record["overview"],
            found.record["evaluation"]["measures"]["marginals"],
        )
        for series in findings["series"]
        if series["of"] == "age"
        for row in series["rows"]
    ]
    assert shares
    assert {share[1] for share in shares} == {0}
    assert sum(share[0] for share in shares) == pytest.approx(2)
    assert "nan" not in str(found.record).lower()
