"""The first screen of a report: who answers for the release, three risks and three utilities,
judged, and what to do."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from anonlib.auditing.report import THRESHOLD
from anonlib.guesses.draft import GAIN, LEAST_K, bound_gain
from anonlib.pages.meanings import explain_figure
from anonlib.pages.secrecy import find_k
from anonlib.pages.specs import (
    ATTACKS,
    JudgedGate,
    Record,
    find_measure,
    is_k_anonymity,
    is_released,
    list_gates,
    list_keys,
    list_repeating,
    list_verdicts,
    read_columns,
    read_findings,
    read_persons,
    read_verdict_spec,
)
from anonlib.pages.words import number, raise_first_letter, speak, spell_model, spell_percent
from anonlib.text import printable, read_worse, tell_apart

#: good: within the bound. look: beyond a default threshold, not measured, or doubted by the note of
#: its measure, so a person decides.
#: stop: a bound of the config itself is broken.
State: TypeAlias = Literal["good", "look", "stop"]
#: The states, the worst last.
_STATES: tuple[State, ...] = ("good", "look", "stop")

#: The name of the last day of a release.
UNTIL = "until"
#: Whose the threshold of 0.09 is.
_REGULATORS = "EMA Policy 0070 and Health Canada"
#: What to do about a figure within its bound that its own measure doubts.
_DOUBTED = "decide whether the figure proves enough, since its own measure doubts it."
#: Most of any figure of utility, and whose that is.
_MOST_LOSS, _OURS = 0.1, "anonlib's default"
#: Figures that are the largest chance to be found, or bound it: a gate on one judges that chance.
_CHANCES = (
    "reidentification.prosecutor_max",
    "reidentification.journalist_max",
    "population.journalist_max",
    "population.k_map",
)


@dataclass(frozen=True)
class JudgedFigure:
    """A risk or a utility, judged.

    Attributes:
        title: What it is about, in words.
        state: The judgement.
        value: The value; None if it was not measured, or a gate tells it.
        reason: What was found, the bound, and whose the bound is, in sentences: what is of that
            state.
        advice: What to do about it; empty if it is good.
    """

    title: str
    state: State
    value: float | None
    reason: str
    advice: str


class FigureFinding(NamedTuple):
    """A value, the part that it is of, what it means, and why its measure doubts it."""

    value: float
    of: str
    meaning: str
    doubt: str = ""


class _GateBounds:
    """What gates bound from its worse side."""

    def __init__(self, record: Record):
        self._bounded: set[tuple[str, str | None]] = set()
        for gate in list_gates(record):
            less = read_worse(explain_figure(gate.figure, record)) == "less"
            if gate.least if less else gate.most:
                self._bounded.add((gate.figure, gate.of))

    def bounds(self, figure: str, of: str | None = None) -> bool:
        """Whether a gate bounds a figure: that of a part, or that of all parts."""
        return bool({(figure, None), (figure, of)} & self._bounded)

    def bounds_any(self, figures: Iterable[str]) -> bool:
        """Whether a gate bounds one of some figures, of any part."""
        return bool({figure for figure, _ in self._bounded} & {*figures})


class _Question(NamedTuple):
    """What is judged.

    Attributes:
        title: What it is about.
        measures: Measures, or figures of them, whose gates judge it.
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


_FOUND = _Question(
    "To be found again",
    (
        *("reidentification", "population", "uniqueness", "special_uniques"),
        *("fairness.worst_risk", "fairness.risk_gap"),
    ),
    ("audit.chance",),
    THRESHOLD,
    _REGULATORS,
    f"raise k to {LEAST_K} or more, or set a gate for the chance that this recipient may have.",
    "see the report of the release: persons can't be counted in this table.",
)
_TOLD = _Question(
    "To be told of a sensitive value",
    ("disclosure", "dominance", "inference", "minimality"),
    ("disclosure.gain",),
    GAIN,
    _OURS,
    "raise l, or name a model such as t_closeness for the column.",
    "name a model for each sensitive column, and the measure disclosure in evaluate.",
)
_ATTACKED = _Question(
    "To fall to an attack",
    (*ATTACKS, "linkage", "order"),
    # Few attempts prove little: what counts is how high the risk may be.
    tuple(f"{name}.high" for name in ATTACKS),
    THRESHOLD,
    f"{_OURS} ({_REGULATORS} set it for another figure, the chance to be found)",
    "raise k, or leave out quasi-identifiers.",
    "name singling_out, linkability and inference in evaluate: the release was not attacked.",
)
_KEPT = _Question(
    "Detail of each row",
    (
        *("fairness.worst_loss", "fairness.loss_gap"),
        *("fairness.worst_suppression", "fairness.suppression_gap"),
    ),
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
    gates = _GateBounds(record)
    bounded = any(gates.bounds(each) and _is_of_all(each, record) for each in _CHANCES)
    found = () if bounded else (_judge_found(record),)
    attacked = _advise_on_attacks(record)
    return (
        _join(_FOUND, record, (*found, *_judge_persons(record))),
        _join(_TOLD, record, tuple(_judge_told(record, gates))),
        _join(attacked, record, tuple(_judge_attacked(attacked, record, gates))),
    )


def _is_of_all(figure: str, record: Record) -> bool:
    """Whether a chance is that of attackers who know all quasi-identifiers: a population may have
    fewer of them."""
    measure = figure.partition(".")[0]
    if measure != "population":
        return True
    columns = read_columns(record).values()
    n_all = sum(column["role"] == "quasi_identifier" for column in columns)
    return bool(find_measure(record, measure).get("columns") == f"[{n_all}]")


def judge_utilities(record: Record) -> tuple[JudgedFigure, ...]:
    """The three utilities: detail of rows, distributions of columns, relations between them."""
    gates = _GateBounds(record)
    return (
        _join(_KEPT, record, tuple(_judge_kept(record, gates))),
        _join(_SHAPED, record, tuple(_judge_shaped(record, gates))),
        _join(_RELATED, record, tuple(_judge_first(_RELATED, record, gates))),
    )


def list_actions(record: Record, figures: Sequence[JudgedFigure]) -> Iterator[str]:
    """What to do about a release, in sentences, the gravest first."""
    for verdict in list_verdicts(record):
        # What this table can't show was audited when it was released.
        if not verdict["holds"] and not verdict.get("at_release"):
            yield f"Don't use it: {spell_model(read_verdict_spec(verdict))} does not hold."
    for gate in list_gates(record):
        if not gate.passed:
            yield f"Don't use it: the gate {printable(gate.text)} is not passed."
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
    yield "recipients", "; ".join(list_recipients(record)) or "not given"
    yield "access", context.get("access", "not given")
    known = ", ".join(context.get("may_know", ())) or "not given; taken to be all quasi-identifiers"
    yield "attackers may know", known
    time = record.get("time") or "not recorded"
    # To the minute: the record has seconds.
    day = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*\+00:00$", time)
    yield "released", f"{day[1]} {day[2]} UTC" if day else time
    yield UNTIL, context.get("expires", "no last day is set")


def list_recipients(record: Record) -> list[str]:
    """Who gets a release, as far as the config says so."""
    words, context = record.get("accountability", {}), record.get("context", {})
    named = [*words.get("recipients", ()), *filter(None, [context.get("recipient")])]
    return [*dict.fromkeys(named)]


def was_attacked(record: Record, name: str) -> bool:
    """Whether an attack was made that has a risk."""
    measured = read_findings(record).get(name) or {}
    figures = measured.get("figures", ())
    return any(each["name"] == "risk" and each["value"] is not None for each in figures)


def describe_control(record: Record) -> str:
    """What release the attacks are made on, as a sentence; empty if none was made."""
    made = [name for name in read_findings(record) if was_attacked(record, name)]
    found = [find_measure(record, name).get("holdout") for name in made]
    shares = {float(share) for share in found if share is not None}
    if not shares:
        return ""
    told = " or ".join(spell_percent(share) for share in sorted(shares))
    return (
        f"Attacks are made on a release like this one, from which {told} of the persons were held "
        "out; these are the control."
    )


def describe_filter(record: Record) -> str:
    """Which rows of the source are in the release."""
    source = record.get("settings", {}).get("source", {})
    words = record.get("context", {}).get("data")
    if source.get("filtered"):
        return str(words or "a condition of the config")
    return f"none: all rows, which the config calls: {words}" if words else "none: all rows"


def is_batch(record: Record) -> bool:
    """Whether the run added rows to a table. Its audit is of the whole table; losses and measures
    are of these rows alone."""
    mode = record.get("settings", {}).get("release", {}).get("mode")
    return bool(record.get("outcome") == "published" and mode == "append")


def _join(question: _Question, record: Record, by_default: Sequence[JudgedFigure]) -> JudgedFigure:
    """The worst of the gates on a question and of what is judged by default; what is of that state
    is told, and what to do about it."""
    parts = [*_judge_gates(question, record), *by_default]
    if not parts:
        return _say_unknown(question)
    state = max((part.state for part in parts), key=_STATES.index)
    worst = [part for part in parts if part.state == state]
    first, *more = dict.fromkeys(part.advice for part in worst)
    return JudgedFigure(
        question.title,
        state,
        max((part.value for part in worst if part.value is not None), default=None),
        " ".join(part.reason for part in worst),
        " ".join([first, *map(raise_first_letter, more)]).strip(),
    )


def _say_unknown(question: _Question) -> JudgedFigure:
    return JudgedFigure(question.title, "look", None, "Not measured.", question.unknown)


def _judge_by_default(question: _Question, finding: FigureFinding) -> JudgedFigure:
    """By the threshold of the question."""
    within = finding.value <= question.most
    of = f" of {printable(finding.of)}" if finding.of else ""
    return JudgedFigure(
        question.title,
        "good" if within and not finding.doubt else "look",
        finding.value,
        f"{raise_first_letter(finding.meaning)}: {tell_apart(finding.value, [question.most])}{of}. "
        f"{'Within' if within else 'Beyond'} {question.most:g}, the most by {question.whose}."
        f"{_say_doubt(finding.doubt)}",
        (_DOUBTED if finding.doubt else "") if within else question.beyond,
    )


def _say_doubt(doubt: str) -> str:
    """The doubt of a measure, as a sentence after others; empty without one."""
    return f" The measure doubts it: {printable(doubt)}." if doubt else ""


def _judge_gates(question: _Question, record: Record) -> Iterator[JudgedFigure]:
    for gate in list_gates(record):
        if gate.figure in question.measures or gate.measure in question.measures:
            found = _find_values(gate.figure, record)
            doubt = found[gate.subject].doubt if gate.subject in found else ""
            state: State = ("look" if doubt else "good") if gate.passed else "stop"
            advice = (_DOUBTED if doubt else "") if gate.passed else question.beyond
            reason = f"{_describe_gate(gate, record)}{_say_doubt(doubt)}"
            yield JudgedFigure(question.title, state, None, reason, advice)


def _describe_gate(gate: JudgedGate, record: Record) -> str:
    """What a gate found and the bound that it is, as a sentence."""
    found = gate.finding
    if gate.measure in ATTACKS and gate.amount:
        found = f"{gate.amount} of {_name_attack(gate.measure, gate.subject)}"
    elif gate.of:
        found = f"{found} of {gate.of}"
    meaning = raise_first_letter(_explain_parameters(gate.figure, record)) or speak(gate.figure)
    verb = "Within" if gate.passed else "Beyond"
    return f"{meaning}: {printable(found)}. {verb} the gate of the config, {printable(gate.bound)}."


def _name_attack(measure: str, of: str) -> str:
    return f"{speak(measure)}{f' ({of})' if of else ''}"


def _judge_found(record: Record) -> JudgedFigure:
    found = find_chance(record)
    return _say_unknown(_FOUND) if found is None else _judge_by_default(_FOUND, found)


def _judge_persons(record: Record) -> Iterator[JudgedFigure]:
    """Rows that count as persons, where an identifier says that some are of one person; columns
    whose values find a row without any class."""
    for name in map(printable, list_repeating(record)):
        text = f"Each row counts as another person, but {name} repeats."
        advice = f"name {name} in unit if it stands for a person."
        yield JudgedFigure(_FOUND.title, "look", None, text, advice)
    for name in map(printable, list_keys(record)):
        text = f"{name} is released as it is, and nearly every row has its own value."
        advice = f"make {name} an identifier, or drop it, if it stands for a person."
        yield JudgedFigure(_FOUND.title, "look", None, text, advice)


def _judge_attacked(
    question: _Question, record: Record, gates: _GateBounds
) -> Iterator[JudgedFigure]:
    """The worst of the attacks whose risk no gate bounds."""
    found = [
        each
        for name in ATTACKS
        for of, each in _find_values(f"{name}.high", record).items()
        if not gates.bounds(f"{name}.high", of) and not gates.bounds(f"{name}.risk", of)
    ]
    if worst := _find_worst(found):
        yield _judge_by_default(question, worst)
    elif not gates.bounds_any(f"{name}.{end}" for name in ATTACKS for end in ("high", "risk")):
        linked = _find_values("linkage.record", record).values()
        yield _say_linked(*linked) if linked else _say_unknown(_ATTACKED)


def _advise_on_attacks(record: Record) -> _Question:
    """The question on attacks, with the columns that help them most: those in which each row has a
    value of its own."""
    columns = read_columns(record)
    plain = [printable(n) for n, c in columns.items() if is_released(c) and "recoder" not in c]
    plain = [n for n in plain if not columns.get(n, {}).get("pseudonym")]
    if not plain:
        return _ATTACKED
    advice = (
        f"raise k, or drop or coarsen columns that are released as they are: {', '.join(plain)}."
    )
    return _ATTACKED._replace(beyond=advice)


def _say_linked(finding: FigureFinding) -> JudgedFigure:
    """Linkage finds no more than classes allow, and has no control: it can't tell that a release
    withstands attacks."""
    text = f"Only linkage was tried, without a control. {raise_first_letter(finding.meaning)}: "
    text += f"{number(finding.value)}."
    advice = "name singling_out, linkability and inference in evaluate: they have a control."
    return JudgedFigure(_ATTACKED.title, "look", finding.value, text, advice)


def _judge_first(question: _Question, record: Record, gates: _GateBounds) -> Iterator[JudgedFigure]:
    """The worst value of the first figure that has one, unless a gate bounds it."""
    for figure in question.figures:
        if found := _find_values(figure, record):
            left = [each for of, each in found.items() if not gates.bounds(figure, of)]
            if worst := _find_worst(left):
                yield _judge_by_default(question, worst)
            return


def _judge_kept(record: Record, gates: _GateBounds) -> Iterator[JudgedFigure]:
    """By the loss of the released rows, and by the share of the others."""
    yield from _judge_first(_KEPT, record, gates)
    n_rows, n_lost = record.get("n_rows_in", 0), record.get("n_suppressed", 0)
    if n_rows and n_lost:
        yield _judge_by_default(_KEPT, FigureFinding(n_lost / n_rows, "", "rows suppressed"))


def _judge_shaped(record: Record, gates: _GateBounds) -> Iterator[JudgedFigure]:
    """The worst column of all measures, and the columns that none has measured."""
    found = find_distances(record)
    left_to_gates = {
        of
        for figure in _SHAPED.figures
        for of in _find_values(figure, record)
        if gates.bounds(figure, of)
    }
    judged = [each for of, each in found.items() if of not in left_to_gates]
    if worst := _find_worst(judged):
        yield _judge_by_default(_SHAPED, worst)
    columns = read_columns(record)
    unknown = [
        each["of"]
        for each in (record.get("overview") or {}).get("figures", ())
        # Others are released as they are, and `marginals` does not look at them.
        if columns.get(each["of"], {}).get("role", "quasi_identifier") == "quasi_identifier"
        and each["of"] not in found
    ]
    if unknown:
        text = f"Not measured: {printable(', '.join(unknown))}; name marginals."
        yield JudgedFigure(_SHAPED.title, "look", None, text, _SHAPED.unknown)


def find_distances(record: Record) -> dict[str, FigureFinding]:
    """By column: how its distribution changed, the worst of all measures. A distance counts where
    no share of rows was counted."""
    found: dict[str, FigureFinding] = {}
    for figure in _SHAPED.figures:
        is_share = figure.endswith(".total_variation")
        for of, each in _find_values(figure, record).items():
            if of not in found or (is_share and each.value > found[of].value):
                found[of] = each
    return found


def _judge_told(record: Record, gates: _GateBounds) -> Iterator[JudgedFigure]:
    """By what classes tell, as far as it was measured, and by the models of sensitive columns."""
    k = find_k(record)
    question = _TOLD._replace(most=bound_gain(k)) if k else _TOLD
    yield from _judge_first(question, record, gates)
    certain = [
        each
        for of, each in _find_values("disclosure.certain", record).items()
        if not gates.bounds("disclosure.certain", of)
    ]
    worst = _find_worst(certain)
    if worst is not None and worst.value > 0:
        text = (
            f"{raise_first_letter(worst.meaning)}: {number(worst.value)} of {printable(worst.of)}. "
            "More than 0: a class all but tells their value."
        )
        yield JudgedFigure(_TOLD.title, "look", worst.value, text, _TOLD.beyond)
    names = _list_confidential(record)
    figures = read_findings(record).get("disclosure", {}).get("figures", ())
    known = {each["of"] for each in figures if each["value"] is not None}
    if unknown := [printable(name) for name in names if name not in known]:
        text = f"Not measured: what classes tell of {', '.join(unknown)}."
        advice = "name the measure disclosure in evaluate: models bound part of what classes tell."
        yield JudgedFigure(_TOLD.title, "look", None, text, advice)
    yield _judge_models(record, names)


def _list_confidential(record: Record) -> list[str]:
    """Sensitive columns. A target that is not public is as confidential as one."""
    columns = read_columns(record)
    return [
        name
        for name, column in columns.items()
        if column["role"] == "sensitive"
        or (column["role"] == "target" and not column.get("public"))
    ]


def _judge_models(record: Record, names: Sequence[str]) -> JudgedFigure:
    """By the models of the sensitive columns, which are `names`."""
    if not names:
        text = "No column is declared sensitive."
        advice = "confirm that no released column is sensitive."
        return JudgedFigure(_TOLD.title, "look", None, text, advice)
    verdicts = list_verdicts(record)
    guarded = {
        name: [v for v in verdicts if read_verdict_spec(v).get("attribute") == name]
        for name in names
    }
    if bare := [printable(name) for name, models in guarded.items() if not models]:
        text = f"No privacy model protects {', '.join(bare)}: a class may agree on a value."
        advice = f"name a model for {', '.join(bare)}, or say public: true of a public target."
        return JudgedFigure(_TOLD.title, "look", None, text, advice)
    holding = all(v["holds"] or v.get("at_release") for models in guarded.values() for v in models)
    told = "; ".join(
        f"{spell_model(read_verdict_spec(v))}, found {number(v['value'])}"
        f"{'' if v['exact'] or v['value'] is None else ' or better'}"
        for models in guarded.values()
        for v in models
    )
    text = f"Each sensitive column is under a model of the config: {told}."
    state: State = "good" if holding else "stop"
    return JudgedFigure(_TOLD.title, state, None, text, "" if holding else _TOLD.beyond)


def _find_worst(findings: Iterable[FigureFinding]) -> FigureFinding | None:
    return max(findings, key=lambda each: (each.value, each.of), default=None)


def _find_values(figure: str, record: Record) -> dict[str, FigureFinding]:
    """The values of a figure, by the part that each is of."""
    measure, _, name = figure.partition(".")
    if measure == "loss":
        value = record.get("losses", {}).get(name)
        meaning = f"{explain_figure(figure).partition(';')[0]} ({name})"
        return {} if value is None else {"": FigureFinding(value, "", meaning)}
    meaning = _explain_parameters(figure, record)
    found = read_findings(record).get(measure, {})
    if measure == "overview":
        found = record.get("overview") or found
    values: dict[str, FigureFinding] = {}
    for each in found.get("figures", ()):
        if each["name"] == name and each["value"] is not None:
            of = each["of"]
            subject = _name_attack(measure, of) if measure in ATTACKS else of
            doubt = each["note"] if each.get("doubtful") else ""
            values[of] = FigureFinding(each["value"], subject, meaning, doubt)
    return values


def _explain_parameters(figure: str, record: Record) -> str:
    """The meaning of MEASURE.FIGURE, with the values of the parameters that it speaks of."""
    values = find_measure(record, figure.partition(".")[0])
    meaning = explain_figure(figure, record).partition(";")[0]
    return re.sub(r"`(\w+)`", lambda m: str(values.get(m[1], m[0])), meaning)


def find_chance(record: Record) -> FigureFinding | None:
    """The largest chance of a person to be found by the size of the class; None if it can't be
    told."""
    audit = record.get("audit") or {}
    meaning = "largest chance of a person to be found, by the persons of the smallest class"
    persons = read_persons(record)
    if audit.get("sizes") and persons.are_rows:
        return FigureFinding(1 / min(size for size, _ in audit["sizes"]), "", meaning)
    if persons.kind != "unit" and not persons.once:
        return None  # classes of rows, of which a person may have several
    counts = [verdict["value"] for verdict in list_verdicts(record) if is_k_anonymity(verdict)]
    known = [value for value in counts if value]
    return (
        FigureFinding(1 / min(known), "", meaning) if known and len(known) == len(counts) else None
    )
