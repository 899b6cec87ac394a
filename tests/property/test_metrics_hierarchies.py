"""Metrics of generalization and of classes, row by row as they are defined; and with rows that
have no cell, that stand for several, or that are released at levels."""

from collections import Counter
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycanon.anonymity import k_anonymity
from pycanon.anonymity.utils.aux_anonymity import get_equiv_class

from anonlib import registry
from anonlib.hierarchy.tree import Tree
from anonlib.kernels.full_domain import FullDomain
from anonlib.loss import Metric, ReleasedBlock, list_metrics
from anonlib.loss.average_class_size import AverageClassSize
from anonlib.loss.cell_size import CellSize
from anonlib.loss.classification import Classification
from anonlib.loss.discernibility import Discernibility
from anonlib.loss.entropy import MOST_NODES, Entropy
from anonlib.loss.ncp import Ncp, penalize
from anonlib.loss.nllm import Nllm
from anonlib.loss.precision import Precision
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.block import part
from tests.oracles_full_domain import generalizable, released_at, trees_of
from tests.support import blocks, make_block

QUICK = settings(max_examples=40)
METRICS: list[Metric] = [registry.build("metric", spec) for spec in list_metrics(bound=False)]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.type)


@st.composite
def releases(draw: st.DrawFn) -> ReleasedBlock:
    """Nominal columns, some with hierarchies; any cells, some rows without; levels, or none."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    block = generalizable(draw(blocks(max_columns=1)), random)
    block = part(block, np.arange(min(block.n, 40)))
    if draw(st.booleans()):
        block = replace(block, weight=random.integers(1, 4, block.n), unit=None)
    id = random.integers(draw(st.sampled_from([0, -1])), draw(st.integers(1, 9)), block.n)
    id[0] = 0
    kept, id = id >= 0, id.astype(np.int64)
    id[kept] = np.unique(id[kept], return_inverse=True)[1]
    levels = None
    if draw(st.booleans()):
        levels = np.array(
            [random.integers(0, t.heights[-1] + 1) for t in trees_of(block)], np.int64
        )
    return ReleasedBlock(block, id, int(id.max()) + 1, levels)


def value(metric: Metric, released: ReleasedBlock) -> float | None:
    return metric.value(metric.update(released))


def rows(released: ReleasedBlock) -> list[int]:
    """The rows of the block, each as often as it counts."""
    return np.repeat(np.arange(released.block.n), released.weight).tolist()


def node(released: ReleasedBlock, row: int, j: int) -> int:
    """What a row is released as."""
    block, tree = released.block, released.trees[j]
    cell = released.id[row]
    if cell < 0:
        return len(tree.parent) - 1
    codes = block.nominal[released.id == cell, j]
    found = int(codes.min())
    while not tree.low[found] <= codes.min() <= codes.max() < tree.high[found]:
        found = int(tree.parent[found])
    if released.levels is None:
        return found
    raised = released_at(tree, int(codes.min()), int(released.levels[j]))
    return max(found, raised, key=lambda each: (tree.high[each] - tree.low[each], each))


def varying(released: ReleasedBlock) -> list[int]:
    return np.flatnonzero(released.block.n_categories > 1).tolist()


@given(releases())
@QUICK
def test_nllm(released: ReleasedBlock) -> None:
    forest = released.trees
    lost = [
        forest[j].loss[node(released, i, j)] if released.id[i] >= 0 else 1.0
        for i in rows(released)
        for j in varying(released)
    ]
    found = value(Nllm(), released)
    assert found == (pytest.approx(np.mean(lost), abs=1e-12) if lost else None)
    assert found is None or 0 <= found <= 1 + 1e-12
    levels = [0] * len(forest) if released.levels is None else released.levels.tolist()
    if all(tree or level for tree, level in zip(released.block.trees, levels, strict=True)):
        assert value(Ncp(), released) == pytest.approx(found, abs=1e-12)


@given(releases())
@QUICK
def test_precision(released: ReleasedBlock) -> None:
    forest = released.trees
    kept = [
        1 - forest[j].heights[node(released, i, j)] / forest[j].heights[-1]
        for i in rows(released)
        for j in varying(released)
    ]
    found = value(Precision(), released)
    assert found == (pytest.approx(np.mean(kept), abs=1e-12) if kept else None)


@given(releases())
@QUICK
def test_entropy(released: ReleasedBlock) -> None:
    bits = whole = 0.0
    for j, tree in enumerate(released.trees):
        codes = released.block.nominal[:, j].tolist()
        count = Counter(codes[i] for i in rows(released))
        for i in rows(released):
            as_node = node(released, i, j)
            under = sum(count[code] for code in range(tree.low[as_node], tree.high[as_node]))
            bits -= log2(count[codes[i]] / under)
            whole -= log2(count[codes[i]] / released.n)
    found = value(Entropy(), released)
    assert found == (pytest.approx(bits / whole, abs=1e-9) if whole > 0 else None)
    assert found is None or -1e-12 <= found <= 1 + 1e-12


@given(releases())
@QUICK
def test_classes(released: ReleasedBlock) -> None:
    id, every = released.id, rows(released)
    sizes = Counter(int(id[i]) for i in every)
    suppressed = sizes.pop(-1, 0)
    k = released.block.min_rows
    expected = sum(size**2 for size in sizes.values()) + suppressed * len(every)
    assert value(Discernibility(), released) == expected
    mean = (len(every) - suppressed) / len(sizes)
    assert value(CellSize(), released) == pytest.approx(mean)
    assert value(AverageClassSize(), with_k(released, k)) == pytest.approx(mean / k)


def with_k(released: ReleasedBlock, k: int) -> ReleasedBlock:
    block = replace(released.block, models=(KAnonymity(k=k),))
    return ReleasedBlock(block, released.id, released.m, released.levels)


@given(releases())
@QUICK
def test_classification(released: ReleasedBlock) -> None:
    block = released.block
    found = value(Classification(), released)
    if block.n_classes == 0:
        assert found is None
        return
    assert block.target is not None
    wrong = 0
    for cell in set(released.id.tolist()):
        labels = Counter(block.target[i] for i in rows(released) if released.id[i] == cell)
        wrong += labels.total() - (max(labels.values()) if cell >= 0 else 0)
    assert found == pytest.approx(wrong / released.n)


@every_metric
@given(releases(), st.integers(0, 99))
@QUICK
def test_blocks_merged_are_the_whole(metric: Metric, released: ReleasedBlock, seed: int) -> None:
    of_cell = np.random.default_rng(seed).integers(0, 3, released.m + 1)
    of_row = of_cell[released.id]  # rows without a cell: with the last
    states = []
    for some in (np.flatnonzero(of_row == i) for i in range(3) if (of_row == i).any()):
        id = released.id[some]
        kept = id >= 0
        id[kept] = np.unique(id[kept], return_inverse=True)[1]
        block = part(released.block, some)
        states.append(metric.update(ReleasedBlock(block, id, int(id.max()) + 1, released.levels)))
    merged = states[0]
    for state in states[1:]:
        merged = metric.merge(merged, state)
    whole = metric.update(released)
    assert merged.dtype == whole.dtype == np.float64
    assert merged == pytest.approx(whole, rel=1e-9, abs=1e-9)
    figure = metric.value(whole)
    assert metric.value(merged) == (None if figure is None else pytest.approx(figure, abs=1e-9))


@every_metric
@given(releases())
@QUICK
def test_a_row_with_a_weight_is_as_many_rows(metric: Metric, released: ReleasedBlock) -> None:
    each = np.array(rows(released))
    block = replace(part(released.block, each), weight=None)
    plain = ReleasedBlock(block, released.id[each], released.m, released.levels)
    expected = metric.update(plain)
    assert metric.update(released) == pytest.approx(expected, rel=1e-12, abs=1e-9)


#: Two towns in each of two counties.
TOWNS = Tree(
    np.array([4, 4, 5, 5, 6, 6, 6]),
    np.array([0, 1, 2, 3, 0, 2, 0]),
    np.array([1, 2, 3, 4, 2, 4, 4]),
    np.array([0, 0, 0, 0, 1 / 3, 1 / 3, 1]),
)


def towns(codes: list[int], cells: list[int], levels: Any = None) -> ReleasedBlock:
    block = make_block(np.zeros((len(codes), 0)), np.array(codes)[:, None])
    block = replace(block, trees=(TOWNS,), n_categories=np.array([4]))
    levels = None if levels is None else np.array(levels)
    return ReleasedBlock(block, np.array(cells, np.int64), max(cells) + 1, levels)


def test_by_hand() -> None:
    # A county, a town, and a row of each county together: 1/3, 0 and 1 lost of two rows each.
    found = towns([0, 1, 2, 2, 1, 3], [0, 0, 1, 1, 2, 2])
    assert value(Nllm(), found) == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert value(Ncp(), found) == value(Nllm(), found)
    assert value(Precision(), found) == pytest.approx(1 - (1 / 2 + 0 + 1) / 3)
    # Towns have 1, 2, 2 and 1 of 6 rows, counties 3 each.
    bits = log2(3) + log2(3 / 2) + log2(6 / 2) + log2(6)
    assert value(Entropy(), found) == pytest.approx(bits / (2 * log2(6) + 4 * log2(3)))
    assert value(Discernibility(), found) == 12
    assert value(AverageClassSize(), found) == 1
    assert value(Classification(), found) == pytest.approx(3 / 6)  # targets 0 1 2 0 1 2


def test_levels_are_what_is_released() -> None:
    """The cell of one town is released as its county, because the column is."""
    found = towns([0, 1, 2, 2], [0, 0, 1, 1], levels=[1])
    assert [nodes.tolist() for nodes in found.nodes] == [[4, 5]]
    assert value(Nllm(), found) == pytest.approx(1 / 3)
    assert value(Precision(), found) == 1 / 2


def test_suppressed_rows_have_lost_all() -> None:
    found = towns([0, 0, 2, 3], [0, 0, -1, -1])
    for metric in (Nllm(), Ncp()):
        assert value(metric, found) == 1 / 2
    assert value(Precision(), found) == 1 / 2
    assert value(Discernibility(), found) == 4 + 2 * 4
    assert value(CellSize(), found) == 2
    assert penalize(found).tolist() == [0]


def test_values_without_a_hierarchy() -> None:
    """Two of three values: one of two steps for NCP, all for the metric of leaves."""
    block = make_block(np.zeros((4, 0)), np.array([[0], [1], [2], [2]]))
    found = ReleasedBlock(block, np.array([0, 0, 1, 1]), 2)
    assert value(Ncp(), found) == 1 / 4
    assert value(Nllm(), found) == 1 / 2


@pytest.mark.parametrize("seed", range(5))
def test_classes_of_pycanon(seed: int) -> None:
    """What pycanon takes for classes of a released table, in the terms of its utility metrics (as
    they stand in its sources: its package comes without them)."""
    random = np.random.default_rng(seed)
    codes = random.binomial(3, 0.4, (60, 3))
    block = make_block(np.zeros((60, 0)), codes[np.lexsort(codes.T)], k=3)
    trees = (TOWNS, None, TOWNS)
    block = replace(block, trees=trees, n_categories=np.full(3, 4), may_suppress=6)
    found = FullDomain().find(block)
    m = int(found.cell_id.max()) + 1
    released = ReleasedBlock(block, found.cell_id, m, found.levels)
    names = ["a", "b", "c"]
    kept = found.cell_id >= 0
    assert 0 < (~kept).sum() <= 6
    nodes = {
        name: each[found.cell_id[kept]] for name, each in zip(names, released.nodes, strict=True)
    }
    table = pd.DataFrame(nodes)
    classes = get_equiv_class(table, names)
    discernibility = sum(len(each) ** 2 for each in classes) + (60 - len(table)) * 60
    assert value(Discernibility(), released) == discernibility
    k = k_anonymity(table, names)
    average = len(table) / (len(classes) * k)
    assert value(AverageClassSize(), with_k(released, k)) == pytest.approx(average)
    assert block.target is not None
    label = block.target[kept]
    wrong = 60 - len(table)
    for each in classes:
        wrong += len(each) - max(Counter(label[list(each)].tolist()).values())
    assert value(Classification(), released) == pytest.approx(wrong / 60)


def test_many_nodes_have_no_entropy() -> None:
    block = make_block(np.zeros((4, 0)), np.array([[0], [1], [2], [MOST_NODES]]))
    state = Entropy().update(ReleasedBlock(block, np.array([0, 0, 1, 1]), 2))
    assert state.tolist() == [4]
    assert Entropy().value(state) is None
    assert f"{MOST_NODES:,}" in Entropy.undefined
