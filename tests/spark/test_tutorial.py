"""docs/guide/tutorial.md: its commands, run in their order on its table, print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.support import Shell
from tests.support import data_dir
from tests.texts import ROOT, Shown, commands, fenced, not_said

pytestmark = [
    *(pytest.mark.spark, pytest.mark.cluster, pytest.mark.slow),
    pytest.mark.usefixtures("drawings", "noted"),
]
#: Lines of progress, which the text leaves out; notes stay, without their time.
PROGRESS = re.compile(r"\d\d:\d\d:\d\d [a-z ]+: (started|done in .*|failed after .*)\n")


def run(shell: Shell, shown: Shown, last: int) -> tuple[int, str]:
    """A command's exit code, and what it says."""
    program, *argv = shown.argv
    if program == "scripts/anonlib":
        said = shell(*argv)
        err = re.sub(r"(?m)^\d\d:\d\d:\d\d ", "", PROGRESS.sub("", said.err))
        return said.code, said.out + err
    if shown.argv == ("echo", "$?"):
        return 0, str(last)
    assert program in ("cat", "scripts/fetch_data"), program
    ours = [sys.executable, str(ROOT / program)] if program != "cat" else [program]
    env = {**os.environ, "ANONLIB_DATA": str(data_dir())}
    done = subprocess.run([*ours, *argv], capture_output=True, text=True, env=env, check=False)
    return done.returncode, done.stdout + done.stderr


def first_words(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.strip()]


def test_the_tutorial(shell: Shell, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_dir()
    monkeypatch.setattr("anonlib.cli.show.summaries.program", lambda: "scripts/anonlib")
    n_commands, code = 0, 0
    for block in fenced((ROOT / "docs/guide/tutorial.md").read_text("utf-8")):
        if block.language == "yaml":
            (workplace / block.name).write_text(block.text, "utf-8")
            continue
        assert block.language == "console"
        steps = commands(block)
        for shown, after in zip(steps, [*steps[1:], None], strict=True):
            code, output = run(shell, shown, code)
            n_commands += 1
            told = after is not None and after.argv == ("echo", "$?")
            assert code == 0 or told, f"{shown.argv}: {code}\n{output}"
            lines = list(shown.lines)
            if block.name == "rows":  # in random order: columns are compared, not values
                lines, output = first_words(lines), "\n".join(first_words(output.splitlines()))
            assert not_said(lines, output) == [], f"{shown.argv}\n{output}"
    assert n_commands > 15
