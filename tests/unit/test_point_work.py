"""One point of a sweep in memory: what is learned, by which protocol, and what goes wrong."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from anonlib.sweeps.file import parse_sweep
from anonlib.sweeps.point_release import release_point
from anonlib.sweeps.point_work import Result, try_point
from anonlib.sweeps.settings import Point
from tests.unit.test_point_release import QUASI, as_source

LEARN = {"model": "logistic_regression", "holdout": 0.25}


def people(n: int = 200) -> pd.DataFrame:
    """The label says on which side of a line a row lies, but for some."""
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, n))
    noise = random.random(n) < 0.05
    return pd.DataFrame({"x": x, "y": y, "label": np.where((x + y > 0) ^ noise, "yes", "no")})


def point(
    grid: dict[str, Any] | None = None, city: dict[str, Any] | None = None, **changes: Any
) -> Point:
    """city: a nominal column more."""
    nominal = {} if city is None else {"city": {**QUASI, "scale": "nominal", **city}}
    config = {
        "source": {"format": "parquet", "path": "people"},
        "attributes": {
            "x": {**QUASI, "scale": "continuous"},
            "y": {**QUASI, "scale": "continuous"},
            "label": {"role": "target", "public": True},
            **nominal,
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
        "partition": {"steps": [{"type": "single"}]},
    }
    grid = {key: [value] for key, value in (grid or {}).items()}
    raw = {"cases": {"people": {"config": config}}, "out": "out", "grid": grid, **changes}
    return parse_sweep(raw).points[0]


def run(point: Point, data: pd.DataFrame | None = None) -> Result:
    data = people() if data is None else data
    table, schema = as_source(data, point.config)
    version = None if point.version is None else as_source(data, point.version)[1]
    return try_point(point, table, schema, version)


def figures(point: Point, data: pd.DataFrame | None = None) -> dict[str, float | None]:
    found = run(point, data)
    assert found.error is None
    assert found.figures is not None
    return found.figures


class TestLearning:
    def test_a_planted_line_is_found(self) -> None:
        found = run(point(learn=LEARN))
        assert found.figures is not None
        assert found.n_rows == 150
        assert found.least_persons >= 5
        assert found.figures["accuracy"] > 0.85
        assert found.figures["raw_accuracy"] > 0.85
        assert found.figures["baseline_accuracy"] < 0.65

    def test_one_cell_teaches_nothing(self) -> None:
        found = figures(point({"privacy.models.0.k": 100}, learn=LEARN))
        assert found["accuracy"] == found["baseline_accuracy"]
        assert found["raw_accuracy"] > 0.85
        assert found["sse"] == pytest.approx(1.0)

    def test_raw_scores_are_those_of_sklearn_on_the_same_split(self) -> None:
        from anonlib.sweeps.person_splits import split_persons

        chosen = point(learn=LEARN)
        table, _ = as_source(people(), chosen.config)
        test, train = split_persons(table, [], 0.25, 0, "test")
        data = people()
        x = data[["x", "y"]].to_numpy()
        x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
        model = LogisticRegression(C=1.0).fit(x[train], data["label"].to_numpy()[train])
        expected = model.score(x[test], data["label"].to_numpy()[test])
        assert figures(chosen)["raw_accuracy"] == pytest.approx(expected)

    def test_learning_from_raw_rows_gives_the_raw_scores(self) -> None:
        found = figures(point(learn={**LEARN, "train": "raw"}))
        assert found["accuracy"] == found["raw_accuracy"]
        assert found["sse"] > 0

    def test_after_anonymizes_all_rows(self) -> None:
        after = {**LEARN, "split": "after"}
        found = run(point(learn=after))
        assert found.n_rows == 200
        raw = figures(point(learn={**after, "test": "raw", "train": "raw"}))
        assert raw["accuracy"] == raw["raw_accuracy"]
        assert found.figures is not None
        assert found.figures["raw_accuracy"] == raw["raw_accuracy"]

    def test_cross_validation_never_sees_the_test_rows(self) -> None:
        chosen = point(learn={**LEARN, "folds": 4})
        data = people()
        expected = figures(chosen, data)
        table, _ = as_source(data, chosen.config)
        from anonlib.sweeps.person_splits import split_persons

        test, _ = split_persons(table, [], 0.25, 0, "test")
        data.loc[test, "label"] = "no"
        changed = figures(chosen, data)
        assert changed["cv_accuracy"] == expected["cv_accuracy"]
        assert changed["accuracy"] != expected["accuracy"]
        assert 0.8 < expected["cv_accuracy"] < 1

    def test_a_sample_and_controllers(self) -> None:
        found = run(point(sample={"share": 0.5, "by": "label"}, controllers=4))
        assert found.n_rows == pytest.approx(100, abs=1)
        assert found.n_cells >= 4
        assert found.error is None


class TestVersions:
    AFTER: ClassVar[dict[str, Any]] = {**LEARN, "split": "after"}

    def learn(self, k: int, **changes: Any) -> dict[str, Any]:
        return {**self.AFTER, "version": {"set": {"privacy.models.0.k": k}}, **changes}

    def test_one_like_the_point_changes_nothing(self) -> None:
        plain, same = (figures(point(learn=learn)) for learn in (self.AFTER, self.learn(5)))
        assert same == plain

    def test_models_learn_from_the_version_and_are_tested_on_the_point(self) -> None:
        raw = {"test": "raw"}
        alone = figures(point({"privacy.models.0.k": 20}, learn={**self.AFTER, **raw}))
        assert figures(point(learn=self.learn(20, **raw)))["accuracy"] == alone["accuracy"]
        small, one_cell = (figures(point(learn=given)) for given in (self.AFTER, self.learn(200)))
        assert one_cell["accuracy"] == one_cell["baseline_accuracy"] < small["accuracy"]
        of_the_point = small.keys() - {"accuracy", "f1", "f1_macro", "auc"}
        assert {name: one_cell[name] for name in of_the_point} == {
            name: small[name] for name in of_the_point
        }

    def test_nodes_in_another_encoding(self, tmp_path: Path) -> None:
        tree = tmp_path / "tree.csv"
        tree.write_text("a;x;*\nb;x;*\nc;y;*\nd;y;*\n")
        random = np.random.default_rng(4)
        data = people().assign(city=random.choice([*"abcd"], 200))
        data["label"] = np.where(data["city"].isin([*"ab"]), "yes", "no")

        def auc(**learn: Any) -> float | None:
            grid = {"recode.nominal": "lca"}
            learn = {**self.AFTER, **learn}
            return figures(point(grid, {"hierarchy": str(tree)}, learn=learn), data)["auc"]

        known = auc(encoding="one_class")
        assert auc(encoding="one_class", version={"encoding": "one_class"}) == known
        assert auc(encoding="one_class", version={"encoding": "fill_parent"}) != known

    def test_other_features_are_refused(self) -> None:
        version = {"set": {"recode.columns": {"x": "suppress"}}}
        found = run(point(learn={**self.AFTER, "version": version}))
        assert found.error is not None
        assert "learn.version.set: its columns have other features" in found.error


class TestMoments:
    def test_centroids_keep_means_and_restored_ones_variances(self) -> None:
        plain = figures(point())
        assert plain["mean_error"] == pytest.approx(0, abs=1e-12)
        assert plain["variance_error"] > 0.01
        restored = {"type": "centroid", "restore_variance": True}
        kept = figures(point({"recode.continuous": restored}))
        assert kept["mean_error"] == pytest.approx(0, abs=1e-12)
        assert kept["variance_error"] == pytest.approx(0, abs=1e-12)

    def test_none_where_no_column_stays_a_number(self) -> None:
        assert figures(point({"recode.continuous": "interval"}))["mean_error"] is None


class TestClustering:
    def test_clear_clusters_are_found_in_small_cells_only(self) -> None:
        data = people(120)
        data[["x", "y"]] += np.repeat([0.0, 20.0, 40.0], 40)[:, None]
        small = figures(point(cluster={"clusters": 3}), data)
        assert small["raw_ari"] == pytest.approx(1)
        assert small["ari"] > 0.9
        assert small["nmi"] > 0.9
        large = figures(point({"privacy.models.0.k": 60}, cluster={"clusters": 3}), data)
        assert large["ari"] < 0.7

    @pytest.mark.parametrize("recoder", ["set", "mode"])
    def test_categories_by_their_numbers(self, recoder: str) -> None:
        random = np.random.default_rng(5)
        city = pd.Series(random.choice([*"abcdefgh"], 120)).where(random.random(120) < 0.9)
        data = people(120).assign(city=city)
        grid = {"recode.nominal": recoder}
        asked = point(grid, {}, cluster={"clusters": 3, "nominal": "codes"})
        found = figures(asked, data)

        table, schema = as_source(data, asked.config)
        names = [column.id for column in schema.quasi_identifiers]
        released = release_point(table, schema, asked.config).released.select(names).to_pandas()
        raw = table.select(names).to_pandas()

        def numbered(value: Any) -> float:
            some = [] if value is None else [*value]
            places = ["abcdefgh".index(each) for each in some if each is not None]
            return (min(places) + max(places)) / 2 if places else np.nan

        x, y = (part.assign(**{names[2]: part[names[2]].map(numbered)}) for part in (raw, released))
        labels = [
            KMeans(3, n_init=10, random_state=0).fit(values.fillna(0.0)).labels_
            for values in ((part - x.mean()) / x.std(ddof=0) for part in (x, y))
        ]
        assert found["ari"] == pytest.approx(adjusted_rand_score(*labels))
        assert found["ari"] != figures(point(grid, {}, cluster={"clusters": 3}), data)["ari"]

    def test_a_column_of_nothing_but_missing_values(self) -> None:
        data = people(120).assign(city=pd.Series([None] * 120, dtype="string"))
        codes, indicators = (
            figures(point({}, {}, cluster={"clusters": 3, "nominal": kind}), data)
            for kind in ("codes", "indicators")
        )
        assert codes == indicators


def test_the_same_again_and_another_with_another_seed() -> None:
    given = point(learn={**LEARN, "folds": 2}, sample={"share": 0.8})
    assert figures(given) == figures(given)
    raw = {"learn": {**LEARN, "folds": 2}, "sample": {"share": 0.8}}
    assert figures(point(**raw)) == figures(given)
    moved = given.config.model_copy(update={"seed": 1})
    other = Point(given.case, given.parameters, moved, given.settings, given.text)
    assert figures(other) != figures(given)


class TestErrors:
    def test_models_that_cannot_hold(self) -> None:
        found = run(point({"privacy.models.0.k": 300}, learn=LEARN))
        assert found.figures is None
        assert found.error is not None
        assert found.error.startswith("InfeasibleError: ")
        assert "150 rows" in found.error

    def test_no_text_of_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: Any) -> None:
            raise ValueError("RAWVALUE")

        monkeypatch.setattr("anonlib.sweeps.point_work.release_point", broken)
        found = run(point(learn=LEARN))
        assert found.error == "failed with ValueError"

    def test_a_model_of_another_kind(self) -> None:
        found = run(point(learn={**LEARN, "model": "linear_regression"}))
        assert found.error is not None
        assert "linear_regression doesn't predict 2 classes" in found.error
