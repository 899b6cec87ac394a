"""Sources of every kind, odd names, and values that must come through exactly."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib import pipeline
from anonlib.errors import ConfigError
from anonlib.source.resolved_source import open_source
from anonlib.spark.file_list import can_read_again
from tests.spark.support import Shell, people, settings

pytestmark = pytest.mark.spark

ODD = ["a b", "c.d", "e,f", "g`h", "naïve-имя-名"]


def published(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def config(target: Path, source: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {
        "source": source,
        "attributes": attributes,
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 2}], "acknowledge_unique": True},
        "release": {"path": str(target)},
    }


NUMBER = {"role": "quasi_identifier", "scale": "continuous"}
KEPT = {"role": "insensitive"}


def test_formats(spark: SparkSession, tmp_path: Path) -> None:
    """The same rows are read from all of them, with the version of what has versions."""
    rows = spark.range(40).select((F.col("id") % 13).alias("age"), F.col("id").alias("kept"))
    sources: list[dict[str, Any]] = []
    for name in ("parquet", "orc", "json", "csv", "delta"):
        path = str(tmp_path / name)
        rows.write.format(name).option("header", True).save(path)
        options = {"header": True} if name == "csv" else {}
        sources.append({"format": name, "path": path, "options": options})
    rows.write.format("parquet").saveAsTable("people_of_sources")
    rows.write.format("delta").saveAsTable("people_in_delta")
    for name in ("people_of_sources", "people_in_delta"):
        sources.append({"format": "table", "table": name})
    kept = {**KEPT, "type": "bigint"}  # text in CSV
    for given in sources:
        source = open_source(
            spark, anonlib.parse(config(tmp_path / "t", given, age=NUMBER, kept=kept))
        )
        names = {column.name: column.id for column in source.schema.columns}
        found = source.rows().select(names["age"], names["kept"])
        assert sorted(map(tuple, found.collect())) == sorted((i % 13, i) for i in range(40)), given
        assert source.version == (0 if "delta" in str(given) else None)


def test_what_is_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Columnar files and pinned Delta tables are read again in each pass. What is computed, read
    row by row, or may change is read once and kept."""
    rows, frames = spark.range(9).selectExpr("id AS age", "id % 2 AS sex"), {}
    for kind in ("parquet", "orc", "csv", "delta"):
        rows.write.format(kind).saveAsTable(f"kept_{kind}")
        frames[kind] = spark.table(f"kept_{kind}")
    rows.write.partitionBy("sex").format("parquet").saveAsTable("kept_folders")
    frames["folders"] = spark.table("kept_folders")
    frames["version"] = spark.read.option("versionAsOf", 0).table("kept_delta")
    place = frames["delta"].inputFiles()[0].rpartition("/")[0]
    delta = spark.read.format("delta")
    frames["path"] = delta.load(place)
    frames["version of a path"] = delta.option("versionAsOf", 0).load(place)
    spark.sql("CREATE VIEW kept_view AS SELECT age FROM kept_parquet WHERE age > 3")
    frames["view"], frames["rows"] = spark.table("kept_view"), rows
    frames["joined"] = frames["parquet"].join(frames["orc"], "age")
    again = {name for name, frame in frames.items() if can_read_again(frame)}
    assert again == {"parquet", "orc", "folders", "version", "version of a path"}


def test_a_delta_table_of_the_catalog_is_pinned(spark: SparkSession, shell: Shell) -> None:
    """Rows that are added amid the run are of another version: it releases those that it found."""
    spark.createDataFrame(people(60)).write.format("delta").saveAsTable("pinned_people")
    more = spark.createDataFrame(people(9))
    source = {"format": "table", "table": "pinned_people"}
    given = settings(shell.folder, source=source, release={"run_id": "one"})
    add = lambda: more.write.format("delta").mode("append").saveAsTable("pinned_people")
    said = shell.release(given, hooks={"partition started": add})
    assert said.code == 0, said.err
    assert "60 in, 60 out" in said.out
    record = json.loads((shell.folder / "out/table.private/one.json").read_text())
    assert record["source_version"] == 0
    again = shell.release(given)
    assert "the source has changed since: version 0 was read, and it is at 1" in again.out


def test_delta_version_and_where(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "delta")
    spark.range(30).toDF("age").write.format("delta").save(path)
    spark.range(50).toDF("age").write.format("delta").mode("append").save(path)
    source = {"format": "delta", "path": path, "version": 0, "where": "age < 20"}
    opened = open_source(spark, anonlib.parse(config(tmp_path / "t", source, age=NUMBER)))
    assert opened.rows().count() == 20


def test_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(30).select(
        *[(F.col("id") % (i + 3)).alias(f"x{i}") for i in range(len(ODD))]
    )
    frame = frame.toDF(*ODD)
    roles: dict[str, Any] = dict.fromkeys(ODD[:3], NUMBER)
    roles |= {ODD[3]: {"role": "sensitive"}, ODD[4]: KEPT}
    source = {"format": "dataframe"}
    raw = config(tmp_path / "t", source, **roles)
    raw["privacy"]["models"].append({"type": "l_diversity", "l": 2, "attribute": ODD[3]})
    result = anonlib.release(anonlib.parse(raw), dataframe=frame)
    assert result.audit is not None
    assert result.audit.passed
    table = published(spark, tmp_path / "t")
    assert table.columns == ODD
    assert table.count() == 30


def test_names_that_differ_in_case_only(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.range(9).select(F.col("id").alias("Age"), F.col("id").alias("kept"))
        frame = frame.withColumn("age", F.col("kept"))
        raw = config(tmp_path / "t", {"format": "dataframe"}, Age=NUMBER, kept=KEPT)
        with pytest.raises(ConfigError, match="differs in case only"):
            open_source(spark, anonlib.parse(raw), frame)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


VALUES: dict[str, tuple[str, list[Any]]] = {
    "whole": ("bigint", [2**53 + 1, None, -(2**63), 2**63 - 1]),
    "exact": ("decimal(38,10)", [Decimal("1234567890123456789012345678.0123456789"), None]),
    "day": ("date", [date(1, 1, 1), date(9999, 12, 31), None]),
    "moment": ("timestamp", [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None]),
    "local": ("timestamp_ntz", [datetime(2024, 2, 29, 1, 2, 3, 4), None]),  # noqa: DTZ001
    "flag": ("boolean", [True, False, None]),
    "raw": ("binary", [bytearray(b"\x00\xff"), None]),
    "pairs": ("map<string,int>", [{"a": 1}, {}, None]),
    "list": ("array<bigint>", [[2**60 + 1, None], [], None]),
    "nested": ("struct<a:int,b:string>", [(1, "x"), None]),
}


def exact_rows(spark: SparkSession) -> DataFrame:
    rows = [(i % 5, *[values[i % len(values)] for _, values in VALUES.values()]) for i in range(24)]
    types = ", ".join(f"{name} {type}" for name, (type, _) in VALUES.items())
    return spark.createDataFrame(rows, f"age int, {types}")


def test_values_come_through_exactly(spark: SparkSession, tmp_path: Path) -> None:
    frame = exact_rows(spark)
    raw = config(
        tmp_path / "t",
        {"format": "dataframe"},
        age=NUMBER,
        **dict.fromkeys(VALUES, KEPT),
    )
    anonlib.release(anonlib.parse(raw), dataframe=frame)
    table = published(spark, tmp_path / "t")
    assert dict(table.dtypes) == dict(frame.dtypes)
    for name in VALUES:
        text = F.col(name).cast("string")
        kept = sorted(str(row[0]) for row in table.select(text).collect())
        assert kept == sorted(str(row[0]) for row in frame.select(text).collect()), name


def test_types_that_cannot_be_anonymized(spark: SparkSession, tmp_path: Path) -> None:
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    roles = {**dict.fromkeys(VALUES, KEPT), **dict.fromkeys(["pairs", "list", "raw"], nominal)}
    raw = config(tmp_path / "t", {"format": "dataframe"}, age=NUMBER, **roles)
    with pytest.raises(ConfigError) as caught:
        open_source(spark, anonlib.parse(raw), exact_rows(spark))
    named = {problem.where for problem in caught.value.problems}
    assert named == {"column pairs", "column list", "column raw"}


def test_quasi_identifiers_come_back_in_their_own_type(spark: SparkSession, tmp_path: Path) -> None:
    names = ["exact", "day", "moment", "local"]
    frame = exact_rows(spark).select("age", *names, "flag", "whole")
    roles: dict[str, Any] = dict.fromkeys(["age", *names], NUMBER)
    roles |= {"flag": {"role": "quasi_identifier", "scale": "nominal"}, "whole": KEPT}
    raw = config(tmp_path / "t", {"format": "dataframe"}, **roles)
    result = anonlib.release(anonlib.parse(raw), dataframe=frame)
    assert result.audit is not None
    assert result.audit.passed
    assert dict(published(spark, tmp_path / "t").dtypes) == dict(frame.dtypes)


def test_pandas_refuses_what_it_cannot_carry(spark: SparkSession, tmp_path: Path) -> None:
    frame = exact_rows(spark).select("age", "whole", "day", "flag")
    raw = config(
        tmp_path / "t",
        {"format": "dataframe"},
        age=NUMBER,
        **dict.fromkeys(["whole", "day", "flag"], KEPT),
    )
    raw["spark"] = {"grouped_map": "pandas"}
    with pytest.raises(ConfigError) as caught:
        anonlib.release(anonlib.parse(raw), dataframe=frame)
    text = str(caught.value)
    assert "column whole" in text
    assert "column day" in text
    assert "column flag" not in text


def test_data_frames_and_formats_belong_together(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(9).select(F.col("id").alias("age"))
    given = anonlib.parse(config(tmp_path / "t", {"format": "csv", "path": "people"}, age=NUMBER))
    with pytest.raises(ConfigError, match=r"source\.format: must be dataframe"):
        anonlib.release(given, dataframe=frame)
    given = anonlib.parse(config(tmp_path / "t", {"format": "dataframe"}, age=NUMBER))
    for verb in (anonlib.release, pipeline.check, pipeline.evaluate_delta):
        with pytest.raises(ConfigError, match=r"source\.format: dataframe is for"):
            verb(given, **({"trial": True} if verb is pipeline.evaluate_delta else {}))


def test_collations(spark: SparkSession, tmp_path: Path) -> None:
    """Texts are compared by their bytes, whatever the collation that a column comes with; names of
    controllers, which a collation would make equal, are refused."""
    frame = spark.createDataFrame(people()).withColumn(
        "illness", F.collate("illness", "UNICODE_CI")
    )
    steps = [{"type": "controller", "column": "city"}, {"type": "mondrian"}]
    raw = settings(
        tmp_path,
        source={"format": "dataframe"},
        partition={"steps": steps},
        attributes={"city": {"role": "drop"}},
    )
    result = anonlib.release(raw, dataframe=frame)
    assert result.audit is not None
    assert result.audit.n_rows == 60
    collated = frame.withColumn("city", F.collate("city", "UTF8_LCASE"))
    with pytest.raises(ConfigError, match=r"column city: .* does not say which controllers are"):
        anonlib.release(raw | {"release": {"path": str(tmp_path / "other")}}, dataframe=collated)
