"""The dependency audit of scripts/package: OSV records, and what is said when there are none."""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIB = Path(__file__).parents[2] / "scripts" / "lib"
PURLS = ["pkg:pypi/Typing_Extensions@4.5.0", "pkg:maven/io.delta/delta-storage@4.4.0"]


@pytest.fixture
def advisories(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(LIB))
    import advisories

    yield advisories
    del sys.modules["advisories"]


def record(name: str, ecosystem: str = "PyPI", **affected: Any) -> dict[str, Any]:
    package = {"name": name, "ecosystem": ecosystem}
    return {"id": f"X-{name}", "affected": [{"package": package, **affected}]}


def events(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": [{k: v} for k, v in pairs]}]}


def audited(advisories: Any, folder: Path, *records: dict[str, Any]) -> list[str]:
    """The packages with a known vulnerability, by a folder and by a zip of records."""
    names = []
    every = [record("other"), record("o:o", "Maven"), *records]
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for i, one in enumerate(every):
            archive.writestr(f"{i}.json", json.dumps(one))
    for path in (folder / "all.zip", folder / "files"):
        if path.suffix != ".zip":
            with zipfile.ZipFile(folder / "all.zip") as archive:
                archive.extractall(path)
        found = advisories.audited_offline(PURLS, [path])
        assert (found.packages, found.jars, found.not_audited) == (1, 1, 0)
        assert found.clean == (not found.vulnerabilities)
        assert advisories.report(found).startswith(
            "audited: 1 Python packages and 1 jars by OSV records; "
        )
        names.append([package for package, _ in found.vulnerabilities])
    assert names[0] == names[1]
    return list(names[0])


@pytest.mark.parametrize(
    ("affected", "hit"),
    [
        ({"versions": ["4.5.0"]}, True),
        ({"versions": ["4.4.0"]}, False),
        (events(("introduced", "0")), True),
        (events(("introduced", "0"), ("fixed", "4.5.0")), False),
        (events(("fixed", "4.10.0"), ("introduced", "0")), True),
        (events(("introduced", "4.6")), False),
        (events(("introduced", "0"), ("last_affected", "4.5")), True),
        (events(("introduced", "0"), ("fixed", "4.1"), ("introduced", "4.5rc1")), True),
    ],
)
def test_ranges(advisories: Any, tmp_path: Path, affected: dict[str, Any], hit: bool) -> None:
    found = audited(advisories, tmp_path, record("typing.extensions", **affected))
    assert found == (["typing-extensions 4.5.0"] if hit else [])


def test_withdrawn_records_and_jars(advisories: Any, tmp_path: Path) -> None:
    every = events(("introduced", "0"))
    gone = {**record("typing-extensions", **every), "withdrawn": "2026-01-01T00:00:00Z"}
    jar = record(
        "io.delta:delta-storage", "Maven", **events(("introduced", "4.10"), ("fixed", "5"))
    )
    assert audited(advisories, tmp_path, gone, jar) == []
    (tmp_path / "more").mkdir()
    jar = record(
        "io.delta:delta-storage", "Maven", **events(("introduced", "4"), ("fixed", "4.10"))
    )
    assert audited(advisories, tmp_path / "more", jar) == ["io.delta:delta-storage 4.4.0"]


def test_what_is_not_audited_is_said(advisories: Any, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(record("other")))
    with pytest.raises(advisories.NotAuditedError, match="has no records of Maven"):
        advisories.audited_offline(PURLS, [tmp_path])
    (tmp_path / "bad.zip").write_text("{}")
    with pytest.raises(advisories.NotAuditedError, match=r"bad\.zip: no OSV records"):
        advisories.audited_offline(PURLS, [tmp_path / "bad.zip"])
    silent = tmp_path / "pip-audit"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    with pytest.raises(advisories.NotAuditedError, match="gave no answer"):
        advisories.audited_online(silent, tmp_path, PURLS)
    skipped = {"dependencies": [{"name": "a", "skip_reason": "not found"}]}
    silent.write_text(f"#!/bin/sh\necho '{json.dumps(skipped)}'\n")
    with pytest.raises(advisories.NotAuditedError, match="knows nothing of 1 of 1"):
        advisories.audited_online(silent, tmp_path, PURLS)


@pytest.mark.parametrize("known", [["PYSEC-1"], []])
def test_service_that_answers(advisories: Any, tmp_path: Path, known: list[str]) -> None:
    """It is asked of Python packages only: a verdict that jars could be taken into is none."""
    tool = tmp_path / "pip-audit"
    answer = {"name": "a", "version": "1", "vulns": [{"id": id} for id in known]}
    tool.write_text(f"#!/bin/sh\necho '{json.dumps({'dependencies': [answer]})}'\n")
    tool.chmod(0o755)
    found = advisories.audited_online(tool, tmp_path, PURLS)
    assert found.vulnerabilities == tuple(("a 1", id) for id in known)
    assert not found.clean
    first, *others, last = advisories.report(found).splitlines()
    verdict = "KNOWN VULNERABILITIES:" if known else "no vulnerability is known"
    assert first == f"audited: 1 Python packages by pip-audit; {verdict}"
    assert others == [f"a 1: {id}" for id in known]
    assert last.startswith("NOT AUDITED: 1 jars. Give OSV's exports")
    assert advisories.audited_online(tool, tmp_path, PURLS[:1]).clean == (not known)
