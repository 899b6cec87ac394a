"""The audit: its checks, and the verdicts from their counts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from anonlib import registry
from anonlib.auditing.models import AuditModel
from anonlib.auditing.report import AuditReport, AuditSpec, Insensitive, Verdict
from anonlib.auditing.rules import lone, protected_columns, schema_problems
from anonlib.auditing.view import View, make_view
from anonlib.errors import Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anonlib.auditing.count import Tally

#: How many failing classes a verdict shows.
N_WORST = 5


def audit_table(df: "DataFrame", spec: AuditSpec, whole: "DataFrame | None" = None) -> AuditReport:
    """Verifies a table against a spec, by counting everything again in Spark.

    Cost, in passes over the table, which must not change meanwhile:

    - One aggregation, grouped by the released quasi-identifiers.
    - One for each model that the first leaves undecided, in two levels, over some of the rows.
    - Both again for each column that is protected against attackers who know the others.
    - One for columns of shares.
    - Two for insensitive columns.

    Args:
        df: The table.
        spec: The requirements.
        whole: The table that `df` is a part of, with the columns of the spec except the token.
            Relative models compare the classes of `df` with it. By default `df` itself.

    Returns:
        The report. It lists all defects of the table; nothing is raised.
    """
    models = [registry.build("audit", registry.spec(model)) for model in spec.models]
    problems, broken = schema_problems(df, spec, models)
    protected = protected_columns(spec, models)
    needed = {*spec.quasi_identifiers, *protected, *_token(spec)}
    if needed & broken:
        state = _insensitive_state(spec, checked=False)
        n_rows = df.count()
        return AuditReport(n_rows, 0, (), _sort_problems(problems, n_rows), (), state)

    from anonlib.auditing.count import tally

    k = max((model.persons for model in models), default=0)
    checked = bool(k and spec.insensitive) and not {*spec.insensitive} & broken
    checked = checked and not spec.acknowledge_unique
    view = make_view(df, spec, protected, spec.insensitive if checked else (), whole)
    sizes, n_rows, tallies = tally(view, models)
    counted = zip(models, tallies, strict=True) if n_rows else ()
    verdicts = [_verdict(view, model, found) for model, found in counted]
    if n_rows:
        verdicts += _joint_verdicts(view, spec, models)
    if n_rows and checked:
        problems += _insensitive_problems(view, k)
    return AuditReport(
        n_rows=n_rows,
        n_classes=sizes.total(),
        verdicts=tuple(verdicts),
        problems=_sort_problems(problems, n_rows),
        sizes=tuple(sorted(sizes.items())),
        insensitive=_insensitive_state(spec, checked=checked),
        lone=lone(view, spec) if n_rows else {},
    )


def _token(spec: AuditSpec) -> tuple[str, ...]:
    return (spec.token,) if spec.persons == "token" and spec.token is not None else ()


def _sort_problems(problems: list[Problem], n_rows: int) -> tuple[Problem, ...]:
    empty = [] if n_rows else [Problem("", "the table has no rows")]
    return tuple(sorted({*problems, *empty}))


def _verdict(view: View, model: AuditModel, tally: "Tally") -> Verdict:
    note = model.unverifiable(view)
    at_release = bool(note) and not tally.failing
    if note:
        note += f"; {tally.failing.total()} classes fail by what can be counted"
    note = note or tally.note
    return Verdict(
        model=model.label,
        holds=not note and not tally.failing,
        value=None if note else tally.value,
        required=model.required,
        n_failing=tally.failing.total(),
        worst=_first(tally.failing, N_WORST),
        exact=tally.exact and not note,
        note=note,
        at_release=at_release,
    )


def _joint_verdicts(view: View, spec: AuditSpec, models: Sequence[AuditModel]) -> Iterator[Verdict]:
    """The verdicts against attackers who know other protected columns. Known columns are keys of
    classes, like quasi-identifiers."""
    from anonlib.auditing.count import tally

    by_known = defaultdict(list)
    for model in models:
        if spec.joint and model.protected:
            by_known[tuple(n for n in spec.joint if n not in model.protected)].append(model)
    for known, same in by_known.items():
        within = replace(view, keys=view.keys + tuple(view.sensitive[name] for name in known))
        _, _, tallies = tally(within, same)
        for model, counted in zip(same, tallies, strict=True):
            found = _verdict(within, model, counted)
            yield replace(found, model=f"{found.model} joint=True")


def _first(sizes: Counter[int], n: int) -> tuple[int, ...]:
    """The n smallest elements of a multiset, without a list of all."""
    few = [size for size in sorted(sizes)[:n] for _ in range(min(n, sizes[size]))]
    return tuple(few[:n])


def _insensitive_state(spec: AuditSpec, *, checked: bool) -> Insensitive:
    if not spec.insensitive:
        return "none"
    if spec.acknowledge_unique:
        return "acknowledged"
    return "checked" if checked else "not checked"


def _insensitive_problems(view: View, k: int) -> list[Problem]:
    """Problems if combinations of insensitive columns belong to fewer than k persons. The columns
    are checked alone, and together with the quasi-identifiers."""
    from anonlib.auditing.count import count_rare

    problems = []
    for keys, text in [
        (view.insensitive, "the insensitive columns"),
        (view.keys + view.insensitive, "the quasi-identifiers and the insensitive columns"),
    ]:
        n_rare, n_all = count_rare(view, keys, k)
        if n_rare:
            found = f"{n_rare} of {n_all} combinations of {text} belong to fewer than k={k} persons"
            advice = "drop or coarsen columns, or set acknowledge_unique: true"
            problems.append(Problem("insensitive", f"{found}; {advice}"))
    return problems
