"""What is said of a source's path where no file is."""

from pathlib import Path

import pytest

from anonlib.config.paths import hint_at_file
from anonlib.errors import did_you_mean
from anonlib.source.readers import describe_absence


def test_the_place_and_the_file_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").touch()
    monkeypatch.chdir(tmp_path)
    for path in ("t.csvv", f"{tmp_path}/t.csvv", "./t.csvv"):
        said = describe_absence(path)
        assert said.startswith(
            f"source.path: no such file: {tmp_path}/t.csvv; did you mean t.csv? ("
        )
        assert "in --set and in a dict it is relative to the working directory" in said
    assert "did you mean" not in describe_absence("else.parquet")
    assert "did you mean" not in describe_absence("no/folder/t.csvv")


def test_files_of_one_kind_are_not_alike_by_their_end(tmp_path: Path) -> None:
    (tmp_path / "pol.yaml").touch()
    assert hint_at_file(tmp_path / "nope.yaml") == ""
    assert hint_at_file(tmp_path / "poll.yaml") == "; did you mean pol.yaml?"


def test_a_place_with_a_scheme() -> None:
    said = describe_absence("s3a://me:secret@bucket/t.csvv")
    assert said == "source.path: no such file: s3a://…@bucket/t.csvv"
    assert hint_at_file("s3a://bucket/t.csvv") == ""


def test_the_beginning_of_a_name() -> None:
    known = ("ema-0070", "hipaa-safe-harbor")
    assert did_you_mean("HIPAA", known) == "; did you mean hipaa-safe-harbor?"
    assert did_you_mean("hi", known) == ""
    assert did_you_mean("safe", known) == ""
