"""What is wrong with a file is told before Spark is started, which takes seconds."""

from pathlib import Path
from typing import Any

import pytest

from anonlib.cli import main
from anonlib.errors import InputError
from anonlib.source import look, profile
from anonlib.sweeps.file import load_sweep


class Started(Exception):
    """Spark would start."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few files, and no Spark."""

    def start(*args: Any) -> None:
        raise Started

    for module in (profile, look):
        monkeypatch.setattr(module, "session", start)
    for name in ("HADOOP_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANONLIB_DEBUG", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "people.xyz").write_text("a")
    (tmp_path / "people.yaml").write_text("a: 1")
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["init", "peple.csv"], "peple.csv: no such file or folder; did you mean people.csv?"),
        (["init", "x", "--format", "csv"], "x: no such file or folder"),
        (["init", "empty.csv"], "empty.csv: is empty"),
        (["init", "people.xyz"], "people.xyz: its format is not clear; name it with --format"),
        (["init", "people.yaml"], "people.yaml: is YAML, as configs are, and no table"),
        (["suggest", "peple.csv"], "peple.csv: no such file or folder; did you mean people.csv?"),
        (["generate", "--out", "people.csv"], "people.csv: is there already; name another"),
        (["generate", "--out", "x", "--rows", "-1"], "must be at least 0"),
        (["sweep", "none.yaml"], "sweep none.yaml: can't be read"),
    ],
)
def test_mistakes(
    folder: Path, argv: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    "source", ["people.csv", "shop.people", "s3a://bucket/none.csv", "none*.csv", "."]
)
def test_what_only_spark_can_tell(
    folder: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", source]) == 1
    assert "unexpected Started" in capsys.readouterr().err


def test_another_store(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "conf")
    assert main(["init", "none.csv"]) == 1
    assert "unexpected Started" in capsys.readouterr().err


def test_a_sweep_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^sweep .*none\.yaml: can't be read"):
        load_sweep(tmp_path / "none.yaml")
