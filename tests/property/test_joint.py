"""Models that hold where the other sensitive columns of a person are known."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonlib
from anonlib import registry
from anonlib.arrays import Ints
from anonlib.errors import InfeasibleError
from anonlib.hierarchy.build import intervals
from anonlib.partition.repair import BlockCounts, Joint
from anonlib.privacy import PrivacyModel, Reference
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block
from tests.property.test_privacy_models import MODELS, WHOLE
from tests.support import make_block

QUICK = settings(max_examples=60)
NAMES = ("s", "a", "b")
#: A row as (cell, value of "s", of "a", of "b"), -1 where missing.
ROW = st.tuples(st.integers(0, 2), st.integers(-1, 5), st.integers(-1, 1), st.integers(-1, 1))
ROWS = st.lists(ROW, min_size=3, max_size=40)
COLUMN_MODELS = sorted(set(MODELS) - {"k_anonymity"})


def block_of(rows: Any, *models: PrivacyModel, joint: bool = True) -> Block:
    sensitive = np.array([row[1:] for row in rows], np.int32).reshape(-1, 3)
    block = make_block(np.zeros((len(rows), 1)))
    references = {"s": WHOLE, "a": Reference(np.array([3, 4]), 1)}
    changes: dict[str, Any] = {"models": models, "protected": NAMES, "references": references}
    return replace(block, sensitive=sensitive, joint=joint, **changes)


def cells_of(rows: Any) -> Ints:
    return np.unique([row[0] for row in rows], return_inverse=True)[1].astype(np.int64)


def by_groups(rows: Any, model: PrivacyModel) -> list[bool]:
    """Each cell by the definition: every group in it is a cell of its own that holds the model."""
    found: dict[int, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row[0]][row[2:]].append(row)
    return [all(alone(group, model) for group in found[cell].values()) for cell in sorted(found)]


def alone(rows: Any, model: PrivacyModel) -> bool:
    return bool(block_of(rows, model, joint=False).holds(np.zeros(len(rows), np.int64), 1)[0])


@pytest.mark.parametrize("name", COLUMN_MODELS)
@given(data=st.data(), rows=ROWS)
@QUICK
def test_every_group_holds_the_model(name: str, data: Any, rows: Any) -> None:
    model = data.draw(MODELS[name])
    cells = cells_of(rows)
    found = block_of(rows, model).holds(cells, cells.max() + 1)
    assert found.tolist() == by_groups(rows, model)


@pytest.mark.parametrize("name", COLUMN_MODELS)
@given(data=st.data(), rows=ROWS)
@QUICK
def test_some_rows_of_a_block(name: str, data: Any, rows: Any) -> None:
    model = data.draw(MODELS[name])
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))))
    few = [rows[i] for i in chosen]
    cells = cells_of(few)
    found = block_of(rows, model).holds(cells, cells.max() + 1, chosen)
    assert found.tolist() == by_groups(few, model)


@pytest.mark.parametrize("name", COLUMN_MODELS)
@given(data=st.data(), rows=ROWS)
@QUICK
def test_monotone_under_union(name: str, data: Any, rows: Any) -> None:
    """And a cell that holds it where others are known also holds it where they are not."""
    model = data.draw(MODELS[name])
    cells = cells_of(rows)
    one = np.zeros_like(cells)
    block = block_of(rows, model)
    if block.holds(cells, cells.max() + 1).all():
        assert block.holds(one, 1)[0]
        assert replace(block, joint=False).holds(one, 1)[0]


@given(ROWS, st.integers(2, 3))
@QUICK
def test_models_without_a_column_stay_as_they_are(rows: Any, k: int) -> None:
    cells = cells_of(rows)
    found = block_of(rows, KAnonymity(k=k)).holds(cells, cells.max() + 1)
    assert found.tolist() == (np.bincount(cells) >= k).tolist()


def counts_of(rows: Any) -> BlockCounts:
    """The leaves of a plan, whose values are numbered as in the references."""
    leaf = cells_of(rows)
    sensitive = np.array([row[1:] for row in rows], np.int64)
    pairs, count = np.unique(np.column_stack([leaf, sensitive]), axis=0, return_counts=True)
    block = block_of(rows, joint=False)
    sparse = block.counts(leaf, int(leaf.max()) + 1)
    joint = Joint(NAMES, pairs[:, 0], pairs[:, 1:], count)
    sizes, counts = (sparse.n_rows, sparse.n_persons), dict(sparse.sensitive)
    return BlockCounts(*sizes, {}, False, counts, dict(block.references), joint)


@pytest.mark.parametrize("name", COLUMN_MODELS)
@given(data=st.data(), rows=ROWS)
@QUICK
def test_repair_counts_the_same(name: str, data: Any, rows: Any) -> None:
    """Leaves alone, united, and with one left out."""
    model = data.draw(MODELS[name])
    leaf = cells_of(rows)
    n = int(leaf.max()) + 1
    counts = counts_of(rows)
    assert counts.hold([model]).tolist() == by_groups(rows, model)
    group = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n)))
    united = [(group[i], *row[1:]) for i, row in zip(leaf, rows, strict=True) if group[i] >= 0]
    there = np.unique(group[group >= 0])
    found = counts.merge(group, 2).hold([model])[there]
    assert found.tolist() == (by_groups(united, model) if united else [])


def table(n: int = 240) -> pd.DataFrame:
    """Two columns that say much about each other, and one that sorts the rows by the first."""
    random = np.random.default_rng(4)
    illness = random.integers(0, 4, n)
    drug = np.where(random.random(n) < 0.5, illness, random.integers(0, 4, n))
    x = illness + random.random(n)
    columns = {"x": x, "y": random.random(n), "illness": illness.astype(str), "drug": drug}
    return pd.DataFrame({**columns, "label": random.choice(["yes", "no"], n)})


@pytest.mark.parametrize("kernel", registry.plugins("kernel"))
def test_kernels_keep_it(kernel: str) -> None:
    data = table()
    models = [LDiversity(l=2, attribute=name) for name in ("illness", "drug")]
    given: dict[str, Any] = {"k": 4, "scales": dict.fromkeys("xy", "continuous"), "models": models}
    given["target"] = "label"
    given["target_scale"] = "nominal"
    if registry.plugin("kernel", kernel)().needs_hierarchies:
        data[["x", "y"]] = (data[["x", "y"]] * 8).astype(int)
        given["scales"] = dict.fromkeys("xy", "nominal")
        widths = [2, 4, 8, 16]
        given["hierarchies"] = {n: intervals(pa.array(data[n].unique()), widths) for n in "xy"}
    joint = anonlib.cells(data, kernel, joint=True, **given)
    assert fewest(data, joint) >= 2
    assert joint.max() > 0
    assert fewest(data, anonlib.cells(data, kernel, **given)) == 1


def fewest(data: pd.DataFrame, cells: Ints) -> int:
    """The fewest values of a column in the rows of a cell that agree on the other."""
    grouped = data.assign(cell=cells)
    ways = [("illness", "drug"), ("drug", "illness")]
    return min(grouped.groupby(["cell", one])[other].nunique().min() for one, other in ways)


def test_what_no_cell_can_hold() -> None:
    """One column says all about the other."""
    data = table()
    data["drug"] = data["illness"]
    models = [LDiversity(l=2, attribute=name) for name in ("illness", "drug")]
    with pytest.raises(InfeasibleError, match="l_diversity even as one cell"):
        anonlib.cells(data, k=4, scales={"x": "continuous"}, models=models, joint=True)
