"""Which data controllers are kept, merged or suppressed, and what is left to compare them with."""

from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np
import pyarrow as pa
import pytest

from anonlib.arrays import Bools
from anonlib.errors import InfeasibleError
from anonlib.partition.repair import BlockCounts
from anonlib.partition.settlement import (
    Controllers,
    find_demands,
    merge_controllers,
    suppress_controllers,
)
from anonlib.privacy import Reference, SparseCounts
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.encoding import Values

#: The value of each row of four controllers; None is missing.
ROWS: tuple[Sequence[str | None], ...] = (
    ["a", "a", "b", None],
    ["a", "c", None],
    ["b", "b", "d", None, None],
    ["d"],
)
PLACE = {value: place for place, value in enumerate("abcd")}
#: By value, from "a": its group of a hierarchy.
GROUPS = np.array([[0, 0, 1, 1]])


def values_of(rows: Sequence[Sequence[str | None]]) -> Values:
    every = [value for some in rows for value in some]
    there = [value for value in PLACE if value in every]
    counts = np.array([every.count(value) for value in there], np.int64)
    levels = GROUPS[:, [PLACE[value] for value in there]]
    return Values(pa.array(there), Reference(counts, every.count(None), levels))


def controllers_of(
    sizes: Sequence[int], ks: Sequence[int], asked: Bools | None = None
) -> Controllers:
    """Controllers of so many rows. ks: The k of each set of models."""
    n = len(sizes)
    must_hold = np.ones((n, len(ks)), np.bool_) if asked is None else asked
    models = tuple((KAnonymity(k=k),) for k in ks)
    return Controllers(np.arange(n), np.array(sizes), np.arange(n), must_hold, models, {})


def count_rows(controllers: Controllers) -> BlockCounts:
    return BlockCounts(controllers.n_rows, controllers.n_rows, {}, shared=False)


@pytest.mark.parametrize("shared", [False, True])
def test_kept_controllers_are_compared_with_what_they_have(*, shared: bool) -> None:
    """Not with values of suppressed rows; where persons may be at several controllers, all stay."""
    controllers = replace(
        controllers_of([len(some) for some in ROWS], [4]), values={"s": values_of(ROWS)}
    )

    def count(controllers: Controllers) -> BlockCounts:
        numbers = {
            value: i for i, value in enumerate(controllers.values["s"].categories.to_pylist())
        }
        kept = np.flatnonzero(controllers.head >= 0).tolist()
        found = {(o, v): ROWS[o].count(v) for o in kept for v in numbers if v in ROWS[o]}
        cell, value = np.array([(o, numbers[v]) for o, v in found]).T
        counted = SparseCounts(cell, value, np.array([*found.values()]))
        return BlockCounts(controllers.n_rows, controllers.n_rows, {}, shared, {"s": counted})

    left = suppress_controllers(controllers, count, 4, 13)
    assert left.head.tolist() == [0, -1, 2, -1]
    assert left.kept_rows.tolist() == [4, 0, 5]
    found, expected = left.values["s"], values_of(ROWS if shared else (ROWS[0], ROWS[2]))
    assert found.categories.to_pylist() == expected.categories.to_pylist()
    assert found.reference.n_missing == expected.reference.n_missing
    for ours, theirs in zip(*map(astuple, (found.reference, expected.reference)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    without = replace(values_of(ROWS), reference=replace(values_of(ROWS).reference, levels=None))
    flat = suppress_controllers(replace(controllers, values={"s": without}), count, 4, 13)
    assert flat.values["s"].reference.levels is None


def test_no_more_rows_are_suppressed_than_may_be() -> None:
    controllers = controllers_of([9, 2, 1], [3])
    assert suppress_controllers(controllers, count_rows, 3, 12).head.tolist() == [0, -1, -1]
    with pytest.raises(InfeasibleError, match="2 of 3 controllers, with 3 of 12 rows"):
        suppress_controllers(controllers, count_rows, 2, 12)
    with pytest.raises(InfeasibleError, match="2 of 2 controllers, with 3 of 3 rows"):
        suppress_controllers(controllers_of([1, 2], [3]), count_rows, 3, 3)
    assert suppress_controllers(controllers_of([3, 4], [3]), count_rows, 0, 7).head.tolist() == [
        0,
        1,
    ]


def test_models_of_their_own() -> None:
    """A merged controller asks for those of all its members."""
    asked = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]], np.bool_)
    controllers = controllers_of([5, 9, 9, 9], [2, 4, 6], asked)
    four, both = (KAnonymity(k=4),), (KAnonymity(k=4), KAnonymity(k=6))
    assert controllers.own == {1: four, 2: both, 3: four}
    assert controllers.with_own_models() == [((1, 3), four), ((2,), both)]
    assert controllers.demands(np.array([0, 2])).must_hold.tolist() == asked[[0, 2]].tolist()
    merged = replace(controllers, head=np.array([0, 1, 1, -1]))
    assert merged.own == {1: four}
    assert merged.to_dict() == {"n": 4, "n_suppressed": 1, "n_merged": 1}


def test_without_controllers_the_models_of_the_config_are_asked() -> None:
    asked = np.array([[1, 0], [1, 1]], np.bool_)
    controllers, models = controllers_of([5, 9], [2, 4], asked), (KAnonymity(k=3),)
    found = find_demands(controllers, models, np.array([1, 1, 0]))
    assert (found.sets, found.must_hold.tolist()) == (controllers.sets, asked[[1, 1, 0]].tolist())
    alone = find_demands(None, models, np.array([0, 0, 0]))
    assert (alone.sets, alone.must_hold.tolist()) == ((models,), [[True]] * 3)


def test_failing_controllers_join_the_nearest() -> None:
    asked = np.array([[1, 0], [1, 1], [1, 0], [1, 0]], np.bool_)
    controllers = controllers_of([9, 3, 5, 4], [3, 4], asked)
    centers = np.array([[0.0], [5.0], [6.0], [20.0]])
    merged = merge_controllers(controllers, count_rows, centers)
    assert merged.head.tolist() == [0, 1, 1, 3]
    assert merged.kept_rows.tolist() == [9, 8, 0, 4]
    assert merged.own == {1: (KAnonymity(k=4),)}
    large = controllers_of([9, 3, 5, 4], [3, 50], asked)
    with pytest.raises(InfeasibleError, match="all controllers together don't hold"):
        merge_controllers(large, count_rows, centers)


#: The person and the value of each row of three controllers. The first two share a person.
SHARED = ([("z", "b"), ("q", "a")], [("p", "a"), ("r", "a"), ("z", "b")], [("w", "c"), ("v", "d")])


def count_shared(controllers: Controllers) -> BlockCounts:
    """The persons of each head, and those with each value."""
    found: dict[tuple[int, int], set[str]] = {}
    persons: list[set[str]] = [set() for _ in SHARED]
    for head, rows in zip(controllers.head.tolist(), SHARED, strict=True):
        for person, value in rows:
            persons[head].add(person)
            found.setdefault((head, PLACE[value]), set()).add(person)
    pairs = sorted(found)
    cell, value = np.array(pairs).T
    nothing = np.zeros(len(SHARED), np.int64)
    n_persons = np.array([*map(len, persons)])
    counts = SparseCounts(
        cell, value, np.array([len(found[pair]) for pair in pairs]), nothing, n_persons
    )
    n_rows = np.bincount(controllers.head, controllers.n_rows, len(SHARED)).astype(np.int64)
    return BlockCounts(n_rows, n_persons, {}, shared=True, counts={"s": counts})


def test_persons_of_merged_controllers_are_counted_again() -> None:
    """Together they have six persons."""
    asked = np.array([[1, 0], [1, 1], [1, 0]], np.bool_)
    centers = np.array([[0.0], [1.0], [2.0]])
    six = controllers_of([2, 3, 2], [2, 6], asked)
    assert merge_controllers(six, count_shared, centers).head.tolist() == [0, 0, 0]
    with pytest.raises(InfeasibleError, match="all controllers together don't hold"):
        merge_controllers(controllers_of([2, 3, 2], [2, 7], asked), count_shared, centers)


def test_merged_controllers_that_fail_by_their_persons_merge_on() -> None:
    """Of the second controller's three persons, two have `a`. With the nearest, three of four do,
    though three of five by sums, which count a person with `b` twice. Of all, three of six do."""
    asked = np.array([[1, 0], [1, 1], [1, 0]], np.bool_)
    centers = np.array([[0.0], [1.0], [9.0]])
    for alpha, expected in ((0.75, [0, 1, 2]), (0.6, [0, 0, 0])):
        models = ((KAnonymity(k=2),), (AlphaK(alpha=alpha, attribute="s"),))
        controllers = replace(controllers_of([2, 3, 2], [2, 2], asked), sets=models)
        merged = merge_controllers(controllers, count_shared, centers)
        assert merged.head.tolist() == expected
