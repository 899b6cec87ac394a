"""Partitioners on Spark: controllers, chains, suppression, what is released of repeated rows."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib import pipeline
from anonlib.config.model import PrivacySection
from anonlib.errors import ConfigError, InfeasibleError
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.run.suppression import find_least_cost
from anonlib.source.generator import generate
from anonlib.table.columns import COST
from tests.spark.test_release import ROWS, config, rows

pytestmark = pytest.mark.spark


def patients(spark: SparkSession, n: int = 1200, *, small: int = 3) -> DataFrame:
    """Three hospitals of many patients, and some of `small` ones."""
    hospital = F.when(F.col("id") < n - 4 * small, F.col("id") % 3).otherwise(
        100 + F.floor((F.col("id") - (n - 4 * small)) / small)
    )
    return spark.range(n).select(
        F.col("id").alias("person"),
        F.concat(F.lit("h"), hospital.cast("string")).alias("hospital"),
        (F.col("id") * 7919 % 83).cast("int").alias("age"),
        F.concat(F.lit("t"), (F.col("id") * 31 % 5).cast("string")).alias("town"),
        F.concat(F.lit("d"), (F.col("id") % 7).cast("string")).alias("diagnosis"),
    )


def settings(path: Path, **changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "source": {"format": "dataframe"},
        "attributes": {
            "person": {"role": "identifier"},
            "hospital": {"role": "drop"},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "town": {"role": "quasi_identifier", "scale": "nominal"},
            "diagnosis": {"role": "sensitive"},
        },
        "one_row_per_person": "person",
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]},
        "partition": {"steps": [{"type": "controller", "column": "hospital"}], "max_rows": 200},
        "kernel": {"type": "mondrian"},
        "release": {"path": str(path / "table")},
    }
    return {**base, **changes}


def controller(**parameters: Any) -> dict[str, Any]:
    return {
        "steps": [{"type": "controller", "column": "hospital", **parameters}, {"type": "mondrian"}],
        "max_rows": 200,
    }


def test_controllers_that_fail_are_refused_suppressed_or_merged(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = patients(spark)
    with pytest.raises(InfeasibleError) as caught:
        anonlib.release(anonlib.parse(settings(tmp_path)), dataframe=frame)
    assert "4 of 7 controllers, with 12 of 1200 rows" in str(caught.value)
    assert not (tmp_path / "table").exists()

    privacy = {**settings(tmp_path)["privacy"], "suppression_limit": 0.01}
    own = controller(models={"h100": [{"type": "k_anonymity", "k": 40}]})
    given = settings(tmp_path, privacy=privacy, partition=own)
    result = anonlib.release(anonlib.parse(given), dataframe=frame)
    assert (result.n_rows_in, result.n_rows_out, result.n_suppressed) == (1200, 1188, 12)
    assert result.audit is not None
    labels = [verdict.model for verdict in result.audit.verdicts]
    assert labels[:2] == [label.removeprefix("each controller: ") for label in labels[2:]]
    table = spark.read.format("delta").load(str(tmp_path / "table"))
    assert table.columns == ["age", "town", "diagnosis"]

    merged = settings(tmp_path / "merged", partition=controller(merge=True))
    result = anonlib.release(anonlib.parse(merged), dataframe=frame)
    assert result.n_rows_out == 1200
    assert result.audit is not None
    assert result.audit.passed

    too_much = {"h1": [{"type": "k_anonymity", "k": 5000}]}
    given = settings(tmp_path / "never", partition=controller(merge=True, models=too_much))
    with pytest.raises(InfeasibleError, match="all controllers together don't hold"):
        anonlib.release(anonlib.parse(given), dataframe=frame)


def test_a_controller_with_models_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """Published, since it is a quasi-identifier: its classes are large, those of others are not."""
    frame = patients(spark, small=100)
    attributes = settings(tmp_path)["attributes"]
    attributes["hospital"] = {"role": "quasi_identifier", "scale": "nominal"}
    own = {"h1": [{"type": "k_anonymity", "k": 40}]}
    given = settings(tmp_path, attributes=attributes, partition=controller(models=own))
    result = anonlib.release(anonlib.parse(given), dataframe=frame)
    assert result.audit is not None
    assert "1 controller with its own models: k_anonymity k=40" in [
        verdict.model for verdict in result.audit.verdicts
    ]
    alone = pipeline.audit_delta(str(tmp_path / "table"), anonlib.parse(given))
    assert alone.passed
    assert [v.model for v in alone.verdicts if "own models" in v.model] == []
    assert "each data controller" in alone.notes[0]
    assert alone.shortfalls == ()
    table = spark.read.format("delta").load(str(tmp_path / "table"))
    classes = table.groupBy("hospital", "age", "town").count().groupBy("hospital")
    smallest = {r[0]: r[1] for r in classes.agg(F.min("count")).collect()}
    assert smallest["h1"] >= 40
    assert all(5 <= n < 40 for hospital, n in smallest.items() if hospital != "h1")

    absent = settings(tmp_path / "absent", partition=controller(models={"h9": own["h1"]}))
    with pytest.raises(
        ConfigError, match="1 of the 1 controllers named are not in column hospital"
    ):
        anonlib.release(anonlib.parse(absent), dataframe=frame)


def test_names_of_controllers_are_compared_as_the_persons_of_the_unit_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    own = {" H1": [{"type": "k_anonymity", "k": 40}]}
    given = settings(tmp_path, partition=controller(models=own), unit=["hospital", "person"])
    del given["one_row_per_person"]
    frame = patients(spark, small=100)
    with pytest.raises(ConfigError, match="1 of the 1 controllers named are not in column"):
        anonlib.release(anonlib.parse(given), dataframe=frame)
    given["person"] = {"fold_case": True}
    audit = anonlib.release(anonlib.parse(given), dataframe=frame).audit
    assert audit is not None
    assert "1 controller with its own models: k_anonymity k=40" in [
        verdict.model for verdict in audit.verdicts
    ]


def test_times_that_are_days_are_told(spark: SparkSession, tmp_path: Path) -> None:
    day = F.date_add(F.lit("1980-01-01").cast("date"), F.col("age").cast("int"))
    frame = patients(spark, small=100).withColumn("age", day.cast("timestamp_ntz"))
    given = settings(tmp_path, partition={"steps": [{"type": "mondrian"}], "max_rows": 200})
    notes = anonlib.release(anonlib.parse(given), dataframe=frame).notes
    assert sum("column age: its times look like midnights" in note for note in notes) == 1


def test_suppressed_controllers_leave_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    """A controller with a diagnosis of its own can't hold t-closeness; without it the others do,
    measured against themselves."""
    frame = patients(spark).withColumn(
        "diagnosis",
        F.when(F.col("hospital").startswith("h10"), F.lit("rare")).otherwise(F.col("diagnosis")),
    )
    models = [{"type": "k_anonymity", "k": 3}, {"type": "t_closeness", "t": 0.3}]
    privacy = {"models": models, "suppression_limit": 0.01}
    result = anonlib.release(anonlib.parse(settings(tmp_path, privacy=privacy)), dataframe=frame)
    assert result.n_suppressed == 12
    assert result.audit is not None
    assert result.audit.passed


def test_the_costliest_cells_are_suppressed(spark: SparkSession, tmp_path: Path) -> None:
    """Within the limit, and the loss of what is left is smaller."""
    plain, people = (
        config(tmp_path, kernel={"type": "mondrian"}),
        generate(spark, ROWS, 3).toArrow(),
    )
    every = anonlib.anonymize(people, plain).table
    privacy = {**plain["privacy"], "suppression_limit": 0.05, "suppress": "costliest"}
    given = {**plain, "privacy": privacy, "release": {"path": str(tmp_path / "less")}}
    result = anonlib.release(anonlib.parse(given))
    assert 0 < result.n_suppressed <= 0.05 * ROWS
    assert result.n_rows_out == ROWS - result.n_suppressed
    kept = rows(spark.read.format("delta").load(str(tmp_path / "less")))
    assert every.num_rows == ROWS
    assert not kept - rows(spark.createDataFrame(every))
    here = anonlib.anonymize(people, given)
    assert rows(spark.createDataFrame(here.table)) == kept
    assert here.record["n_suppressed"] == result.n_suppressed


@pytest.mark.parametrize(
    ("n_planned", "least"),
    [(100, 4), (99, 4), (98, 5), (94, 8), (93, 9), (92, None), (90, None), (89, None)],
)
def test_rows_that_the_plan_left_out_count(
    spark: SparkSession, n_planned: int, least: int | None
) -> None:
    """Ten of a hundred rows may be lost in all: cells of equal cost go together, or stay."""
    costs = [9, 9, 9, 8, 7, 6, 5, 4, 4, 0, 0]
    staged_rows = spark.createDataFrame([(cost,) for cost in costs], f"{COST} bigint")
    privacy = PrivacySection(models=(KAnonymity(k=2),), suppression_limit=0.1, suppress="costliest")
    assert find_least_cost(privacy, staged_rows, 100, n_planned) == least
    needed = privacy.model_copy(update={"suppress": "needed"})
    assert find_least_cost(needed, staged_rows, 100, n_planned) is None


def test_rows_that_agree_in_everything_are_dealt_out(spark: SparkSession, tmp_path: Path) -> None:
    """No identifier tells them apart: the release is the same whatever their partitions."""
    frame = patients(spark, 4000).select("age", "town", "diagnosis")
    same = F.col("age") < 60
    frame = frame.select(
        F.when(same, 20).otherwise(F.col("age")).alias("age"),
        F.when(same, F.lit("t0")).otherwise(F.col("town")).alias("town"),
        F.when(same & (F.col("diagnosis") > "d1"), F.lit("d1"))
        .otherwise(F.col("diagnosis"))
        .alias("diagnosis"),
    )
    attributes = settings(tmp_path)["attributes"]
    del attributes["person"], attributes["hospital"]
    given = settings(
        tmp_path,
        attributes=attributes,
        one_row_per_person=True,
        partition={"steps": [{"type": "mondrian"}], "max_rows": 100},
    )
    result = anonlib.release(anonlib.parse(given), dataframe=frame.repartition(7))
    assert result.n_rows_out == 4000
    assert result.n_blocks > 25
    found = rows(spark.read.format("delta").load(str(tmp_path / "table")))
    alone = anonlib.anonymize(frame.toArrow(), given).table
    assert found == rows(spark.createDataFrame(alone))
