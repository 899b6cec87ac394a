"""Reports as files: where they go, who may read them, what they never replace."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from anonlib.cli import main
from anonlib.config.model import Config
from anonlib.errors import InputError, StorageError
from anonlib.pages import output as report_files
from anonlib.pages import render
from anonlib.pages.output import _record_path, certify, read_certificate, report
from tests.reports import unevaluated


def folder(name: str, within: Path) -> Path:
    (within / name).mkdir(exist_ok=True)
    return within / name


class TestFiles:
    @pytest.fixture
    def record(self, tmp_path: Path) -> Path:
        path = tmp_path / "run-1.json"
        path.write_text(json.dumps(unevaluated()))
        return path

    def test_beside_the_record_for_its_owner_only(self, record: Path) -> None:
        out = report(str(record))
        assert out == str(record.with_suffix(".html"))
        assert Path(out).read_text("utf-8") == render(unevaluated())
        assert Path(out).stat().st_mode & 0o777 == 0o600
        assert {p.name for p in record.parent.iterdir()} == {"run-1.json", "run-1.html"}

    def test_reports_are_replaced_other_files_are_not(self, record: Path) -> None:
        out = record.with_name("there.html")
        report(record, out=out)
        report(f"file://{record}", out=f"file:{out}")
        out.write_text("<p>mine</p>")
        with pytest.raises(InputError, match="is not a report"):
            report(record, out=out)
        assert out.read_text() == "<p>mine</p>"
        before = record.read_text()
        with pytest.raises(InputError, match="must end in"):
            report(record, out=record)
        assert record.read_text() == before

    def test_what_is_no_record(self, record: Path, tmp_path: Path) -> None:
        for text in ("secret", '["secret"]', '{"anonlib_record": 1, "secret": 1}'):
            record.write_text(text)
            with pytest.raises(InputError, match="record") as caught:
                report(str(record))
            assert "secret" not in str(caught.value)
        with pytest.raises(InputError, match=r"no such file; RUN is the path.*--conf"):
            report(str(tmp_path / "other.json"))
        assert [p.name for p in tmp_path.iterdir()] == ["run-1.json"]

    def test_disk_refuses(self, record: Path, tmp_path: Path) -> None:
        record.chmod(0)
        if not os.access(record, os.R_OK):  # root may read it
            with pytest.raises(StorageError, match="Permission"):
                report(record)

    def test_paths_of_the_wrong_kind(self, record: Path, tmp_path: Path) -> None:
        """Their errors end with 2, as no later try helps, and say what is wanted."""
        for write, endings in ((report, r"\.html$"), (certify, r"\.html or \.pdf$")):
            with pytest.raises(InputError, match=r"is a folder; RUN is .*TABLE\.private/RUN_ID"):
                write(tmp_path)
            with pytest.raises(InputError, match=f"the name must end in {endings}"):
                write(record, out=tmp_path / "page.docx")
        for place in (tmp_path / "no" / "page.html", f"file:{tmp_path}/no/page.html"):
            with pytest.raises(InputError, match=r"there is no folder .*/no; make it"):
                report(record, out=place)
        with pytest.raises(InputError, match="is a folder; name a file"):
            report(record, out=folder("a.html", tmp_path))
        with pytest.raises(
            InputError, match=r"is a folder; CERTIFICATE .* comes first, then TABLE"
        ):
            read_certificate(tmp_path, None)
        assert {path.name for path in tmp_path.iterdir()} == {"run-1.json", "a.html"}

    def test_other_stores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        there = {"hdfs://host/r/run-1.json": json.dumps(unevaluated())}

        class Store:
            exists = staticmethod(there.__contains__)
            is_folder = staticmethod(lambda path: False)
            read = staticmethod(there.__getitem__)
            write = staticmethod(there.__setitem__)

        monkeypatch.setattr(report_files, "_storage", lambda path: Store())
        out = report("hdfs://host/r/run-1.json")
        assert out == "hdfs://host/r/run-1.html"
        assert there[out] == render(unevaluated())

    def test_record_of_a_run(self) -> None:
        config: Any = Config.model_construct(
            release=type("Release", (), {"record": None, "path": "out/adult/"})
        )
        assert _record_path("run-1", config.record_folder) == "out/adult.private/run-1.json"
        for wrong in ("a/run-1.json", "", "x" * 65):
            with pytest.raises(InputError, match="no run id"):
                _record_path(wrong, config.record_folder)

    def test_command(self, record: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = record.with_name("out.html")
        assert main(["report", str(record), "--out", str(out)]) == 0
        assert f"written: {out} (private)" in capsys.readouterr().err
        assert out.read_text("utf-8").startswith("<!doctype html>")
        assert main(["report", str(record.with_name("none.json"))]) == 2
        assert "no such file" in capsys.readouterr().err
