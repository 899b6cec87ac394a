"""The Spark session: the one that is there, or a quiet local one with Delta and the settings that
keep raw values out of spills and logs."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from pyspark.sql import SparkSession

from anonlib.errors import InputError
from anonlib.spark.jars import ensure_jars

#: What every run needs, on a session of ours or of others.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # Literals of plans may be raw values (a `where`, a category): no text of a plan shows them.
    "spark.sql.redaction.string.regex": "(?s).+",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # The default runs a 50-task stage for every snapshot of a small table.
    "spark.databricks.delta.snapshotPartitions": "2",
}

#: Only for a session that we start.
STARTED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Shuffle, spill and broadcast files hold raw values: encrypted at rest.
    "spark.io.encryption.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "32",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active session if there is one (spark-submit, a notebook), else a new one.

    `settings` are Spark's own names and values; on a session that is there only those that can
    change at run time take effect. Raises InputError when Java or the Delta jars are missing.
    """
    settings = dict(settings or {})
    active = SparkSession.getActiveSession()
    if active is None:
        active = _start(settings)
    for key, value in {**REQUIRED, **settings}.items():
        if active.conf.isModifiable(key):
            active.conf.set(key, value)
    return active


def _start(settings: dict[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "spark.master" in settings or "SPARK_ENV_LOADED" in os.environ
    with as_file(files("anonlib.spark") / "log4j2.properties") as quiet:
        conf = {
            "spark.app.name": "anonlib",
            **({} if submitted else {"spark.master": "local[*]"}),
            **({} if "spark.jars.packages" in settings else {"spark.jars": _jars()}),
            **STARTED,
            **REQUIRED,
            **settings,
        }
        options = conf.get("spark.driver.extraJavaOptions", "")
        log = f"-Dlog4j2.configurationFile={Path(quiet).as_uri()}"
        conf["spark.driver.extraJavaOptions"] = f"{log} {options}".strip()
        builder = SparkSession.builder
        for key, value in conf.items():
            builder = builder.config(key, value)
        try:
            with _silent_jvm():
                return builder.getOrCreate()
        except Exception as error:
            text = (
                "Spark could not start: a Java runtime (17, 21 or 25) is needed on PATH or in "
                f"JAVA_HOME, and the settings under `spark` must be valid ({type(error).__name__})"
            )
            raise InputError(text) from error


@contextmanager
def _silent_jvm() -> Iterator[None]:
    """Starts the JVM with its standard error going nowhere: it would carry the launcher's warnings
    and the tracebacks of Python workers, which may show data. ANONLIB_DEBUG leaves it as it is."""
    if os.environ.get("ANONLIB_DEBUG"):
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _jars() -> str:
    return ",".join(str(path) for path in ensure_jars())
