"""Checks of `evaluate` and `gates`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from anonlib.config.checks.attributes import HIDDEN
from anonlib.config.checks.source_section import check_source
from anonlib.config.model import Attribute, EvaluateSection, Gate, SourceSection
from anonlib.errors import Problem, did_you_mean, problems_of
from anonlib.measure import DeclaredColumn, Measure
from anonlib.privacy import PrivacyModel
from anonlib.table.schema import Role
from anonlib.text import is_share


def check_gates(
    gates: Sequence[Gate],
    evaluate: EvaluateSection | None,
    attributes: Mapping[str, Attribute],
    models: Sequence[PrivacyModel],
) -> Iterator[Problem]:
    """Checks the bounds of gates, and whether a measure gives their figure."""
    columns = _declare(attributes, models)
    measures = () if evaluate is None else evaluate.measures
    measure_of = {f"{m.type}.{name}": m for m in measures for name in m.names}
    for i, gate in enumerate(gates):
        where = f"gates.{i}"
        least, most = gate.bounds
        if gate.at_most is None and gate.at_least is None:
            yield Problem(where, "give `at_most`, `at_least` or both")
        elif least > most:
            yield Problem(where, "`at_least` is above `at_most`: nothing could pass")
        name = gate.figure.partition(".")[0]
        if not measures:
            text = f"measures: [{name}]"
            text = f"`evaluate: {{{text}}}`" if evaluate is None else f"`{text}` under `evaluate`"
            yield Problem(where, f"needs the measure {name}; add {text}")
        elif gate.figure not in measure_of:
            near = did_you_mean(gate.figure, measure_of)
            own = [each for each in measure_of if each.startswith(f"{name}.")]
            whose = f"{name} has" if own else "they have"
            yield Problem(
                f"{where}.figure",
                f"no measure under `evaluate` has this figure{near or ';'} {whose}: "
                f"{', '.join(sorted(own or measure_of))}",
            )
        else:
            yield from _check_share(gate, measure_of[gate.figure], where)
            yield from _check_subject(gate, measure_of[gate.figure], columns, where)


def _check_share(gate: Gate, measure: Measure, where: str) -> Iterator[Problem]:
    """Checks that the bounds of a share are shares, and no percentages."""
    if is_share(measure.names[gate.figure.partition(".")[2]]):
        for name, bound in (("at_most", gate.at_most), ("at_least", gate.at_least)):
            if bound is not None and not 0 <= bound <= 1:
                yield Problem(f"{where}.{name}", "this figure is from 0 to 1: 0.05 is 5 %")


def _check_subject(
    gate: Gate, measure: Measure, columns: Mapping[str, DeclaredColumn], where: str
) -> Iterator[Problem]:
    """Checks that a release of this config can have the figure that a gate bounds, of the column,
    model or estimator that it names. No release passes otherwise, and it shows after all work."""
    figure = gate.figure.partition(".")[2]
    if why := measure.explain_absence(figure, columns):
        yield Problem(f"{where}.figure", f"no release passes: {why}")
        return
    subjects = measure.list_subjects(figure, columns)
    if gate.of is None or subjects is None or gate.of in subjects:
        return
    if not subjects:
        text = f"figures of {measure.type} are about the whole table; remove it"
    elif measure.subjects == "columns":
        text = f"must be a column that has the figure {gate.figure}: {', '.join(subjects)}"
    else:
        text = f"must be one of: {', '.join(subjects)}"
    yield Problem(f"{where}.of", f"{text}{did_you_mean(gate.of, subjects)}")


def _declare(
    attributes: Mapping[str, Attribute], models: Sequence[PrivacyModel]
) -> dict[str, DeclaredColumn]:
    """The released columns, as measures hear of them before there is a table."""
    guarded = {model.column for model in models}

    def is_secret(name: str, attribute: Attribute) -> bool:
        open_target = attribute.public and name not in guarded
        return attribute.role is Role.SENSITIVE or (
            attribute.role is Role.TARGET and not open_target
        )

    return {
        name: DeclaredColumn(a.role, a.scale, is_secret(name, a))
        for name, a in attributes.items()
        if a.role not in HIDDEN
    }


def _check_other_source(source: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Checks the table that a measure reads besides the source."""
    try:
        section = SourceSection.model_validate(dict(source))
    except ValidationError as error:
        yield from problems_of(error, SourceSection, f"{where}.source")
        return
    if section.format in ("dataframe", "jdbc", "generator"):
        text = "must be a table or files: delta, table, parquet, csv, json, orc"
        yield Problem(f"{where}.source.format", text)
        return
    for problem in check_source(section):
        yield Problem(f"{where}.{problem.where}", problem.text)


def check_measures(
    measures: Sequence[Measure], attributes: Mapping[str, Attribute]
) -> Iterator[Problem]:
    """Checks that each type of measure is named once, and the columns that it names."""
    types = [measure.type for measure in measures]
    for i, measure in enumerate(measures):
        if measure.type in types[:i]:
            yield Problem(f"evaluate.measures.{i}", f"{measure.type} is named twice; remove one")
        if measure.other_source is not None:
            yield from _check_other_source(measure.other_source, f"evaluate.measures.{i}")
        for name, roles in measure.named_columns.items():
            if name not in attributes or attributes[name].role not in roles:
                known = [n for n, a in attributes.items() if a.role in roles]
                yield Problem(
                    f"evaluate.measures.{i}.{measure.names_by}",
                    f"{name} must be a column of role {', '.join(roles)}"
                    f"{did_you_mean(name, known)}; there are: {', '.join(known)}",
                )
