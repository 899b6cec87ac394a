"""DataFrames of Spark that a caller gives: what can't be released, told before they are read, and
the time zone that they are read in."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anonlib.config.checks.attributes import check_names
from anonlib.config.resolve import check_storable
from anonlib.errors import ConfigError, InputError
from anonlib.local.frames import require_distinct_names
from anonlib.spark.loan import find_own_setting, hold_setting, shares_sessions
from anonlib.spark.values import read_field

TIME_ZONE = "spark.sql.session.timeZone"
#: Names of the zone that every run works in.
UTC = {"UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Z", "+00:00"}

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
    require_distinct_names(what, frame.columns)


def require_columns(frame: DataFrame, names: Collection[str]) -> None:
    """Refuses names of columns that no config can have, and columns that no release can have, by
    the schema alone: as these problems are told of a config.

    Args:
        frame: What a caller gives.
        names: The columns that are read.

    Raises:
        ConfigError: All of them.
    """
    fields = [read_field(field.name, field) for field in frame.schema if field.name in names]
    problems = [*check_names(frame.columns)]
    problems += [problem for field in fields for problem in check_storable(field)]
    if problems:
        raise ConfigError(problems)


def find_zone(spark: SparkSession) -> str | None:
    """The time zone that the caller's DataFrames are read in; None if it is that of every run."""
    zone = find_own_setting(spark.conf, TIME_ZONE)
    return None if zone in UTC else zone


@contextmanager
def in_zone(spark: SparkSession, zone: str | None) -> Iterator[None]:
    """The body looks at a DataFrame in the time zone of its caller. In another one, texts of a CSV
    and names of folders would be other times, and a condition would choose other rows.

    Args:
        spark: The session.
        zone: As `find_zone` tells it; for None nothing changes.

    Raises:
        InputError: Other runs of this process need the session meanwhile.
    """
    if zone is None:
        yield
        return
    with hold_setting(spark.conf, TIME_ZONE, zone):
        alone = not shares_sessions()
        if alone:
            yield
        if not alone or shares_sessions() or spark.conf.get(TIME_ZONE) != zone:
            raise InputError(
                f"source: its DataFrame is read in the time zone {zone}, but other runs use the "
                "session in UTC at the same time; run them one after the other, or set "
                f"{TIME_ZONE} to UTC before you make the DataFrame"
            )
