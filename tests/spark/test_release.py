"""A release end to end on small tables: what is published, and that it does not depend on how the
rows lie."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib import pipeline
from anonlib.spark.generator import EDUCATION_ORDER, generate
from anonlib.work import STATE, TOKEN

QUASI = ["birth_date", "age", "zip", "sex", "marital_status", "education", "hours", "capital_gain"]


def config(path: Path, **changes: Any) -> dict[str, Any]:
    """The quickstart's roles, small blocks."""
    continuous = {"role": "quasi_identifier", "scale": "continuous"}
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    ordinal = {"role": "quasi_identifier", "scale": "ordinal", "order": list(EDUCATION_ORDER)}
    base: dict[str, Any] = {
        "source": {"format": "generator", "rows": 3000, "seed": 3},
        "attributes": {
            "name": {"role": "identifier"},
            "national_id": {"role": "identifier"},
            "email": {"role": "identifier"},
            **dict.fromkeys(["birth_date", "age", "hours", "capital_gain"], continuous),
            **dict.fromkeys(["zip", "sex", "marital_status"], nominal),
            "education": ordinal,
            "diagnosis": {"role": "sensitive"},
            "income": {"role": "sensitive"},
            "label": {"role": "target", "public": True},
        },
        "one_row_per_person": "national_id",
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 5},
                {"type": "l_diversity", "l": 2, "attribute": "diagnosis"},
            ]
        },
        "partition": {"steps": [{"type": "kmeans"}], "max_rows": 500},
        "recode": {"columns": {"zip": "set", "age": "interval"}},
        "release": {"path": str(path / "table")},
        "seed": 7,
    }
    return {**base, **changes}


def rows(frame: DataFrame) -> Counter[str]:
    """A table as a multiset of rows."""
    return Counter(frame.toJSON().collect())


@pytest.mark.spark
@pytest.mark.parametrize("kernel", ["mdav", "mondrian"])
def test_release(spark: SparkSession, tmp_path: Path, kernel: str) -> None:
    parsed = anonlib.parse(config(tmp_path, kernel=kernel))
    result = anonlib.release(parsed)
    assert result.audit is not None
    assert result.audit.passed
    assert result.n_rows_in == result.n_rows_out == 3000
    table = spark.read.format("delta").load(str(tmp_path / "table"))
    assert table.columns == [*QUASI, "diagnosis", "income", "label"]
    found = table.toPandas()
    classes = found.assign(**{c: found[c].astype(str) for c in QUASI}).groupby(QUASI, dropna=False)
    assert classes.size().min() >= 5
    assert classes["diagnosis"].nunique().min() >= 2
    assert len(classes) == result.n_cells == result.audit.n_classes
    # Sensitive and target values are those of the source.
    source = generate(spark, 3000, 3)
    kept = ["diagnosis", "income", "label"]
    assert rows(table.select(kept)) == rows(source.select(kept))
    # What is numeric and whole keeps its sums.
    gain = source.agg(F.sum("capital_gain")).collect()[0][0]
    assert found["capital_gain"].sum() == pytest.approx(gain, rel=0.2)  # null where most are
    manifest = json.loads((tmp_path / "table/_anonlib/manifest.json").read_text("utf-8"))
    assert manifest["rows_released"] == 3000
    assert pipeline.audit(str(tmp_path / "table"), parsed).passed
    leftovers = {path.name for path in tmp_path.iterdir()}
    assert leftovers == {"table", "table.private"}


@pytest.mark.spark
@pytest.mark.parametrize("kernel", ["mdav", "mondrian"])
def test_same_multiset_however_the_rows_lie(
    spark: SparkSession, tmp_path: Path, kernel: str
) -> None:
    """Order, partitions and tasks of the source change nothing."""
    source = generate(spark, 3000, 3)
    found = []
    for i, frame in enumerate(
        [source.coalesce(1), source.repartition(5, "email"), source.orderBy(F.desc("email"))]
    ):
        changes = {"release": {"path": str(tmp_path / f"t{i}")}, "kernel": kernel}
        changes["spark"] = {"partitions": 1 + 2 * i}
        anonlib.release(anonlib.parse(config(tmp_path, **changes)), dataframe=frame)
        found.append(rows(spark.read.format("delta").load(str(tmp_path / f"t{i}"))))
    assert found[0] == found[1] == found[2]


@pytest.mark.spark
def test_pandas_grouped_map_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    found = []
    for how in ("arrow", "pandas"):
        changes = {"release": {"path": str(tmp_path / how)}, "spark": {"grouped_map": how}}
        base = config(tmp_path, **changes)
        base["attributes"] = {**base["attributes"], "income": {"role": "drop"}}
        anonlib.release(anonlib.parse(base))
        found.append(rows(spark.read.format("delta").load(str(tmp_path / how))))
    assert found[0] == found[1]


@pytest.mark.spark
def test_unit_counts_persons(spark: SparkSession, tmp_path: Path) -> None:
    """With two rows per person, every class has k persons, and no token is published."""
    frame = pd.DataFrame(
        {"person": [i // 2 for i in range(400)], "age": [i % 57 for i in range(400)]}
    )
    parsed = anonlib.parse(
        {
            "source": {"format": "dataframe", "path": "given"},
            "attributes": {
                "person": {"role": "identifier"},
                "age": {"role": "quasi_identifier", "scale": "continuous"},
            },
            "unit": ["person"],
            "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
            "release": {"path": str(tmp_path / "table")},
        }
    )
    result = anonlib.release(parsed, dataframe=spark.createDataFrame(frame))
    assert result.audit is not None
    assert result.audit.verdicts[0].value is not None
    assert result.audit.verdicts[0].value >= 5
    published = spark.read.format("delta").load(str(tmp_path / "table"))
    assert published.columns == ["age"]
    files = [p.read_bytes() for p in (tmp_path / "table").rglob("*") if p.is_file()]
    assert not any(name.encode() in data for name in (TOKEN, STATE) for data in files)
    # Nobody can count persons on what is published.
    assert not pipeline.audit(str(tmp_path / "table"), parsed).passed
