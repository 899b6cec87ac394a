"""CONTRIBUTING.md: its map of the source, its layers and its glossary are those of the source."""

import re

from tests.texts import ROOT
from tests.unit.test_layout import LAYERS

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def section(head: str) -> str:
    """The text between a heading and the next one."""
    return TEXT.split(f"\n## {head}\n", 1)[1].split("\n## ", 1)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of its tables, row by row, without heads and rules."""
    lines = text.splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    heads = [i - 1 for i, row in enumerate(table) if set(row[0]) == {"-"}]
    return [row for i, row in enumerate(table) if i not in heads and i - 1 not in heads]


def test_paths_exist() -> None:
    text = section("Map of the source") + section("Glossary")
    paths = re.findall(r"`((?:anonlib|tests|conf|scripts)/[^`]*)`", text)
    assert len(paths) > 60
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_layers_are_listed_in_order() -> None:
    after = section("Map of the source").split("| layer |", 1)[1]
    listed = [re.findall(r"`(\w+)`", row[0]) for row in rows(f"| layer |{after}")]
    assert [sorted(names) for names in listed] == [sorted(names) for names in LAYERS]


def test_glossary() -> None:
    words = [row[0] for row in rows(section("Glossary"))]
    assert 30 <= len(words) <= 40
    assert len(set(words)) == len(words)
    assert all(len(row) == 3 for row in rows(section("Glossary")))
