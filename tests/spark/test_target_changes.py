"""What others do to the target while a run works for it."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anonlib.run import publish, staging, steps
from tests.spark.support import Shell, left, settings, write_people

pytestmark = pytest.mark.spark


def optimize(spark: SparkSession, target: Path) -> None:
    spark.sql(f"OPTIMIZE delta.`{target}`").collect()
    spark.sql(f"VACUUM delta.`{target}`").collect()


def delete(spark: SparkSession, target: Path) -> None:
    spark.sql(f"DELETE FROM delta.`{target}` WHERE illness LIKE '%-1'")


def alter(spark: SparkSession, target: Path) -> None:
    spark.sql(f"ALTER TABLE delta.`{target}` ADD COLUMN more int")


@pytest.mark.parametrize(
    ("change", "moment", "mode"),
    [
        (optimize, "audit", "append"),
        (optimize, "write", "overwrite"),
        (delete, "audit", "overwrite"),
        (delete, "write", "append"),
        (alter, "audit", "append"),
        (alter, "write", "overwrite"),
    ],
)
def test_what_others_do_meanwhile(
    shell: Shell,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    mode: str,
    moment: str,
    change: Any,
) -> None:
    """The platform may lay out the same rows in other files; nobody else may change the table."""
    write_people(tmp_path)
    first = settings(tmp_path)
    with monkeypatch.context() as patch:
        for module in (staging, publish):
            patch.setattr(module, "count_files", lambda *how: 3)
        assert shell.release(first).code == 0
    target = Path(first["release"]["path"])
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
    said = shell.release(settings(tmp_path, release={"mode": mode, more: True}))
    assert changed
    if change is optimize:
        assert said.code == 0, said.error
        assert (
            spark.read.format("delta").load(str(target)).count()
            == {"append": 120, "overwrite": 60}[mode]
        )
        assert shell("audit", str(target), "--conf", str(tmp_path / "config.yaml")).code == 0
    else:
        assert said.code == 1
        assert "the target changed while the release was made" in said.error
    assert left(tmp_path / "out") == {"table", "table.private"}


def test_a_commit_between_the_last_look_and_ours(
    shell: Shell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta refuses it, even where the other one only adds rows: the audit looked at them all."""
    write_people(tmp_path)
    assert shell.release(settings(tmp_path)).code == 0
    target = settings(tmp_path)["release"]["path"]
    there = spark.read.format("delta").load(target)
    row = spark.createDataFrame(there.limit(1).collect(), there.schema)
    commit = publish.run_uninterrupted

    def overtaken(work: Any) -> Any:
        row.write.format("delta").mode("append").save(target)
        return commit(work)

    monkeypatch.setattr(publish, "run_uninterrupted", overtaken)
    release = {"mode": "append", "acknowledge_returning": True}
    said = shell.release(settings(tmp_path, release=release))
    assert said.code == 1
    assert "changed" in said.error
    assert spark.read.format("delta").load(target).count() == 61
    assert left(tmp_path / "out") == {"table", "table.private"}
