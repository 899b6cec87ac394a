"""What an audit is asked, and what it answers. Counts and names only: never a released value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from anonlib.errors import Problem
from anonlib.hierarchy import Hierarchy
from anonlib.privacy import PrivacyModel
from anonlib.text import MISSING_TOKENS

#: How persons are counted: every row is one; by the staged token of the unit; or not at all,
#: since the unit is not in the table.
Persons = Literal["rows", "token", "unknown"]
#: What became of the insensitive columns.
Insensitive = Literal["none", "checked", "acknowledged", "not checked"]


@dataclass(frozen=True)
class AuditSpec:
    """What a table is audited against.

    `columns` are exactly the columns that the release has, in any order; `token` (the private
    column whose distinct values are the persons) and `private` ones may stand beside them.
    `models` are bound: each names the column that it protects. `sets` are the quasi-identifiers
    whose arrays are sets, so that the order of their elements means nothing; other arrays are
    compared element by element. `missing_tokens` are the sensitive values that mean "missing".
    `apart` is the private column whose values are data controllers: rows of two are never one
    class, and only the classes of the controllers in `only` are judged; references stay those of
    the whole table.
    `hierarchies` are those of protected columns, folded. If there are columns in `joint`, models of
    a column are also checked where the others are known: among the rows of a class that agree on
    them.
    `shares` are the quasi-identifiers released as shares of their values, and in how many steps
    these are rounded, None if exact.
    """

    columns: tuple[str, ...]
    quasi_identifiers: tuple[str, ...]
    models: tuple[PrivacyModel, ...]
    insensitive: tuple[str, ...] = ()
    acknowledge_unique: bool = False
    missing_tokens: tuple[str, ...] = MISSING_TOKENS
    persons: Persons = "rows"
    token: str | None = None
    private: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    apart: str | None = None
    only: tuple[int, ...] | None = None
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    joint: tuple[str, ...] = ()
    shares: Mapping[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.persons == "token" and self.token is None:
            raise ValueError("persons are counted by token, but no token column is named")


@dataclass(frozen=True)
class Verdict:
    """What was found for one privacy model.

    `model` is its name and parameters, with `joint` where each class stands for its parts in which
    the other sensitive columns agree; `value` the measured one over all classes (the smallest
    number of persons, the smallest number of distinct values, ...), None if it can't be measured;
    `exact` is false where that is only a bound, which suffices for `holds`: the true value is at
    least as good. `worst` has the sizes in rows of up to five failing classes, the smallest ones,
    ascending (rounded like `AuditReport.sizes`).
    """

    model: str
    holds: bool
    value: float | None
    required: float
    n_failing: int
    worst: tuple[int, ...]
    exact: bool = True
    note: str = ""


@dataclass(frozen=True)
class AuditReport:
    """What was found in a table.

    `sizes` are (rows, number of classes of so many rows); above 1024 rows, sizes are rounded
    down to a power of two. `insensitive` says whether the insensitive columns were `checked` for
    rare combinations, were `acknowledged` unseen, could be `not checked`, or there are `none`.
    `lone`: by column released as shares, the rows known by them to be the only ones of their class
    with their value: whoever knows of such a value in the table knows the class of its person.
    `notes`: what could not be looked at.
    """

    n_rows: int
    n_classes: int
    verdicts: tuple[Verdict, ...]
    problems: tuple[Problem, ...]
    sizes: tuple[tuple[int, int], ...]
    insensitive: Insensitive
    lone: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def and_(self, label: str, other: "AuditReport") -> "AuditReport":
        """This report with the verdicts and problems of another look at the same rows, under a
        label; rows and classes stay those of this one."""
        named = tuple(replace(v, model=f"{label}: {v.model}") for v in other.verdicts)
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

    def to_dict(self) -> dict[str, Any]:
        """The same in lists, dicts, numbers and text, for JSON."""
        return {
            "passed": self.passed,
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "verdicts": [{**asdict(v), "worst": list(v.worst)} for v in self.verdicts],
            "problems": [asdict(problem) for problem in self.problems],
            "sizes": [list(pair) for pair in self.sizes],
            "insensitive": self.insensitive,
            "lone": dict(self.lone),
            "notes": list(self.notes),
        }
