"""The earth mover's distance along a hierarchy, against linear programming."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from anonlib.auditing.models import UnverifiableError
from anonlib.auditing.models.t_closeness import make_edges
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.privacy import CellCounts, Reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import count_sparse

#: The groups of each value from the root down: branches end at different heights, have one child,
#: or go on from a group that others end below.
PATHS = st.lists(st.lists(st.integers(0, 1), max_size=3), min_size=1, max_size=7)


def written(folder: Path, paths: list[list[int]]) -> tuple[Hierarchy, list[list[str]]]:
    """The hierarchy of values v0, v1, ... and all groups of each, from the value to the root."""
    rows = []
    for i, path in enumerate(paths):
        groups = ["g" + "".join(map(str, path[:n])) for n in range(len(path) + 1)]
        rows.append([f"v{i}", *reversed(groups)])
    file = folder / "h.csv"
    file.write_text("\n".join(";".join(row) for row in rows))
    return read_hierarchy(file), rows


def distances(rows: list[list[str]]) -> Any:
    """float[v + 1, v + 1]: height of the lowest common ancestor over that of the root; the last is
    the missing value."""
    height: dict[str, int] = {}
    for row in rows:
        for steps, name in enumerate(row):
            height[name] = max(height.get(name, 0), steps)
    n = len(rows)
    found = np.ones((n + 1, n + 1))
    for i in range(n):
        for j in range(n):
            common = next(name for name in rows[i] if name in rows[j])
            found[i, j] = height[common] / height[rows[0][-1]]
    np.fill_diagonal(found, 0)
    return found


def moved(distance: Any, p: Any, q: Any) -> float:
    """The least work that makes p of q, by linear programming."""
    n = len(p)
    sums = [np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))]
    done = linprog(distance.ravel(), A_eq=np.vstack(sums), b_eq=np.concatenate([p, q]))
    assert done.success
    return float(done.fun)


@given(PATHS, st.data())
@settings(max_examples=150)
def test_least_work(tmp_path: Path, paths: list[list[int]], data: Any) -> None:
    hierarchy, rows = written(tmp_path, paths)
    n = len(rows)
    whole = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    n_missing = data.draw(st.integers(0, 5))
    values = st.integers(-1 if n_missing else 0, n - 1)
    cell = data.draw(st.lists(values, min_size=1, max_size=9))
    places = hierarchy.places(pa.array([f"v{i}" for i in range(n)]))
    reference = Reference(np.array(whole), n_missing, hierarchy.levels(places))
    size = np.array([len(cell)])
    counts = count_sparse(np.zeros(len(cell), np.int64), np.array(cell, np.int32))
    cells = CellCounts(size, size, {"s": counts}, {"s": reference})
    model = TCloseness(t=0.5, distance="hierarchical", attribute="s")
    p = np.array([cell.count(v) for v in [*range(n), -1]]) / len(cell)
    q = np.array([*whole, n_missing]) / (sum(whole) + n_missing)
    expected = moved(distances(rows), p, q)
    assert model.distances(cells).tolist() == pytest.approx([expected], abs=1e-9)
    assert by_edges(hierarchy, p, q) == pytest.approx(expected, abs=1e-9)


def by_edges(hierarchy: Hierarchy, p: Any, q: Any) -> float:
    """The distance as the audit defines it."""
    texts = [*[f"V{i}" for i in range(len(p) - 1)], None]  # as Spark folds them
    edges = make_edges(hierarchy.folded(), texts, q.tolist())
    assert max(edges.length) <= 0.5
    below = np.zeros(len(edges.length))
    for share, way in zip(p, edges.above, strict=True):
        below[way] += share
    return float(np.abs(below - edges.whole) @ edges.length)


def test_published_example(tmp_path: Path) -> None:
    """Li, Li and Venkatasubramanian 2007, EMD for categorical attributes: flu and bronchitis are at
    distance 1/3, flu and pulmonary embolism at 2/3, flu and stomach cancer at 1."""
    text = """\
flu;infection;respiratory;*
pneumonia;infection;respiratory;*
bronchitis;infection;respiratory;*
pulmonary embolism;vascular;respiratory;*
stomach cancer;stomach;digestive;*
colitis;colon;digestive;*
"""
    (tmp_path / "h.csv").write_text(text)
    hierarchy = read_hierarchy(tmp_path / "h.csv")
    names = ["flu", "bronchitis", "pulmonary embolism", "stomach cancer"]
    levels = hierarchy.levels(hierarchy.places(pa.array(names)))

    def apart(one: int, other: int) -> float:
        whole = np.zeros(4, np.int64)
        whole[other] = 1
        reference = Reference(whole, 0, levels)
        counts = count_sparse(np.zeros(1, np.int64), np.array([one], np.int32))
        size = np.ones(1, np.int64)
        cells = CellCounts(size, size, {"s": counts}, {"s": reference})
        model = TCloseness(t=0.5, distance="hierarchical", attribute="s")
        return float(model.distances(cells)[0])

    assert [apart(0, other) for other in range(4)] == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_audit_needs_every_value(tmp_path: Path) -> None:
    hierarchy, _ = written(tmp_path, [[0], [1]])
    with pytest.raises(UnverifiableError, match=r"^the hierarchy lacks 2 values of the column$"):
        make_edges(hierarchy, ["v0", "secret", "other", None], [0.25] * 4)


def test_a_reference_without_hierarchy_is_our_bug() -> None:
    size = np.ones(1, np.int64)
    counts = count_sparse(np.zeros(1, np.int64), np.zeros(1, np.int32))
    cells = CellCounts(size, size, {"s": counts}, {"s": Reference(size, 0)})
    with pytest.raises(ValueError, match="the reference of s has no hierarchy"):
        TCloseness(t=0.5, distance="hierarchical", attribute="s").holds(cells)
