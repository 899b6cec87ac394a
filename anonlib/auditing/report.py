"""The input and the result of an audit. They hold counts and names, never a released value."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from anonlib.errors import AuditError, Problem
from anonlib.hierarchy import Hierarchy
from anonlib.privacy import PrivacyModel
from anonlib.text import MISSING_TOKENS, count_noun

#: How persons are counted. rows: each row is a person. token: by the staged token of the unit.
#: unknown: not at all, because the table lacks the unit.
Persons = Literal["rows", "token", "unknown"]
#: Whether the insensitive columns were checked for rare combinations.
Insensitive = Literal["none", "checked", "acknowledged", "not checked"]


#: Classes of more rows than this are counted together from one power of two to the next, under the
#: least size among them, so that few different sizes remain.
EXACT_SIZES = 1024
#: The problems that the text of a report tells.
MOST_TOLD = 5
#: The parts of a table that verdicts judge apart: their labels begin so.
EACH_FILE, EACH_CONTROLLER = "each file", "each controller"
_OWN = "with its own models", "with their own models"
_SCOPE = re.compile(rf"({EACH_FILE}|{EACH_CONTROLLER}|[\d,]+ controllers? (?:{'|'.join(_OWN)})): ")
#: The chance to be found that regulators allow at most (EMA 0070, Health Canada).
THRESHOLD = 0.09
#: The names of the figures of `rate_risk`, in words.
RISKS = {
    "prosecutor_max": "largest chance to be found",
    "marketer": "mean chance to be found",
    "prosecutor_at_risk": f"share of persons with a chance above {THRESHOLD}",
}


@dataclass(frozen=True)
class AuditSpec:
    """The requirements that a table is audited against.

    Attributes:
        columns: The columns of the release, in any order. The table may have no others, except
            `token` and `private`.
        quasi_identifiers: The columns whose values make a class.
        models: The privacy models; each names the column that it protects.
        insensitive: The columns to check for rare combinations.
        acknowledge_unique: Whether rare combinations are acknowledged, and so not checked.
        missing_tokens: Sensitive values that mean "missing".
        persons: How persons are counted.
        token: The private column whose distinct values are the persons.
        private: Other private columns.
        sets: Quasi-identifiers whose arrays are sets: the order of their elements means nothing.
            Other arrays are compared element by element.
        apart: The private column whose values are data controllers. A class never has rows of two
            controllers.
        only: The controllers whose classes are judged; None for all. References are still of the
            whole table.
        hierarchies: By protected column: its hierarchy, with folded names.
        orders: By protected column of text: all values, folded, low to high. Without an order,
            text is in the order of its letters.
        joint: Protected columns. A model of one of them is also checked against attackers who know
            the others: on the rows of a class that agree on them.
        shares: By quasi-identifier that is released as shares: the number of steps that they are
            rounded to; None for exact shares.
        pseudonyms: Columns of pseudonyms: of keyed hashes as hex digits, or null.
        unique: The pseudonym that must be there, and another one, in each row.
    """

    columns: tuple[str, ...]
    quasi_identifiers: tuple[str, ...]
    models: tuple[PrivacyModel, ...]
    insensitive: tuple[str, ...] = ()
    acknowledge_unique: bool = field(kw_only=True)
    missing_tokens: tuple[str, ...] = MISSING_TOKENS
    persons: Persons = field(kw_only=True)
    token: str | None = None
    private: tuple[str, ...] = ()
    sets: tuple[str, ...] = field(kw_only=True)
    apart: str | None = None
    only: tuple[int, ...] | None = None
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joint: tuple[str, ...] = ()
    shares: Mapping[str, int | None] = field(default_factory=dict)
    pseudonyms: tuple[str, ...] = ()
    unique: str | None = None

    def __post_init__(self) -> None:
        if self.persons == "token" and self.token is None:
            raise ValueError("persons are counted by token, but no token column is named")


@dataclass(frozen=True)
class Verdict:
    """The verdict on one privacy model.

    Attributes:
        model: The name and the parameters of the model, in words. They include `joint` if it was
            judged on the parts of classes that agree on the other sensitive columns.
        holds: Whether all classes hold it.
        value: The worst measured value over all classes, such as the smallest number of persons;
            None if it can't be measured.
        required: The value that the model requires.
        n_failing: Classes that fail.
        worst: The sizes in rows of the smallest failing classes, at most five, ascending, rounded
            as `AuditReport.sizes`: `list_worst` says which are.
        exact: False if `value` is a bound. The true value is at least as good, which is enough for
            `holds`.
        note: Why something could not be measured.
        at_release: Whether this table lacks what the model needs to count, and no class fails by
            what can be counted. The model was audited when the table was released.
        spec: The model again: its `type`, the parameters that are not at their defaults, `joint`,
            and `within` if it was judged in parts of the table. Names of columns can be any text,
            so this is not to be read from `model`.
    """

    model: str
    holds: bool
    value: float | None
    required: float
    n_failing: int
    worst: tuple[int, ...]
    exact: bool = True
    note: str = ""
    at_release: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, repr=False)
class AuditReport:
    """The result of an audit.

    Attributes:
        n_rows: Rows of the table.
        n_classes: Classes: groups of rows with equal quasi-identifiers.
        verdicts: One for each privacy model.
        problems: What is wrong with the columns.
        sizes: (size in rows, number of classes of that size), ascending. The first size is exact.
            Classes of more than 1024 rows are counted together from one power of two to the next,
            under the least size among them: their rows can't be told from it. Only
            `audit_in_memory` can give all sizes as they are.
        insensitive: Whether the insensitive columns were checked.
        lone: By column that is released as shares: the rows that, by the shares, are the only ones
            of their class with their value. Somebody who knows that a person of the table has such
            a value knows the person's class.
        notes: What could not be checked.
        by_batch: Whether the classes of batches were counted apart, each when it was added. In the
            whole table classes of several batches may be one: there are at most `n_classes`, and
            each is at least as large as those of `sizes`.
        premises: What the verdicts rest on, a line for each.
        shortfalls: What the release promised and this audit did not ask. They fail nothing: who
            audits may ask less on purpose.
    """

    n_rows: int
    n_classes: int
    verdicts: tuple[Verdict, ...]
    problems: tuple[Problem, ...]
    sizes: tuple[tuple[int, int], ...]
    insensitive: Insensitive
    lone: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_batch: bool = False
    premises: tuple[str, ...] = ()
    shortfalls: tuple[str, ...] = ()

    def __repr__(self) -> str:
        uncounted = "can't be counted here"
        word = "passed" if self.passed else uncounted if self.at_release else "not passed"
        verdicts = [
            f"{v.model} {'holds' if v.holds else uncounted if v.at_release else 'fails'}"
            for v in self.verdicts
        ]
        n_less = len(self.shortfalls)
        less = f"asks less than the release promised: {count_noun(n_less, 'shortfall')}"
        parts = [
            word,
            f"{count_noun(self.n_rows, 'row')} in {count_noun(self.n_classes, 'class', 'classes')}",
            *verdicts,
            *([less] if n_less else []),
            *self.premises,
        ]
        n = len(self.problems)
        problems = f"; {count_noun(n, 'problem')}" if n else ""
        told = [*map(str, self.problems[:MOST_TOLD]), *(["..."] if n > MOST_TOLD else [])]
        return f"AuditReport({'; '.join(parts)}{problems}{': ' if n else ''}{'; '.join(told)})"

    def and_(self, label: str, other: "AuditReport") -> "AuditReport":
        """Adds the verdicts and problems of another audit of the same rows, under a label.

        The counts of rows and classes stay those of this report.
        """
        named = tuple(
            replace(v, model=f"{label}: {v.model}", spec={**v.spec, "within": label})
            for v in other.verdicts
        )
        problems = [Problem(p.where, f"{label}: {p.text}") for p in other.problems]
        return replace(
            self,
            verdicts=self.verdicts + named,
            problems=tuple(sorted({*self.problems, *problems})),
        )

    @property
    def passed(self) -> bool:
        """Whether the table may be published."""
        holding = [verdict.holds for verdict in self.verdicts]
        return not self.problems and bool(holding) and all(holding)

    def require_passed(self, what: str, advice: str = "") -> None:
        """Raises AuditError with all failures, if there are any.

        Args:
            what: The audit's name.
            advice: What to do where models do not hold.
        """
        if not self.passed:
            failing = [v for v in self.verdicts if not v.holds]
            failed = [f"{v.model}: {v.note or count_failing(v.n_failing)}" for v in failing]
            told = [advice] if advice and failing else []
            texts = "; ".join([*failed, *map(str, self.problems), *told])
            raise AuditError(f"{what} failed, nothing was released: {texts}")

    @property
    def of_whole(self) -> "AuditReport":
        """The report without the verdicts on parts of the table, such as each controller's rows: a
        class of the table may have rows of several parts."""
        verdicts = tuple(v for v in self.verdicts if not split_label(v.model)[0])
        return replace(self, verdicts=verdicts)

    @property
    def smallest_class(self) -> int | None:
        """The fewest persons of any class, of the table or of a part that was judged, or a number
        that none is below; None if no verdict on k-anonymity tells it."""
        counts = [v for v in self.verdicts if split_label(v.model)[1].startswith("k_anonymity")]
        proved = [v.required if v.value is None and v.holds else v.value for v in counts]
        known = [int(value) for value in proved if value is not None]
        return min(known) if known and len(known) == len(counts) else None

    @property
    def knows_smallest(self) -> bool:
        """Whether `smallest_class` is exact, not only a number that none is below."""
        of_k = [v for v in self.verdicts if split_label(v.model)[1].startswith("k_anonymity")]
        return all(verdict.exact for verdict in of_k)

    @property
    def at_release(self) -> bool:
        """Whether nothing fails, and some models can't be counted here."""
        verdicts = self.verdicts
        undecided = not self.problems and all(v.holds or v.at_release for v in verdicts)
        return undecided and any(v.at_release for v in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """The report as lists, dicts, numbers and text, for JSON."""
        return {
            "passed": self.passed,
            "at_release": self.at_release,
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "verdicts": [{**asdict(v), "worst": list(v.worst)} for v in self.verdicts],
            "problems": [asdict(problem) for problem in self.problems],
            "sizes": [list(pair) for pair in self.sizes],
            "insensitive": self.insensitive,
            "lone": dict(self.lone),
            "notes": list(self.notes),
            "by_batch": self.by_batch,
            "premises": list(self.premises),
            "shortfalls": list(self.shortfalls),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "AuditReport":
        """The inverse of `to_dict`. Raises KeyError, TypeError or ValueError for other content.
        Records of earlier versions have neither premises nor shortfalls."""
        verdicts = [
            Verdict(**{**each, "worst": tuple(each["worst"])}) for each in content["verdicts"]
        ]
        return cls(
            n_rows=content["n_rows"],
            n_classes=content["n_classes"],
            verdicts=tuple(verdicts),
            problems=tuple(Problem(**each) for each in content["problems"]),
            sizes=tuple((int(size), int(n)) for size, n in content["sizes"]),
            insensitive=content["insensitive"],
            lone=dict(content["lone"]),
            notes=tuple(content["notes"]),
            by_batch=content["by_batch"],
            premises=tuple(content.get("premises", ())),
            shortfalls=tuple(content.get("shortfalls", ())),
        )


def count_failing(n: int) -> str:
    """`1 class fails`, `4 classes fail`."""
    return count_noun(n, "class fails", "classes fail")


def name_controllers(n: int) -> str:
    """How labels of verdicts name n controllers that must hold the same models of their own."""
    return count_noun(n, f"controller {_OWN[0]}", f"controllers {_OWN[1]}")


def split_label(label: str) -> tuple[str, str]:
    """The parts of the table that a verdict judged, empty for the whole table; and the model. In
    this order they are in its label, but models first name their type, so names of columns, which
    can be any text, are no such parts."""
    found = _SCOPE.match(label)
    return (found[1], label[found.end() :]) if found else ("", label)


def list_worst(verdict: Verdict) -> str:
    """The sizes of the smallest failing classes, as a text."""
    exact = [i == 0 or size <= EXACT_SIZES for i, size in enumerate(verdict.worst)]
    pairs = zip(verdict.worst, exact, strict=True)
    return ", ".join(f"{'' if known else 'at least '}{size:,}" for size, known in pairs)


def rate_risk(sizes: Iterable[Sequence[int]], n_classes: int, n_rows: int) -> dict[str, float]:
    """The chances that a person is found again by the quasi-identifiers, where each row is a
    person: 1 / f in a class of f rows. Named as those of the measure `reidentification`.

    Args:
        sizes: As in `AuditReport`: the least is exact, and sizes that are rounded are far above any
            threshold.
        n_classes: Classes.
        n_rows: Rows; at least one.

    Returns:
        `prosecutor_max`: the largest chance. `marketer`: the mean chance. `prosecutor_at_risk`: the
        share of persons whose chance is above THRESHOLD.
    """
    pairs = [(size, n) for size, n in sizes]
    return {
        "prosecutor_max": 1 / min(size for size, _ in pairs),
        "marketer": n_classes / n_rows,
        "prosecutor_at_risk": sum(s * n for s, n in pairs if 1 / s > THRESHOLD) / n_rows,
    }


def rate_sizes(sizes: Mapping[int, int], least_persons: int) -> dict[str, float]:
    """The chances of `rate_risk`; without sizes only the largest, by the smallest class.

    Args:
        sizes: The number of classes, by their size in rows. Empty if rows are no persons.
        least_persons: Persons of the smallest class; 0 if no model counts them, or there is no
            release: then no chance is told.
    """
    if not least_persons:
        return {}
    if not sizes:
        return {"prosecutor_max": 1 / least_persons}
    return rate_risk([*sizes.items()], sum(sizes.values()), sum(s * n for s, n in sizes.items()))
