"""Texts that are numbers, dates and times: read as the config says, counted where they can't be,
and never guessed by Spark."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.errors import ConfigError
from anonlib.local.column_facts import find_facts, make_profile
from anonlib.progress import Progress
from anonlib.source.casts import Cast, is_unreadable, read_as
from anonlib.source.profile import profile
from anonlib.source.resolved_source import open_source
from tests.spark.support import people, settings

pytestmark = pytest.mark.spark

QUASI = {"role": "quasi_identifier", "scale": "continuous"}
#: As German and French offices write them.
ROWS = [
    (f"{1 + i % 28:02}.{1 + i % 12:02}.{1950 + i}", f"1.{100 + i},50", f"{i % 24:02}:30")
    for i in range(60)
]


def config(path: Path, target: Path, **changes: Any) -> dict[str, Any]:
    return {
        "source": {"format": "csv", "path": str(path), "options": {"header": True, "sep": ";"}},
        "attributes": {
            "born": {**QUASI, "type": "date", "layout": "dd.MM.yyyy"},
            "pay": {**QUASI, "type": "decimal(12,2)", "layout": "1.234,5"},
            "hour": {"role": "quasi_identifier", "scale": "nominal"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": str(target)},
        **changes,
    }


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    path.write_text("born;pay;hour\n" + "".join(";".join(row) + "\n" for row in rows))


def test_formats(spark: SparkSession, tmp_path: Path) -> None:
    """Dates and numbers as people write them, also in `where`; a draft names how."""
    path = tmp_path / "in.csv"
    write(path, ROWS)
    found = {c.name: c for c in profile(str(path), None, {}, Progress()).columns}
    told = {name: (c.parses_as, c.layout) for name, c in found.items()}
    assert told == {
        "born": ("date", "d.M.yyyy"),
        "pay": ("double", "1.234,5"),
        "hour": (None, None),
    }
    raw = config(path, tmp_path / "t")
    raw["source"]["where"] = "born >= DATE '1960-01-01' AND pay > 1109"
    source = open_source(spark, anonlib.parse(raw))
    seen = sorted(row[:3] for row in source.rows().collect())
    born = [date.fromisoformat("-".join(reversed(row[0].split(".")))) for row in ROWS]
    assert [row[0] for row in seen] == sorted(day for day in born if day >= date(1960, 1, 1))
    assert float(seen[0][1]) == 1110.5
    assert anonlib.release(raw).audit is not None


def test_days_without_marks(spark: SparkSession, tmp_path: Path) -> None:
    """They are dates, or moments; months, and what leaves another doubt, are asked about, as in
    memory."""
    path = tmp_path / "in.csv"
    rows = [
        (
            f"{1950 + i}{1 + i % 12:02}{1 + i % 28:02}",
            f"20240131{i % 24:02}30",
            f"2024{1 + i % 12:02}",
        )
        for i in range(60)
    ]
    write(path, [*rows])
    found = {c.name: c for c in profile(str(path), None, {}, Progress()).columns}
    assert (found["born"].parses_as, found["born"].layout) == ("date", "yyyyMMdd")
    assert (found["pay"].parses_as, found["pay"].layout) == ("timestamp", "yyyyMMddHHmm")
    assert {n: c.doubt for n, c in found.items() if c.doubt} == {"hour": "months written as yyyyMM"}
    table = pa.table([[row[i] for row in rows] for i in range(3)], ["born", "pay", "hour"])
    for name, column in zip(table.column_names, table.columns, strict=True):
        same = make_profile(name, column.type, find_facts(column.combine_chunks()))
        assert (same.layout, same.doubt) == (found[name].layout, found[name].doubt)
    raw = config(path, tmp_path / "t")
    raw["attributes"]["born"]["layout"] = "yyyyMMdd"
    raw["attributes"]["pay"] = {**QUASI, "type": "timestamp", "layout": "yyyyMMddHHmm"}
    seen = sorted(row[0] for row in open_source(spark, anonlib.parse(raw)).rows().collect())
    assert seen == sorted(date.fromisoformat(row[0]) for row in rows)
    del raw["attributes"]["born"]["layout"], raw["attributes"]["born"]["type"]
    notes = "\n".join(anonlib.check(raw).notes)
    assert "column born: these numbers look like days written as yyyyMMdd; if they are" in notes


def test_unreadable_values_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    write(path, [*ROWS, ("31.02.1980", "12.5", "x"), ("1980-01-01", "1.23,5", "x")])
    with pytest.raises(ConfigError) as error:
        anonlib.release(config(path, tmp_path / "t"))
    assert "column born: 2 values can't be read as date written as dd.MM.yyyy" in str(error.value)
    assert "column pay: 2 values can't be read as decimal(12,2)" in str(error.value)
    assert "31.02" not in str(error.value)


READ: dict[Cast, tuple[list[str], list[str]]] = {
    Cast("double"): (
        ["1", " 1.5\t", "-.5", "007", "1e3", "NaN", "-inf"],
        ["1d", "2F", "0x1p3", "1,5"],
    ),
    Cast("decimal(10,2)"): (
        ["1.5", "1.500", "-7", ".25", "1.5e1", "2E-2"],
        ["1.004", "1e-3", "1d"],
    ),
    Cast("int"): (["1", "+7"], ["1.5", "1e3"]),
    Cast("date"): (
        [
            "2024-01-05",
            "2024-1-5",
            "2024-01-05 00:00:00.0",
            "2024-01-05T00:00Z",
            "2024-01-05T00:00:00+00:00",
        ],
        [
            *("2024", "2024-02", "2024-01-05 Mueller", "2024-01-05 14:30", "+12024-01-05", "14:30"),
            *("2024-01-05T00:00+14:00", "2024-01-05 00:00 Europe/Berlin"),
        ],
    ),
    Cast("timestamp"): (
        [
            "2024-01-05",
            "2024-01-05 14:30",
            "2024-01-05T14:30:00.25+01:00",
            "2024-01-05 1:30:00 UTC",
        ],
        ["14:30", "T14:30", "2024", "2024-02", "+12024-01-05 14:30"],
    ),
    Cast("timestamp_ntz"): (
        ["2024-01-05", "2024-01-05 14:30", "2024-01-05T14:30:00.25"],
        [
            "2024-01-05 10:00:00+02:00",
            "2024-01-05 10:00:00Z",
            "2024-01-05 10:00:00 Europe/Berlin",
            "14:30",
        ],
    ),
    Cast("date", "yyyyMMdd"): (["20240131", " 20240131 "], ["+120240131", "-20240131", "2024131"]),
    Cast("date", "d.M.yyyy"): (["1.2.2024", "01.02.2024"], ["1.2.+12024", "1.2.24", "+1.2.2024"]),
    Cast("date", "dd MMM yyyy"): (["01 Feb 2024"], ["01 Feb +12024"]),
    Cast("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS"): (["2024-01-31T14:30:01.5"], ["2024-01-31"]),
    Cast("decimal(12,2)", "1.234,5"): (["1.100,50"], ["1.100,505"]),
}


def test_texts_that_spark_would_change(spark: SparkSession) -> None:
    """It reads more than texts say: a time of today, the first of January, rounded decimals."""
    for cast, (fine, wrong) in READ.items():
        frame = spark.createDataFrame([(text,) for text in [*fine, *wrong]], "c0 string")
        seen = frame.select("c0", is_unreadable(F.col("c0"), cast, ())).collect()
        assert [text for text, unread in seen if unread] == wrong, cast
    frame = spark.sql("SELECT 1.5d AS c0, TIMESTAMP '2024-01-05 14:30:00' AS c1")
    assert frame.select(
        read_as(F.col("c0"), Cast("int")), read_as(F.col("c1"), Cast("date"))
    ).first()


def test_types_that_a_column_cannot_have(spark: SparkSession, tmp_path: Path) -> None:
    """All such columns are named, by their places in the config."""
    spark.createDataFrame(people()).write.parquet(str(tmp_path / "people.parquet"))
    wrong = {
        "wage": {**QUASI, "type": "date"},
        "city": {**QUASI, "type": "date", "layout": "dd.MM.yyyy"},
    }
    with pytest.raises(ConfigError) as error:
        anonlib.check(settings(tmp_path, attributes=wrong))
    assert "attributes.wage: its type bigint can't be read as date" in str(error.value)
    wrong["wage"] = {**QUASI, "type": "double", "layout": "1.234,5"}
    with pytest.raises(ConfigError, match="`layout` is for text, and the column is bigint"):
        anonlib.check(settings(tmp_path, attributes=wrong))
