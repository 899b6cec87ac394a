"""The JSON schema of configs: it has all plug-ins, and takes what `load` takes."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from anonlib import registry
from anonlib.config.json_schema import make_json_schema
from anonlib.config.model import Config

CONFIGS = sorted((Path(__file__).parents[2] / "conf").glob("*.yaml"))
FAMILIES = {
    "kernel": "Kernel",
    "partitioner": "Partitioner",
    "privacy model": "PrivacyModel",
    "recoder": "Recoder",
}
MINIMAL: dict[str, Any] = {
    "source": {"format": "csv", "path": "x", "options": {"header": True, "n": 1}},
    "attributes": {"a.b": {"role": "quasi_identifier", "scale": "continuous"}},
    "one_row_per_person": True,
    "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
    "release": {"path": "out"},
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return make_json_schema()


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if "$ref" in node else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_plugin_is_there_with_its_parameters(schema: dict[str, Any], family: str) -> None:
    choices = schema["$defs"][FAMILIES[family]]["oneOf"]
    found = {c["properties"]["type"]["const"]: c for c in choices if "properties" in c}
    names = next((c["enum"] for c in choices if "enum" in c), [])
    assert set(found) == set(registry.plugins(family))
    for name, cls in registry.plugins(family).items():
        fields = {field.alias or key: field for key, field in cls.model_fields.items()}
        required = {key for key, field in fields.items() if field.is_required()}
        assert set(found[name]["properties"]) == {"type", *fields}
        assert set(found[name]["required"]) == {"type", *required}
        assert found[name]["description"]
        assert (name in names) == (not required)


def test_what_may_be_left_out(schema: dict[str, Any]) -> None:
    assert set(schema["required"]) == {"source", "attributes", "privacy", "release"}
    assert "required" not in schema["$defs"]["PartitionSection"]
    assert "required" not in schema["$defs"]["RecodeSection"]
    assert schema["properties"]["kernel"]["default"] == {"type": "mdav"}


def test_it_is_json_and_whole(schema: dict[str, Any]) -> None:
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"].endswith("2020-12/schema")
    assert references(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert set(schema["properties"]) == set(Config.model_fields)
    for section in ("SourceSection", "Attribute", "ReleaseSection", "SparkSection"):
        for field in schema["$defs"][section]["properties"].values():
            assert "title" not in field


def test_descriptions_and_ranges_are_kept(schema: dict[str, Any]) -> None:
    assert schema["$defs"]["SourceSection"]["properties"]["path"]["description"]
    assert schema["$defs"]["PartitionSection"]["properties"]["max_rows"]["minimum"] == 100
    assert "centroid" in json.dumps(schema["$defs"]["Recoder"])


def wrong(**changes: Any) -> dict[str, Any]:
    return {**MINIMAL, **changes}


@pytest.fixture(scope="module")
def accepts(schema: dict[str, Any]) -> Any:
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid


class TestValidator:
    """With a validator."""

    @pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
    def test_configs_of_the_project(self, accepts: Any, path: Path) -> None:
        assert accepts(yaml.safe_load(path.read_text()))

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"kernel": "mdav"},
            {"kernel": {"type": "mondrian"}},
            {"recode": {"continuous": "median", "columns": {"a.b": {"type": "interval"}}}},
            {"partition": {"max_rows": 500}},
            {"partition": {"steps": ["kmeans", {"type": "single", "limit": 5}]}},
            {"unit": ["x"]},
        ],
    )
    def test_good(self, accepts: Any, changes: dict[str, Any]) -> None:
        assert accepts(wrong(**changes))

    @pytest.mark.parametrize(
        "changes",
        [
            {"kernel": "modav"},
            {"kernel": {"type": "mdav", "speed": 3}},
            {"kernel": {"k": 3}},
            {"privacy": {"models": ["k_anonymity"]}},
            {"privacy": {"models": [{"type": "k_anonymity", "k": 1}]}},
            {"sede": 3},
            {"seed": "x"},
            {"release": {}},
            {"attributes": {"a": {"role": "quasi"}}},
        ],
    )
    def test_bad(self, accepts: Any, changes: dict[str, Any]) -> None:
        assert not accepts(wrong(**changes))
