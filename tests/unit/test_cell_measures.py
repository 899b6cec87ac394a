"""Measures that workers count in the cells: dominance and fairness, against plain counting."""

from collections import defaultdict
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonlib
from anonlib.arrays import MISSING, Ints
from anonlib.errors import ConfigError
from anonlib.loss import ReleasedBlock
from anonlib.loss.ncp import penalize
from anonlib.measure import Findings
from anonlib.measure.case import CellSums, PersonRows, split_by_cost
from anonlib.measure.cell_sums import CellMeasure, OriginalCells
from anonlib.measure.risk.dominance import Dominance
from anonlib.measure.risk.fairness import FEW, MANY, RISKS, ROWS, UNKNOWN, Fairness
from anonlib.recode.centroid import Centroid
from anonlib.recode.interval import Interval
from anonlib.table.block import Block
from anonlib.table.schema import Column, Role, Scale, Schema
from anonlib.worker.cell_counts import CellCounter, count_cells, find_cell_costs, merge_counts

Row = tuple[int, float | None, int]  # the cell, the value, the person


def seen_as(
    cell: Ints, x: Any, person: Ints | None = None, weight: Ints | None = None
) -> ReleasedBlock:
    """Cells of rows with one numeric column."""
    numbers = np.nan_to_num(np.array(x, np.float64))
    width = np.array([max(float(np.ptp(numbers)), 1.0)])
    none = np.zeros((len(cell), 0), np.int32)
    unit = None if person is None else person.astype(np.int32)
    block = Block(
        numbers[:, None], none, none, unit, width, np.zeros(0, np.int64), (), weight=weight
    )
    return ReleasedBlock(block, cell, int(cell.max()) + 1)


def counted(
    measure: CellMeasure, table: dict[str, Any], seen: list[ReleasedBlock], **how: Any
) -> dict[str, CellSums]:
    """What workers count in tasks of some rows each."""
    counter = CellCounter({"type": measure.type, **measure.model_dump()}, tuple(table))
    tasks, start = [], 0
    for each in seen:
        rows = pa.table(table).slice(start, each.block.n)
        tasks.append(count_cells(rows, {}, each, [counter], costs="least" in how))
        start += each.block.n
    states = merge_counts([counter], tasks)[measure.type]
    least = how.get("least")
    return {name: split_by_cost(state, least) for name, state in states.items()}


def case(columns: list[Column], sums: Any, **changes: Any) -> Any:
    made = {"k": 2, "n_source": 0, "person_rows": lambda: PersonRows(1, 0)}
    return SimpleNamespace(
        schema=Schema(tuple(columns)), cell_sums=lambda type: sums, **{**made, **changes}
    )


def column(id: str, role: Role = Role.QUASI_IDENTIFIER, **changes: Any) -> Column:
    return Column(id.upper(), id, role, pa.float64(), "double", **changes)


WAGE = column("wage", scale=Scale.CONTINUOUS, recoder=Centroid())


def value(found: Findings, name: str) -> float | None:
    (figure,) = [each for each in found.figures if each.name == name]
    return figure.value


def fails(rows: list[tuple[float, int]], rule: Dominance) -> tuple[bool, bool]:
    """Whether the values and persons of a cell fail the (n,k) rule, and the p% rule."""
    of_person: dict[int, float] = defaultdict(float)
    for x, person in rows:
        of_person[person] += abs(x)
    values = [*sorted(of_person.values(), reverse=True), 0.0, 0.0]
    total = sum(values)
    nk = sum(values[: rule.n_largest]) > rule.share * total
    return nk, total - values[0] - values[1] < rule.p / 100 * values[0]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.none() | st.sampled_from([0, 1, 2, -3, 40, 1000]),
            st.integers(0, 6),
        ),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 3),
    st.booleans(),
)
def test_dominance_is_that_of_plain_counting(rows: list[Row], n: int, unit: bool) -> None:
    rule = Dominance(n_largest=n, share=0.7, p=25.0)
    _, cell = np.unique([row[0] for row in rows], return_inverse=True)
    x = [row[1] for row in rows]
    person = np.array([row[2] for row in rows]) if unit else None
    table = {"wage": pa.array(x, pa.float64())}
    found = rule.measure(case([WAGE], counted(rule, table, [seen_as(cell, x, person)])))
    expected, n_cells, n_rows, at = [0, 0, 0, 0], 0, 0, dict(enumerate(rows))
    for each in range(int(cell.max()) + 1):
        mine = [(i, *at[i][1:]) for i in np.flatnonzero(cell == each).tolist()]
        present = [(float(v), who if unit else i) for i, v, who in mine if v is not None]
        if 2 * len(present) < len(mine):
            continue
        n_cells, n_rows = n_cells + 1, n_rows + len(mine)
        for rule_id, failing in enumerate(fails(present, rule)):
            expected[2 * rule_id] += failing
            expected[2 * rule_id + 1] += failing * len(mine)
    names = [*Dominance.names]
    if not n_cells:
        assert {value(found, name) for name in names} == {None}
        return
    assert [value(found, names[i]) for i in (0, 2)] == [expected[0], expected[2]]
    for i in (1, 3):
        assert value(found, names[i]) == pytest.approx(expected[i] / n_rows)


def test_dominance_of_textbook_cells() -> None:
    """Of 100: 60 and 30 have more than 85 percent together, but the 10 that others have hide the
    60 by more than 10 percent; of 1000 and 50, others hide too little."""
    cell = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    x = [60, 30, 5, 5, 1000, 50, 49, 50, 10, 10, 10]
    rule = Dominance()
    found = rule.measure(case([WAGE], counted(rule, {"wage": pa.array(x)}, [seen_as(cell, x)])))
    assert [value(found, name) for name in Dominance.names] == [2, 8 / 11, 1, 4 / 11]


@pytest.mark.parametrize(
    ("rule", "name", "x"),
    [
        (Dominance(share=0.7), "nk_cells", [40, 23, 9, 9, 9]),
        (Dominance(share=0.7), "nk_cells", [0.4, 0.23, 0.09, 0.09, 0.09]),
        (Dominance(p=7), "p_cells", [100, 50, 4, 3]),
        (Dominance(p=14), "p_cells", [1.0, 0.5, 0.1, 0.04]),
    ],
)
def test_cells_at_the_bound_of_a_rule_keep_it(rule: Dominance, name: str, x: list[float]) -> None:
    """More than a share, and less than a percentage: at either, floats have no say."""
    cell = np.zeros(len(x), np.int64)
    found = rule.measure(case([WAGE], counted(rule, {"wage": pa.array(x)}, [seen_as(cell, x)])))
    assert value(found, name) == 0
    x = [x[0] * 1.001, *x[1:]]
    found = rule.measure(case([WAGE], counted(rule, {"wage": pa.array(x)}, [seen_as(cell, x)])))
    assert value(found, name) == 1


def test_rows_that_stand_for_several_are_as_many_contributors() -> None:
    cell, x = np.array([0, 0, 1]), [100, 1, 5]
    rule, table = Dominance(), {"wage": pa.array([100, 1, 5])}
    seen = seen_as(cell, x, weight=np.array([3, 1, 4]))
    found = rule.measure(case([WAGE], counted(rule, table, [seen])))
    assert value(found, "nk_cells") == value(found, "p_cells") == 0
    seen = seen_as(cell, x, weight=np.array([1, 3, 4]))
    found = rule.measure(case([WAGE], counted(rule, table, [seen])))
    assert value(found, "nk_cells") == value(found, "p_cells") == 1


def test_dominance_is_of_means_of_numbers() -> None:
    day = Column("D", "d", Role.QUASI_IDENTIFIER, pa.date32(), "date", recoder=Centroid())
    other = column("a", recoder=Interval())
    schema = Schema((WAGE, day, other))
    assert Dominance().choose_columns(schema) == (WAGE,)
    published = Dominance().measure(case([WAGE, day, other], None))
    assert {(figure.of, figure.value) for figure in published.figures} == {("WAGE", None)}


def test_suppressed_cells_do_not_count() -> None:
    """Cells of a cost of `least` or more; and the tasks of a run are one."""
    cells = [np.array([0, 0, 0, 1, 1]), np.array([0, 0])]
    x = [1.0, 1.0, 1.0, 0.0, 5.0, 2.0, 2.0]
    seen = [seen_as(cells[0], x[:5]), seen_as(cells[1], x[5:])]
    costs = [find_cell_costs(each).tolist() for each in seen]
    assert costs == [[0, 10_000], [0]]
    rule, table = Dominance(), {"wage": pa.array(x)}
    (sums,) = counted(rule, table, seen, least=10_000).values()
    assert (sums.whole[:2].tolist(), sums.released[:2].tolist()) == ([3, 7], [2, 5])
    (sums,) = counted(rule, table, seen).values()
    assert sums.whole[:2].tolist() == sums.released[:2].tolist() == [3, 7]


def groups(
    sex: list[str | None], cell: Ints, x: Any, *, k: int, least: int | None = None, **changes: Any
) -> Findings:
    """The findings on a column `sex`, that the release has as it is."""
    how = {} if least is None else {"least": least}
    sums = counted(Fairness(columns=("SEX",)), {"sex": pa.array(sex)}, [seen_as(cell, x)], **how)
    own = Column("SEX", "sex", Role.INSENSITIVE, pa.string(), "string")
    given = {"k": k, "n_source": len(sex), **changes}
    return Fairness(columns=("SEX",)).measure(case([own], sums, **given))


def test_groups_have_their_own_loss_and_risk() -> None:
    cell = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    x = [0.0, 1.0, 0.0, 1.0, 5.0, 5.0, 0.0, 10.0, 4.0]
    sex = ["f", "f", "m", "m", "m", "m", "f", "f", "f"]
    found = groups(sex, cell, x, k=2)
    penalty = penalize(seen_as(cell, x))[cell]
    chance = 1 / np.bincount(cell)[cell]
    (table,) = found.series
    rows = {row[0]: row[1:] for row in table.rows}
    assert [row[0] for row in table.rows] == ["f", "m"]
    for name, n in (("f", 5), ("m", 4)):
        own = np.array(sex) == name
        expected = [n, penalty[own].mean(), 0.0, chance[own].mean()]
        assert rows[name] == pytest.approx(expected, abs=2e-6)
    assert value(found, "worst_loss") == pytest.approx(penalty[np.array(sex) == "f"].mean())
    assert value(found, "worst_risk") == 3 / 8  # m: two rows of 4, two of 2
    gap = penalty[np.array(sex) == "f"].mean() - penalty.mean()
    assert value(found, "loss_gap") == pytest.approx(gap)
    assert value(found, "worst_suppression") == value(found, "suppression_gap") == 0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_figures_are_rounded_once(sizes: list[int]) -> None:
    """Gates are judged by them, so 1/6 is neither 0.166667 nor what a grid makes of it."""
    cell = np.repeat(np.arange(len(sizes)), sizes)
    x = np.concatenate([[*range(size - 1), 8.0 if size > 1 else 0.0] for size in sizes])
    found = groups(["f"] * len(cell), cell, x, k=1)
    penalty = [Fraction(each) for each in penalize(seen_as(cell, x))[cell].tolist()]
    assert value(found, "worst_risk") == float(Fraction(len(sizes), len(cell)))
    assert value(found, "worst_loss") == float(sum(penalty) / len(cell))


def test_who_is_suppressed_has_lost_all() -> None:
    """Whether a cell was suppressed for its cost, or the plan left rows out."""
    cell = np.array([0, 0, 0, 1, 1])
    x = [1.0, 1.0, 1.0, 0.0, 5.0]
    found = groups(["f", "f", "m", "m", "m"], cell, x, k=1, least=10_000)
    (table,) = found.series
    assert table.rows == (
        ("m", 1, pytest.approx(2 / 3, abs=1e-6), pytest.approx(2 / 3, abs=1e-6), 0.333333),
        ("f", 2, 0.0, 0.0, 0.333333),
    )
    assert value(found, "worst_suppression") == 2 / 3
    assert value(found, "suppression_gap") == 4 / 15
    counts = pa.table({"sex": ["f", "m", None]}), np.array([2, 3, 4])
    changes = {"n_source": 9, "tuples": lambda ids, most, released: counts}
    found = groups(["f", "f", "m", "m", "m"], cell, np.ones(5), k=2, **changes)
    (table,) = found.series
    assert [row[:4] for row in table.rows] == [
        ("groups left out", 0, 1.0, 1.0),
        ("f", 2, 0.0, 0.0),
        ("m", 3, 0.0, 0.0),
    ]


def test_small_groups_have_no_name() -> None:
    cell = np.zeros(12, np.int64)
    sex = ["a"] * 5 + ["b"] * 4 + ["secret", "c", None]
    found = groups(sex, cell, np.arange(12.0), k=3)
    assert [row[0] for row in found.series[0].rows] == ["a", "b", "other groups"]
    # Alone, what is left would be too small: the smallest group goes with it.
    found = groups(sex[:10], cell[:10], np.arange(10.0), k=3)
    assert [row[:2] for row in found.series[0].rows] == [("a", 5), ("other groups", 5)]
    found = groups(["a", "b", "c"], cell[:3], np.arange(3.0), k=4)
    assert {(f.value, f.note) for f in found.figures} == {(None, FEW)}
    assert found.series[0].rows == ()


def test_columns_without_groups_say_why() -> None:
    many = [f"v{i}" for i in range(201)]
    found = groups([*many], np.zeros(201, np.int64), np.ones(201), k=2)
    assert {(f.value, f.note) for f in found.figures} == {(None, MANY)}
    own = Column("SEX", "sex", Role.SENSITIVE, pa.string(), "string")
    found = Fairness(columns=("SEX",)).measure(case([own], {}))
    assert {figure.note for figure in found.figures} == {UNKNOWN}


def test_persons_with_several_rows_are_one() -> None:
    """And rows of nobody are no persons."""
    cell = np.zeros(5, np.int64)
    cells = OriginalCells({}, {}, seen_as(cell, np.ones(5), np.array([1, 1, 2, MISSING, MISSING])))
    assert cells.persons.tolist() == [2]


def test_columns_that_fairness_can_not_compare_are_told() -> None:
    config = {
        "source": {"format": "parquet", "path": "people"},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "name": {"role": "identifier"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": "out"},
        "evaluate": {"measures": [{"type": "fairness", "columns": ["age", "name", "aga"]}]},
    }
    with pytest.raises(ConfigError) as caught:
        anonlib.parse(config)
    texts = [problem.text for problem in caught.value.problems]
    assert len(texts) == 2
    assert all("there are: age" in text for text in texts)
    assert any("did you mean" in text for text in texts)


def test_a_person_of_many_rows_hides_no_group() -> None:
    """Groups of k persons are compared, however many rows somebody else has; and the figures are of
    all of them, also of one that the series joins with a few persons."""
    random = np.random.default_rng(1)
    n = 600
    table = pd.DataFrame(
        {
            "age": random.integers(20, 30, n).astype(float),
            "group": random.choice(["x", "y"], n),
            "work": random.choice([*"abcd"], n),
            "person": np.arange(n),
        }
    )
    table.loc[:39, "group"], table.loc[:39, "age"] = "z", np.linspace(30, 200, 40)
    table.loc[40, "group"] = "w"
    table.loc[400:419, "person"] = 400
    roles = {"quasi_identifiers": ["age"], "sensitive": ["work"], "insensitive": ["group"], "k": 5}
    more = {
        "recode": {"continuous": "interval"},
        "privacy": {"acknowledge_unique": True},
        "evaluate": {"measures": [{"type": "fairness", "columns": ["group"]}]},
    }
    found = []
    for persons in ({"unit": ["person"]}, {"one_row_per_person": True, "identifiers": ["person"]}):
        evaluation = anonlib.anonymize(table, **roles, **persons, **more).evaluation
        assert evaluation is not None
        found.append(evaluation.findings["fairness"])
    by_person, by_row = found
    for name in ("worst_loss", "loss_gap"):
        assert value(by_person, name) == pytest.approx(value(by_row, name), rel=0.05)
    note = "1 group of fewer than k persons: they are left out"
    risks = [f for f in by_person.figures if f.name in RISKS]
    assert {f.note for f in by_person.figures if f not in risks} == {note}
    assert {(f.note, f.by_rows) for f in risks} == {(f"{note}; {ROWS}", True)}
    assert not any(f.by_rows for f in (*by_row.figures, *by_person.figures) if f not in risks)
    shown = {row[0]: row[1:3] for row in by_person.series[0].rows}
    assert shown.keys() == {"x", "y", "other groups"}
    n, loss = shown["other groups"]
    assert n == 41
    assert value(by_person, "worst_loss") > 1.02 * loss > 50 * shown["x"][1]
