"""A target whose name Spark's readers would take for a pattern."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.support import Shell, holding
from tests.spark.test_append import KEY, batch, config

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual")]


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
