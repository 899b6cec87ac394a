"""DataFrames of Spark that a caller gives: what can't be released, told before they are read."""

from collections import Counter
from typing import Any

from pyspark.sql import DataFrame

from anonlib.errors import InputError

#: The package that a table is of -> what to do instead.
_INSTEAD = {
    "pandas": "anonlib.anonymize takes it",
    "polars": "anonlib.anonymize takes it",
    "pyarrow": "anonlib.anonymize takes it",
    "pyspark": "make it one, as by `.to_spark()`, `.toDF()` or `.agg()`",
}


def require_frame(frame: Any, what: str) -> None:
    """Refuses what is no DataFrame of Spark, or can't be released as a whole.

    Args:
        frame: What a caller gives.
        what: The argument, for errors.

    Raises:
        InputError: It is something else, a stream, or several columns have the same name.
    """
    if not isinstance(frame, DataFrame):
        kind = type(frame)
        package = kind.__module__.partition(".")[0]
        instead = _INSTEAD.get(package, "give one")
        raise InputError(f"{what}: {package}'s {kind.__name__} is no DataFrame of Spark; {instead}")
    if frame.isStreaming:
        raise InputError(
            f"{what}: a stream can't be released as a whole; release each batch of `foreachBatch`, "
            "with `mode: append`"
        )
    if same := [name for name, n in Counter(frame.columns).items() if n > 1]:
        raise InputError(
            f"{what}: several columns have the same name: {', '.join(same)}; rename them"
        )
