"""Plug-ins: found by folder and entry point, named by `type`."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from anonlib import registry
from anonlib.errors import ConfigError
from anonlib.kernels.mdav import Mdav
from anonlib.measure import Measure
from anonlib.privacy import Bools, CellCounts, PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity

#: Those whose plug-ins are all loaded without Spark.
FAMILIES = [
    *["kernel", "partitioner", "privacy model", "recoder", "encoding", "metric", "measure"],
    "learner",
]


class Foreign(PrivacyModel):
    """A model as another package could have it."""

    type: ClassVar[str] = "foreign"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = "a test"
    n: int = 1

    @property
    def min_rows(self) -> int:
        return self.n

    def holds(self, cells: CellCounts) -> Bools:
        return cells.n_rows >= self.n


class Entry:
    """What importlib.metadata gives for an entry point."""

    name, value = "theirs", "their_package:Theirs"

    def __init__(self, load: Callable[[], Any]):
        self.load = load


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the plug-ins that other packages have for privacy models."""

    def install(*found: Any) -> None:
        def entry_points(group: str) -> list[Entry]:
            if group != "anonlib.privacy_model":
                return []
            return [Entry(partial(lambda plugin: plugin, plugin)) for plugin in found]

        monkeypatch.setattr(registry, "entry_points", entry_points)
        registry.plugins.cache_clear()

    yield install
    monkeypatch.undo()
    registry.plugins.cache_clear()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_plugin_is_of_its_family(family: str) -> None:
    found = registry.plugins(family)
    assert list(found) == sorted(found)
    for name, plugin in found.items():
        assert plugin.type == name
        assert plugin.family == family
        assert plugin.__doc__
        assert plugin.model_config["frozen"]
        assert plugin.model_config["extra"] == "forbid"
        assert not getattr(plugin, "__abstractmethods__", None)


def test_plugins_are_named_as_their_files() -> None:
    for family in FAMILIES:
        for name, plugin in registry.plugins(family).items():
            folders = registry.FOLDERS[family]
            assert plugin.__module__ in {f"{folder}.{name}" for folder in folders}


def test_unknown_type_lists_the_known() -> None:
    with pytest.raises(ConfigError) as caught:
        registry.plugin("privacy model", "k_anonimity", "privacy.models.0.type")
    (problem,) = caught.value.problems
    assert problem.where == "privacy.models.0.type"
    assert "unknown privacy model 'k_anonimity'" in problem.text
    assert "k_anonymity, l_diversity" in problem.text


@pytest.mark.parametrize(
    "plugin", [KAnonymity(k=7), LDiversity(l=3, attribute="a"), LDiversity(l=2)]
)
def test_spec_and_build(plugin: PrivacyModel) -> None:
    spec = registry.spec(plugin)
    assert spec["type"] == plugin.type
    built = registry.build("privacy model", spec)
    assert built == plugin
    assert type(built) is type(plugin)
    assert registry.spec(built) == spec


@pytest.mark.parametrize("family", FAMILIES)
def test_spec_and_build_of_every_plugin_with_defaults(family: str) -> None:
    for plugin in registry.plugins(family).values():
        if not any(field.is_required() for field in plugin.model_fields.values()):
            assert registry.build(family, registry.spec(plugin())) == plugin()


def test_parameters_are_checked_when_built() -> None:
    with pytest.raises(ConfigError, match=r"^k_anonymity\.k: must be greater than or equal to 2$"):
        registry.build("privacy model", {"type": "k_anonymity", "k": 1})
    with pytest.raises(ConfigError, match=r"^k_anonymity\.unknown: unknown field; allowed: k$"):
        registry.build("privacy model", {"type": "k_anonymity", "k": 2, "unknown": "raw value"})
    model = KAnonymity(k=2)
    with pytest.raises(ValidationError):
        model.k = 3  # type: ignore[misc]


def test_entry_points_add_plugins(foreign: Any) -> None:
    foreign(Foreign)
    assert registry.plugins("privacy model")["foreign"] is Foreign
    assert registry.plugins("privacy model")["k_anonymity"] is KAnonymity
    built = registry.build("privacy model", {"type": "foreign", "n": 4})
    assert built.min_rows == 4
    assert "foreign" not in registry.plugins("recoder")


def test_two_of_one_name_are_refused(foreign: Any) -> None:
    class Twin(Foreign):
        type: ClassVar[str] = "k_anonymity"

    foreign(Twin)
    with pytest.raises(registry.PluginError, match="model have the type 'k_anonymity'"):
        registry.plugins("privacy model")


def test_two_foreign_ones_of_one_name_are_refused(foreign: Any) -> None:
    class Twin(Foreign):
        type: ClassVar[str] = "foreign"

    foreign(Foreign, Twin)
    with pytest.raises(registry.PluginError):
        registry.plugins("privacy model")


def test_a_class_that_lacks_something_is_refused(foreign: Any) -> None:
    """Its methods and its class variables, in one error; otherwise it would be listed, and fail
    when it is used."""

    class Unfinished(PrivacyModel):
        type: ClassVar[str] = "unfinished"
        monotone: ClassVar[bool] = True

    foreign(Unfinished)
    expected = r"^privacy model 'unfinished' \(.*Unfinished\) lacks holds, reference: "
    with pytest.raises(registry.PluginError, match=expected) as caught:
        registry.plugins("privacy model")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("found", [KAnonymity(k=2), PrivacyModel, int, Mdav])
def test_entry_points_of_other_things_are_refused(foreign: Any, found: Any) -> None:
    foreign(found)
    with pytest.raises(registry.PluginError, match=r"their_package:Theirs.* of a privacy model"):
        registry.plugins("privacy model")


def test_plugins_that_do_not_load_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of their import is told: a class that breaks a contract, a missing package."""

    def load() -> None:
        type("Loose", (Measure,), {"__annotations__": {}, "names": ("share",)})

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry(load)])
    registry.plugins.cache_clear()
    expected = r"recoder 'theirs' .* can't be loaded: TypeError: Loose\.names must map"
    with pytest.raises(registry.PluginError, match=expected) as refused:
        registry.plugins("recoder")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("names", [("share",), {"share": None}, {1: "a share"}, "share"])
def test_a_measure_whose_figures_have_no_meanings_is_refused(names: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^Loose\.names must map the name of each figure to a text"
    ):
        type("Loose", (Measure,), {"__annotations__": {}, "names": names})
    told = {"__annotations__": {}, "names": {"share": "a share"}}
    assert type("Told", (Measure,), told).names == {"share": "a share"}


def test_helpers_and_bases_are_no_plugins() -> None:
    """Files that begin with `_`, and classes that a plug-in's file imports."""
    for family in FAMILIES:
        for name, plugin in registry.plugins(family).items():
            assert not name.startswith("_")
            assert plugin.__name__ not in ("Plugin", "PrivacyModel", "Kernel", "Recoder", "Metric")
