"""docs/evidence: each page begins with a figure and what it found; figures that are drawn from a
page's tables are those of the page as it is."""

import importlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.texts import ROOT

figures = importlib.import_module("scripts.lib.bench.figures")
EVIDENCE = sorted((ROOT / "docs/evidence").glob("*.md"))
DRAWN = sorted(figures.FIGURES)


@pytest.mark.parametrize("name", DRAWN)
def test_the_figure_is_that_of_the_page(name: str) -> None:
    """If it fails: scripts/bench figures."""
    page = (ROOT / f"docs/evidence/{name}.md").read_text("utf-8")
    assert (ROOT / f"docs/images/{name}.svg").read_text("utf-8") == figures.FIGURES[name](page)


@pytest.mark.parametrize("page", EVIDENCE, ids=lambda page: page.stem)
def test_a_figure_stands_before_the_tables(page: Path) -> None:
    text = page.read_text("utf-8")
    found = re.search(r"^!\[(.*)\]\(\.\./images/\w+\.svg\)$", text, re.MULTILINE)
    assert found
    assert len(found[1].split()) >= 10
    assert "\n|" not in text[: found.start()]


def test_a_changed_figure_changes_the_picture() -> None:
    page = (ROOT / "docs/evidence/peers.md").read_text("utf-8")
    changed = page.replace("| 18.8 |", "| 17.8 |")
    assert changed != page
    assert figures.draw_peers(changed) != figures.draw_peers(page)


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_fit_a_phone(name: str) -> None:
    """They are no wider than 390 pixels, on white, and nothing is drawn beyond their edges."""
    root = ET.fromstring((ROOT / f"docs/images/{name}.svg").read_text("utf-8"))
    wide, high = float(root.attrib["width"]), float(root.attrib["height"])
    assert wide <= 390
    assert root[1].attrib == {"width": "100%", "height": "100%", "fill": "white"}
    for each in root.iter():
        x, y = (each.attrib.get(a, each.attrib.get(b, "0")) for a, b in (("x", "cx"), ("y", "cy")))
        assert 0 <= float(x) <= wide
        assert 0 <= float(y) <= high


def test_numbers_of_cells() -> None:
    assert figures.numbers("1,691") == [1691]
    assert figures.numbers("12.54, 24") == [12.54, 24]
    assert figures.point(2, "0.29 (0.27–0.32)") == (2, 0.29, 0.27, 0.32)
    assert figures.point(2, "0.812 (0.820)") == (2, 0.812, 0.812, 0.812)
