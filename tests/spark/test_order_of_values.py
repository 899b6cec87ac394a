"""Models that go by the order of sensitive values: numbers are numbers, text has an order."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import ConfigError

pytestmark = pytest.mark.spark

STAGES = ["one", "two", "three", "four", "five"]


def config_of(path: Path, attribute: dict[str, Any], **privacy: Any) -> dict[str, Any]:
    models = [
        {"type": "k_anonymity", "k": 4},
        {"type": "t_closeness", "t": 0.25, "distance": "ordered", "attribute": "x"},
    ]
    return {
        "source": {"format": "csv", "path": str(path), "options": {"header": "true"}},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "x": {"role": "sensitive", **attribute},
        },
        "one_row_per_person": True,
        "privacy": {"models": models, **privacy},
        "kernel": {"type": "mdav"},
        "release": {"path": str(path.parent / "out")},
    }


def distance(values: np.ndarray[Any, Any], cell: np.ndarray[Any, Any]) -> float:
    """The earth mover's distance over ranks, by the definition."""
    known = sorted(set(values.tolist()))
    p, q = ([np.mean(part == value) for value in known] for part in (cell, values))
    return float(np.abs(np.cumsum(np.subtract(p, q))).sum() / (len(known) - 1))


def of_classes(released: pd.DataFrame, ranks: dict[Any, int]) -> float:
    """The largest distance of a class."""
    values = released["x"].map(ranks).to_numpy()
    groups = released.groupby("age").indices.values()
    return max(distance(values, values[rows]) for rows in groups)


def test_numbers_in_text_are_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """In the order of their letters 10 stands before 9: classes would look close that are not."""
    random = np.random.default_rng(3)
    x = random.choice([1, 2, 3, 9, 10, 11, 20, 100, 101, 1000], 400)
    pd.DataFrame({"age": np.arange(400), "x": x}).to_csv(tmp_path / "a.csv", index=False)
    result = anonlib.release(config_of(tmp_path / "a.csv", {}))
    assert result.audit is not None
    released = spark.read.format("delta").load(str(tmp_path / "out")).toPandas()
    assert released["x"].dtype.kind == "i"
    measured = of_classes(released, {value: i for i, value in enumerate(sorted(set(x.tolist())))})
    assert measured <= 0.25 + 1e-9
    assert result.audit.verdicts[1].value == pytest.approx(measured)


def test_text_needs_an_order(spark: SparkSession, tmp_path: Path) -> None:
    """One value that is no number makes a column text: that is not guessed away."""
    frame = pd.DataFrame({"age": range(40), "x": ["1", "2", "ten", "4"] * 10})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ConfigError, match=r"attributes\.x\.order: required") as caught:
        anonlib.check(config_of(tmp_path / "a.csv", {}))
    assert "ten" not in str(caught.value)


def test_numbers_kept_as_text_need_a_type(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(pd.DataFrame({"age": range(40), "x": ["9", "10"] * 20}))
    frame.write.parquet(str(tmp_path / "a"))
    given = config_of(tmp_path / "a", {})
    given["source"] = {"format": "parquet", "path": str(tmp_path / "a")}
    with pytest.raises(ConfigError, match=r"add `type`"):
        anonlib.check(given)
    given["attributes"]["x"]["type"] = "int"
    assert anonlib.release(given).n_rows_out == 40


def test_declared_order(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    x = [STAGES[i].upper() if i % 2 else STAGES[i] for i in random.integers(0, 5, 400)]
    pd.DataFrame({"age": range(400), "x": x}).to_csv(tmp_path / "a.csv", index=False)
    result = anonlib.release(config_of(tmp_path / "a.csv", {"order": STAGES}))
    released = spark.read.format("delta").load(str(tmp_path / "out")).toPandas()
    released["x"] = released["x"].str.lower()
    measured = of_classes(released, {value: i for i, value in enumerate(STAGES)})
    assert result.audit is not None
    assert result.audit.verdicts[1].value == pytest.approx(measured)
    assert measured <= 0.25 + 1e-9
