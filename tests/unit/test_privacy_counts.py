"""What privacy models count with: references, the whole table as a cell, distances at their edges,
and the bounds of their parameters."""

import itertools
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from anonlib import registry
from anonlib.errors import ContractError
from anonlib.privacy import (
    Bools,
    CellCounts,
    KnownGroups,
    PrivacyModel,
    Reference,
    SparseCounts,
)
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.shares import (
    count_persons,
    count_whole_table,
    group_codes,
    make_reference,
    sum_counts,
)
from anonlib.privacy.t_closeness import TCloseness


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("value", "person", "count", "n_missing"),
    [
        ([0, 2, -1, 2, -1], None, [1, 0, 2, 0], 2),
        ([], None, [0, 0, 0, 0], 0),
        # A person counts once for each of its values, and once for all that are missing.
        ([0, 0, 2, 2, -1, -1], [0, 0, 1, 0, 1, 1], [1, 0, 2, 0], 1),
        # Rows of nobody count for nobody.
        ([3, 3, -1, 0], [-1, 4, -1, -1], [0, 0, 0, 1], 0),
        ([3, -1], [-1, -1], [0, 0, 0, 0], 0),
    ],
)
def test_the_reference_of_codes(
    value: list[int], person: list[int] | None, count: list[int], n_missing: int
) -> None:
    persons = None if person is None else ints(*person)
    reference = make_reference(ints(*value), 4, persons)
    assert reference.count.tolist() == count
    assert reference.n_missing == n_missing


@pytest.mark.parametrize("n_known", [None, 5])
def test_the_whole_table_is_a_cell(n_known: int | None) -> None:
    reference = Reference(ints(3, 0, 4), 2)
    cells = count_whole_table("ill", reference, 8, n_known)
    assert (cells.n_rows.tolist(), cells.n_persons.tolist()) == ([9], [8])
    assert cells.references == {"ill": reference}
    counts = cells.sensitive["ill"]
    assert (counts.cell.tolist(), counts.value.tolist()) == ([0, 0], [0, 2])
    assert counts.count.tolist() == [3, 4]
    assert counts.n_missing is not None
    assert counts.n_missing.tolist() == [2]
    assert (None if counts.n_known is None else counts.n_known.tolist()) == (n_known and [n_known])
    for distance in ("equal", "ordered"):
        model = TCloseness(t=0.1, distance=distance, attribute="ill")
        assert model.distances(cells).tolist() == pytest.approx([0.0])


#: Rows as (cell, person, value), which is -1 where missing.
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-1, 3)), max_size=12)


def columns_of(rows: Any) -> Any:
    return np.array(rows, np.int64).reshape(-1, 3).T


def entries_of(counts: SparseCounts) -> list[list[int]]:
    return np.column_stack([counts.cell, counts.value, counts.count]).tolist()


@given(ROWS)
@example([(0, 0, 0)])
@example([(2, 0, -1), (1, 0, 3)])
@settings(max_examples=60)
def test_persons_by_their_values(rows: list[tuple[int, int, int]]) -> None:
    """As anybody counts them: a person once for each value, once among those with a missing one,
    and once among those with a present one."""
    found = count_persons(*columns_of(rows), 3)
    pairs = sorted({(c, v) for c, _, v in rows if v >= 0})
    assert entries_of(found) == [
        [c, v, len({p for each, p, value in rows if (each, value) == (c, v)})] for c, v in pairs
    ]
    for known, present in ((found.n_missing, False), (found.n_known, True)):
        assert known is not None
        assert known.tolist() == [
            len({p for each, p, value in rows if each == c and (value >= 0) is present})
            for c in range(3)
        ]


@given(ROWS)
@settings(max_examples=60)
def test_sums_and_groups_of_pairs(rows: list[tuple[int, int, int]]) -> None:
    cell, count, value = columns_of([(c, n, v + 1) for c, n, v in rows])
    pairs = [*zip(cell.tolist(), value.tolist(), strict=True)]
    assert entries_of(sum_counts(cell, value, count)) == [
        [*pair, sum(count[[each == pair for each in pairs]])] for pair in sorted({*pairs})
    ]
    group, of = group_codes(cell, value)
    assert of[group].tolist() == cell.tolist()
    assert len({*zip(group.tolist(), pairs, strict=True)}) == len({*pairs}) == len(of)
    assert {*group.tolist()} == {*range(len(of))}


def test_values_that_are_all_missing_are_at_no_distance_in_a_hierarchy() -> None:
    model = TCloseness(t=0.5, distance="hierarchical", attribute="ill")
    nothing = Reference(ints(), 4, np.zeros((2, 0), np.int64))
    assert model.distances(cells_of([[-1], [-1, -1]], nothing)).tolist() == [0.0, 0.0]


def test_cells_without_rows_change_no_others_distance() -> None:
    reference = Reference(ints(2, 0, 2), 0)
    for distance in ("equal", "ordered"):
        model = TCloseness(t=0.5, distance=distance, attribute="ill")
        found = model.distances(cells_of([[2], [], [0, 2], []], reference))
        assert found[[0, 2]].tolist() == pytest.approx([0.5, 0.0])


def test_a_distance_by_a_hierarchy_needs_one() -> None:
    model = TCloseness(t=0.5, distance="hierarchical", attribute="ill")
    with pytest.raises(ValueError, match="the reference of ill has no hierarchy"):
        model.distances(cells_of([[0]], Reference(ints(1), 0)))


def cells_of(rows: list[list[int]], reference: Reference) -> CellCounts:
    """The counts of cells that list a value, or -1 for a missing one, for each row."""
    entries = [(c, v, row.count(v)) for c, row in enumerate(rows) for v in sorted({*row} - {-1})]
    cell, value, count = (
        (ints(*part) for part in zip(*entries, strict=True)) if entries else [ints()] * 3
    )
    sizes = ints(*map(len, rows))
    return CellCounts(sizes, sizes, {"ill": SparseCounts(cell, value, count)}, {"ill": reference})


@pytest.mark.parametrize(
    ("reference", "rows", "equal", "ordered"),
    [
        (Reference(ints(4), 0), [[0, 0]], [0.0], [0.0]),  # one value is no distance from itself
        (Reference(ints(0), 4), [[-1, -1]], [0.0], [0.0]),
        (Reference(ints(2, 2), 0), [[0, 1], [0]], [0.0, 0.5], [0.0, 0.5]),
        (Reference(ints(2, 0, 2), 0), [[0, 2], [1], [2]], [0.0, 1.0, 0.5], [0.0, 0.5, 0.5]),
        # Missing is the last value.
        (Reference(ints(1, 1), 2), [[-1], [0], [1, -1]], [0.5, 0.75, 0.25], [0.375, 0.625, 0.125]),
    ],
)
def test_distances_at_their_edges(
    reference: Reference, rows: list[list[int]], equal: list[float], ordered: list[float]
) -> None:
    cells = cells_of(rows, reference)
    for distance, wanted in (("equal", equal), ("ordered", ordered)):
        model = TCloseness(t=0.5, distance=distance, attribute="ill")
        assert model.distances(cells).tolist() == pytest.approx(wanted)


def test_levels_of_a_hierarchy() -> None:
    """Values 0 and 1 have a parent, 2 has one of its own, and missing is below the root."""
    reference = Reference(ints(1, 1, 1), 1, np.array([[0, 1, 2], [0, 0, 1]]))
    model = TCloseness(t=0.5, distance="hierarchical", attribute="ill")
    cells = cells_of([[0, 1], [2], [-1], [0, 1, 2, -1]], reference)
    # At the values: 1/2, 3/4, 3/4, 0; at the parents, where 0 and 1 are one: 1/2, 3/4, 3/4, 0.
    assert model.distances(cells).tolist() == pytest.approx([0.5, 0.75, 0.75, 0.0])
    near, far = cells_of([[0, 0, 2, -1]], reference), cells_of([[0, 2, 2, -1]], reference)
    assert model.distances(near).tolist() == pytest.approx([(1 / 4 + 0) / 2])
    assert model.distances(far).tolist() == pytest.approx([(1 / 4 + 1 / 4) / 2])


@pytest.mark.parametrize("l", [2, 3])
def test_frequencies_of_the_recursive_kind(l: int) -> None:  # noqa: E741
    """Against the definition: r_1 < c (r_l + ... + r_m), in cells of any sizes, mixed."""
    cells = [[3, 1], [2, 2, 1], [1], [5, 4, 3, 2], [1, 1, 1]]
    for order in itertools.permutations(range(len(cells)), 3):
        kept = [cells[i] for i in order]
        cell = np.repeat(np.arange(3), [len(c) for c in kept])
        model = LDiversity(l=l, kind="recursive", c=1.0, attribute="ill")
        largest, tail = model._frequencies(cell, ints(*itertools.chain(*kept)), 3)
        assert largest.tolist() == [max(c) for c in kept]
        assert tail.tolist() == [sum(sorted(c, reverse=True)[l - 1 :]) for c in kept]


def test_groups_that_an_attacker_knows_must_hold_the_model_too() -> None:
    """Cell 0 holds it with all its groups, 1 with one of two only, 2 not at all."""
    model, reference = LDiversity(l=2, attribute="ill"), Reference(ints(9, 9, 9), 0)
    cells = cells_of([[0, 1, 1, 2], [0, 0, 1, 2], [2, 2]], reference)
    assert model.holds_within(cells).tolist() == [True, True, False]
    groups = cells_of([[0, 1], [1, 2], [0, 0], [1, 2], [2, 2]], reference)
    known = {"ill": KnownGroups(ints(0, 0, 1, 1, 2), groups)}
    assert model.holds_within(replace(cells, known=known)).tolist() == [True, False, False]
    # Groups that hold it are not enough either.
    alone = cells_of([[2, 2]], reference)
    known = {"ill": KnownGroups(ints(0), cells_of([[0, 1]], reference))}
    assert model.holds_within(replace(alone, known=known)).tolist() == [False]


@pytest.mark.parametrize(
    "answer", [None, True, np.ones(2, np.int64), np.ones(3, np.bool_), np.ones(1, np.bool_)]
)
def test_a_model_that_does_not_say_which_cells_hold_it(answer: Any) -> None:
    class Says(PrivacyModel):
        type: ClassVar[str] = "says"
        monotone: ClassVar[bool] = True

        def holds(self, cells: CellCounts) -> Bools:
            return cast(Bools, answer)

    with pytest.raises(ContractError, match="must give an array of truth values, one for each"):
        Says().holds_within(cells_of([[0], [0]], Reference(ints(2), 0)))


#: The type and the field of a model, what else it needs, what is just allowed, and just not.
BOUNDS: list[tuple[str, str, dict[str, Any], list[Any], list[Any]]] = [
    ("k_anonymity", "k", {}, [2], [1, 0, -2]),
    ("l_diversity", "l", {}, [2], [1, 0]),
    ("l_diversity", "c", {"l": 2, "kind": "recursive"}, [1e-9, 50.0], [0.0, -1.0]),
    ("p_sensitive", "p", {"k": 2}, [2], [1, 0]),
    ("t_closeness", "t", {}, [1e-9, 1.0], [0.0, 1.0000001]),
    ("alpha_k", "alpha", {}, [1e-9, 1.0], [0.0, 1.0000001]),
    ("delta_disclosure", "delta", {}, [1e-9, 50.0], [0.0, -1.0]),
    ("beta_likeness", "beta", {}, [1e-9, 50.0], [0.0, -1.0]),
]


@pytest.mark.parametrize(
    ("type", "field", "rest", "allowed", "refused"), BOUNDS, ids=[f"{b[0]}.{b[1]}" for b in BOUNDS]
)
def test_bounds_of_parameters(
    type: str, field: str, rest: dict[str, Any], allowed: list[Any], refused: list[Any]
) -> None:
    model = registry.plugins("privacy model")[type]
    others = {name: value for name, value in rest.items() if name in model.model_fields}
    for value in allowed:
        assert getattr(model(**{field: value}, **others), field) == value
    for value in refused:
        with pytest.raises(ValidationError):
            model(**{field: value}, **others)
