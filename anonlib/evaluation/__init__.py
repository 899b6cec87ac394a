"""The findings of all measures on a release, and the verdicts of the config's gates."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from anonlib import registry
from anonlib.config.listing import take_first_paragraph
from anonlib.config.model import EvaluateSection, Gate
from anonlib.errors import (
    AnonlibError,
    ConfigError,
    ContractError,
    GateError,
    Problem,
    StorageError,
)
from anonlib.measure import Figure, Findings, Measure
from anonlib.measure.case import Case
from anonlib.progress import Progress
from anonlib.registry import run_plugin
from anonlib.text import read_range, spell_bound, spell_figure, tell_apart

#: How far rounding may put a figure outside its range.
ROUNDING = 1e-9


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
        if self.figure.value is None:
            return f"{self.gate.text}: not computable{of}, {self.figure.note}"
        if self.figure.by_rows:
            return f"{self.gate.text}: unknown for persons{of}, {self.figure.note}"
        return f"{self.gate.text}: {tell_apart(self.figure.value, self.gate.bounds)}{of}"


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        n_figures, n_gates = sum(1 for _ in self.figures()), len(self.gates)
        passed = f"; {sum(g.passed for g in self.gates)} of {n_gates} gates passed"
        measures = ", ".join(self.findings) or "no measure"
        return f"<Evaluation: {n_figures} figures of {measures}{passed if n_gates else ''}>"

    def __str__(self) -> str:
        """A line, then one for each gate and figure."""
        gates = [f"  gate {'passed' if g.passed else 'failed'}: {g.text}" for g in self.gates]
        figures = [
            f"  {measure}.{f.name}{f' of {f.of}' if f.of else ''}: {spell_figure(f.value)}"
            for measure, f in self.figures()
        ]
        return "\n".join([repr(self), *gates, *figures])

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """All figures with their measures."""
        for measure, found in self.findings.items():
            for figure in found.figures:
                yield measure, figure

    def require(self) -> None:
        """Raises GateError unless all gates passed."""
        failed = [judged.text for judged in self.gates if not judged.passed]
        if failed:
            raise GateError(f"gates not passed, nothing was released: {'; '.join(failed)}")

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as dicts, lists, numbers and texts, for the private record."""
        return {
            "measures": {
                measure: {
                    "seconds": self.seconds.get(measure),
                    **_describe(measure, found),
                    **asdict(found),
                }
                for measure, found in self.findings.items()
            },
            "gates": [
                {
                    "gate": judged.gate.text,
                    "passed": judged.passed,
                    "found": judged.text,
                    **judged.gate.model_dump(),
                    "value": judged.figure and judged.figure.value,
                    "subject": judged.figure and judged.figure.of,
                }
                for judged in self.gates
            ],
        }


def _describe(measure: str, findings: Findings) -> dict[str, Any]:
    """What a measure is and what its figures mean: whoever reads the record may lack it."""
    plugin = registry.plugins("measure").get(measure)
    if plugin is None or not issubclass(plugin, Measure):
        return {}
    there = {figure.name for figure in findings.figures}
    names = {name: text for name, text in plugin.names.items() if name in there}
    return {"is_risk": plugin.is_risk, "about": take_first_paragraph(plugin), "names": names}


def evaluate_case(
    evaluate: EvaluateSection | None,
    gates: tuple[Gate, ...],
    case: Case,
    progress: Progress,
    *,
    spark: Any = None,
    guard: Callable[[str], AbstractContextManager[None]] | None = None,
) -> Evaluation:
    """Runs the measures, and judges the gates by their figures.

    Args:
        evaluate: The measures.
        gates: The gates.
        case: The release and its source.
        progress: Hears of every measure.
        spark: The session, if the case has one.
        guard: Surrounds each measure, with a text that says where errors are from.
    """
    findings, seconds = {}, {}
    for measure in () if evaluate is None else evaluate.measures:
        stage = f"measure {measure.type}"
        before = progress.seconds.get(stage, 0.0)
        with progress.stage(stage, spark):
            around = nullcontext() if guard is None else guard(stage)
            findings[measure.type] = _measure(measure, case, around)
        seconds[measure.type] = progress.seconds.get(stage, 0.0) - before  # without a shadow's
    found = Evaluation(findings, seconds=seconds)
    return replace(found, gates=tuple(judge(gate, found) for gate in gates))


def _measure(measure: Measure, case: Case, guard: AbstractContextManager[None]) -> Findings:
    """The findings of a measure. Its figures have no values if it can't be computed on this data or
    config, for example for lack of persons to hold out."""
    try:
        with guard:
            return run_plugin(measure, lambda: _check_findings(measure, measure.measure(case)))
    except (StorageError, ContractError):
        raise
    except AnonlibError as error:
        return Findings(tuple(Figure(name, None, note=str(error)) for name in measure.names))


def _check_findings(measure: Measure, answer: Any) -> Findings:
    """What a measure gave, and checks it. Raises ContractError for anything but its findings."""
    if not isinstance(answer, Findings) or not measure.names.keys() >= {
        figure.name for figure in answer.figures
    }:
        raise ContractError("must give Findings, whose figures are among its `names`")
    return answer


def judge(gate: Gate, evaluation: Evaluation) -> GateVerdict:
    """The verdict of a gate. It does not pass if its figures are absent, have no value or one that
    they can't have, or count rows in the place of persons."""
    found = [
        _within_range(measure, figure)
        for measure, figure in evaluation.figures()
        if f"{measure}.{figure.name}" == gate.figure and gate.of in (None, figure.of)
    ]
    if not found:
        return GateVerdict(gate, passed=False)
    worst = min(found, key=lambda figure: _margin(gate, figure))
    return GateVerdict(gate, _margin(gate, worst) >= 0, worst)


def _within_range(measure: str, figure: Figure) -> Figure:
    """The figure; without its value if that is outside the range that its measure tells of it. Such
    a value proves nothing."""
    known = registry.plugins("measure").get(measure)
    meaning = known.names.get(figure.name, "") if known and issubclass(known, Measure) else ""
    bounds = read_range(meaning)
    if bounds is None or figure.value is None:
        return figure
    if bounds[0] - ROUNDING <= figure.value <= bounds[1] + ROUNDING:
        return figure
    note = f"the value is outside the figure's range, {spell_bound(bounds[0])} to "
    return replace(figure, value=None, note=note + spell_bound(bounds[1]))


def _margin(gate: Gate, figure: Figure) -> float:
    """The distance of a figure from the nearest bound; negative outside the bounds, and where the
    figure of the persons is unknown."""
    value = figure.value
    if value is None or figure.by_rows:
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
