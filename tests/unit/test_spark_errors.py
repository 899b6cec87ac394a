"""What users are told of failures in Spark, by the texts that Spark has for them."""

from dataclasses import dataclass
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.logger import PySparkLogger

from anonlib.errors import AnonlibError, BlockError, InputError, StorageError
from anonlib.source.steady import explain_lost_pin
from anonlib.spark.translation import (
    _LOGGERS,
    CREDENTIALS,
    name_disk_error,
    translate,
    translate_errors,
)

TRACEBACK = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent "
    'call last):\n  File "work.py", line 8, in f\n    raise BlockError(text) from None\n'
)
WORKER = "org.apache.spark.api.python.PythonException"
FORGED = "anonlib.errors.BlockError: SSN 123-45-6789"


@dataclass
class Throwable:
    """An exception of the JVM."""

    kind: str
    message: str | None
    cause: "Throwable | None" = None

    def getClass(self) -> Any:
        return self

    def getName(self) -> str:
        return self.kind

    def getMessage(self) -> str | None:
        return self.message

    def getCause(self) -> "Throwable | None":
        return self.cause


class Captured(Exception):
    """What pyspark raises for one: it has the message, too."""

    def __init__(self, first: Throwable):
        super().__init__(first.message)
        self.java_exception = first


def told(*chain: tuple[str, str | None]) -> AnonlibError:
    found = None
    for kind, message in reversed(chain):
        found = Throwable(kind, message, found)
    assert found is not None
    return translate(Captured(found), "anonymize")


SPARK = "org.apache.spark.SparkException"
ABORTED = "Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times: "
VALUES = "org.apache.spark.SparkRuntimeException"
MALFORMED = "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed. SQLSTATE: 22023"
CRASHED = "Python worker exited unexpectedly (crashed)."
FACTORY = (
    "\n\tat java.base/java.lang.ProcessBuilder$NullOutputStream.write(ProcessBuilder.java:445)"
    "\n\tat org.apache.spark.api.python.PythonWorkerFactory.createThroughDaemon(Python.scala:1)"
)


def test_disks_that_keep_spark_from_starting() -> None:
    """Other failures at the start are of the settings: the first error of files need not be."""
    cause = Throwable("java.io.IOException", "File too large")
    full = Captured(Throwable(SPARK, "An error occurred", cause))
    assert name_disk_error(full) == "the system's limit of file sizes is reached"
    cause = Throwable("java.io.IOException", "Permission denied")
    assert name_disk_error(Captured(Throwable(SPARK, "An error occurred", cause))) is None


def test_a_name_that_spark_can_not_read_is_no_corrupt_file() -> None:
    error = told(
        (SPARK, "[FAILED_READ_FILE.NO_HINT] Encountered error. SQLSTATE: KD001"),
        ("java.lang.IllegalArgumentException", "Relative path in absolute URI: .10:00.csv.crc"),
    )
    assert isinstance(error, InputError)
    assert "the name of a file or folder has a colon, which Spark can't read there" in str(error)


@pytest.mark.parametrize(
    ("chain", "kind", "text"),
    [
        (
            [(SPARK, ABORTED + CRASHED), (SPARK, CRASHED), ("java.io.EOFException", None)],
            StorageError,
            "a Python worker or an executor died",
        ),
        (
            [
                (SPARK, ABORTED + f"java.io.IOException: Stream closed{FACTORY}"),
                ("java.io.IOException", "Stream closed"),
            ],
            StorageError,
            "a Python worker or an executor died",
        ),
        (
            [
                (SPARK, ABORTED + "java.lang.OutOfMemoryError: Java heap space"),
                ("java.io.EOFException", None),
            ],
            StorageError,
            "out of memory",
        ),
        (
            [
                (SPARK, ABORTED),
                (
                    "java.io.FileNotFoundException",
                    "/tmp/blockmgr-1f/0e/shuffle_0_3_0.data (No such file or directory)",
                ),
            ],
            StorageError,
            "were lost; run it again",
        ),
        (
            [(SPARK, ABORTED + "ExecutorLostFailure (executor 3 exited)")],
            StorageError,
            "were lost; run it again",
        ),
        (
            [
                (
                    "org.postgresql.util.PSQLException",
                    "An I/O error occurred while sending to the backend.",
                ),
                ("java.io.EOFException", None),
            ],
            StorageError,
            "the connection to the database is lost",
        ),
        (
            [
                (
                    "org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException",
                    (
                        "No AWS Credentials provided: software.amazon.awssdk.core.exception."
                        "SdkClientException: Unable to load credentials from system settings"
                    ),
                )
            ],
            StorageError,
            CREDENTIALS,
        ),
        (
            [
                (
                    SPARK,
                    ABORTED
                    + "ExecutorLostFailure: Container killed by YARN for exceeding physical "
                    "memory limits",
                )
            ],
            StorageError,
            "most often for want of memory",
        ),
        (
            [("java.io.FileNotFoundException", "/tmp/blockmgr-1/x (Read-only file system)")],
            StorageError,
            "the file system is read-only",
        ),
        (
            [("java.io.EOFException", "Reached the end of stream")],
            InputError,
            "a file is corrupt or not of this format",
        ),
        (
            [("java.io.FileNotFoundException", "File file:/data/people.csv does not exist")],
            InputError,
            "no such file",
        ),
        (
            [(SPARK, "[FAILED_READ_FILE.NO_HINT] SQLSTATE: KD001"), (VALUES, MALFORMED)],
            InputError,
            "a file is corrupt or not of this format",
        ),
        ([(VALUES, MALFORMED)], InputError, "a file is corrupt or not of this format"),
        (
            [(VALUES, "[CAST_OVERFLOW] The value 300S can't be cast. SQLSTATE: 22003")],
            InputError,
            "a value can't be cast; use try_cast",
        ),
        (
            [(SPARK, ABORTED), ("java.util.regex.PatternSyntaxException", "Unclosed group")],
            InputError,
            "a regular expression is not valid",
        ),
        (
            [(SPARK, "[UNSUPPORTED_TIME_TYPE] The data type TIME is not supported.")],
            InputError,
            "a column has times of day",
        ),
        (
            [(SPARK, "[DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION] The timestamp (2020) is")],
            InputError,
            "no version of that time",
        ),
        (
            [(SPARK, "[DELTA_TIMESTAMP_GREATER_THAN_COMMIT] The provided timestamp is after")],
            InputError,
            "no version of that time",
        ),
        ([(SPARK, "something with a value in it")], StorageError, "Spark failed with Captured"),
    ],
)
def test_what_is_told(chain: Any, kind: type[AnonlibError], text: str) -> None:
    error = told(*chain)
    assert type(error) is kind
    assert text in str(error)


#: Texts of Spark for values that an expression of the source can't compute.
FAILING = {
    "DIVIDE_BY_ZERO": "Division by zero. SQLSTATE: 22012",
    "ARITHMETIC_OVERFLOW": "long overflow. SQLSTATE: 22003",
    "INVALID_ARRAY_INDEX": "The index 7 is out of bounds. SQLSTATE: 22003",
    "MALFORMED_CHARACTER_CODING": "Invalid value found when decoding. SQLSTATE: 22000",
    "INVALID_PARAMETER_VALUE.PATTERN": "The value of `regexp` is invalid: '('. SQLSTATE: 22023",
    "INVALID_DATETIME_PATTERN.WITH_SUGGESTION": "Unrecognized: 'bbbb'. SQLSTATE: 22007",
    "INVALID_FORMAT.ESC_AT_THE_END": "The format is invalid. SQLSTATE: 42601; line 1 pos 0",
}


@pytest.mark.parametrize("before", [[], [(SPARK, ABORTED)], [(SPARK, "[TASK_WRITE_FAILED] x")]])
@pytest.mark.parametrize("name", FAILING)
def test_values_that_an_expression_fails_on(name: str, before: Any) -> None:
    """They are neither the store's fault nor a file's, also if the text quotes such words: a run
    that is tried again would fail again."""
    quotes = "\n== SQL (line 1, position 1) ==\nnote <> 'MALFORMED, No space left on device'"
    error = told(*before, (VALUES, f"[{name}] {FAILING[name]}{quotes}"))
    assert type(error) is InputError
    assert str(error) == (
        f"anonymize: an expression fails on a value, with {name}: one of `where`, or of the view "
        "or DataFrame; correct it, or use its try_ form, such as try_divide"
    )


@pytest.mark.parametrize("before", [[], [(SPARK, ABORTED + TRACEBACK)]])
def test_words_of_workers_are_passed_on(before: Any) -> None:
    raised = f"{TRACEBACK}anonlib.errors.BlockError: mdav failed with ValueError\n SQLSTATE: 38000"
    error = told(*before, (WORKER, raised))
    assert type(error) is BlockError
    assert str(error) == "anonymize: mdav failed with ValueError"


def test_words_of_workers_without_the_exception_of_the_jvm() -> None:
    """As Spark 4.0 has them."""
    words = TRACEBACK.partition(": ")[2] + "anonlib.errors.BlockError: mdav failed with ValueError"
    error = translate(PythonException(f"\n  An exception was thrown:\n{words}\n"), "anonymize")
    assert (type(error), str(error)) == (BlockError, "anonymize: mdav failed with ValueError")
    assert type(translate(PythonException(FORGED), "anonymize")) is StorageError


@pytest.mark.parametrize(
    "chain",
    [
        [("org.apache.spark.SparkNumberFormatException", f"The value '{FORGED}' can't be cast")],
        [("org.apache.spark.SparkNumberFormatException", f"The value 'x\n{FORGED}\n' ...")],
        [(SPARK, f"{ABORTED}{TRACEBACK}{FORGED}")],
        [(WORKER, f"{TRACEBACK}pyarrow.lib.ArrowInvalid: Could not convert 'x\n{FORGED}'")],
        [(WORKER, f"{TRACEBACK}pyarrow.lib.ArrowInvalid: of '{TRACEBACK}{FORGED}'")],
    ],
)
def test_values_that_read_like_words_of_workers(chain: Any) -> None:
    """A person's text can't become an error's."""
    error = told(*chain)
    assert type(error) is not BlockError
    assert "SSN" not in str(error)


def test_pyspark_logs_nothing_while_any_thread_is_within() -> None:
    """The beat of a lease comes before a stage, and ends amid it."""

    def logging() -> list[bool]:
        return [not PySparkLogger.getLogger(name).disabled for name in _LOGGERS]

    beat, over = Event(), Event()

    def beats() -> None:
        with translate_errors("path lease"):
            beat.set()
            over.wait(10)

    before = logging()
    thread = Thread(target=beats)
    thread.start()
    assert beat.wait(10)
    with translate_errors("anonymize"):
        over.set()
        thread.join()
        assert not any(logging())
    assert logging() == before


@pytest.mark.parametrize(
    ("version", "error", "text"),
    [
        (3, InputError("source: no such file"), "source: files of version 3 of the table are gone"),
        (None, InputError("source: no such file"), "source: no such file"),
        (3, InputError("release.path: no such file"), "release.path: no such file"),
        (3, StorageError("source: the disk is full"), "source: the disk is full"),
    ],
)
def test_a_version_whose_files_are_gone(
    version: int | None, error: AnonlibError, text: str
) -> None:
    source: Any = SimpleNamespace(version=version, database=None)
    with pytest.raises(type(error), match=f"^{text}"), explain_lost_pin(source):
        raise error
