"""The verbs that list plug-ins: they say what the classes say."""

import json
from typing import ClassVar

import pytest
from pydantic import Field

from anonlib import listing
from anonlib.cli import main
from anonlib.kernels import Kernel
from anonlib.listing import Parameter
from anonlib.registry import plugins


@pytest.mark.parametrize("verb", listing.LISTED)
def test_what_the_classes_say(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for each in listing.list_plugins(listing.LISTED[verb]):
        for text in (each.type, each.summary, each.cost, each.reference):
            assert text in shown
        for parameter in each.parameters:
            assert parameter.description
            assert parameter.name in shown


@pytest.mark.parametrize("verb", listing.LISTED)
def test_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["type"] for each in found] == list(plugins(listing.LISTED[verb]))
    assert all(each["summary"] for each in found)


def test_sources_and_costs_are_said() -> None:
    for family in ("kernel", "privacy model"):
        listings = listing.list_plugins(family)
        assert all(each.reference for each in listings)
        assert all(bool(each.cost) == (family == "kernel") for each in listings)


def test_parameters_defaults_and_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--json"]) == 0
    found = {each["type"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(found) == list(plugins("kernel"))
    mode, cut, nominal = found["mondrian"]["parameters"]
    assert (mode["name"], mode["default"]) == ("mode", "strict")
    assert mode["allowed"] == "strict | relaxed"
    assert cut["allowed"] == "median | information_gain"
    assert nominal["allowed"] == "codes | hierarchy"
    assert "LeFevre" in found["mondrian"]["reference"]
    for name, kernel in plugins("kernel").items():
        fields = kernel.model_fields
        assert [p["name"] for p in found[name]["parameters"]] == [
            field.alias or own for own, field in fields.items()
        ]


def test_bounds_and_kinds_of_parameters() -> None:
    class Odd(Kernel):
        """Does
        odd things.

        Oddly.
        """

        type: ClassVar[str] = "odd"
        share: float = Field(gt=0, le=1, description="of it")
        most: int | None = Field(None, ge=2, description="most of it")
        quick: bool = Field(True, description="whether")

    assert listing.summary(Odd) == "Does odd things."
    assert list(listing._parameters(Odd)) == [
        Parameter("share", None, "number > 0, <= 1", "of it"),
        Parameter("most", "null", "integer >= 2 | null", "most of it"),
        Parameter("quick", "true", "true | false", "whether"),
    ]
