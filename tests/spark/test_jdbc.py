"""Reading from a database that can't share one state of a table among connections: Derby, which is
among Spark's own jars, inside the JVM. PostgreSQL is in test_database.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from anonlib import pipeline
from anonlib.config.reading import parse
from tests.spark.support import (
    Shell,
    left,
    multiset,
    people,
    settings,
    write_config,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

URL = "jdbc:derby:memory:people"
PARTS = {"partitionColumn": "part", "lowerBound": 10, "upperBound": 40, "numPartitions": 3}
Execute = Callable[[str], None]


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Any:
    """Executes a statement in a fresh database, which goes away with the test."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    driver = jvm.org.apache.derby.iapi.jdbc.AutoloadedDriver()
    connection = driver.connect(f"{URL};create=true", jvm.java.util.Properties())

    def execute(statement: str) -> None:
        connection.createStatement().execute(statement)

    execute(
        'CREATE TABLE people ("name" VARCHAR(40), "wage" BIGINT, "city" VARCHAR(40),'
        ' "illness" VARCHAR(40), "part" INT)'
    )
    for i, row in enumerate(people().itertuples(index=False)):
        part = "NULL" if i % 7 == 0 else str(i)
        execute(
            f"INSERT INTO people VALUES ('{row.name}', {row.wage}, '{row.city}', '{row.illness}',"
            f" {part})"
        )
    yield execute
    connection.close()
    with pytest.raises(Exception, match="dropped"):
        driver.connect(f"{URL};drop=true", jvm.java.util.Properties())


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    options = {"url": URL, "dbtable": "people", **PARTS}
    source = {"format": "jdbc", "options": options, "secrets": {"password": "JDBC_PASSWORD"}}
    part = {"part": {"role": changes.pop("part", "drop")}}
    return settings(folder, source=source, attributes=part, **changes)


def lose_rows(spark: SparkSession) -> None:
    """All that is kept of sources is gone, as if executors had died."""
    jvm: Any = spark._jvm
    master = jvm.org.apache.spark.SparkEnv.get().blockManager().master()
    for id in spark.sparkContext._jsc.getPersistentRDDs().keySet():
        master.removeRdd(id, True)


def test_parts_are_the_whole_table(
    shell: Shell, spark: SparkSession, derby: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows without a part, and of parts outside the bounds, are read, each once: the release is
    that of the same rows in a file."""
    monkeypatch.setenv("JDBC_PASSWORD", "correct-horse")
    folder = shell.folder
    said = shell.release(config(folder), hooks={"partition started": lambda: lose_rows(spark)})
    assert said.code == 0, said.error
    write_people(folder, people().assign(part=pd.Series(range(60), dtype="int32")))
    part = {"part": {"role": "drop"}}
    same = settings(folder, attributes=part, release={"path": str(folder / "same")})
    assert shell.release(same).code == 0
    path = str(folder / "out" / "table")
    assert pipeline.audit_delta(path, parse(config(folder))).passed
    found = spark.read.format("delta").load(path)
    assert multiset(found) == multiset(spark.read.format("delta").load(str(folder / "same")))


def test_a_table_that_changes_between_passes(
    shell: Shell, spark: SparkSession, derby: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDBC_PASSWORD", "correct-horse")

    def change() -> None:
        derby('UPDATE people SET "illness" = \'RAWVALUE-illness-2\' WHERE "part" = 11')
        lose_rows(spark)

    said = shell.release(config(shell.folder), hooks={"partition started": change})
    assert said.code == 1
    assert "source: it changed while it was read" in said.error
    assert "table" not in left(shell.folder / "out")
    assert "correct-horse" not in said.out + said.err


def test_a_table_that_changes_while_parts_are_read(
    shell: Shell, spark: SparkSession, derby: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that move from one part to another may be read twice, or never."""
    monkeypatch.setenv("JDBC_PASSWORD", "correct-horse")
    from anonlib.source import steady

    digest, calls = steady.digest, []

    def slow(frame: Any) -> Any:
        found = digest(frame)
        if not calls:
            derby('UPDATE people SET "part" = 50 WHERE "part" = 11')
        calls.append(found)
        return found

    monkeypatch.setattr(steady, "digest", slow)
    said = shell.release(config(shell.folder, part="insensitive"))
    assert said.code == 1
    assert "source: it changed while it was read" in said.error
    assert "table" not in left(shell.folder / "out")


def test_a_secret_that_is_not_there(
    shell: Shell, derby: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JDBC_PASSWORD", raising=False)
    said = shell("check", write_config(shell.folder, config(shell.folder)))
    assert said.code == 2
    assert "source.secrets.password: the environment variable" in said.error


def test_a_draft_for_a_table_fits_it(
    shell: Shell, derby: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDBC_PASSWORD", "correct-horse")
    draft = shell.folder / "draft.yaml"
    options = ["--option", f"url={URL}", "--secret", "password=JDBC_PASSWORD"]
    said = shell("init", "people", "--format", "jdbc", *options, "--out", str(draft))
    assert said.code == 0, said.err
    checked = shell("check", str(draft))
    assert checked.code == 0, checked.err
    assert "fits its source" in checked.out
    assert "name" in checked.out
