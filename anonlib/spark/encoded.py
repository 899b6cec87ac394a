"""Features of a released table for Spark ML: the same as `anonlib.encode` makes, as vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml.feature import VectorAssembler, VectorSizeHint
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from anonlib.encode import (
    Categories,
    Domain,
    Encoder,
    Hierarchies,
    about,
    domains_of,
    encoders_of,
)
from anonlib.errors import InputError, sanitized


def encoded(
    frame: DataFrame,
    columns: Mapping[str, Any],
    hierarchies: Hierarchies | None = None,
    categories: Categories | None = None,
    output: str = "features",
) -> tuple[DataFrame, tuple[str, ...]]:
    """The table with a column of vectors, sparse where that is smaller, and the features' names.

    Arguments as for `anonlib.encode.encode`, of which this is the result, row by row. Every column
    is encoded once for each of its distinct values, which a release has few of; these are joined
    to the rows. Cost: a distinct and a join for each column; for columns by category, if
    `categories` lacks them, another distinct whose values the driver collects.

    Raises InputError, with the column, where one can't be encoded so.
    """
    encoders = encoders_of(columns)
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
    domains = domains_of(encoders, hierarchies or {}, {**known, **(categories or {})})
    names = {name: each.names(name, domains[name]) for name, each in encoders.items()}
    for i, (name, encoder) in enumerate(encoders.items()):
        values = rows.select(F.col(place[name]).alias(f"value{i}")).distinct()
        vectors = _vectors(name, encoder, domains[name])
        pairs = values.withColumn(f"dense{i}", vectors(f"value{i}"))
        # Without the size, an assembler runs a job to find it; it writes vectors in the smaller of
        # their forms.
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


def _vectors(name: str, encoder: Encoder, domain: Domain) -> Any:
    """A function of a column of released values: their features as dense vectors."""
    # Told without annotations that it takes an array and gives one: that is what pyspark takes a
    # lambda for. Its stubs ask for the type, which it warns of.
    dense: Any = arrow_udf(  # type: ignore[call-overload]
        lambda batch: _dense(batch, name, encoder, domain), T.ArrayType(T.DoubleType())
    )
    return lambda values: array_to_vector(dense(values))


def _dense(batch: pa.Array, name: str, encoder: Encoder, domain: Domain) -> pa.Array:
    """list<double>[n]: the features of released values."""

    def work() -> pa.Array:
        with about(name):
            features = encoder.features(batch, domain).toarray()
        n, f = features.shape
        offsets = pa.array(np.arange(n + 1, dtype=np.int32) * f)
        return pa.ListArray.from_arrays(offsets, pa.array(features.ravel()))

    return sanitized(f"encoding column {name}", work)
