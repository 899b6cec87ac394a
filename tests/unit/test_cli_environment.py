"""What help says of the environment."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import anonlib
from anonlib.cli import main, parser

HOME = Path(anonlib.__file__).parent


@cache
def named_in_code() -> set[str]:
    """The variables of ours whose names are texts of the code, but for that of help."""
    paths = {*HOME.rglob("*.py")} - {Path(parser.__file__)}
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    texts = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    return {text for text in texts if re.fullmatch(r"ANONLIB_[A-Z_]+", text)}


def test_help_names_every_variable_that_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    _, _, block = capsys.readouterr().out.partition("\nenvironment:\n")
    lines = block.partition("\n\n")[0].splitlines()
    told = [line.split()[0].partition("=")[0] for line in lines if line.startswith("  ANONLIB_")]
    assert len({*told}) == len(told)
    assert {*told} == named_in_code()


@pytest.mark.parametrize(
    ("verb", "names"),
    [
        ("release", {"MIN_K", "REQUIRE", "RUNS", "EVENTS"}),
        ("evaluate", {"MIN_K", "RUNS", "EVENTS"}),
        ("check", {"MIN_K", "REQUIRE"}),
        ("audit", {"MIN_K"}),
        ("suggest", {"MIN_K"}),
        ("sweep", {"MIN_K"}),
        ("runs", {"RUNS"}),
        ("show", set()),
    ],
)
def test_help_of_verbs_names_what_they_heed(
    verb: str, names: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    said = capsys.readouterr().out
    told = {name for name in named_in_code() if f"\n  {name}" in said}
    assert told == {f"ANONLIB_{name}" for name in names}
