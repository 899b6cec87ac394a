"""`anonlib release --example` before Spark: its config, what it refuses; what the wheel has."""

import zipfile
from importlib.resources import files
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import anonlib
from anonlib.cli import example, main
from anonlib.config.yaml import read_yaml
from anonlib.errors import InputError
from anonlib.progress import Progress
from tests.texts import ROOT

TEXT = (files("anonlib.cli") / "example.yaml").read_text("utf-8")


def test_its_config_is_of_its_table() -> None:
    config = anonlib.parse(read_yaml(TEXT), folder=example.FOLDER)
    assert config.source.path == str(example.TABLE.absolute())
    assert config.release.path.startswith(f"{example.FOLDER.absolute()}/")
    assert config.review == ()


def test_what_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / example.FOLDER).mkdir()
    assert main(["release", "--example"]) == 2
    assert "anonlib-example is there already, and is left as it is" in capsys.readouterr().err
    assert [*(tmp_path / example.FOLDER).iterdir()] == []


def test_wrong_overrides_are_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["release", "--example", "--set", "kernel=mdaw"]) == 2
    assert "did you mean mdav" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_written_where_spark_can_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InputError("no Java")

    monkeypatch.setattr("anonlib.source.look.session", fail)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no Java"):
        example.write_example(Progress())
    assert [*tmp_path.iterdir()] == []


def test_the_wheel_has_every_file_and_says_what_it_is(tmp_path: Path) -> None:
    """A file that the package needs and the wheel lacks is missed by nobody who has a checkout."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("anonlib/")}
        (about,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        head = wheel.read(about).decode("utf-8").partition("\n\n")[0]
    own = {
        each.relative_to(ROOT).as_posix()
        for each in (ROOT / "anonlib").rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }
    assert packed == own
    for line in (
        "Author: anonlib contributors",
        "License-Expression: Apache-2.0",
        "Provides-Extra: spark",
    ):
        assert line in head
    assert "Project-URL" not in head, "there is no public place yet"
