"""The categories of columns, as both scans find them."""

from typing import Any

import pyarrow as pa
import pytest

from anonlib.run.categories import order_categories
from anonlib.table.schema import Column, Role, Scale, Schema


def column(id: str, **how: Any) -> Column:
    return Column(
        name=f"name of {id}",
        id=id,
        role=Role.QUASI_IDENTIFIER,
        type=pa.string(),
        source_type="string",
        **{"scale": Scale.NOMINAL, **how},
    )


def listed(*values: str) -> tuple[pa.Array, pa.Array]:
    """Values, and a hash of each."""
    return pa.array(values, pa.string()), pa.array([ord(value[0]) for value in values], pa.int64())


def test_they_are_in_order_with_their_hashes() -> None:
    """A declared order has those, too, that do not occur."""
    sizes = column("c1", scale=Scale.ORDINAL, order=("s", "m", "l"))
    values = {"c0": listed("b", "c", "a"), "c1": listed("l", "s")}
    found, problems = order_categories(Schema((column("c0"), sizes)), values, 3, ())
    assert problems == []
    assert {id: each.to_pylist() for id, each in found.values.items()} == {
        "c0": ["a", "b", "c"],
        "c1": ["s", "m", "l"],
    }
    assert {id: each.tolist() for id, each in found.hashes.items()} == {
        "c0": [97, 98, 99],
        "c1": [115, 0, 108],
    }


@pytest.mark.parametrize(("n", "fits"), [(3, True), (4, False)])
def test_too_many(n: int, fits: bool) -> None:
    values = {"c0": listed(*"abcd"[:n])}
    _, problems = order_categories(Schema((column("c0"),)), values, 3, ())
    assert [problem.where for problem in problems] == ([] if fits else ["column name of c0"])
    text = "more than max_categories = 3 distinct values"
    assert all(problem.text.startswith(text) for problem in problems)


def test_all_problems_together() -> None:
    """Of several columns, and of one that has too many and an order that lacks some."""
    sizes = column("c1", scale=Scale.ORDINAL, order=("s", "m"))
    values = {"c0": listed(*"abcd"), "c1": listed("?", "s", "x", "l", "k")}
    found, problems = order_categories(Schema((column("c0"), sizes)), values, 3, ("?",))
    assert [problem.where for problem in problems] == [
        "column name of c0",
        "column name of c1",
        "attributes.name of c1.order",
    ]
    assert "lacks 4 of the distinct values" in problems[2].text
    assert "one is a missing token: '?', which a quasi" in problems[2].text
    assert "c1" not in found.values
