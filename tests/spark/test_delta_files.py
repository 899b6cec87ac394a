"""Data files of Delta tables, written without a commit and read by their paths."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.spark.delta_files import Transaction, list_added_files, save_mode
from anonlib.spark.jvm import make_none

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual")]

ROWS = [
    (1, "a b", (2, {"x": (3,)}), [("y", 4)], "r s"),
    (None, None, None, None, "t=%20"),
    (5, "", (None, {}), [], "r s"),
]
PLAIN = "id long, text string, pair struct<a: long, b: map<string, struct<c: int>>>, \
    list array<struct<d: string, e: int>>, part string"
MAPPED = (
    "`the id` long, `a.b` string, `p=` struct<`a;`: long, b: map<string, struct<`c,d`: int>>>, \
    `l(i)st` array<struct<d: string, `{e}`: int>>, `part ` string"
)


def texts(frame: DataFrame) -> Counter[str]:
    """The multiset of rows, with the names inside their structs."""
    return Counter(str(row.asDict(recursive=True)) for row in frame.collect())


@pytest.mark.parametrize("laid_out", [False, True])
@pytest.mark.parametrize("schema", [PLAIN, MAPPED], ids=["plain", "mapped"])
def test_rows_come_back(spark: SparkSession, tmp_path: Path, schema: str, laid_out: bool) -> None:
    frame = spark.createDataFrame(ROWS, schema).repartition(2)
    transaction = Transaction.begin(spark, str(tmp_path / "table"))
    new = save_mode(spark, "ErrorIfExists")
    actions = transaction.write(frame, new, frame.columns[-1:] if laid_out else ())
    # As a task leaves it that failed, or was overtaken by its copy.
    file = next((tmp_path / "table").rglob("*.parquet"))
    shutil.copy(file, file.with_name(f"other-{file.name}"))
    found = transaction.read(actions, frame.schema)
    assert found.schema.simpleString() == frame.schema.simpleString()
    assert texts(found) == texts(frame)
    assert not [*(tmp_path / "table" / "_delta_log").glob("*.json")]
    assert int(transaction.log.update(False, *[make_none(spark)] * 2).version()) == -1


def test_types_that_have_no_nulls(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3).select(
        "id",
        F.split(F.lit("a,b"), ",").alias("list"),
        F.struct(F.col("id").alias("a"), F.lit("x").alias("b")).alias("pair"),
        F.create_map(F.lit("k"), "id").alias("map"),
        F.lit(1).alias("p"),
    )
    strict = frame.schema
    assert not strict["list"].dataType.containsNull
    assert not strict["map"].dataType.valueContainsNull
    assert not strict["pair"].dataType["b"].nullable
    transaction = Transaction.begin(spark, str(tmp_path / "table"))
    actions = transaction.write(frame, save_mode(spark, "Append"))
    found = transaction.read(actions, strict)
    assert found.schema.simpleString() == strict.simpleString()
    assert texts(found) == texts(frame)


def test_paths_are_no_patterns(spark: SparkSession, tmp_path: Path) -> None:
    """Of several files: each row comes back once."""
    rows = [(i, "{c}[d]*" if i % 2 else "}") for i in range(30)]
    frame = spark.createDataFrame(rows, "id long, part string").repartition(3)
    for by in ((), ("part",)):
        transaction = Transaction.begin(spark, str(tmp_path / f"a[b] {{c,d}}?*{len(by)}"))
        actions = transaction.write(frame, save_mode(spark, "Append"), by)
        assert len(list_added_files(actions)) >= 3
        meant = tmp_path / f"ab cxx{len(by)}"  # by the pattern
        shutil.copytree(transaction.root, meant)
        assert texts(transaction.read(actions, frame.schema)) == texts(frame)


def test_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, PLAIN).where("false")
    transaction = Transaction.begin(spark, str(tmp_path / "table"))
    found = transaction.read(transaction.write(frame, save_mode(spark, "Append")), frame.schema)
    assert (found.collect(), found.columns) == ([], frame.columns)


def test_a_file_that_is_gone_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, PLAIN).repartition(2)
    transaction = Transaction.begin(spark, str(tmp_path / "table"))
    actions = transaction.write(frame, save_mode(spark, "Append"))
    found = transaction.read(actions, frame.schema)
    next((tmp_path / "table").rglob("*.parquet")).unlink()
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|does not exist"):
        found.collect()
