"""The audit: its checks, and the verdicts from their counts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from anonlib import registry
from anonlib.auditing.models import AuditModel
from anonlib.auditing.report import AuditReport, AuditSpec, Verdict
from anonlib.auditing.rules import lone, protected_columns, schema_problems, token_columns
from anonlib.auditing.verdicts import (
    INSENSITIVE_ALONE,
    INSENSITIVE_WITHIN,
    JOINT,
    Tally,
    insensitive_state,
    joint_models,
    least_persons,
    make_verdict,
    rare_problems,
    sort_problems,
)
from anonlib.auditing.view import View, make_view
from anonlib.errors import Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    needed = {*spec.quasi_identifiers, *protected, *token_columns(spec)}
    if needed & broken:
        state = insensitive_state(spec, checked=False)
        n_rows = df.count()
        return AuditReport(n_rows, 0, (), sort_problems(problems, n_rows), (), state)

    from anonlib.auditing.count import tally

    k = least_persons(models)
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
        problems=sort_problems(problems, n_rows),
        sizes=tuple(sorted(sizes.items())),
        insensitive=insensitive_state(spec, checked=checked),
        lone=lone(view, spec) if n_rows else {},
    )


def _verdict(view: View, model: AuditModel, tally: Tally) -> Verdict:
    return make_verdict(model, tally, model.unverifiable(view))


def _joint_verdicts(view: View, spec: AuditSpec, models: Sequence[AuditModel]) -> Iterator[Verdict]:
    """The verdicts against attackers who know other protected columns. Known columns are keys of
    classes, like quasi-identifiers."""
    from anonlib.auditing.count import tally

    for known, same in joint_models(spec, models).items():
        within = replace(view, keys=view.keys + tuple(view.sensitive[name] for name in known))
        _, _, tallies = tally(within, same)
        for model, counted in zip(same, tallies, strict=True):
            found = _verdict(within, model, counted)
            yield replace(found, model=f"{found.model}{JOINT}")


def _insensitive_problems(view: View, k: int) -> list[Problem]:
    """Problems if combinations of insensitive columns belong to fewer than k persons. The columns
    are checked alone, and together with the quasi-identifiers."""
    from anonlib.auditing.count import count_rare

    problems = []
    for keys, text in [
        (view.insensitive, INSENSITIVE_ALONE),
        (view.keys + view.insensitive, INSENSITIVE_WITHIN),
    ]:
        n_rare, n_all = count_rare(view, keys, k)
        problems += rare_problems(text, n_rare, n_all, k)
    return problems
