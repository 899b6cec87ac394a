"""What spark-submit starts: each job is the command of its name."""

import runpy
import sys
from pathlib import Path

import pytest

JOBS = sorted((Path(__file__).parents[2] / "jobs").glob("*.py"))


@pytest.mark.parametrize("job", JOBS, ids=[job.stem for job in JOBS])
def test_it_is_the_command_of_its_name(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        given.append(arguments)
        return 3

    monkeypatch.setattr("anonlib.cli.main", main)
    monkeypatch.setattr(sys, "argv", [str(job), "CONFIG", "--quiet"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(job), run_name="__main__")
    assert given == [[job.stem, "CONFIG", "--quiet"]]
    assert ended.value.code == 3


def test_there_is_one_for_each_verb() -> None:
    assert {job.stem for job in JOBS} == {"release", "audit", "check", "evaluate", "sweep"}
