"""What is released is what was scanned: a source that is rewritten in between stops the run, with
the same number of rows, files and bytes, whatever its format and the plan."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.errors import BusyError
from anonlib.spark.digest import digest
from tests.spark.support import Hooked, Shell, left, people, settings
from tests.spark.test_jdbc import lose_rows

pytestmark = pytest.mark.spark

CHANGED = "source: it changed while it was read, nothing was published"
#: The table is one of Parquet files; `test_a_change_of_few_rows` has such files by their path.
FORMATS = ["orc", "csv", "json", "table", "delta"]
TUPLES: dict[str, Any] = {
    "partition": {"steps": [{"type": "tuples"}]},
    "kernel": {"type": "greedy"},
    "attributes": {"wage": {"role": "quasi_identifier", "scale": "nominal"}},
    "recode": {"nominal": "suppress"},
}


def exchanged(frame: pd.DataFrame) -> pd.DataFrame:
    """Two persons have each other's illness."""
    frame = frame.copy()
    frame.loc[[0, 1], "illness"] = frame.loc[[1, 0], "illness"].to_list()
    return frame


def doubled(frame: pd.DataFrame) -> pd.DataFrame:
    """A row is there twice, and another one is lost."""
    frame = frame.copy()
    frame.loc[1] = frame.loc[0]
    return frame


def renamed(frame: pd.DataFrame) -> pd.DataFrame:
    """One value of an identifier, which is not released, is another."""
    frame = frame.copy()
    frame.loc[3, "name"] = frame.loc[3, "name"].replace("name", "eman")
    return frame


CHANGES = [exchanged, doubled, renamed]


def write(kind: str, path: Path, frame: pd.DataFrame) -> None:
    """Writes one file of plain values, so that as many rows are as many bytes."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "orc":
        orc.write_table(table, path, compression="uncompressed")
    elif kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "json":
        frame.to_json(path, orient="records", lines=True)
    else:
        pq.write_table(table, path, compression="none", use_dictionary=False)


def prepare(spark: SparkSession, folder: Path, kind: str) -> tuple[dict[str, Any], Path]:
    """The source of a config, and the one file with its rows."""
    place = folder / "source"
    if kind == "delta":
        rows = spark.createDataFrame(people()).coalesce(1)
        rows.write.format("delta").option("compression", "none").save(str(place))
        (file,) = place.glob("*.parquet")
        return {"format": "delta", "path": str(place)}, file
    place.mkdir()
    file = place / "rows"
    write(kind, file, people())
    if kind == "table":
        spark.sql("DROP TABLE IF EXISTS reading")
        spark.sql(f"CREATE TABLE reading USING parquet LOCATION '{place}'")
        return {"format": "table", "table": "reading"}, file
    options = {"options": {"header": "true"}} if kind == "csv" else {}
    return {"format": kind, "path": str(place), **options}, file


def rewrite(spark: SparkSession, kind: str, file: Path, change: Any) -> Callable[[], None]:
    """A hook that rewrites the file, and loses what Spark has kept of it."""

    def hook() -> None:
        seen = file.stat()
        write(kind, file, change(people()))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        if file.stat().st_size == seen.st_size:
            os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        lose_rows(spark)

    return hook


def require_nothing(folder: Path) -> None:
    """Nothing is published, and no staging is left."""
    assert "table" not in left(folder / "out")
    assert not [name for name in left(folder / "out") if name.endswith(".anonlib")]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_source_that_is_rewritten(shell: Shell, spark: SparkSession, kind: str) -> None:
    source, file = prepare(spark, shell.folder, kind)
    hook = rewrite(spark, kind, file, exchanged)
    said = shell.release(settings(shell.folder, source=source), hooks={"partition started": hook})
    assert said.code == 1, said.err
    assert CHANGED in said.error
    require_nothing(shell.folder)


@pytest.mark.parametrize("more", [{}, TUPLES], ids=["blocks", "tuples"])
@pytest.mark.parametrize("change", [doubled, renamed])
def test_a_change_of_few_rows(shell: Shell, spark: SparkSession, change: Any, more: Any) -> None:
    """In both kinds of plans, right before rows are anonymized."""
    source, file = prepare(spark, shell.folder, "parquet")
    hook = rewrite(spark, "parquet", file, change)
    config = settings(shell.folder, source=source, **more)
    said = shell.release(config, hooks={"anonymize started": hook})
    assert said.code == 1, said.err
    assert CHANGED in said.error
    require_nothing(shell.folder)


def test_a_dataframe_that_changes(shell: Shell, spark: SparkSession) -> None:
    """Its rows are kept, but what is kept can be lost."""
    _, file = prepare(spark, shell.folder, "parquet")
    frame = spark.read.parquet(str(file))
    config = anonlib.parse(settings(shell.folder, source={"format": "dataframe"}))
    hook = rewrite(spark, "parquet", file, exchanged)
    with pytest.raises(BusyError, match=CHANGED):
        anonlib.release(config, Hooked({"partition started": hook}), dataframe=frame)
    require_nothing(shell.folder)


def test_the_digest_of_a_table(spark: SparkSession) -> None:
    """No order, both halves, and text by its bytes."""
    rows = spark.range(1000).select("id", F.col("id").cast("string").alias("text"))
    found = digest(rows)
    assert found == digest(rows.orderBy(F.desc("id")).repartition(7))
    assert found.n_rows == 1000
    again = rows.where("id <> 7").unionAll(rows.where("id = 8"))
    assert digest(again).n_rows == 1000
    assert digest(again).low != found.low
    assert digest(again).high != found.high
    assert found.low != found.high
    assert digest(rows.unionAll(rows)) == found + found
    one, other = (
        spark.sql(f"SELECT '{text}' COLLATE UTF8_LCASE AS a, array('{text}' COLLATE UTF8_LCASE) b")
        for text in ("p1", "P1")
    )
    assert digest(one) != digest(other)
