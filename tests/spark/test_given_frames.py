"""What is given for a DataFrame of Spark and can't be released: it is told, without a value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.errors import AnonlibError, ConfigError, InputError
from anonlib.spark.loan import LOANS
from tests.spark.support import MARKER, left, people, settings

pytestmark = pytest.mark.spark

GIVEN: dict[str, Any] = {
    "quasi_identifiers": ["wage", "city"],
    "sensitive": ["illness"],
    "identifiers": ["name"],
    "one_row_per_person": "name",
    "k": 3,
    "l": 2,
}
#: name -> what becomes of a DataFrame; what is said of it
FRAMES: dict[str, tuple[Callable[[DataFrame], Any], str]] = {
    "two columns of a name": (
        lambda f: f.select("*", f["wage"]),
        "several columns have the same name: wage; rename them",
    ),
    "groups": (lambda f: f.groupBy("city"), "pyspark's GroupedData is no DataFrame of Spark"),
    "an RDD": (lambda f: f.rdd, "pyspark's RDD is no DataFrame of Spark; make it one"),
    "a stream": (
        lambda f: f.sparkSession.readStream.format("rate").load(),
        "a stream can't be released as a whole; release each batch of `foreachBatch`",
    ),
}


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(people())


@pytest.mark.parametrize("case", FRAMES)
def test_no_frame(frame: DataFrame, tmp_path: Path, case: str) -> None:
    change, said = FRAMES[case]
    given, config = change(frame), settings(tmp_path, source={"format": "dataframe"})
    with pytest.raises(InputError) as caught:
        anonlib.anonymize(given, path=str(tmp_path / "out" / "table"), **GIVEN)
    assert str(caught.value).startswith("data: ")
    assert said in str(caught.value)
    with pytest.raises(InputError) as caught:
        anonlib.release(config, dataframe=given)
    assert str(caught.value).startswith("dataframe: ")
    with pytest.raises(InputError) as caught:
        anonlib.audit(given, config)
    assert str(caught.value).startswith("table: ")
    assert left(tmp_path / "out") == set()


def test_columns_that_no_release_has(frame: DataFrame, tmp_path: Path) -> None:
    """They are told together, as in memory, and before a row is read."""
    given = frame.select(
        "*",
        F.lit(1).alias("CITY"),
        F.expr("make_ym_interval(1, raise_error('x'))").alias("gone"),
    )
    with pytest.raises(ConfigError) as caught:
        anonlib.anonymize(
            given, path=str(tmp_path / "t"), **{**GIVEN, "sensitive": ["illness", "gone"]}
        )
    assert str(caught.value).splitlines() == [
        "column CITY: another column differs from this one in case only; rename one",
        "column city: another column differs from this one in case only; rename one",
        "column gone: type interval year to month is not supported; leave it out",
    ]
    in_memory = people().assign(CITY=1)
    with pytest.raises(ConfigError) as told:
        anonlib.anonymize(in_memory, **GIVEN)
    assert str(told.value).splitlines() == str(caught.value).splitlines()[:2]


def test_a_table_of_pandas(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^dataframe: pandas's DataFrame is no DataFrame of Spark"
    ):
        anonlib.release(settings(tmp_path, source={"format": "dataframe"}), dataframe=people())  # type: ignore[arg-type]


#: How a DataFrame depends on the time zone of its session: made from a file, by a condition.
ZONED: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "texts": lambda spark, path: spark.read.csv(
        str(path / "csv"),
        header=True,
        schema="name string, city string, wage double, seen timestamp",
    ),
    "folders": lambda spark, path: spark.read.parquet(str(path / "parquet")),
}


@pytest.mark.parametrize("is_view", [False, True], ids=["frame", "view"])
@pytest.mark.parametrize("kind", ZONED)
def test_the_time_zone_of_its_session(
    spark: SparkSession, tmp_path: Path, kind: str, is_view: bool
) -> None:
    """Runs work in UTC; what the caller's rows are, the caller's zone says: the same times, and the
    same rows by a condition on them."""
    rows = people(60).assign(seen=[f"2024-03-0{1 + i % 3} 0{i % 4}:30:00" for i in range(60)])
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    try:
        texts = spark.createDataFrame(rows[["name", "city", "wage", "seen"]])
        texts.write.csv(str(tmp_path / "csv"), header=True)
        texts.write.partitionBy("seen").parquet(str(tmp_path / "parquet"))
        frame = ZONED[kind](spark, tmp_path).where("seen < timestamp'2024-03-02 02:00:00'")
        source = {"format": "table", "table": "zoned"} if is_view else {"format": "dataframe"}
        seen = {"seen": {"role": "insensitive"}}
        config = settings(tmp_path, source=source, attributes=seen, kernel="mondrian")
        del config["attributes"]["illness"]
        config["privacy"] = {"models": [{"type": "k_anonymity", "k": 2}]}
        config["privacy"]["acknowledge_unique"] = True
        frame.createOrReplaceTempView("zoned")
        anonlib.release(config, dataframe=None if is_view else frame)
        released = spark.read.format("delta").load(config["release"]["path"])
        times = [
            sorted(row[0] for row in each.select(F.col("seen").cast("long")).collect())
            for each in (released, frame)
        ]
    finally:
        spark.conf.set(zone, before)
    assert times[0] == times[1]
    assert 20 <= len(times[0]) < 40


def test_runs_that_share_a_session_of_another_time_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One of them would read its DataFrame while the other has the session in UTC."""
    zone, frame = "spark.sql.session.timeZone", spark.createDataFrame(people())
    config = settings(tmp_path, source={"format": "dataframe"})
    before = spark.conf.get(zone)
    spark.conf.set(zone, "Asia/Tokyo")
    LOANS.begin()
    try:
        with pytest.raises(InputError, match="read in the time zone Asia/Tokyo, but other runs"):
            anonlib.release(config, dataframe=frame)
    finally:
        LOANS.end()
        spark.conf.set(zone, before)
    assert left(tmp_path / "out") <= {"table.private"}


#: Rows that Spark can't compute; what is said of them.
FAILING: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "a cast": (
        lambda f: f.withColumn("wage", F.col("name").cast("int")),
        "data: a value can't be cast; ",
    ),
    "a function": (
        lambda f: f.withColumn("wage", F.udf(int, "int")("name")),
        "data: Spark failed with ",
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_rows_that_fail(
    frame: DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str], case: str
) -> None:
    """Spark's errors quote values, and pyspark logs them."""
    change, said = FAILING[case]
    with pytest.raises(AnonlibError) as caught:
        anonlib.anonymize(change(frame), path=str(tmp_path / "out" / "table"), **GIVEN)
    assert str(caught.value).startswith(said)
    out, err = capfd.readouterr()
    assert MARKER not in str(caught.value) + out + err
    assert caught.value.__cause__ is None
