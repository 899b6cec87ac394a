"""The colours of reports: their contrast by day, by night and on paper."""

import pytest

from tests import reports


@pytest.mark.parametrize("scheme", ["", "dark", "print"])
def test_contrast(scheme: str) -> None:
    """WCAG 2.2 AA: 4.5 for texts (1.4.3), 3 for what drawings are read by (1.4.11)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a: str, b: str) -> float:
        low, high = sorted([luminance(a), luminance(b)])
        return (high + 0.05) / (low + 0.05)

    found = reports.colours(scheme)
    assert set(found) == set(reports.colours(""))
    for name in ("ink", "muted", "link", "good", "look", "bad"):
        assert contrast(found[name], found["paper"]) >= 4.5, name
        assert contrast(found[name], found["raised"]) >= 4.5, name
    for name in ("fill", *(f"line-{i}" for i in range(1, 9))):
        assert contrast(found[name], found["paper"]) >= 3, name
    assert contrast(found["ink"], found["fill"]) >= 3  # a source's mark on a released bar
