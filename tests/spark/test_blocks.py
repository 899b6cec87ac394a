"""Plans in Spark: rows get the leaf that the plan says, leaves are counted exactly, and heavy
tuples are dealt out."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame

import anonlib
from anonlib.arrays import Ints
from anonlib.partition import CutTree, leaf_plan
from anonlib.partition.chain import grow
from anonlib.partition.cuts import Cuts
from anonlib.partition.leaf_plan import Pools
from anonlib.partition.repair import IN_TASK
from anonlib.run import block_plan
from anonlib.run.leaves import LEAF, LEVELS, CutFeature, compile_tree, with_leaf
from anonlib.run.scan import scan
from anonlib.run.staging import make_run_task
from anonlib.source.generator import generate
from anonlib.source.resolved_source import open_source
from anonlib.spark.constants import at
from anonlib.spark.tasks import find_task_keys
from anonlib.table.columns import BLOCK, HASH, POOL
from anonlib.worker.marks import NO_MARKS
from anonlib.worker.task import to_block
from tests.spark.support import measure_methods, multiset
from tests.spark.test_release import ROWS, config


@pytest.mark.spark
@pytest.mark.parametrize("weighed", [1, 20])
def test_a_deep_walk_is_compiled(compiling: SparkSession, tmp_path: Path, weighed: int) -> None:
    """HotSpot compiles no method above 8,000 bytes; wide rows take many of them."""
    ids = [f"c{i}" for i in range(40)]
    written = compiling.range(9).select(*[F.rand(i).alias(id) for i, id in enumerate(ids)])
    written.write.parquet(f"{tmp_path}/rows")
    schema: Any = SimpleNamespace(by_id=lambda id: SimpleNamespace(type=pa.float64()))
    n, leaves = 2 * LEVELS + 1, -1 - np.arange(2 * LEVELS + 2)
    right = np.append(np.arange(1, n), leaves[-1]).astype(np.int32)  # a chain: the deepest tree
    cuts = Cuts(
        np.repeat(np.arange(20)[None] < weighed, n, axis=0).astype(np.float32),
        np.zeros(n, np.float32),
        leaves[:-1].astype(np.int32),
        right,
        np.zeros(1, np.int32),
    )
    features = tuple(CutFeature(id, "number") for id in ids[:20])
    rows = compiling.read.parquet(f"{tmp_path}/rows")
    walked = with_leaf(rows, schema, features, cuts, F.lit(0))
    assert 0 < measure_methods(walked) < 8000
    assert {row[LEAF] for row in walked.collect()} == {n}


@pytest.mark.spark
@pytest.mark.parametrize("step", ["kmeans", "mondrian"])
def test_leaves_are_those_of_the_plan(spark: SparkSession, tmp_path: Path, step: str) -> None:
    """The JVM's walk of the tree and the one in which it was grown agree on every row."""
    partition = {"steps": [{"type": step}], "max_rows": 100}
    parsed = anonlib.parse(config(tmp_path, partition=partition))
    source = open_source(spark, parsed)
    scanned = scan(source, parsed)
    rows, schema = source.rows(), source.schema
    task = make_run_task(parsed, source.schema, scanned, b"", b"", NO_MARKS)
    sample, root, _ = block_plan._sample(scanned, task, None)
    assert sample.share == 1.0
    grown = grow(sample, parsed.partition.steps, 100, 7, root, np.array([ROWS]))
    found, cuts = compile_tree(grown.tree, sample, scanned.encodings, scanned.hashes)
    assert cuts.n_leaves >= 12
    walked = with_leaf(rows, schema, found, cuts, F.lit(0)).select(HASH, LEAF).collect()
    leaf_of = {row[HASH]: row[LEAF] for row in walked}
    _, table = to_block(scanned.sample, task)
    hashes = table.column(HASH).to_pylist()
    assert [leaf_of[h] for h in hashes] == grown.leaf.tolist()

    planned = block_plan.plan_blocks(
        rows, schema, scanned, parsed.partition, parsed.attributes, 0, task, count=True
    )
    numbered = block_plan.with_blocks(rows, schema, planned).groupBy(BLOCK).count().collect()
    assert sum(row["count"] for row in numbered) == ROWS
    assert {row[BLOCK] for row in numbered} == set(range(planned.n_blocks))


@pytest.mark.spark
def test_values_are_counted_without_a_filter_by_block(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would repeat the walk of the tree in the filter: 4.0 without end."""
    models = [
        {"type": "k_anonymity", "k": 5},
        {"type": "alpha_k", "alpha": 0.5, "attribute": "diagnosis"},
    ]
    partition = {"steps": [{"type": "kmeans"}], "max_rows": 100}
    privacy = {"models": models, "acknowledge_unique": ["income"]}
    parsed = anonlib.parse(config(tmp_path, partition=partition, privacy=privacy))
    source = open_source(spark, parsed)
    scanned = scan(source, parsed)
    task = make_run_task(parsed, source.schema, scanned, b"", b"", NO_MARKS)
    plans, collected = [], DataFrame.toArrow

    def noted(frame: DataFrame) -> pa.Table:
        plans.append(frame._jdf.queryExecution().analyzed().toString())
        return collected(frame)

    monkeypatch.setattr(DataFrame, "toArrow", noted)
    block_plan.plan_blocks(
        source.rows(),
        source.schema,
        scanned,
        parsed.partition,
        parsed.attributes,
        0,
        task,
        count=True,
    )
    counting = [plan for plan in plans if BLOCK in plan and "value" in plan]
    assert counting
    filters = [line for plan in counting for line in plan.splitlines() if "Filter " in line]
    assert filters
    assert not [line for line in filters if BLOCK in line]


@pytest.mark.spark
@pytest.mark.parametrize("n_tasks", [1, 3, 16])
def test_spark_sends_keys_to_their_tasks(spark: SparkSession, n_tasks: int) -> None:
    keys = find_task_keys(n_tasks)
    rows = spark.range(n_tasks).withColumn("key", at(keys, F.col("id").cast("int")))
    dealt = rows.repartition(n_tasks, "key").withColumn("task", F.spark_partition_id())
    assert {(row.id, row.task) for row in dealt.collect()} == {(i, i) for i in range(n_tasks)}


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
            "source": {"format": "dataframe"},
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
    rows = source.rows()
    task = make_run_task(parsed, source.schema, scanned, b"", b"", NO_MARKS)
    planned = block_plan.plan_blocks(
        rows, source.schema, scanned, parsed.partition, parsed.attributes, 0, task, count=True
    )
    assert planned.deal.largest >= 2700
    assert len(planned.heavy) == 1
    assert planned.deal.buckets.max() >= 20
    sizes = block_plan.with_blocks(rows, source.schema, planned).groupBy(BLOCK).count()
    largest = sizes.agg(F.max("count")).collect()[0][0]
    assert largest <= IN_TASK * 100
    result = anonlib.release(parsed, dataframe=frame)
    assert result.audit is not None
    assert result.audit.passed
    assert result.n_rows_out == n


def pool_each(tree: CutTree, sizes: Ints, max_rows: int) -> Pools:
    """A pool for each leaf."""
    each = np.arange(len(sizes))
    return Pools(tree, each, each)


@pytest.mark.spark
@pytest.mark.parametrize("steps", [["kmeans"], ["mondrian"], ["target_tree", "kmeans"]])
def test_tasks_find_the_leaves_of_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[str]
) -> None:
    """They are those that the JVM finds in the whole forest; for pools, it walks the trunk only."""
    monkeypatch.setattr(leaf_plan, "BLOCKS_PER_POOL", 2)
    partition = {"steps": [{"type": step} for step in steps], "max_rows": 100}
    given = {"format": "generator", "rows": 2000, "seed": 3}
    parsed = anonlib.parse(config(tmp_path, source=given, partition=partition))
    source = open_source(spark, parsed)
    scanned = scan(source, parsed)
    rows, schema = source.rows(), source.schema
    task = make_run_task(parsed, schema, scanned, b"", b"", NO_MARKS)
    limits = parsed.attributes, 0, task
    planned = block_plan.plan_blocks(rows, schema, scanned, parsed.partition, *limits, count=False)
    assert planned.pools is not None
    n_pools = int(planned.pools.of_leaf.max()) + 1
    assert 4 <= n_pools <= planned.n_blocks / 2
    whole = block_plan.plan_blocks(rows, schema, scanned, parsed.partition, *limits, count=True)
    assert planned.cuts.depth < whole.cuts.depth
    walked = with_leaf(rows, schema, whole.features, whole.cuts, F.lit(0))
    leaf_of = {row[HASH]: row[LEAF] for row in walked.select(HASH, LEAF).collect()}
    sent = block_plan.with_pools(rows, schema, planned).toArrow()
    task = replace(task, pools=planned.pools.of_leaf, tree=planned.tree)
    _, table = to_block(sent, task)
    expected = [leaf_of[each] for each in table.column(HASH).to_pylist()]
    assert table.column(BLOCK).to_pylist() == expected
    assert len({*expected}) == planned.n_blocks
    assert n_pools == len({*sent.column(POOL).to_pylist()})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("steps", "n_tasks", "grouped_map"),
    [
        (["kmeans"], 1, "pandas"),
        (["mondrian"], 3, "arrow"),
        (["kmeans", "target_clusters"], 7, "arrow"),
    ],
)
def test_any_number_of_tasks_releases_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[str],
    n_tasks: int,
    grouped_map: str,
) -> None:
    """The table has several pools, and blocks are merged in some."""
    monkeypatch.setattr(leaf_plan, "BLOCKS_PER_POOL", 1)
    given = config(tmp_path, spark={"partitions": n_tasks, "grouped_map": grouped_map})
    given["partition"] = {"steps": [{"type": step} for step in steps], "max_rows": 100}
    given["privacy"]["models"][0]["k"] = 76
    result = anonlib.release(given)
    plan = json.loads(Path(result.record).read_text("utf-8"))["plan"]
    assert plan["n_pools"] >= 3
    some_fail = steps != ["mondrian"]  # which cuts as far as k allows
    assert (plan["n_leaves"] > result.n_blocks) == some_fail
    alone = anonlib.anonymize(generate(spark, ROWS, 3).toArrow(), given)
    assert alone.record["n_blocks"] == result.n_blocks
    rows = multiset(spark.read.format("delta").load(result.table))
    assert rows == multiset(spark.createDataFrame(alone.table))


@pytest.mark.spark
def test_tasks_count_blocks_and_merge_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing reads the source to count blocks. Some fail, and find others in their unit; the same
    rows are released as in memory, where no pools are dealt. Pools that fail as a whole make Spark
    count."""
    counts: list[int] = []
    whole = block_plan.count_leaves

    def note(*how: Any, **more: Any) -> Any:
        counts.append(1)
        return whole(*how, **more)

    monkeypatch.setattr(block_plan, "count_leaves", note)
    partition = {"steps": [{"type": "kmeans"}], "max_rows": 100}
    models = [
        {"type": "k_anonymity", "k": 5},
        {"type": "l_diversity", "l": 4, "attribute": "diagnosis"},
    ]
    privacy = {"models": models, "acknowledge_unique": ["income"]}

    given = config(tmp_path, partition=partition, privacy=privacy, spark={"partitions": 5})
    given["source"] = {"format": "generator", "rows": 1000, "seed": 3}
    given["release"] |= {"mode": "overwrite", "acknowledge_overwrite": True}

    def release() -> Any:
        result = anonlib.release(given)
        assert result.audit is not None
        assert result.audit.passed
        return result

    result = release()
    assert counts == []
    alone = anonlib.anonymize(generate(spark, 1000, 3).toArrow(), given)
    assert alone.record["n_blocks"] == result.n_blocks
    rows = multiset(spark.read.format("delta").load(result.table))
    assert rows == multiset(spark.createDataFrame(alone.table))

    models[0]["k"] = 45  # leaves have about 50 rows; each is a pool here
    monkeypatch.setattr(leaf_plan, "make_pools", pool_each)
    counted = release()
    assert counts
    assert counted.n_blocks < result.n_blocks
    assert counted.n_rows_out == result.n_rows_out


@pytest.mark.spark
def test_generator_is_what_the_quickstart_reads(spark: SparkSession) -> None:
    parsed = anonlib.load(Path(__file__).parents[2] / "conf/quickstart.yaml")
    assert list(parsed.attributes) == generate(spark, 1, 0).columns
