"""Rows that lie on a cut but for rounding: Spark, memory and tasks send each to the same side."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.partition import flatten_tree, send_rows
from anonlib.run import block_plan
from anonlib.run.leaves import LEAF, compile_tree, with_leaf
from anonlib.run.scan import scan
from anonlib.run.staging import make_run_task
from anonlib.source.resolved_source import open_source
from anonlib.table.columns import HASH
from anonlib.worker.marks import NO_MARKS
from anonlib.worker.task import to_block
from tests.spark.test_release import ROWS, config
from tests.trees import grow_on_ties, send_by_sample


@pytest.mark.spark
@pytest.mark.parametrize("mixed", [False, True])
def test_rows_on_a_cut(spark: SparkSession, tmp_path: Path, mixed: bool) -> None:
    parsed = anonlib.parse(config(tmp_path))
    source = open_source(spark, parsed)
    scanned = scan(source, parsed)
    task = make_run_task(parsed, source.schema, scanned, b"", b"", NO_MARKS)
    sample, _, _ = block_plan._sample(scanned, task, None)
    _, table = to_block(scanned.sample, task)
    assert sample.block.n == ROWS
    for seed in range(5):
        tree = grow_on_ties(sample, np.random.default_rng(seed), mixed=mixed)
        expected = send_by_sample(tree, sample)
        in_tasks = send_rows(flatten_tree(tree, sample), sample.block, np.zeros(ROWS, np.int64))
        assert in_tasks.tolist() == expected.tolist()
        compiled = compile_tree(tree, sample, scanned.encodings, scanned.hashes)
        walked = with_leaf(source.rows(), source.schema, *compiled, F.lit(0))
        leaf_of = {row[HASH]: row[LEAF] for row in walked.select(HASH, LEAF).collect()}
        found = [leaf_of[each] for each in table.column(HASH).to_pylist()]
        assert np.flatnonzero(np.array(found) != expected).tolist() == []
