"""Names that Spark's readers would take for a pattern: of a target, and of a source."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anonlib.errors import InputError
from anonlib.source.contract import read_files
from tests.spark.support import Said, Shell, holding, people, settings, write_config
from tests.spark.test_append import KEY, batch, config

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual")]


@pytest.mark.cluster
def test_its_ledger_its_backlog_and_its_old_version_are_found(
    shell: Shell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)
    path = tmp_path / "[x]{y}"
    release = {
        "path": str(path),
        "backlog": {"key_env": "ANONLIB_LEDGER_KEY"},
        "acknowledge_overwrite": True,
    }
    old = batch(0, 30).replace("illness-", "illness-before-", regex=True)
    assert shell.release(config(tmp_path, old, "error", release=release)).code == 0
    said = shell.release(config(tmp_path, batch(30, 2), release=release))
    assert "2 rows wait in the backlog" in said.out, said.err
    said = shell.release(config(tmp_path, batch(32, 9), release=release))
    assert said.code == 0, said.err
    table = spark.read.format("delta").load(str(path))
    assert table.count() == 41
    assert holding("before", path)
    said = shell.release(config(tmp_path, batch(41, 9), "overwrite", release=release))
    assert said.code == 0, said.err
    assert holding("before", path) == []
    assert spark.read.format("delta").load(str(path)).count() == 9


def counted(shell: Shell, folder: Path, path: str) -> Said:
    changes = {"source": {"format": "parquet", "path": path}}
    return shell("check", write_config(folder, settings(folder, **changes)))


def test_a_source_that_is_there_is_no_pattern(shell: Shell, tmp_path: Path) -> None:
    names = {
        "data [12]": 60,
        "data 1": 77,
        "what?": 61,
        "whatx": 40,
        "x{y": 62,
        "s\\b": 63,
        "q*": 64,
    }
    for name, n in names.items():
        (tmp_path / name).mkdir()
        people(n).to_parquet(tmp_path / name / "f.parquet")
    (tmp_path / "a:b").mkdir()
    for name, n in names.items():
        said = counted(shell, tmp_path, f"{name}/f.parquet")
        assert said.code == 0, said.err
        assert f"rows       {n}" in said.out
        assert "pattern" not in said.out


@pytest.mark.parametrize("kind", ["csv", "json", "orc", "parquet"])
def test_all_formats_read_what_has_just_this_name(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    for name, n in (("t[1]", 5), ("t1", 7)):
        frame = spark.range(n).selectExpr("cast(id as string) as id")
        writer = frame.repartition(3).write.format(kind).option("header", "true")
        writer.save(str(tmp_path / name))
    options = {"header": "true"} if kind == "csv" else {}
    assert read_files(spark, kind, str(tmp_path / "t[1]"), options, ["id"]).count() == 5
    assert read_files(spark, kind, None, {**options, "path": f"{tmp_path}/t[1]"}, []).count() == 5
    assert read_files(spark, kind, f"{tmp_path}/t[12]", options, ["id"]).count() == 7
    assert read_files(spark, kind, f"{tmp_path}/t*", options, ["id"]).count() == 12


def test_each_file_of_such_a_folder_is_checked_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t[1]").mkdir()
    for name in "abc":
        (tmp_path / "t[1]" / f"{name}.csv").write_text("id,of\n1,2\n3\n")
    with pytest.raises(InputError, match="source: 3 rows have too few or too many fields"):
        read_files(spark, "csv", str(tmp_path / "t[1]"), {"header": "true"}, ["id"])


def test_a_pattern_is_told_and_recorded(shell: Shell, tmp_path: Path) -> None:
    for name, rows in (("in 1", slice(0, 40)), ("in 2", slice(40, 80))):
        (tmp_path / name).mkdir()
        people(80)[rows].to_parquet(tmp_path / name / "f.parquet", index=False)
    note = "source.path: nothing has just this name; as a pattern it reads 2 files"
    assert note in counted(shell, tmp_path, "in [12]/f.parquet").out
    source = {"format": "parquet", "path": "in [12]/f.parquet"}
    said = shell.release(settings(tmp_path, source=source))
    assert said.code == 0, said.err
    assert note in said.out
    (path,) = (tmp_path / "out" / "table.private").glob("*.json")
    found = json.loads(path.read_text())["source_files"]
    assert (found["n"], len(found["sha256"])) == (2, 64)
    assert [name[-14:] for name in found["names"]] == ["in 1/f.parquet", "in 2/f.parquet"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x{y/f.parquet", "is not complete; correct the path, or close its brackets and braces"),
        ("colon", "the name of a file or folder has a colon, which Spark can't read there"),
        ("x*/f.parquet", "the name of a file or folder has a colon, which Spark can't read there"),
    ],
)
def test_names_that_can_not_be_read(shell: Shell, tmp_path: Path, path: str, text: str) -> None:
    for name in ("colon", "x1", "x:2"):
        (tmp_path / name).mkdir()
        people(40).to_parquet(tmp_path / name / "f.parquet")
    people(40).to_parquet(tmp_path / "colon" / "2026-01-31T10:00.parquet")
    if path == "x{y/f.parquet":
        (tmp_path / "x:2" / "f.parquet").unlink()
        (tmp_path / "x:2").rmdir()
    said = counted(shell, tmp_path, path)
    assert (said.code, said.out) == (2, ""), said.err
    assert text in said.error
