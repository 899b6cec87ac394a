"""Looks at tables: the first rows of a release, how often values occur (for hierarchies that are
built from them), and a table of invented people to try things out."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, StructType

from anonlib.config.model import Config
from anonlib.config.paths import find_manifest_path, is_local
from anonlib.errors import InputError
from anonlib.progress import Progress
from anonlib.source.generator import generate
from anonlib.source.resolved_source import open_columns
from anonlib.spark.session import session
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors

#: Most combinations of values that are counted.
MOST_COUNTED = 1_000_000


def count_values(config: Config, names: Sequence[str], progress: Progress) -> pa.Table:
    """The distinct combinations of the columns' values as v0, v1, ..., and how many rows have each
    as `count` (int64); null is missing. One pass over the source.

    Raises InputError for more than MOST_COUNTED, else as `open_source`.
    """
    with progress.stage("start"):
        spark = session(config.spark.conf)
    with progress.stage("count", spark), translate_errors("source", permission_error=InputError):
        frame = open_columns(spark, config, names)
        counts = frame.groupBy(*frame.columns).agg(F.count("*").alias("count"))
        table = counts.limit(MOST_COUNTED + 1).toArrow()
    if len(table) > MOST_COUNTED:
        raise InputError(
            f"column {', '.join(names)}: more than {MOST_COUNTED:,} distinct values, too "
            "many for a hierarchy; coarsen it"
        )
    return table


def read_published_rows(
    table: str, n_rows: int, *, force: bool = False
) -> tuple[list[str], list[list[str | None]]]:
    """Column names and some random rows, as text, of a table that anonlib has published. One pass
    over the table.

    Raises InputError if anonlib did not publish it, unless `force`.
    """
    spark = session()
    storage = Storage(spark, table)
    if not storage.has_table(storage.root):
        raise InputError(f"{table}: no Delta table is there")
    manifest = find_manifest_path(storage.root)
    is_ours = storage.exists(manifest)
    if not force and not is_ours:
        raise InputError(
            f"{table}: has no manifest, so anonlib has not published it and its rows may "
            "be raw; --force shows them all the same"
        )
    with translate_errors(f"table {table}"):
        frame = spark.read.format("delta").load(table)
        names = frame.columns
        forms = _read_forms(storage.read(manifest)) if is_ours else {}
        plain = frame.toDF(*[f"c{i}" for i in range(len(names))])
        texts = [
            _write_value(F.col(field.name), field.dataType, forms.get(name, "value"))
            for name, field in zip(names, plain.schema.fields, strict=True)
        ]
        rows = plain.select(*texts).orderBy(F.rand()).limit(n_rows).collect()
    return names, [list(row) for row in rows]


def _read_forms(manifest: str) -> dict[str, str]:
    """By column: the form of its released values, as far as the manifest tells."""
    return {c["name"]: c.get("form", "value") for c in json.loads(manifest).get("columns", ())}


def _write_value(value: Column, type: DataType, form: str) -> Column:
    """A released value as people read it. Spark's own text of an interval looks like a set, and
    that of a set like an interval."""
    if form == "interval" and isinstance(type, StructType):
        ends = [_write_value(value[e.name], e.dataType, "value") for e in type.fields]
        return F.concat(ends[0], F.lit(" to "), ends[1])
    if form == "set" and isinstance(type, ArrayType):
        each = F.transform(value, lambda e: _write_value(e, type.elementType, "value"))
        return F.concat(F.lit("{"), F.array_join(each, ", ", "null"), F.lit("}"))
    text = value.cast("string")
    is_float = isinstance(type, DoubleType | FloatType)
    return F.regexp_replace(text, r"\.0$", "") if is_float else text


def write_people(path: str, kind: str, rows: int, seed: int, progress: Progress) -> None:
    """Writes a table of invented people to a folder that is not there yet."""
    if is_local(path) and Path(path).exists():
        raise InputError(f"{path}: is there already; name another")
    with progress.stage("start"):
        spark = session()
    storage = Storage(spark, path)
    if storage.exists(storage.root):
        raise InputError(f"{path}: is there already; name another")
    with progress.stage("generate", spark), translate_errors(f"path {path}"):
        writer = generate(spark, rows, seed).write.format(kind)
        if kind == "csv":
            writer = writer.option("header", "true")
        writer.save(path)


def invent_people(rows: int, settings: Mapping[str, str], progress: Progress) -> pa.Table:
    """A table of invented people, the same at every call, on the driver. settings: Those of a Spark
    session that starts for it."""
    with progress.stage("start"):
        spark = session(settings)
    with progress.stage("generate", spark):
        return generate(spark, rows, seed=1).toArrow()
