"""Features of raw and released rows, and learners in memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib import registry
from anonlib.arrays import Floats
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import parse_csv
from anonlib.measure.examples import (
    Examples,
    LearnTarget,
    find_baseline,
    fit_and_score,
    read_target,
    take_examples,
)
from anonlib.measure.features import Features, fit, list_predictors
from anonlib.measure.learners import Learner
from anonlib.measure.scores import Scores
from anonlib.recode import Cells, Domain
from anonlib.table.schema import Column, Role, Scale, Schema

TREE = Hierarchy.of(parse_csv("a;x;*\nb;x;*\nc;y;*\nd;y;*\n"))
MARKER = "RAWVALUE"


def column(
    values: Any,
    recoder: Any = None,
    scale: Scale | None = Scale.NOMINAL,
    role: Role = Role.QUASI_IDENTIFIER,
    **more: Any,
) -> Column:
    """Column c0, named `age`; its recoder by name, or with parameters."""
    built = None
    if recoder is not None:
        spec = {"type": recoder} if isinstance(recoder, str) else recoder
        built = registry.build("recoder", spec)
    type = pa.array(values).type
    return Column("age", "c0", role, type, str(type), scale=scale, recoder=built, **more)


def released(column: Column, values: Any, cells: list[int]) -> pa.Table:
    """The values as their recoder releases them."""
    id = np.array(cells, np.int64)
    domain = Domain(column.order, column.hierarchy)
    found = column.recoder.recode(pa.array(values), Cells(id, int(id.max()) + 1), domain)
    return pa.table({"c0": found.take(pa.array(id))})


def both(column: Column, values: Any, cells: list[int], **how: Any) -> tuple[Any, Any, Any]:
    """names, features of the raw values, features of the released ones."""
    raw = pa.table({"c0": pa.array(values)})
    features = fit([column], raw, **how)
    theirs = features.matrix(raw, released=False).toarray()
    ours = features.matrix(released(column, values, cells), released=True).toarray()
    assert theirs.shape == ours.shape == (len(values), len(features.names))
    return features.names, theirs, ours


@pytest.mark.parametrize(
    "recoder",
    ["centroid", "median", "interval", {"type": "interval", "form": "text"}],
)
def test_numbers_are_standardized_by_the_raw_ones(recoder: Any) -> None:
    age = column([1.0], recoder, Scale.CONTINUOUS)
    names, raw, ours = both(age, [1.0, 3.0, 5.0, None, 7.0, 9.0], [0, 0, 1, 1, 2, 2])
    assert names == ("age", "age is missing")
    sd = np.sqrt(8)
    assert raw[:, 0] == pytest.approx([-4 / sd, -2 / sd, 0, 0, 2 / sd, 4 / sd])
    assert raw[:, 1].tolist() == [0, 0, 0, 1, 0, 0]
    middle = [1, 1, 5, 5, 7, 7] if recoder == "median" else [2, 2, 5, 5, 8, 8]
    assert ours[:, 0] == pytest.approx((np.array(middle) - 5) / sd)
    assert not ours[:, 1].any()


@pytest.mark.parametrize(
    "recoder", ["median", "mode", "interval", {"type": "interval", "form": "text"}]
)
def test_ordinal_text_counts_by_rank(recoder: Any) -> None:
    school = column(["x"], recoder, Scale.ORDINAL, order=("low, b", 'mid"', "high"))
    _, raw, ours = both(
        school, ["low, b", "high", 'mid"', 'mid"', "high", "low, b"], [0] * 2 + [1] * 4
    )
    rank = raw[:, 0] * np.sqrt(2 / 3) + 1
    assert rank == pytest.approx([0, 2, 1, 1, 2, 0])
    first = 1 if recoder not in ("median", "mode") else 0
    assert ours[:, 0] * np.sqrt(2 / 3) + 1 == pytest.approx([first] * 2 + [1] * 4)


@pytest.mark.parametrize("recoder", ["set", {"type": "set", "form": "text"}])
def test_sets_are_of_the_categories_of_raw_values(recoder: Any) -> None:
    job = column(["x"], recoder)
    names, raw, ours = both(job, ["b", "a", "a", None, None], [0, 0, 1, 1, 2])
    assert names == ("age=a", "age=b", "age is missing")
    assert raw.tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert ours.tolist() == [[1, 1, 0]] * 2 + [[1, 0, 1]] * 2 + [[0, 0, 1]]


def test_rare_and_unknown_categories_have_no_feature() -> None:
    job = column(["x"], "mode")
    names, raw, _ = both(job, ["c", "b", "a", "b", "a"], [0] * 5, max_categories=2)
    assert names == ("age=a", "age=b", "age is missing")
    assert raw[0].tolist() == [0, 0, 0]
    features = fit([job], pa.table({"c0": ["a"]}))
    assert not features.matrix(pa.table({"c0": ["z"]}), released=False).toarray().any()


def test_nodes_are_encoded_as_asked_and_shares_always_alike() -> None:
    values, cells = ["a", "b", "c", "d"], [0, 0, 1, 2]
    for encoding, first in {
        "one_class": {"x"},
        "fill_parent": {"x", "*"},
        "fill_child": {"x", "a", "b"},
    }.items():
        names, _, ours = both(
            column(values, "lca", hierarchy=TREE), values, cells, encoding=encoding
        )
        assert {n for n, v in zip(names, ours[0], strict=True) if v} == {f"age={f}" for f in first}
    names, raw, ours = both(column(values, "proportional", hierarchy=TREE), values, cells)
    shares = dict(zip(names, ours[0], strict=True))
    assert shares["age=a"] == shares["age=b"] == 0.5
    assert shares["age=x"] == shares["age=*"] == 1
    assert {n for n, v in zip(names, raw[2], strict=True) if v} == {"age=c", "age=y", "age=*"}
    assert (raw[2:] == ours[2:]).all()


def test_columns_that_are_released_as_they_are() -> None:
    number = column([1], None, None, Role.SENSITIVE)
    assert fit([number], pa.table({"c0": [1, 3]})).names == ("age", "age is missing")
    text = column(["x"], None, None, Role.INSENSITIVE)
    assert fit([text], pa.table({"c0": ["u", "v"]})).names[:2] == ("age=u", "age=v")
    flag = column([True], None, None, Role.SENSITIVE)
    assert fit([flag], pa.table({"c0": [True, None]})).names == ("age=true", "age is missing")


def test_huge_constant_and_missing_numbers() -> None:
    number = column([1.0], None, None, Role.SENSITIVE)
    for values in ([1e308, -1e308], [5.0, 5.0], [None, None], [np.inf, 1.0]):
        table = pa.table({"c0": pa.array(values, pa.float64())})
        found = fit([number], table).matrix(table, released=False).toarray()
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 2


def test_errors_name_the_column_and_no_value() -> None:
    school = column(["x"], "median", Scale.ORDINAL, order=("low", "high"))
    features = fit([school], pa.table({"c0": ["low"]}))
    with pytest.raises(InputError, match=r"column age: .*`order`") as caught:
        features.matrix(pa.table({"c0": [MARKER]}), released=False)
    assert MARKER not in str(caught.value)


def test_predictors() -> None:
    def named(id: str, role: Role, **more: Any) -> Column:
        return Column(id, id, role, **{"type": pa.string(), "source_type": "", **more})

    qi = {"scale": Scale.NOMINAL, "recoder": registry.build("recoder", {"type": "mode"})}
    gone = {**qi, "recoder": registry.build("recoder", {"type": "suppress"})}
    schema = Schema(
        (
            named("name", Role.IDENTIFIER, pseudonym=True),
            named("city", Role.QUASI_IDENTIFIER, **qi),
            named("zip", Role.QUASI_IDENTIFIER, **gone),
            named("illness", Role.SENSITIVE),
            named("tags", Role.INSENSITIVE, type=pa.list_(pa.string())),
            named("label", Role.TARGET),
        )
    )
    assert [c.id for c in list_predictors(schema, ["label"], "released")] == ["city", "illness"]
    assert [c.id for c in list_predictors(schema, ["illness"], "quasi_identifiers")] == ["city"]


# --- targets and models


def label(values: Any, **more: Any) -> Column:
    return column(values, None, None, Role.TARGET, **more)


def test_targets() -> None:
    table = pa.table({"c0": pa.array([10, 9, None, 10])})
    number = read_target(label([1]), None, table)
    assert number.n_classes == 0
    classes = read_target(label([1]), Scale.NOMINAL, table)
    assert classes.classes is not None
    assert classes.classes.to_pylist() == [9, 10]
    assert np.isnan(classes.values(table)[2])
    assert classes.values(table)[[0, 1, 3]].tolist() == [1, 0, 1]
    other = pa.table({"c0": pa.array([8, 9])})
    assert np.isnan(classes.values(other)).tolist() == [True, False]
    with pytest.raises(InputError, match="column age: a target has 1 to 100 classes, this one 0"):
        read_target(label(["x"]), None, pa.table({"c0": pa.array([None], pa.string())}))


def test_rows_without_a_target_are_left_out() -> None:
    table = pa.table({"c0": ["a", None, "b"], "c1": [1.0, 2.0, 3.0]})
    number = Column("x", "c1", Role.SENSITIVE, pa.float64(), "double")
    found = take_examples(
        table, fit([number], table), read_target(label(["a"]), None, table), released=False
    )
    assert found.y.tolist() == [0, 1]
    assert found.x.shape == (2, 2)


LEARNERS: Mapping[str, Mapping[str, Any]] = {
    "logistic_regression": {},
    "linear_regression": {},
    "boosted_trees": {"trees": 40, "rate": 0.2},
    "random_forest": {"trees": 20},
    "mlp": {"hidden": [16], "rate": 1e-2},
}


def learners() -> list[Learner]:
    """All of them, quick ones."""
    assert set(registry.plugins("learner")) == set(LEARNERS), "give the new one parameters"
    return [registry.build("learner", {"type": t, **given}) for t, given in LEARNERS.items()]


def planted(n: int, n_classes: int, seed: int) -> Examples:
    """Rows whose target follows from the first of four features."""
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 4))
    y: Floats = 3 * x[:, 0] + 100.0
    if n_classes:
        y = np.searchsorted([-0.5, 0.5] if n_classes == 3 else [0.0], x[:, 0]).astype(np.float64)
    return Examples(csr_matrix(x), y)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("learner", learners(), ids=lambda learner: learner.type)
def test_every_learner_finds_what_is_planted(learner: Learner, n_classes: int) -> None:
    if not learner.suits(n_classes):
        return
    train, test = planted(600, n_classes, 1), planted(200, n_classes, 2)
    found = fit_and_score(learner, train, test, n_classes=n_classes, seed=3)
    assert found == fit_and_score(learner, train, test, n_classes=n_classes, seed=3)
    told = find_baseline(train, test, n_classes=n_classes)
    if n_classes:
        assert found.accuracy is not None
        assert found.accuracy > 0.9
        assert found.auc is not None
        assert found.auc > 0.97
        assert told.accuracy is not None
        assert told.accuracy < 0.6
        assert told.auc == 0.5
    else:
        assert found.r2 is not None
        assert found.r2 > 0.85
        assert told.r2 is not None
        assert told.r2 < 0.05


@pytest.mark.parametrize("learner", learners(), ids=lambda learner: learner.type)
def test_every_learner_copes_with_little(learner: Learner) -> None:
    """One class, a class of one row, a class that was never seen, nothing at all."""
    test = planted(30, 3, 2)
    if learner.classifies:
        whole = planted(40, 3, 1)
        first = Examples(whole.x[whole.y == 0], whole.y[whole.y == 0])
        alone = fit_and_score(learner, first, test, n_classes=3, seed=0)
        assert alone == find_baseline(first, test, n_classes=3)
        kept = np.append(np.flatnonzero(whole.y == 0), np.flatnonzero(whole.y == 2)[0])
        few = Examples(whole.x[kept], whole.y[kept])
        assert fit_and_score(learner, few, test, n_classes=3, seed=0).accuracy is not None
    none = Examples(test.x[:0], test.y[:0])
    n_classes = 3 if learner.classifies else 0
    assert fit_and_score(learner, none, test, n_classes=n_classes, seed=0) == Scores()
    assert fit_and_score(learner, test, none, n_classes=n_classes, seed=0) == Scores()


def test_a_model_learns_from_intervals_what_raw_rows_show() -> None:
    """Cells along a number keep what follows from it; cells across it don't."""
    random = np.random.default_rng(5)
    wage = random.normal(size=2000)
    answers = np.where(wage > 0, "yes", "no")
    columns = [
        column([1.0], "interval", Scale.CONTINUOUS),
        Column("label", "c1", Role.TARGET, pa.string(), "string"),
    ]
    raw = pa.table({"c0": wage, "c1": answers})
    train, test = raw.slice(0, 1500), raw.slice(1500)
    target = read_target(columns[1], None, raw)
    features = fit(columns[:1], train)
    learner = registry.build("learner", {"type": "logistic_regression"})
    rank = np.argsort(np.argsort(train.column("c0").to_numpy()))
    found = {}
    for name, cell in {"along": rank // 10, "across": np.arange(1500) % 5}.items():
        table = released(columns[0], train.column("c0").combine_chunks(), cell.tolist())
        table = table.append_column("c1", train.column("c1"))
        ours = take_examples(table, features, target, released=True)
        held = take_examples(test, features, target, released=False)
        found[name] = fit_and_score(learner, ours, held, n_classes=2, seed=0).accuracy
    assert found["along"] is not None
    assert found["across"] is not None
    assert found["along"] > 0.97
    assert found["across"] < 0.9


def test_dense_models_refuse_what_they_cannot_hold() -> None:
    from scipy.sparse import csr_matrix

    learner = registry.build("learner", {"type": "boosted_trees"})
    y = np.arange(10_000) % 2.0
    wide = Examples(csr_matrix((10_000, 30_000)), y)
    with pytest.raises(InputError, match="lower `sample_rows` or `max_categories`"):
        fit_and_score(learner, wide, wide, n_classes=2, seed=0)


def test_features_are_the_same_plan_after_the_way_between_processes() -> None:
    import pickle

    job = column(["x"], "set")
    features = fit([job], pa.table({"c0": ["a", "b"]}))
    assert isinstance(features, Features)
    there = pickle.loads(pickle.dumps(features))
    assert there.names == features.names
    assert LearnTarget(job).n_classes == 0
