"""Releases read without Spark: by deltalake, polars and DuckDB, compared with what Spark reads."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import anonlib
from anonlib import pipeline
from anonlib.source.look import read_published_rows
from tests.spark.test_sources import KEPT, NUMBER, VALUES, config

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.usefixtures("usual")]

CATEGORY = {"role": "quasi_identifier", "scale": "nominal"}
TREE = "x;left;*\ny;left;*\nz;right;*\nw;right;*\n"


def rows(spark: SparkSession) -> DataFrame:
    """24 rows of every type that is published, and of every shape of generalized values."""
    found = [
        (
            i % 5,
            i % 7 / 2,
            "abc"[i % 3],
            "xyzw"[i % 4],
            *[v[i % len(v)] for _, v in VALUES.values()],
        )
        for i in range(24)
    ]
    types = ", ".join(f"{name} {type}" for name, (type, _) in VALUES.items())
    return spark.createDataFrame(found, f"age int, hours double, city string, job string, {types}")


@pytest.fixture(scope="module")
def release(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("consumers")
    (folder / "job.csv").write_text(TREE)
    job = {**CATEGORY, "hierarchy": str(folder / "job.csv")}
    roles = {"age": NUMBER, "hours": NUMBER, "city": CATEGORY, "job": job}
    source = {"format": "dataframe"}
    raw = config(folder / "t", source, **roles, **dict.fromkeys(VALUES, KEPT))
    shapes = {"age": "interval", "city": "set", "job": "proportional"}
    raw |= {"recode": {"columns": shapes}}
    raw["release"]["partition_by"] = ["flag"]
    result = anonlib.release(anonlib.parse(raw), dataframe=rows(spark))
    (note,) = result.notes
    assert note.startswith("column age: the ends of intervals are values of single persons; set")
    assert pipeline.audit_delta(str(folder / "t"), anonlib.parse(raw)).passed
    return str(folder / "t")


def test_show_tells_intervals_from_sets(release: str) -> None:
    names, found = read_published_rows(release, 24)
    values = {name: {row[i] for row in found} for i, name in enumerate(names)}
    assert all(re.fullmatch(r"\d to \d", text or "") for text in values["age"])
    assert all(re.fullmatch(r"\{[abc](, [abc])*\}", text or "") for text in values["city"])
    assert all((text or "").startswith("[{") for text in values["job"])
    # A column with its scale's own recoder: whole floats have no `.0`, others their digits.
    assert not any((text or "").endswith(".0") for text in values["hours"])


def delta_of_duckdb() -> duckdb.DuckDBPyConnection:
    """DuckDB with its own Delta reader, which it would else fetch from a server."""
    from duckdb_extension_delta import __file__ as package

    (path,) = Path(package).parent.glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension")
    connection = duckdb.connect()
    connection.load_extension(str(path))
    return connection


def plain(table: pa.Table) -> list[str]:
    """Rows in one form, whatever order rows and columns come in."""
    names = sorted(table.column_names)
    return sorted(repr([_value(row[name]) for name in names]) for row in table.to_pylist())


def _value(value: Any) -> Any:
    """A map is its sorted items; some readers give them as such. Zones differ in name only."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict):
        return sorted((k, _value(v)) for k, v in value.items())
    if isinstance(value, list):
        if value and all(isinstance(v, dict) and {*v} == {"key", "value"} for v in value):
            value = [(v["key"], v["value"]) for v in value]
        return [_value(v) for v in value]
    return [_value(v) for v in value] if isinstance(value, tuple) else value


def test_every_reader_sees_what_spark_sees(spark: SparkSession, release: str) -> None:
    expected = spark.read.format("delta").load(release).toArrow()
    table = deltalake.DeltaTable(release)
    dataset = duckdb.from_arrow(table.to_pyarrow_dataset())
    own = delta_of_duckdb().sql("SELECT * FROM delta_scan(?)", params=[release])
    query = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    readers = {
        "deltalake": table.to_pyarrow_table(),
        "deltalake, SQL": pa.table(query.read_all()),
        "polars": pl.read_delta(release).to_arrow(),
        "DuckDB": own.to_arrow_table(),
        "DuckDB on deltalake": dataset.to_arrow_table(),
    }
    for name, found in readers.items():
        assert plain(found) == plain(expected), name
    types = {field.name: field.type for field in table.to_pyarrow_table().schema}
    wanted = {field.name: field.type for field in expected.schema}
    exact = ("age", "hours", "whole", "exact", "day", "moment", "local", "flag", "raw", "nested")
    for name in exact:
        assert str(types[name]).replace(" not null", "") == str(wanted[name]), name


def test_nothing_but_what_readers_know(release: str) -> None:
    """No deletion vectors, no column mapping: a table of the first protocol but for local times."""
    protocol = deltalake.DeltaTable(release).protocol()
    assert protocol.reader_features == ["timestampNtz"]


def test_names_that_readers_do_not_take(spark: SparkSession, tmp_path: Path) -> None:
    """The run says so; without this note, some would show nulls for values."""
    frame = rows(spark).select("age", "hours").toDF("the age", "h.ours")
    raw = config(
        tmp_path / "t",
        {"format": "dataframe"},
        **{"the age": NUMBER, "h.ours": NUMBER},
    )
    result = anonlib.release(anonlib.parse(raw), dataframe=frame)
    assert len(result.notes) == 1
    assert result.notes[0].startswith("columns the age: ")
    with pytest.raises(Exception, match="column mapping"):
        pl.read_delta(str(tmp_path / "t"))
    table = deltalake.DeltaTable(str(tmp_path / "t"))
    assert table.to_pyarrow_table()["the age"].null_count == 24
    query = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    own = delta_of_duckdb().sql("SELECT * FROM delta_scan(?)", params=[str(tmp_path / "t")])
    expected = spark.read.format("delta").load(str(tmp_path / "t")).toArrow()
    assert plain(pa.table(query.read_all())) == plain(expected)
    assert plain(own.to_arrow_table()) == plain(expected)
