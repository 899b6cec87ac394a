"""Checks that need only the scan: models that the whole table can't hold, also for who knows other
protected columns; and values of single persons that no model would protect."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import MISSING, Codes, Ints
from anonlib.config.model import Config, PrivacySection
from anonlib.decisions.refusals import (
    MAX_COMBINATIONS,
    TargetAgreement,
    judge_joint,
    judge_models,
    judge_prediction,
    judge_target,
    refuse_combinations,
    refuse_key,
    refuse_rare,
)
from anonlib.errors import Problem
from anonlib.partition.repair import Joint
from anonlib.privacy import Reference
from anonlib.source.resolved_source import Source
from anonlib.spark.values import count_units, make_canonical
from anonlib.table.encoding import Values, code_column, code_known
from anonlib.table.schema import Column, Role, Schema


def find_model_problems(
    source: Source,
    config: Config,
    n_rows: int,
    rows: DataFrame,
    sample: pa.Table,
    values: dict[str, Values],
    own: dict[str, Reference],
) -> Iterator[Problem]:
    """The models that the whole table, as one cell, does not hold."""
    n, tokens = n_rows, config.privacy.missing_tokens
    if source.schema.unit:
        n = rows.select(*source.schema.unit).na.drop().distinct().count()
    yield from judge_models(
        source.schema,
        config,
        (n_rows, n),
        values,
        own,
        lambda column, least: _distinct(source, column, least, sample, tokens),
        lambda column: _n_known(source, column.id, tokens),
    )


def _n_known(source: Source, id: str, missing_tokens: tuple[str, ...]) -> int | None:
    """The persons with a present value of a column; None without a unit."""
    unit = source.schema.unit
    if not unit:
        return None
    value = make_canonical(source.columns[id], source.schema.by_id(id).type, missing_tokens)
    named = source.raw.select(value.alias("v"), *[source.columns[i].alias(i) for i in unit])
    return named.na.drop().select(*unit).distinct().count()


def _distinct(
    source: Source,
    column: Column,
    min_values: int,
    sample: pa.Table,
    missing_tokens: tuple[str, ...],
) -> int:
    """The number of distinct present values that persons have: from the sample if it has enough,
    else an exact count."""
    unit = source.schema.unit
    persons = sample.select([column.id, *unit])
    for id in unit:
        persons = persons.filter(pc.is_valid(persons.column(id)))
    codes = code_column(persons, column, missing_tokens)
    n_values = len(np.unique(codes[codes != MISSING]))
    if n_values >= min_values:
        return n_values
    value = make_canonical(source.columns[column.id], column.type, missing_tokens)
    rows = source.raw.select(value.alias("v"), *[source.columns[id].alias(id) for id in unit])
    return rows.na.drop().select("v").distinct().count()


def find_disclosure_problems(
    source: Source, config: Config, rows: DataFrame, sample: pa.Table
) -> Iterator[Problem]:
    """Values of single persons that would be published although all models hold."""
    privacy, k, key = config.privacy, config.k, config.one_row_per_person
    if isinstance(key, str):
        id = source.schema[key].id
        persons = source.raw.select(source.columns[id].alias(id))
        # Hashes are two thirds of the cost of texts. Where they repeat, the values tell.
        hashed = F.when(F.col(id).isNotNull(), F.xxhash64(id))
        if _repeats(persons.select(hashed)) and _repeats(persons):
            yield refuse_key(key)
    for target in source.schema.of(Role.TARGET):
        yield from _target_problems(source, target, sample, privacy)
    insensitive = [
        c for c in source.schema.of(Role.INSENSITIVE) if not privacy.acknowledges_unique(c.name)
    ]
    if insensitive:
        keys = [
            F.to_json(F.struct(c.id)) if pa.types.is_nested(c.type) else F.col(c.id)
            for c in insensitive
        ]
        rare = rows.groupBy(*keys).count().where(F.col("count") < k).count()
        if rare:
            counts = [F.count(F.lit(1)), *(F.count_distinct(key) for key in keys)]
            n_rows, *n_values = rows.agg(*counts).first() or (0,)
            yield refuse_rare(insensitive, rare, k, n_values, n_rows)


def _target_problems(
    source: Source, target: Column, sample: pa.Table, privacy: PrivacySection
) -> Iterator[Problem]:
    """What a target tells of the sensitive columns. Costs another aggregate if it leaves no value
    of one open in the sample, and one more for each of these."""
    tokens, sensitive = privacy.missing_tokens, source.schema.of(Role.SENSITIVE)
    labels = code_column(sample, target, tokens)
    values = {column.id: code_column(sample, column, tokens) for column in sensitive}
    likely = [column for column in sensitive if not _varies_within(labels, values[column.id])]
    found = dict(_find_determined(source, target, likely, tokens))
    for column in sensitive:
        if column.id in found:
            yield from judge_target(target, column, found[column.id], privacy)
        else:
            yield from judge_prediction(target, column, labels, values[column.id], privacy)


def _repeats(keys: DataFrame) -> bool:
    """Whether a key is in several rows, or missing in one."""
    rows = keys.toDF("key").groupBy("key").count()
    return rows.where("count > 1 or key is null").limit(1).count() > 0


def _find_determined(
    source: Source, target: Column, columns: Sequence[Column], missing_tokens: tuple[str, ...]
) -> list[tuple[str, TargetAgreement]]:
    """The ids of the columns of which the target leaves no value open: each target value goes with
    one value, and not all values are the same."""
    if not columns:
        return []
    label = make_canonical(source.columns[target.id], target.type, missing_tokens).alias("label")
    hashed = []
    for column in columns:
        value = make_canonical(source.columns[column.id], column.type, missing_tokens)
        hashed.append(F.when(value.isNotNull(), F.xxhash64(value)).alias(column.id))
    ends = [f(c.id).alias(f"{c.id}_{f.__name__}") for c in columns for f in (F.min, F.max)]
    ends += [F.count(c.id).alias(f"{c.id}_n") for c in columns]
    both = source.raw.select(label, *hashed).where("label is not null")
    grouped = both.groupBy("label").agg(*ends)
    figures = []
    for column in columns:
        low, high = F.col(f"{column.id}_min"), F.col(f"{column.id}_max")
        figures.append(F.count_if(low != high).alias(f"{column.id}_open"))
        figures.append((F.min(low) != F.max(high)).alias(f"{column.id}_varies"))
        n = F.col(f"{column.id}_n")
        figures += [F.sum(n).alias(f"{column.id}_rows"), F.count_if(n > 0).alias(f"{column.id}_l")]
    row = grouped.agg(*figures).collect()[0]
    return [
        (c.id, TargetAgreement(row[f"{c.id}_rows"], row[f"{c.id}_l"], _count_equal(both, c.id)))
        for c in columns
        if row[f"{c.id}_open"] == 0 and row[f"{c.id}_varies"]
    ]


def _count_equal(rows: DataFrame, id: str) -> int:
    """The ordered pairs of rows, each with itself too, that have the same value of a column."""
    sizes = rows.where(F.col(id).isNotNull()).groupBy(id).count()
    # A square of a count may be too large for a long.
    wide = F.col("count").cast("decimal(18,0)")
    return int(sizes.agg(F.sum(wide * wide)).collect()[0][0])


def _varies_within(labels: Codes, values: Codes) -> bool:
    """Whether the sample has two values of the column with one target value. Then the target does
    not determine it."""
    present = (labels != MISSING) & (values != MISSING)
    pairs = np.unique(np.column_stack([labels[present], values[present]]), axis=0)
    return len(pairs) > len(np.unique(labels[present]))


WHOLE = "__anonlib_whole"


def count_joint(
    rows: DataFrame,
    schema: Schema,
    values: Mapping[str, Values],
    missing_tokens: tuple[str, ...],
    by: str,
) -> Joint:
    """The number of persons with each combination of the protected columns, for each value 0..n-1
    of `by`. They are exact; there is at most one count per row."""
    return _joint(
        _count_combinations(rows, schema, missing_tokens, by).toArrow(), schema, values, by
    )


def find_joint_problems(
    rows: DataFrame, schema: Schema, values: Mapping[str, Values], config: Config
) -> Iterator[Problem]:
    """Models that the whole table, as one cell, does not hold for who knows other columns."""
    if not schema.joint:
        return
    whole = rows.withColumn(WHOLE, F.lit(0))
    grouped = _count_combinations(whole, schema, config.privacy.missing_tokens, WHOLE)
    table = grouped.limit(MAX_COMBINATIONS + 1).toArrow()
    if len(table) > MAX_COMBINATIONS:
        yield refuse_combinations(schema)
        return
    yield from judge_joint(_joint(table, schema, values, WHOLE), schema, values, config)


def _count_combinations(
    rows: DataFrame, schema: Schema, missing_tokens: tuple[str, ...], by: str
) -> DataFrame:
    columns = [
        make_canonical(F.col(id), schema.by_id(id).type, missing_tokens).alias(id)
        for id in schema.protected
    ]
    named = rows.select(by, *columns, *schema.unit).na.drop(subset=[*schema.unit])
    return named.groupBy(by, *schema.protected).agg(count_units(schema.unit).alias("count"))


def _joint(table: pa.Table, schema: Schema, values: Mapping[str, Values], by: str) -> Joint:
    def codes(id: str) -> Ints:
        column = table.column(id).combine_chunks()
        return code_known(column, (), values.get(id)).astype(np.int64)

    leaf, count = (table.column(name).to_numpy().astype(np.int64) for name in (by, "count"))
    stacked = np.column_stack([codes(id) for id in schema.protected])
    return Joint(schema.protected, leaf, stacked, count)
