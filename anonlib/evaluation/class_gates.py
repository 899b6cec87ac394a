"""Gates whose figures follow from the sizes of classes: sweeps know them without a measure."""

from collections.abc import Iterator, Mapping

from anonlib.auditing.report import THRESHOLD
from anonlib.config.model import Config, Gate

#: The measure whose figures follow from sizes, and its figures by the names of `rate_risk`: of
#: attackers who know who is released, and of others, where the source is the whole population.
_MEASURE = "reidentification"
_OWN = {
    "prosecutor_max": "prosecutor_max",
    "prosecutor_mean": "marketer",
    "prosecutor_at_risk": "prosecutor_at_risk",
}
_OF_WHOLE = {
    "journalist_max": "prosecutor_max",
    "marketer": "marketer",
    "journalist_at_risk": "prosecutor_at_risk",
}


def find_class_risk(gate: Gate, config: Config) -> str | None:
    """The name, as `rate_risk` has it, of the figure that a gate bounds; None if sizes of classes
    do not tell it, as of a population that the source is a sample of. With a unit they tell the
    largest chance only."""
    family, _, figure = gate.figure.partition(".")
    measure = next((each for each in config.measures if each.type == _MEASURE), None)
    if family != _MEASURE or gate.of:
        return None
    is_whole = getattr(measure, "population", None) is None
    name = (_OWN | (_OF_WHOLE if is_whole else {})).get(figure)
    if name == "prosecutor_at_risk" and getattr(measure, "threshold", THRESHOLD) != THRESHOLD:
        return None
    return name if name == "prosecutor_max" or not config.unit else None


def list_broken(config: Config, risks: Mapping[str, float]) -> Iterator[tuple[Gate, float]]:
    """The gates of a config that a release with these risks would not pass, and their figures.

    risks: As `rate_risk` gives them. Gates on others are not judged.
    """
    for gate in config.gates:
        value = risks.get(find_class_risk(gate, config) or "")
        least, most = gate.bounds
        if value is not None and not least <= value <= most:
            yield gate, value
