"""Names of releases in the catalog."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anonlib import pipeline
from anonlib.errors import StorageError
from anonlib.run import purge as catalog
from tests.spark.support import (
    Shell,
    Step,
    left,
    process,
    settings,
    write_config,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.usefixtures("usual", "noted")]

NAME = "registry_of_tests.people"


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE SCHEMA registry_of_tests")
    yield
    spark.sql("DROP SCHEMA registry_of_tests CASCADE")


def config(folder: Path, name: str = NAME) -> dict[str, Any]:
    odd = str(folder / "it's out" / "table")
    return settings(folder, release={"path": odd, "register": name, "run_id": "first"})


def test_a_release_by_name(
    shell: Shell, spark: SparkSession, schema: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its name after the commit; if that failed, the same run gives it later. The name of
    another table, or a view, is refused before anything is written."""
    folder = shell.folder
    write_people(folder)

    for other in (f"{NAME} USING delta AS SELECT 1 AS x", f"{NAME} (x INT) USING parquet"):
        spark.sql(f"CREATE TABLE {other}")
        said = shell.release(config(folder))
        assert said.code == 2
        assert "is not the table at" in said.error
        spark.sql(f"DROP TABLE {NAME}")
    spark.sql(f"CREATE VIEW {NAME} AS SELECT 1 AS x")
    assert shell("check", write_config(folder, config(folder))).code == 2
    assert shell.release(config(folder)).code == 2
    spark.sql(f"DROP VIEW {NAME}")
    said = shell.release(config(folder, "no_such_schema.people"))
    assert said.code == 2
    assert "CREATE SCHEMA" in said.error
    assert left(folder / "it's out") == {"table.private"}  # the runs are noted, nothing else
    assert left(folder / "it's out" / "table.private") == {"runs"}

    def fails(*_: Any, **__: Any) -> None:
        raise StorageError("release.register: the catalog is down")

    with monkeypatch.context() as patch:
        # Only after the commit: looking at the catalog before it works.
        patch.setattr(type(spark.catalog), "createTable", fails)
        said = shell.release(config(folder))
    assert said.code == 1
    assert "version 0 of" in said.error
    assert "--run-id first" in said.error
    statement = said.error[said.error.index("CREATE TABLE") :].partition(". The release")[0]
    assert not spark.catalog.tableExists(NAME)
    assert len(left(folder / "it's out" / "table.private")) > 0  # the run is recorded

    assert shell.release(config(folder)).code == 0
    assert pipeline.audit_delta(table(folder), parsed(folder)).passed
    by_name = spark.table(NAME)
    assert by_name.count() == 60
    assert catalog.is_registered(spark, parsed(folder).release)
    spark.sql(f"DROP TABLE {NAME}")
    assert by_name.columns == spark.read.format("delta").load(table(folder)).columns
    spark.sql(statement)  # what the error said to run
    assert catalog.is_registered(spark, parsed(folder).release)
    versions = spark.sql(f"DESCRIBE HISTORY {NAME}").collect()
    assert [row["version"] for row in versions] == [0]


def parsed(folder: Path) -> Any:
    import anonlib

    return anonlib.parse(config(folder))


def table(folder: Path) -> str:
    return str(folder / "it's out" / "table")


def test_a_name_in_the_metastore_of_hive(tmp_path: Path) -> None:
    """Another driver finds the release by its name there."""
    conf = tmp_path / "conf"
    conf.mkdir()
    hive = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
        ),
    }
    lines = [f"{key} {value}\n" for key, value in hive.items()]
    (conf / "spark-defaults.conf").write_text("".join(lines))
    write_people(tmp_path)
    raw = config(tmp_path, "default.people")
    written = write_config(tmp_path, raw)
    first = process(tmp_path / "first", [Step(["release", written])], SPARK_CONF_DIR=str(conf))
    assert first[0] == [0], first[2]
    by_name = {**raw, "source": {"format": "table", "table": "default.people"}}
    by_name["attributes"] = {k: v for k, v in raw["attributes"].items() if k != "name"}
    by_name["one_row_per_person"] = True
    by_name["release"] = {"path": str(tmp_path / "other")}
    (tmp_path / "named").mkdir()
    steps = [
        Step(["check", write_config(tmp_path / "named", by_name), "--json"]),
        Step(["release", written]),
        Step(["audit", table(tmp_path), "--conf", written]),
    ]
    codes, out, err = process(tmp_path / "second", steps, SPARK_CONF_DIR=str(conf))
    assert codes == [0, 0, 0], err
    assert json.JSONDecoder().raw_decode(out)[0]["n_rows"] == 60
    assert "Run first is done already" in out
