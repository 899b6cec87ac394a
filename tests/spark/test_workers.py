"""Python workers that do not come back."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from anonlib.run.block_plan import BlockPlan
from anonlib.spark.values import find_spark_schema
from anonlib.worker.task import Task
from tests.spark.support import Shell, settings, write_people

pytestmark = pytest.mark.spark


def test_a_worker_that_dies(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system's killer of processes leaves it: to be tried again, and no broken file."""

    def die(batches: Any) -> Any:
        os._exit(9)

    def stage(self: Any, rows: DataFrame, schema: Any, task: Task, *how: Any, **more: Any) -> Any:
        return rows.mapInArrow(die, find_spark_schema(task.output))

    write_people(tmp_path)
    monkeypatch.setattr(BlockPlan, "stage", stage)
    said = shell.release(settings(tmp_path))
    assert said.code == 1
    text = "a Python worker or an executor died, most often for want of memory: raise spark."
    assert said.error.startswith(f"error: anonymize: {text}")
    assert not (tmp_path / "out" / "table").exists()
