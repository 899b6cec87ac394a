"""What Spark refuses of a table is what is refused of it in memory: models that all rows together
do not hold, and values of single persons."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anonlib.decisions import refusals
from anonlib.errors import ConfigError, InfeasibleError, Problem
from anonlib.run import feasible, small_table
from anonlib.run.scan import scan
from anonlib.source.resolved_source import open_source
from tests.unit.test_problems_in_memory import N, config_of, found, frame, with_own_labels

pytestmark = pytest.mark.spark

INSENSITIVE, SENSITIVE = {"role": "insensitive"}, {"role": "sensitive"}
DROP = {"role": "drop"}
DIVERSE = {"type": "l_diversity", "l": 2, "attribute": "ill"}
PERSONS = {"unit": ["id"], "one_row_per_person": False}


def refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: pa.Table, *models: Any, **more: Any
) -> list[Problem]:
    """The problems of a table, by Spark alone, sorted."""
    monkeypatch.setattr(small_table, "MOST_BYTES", -1)
    config = config_of(*models, **more)
    source = open_source(spark, config, spark.createDataFrame(table).repartition(3))
    try:
        scan(source, config)
    except (ConfigError, InfeasibleError) as error:
        return sorted(error.problems, key=str)
    finally:
        source.close()
    return []


def with_labels(rows: pd.DataFrame) -> pd.DataFrame:
    """A label that is the illness wherever both are known, beside what is rare."""
    rows = rows.assign(label="L" + rows["ill"], other="?")
    rows.loc[:3, "label"] = ["?", None, "l0 ", "l0"]
    rows.loc[2:5, "ill"] = ["?", None, "0", "0"]
    rows.loc[4:5, "label"] = "l0"
    rows.loc[6:9, "note"] = ["c", "c", "c", None]
    rows.loc[11, "id"] = "p1"
    return rows


def with_one_that_differs(rows: pd.DataFrame) -> pd.DataFrame:
    """A label that says less by one row, notes of k rows, zeros that are one."""
    rows = rows.assign(label="l" + rows["ill"], id=np.arange(N, dtype=float))
    rows.loc[0, "label"] = "l0" if rows.loc[0, "ill"] != "0" else "l1"
    rows.loc[[7, 8, 9, 10], "note"] = "c"
    rows["deep"] = [[1, 2]] * 30 + [[2, 1]] * 30
    rows["real"] = [0.0, -0.0] * 30
    rows.loc[5, "id"] = -0.0
    return rows


def with_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    rows["deep"] = [[1, 2]] * 58 + [[2, 1]] * 2
    rows.loc[3, "id"] = None
    return rows


def of_persons(rows: pd.DataFrame) -> pd.DataFrame:
    """Two of three persons are ill, one of them in most of the rows; others are not known, and an
    illness is of nobody."""
    rows["id"] = [*["p0"] * 50, "p1", "p2", *[f"q{i % 4}" for i in range(N - 53)], None]
    rows["ill"] = [*["ill"] * 51, "well", *[None] * (N - 53), "of nobody"]
    return rows


def of_nobody(rows: pd.DataFrame) -> pd.DataFrame:
    """Who knows a wage finds one illness: the rows with another one are of nobody."""
    others = rows["wage"] == 1
    rows.loc[others, "ill"] = np.where(np.arange(others.sum()) < 3, "3", "4")
    rows.loc[others & (rows["ill"] == "3"), "id"] = None
    return rows


def with_one_other_label(rows: pd.DataFrame) -> pd.DataFrame:
    rows = pd.concat([rows] * 4, ignore_index=True)
    rows = rows.assign(label="l" + rows["ill"], id=[f"p{i}" for i in range(len(rows))])
    rows.loc[0, "label"] = "l0" if rows.loc[0, "ill"] != "0" else "l1"
    return rows


#: What becomes of the table; models, and changes of the config; where something is refused.
CASES: dict[str, tuple[Callable[[pd.DataFrame], Any], list[Any], dict[str, Any], list[str]]] = {
    "a key that repeats, a label that tells": (
        with_labels,
        [],
        {"one_row_per_person": "id", "attributes": {"other": SENSITIVE}},
        ["attributes.label", "one_row_per_person", "privacy.acknowledge_unique"],
    ),
    "one zero, and one row that differs": (
        with_one_that_differs,
        [],
        {"one_row_per_person": "id", "attributes": {"deep": INSENSITIVE, "real": INSENSITIVE}},
        ["one_row_per_person"],
    ),
    "a missing key, and a list that is rare": (
        with_gaps,
        [],
        {
            "one_row_per_person": "id",
            "attributes": {"deep": INSENSITIVE},
            "privacy": {"acknowledge_unique": ["note"]},
        },
        ["one_row_per_person", "privacy.acknowledge_unique"],
    ),
    "models of persons": (
        of_persons,
        [
            {"type": "alpha_k", "alpha": 0.65, "attribute": "ill"},
            {"type": "alpha_k", "alpha": 0.67, "attribute": "ill"},
            {**DIVERSE, "l": 3},
            {"type": "k_anonymity", "k": 8},
        ],
        PERSONS,
        [
            "privacy.models.alpha_k",
            "privacy.models.k_anonymity",
            "privacy.models.l_diversity",
        ],
    ),
    "who knows a wage": (
        of_nobody,
        [DIVERSE, {"type": "l_diversity", "l": 4, "attribute": "wage"}],
        {**PERSONS, "privacy": {"joint": True}},
        ["privacy.joint", "privacy.joint", "privacy.models.l_diversity"],
    ),
    "a label that tells in all rows but one": (
        with_one_other_label,
        [],
        {},
        ["attributes.label"],
    ),
    "a label of nearly each row that agrees by chance": (
        lambda _: with_own_labels(1),
        [],
        {"attributes": {"wage": DROP}, "privacy": {"acknowledge_unique": ["label"]}},
        [],
    ),
    "a label of nearly each row that tells": (
        lambda _: with_own_labels(3),
        [],
        {"attributes": {"wage": DROP}, "privacy": {"acknowledge_unique": ["label"]}},
        ["attributes.label"],
    ),
    "nothing": (
        lambda rows: rows,
        [DIVERSE, {"type": "alpha_k", "alpha": 0.5, "attribute": "wage"}],
        {"one_row_per_person": "id", "privacy": {"joint": True}},
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_memory_refuses(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    change, models, more, places = CASES[case]
    table = pa.Table.from_pandas(change(frame()), preserve_index=False)
    expected = sorted(found(table, *models, **more), key=str)
    assert [problem.where for problem in expected] == places
    assert refused(spark, monkeypatch, table, *models, **more) == expected


def test_a_label_of_nearly_each_row_is_to_be_acknowledged(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.Table.from_pandas(with_own_labels(1), preserve_index=False)
    (problem,) = found(table, attributes={"wage": DROP})
    assert "(119 values in 120 rows)" in problem.text
    assert problem in refused(spark, monkeypatch, table, attributes={"wage": DROP})


def test_many_combinations(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame().assign(ill=np.arange(N) % 5, wage=np.arange(N) % 3)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    for most, says in ((14, ["have more than 14 combinations of values, too many"]), (15, [])):
        for module in (feasible, refusals):
            monkeypatch.setattr(module, "MAX_COMBINATIONS", most)
        problems = refused(spark, monkeypatch, table, DIVERSE, privacy={"joint": True})
        assert [problem.where for problem in problems] == ["privacy.joint"] * len(says)
        assert all(text in str(problems) for text in says)


@pytest.mark.parametrize("most", [4, 5])
def test_many_values(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A missing value is none of them."""
    rows = frame()
    rows["ill"] = rows["ill"].where(np.arange(N) % 7 > 0, None)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    model = {"type": "alpha_k", "alpha": 0.5, "attribute": "ill"}
    for place in ("decisions.protected", "decisions.refusals", "run.scan"):
        monkeypatch.setattr(f"anonlib.{place}.MAX_VALUES", most)
    problems = found(table, model)
    assert [problem.where for problem in problems] == ["column ill"] * (most == 4)
    assert refused(spark, monkeypatch, table, model) == problems
