"""The findings of all measures on a release, and the verdicts of the config's gates."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from anonlib.config.model import EvaluateSection, Gate
from anonlib.errors import ConfigError, GateError, Problem
from anonlib.measure import Figure, Findings


@dataclass(frozen=True)
class GateVerdict:
    """The verdict of a gate.

    Attributes:
        gate: The gate.
        passed: Whether it passed.
        figure: The worst of its figures; None if none was measured.
    """

    gate: Gate
    passed: bool
    figure: Figure | None = None

    @property
    def text(self) -> str:
        """The gate's bound and the measured figure."""
        if self.figure is None:
            return f"{self.gate.text}: not measured"
        of = f" of {self.figure.of}" if self.figure.of and not self.gate.of else ""
        if self.figure.value is None or not math.isfinite(self.figure.value):
            return f"{self.gate.text}: not computable{of}, {self.figure.note}"
        return f"{self.gate.text}: {self.figure.value:.4g}{of}"


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a release.

    Attributes:
        findings: By type of measure.
        gates: The verdicts of the gates.
        seconds: By type of measure: its duration.
    """

    findings: Mapping[str, Findings]
    gates: tuple[GateVerdict, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """All figures with their measures."""
        for measure, found in self.findings.items():
            for figure in found.figures:
                yield measure, figure

    def require(self) -> None:
        """Raises GateError unless all gates passed."""
        failed = [judged.text for judged in self.gates if not judged.passed]
        if failed:
            raise GateError(f"gates not passed, nothing was published: {'; '.join(failed)}")

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as dicts, lists, numbers and texts, for the private record."""
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


def judge(gate: Gate, evaluation: Evaluation) -> GateVerdict:
    """The verdict of a gate. It does not pass if its figures are absent or have no value."""
    found = [
        figure
        for measure, figure in evaluation.figures()
        if f"{measure}.{figure.name}" == gate.figure and gate.of in (None, figure.of)
    ]
    if not found:
        return GateVerdict(gate, passed=False)
    worst = min(found, key=lambda figure: _margin(gate, figure))
    return GateVerdict(gate, _margin(gate, worst) >= 0, worst)


def _margin(gate: Gate, figure: Figure) -> float:
    """The distance of a figure from the nearest bound; negative outside the bounds."""
    value = figure.value
    if value is None or not math.isfinite(value):
        return -math.inf
    least, most = gate.bounds
    return min(most - value, value - least)


def require_gates_of_releases(gates: Sequence[Gate], evaluate: EvaluateSection | None) -> None:
    """Raises ConfigError if a gate bounds a figure that only published tables have, since no
    release could pass it."""
    measures = () if evaluate is None else evaluate.measures
    late = {f"{m.type}.{name}" for m in measures if m.of_published for name in m.names}
    text = "is found in published tables only, so no release passes; leave it to `anonlib evaluate`"
    found = [i for i, gate in enumerate(gates) if gate.figure in late]
    if found:
        raise ConfigError([Problem(f"gates.{i}.figure", text) for i in found])
