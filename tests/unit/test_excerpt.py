"""Configs on pages: nothing that may be data or a secret, and no release before it is added."""

from typing import Any

import pytest
import yaml

import anonlib
from anonlib.config.checks.context_section import require_reviewed
from anonlib.config.dump import make_tree
from anonlib.config.excerpt import _FIELDS, shorten_config
from anonlib.config.model import (
    AccountabilitySection,
    Attribute,
    Config,
    EvaluateSection,
    PartitionSection,
    PrivacySection,
    ReleaseSection,
    SourceSection,
)
from anonlib.errors import ConfigError
from tests.explored import CONFIG

EVIL = "Zanzibar"


def excerpt(**changes: Any) -> tuple[str, dict[str, Any]]:
    text = shorten_config({**CONFIG, **changes})
    return text, yaml.safe_load(text)


def test_a_config_without_data_is_whole() -> None:
    text, tree = excerpt(seed=3, kernel={"type": "mdav_sd", "lambda": 0.4}, max_categories=50)
    expected = {**CONFIG, "seed": 3, "kernel": {"type": "mdav_sd", "lambda": 0.4}}
    assert tree == {**expected, "max_categories": 50}
    assert not text.startswith("#")
    assert anonlib.parse(tree).review == ()


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"source": {**CONFIG["source"], "where": f"city = '{EVIL}'"}}, ["source.where"]),
        (
            {"source": {**CONFIG["source"], "options": {"header": "true", "password": EVIL}}},
            ["source.options"],
        ),
        ({"source": {"format": "csv", "path": f"s3://y/people.csv?sig={EVIL}"}}, ["source.path"]),
        ({"source": {**CONFIG["source"], "secrets": {"password": EVIL}}}, ["source.secrets"]),
        (
            {"privacy": {**CONFIG["privacy"], "missing_tokens": ["?", EVIL]}},
            ["privacy.missing_tokens"],
        ),
        ({"release": {"path": "out", "record": f"out/{EVIL}"}}, ["release.record"]),
        ({"accountability": {"approver": "A", "runs": f"x/{EVIL}"}}, ["accountability.runs"]),
        ({"spark": {"conf": {"spark.password": EVIL}}}, ["spark"]),
        (
            {
                "evaluate": {"measures": [{"type": "population", "source": {"where": EVIL}}]},
                "gates": [{"figure": "population.k_map", "at_least": 5}],
            },
            ["evaluate.measures", "gates"],
        ),
        ({"kernel": {"type": "full_domain", "levels": {EVIL: 1}}}, ["kernel"]),
        ({"recode": {"columns": {"age": {"type": "x", "values": [EVIL]}}}}, ["recode"]),
        ({"new_section": {"a": EVIL}}, ["new_section"]),
    ],
)
def test_what_may_be_data_is_left_out_and_to_be_reviewed(changes: Any, places: list[str]) -> None:
    text, tree = excerpt(**changes)
    assert EVIL not in text
    assert tree["review"] == places
    if places != ["new_section"]:
        config = anonlib.parse(tree)
        with pytest.raises(ConfigError, match=places[0]):
            require_reviewed(config.review)


def test_an_order_of_values_is_left_out_and_its_column_to_be_reviewed() -> None:
    city = {"role": "quasi_identifier", "scale": "ordinal", "order": ["Bath", EVIL]}
    text, tree = excerpt(attributes={**CONFIG["attributes"], "city": city})
    assert EVIL not in text
    assert tree["attributes"]["city"] == {"role": "quasi_identifier", "scale": "ordinal"}
    assert tree["review"] == ["attributes.city"]


def test_gates_stay_with_measures_that_are_shown() -> None:
    measures = ["reidentification", {"type": "disclosure", "prior": "table"}]
    gates = [{"figure": "reidentification.marketer", "at_most": 0.1}]
    _, tree = excerpt(evaluate={"measures": measures}, gates=gates, policy="k-strict")
    assert tree["evaluate"] == {"measures": measures}
    assert tree["gates"] == gates
    assert tree["policy"] == "k-strict"
    assert "review" not in tree


def test_a_policy_of_anonlib_is_its_name() -> None:
    """Configs that were loaded have its rules; those of others may say what nobody should see."""
    config = anonlib.parse({**CONFIG, "policy": "pdpc"})
    tree = yaml.safe_load(shorten_config(make_tree(config)))
    assert anonlib.parse(tree) == config
    rules = {"name": EVIL, "title": "x", "rules": [{"type": "confirm", "id": "a"}]}
    text, tree = excerpt(policy=rules)
    assert EVIL not in text
    assert tree["review"] == ["policy"]


def test_no_place_ends_its_comment() -> None:
    text = shorten_config(CONFIG, {"attributes.a\nrelease: {path: x}": "it is derived"})
    assert yaml.safe_load(text)["release"] == CONFIG["release"]
    assert text.count("#") == 1


def test_every_field_that_is_shown_is_a_field() -> None:
    """A field that gets another name is left out, and this list is to be changed."""
    sections = Config.model_fields
    assert not _FIELDS.keys() - sections.keys()
    for name, section in (
        *(("source", SourceSection), ("attributes", Attribute), ("privacy", PrivacySection)),
        *(("partition", PartitionSection), ("release", ReleaseSection)),
        *(("evaluate", EvaluateSection), ("accountability", AccountabilitySection)),
    ):
        known = {info.alias or field for field, info in section.model_fields.items()}
        assert not {*(_FIELDS[name] or ())} - known, name
