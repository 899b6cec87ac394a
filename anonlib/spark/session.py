"""The Spark session: an existing one, or a new one with Delta, quiet, and with settings that keep
raw values out of spills and logs."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from anonlib.config import secrets as secret_names
from anonlib.config.minimum_k import PROPERTY
from anonlib.errors import InputError, StorageError
from anonlib.spark.jars import ensure_jars
from anonlib.spark.java import require_java
from anonlib.spark.jvm import find_class, remember_functions
from anonlib.spark.loan import change_setting
from anonlib.spark.translation import name_disk_error

#: Names of settings whose values are secrets.
SECRET = rf"(?i){secret_names.SECRET}|fs\.azure"
REDACTED = "spark.redaction.regex"
UTC_FOLDERS = "spark.databricks.delta.write.utcTimestampPartitionValues"
#: The settings of every run, on a session of anonlib or an existing one.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # What `timestamp` means in SQL and casts.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # A file that can't be read ends a run: rows are never lost.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Literals of plans may be raw values (a `where`, a category), so texts of plans hide them.
    "spark.sql.redaction.string.regex": "(?s).+",
    "spark.sql.redaction.options.regex": f"{SECRET}|url",
    # Files of text may be windows-1252, as those of offices are: else Spark knows few encodings.
    "spark.sql.legacy.javaCharsets": "true",
    # As whole microseconds: INT96 is read by the calendar of another time in old years.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Readers without Spark know nothing of dates that were moved to another calendar.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Without a zone in the log, the reader's own zone decides which time a folder has.
    UTC_FOLDERS: "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # Tasks know text as Arrow's `string`; large types would be others.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # HotSpot interprets methods of more bytes. Above this, Spark compiles each operator by itself.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Texts of plans with many columns are long, and Spark makes them for every query.
    "spark.sql.maxPlanStringLength": "8192",
    # The default runs a 50-task stage for every snapshot of a small table.
    "spark.databricks.delta.snapshotPartitions": "2",
}

#: The settings that a release relies on: nobody may change them.
FIXED = (
    "spark.sql.session.timeZone",
    "spark.sql.timestampType",
    "spark.sql.redaction.string.regex",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    UTC_FOLDERS,
    "spark.sql.execution.arrow.useLargeVarTypes",
)

ENCRYPTION = "spark.io.encryption.enabled"
#: The operator's statement that the disks are encrypted otherwise. A config can't make it.
ENCRYPTED_DISKS = "spark.anonlib.disksEncrypted"

#: An option of JVMs: Arrow checks no bounds for each value that is read or written, which was an
#: eighth of a JVM's work. Spark's own code fills the buffers and reads them.
NO_BOUND_CHECKS = "-Darrow.enable_unsafe_memory_access=true"
#: The garbage collector of a JVM on this machine. It stops the work for a moment, and does less
#: beside it than the JVM's default: a release takes a tenth less time.
COLLECTOR = "-XX:+UseParallelGC"
#: Variables with options of JVMs.
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
#: The settings of a session that anonlib starts.
STARTED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Shuffle, spill and broadcast files hold raw values, so they are encrypted.
    ENCRYPTION: "true",
    # Settings that the environment page, the event log and Spark's logs leave out.
    REDACTED: SECRET,
    # Executors are as quiet as the driver, since Spark's own errors may show values.
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.extraJavaOptions": NO_BOUND_CHECKS,
    # Spark would note the Python line of every column for error texts that nobody sees. That would
    # be more than half of all calls to the JVM.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Uploads to an object store are buffered in memory: S3A's files would not be encrypted, and a
    # killed run would leave them. A task buffers a few parts of this size.
    "spark.hadoop.fs.s3a.fast.upload.buffer": "array",
    "spark.hadoop.fs.s3a.multipart.size": "16M",
}

#: Further settings of a session on this machine.
LOCAL = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "32",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(
    settings: Mapping[str, str] | None = None, existing: SparkSession | None = None
) -> SparkSession:
    """The session to use: the given one, else the active one (as in a notebook), else a new one.

    A new one is that of spark-submit, or on this machine. The verbs of `anonlib` put the settings
    of another one back when they end.

    Args:
        settings: Settings by Spark's names. On an existing session only those that can change at
            run time take effect.
        existing: The session, if there is one.

    Raises:
        InputError: Java or Delta is missing; the session is one of Spark Connect; or a setting that
            keeps raw values out of files and plans has no effect.
    """
    settings = dict(settings or {})
    found = existing or SparkSession.getActiveSession() or _start(settings)
    _refuse_connect(remote="connect" in type(found).__module__)
    with suppress(Exception):  # without Delta, what follows says so
        # Spark learns Delta's settings at its first use, and none can be changed before.
        find_class(found, "org.apache.spark.sql.delta.sources.DeltaSQLConf$")
    for key, value in {**REQUIRED, **settings}.items():
        if found.conf.isModifiable(key):
            change_setting(found.conf, key, value)
    _require_settings(found)
    _require_delta(found)
    remember_functions(found)
    return found


def fork_session(spark: SparkSession, settings: Mapping[str, str]) -> Any:
    """The JVM's session with the settings of this one, and some of its own: what runs in other
    threads does not see these."""
    fork = spark._jsparkSession.cloneSession()
    for key, value in settings.items():
        fork.conf().set(key, value)
    return fork


def find_minimum_k(spark: SparkSession) -> tuple[str | None, str | None]:
    """The operator's minimum k as the application has it, and as the session has it; None where it
    is not set."""
    return _find_conf(spark).get(PROPERTY), spark.conf.get(PROPERTY, None)


def _find_conf(spark: SparkSession) -> Any:
    """The settings of the application. `getConf` would fetch each of them from the JVM, one by one,
    which is a sixth of all calls to it in a small release."""
    return spark.sparkContext._conf


def activate(spark: SparkSession) -> None:
    """Makes a session the active one of this thread."""
    there: Any = spark
    there._get_j_spark_session_class(there._jvm).setActiveSession(there._jsparkSession)


def _refuse_connect(*, remote: bool) -> None:
    if remote:
        raise InputError(
            "Spark Connect sessions can't be used: leases and Delta commits are made by classes "
            "in the driver's JVM, which Connect does not reach; use spark-submit (jobs/), or a "
            "session made with a `master` instead of `remote`"
        )


def _require_settings(spark: SparkSession) -> None:
    """Raises InputError if a setting that a release relies on has another value."""
    for key in FIXED:
        if spark.conf.get(key) != REQUIRED[key]:
            raise InputError(
                f"Spark's setting {key} must be {REQUIRED[key]!r}; remove it from `spark: conf:`"
            )
    submitted = _find_conf(spark)
    on = (submitted.get(key, "false") or "" for key in (ENCRYPTION, ENCRYPTED_DISKS))
    if "true" not in map(str.lower, on):
        raise InputError(
            f"this Spark session writes shuffled and spilled rows to disks in clear: start it with "
            f"{ENCRYPTION}=true (conf/spark/ has settings for spark-submit), or, if the disks are "
            f"encrypted otherwise, with {ENCRYPTED_DISKS}=true; a config can set neither"
        )


def choose_collector(master: str, options: Iterable[str]) -> str:
    """The option of a JVM that chooses its garbage collector; empty for a driver of a cluster, and
    if the user chooses one: a JVM with two does not start.

    Args:
        master: Spark's master.
        options: Texts with the user's options of the JVM.
    """
    is_chosen = any(re.search(r"-XX:\+Use\w+GC\b", each) for each in options)
    return COLLECTOR if master.startswith("local") and not is_chosen else ""


def _find_java_options(conf: Mapping[str, str]) -> Iterator[str]:
    """The texts in which users choose options of the driver's JVM."""
    yield from (conf.get(f"spark.driver.{name}JavaOptions", "") for name in ("extra", "default"))
    yield from (os.environ.get(name, "") for name in JAVA_VARIABLES)
    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    with suppress(OSError, UnicodeDecodeError):
        yield Path(folder, "spark-defaults.conf").read_text()


def _start(settings: dict[str, str]) -> SparkSession:
    _refuse_connect(remote="SPARK_REMOTE" in os.environ or "spark.remote" in settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # With spark-submit the JVM runs already, with its own master, jars and logging.
    by_spark_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    with as_file(files("anonlib.spark") / "log4j2.properties") as quiet:
        conf = {"spark.app.name": "anonlib", **STARTED, **REQUIRED}
        if not by_spark_submit and settings.get("spark.master", "local").startswith("local"):
            conf |= LOCAL
        if not by_spark_submit and "spark.jars.packages" not in settings:
            settings = {**settings, "spark.jars": _jars(settings)}
        conf |= settings
        if not by_spark_submit:
            options = conf.get("spark.driver.extraJavaOptions", "")
            log = f"-Dlog4j2.configurationFile={Path(quiet).as_uri()}"
            added = choose_collector(conf["spark.master"], _find_java_options(conf))
            conf["spark.driver.extraJavaOptions"] = " ".join(
                each for each in (log, NO_BOUND_CHECKS, added, options) if each
            )
        try:
            with _silent_jvm(), _files_for_no_other_writer():
                _launch(conf)
                conf[REDACTED] = _with_theirs(conf[REDACTED])
                started = SparkSession.builder.config(map=dict(conf)).getOrCreate()
        except Exception as error:
            require_java()
            if (wrong := name_disk_error(error)) is not None:
                raise StorageError(f"Spark could not start: {wrong}") from error
            raise InputError(
                "Spark could not start: the settings under `spark` must be valid, and the "
                f"machine needs memory for them ({type(error).__name__})"
            ) from error
    if not os.environ.get("ANONLIB_DEBUG"):
        if by_spark_submit:
            started.sparkContext.setLogLevel("OFF")
        # It prints a traceback when the JVM dies; the run itself says so.
        updates: Any = started.sparkContext._accumulatorServer
        updates.handle_error = lambda request, address: None
    return started


def _jars(settings: Mapping[str, str]) -> str:
    """The jars of anonlib, and those that the config names, such as a database's driver."""
    theirs = settings.get("spark.jars", "")
    return ",".join([*map(str, ensure_jars()), *filter(None, theirs.split(","))])


def _launch(conf: Mapping[str, str]) -> None:
    """Starts the JVM if there is none. Secret settings are set later, when the session starts:
    everybody on the machine can read the JVM's command line.

    The JVM is in a session of its own: a signal to our process group (`timeout`, a terminal that is
    closed) ends us, and we end the JVM, which ends by itself when we die."""
    plain = SparkConf(loadDefaults=False)
    plain.setAll([(key, value) for key, value in conf.items() if not re.search(SECRET, key)])
    launch: Any = launch_gateway  # it has no types
    gateway = SparkContext._gateway or launch(plain, {"start_new_session": True})
    SparkContext._ensure_initialized(gateway=gateway, conf=plain)


def _with_theirs(pattern: str) -> str:
    """The pattern of secret settings, joined with that of the session's submitter."""
    theirs = SparkConf().get(REDACTED)
    return pattern if theirs in (None, pattern) else f"{pattern}|{theirs}"


@contextmanager
def _files_for_no_other_writer() -> Iterator[None]:
    """Processes that are started in the body make files that only their owner can write to."""
    before = os.umask(0o077)
    os.umask(before | 0o022)
    try:
        yield
    finally:
        os.umask(before)


def _require_delta(spark: SparkSession) -> None:
    """Raises InputError if the session has no Delta."""
    try:
        find_class(spark, "io.delta.sql.DeltaSparkSessionExtension")
    except Exception:
        raise InputError(
            "Delta is not on Spark's class path; give spark-submit the jars that `python "
            "-m anonlib.spark.jars` lists, by --jars"
        ) from None


@contextmanager
def _silent_jvm() -> Iterator[None]:
    """A JVM that starts in the body has no standard error. It would show the launcher's warnings,
    and tracebacks of Python workers, which may contain data. ANONLIB_DEBUG keeps it."""
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
