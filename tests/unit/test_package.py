"""scripts/package: what its audit says, and when --require-audit is content."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIB = Path(__file__).parents[2] / "scripts" / "lib"
PURLS = ["pkg:pypi/a@1", "pkg:maven/io.delta/delta-storage@4.4.0"]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The script, with a pip-audit that knows nothing against the package `a`."""
    monkeypatch.syspath_prepend(str(LIB))
    import package

    tool = tmp_path / "bin" / "pip-audit"
    tool.parent.mkdir()
    answer = {"dependencies": [{"name": "a", "version": "1", "vulns": []}]}
    tool.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    tool.chmod(0o755)
    monkeypatch.setattr(package, "TOOLS", tmp_path)
    bill = {"components": [{"purl": purl} for purl in PURLS]}
    (tmp_path / "sbom.cdx.json").write_text(json.dumps(bill))
    yield package
    for name in ("package", "advisories"):
        del sys.modules[name]


def test_service_knows_nothing_of_jars(package: Any, tmp_path: Path) -> None:
    assert not package.audit(tmp_path, [])
    audited, rest = (tmp_path / "AUDIT.txt").read_text().splitlines()
    assert audited == "audited: 1 Python packages by pip-audit; no vulnerability is known"
    assert rest.startswith("NOT AUDITED: 1 jars. ")


def test_records_of_both(package: Any, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    for ecosystem in ("PyPI", "Maven"):
        affected = [{"package": {"ecosystem": ecosystem, "name": "other"}}]
        text = json.dumps({"id": ecosystem, "affected": affected})
        (records / f"{ecosystem}.json").write_text(text)
    assert package.audit(tmp_path, [records])
    said = (tmp_path / "AUDIT.txt").read_text()
    assert said == (
        "audited: 1 Python packages and 1 jars by OSV records; no vulnerability is known\n"
    )


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("required", [True, False])
def test_jars_and_exit_code(
    package: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: bool, required: bool
) -> None:
    """The jars are Delta's and PostgreSQL's driver; all of them are copied and in the bill."""
    took: dict[str, list[Any]] = {}
    wheel = tmp_path / "anonlib-1-py3-none-any.whl"
    wheel.touch()
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(package, "ROOT", tmp_path)
    for name in ("install", "pack", "write_readme", "write_checksums", "put"):
        monkeypatch.setattr(package, name, lambda *args: None)
    monkeypatch.setattr(package, "build_wheel", lambda made: wheel)
    monkeypatch.setattr(package, "ensure_jars", lambda: {Path("delta.jar"): "delta"})
    monkeypatch.setattr(package, "ensure_postgresql_jar", lambda: Path("postgresql.jar"))
    monkeypatch.setattr(package, "copy_rest", lambda made, jars: took.update(copied=[*jars]))
    monkeypatch.setattr(package, "write_bill", lambda path, jars: took.update(bill=[*jars]))
    monkeypatch.setattr(package, "audit", lambda made, advisories: clean)
    given = ["package", "--out", str(tmp_path / "out"), *["--require-audit"] * required]
    monkeypatch.setattr(sys, "argv", given)
    assert package.main() == int(required and not clean)
    assert took["copied"] == [Path("delta.jar"), Path("postgresql.jar")]
    assert took["bill"] == ["delta", package.POSTGRESQL]
