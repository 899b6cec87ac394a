"""Translates errors of Spark, Delta and Python workers to errors of anonlib. Their texts may hold
raw values, so only texts that are known to be safe are passed on."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from logging import Logger
from threading import Lock
from typing import Any

from pyspark.errors import PythonException
from pyspark.logger import PySparkLogger

from anonlib.errors import (
    JVM_LOST,
    AnonlibError,
    BlockError,
    BusyError,
    InputError,
    StorageError,
    is_jvm_lost,
)

#: The loggers that pyspark logs its exceptions to, with the text of the query.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

DENIED = "permission denied"
NO_FILE = "no such file"
CREDENTIALS = (
    "the store has found no credentials, or refuses them; give them in the environment "
    "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or by the machine's role"
)
#: Errors of disks, as in _KNOWN.
_DISK: tuple[tuple[str, type[AnonlibError], str], ...] = (
    (r"No space left on device|ENOSPC", StorageError, "no space left on the disk"),
    (r"Disk quota exceeded", StorageError, "the disk quota is used up"),
    (r"File too large", StorageError, "the system's limit of file sizes is reached"),
    (r"Read-only file system", StorageError, "the file system is read-only"),
)
#: (pattern in a text of the JVM, error of anonlib, its text). The first match counts.
_KNOWN: tuple[tuple[str, type[AnonlibError], str], ...] = (
    # These come first, since they cause others: an end of a stream, a missing file.
    (
        (
            r"Python worker exited|Python worker failed to connect|exceeding \w+ memory"
            r"|memory limits|container OOM|exit (code|status):? 137"
            # The one that begins workers is dead.
            r"|IOException: (Stream closed|Broken pipe)[\s\S]{0,2000}spark\.api\.python\."
        ),
        StorageError,
        (
            "a Python worker or an executor died, most often for want of memory: raise "
            "spark.executor.memoryOverhead (on one machine, free some), or lower max_rows"
        ),
    ),
    (
        r"OutOfMemoryError",
        StorageError,
        (
            "out of memory: give Spark more (spark.driver.memory, spark.executor.memory), or lower "
            "max_rows"
        ),
    ),
    *_DISK,
    (
        r"I/O error occurred while|connection has been closed|terminating connection",
        StorageError,
        "the connection to the database is lost",
    ),
    (
        r"password authentication failed|no password was provided|SQLSTATE: 28",
        InputError,
        "the database refuses the user or the password",
    ),
    (
        r"the database system is|FAILED_JDBC\.CONNECTION|Connection to \S+ refused",
        StorageError,
        "the database can't be reached",
    ),
    (
        r"No suitable driver|Driver not found",
        InputError,
        "no driver for this URL among Spark's jars; name its jar in spark.jars",
    ),
    (r"permission denied for", InputError, "the database denies permission"),
    (
        r"JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR|relation \S+ does not exist|syntax error at",
        InputError,
        "the database has no such table or column, or does not understand the query",
    ),
    (
        r"ClassNotFoundException: (Class )?org\.apache\.hadoop\.fs\.s3a\.",
        InputError,
        "s3a:// needs jars: run `python -m anonlib.spark.jars --s3` once",
    ),
    (
        r"NoAuthWithAWSException|NoAwsCredentials|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken",
        StorageError,
        CREDENTIALS,
    ),
    (
        (
            r"NoHttpResponse|Connection re(set|fused)|ConnectException|SocketTimeout|"
            r"UnknownHostException|AWSClientIOException|SdkClientException|"
            r"AWSStatus500|AWSServiceThrottled|ConnectTimeout"
        ),
        StorageError,
        "the store does not answer, or fails",
    ),
    (
        r"UnsupportedFileSystemException|No FileSystem for scheme",
        InputError,
        "Spark knows no such store; that of S3 is s3a://",
    ),
    (r"UnknownStoreException|NoSuchBucket", InputError, "no such bucket"),
    (
        r"Permission denied|Operation not permitted|AccessControlException|AccessDenied",
        StorageError,
        DENIED,
    ),
    (  # Before errors in files, of which a colon in a name may be the cause.
        r"Relative path in absolute URI",
        InputError,
        (
            "the name of a file or folder has a colon, which Spark can't read there (nor beside "
            "files that a pattern means); rename it, or copy the files to another folder"
        ),
    ),
    (
        r"Illegal file pattern",
        InputError,
        (
            "nothing has just this name, and as a pattern of several files it is not complete; "
            "correct the path, or close its brackets and braces"
        ),
    ),
    (
        r"ExecutorLostFailure|ExecutorDead|FetchFailed|blockmgr-|Could not find block",
        StorageError,
        "executors, or files of theirs, were lost; run it again",
    ),
    (
        (
            r"ParentNotDirectoryException|Parent path is not a directory|FileExistsError|"
            r"NotADirectoryError"
        ),
        StorageError,
        "a file is where a folder of this path should be",
    ),
    (
        r"PATH_NOT_FOUND|FileNotFoundException|FileNotFoundError|NoSuchFileException",
        InputError,
        NO_FILE,
    ),
    (r"TABLE_OR_VIEW_NOT_FOUND", InputError, "no such table in the catalog"),
    (
        r"DELTA_TABLE_NOT_FOUND|is not a Delta table|DELTA_MISSING_DELTA",
        InputError,
        "no Delta table",
    ),
    (r"DELTA_\w*VERSION\w*NOT_FOUND|Cannot time travel", InputError, "no such version"),
    (
        r"DELTA_TIMESTAMP_(EARLIER|GREATER)_THAN",
        InputError,
        "no version of that time: it is before the first that can be read, or after the last",
    ),
    (r"DATA_SOURCE_NOT_FOUND|DATA_SOURCE_NOT_EXIST", InputError, "Spark knows no such format"),
    (
        r"UNSUPPORTED_TIME_TYPE",
        InputError,
        "a column has times of day, which Spark can't read; make them text or numbers",
    ),
    (
        r"PARQUET_TYPE_",
        InputError,
        "a column has a type of Parquet that Spark can't read, such as times in nanoseconds",
    ),
    (r"PARSE_SYNTAX_ERROR", InputError, "not valid SQL"),
    (r"UNRESOLVED_COLUMN", InputError, "an unknown column"),
    (
        r"COLUMN_ALREADY_EXISTS",
        InputError,
        "the names of two columns are the same, or differ in case only; rename one",
    ),
    (
        r"java\.util\.regex\.PatternSyntaxException",
        InputError,
        "a regular expression is not valid: one of `where`, or of the view or DataFrame",
    ),
    (
        (
            r"CANNOT_READ_FILE_FOOTER|FAILED_READ_FILE|is not a Parquet file|not an ORC file|"
            r"\[MALFORMED_|UNABLE_TO_INFER_SCHEMA|ZipException|EOFException|FAILED_TO_READ"
        ),
        InputError,
        "a file is corrupt or not of this format",
    ),
    (
        r"Concurrent\w*Exception|DELTA_CONCURRENT|(Protocol|Metadata)ChangedException",
        BusyError,
        "the table changed meanwhile",
    ),
)
#: Spark's name of an error in the text that it has for it, and its SQLSTATE.
_CONDITION = re.compile(r"\s*\[([A-Z]\w*(?:\.\w+)*)\](?:.*?SQLSTATE: (\w{5}))?", re.DOTALL)
#: The SQLSTATEs of values that an expression can't compute, and of a format that can't be read. The
#: expression is one of the source's: those of anonlib compute all values.
_OF_VALUES = re.compile(r"22|42601")
#: Spark's names of errors in files, which may have such a SQLSTATE, too.
_OF_FILES = ("FAILED_READ_FILE", "MALFORMED_RECORD")
#: Errors of stores if a file exists that must be new: 412, or 409 for one of two writers at once.
_THERE = re.compile(
    r"FileAlreadyExistsException|PreconditionFailed|ConditionalRequestConflict|Status Code: 412"
)
#: Errors of stores if a file was replaced between the look at its version and the read.
_REPLACED = re.compile(r"RemoteFileChangedException|Status Code: 412")
#: The JVM's class of errors of Python workers.
_PYTHON = "org.apache.spark.api.python.PythonException"
#: The parts of a traceback that ends with a BlockError.
_TRACEBACK = "Traceback (most recent call last):\n"
_OURS = re.compile(r"(?:[ \t][^\n]*\n)*anonlib\.errors\.BlockError: ([^\n]*)")


@contextmanager
def translate_errors(
    what: str, permission_error: type[AnonlibError] = StorageError
) -> Iterator[None]:
    """Translates failures of Spark in the body to errors of anonlib.

    KeyboardInterrupt and errors of anonlib pass through. The cause is kept for `--debug`.

    Args:
        what: What the error texts begin with.
        permission_error: The type of the error for a missing permission.
    """
    try:
        with _unlogged:
            yield
    except AnonlibError:
        raise
    except Exception as error:
        raise translate(error, what, permission_error) from error


class _LogSilencer:
    """Keeps pyspark from logging while any thread is inside, such as the thread of a lease."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_within = 0
        self._before: list[tuple[Logger, bool]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_within:
                loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
                self._before = [(logger, logger.disabled) for logger in loggers]
                for logger in loggers:
                    logger.disabled = True
            self._n_within += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_within -= 1
            if not self._n_within:
                for logger, disabled in self._before:
                    logger.disabled = disabled


_unlogged = _LogSilencer()


def translate(
    error: Exception, what: str, permission_error: type[AnonlibError] = StorageError
) -> AnonlibError:
    """The error of anonlib for an exception of Spark. Arguments as for `translate_errors`."""
    if is_jvm_lost(error):
        return StorageError(f"{what}: {JVM_LOST}")
    text = _full_text(error)
    if ours := _of_worker(error):
        return BlockError(f"{what}: {ours}")
    if wrong := _of_values(error):
        return InputError(f"{what}: {wrong}")
    for pattern, kind, meaning in _KNOWN:
        if re.search(pattern, text):
            return (permission_error if meaning == DENIED else kind)(f"{what}: {meaning}")
    return StorageError(f"{what}: Spark failed with {_name(error)}; --debug shows its own words")


def name_disk_error(error: Exception) -> str | None:
    """What is said of an exception of Spark that a disk is the cause of; None of others."""
    text = _full_text(error)
    return next((meaning for pattern, _, meaning in _DISK if re.search(pattern, text)), None)


def find_conditions(error: Exception) -> list[tuple[str, str]]:
    """Spark's name of an error and its SQLSTATE, such as `DIVIDE_BY_ZERO` and `22012`; then those
    of its cause, and so on. An empty SQLSTATE if Spark gives none."""
    texts = [str(error), *(text for _, text in _causes(error))]
    found = [match.groups("") for match in map(_CONDITION.match, texts) if match]
    return [(name, state) for name, state in dict.fromkeys(found)]


def _of_values(error: Exception) -> str:
    """What is said of an expression that fails on a value; empty for other errors."""
    found = find_conditions(error)
    names = [name for name, state in found if _OF_VALUES.match(state)]
    if not names or any(name.startswith(_OF_FILES) for name, _ in found):
        return ""
    if names[0].startswith("CAST_"):
        return "a value can't be cast; use try_cast in `where`, or `type` for a column"
    return (
        f"an expression fails on a value, with {names[0]}: one of `where`, or of the view or "
        "DataFrame; correct it, or use its try_ form, such as try_divide"
    )


def is_refused_since_there(error: Exception) -> bool:
    """Whether a store refused to create a file because it exists."""
    return bool(_THERE.search(_full_text(error)))


def is_replaced_meanwhile(error: Exception) -> bool:
    """Whether a store refused to read a file because it was replaced just now."""
    return bool(_REPLACED.search(_full_text(error)))


def _of_worker(error: Exception) -> str:
    """The text of a BlockError that a Python worker raised; empty for other errors. Only its
    traceback counts: other texts may quote values, and a value may look like such an error."""
    causes = [*_causes(error)]
    if not causes and isinstance(error, PythonException):  # Spark 4.0 keeps only its text
        causes = [(_PYTHON, str(error))]
    for kind, text in causes:
        if kind == _PYTHON:
            found = _OURS.match(text.partition(_TRACEBACK)[2])
            return found.group(1) if found else ""
    return ""


def _full_text(error: Exception) -> str:
    own = [type(error).__name__, str(error)]
    return "\n".join([*own, *(f"{kind}: {text}" for kind, text in _causes(error))])


def _causes(error: Exception) -> Iterator[tuple[str, str]]:
    """The class and the message of the JVM's exception, then of its cause, and so on."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(20):
        try:
            if java is None:
                return
            yield java.getClass().getName(), java.getMessage() or ""
            java = java.getCause()
        except Exception:  # the JVM is gone; the causes so far must do
            return


def _name(error: Exception) -> str:
    condition = getattr(error, "getCondition", None)
    return (condition() if condition else None) or type(error).__name__
