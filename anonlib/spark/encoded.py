"""Features of a released table for Spark ML: those of `anonlib.encode`, as vectors."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml.feature import VectorAssembler, VectorSizeHint
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.encode import (
    Categories,
    Encoder,
    EncoderDomain,
    Hierarchies,
    about,
    build_encoders,
    make_domains,
)
from anonlib.errors import InputError, run_sanitized

_DENSE = T.StructField("dense", T.ArrayType(T.DoubleType()))


def encode_frame(
    frame: DataFrame,
    columns: Mapping[str, Any],
    hierarchies: Hierarchies | None = None,
    categories: Categories | None = None,
    output: str = "features",
) -> tuple[DataFrame, tuple[str, ...]]:
    """Adds a column of feature vectors to a released table.

    The features are those of `anonlib.encode.encode`. Each distinct value of a column is encoded
    once, since a release has few of them, and joined to the rows. Cost: a distinct and a join per
    column; for a column by category that is not in `categories`, another distinct, whose values the
    driver collects.

    Args:
        frame: The released table.
        columns: As for `anonlib.encode.encode`.
        hierarchies: As for `anonlib.encode.encode`.
        categories: As for `anonlib.encode.encode`.
        output: The name of the new column.

    Returns:
        The table with the vectors, each sparse if that is smaller; and the names of the features.

    Raises:
        InputError: A column can't be encoded like this. The text names the column.
    """
    encoders = build_encoders(columns)
    for name in encoders:
        if name not in frame.columns:
            raise InputError(f"column {name}: not in the table")
    if output in frame.columns:
        raise InputError(f"output: the table has a column {output} already; name another")
    place = {name: f"c{i}" for i, name in enumerate(frame.columns)}
    rows = frame.toDF(*place.values())
    known = {
        name: _categories(rows.select(place[name]), name, encoder)
        for name, encoder in encoders.items()
        if encoder.needs_categories and name not in (categories or {})
    }
    domains = make_domains(encoders, hierarchies or {}, {**known, **(categories or {})})
    names = {name: each.names(name, domains[name]) for name, each in encoders.items()}
    for i, (name, encoder) in enumerate(encoders.items()):
        values = rows.select(F.col(place[name]).alias(f"value{i}")).distinct()
        work = partial(_dense, name=name, encoder=encoder, domain=domains[name])
        pairs = values.mapInArrow(work, T.StructType([values.schema[0], _DENSE]))
        pairs = pairs.withColumn(f"dense{i}", array_to_vector(F.col("dense"))).drop("dense")
        # Without the size, an assembler runs a job to find it. The assembler picks the smaller form
        # of each vector, dense or sparse.
        sized = VectorSizeHint(inputCol=f"dense{i}", size=len(names[name]))
        assembler = VectorAssembler(inputCols=[f"dense{i}"], outputCol=f"vector{i}")
        pairs = assembler.transform(sized.transform(pairs)).drop(f"dense{i}")
        rows = rows.join(pairs, F.col(place[name]).eqNullSafe(F.col(f"value{i}")), "left")
    parts = [f"vector{i}" for i in range(len(encoders))]
    rows = VectorAssembler(inputCols=parts, outputCol="vectors").transform(rows)
    rows = rows.select(*place.values(), "vectors").toDF(*frame.columns, output)
    return rows, tuple(name for each in names.values() for name in each)


def _categories(rows: DataFrame, name: str, encoder: Encoder) -> tuple[str, ...]:
    values = rows.distinct().toArrow().column(0).combine_chunks()
    with about(name):
        return tuple(sorted(encoder.found(values)))


def _dense(
    batches: Iterator[pa.RecordBatch], *, name: str, encoder: Encoder, domain: EncoderDomain
) -> Iterator[pa.RecordBatch]:
    """Adds the features to batches with one column, the released values."""

    def encode(values: pa.Array) -> pa.Array:
        with about(name):
            features = encoder.features(values, domain).toarray()
        n, f = features.shape
        offsets = pa.array(np.arange(n + 1, dtype=np.int32) * f)
        return pa.ListArray.from_arrays(offsets, pa.array(features.ravel()))

    for batch in batches:
        dense = run_sanitized(f"encoding column {name}", partial(encode, batch.column(0)))
        yield pa.record_batch([batch.column(0), dense], [batch.schema.names[0], _DENSE.name])
