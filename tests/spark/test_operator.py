"""The operator's minimum k, at every verb that publishes, measures or judges."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.config.minimum_k import PROPERTY, VARIABLE
from anonlib.errors import ConfigError
from tests.spark.support import Shell, left, people, settings, write_config, write_people

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("noted")]

BELOW = "privacy.models.0.k: k is 3; the operator of this installation allows no k below 10"


def test_no_verb_goes_below_it(shell: Shell, tmp_path: Path) -> None:
    write_people(tmp_path)
    path = write_config(tmp_path, settings(tmp_path))
    lines = [["release", path], ["evaluate", path], ["evaluate", path, "--trial"], ["check", path]]
    lines.append(["audit", str(tmp_path / "out" / "table"), "--conf", path])
    shell.patch.setenv(VARIABLE, "10")
    for line in lines:
        said = shell(*line)
        assert (said.code, BELOW in said.error) == (2, True), said
    shell.patch.setenv(VARIABLE, "ten")
    said = shell("release", path, "--set", "privacy.models.0.k=20")
    assert said.code == 2
    assert f"environment variable {VARIABLE}: the minimum k must be a whole number" in said.error
    assert left(tmp_path) == {"people.parquet", "config.yaml"}


def test_minimum_of_the_session(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A notebook's too, where a DataFrame is released; the larger one counts."""
    config = anonlib.parse(settings(tmp_path, source={"format": "dataframe"}))
    monkeypatch.setenv(VARIABLE, "2")
    spark.conf.set(PROPERTY, "10")
    try:
        with pytest.raises(ConfigError) as caught:
            anonlib.release(config, dataframe=spark.createDataFrame(people()))
    finally:
        spark.conf.unset(PROPERTY)
    assert str(caught.value) == BELOW
    assert left(tmp_path) == set()
