"""The certificate of a release in memory: Spark confirms of a table what memory does."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anonlib
from tests.unit.test_anonymize import people, released
from tests.unit.test_certificate_in_memory import USUAL, states

pytestmark = pytest.mark.spark


MODELS = [
    {"type": "k_anonymity", "k": 5},
    {"type": "l_diversity", "l": 2},
    {"type": "l_diversity", "l": 2, "kind": "entropy"},
    {"type": "l_diversity", "l": 2, "kind": "recursive", "c": 5},
    {"type": "t_closeness", "t": 0.4},
    {"type": "alpha_k", "alpha": 0.8},
    {"type": "beta_likeness", "beta": 3},
]


def test_tables_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    recode = {"columns": {"city": {"type": "set", "form": "array"}, "wage": "interval"}}
    table = pa.Table.from_pandas(people(), preserve_index=False)
    found = released(table, k=None, l=None, recode=recode, privacy={"models": MODELS, **USUAL})
    page, delta, file = (str(tmp_path / name) for name in ("c.html", "delta", "t.parquet"))
    found.certificate(page)
    found.to_delta(delta)
    found.to_parquet(file)
    rows = spark.read.parquet(file)
    here = anonlib.verify(page, file)
    labels = [verdict.model for verdict in found.audit.verdicts]
    assert states(here)["confirmed"] >= {"rows", "rows and values of the table", *labels}
    for there in (anonlib.verify(page, delta), anonlib.verify(page, rows)):
        assert "contradicted" not in states(there)
        # Spark counts no more values of a class than prove the model.
        others = {line.name for line, other in zip(there, here, strict=True) if line != other}
        assert others <= {"l_diversity l=2 attribute=illness"}
    exchanged = rows.toDF(*[{"city": "illness", "illness": "city"}.get(n, n) for n in rows.columns])
    wrong = states(anonlib.verify(page, exchanged))["contradicted"]
    assert "rows and values of the table" in wrong
    assert "contradicted" not in states(anonlib.verify(page, rows.select(*rows.columns[::-1])))
    wrong = states(anonlib.verify(page, rows.limit(399)))["contradicted"]
    assert wrong >= {"rows", "rows and values of the table"}
