"""The overview that every release has: columns before and after, as workers count them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.arrays import Ints, snap
from anonlib.loss import ReleasedBlock
from anonlib.measure import Findings
from anonlib.measure.case import PersonRows, split_by_cost
from anonlib.measure.fidelity.marginals import Marginals
from anonlib.measure.fidelity.overview import LEFT_OUT, NAMED, NOTHING, ODD, PUBLISHED, Overview
from anonlib.pages.measures import list_distributions
from anonlib.recode import Cells, Domain
from anonlib.recode.centroid import Centroid
from anonlib.recode.interval import Interval
from anonlib.recode.mode import Mode
from anonlib.recode.set import Set
from anonlib.table.block import Block
from anonlib.table.encoding import fit_whole
from anonlib.table.schema import Column, Role, Scale, Schema
from anonlib.worker.cell_counts import CellCounter, count_cells, merge_counts
from tests.attack_tables import fold_parts

K, N = 5, 200


def quasi(id: str, type: pa.DataType, scale: Scale, recoder: Any) -> Column:
    return Column(
        id.upper(), id, Role.QUASI_IDENTIFIER, type, str(type), scale=scale, recoder=recoder
    )


SCHEMA = Schema(
    (
        quasi("age", pa.float64(), Scale.CONTINUOUS, Centroid()),
        quasi("born", pa.int64(), Scale.CONTINUOUS, Interval()),
        quasi("town", pa.string(), Scale.NOMINAL, Mode()),
        quasi("cars", pa.string(), Scale.NOMINAL, Set()),
        Column("WAGE", "wage", Role.SENSITIVE, pa.float64(), "double"),
        Column("ILL", "ill", Role.SENSITIVE, pa.string(), "string"),
        Column("NOTE", "note", Role.SENSITIVE, pa.list_(pa.string()), "array<string>"),
    )
)


def table() -> pa.Table:
    random = np.random.default_rng(3)
    age = random.normal(40, 10, N).round(1)
    age[::9] = np.nan
    return pa.table(
        {
            "age": pa.array(age, from_pandas=True),
            "born": random.integers(1930, 2000, N),
            "town": random.choice([*"abc"], N),
            "cars": pa.array(random.choice(["red", "blue", None], N)),
            "wage": random.integers(1, 9, N) * 100.0,
            "ill": pa.array(random.choice(["flu", "gout", None], N, p=[0.6, 0.3, 0.1])),
            "note": pa.array([["x"]] * N),
        }
    )


def released_by(source: pa.Table, cell: Ints) -> dict[str, Any]:
    """By id: the released values of the cells."""
    cells = Cells(cell, int(cell.max()) + 1)
    return {
        c.id: c.recoder.recode(source.column(c.id).combine_chunks(), cells, Domain())
        for c in SCHEMA.quasi_identifiers
    }


def encodings(source: pa.Table) -> list[Any]:
    return [fit_whole(c, source.column(c.id).combine_chunks()) for c in SCHEMA.quasi_identifiers]


def count(source: pa.Table, cell: Ints, n_tasks: int, fit: Any = None) -> tuple[Any, Any]:
    """The sums of all tasks, and what was fitted, if it is not given."""
    measure = Overview()
    fit = fit or measure.fit(SCHEMA, encodings(source), source)
    ids = tuple(column.id for column in measure.choose_columns(SCHEMA))
    counter, tasks = CellCounter({"type": "overview"}, ids, fit), []
    for part in np.array_split(np.arange(int(cell.max()) + 1), n_tasks):
        rows = np.flatnonzero(np.isin(cell, part))
        own, its = cell[rows] - part[0], source.take(pa.array(rows))
        none = np.zeros((len(rows), 0), np.int32)
        block = Block(none * 1.0, none, none, None, np.zeros(0), np.zeros(0, np.int64), ())
        seen = ReleasedBlock(block, own, len(part))
        tasks.append(count_cells(its, released_by(its, own), seen, [counter], costs=False))
    states = merge_counts([counter], tasks)["overview"]
    return {name: split_by_cost(state, None) for name, state in states.items()}, fit


def find(
    sums: Any,
    fit: Any,
    source: Any = None,
    released: Any = None,
    reads: Any = None,
    n_rows: int = N,
) -> Findings:
    """What is found of rows that workers counted, `n_rows` without tables; of tables, if these are
    given, too. `reads` gets the side and the columns of each pass."""

    def fold(ids: Any, count: Any, merge: Any, *, released: bool) -> Any:
        if reads is not None:
            reads.append(("release" if released else "source", sorted(ids)))
        return fold_parts(tables[released].select(ids), count, merge, 3)

    tables = source, released
    case: Any = SimpleNamespace(
        schema=SCHEMA,
        k=K,
        n_source=n_rows if source is None else source.num_rows,
        n_released=n_rows if released is None else released.num_rows,
        cell_sums=lambda type: sums,
        cell_fit=lambda type: fit,
        fold=fold,
        person_rows=lambda: PersonRows(1, 0),
    )
    return Overview().measure(case)


def shares(found: Findings) -> dict[str, Any]:
    return {series.of: series.rows for series in found.series}


def cells() -> Ints:
    return np.arange(N) * (N // K) // N


def test_distributions_are_those_of_marginals() -> None:
    """Those that one pass over each table gives, for quasi-identifiers."""
    source, cell = table(), cells()
    released = released_by(source, cell)
    by_row = pa.table({id: values.take(pa.array(cell)) for id, values in released.items()})
    known = {encoding.id: encoding for encoding in encodings(source)}

    def fold(ids: Any, count: Any, merge: Any, *, released: bool) -> Any:
        return count([by_row if released else source])

    case: Any = SimpleNamespace(
        schema=Schema(SCHEMA.quasi_identifiers),
        encodings=known,
        n_source=N,
        n_released=N,
        k=K,
        seed=0,
        measures=(Marginals(),),
        cache={},
        person_rows=lambda: PersonRows(1, 0),
        summarize=lambda columns: {},
        distinct_values=lambda ids: {},
        fold=fold,
    )
    expected = shares(Marginals().measure(case))
    for n_tasks in (1, 3):
        found = shares(find(*count(source, cell, n_tasks)))
        assert {name: found[name] for name in expected} == {
            name: tuple((row[0], *(pytest.approx(x, abs=2e-3) for x in row[1:])) for row in rows)
            for name, rows in expected.items()
        }


def test_masses_are_the_same_by_any_tasks() -> None:
    """Intervals cover parts of bins, and sets have three members: no share is a sum of halves."""
    source, cell = table(), cells()
    whole, _ = count(source, cell, 1)
    for n_tasks in (2, 3, 7, 40):
        parts, _ = count(source, cell, n_tasks)
        assert set(parts) == set(whole)
        for name, sums in parts.items():
            if NAMED not in name:
                assert sums.whole.tolist() == whole[name].whole.tolist()
                assert (snap(sums.whole) == sums.whole).all()


def test_sensitive_columns_are_released_as_they_are() -> None:
    source = table()
    found = find(*count(source, cells(), 2))
    rows = shares(found)
    n = {value: source.column("ill").to_pylist().count(value) for value in ("flu", "gout", None)}
    assert rows["ILL"] == (
        ("flu", n["flu"] / N, n["flu"] / N),
        ("gout", n["gout"] / N, n["gout"] / N),
        ("missing", n[None] / N, n[None] / N),
    )
    assert sum(row[1] for row in rows["WAGE"]) == pytest.approx(1)
    assert "NOTE" not in rows
    values = {figure.of: figure.value for figure in found.figures}
    assert values["ILL"] == values["WAGE"] == 0
    assert 0 < (values["AGE"] or 0) < 1


def test_values_beyond_the_sample_count_together() -> None:
    source = table()
    measure = Overview()
    fit = measure.fit(SCHEMA, encodings(source), source)
    rare = ["flu"] * 10 + ["new"] * 6 + ["newer"]
    none = np.zeros((17, 0), np.int32)
    block = Block(none * 1.0, none, none, None, np.zeros(0), np.zeros(0, np.int64), ())
    counter = CellCounter({"type": "overview"}, ("ill",), fit)
    seen = ReleasedBlock(block, np.zeros(17, np.int64), 1)
    task = count_cells(pa.table({"ill": rare}), {}, seen, [counter], costs=False)
    states = merge_counts([counter], [task])["overview"]
    sums = {name: split_by_cost(state, None) for name, state in states.items()}
    assert shares(find(sums, {"ill": fit["ill"]}, n_rows=17))["ILL"] == (
        ("flu", pytest.approx(10 / 17), pytest.approx(10 / 17)),
        ("other", pytest.approx(7 / 17), pytest.approx(7 / 17)),
    )


def by_rows(source: pa.Table, cell: Ints, kept: Any) -> pa.Table:
    """The released rows of the cells, those of which are kept."""
    found = released_by(source, cell)
    rows = {id: values.take(pa.array(cell)) for id, values in found.items()}
    others = {id: source.column(id).combine_chunks() for id in ("wage", "ill")}
    return pa.table({**rows, **others}).filter(pa.array(kept))


def test_tables_say_what_workers_counted() -> None:
    """Where a plan did not show a column to workers, and where cells are suppressed later."""
    source, cell = table(), cells()
    sums, fit = count(source, cell, 2)
    whole = by_rows(source, cell, np.ones(N, np.bool_))
    expected = find(sums, fit)
    assert find({}, fit, source, whole) == expected
    unseen = {name: each for name, each in sums.items() if '"ill"' not in name}
    assert find(unseen, fit, source, whole) == expected


def test_suppressed_rows_are_rows_of_the_source() -> None:
    """Whether workers saw them or the plan left them out before."""
    source, cell = table(), cells()
    sick = np.array(source.column("ill").to_pylist()) == "flu"
    well, own = source.filter(pa.array(~sick)), np.unique(cell[~sick], return_inverse=True)[1]
    of_all, fit = count(source, cell, 2)
    of_kept, _ = count(well, own, 2, fit)
    tables = by_rows(source, cell, ~sick), by_rows(well, own, np.ones(len(own), np.bool_))
    reads: list[Any] = []
    found = [
        find(sums, fit, source, released, reads)
        for sums, released in zip((of_all, of_kept), tables, strict=True)
    ]
    assert reads == [("release", sorted(fit)), ("source", sorted(fit))]  # never both tables
    assert found == [find({}, fit, source, released) for released in tables]
    values = {figure.of: figure.value for figure in found[0].figures}
    assert values["ILL"] == sick.mean()
    assert "flu" not in {row[0] for row in shares(found[0])["ILL"]}  # no released row has it


def test_columns_that_nothing_counted_say_why() -> None:
    sums, fit = count(table(), cells(), 1)
    notes = {figure.note for figure in find(None, None).figures}
    assert notes == {PUBLISHED}
    assert {figure.note for figure in find({}, {}).figures} == {LEFT_OUT}
    empty = table().slice(0, 0)
    assert {figure.note for figure in find(sums, fit, table(), empty).figures} == {NOTHING}


def test_a_page_has_each_column_once() -> None:
    """From a measure of the config where it has the column."""
    heads = ["category", "source", "release"]

    def series(of: str, share: float) -> dict[str, Any]:
        rows = [["a", share, share], ["b", 1 - share, 1 - share]]
        return {"name": "distribution", "of": of, "heads": heads, "rows": rows}

    overview = {"series": [series("age", 0.1), series("ill", 0.2)]}
    measures = {"marginals": {"series": [series("age", 0.3)]}}
    charts = list_distributions({"evaluation": {"measures": measures}, "overview": overview}).charts
    assert [chart.title for chart in charts] == ["age", "ill"]
    assert charts[0].table.rows[0][1] == 0.3


def test_a_column_that_can_not_be_read_is_left_out() -> None:
    """The release does not fail; and a task that can't read it is enough."""
    source, cell = table(), cells()
    sums, fit = count(source, cell, 1)
    released = {**released_by(source, cell), "town": pa.array([1.5] * (int(cell.max()) + 1))}
    none = np.zeros((N, 0), np.int32)
    block = Block(none * 1.0, none, none, None, np.zeros(0), np.zeros(0, np.int64), ())
    counter = CellCounter({"type": "overview"}, ("age", "town"), fit)
    seen = ReleasedBlock(block, cell, int(cell.max()) + 1)
    (states,) = count_cells(source, released, seen, [counter], costs=False)
    found = find(sums | {name: split_by_cost(each, None) for name, each in states.items()}, fit)
    notes = {figure.of: figure.note for figure in found.figures}
    assert notes["TOWN"] == ODD
    assert notes["AGE"] == ""
    assert "TOWN" not in shares(found)
