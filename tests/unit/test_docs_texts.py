"""What tests of texts go by: blocks, commands, and whether shown output is what was said."""

import pytest

from tests.texts import ROOT, Fenced, Shown, commands, fenced, not_said

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


def test_texts_name_files_that_are_there() -> None:
    """Links of the texts to files of this repository."""
    for name in ("README.md", "TUTORIAL.md", "CONTRIBUTING.md", "SECURITY.md"):
        text = (ROOT / name).read_text("utf-8")
        links = [part.partition(")")[0] for part in text.split("](")[1:]]
        own = [link.partition("#")[0] for link in links if "://" not in link]
        assert [link for link in own if link and not (ROOT / link).exists()] == []
