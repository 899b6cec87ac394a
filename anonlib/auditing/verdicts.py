"""From counts to a report, whatever counted them: Spark, or Arrow in memory."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from anonlib import registry
from anonlib.auditing.models import AuditModel
from anonlib.auditing.report import EXACT_SIZES, AuditSpec, Insensitive, Verdict, count_failing
from anonlib.errors import Problem

#: How many failing classes a verdict shows.
N_WORST = 5
#: The combinations of columns that must not be rare, beside k.
INSENSITIVE_ALONE = "the insensitive columns"
INSENSITIVE_WITHIN = "the quasi-identifiers and the insensitive columns"
#: Ends the label of a verdict against attackers who know the other protected columns.
JOINT = " joint=True"


@dataclass(frozen=True)
class Tally:
    """The counts of one model.

    Attributes:
        value: The worst value of a class; None if there is none.
        exact: Whether `value` is exact; else it is a bound.
        failing: Failing classes by size.
        undecided: Bitmap of the hash buckets with undecided classes; bit i is bucket i.
        note: Why the model can't be verified; empty if it can.
    """

    value: float | None = None
    exact: bool = True
    failing: Counter[int] = field(default_factory=Counter)
    undecided: int = 0
    note: str = ""


def make_verdict(model: AuditModel, tally: Tally, note: str) -> Verdict:
    """The verdict on a model.

    Args:
        model: The model.
        tally: Its counts.
        note: Why the table can't show that the model holds; empty if it can.
    """
    if note and not model.fails_by_rows:
        tally = Tally(exact=False)
    at_release = bool(note) and not tally.failing
    if note and model.fails_by_rows:
        note += f"; {count_failing(tally.failing.total())} by their rows"
    note = note or tally.note
    # Where classes without a value fail, the worst value of the others would tell nothing.
    passing = bool(tally.failing) and tally.value is not None and bool(model.holds(tally.value))
    return Verdict(
        model=model.label,
        holds=not note and not tally.failing,
        value=None if note or passing else tally.value,
        required=model.required,
        n_failing=tally.failing.total(),
        worst=_first(tally.failing, N_WORST),
        exact=tally.exact and not note,
        note=note,
        at_release=at_release,
        spec=model.spec,
    )


def as_joint(verdict: Verdict) -> Verdict:
    """A verdict on the parts of classes that agree on the other protected columns."""
    return replace(verdict, model=f"{verdict.model}{JOINT}", spec={**verdict.spec, "joint": True})


def round_sizes(sizes: Mapping[int, int]) -> Counter[int]:
    """The classes by size, where large sizes are rounded. The least size stays exact."""
    least: dict[int, int] = {}
    rounded = Counter[int]()
    for size, n in sorted(sizes.items()):
        bits = size.bit_length() if size > EXACT_SIZES else -size
        rounded[least.setdefault(bits, size)] += n
    return rounded


def _first(sizes: Counter[int], n: int) -> tuple[int, ...]:
    """The n smallest elements of a multiset, without a list of all."""
    few = [size for size in sorted(sizes)[:n] for _ in range(min(n, sizes[size]))]
    return tuple(few[:n])


def list_joint_models(
    spec: AuditSpec, models: Sequence[AuditModel]
) -> Mapping[tuple[str, ...], list[AuditModel]]:
    """By the columns that an attacker knows: the models that are checked against such attackers."""
    by_columns = defaultdict(list)
    for model in models:
        if spec.joint and model.protected:
            by_columns[tuple(n for n in spec.joint if n not in model.protected)].append(model)
    return by_columns


def list_labels(spec: AuditSpec) -> list[str]:
    """The labels of the verdicts on a table, in their order."""
    models = [registry.build("audit", registry.spec(model)) for model in spec.models]
    joint = [model for same in list_joint_models(spec, models).values() for model in same]
    return [model.label for model in models] + [f"{m.label}{JOINT}" for m in joint]


def find_least_persons(models: Sequence[AuditModel]) -> int:
    """The least persons of every class, over all models; 0 if no model counts persons."""
    return max((model.persons for model in models), default=0)


def find_insensitive_state(spec: AuditSpec, *, checked: bool) -> Insensitive:
    """What the report says about the check of the insensitive columns."""
    if not spec.insensitive:
        return "none"
    if spec.acknowledge_unique:
        return "acknowledged"
    return "checked" if checked else "not checked"


def find_rare_problems(
    text: str, insensitive: Sequence[str], n_rare: int, n_all: int, k: int
) -> list[Problem]:
    """The problem with rare combinations of the columns that `text` names; none if there are none.

    Args:
        text: Names the columns.
        insensitive: The insensitive columns.
        n_rare: The combinations of fewer than k persons.
        n_all: All combinations.
        k: The least persons of a combination.
    """
    if not n_rare:
        return []
    found = f"{n_rare} of {n_all} combinations of {text} belong to fewer than k={k} persons"
    names = ", ".join(insensitive)
    advice = f"drop or coarsen {names}, or accept it: name them under privacy.acknowledge_unique"
    return [Problem("insensitive", f"{found}; {advice}")]


def sort_problems(problems: Sequence[Problem], n_rows: int) -> tuple[Problem, ...]:
    """Each problem once, in order; a table without rows is one."""
    empty = [] if n_rows else [Problem("", "the table has no rows")]
    return tuple(sorted({*problems, *empty}))


def advise_equal_cells(verdicts: Sequence[Verdict], spec: AuditSpec, n_more: int) -> str:
    """What to do where classes may fail because cells of several blocks, which share persons, were
    released with the same values; empty if that can't be the reason.

    Args:
        verdicts: The verdicts of the audit.
        spec: Its spec.
        n_more: How many more cells than classes there are.
    """
    failing = {each.spec.get("type") for each in verdicts if not each.holds}
    counted = any(m.type in failing and m.looks_at == "counts" for m in spec.models)
    if spec.persons != "token" or n_more <= 0 or not counted:
        return ""
    return (
        "some cells were released with the same values and are one class, where a person of "
        "several cells counts once: choose recoders that keep cells apart, or fewer blocks "
        "(`partition`)"
    )
