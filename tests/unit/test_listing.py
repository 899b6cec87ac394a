"""The verbs that list plug-ins: they say what the classes say."""

import json
import re
from typing import ClassVar

import pytest
from pydantic import Field

from anonlib.cli import main
from anonlib.config import listing
from anonlib.config.listing import Parameter
from anonlib.kernels import Kernel
from anonlib.measure import Measure
from anonlib.pages.words import take_first_sentence
from anonlib.registry import plugins


@pytest.mark.parametrize("verb", listing.LISTED)
def test_what_the_classes_say(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    for each in listing.list_plugins(listing.LISTED[verb]):
        assert main([verb, each.type]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        for text in (each.type, each.summary, each.cost, each.reference):
            assert text in shown
        for parameter in each.parameters:
            assert parameter.description
            assert parameter.name in shown
        for name, meaning in each.figures.items():
            assert f"{name} {meaning}" in shown


@pytest.mark.parametrize("verb", listing.LISTED)
def test_a_line_on_each(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With a mark at what configs have if they name none."""
    assert main([verb]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for each in listing.list_plugins(listing.LISTED[verb]):
        assert f"{each.type} {each.summary}" in shown
        assert each.reference == "" or each.reference not in shown
    marks = {"kernels": 1, "partitioners": 1, "recoders": 3}
    assert shown.count("(default") == marks.get(verb, 0)
    assert f"{verb} NAME" in shown


def test_one_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "mdva"]) == 2
    said = capsys.readouterr().err
    assert "unknown kernel 'mdva'; did you mean mdav? there are: full_domain, " in said


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


@pytest.mark.parametrize("measure", plugins("measure").values(), ids=lambda measure: measure.type)
def test_figures_and_their_meanings_are_said(measure: type[Measure]) -> None:
    """A phrase, a semicolon, and its range or unit: short, and as it stands in a sentence."""
    assert measure.names
    for meaning in measure.names.values():
        assert re.fullmatch(r"(?![A-Z])[^;\n]{10,110}; [^;\n]{5,70}[^.;\n]", meaning), meaning
    assert len(take_first_sentence(listing.take_first_paragraph(measure))) < 90


def test_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measures", "--json"]) == 0
    found = {each["type"]: each["figures"] for each in json.loads(capsys.readouterr().out)}
    assert found == {name: dict(each.names) for name, each in plugins("measure").items()}
    assert not any(each.figures for each in listing.list_plugins("kernel"))


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


def test_lists_are_broken_between_their_parts_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["measures", "learning"]) == 0
    out = capsys.readouterr().out
    for part in (" [logistic_regression, ", " linear_regression, ", " boosted_trees] "):
        assert part in out
    assert max(map(len, out.splitlines())) <= 80


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

    assert listing.take_first_paragraph(Odd) == "Does odd things."
    assert list(listing._parameters(Odd)) == [
        Parameter("share", None, "number > 0, <= 1", "of it"),
        Parameter("most", "null", "integer >= 2 | null", "most of it"),
        Parameter("quick", "true", "true | false", "whether"),
    ]
