"""What all measures found of a release, and what the config's gates say of it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from anonlib.config import Config, Gate
from anonlib.errors import ConfigError, GateError, Problem
from anonlib.measure import Figure, Findings, Measure
from anonlib.schema import Role

#: The roles of columns that are not released.
HIDDEN = (Role.DROP, Role.IDENTIFIER)


@dataclass(frozen=True)
class Judged:
    """A gate, and the worst of the figures that it is about: None where one has no value."""

    gate: Gate
    passed: bool
    figure: Figure | None = None

    @property
    def text(self) -> str:
        """What the gate asks, and what was found."""
        if self.figure is None:
            return f"{self.gate.text}: not measured"
        of = f" of {self.figure.of}" if self.figure.of and not self.gate.of else ""
        if self.figure.value is None or not math.isfinite(self.figure.value):
            return f"{self.gate.text}: not computable{of}, {self.figure.note}"
        return f"{self.gate.text}: {self.figure.value:.4g}{of}"


@dataclass(frozen=True)
class Evaluation:
    """findings: of each measure, by type; seconds: how long each took."""

    findings: Mapping[str, Findings]
    gates: tuple[Judged, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """All figures with their measures."""
        for measure, found in self.findings.items():
            for figure in found.figures:
                yield measure, figure

    def require(self) -> None:
        """Raises GateError unless all gates are passed."""
        failed = [judged.text for judged in self.gates if not judged.passed]
        if failed:
            raise GateError(f"gates not passed, nothing was published: {'; '.join(failed)}")

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "measures": {
                measure: {"seconds": self.seconds.get(measure), **asdict(found)}
                for measure, found in self.findings.items()
            },
            "gates": [
                {"gate": judged.gate.text, "passed": judged.passed, "found": judged.text}
                for judged in self.gates
            ],
        }


def judged(gate: Gate, evaluation: Evaluation) -> Judged:
    """The verdict of a gate. One whose figures are not there, or have no value, is not passed."""
    found = [
        figure
        for measure, figure in evaluation.figures()
        if f"{measure}.{figure.name}" == gate.figure and gate.of in (None, figure.of)
    ]
    if not found:
        return Judged(gate, passed=False)
    worst = min(found, key=lambda figure: _margin(gate, figure))
    return Judged(gate, _margin(gate, worst) >= 0, worst)


def _margin(gate: Gate, figure: Figure) -> float:
    """How far within its bounds a figure is, negative where it is not."""
    value = figure.value
    if value is None or not math.isfinite(value):
        return -math.inf
    least, most = _bounds(gate)
    return min(most - value, value - least)


def _bounds(gate: Gate) -> tuple[float, float]:
    least = -math.inf if gate.at_least is None else gate.at_least
    return least, math.inf if gate.at_most is None else gate.at_most


def gate_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with the config's gates."""
    measures = () if config.evaluate is None else config.evaluate.measures
    known = {f"{m.type}.{name}": m for m in measures for name in m.names}
    for i, gate in enumerate(config.gates):
        where = f"gates.{i}"
        least, most = _bounds(gate)
        if gate.at_most is None and gate.at_least is None:
            yield Problem(where, "give `at_most`, `at_least` or both")
        elif least > most:
            yield Problem(where, "`at_least` is above `at_most`, which nothing can be")
        if config.evaluate is None:
            yield Problem(where, "nothing is measured; add `evaluate`")
        elif gate.figure not in known:
            text = f"no measure of `evaluate` finds it; they find: {', '.join(sorted(known))}"
            yield Problem(f"{where}.figure", text)
        elif gate.of is not None:
            yield from _subject_problems(config, known[gate.figure], gate.of, f"{where}.of")


def _subject_problems(config: Config, measure: Measure, of: str, where: str) -> Iterator[Problem]:
    """What is wrong with what a gate is about."""
    if measure.subjects == "table":
        yield Problem(where, f"figures of {measure.type} are about the whole table; remove it")
    elif measure.subjects == "columns":
        released = [n for n, a in config.attributes.items() if a.role not in HIDDEN]
        if of not in released:
            yield Problem(where, f"no column that is released; these are: {', '.join(released)}")


def require_gates_of_releases(config: Config) -> None:
    """Raises ConfigError where a gate is on what is found in published tables only: no release
    would pass it."""
    measures = () if config.evaluate is None else config.evaluate.measures
    late = {f"{m.type}.{name}" for m in measures if m.of_published for name in m.names}
    text = "is found in published tables only, so no release passes; leave it to `anonlib evaluate`"
    found = [i for i, gate in enumerate(config.gates) if gate.figure in late]
    if found:
        raise ConfigError([Problem(f"gates.{i}.figure", text) for i in found])


def measure_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with the config's measures."""
    measures = () if config.evaluate is None else config.evaluate.measures
    types = [measure.type for measure in measures]
    for i, type in enumerate(types):
        if type in types[:i]:
            yield Problem(f"evaluate.measures.{i}", f"{type} is there twice; remove one")
