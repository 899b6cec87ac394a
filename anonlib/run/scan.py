"""The scan: counts, ranges, categories and a seeded sample of the source, and the problems that
these show."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import add, and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.config.model import Config, bind_models
from anonlib.content.content_rules import Content
from anonlib.decisions.limits import find_thin, find_void_gates, size_sample
from anonlib.decisions.protected import find_counted_columns
from anonlib.decisions.refusals import (
    MAX_VALUES,
    refuse_categories,
    refuse_infinite,
    refuse_no_rows,
    refuse_rich,
)
from anonlib.errors import ConfigError, InfeasibleError, InputError, Problem
from anonlib.local.advice import note_table
from anonlib.privacy import Reference
from anonlib.run.categories import order_categories
from anonlib.run.column_values import find_values
from anonlib.run.content import complete_sketches, judge_content, plan_look
from anonlib.run.feasible import find_disclosure_problems, find_joint_problems, find_model_problems
from anonlib.run.row_facts import RowFacts
from anonlib.run.sample import take_sample
from anonlib.run.small_table import is_small, scan_small_table
from anonlib.source.casts import is_unreadable
from anonlib.source.resolved_source import Source
from anonlib.source.steady import require_one_state
from anonlib.spark.digest import make_digest, sum_halves
from anonlib.spark.tasks import fit_batches, fit_shuffles
from anonlib.spark.translation import translate_errors
from anonlib.spark.values import as_double, count_units, make_canonical
from anonlib.table.encoding import Encoding, Values, fit_encoding
from anonlib.table.schema import Column, Role, Scale, Schema
from anonlib.table.table_digest import Digest
from anonlib.text import fold_text

#: A run adds at most this many columns to a row.
OWN_COLUMNS = 16
#: How much longer a text may get in UTF-8 by a normal form (Unicode Standard Annex 15).
LONGER = 3
#: Names of folders that stand for a missing value.
READ_AS_MISSING = ("", "__HIVE_DEFAULT_PARTITION__")
#: The longest name of a folder, in bytes of UTF-8, and the characters that Spark writes as `%XX`.
LONGEST_FOLDER, ESCAPED = 255, r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]"


@dataclass(frozen=True)
class Scan:
    """Figures of the whole source. Of values it has the categories and ranges of encodings only.

    Attributes:
        n_rows: Rows.
        n_missing: By id of a quasi-identifier: missing values.
        hashes: By id of a quasi-identifier: int64, Spark's hash of each category.
        encodings: Of the quasi-identifiers.
        sample: The rows that come first in the order of a seeded hash: quasi-identifiers,
            sensitive columns, target, unit, HASH, TUPLE and CONTROLLER_HASH.
        values: By id: the values of protected columns whose distribution models look at.
        target: Encoding of the target; None if nothing looks at it.
        context: Encodings of the insensitive columns; empty if nothing looks at them.
        source_digest: Digest of the rows as they were read.
        content: Figures of the content gate.
        n_nobody: Rows without a person: a column of the unit is missing.
        row_bytes: An upper bound of a row's bytes in Python; None with nested columns.
    """

    n_rows: int
    n_missing: dict[str, int]
    hashes: dict[str, Ints]
    encodings: tuple[Encoding, ...]
    sample: pa.Table
    values: dict[str, Values]
    source_digest: Digest
    content: Content
    target: Encoding | None = None
    context: tuple[Encoding, ...] = ()
    n_nobody: int = 0
    row_bytes: int | None = None

    def list_notes(self, schema: Schema, config: Config) -> Iterator[str]:
        """What a release says of its table and config, and a check before it."""
        return note_table(schema, self.content, self.sample, self.n_rows, self.encodings, config)


def scan(source: Source, config: Config, prior_rows: DataFrame | None = None) -> Scan:
    """Reads the source for the figures of all columns, then for the rest.

    A table whose rows are all in the sample is fetched once (`anonlib/run/small_table.py`). Others
    are read for the sample, and for the values of columns, which categories and the content gate
    need; columns whose sample or whose values leave a doubt are read once more.

    Args:
        source: The source.
        config: The config.
        prior_rows: The rows of the target that a batch is added to, under the source's ids. Models
            with a reference measure cells against these and the batch together.

    Raises:
        ConfigError, InfeasibleError: All problems that the figures show.
        BusyError: A database changed in the meantime.
    """
    require_one_state(source, config.source.where)
    with translate_errors("source", permission_error=InputError), ExitStack() as stack:
        figures = _figures(source, config.privacy.missing_tokens)
        n_sampled = size_sample(config.partition, figures["n"])
        problems = [
            *_problems(source, figures),
            *_unfit(source, config.release.partition_by),
            *find_thin(config.partition, figures["n"]),
            *find_void_gates(config, figures["n"]),
        ]
        if figures["n"] == 0:
            raise ConfigError(problems)
        spark, row_bytes = source.raw.sparkSession, _row_bytes(source.schema, figures)
        stack.enter_context(fit_shuffles(spark, figures["n"]))
        stack.enter_context(fit_batches(spark, row_bytes))
        digest = make_digest(figures)
        if prior_rows is None and is_small(source.schema, figures, n_sampled):
            found = scan_small_table(source, config, digest, problems)
        else:
            found = _scan_rows(source, config, prior_rows, figures["n"], n_sampled, problems)
    encodings, context = (
        tuple(_encoding(column, figures, found) for column in columns)
        for columns in (source.schema.quasi_identifiers, source.schema.context)
    )
    target = source.schema.target
    label = None if target is None else _encoding(target, figures, found)
    return Scan(
        n_rows=digest.n_rows,
        n_missing={c.id: int(figures[f"{c.id}_missing"]) for c in source.schema.quasi_identifiers},
        hashes=found.categories.hashes,
        encodings=encodings,
        sample=found.sample,
        values=found.values,
        source_digest=digest,
        content=found.content,
        target=label,
        context=context,
        n_nobody=int(figures.get("nobody", 0)),
        row_bytes=row_bytes,
    )


def _scan_rows(
    source: Source,
    config: Config,
    prior_rows: DataFrame | None,
    n_rows: int,
    n_sampled: int,
    problems: list[Problem],
) -> RowFacts:
    """Finds what the scan needs beside the figures, by several passes over the source.

    Raises ConfigError, InfeasibleError for what is wrong, these problems included.
    """
    rows, privacy = source.rows(), config.privacy
    sample = take_sample(rows, source.schema, n_rows, n_sampled, config.seed)
    # A column that is wrongly called nominal shows in the sample: its values are not collected.
    most = config.max_categories
    many = [
        c
        for c in source.schema.columns
        if c.by_category and len(pc.unique(sample.column(c.id))) > most + 1
    ]
    problems += [refuse_categories(column, most) for column in many]
    if many:
        raise ConfigError(problems)
    look = plan_look(source.schema, n_rows, sample)
    found = complete_sketches(source, look, find_values(source, look), sample)
    categories, more = order_categories(
        source.schema, found.categories, most, privacy.missing_tokens
    )
    if problems := [*problems, *more]:
        raise ConfigError(problems)
    values, own = _values(source, config, prior_rows)
    named = frozenset(source.schema.by_id(id).name for id in source.schema.protected)
    content, content_problems = judge_content(source, found, look.key, sample, privacy, named)
    problems = [
        *find_model_problems(source, config, n_rows, rows, sample, values, own),
        *find_joint_problems(rows, source.schema, values, config),
        *find_disclosure_problems(source, config, rows, sample),
        *content_problems,
    ]
    if problems:
        raise InfeasibleError(problems)
    return RowFacts(sample, categories, values, content)


def require_readable(source: Source, missing_tokens: tuple[str, ...]) -> None:
    """Raises ConfigError where values can't be read as their column's type, or are infinite. One
    aggregate over the source."""
    with translate_errors("source", permission_error=InputError):
        if problems := [*_problems(source, _figures(source, missing_tokens))]:
            raise ConfigError(problems)


def _figures(source: Source, missing_tokens: tuple[str, ...]) -> dict[str, Any]:
    """One aggregate over the source."""
    aggregates: list[SparkColumn] = [F.count(F.lit(1)).alias("n")]
    n_bytes, most_bytes = [F.lit(0)], [F.lit(0)]
    identifying = source.schema.identifying
    for column in source.schema.columns:
        id, value = column.id, _value(source, column)
        if id in source.casts:
            count = F.count_if(is_unreadable(F.col(id), source.casts[id], missing_tokens))
            aggregates.append(count.alias(f"{id}_failed"))
        if column.scale is not None:
            aggregates.append(F.count_if(value.isNull()).alias(f"{id}_missing"))
            if pa.types.is_floating(column.type):
                infinite = value.isin(float("inf"), float("-inf"))
                aggregates.append(F.count_if(infinite).alias(f"{id}_infinite"))
            if column.scale is Scale.CONTINUOUS:
                x = as_double(value, column.type)
                aggregates += [F.min(x).alias(f"{id}_low"), F.max(x).alias(f"{id}_high")]
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            # Identities of persons cost much to make. They are at most this many times as long.
            longer = LONGER if column in identifying else 1
            text = F.col(id).cast("string") if column in identifying else value
            n_bytes.append(F.coalesce(F.octet_length(text), F.lit(0)))
            most_bytes.append(n_bytes[-1] * longer)
            if pa.types.is_string(column.type):
                aggregates.append(F.count_if(~F.is_valid_utf8(text)).alias(f"{id}_broken"))
    aggregates.append(F.sum(reduce(add, n_bytes)).alias("n_bytes"))
    aggregates.append(F.max(reduce(add, most_bytes)).alias("most_bytes"))
    # In a projection of their own: Spark takes identities for nondeterministic.
    unit = {f"{id}_read": source.columns[id] for id in source.schema.unit}
    if unit:
        named = [F.col(name).isNotNull() for name in unit]
        aggregates.append(F.count_if(~reduce(and_, named)).alias("nobody"))
    row = source.hashed().withColumns(unit).agg(*aggregates, *sum_halves()).head()
    return row.asDict() if row else {}


def _row_bytes(schema: Schema, figures: dict[str, Any]) -> int | None:
    """At least the most bytes of a row: its texts, and 16 for each other column."""
    if any(pa.types.is_nested(column.type) for column in schema.columns):
        return None
    return int(figures["most_bytes"]) + 16 * (len(schema.columns) + OWN_COLUMNS)


def _value(source: Source, column: Column) -> SparkColumn:
    """The column as kernels see it: NaN is missing, also in a target."""
    value = source.columns[column.id]
    return F.when(~F.isnan(value), value) if pa.types.is_floating(column.type) else value


def _problems(source: Source, figures: dict[str, Any]) -> Iterator[Problem]:
    """What is wrong with the values."""
    if figures["n"] == 0:
        yield refuse_no_rows()
        return
    for column in source.schema.columns:
        where = f"column {column.name}"
        if count := figures.get(f"{column.id}_failed"):
            yield Problem(
                where,
                f"{count} values can't be read as {source.casts[column.id]}; clean them, list what "
                "means missing under privacy.missing_tokens, or correct `type` and `layout`: texts "
                'such as 31.12.1980 need `layout: dd.MM.yyyy`, such as 1.234,5 `layout: "1.234,5"`',
            )
        if count := figures.get(f"{column.id}_infinite"):
            yield refuse_infinite(column, count)
        # Workers make codes of these texts; others they pass on as they are.
        coded = column.scale is not None or column.role in (Role.SENSITIVE, Role.TARGET)
        if coded and (count := figures.get(f"{column.id}_broken")):
            yield Problem(
                where,
                f"{count} texts are not UTF-8; write the source anew in UTF-8 (a CSV can name its "
                "own under source.options.encoding), or give it `role: drop`",
            )


def _unfit(source: Source, partition_by: tuple[str, ...]) -> Iterator[Problem]:
    """Columns that files can't be laid out by, since readers would find other values than some of
    theirs, or since no folder can have such a name. Cost: one aggregate, if there is a column of
    texts or times."""
    columns = [source.schema[name] for name in partition_by]
    faults = [(c, *fault) for c in columns for fault in _list_faults(c, source.columns[c.id])]
    counts = [F.count_if(is_bad) for _, is_bad, _ in faults]
    found = source.raw.agg(*counts).collect()[0] if counts else ()
    for (column, _, fault), n in zip(faults, found, strict=True):
        if n:
            yield Problem(
                f"column {column.name}",
                f"files can't be laid out by it: {n} values {fault}, or remove it from "
                "release.partition_by",
            )


def _list_faults(column: Column, value: SparkColumn) -> list[tuple[SparkColumn, str]]:
    """What may be wrong with a value in a folder's name: whether it is, and what to say of it."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        too_far = ~F.year(value).between(1, 9999)
        return [(too_far, "are before the year 1 or after 9999, which readers mistake; clean them")]
    if not pa.types.is_string(column.type):
        return []
    text = value.cast("string")
    parts = [F.regexp_replace(part, ESCAPED, "%00") for part in (F.lit(column.name), text)]
    return [
        (
            text.isin(*READ_AS_MISSING),
            f"are empty texts or {READ_AS_MISSING[1]}, which readers take for missing; clean them",
        ),
        (
            F.octet_length(F.concat_ws("=", *parts)) > LONGEST_FOLDER,
            f"are too long for the name of a folder ({LONGEST_FOLDER} bytes); shorten them",
        ),
        (
            F.contains(text, F.lit("\0")),
            "have a NUL character, which no folder's name can have; clean them",
        ),
    ]


def _values(
    source: Source, config: Config, prior_rows: DataFrame | None
) -> tuple[dict[str, Values], dict[str, Reference]]:
    """The number of persons with each value of the columns whose counts models look at: in the
    whole table, and in the source alone. With a unit, published rows count for nobody, and so they
    do for models that do not compare cells with the whole table.

    Raises ConfigError for a column with more than MAX_VALUES.
    """
    tokens, unit = config.privacy.missing_tokens, source.schema.unit
    models = bind_models(config.all_models, config.attributes)
    relative = {model.column for model in models if model.relative}
    values: dict[str, Values] = {}
    own: dict[str, Reference] = {}
    problems: list[Problem] = []
    for counted in find_counted_columns(config):
        column = source.schema[counted.name]
        value = make_canonical(source.columns[column.id], column.type, tokens).alias("value")
        persons = [source.columns[id].alias(id) for id in unit]
        frame = source.raw.select(value, F.lit(1).alias("own"), *persons)
        if prior_rows is not None and counted.name in relative:
            value = make_canonical(F.col(column.id), column.type, tokens)
            frame = frame.unionAll(prior_rows.select(value, F.lit(0), *[F.lit(None) for _ in unit]))
        own_count = count_units(unit) if unit else F.sum("own")
        counts = frame.groupBy("value").agg(
            count_units(unit).alias("count"), own_count.alias("own")
        )
        most = MAX_VALUES + 1  # with the missing ones
        table = counts.limit(most + 1).toArrow()
        if len(table) > most:  # some were not fetched: what is here has wrong counts
            problems.append(refuse_rich(counted.name, counted.model))
            continue
        try:
            values[column.id] = counted.arrange(_as_values(table, "count"))
            own[column.id] = counted.arrange(_as_values(table, "own")).reference
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return values, own


def _as_values(table: pa.Table, counts: str) -> Values:
    """The values in the order that the audit uses: that of Spark's folded text."""
    values = table.column("value").combine_chunks()
    count = table.column(counts).combine_chunks()
    missing = values.is_null()
    n_missing = int(pc.sum(count.filter(missing)).as_py() or 0)
    values, count = values.drop_null(), count.filter(pc.invert(missing))
    order = pc.sort_indices(values)
    values, rows = values.take(order), count.take(order).to_numpy().astype(np.int64)
    if pa.types.is_string(values.type):
        # Python knows other characters than the JVM: texts that it takes for one are one.
        texts = [fold_text(value) for value in values.to_pylist()]
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        rows = np.bincount([place[text] for text in texts], rows, len(place)).astype(np.int64)
        values = pa.array(list(place), pa.string())
    return Values(values, Reference(rows, n_missing))


def _encoding(column: Column, figures: dict[str, Any], facts: RowFacts) -> Encoding:
    values = facts.sample.column(column.id).combine_chunks()
    n_missing = int(figures[f"{column.id}_missing"])
    ends = tuple(float(figures.get(f"{column.id}_{end}") or 0.0) for end in ("low", "high"))
    categories = facts.categories.values.get(column.id)
    is_empty = 0 < n_missing == int(figures["n"])
    return fit_encoding(column, values, n_missing > 0, (ends[0], ends[1]), categories, is_empty)
