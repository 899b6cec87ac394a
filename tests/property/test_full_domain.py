"""Full-domain recoding chooses the node that looking at all of them would choose."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib.hierarchy.tree import Tree
from anonlib.kernels import full_domain
from anonlib.kernels.full_domain import FullDomain
from anonlib.kernels.full_domain.heuristic import HeuristicSearch
from anonlib.kernels.full_domain.search import OUT, HeightLattice, LatticeSearch
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.shares import make_reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import Block
from tests.oracles_full_domain import at_node, classes_of, full_domain_plain, generalizable
from tests.support import blocks, halves, make_block

MODELS = [
    LDiversity(l=2, attribute="disease"),
    LDiversity(l=2, kind="entropy", attribute="disease"),
    AlphaK(alpha=0.6, attribute="disease"),
    TCloseness(t=0.3, attribute="disease"),
]


@st.composite
def lattices(draw: st.DrawFn) -> Block:
    """Blocks of nominal columns, with hierarchies or without, of weighted rows or persons, where
    some rows may be suppressed."""
    block = draw(blocks(max_columns=1))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    block = generalizable(block, random)
    if block.unit is None and draw(st.booleans()):
        block = replace(block, weight=random.integers(1, draw(st.sampled_from([2, 9])), block.n))
    n = block.n if block.weight is None else int(block.weight.sum())
    may = int(draw(st.sampled_from([0.0, 0.02, 0.1, 0.5])) * n)
    return replace(block, may_suppress=may)


def check(block: Block) -> None:
    expected = full_domain_plain(block)
    found = FullDomain().find(block)
    assert found.levels is not None
    assert tuple(found.levels.tolist()) == expected.heights
    assert found.cell_id.tolist() == classes_of(expected.released).tolist()
    assert (FullDomain().cells(block) == found.cell_id).all()


@given(lattices())
@settings(max_examples=100)
def test_the_best_of_all_nodes(block: Block) -> None:
    check(block)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@given(lattices(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_under_every_kind_of_model(model: Any, block: Block, seed: int) -> None:
    """A union of a class that holds with one that fails may fail, and the node above with it."""
    random = np.random.default_rng(seed)
    codes = random.choice(3, (block.n, 1), p=[0.6, 0.3, 0.1])
    check_if_feasible(_protected(block, codes, (KAnonymity(k=2), model)))


@given(lattices(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_jointly(block: Block, seed: int) -> None:
    codes = np.random.default_rng(seed).choice(2, (block.n, 2), p=[0.7, 0.3])
    models = tuple(LDiversity(l=2, attribute=name) for name in ("disease", "income"))
    check_if_feasible(replace(_protected(block, codes, models), joint=True))


def _protected(block: Block, codes: Any, models: Any) -> Block:
    names = ("disease", "income")[: codes.shape[1]]
    weight = np.ones(block.n, np.int64) if block.weight is None else block.weight
    references = {
        name: make_reference(np.repeat(codes[:, j], weight), 3) for j, name in enumerate(names)
    }
    codes = codes.astype(np.int32)
    return replace(block, sensitive=codes, protected=names, models=models, references=references)


def check_if_feasible(block: Block) -> None:
    assume(block.holds(np.zeros(block.n, np.int64), 1)[0])
    check(block)


@given(lattices())
@settings(max_examples=40)
def test_rows_and_their_multiplicities_are_the_same(block: Block) -> None:
    weight = np.arange(block.n) % 3 + 1 if block.weight is None else block.weight
    block = replace(block, unit=None, weight=weight)
    each = np.repeat(np.arange(block.n), weight)
    plain = replace(
        block,
        nominal=block.nominal[each],
        sensitive=block.sensitive[each],
        numeric=block.numeric[each],
        target=None,
        weight=None,
    )
    found, expected = FullDomain().find(block), FullDomain().find(plain)
    assert np.array_equal(found.levels, expected.levels)  # type: ignore[arg-type]
    assert (found.cell_id[each] == expected.cell_id).all()


def skewed(random: Any, n: int, q: int, k: int) -> Block:
    """Columns of 8 values, those in the middle frequent, in pairs, pairs of pairs and a root."""
    codes = random.binomial(7, 0.5, (n, q))
    block = make_block(np.zeros((n, 0)), codes[np.lexsort(codes.T)], k=k)
    return replace(block, n_categories=np.full(q, 8), trees=(halves(8),) * q)


def test_few_rows_of_rare_values() -> None:
    """Where suppressing competes with generalizing."""
    random = np.random.default_rng(0)
    for _ in range(150):
        n, k = int(random.integers(8, 40)), int(random.integers(2, 5))
        codes = random.choice(4, (n, 3), p=[0.6, 0.2, 0.15, 0.05])
        block = make_block(np.zeros((n, 0)), codes[np.lexsort(codes.T)], k=k)
        block = replace(block, n_categories=np.full(3, 4), trees=(halves(4),) * 3)
        check(replace(block, may_suppress=int(random.integers(n // 2))))


@pytest.mark.parametrize("seed", [4, 5, 15, 29])
def test_shares_of_rare_values(seed: int) -> None:
    check(rare_shares(seed))


def rare_shares(seed: int) -> Block:
    """Where, besides, a union may fail: nodes below one that isn't allowed are the best."""
    random = np.random.default_rng(seed)
    block = replace(skewed(random, 80, 3, 3), may_suppress=int(random.integers(3, 20)))
    codes = random.choice(3, (80, 1), p=[0.5, 0.3, 0.2])
    models = (KAnonymity(k=2), AlphaK(alpha=0.6, attribute="disease"))
    return _protected(block, codes, models)


def test_few_nodes_are_looked_at() -> None:
    block = skewed(np.random.default_rng(0), 200, 4, 6)
    search = LatticeSearch(HeightLattice(block))
    assert search.lattice.shape == (4, 4, 4, 4)
    assert search.run() == full_domain_plain(block).heights
    assert search.lattice.n_looks < 4**4 / 5


def test_a_union_may_fail_where_a_part_holds() -> None:
    """Of three towns, the second fails; its county, with the first, fails too. So the middle level
    isn't allowed, but the lowest is."""
    tree = Tree(
        np.array([3, 3, 4, 5, 5, 5]),
        np.array([0, 1, 2, 0, 2, 0]),
        np.array([1, 2, 3, 2, 3, 3]),
        np.array([0, 0, 0, 0.5, 0.5, 1]),
    )
    town = np.repeat([0, 1, 2], [10, 2, 10])[:, None]
    disease = np.concatenate([[0] * 5 + [1] * 5, [0] * 2, [1] * 5 + [2] * 5])[:, None]
    block = replace(make_block(np.zeros((22, 0)), town), trees=(tree,), may_suppress=2)
    block = _protected(block, disease, (AlphaK(alpha=0.5, attribute="disease"),))
    check(block)
    found = FullDomain().find(block)
    assert found.levels is not None
    assert found.levels.tolist() == [0]
    assert (found.cell_id == np.where(town[:, 0] == 1, -1, town[:, 0] // 2)).all()


def test_ties_go_to_the_lower_node() -> None:
    """A column of one value loses nothing at its leaf and at the group above it."""
    only = Tree(np.array([1, 2, 2]), np.zeros(3, np.int64), np.ones(3, np.int64), np.eye(3)[2])
    block = make_block(np.zeros((6, 0)), np.zeros((6, 2)), k=3)
    found = FullDomain().find(replace(block, trees=(only, None)))
    assert found.levels is not None
    assert found.levels.tolist() == [0, 0]


class TestHeuristic:
    """The search of larger lattices, on small ones."""

    @given(lattices())
    @settings(max_examples=60)
    def test_the_best_of_all_nodes(self, block: Block) -> None:
        check_with_many_looks(block)

    @pytest.mark.parametrize("model", MODELS, ids=repr)
    @given(lattices(), st.integers(0, 2**32 - 1))
    @settings(max_examples=25)
    def test_under_every_kind_of_model(self, model: Any, block: Block, seed: int) -> None:
        codes = np.random.default_rng(seed).choice(3, (block.n, 1), p=[0.6, 0.3, 0.1])
        block = _protected(block, codes, (KAnonymity(k=2), model))
        assume(block.holds(np.zeros(block.n, np.int64), 1)[0])
        check_with_many_looks(block)

    @pytest.mark.parametrize("seed", [4, 5, 15, 29])
    def test_shares_of_rare_values(self, seed: int) -> None:
        check_with_many_looks(rare_shares(seed))

    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize("looks", [1, 5, 40])
    def test_few_looks(self, looks: int, seed: int) -> None:
        """The first descent is never undercut, nor the limits exceeded."""
        random = np.random.default_rng(seed)
        block = skewed(random, 60, 4, 3)
        block = replace(block, may_suppress=int(random.integers(20)))
        if seed % 2:
            codes = random.choice(3, (60, 1), p=[0.5, 0.3, 0.2])
            model = MODELS[seed // 2 % len(MODELS)]
            block = _protected(block, codes, (KAnonymity(k=2), model))
        search, first = HeuristicSearch(HeightLattice(block), looks), Descent(HeightLattice(block))
        heights, start = search.run(), first.run()
        found = at_node(block, heights)
        assert found.suppressed <= block.may_suppress
        assert search.least == found.loss <= at_node(block, start).loss
        assert search.lattice.n_looks <= first.lattice.n_looks + looks
        assert len(search.losses) == search.lattice.n_looks + 1
        assert full_domain_plain(block).loss <= found.loss
        if search.is_exact:
            assert full_domain_plain(block).heights == heights

    def test_better_than_the_first_descent(self) -> None:
        n_better = 0
        for seed in range(20):
            block = replace(skewed(np.random.default_rng(seed), 80, 4, 4), may_suppress=6)
            search, first = HeuristicSearch(HeightLattice(block), 60), Descent(HeightLattice(block))
            search.run(), first.run()
            n_better += search.least < first.least
        assert n_better >= 10

    def test_losses_are_those_of_the_nodes(self) -> None:
        block = rare_shares(4)
        search = HeuristicSearch(HeightLattice(block), 20)
        search.run()
        for heights, loss in search.losses.items():
            found = at_node(block, heights)
            assert loss == (found.loss if found.suppressed <= block.may_suppress else OUT)

    def test_the_order_of_rows_does_not_matter(self) -> None:
        block = replace(skewed(np.random.default_rng(1), 90, 4, 3), may_suppress=9)
        turned = replace(block, nominal=block.nominal[::-1].copy())
        one, other = (HeuristicSearch(HeightLattice(b), 50) for b in (block, turned))
        assert one.run() == other.run()
        assert one.losses == other.losses
        assert not one.is_exact


class Descent(LatticeSearch):
    """The first descent of the searches alone."""

    def run(self) -> tuple[int, ...]:
        self._descend()
        return self.best


def check_with_many_looks(block: Block) -> None:
    search = HeuristicSearch(HeightLattice(block), 10**6)
    expected = full_domain_plain(block)
    assert (search.run(), search.least) == (expected.heights, expected.loss)
    assert search.is_exact


def test_notes_say_which_search_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    block = skewed(np.random.default_rng(0), 200, 4, 6)
    exact = "full_domain: an exact search: these levels lose least of all 256 choices"
    assert FullDomain().find(block).note == exact
    monkeypatch.setattr(full_domain, "MOST_NODES", 255)
    assert FullDomain(looks=10**6).find(block).note == exact
    note = FullDomain(looks=10).find(block).note
    assert note is not None
    assert re.fullmatch(
        r"full_domain: a heuristic search: these levels lose least of \d\d choices that were "
        r"tried, of 256; others may lose less. A greater `looks` tries more",
        note,
    )


@pytest.mark.parametrize("l", [1, 2])
def test_large_lattices(l: int) -> None:  # noqa: E741
    """4^12 nodes, more than the exact search takes."""
    random = np.random.default_rng(0)
    block = replace(skewed(random, 600, 12, 4), may_suppress=30)
    if l == 2:
        models = (KAnonymity(k=4), LDiversity(l=2, attribute="disease"))
        block = _protected(block, random.choice(3, (600, 1)), models)
    found, again = FullDomain(looks=300).find(block), FullDomain(looks=300).find(block)
    assert "a heuristic search" in str(found.note)
    assert "of 16,777,216;" in str(found.note)
    assert found.note == again.note
    assert (found.cell_id == again.cell_id).all()
    kept = found.cell_id >= 0
    assert (~kept).sum() <= 30
    assert block.holds(
        found.cell_id[kept], int(found.cell_id.max()) + 1, np.flatnonzero(kept)
    ).all()
    assert found.levels is not None
    least, most = (HeuristicSearch(HeightLattice(block), n) for n in (1, 300))
    assert tuple(found.levels.tolist()) == most.run() != least.run()
    assert most.least < least.least


def test_a_large_lattice_of_equal_rows() -> None:
    """All nodes but the lowest are ruled out at once."""
    block = make_block(np.zeros((6, 0)), np.zeros((6, 23)), k=3)
    block = replace(block, n_categories=np.full(23, 2))
    found = FullDomain().find(block)
    assert found.levels is not None
    assert found.levels.tolist() == [0] * 23
    assert "an exact search: these levels lose least of all 8,388,608 choices" in str(found.note)


def test_one_choice() -> None:
    found = FullDomain().find(make_block(np.zeros((6, 0)), np.zeros((6, 0)), k=3))
    assert found.note == "full_domain: an exact search: these levels lose least of the only choice"


@given(lattices())
@settings(max_examples=40)
def test_a_column_of_one_category_changes_nothing(block: Block) -> None:
    """It loses nothing, generalized or suppressed, and is not generalized."""
    found = FullDomain().find(block)
    wider = replace(
        block,
        nominal=np.column_stack([block.nominal, np.zeros(block.n, np.int32)]).astype(np.int32),
        n_categories=np.append(block.n_categories, 1),
        trees=(*(block.trees or [None] * block.nominal.shape[1]), Tree.flat(1)),
    )
    again = FullDomain().find(wider)
    assert found.levels is not None
    assert again.levels is not None
    assert again.levels.tolist() == [*found.levels.tolist(), 0]
    assert again.cell_id.tolist() == found.cell_id.tolist()
