"""The gates of a config as lines in a chart of risks."""

from collections.abc import Iterator, Mapping

from anonlib.auditing.report import THRESHOLD
from anonlib.config.model import Config
from anonlib.evaluation.class_gates import find_class_risk
from anonlib.pages.explorer import BoundLine
from anonlib.text import spell_bound

#: Whose the threshold is, in the few letters that a chart has room for.
REGULATORS = "EMA/Health Canada"


def list_gate_lines(
    config: Config, goals: Mapping[str, str] | None = None, only: tuple[str, str] | None = None
) -> Iterator[BoundLine]:
    """The lines of the gates whose figures follow from the sizes of classes.

    Args:
        config: The config.
        goals: By risk: the name of the goal that has it, where that is another one.
        only: As in `BoundLine`.
    """
    for gate in config.gates:
        risk = find_class_risk(gate, config)
        for value, sign in ((gate.at_most, "≤"), (gate.at_least, "≥")):
            if risk is not None and value is not None:
                goal = (goals or {}).get(risk, risk)
                whose = f", {REGULATORS}" if value == THRESHOLD and sign == "≤" else ""
                label = f"gate {sign} {spell_bound(value)}{whose}"
                yield BoundLine(goal, value, label, sign == "≤", only)


def list_others(config: Config) -> list[str]:
    """The other gates, in words."""
    return [gate.text for gate in config.gates if find_class_risk(gate, config) is None]
