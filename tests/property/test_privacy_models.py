"""Every privacy model: monotone under union, `min_rows` a true bound, against a slow recount."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import ceil, inf, log
from typing import Any, ClassVar, Literal, get_args, get_origin

import numpy as np
import pytest
from hypothesis import assume, find, given, settings
from hypothesis import strategies as st

from anonlib import registry
from anonlib.privacy import Bools, CellCounts, PrivacyModel, Reference
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import count_sparse

QUICK = settings(max_examples=100)
#: A cell's rows as (person, value of the column "s"), either -1 where missing.
CELL = st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 5)), min_size=1, max_size=12)
#: The hierarchy of "s": 0 and 1 meet at height 1, with 2 at height 2; 3 and 4 at height 1; all of
#: them and 5 at the root, height 3. The group of every value at heights 0, 1 and 2.
LEVELS = [[0, 1, 2, 3, 4, 5], [6, 6, 2, 7, 7, 5], [8, 8, 8, 7, 7, 5]]
#: The reference: how many rows of the whole table have each value of "s"; and none.
WHOLE = Reference(np.array([3, 1, 4, 1, 5, 9]), 2, np.array(LEVELS))
S = st.just("s")
L = st.integers(2, 5)
#: Parameters of each model; a new one adds its own here.
MODELS: dict[str, st.SearchStrategy[Any]] = {
    "alpha_k": st.builds(AlphaK, alpha=st.floats(0.1, 1), attribute=S),
    "beta_likeness": st.builds(
        BetaLikeness,
        beta=st.floats(0.1, 30),
        kind=st.sampled_from(["basic", "enhanced"]),
        attribute=S,
    ),
    "delta_disclosure": st.builds(DeltaDisclosure, delta=st.floats(0.1, 4), attribute=S),
    "k_anonymity": st.builds(KAnonymity, k=st.integers(2, 6)),
    "l_diversity": st.one_of(
        st.builds(LDiversity, l=L, attribute=S),
        st.builds(LDiversity, l=L, kind=st.just("entropy"), attribute=S),
        st.builds(LDiversity, l=L, kind=st.just("recursive"), c=st.floats(0.3, 9), attribute=S),
    ),
    "p_sensitive": st.builds(PSensitive, p=L, attribute=S),
    "t_closeness": st.builds(
        TCloseness,
        t=st.floats(0.05, 1),
        distance=st.sampled_from(["equal", "ordered", "hierarchical"]),
        attribute=S,
    ),
}
#: Those of which a cell holds the model if a part of it does.
UPWARD = ("k_anonymity", "p_sensitive")


def counts(*cells: list[tuple[int, int]]) -> CellCounts:
    """What models see of cells of these rows."""
    rows = np.array([(i, *row) for i, cell in enumerate(cells) for row in cell])
    cell, person, value = rows[:, 0], rows[:, 1].astype(np.int32), rows[:, 2].astype(np.int32)
    persons = np.bincount(count_sparse(cell, person).cell, minlength=len(cells))
    n_rows = np.bincount(cell, minlength=len(cells))
    return CellCounts(n_rows, persons, {"s": count_sparse(cell, value)}, {"s": WHOLE})


def test_every_model_is_tested_here() -> None:
    assert set(registry.plugins("privacy model")) == set(MODELS) == set(ORACLES)


KINDS = [
    (name, field, kind)
    for name, model in sorted(registry.plugins("privacy model").items())
    for field, info in model.model_fields.items()
    if get_origin(info.annotation) is Literal
    for kind in get_args(info.annotation)
]


@pytest.mark.parametrize(("name", "field", "kind"), KINDS)
def test_every_kind_is_tested_here(name: str, field: str, kind: str) -> None:
    find(MODELS[name], lambda model: getattr(model, field) == kind)


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
    if name in UPWARD and apart.any():
        assert union.all()


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


@pytest.mark.parametrize("name", ["alpha_k", "k_anonymity", "l_diversity", "p_sensitive"])
@given(data=st.data())
@QUICK
def test_min_rows_is_reached(name: str, data: Any) -> None:
    """By rows of as many persons and values; not every model must."""
    model = data.draw(MODELS[name])
    assume(getattr(model, "c", None) is None or model.c > 1)
    assume(model.min_rows <= 6)  # there are no more values in the reference
    assert model.holds(counts([(i, i) for i in range(model.min_rows)]))[0]


#: The rows of a cell, as CELL has them.
Rows = list[tuple[int, int]]


def of_persons(model: KAnonymity, cell: Rows) -> float:
    return len({person for person, _ in cell if person >= 0}) - model.k + 0.5


def of_sensitivity(model: PSensitive, cell: Rows) -> float:
    return len(present(cell)) - model.p + 0.5


def present(cell: Rows) -> Counter[int]:
    """How often each value that is not missing stands in a cell."""
    return Counter(value for _, value in cell if value >= 0)


def of_diversity(model: LDiversity, cell: Rows) -> float:
    """The number of values, the entropy less log(l), or c times the tail less the largest."""
    found = present(cell)
    if not found:
        return -inf
    if model.kind == "distinct":
        return len(found) - model.l + 0.5
    if model.kind == "entropy":
        n = found.total()
        return sum(-c / n * log(c / n) for c in found.values()) - log(model.l)
    frequent = sorted(found.values(), reverse=True)
    return float((model.c or 0) * sum(frequent[model.l - 1 :]) - frequent[0])


def gaps(cell: Rows) -> list[tuple[Fraction, Fraction]]:
    """(share in the cell, share in the whole table) of every category, missing last."""
    whole = [*WHOLE.count.tolist(), WHOLE.n_missing]
    found = Counter(value for _, value in cell)
    rows = [found[value] for value in [*range(len(whole) - 1), -1]]
    return [
        (Fraction(n, len(cell)), Fraction(w, sum(whole))) for n, w in zip(rows, whole, strict=True)
    ]


def of_closeness(model: TCloseness, cell: Rows) -> float:
    """t less the distance, by definition: half of the differences, the running ones, or what the
    nodes of a tree even out among their children."""
    pairs = gaps(cell)
    if model.distance == "equal":
        return model.t - float(sum(abs(p - q) for p, q in pairs) / 2)
    if model.distance == "hierarchical":
        return model.t - float(evened_out([p - q for p, q in pairs]))
    running = [sum(p - q for p, q in pairs[: i + 1]) for i in range(len(pairs))]
    return model.t - float(sum(abs(x) for x in running) / (len(pairs) - 1))


def evened_out(extra: list[Fraction]) -> Fraction:
    """As the paper computes it: a node at height h moves min(surplus, lack) among its children at
    the cost of h / 3; the last value is the missing one, below the root."""
    total = Fraction(0)

    def node(height: int, *children: Fraction) -> Fraction:
        nonlocal total
        surplus = sum((x for x in children if x > 0), Fraction(0))
        lack = sum((-x for x in children if x < 0), Fraction(0))
        total += Fraction(height, 3) * min(surplus, lack)
        return surplus - lack

    low = node(2, node(1, extra[0], extra[1]), extra[2])
    node(3, low, node(1, extra[3], extra[4]), extra[5], extra[6])
    return total


def of_disclosure(model: DeltaDisclosure, cell: Rows) -> float:
    return model.delta - max(abs(log(p / q)) if p else inf for p, q in gaps(cell))


def of_likeness(model: BetaLikeness, cell: Rows) -> float:
    bounds = [
        (model.beta if model.kind == "basic" else min(model.beta, -log(q)), p, q)
        for p, q in gaps(cell)
    ]
    return min(bound - float((p - q) / q) for bound, p, q in bounds)


def of_frequency(model: AlphaK, cell: Rows) -> float:
    found = present(cell)
    return model.alpha - max(found.values()) / found.total() if found else -inf


#: By how much a cell holds a model, in plain Python: above 0 where it does.
ORACLES: dict[str, Callable[[Any, Rows], float]] = {
    "alpha_k": of_frequency,
    "beta_likeness": of_likeness,
    "delta_disclosure": of_disclosure,
    "k_anonymity": of_persons,
    "l_diversity": of_diversity,
    "p_sensitive": of_sensitivity,
    "t_closeness": of_closeness,
}


@pytest.mark.parametrize("name", sorted(MODELS))
@given(data=st.data(), cell=CELL)
@settings(max_examples=400)
def test_what_holds_by_definition(name: str, data: Any, cell: Rows) -> None:
    """Ties of rounding are left out."""
    model = data.draw(MODELS[name])
    margin = ORACLES[name](model, cell)
    assume(abs(margin) > 1e-9)
    assert bool(model.holds(counts(cell))[0]) == (margin > 0)


def test_published_examples() -> None:
    """Li, Li and Venkatasubramanian 2007, section 4: salaries 3k to 11k; {3k, 4k, 5k} is at
    distance 0.375 from them all, {6k, 8k, 11k} at 0.167."""
    whole = Reference(np.ones(9, np.int64), 0)
    cell = np.repeat([0, 1], 3)
    value = np.array([0, 1, 2, 3, 5, 8], np.int32)
    found = CellCounts(
        np.array([3, 3]), np.array([3, 3]), {"s": count_sparse(cell, value)}, {"s": whole}
    )
    distances = TCloseness(t=0.5, distance="ordered", attribute="s").distances(found)
    assert distances.round(3).tolist() == [0.375, 0.167]


def test_c_goes_with_the_recursive_kind() -> None:
    for fields in ({"kind": "recursive"}, {"c": 2.0}, {"kind": "entropy", "c": 2.0}):
        with pytest.raises(ValueError, match="c goes with"):
            LDiversity.model_validate({"l": 2, **fields})


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


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        (KAnonymity(k=3), (None, "persons", False, False, False, 3, 0, 3)),
        (PSensitive(p=3, attribute="s"), ("s", "values", False, False, False, 1, 3, 3)),
        (LDiversity(l=3, attribute="s"), ("s", "values", False, False, False, 1, 3, 3)),
        (
            LDiversity(l=3, kind="entropy", attribute="s"),
            ("s", "counts", False, False, False, 1, 3, 3),
        ),
        (AlphaK(alpha=1.0, attribute="s"), ("s", "counts", False, False, False, 1, 1, 1)),
        (AlphaK(alpha=0.5, attribute="s"), ("s", "counts", False, False, False, 1, 2, 2)),
        (AlphaK(alpha=0.4, attribute="s"), ("s", "counts", False, False, False, 1, 3, 3)),
        # As shares: 1 of 49 is just alpha, although 49 * (1 / 49) is less than 1 in floating point.
        (AlphaK(alpha=0.1, attribute="s"), ("s", "counts", False, False, False, 1, 10, 10)),
        (AlphaK(alpha=1 / 49, attribute="s"), ("s", "counts", False, False, False, 1, 49, 49)),
        (AlphaK(alpha=0.3333333333, attribute="s"), ("s", "counts", False, False, False, 1, 4, 4)),
        (BetaLikeness(beta=1.0, attribute="s"), ("s", "counts", True, False, False, 1, 0, 1)),
        (DeltaDisclosure(delta=1.0, attribute="s"), ("s", "counts", True, False, False, 1, 0, 1)),
        (TCloseness(t=0.2, attribute="s"), ("s", "counts", True, False, False, 1, 0, 1)),
        (
            TCloseness(t=0.2, distance="ordered", attribute="s"),
            ("s", "counts", True, True, False, 1, 0, 1),
        ),
        (
            TCloseness(t=0.2, distance="hierarchical", attribute="s"),
            ("s", "counts", True, False, True, 1, 0, 1),
        ),
    ],
)
def test_what_models_say_of_themselves(model: PrivacyModel, facts: tuple[Any, ...]) -> None:
    """What runs rely on: which columns they count, what they look up, how small cells may be."""
    flags = (model.looks_at, model.relative, model.by_order, model.by_hierarchy)
    least = (model.min_persons, model.min_values, model.min_rows)
    assert (model.column, *flags, *least) == facts


def variants(name: str) -> list[PrivacyModel]:
    """Weak and strong forms of a model, of two columns."""
    both = ("s", "r")
    return {
        "alpha_k": [AlphaK(alpha=a, attribute=c) for a in (0.4, 0.5) for c in both],
        "beta_likeness": [
            BetaLikeness(beta=b, kind=k, attribute=c)  # type: ignore[arg-type]
            for b in (1.0, 2.0)
            for k in ("basic", "enhanced")
            for c in both
        ],
        "delta_disclosure": [
            DeltaDisclosure(delta=d, attribute=c) for d in (1.0, 2.0) for c in both
        ],
        "k_anonymity": [KAnonymity(k=k) for k in (2, 3)],
        "l_diversity": [
            *[LDiversity(l=n, attribute=c) for n in (2, 3) for c in both],
            *[LDiversity(l=n, kind="entropy", attribute="s") for n in (2, 3)],
            *[
                LDiversity(l=n, kind="recursive", c=c, attribute="s")
                for n in (2, 3)
                for c in (1.0, 2.0)
            ],
        ],
        "p_sensitive": [PSensitive(p=p, attribute=c) for p in (2, 3) for c in both],
        "t_closeness": [
            TCloseness(t=t, distance=d, attribute=c)  # type: ignore[arg-type]
            for t in (0.1, 0.2)
            for d in ("equal", "ordered", "hierarchical")
            for c in both
        ],
    }[name]


def strength(model: Any) -> Any:
    """The parameter that makes a model stronger, the larger the stronger."""
    sign = {"alpha_k": -1, "beta_likeness": -1, "delta_disclosure": -1, "t_closeness": -1}
    name = next(n for n in ("alpha", "beta", "delta", "k", "l", "p", "t") if hasattr(model, n))
    return getattr(model, name) * sign.get(model.type, 1)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_which_models_imply_others(name: str) -> None:
    """Of the same column and at least as strong; by kind where one is the stronger."""
    for one in variants(name):
        for other in variants(name):
            expected = one.column == other.column and strength(one) >= strength(other)
            kinds = (getattr(one, "kind", ""), getattr(other, "kind", ""))
            if name == "beta_likeness":
                expected &= kinds != ("basic", "enhanced")
            if name == "l_diversity":
                expected &= kinds[1] in ("distinct", kinds[0])
                if kinds == ("recursive", "recursive"):
                    expected &= one.c <= other.c  # type: ignore[attr-defined]
            if name == "t_closeness":
                expected &= one.distance == other.distance  # type: ignore[attr-defined]
            assert one.implies(other) is expected, (one, other)
        for other in [each for type in sorted(MODELS) if type != name for each in variants(type)]:
            asked = {"p_sensitive": "p", "l_diversity": "l"}.get(other.type)
            expected = False
            if asked and getattr(other, "kind", "distinct") == "distinct":
                has = {"l_diversity": "l", "p_sensitive": "p"}.get(name)
                least = getattr(one, has) if has else ceil(1 / getattr(one, "alpha", 1))
                expected = one.column == other.column and least >= getattr(other, asked)
            assert one.implies(other) is expected, (one, other)


def test_a_model_of_ones_own_implies_itself_alone() -> None:
    class Own(PrivacyModel):
        type: ClassVar[str] = "own"
        monotone: ClassVar[bool] = True
        size: int

        def holds(self, cells: CellCounts) -> Bools:
            return cells.n_rows >= self.size

    assert Own(size=2).implies(Own(size=2)) is True
    assert Own(size=3).implies(Own(size=2)) is False


@pytest.mark.parametrize(
    ("model", "held"),
    [
        (BetaLikeness(beta=1.0, attribute="s"), True),
        (DeltaDisclosure(delta=log(2), attribute="s"), False),
        (DeltaDisclosure(delta=0.7, attribute="s"), True),
        (TCloseness(t=0.25, attribute="s"), True),
        (TCloseness(t=0.25, distance="ordered", attribute="s"), True),
        (AlphaK(alpha=0.5, attribute="s"), True),
        (LDiversity(l=2, kind="recursive", c=1.0, attribute="s"), False),
        (LDiversity(l=2, kind="entropy", attribute="s"), True),
    ],
)
def test_bounds_that_are_met(model: PrivacyModel, held: bool) -> None:
    """At most, or below: as the models say. The cell has 1/2 and 1/2, the table 1/4 and 3/4."""
    counted = count_sparse(np.zeros(4, np.int64), np.array([0, 0, 1, 1], np.int32))
    n, whole = np.array([4]), Reference(np.array([1, 3]), 0)
    cell = CellCounts(n, n, {"s": counted}, {"s": whole})
    assert model.holds(cell).tolist() == [held]


def test_what_is_more_than_entropy_is_no_rounding() -> None:
    """Three values, of which one is rare, are no three by entropy."""
    counted = count_sparse(np.zeros(5, np.int64), np.array([0, 0, 1, 1, 2], np.int32))
    cell = CellCounts(np.array([5]), np.array([5]), {"s": counted})
    assert LDiversity(l=3, attribute="s").holds(cell).tolist() == [True]
    assert LDiversity(l=3, kind="entropy", attribute="s").holds(cell).tolist() == [False]
