"""What measures and their figures mean: as the record of a run says, whose plug-ins need not be
here. Records of earlier versions say nothing of it: then by the plug-ins that are here."""

from collections.abc import Mapping

from anonlib import registry
from anonlib.config.listing import take_first_paragraph
from anonlib.config.summary import label_value
from anonlib.loss import Metric
from anonlib.measure import Measure
from anonlib.pages.specs import Record, read_findings
from anonlib.pages.words import name_value, speak
from anonlib.text import printable

#: The loss that is a multiple of k: no better at one k than at another.
RELATIVE = "average_class_size"


def explain_figure(figure: str, *records: Record) -> str:
    """The meaning of MEASURE.FIGURE or loss.METRIC, with the worse direction; empty if unknown.

    records: The first one that says it is believed.
    """
    family, _, name = figure.partition(".")
    if family == "loss":
        metric = registry.plugins("metric").get(name)
        if metric is not None and issubclass(metric, Metric):
            return metric.meaning
        return ""
    said = (explain_names(family, record).get(name) for record in records)
    plugin = _find_plugin(family)
    return next(filter(None, said), "") or ("" if plugin is None else plugin.names.get(name, ""))


def explain_names(measure: str, record: Record) -> Mapping[str, str]:
    """The meanings of a measure's figures, by their names; empty if they are not known."""
    own = _find_findings(measure, record).get("names")
    if isinstance(own, Mapping):
        return {str(name): str(text) for name, text in own.items()}
    plugin = _find_plugin(measure)
    return {} if plugin is None else plugin.names


def explain_measure(measure: str, record: Record) -> str:
    """What a measure does, in a paragraph; empty if it is not known."""
    own = _find_findings(measure, record).get("about")
    if isinstance(own, str):
        return own
    plugin = registry.plugins("measure").get(measure)
    return "" if plugin is None else take_first_paragraph(plugin)


def drop_usual(family: str, spec: Record) -> Record:
    """A plug-in without the parameters that are as by default. spec: Its `type`, and its parameters
    as numbers or as labels have them."""
    plugin = registry.plugins(family).get(spec["type"])
    fields = {} if plugin is None else plugin.model_fields
    usual = {info.alias or name: label_value(info.default) for name, info in fields.items()}
    return {n: v for n, v in spec.items() if n == "type" or label_value(v) != usual.get(n)}


def spell_plugin(family: str, spec: Record) -> str:
    """A plug-in in words: `interval (round to year)`. spec: As in `drop_usual`."""
    name, *parameters = drop_usual(family, spec).items()
    told = ", ".join(f"{speak(name)} {name_value(value)}" for name, value in parameters)
    return printable(name[1]) + (f" ({told})" if told else "")


def find_kind(measure: str, *records: Record) -> bool | None:
    """Whether a measure is of risk, else of utility; None if that is not known.

    records: The first one that says it is believed.
    """
    for record in records:
        own = _find_findings(measure, record).get("is_risk")
        if isinstance(own, bool):
            return own
    plugin = _find_plugin(measure)
    return None if plugin is None else plugin.is_risk


def _find_findings(measure: str, record: Record) -> Record:
    return read_findings(record).get(measure) or {}


def _find_plugin(measure: str) -> type[Measure] | None:
    plugin = registry.plugins("measure").get(measure)
    return plugin if plugin is not None and issubclass(plugin, Measure) else None
