"""Tables for looking at and trying things out: a release's first rows, and invented people."""

from anonlib.errors import InputError
from anonlib.progress import Progress
from anonlib.spark.errors import translated
from anonlib.spark.generator import generate
from anonlib.spark.session import session
from anonlib.spark.storage import Storage


def published_rows(
    table: str, n_rows: int, *, force: bool = False
) -> tuple[list[str], list[list[str | None]]]:
    """Column names and some rows, as text, of a table that anonlib has published.

    Raises InputError when it is none, unless `force`.
    """
    from pyspark.sql import functions as F

    spark = session()
    storage = Storage(spark, table)
    if not storage.exists(f"{storage.root}/_delta_log"):
        raise InputError(f"{table}: no Delta table is there")
    if not force and not storage.exists(f"{storage.root}/_anonlib/manifest.json"):
        text = "has no manifest, so anonlib has not published it and its rows may be raw"
        raise InputError(f"{table}: {text}; --force shows them all the same")
    with translated(f"table {table}"):
        frame = spark.read.format("delta").load(table)
        names = frame.columns
        texts = frame.toDF(*[f"c{i}" for i in range(len(names))])
        texts = texts.select(*[F.col(id).cast("string") for id in texts.columns])
        rows = texts.limit(n_rows).collect()
    return names, [list(row) for row in rows]


def write_people(path: str, kind: str, rows: int, seed: int, progress: Progress) -> None:
    """Writes a table of invented people to a folder that is not there yet."""
    with progress.stage("start"):
        spark = session()
    storage = Storage(spark, path)
    if storage.exists(storage.root):
        raise InputError(f"{path}: is there already")
    with progress.stage("generate", spark), translated(f"path {path}"):
        writer = generate(spark, rows, seed).write.format(kind)
        if kind == "csv":
            writer = writer.option("header", "true")
        writer.save(path)
