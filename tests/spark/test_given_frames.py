"""What is given for a DataFrame of Spark and can't be released: it is told, without a value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.errors import AnonlibError, InputError
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


def test_a_table_of_pandas(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^dataframe: pandas's DataFrame is no DataFrame of Spark"
    ):
        anonlib.release(settings(tmp_path, source={"format": "dataframe"}), dataframe=people())  # type: ignore[arg-type]


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
