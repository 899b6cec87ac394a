"""Counts in Spark: all classes once, undecided classes again and exactly, and rare combinations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anonlib.auditing.models import AuditModel, UnverifiableError
from anonlib.auditing.report import EXACT_SIZES
from anonlib.auditing.verdicts import Tally
from anonlib.auditing.view import View

#: The bits of one of Spark's bitmaps.
N_BUCKETS = 32768


@dataclass(frozen=True)
class Counts:
    """The counts of a view.

    Attributes:
        sizes: The number of classes by size.
        n_rows: The number of rows.
        tallies: The counts of each model.
        ascending: Whether the elements of all sets of the keys are in ascending order.
    """

    sizes: Counter[int]
    n_rows: int
    tallies: tuple[Tally, ...]
    ascending: bool = True


def tally(views: Sequence[View], models: Sequence[AuditModel]) -> list[Counts]:
    """Counts the classes of each view, in one pass over their rows.

    views: Views of the same rows, whose keys differ.
    """
    partials = [model.partial(views[0]) for model in models]
    merges = {
        f"m{i}_{name}": each for i, part in enumerate(partials) for name, each in part.items()
    }
    keys = dict.fromkeys(key for view in views for key in view.keys)
    finest = (
        views[0]
        .rows.groupBy(*keys)
        .agg(F.count("*").alias("n_rows"), *[each.of_rows.alias(n) for n, each in merges.items()])
    )
    again = [F.sum("n_rows").alias("n_rows")]
    again += [each.merge(F.col(name)).alias(name) for name, each in merges.items()]
    summaries = []
    for place, view in enumerate(views):
        classes = finest if len(view.keys) == len(keys) else finest.groupBy(*view.keys).agg(*again)
        least = F.min("n_rows").alias("size")
        aggregates = [least, F.count("*").alias("n_classes"), F.sum("n_rows").alias("n_rows")]
        differ = [F.col(key) != F.sort_array(key) for key in view.sets]
        aggregates.append(F.max(reduce(or_, differ, F.lit(False))).alias("differ"))
        for i, (model, partial) in enumerate(zip(models, partials, strict=True)):
            part = {name: F.col(f"m{i}_{name}") for name in partial} | {"n_rows": F.col("n_rows")}
            aggregates += _summary(view, model, part, f"m{i}_")
        by_size = classes.groupBy(_rounded_size().alias("bucket")).agg(*aggregates)
        summaries.append(by_size.withColumn("view", F.lit(place)))
    found = reduce(DataFrame.unionAll, summaries).collect()
    return [
        _count_view(view, models, [row for row in found if row["view"] == place])
        for place, view in enumerate(views)
    ]


def _count_view(view: View, models: Sequence[AuditModel], rows: Sequence[Row]) -> Counts:
    """The counts of a view by the aggregates of each size."""
    sizes = Counter({row["size"]: row["n_classes"] for row in rows})
    tallies = [_gather(model, rows, f"m{i}_") for i, model in enumerate(models)]
    done = [_settle(view, model, counted) for model, counted in zip(models, tallies, strict=True)]
    ascending = not any(row["differ"] for row in rows)
    return Counts(sizes, sum(row["n_rows"] for row in rows), tuple(done), ascending)


def count_rare(view: View, keys: Sequence[str], k: int) -> tuple[int, int]:
    """How many combinations of `keys` belong to fewer than k persons, and how many there are.

    If persons can't be counted, rows are counted instead. There are at least as many rows.
    """
    persons = F.count("*") if view.token is None else F.count_distinct(view.token)
    combinations = view.rows.groupBy(*keys).agg(persons.alias("n"))
    row = combinations.agg(F.count_if(F.col("n") < k), F.count("*")).collect()[0]
    return row[0], row[1]


def _rounded_size() -> Column:
    """The bucket of a class by its size: see `round_sizes`."""
    size = F.col("n_rows")
    top = F.length(F.bin(size)) - 1  # the highest bit; a logarithm would round
    power = F.call_function("shiftleft", F.lit(1).cast("long"), top)
    return F.when(size <= EXACT_SIZES, size).otherwise(power + 1)  # none is EXACT_SIZES


def _bucket(view: View) -> Column:
    return F.pmod(F.xxhash64(*view.keys), F.lit(N_BUCKETS).cast("long"))


def _summary(view: View, model: AuditModel, part: dict[str, Column], prefix: str) -> list[Column]:
    """The aggregates of a model over the classes of one size."""
    judgement = model.judge(view, part)
    fails = ~F.coalesce(model.holds(judgement.value), F.lit(False))
    if judgement.undecided is None:
        decided = F.lit(True)
        columns = []
    else:
        decided = ~F.coalesce(judgement.undecided, F.lit(True))
        columns = [F.bitmap_construct_agg(F.when(~decided, _bucket(view))).alias(f"{prefix}open")]
    return [
        _worst(model, F.when(decided, judgement.value)).alias(f"{prefix}value"),
        *_failing(decided & fails, prefix),
        *columns,
    ]


def _failing(fails: Column, prefix: str) -> list[Column]:
    """The number of failing classes, and the least of them."""
    least = F.min(F.when(fails, F.col("n_rows"))).alias(f"{prefix}size")
    return [F.count_if(fails).alias(f"{prefix}failing"), least]


def _worst(model: AuditModel, value: Column) -> Column:
    return F.min(value) if model.greater_is_better else F.max(value)


def _gather(model: AuditModel, rows: Sequence[Row], prefix: str) -> Tally:
    """Merges the aggregates of all sizes."""
    values = [row[f"{prefix}value"] for row in rows if row[f"{prefix}value"] is not None]
    worst = min if model.greater_is_better else max
    failing = Counter({row[f"{prefix}size"]: row[f"{prefix}failing"] for row in rows})
    sketched = bool(rows) and f"{prefix}open" in rows[0]
    maps = [int.from_bytes(row[f"{prefix}open"], "little") for row in rows] if sketched else []
    return Tally(worst(values, default=None), not sketched, +failing, reduce(or_, maps, 0))


def _settle(view: View, model: AuditModel, tally: Tally) -> Tally:
    """Completes a tally: counts its undecided classes exactly."""
    if not tally.undecided:
        return tally
    try:
        classes = model.exact(view, _in_buckets(view, tally.undecided))
    except UnverifiableError as error:
        return Tally(note=str(error))
    fails = ~F.coalesce(model.holds(F.col("value")), F.lit(False))
    summaries = [_worst(model, F.col("value")).alias("value"), *_failing(fails, "")]
    found = classes.groupBy(_rounded_size().alias("bucket")).agg(*summaries).collect()
    exact = _gather(model, found, "")
    values = [value for value in (tally.value, exact.value) if value is not None]
    # None if no class has a value. Then all classes fail.
    worst = (min if model.greater_is_better else max)(values, default=None)
    # Values of decided classes may be bounds: the classes are no worse. So the worst value is exact
    # if an exactly counted class has it.
    return replace(exact, value=worst, exact=worst == exact.value)


def _in_buckets(view: View, bitmap: int) -> DataFrame:
    """The rows of all classes in the hash buckets of a bitmap.

    These are all undecided classes and some others. Each class is complete, so no join is needed.
    """
    if bitmap.bit_count() > N_BUCKETS // 2:
        return view.rows
    words = [bitmap >> i & (1 << 64) - 1 for i in range(0, N_BUCKETS, 64)]
    signed = [word - (1 << 64) if word >> 63 else word for word in words]
    # One literal, since Spark may build an array of columns anew for every row.
    table = F.lit(np.array(signed, np.int64))
    bucket = _bucket(view)
    word = F.get(table, F.shiftright(bucket, 6).cast("int"))
    return view.rows.where(F.getbit(word, bucket.bitwiseAND(63).cast("int")) == 1)
