"""The Spark session: the one that is there, or a quiet local one with Delta and the settings that
keep raw values out of spills and logs."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from anonlib.config import secrets as secret_names
from anonlib.errors import InputError
from anonlib.spark.jars import ensure_jars
from anonlib.spark.jvm import find_class

#: Names of settings whose values are secrets.
SECRET = rf"(?i){secret_names.SECRET}|fs\.azure"
REDACTED = "spark.redaction.regex"
#: What every run needs, on a session of ours or of others.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # Literals of plans may be raw values (a `where`, a category): no text of a plan shows them.
    "spark.sql.redaction.string.regex": "(?s).+",
    "spark.sql.redaction.options.regex": f"{SECRET}|url",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # HotSpot leaves methods above this many bytes to its interpreter; then Spark rather compiles
    # each operator by itself.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Plans of many blocks are literals of megabytes.
    "spark.sql.maxPlanStringLength": "8192",
    # The default runs a 50-task stage for every snapshot of a small table.
    "spark.databricks.delta.snapshotPartitions": "2",
}

#: What of it a release rests on: nobody may set it otherwise.
FIXED = ("spark.sql.session.timeZone", "spark.sql.redaction.string.regex")

ENCRYPTION = "spark.io.encryption.enabled"
#: By which the operator says that the disks are encrypted by others. No config can.
ENCRYPTED_DISKS = "spark.anonlib.disksEncrypted"

#: Only for a session that we start.
STARTED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Shuffle, spill and broadcast files hold raw values: encrypted at rest.
    ENCRYPTION: "true",
    # What the environment page, the event log and Spark's logs leave out.
    REDACTED: SECRET,
    # Executors go quiet with the driver: errors of Spark's own may show values.
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # Noting the Python line of every column for Spark's error texts, which nobody sees, is more
    # than half of all calls to the JVM.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # What waits to be sent to an object store stays in memory: S3A's files are not encrypted, and
    # a killed run leaves them. A task has a few parts of this size.
    "spark.hadoop.fs.s3a.fast.upload.buffer": "array",
    "spark.hadoop.fs.s3a.multipart.size": "16M",
}

#: Only for one on this machine.
LOCAL = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "32",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(
    settings: Mapping[str, str] | None = None, given: SparkSession | None = None
) -> SparkSession:
    """The given session, else the active one (a notebook), else a new one: of spark-submit, or on
    this machine.

    `settings` have Spark's names. On an existing session only settings that can change at run time
    take effect.

    Raises InputError if Java or Delta is missing, for Spark Connect, and if a setting that keeps
    raw values out of files and plans has no effect.
    """
    settings = dict(settings or {})
    found = given or SparkSession.getActiveSession() or _start(settings)
    _refuse_connect(remote="connect" in type(found).__module__)
    for key, value in {**REQUIRED, **settings}.items():
        if found.conf.isModifiable(key):
            found.conf.set(key, value)
    _require_settings(found)
    _require_delta(found)
    return found


def _refuse_connect(*, remote: bool) -> None:
    if remote:
        raise InputError(
            "Spark Connect sessions can't be used: leases and Delta commits are made by classes "
            "in the driver's JVM, which Connect does not reach; use spark-submit (jobs/), or a "
            "session made with a `master` instead of `remote`"
        )


def _require_settings(found: SparkSession) -> None:
    """Raises InputError if a setting that our promises rest on has another value."""
    for key in FIXED:
        if found.conf.get(key) != REQUIRED[key]:
            raise InputError(
                f"Spark's setting {key} must be {REQUIRED[key]!r}; remove it from `spark: conf:`"
            )
    submitted = found.sparkContext.getConf()
    on = (submitted.get(key, "false") or "" for key in (ENCRYPTION, ENCRYPTED_DISKS))
    if "true" not in map(str.lower, on):
        raise InputError(
            f"this Spark session writes shuffled and spilled rows to disks in clear: start it with "
            f"{ENCRYPTION}=true (conf/spark/ has settings for spark-submit), or, if the disks are "
            f"encrypted otherwise, with {ENCRYPTED_DISKS}=true; a config can set neither"
        )


def _start(settings: dict[str, str]) -> SparkSession:
    _refuse_connect(remote="SPARK_REMOTE" in os.environ or "spark.remote" in settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # spark-submit has started the JVM, with its own master, jars and logging.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    with as_file(files("anonlib.spark") / "log4j2.properties") as quiet:
        conf = {"spark.app.name": "anonlib", **STARTED, **REQUIRED}
        if not submitted and settings.get("spark.master", "local").startswith("local"):
            conf |= LOCAL
        if not submitted and "spark.jars.packages" not in settings:
            settings = {**settings, "spark.jars": _jars(settings)}
        conf |= settings
        if not submitted:
            options = conf.get("spark.driver.extraJavaOptions", "")
            log = f"-Dlog4j2.configurationFile={Path(quiet).as_uri()}"
            conf["spark.driver.extraJavaOptions"] = f"{log} {options}".strip()
        try:
            with _silent_jvm(), _files_for_no_other_writer():
                _launch(conf)
                conf[REDACTED] = _with_theirs(conf[REDACTED])
                started = SparkSession.builder.config(map=dict(conf)).getOrCreate()
        except Exception as error:
            raise InputError(
                "Spark could not start: a Java runtime (17, 21 or 25) is needed on PATH "
                "or in JAVA_HOME, and the settings under `spark` must be valid "
                f"({type(error).__name__})"
            ) from error
    if submitted and not os.environ.get("ANONLIB_DEBUG"):
        started.sparkContext.setLogLevel("OFF")
    return started


def _jars(settings: Mapping[str, str]) -> str:
    """Our jars, and the jars that the config names, such as a database's driver."""
    theirs = settings.get("spark.jars", "")
    return ",".join([*map(str, ensure_jars()), *filter(None, theirs.split(","))])


def _launch(conf: Mapping[str, str]) -> None:
    """Starts the JVM if there is none. Secret settings are left out, since everybody on the machine
    can read its command line; they are set when the session starts."""
    plain = SparkConf(loadDefaults=False)
    plain.setAll([(key, value) for key, value in conf.items() if not re.search(SECRET, key)])
    SparkContext._ensure_initialized(conf=plain)


def _with_theirs(pattern: str) -> str:
    """The names of secret settings, and those that the session's submitter adds."""
    theirs = SparkConf().get(REDACTED)
    return pattern if theirs in (None, pattern) else f"{pattern}|{theirs}"


@contextmanager
def _files_for_no_other_writer() -> Iterator[None]:
    """What is started here makes files that only their owner can write to."""
    before = os.umask(0o077)
    os.umask(before | 0o022)
    try:
        yield
    finally:
        os.umask(before)


def _require_delta(found: SparkSession) -> None:
    """Raises InputError when the session has no Delta."""
    try:
        find_class(found, "io.delta.sql.DeltaSparkSessionExtension")
    except Exception:
        raise InputError(
            "Delta is not on Spark's class path; give spark-submit the jars that `python "
            "-m anonlib.spark.jars` lists, by --jars"
        ) from None


@contextmanager
def _silent_jvm() -> Iterator[None]:
    """Starts the JVM without a standard error: it would show the launcher's warnings and the
    tracebacks of Python workers, which may hold data. ANONLIB_DEBUG keeps it."""
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
