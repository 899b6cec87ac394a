"""Cuts that rows lie on, but for rounding: plans in Spark and in memory send each to one side."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.arrays import Ints
from anonlib.partition import Among, Below, CutTree, Grower, Plane, Sample
from anonlib.partition.cuts import score_rows, with_threshold
from anonlib.run import block_plan
from anonlib.run.leaves import LEAF, compile_tree, with_leaf
from anonlib.run.scan import scan
from anonlib.run.staging import make_run_task
from anonlib.source.resolved_source import open_source
from anonlib.table.columns import HASH
from anonlib.worker.marks import NO_MARKS
from anonlib.worker.task import to_block
from tests.spark.test_release import ROWS, config


def grow_on_ties(sample: Sample, random: np.random.Generator, *, mixed: bool) -> CutTree:
    """Planes of random weights through rows, and cuts of single columns if `mixed`."""
    grower, n = Grower(1, sample), sample.coordinates.shape[1]
    p, q = sample.block.numeric.shape[1], sample.block.nominal.shape[1]
    at = {0: np.arange(sample.block.n)}
    for turn in range(40):
        leaf = max(at, key=lambda leaf: len(at[leaf]))
        rows = at.pop(leaf)
        cut: Plane | Below | Among
        if mixed and turn % 3 == 1:
            column = int(random.integers(p + q))
            cut = Below(column, float(random.choice(sample.values[rows, column])))
        elif mixed and turn % 3 == 2:
            column = p + int(random.integers(q))
            codes = np.unique(random.choice(sample.values[rows, column], 3)).astype(np.int64)
            cut = Among(column, codes)
        else:
            weights = random.normal(size=n).astype(np.float32)
            points = sample.points[rows]
            score = score_rows(with_threshold(weights[None], np.zeros(1)), points)
            cut = Plane(weights, float(random.choice(score)))
        side = sample.left(cut, rows)
        left, right = grower.cut(leaf, cut)
        at |= {left: rows[side], right: rows[~side]}
    return grower.tree()


def send_by_sample(tree: CutTree, sample: Sample) -> Ints:
    """The leaf of each row, cut by cut, as trees grow."""
    leaf = np.empty(sample.block.n, np.int64)
    below = [(int(tree.roots[0]), np.arange(sample.block.n))]
    while below:
        node, rows = below.pop()
        if node < 0:
            leaf[rows] = -1 - node
        else:
            side = sample.left(tree.cuts[node], rows)
            below += [(int(tree.left[node]), rows[side]), (int(tree.right[node]), rows[~side])]
    return leaf


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
        compiled = compile_tree(tree, sample, scanned.encodings, scanned.hashes)
        walked = with_leaf(source.rows(), source.schema, *compiled, F.lit(0))
        leaf_of = {row[HASH]: row[LEAF] for row in walked.select(HASH, LEAF).collect()}
        found = [leaf_of[each] for each in table.column(HASH).to_pylist()]
        assert np.flatnonzero(np.array(found) != expected).tolist() == []
