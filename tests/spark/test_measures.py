"""Measures of columns in Spark: the same as here, over every recoder."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from anonlib.measure.fidelity._axes import read_axes
from anonlib.measure.fidelity._tally import ColumnMeasure, TableStates, count
from tests.spark.cases import across, make_case

pytestmark = pytest.mark.spark

K = 4
GRADES = ["low", "middle", "high"]
HOW: dict[str, dict[str, Any]] = {
    "age": {"scale": "continuous", "recode": "centroid"},
    "born": {"scale": "continuous", "recode": "interval"},
    "wage": {"scale": "continuous", "recode": "suppress"},
    "grade": {"scale": "ordinal", "order": GRADES, "recode": "median"},
    "rank": {"scale": "ordinal", "recode": {"type": "interval", "form": "text"}},
    "town": {"scale": "nominal", "hierarchy": True, "recode": "lca"},
    "zip": {"scale": "nominal", "hierarchy": True, "recode": "proportional"},
    "sex": {"scale": "nominal", "recode": "mode"},
    "car": {"scale": "nominal", "recode": "set"},
}


def people(n: int = 300) -> pd.DataFrame:
    """Of 150 persons with two rows each."""
    random = np.random.default_rng(7)
    age = random.integers(18, 90, n)
    days = pd.to_timedelta(365 * (90 - age) + random.integers(0, 365, n), unit="D")
    frame = pd.DataFrame(
        {
            "person": np.arange(n) // 2,
            "age": pd.array(age, "Int64"),
            "born": (pd.Timestamp("1930-01-01") + days).date,
            "wage": age * 100.0 + random.integers(0, 900, n),
            "grade": random.choice(GRADES, n),
            "rank": random.integers(1, 9, n),
            "town": random.choice(list("abcd"), n),
            "zip": random.choice(list("abcd"), n),
            "sex": random.choice(["f", "m"], n),
            "car": random.choice(["red", "blue", "green"], n),
            "illness": random.choice(["flu", "gout", "mumps"], n),
            "income": age * 10.0,
            "note": [f"note {i}" for i in range(n)],
        }
    )
    frame.loc[::7, "age"] = None
    frame.loc[::9, "town"] = None
    return frame


def given(folder: Path) -> dict[str, Any]:
    tree = folder / "tree.csv"
    tree.write_text("a;ab;*\nb;ab;*\nc;cd;*\nd;cd;*\n", encoding="utf-8")
    quasi = {}
    for name, how in HOW.items():
        kept = {key: value for key, value in how.items() if key in ("scale", "order")}
        path = {"hierarchy": str(tree)} if "hierarchy" in how else {}
        quasi[name] = {"role": "quasi_identifier", **kept, **path}
    sensitive = {name: {"role": "sensitive"} for name in ("illness", "income", "note")}
    return {
        "source": {"format": "dataframe"},
        "attributes": {"person": {"role": "identifier"}, **quasi, **sensitive},
        "unit": ["person"],
        "privacy": {
            "models": [{"type": "k_anonymity", "k": K}],
            "acknowledge_unique": ["note", "income"],
        },
        "recode": {"columns": {name: how["recode"] for name, how in HOW.items()}},
        "evaluate": {
            "measures": [{"type": name} for name in ("moments", "marginals", "associations")]
            + [{"type": "queries", "n_queries": 30}]
        },
        "release": {"path": str(folder / "table")},
    }


def test_spark_finds_what_is_found_here(spark: SparkSession, tmp_path: Path) -> None:
    case = make_case(spark, given(tmp_path), people(), across(2 * K))
    view = read_axes(case)
    assert [axis.name for axis in view.axes] == [*HOW, "illness", "income"]
    assert view.left_out == ("note",)
    assert view.note == "without note: too many values, or of an odd type"
    assert view.least == 2 * K
    source, released = case.source.toArrow(), case.released.toArrow()
    assert case.measures
    for measure in case.measures:
        assert isinstance(measure, ColumnMeasure)
        parts = measure.parts(view)
        here = TableStates(
            view,
            count(parts, [source[i : i + 70] for i in range(0, 300, 70)], view, released=False),
            count(parts, [released], view, released=True),
        )
        found = measure.measure(case)
        assert found == measure.findings(here), measure.type
        assert {figure.name for figure in found.figures} == set(measure.names)
        assert all(figure.value is not None for figure in found.figures)
        told = view.note if measure.type in ("associations", "queries") else ""
        assert {figure.note for figure in found.figures} == {told}
    assert len(case.cache) == 1  # one pass over each table for all of them
