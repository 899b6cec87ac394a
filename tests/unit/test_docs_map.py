"""CONTRIBUTING.md: its map of the source, its layers and its glossary are those of the source."""

import re

import anonlib
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


def test_every_public_verb_is_where_the_map_says() -> None:
    text = section("Map of the source").split("| layer |", 1)[0]
    table = rows(text)
    assert len(table) <= 32
    for name, home in anonlib._HOMES.items():
        if name in ("load", "parse"):
            continue
        path = home.replace(".", "/")
        (opened,) = [row[1] for row in table if f"`{name}`" in row[0]]
        assert f"`{path}.py`" in opened or f"`{path}/__init__.py`" in opened, name


def test_layers_are_listed_in_order() -> None:
    after = section("Map of the source").split("| layer |", 1)[1]
    listed = [re.findall(r"`(\w+)`", row[0]) for row in rows(f"| layer |{after}")]
    assert [sorted(names) for names in listed] == [sorted(names) for names in LAYERS]


def test_glossary() -> None:
    """Each word counts, also where a line explains two or names another one in bold."""
    words = [
        word
        for row in rows(section("Glossary"))
        for word in (*row[0].split(", "), *re.findall(r"\*\*(\w+)\*\*", row[1]))
    ]
    assert 30 <= len(words) <= 40
    assert len(set(words)) == len(words)
    assert all(len(row) == 3 for row in rows(section("Glossary")))
