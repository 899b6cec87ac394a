"""Fixtures of the tests on Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.support import Shell


@pytest.fixture
def shell(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Shell:
    """The command line in this process; its configs are written to `tmp_path`."""
    return Shell(capsys, monkeypatch, tmp_path)
