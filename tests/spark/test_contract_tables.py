"""Tables of the catalog, views and DataFrames are as good as the files that they read: the contract
of files holds for these, too, and what they read is not what the run writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

import anonlib
from anonlib.errors import ConfigError, InputError
from anonlib.source.contract import require_contract
from tests.spark.support import people, settings

pytestmark = pytest.mark.spark

COLUMNS = "name string, wage bigint, city string, illness string"
USED = ("name", "wage", "city", "illness")
OTHER = ["illness", "wage", "city", "name"]


def halves(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder.mkdir()
    return people().iloc[:30], people().iloc[30:]


def other_header(folder: Path) -> str:
    first, second = halves(folder)
    first.to_csv(folder / "a", index=False)
    second[OTHER].to_csv(folder / "b", index=False)
    return "csv OPTIONS (header 'true')"


def no_headers(folder: Path) -> str:
    for name, frame in zip("ab", halves(folder), strict=True):
        frame.to_csv(folder / name, index=False, header=False)
    return "csv"


def lost_rows(folder: Path) -> str:
    halves(folder)
    people().to_csv(folder / "a", index=False)
    return "csv OPTIONS (header 'true', mode 'DROPMALFORMED')"


def unknown_option(folder: Path) -> str:
    halves(folder)
    people().to_csv(folder / "a", index=False)
    return "csv OPTIONS (header 'true', unescapedQuoteHandling 'SKIP_VALUE')"


def long_row(folder: Path) -> str:
    halves(folder)
    people().to_csv(folder / "a", index=False)
    with (folder / "a").open("a") as file:
        file.write("RAWVALUE-x,1,RAWVALUE-y,RAWVALUE-z,1\n")
    return "csv OPTIONS (header 'true')"


def broken_json(folder: Path) -> str:
    halves(folder)
    people().to_json(folder / "a", orient="records", lines=True)
    text = (folder / "a").read_text()
    (folder / "a").write_text(text[:-9])
    return "json"


def lacking_column(folder: Path) -> str:
    first, second = halves(folder)
    first.to_parquet(folder / "a", index=False)
    second.drop(columns="illness").to_parquet(folder / "b", index=False)
    return "parquet"


def named_by_position(folder: Path) -> str:
    import pyarrow as pa
    import pyarrow.orc as orc

    for name, frame in zip("ab", halves(folder), strict=True):
        table = pa.Table.from_pandas(frame[OTHER if name == "b" else [*USED]], preserve_index=False)
        orc.write_table(table.rename_columns([f"_col{i}" for i in range(4)]), folder / name)
    return "orc"


BROKEN: list[tuple[Callable[[Path], str], str]] = [
    (other_header, "the header differs"),
    (no_headers, "without headers it is unknown whether the 2 files have the same columns"),
    (lost_rows, "mode DROPMALFORMED"),
    (unknown_option, "unescapedquotehandling"),
    (long_row, "1 rows have too few or too many fields"),
    (broken_json, "1 rows have too few or too many fields"),
    (lacking_column, "column illness: 1 of 2 files lack it"),
    (named_by_position, "column illness: 2 of 2 files lack it"),
]


@pytest.fixture(params=BROKEN, ids=[make.__name__ for make, _ in BROKEN])
def broken(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    make, said = request.param
    using = make(tmp_path / "in")
    spark.sql("DROP TABLE IF EXISTS broken")
    spark.sql(f"CREATE TABLE broken ({COLUMNS}) USING {using} LOCATION '{tmp_path / 'in'}'")
    return said


def test_what_tables_views_and_frames_read(spark: SparkSession, broken: str) -> None:
    spark.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT * FROM broken WHERE wage > 0")
    frames: dict[str, DataFrame] = {
        "table": spark.table("broken"),
        "view": spark.table("seen"),
        "frame": spark.table("broken").repartition(2).select("illness", "name", "wage", "city"),
        "in a subquery": spark.sql("SELECT * FROM range(3) WHERE id IN (SELECT wage FROM broken)"),
    }
    for kind, frame in frames.items():
        with pytest.raises(InputError) as error:
            require_contract(frame, USED)
        assert broken in str(error.value), kind
        assert "RAWVALUE" not in str(error.value)


@pytest.mark.parametrize("kind", ["table", "dataframe"])
def test_a_release_of_such_a_table(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    using = other_header(tmp_path / "in")
    spark.sql("DROP TABLE IF EXISTS broken")
    spark.sql(f"CREATE TABLE broken ({COLUMNS}) USING {using} LOCATION '{tmp_path / 'in'}'")
    source = {"format": kind, **({"table": "broken"} if kind == "table" else {})}
    frame = None if kind == "table" else spark.table("broken")
    with pytest.raises(InputError, match="the header differs"):
        anonlib.release(settings(tmp_path, source=source), dataframe=frame)
    assert not (tmp_path / "out" / "table").exists()


@pytest.mark.parametrize("name", ["ignoreCorruptFiles", "ignoreMissingFiles"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_frames_that_lose_files(spark: SparkSession, tmp_path: Path, kind: str, name: str) -> None:
    spark.createDataFrame(people()).write.format(kind).option("header", "true").save(
        str(tmp_path / "in")
    )
    reader = spark.read.format(kind).option("header", "true")
    require_contract(reader.option(name, "false").load(str(tmp_path / "in")), USED)
    with pytest.raises(InputError, match=name):
        require_contract(reader.option(name, "true").load(str(tmp_path / "in")), USED)


def test_whole_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Glob characters in names of files, folders that name a column, headers in one order."""
    folder = tmp_path / "in"
    for name, frame in zip("ab", halves(folder), strict=True):
        (folder / f"part={name}").mkdir()
        frame.to_csv(folder / f"part={name}" / f"[{name}]*.csv", index=False)
    spark.sql("DROP TABLE IF EXISTS whole")
    spark.sql(
        f"CREATE TABLE whole ({COLUMNS}, part string) USING csv OPTIONS (header 'true') "
        f"PARTITIONED BY (part) LOCATION '{folder}'"
    )
    spark.sql("MSCK REPAIR TABLE whole")
    assert spark.table("whole").count() == 60
    require_contract(spark.table("whole"), USED)
    require_contract(spark.read.option("header", "true").csv(str(folder)), USED)


def test_columns_that_folders_name_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in" / "illness=a").mkdir(parents=True)
    people().to_csv(tmp_path / "in" / "illness=a" / "x.csv", index=False)
    with pytest.raises(InputError, match="column illness is in the files and in the names"):
        require_contract(spark.read.option("header", "true").csv(str(tmp_path / "in")), USED)


#: How a source can name the Delta table at a path, or what lies in it.
NAMES: dict[str, Callable[[SparkSession, Path], Any]] = {
    "path": lambda spark, path: f"delta.`{path}`",
    "link": lambda spark, path: f"delta.`{path.with_name('link')}`",
    "catalog": lambda spark, path: "people",
    "view": lambda spark, path: "seen",
    "frame": lambda spark, path: spark.table("people"),
    "joined": lambda spark, path: spark.table("people").union(spark.table("people").limit(0)),
    "subquery": lambda spark, path: spark.sql(
        "SELECT * FROM other WHERE name IN (SELECT name FROM people)"
    ),
}


def test_a_target_that_the_source_reads(spark: SparkSession, tmp_path: Path) -> None:
    """The source and the target are compared by what they resolve to; the raw table stays."""
    path = tmp_path / "people"
    spark.sql("DROP TABLE IF EXISTS people")
    rows = spark.createDataFrame(people())
    rows.write.format("delta").option("path", str(path)).saveAsTable("people")
    rows.createOrReplaceTempView("other")
    spark.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT * FROM people")
    path.with_name("link").symlink_to(path)
    over = {"path": str(path), "mode": "overwrite", "acknowledge_overwrite": True}
    for name, make in NAMES.items():
        found = make(spark, path)
        is_name = isinstance(found, str)
        source = {"format": "table", "table": found} if is_name else {"format": "dataframe"}
        for release in (over, {"path": str(path / "in")}):
            given = settings(tmp_path, source=source, release=release)
            with pytest.raises(ConfigError) as caught:
                anonlib.release(given, dataframe=None if is_name else found)
            said = "release.path: the source reads files there"
            assert said in str(caught.value), (name, release)
    assert {*spark.table("people").columns} == {"name", "wage", "city", "illness"}
    assert spark.table("people").count() == 60


def test_other_readers_of_files(spark: SparkSession, tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False)
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        frame = spark.read.option("header", "true").csv(str(tmp_path / "a.csv"))
        with pytest.raises(InputError, match="another reader than Spark's own"):
            require_contract(frame, USED)
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")
