"""Every privacy model: monotone under union, `min_rows` a true bound, against a slow recount."""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib import registry
from anonlib.block import sparse
from anonlib.privacy import Bools, CellCounts, PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity

QUICK = settings(max_examples=100)
#: A cell's rows as (person, value of the column "s"), either -1 where missing.
CELL = st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 5)), min_size=1, max_size=12)
#: Parameters of each model; a new one adds its own here.
MODELS: dict[str, st.SearchStrategy[PrivacyModel]] = {
    "k_anonymity": st.builds(KAnonymity, k=st.integers(2, 6)),
    "l_diversity": st.builds(LDiversity, l=st.integers(2, 5), attribute=st.just("s")),
}


def counts(*cells: list[tuple[int, int]]) -> CellCounts:
    """What models see of cells of these rows."""
    rows = np.array([(i, *row) for i, cell in enumerate(cells) for row in cell])
    cell, person, value = rows[:, 0], rows[:, 1].astype(np.int32), rows[:, 2].astype(np.int32)
    persons = np.bincount(sparse(cell, person).cell, minlength=len(cells))
    return CellCounts(np.bincount(cell, minlength=len(cells)), persons, {"s": sparse(cell, value)})


def test_every_model_is_tested_here() -> None:
    assert set(registry.plugins("privacy model")) == set(MODELS)


@pytest.mark.parametrize("name", sorted(MODELS))
@given(data=st.data())
@QUICK
def test_monotone_under_union(name: str, data: Any) -> None:
    """The union of cells is at least as good as the better of them."""
    model = data.draw(MODELS[name])
    cells = [data.draw(CELL) for _ in range(3)]
    apart = model.holds(counts(*cells))
    union = model.holds(counts([row for cell in cells for row in cell]))
    assert apart.dtype == np.bool_
    assert apart.shape == (3,)
    if apart.all():
        assert union.all()
    if name in ("k_anonymity", "l_diversity") and apart.any():
        assert union.all()  # these need only one


@pytest.mark.parametrize("name", sorted(MODELS))
@given(data=st.data())
@QUICK
def test_cells_are_judged_apart(name: str, data: Any) -> None:
    model = data.draw(MODELS[name])
    cells = data.draw(st.lists(CELL, min_size=1, max_size=5))
    alone = [bool(model.holds(counts(cell))[0]) for cell in cells]
    assert model.holds(counts(*cells)).tolist() == alone


@pytest.mark.parametrize("name", sorted(MODELS))
@given(data=st.data())
@QUICK
def test_min_rows_is_a_lower_bound(name: str, data: Any) -> None:
    model = data.draw(MODELS[name])
    assert model.min_rows >= 1
    # Any cell, and cells as diverse as can be.
    for cell in [data.draw(CELL), *([(i, i) for i in range(n)] for n in range(1, 8))]:
        if model.holds(counts(cell))[0]:
            assert len(cell) >= model.min_rows


@pytest.mark.parametrize("name", ["k_anonymity", "l_diversity"])
@given(data=st.data())
@QUICK
def test_min_rows_is_reached(name: str, data: Any) -> None:
    """By rows of as many persons and values; not every model must."""
    model = data.draw(MODELS[name])
    assert model.holds(counts([(i, i) for i in range(model.min_rows)]))[0]


@given(CELL, st.integers(2, 6))
@QUICK
def test_k_anonymity_counts_persons(cell: list[tuple[int, int]], k: int) -> None:
    persons = {person for person, _ in cell if person >= 0}
    assert KAnonymity(k=k).holds(counts(cell))[0] == (len(persons) >= k)


@given(CELL, st.integers(2, 6))
@QUICK
def test_l_diversity_counts_present_values(cell: list[tuple[int, int]], l: int) -> None:  # noqa: E741
    values = {value for _, value in cell if value >= 0}
    assert LDiversity(l=l, attribute="s").holds(counts(cell))[0] == (len(values) >= l)


def test_cells_without_any_entry_fail() -> None:
    """Trailing cells of missing values only are not in the sparse counts at all."""
    found = counts([(0, 0), (1, 1)], [(-1, -1)] * 9)
    assert KAnonymity(k=2).holds(found).tolist() == [True, False]
    assert LDiversity(l=2, attribute="s").holds(found).tolist() == [True, False]


def test_unbound_l_diversity_is_our_bug() -> None:
    with pytest.raises(KeyError):
        LDiversity(l=2).holds(counts([(0, 0)]))


def test_a_model_that_is_not_monotone_is_refused() -> None:
    for flags in ({}, {"monotone": False}):
        with pytest.raises(TypeError, match="is not monotone"):
            type("Loose", (PrivacyModel,), {"__annotations__": {}, **flags})
    with pytest.raises(TypeError, match="Looser is not monotone"):

        class Looser(KAnonymity):
            monotone: ClassVar[bool] = False


def test_a_model_that_says_so_is_taken() -> None:
    class AtMost(PrivacyModel):
        type: ClassVar[str] = "at_least"
        monotone: ClassVar[bool] = True

        @property
        def min_rows(self) -> int:
            return 1

        def holds(self, cells: CellCounts) -> Bools:
            return cells.n_rows >= 1

    assert AtMost().holds(counts([(0, 0)])).tolist() == [True]
