"""The rows that wait in the backlog, held against the source and each other: nobody may be in two
of them, since a run would count such a person twice, and their texts must mean what they meant."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.errors import ConfigError, InputError, Problem
from anonlib.run.backlog import Waiting, describe_readings
from anonlib.source.resolved_source import Source
from anonlib.spark.digest import with_halves
from anonlib.spark.translation import translate_errors
from anonlib.table.columns import HIGH, LOW
from anonlib.text import count_noun

PART = "part"


def require_new_rows(
    source: Source, one_row_per_person: bool | str, folder_of: Callable[[str], str]
) -> None:
    """Checks a source that waiting rows were added to.

    Args:
        source: The source.
        one_row_per_person: As in the config. Where a column names the persons, these are compared,
            and else whole rows: the columns that the run needs.
        folder_of: From a run to the folder of its waiting rows.

    Cost: a pass over the source's own rows, which are compared with the few that wait.

    Raises:
        ConfigError: The source has no rows of its own.
        InputError: A person, or a row, is in two parts.
    """
    if not source.waiting:
        return
    with translate_errors("source", permission_error=InputError):
        if source.fresh.isEmpty():
            waits = _name_runs([*source.waiting])
            text = f"has no rows, so nothing is appended; the rows of {waits} wait on"
            raise ConfigError([Problem("source", text)])
        n, parts = _find_shared(source, one_row_per_person)
    if n:
        by_person = isinstance(one_row_per_person, str)
        raise InputError(_describe(n, by_person, parts, [*source.waiting], folder_of))


def require_same_readings(
    source: Source, entries: Iterable[Waiting], folder_of: Callable[[str], str]
) -> None:
    """Raises ConfigError if texts of waiting rows would be read otherwise than when they came. By
    another layout, 1.234 is another number, and 01/02/2024 another day.

    Args:
        source: A source that the waiting rows were added to.
        entries: What is known of the waiting rows, by run.
        folder_of: From a run to the folder of its waiting rows.
    """
    if problems := [p for entry in entries for p in _check_readings(source, entry, folder_of)]:
        raise ConfigError(problems)


def _check_readings(
    source: Source, entry: Waiting, folder_of: Callable[[str], str]
) -> Iterator[Problem]:
    now = describe_readings(source)
    anew = f"remove {folder_of(entry.run_id)}, and release its rows from their source"
    for name, cast in source.readings.items():
        where, whose = f"attributes.{name}", f"rows of run {entry.run_id} wait in the backlog"
        if entry.readings is None:
            if cast is not None:
                yield Problem(
                    where,
                    f"{whose}, and the earlier version of anonlib that put them there did not note "
                    f"how their texts were read: {anew}",
                )
        elif entry.readings.get(name) != now.get(name):
            before, after = (
                f"as {each[name]}" if name in each else "without a `type`"
                for each in (entry.readings, now)
            )
            yield Problem(
                where,
                f"{whose} that were read {before}, and would be read {after} now: give the column "
                f"its former `type` and `layout` until they are published, or {anew}",
            )


def _find_shared(source: Source, one_row_per_person: bool | str) -> tuple[int, list[int]]:
    """The number of distinct persons, or rows, that are in more than one part, and these parts: 0
    is the source, and the others are the waiting runs in their order."""
    fresh, *waiting = (
        _keys(source, frame, one_row_per_person).withColumn(PART, F.lit(i))
        for i, frame in enumerate([source.fresh, *source.waiting.values()])
    )
    known = reduce(DataFrame.unionAll, waiting)
    keys = [name for name in known.columns if name != PART]
    returning = fresh.join(F.broadcast(known.select(*keys).distinct()), keys, "left_semi")
    by_key = known.unionAll(returning.select(*known.columns)).groupBy(*keys)
    shared = by_key.agg(F.collect_set(PART).alias("parts")).where(F.size("parts") > 1)
    parts = F.array_sort(F.array_distinct(F.flatten(F.collect_list("parts"))))
    row = shared.agg(F.count(F.lit(1)).alias("n"), parts.alias("parts")).collect()[0]
    return int(row["n"]), [*row["parts"]]


def _keys(source: Source, frame: DataFrame, one_row_per_person: bool | str) -> DataFrame:
    """What tells persons apart, or rows if no column names the persons; without missing values."""
    if isinstance(one_row_per_person, str):
        id = source.schema[one_row_per_person].id
        return frame.select(source.columns[id].alias(id)).dropna()
    ids = [column.id for column in source.schema.columns]
    read = frame.select(*[source.columns[id].alias(id) for id in ids])
    return with_halves(read, ids).select(LOW, HIGH)


def _describe(
    n: int, by_person: bool, parts: list[int], runs: list[str], folder_of: Callable[[str], str]
) -> str:
    named = [runs[part - 1] for part in parts if part]
    folders = ", ".join(map(folder_of, named))
    shared = count_noun(n, "person is", "persons are") if by_person else ""
    shared = shared or count_noun(n, "row is", "rows are")
    if 0 not in parts:
        return (
            f"release.backlog: {shared} in the waiting rows of more than one run, and would be "
            f"released twice: remove all but one of {folders}, and release its other rows anew"
        )
    text = (
        f"release.backlog: {shared} both in the source and in the rows of {_name_runs(named)} that "
        "wait, and would be released twice; a job that is repeated keeps its run id, and then "
        f"waits on; else leave them out of the source, or remove {folders} if the source has all "
        "of its rows"
    )
    if not by_person:
        text += "; if they are other persons with the same values, release all rows as one source"
    return text


def _name_runs(runs: list[str]) -> str:
    return f"run {runs[0]}" if len(runs) == 1 else f"runs {', '.join(runs)}"
