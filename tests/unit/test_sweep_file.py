"""Sweep files: what points they have, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from anonlib.config.reading import parse
from anonlib.errors import ConfigError, InputError
from anonlib.kernels.mdav_sd import MdavSd
from anonlib.sweeps.file import expand_grid, load_sweep, parse_sweep, shorten
from tests.support import data_dir

CONFIG: dict[str, Any] = {
    "source": {"format": "csv", "path": "people.csv"},
    "attributes": {
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "city": {"role": "quasi_identifier", "scale": "nominal"},
        "illness": {"role": "sensitive"},
        "label": {"role": "target", "public": True},
    },
    "one_row_per_person": True,
    "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
}
ALONG = {
    **CONFIG,
    "attributes": {
        **CONFIG["attributes"],
        "city": {
            **CONFIG["attributes"]["city"],
            "hierarchy": str(Path(__file__).parents[2] / "conf/hierarchies/education.yaml"),
        },
    },
}


def sweep(**changes: Any) -> dict[str, Any]:
    base = {
        "cases": {"people": {"config": CONFIG}},
        "grid": {"kernel.type": ["mdav", "mondrian"], "privacy.models.0.k": [3, 5]},
        "out": "out/sweep",
    }
    return {**base, **changes}


def problems(raw: Any, *overrides: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse_sweep(raw, overrides)
    return {problem.where: problem.text for problem in caught.value.problems}


def test_a_sweep_is_no_config() -> None:
    with pytest.raises(ConfigError, match=r"^this is a sweep, not a config; `anonlib sweep`"):
        parse({"cases": {"a": {"config": CONFIG}}, "grid": {"kernel": ["mdav"]}, "out": "x"})


def test_a_config_is_no_sweep() -> None:
    found = problems({**CONFIG, "release": {"path": "out"}})
    assert found == {"": "this is a config, not a sweep; a sweep lists configs under `cases`"}


class TestGrid:
    def test_last_key_varies_fastest(self) -> None:
        found = expand_grid({"a": [1, 2], "b": ["x", "y"]}, "grid", [])
        assert [(p["a"], p["b"]) for p in found] == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]

    def test_several_grids_one_after_the_other(self) -> None:
        found = expand_grid([{"a": [1]}, {"b": [2, 3]}], "grid", [])
        assert found == [{"a": 1}, {"b": 2}, {"b": 3}]

    def test_what_several_grids_have_comes_once(self) -> None:
        found = expand_grid([{"a": [1, 2]}, {"a": [2.0, 3]}, {}], "grid", [])
        assert found == [{"a": 1}, {"a": 2}, {"a": 3}, {}]

    @pytest.mark.parametrize(
        "values", [[10, 10], [5, 5.0], ["x", "y", "x"], [{"b": 1, "a": [2]}, {"a": [2.0], "b": 1}]]
    )
    def test_no_value_comes_twice(self, values: list[Any]) -> None:
        """Its results would count as those of more seeds."""
        found: list[Any] = []
        assert expand_grid({"a": values, "b": [1, True, "1"]}, "grid", found) == []
        assert [(p.where, p.text[:18]) for p in found] == [("grid.a", "has a value twice,")]

    def test_an_empty_one_has_one_point(self) -> None:
        assert expand_grid({}, "grid", []) == [{}]

    @pytest.mark.parametrize("values", [5, "mdav", [], {}])
    def test_values_are_lists(self, values: Any) -> None:
        found: list[Any] = []
        expand_grid([{"a": [1]}, {"a": [1], "b": values}], "grid", found)
        assert [problem.where for problem in found] == ["grid.1.b"]

    @pytest.mark.parametrize(
        "key",
        [
            *("source.where", '"source".where', "source", "source.options.password", "attributes"),
            *("attributes.age", "attributes.age.order.0", "privacy.missing_tokens", "privacy"),
        ],
    )
    def test_values_of_the_table_do_not_vary(self, key: str) -> None:
        found: list[Any] = []
        expand_grid({key: ["a"]}, "grid", found)
        assert [problem.where for problem in found] == [f"grid.{key}"]

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ('learn.version.set."source.where"', "RAW"),
            ("learn.version.set", {"privacy.missing_tokens": ["RAW"]}),
            ("learn.version", {"set": {'"attributes".age.order': ["RAW"]}}),
        ],
    )
    def test_nor_those_of_versions(self, key: str, value: Any) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_sweep(sweep(learn={"model": "mlp", "split": "after"}, grid={key: [value]}))
        assert [problem.where for problem in caught.value.problems] == [f"grid.{key}"]
        assert "RAW" not in str(caught.value)


class TestPoints:
    def test_seeds_come_last(self) -> None:
        points = parse_sweep(sweep(seeds=2)).points
        shown = [(p.seed, p.config.kernel.type, p.config.k) for p in points]
        each = [("mdav", 3), ("mdav", 5), ("mondrian", 3), ("mondrian", 5)]
        assert shown == [(seed, *one) for seed in (0, 1) for one in each]
        assert points[0].parameters == {"kernel.type": "mdav", "privacy.models.0.k": 3}

    def test_more_seeds_leave_the_others_as_they_were(self) -> None:
        few, many = parse_sweep(sweep(seeds=1)).points, parse_sweep(sweep(seeds=3)).points
        assert [p.text for p in few] == [p.text for p in many[: len(few)]]
        assert len({p.text for p in many}) == len(many)

    def test_cases_set_values_and_change_the_grid(self) -> None:
        own = {"config": CONFIG, "set": {"kernel": {"type": "mdav_sd", "lambda": 0.5}}}
        cases = {"a": {**own, "grid": {"privacy.models.0.k": [7]}}, "b": {**own, "grid": [{}]}}
        points = parse_sweep(sweep(cases=cases, grid={"partition.max_rows": [500]})).points
        assert [p.config.k for p in points] == [7, 3]
        assert [p.config.partition.max_rows for p in points] == [500, 20_000]
        assert all(p.config.kernel == MdavSd(**{"lambda": 0.5}) for p in points)

    def test_what_is_learned_is_in_the_grid_like_all_else(self) -> None:
        grid = {"learn.model": ["logistic_regression", {"type": "boosted_trees", "trees": 3}]}
        found = parse_sweep(sweep(grid=grid, learn={"target": "illness", "folds": 2})).points
        assert [p.settings.learn and p.settings.learn.model.type for p in found] == [
            "logistic_regression",
            "boosted_trees",
        ]
        # The sensitive column can be learned: a sweep publishes nothing.
        assert all(p.settings.learn and p.settings.learn.target == "illness" for p in found)

    def test_a_version_is_a_config_of_its_own(self) -> None:
        learn = {"model": "mlp", "split": "after", "version": {"set": {"kernel.type": "mdav_sd"}}}
        key = 'learn.version.set."privacy.models.0.k"'
        points = parse_sweep(sweep(learn=learn, grid={key: [3, 7]}, seeds=2)).points
        found = [(p.version and (p.version.k, p.version.kernel.type, p.seed)) for p in points]
        assert found == [(k, "mdav_sd", seed) for seed in (0, 1) for k in (3, 7)]
        assert [p.version and p.version.seed for p in points] == [0, 0, 1, 1]
        assert {(p.config.k, p.config.kernel.type) for p in points} == {(3, "mdav")}
        assert len({p.text for p in points}) == 4

    def test_the_order_of_a_versions_keys_matters(self) -> None:
        models = {"privacy.models": [{"type": "k_anonymity", "k": 4}]}
        keys = {"privacy.models.0.k": 9}
        found = []
        for changes in (models | keys, keys | models):
            learn = {"model": "mlp", "split": "after", "version": {"set": changes}}
            found += parse_sweep(sweep(learn=learn, grid={})).points
        assert [p.version and p.version.k for p in found] == [9, 4]
        assert found[0].text != found[1].text

    def test_files_and_overrides(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SWEEP_K", "4")
        (tmp_path / "configs").mkdir()
        given = {**CONFIG, "attributes": {**CONFIG["attributes"]}}
        given["attributes"]["city"] = {**given["attributes"]["city"], "hierarchy": "city.csv"}
        given["privacy"] = {"models": [{"type": "k_anonymity", "k": "${SWEEP_K}"}]}
        (tmp_path / "configs/people.yaml").write_text(yaml.safe_dump(given))
        (tmp_path / "configs/city.csv").write_text("a;*\nb;*\n")
        raw = sweep(cases={"people": {"config": "configs/people.yaml"}}, grid={})
        (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(raw))
        [first, second] = load_sweep(tmp_path / "sweep.yaml", ["seeds=2"]).points
        assert (first.config.k, first.seed, second.seed) == (4, 0, 1)
        before = first.text
        monkeypatch.setenv("SWEEP_K", "5")
        assert load_sweep(tmp_path / "sweep.yaml").points[0].text != before
        monkeypatch.setenv("SWEEP_K", "4")
        assert load_sweep(tmp_path / "sweep.yaml").points[0].text == before
        (tmp_path / "configs/city.csv").write_text("a;ab;*\nb;ab;*\n")
        assert load_sweep(tmp_path / "sweep.yaml").points[0].text != before

    def test_source_and_out_are_no_part_of_what_a_point_is(self) -> None:
        moved = {**CONFIG, "source": {"format": "parquet", "path": "elsewhere"}}
        one, two = (
            parse_sweep(sweep(cases={"people": {"config": config}}, out=out)).points
            for config, out in ((CONFIG, "a"), (moved, "b"))
        )
        assert [p.text for p in one] == [p.text for p in two]

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ({"type": "mdav_sd", "lambda": 0.5}, "mdav_sd lambda=0.5"),
            ([{"type": "kmeans"}, {"type": "single"}], "kmeans, single"),
            (0.1 + 0.2, "0.3"),
            (True, "True"),
        ],
    )
    def test_values_in_few_letters(self, value: Any, text: str) -> None:
        assert shorten(value) == text


class TestProblems:
    def test_versions_are_of_the_same_columns_and_rows(self) -> None:
        changes = {"attributes.age.role": "drop", "privacy.missing_tokens": ["x"], "": 1}
        learn = {"model": "mlp", "split": "after", "version": {"set": changes}}
        found = problems(sweep(learn=learn, grid={}))
        where = "cases.people: learn.version.set: "
        assert found.keys() == {f"{where}{key}" for key in changes}
        assert {text.split(":")[0] for text in found.values()} == {"must be one of these, or below"}

    @pytest.mark.parametrize(
        ("key", "value", "where"),
        [
            ("privacy.models.0.k", 0, "privacy.models.0.k"),
            ("partition.steps", [{"type": "controller", "column": "city"}], "partition.steps"),
        ],
    )
    def test_versions_that_no_point_could_have(self, key: str, value: Any, where: str) -> None:
        learn = {"model": "mlp", "split": "after", "version": {"set": {key: value}}}
        found = problems(sweep(learn=learn, grid={}))
        assert found.keys() == {f"cases.people: learn.version.set: {where}"}

    def test_keys_that_name_nothing(self) -> None:
        found = problems(sweep(cases={"people": {"config": CONFIG, "set": {"": 1, "..": 2}}}))
        assert {text.split(";")[0] for text in found.values()} == {"names no field"}
        assert len(found) == 2

    def test_unknown_keys_are_told_with_what_is_allowed(self) -> None:
        found = problems(sweep(models=[1], cases={"people": {"config": CONFIG, "sets": {}}}))
        assert "allowed: cases, grid, seeds, learn" in found["models"]
        assert "allowed: config, set, derive, grid" in found["cases.people.sets"]

    def test_all_at_once_and_each_once(self) -> None:
        bad = {**CONFIG, "privacy": {"models": [{"type": "k_anonymity", "k": -1}]}}
        cases = {"good": {"config": CONFIG}, "bad": {"config": bad}}
        grid = {"kernel.type": ["mdav", "mdaw"], "partition.max_rows": [500, 600, 1]}
        found = problems(sweep(cases=cases, grid=grid, pick={"parameters": ["kernel.gamma"]}))
        assert found.keys() == {
            "cases.good at kernel.type = mdav, partition.max_rows = 1: partition.max_rows",
            "cases.good at kernel.type = mdaw, partition.max_rows = 500: kernel.type",
            "cases.bad at kernel.type = mdav, partition.max_rows = 500: privacy.models.0.k",
            "cases.bad at kernel.type = mdav, partition.max_rows = 1: partition.max_rows",
            "cases.bad at kernel.type = mdaw, partition.max_rows = 500: kernel.type",
            "pick.parameters.0",
        }

    def test_files_that_are_not_there_among_them(self) -> None:
        cases = {
            "good": {"config": CONFIG},
            "none": {"config": "nowhere.yaml"},
            "unset": {"config": "${NOT_SET_ANYWHERE}.yaml"},
        }
        found = problems(sweep(cases=cases, grid={"kernel.type": ["mdaw"]}, pick={"grud": 1}))
        assert "nowhere.yaml: can't be read" in found["cases.none.config"]
        assert "NOT_SET_ANYWHERE is not set" in found["cases.unset.config"]
        assert "pick.grud" in found

    @pytest.mark.parametrize(
        ("changes", "where", "text"),
        [
            ({"cases": {}}, "cases", "at least 1"),
            ({"seeds": 0}, "seeds", "greater than or equal to 1"),
            ({"grid": {"seed": [1]}}, "grid.seed", "seeds"),
            ({"grid": {"a.b.c.d": []}}, "grid.a.b.c.d", "one value or more"),
            ({"learn": {"model": "mlp", "target": "age"}}, "learn.target", "label"),
            ({"learn": {"model": "mlp", "version": {}}}, "learn.version", "split: after"),
            (
                {"cluster": {"nominal": "codes"}, "cases": {"a": {"config": ALONG}}},
                "cluster.nominal",
                "for city use indicators",
            ),
            (
                {"learn": {"model": "mlp", "split": "after", "train": "raw", "version": {}}},
                "learn.version",
                "train: released",
            ),
            ({"learn": {"model": "perceptron"}}, "learn.model.type", "boosted_trees"),
            ({"learn": {}}, "learn.model", "name a learner"),
            ({"learn": {"model": "mlp", "folds": 1}}, "learn.folds", "at least 2"),
            ({"learn": {"model": "mlp", "folds": 2, "split": "after"}}, "learn.folds", "before"),
            ({"learn": {"model": "mlp", "fold": 2}}, "learn.fold", "allowed: model, target"),
            ({"sample": {"share": 0.5, "by": "town"}}, "sample.by", "no such column"),
            ({"sample": {"share": 0}}, "sample.share", "greater than 0"),
            (
                {"seeds": 10_000, "grid": {"partition.max_rows": [*range(100, 200)]}},
                "grid",
                "1,000",
            ),
            (
                {"grid": {"partition.steps": [[{"type": "controller", "column": "city"}]]}},
                "partition.steps",
                "controllers",
            ),
        ],
    )
    def test_one(self, changes: dict[str, Any], where: str, text: str) -> None:
        found = problems(sweep(**{"grid": {}, **changes}))
        assert len(found) == 1
        [(place, told)] = found.items()
        assert place.endswith(where)
        assert text in told

    def test_no_mapping_and_no_file(self, tmp_path: Path) -> None:
        assert "mapping" in problems([1])[""]
        with pytest.raises(
            ConfigError, match=r"^cases\.people\.config: config .*missing\.yaml: can't"
        ):
            parse_sweep(sweep(cases={"people": {"config": "missing.yaml"}}), folder=tmp_path)
        with pytest.raises(InputError):
            load_sweep(tmp_path / "missing.yaml")

    def test_a_grid_reaches_defaults_and_names(self) -> None:
        grid = {
            "kernel.gamma": [0.1, 0.3],
            "partition.steps.0": ["kmeans", "single"],
            "privacy.models.1": [{"type": "l_diversity", "l": 2, "attribute": "label"}],
        }
        case = {"people": {"config": {**CONFIG, "kernel": "vmdav"}}}
        points = parse_sweep(sweep(cases=case, grid=grid)).points
        made = [(p.config.kernel.model_dump()["gamma"], p.config.partition.steps) for p in points]
        assert [(gamma, step.type) for gamma, (step,) in made] == [
            *((0.1, "kmeans"), (0.1, "single"), (0.3, "kmeans"), (0.3, "single"))
        ]
        assert {len(p.config.privacy.models) for p in points} == {2}

    def test_wrong_override(self) -> None:
        assert "--set" in problems(sweep(), "seeds")


def test_those_of_the_papers_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_DATA", str(data_dir()))
    folder = Path(__file__).parents[2] / "conf" / "papers"
    paths = sorted(folder.glob("*.yaml"))
    assert paths
    for path in paths:
        points = load_sweep(path, ["seeds=2"]).points
        assert len({point.text for point in points if point.case == points[0].case}) > 1
