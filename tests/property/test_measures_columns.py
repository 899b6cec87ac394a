"""Measures that compare columns against plain pandas and scipy, over every recoder."""

from dataclasses import replace
from datetime import date, datetime
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anonlib.arrays import snap
from anonlib.errors import InputError
from anonlib.measure import Findings
from anonlib.measure.fidelity._axes import Axes
from anonlib.measure.fidelity._distribution import MOST_POINTS, N_BINS, Points
from anonlib.measure.fidelity._tally import TableStates
from anonlib.measure.fidelity.associations import Associations
from anonlib.measure.fidelity.marginals import Marginals
from anonlib.measure.fidelity.moments import Moments
from anonlib.measure.fidelity.queries import Queries
from tests.compared import GRADES, SCALES, Pair, made, pairs

QUICK = settings(max_examples=40)
#: Standardized values are on a grid of 2^-20 deviations.
CLOSE: dict[str, float] = {"rel": 1e-5, "abs": 1e-5}


def value(found: Findings, name: str, of: str = "") -> float | None:
    (figure,) = (each for each in found.figures if (each.name, each.of) == (name, of))
    assert (figure.value is None) == bool(figure.note)
    return figure.value


def number(each: Any) -> float:
    """A value of a numeric column; the middle of an interval."""
    if isinstance(each, tuple):
        return (each[0] + each[1]) / 2
    return float(GRADES.index(each)) if isinstance(each, str) else float(each)


def square(each: Any) -> float:
    extra = (each[1] - each[0]) ** 2 / 12 if isinstance(each, tuple) else 0.0
    return number(each) ** 2 + extra


def mean_and_variance(rows: list[dict[Any, float]]) -> tuple[float, float, float]:
    """Of present values, and their number."""
    present = [(v, w) for row in rows for v, w in row.items() if v is not None]
    n = sum(w for _, w in present)
    if n == 0:
        return 0.0, np.nan, np.nan
    mean = sum(w * number(v) for v, w in present) / n
    return n, mean, sum(w * square(v) for v, w in present) / n - mean**2


@given(pairs(), st.integers(0, 9))
@QUICK
def test_moments(pair: Pair, seed: int) -> None:
    found = pair.findings(Moments(), seed)
    for name in ("age", "wage", "grade"):
        ours, theirs = (mean_and_variance(pair.rows(name, released=each)) for each in (False, True))
        if not ours[0] or ours[2] < 1e-9 or not theirs[0]:
            assert value(found, "mean", name) is value(found, "variance", name) is None
            continue
        far = abs(theirs[1] - ours[1]) / np.sqrt(ours[2])
        assert value(found, "mean", name) == pytest.approx(far, **CLOSE)
        change = abs(theirs[2] / ours[2] - 1)
        assert value(found, "variance", name) == pytest.approx(change, **CLOSE)


def test_moments_are_those_of_pandas() -> None:
    source = pa.table({"age": [20, 30, 40, 50], "wage": [1.0, 2.0, 3.0, 10.0]})
    cell = np.array([0, 0, 1, 1])
    recoders = {"age": {"type": "centroid"}, "wage": {"type": "centroid"}}
    pair = made(source, cell, recoders)
    ours, theirs = source.to_pandas(), pair.released.to_pandas()
    found = pair.findings(Moments())
    (series,) = found.series
    for name, *figures in series.rows:
        both = [each[name] for each in (ours, theirs)]
        expected = [f for each in both for f in (each.mean(), each.std(ddof=0))]
        assert figures == pytest.approx(expected, rel=1e-6)
        change = abs(both[1].var() / both[0].var() - 1)
        assert value(found, "variance", str(name)) == pytest.approx(change, rel=1e-5)


def test_moments_of_times_are_told_in_times() -> None:
    day, time = pa.date32(), pa.timestamp("us", "UTC")
    days = [date(1975, 1, 1), date(1975, 1, 3), date(1985, 1, 2), date(1985, 1, 4)]
    born = pa.array(days, day)
    seen = [datetime(2020, 1, n, 6) for n in (1, 2, 3, 4)]  # noqa: DTZ001
    source = pa.table({"age": born, "wage": pa.array(seen, time)})
    recoders = {"age": {"type": "centroid"}, "wage": {"type": "centroid"}}
    found = made(source, np.array([0, 0, 1, 1]), recoders).findings(Moments())
    rows = {row[0]: row[1:] for row in found.series[0].rows}
    assert rows["age"] == ("1980-01-03", "1,827 days", "1980-01-03", "1,827 days")
    assert rows["wage"] == ("2020-01-02 18:00", "1.118 days", "2020-01-02 18:00", "1 days")


@given(pairs(), st.integers(0, 9))
@QUICK
def test_marginals(pair: Pair, seed: int) -> None:
    found = pair.findings(Marginals(), seed)
    for name in ("age", "wage", "grade"):
        rows = [pair.rows(name, released=each) for each in (False, True)]
        lacking = [sum(row.get(None, 0.0) for row in each) for each in rows]
        few = [
            max(n, min(pair.view.least, len(each))) if n else 0.0
            for n, each in zip(lacking, rows, strict=True)
        ]
        gone = few[0] / len(rows[0]) - few[1] / len(rows[1])
        assert value(found, "missing", name) == pytest.approx(abs(gone), abs=1e-9)
        n, _, variance = mean_and_variance(rows[0])
        if not n or variance < 1e-9 or not mean_and_variance(rows[1])[0]:
            assert value(found, "wasserstein", name) is None
            continue
        (p, u), (q, v) = map(points, rows)
        far = stats.wasserstein_distance(p, q, u, v) / np.sqrt(variance)
        is_plain = not any(isinstance(value, tuple) for row in rows[1] for value in row)
        # What intervals, and bins, are cut into here and there is not the same.
        slack = 1e-5 if is_plain else 2 * np.ptp(p) / N_BINS / np.sqrt(variance)
        assert value(found, "wasserstein", name) == pytest.approx(far, abs=slack)
    for name in ("town", "sex"):
        shares = [category_shares(pair.rows(name, released=each)) for each in (False, True)]
        keys = set().union(*shares)
        far = sum(abs(shares[0].get(k, 0) - shares[1].get(k, 0)) for k in keys) / 2
        assert value(found, "total_variation", name) == pytest.approx(far, abs=1e-8)


def points(rows: list[dict[Any, float]]) -> tuple[list[float], list[float]]:
    """Numbers and their weights; 500 in place of an interval."""
    found = []
    for row in rows:
        for each, weight in row.items():
            if isinstance(each, tuple):
                grid = each[0] + (np.arange(500) + 0.5) / 500 * (each[1] - each[0])
                found += [(x, weight / 500) for x in grid.tolist()]
            elif each is not None:
                found.append((number(each), weight))
    numbers, weights = zip(*found, strict=True)
    return list(numbers), list(weights)


def category_shares(rows: list[dict[Any, float]]) -> dict[Any, float]:
    keys = {key for row in rows for key in row}
    return {key: sum(row.get(key, 0.0) for row in rows) / len(rows) for key in keys}


@given(pairs(), st.integers(0, 9))
@QUICK
def test_associations(pair: Pair, seed: int) -> None:
    found = pair.findings(Associations(), seed)
    expected = {}
    for a, b in combinations(pair.source.column_names, 2):
        if a in SCALES or b in SCALES:
            ours, theirs = (association(pair, a, b, released=each) for each in (False, True))
            if ours is not None:
                expected[f"{a} × {b}"] = abs(ours - (theirs or 0.0))
    if not expected:
        assert value(found, "mean") is value(found, "largest") is None
        return
    assert value(found, "mean") == pytest.approx(np.mean([*expected.values()]), **CLOSE)
    assert value(found, "largest") == pytest.approx(max(expected.values()), **CLOSE)
    for name, _, _, _, difference in found.series[0].rows:
        assert difference == pytest.approx(expected[str(name)], **CLOSE)


def test_columns_that_are_left_out_are_named_beside_another_note() -> None:
    view = Axes((), n_quasi=0, n_source=9, n_released=9, least=2, seed=5, left_out=("job", "town"))
    note = (
        "no two columns of the source vary; without job, town: too many values, or of an odd type"
    )
    for figure in Associations().findings(TableStates(view, {}, {})).figures:
        assert (figure.value, figure.note) == (None, note)
    assert replace(view, left_out=()).note == ""


def association(pair: Pair, a: str, b: str, *, released: bool) -> float | None:
    """By the weights of all combinations in all rows."""
    numeric = {"age", "wage", "grade", "income"}
    rows = zip(*(pair.rows(name, released=released) for name in (a, b)), strict=True)
    both = [
        (x, y, u * v)
        for p, q in rows
        for (x, u), (y, v) in product(p.items(), q.items())
        if not ((x is None and a in numeric) or (y is None and b in numeric))
    ]
    if not both:
        return None
    x, y, weight = zip(*both, strict=True)
    if a in numeric and b in numeric:
        return correlation(x, y, np.array(weight))
    if a not in numeric and b not in numeric:
        return cramer(codes(x), codes(y), np.array(weight))
    x, y = (x, y) if a in numeric else (y, x)
    return ratio(x, codes(y), np.array(weight))


def codes(values: Any) -> Any:
    return np.unique([str(each) for each in values], return_inverse=True)[1]


def mean_and_spread(values: Any, weight: Any) -> tuple[float, float]:
    mean = np.average([number(each) for each in values], weights=weight)
    return mean, np.average([square(each) for each in values], weights=weight) - mean**2


def correlation(x: Any, y: Any, weight: Any) -> float | None:
    (x_mean, x_spread), (y_mean, y_spread) = (mean_and_spread(each, weight) for each in (x, y))
    if min(x_spread, y_spread) < 1e-9:
        return None
    products = [(number(a) - x_mean) * (number(b) - y_mean) for a, b in zip(x, y, strict=True)]
    return float(np.average(products, weights=weight) / np.sqrt(x_spread * y_spread))


def cramer(x: Any, y: Any, weight: Any) -> float | None:
    counts = np.zeros((x.max() + 1, y.max() + 1))
    np.add.at(counts, (x, y), weight)
    if min(counts.shape) < 2:
        return None
    chi2 = stats.chi2_contingency(counts, correction=False)[0]
    return float(np.sqrt(chi2 / counts.sum() / (min(counts.shape) - 1)))


def ratio(x: Any, y: Any, weight: Any) -> float | None:
    mean, spread = mean_and_spread(x, weight)
    if y.max() == 0 or spread < 1e-9:
        return None
    numbers = np.array([number(each) for each in x])
    between = sum(
        weight[y == g].sum() * (np.average(numbers[y == g], weights=weight[y == g]) - mean) ** 2
        for g in range(y.max() + 1)
    )
    return float(np.sqrt(between / weight.sum() / spread))


def test_correlations_are_those_of_pandas_and_cramers_v_that_of_scipy() -> None:
    random = np.random.default_rng(3)
    age = random.integers(20, 60, 300)
    frame = pd.DataFrame(
        {
            "age": age,
            "wage": age * 10.0 + random.integers(0, 300, 300),
            "sex": random.choice(["f", "m"], 300),
        }
    )
    frame["town"] = np.where(random.random(300) < 0.3, "a", np.where(frame["sex"] == "f", "b", "c"))
    recoders = {name: {"type": "median"} for name in ("age", "wage")}
    recoders |= {name: {"type": "mode"} for name in ("sex", "town")}
    pair = made(pa.Table.from_pandas(frame), np.arange(300) // 3, recoders)
    rows = {row[0]: row for row in pair.findings(Associations()).series[0].rows}
    for place, table in ((2, pair.source.to_pandas()), (3, pair.released.to_pandas())):
        pearson = table[["age", "wage"]].corr().iloc[0, 1]
        assert rows["age × wage"][place] == pytest.approx(pearson, abs=1e-5)
        counts = pd.crosstab(table["sex"], table["town"])
        v = stats.contingency.association(counts, method="cramer")
        assert rows["sex × town"][place] == pytest.approx(v, abs=1e-6)


@given(pairs(), st.integers(0, 9), st.integers(1, 8))
@QUICK
def test_queries(pair: Pair, seed: int, columns: int) -> None:
    measure = Queries(n_queries=20, columns=columns, selectivity=0.2)
    found = pair.findings(measure, seed)
    drawn = measure.parts(pair.view)["queries"].queries  # type: ignore[attr-defined]
    assert len(drawn) == 20
    errors = []
    for query in drawn:
        names = [condition.axis.id for condition in query]
        assert len(set(names)) == len(names) == min(columns, 7)
        assert names[0] in SCALES
        counts = [brute_force(pair, query, released=each) for each in (False, True)]
        errors.append(abs(counts[1] - counts[0]) / max(counts[0], 0.001 * len(pair.source)))
    assert value(found, "mean") == pytest.approx(np.mean(errors), rel=1e-4, abs=1e-4)
    assert value(found, "median") == pytest.approx(np.median(errors), rel=1e-4, abs=1e-4)


def brute_force(pair: Pair, query: Any, *, released: bool) -> float:
    shares = np.ones(len(pair.source))
    for condition in query:
        rows = pair.rows(condition.axis.id, released=released)
        shares *= [sum(w * within(condition, v) for v, w in row.items()) for row in rows]
    return float(shares.sum())


def within(condition: Any, each: Any) -> float:
    axis = condition.axis
    if each is None:
        return 0.0
    if not axis.is_line:
        return float(condition.bounds[axis.encoding.categories.to_pylist().index(each)])
    low, high = each if isinstance(each, tuple) else (each, each)
    low, high = axis.position(np.array([float(low), float(high)]))
    start, end = condition.bounds
    if low == high:
        return float(start <= low <= end)
    return max(0.0, min(high, end) - max(low, start)) / (high - low)


@given(pairs(), st.integers(1, 99))
@settings(max_examples=20)
def test_order_and_batches_do_not_matter(pair: Pair, seed: int) -> None:
    for measure in (Moments(), Marginals(), Associations(), Queries(n_queries=5)):
        assert pair.findings(measure, 0) == pair.findings(measure, seed)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
@settings(max_examples=20)
def test_points_are_those_of_the_union(seed: int, n_parts: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.choice([5, 3 * MOST_POINTS]))
    numbers = snap(random.normal(size=n) * random.choice([1.0, 100.0]))
    whole = Points.of(numbers)
    assert len(whole.key) <= MOST_POINTS
    assert whole.rows.sum() == n
    width = 2.0 ** (whole.level - 20)
    assert stats.wasserstein_distance(whole.numbers, numbers, whole.rows) <= width
    if whole.level == 0:
        assert np.repeat(whole.numbers, whole.rows).tolist() == np.sort(numbers).tolist()
    parts = np.array_split(random.permutation(numbers), n_parts)
    merged = Points.of(parts[0])
    for part in parts[1:]:
        merged = merged.merge(Points.of(part))
    assert all(np.array_equal(a, b) for a, b in zip(merged, whole, strict=True))


def test_many_categories_count_in_groups() -> None:
    random = np.random.default_rng(4)
    many = random.integers(0, 250, 2000)
    many[:250] = np.arange(250)
    frame = pd.DataFrame({"sex": np.where(many + random.integers(0, 90, 2000) < 150, "f", "m")})
    cell = np.arange(2000) // 4
    found = []
    for codes in (many, many * 100 // 250):
        table = pa.Table.from_pandas(frame.assign(town=[f"{code:03d}" for code in codes]))
        pair = made(table, cell, {"sex": {"type": "mode"}})
        found.append(pair.findings(Associations()))
    assert found[0] == found[1]
    assert 0.1 < float(found[0].series[0].rows[0][2] or 0) < 1


def test_values_of_an_odd_type_are_refused() -> None:
    pair = made(pa.table({"sex": ["f", "m"]}), np.zeros(2, np.int64), {"sex": {"type": "mode"}})
    for values in (pa.array([1, 2]), pa.array(["f", "SECRET"])):
        odd = replace(pair, released=pa.table({"sex": values}))
        with pytest.raises(InputError, match="column sex") as caught:
            odd.findings(Marginals())
        assert "SECRET" not in str(caught.value)


def test_nothing_lost_is_nothing_found() -> None:
    """Each row a cell of its own."""
    random = np.random.default_rng(1)
    source = pa.table(
        {
            "age": random.integers(20, 60, 50),
            "wage": random.normal(size=50),
            "grade": random.choice(GRADES, 50),
            "town": random.choice(["a", "b"], 50),
        }
    )
    recoders = {
        name: {"type": type}
        for name, type in zip(SCALES, ["centroid", "interval", "set", "lca"], strict=False)
    }
    pair = made(source, np.arange(50), recoders)
    for measure in (Moments(), Marginals(), Associations(), Queries()):
        for figure in pair.findings(measure).figures:
            assert figure.value == pytest.approx(0.0, abs=1e-7), figure
