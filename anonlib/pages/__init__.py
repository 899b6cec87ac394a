"""Reports: one self-contained HTML page for a release or a sweep, without scripts or network."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from anonlib.errors import InputError
from anonlib.pages.release import release_page
from anonlib.pages.sweep import Row, sweep_page
from anonlib.pages.words import breakable, code_spans, number
from anonlib.text import printable

#: What tells a report from other files; in its head.
MARK = '<meta name="generator" content="anonlib report">'


def render(record: Mapping[str, Any]) -> str:
    """The page of a release, as HTML: a function of its private record alone, and as private.

    Raises InputError when it is no such record, or a damaged one.
    """
    if record.get("anonlib_record") != 1:
        raise InputError("no run record of anonlib, or one of another version")
    template = _environment().get_template("release.html")
    try:
        return template.render(page=release_page(record))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the run record is damaged ({type(error).__name__})") from None


def render_sweep(
    rows: Sequence[Row],
    *,
    title: str,
    axes: Sequence[str],
    figures: Sequence[str],
    by: str | None = None,
    lines: Sequence[str] | None = None,
    over: Sequence[str] = ("seed",),
    notes: Sequence[str] = (),
) -> str:
    """The page of a sweep, as HTML.

    rows: a point each, with values of `axes` (what was varied) and `figures` (what was found), None
    where there are none, and perhaps `error`, a text, and `seconds`. by: the axis that plots go
    along, by default the numeric one with the most values; lines: those with a line for each
    combination of their values, by default all others but `case`; over: those that means and
    deviations are taken over. What is left has plots of its own. notes: what readers should know,
    in sentences. Raises InputError where `by` or `lines` are no axes.
    """
    page = sweep_page(rows, title, axes, figures, by, lines, over)
    page = replace(page, summary=(*page.summary, *map(printable, notes)))
    return _environment().get_template("sweep.html").render(page=page)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("anonlib.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters = {"number": number, "plain": printable, "breakable": breakable, "coded": code_spans}
    environment.filters.update(filters)
    environment.tests["text"] = lambda cell: isinstance(cell, str)
    environment.globals["mark"] = MARK
    return environment
