"""docs/guide/choosing.md: its figures are those of docs/evidence, its thresholds those of the
policies, its settings valid. test_anonymize.py runs its Python."""

import re
import shlex

import pytest
import yaml

import anonlib
from anonlib import registry
from anonlib.cli.parser import parse_args
from anonlib.config.policies import ClassSize, build_policy
from tests.texts import ROOT, fenced
from tests.unit.test_docs_map import rows
from tests.unit.test_docs_texts import guide_config

GUIDE = ROOT / "docs/guide"
PAGE = (GUIDE / "choosing.md").read_text("utf-8")
THRESHOLDS, FIGURES, CASES = [
    rows(part) for part in re.split(r"^## What ", PAGE, flags=re.MULTILINE)[1:]
]


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 90


def test_thresholds_are_those_of_the_policies() -> None:
    name, found = "", []
    for _, by, k in THRESHOLDS:
        said = re.search(r"`policy: ([\w-]+)`", by)
        name = said[1] if said else name
        found.append((name, int(k)))
    expected = []
    for name in dict.fromkeys(name for name, _ in found):
        raw = yaml.safe_load((ROOT / f"anonlib/config/policies/{name}.yaml").read_text("utf-8"))
        policy = build_policy(raw, "policy", [])
        assert policy
        expected += [(name, each.least) for each in policy.rules if isinstance(each, ClassSize)]
    assert found == expected


def lines_of(page: str) -> list[str]:
    """The rows and the columns of a page's tables, each as one text."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        cells = [line.split("|")[1:-1] for line in table.splitlines()]
        found += [" ".join(line) for line in (*cells, *zip(*cells, strict=True))]
    return found


@pytest.mark.parametrize("row", FIGURES, ids=lambda row: row[0])
def test_figures_are_in_the_evidence(row: list[str]) -> None:
    """In one row or one column of a table of the page that it names, in this order."""
    place = re.search(r"\]\(([\w./]+)", row[-1])
    assert place
    figures = [re.escape(text) for cell in row[1:-1] if (text := cell.strip("| "))]
    assert len(figures) >= 2
    pattern = re.compile(rf"(?<![\d.]){'(?![.]?[0-9]).*(?<![0-9.])'.join(figures)}(?![.]?\d)")
    assert any(map(pattern.search, lines_of((GUIDE / place[1]).read_text("utf-8"))))


def test_cases_name_plugins() -> None:
    assert len(CASES) == 10
    for _, kernel, partitioner in CASES:
        for family, text in (("kernel", kernel), ("partitioner", partitioner)):
            names = re.findall(r"`(\w+)`", text)
            assert names
            for name in names:
                assert registry.plugin(family, name)


def test_settings_and_command() -> None:
    (settings,) = [block for block in fenced(PAGE) if block.language == "yaml"]
    config = anonlib.parse(guide_config() | yaml.safe_load(settings.text))
    assert registry.spec(config.kernel)["type"] == "refine"
    (command,) = re.findall(r"`anonlib (suggest .*)`", PAGE)
    args = parse_args(shlex.split(command), "1")
    assert (args.verb, args.k, args.kernels) == ("suggest", [12, 20], ["mdav", "refine"])
