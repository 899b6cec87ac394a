"""Measures of risk on Spark against plain pandas."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.evaluation import samples
from anonlib.evaluation.classes import tally_source_sizes
from anonlib.evaluation.linking import link_rows
from anonlib.evaluation.memory_classes import count_source_sizes
from anonlib.measure import Findings
from anonlib.measure.case import Case
from anonlib.measure.nearest import Attack, MatchedColumn, SpanDistances
from anonlib.measure.risk.disclosure import Disclosure
from anonlib.measure.risk.linkage import Linkage
from anonlib.measure.risk.order import Order
from anonlib.measure.risk.reidentification import Reidentification
from anonlib.measure.risk.uniqueness import Uniqueness
from anonlib.run import data_files
from anonlib.run.data_files import order_in_table
from anonlib.table.columns import LINK, TOKEN
from tests.spark.cases import across, make_case

pytestmark = pytest.mark.spark

N, K = 240, 4
CITIES = "a;ab;*\nb;ab;*\nc;c+;*\nd;c+;*\n"


def table() -> pd.DataFrame:
    """Ages and incomes with gaps, zeros of both signs, illnesses in several spellings; two rows of
    each person."""
    random = np.random.default_rng(4)
    age = random.integers(20, 60, N).astype(float)
    age[random.random(N) < 0.1] = np.nan
    height = random.normal(size=N).round(1)
    height[random.random(N) < 0.2] = -0.0
    illness = random.choice(["Flu", "flu ", "cold", "?", "gout"], N, p=[0.3, 0.2, 0.2, 0.1, 0.2])
    wage = random.choice([0.0, -0.0, np.nan, 1.5, 2.5], N)
    return pd.DataFrame(
        {
            "person": np.arange(N) // 2,
            "age": age,
            "height": height,
            "city": random.choice([*"abcd", None], N),
            "illness": illness,
            "wage": wage,
            "label": random.choice(["yes", "no"], N),
        }
    )


def config(path: Path, **changes: Any) -> dict[str, Any]:
    (path / "cities.csv").write_text(CITIES)
    continuous = {"role": "quasi_identifier", "scale": "continuous"}
    city = {"role": "quasi_identifier", "scale": "nominal", "hierarchy": str(path / "cities.csv")}
    models = [{"type": "k_anonymity", "k": K}]
    return {
        "source": {"format": "parquet", "path": "none"},
        "attributes": {
            "person": {"role": "drop"},
            "age": continuous,
            "height": continuous,
            "city": city,
            "illness": {"role": "sensitive"},
            "wage": {"role": "sensitive"},
            "label": {"role": "target", "public": True},
        },
        "one_row_per_person": True,
        "privacy": {"models": models},
        "recode": {"columns": {"age": "interval", "city": "proportional"}},
        "release": {"path": str(path / "table")},
        **changes,
    }


@pytest.fixture(scope="module")
def case(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Cells of rows that have nothing in common: the risk is as plain as the cells are."""
    found = make_case(spark, config(tmp_path_factory.mktemp("risk")), table(), uneven)
    found.released.cache()
    return found


def uneven(rows: Any) -> Any:
    """Cells of K rows and more; some of twenty."""
    return np.minimum(np.arange(rows.num_rows) // K, 45)


def cells_of(case: Case) -> pd.DataFrame:
    """The source's rows with their cells, in which `uneven` put them."""
    rows = case.source.orderBy("__anonlib_deal").toPandas()
    rows["cell"] = np.minimum(np.arange(len(rows)) // K, 45)
    return rows


def value(found: Findings, name: str, of: str = "") -> float | None:
    (figure,) = [f for f in found.figures if (f.name, f.of) == (name, of)]
    return figure.value


def test_sizes(case: Case) -> None:
    size = cells_of(case)["cell"].value_counts()
    assert (size.min(), size.max(), len(size)) == (K, N - 45 * K, 46)
    found = Reidentification(threshold=0.2).measure(case)
    assert value(found, "prosecutor_max") == value(found, "journalist_max") == 1 / K
    assert value(found, "marketer") == pytest.approx(46 / N)
    assert value(found, "prosecutor_mean") == pytest.approx(46 / N)
    assert value(found, "prosecutor_at_risk") == pytest.approx(45 * K / N)
    histogram, risks = found.series
    assert histogram.rows == ((K, K, 45, 45 * K), (60, 60, 1, 60))
    shares = [(0.75 * (level < 1 / K) + 0.25 * (level < 1 / 60)) for level, *_ in risks.rows]
    assert [row[1] for row in risks.rows] == shares
    assert all("whole population" in f.note for f in found.figures if "prosec" not in f.name)

    larger = Reidentification(population=100 * N).measure(case)
    assert value(larger, "prosecutor_max") == 1 / K
    for name in ("journalist_max", "marketer"):
        risk = value(larger, name)
        assert risk is not None
        assert risk < 0.02
    fewer = Reidentification(population=N - 1).measure(case)
    assert {f.value for f in fewer.figures} == {None}
    assert fewer.series == ()


def test_uniqueness(case: Case) -> None:
    rows = table()
    rows["height"] += 0.0
    count = rows.groupby(["age", "height", "city"], dropna=False).size()
    unique = (count == 1).sum() / N
    assert 0.5 < unique < 1
    found = Uniqueness().measure(case)
    assert value(found, "source_unique") == unique
    assert value(found, "release_unique") == 0
    assert value(found, "population_unique", "Zayatz") == unique
    found = Uniqueness(population=50 * N).measure(case)
    for of in ("Pitman", "Zayatz"):
        estimate = value(found, "population_unique", of)
        assert estimate is not None
        assert 0 < estimate < unique


def test_disclosure(case: Case) -> None:
    found = Disclosure(threshold=0.5).measure(case)
    rows = cells_of(case)
    names = {case.schema[name].id: name for name in ("illness", "wage")}
    rows = rows.rename(columns=names)
    rows["illness"] = rows["illness"].str.strip().str.lower().replace("?", None)
    for name in names.values():
        counts = rows.groupby(["cell", name])["cell"].size()
        most, present = counts.groupby("cell").max(), counts.groupby("cell").sum()
        base = rows[name].value_counts().max() / present.sum()
        assert value(found, "correct", name) == pytest.approx(most.sum() / present.sum())
        assert value(found, "base", name) == pytest.approx(base)
        assert value(found, "gain", name) == pytest.approx(most.sum() / present.sum() - base)
        certainty = most / present
        assert value(found, "certainty", name) == certainty.max()
        certain = present[certainty >= 0.5].sum() / present.sum()
        assert value(found, "certain", name) == pytest.approx(certain)
    series = {each.of: each for each in found.series}
    assert sum(row[2] for row in series["illness"].rows) == 46
    assert sum(row[3] for row in series["illness"].rows) == N
    assert all(row[3] >= K for row in series["illness"].rows)

    city = case.schema["city"].id
    alone = rows.groupby(["cell", rows[city].fillna("-")]).size().eq(1).sum()
    assert value(found, "lone", "city") == pytest.approx(alone / N)


def test_linkage(case: Case) -> None:
    """It finds more than guessing does, and no more than k-anonymity allows."""
    found = Linkage().measure(case)
    cell, record = value(found, "cell"), value(found, "record")
    assert value(found, "cell_guess") == 1 / 46
    assert value(found, "record_guess") == 1 / N
    assert value(found, "record_bound") == 1 / K
    assert cell is not None
    assert record is not None
    assert 2 / 46 < cell < 1
    assert 1 / N < record <= 1 / K
    gone = Linkage().measure(replace(case, released=case.released.drop(LINK)))
    assert {(f.value, f.note) for f in gone.figures} == {(None, gone.figures[0].note)}
    assert "nothing links" in gone.figures[0].note


def test_of_more_pairs_than_there_may_be_the_first_count(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "is_sampled", lambda n_rows: F.lit(True))
    every = replace(case).pairs
    monkeypatch.setattr(samples, "MAX_PAIRS", N // 2)
    some = replace(case).pairs
    assert every is not None
    assert some is not None
    assert [side.num_rows for side in (*every, *some)] == [N, N, N // 2, N // 2]
    for all_of_them, first in zip(every, some, strict=True):
        # As pandas has them: no NaN is equal to another in Arrow.
        assert first.to_pandas().equals(all_of_them.slice(0, N // 2).to_pandas())
    # Under another key, as in another run, no row has its pair.
    other = replace(case, link_key=b"another").pairs
    assert other is not None
    assert other[0].num_rows == 0


def test_many_tasks_find_what_one_does(spark: SparkSession) -> None:
    """Large arrays, too, and a last chunk that is smaller."""
    random = np.random.default_rng(1)
    n, t = 500, 20_000
    low, value = random.normal(size=t), random.normal(size=n)
    numbers = SpanDistances(value, value < -1, low, low + 1e-4, low < -1)
    columns = (MatchedColumn(numbers, random.permutation(t)),)
    attack = Attack(columns, random.integers(t, size=n), random.integers(3, 9, t))
    assert n % attack.chunk > 0 < n // attack.chunk
    here = attack.linked(slice(0, n - 1))
    for one, other in zip(link_rows(spark, attack, n - 1), here, strict=True):
        assert (one == other).all()


def test_persons_are_counted_while_they_can_be(spark: SparkSession, tmp_path: Path) -> None:
    given = config(tmp_path, unit=["person"], one_row_per_person=False)
    case = make_case(spark, given, table(), across(12))
    found = Reidentification().measure(case)
    rows = case.released.toPandas()
    keys = [case.schema[name].id for name in ("age", "height", "city")]
    rows["of"] = rows.groupby(rows[keys].astype(str).agg("|".join, axis=1))[TOKEN].transform(
        "nunique"
    )
    smallest = rows.groupby(TOKEN)["of"].min()
    assert len(smallest) == N // 2
    assert value(found, "prosecutor_max") == 1 / rows["of"].min()
    assert value(found, "marketer") == pytest.approx((1 / smallest).mean())
    assert value(found, "prosecutor_at_risk") == (1 / smallest > 0.09).mean()
    assert "counts once, by the smallest" in found.figures[0].note
    unique = Uniqueness().measure(case)
    source = table()
    source["height"] += 0.0
    groups = source.groupby(["age", "height", "city"], dropna=False)["person"]
    alone = source[groups.transform("nunique") == 1]["person"].nunique()
    assert value(unique, "source_unique") == alone / (N // 2)

    quasi = source[["age", "height", "city"]].fillna(-1)
    for places in ((0,), (1, 2)):
        alike = case.count_alike([places], 10 * N, released=False)[0]
        of = quasi.iloc[:, list(places)].astype(str).agg("|".join, axis=1)
        both = [(of == of[i]) & (source["person"] != source["person"][i]) for i in range(N)]
        assert sorted(alike.tolist()) == sorted(1 + int(each.sum()) for each in both)

    published = replace(case, released=case.released.drop(TOKEN, LINK))
    found = Reidentification().measure(published)
    assert value(found, "prosecutor_max") == 1 / 12
    assert all("rows are counted" in figure.note for figure in found.figures)
    assert all(figure.by_rows for figure in found.figures)


def test_persons_count_by_their_smallest_class_as_in_memory(spark: SparkSession) -> None:
    """200 persons: one class of all in 19 months, and 20 classes of 10 in the last; and any."""
    random = np.random.default_rng(8)
    visits = [(month, p // 10 if month == 19 else 0, p) for month in range(20) for p in range(200)]
    draws = zip(*random.integers(0, [[4], [9], [60]], (3, 400)).tolist(), strict=True)
    some = [(a or None, b, None if person == 0 else person) for a, b, person in draws]
    schema: Any = SimpleNamespace(
        quasi_identifiers=[SimpleNamespace(id="a"), SimpleNamespace(id="b")], unit=("p",)
    )
    expected: dict[int, tuple[list[int], ...]] = {200: ([10, 200], [20, 19], [200, 0])}
    for rows in (visits, some):
        frame = spark.createDataFrame(rows, "a int, b int, p int")
        found = tally_source_sizes(frame, schema)
        here = count_source_sizes(frame.toArrow(), schema)
        numbers = [each.tolist() for each in (found.size, found.n_classes, found.n_persons)]
        assert numbers == [each.tolist() for each in (here.size, here.n_classes, here.n_persons)]
        assert found.n == len({person for *_, person in rows} - {None})
        assert tuple(numbers) == expected.get(found.n, tuple(numbers))


def test_order_of_published_rows(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As rows are published; and as they would be if they kept the order of a sorted source."""
    monkeypatch.setattr(data_files, "randbits", lambda n: 7)
    ids = {column.id: column.name for column in case.schema.released}
    rows = case.released.select(*ids)

    def of(frame: DataFrame, kind: str) -> tuple[dict[str, float | None], float]:
        frame.toDF(*ids.values()).write.format(kind).save(str(tmp_path / kind))
        read = frame.sparkSession.read.format(kind).load(str(tmp_path / kind))
        read = read.select(*[F.col(name).alias(id) for id, name in ids.items()])
        found = Order().measure(replace(case, released=read))
        chance = value(found, "chance")
        assert chance is not None
        return {f.of: f.value for f in found.figures if f.name == "correlation"}, chance

    found, chance = of(order_in_table(rows, 2), "delta")
    assert {*found} == {*ids.values()}
    assert max(each or 0.0 for each in found.values()) < chance < 0.5
    found, chance = of(rows.orderBy(case.schema["age"].id).coalesce(1), "parquet")
    assert (found["age"] or 0.0) > 0.99 > chance
    (before,) = Order().measure(case).figures
    assert before.value is None
    assert "evaluate" in before.note
