"""The audit: its checks, and the verdicts from their counts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from anonlib.auditing.models import AuditModel
from anonlib.auditing.report import AuditReport, AuditSpec, Verdict
from anonlib.auditing.rules import (
    TableCheck,
    check_table,
    find_lone_rows,
    find_pseudonym_problems,
    list_kinds,
    order_problems,
)
from anonlib.auditing.verdicts import (
    INSENSITIVE_ALONE,
    INSENSITIVE_WITHIN,
    as_joint,
    find_rare_problems,
    list_joint_models,
    make_verdict,
    sort_problems,
)
from anonlib.auditing.view import View, make_view
from anonlib.errors import Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anonlib.auditing.count import Counts


def audit_table(df: "DataFrame", spec: AuditSpec, whole: "DataFrame | None" = None) -> AuditReport:
    """Verifies a table against a spec, by counting everything again in Spark.

    Cost, in passes over the table, which must not change meanwhile:

    - One aggregation, grouped by the released quasi-identifiers.
    - One for each model that the first leaves undecided, in two levels, over some of the rows.
    - These two again for each column that must hold against attackers who know the others.
    - One for columns of shares.
    - Two for insensitive columns.
    - Two for pseudonyms.
    - If the elements of a set are not in ascending order: the first again, and one for each column
      of sets, grouped by it.

    Args:
        df: The table.
        spec: The requirements.
        whole: The table that `df` is a part of, with the columns of the spec except the token.
            Relative models compare the classes of `df` with it. By default `df` itself.

    Returns:
        The report. It lists all defects of the table; nothing is raised.
    """
    return audit_parts(df, spec, (), whole)[0]


def audit_parts(
    df: "DataFrame", spec: AuditSpec, parts: Sequence[str], whole: "DataFrame | None" = None
) -> list[AuditReport]:
    """The audit of a table, and of the same rows as if a class had those of one part only.

    Cost: that of `audit_table`, except that models which the first pass leaves undecided are
    counted again for each of the `parts`.

    Args:
        df: The table, as for `audit_table`, with the columns of the parts.
        spec: As for `audit_table`.
        parts: Private columns; each value is a part of the table.
        whole: As for `audit_table`.

    Returns:
        The report on the table, then one for each of the `parts`: of classes and verdicts alone.
    """
    spec = replace(spec, private=(*spec.private, *parts))
    check = check_table(df.columns, list_kinds(df), spec)
    models, problems = check.models, [*check.problems]
    if not {*spec.pseudonyms} & check.broken:
        problems += find_pseudonym_problems(df, spec)
    if not check.readable:
        problems += order_problems(df, spec, check.broken)
        broken_table = check.report_unreadable(spec, df.count(), problems)
        return [broken_table, *[replace(broken_table, problems=()) for _ in parts]]

    views, counts = _count_classes(df, spec, check, whole, parts, sort=False)
    if not counts[0].ascending:  # then equal sets may be in several orders
        problems += order_problems(df, spec, check.broken)
        views, counts = _count_classes(df, spec, check, whole, parts, sort=True)
    view = views[0]
    n_rows = counts[0].n_rows
    if n_rows and check.insensitive:
        problems += _insensitive_problems(view, check.insensitive, check.k)
    joint = _joint_verdicts(views, spec, models) if n_rows else [[] for _ in views]
    reports = [
        AuditReport(
            n_rows=n_rows,
            n_classes=each.sizes.total(),
            verdicts=(*_verdicts(view, models, each), *others),
            problems=(),
            sizes=tuple(sorted(each.sizes.items())),
            insensitive=check.describe_insensitive(spec),
        )
        for view, each, others in zip(views, counts, joint, strict=True)
    ]
    found = find_lone_rows(view, spec) if n_rows else {}
    reports[0] = replace(reports[0], problems=sort_problems(problems, n_rows), lone=found)
    return reports


def _count_classes(
    df: "DataFrame",
    spec: AuditSpec,
    check: TableCheck,
    whole: "DataFrame | None",
    parts: Sequence[str],
    *,
    sort: bool,
) -> "tuple[list[View], list[Counts]]":
    """The views of a table and of the same rows by part, and their counts. See `audit_parts`.

    check: What the columns of the table are.
    sort: As for `make_view`.
    """
    from anonlib.auditing.count import tally

    view = make_view(df, spec, check.protected, check.insensitive, whole, parts, sort=sort)
    views = [view, *[replace(view, keys=(*view.keys, name)) for name in view.parts]]
    return views, tally(views, check.models)


def _verdicts(view: View, models: Sequence[AuditModel], counts: "Counts") -> list[Verdict]:
    """The verdicts on a view; none if it has no rows."""
    found = zip(models, counts.tallies, strict=True) if counts.n_rows else ()
    return [make_verdict(model, tally, model.unverifiable(view)) for model, tally in found]


def _joint_verdicts(
    views: Sequence[View], spec: AuditSpec, models: Sequence[AuditModel]
) -> list[list[Verdict]]:
    """By view: the verdicts against attackers who know other protected columns. Known columns are
    keys of classes, like quasi-identifiers. Rows of nobody are left out: where there are no others,
    nobody is to be protected."""
    from anonlib.auditing.count import tally

    if (token := views[0].token) is not None:
        views = [replace(view, rows=view.rows.where(f"{token} is not null")) for view in views]
    verdicts: list[list[Verdict]] = [[] for _ in views]
    for known, same in list_joint_models(spec, models).items():
        names = tuple(views[0].sensitive[name] for name in known)
        within = [replace(view, keys=view.keys + names) for view in views]
        for view, counts, found in zip(within, tally(within, same), verdicts, strict=True):
            each = _verdicts(view, same, counts)
            found += map(as_joint, each)
    return verdicts


def _insensitive_problems(view: View, insensitive: Sequence[str], k: int) -> list[Problem]:
    """Problems if combinations of insensitive columns belong to fewer than k persons. The columns
    are checked alone, and together with the quasi-identifiers."""
    from anonlib.auditing.count import count_rare

    problems = []
    for keys, text in [
        (view.insensitive, INSENSITIVE_ALONE),
        (view.keys + view.insensitive, INSENSITIVE_WITHIN),
    ]:
        n_rare, n_all = count_rare(view, keys, k)
        problems += find_rare_problems(text, insensitive, n_rare, n_all, k)
    return problems
