"""A release end to end on small tables: what is published, and that it does not depend on how the
rows lie."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pycanon import anonymity
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib import pipeline
from anonlib.auditing import AuditReport
from anonlib.config.model import Config
from anonlib.source.generator import EDUCATION_ORDER, generate
from anonlib.table.columns import TOKEN
from tests.support import data_dir

ADULT = Path(__file__).parents[2] / "conf" / "adult.yaml"
#: Of `config`: as few as make several blocks.
ROWS = 600
QUASI = ["birth_date", "age", "zip", "sex", "marital_status", "education", "hours", "capital_gain"]


def config(path: Path, **changes: Any) -> dict[str, Any]:
    """The quickstart's roles, small blocks."""
    continuous = {"role": "quasi_identifier", "scale": "continuous"}
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    ordinal = {"role": "quasi_identifier", "scale": "ordinal", "order": list(EDUCATION_ORDER)}
    base: dict[str, Any] = {
        "source": {"format": "generator", "rows": ROWS, "seed": 3},
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
            ],
            "acknowledge_unique": ["income"],
        },
        "partition": {"steps": [{"type": "kmeans"}], "max_rows": 100},
        "recode": {"columns": {"zip": "set", "age": "interval"}},
        "release": {"path": str(path / "table")},
        "seed": 7,
    }
    return {**base, **changes}


def rows(frame: DataFrame) -> Counter[str]:
    """A table as a multiset of rows."""
    return Counter(frame.toJSON().collect())


@pytest.mark.spark
def test_release(spark: SparkSession, drawings: None, tmp_path: Path) -> None:
    parsed = anonlib.parse(config(tmp_path))
    result = anonlib.release(parsed)
    assert result.audit is not None
    assert result.audit.passed
    assert result.n_rows_in == result.n_rows_out == ROWS
    errors = result.losses_by_column["mse"]
    present, missing = ["birth_date", "age"], ["education", "hours", "capital_gain"]
    assert {*errors} == {*present, *missing, *(f"{name} is missing" for name in missing)}
    assert result.losses["mse"] == pytest.approx(np.mean([*errors.values()]))
    table = spark.read.format("delta").load(str(tmp_path / "table"))
    assert table.columns == [*QUASI, "diagnosis", "income", "label"]
    found = table.toPandas()
    classes = found.assign(**{c: found[c].astype(str) for c in QUASI}).groupby(QUASI, dropna=False)
    assert classes.size().min() >= 5
    assert classes["diagnosis"].nunique().min() >= 2
    assert len(classes) == result.n_cells == result.audit.n_classes
    # Sensitive and target values are those of the source.
    source = generate(spark, ROWS, 3)
    kept = ["diagnosis", "income", "label"]
    assert rows(table.select(kept)) == rows(source.select(kept))
    # What is numeric and whole keeps its sums.
    gain = source.agg(F.sum("capital_gain")).collect()[0][0]
    assert found["capital_gain"].sum() == pytest.approx(gain, rel=0.2)  # null where most are
    manifest = json.loads((tmp_path / "table/_anonlib/manifest.json").read_text("utf-8"))
    assert manifest["rows_released"] == ROWS
    assert pipeline.audit_delta(str(tmp_path / "table"), parsed).passed
    leftovers = {path.name for path in tmp_path.iterdir()}
    assert leftovers == {"table", "table.private"}


@pytest.mark.spark
def test_same_multiset_however_the_rows_lie(spark: SparkSession, tmp_path: Path) -> None:
    """Order, partitions and tasks of the source change nothing: the rows are those of a table in
    memory, in its own order. In `test_in_memory_as_spark` other kernels, and pandas instead of
    Arrow, have these as well."""
    source = generate(spark, ROWS, 3)
    backwards = source.repartition(5, "email").sortWithinPartitions(F.desc("email"))
    given = config(tmp_path, source={"format": "dataframe"}, spark={"partitions": 5})
    anonlib.release(anonlib.parse(given), dataframe=backwards)
    alone = anonlib.anonymize(source.toArrow(), given).table
    found = rows(spark.read.format("delta").load(str(tmp_path / "table")))
    assert found == rows(spark.createDataFrame(alone))


@pytest.mark.spark
def test_unit_counts_persons(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two rows per person, every class has k persons, and no token is published."""
    frame = pd.DataFrame(
        {"person": [i // 2 for i in range(400)], "age": [i % 57 for i in range(400)]}
    )
    raw: dict[str, Any] = {
        "source": {"format": "dataframe"},
        "attributes": {
            "person": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
        },
        "unit": ["person"],
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
        "release": {"path": str(tmp_path / "table")},
    }
    parsed = anonlib.parse(raw)
    result = anonlib.release(parsed, dataframe=spark.createDataFrame(frame))
    assert result.audit is not None
    assert result.audit.verdicts[0].value is not None
    assert result.audit.verdicts[0].value >= 5
    published = spark.read.format("delta").load(str(tmp_path / "table"))
    assert published.columns == ["age"]
    files = [p.read_bytes() for p in (tmp_path / "table").rglob("*") if p.is_file()]
    assert not any(name.encode() in data for name in (TOKEN,) for data in files)
    # Nobody can count persons on what is published, unless they have pseudonyms there.
    assert not pipeline.audit_delta(str(tmp_path / "table"), parsed).passed
    monkeypatch.setenv("UNIT_KEY", "0123456789abcdef")
    raw["attributes"]["person"]["pseudonym"] = True
    raw["privacy"]["acknowledge_linked"] = True
    raw |= {"pseudonyms": {"key_env": "UNIT_KEY"}, "release": {"path": str(tmp_path / "named")}}
    parsed = anonlib.parse(raw)
    anonlib.release(parsed, dataframe=spark.createDataFrame(frame))
    named = str(tmp_path / "named")
    audited = pipeline.audit_delta(named, parsed)
    assert audited.passed
    assert audited.verdicts[0].value == result.audit.verdicts[0].value
    asked = raw | {"privacy": {**raw["privacy"], "models": [{"type": "k_anonymity", "k": 9}]}}
    assert not pipeline.audit_delta(named, anonlib.parse(asked)).passed  # of 10 rows and more
    # Who comes again has another pseudonym.
    twice = raw | {"release": {"path": named, "mode": "append", "acknowledge_returning": True}}
    twice["release"]["ledger"] = {"key_env": "UNIT_LEDGER"}
    assert not pipeline.audit_delta(named, anonlib.parse(twice)).passed


@pytest.mark.spark
def test_nobody_is_not_a_number(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows whose person is NaN, as files that pandas wrote have it for missing ones, are nobody's:
    they have no pseudonym, and count for no class."""
    monkeypatch.setenv("UNIT_KEY", "0123456789abcdef")
    frame = pd.DataFrame(
        {
            "person": [float(i) if i % 3 else math.nan for i in range(120)],
            "age": [i * 7 % 40 for i in range(120)],
        }
    )
    raw = {
        "source": {"format": "dataframe"},
        "attributes": {
            "person": {"role": "identifier", "pseudonym": True},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
        },
        "unit": ["person"],
        "privacy": {"models": [{"type": "k_anonymity", "k": 4}], "acknowledge_linked": True},
        "pseudonyms": {"key_env": "UNIT_KEY"},
        "release": {"path": str(tmp_path / "table")},
    }
    # On the way from pandas NaN becomes null; in files it stays.
    source = spark.createDataFrame(frame)
    source = source.withColumn("person", F.coalesce("person", F.lit(math.nan)))
    anonlib.release(anonlib.parse(raw), dataframe=source)
    found = spark.read.format("delta").load(str(tmp_path / "table")).toPandas()
    assert found["person"].isna().sum() == 40
    assert found["person"].nunique() == 80
    assert found.groupby("age")["person"].nunique().min() >= 4


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.slow
def test_agrees_with_pycanon_on_adult(
    compiling: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONLIB_DATA", str(data_dir()))
    path = tmp_path / "table"
    loaded = anonlib.load(ADULT, [f"release.path={path}", "kernel=mdav"])
    report = anonlib.release(loaded).audit
    published = compiling.read.format("delta").load(str(path)).toPandas()
    check_by_pycanon(published, loaded, report)


def test_agrees_with_pycanon_in_memory() -> None:
    loaded = anonlib.load(ADULT, ["kernel=mondrian", "evaluate=null", "gates=[]"])
    found = anonlib.anonymize(pd.read_csv(data_dir() / "adult" / "adult_train.csv.gz"), loaded)
    check_by_pycanon(found.table, loaded, found.audit)


def check_by_pycanon(published: pd.DataFrame, loaded: Config, report: AuditReport | None) -> None:
    """pycanon leaves out rows with nulls and counts `?` as a value: so nulls are made text for it,
    and rows without an occupation left out where it counts them."""
    assert report is not None
    persons, occupations = report.verdicts
    assert (persons.required, occupations.required) == (10, 2)
    roles = {name: attribute.role for name, attribute in loaded.attributes.items()}
    quasi = [name for name, role in roles.items() if role == "quasi_identifier"]
    released = published.astype(dict.fromkeys(quasi, str))
    assert len(released) == 32_561
    k = anonymity.k_anonymity(released, quasi)
    known = released[released["occupation"] != "?"].reset_index(drop=True)
    diversity = anonymity.l_diversity(known, quasi, ["occupation"])
    assert known.groupby(quasi).ngroups == released.groupby(quasi).ngroups == report.n_classes
    assert persons.value == k >= 10
    assert diversity >= 2
    assert occupations.value == diversity if occupations.exact else occupations.value <= diversity
