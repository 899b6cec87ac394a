"""Fixtures of the tests on Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from markupsafe import Markup
from pyspark.sql import SparkSession

from anonlib.run.run_table import RunNotes
from anonlib.spark.session import REQUIRED
from tests.quick import SHORT_LOGS
from tests.spark.support import Shell


@pytest.fixture(autouse=True)
def _with_short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run makes the session as it must be: here with what small tables are quicker by."""
    for key, value in SHORT_LOGS.items():
        monkeypatch.setitem(REQUIRED, key, value)


@pytest.fixture
def drawings() -> None:
    """For tests whose pages have their drawings."""


@pytest.fixture(autouse=True)
def _without_drawings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawings are most of what a small release costs in Python, and have unit tests."""
    if "drawings" not in request.fixturenames:
        monkeypatch.setattr(
            "anonlib.pages.charts.make_drawing", lambda *given: Markup("<svg></svg>")
        )


@pytest.fixture
def noted() -> None:
    """For tests that look at the table of runs, or at everything that a run leaves."""


@pytest.fixture(autouse=True)
def _without_notes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note of a run is a fifth of a small release, and most of one that ends in its scan."""
    if "noted" not in request.fixturenames:
        monkeypatch.setattr(RunNotes, "note", lambda run_notes: None)


@pytest.fixture
def shell(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Shell:
    """The command line in this process; its configs are written to `tmp_path`."""
    return Shell(capsys, monkeypatch, tmp_path)


@pytest.fixture
def workplace(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An empty folder to work in: for Spark as well, whose own is that it was started in."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    files.setWorkingDirectory(before)
