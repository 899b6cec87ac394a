"""What pages take from the fields of a record: models, measures, persons, gates. Records of earlier
versions have only texts for them, which are read here and nowhere else."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, TypeAlias

from anonlib.auditing.report import split_label
from anonlib.content.content_rules import is_key
from anonlib.errors import InputError
from anonlib.text import tell_apart

#: The private record of a run, or a part of it.
Record: TypeAlias = Mapping[str, Any]
#: The three risks of WP216, each the type of a measure that attacks the release.
WP216_ATTACKS = ("singling_out", "linkability", "inference")
#: All attacks with a control: their figures are those of `RISK_NAMES`.
ATTACKS = (*WP216_ATTACKS, "membership", "downcoding", "differencing", "minimality")
#: Figures of the group that fares worst, and what they are in the list of groups.
GROUPS = {"worst_loss": "loss", "worst_suppression": "suppressed", "worst_risk": "risk"}
#: How far rounding may put a number in the list of groups from its figure.
_ROUNDING = 1e-6
#: The parts of a gate's text: its figure, whose figure it is, and its bounds.
_GATE = re.compile(r"(\S+)(?: of (.*))? (at (?:most|least) \S+(?: and at least \S+)?)", re.S)
#: How persons are meant, as records of earlier versions begin the text.
_PERSONS = (
    ("unit", re.compile(r"unit of \d+ columns?: (.*)", re.S)),
    ("declared", re.compile(r"one row per person, declared()")),
    ("checked", re.compile(r"one row per person(?:: (.*))?", re.S)),
)
#: How the text on persons ends who may be in several batches.
SEVERAL = ", in every batch; persons may be in several"


@dataclass(frozen=True)
class PersonsSpec:
    """What a person is in the source.

    Attributes:
        kind: `unit`: columns identify a person, who may have several rows. `declared`: each row is
            another person, and nobody checked it. `checked`: the same, by a column. Empty: the
            record does not say.
        columns: The columns that identify a person, as a text.
        once: Whether no class, as it was counted, has rows of one person from several batches.
    """

    kind: str
    columns: str
    once: bool = True

    @property
    def are_rows(self) -> bool:
        """Whether each row of the classes that were counted is another person."""
        return self.once and self.kind in ("declared", "checked")


@dataclass(frozen=True)
class JudgedGate:
    """A gate, and what was found.

    Attributes:
        text: The gate in words.
        passed: Whether it passed.
        figure: MEASURE.FIGURE.
        of: Whose figure it bounds; None for all.
        bound: Its bounds in words.
        least: Whether it has a least value.
        most: Whether it has a largest value.
        finding: What was found, in words.
        amount: The value alone, in words; empty if there is none.
        subject: Whose figure the value is; empty if it is of the whole table.
    """

    text: str
    passed: bool
    figure: str
    of: str | None
    bound: str
    least: bool
    most: bool
    finding: str
    amount: str
    subject: str

    @property
    def measure(self) -> str:
        """The type of the measure."""
        return self.figure.partition(".")[0]


def require_run_record(content: object) -> Record:
    """The content of a file as a private record. Raises InputError if it is none."""
    if not isinstance(content, Mapping) or content.get("anonlib_record") != 1:
        raise InputError("no run record of anonlib, or one of another version")
    return content


@contextmanager
def explain_damaged_record(what: str = "the run record") -> Iterator[None]:
    """Says that a record is damaged where it lacks what is read within. what: The record."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{what} is damaged ({type(error).__name__})") from None


def read_persons(record: Record) -> PersonsSpec:
    """What a person is in the source."""
    by_batch = bool((record.get("audit") or {}).get("by_batch"))
    once = by_batch or not record.get("persons_return")
    own = record.get("specs", {}).get("persons")
    if own is not None:
        return PersonsSpec(own["kind"], ", ".join(own["columns"]), once)
    text = (record.get("settings") or {}).get("persons", "")
    for kind, form in _PERSONS:
        if found := form.fullmatch(text):
            return PersonsSpec(kind, found[1] or "", once)
    return PersonsSpec("", text, once)


def say_persons(record: Record) -> str:
    """What a person is in the source, in words, and whether persons may be in several batches."""
    text: str = record["settings"]["persons"]
    return f"{text}{SEVERAL}" if record.get("persons_return") else text


def list_repeating(record: Record) -> list[str]:
    """Identifiers that are named for persons and repeat, although rows count as persons."""
    return [each["column"] for each in (record.get("content") or {}).get("repetitions", ())]


def list_keys(record: Record) -> list[str]:
    """Columns that are released as they are, without a model of their own, although nearly
    every row of the source has its own value."""
    distinct = (record.get("content") or {}).get("distinct", {})
    columns = read_columns(record)
    guarded = {read_verdict_spec(verdict).get("attribute") for verdict in list_verdicts(record)}
    plain = [n for n, c in columns.items() if "recoder" not in c and not c.get("pseudonym")]
    n_rows = record.get("n_rows_in", 0)
    return [n for n in plain if n not in guarded and is_key(distinct.get(n, 0), n_rows)]


def list_verdicts(record: Record) -> Sequence[Record]:
    """The audit's verdicts."""
    verdicts: Sequence[Record] = (record.get("audit") or {}).get("verdicts", ())
    return verdicts


def read_verdict_spec(verdict: Record) -> Record:
    """The model of a verdict: its type, and the parameters that are not at their defaults."""
    spec: Record = verdict.get("spec") or read_label(verdict["model"])
    return spec


def is_k_anonymity(verdict: Record) -> bool:
    """Whether a verdict is on k-anonymity in the whole table."""
    spec = read_verdict_spec(verdict)
    return bool(spec["type"] == "k_anonymity" and "within" not in spec)


def list_models(record: Record) -> list[Record]:
    """The privacy models that the config names."""
    own = record.get("specs", {}).get("models")
    labels = (record.get("settings") or {}).get("models", ())
    return list(own) if own is not None else [read_label(label) for label in labels]


def read_findings(record: Record) -> Mapping[str, Record]:
    """By type of a measure: what it found."""
    findings: Mapping[str, Record] = (record.get("evaluation") or {}).get("measures") or {}
    return findings


def read_columns(record: Record) -> Mapping[str, Record]:
    """By name of a column: its settings."""
    columns: Mapping[str, Record] = (record.get("settings") or {}).get("columns") or {}
    return columns


def find_measure(record: Record, type: str) -> Record:
    """The parameters of a measure that the config names; empty if it names none. Of collections
    they have the size, as `[3]`."""
    own = record.get("specs", {}).get("measures")
    labels = (record.get("settings") or {}).get("measures") or ()
    specs = own if own is not None else [read_label(label) for label in labels]
    return next((spec for spec in specs if spec["type"] == type), {})


def find_group(record: Record, head: str, column: str, value: float) -> str | None:
    """The group of a column that has a value; None if the list of groups does not show it.

    Args:
        record: The record.
        head: The head of the list of groups that the value is of.
        column: The column.
        value: The value, which the list has with fewer digits.
    """
    findings = read_findings(record).get("fairness") or {}
    found = []
    for series in findings.get("series", ()):
        if series["name"] == "groups" and series["of"] == column:
            rows = [dict(zip(series["heads"], row, strict=True)) for row in series["rows"]]
            found += [(abs(r[head] - value), r["group"]) for r in rows if r[head] is not None]
    apart, group = min(found, key=lambda each: each[0], default=(inf, None))
    return group if apart <= _ROUNDING else None


def list_gates(record: Record) -> Iterator[JudgedGate]:
    """The config's gates, as they were judged."""
    for gate in (record.get("evaluation") or {}).get("gates", ()):
        finding = gate["found"].removeprefix(f"{gate['gate']}: ")
        yield _read_gate(gate, finding) if "figure" in gate else _parse_gate(gate, finding)


def _read_gate(gate: Record, finding: str) -> JudgedGate:
    start = f"{gate['figure']} of {gate['of']} " if gate["of"] else f"{gate['figure']} "
    value = gate["value"]
    bounds = [each for each in (gate["at_least"], gate["at_most"]) if each is not None]
    return JudgedGate(
        text=gate["gate"],
        passed=gate["passed"],
        figure=gate["figure"],
        of=gate["of"],
        bound=gate["gate"].removeprefix(start),
        least=gate["at_least"] is not None,
        most=gate["at_most"] is not None,
        finding=finding,
        amount="" if value is None else tell_apart(value, bounds),
        subject=gate["subject"] or "",
    )


def _parse_gate(gate: Record, finding: str) -> JudgedGate:
    """A gate of a record of an earlier version."""
    if parts := _GATE.fullmatch(gate["gate"]):
        figure, of, bound = parts.groups()
    else:
        figure, _, bound = gate["gate"].partition(" ")
        of = None
    value, _, subject = finding.partition(" of ")
    known = not finding.startswith("not ")
    return JudgedGate(
        text=gate["gate"],
        passed=gate["passed"],
        figure=figure,
        of=of,
        bound=bound,
        least="at least" in bound,
        most="at most" in bound,
        finding=finding,
        amount=value if known else "",
        subject=(of or subject) if known else "",
    )


def is_released(column: Record) -> bool:
    """Whether the release has a column of the source."""
    return column["role"] not in ("identifier", "drop") or bool(column.get("pseudonym"))


def is_numeric(value: Any) -> bool:
    """Whether a parameter is a number, or the text of one, as earlier versions have it."""
    with suppress(ValueError, TypeError):
        return not isinstance(value, bool) and isfinite(float(value))
    return False


def is_set(column: Record) -> bool:
    """Whether a recoded column holds sets as arrays, whose order means nothing."""
    spec = read_recoder_spec(column)
    return bool(spec["type"] == "set" and spec.get("form") != "text")


def is_of_shares(column: Record) -> bool:
    """Whether a recoded column holds shares of values."""
    return bool(read_recoder_spec(column)["type"] == "proportional")


def read_recoder_spec(column: Record) -> Record:
    """The recoder of a column: its type and its parameters."""
    spec: Record = column.get("recoder_spec") or read_label(column["recoder"])
    return spec


def read_label(label: str) -> dict[str, Any]:
    """A plug-in from its label, such as `each file: l_diversity l=2 attribute=occ`."""
    within, model = split_label(label)
    type, *parameters = re.split(r" (?=\w+=)", model)
    own = {name: value for name, _, value in (each.partition("=") for each in parameters)}
    return {"type": type, **own, **({"within": within} if within else {})}
