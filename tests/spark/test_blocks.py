"""Plans in Spark: rows get the leaf that the plan says, leaves are counted exactly, and heavy
tuples are dealt out."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.resolve import bound_models, with_ids
from anonlib.spark import blocks
from anonlib.spark.features import features
from anonlib.spark.generator import generate
from anonlib.spark.scan import scan
from anonlib.spark.source import open_source
from anonlib.work import BLOCK, HASH
from tests.spark.test_release import config


@pytest.mark.spark
def test_leaves_are_those_of_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    """The JVM's walk of the tree and numpy's agree on every row, and so do the counts."""
    parsed = anonlib.parse(config(tmp_path))
    source = open_source(spark, parsed)
    scanned = scan(source, parsed)
    rows, schema = source.rows(), source.schema
    found, values = features(schema, scanned.encodings, scanned.hashes, scanned.sample)
    assert {feature.form for feature in found} == {"number", "rank", "missing", "category"}
    cuts = blocks._fit(values, scanned.n_rows, parsed)
    assert cuts.n_leaves == 12
    expected = cuts.assign(values)
    walked = blocks.with_leaf(rows, schema, found, cuts).select(HASH, blocks.LEAF).collect()
    leaf_of = {row[HASH]: row[blocks.LEAF] for row in walked}
    hashes = scanned.sample.column(HASH).to_pylist()
    assert [leaf_of[h] for h in hashes] == expected.tolist()

    models = with_ids(bound_models(parsed), schema)
    with_leaves = blocks.with_leaf(rows, schema, found, cuts)
    counts = blocks._count(with_leaves, schema, scanned, models, parsed, cuts.n_leaves)
    assert counts.n_rows.tolist() == np.bincount(expected, minlength=12).tolist()
    planned = blocks.plan(rows, schema, scanned, parsed, models)
    numbered = blocks.with_blocks(rows, schema, planned).groupBy(BLOCK).count().collect()
    assert sum(row["count"] for row in numbered) == 3000
    assert {row[BLOCK] for row in numbered} <= set(range(planned.n_blocks))


@pytest.mark.spark
def test_a_repeated_tuple_is_dealt_out(spark: SparkSession, tmp_path: Path) -> None:
    """Most rows are one tuple: its leaf becomes buckets, each of which holds the models."""
    n = 3000
    frame = spark.range(n).select(
        F.when(F.col("id") < 0.9 * n, 40).otherwise(F.col("id") % 90).cast("double").alias("age"),
        F.concat(F.lit("d"), (F.col("id") % 7).cast("string")).alias("diagnosis"),
        F.col("id").alias("person"),
    )
    parsed = anonlib.parse(
        {
            "source": {"format": "dataframe", "path": "given"},
            "attributes": {
                "age": {"role": "quasi_identifier", "scale": "continuous"},
                "diagnosis": {"role": "sensitive"},
                "person": {"role": "identifier"},
            },
            "one_row_per_person": "person",
            "privacy": {
                "models": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]
            },
            "partition": {"max_rows": 100},
            "release": {"path": str(tmp_path / "table")},
        }
    )
    source = open_source(spark, parsed, frame)
    scanned = scan(source, parsed)
    models = with_ids(bound_models(parsed), source.schema)
    rows = source.rows()
    planned = blocks.plan(rows, source.schema, scanned, parsed, models)
    assert planned.largest >= 2700
    assert planned.buckets.max() >= 20
    sizes = blocks.with_blocks(rows, source.schema, planned).groupBy(BLOCK).count()
    largest = sizes.agg(F.max("count")).collect()[0][0]
    assert largest <= blocks.IN_TASK * 100
    result = anonlib.release(parsed, dataframe=frame)
    assert result.audit is not None
    assert result.audit.passed
    assert result.n_rows_out == n


@pytest.mark.spark
def test_generator_is_what_the_quickstart_reads(spark: SparkSession) -> None:
    parsed = anonlib.load(Path(__file__).parents[2] / "conf/quickstart.yaml")
    assert list(parsed.attributes) == generate(spark, 1, 0).columns
