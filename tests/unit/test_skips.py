"""What the machine lacks: tests skip for it, but not on CI. And which tests begin first."""

import re
from pathlib import Path

import pytest

from tests.support import LONG, data_dir, skip_or_fail

ROOT = Path(__file__).parents[2]


def test_skips_fail_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANONLIB_NO_SKIPS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such thing"):
        skip_or_fail("no such thing")
    monkeypatch.setenv("ANONLIB_NO_SKIPS", "1")
    with pytest.raises(pytest.fail.Exception, match="no such thing"):
        skip_or_fail("no such thing")
    assert "\nexport ANONLIB_NO_SKIPS=1\n" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_missing_data_fail_on_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANONLIB_DATA", str(tmp_path / "nowhere"))
    monkeypatch.delenv("ANONLIB_NO_SKIPS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="ANONLIB_DATA"):
        data_dir()
    monkeypatch.setenv("ANONLIB_NO_SKIPS", "1")
    with pytest.raises(pytest.fail.Exception, match="ANONLIB_DATA"):
        data_dir()


def test_no_test_skips_by_itself() -> None:
    """Every skip goes through `skip_or_fail`, so that CI notices it."""
    skip = re.compile(r"pytest\.(skip|importorskip)\(|mark\.skip")
    wrong = [
        f"{path.relative_to(ROOT)}:{i}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for i, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if skip.search(line)
        if path.name not in {"support.py", "test_skips.py"}
    ]
    assert wrong == []


def test_files_that_begin_first_are_there() -> None:
    assert [name for name in LONG if not (ROOT / name).is_file()] == []
