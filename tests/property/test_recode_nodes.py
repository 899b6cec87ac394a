"""Recoders along hierarchies against an oracle that walks one path at a time."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.encode._published import read_parents
from anonlib.errors import BlockError, InputError
from anonlib.recode import Cells, Domain
from anonlib.recode.lca import Lca
from anonlib.recode.proportional import SHARES, Proportional
from anonlib.recode.suppress import Suppress
from tests.oracles_nodes import (
    cells_of,
    height,
    hierarchies,
    hierarchy_of,
    lineage,
    lowest_common,
    shares,
)

MARKER = "MARKER-of-a-raw-value"
QUICK = settings(max_examples=40, deadline=None)


@QUICK
@given(st.data(), hierarchies(), st.integers(0, 5))
def test_lca_is_the_lowest_node_above_all_values(data: Any, hierarchy: Any, level: int) -> None:
    values, cells, lists = data.draw(cells_of(hierarchy))
    column = pa.array([MARKER, *values], pa.string())[1:]
    found = Lca(level=level).recode(column, cells, Domain(None, hierarchy)).to_pylist()
    assert found == [lowest_common(hierarchy, each, level) for each in lists]


@QUICK
@given(hierarchies(), st.integers(1, 5))
def test_levels_of_lca_are_those_of_the_hierarchy(hierarchy: Any, level: int) -> None:
    """One value alone is released as the node that `Hierarchy.levels` has for it."""
    leaves = hierarchy.names[: hierarchy.tree.high[-1]]
    rows = hierarchy.levels(np.arange(len(leaves)))
    cells = Cells(np.arange(len(leaves)), len(leaves))
    found = Lca(level=level).recode(pa.array(leaves), cells, Domain(None, hierarchy)).to_pylist()
    if level < len(rows):
        assert found == [hierarchy.names[node] for node in rows[level]]
    else:
        assert found == ["*"] * len(leaves)


@QUICK
@given(hierarchies())
def test_heights_of_the_oracle_are_those_of_the_hierarchy(hierarchy: Any) -> None:
    assert hierarchy.heights.tolist() == [height(hierarchy, name) for name in hierarchy.names]


@QUICK
@given(st.lists(st.lists(st.integers(-2, 2) | st.none(), min_size=1), max_size=5))
def test_lca_without_a_hierarchy_is_the_value_that_all_have(lists: list[list[Any]]) -> None:
    ids = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
    column = pa.array([value for each in lists for value in each], pa.int64())
    right = [
        "*" if len(set(each)) > 1 else None if each[0] is None else str(each[0]) for each in lists
    ]
    assert Lca().recode(column, Cells(ids, len(lists)), Domain()).to_pylist() == right


@QUICK
@given(st.data(), hierarchies(), st.none() | st.integers(1, 12))
def test_proportions_are_the_counts_of_the_cell(data: Any, hierarchy: Any, steps: Any) -> None:
    values, cells, lists = data.draw(cells_of(hierarchy))
    column = pa.array([MARKER, *values], pa.string())[1:]
    found = Proportional(steps=steps).recode(column, cells, Domain(None, hierarchy))
    found.validate(full=True)
    assert found.type == SHARES
    names = [*hierarchy.names, None]
    for released, each in zip(found.to_pylist(), lists, strict=True):
        nodes = [share["node"] for share in released]
        assert nodes == sorted(set(nodes))
        got = {names[share["node"]]: share["share"] for share in released}
        # the quotient of two integers, correctly rounded, whatever they are
        assert got == {value: float(share) for value, share in shares(each, steps).items()}
        if steps:
            assert sum(round(share * steps) for share in got.values()) == steps


@QUICK
@given(st.data(), hierarchies())
def test_suppressed_is_the_root(data: Any, hierarchy: Any) -> None:
    values, cells, lists = data.draw(cells_of(hierarchy))
    column = pa.array(values, pa.string())
    found = Suppress().recode(column, cells, Domain(None, hierarchy)).to_pylist()
    assert found == [lineage(hierarchy, None)[-1]] * len(lists)
    assert Suppress().recode(column, cells, Domain()).to_pylist() == ["*"] * len(lists)


SIX = hierarchy_of([None, [None, None], [None, [None, None]]])


def released(*cells: str, steps: int | None = None) -> tuple[Any, np.ndarray[Any, Any]]:
    """The shares and sizes of cells whose rows are digits of leaves, `-` where missing."""
    rows = [(i, None if v == "-" else f"v{v}") for i, cell in enumerate(cells) for v in cell]
    ids = Cells(np.array([i for i, _ in rows]), len(cells))
    column = pa.array([v for _, v in rows], pa.string())
    return Proportional(steps=steps).recode(column, ids, Domain(None, SIX)), ids.count


def test_rounding_gives_to_the_largest_remainder_then_to_the_lower_node() -> None:
    found, _ = released("012", "0012", "-1", "0-", "000001", steps=2)
    shown = [[(e["node"], e["share"]) for e in pairs] for pairs in found.to_pylist()]
    missing = len(SIX.names)
    assert shown == [
        [(0, 0.5), (1, 0.5)],
        [(0, 0.5), (1, 0.5)],
        [(1, 0.5), (missing, 0.5)],
        [(0, 0.5), (missing, 0.5)],
        [(0, 1.0)],
    ]


@pytest.mark.parametrize("recoder", [Lca(), Proportional()])
def test_a_value_without_a_leaf_is_an_error_that_does_not_show_it(recoder: Any) -> None:
    with pytest.raises(BlockError) as caught:
        recoder.recode(
            pa.array(["v1", MARKER, None]), Cells(np.zeros(3, np.int64), 1), Domain(None, SIX)
        )
    assert "1 rows" in str(caught.value)
    assert MARKER not in str(caught.value)


def test_inner_nodes_are_no_values() -> None:
    with pytest.raises(BlockError):
        Lca().recode(pa.array(["g1"]), Cells(np.zeros(1, np.int64), 1), Domain(None, SIX))


def test_proportions_need_a_hierarchy() -> None:
    with pytest.raises(InputError, match="needs a hierarchy"):
        Proportional().recode(pa.array(["a"]), Cells(np.zeros(1, np.int64), 1), Domain())


def test_columns_of_numbers_are_leaves_by_their_text() -> None:
    cells = Cells(np.array([0, 0, 1, 1]), 2)
    tree = read_parents(["1", "3", "20", "low", "*"], [3, 3, 4, 4, 4])
    for column in (pa.array([1, 3, 20, 20]), pa.array([1, 3, 20, 20], pa.int8())):
        found = Lca().recode(column, cells, Domain(None, tree))
        assert found.to_pylist() == ["low", "20"]
        assert found.type == pa.string()
