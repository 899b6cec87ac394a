"""Peeling against its oracle, and what its search promises."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib.hierarchy.tree import Tree
from anonlib.kernels._trees import drop_idle_levels, list_levels
from anonlib.kernels.peel import Peel
from anonlib.kernels.peel import lattice as _peel_table
from anonlib.local.cell_grouping import cells
from anonlib.privacy import PrivacyModel
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.shares import make_reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import Block
from tests import oracles_peel as oracle

MODELS: list[tuple[PrivacyModel, ...]] = [
    (),
    (LDiversity(l=2, attribute="disease"),),
    (LDiversity(l=2, kind="entropy", attribute="disease"),),
    (TCloseness(t=0.3, attribute="disease"),),
]


def ragged(random: Any, n: int) -> Tree:
    """A random tree over n leaves: neighbours are grouped again and again, some are left alone."""
    low, high, parent = list(range(n)), list(range(1, n + 1)), [-1] * n
    top = list(range(n))
    while len(top) > 1:
        above, i = [], 0
        while i < len(top):
            size = int(random.integers(1, 4))
            group = top[i : i + size]
            i += size
            if len(group) == 1 and len(top) > 2:
                above += group
                continue
            for node in group:
                parent[node] = len(low)
            above.append(len(low))
            low.append(low[group[0]])
            high.append(high[group[-1]])
            parent.append(-1)
        top = above
    if n == 1:
        return Tree.flat(1)
    parent[-1] = len(parent) - 1
    loss = (np.array(high) - np.array(low) - 1) / (n - 1)
    return Tree(np.array(parent), np.array(low), np.array(high), loss)


@st.composite
def tables(draw: st.DrawFn, *, models: bool = True) -> Block:
    """Blocks with trees that hold their models as one cell, equal tuples side by side."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(6, 40)), draw(st.integers(1, 3))
    sizes = random.integers(1, 8, d)
    codes = random.integers(0, sizes, (n, d))
    disease = random.permutation(np.arange(n) % draw(st.integers(2, 4)))
    order = np.lexsort([disease, *codes.T[::-1]])
    codes, disease = codes[order], disease[order]
    chosen = draw(st.sampled_from(MODELS)) if models else ()
    block = Block(
        numeric=np.zeros((n, 0)),
        nominal=codes.astype(np.int32),
        sensitive=disease[:, None].astype(np.int32) if chosen else np.zeros((n, 0), np.int32),
        unit=None,
        widths=np.zeros(0),
        n_categories=sizes,
        models=(KAnonymity(k=draw(st.integers(2, 5))), *chosen),
        protected=("disease",) if chosen else (),
        trees=tuple(ragged(random, int(size)) for size in sizes),
        references={"disease": make_reference(disease, 4)} if chosen else {},
    )
    assume(block.holds(np.zeros(n, np.int64), 1)[0])
    return block


def loss(block: Block, ids: Any) -> int:
    return sum(
        oracle.cell_loss(block, np.flatnonzero(ids == c).tolist()) for c in range(max(ids) + 1)
    )


def sets(ids: Any) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(ids == c).tolist()) for c in range(max(ids) + 1)}


@given(tables(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_plain_peeling_gives_the_cells_of_the_oracle(block: Block, by_class: bool) -> None:
    judged = any(model.looks_at == "counts" for model in block.models)
    *cells, rest = oracle.peel(block, by_class=by_class and not judged and len(block.trees) > 1)
    ids = Peel(order="class" if by_class else "node", effort=0).cells(block)
    found = sets(ids)
    if not rest:
        assert found == set(map(frozenset, cells))
    # What is left joins cells, which are not torn.
    for cell in cells:
        assert any(set(cell) <= each for each in found)
    assert block.holds(ids, len(found)).all()


@given(tables())
@settings(max_examples=80, deadline=None)
def test_the_search_never_loses_and_cells_hold(block: Block) -> None:
    before = loss(block, Peel(effort=0).cells(block))
    for effort in (1, 5):
        ids = Peel(effort=effort).cells(block)
        assert block.holds(ids, max(ids) + 1).all()
        after = loss(block, ids)
        assert after <= before
        before = after


def plain_block(seed: int, n: int, d: int, size: int, k: int) -> Block:
    """Up to n different tuples of d columns with random trees over `size` codes."""
    random = np.random.default_rng(seed)
    codes = np.unique(random.integers(0, size, (n, d)), axis=0).astype(np.int32)
    return Block(
        numeric=np.zeros((len(codes), 0)),
        nominal=codes,
        sensitive=np.zeros((len(codes), 0), np.int32),
        unit=None,
        widths=np.zeros(0),
        n_categories=np.full(d, size),
        models=(KAnonymity(k=k),),
        trees=tuple(ragged(random, size) for _ in range(d)),
    )


def test_the_search_gains() -> None:
    """On random tables: moves at least 1 % on average, rebuilding at least 1 % more."""
    gains = []
    for seed in range(20):
        block = plain_block(seed, 40, 3, 8, 3)
        plain, moved, rebuilt = (loss(block, Peel(effort=e).cells(block)) for e in (0, 1, 4))
        gains.append((1 - moved / plain, 1 - rebuilt / moved))
    assert (np.mean(gains, axis=0) > 0.01).all()


@pytest.mark.parametrize(
    ("k", "n", "seed"), [(2, 8, 15), (2, 8, 41), (2, 8, 51), (3, 9, 35), (3, 9, 49)]
)
def test_rebuilding_reaches_the_optimum_where_moves_do_not(k: int, n: int, seed: int) -> None:
    block = plain_block(seed, n, 2, 6, k)
    least = oracle.optimum(block)
    assert loss(block, Peel(effort=1).cells(block)) > least
    assert loss(block, Peel(effort=2).cells(block)) == least


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.integers(0, 6, (60, 3)).astype(str), columns=list("abc"))
    order = random.permutation(60)
    given_: dict[str, Any] = {"k": 3, "scales": dict.fromkeys("abc", "nominal"), "effort": 4}
    mixed = np.empty(60, np.int64)
    mixed[order] = cells(table.iloc[order], "peel", **given_)
    assert sets(mixed) == sets(cells(table, "peel", **given_))


def test_rows_suppressed_stay_out_of_the_search() -> None:
    n_suppressed = 0
    for seed in range(10):
        block = replace(plain_block(seed, 40, 3, 8, 4), may_suppress=3)
        plain, ids = (Peel(effort=e).cells(block) for e in (0, 4))
        assert ((ids < 0) == (plain < 0)).all()
        n_suppressed += (ids < 0).sum()
        kept = np.flatnonzero(ids >= 0)
        assert block.holds(ids[kept], max(ids) + 1, kept).all()
    assert n_suppressed > 0


@given(tables())
@settings(max_examples=40, deadline=None)
def test_weights_are_repeated_rows(block: Block) -> None:
    rows = np.column_stack([block.nominal, block.sensitive])
    _, first, place, count = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    some = replace(
        block,
        numeric=block.numeric[first],
        nominal=block.nominal[first],
        sensitive=block.sensitive[first],
        weight=count,
    )
    assert (Peel().cells(some)[place.ravel()] == Peel().cells(block)).all()


@given(tables(models=False), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_suppression_stays_within_its_limit(block: Block, limit: int) -> None:
    none = Peel(effort=0).cells(block)
    ids = Peel(effort=0).cells(replace(block, may_suppress=limit))
    assert (none >= 0).all()
    assert (ids < 0).sum() <= limit
    kept = np.flatnonzero(ids >= 0)
    assert set(ids[kept]) == set(range(max(ids) + 1))
    assert block.holds(ids[kept], max(ids) + 1, kept).all()
    *_, rest = oracle.peel(block, by_class=len(block.trees) > 1)
    assert set(np.flatnonzero(ids < 0)) <= set(rest)
    if limit >= len(rest):
        assert (ids < 0).sum() == len(rest)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_levels_and_where_codes_meet(seed: int, n: int) -> None:
    tree = ragged(np.random.default_rng(seed), n)
    found = list_levels(tree)
    for height, row in enumerate(found.node):
        assert row.tolist() == [oracle.generalized(tree, code, height) for code in range(n)]
    assert (found.node[-1] == len(tree.parent) - 1).all()
    short = drop_idle_levels(found)
    low, high = np.triu_indices(n)
    for given_ in (found, short):
        height = np.argmax(given_.node[:, low] == given_.node[:, high], axis=0)
        for a, b, h in zip(low.tolist(), high.tolist(), height, strict=True):
            lost = round(float(given_.loss[h, a]) * oracle.UNIT)
            assert lost == oracle.lca_loss(tree, set(range(a, b + 1)))


@pytest.mark.parametrize("effort", [0, 3])
def test_a_lattice_too_large_is_cut(effort: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_peel_table, "MOST_NODES", 100)
    block = plain_block(0, 60, 8, 6, 4)
    ids = Peel(effort=effort).cells(block)
    assert block.holds(ids, max(ids) + 1).all()


def test_suppression_that_breaks_a_model_of_shares_is_taken_back() -> None:
    """The rows together hold alpha, those that are left without the costliest do not."""
    random = np.random.default_rng(87)
    n = int(random.integers(12, 40))
    table = pd.DataFrame(
        {
            "a": random.integers(0, 3, n).astype(str),
            "b": random.integers(0, 3, n).astype(str),
            "s": random.choice(list("xyz"), n, p=[0.45, 0.35, 0.2]),
        }
    )
    scales = {"a": "nominal", "b": "nominal"}
    models = [AlphaK(alpha=0.5, attribute="s")]
    given: dict[str, Any] = {"k": 4, "scales": scales, "models": models}
    ids = cells(table, "peel", **given, suppression_limit=0.3)
    for cell in range(ids.max() + 1):
        of_cell = table["s"][ids == cell]
        assert len(of_cell) >= 4
        assert of_cell.value_counts().max() <= 0.5 * len(of_cell)
    assert (ids < 0).sum() <= 0.3 * n


def test_classes_are_whole_where_the_list_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a step would take rows for others' and leave cells of fewer than k."""
    from anonlib.kernels.peel import rebuild as _peel_classes

    find, lists = _peel_classes.find_classes, []

    def looked_at(*given: Any) -> Any:
        found = find(*given)
        lists.append(found)
        return found

    monkeypatch.setattr(_peel_classes, "find_classes", looked_at)
    for room in (1, 3):
        monkeypatch.setattr(_peel_classes, "ROOM", room)
        for seed in range(2):
            block = plain_block(seed, 60, 3, 6, 3)
            ids = Peel(effort=4).cells(block)
            assert block.holds(ids, max(ids) + 1).all()
    n_cut = 0
    for found in lists:
        n_cut += len(found.tuples) > 0
        for low, high in pairwise(found.start):
            assert len(set(found.tuples[low:high])) == high - low > 0
    assert n_cut >= 8
