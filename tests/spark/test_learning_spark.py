"""Learning and clustering as measures, with Spark ML and with scikit-learn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score, r2_score, root_mean_squared_error

from anonlib import registry
from anonlib.evaluation import distributed_learning as distributed
from anonlib.evaluation.distributed_learning import make_vectors, sample
from anonlib.evaluation.samples import is_held_out
from anonlib.measure import Findings
from anonlib.measure import examples as in_memory
from anonlib.measure.case import Case
from anonlib.measure.examples import LearnTarget, read_target, take_examples
from anonlib.measure.features import Features, fit, list_predictors
from anonlib.measure.fidelity.clustering import Clustering
from anonlib.measure.fidelity.learning import Learning
from anonlib.table.columns import HELD
from anonlib.table.schema import Role
from tests.spark.cases import across, along, make_case

pytestmark = pytest.mark.spark

N = 900
CONFIG: dict[str, Any] = {
    "source": {"format": "parquet", "path": "unused/source"},
    "attributes": {
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "city": {"role": "quasi_identifier", "scale": "nominal"},
        "illness": {"role": "sensitive"},
        "label": {"role": "target", "public": True},
        "wage": {"role": "sensitive"},
    },
    "one_row_per_person": True,
    "privacy": {"models": [{"type": "k_anonymity", "k": 5}], "acknowledge_unique": ["wage"]},
    "recode": {"columns": {"age": "interval", "city": "set"}},
    "release": {"path": "unused/release"},
    "seed": 7,
}


def people() -> pd.DataFrame:
    """Three far clusters of ages and cities; the label and the wage follow from them, but for some
    noise."""
    random = np.random.default_rng(3)
    group = random.integers(0, 3, N)
    age = 20.0 + 30 * group + random.normal(0, 2, N)
    age[::50] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "city": np.array(["a", "b", "c"])[group],
            "illness": random.choice(["x", "y"], N),
            "label": np.where(random.random(N) < 0.05, "no", np.where(group > 0, "yes", "no")),
            "wage": 1000 + 100 * group + random.normal(0, 10, N),
        }
    )


@pytest.fixture(scope="module")
def good(spark: SparkSession) -> Case:
    """Cells along the age, which all else follows from."""
    return make_case(spark, CONFIG, people(), along("c0", 10), held_out=0.3)


@pytest.fixture(scope="module")
def bad(spark: SparkSession) -> Case:
    """Cells of rows that have nothing in common."""
    return make_case(spark, CONFIG, people(), across(150))


def of_wages(case: Case) -> Case:
    """The same with the wage as the target, and the label as a sensitive column."""
    roles = {"wage": Role.TARGET, "label": Role.SENSITIVE}
    columns = [replace(c, role=roles.get(c.name, c.role)) for c in case.schema.columns]
    return replace(case, schema=replace(case.schema, columns=tuple(columns)))


def values(found: Findings) -> dict[tuple[str, str], float]:
    """All figures have values."""
    figures = {(f.name, f.of): f.value for f in found.figures if f.value is not None}
    assert len(figures) == len(found.figures)
    return figures


def shuffled(case: Case) -> Case:
    """The same rows in another order, in other partitions."""

    def dealt(rows: DataFrame) -> DataFrame:
        table = rows.toArrow()
        order = np.random.default_rng(1).permutation(table.num_rows)
        return rows.sparkSession.createDataFrame(table.take(pa.array(order))).repartition(5)

    return replace(
        case,
        source=dealt(case.source),
        released=dealt(case.released),
        shadow=lambda share: dealt(case.shadow(share)),
    )


def test_models_know_what_cells_keep(good: Case, bad: Case) -> None:
    measure = Learning(columns="quasi_identifiers")
    found = values(measure.measure(good))
    assert {name for name, _ in found} <= set(measure.names)
    for model in ("logistic_regression", "boosted_trees"):
        accuracy, raw = found["accuracy", model], found["raw_accuracy", model]
        assert accuracy > 0.9
        assert raw == pytest.approx(accuracy, abs=0.03)
        assert found["accuracy_loss", model] == pytest.approx(raw - accuracy, abs=1e-5)
    assert 0.5 < found["baseline_accuracy", ""] < 0.75
    assert values(measure.measure(bad))["accuracy_loss", "boosted_trees"] > 0.15
    wages = values(measure.measure(of_wages(good)))
    assert wages["rmse", "linear_regression"] < 30 < wages["baseline_rmse", ""]
    assert wages["r2", "boosted_trees"] > 0.9
    assert ("accuracy", "boosted_trees") not in wages
    lost = values(measure.measure(of_wages(bad)))
    assert lost["rmse_loss", "linear_regression"] > 20


def test_neither_order_nor_partitions_matter(good: Case) -> None:
    other = shuffled(good)
    ids = ["c0", "c1", "c3"]
    first, second = (sample(each.released.select(ids), N, 300, 7) for each in (good, other))
    assert first == second
    assert 0 < first.num_rows < 400
    for measure in (
        Learning(models=[{"type": "logistic_regression", "max_iter": 5}], engine="spark"),
        Clustering(clusters=5, engine="spark", max_iter=2),
    ):
        assert measure.measure(good) == measure.measure(other)


def plain(rows: DataFrame, age: tuple[float, float]) -> Any:
    """float64[n, 5]: what models see of ages and cities, original or released, in pandas."""
    frame = rows.toPandas()
    middle = frame["c0"].map(
        lambda v: v if isinstance(v, float) or v is None else (v["lower"] + v["upper"]) / 2
    )
    middle = middle.astype(float)
    sets = frame["c1"].map(lambda v: {v} if isinstance(v, str) else {*v})
    columns = [(middle - age[0]).fillna(0) / age[1], middle.isna()]
    columns += [sets.map(lambda each, city=city: city in each) for city in "abc"]
    return np.column_stack(columns).astype(float), frame["c4"].to_numpy()


def test_figures_are_those_of_pandas_and_scikit_learn(good: Case) -> None:
    """Ridge regression of the wage, and k-means, from the tables alone."""
    out = is_held_out(good.schema, 7, 0.3)
    raw, test = good.source.where(~out), good.source.where(out)
    ages = raw.toPandas()["c0"]
    age = (ages.mean(), ages.std(ddof=0))
    x_test, y_test = plain(test, age)
    found = values(Learning(columns="quasi_identifiers").measure(of_wages(good)))
    for prefix, rows in {"": good.shadow(0.3), "raw_": raw}.items():
        x, y = plain(rows, age)
        told = Ridge(1.0).fit(x, (y - y.mean()) / y.std()).predict(x_test) * y.std() + y.mean()
        rmse = root_mean_squared_error(y_test, told)
        assert found[f"{prefix}rmse", "linear_regression"] == pytest.approx(rmse, rel=1e-5)
        assert found[f"{prefix}r2", "linear_regression"] == pytest.approx(r2_score(y_test, told))

    ages = good.source.toPandas()["c0"]
    x, _ = plain(good.source, (ages.mean(), ages.std(ddof=0)))
    released, _ = plain(good.released, (ages.mean(), ages.std(ddof=0)))
    first, second = (KMeans(3, n_init=10, random_state=7).fit(each) for each in (x, released))
    ari = adjusted_rand_score(first.predict(x), second.predict(x))
    clusters = values(Clustering(clusters=3).measure(good))
    assert clusters["ari", ""] == pytest.approx(ari, abs=1e-5)


def test_figures_are_the_same_in_spark_and_in_memory(good: Case) -> None:
    for case, model in ((good, "logistic_regression"), (of_wages(good), "linear_regression")):
        asked = {"models": [model], "columns": "quasi_identifiers"}
        here, there = (
            values(Learning(**asked, engine=engine).measure(case))
            for engine in ("sklearn", "spark")
        )
        assert here.keys() == there.keys()
        assert there == pytest.approx(here, rel=1e-3, abs=2e-3)


@pytest.fixture(scope="module")
def lesson(good: Case) -> tuple[Features, dict[str, LearnTarget], pa.Table, DataFrame]:
    """Features and targets of the source (the city has three classes), its rows in memory and
    in Spark."""
    schema = good.schema
    targets = [schema["label"], schema["wage"], schema["city"]]
    ids = [column.id for column in targets]
    columns = list_predictors(schema, ids, "released")
    rows = good.source.select(*ids, *(column.id for column in columns))
    table = sample(rows, N, N, 0)
    features = fit(columns, table)
    found = {column.name: read_target(column, None, table) for column in targets}
    return features, found, table, rows


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        ({"type": "logistic_regression"}, "label"),
        ({"type": "linear_regression"}, "wage"),
        ({"type": "random_forest", "trees": 10, "depth": 4}, "label"),
        ({"type": "boosted_trees", "trees": 2, "depth": 2}, "city"),
        ({"type": "boosted_trees", "trees": 12, "depth": 3, "rate": 0.3}, "wage"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
def test_spark_ml_learns_what_scikit_learn_does(lesson: Any, learner: Any, name: str) -> None:
    """The linear models have the same minimum. Trees are grown on other bins and draws; and Spark's
    first boosted tree counts in full, so that it is ahead at first."""
    features, targets, table, rows = lesson
    target, model = targets[name], registry.build("learner", learner)
    here = take_examples(table, features, target, released=False)
    how = {"n_classes": target.n_classes, "seed": 1}
    expected = in_memory.fit_and_score(model, here, here, **how)
    with make_vectors(rows, features, target, released=False, n_rows=N, seed=1) as there:
        found = distributed.fit_and_score(model, there, there, **how)
        base = distributed.find_baseline(there, there, n_classes=target.n_classes)
    told = in_memory.find_baseline(here, here, n_classes=target.n_classes)
    assert base._replace(auc=told.auc) == pytest.approx(told)
    assert base.auc == told.auc
    linear = learner["type"] in ("logistic_regression", "linear_regression")
    if target.n_classes:
        # A row or two may lie where the two optimizers' last steps differ.
        assert found.accuracy == pytest.approx(expected.accuracy, abs=2 / N if linear else 0.02)
        assert found.auc == pytest.approx(expected.auc, abs=1e-3 if linear else 0.02)
    else:
        assert found.rmse == pytest.approx(expected.rmse, rel=1e-3 if linear else 0.15)


def test_a_split_of_the_release_says_what_flatters(good: Case) -> None:
    measure = Learning(models=["logistic_regression"], split="after", holdout=0.3)
    assert measure.held_out == 0.3
    found = measure.measure(good)
    assert not any("looked at the target" in figure.note for figure in found.figures)
    aware = replace(good, looked_at_target=True)
    figures = measure.measure(aware).figures
    for figure in figures:
        flatters = not figure.name.startswith("baseline")
        assert ("looked at the target" in figure.note) is flatters
        assert figure.doubtful is flatters
    published = replace(good, released=good.released.drop(HELD))
    nothing = measure.measure(published)
    assert {figure.name for figure in nothing.figures} == set(measure.names)
    assert all(figure.value is None and figure.note for figure in nothing.figures)


def test_clusters_are_those_that_cells_keep(good: Case, bad: Case) -> None:
    for engine in ("sklearn", "spark"):
        measure = Clustering(clusters=3, engine=engine)
        found = values(measure.measure(good))
        assert {*found} == {(name, "") for name in measure.names}
        assert found["raw_ari", ""] > 0.99
        assert found["ari", ""] > 0.95
        assert found["nmi", ""] > 0.9
    assert values(Clustering(clusters=3).measure(bad))["ari", ""] < 0.5
    alone = Clustering(clusters=N + 1).measure(good)
    assert all(figure.value is None and figure.note for figure in alone.figures)


def test_samples_of_many_equal_rows_keep_their_shares(spark: SparkSession) -> None:
    rows = spark.range(20_000).selectExpr("if(id % 10 = 0, 'rare', 'often') as c0")
    table = sample(rows, 20_000, 1000, 5)
    counts = {each["values"]: each["counts"] for each in table["c0"].value_counts().to_pylist()}
    assert counts == {"rare": pytest.approx(100, abs=1), "often": pytest.approx(900, abs=1)}
    single = sample(spark.range(20_000).selectExpr("id as c0"), 20_000, 1000, 5)
    assert single.num_rows == pytest.approx(1000, abs=150)
    assert len(set(single["c0"].to_pylist())) == single.num_rows
