"""What the soak calls growth."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of scripts/soak."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts" / "lib"))
    import soak

    return soak


def test_what_fills_up_first_does_not_grow(soak: Any) -> None:
    measures = [dict.fromkeys(soak.LIMITS, 100.0 + min(i, 12) + i % 2) for i in range(48)]
    lines, grew = soak.judged(measures)
    assert not grew
    assert len(lines) == 1 + len(soak.LIMITS)


def test_every_leak_is_growth(soak: Any) -> None:
    for name in soak.LIMITS:
        measures = [dict.fromkeys(soak.LIMITS, 100.0) for _ in range(48)]
        for i, measured in enumerate(measures):
            measured[name] += i * max(2.0, soak.LIMITS[name].least / 10)
        lines, grew = soak.judged(measures)
        assert grew
        assert [line.split()[0] for line in lines if line.endswith("GROWS")] == [name]
