"""Releases under every privacy model: blocks hold them, kernels keep them, the audit sees them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib import pipeline
from anonlib.errors import ConfigError, InfeasibleError
from anonlib.source.generator import DIAGNOSES
from tests.spark.test_release import config

pytestmark = pytest.mark.spark


def with_models(path: Path, *models: dict[str, Any], **changes: Any) -> dict[str, Any]:
    models = ({"type": "k_anonymity", "k": 5}, *models)
    privacy = {"models": [*models], "acknowledge_unique": ["income"]}
    return config(path, privacy=privacy, kernel="mondrian", **changes)


def test_models_that_look_at_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Each of them changes the release; text, numbers and a target with a model of its own."""
    income, label = {"attribute": "income"}, {"attribute": "label"}
    models = [
        {"type": "l_diversity", "l": 3, "kind": "entropy", "attribute": "diagnosis"},
        {"type": "alpha_k", "alpha": 0.5, "attribute": "diagnosis"},
        {"type": "t_closeness", "t": 0.4, "attribute": "diagnosis"},
        {"type": "t_closeness", "t": 0.3, "distance": "ordered", **income},
        {"type": "delta_disclosure", "delta": 1.5, **label},
    ]
    given = with_models(tmp_path, *models)
    result = anonlib.release(anonlib.parse(given))
    assert result.audit is not None
    assert [verdict.holds for verdict in result.audit.verdicts] == [True] * 6
    assert result.n_rows_out == 3000
    plain = anonlib.parse(with_models(tmp_path / "plain"))
    assert result.n_cells < anonlib.release(plain).n_cells


def test_what_the_whole_table_does_not_hold(spark: SparkSession, tmp_path: Path) -> None:
    given = with_models(
        tmp_path,
        {"type": "alpha_k", "alpha": 0.001, "attribute": "diagnosis"},
        {"type": "l_diversity", "l": 5, "kind": "entropy", "attribute": "label"},
    )
    with pytest.raises(InfeasibleError) as caught:
        anonlib.release(anonlib.parse(given))
    text = str(caught.value)
    assert "column diagnosis does not hold it in all rows as one cell" in text or "asks for" in text
    assert "privacy.models.l_diversity" in text


def hierarchy(path: Path, values: Sequence[str]) -> dict[str, Any]:
    """The sensitive column `diagnosis` with its values in pairs, in other letters."""
    rows = [f"{value.upper()};pair {i // 2};*" for i, value in enumerate(values)]
    (path / "diagnoses.csv").write_text("\n".join(rows))
    return {"role": "sensitive", "hierarchy": str(path / "diagnoses.csv")}


def test_distance_along_a_hierarchy(spark: SparkSession, tmp_path: Path) -> None:
    given = with_models(
        tmp_path,
        {"type": "t_closeness", "t": 0.3, "distance": "hierarchical", "attribute": "diagnosis"},
    )
    given["attributes"]["diagnosis"] = hierarchy(tmp_path, DIAGNOSES)
    config = anonlib.parse(given)
    result = anonlib.release(config)
    assert result.audit is not None
    assert [verdict.holds for verdict in result.audit.verdicts] == [True] * 2
    assert result.n_rows_out == 3000
    plain = anonlib.release(anonlib.parse(with_models(tmp_path / "plain")))
    assert result.n_cells < plain.n_cells
    found = pipeline.audit_delta(plain.table, config).verdicts[1]
    assert not found.holds
    assert found.value is not None
    assert found.value > 0.3

    given["attributes"]["diagnosis"] = hierarchy(tmp_path, DIAGNOSES[1:])
    with pytest.raises(ConfigError) as caught:
        anonlib.check(anonlib.parse(given))
    (problem,) = caught.value.problems
    assert problem.where == "attributes.diagnosis.hierarchy"
    assert problem.text.startswith("lacks 1 of the distinct values that the column has; add them")


def test_other_sensitive_columns_are_known(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever knows a label does not find less than two diagnoses for it."""
    given = with_models(tmp_path, {"type": "l_diversity", "l": 2, "attribute": "diagnosis"})
    given["privacy"]["joint"] = True
    given["attributes"] |= {"label": {"role": "sensitive"}, "income": {"role": "drop"}}
    config = anonlib.parse(given)
    result = anonlib.release(config)
    assert result.audit is not None
    assert result.n_blocks > 1
    assert [(v.model, v.holds) for v in result.audit.verdicts] == [
        ("k_anonymity k=5", True),
        ("l_diversity l=2 attribute=diagnosis", True),
        ("l_diversity l=2 attribute=diagnosis joint=True", True),
    ]
    rows = spark.read.format("delta").load(result.table).toPandas().astype("string")
    names = [n for n, a in given["attributes"].items() if a["role"] == "quasi_identifier"]
    groups = rows.groupby([*names, "label"], dropna=False)["diagnosis"].nunique()
    assert groups.min() == 2
    assert len(groups) > result.n_cells


def test_known_columns_that_say_too_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = with_models(tmp_path, {"type": "l_diversity", "l": 2, "attribute": "diagnosis"})
    given["privacy"]["joint"] = True
    with pytest.raises(InfeasibleError) as caught:
        anonlib.check(anonlib.parse(given))
    (problem,) = caught.value.problems
    assert problem.where == "privacy.joint"
    said = "l_diversity: column diagnosis does not hold it where income is known, in "
    assert problem.text.startswith(said)
    monkeypatch.setattr("anonlib.local.problems.MAX_COMBINATIONS", 20)
    with pytest.raises(InfeasibleError, match="have more than 20 combinations of values, too many"):
        anonlib.check(anonlib.parse(given))
