"""Configs: everything wrong is reported together, with its place, and never with its value."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anonlib.config.defaults import fill_defaults
from anonlib.config.reading import parse
from anonlib.errors import ConfigError
from anonlib.kernels.mdav import Mdav
from anonlib.registry import plugins

GOOD: dict[str, Any] = {
    "source": {"format": "csv", "path": "people.csv"},
    "attributes": {
        "id": {"role": "identifier"},
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "city": {"role": "quasi_identifier", "scale": "nominal"},
        "illness": {"role": "sensitive"},
        "label": {"role": "target", "public": True},
    },
    "one_row_per_person": "id",
    "privacy": {"models": [{"type": "k_anonymity", "k": 10}]},
    "release": {"path": "out/people"},
}


def changed(*keys: str | int, to: Any = None, **fields: Any) -> dict[str, Any]:
    """GOOD with the value at `keys` replaced, or with fields added there."""
    config: Any = copy.deepcopy(GOOD)
    node = config
    for key in keys[:-1]:
        node = node[key]
    if fields:
        node[keys[-1]] = {**node.get(keys[-1], {}), **fields}
    else:
        node[keys[-1]] = to
    result: dict[str, Any] = config
    return result


def problems(raw: Any, *overrides: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse(raw, overrides)
    assert caught.value.exit_code == 2
    return {problem.where: problem.text for problem in caught.value.problems}


#: A config that is wrong in one place: the name of the case, the config, the place, and a part of
#: what is said of it.
Mistake = tuple[str, dict[str, Any], str, str]


def each_mistake(mistakes: Sequence[Mistake]) -> pytest.MarkDecorator:
    """A test of `raw`, `where` and `text` for each."""
    cases = [pytest.param(*case, id=name) for name, *case in mistakes]
    return pytest.mark.parametrize(("raw", "where", "text"), cases)


def require_one_problem(raw: dict[str, Any], where: str, text: str) -> None:
    found = problems(raw)
    assert list(found) == [where]
    assert text in found[where]


def test_good_one_with_its_defaults() -> None:
    config = parse(GOOD)
    assert config.kernel.type == "mdav"
    assert [step.type for step in config.partition.steps] == ["kmeans"]
    assert (config.recode.continuous.type, config.recode.ordinal.type) == ("centroid", "median")
    assert config.recode.nominal.type == "mode"
    assert config.record_folder == "out/people.private"
    assert config.k == 10
    assert parse(config) is config


def test_input_is_left_as_it_is() -> None:
    before = copy.deepcopy(GOOD)
    parse(GOOD, ["privacy.models.0.k=3", "source.options.header=true"])
    assert before == GOOD


@pytest.mark.parametrize("section", ["partition", "kernel", "recode", "pseudonyms", "spark"])
def test_empty_section_is_one_left_out(section: str) -> None:
    assert parse({**GOOD, section: None}) == parse(GOOD)


@pytest.mark.parametrize("evaluate", [None, {}, {"measures": None}, {"metrics": "out/figures"}])
def test_defaults_leave_the_tree_as_it_is(evaluate: dict[str, Any] | None) -> None:
    tree = {"evaluate": evaluate, "recode": {"nominal": None}, "kernel": None}
    filled = fill_defaults(tree)
    assert tree == {"evaluate": evaluate, "recode": {"nominal": None}, "kernel": None}
    assert filled["kernel"] == {"type": "mdav"}
    assert filled["recode"]["nominal"] is None  # an empty field is an error, as others are
    assert ("evaluate" in filled) == (evaluate is not None)
    if evaluate is not None and "measures" not in evaluate:
        assert filled["evaluate"]["measures"]


def test_part_of_a_section_keeps_the_other_defaults() -> None:
    config = parse({**GOOD, "partition": {"max_rows": 500}, "recode": {"nominal": "set"}})
    assert [step.type for step in config.partition.steps] == ["kmeans"]
    assert config.recode.nominal.type == "set"
    assert config.recode.ordinal.type == "median"


def test_plugins_by_name_mapping_or_object() -> None:
    forms = ["mdav", {"type": "mdav"}, Mdav()]
    assert len({parse({**GOOD, "kernel": form}).kernel for form in forms}) == 1


def test_paths_may_be_path_objects() -> None:
    assert parse(changed("release", path=Path("a") / "b")).release.path == "a/b"


KERNELS = ", ".join(plugins("kernel"))

WRONG: list[Mistake] = [
    ("no_models", changed("privacy", to={"models": []}), "privacy.models", "k_anonymity is"),
    ("small_k", changed("privacy", "models", 0, to={"type": "k_anonymity", "k": 1}),
     "privacy.models.0.k", "greater than or equal to 2"),
    ("k_is_text", changed("privacy", "models", 0, to={"type": "k_anonymity", "k": "many"}),
     "privacy.models.0.k", "integer"),
    ("k_is_yes", changed("privacy", "models", 0, to={"type": "k_anonymity", "k": True}),
     "privacy.models.0.k", "a number is needed"),
    ("no_k", changed("privacy", "models", 0, to={"type": "k_anonymity"}),
     "privacy.models.0.k", "required"),
    ("unknown_model", changed("privacy", "models", 0, to={"type": "m_anonymity"}),
     "privacy.models.0.type", "there are: alpha_k, beta_likeness"),
    ("unknown_kernel", {**GOOD, "kernel": "modav"}, "kernel.type", f"there are: {KERNELS}"),
    ("unknown_step", {**GOOD, "partition": {"steps": ["kmean"]}},
     "partition.steps.0.type", "there are: controller, kmeans, "),
    ("unknown_recoder", {**GOOD, "recode": {"columns": {"age": "middle"}}},
     "recode.columns.age.type", "centroid, interval, lca, median, mode, proportional, set"),
    ("shares_without_a_tree", {**GOOD, "recode": {"columns": {"city": "proportional"}}},
     "attributes.city.hierarchy", "required by recoder proportional"),
    ("lca_of_numbers", {**GOOD, "recode": {"columns": {"age": "lca"}}},
     "recode.columns.age", "lca is for scale nominal only; for continuous: centroid, "),
    ("fairness_of_nothing", {**GOOD, "evaluate": {"measures": ["fairness"]}},
     "evaluate.measures.0.columns", "required by fairness: "),
    ("a_model_alone", {**GOOD, "privacy": {"models": {"type": "k_anonymity", "k": 5}}},
     "privacy.models", "a list is needed, also of one: put it in brackets, [...]"),
    ("nameless_kernel", {**GOOD, "kernel": {"variant": "generic"}}, "kernel", "by `type`"),
    ("unknown_parameter", {**GOOD, "kernel": {"type": "mdav", "speed": 3}},
     "kernel.speed", "unknown field; allowed: "),
    ("misspelt_recoded", {**GOOD, "recode": {"columns": {"ciyt": "mode"}}},
     "recode.columns.ciyt", "`role: quasi_identifier`; did you mean city?"),
    ("misspelt_field", {**GOOD, "sede": 3}, "sede", "unknown field; did you mean seed? allowed: "),
    ("misspelt_kernel", {**GOOD, "kernel": "Mondrain"},
     "kernel.type", "unknown kernel 'Mondrain'; did you mean mondrian? there are: "),
    ("misspelt_unit", {**GOOD, "one_row_per_person": False, "unit": ["Agee"]},
     "unit.0", "no such column under `attributes`; did you mean age?"),
    ("unknown_field", {**GOOD, "sede": 3}, "sede", "allowed: source, attributes, "),
    ("unknown_field_below", changed("source", pth="x"), "source.pth", "allowed: format, path, "),
    ("no_source", changed("source"), "source", "required"),
    ("source_is_text", changed("source", to="people.csv"), "source", "mapping"),
    ("no_path", changed("source", to={"format": "csv"}), "source.path", "required"),
    ("no_table", changed("source", to={"format": "table"}), "source.table", "required"),
    ("format_in_capitals", changed("source", format="CSV"), "source.format", "lower case"),
    ("version_of_csv", changed("source", version=3), "source.version", "Delta"),
    ("rows_of_csv", changed("source", rows=3), "source.rows", "generator"),
    ("path_of_generator", changed("source", format="generator"), "source.path", "remove"),
    ("steps_is_null", {**GOOD, "partition": {"steps": None}}, "partition.steps", "list"),
    ("no_steps", {**GOOD, "partition": {"steps": []}}, "partition.steps", "at least one"),
    ("no_role", changed("attributes", "age", to={"scale": "nominal"}),
     "attributes.age.role", "required"),
    ("unknown_role", changed("attributes", "age", role="quasi"),
     "attributes.age.role", "'quasi_identifier'"),
    ("no_scale", changed("attributes", "age", to={"role": "quasi_identifier"}),
     "attributes.age.scale", "continuous, ordinal, nominal"),
    ("scale_of_sensitive", changed("attributes", "illness", scale="nominal"),
     "attributes.illness.scale", "remove"),
    ("ordinal_target", changed("attributes", "label", scale="ordinal"),
     "attributes.label.scale", "continuous or nominal"),
    ("lambda_too_large", {**GOOD, "kernel": {"type": "mdav_sd", "lambda": 2}},
     "kernel.lambda", "less than or equal to 1"),
    ("boolean_lambda", {**GOOD, "kernel": {"type": "mdav_sd", "lambda": True}},
     "kernel.lambda", "not true or false"),
    ("order_of_nominal", changed("attributes", "city", order=["a", "b"]),
     "attributes.city.order", "only ordinal"),
    ("order_with_a_repeat", changed("attributes", "city", scale="ordinal", order=["a", "a"]),
     "attributes.city.order", "each once"),
    ("order_of_numbers", changed("attributes", "city", scale="ordinal", order=["a", 1]),
     "attributes.city.order.1", "quotes"),
    ("unknown_type", changed("attributes", "age", type="number"),
     "attributes.age.type", "decimal(12,2)"),
    ("injected_type", changed("attributes", "age", type="int), (select 1"),
     "attributes.age.type", "not valid"),
    ("pseudonym_of_age", changed("attributes", "age", pseudonym=True),
     "attributes.age.pseudonym", "only identifiers"),
    ("pseudonym_without_key", changed("attributes", "id", pseudonym=True),
     "pseudonyms", "key_env or key_file"),
    ("two_keys", {**GOOD, "pseudonyms": {"key_env": "A", "key_file": "b"}},
     "pseudonyms", "exactly one"),
    ("two_targets", changed("attributes", "illness", to={"role": "target", "public": True}),
     "attributes", "2 columns have `role: target`"),
    ("target_unacknowledged", changed("attributes", "label", public=False),
     "attributes.label.public", "set `public: true` to accept that"),
    ("public_sensitive", changed("attributes", "illness", public=True),
     "attributes.illness.public", "only a target"),
    ("no_quasi_identifier", changed("attributes", to={"id": {"role": "identifier"}}),
     "attributes", "at least one"),
    ("reserved_name", changed("attributes", "__anonlib_x", role="drop"),
     "attributes.__anonlib_x", "are reserved"),
    ("reserved_name_in_capitals", changed("attributes", "__ANONLIB_X", role="drop"),
     "attributes.__ANONLIB_X", "are reserved"),
    ("no_persons", changed("one_row_per_person", to=False), "one_row_per_person", "exactly one"),
    ("persons_twice", {**GOOD, "unit": ["id"]}, "one_row_per_person", "exactly one"),
    ("person_is_a_number", changed("one_row_per_person", to=3), "one_row_per_person", "true, or"),
    ("person_is_no_identifier", changed("one_row_per_person", to="age"),
     "one_row_per_person", "`role: identifier`"),
    ("unknown_unit", {**GOOD, "one_row_per_person": False, "unit": ["who"]},
     "unit.0", "no such column"),
    ("unit_is_text", {**GOOD, "one_row_per_person": False, "unit": "id"}, "unit", "list"),
    ("unit_twice", {**GOOD, "one_row_per_person": False, "unit": ["id", "id"]}, "unit", "twice"),
    ("unit_is_age", {**GOOD, "one_row_per_person": False, "unit": ["age"]}, "unit.0", "identifier"),
    ("diversity_of_nothing",
     changed("privacy", to={"models": [{"type": "k_anonymity", "k": 2},
                                       {"type": "l_diversity", "l": 2, "attribute": "age"}]}),
     "privacy.models.1.attribute", "sensitive columns: illness"),
    ("measure_of_a_gate",
     {**GOOD, "evaluate": {"measures": ["marginal"]},
      "gates": [{"figure": "marginals.wasserstein", "at_most": 1}]},
     "evaluate.measures.0.type", "did you mean marginals?"),
    ("suppression_of_all", changed("privacy", suppression_limit=1.0),
     "privacy.suppression_limit", "less than 1: 0.05 is 5 %"),
    ("suppression_in_percent", changed("privacy", suppression_limit=5),
     "privacy.suppression_limit", "a share is needed, less than 1: 0.05 is 5 %"),
    ("suppression_is_nan", changed("privacy", suppression_limit=float("nan")),
     "privacy.suppression_limit", ""),
    ("recoder_of_other_scale", {**GOOD, "recode": {"columns": {"city": "centroid"}}},
     "recode.columns.city", "scale continuous"),
    ("recoder_of_other_scale_by_default", {**GOOD, "recode": {"nominal": "centroid"}},
     "recode.nominal", "scale continuous"),
    ("recoder_of_nothing", {**GOOD, "recode": {"columns": {"id": "mode"}}},
     "recode.columns.id", "must name a column with `role: quasi_identifier`"),
    ("no_release", changed("release", to={}), "release.path", "required"),
    ("empty_path", changed("release", path=""), "release.path", "at least 1 character"),
    ("unknown_mode", changed("release", mode="replace"), "release.mode", "'append' or 'overwrite'"),
    ("odd_run_id", changed("release", run_id="a b"), "release.run_id", "letters"),
    ("release_is_the_source", changed("release", path="./people.csv"), "release.path", "source"),
    ("record_in_the_release", changed("release", record="out/people/_anonlib"),
     "release.record", "private"),
    ("files_by_identifier", changed("release", partition_by=["id"]),
     "release.partition_by.0", "not a column that is released"),
    ("seed_is_text", {**GOOD, "seed": "x"}, "seed", "integer"),
    ("seed_is_a_fraction", {**GOOD, "seed": 0.5}, "seed", "fraction"),
    ("seed_is_yes", {**GOOD, "seed": True}, "seed", "a number is needed"),
    ("seed_is_huge", {**GOOD, "seed": 10**400}, "seed", ""),
    ("one_category", {**GOOD, "max_categories": 1}, "max_categories", "equal to 2"),
    ("options_are_null", {**GOOD, "spark": {"conf": {"spark.x": None}}},
     "spark.conf.spark.x", "text is needed"),
    ("keys_are_numbers", {**GOOD, 3: 4}, "", "keys must be text"),
]  # fmt: skip


@each_mistake(WRONG)
def test_one_mistake_gives_one_problem(raw: dict[str, Any], where: str, text: str) -> None:
    require_one_problem(raw, where, text)


def test_names_that_differ_in_case_only() -> None:
    found = problems(changed("attributes", "AGE", role="drop"))
    assert list(found) == ["attributes.AGE", "attributes.age"]


def test_no_attributes() -> None:
    found = problems({**GOOD, "attributes": {}, "one_row_per_person": True})
    assert list(found) == ["attributes"]


@pytest.mark.parametrize("raw", [None, 3, "text", [], [GOOD]])
def test_not_a_mapping(raw: Any) -> None:
    assert "mapping" in problems(raw)[""]


def test_diversity_without_a_sensitive_column() -> None:
    raw = changed("attributes", "illness", to={"role": "drop"})
    raw["privacy"]["models"].append({"type": "l_diversity", "l": 2})
    assert (
        "no column has `role: sensitive`; l_diversity needs one"
        in problems(raw)["privacy.models.1.attribute"]
    )


def test_joint_takes_several_columns_and_a_model_of_one() -> None:
    diverse = {"type": "l_diversity", "l": 2, "attribute": "illness"}
    joint = {"joint": True, "models": [*GOOD["privacy"]["models"], diverse]}
    text = (
        "needs two sensitive columns, or a sensitive column and a target with a privacy model; "
        "the config has 1"
    )
    assert problems(changed("privacy", to=joint)) == {"privacy.joint": text}
    two = changed("attributes", city={"role": "sensitive"})
    plain = {"joint": True, "models": GOOD["privacy"]["models"]}
    found = problems({**two, "privacy": plain})
    assert found == {"privacy.joint": "no privacy model protects a column: add one, or remove this"}
    assert parse({**two, "privacy": joint}).privacy.joint
    modelled = [*joint["models"], {**diverse, "attribute": "label"}]
    assert parse(changed("privacy", to={"joint": True, "models": modelled})).privacy.joint


def test_all_problems_together_and_none_that_follows_from_another() -> None:
    raw = changed("attributes", "age", role="x")
    raw["attributes"]["label"] = {"role": "target", "type": "foo"}
    raw["privacy"]["models"] = [{"type": "zz"}, {"type": "l_diversity", "l": 1}]
    raw |= {"seed": -1, "kernel": 3, "sede": 1, "release": {"path": "people.csv", "mode": "x"}}
    assert set(problems(raw, "max_categories=1", "oops")) == {
        "--set",
        "attributes.age.role",
        "attributes.label.type",
        "kernel",
        "max_categories",
        "privacy.models.0.type",
        "privacy.models.1.l",
        "release.mode",
        "release.path",
        "sede",
        "seed",
    }


def test_types_and_meaning_are_checked_in_one_go() -> None:
    raw = changed("attributes", "label", public=False)
    raw["source"]["version"] = 1
    raw["kernel"] = "modav"
    raw["seed"] = "x"
    assert set(problems(raw)) == {
        "attributes.label.public",
        "source.version",
        "kernel.type",
        "seed",
    }


class TestEnvironment:
    def test_value_and_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANON_A", "here")
        monkeypatch.delenv("ANON_B", raising=False)
        config = parse(changed("source", path="${ANON_A}/${ANON_B:-there}/${ANON_B:-}x"))
        assert config.source.path == "here/there/x"

    def test_value_is_not_expanded_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANON_A", "${ANON_A}")
        assert parse(changed("source", path="${ANON_A}")).source.path == "${ANON_A}"

    def test_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANON_A", "12")
        assert parse({**GOOD, "seed": "${ANON_A}"}).seed == 12

    def test_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ANON_A", raising=False)
        found = problems(changed("source", path="${ANON_A}", options={"pw": "${ANON_A}"}))
        assert set(found) == {"source.path", "source.options.pw"}
        assert "ANON_A is not set" in found["source.path"]

    @pytest.mark.parametrize(
        "raw",
        [
            {**GOOD, "seed": "${ANON_A}"},
            changed("privacy", "models", 0, to={"type": "k_anonymity", "k": "${ANON_A}"}),
            changed("attributes", "age", role="${ANON_A}"),
            changed("attributes", "age", type="${ANON_A}"),
            changed("release", mode="${ANON_A}"),
            changed("release", run_id="${ANON_A}"),
            {**GOOD, "source": "${ANON_A}"},
            {**GOOD, "unit": "${ANON_A}"},
            {**GOOD, "one_row_per_person": "${ANON_A}"},
        ],
    )
    def test_value_is_in_no_error(self, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANON_A", "hush-hush!")
        with pytest.raises(ConfigError) as caught:
            parse(raw)
        assert "hush" not in str(caught.value)
        assert caught.value.__cause__ is None


class TestOverrides:
    def test_values_are_yaml(self) -> None:
        config = parse(
            GOOD,
            [
                "privacy.models.0.k=3",
                "kernel={type: mondrian}",
                "release.partition_by=[city]",
                "source.options.delimiter=';'",
                'source.options."fs.b"==',
                "spark.conf.spark=x=y",
                "seed=5",
            ],
        )
        assert (config.k, config.kernel.type, config.seed) == (3, "mondrian", 5)
        assert config.release.partition_by == ("city",)
        assert config.source.options == {"delimiter": ";", "fs.b": "="}
        assert config.spark.conf == {"spark": "x=y"}

    def test_defaults_and_names_on_the_way_are_written_out(self) -> None:
        config = parse(
            {**GOOD, "evaluate": {"measures": ["singling_out"]}},
            [
                "kernel.variant=generic",
                "recode.continuous.type=interval",
                "recode.columns.age.type=interval",
                "evaluate.measures.0.attempts=20",
                "partition.steps.0.max_iter=3",
            ],
        )
        assert config.kernel.model_dump() == {"variant": "generic"}
        assert config.recode.continuous.type == config.recode.columns["age"].type == "interval"
        assert config.evaluate is not None
        assert config.evaluate.measures[0].model_dump()["attempts"] == 20
        assert config.partition.steps[0].model_dump()["max_iter"] == 3
        assert parse(GOOD).partition.steps[0].model_dump()["max_iter"] != 3  # defaults are shared
        raw = {**changed("attributes", "age", to={"role": "drop"}), "kernel": "peel"}
        kept = parse(raw, ["recode.continuous=interval"]).recode
        assert (kept.continuous.type, kept.nominal.type) == ("interval", "lca")

    def test_the_index_after_the_last_appends(self) -> None:
        more = "privacy.models.1={type: l_diversity, l: 2}"
        assert len(parse(GOOD, [more, more]).privacy.models) == 2
        steps = ["partition.steps.0={type: controller, column: city}", "partition.steps.1=kmeans"]
        assert [s.type for s in parse(GOOD, steps).partition.steps] == ["controller", "kmeans"]
        measured = parse(GOOD, ["evaluate.measures.0=marginals"]).evaluate
        assert measured is not None
        assert [each.type for each in measured.measures] == ["marginals"]
        assert parse(GOOD, ["release.partition_by.0=city"]).release.partition_by == ("city",)

    def test_names_that_are_numbers(self) -> None:
        raw = {**GOOD, "attributes": None}
        found = parse(raw, ["attributes.0.role=quasi_identifier", "attributes.0.scale=nominal",
                            "attributes.id.role=identifier"])  # fmt: skip
        assert [*found.attributes] == ["0", "id"]

    def test_section_that_is_not_there_or_empty(self) -> None:
        assert parse(GOOD, ["partition.max_rows=300"]).partition.max_rows == 300
        raw = {**GOOD, "partition": None}
        assert parse(raw, ["partition.max_rows=300"]).partition.max_rows == 300

    @pytest.mark.parametrize(
        ("override", "where", "text"),
        [
            ("seed", "--set", "key=value"),
            ("=3", "--set", "key=value"),
            ("..=3", "--set", "key=value"),
            ('""=3', "--set", "key=value"),
            ("", "--set", "key=value"),
            ("privacy.models.7.k=3", "--set privacy.models.7.k", "from 0 to 1 is needed"),
            ("privacy.models.1.k=3", "privacy.models.1", "name a privacy model by `type`"),
            ("privacy.models.²=3", "--set privacy.models.²", "list index"),
            ("seed.x=3", "seed", "integer"),
            ("source.path.x=3", "--set source.path.x", "below a value that is no mapping or list"),
            ("seed=[", "--set seed", "not valid YAML"),
            ("seed=2020-13-45", "seed", "integer"),
            ("seed=010", "--set seed", "a number is a plain decimal"),
            ("seed=!!bool zz", "--set seed", "not valid YAML"),
            ("seed=" + "[" * 5_000, "--set seed", "not valid YAML"),
        ],
    )
    def test_mistakes(self, override: str, where: str, text: str) -> None:
        found = problems(GOOD, override)
        assert list(found) == [where]
        assert text in found[where]

    def test_value_is_in_no_error(self) -> None:
        for override in ("source.options.pw=[hush", "seed=hush", "hush"):
            with pytest.raises(ConfigError) as caught:
                parse(GOOD, [override])
            assert "hush" not in str(caught.value)


def test_cycles_and_depth() -> None:
    loop: dict[str, Any] = {}
    loop["source"] = loop
    assert any("too deeply" in text for text in problems(loop).values())


@pytest.mark.parametrize(
    ("override", "where", "text"),
    [
        (
            "privacy.acknowledge_unique=note",
            "privacy.acknowledge_unique",
            "must be true or false, or a list of texts",
        ),
        (
            "privacy.acknowledge_unique=[1]",
            "privacy.acknowledge_unique",
            "must be true or false, or a list of texts",
        ),
        (
            "recode.columns={age: {type: interval, round_to: week}}",
            "recode.columns.age.round_to",
            "must be a number, greater than 0, or one of day, month, year",
        ),
        (
            "evaluate.measures=[{type: learning, models: []}]",
            "evaluate.measures.0.models",
            "has too few items; at least 1 is needed",
        ),
        ("privacy.models.0.k=five", "privacy.models.0.k", "must be an integer"),
        ("privacy.models.0.k=5.5", "privacy.models.0.k", "must be an integer, without a fraction"),
        (
            "privacy.models.0.k=[5]",
            "privacy.models.0.k",
            "one value is needed, not a list: must be an integer",
        ),
        (
            "privacy.models.0.k=",
            "privacy.models.0.k",
            "is empty: must be an integer; give it a value, or leave it out",
        ),
        (
            "release.path=",
            "release.path",
            "is empty: text is needed; put it in quotes; give it a value, or leave it out",
        ),
        ("bound=maybe", "bound", "must be true or false"),
        (
            "unit=id",
            "unit",
            "a list is needed, also of one: put it in brackets, [...]",
        ),
        (
            "context.expires=2027-02-30",
            "context.expires",
            "there is no such day; a date is needed, such as 2027-11-30",
        ),
    ],
)
def test_one_problem_for_a_field_in_plain_words(override: str, where: str, text: str) -> None:
    raw = {key: value for key, value in GOOD.items() if key != "one_row_per_person"}
    given = raw if where == "unit" else GOOD
    assert problems(given, override) == {where: text}


def test_nothing_is_no_config() -> None:
    assert problems(None) == {
        "": "this is empty; a mapping of sections is needed: `anonlib init` drafts one"
    }


@pytest.mark.parametrize(
    ("override", "where", "text"),
    [
        ("one_row_per_person=idd", "one_row_per_person", "did you mean id?"),
        ("policy=hippa", "policy", "did you mean hipaa-safe-harbor?"),
        ("k=5", "k", "did you mean privacy.models.0.k"),
        ("privacy.k=5", "privacy.k", "did you mean privacy.models.0.k"),
        ("privacy.l=5", "privacy.l", "did you mean privacy.models.1.l"),
        ("source.format=cvs", "source.format", "unknown format; did you mean csv?"),
    ],
)
def test_what_may_be_meant(override: str, where: str, text: str) -> None:
    found = problems(GOOD, override)
    assert [*found] == [where]
    assert text in found[where]


def test_a_gate_without_measures() -> None:
    gates = [{"figure": "marginals.missing", "at_most": 1}]
    found = problems({**GOOD, "evaluate": {"measures": []}, "gates": gates})
    assert found == {
        "gates.0": "needs the measure marginals; add `measures: [marginals]` under `evaluate`"
    }
    found = problems({**GOOD, "gates": gates})
    told = "needs the measure marginals; add `evaluate: {measures: [marginals]}`"
    assert found == {"gates.0": told}


class TestProblemsBesideAWrongAttribute:
    """They are told, unless they may follow from it."""

    def found(self, role: str, **sections: Any) -> list[str]:
        raw = changed("attributes", "city", to={"role": role, "scale": "nominal"})
        return sorted(problems({**raw, **sections}))

    def test_those_of_other_columns(self) -> None:
        diverse = {"type": "l_diversity", "l": 2, "attribute": "ilness"}
        recode = {"columns": {"agee": "interval", "city": "mode"}}
        found = self.found(
            "quasi",
            privacy={"models": [*GOOD["privacy"]["models"], diverse]},
            recode=recode,
            release={"path": "out", "partition_by": ["nope"]},
            one_row_per_person="idd",
        )
        assert found == [
            "attributes.city.role",
            "one_row_per_person",
            "privacy.models.1.attribute",
            "recode.columns.agee",
            "release.partition_by.0",
        ]

    def test_those_that_follow(self) -> None:
        diverse = {"type": "l_diversity", "l": 2}
        rest = {name: {"role": "drop"} for name in ("illness", "label", "age")}
        raw = {**GOOD, "attributes": {**GOOD["attributes"], **rest, "city": {"role": "sensitve"}}}
        raw["privacy"] = {"models": [*GOOD["privacy"]["models"], diverse]}
        assert [*problems(raw)] == ["attributes.city.role"]
        for recoder in ("mode", "interval", "median"):  # one for each scale that it may have
            recode = {"columns": {"city": recoder}}
            assert self.found("quasi", recode=recode) == ["attributes.city.role"]
        unit = {"one_row_per_person": False, "unit": ["city"]}
        assert self.found("identifer", **unit) == ["attributes.city.role"]
