"""Releases under every privacy model: blocks hold them, kernels keep them, the audit sees them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import InfeasibleError
from tests.spark.test_release import config

pytestmark = pytest.mark.spark


def with_models(path: Path, *models: dict[str, Any], **changes: Any) -> dict[str, Any]:
    privacy = {"models": [{"type": "k_anonymity", "k": 5}, *models]}
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
    assert "column diagnosis does not hold it in the whole table" in text or "asks for" in text
    assert "privacy.models.l_diversity" in text
