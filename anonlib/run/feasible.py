"""Checks that need only the scan: models that the whole table can't hold, also for who knows other
protected columns; and values of single persons that no model would protect."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import MISSING, Codes, Ints
from anonlib.config.model import Attribute, PrivacySection
from anonlib.config.resolve import bind_models, with_ids
from anonlib.errors import Problem
from anonlib.partition.repair import Joint
from anonlib.privacy import Reference
from anonlib.privacy.shares import whole_table
from anonlib.source import Source
from anonlib.spark.values import canonical, count_units
from anonlib.table.encoding import Values, code_protected, codes_among
from anonlib.table.schema import Column, Role, Schema


def infeasible(
    source: Source,
    privacy: PrivacySection,
    attributes: Mapping[str, Attribute],
    n_rows: int,
    rows: DataFrame,
    sample: pa.Table,
    values: dict[str, Values],
    own: dict[str, Reference],
) -> Iterator[Problem]:
    """The models that the whole table, as one cell, does not hold."""
    n = n_rows
    if source.schema.unit:
        n = rows.select(*source.schema.unit).na.drop().distinct().count()
    for model in bind_models(privacy.models, attributes):
        where = f"privacy.models.{model.type}"
        if model.min_rows > n_rows:
            yield Problem(where, f"asks for {model.min_rows} rows; the source has {n_rows}")
        elif model.min_persons > n:
            yield Problem(where, f"asks for {model.min_persons} persons; there are {n}")
        name, wanted = model.column, model.min_values
        if name is not None and wanted:
            found = _distinct(source, source.schema[name], wanted, sample, privacy.missing_tokens)
            if wanted > found:
                yield Problem(where, f"asks for {wanted} values; column {name} has {found}")
                continue
        if name is not None and model.looks_at == "counts":
            id = source.schema[name].id
            cell = whole_table(name, own[id], n, _n_known(source, id, privacy.missing_tokens))
            cell = replace(cell, references={name: values[id].reference})
            if not model.holds(cell)[0]:
                yield Problem(where, f"column {name} does not hold it in all rows as one cell")


def _n_known(source: Source, id: str, missing_tokens: tuple[str, ...]) -> int | None:
    """The persons with a present value of a column; None without a unit."""
    unit = source.schema.unit
    if not unit:
        return None
    value = canonical(source.columns[id], source.schema.by_id(id).type, missing_tokens)
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
    codes = _codes(persons, column, missing_tokens)
    n_values = len(np.unique(codes[codes != MISSING]))
    if n_values >= min_values:
        return n_values
    value = canonical(source.columns[column.id], column.type, missing_tokens)
    rows = source.raw.select(value.alias("v"), *[source.columns[id].alias(id) for id in unit])
    return rows.na.drop().select("v").distinct().count()


def _codes(sample: pa.Table, column: Column, missing_tokens: tuple[str, ...]) -> Codes:
    values = sample.column(column.id).combine_chunks()
    return code_protected(values, missing_tokens)


def disclosures(
    source: Source,
    privacy: PrivacySection,
    one_row_per_person: bool | str,
    k: int,
    rows: DataFrame,
    sample: pa.Table,
) -> Iterator[Problem]:
    """Values of single persons that would be published although all models hold."""
    if isinstance(one_row_per_person, str):
        id = source.schema[one_row_per_person].id
        persons = source.raw.select(source.columns[id].alias(id))
        # Hashes are two thirds of the cost of texts. Where they repeat, the values tell.
        hashed = F.when(F.col(id).isNotNull(), F.xxhash64(id))
        if _repeats(persons.select(hashed)) and _repeats(persons):
            text = f"column {one_row_per_person} repeats or is missing in several rows: it "
            text += "does not identify one row per person; name a `unit` instead"
            yield Problem("one_row_per_person", text)
    for target in source.schema.of(Role.TARGET):
        for column in _find_determined(source, target, sample, privacy.missing_tokens):
            yield Problem(
                f"attributes.{target.name}",
                (f"determines the sensitive column {column.name}: publishing it publishes both"),
            )
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
            names = ", ".join(column.name for column in insensitive)
            yield Problem(
                "privacy.acknowledge_unique",
                (
                    f"{rare} combinations of the insensitive columns ({names}) are rarer than "
                    f"k = {k}; give them other roles, or list them here"
                ),
            )


def _repeats(keys: DataFrame) -> bool:
    """Whether a key is in several rows, or missing in one."""
    rows = keys.toDF("key").groupBy("key").count()
    return rows.where("count > 1 or key is null").limit(1).count() > 0


def _find_determined(
    source: Source, target: Column, sample: pa.Table, missing_tokens: tuple[str, ...]
) -> list[Column]:
    """The sensitive columns that the target determines: each target value goes with one value, and
    not all values are the same."""
    labels = _codes(sample, target, missing_tokens)
    columns = [
        column
        for column in source.schema.of(Role.SENSITIVE)
        if not _varies_within(labels, _codes(sample, column, missing_tokens))
    ]
    if not columns:
        return []
    label = canonical(source.columns[target.id], target.type, missing_tokens).alias("label")
    hashed = []
    for column in columns:
        value = canonical(source.columns[column.id], column.type, missing_tokens)
        hashed.append(F.when(value.isNotNull(), F.xxhash64(value)).alias(column.id))
    ends = [f(c.id).alias(f"{c.id}_{f.__name__}") for c in columns for f in (F.min, F.max)]
    grouped = (
        source.raw.select(label, *hashed).where("label is not null").groupBy("label").agg(*ends)
    )
    figures = []
    for column in columns:
        low, high = F.col(f"{column.id}_min"), F.col(f"{column.id}_max")
        figures.append(F.count_if(low != high).alias(f"{column.id}_open"))
        figures.append((F.min(low) != F.max(high)).alias(f"{column.id}_varies"))
    row = grouped.agg(*figures).collect()[0]
    return [c for c in columns if row[f"{c.id}_open"] == 0 and row[f"{c.id}_varies"]]


def _varies_within(labels: Codes, values: Codes) -> bool:
    """Whether the sample has two values of the column with one target value. Then the target does
    not determine it."""
    present = (labels != MISSING) & (values != MISSING)
    pairs = np.unique(np.column_stack([labels[present], values[present]]), axis=0)
    return len(pairs) > len(np.unique(labels[present]))


#: Most combinations of values of the protected columns.
MAX_COMBINATIONS = 100_000

WHOLE = "__anonlib_whole"


def joint_counts(
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


def joint_problems(
    rows: DataFrame,
    schema: Schema,
    values: Mapping[str, Values],
    privacy: PrivacySection,
    attributes: Mapping[str, Attribute],
) -> Iterator[Problem]:
    """Models that the whole table, as one cell, does not hold for who knows other columns."""
    if not schema.joint:
        return
    names = [schema.by_id(id).name for id in schema.protected]
    whole = rows.withColumn(WHOLE, F.lit(0))
    grouped = _count_combinations(whole, schema, privacy.missing_tokens, WHOLE)
    table = grouped.limit(MAX_COMBINATIONS + 1).toArrow()
    if len(table) > MAX_COMBINATIONS:
        yield Problem(
            "privacy.joint",
            (
                f"columns {', '.join(names)} have more than {MAX_COMBINATIONS} combinations "
                "of values, too many; coarsen or drop some"
            ),
        )
        return
    joint = _joint(table, schema, values, WHOLE)
    references = {id: each.reference for id, each in values.items()}
    for model in with_ids(bind_models(privacy.models, attributes), schema):
        if model.column is None:
            continue
        known = joint.known(model.column, references, bool(schema.unit))
        holding = model.holds(known.counts)
        if not holding.all():
            name = schema.by_id(model.column).name
            others = [other for other in names if other != name]
            verb = "are" if len(others) > 1 else "is"
            yield Problem(
                "privacy.joint",
                (
                    f"{model.type}: column {name} does not hold it where {', '.join(others)} "
                    f"{verb} known, in {(~holding).sum()} of {len(holding)} groups of the "
                    "whole table; coarsen or drop a column, or leave joint out"
                ),
            )


def _count_combinations(
    rows: DataFrame, schema: Schema, missing_tokens: tuple[str, ...], by: str
) -> DataFrame:
    columns = [
        canonical(F.col(id), schema.by_id(id).type, missing_tokens).alias(id)
        for id in schema.protected
    ]
    named = rows.select(by, *columns, *schema.unit).na.drop(subset=[*schema.unit])
    return named.groupBy(by, *schema.protected).agg(count_units(schema.unit).alias("count"))


def _joint(table: pa.Table, schema: Schema, values: Mapping[str, Values], by: str) -> Joint:
    def codes(id: str) -> Ints:
        column = table.column(id).combine_chunks()
        if id in values:
            return codes_among(column, (), values[id].categories).astype(np.int64)
        return code_protected(column, ()).astype(np.int64)

    leaf, count = (table.column(name).to_numpy().astype(np.int64) for name in (by, "count"))
    stacked = np.column_stack([codes(id) for id in schema.protected])
    return Joint(schema.protected, leaf, stacked, count)
