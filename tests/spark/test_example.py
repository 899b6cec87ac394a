"""`anonlib release --example`, as somebody runs it who has the wheel alone: in a folder without
anything. (With fewer rows, whose release takes the same way.)"""

import re
from pathlib import Path

import pandas as pd
import pytest
from deltalake import DeltaTable

from tests.spark.support import Shell

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("noted")]


def test_the_example(shell: Shell, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonlib.cli.example.N_ROWS", 500)
    said = shell("release", "--example")
    assert said.code == 0, said.err
    assert [each.name for each in workplace.iterdir()] == ["anonlib-example"]
    people = pd.read_csv("anonlib-example/people.csv", dtype={"zip": str})
    released = DeltaTable("anonlib-example/released").to_pandas()
    assert len(people) == len(released) == 500
    assert "name" in people
    assert "name" not in released
    assert set(people["zip"]) >= {each for zips in released["zip"] for each in zips}
    # All places that it names are there, and the commands are of these.
    named = re.findall(r"anonlib-example/[\w./-]*\w", said.out)
    assert len(set(named)) > 5
    assert [place for place in named if not Path(place).exists()] == []
    assert "audit anonlib-example/released --conf anonlib-example/people.yaml" in said.out
    assert "  - column" not in said.out, "a column needs better settings"
