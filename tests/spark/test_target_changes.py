"""What others do to the target while a run works for it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.run import publish, staging, steps
from tests.spark.support import Shell, left, settings, start_from, write_people

pytestmark = pytest.mark.spark


def optimize(spark: SparkSession, target: Path) -> None:
    spark.sql(f"OPTIMIZE delta.`{target}`").collect()
    spark.sql(f"VACUUM delta.`{target}`").collect()


def delete(spark: SparkSession, target: Path) -> None:
    spark.sql(f"DELETE FROM delta.`{target}` WHERE illness LIKE '%-1'")


def alter(spark: SparkSession, target: Path) -> None:
    spark.sql(f"ALTER TABLE delta.`{target}` ADD COLUMN more int")


def add_silently(spark: SparkSession, target: Path) -> None:
    """Adds a row and says, as a compaction does, that no row was changed."""
    there = spark.read.format("delta").load(str(target))
    row = spark.createDataFrame(there.limit(1).collect(), there.schema)
    row.write.format("delta").mode("append").option("dataChange", "false").save(str(target))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changes")


@pytest.fixture
def started(shell: Shell, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a table of 60 persons in three files."""
    write_people(place)
    with monkeypatch.context() as patch:
        for module in (staging, publish):
            patch.setattr(module, "count_files", lambda *how: 3)
        start_from(shell, place, settings(place), "--run-id", "one")
    return place


@pytest.mark.parametrize(
    ("change", "moment", "mode"),
    [
        (optimize, "audit", "append"),
        (optimize, "write", "overwrite"),
        (delete, "audit", "overwrite"),
        (delete, "write", "append"),
        (alter, "audit", "append"),
        (alter, "write", "overwrite"),
        (add_silently, "audit", "append"),
    ],
)
def test_what_others_do_meanwhile(
    shell: Shell,
    spark: SparkSession,
    started: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    mode: str,
    moment: str,
    change: Any,
) -> None:
    """The platform may lay out the same rows in other files; nobody else may change the table."""
    target = Path(settings(started)["release"]["path"])
    home: Any
    home, name = (steps, "audit_staged") if moment == "audit" else (publish.Target, "_adopt")
    whole = getattr(home, name)

    def meanwhile(*args: Any) -> Any:
        if not changed:
            changed.append(change(spark, target))
        return whole(*args)

    changed: list[Any] = []
    monkeypatch.setattr(home, name, meanwhile)
    more = {"append": "acknowledge_returning", "overwrite": "acknowledge_overwrite"}[mode]
    said = shell.release(settings(started, release={"mode": mode, more: True}))
    assert changed
    if change is optimize:
        assert said.code == 0, said.error
        assert (
            spark.read.format("delta").load(str(target)).count()
            == {"append": 120, "overwrite": 60}[mode]
        )
        assert shell("audit", str(target), "--conf", str(shell.folder / "config.yaml")).code == 0
    else:
        assert said.code == 1
        assert "the target changed while the release was made" in said.error
    assert left(started / "out") == {"table", "table.private"}


def test_a_commit_between_the_last_look_and_ours(
    shell: Shell, spark: SparkSession, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta refuses it, even where the other one only adds rows: the audit looked at them all."""
    target = settings(started)["release"]["path"]
    there = spark.read.format("delta").load(target)
    row = spark.createDataFrame(there.limit(1).collect(), there.schema)
    commit = publish.run_uninterrupted

    def overtaken(work: Any) -> Any:
        row.write.format("delta").mode("append").save(target)
        return commit(work)

    monkeypatch.setattr(publish, "run_uninterrupted", overtaken)
    release = {"mode": "append", "acknowledge_returning": True}
    said = shell.release(settings(started, release=release))
    assert said.code == 1
    assert "changed" in said.error
    assert spark.read.format("delta").load(target).count() == 61
    assert left(started / "out") == {"table", "table.private"}


def test_rows_that_break_a_constraint_of_the_table(
    shell: Shell, spark: SparkSession, started: Path
) -> None:
    """It is said before a file is written: Delta's writer would leave rows in the table's folder
    that nobody published."""
    target = Path(settings(started)["release"]["path"])
    spark.sql(f"ALTER TABLE delta.`{target}` ADD CONSTRAINT low CHECK (wage < 1000000000000000)")
    files = {path.name for path in target.glob("*.parquet")}
    path = started / "people.parquet"
    frame = pd.read_parquet(path)
    frame.assign(wage=frame["wage"] + 10**16).to_parquet(path, index=False)
    release = {"mode": "append", "acknowledge_returning": True}
    said = shell.release(settings(started, release=release))
    assert said.code == 2, said.error
    assert "release.path: the table's constraint low does not hold in 60 rows" in said.error
    assert {path.name for path in target.glob("*.parquet")} == files


def test_a_constraint_of_a_column_that_the_release_lacks(
    shell: Shell, spark: SparkSession, started: Path
) -> None:
    """Said before the source is scanned, and by a check."""
    target = settings(started)["release"]["path"]
    spark.sql(f"ALTER TABLE delta.`{target}` ADD CONSTRAINT low CHECK (wage > 0 OR city > '')")
    release = {"mode": "overwrite", "acknowledge_overwrite": True}
    other = settings(started, attributes={"city": {"role": "drop"}}, release=release)
    said = shell.release(other)
    assert said.code == 2, said.error
    assert "release.path: the table's constraint low can't be asked of the release" in said.error
    assert "(ALTER TABLE ... DROP CONSTRAINT low)" in said.error
    assert "anonymize" not in said.err
    assert "constraint low" in anonlib.check(other).obstacles[0]
    spark.sql(f"ALTER TABLE delta.`{target}` DROP CONSTRAINT low")
    spark.sql(f"ALTER TABLE delta.`{target}` ADD CONSTRAINT low CHECK (wage > 0)")
    assert shell.release(other).code == 0


def test_what_others_did_after_the_release(
    shell: Shell, spark: SparkSession, started: Path
) -> None:
    """It is told by an audit, by the run that is repeated, and before it is overwritten."""
    config = settings(started)
    table = f"delta.`{config['release']['path']}`"
    place = Path(config["release"]["path"])
    assert len(anonlib.audit(place, config).premises) == 2
    spark.sql(f"DELETE FROM {table} WHERE illness LIKE '%-1'")
    assert "others changed the table after version 0" in anonlib.audit(place, config).premises[2]
    said = shell.release(config, "--run-id", "one")
    assert said.code == 0, said.err
    assert "the rows of this run may not be there any more" in " ".join(said.out.split())
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN city COMMENT 'town'")
    path = started / "people.parquet"
    frame = pd.read_parquet(path)
    frame.assign(**{"a b": "x"}).to_parquet(path, index=False)
    roles = {"a b": {"role": "sensitive"}}
    release = {"mode": "overwrite", "acknowledge_overwrite": True}
    mapped = settings(started, attributes=roles, release=release)
    (refused,) = anonlib.check(mapped).obstacles
    assert "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" in refused
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    said = shell.release(mapped)
    assert said.code == 0, said.err
    assert "the new table lacks what the replaced one had: comments of city" in " ".join(
        said.out.split()
    )


def test_a_table_whose_values_delta_makes(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    write_people(tmp_path)
    release = {"mode": "overwrite", "acknowledge_overwrite": True}
    config = settings(tmp_path, release=release)
    table = f"delta.`{config['release']['path']}`"
    spark.sql(f"CREATE TABLE {table} (wage BIGINT GENERATED ALWAYS AS IDENTITY, x INT) USING delta")
    (refused,) = anonlib.check(config).obstacles
    assert "makes the values of column wage itself" in refused
