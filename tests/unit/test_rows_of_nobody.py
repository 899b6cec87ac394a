"""Rows without a person: they are no evidence that k persons share a value."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonlib
from anonlib.measure.case import PersonRows
from anonlib.measure.risk.fairness import CHANCE_LIMBS, LOSS_LIMBS, PersonGroup

CONTINUOUS: dict[str, Any] = {"role": "quasi_identifier", "scale": "continuous"}
NOMINAL: dict[str, Any] = {"role": "quasi_identifier", "scale": "nominal"}
#: Ten persons, and two rows of nobody.
PERSONS = [f"p{i}" for i in range(9)] + [None, None, "p9"]


def test_rows_that_surely_hold_persons() -> None:
    """Persons have up to 2 rows, and 3 rows are of nobody: 6 rows may be these 3, one person's 2
    and another one's."""
    rows = PersonRows(most=2, of_nobody=3)
    assert rows.count_sure(2) == 7
    assert [rows.count_fewest(n) for n in (0, 3, 4, 5, 6, 7, 8)] == [0, 0, 1, 1, 2, 2, 3]
    for k in range(5):
        assert rows.count_fewest(rows.count_sure(k)) >= k
    assert [PersonRows(1, 0).count_fewest(n) for n in (0, 5)] == [0, 5]


def release(table: pd.DataFrame, **attributes: dict[str, Any]) -> Any:
    return anonlib.anonymize(
        table,
        {
            "attributes": {"x": CONTINUOUS, "pid": {"role": "identifier"}, **attributes},
            "unit": ["pid"],
            "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
            "seed": 1,
        },
    )


def test_a_value_of_one_person_and_of_nobody_is_not_named() -> None:
    """Three rows have it, but one person."""
    sick = ["flu"] * 4 + ["cold"] * 5
    table = pd.DataFrame({"x": np.arange(12.0), "pid": PERSONS, "s": [*sick, *["RARE"] * 3]})
    result = release(table, s={"role": "sensitive"})
    assert "RARE" not in str(result.record)
    assert "RARE" not in result.report()


def test_marginals_do_not_name_it() -> None:
    town = ["A", "B"] * 10
    table = pd.DataFrame(
        {
            "x": np.arange(20.0),
            "pid": [*PERSONS, *(f"r{i}" for i in range(8))],
            "town": [*town[:9], *["RARE"] * 3, *town[12:]],
            "s": (["u", "v", "w"] * 7)[:20],
        }
    )
    config = {
        "attributes": {
            "x": CONTINUOUS,
            "pid": {"role": "identifier"},
            "town": NOMINAL,
            "s": {"role": "sensitive"},
        },
        "unit": ["pid"],
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "evaluate": {"measures": [{"type": "marginals"}]},
        "seed": 1,
    }
    result = anonlib.anonymize(table, config)
    assert result.evaluation is not None
    assert "RARE" in set(result.table["town"])  # so that its name is no secret of a recoder
    assert "RARE" not in str(result.evaluation.to_dict())
    assert "RARE" not in str(result.record)


def test_a_group_of_which_only_rows_of_nobody_are_left() -> None:
    """Of three persons and three rows of nobody, three rows are released: maybe none of a
    person."""
    sums = np.array([3.0, *np.zeros(LOSS_LIMBS + CHANCE_LIMBS)])
    group = PersonGroup.of("RARE", 6, 3, PersonRows(1, 3), sums)
    assert (group.n_persons, group.n_left) == (3, 0)
    whole = PersonGroup.of("RARE", 6, 3, PersonRows(1, 1), sums)
    assert whole.n_left == 2


JOINT: list[dict[str, Any]] = [
    {"type": "l_diversity", "l": 2},
    {"type": "l_diversity", "l": 2, "kind": "entropy"},
    {"type": "l_diversity", "l": 2, "kind": "recursive", "c": 3.0},
    {"type": "p_sensitive", "p": 2},
    {"type": "alpha_k", "alpha": 0.9},
    {"type": "t_closeness", "t": 0.5},
    {"type": "t_closeness", "t": 0.5, "distance": "ordered"},
    {"type": "beta_likeness", "beta": 2.0},
    {"type": "delta_disclosure", "delta": 2.0},
]


@pytest.mark.parametrize("model", JOINT, ids=lambda model: "-".join(map(str, model.values())))
def test_who_knows_what_only_a_row_of_nobody_has_learns_nothing(model: dict[str, Any]) -> None:
    """Six persons have `p`, with both values of `s`; only a row of nobody has `q`."""
    table = pd.DataFrame(
        {
            "x": np.arange(7.0),
            "pid": [*"abcdef", None],
            "s": [*"uvuvuvu"],
            "r": [*"ppppppq"],
        }
    )
    order = {"order": ["u", "v"]} if model.get("distance") == "ordered" else {}
    config = {
        "attributes": {
            "x": CONTINUOUS,
            "pid": {"role": "drop"},
            "s": {"role": "sensitive", **order},
            "r": {"role": "sensitive"},
        },
        "unit": ["pid"],
        "privacy": {
            "models": [{"type": "k_anonymity", "k": 3}, {**model, "attribute": "s"}],
            "joint": True,
        },
    }
    result = anonlib.anonymize(table, config)
    assert len(result.table) == 7
    assert result.audit.passed
    assert any("joint=True" in verdict.model for verdict in result.audit.verdicts)
