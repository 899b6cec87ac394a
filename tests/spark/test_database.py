"""Releases of a table in PostgreSQL: exact, of one state of the table, and without its password in
anything that a run leaves or says."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib import pipeline
from anonlib.source.database import read_jdbc_options
from tests.postgres import Server, server
from tests.spark.support import (
    Shell,
    Step,
    holding,
    left,
    multiset,
    process,
    settings,
    write_config,
)
from tests.spark.test_jdbc import lose_rows

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.usefixtures("noted")]

PARTS = {"partitionColumn": "part", "lowerBound": 100, "upperBound": 300, "numPartitions": 4}
ATTRIBUTES = {
    "name": {"role": "identifier"},
    "born": {"role": "quasi_identifier", "scale": "continuous"},
    "wage": {"role": "quasi_identifier", "scale": "continuous"},
    "city": {"role": "quasi_identifier", "scale": "nominal"},
    "illness": {"role": "sensitive"},
    "seen": {"role": "insensitive"},
    "local": {"role": "insensitive"},
    "paid": {"role": "insensitive"},
    "part": {"role": "insensitive"},
}
#: 400 rows, every tenth without a part, the others from 1 to 400: many outside the bounds.
PEOPLE = """
    DROP TABLE IF EXISTS people;
    CREATE TABLE people AS SELECT
        'name-' || i * 7919 % 100003 AS name,
        date '1950-01-01' + (i * 37 % 20000) AS born,
        CASE WHEN i % 9 = 0 THEN NULL ELSE 1000.25 + i * 37 % 500 END::numeric(12,2) AS wage,
        'city-' || i % 4 AS city,
        'illness-' || i % 5 AS illness,
        timestamptz '2024-03-31 00:30:00+00' + i * interval '1 minute' AS seen,
        timestamp '2024-03-31 02:30:00' + i * interval '1 minute' AS local,
        9007199254740993 + i AS paid,
        CASE WHEN i % 10 = 0 THEN NULL ELSE i END AS part
    FROM generate_series(1, 400) AS i
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server() as running:
        yield running


def config(folder: Path, database: Server, **changes: Any) -> dict[str, Any]:
    options = {"url": database.url, "user": "owner", "dbtable": "people", **PARTS}
    options |= changes.pop("options", {})
    source = {"format": "jdbc", "options": options, "secrets": {"password": "PEOPLE_PASSWORD"}}
    base = settings(folder, source=source, **changes)
    privacy = {**base["privacy"], "acknowledge_unique": True}
    return {**base, "attributes": ATTRIBUTES, "privacy": privacy}


def test_one_state_of_a_table_that_changes(
    shell: Shell, spark: SparkSession, database: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are changed, deleted, added and moved to other parts after every stage, and what was
    kept of them is lost: what is published is the release of the rows as they were. Meanwhile the
    table can't be truncated."""
    monkeypatch.setenv("PEOPLE_PASSWORD", database.password)
    database(PEOPLE)
    refused = []

    def change() -> None:
        database("UPDATE people SET part = 401 - part, city = 'city-0', illness = 'illness-1'")
        database("DELETE FROM people WHERE part % 3 = 0; INSERT INTO people(name) VALUES ('new')")
        with pytest.raises(RuntimeError, match="lock timeout"):
            database("SET lock_timeout = '100ms'; TRUNCATE people")
        refused.append(True)
        lose_rows(spark)

    moments = ["scan started", "partition started", "anonymize started", "audit ended"]
    hooks = dict.fromkeys(moments, change)
    first = config(shell.folder, database)
    options = read_jdbc_options(spark, anonlib.parse(first).source)
    rows = spark.read.format("jdbc").options(**options).load()
    rows.write.parquet(str(shell.folder / "people.parquet"))
    said = shell.release(first, hooks=hooks)
    assert said.code == 0, said.error
    assert len(refused) == len(moments)

    same = {**first, "source": {"format": "parquet", "path": str(shell.folder / "people.parquet")}}
    same["release"] = {"path": str(shell.folder / "same")}
    assert shell.release(same).code == 0
    path = str(shell.folder / "out" / "table")
    assert pipeline.audit_delta(path, anonlib.parse(first)).passed
    found = spark.read.format("delta").load(path)
    expected = spark.read.format("delta").load(str(shell.folder / "same"))
    assert found.schema == expected.schema
    assert dict(found.dtypes)["local"] == "timestamp_ntz"
    assert multiset(found) == multiset(expected)
    assert sum(multiset(found).values()) == 400
    database("SET lock_timeout = '5s'; TRUNCATE people")  # nothing holds it any more


def test_a_lost_connection_stops_the_run(
    shell: Shell, spark: SparkSession, database: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the snapshot rows can't be read again as they were."""
    monkeypatch.setenv("PEOPLE_PASSWORD", database.password)
    database(PEOPLE)

    def cut() -> None:
        database(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state LIKE 'idle in transaction%'"
        )
        lose_rows(spark)

    made = config(shell.folder, database, options={"dbtable": "(SELECT * FROM people) AS t"})
    said = shell.release(made, hooks={"partition started": cut})
    assert said.code == 1
    assert "the connection that kept the table as it was is lost" in said.error
    assert "table" not in left(shell.folder / "out")
    assert database.password not in said.out + said.err


def test_the_password_is_nowhere(tmp_path: Path, database: Server) -> None:
    """Not in records, manifest, report, event log, pages of Spark's UI, temporary files or output:
    of a release, of one with a wrong password, of one without a server, and with Spark's own words
    shown."""
    database(PEOPLE)
    defaults = tmp_path / "conf"
    defaults.mkdir()
    (tmp_path / "events").mkdir()
    log = {"enabled": "true", "compress": "false", "dir": (tmp_path / "events").as_uri()}
    lines = [f"spark.eventLog.{name} {value}\n" for name, value in log.items()]
    (defaults / "spark-defaults.conf").write_text("".join(lines))
    made = config(tmp_path, database, release={"register": "default.people"})
    wrong = {**made["source"], "secrets": {"password": "WRONG_PASSWORD"}}
    dead = {**made["source"]["options"], "url": "jdbc:postgresql://127.0.0.1:1/postgres"}
    paths = []
    for i, source in enumerate([wrong, {**made["source"], "options": dead}, made["source"]]):
        (tmp_path / f"{i}").mkdir()
        paths.append(write_config(tmp_path / f"{i}", {**made, "source": source}))
    steps = [
        Step(["release", paths[0], "--debug"]),
        Step(["release", paths[1], "--debug"]),
        Step(["release", paths[2], "--debug"]),
    ]
    codes, out, err = process(
        tmp_path / "run",
        steps,
        ui=True,
        SPARK_CONF_DIR=str(defaults),
        PEOPLE_PASSWORD=database.password,
        WRONG_PASSWORD="tis-not-this-one",
    )
    assert codes == [2, 1, 0], err[-3000:]
    assert "the database refuses the user or the password" in err
    assert "the database can't be reached" in err
    assert holding("SparkListenerSQLExecutionStart", tmp_path / "events")
    assert int((tmp_path / "run" / "ui" / "n_queries").read_text()) > 10
    for secret in (database.password, "tis-not-this-one"):
        assert secret not in out + err
        assert not holding(secret, tmp_path)
    assert (tmp_path / "out" / "table.private").is_dir()


def test_nothing_keeps_the_table_after_a_failure(
    shell: Shell, database: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEOPLE_PASSWORD", database.password)
    database(PEOPLE)
    for options in ({}, {"dbtable": "nothing_of_the_kind"}):
        made = config(shell.folder, database, options=options)
        made["attributes"] = {**ATTRIBUTES, "unknown": {"role": "drop"}}
        said = shell("check", write_config(shell.folder, made))
        assert said.code == 2
    assert "the database has no such table" in said.error
    pause = threading.Event()
    for _ in range(50):  # a backend ends a moment after its connection
        if database("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle%'") == "0":
            break
        pause.wait(0.1)
    database("SET lock_timeout = '5s'; DROP TABLE people")
