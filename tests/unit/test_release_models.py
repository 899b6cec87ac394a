"""Releases under every privacy model: blocks hold them, kernels keep them, the audit sees them. In
memory: `tests/spark/test_in_memory_as_spark.py` has that Spark releases the same rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anonlib
from anonlib.in_hand.released_table import Release

DIAGNOSES = [f"Diagnosis {letter}" for letter in "abcdefgh"]
QUASI = ["age", "gain", "city"]


def patients(n: int = 3000) -> pd.DataFrame:
    """With missing values, and a label and an income that depend on the age."""
    random = np.random.default_rng(6)
    age = random.integers(18, 90, n)
    gain = random.normal(1000, 300, n).round(1)
    return pd.DataFrame(
        {
            "age": age,
            "gain": np.where(random.random(n) < 0.1, np.nan, gain),
            "city": random.choice([None, *"abcde"], n),
            "diagnosis": random.choice(DIAGNOSES, n, p=np.arange(1, 9) / 36),
            "income": (age * 50 + random.normal(2000, 600, n)).round(-2),
            "label": np.where(age + random.normal(0, 20, n) > 50, "often", "never"),
        }
    )


def released(*models: dict[str, Any], **changes: Any) -> Release:
    """`joint` and `attributes` are added to, other sections replaced."""
    joint, attributes = changes.pop("joint", False), changes.pop("attributes", {})
    numbers = {"role": "quasi_identifier", "scale": "continuous"}
    given = {
        "source": {"format": "dataframe"},
        "attributes": {
            "age": numbers,
            "gain": numbers,
            "city": {"role": "quasi_identifier", "scale": "nominal"},
            "diagnosis": {"role": "sensitive"},
            "income": {"role": "sensitive"},
            "label": {"role": "target", "public": True},
            **attributes,
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}, *models], "joint": joint},
        "partition": {"steps": [{"type": "kmeans"}], "max_rows": 500},
        "kernel": {"type": "mondrian"},
        "release": {"path": "not used"},
        "seed": 7,
        **changes,
    }
    return anonlib.anonymize(patients(), given)


def n_classes(release: Release) -> int:
    return len(release.table.groupby(QUASI, dropna=False))


def test_models_that_look_at_counts() -> None:
    """Each of them changes the release; text, numbers and a target with a model of its own."""
    income, label = {"attribute": "income"}, {"attribute": "label"}
    models = [
        {"type": "l_diversity", "l": 3, "kind": "entropy", "attribute": "diagnosis"},
        {"type": "alpha_k", "alpha": 0.5, "attribute": "diagnosis"},
        {"type": "t_closeness", "t": 0.4, "attribute": "diagnosis"},
        {"type": "t_closeness", "t": 0.3, "distance": "ordered", **income},
        {"type": "delta_disclosure", "delta": 1.5, **label},
    ]
    plain = n_classes(released())
    for some in (*[[model] for model in models], models):
        found = released(*some)
        assert [verdict.holds for verdict in found.audit.verdicts] == [True] * (1 + len(some))
        assert len(found.table) == 3000
        assert n_classes(found) < plain, some


def test_distance_along_a_hierarchy(tmp_path: Path) -> None:
    """The sensitive column has its values in pairs, in other letters."""
    path = tmp_path / "diagnoses.csv"
    path.write_text("".join(f"{d.upper()};pair {i // 2};*\n" for i, d in enumerate(DIAGNOSES)))
    attributes = {"diagnosis": {"role": "sensitive", "hierarchy": str(path)}}
    distance = {"type": "t_closeness", "t": 0.3, "distance": "hierarchical"}
    found = released({**distance, "attribute": "diagnosis"}, attributes=attributes)
    assert [verdict.holds for verdict in found.audit.verdicts] == [True] * 2
    assert len(found.table) == 3000
    plain = released()
    assert n_classes(found) < n_classes(plain)
    verdict = anonlib.audit(plain.table, found.config).verdicts[1]
    assert not verdict.holds
    assert verdict.value is not None
    assert verdict.value > 0.3


def test_other_sensitive_columns_are_known() -> None:
    """Whoever knows a label does not find less than two diagnoses for it."""
    found = released(
        {"type": "l_diversity", "l": 2, "attribute": "diagnosis"},
        joint=True,
        attributes={"label": {"role": "sensitive"}, "income": {"role": "drop"}},
    )
    assert [(v.model, v.holds) for v in found.audit.verdicts] == [
        ("k_anonymity k=5", True),
        ("l_diversity l=2 attribute=diagnosis", True),
        ("l_diversity l=2 attribute=diagnosis joint=True", True),
    ]
    assert found.record["n_blocks"] > 1
    groups = found.table.groupby([*QUASI, "label"], dropna=False)["diagnosis"].nunique()
    assert groups.min() == 2
    assert len(groups) > n_classes(found)
