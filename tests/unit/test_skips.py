"""What the machine lacks: tests skip for it, but not on CI."""

from pathlib import Path

import pytest

from tests.support import skip_or_fail

ROOT = Path(__file__).parents[2]


def test_skips_fail_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANONLIB_NO_SKIPS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such thing"):
        skip_or_fail("no such thing")
    monkeypatch.setenv("ANONLIB_NO_SKIPS", "1")
    with pytest.raises(pytest.fail.Exception, match="no such thing"):
        skip_or_fail("no such thing")
    assert "\nexport ANONLIB_NO_SKIPS=1\n" in (ROOT / ".ci" / "run").read_text("utf-8")
