"""Reports: one self-contained HTML page for a release or a sweep, without network. Pages where
settings are chosen have one script."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from anonlib.errors import InputError
from anonlib.pages.comparison import make_comparison_page
from anonlib.pages.explorer import SCRIPT, BoundLine, Explorer, Goal, hash_of, make_explorer
from anonlib.pages.release import release_page
from anonlib.pages.specs import explain_damaged_record, require_run_record
from anonlib.pages.sweep import SEED, Row, make_sweep_page, name_axes
from anonlib.pages.words import make_breakable, mark_code, number
from anonlib.text import printable

#: Marks a file as a report. It is in the HTML head.
MARK = '<meta name="generator" content="anonlib report">'


def render(record: Mapping[str, Any]) -> str:
    """The page of a release, as HTML. It is as private as the record.

    Args:
        record: The private record of the run. The page depends on nothing else.

    Raises:
        InputError: This is no private record, has another version, or is damaged.
    """
    require_run_record(record)
    template = environment().get_template("release.html")
    with explain_damaged_record():
        return template.render(page=release_page(record))


def render_comparison(this: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The page that compares two runs, as HTML. It is as private as their records.

    Args:
        this: The private record of a run.
        other: That of the run to compare it with.

    Raises:
        InputError: One is no private record, has another version, or is damaged, or both are of
            one run.
    """
    for record in (this, other):
        require_run_record(record)
    if all(this.get(name) == other.get(name) for name in ("run_id", "table")):
        raise InputError("both are of one run; name two")
    template = environment().get_template("comparison.html")
    with explain_damaged_record("a run record"):
        return template.render(page=make_comparison_page(this, other))


def render_sweep(
    rows: Sequence[Row],
    *,
    title: str,
    axes: Sequence[str],
    figures: Sequence[str],
    notes: Sequence[str] = (),
    goals: Sequence[Goal] = (),
    fences: Sequence[str] = (),
    bounds: Sequence[BoundLine] = (),
    note: str = "",
    meanings: Mapping[str, str] | None = None,
) -> str:
    """The page of a sweep, as HTML.

    Charts plot means over seeds along the numeric axis with the most values. Each case has a chart,
    each combination of the values of other axes a line. Where several points have a risk and a
    utility, a part of the page shows one against the other, and a script lets settings be chosen.

    Args:
        rows: One mapping per point. Its keys are `axes` and `figures`, with None for no value,
            and optionally `error` (a text), `seconds`, `config` (YAML of the point) and `sizes`
            (by size of a class: the number of classes).
        title: The title of the page.
        axes: The keys that were varied: `seed`, and at least one other.
        figures: The keys that were measured.
        notes: Sentences for the summary.
        goals: The figures that are risks, and those that are utilities.
        fences: The axes whose values are not compared.
        bounds: Lines across the axes of risks.
        note: A sentence above the chart of risk against utility.
        meanings: What figures mean, by their keys.
    """
    page = make_sweep_page(rows, title, axes, figures, meanings or {})
    page = replace(page, summary=(*page.summary, *map(printable, notes)))
    explorer = make_explorer(rows, name_axes([a for a in axes if a != SEED]), goals, fences, bounds)
    return render_explorer("sweep.html", explorer, page=page, over=SEED, note=note)


def render_explorer(template: str, explorer: Explorer | None, **context: Any) -> str:
    """A page with an explorer and its script; without both if it is None."""
    given = {"charts": explorer.charts(), "note": "", "over": ""} if explorer else {}
    script = SCRIPT if explorer else ""
    return (
        environment()
        .get_template(template)
        .render(**given | context, explorer=explorer, script=script)
    )


@cache
def environment() -> Environment:
    """The templates of pages, compiled once, and what they may call."""
    environment = Environment(
        loader=PackageLoader("anonlib.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters = {
        "number": number,
        "plain": printable,
        "breakable": make_breakable,
        "coded": mark_code,
    }
    filters["source"] = hash_of
    environment.filters.update(filters)
    environment.tests["text"] = lambda cell: isinstance(cell, str)
    environment.globals["mark"] = MARK
    return environment
