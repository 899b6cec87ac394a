"""What of the privacy models is refused before a run in Spark begins. `test_release_models` has
releases under them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import ConfigError, InfeasibleError
from anonlib.source.generator import DIAGNOSES
from tests.spark.test_release import ROWS, config

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
    assert result.n_rows_out == ROWS
    plain = anonlib.parse(with_models(tmp_path / "plain"))
    assert result.n_cells < anonlib.release(plain).n_cells


def test_what_the_whole_table_does_not_hold(spark: SparkSession, tmp_path: Path) -> None:
    given = with_models(
        tmp_path,
        {"type": "alpha_k", "alpha": 0.001, "attribute": "diagnosis"},
        {"type": "l_diversity", "l": 5, "kind": "entropy", "attribute": "label"},
    )
    with pytest.raises(InfeasibleError) as caught:
        anonlib.check(anonlib.parse(given))
    text = str(caught.value)
    assert "column diagnosis does not hold it in all rows as one cell" in text or "asks for" in text
    assert "privacy.models.l_diversity" in text


def test_hierarchy_of_a_sensitive_column(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "diagnoses.csv"
    path.write_text("".join(f"{value};*\n" for value in DIAGNOSES[1:]))
    distance = {"type": "t_closeness", "t": 0.3, "distance": "hierarchical"}
    given = with_models(tmp_path, {**distance, "attribute": "diagnosis"})
    given["attributes"]["diagnosis"] = {"role": "sensitive", "hierarchy": str(path)}
    with pytest.raises(ConfigError) as caught:
        anonlib.check(anonlib.parse(given))
    (problem,) = caught.value.problems
    assert problem.where == "attributes.diagnosis.hierarchy"
    assert problem.text.startswith("lacks 1 of the distinct values that the column has; add them")


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
