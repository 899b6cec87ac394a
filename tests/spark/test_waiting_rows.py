"""Rows that wait and come again: a run that adds them to its source counts nobody twice. And what
is said of persons who wait, or whose rows were suppressed."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.errors import ConfigError, InputError
from anonlib.run.waiting_rows import require_new_rows
from anonlib.source.resolved_source import Source
from tests.spark.support import MARKER, Shell, settings
from tests.spark.test_append import KEY, batch, refused, table
from tests.spark.test_backlog import sealed, waiting

pytestmark = pytest.mark.spark


class Named(SimpleNamespace):
    """A schema of two columns, by id and by name."""

    def __getitem__(self, name: str) -> Any:
        return next(column for column in self.columns if column.name == name)


SCHEMA: Any = Named(
    columns=(SimpleNamespace(id="c0", name="id"), SimpleNamespace(id="c1", name="age"))
)


def rows(spark: SparkSession, *values: tuple[str | None, str]) -> DataFrame:
    return spark.createDataFrame([*values], "c0 string, c1 string").coalesce(1)


def judge(fresh: DataFrame, person: bool | str, **waiting: DataFrame) -> None:
    columns = {"c0": F.trim("c0"), "c1": F.col("c1").cast("int")}
    source = Source(fresh, fresh, columns, {}, SCHEMA, None, (), {}, {}, waiting=waiting)
    require_new_rows(source, person, lambda run_id: f"backlog/{run_id}")


@pytest.mark.parametrize("person", [True, False, "id"])
def test_parts_that_share_rows_or_persons(spark: SparkSession, person: bool | str) -> None:
    """Values are compared as a run reads them. A unit's persons may have other rows; where a column
    names them, they have one."""
    a, b, c = ("a", "1"), ("b", "2"), ("c", "3")
    one, two = rows(spark, a, b), rows(spark, c)
    judge(rows(spark, a), person)  # nothing waits
    judge(rows(spark, ("d", "1")), person, one=one, two=two)
    with pytest.raises(ConfigError, match=r"source: has no rows, so .* of runs one, two wait on"):
        judge(rows(spark, c).limit(0), person, one=one, two=two)
    what = "persons are" if person == "id" else "rows are"
    with pytest.raises(InputError, match=f"^release.backlog: 2 {what} both in .* of run one that"):
        judge(rows(spark, a, (" b ", "02"), ("d", "3")), person, one=one, two=two)
    said = "in the waiting rows of more than one .*all but one of backlog/one, backlog/three, and"
    with pytest.raises(InputError, match=said):
        judge(rows(spark, ("d", "1")), person, one=one, two=two, three=rows(spark, a))
    if person == "id":
        with pytest.raises(InputError, match=r"1 person is both in .* remove backlog/two if the"):
            judge(rows(spark, ("c", "4")), person, one=one, two=two)
    else:
        judge(rows(spark, ("c", "4")), person, one=one, two=two)
    judge(rows(spark, (None, "1")), "id", one=rows(spark, (None, "2")))  # nobody


def test_a_repeated_job_counts_nobody_twice(
    shell: Shell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no column names the persons; nor does an empty batch add to those that wait."""
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)

    def made(frame: pd.DataFrame, mode: str = "append") -> Any:
        found = waiting(tmp_path, frame, mode, one_row_per_person=True)
        found["release"] |= {"ledger": None, "acknowledge_returning": mode == "append"}
        found["release"] |= {"acknowledge_overwrite": mode == "overwrite"}
        return found

    assert shell.release(made(batch(0, 30), "error")).code == 0
    assert shell.release(made(batch(30, 2)), "--run-id", "one").code == 0
    again = shell.release(made(batch(30, 2)))
    refused(again, 2, "2 rows are both in the source and in the rows of run one that wait")
    empty = made(batch(32, 2))
    empty["source"] |= {"where": "wage < 0"}
    refused(shell.release(empty), 2, "source: has no rows", "the rows of run one wait on")
    everybody = shell.release(made(batch(0, 32), "overwrite"))
    refused(everybody, 2, "rows wait for this table (2 of run one)")
    assert sealed(tmp_path) == {"run-one"}
    assert table(spark, tmp_path).count() == 30


def test_persons_who_were_suppressed_or_wait(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)
    privacy = settings(tmp_path)["privacy"]
    costly = {**privacy, "suppress": "costliest", "suppression_limit": 0.2}
    first = waiting(tmp_path, batch(0, 30), "error", privacy=costly)
    said = shell.release(first, "--run-id", "zero")
    assert "30 in, 24 out" in " ".join(said.out.split()), said.out
    said = shell.release(waiting(tmp_path, batch(30, 2), privacy=costly), "--run-id", "one")
    assert said.code == 0, said.err
    person = tmp_path / "person.json"
    for number, fate in ((3, "released or suppressed"), (40, "not released")):
        person.write_text(json.dumps({"name": f"{MARKER}-name-{number}"}))
        said = shell("runs", str(tmp_path / "config.yaml"), "--person", str(person), "--json")
        assert json.loads(said.out) == {"zero": fate, "one": "waits, not searched"}
    returning = shell.release(waiting(tmp_path, batch(0, 9), privacy=costly))
    refused(returning, 2, "9 persons of the source were released before, or were in the source of")
