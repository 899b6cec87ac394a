"""What tests of texts go by: blocks, commands, and whether shown output is what was said."""

import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import yaml

import anonlib
from anonlib import registry
from tests.texts import ROOT, Fenced, Shown, commands, fenced, not_said

#: Recoders whose forms all measures can read.
RANGES = {"continuous": "interval", "ordinal": "interval", "nominal": "set"}
OUTPUT = "a table\n\nrows   1,200\nclasses  40\ndone\n"


def test_blocks_and_commands() -> None:
    text = (
        "# Head\n```console rows\n$ one 'a b' \\\n  --c\nout\n$ echo $?\n2\n```\nend\n```\nx\n```\n"
    )
    first, second = fenced(text)
    assert second == Fenced("", "", "x\n")
    assert (first.language, first.name) == ("console", "rows")
    assert commands(first) == [
        Shown(("one", "a b", "--c"), ("out",)),
        Shown(("echo", "$?"), ("2",)),
    ]


@pytest.mark.parametrize(
    "shown",
    [
        OUTPUT,
        "a table\nrows 1,200\n...",
        "...\nrows 1,200\n...\ndone",
        "...\ndone",
    ],
)
def test_what_was_said(shown: str) -> None:
    assert not_said(shown.splitlines(), OUTPUT) == []


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("a table\nrows 1,201\n...", ["rows 1,201"]),  # another figure
        ("...\nclasses 40\nrows 1,200\n...", ["rows 1,200"]),  # another order
        ("a table\nclasses 40\ndone", ["classes 40"]),  # left out without a word
        ("rows 1,200\n...", ["rows 1,200"]),  # not where it begins
        ("a table", ["rows 1,200", "classes 40", "done"]),  # not where it ends
        ("a table\n...\nmore", ["more"]),
    ],
)
def test_what_was_not_said(shown: str, missing: list[str]) -> None:
    assert set(missing) <= set(not_said(shown.splitlines(), OUTPUT))


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]*)\)")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """In the checkout; scripts/docs looks at those of the site. Its reference is made there."""
    text = page.read_text("utf-8")
    broken = []
    for link in LINK.findall(text):
        name, _, anchor = link.partition("#")
        if "://" in name or "reference/" in name:
            continue
        place = (page.parent / name) if name else page
        if not place.exists() or (anchor and anchor not in anchors(place.read_text("utf-8"))):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_site() -> None:
    listed = set(re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    own = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    own |= {f"notebooks/{path.stem}.md" for path in (ROOT / "docs/notebooks").glob("*.ipynb")}
    made = {page for page in listed if page.startswith("reference/")}
    assert own <= listed
    assert listed - own - made == {"security.md", "contributing.md", "changelog.md"}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_yaml_is_yaml(page: Path) -> None:
    blocks = [block for block in fenced(page.read_text("utf-8")) if block.language == "yaml"]
    for block in blocks:
        assert yaml.safe_load(block.text)


def guide_config() -> dict[str, Any]:
    """The config of the guide, which is whole but for an order that it shortens."""
    (block, *_) = [b for b in fenced((ROOT / "docs/guide/config.md").read_text()) if b.language]
    raw: dict[str, Any] = yaml.safe_load(block.text)
    raw["attributes"]["education"]["order"] = ["Preschool", "Masters", "Doctorate"]
    raw["attributes"]["national_id"]["pseudonym"] = True
    return raw


def test_the_config_of_the_guide() -> None:
    assert anonlib.parse(guide_config()).k == 10


def test_measures_and_gates_of_pages_are_of_a_config() -> None:
    """Each block is valid as a part of the guide's config, whose columns it names."""
    found = 0
    for page in PAGES:
        for block in fenced(page.read_text("utf-8")):
            raw = yaml.safe_load(block.text) if block.language == "yaml" else None
            if raw and "evaluate" in raw and "attributes" not in raw:
                anonlib.parse(guide_config() | {"recode": RANGES} | raw)
                found += 1
    assert found >= 3


def test_the_changelog() -> None:
    """Short enough to be read; modules stand where it says that they moved."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert len(text.splitlines()) <= 120
    moved = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| `anonlib.")]
    now = [name for cell in moved for name in re.findall(r"`(anonlib[\w.]*)`", cell)]
    assert len(now) > 20
    for name in now:
        resolve_name(name)


def test_the_changelog_lists_the_plugins() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    names = [
        name
        for family in ("kernel", "partitioner", "recoder", "measure", "metric")
        for name in registry.plugins(family)
    ]
    assert [name for name in names if f"`{name}`" not in text] == []
