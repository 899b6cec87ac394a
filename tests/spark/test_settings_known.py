"""Settings: those in conf/spark are ones that this Spark knows, those of runs have effect."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import REFLECTION_COMMAND_NAME
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.errors import InputError
from anonlib.spark.jvm import find_java_class
from anonlib.spark.session import FIXED, REQUIRED, session
from anonlib.spark.tasks import fit_batches
from tests.spark.support import people, settings
from tests.spark.test_given_frames import GIVEN
from tests.support import skip_or_fail
from tests.unit.test_spark_settings import FILES, read

pytestmark = pytest.mark.spark

#: Objects that register settings once they are loaded.
REGISTERS = (
    "org.apache.spark.internal.config.package$",
    "org.apache.spark.internal.config.UI$",
    "org.apache.spark.internal.config.Python$",
    "org.apache.spark.internal.config.Network$",
    "org.apache.spark.deploy.k8s.Config$",
    "org.apache.spark.deploy.yarn.config.package$",
    "org.apache.spark.sql.internal.SQLConf$",
    "org.apache.spark.sql.internal.StaticSQLConf$",
)
#: Named by users, or read without a register.
FREE = (
    "spark.executorEnv.",
    "spark.yarn.appMasterEnv.",
    "spark.sql.catalog.",
    "spark.hadoop.",
    "spark.shuffle.io.maxRetries",
)


def test_settings_are_known(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in REGISTERS:
        jvm.java.lang.Class.forName(name, True, loader)
    find = jvm.org.apache.spark.internal.config.ConfigEntry.findEntry
    keys = {key for path in FILES for key in read(path) if not key.startswith(FREE)}
    assert find("spark.no.such.setting") is None
    assert {key for key in keys if find(key) is None} == set()


def test_batches_for_python_are_not_measured_row_by_row(spark: SparkSession) -> None:
    """Where they fit by Spark's own default, which nobody has set."""
    key = "spark.sql.execution.arrow.maxBytesPerBatch"
    with fit_batches(spark, 100):
        assert spark.conf.get(key) == str(2**31 - 1)
    with fit_batches(spark, 10**6):
        assert spark.conf.get(key) != str(2**31 - 1)


@pytest.mark.parametrize("key", FIXED)
def test_settings_of_a_session_that_is_there(spark: SparkSession, key: str) -> None:
    """A session that came with a DataFrame gets what a release rests on; no config changes it."""
    others = {"true": "false", "false": "true", "TIMESTAMP_MICROS": "INT96"}
    others |= {"TIMESTAMP_LTZ": "TIMESTAMP_NTZ", "CORRECTED": "LEGACY"}
    other = others.get(REQUIRED[key], "Asia/Tokyo")
    try:
        spark.conf.set(key, other)
        assert session({}, spark) is spark
        assert spark.conf.get(key) == REQUIRED[key]
        with pytest.raises(InputError, match="remove it from `spark: conf:`"):
            session({key: other}, spark)
    finally:
        spark.conf.set(key, REQUIRED[key])


def test_a_verb_leaves_the_settings_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    """Of a session that is lent to it: after a release, which returns a table that is computed
    later, as after an error."""
    own = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "777",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.codegen.hugeMethodLimit": None,
        "spark.sql.maxPlanStringLength": "999",
        "spark.sql.autoBroadcastJoinThreshold": "12345",
        "spark.sql.files.maxRecordsPerFile": None,
    }

    def now() -> dict[str, str | None]:
        return {key: spark.conf.get(key, None) for key in own}

    before = now()
    of_config = {"conf": {"spark.sql.files.maxRecordsPerFile": "5"}}
    of_config["conf"]["spark.sql.autoBroadcastJoinThreshold"] = "99"
    frame = spark.createDataFrame(people())
    try:
        for key, value in own.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
        given = settings(tmp_path, source={"format": "dataframe"}, spark=of_config)
        anonlib.release(given, dataframe=frame)
        assert now() == own
        table = anonlib.anonymize(frame, path=str(tmp_path / "other"), **GIVEN).table
        assert now() == own
        assert table.count() == frame.count()
        with pytest.raises(InputError, match="a table is already at"):
            anonlib.release(given, dataframe=frame)
        assert now() == own
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def test_the_jvm_starts_from_archived_classes(spark: SparkSession) -> None:
    """Those that the set-up archived: the JVM has the file in its memory."""
    archive = Path(sys.prefix) / "anonlib-classes.jsa"
    if not archive.exists() or str(archive) not in os.environ.get("SPARK_SUBMIT_OPTS", ""):
        skip_or_fail("no archived classes: `scripts/test` makes them")
    pid = find_java_class(spark, "java.lang.ProcessHandle").current().pid()
    assert str(archive) in Path(f"/proc/{pid}/maps").read_text()


def test_a_function_costs_one_call_to_the_jvm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark looks for the class and for the method of each column's function: once is enough."""
    F.trim("a")
    sent = []
    send = ClientServerConnection.send_command
    monkeypatch.setattr(
        ClientServerConnection,
        "send_command",
        lambda self, command: sent.append(command) or send(self, command),
    )
    F.trim("a")
    look_ups = [command for command in sent if command.startswith(REFLECTION_COMMAND_NAME)]
    assert sent
    assert not look_ups
