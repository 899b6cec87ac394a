"""The first screen of a report: who answers for the release, three risks and three utilities,
judged, and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any, Literal, NamedTuple, TypeAlias

from anonlib import registry
from anonlib.auditing.report import THRESHOLD
from anonlib.config.draft import GAIN, bound_gain
from anonlib.loss import Metric
from anonlib.measure import Measure
from anonlib.pages.words import first_letter_up, number, spell_model, spoken
from anonlib.text import printable

Record: TypeAlias = Mapping[str, Any]
#: good: within the bound. look: beyond a default threshold, or not measured, so a person decides.
#: stop: a bound of the config itself is broken.
State: TypeAlias = Literal["good", "look", "stop"]

#: The name of the last day of a release.
UNTIL = "until"
#: Whose the threshold of 0.09 is.
_REGULATORS = "EMA Policy 0070 and Health Canada"
#: Most of any figure of utility, and whose that is.
_MOST_LOSS, _OURS = 0.1, "anonlib's default"
#: The attacks with a control, whose figure `high` is judged.
_ATTACKS = ("singling_out", "linkability", "inference", "membership", "differencing")


@dataclass(frozen=True)
class JudgedFigure:
    """A risk or a utility, judged.

    Attributes:
        title: What it is about, in words.
        state: The judgement.
        value: The value; None if it was not measured, or a gate tells it.
        reason: What was found, the bound, and whose the bound is, in a sentence or two.
        advice: What to do about it; empty if it is good.
    """

    title: str
    state: State
    value: float | None
    reason: str
    advice: str


class FigureFinding(NamedTuple):
    """A value, the part that it is of, and what it means."""

    value: float
    of: str
    meaning: str


class _Question(NamedTuple):
    """What is judged.

    Attributes:
        title: What it is about.
        measures: Measures whose gates judge it.
        figures: MEASURE.FIGURE, the first choice first. The first that has a value is judged.
        most: The most that is good, without a gate.
        whose: Whose bound that is.
        beyond: What to do where it is beyond.
        unknown: What to do where nothing was measured.
    """

    title: str
    measures: tuple[str, ...]
    figures: tuple[str, ...]
    most: float
    whose: str
    beyond: str
    unknown: str


#: `beyond` may name the least k whose chance is within the threshold.
_LEAST_K = floor(1 / THRESHOLD) + 1
_FOUND = _Question(
    "To be found again",
    ("reidentification", "population", "uniqueness", "special_uniques"),
    ("audit.chance",),
    THRESHOLD,
    _REGULATORS,
    f"raise k to {_LEAST_K} or more, or set a gate for the chance that this recipient may have.",
    "see the report of the release: persons can't be counted in this table.",
)
_TOLD = _Question(
    "To be told of a sensitive value",
    ("disclosure", "dominance", "inference"),
    ("disclosure.gain",),
    GAIN,
    _OURS,
    "raise l, or name a model such as t_closeness for the column.",
    "name a model for each sensitive column, and the measure disclosure in evaluate.",
)
_ATTACKED = _Question(
    "To fall to an attack",
    (*_ATTACKS, "downcoding", "linkage", "order"),
    # Few attempts prove little: what counts is how high the risk may be.
    tuple(f"{name}.high" for name in _ATTACKS),
    THRESHOLD,
    _REGULATORS,
    "raise k, or keep from the release what the attack went by.",
    "name singling_out, linkability and inference in evaluate: the release was not attacked.",
)
_KEPT = _Question(
    "Detail of each row",
    ("fairness",),
    ("loss.ncp", "loss.sse", "loss.nllm"),
    _MOST_LOSS,
    _OURS,
    "lower k, leave out quasi-identifiers that nobody needs, or try another kernel "
    "(anonlib suggest).",
    "nothing can be told of it: no quasi-identifier varies.",
)
_SHAPED = _Question(
    "Distribution of each column",
    ("marginals", "overview", "moments"),
    ("marginals.total_variation", "overview.total_variation", "marginals.wasserstein"),
    _MOST_LOSS,
    _OURS,
    "look at the columns before and after, and name another recoder for the worst.",
    "name the measure marginals in evaluate.",
)
_RELATED = _Question(
    "What is learned and counted",
    ("learning", "associations", "queries", "clustering"),
    ("learning.accuracy_loss", "learning.r2_loss", "associations.mean", "queries.median"),
    _MOST_LOSS,
    _OURS,
    "declare the target that the release is for, or try a kernel or partitioner that looks at it.",
    "name associations, queries or learning in evaluate.",
)


def judge_risks(record: Record) -> tuple[JudgedFigure, ...]:
    """The three risks: to be found again, to be told of a sensitive value, to fall to an attack."""
    return _judge(_FOUND, record), _judge_told(record), _judge(_ATTACKED, record)


def judge_utilities(record: Record) -> tuple[JudgedFigure, ...]:
    """The three utilities: detail of rows, distributions of columns, relations between them."""
    return tuple(_judge(question, record) for question in (_KEPT, _SHAPED, _RELATED))


def list_actions(record: Record, figures: Sequence[JudgedFigure]) -> Iterator[str]:
    """What to do about a release, in sentences, the gravest first."""
    for verdict in (record.get("audit") or {}).get("verdicts", ()):
        # What this table can't show was audited when it was released.
        if not verdict["holds"] and not verdict.get("at_release"):
            yield f"Don't use it: {spell_model(verdict['model'])} does not hold."
    for gate in (record.get("evaluation") or {}).get("gates", ()):
        if not gate["passed"]:
            yield f"Don't use it: the gate {printable(gate['gate'])} is not passed."
    for rule in record.get("policy") or ():
        if rule["state"] == "not kept":
            yield f"Don't use it: rule {printable(rule['rule'])} of the policy is not kept."
    yield from (f"{each.title}: {each.advice}" for each in figures if each.state == "look")


def describe_use(record: Record) -> Iterator[tuple[str, str]]:
    """Who answers for a release, what it is for, who may use it until when, as far as the config
    says so."""
    words, context = record.get("accountability", {}), record.get("context", {})
    yield "approved by", words.get("approver", "not given")
    yield "purpose", words.get("purpose", "not given")
    recipients = [*words.get("recipients", ()), *filter(None, [context.get("recipient")])]
    yield "recipients", "; ".join(dict.fromkeys(recipients)) or "not given"
    yield "access", context.get("access", "not given")
    known = ", ".join(context.get("may_know", ())) or "not given; taken to be all quasi-identifiers"
    yield "attackers may know", known
    yield "released", record.get("time") or "not recorded"
    yield UNTIL, context.get("expires", "no last day is set")


def describe_filter(record: Record) -> str:
    """Which rows of the source are in the release."""
    source = record.get("settings", {}).get("source", {})
    kept = "a condition of the config" if source.get("filtered") else "none: all rows"
    return str(record.get("context", {}).get("data") or kept)


def find_k(record: Record) -> int:
    """The largest k that a verdict required; 0 without one."""
    verdicts = (record.get("audit") or {}).get("verdicts", ())
    required = [v["required"] for v in verdicts if v["model"].startswith("k_anonymity")]
    return int(max(required, default=0))


def _judge(question: _Question, record: Record) -> JudgedFigure:
    """By gates on its measures if there are some, else by its threshold."""
    if (by_gates := _judge_by_gates(question, record)) is not None:
        return by_gates
    found = _find(question.figures, record)
    if found is None:
        return JudgedFigure(question.title, "look", None, "Not measured.", question.unknown)
    good = found.value <= question.most
    of = f" of {printable(found.of)}" if found.of else ""
    return JudgedFigure(
        question.title,
        "good" if good else "look",
        found.value,
        f"{first_letter_up(found.meaning)}: {number(found.value)}{of}. "
        f"{'Within' if good else 'Beyond'} {question.most:g}, the most by {question.whose}.",
        "" if good else question.beyond,
    )


def _judge_by_gates(question: _Question, record: Record) -> JudgedFigure | None:
    gates = [
        gate
        for gate in (record.get("evaluation") or {}).get("gates", ())
        if gate["gate"].partition(".")[0] in question.measures
    ]
    if not gates:
        return None
    failed = [gate for gate in gates if not gate["passed"]]
    reason = " ".join(_describe_gate(gate) for gate in failed or gates)
    advice = question.beyond if failed else ""
    return JudgedFigure(question.title, "stop" if failed else "good", None, reason, advice)


def _describe_gate(gate: Record) -> str:
    """What a gate found and the bound that it is, as a sentence."""
    asked = printable(gate["gate"])
    figure, _, bound = asked.partition(" ")
    found = printable(gate["found"]).removeprefix(f"{asked}: ")
    meaning = first_letter_up(explain_figure(figure).partition(";")[0]) or spoken(figure)
    verb = "Within" if gate["passed"] else "Beyond"
    return f"{meaning}: {found}. {verb} the gate of the config, {bound}."


def _judge_told(record: Record) -> JudgedFigure:
    """By gates or the measure `disclosure` if there are such, else by the models of the sensitive
    columns."""
    k = find_k(record)
    found = _judge(_TOLD._replace(most=bound_gain(k)) if k else _TOLD, record)
    if found.reason != "Not measured.":
        return found
    columns = record.get("settings", {}).get("columns", {})
    # A target that is not public is as confidential as a sensitive column.
    names = [
        name
        for name, column in columns.items()
        if column["role"] == "sensitive"
        or (column["role"] == "target" and not column.get("public"))
    ]
    if not names:
        text = "No column is declared sensitive."
        return JudgedFigure(_TOLD.title, "look", None, text, "confirm that no column is.")
    verdicts = (record.get("audit") or {}).get("verdicts", ())
    guarded = {
        name: [v for v in verdicts if f" attribute={name} " in f"{v['model']} "] for name in names
    }
    if bare := [printable(name) for name, models in guarded.items() if not models]:
        text = f"No privacy model protects {', '.join(bare)}: a class may agree on a value."
        advice = f"name a model for {', '.join(bare)}, or say public: true of a public target."
        return JudgedFigure(_TOLD.title, "look", None, text, advice)
    holding = all(v["holds"] or v.get("at_release") for models in guarded.values() for v in models)
    told = "; ".join(
        f"{spell_model(v['model'])}, found {number(v['value'])}"
        f"{'' if v['exact'] or v['value'] is None else ' or better'}"
        for models in guarded.values()
        for v in models
    )
    text = f"Each sensitive column is under a model of the config: {told}."
    state: State = "good" if holding else "stop"
    return JudgedFigure(_TOLD.title, state, None, text, "" if holding else _TOLD.beyond)


def _find(figures: Sequence[str], record: Record) -> FigureFinding | None:
    """The worst value of the first figure that has one; of attacks, the worst of all of them."""
    choices = [found for figure in figures if (found := _worst(figure, record)) is not None]
    if figures == _ATTACKED.figures:
        return max(choices, key=lambda each: (each.value, each.of), default=None)
    return choices[0] if choices else None


def _worst(figure: str, record: Record) -> FigureFinding | None:
    measure, _, name = figure.partition(".")
    meaning = explain_figure(figure).partition(";")[0]
    if measure == "audit":
        return find_chance(record)
    if measure == "loss":
        value = record.get("losses", {}).get(name)
        return None if value is None else FigureFinding(value, "", f"{meaning} ({name})")
    measures = (record.get("evaluation") or {}).get("measures", {})
    found = (record.get("overview") or {}) if measure == "overview" else measures.get(measure, {})
    values = [
        (each["value"], each["of"])
        for each in found.get("figures", ())
        if each["name"] == name and each["value"] is not None
    ]
    if not values:
        return None
    value, of = max(values)
    subject = f"{spoken(measure)}{f' ({of})' if of else ''}" if measure in _ATTACKS else of
    return FigureFinding(value, subject, meaning)


def find_chance(record: Record) -> FigureFinding | None:
    """The largest chance of a person to be found by the size of the class; None if it can't be
    told."""
    audit = record.get("audit") or {}
    meaning = "largest chance of a person to be found, by the persons of the smallest class"
    if audit.get("sizes") and "one row per person" in record.get("settings", {}).get("persons", ""):
        return FigureFinding(1 / min(size for size, _ in audit["sizes"]), "", meaning)
    counts = [v["value"] for v in audit.get("verdicts", ()) if v["model"].startswith("k_anonymity")]
    known = [value for value in counts if value]
    return (
        FigureFinding(1 / min(known), "", meaning) if known and len(known) == len(counts) else None
    )


def explain_figure(figure: str) -> str:
    """The meaning of MEASURE.FIGURE or loss.METRIC, with the worse direction; empty if unknown."""
    family, _, name = figure.partition(".")
    if family == "loss":
        metric = registry.plugins("metric").get(name)
        if metric is not None and issubclass(metric, Metric):
            return metric.meaning
        return ""
    measure = registry.plugins("measure").get(family)
    if measure is not None and issubclass(measure, Measure):
        return measure.names.get(name, "")
    return ""
