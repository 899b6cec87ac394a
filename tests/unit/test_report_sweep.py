"""The page of a sweep: means and deviations, lines, what failed."""

import random
import re
from statistics import fmean, stdev
from typing import Any

import pytest

from anonlib.pages import render_sweep
from anonlib.pages.sweep import make_sweep_page
from tests import reports

K, KERNEL = "privacy.models.0.k", "kernel.type"
AXES = ("case", KERNEL, K, "seed", "encoding")
FIGURES = ("accuracy", "sse")


def rendered(rows: Any = None, **changes: Any) -> str:
    asked: dict[str, Any] = {"title": "kernels", "axes": AXES, "figures": FIGURES}
    rows = reports.sweep_rows() if rows is None else rows
    return render_sweep(rows, **(asked | changes))


def test_means_and_deviations_over_seeds() -> None:
    rows = reports.sweep_rows()
    page = make_sweep_page(rows, "t", AXES, FIGURES, {})
    name, _, charts = page.figures[0]
    assert name == "accuracy"
    assert [chart.title for chart in charts] == ["adult", "heart"]
    assert len(charts[0].table.rows) == 8
    for kernel, k, mean, deviation, n in charts[0].table.rows:
        at = {"case": "adult", KERNEL: kernel, K: k}
        found = [row["accuracy"] for row in rows if at.items() <= row.items()]
        assert (mean, deviation, n) == (fmean(found), stdev(found), 3)
    # The failed point is not among them.
    assert charts[1].table.rows[-1][-1] == 2
    assert "Bands: one standard deviation." in charts[0].note


def test_summary_failures_and_what_is_fixed() -> None:
    text = rendered()
    assert "48 points tried. 1 point failed; why stands below." in text
    assert "are over 3 values of seed." in text
    assert "InfeasibleError: k is larger than n" in text
    assert re.search(r"<dt>encoding</dt><dd>one_hot</dd>", text)
    assert text.count("<svg") == text.count("<figure>") == text.count("fill-opacity: 0.18") == 4


def test_a_failure_is_told_once_for_all_seeds() -> None:
    rows = [
        row | ({"error": "E", "accuracy": None, "sse": None} if row[K] == 5 else {})
        for row in reports.sweep_rows()
        if not row["error"]
    ]
    page = make_sweep_page(rows, "t", AXES, FIGURES, {})
    assert page.failures is not None
    assert page.failures.heads == ("case", "kernel", "k", "encoding", "points", "error")
    assert len(page.failures.rows) == 4
    assert ("adult", "mdav", "5", "one_hot", "3", "E") in page.failures.rows


def test_ticks_of_a_logarithmic_axis() -> None:
    def ticks(ks: list[int]) -> set[str]:
        some = [r for r in reports.sweep_rows() if r[K] == 5 and r["seed"] == 1]
        text = rendered([row | {K: k} for row in some for k in ks], figures=("sse",))
        return {
            k for k in ("1", "2", "5", "10", "20", "50", "100", "1,000") if f">{k}</text>" in text
        }

    assert ticks([2, 3, 5, 10, 15, 20, 25, 50]) == {"2", "5", "10", "20", "50"}
    assert ticks([3, 4, 5, 10, 20, 50, 100, 1000, 2000]) == {"10", "100", "1,000"}


def test_one_look_in_any_order_of_rows() -> None:
    rows = reports.sweep_rows()
    random.Random(1).shuffle(rows)
    assert rendered(rows) == rendered()


def test_a_line_has_one_colour_everywhere() -> None:
    """Also where others are missing."""
    rows = [r for r in reports.sweep_rows() if r["case"] == "adult" or r[KERNEL] != "mdav"]
    page = make_sweep_page(rows, "t", AXES, FIGURES, {})
    second = page.figures[0][2][1]
    assert second.legend == ((1, "●", "mdav"), (2, "■", "mondrian"))
    assert "var(--line-2)" in second.svg
    assert "var(--line-1)" not in second.svg


def test_what_is_along_the_axis_has_lines_or_plots() -> None:
    """k, a line for each kernel, a plot for each case."""
    text = rendered()
    assert text.count(">accuracy by k<") == 2
    assert 'aria-label="Line chart, adult by k. mdav: from' in text
    text = rendered([row for row in reports.sweep_rows() if row[KERNEL] == "mdav"])
    assert text.count(">accuracy by k<") == 2
    assert "</span> " not in text  # no legend


def test_parameters_of_some_points_only() -> None:
    rows = [row | {"kernel.alpha": None} for row in reports.sweep_rows() if row[KERNEL] == "mdav"]
    rows += [r | {KERNEL: "lda_mdav", "kernel.alpha": a} for a in (1, 64) for r in rows[:24]]
    text = rendered(rows, axes=(*AXES, "kernel.alpha"))
    for name in ("mdav", "lda_mdav, alpha 1", "lda_mdav, alpha 64"):
        assert f"</span> {name}<" in text


@pytest.mark.parametrize(("varied", "drawn"), [([], "Bar chart"), (["model"], "Dot plot")])
def test_names_along_the_axis(varied: list[str], drawn: str) -> None:
    """Where no axis has numbers."""
    rows = [r | {"model": f"{r['case']} model"} for r in reports.sweep_rows() if r[K] == 5]
    text = rendered(rows, axes=(KERNEL, *varied, "seed", "encoding"), figures=("sse",))
    assert f'aria-label="{drawn}' in text
    assert "The same everywhere" in text


def test_what_figures_mean_stands_under_their_names() -> None:
    rows = [row for row in reports.sweep_rows() if row["case"] == "adult"]
    text = rendered(rows, meanings={"sse": "share of `it`; more is worse"}, notes=["a `note`"])
    assert re.search(
        r">sse</h2>\s*<p class=.about.>Share of <code>it</code>; more is worse.</p>", text
    )
    assert "<figcaption> <small>sse by k</small>" in text  # the name stands above
    assert "a <code>note</code>" in text


def test_no_points() -> None:
    text = rendered([])
    assert "0 points tried." in text
    assert "No point has it." in text
    failed = [row | {"error": "E", "accuracy": None} for row in reports.sweep_rows()]
    assert "48 points failed" in rendered(failed)


def test_markup_stays_text() -> None:
    evil = "<script>$x$</script>"
    rows = [row | {KERNEL: evil, "error": evil} for row in reports.sweep_rows()[:2]]
    rows += [row | {KERNEL: evil} for row in reports.sweep_rows()[2:]]
    for axes in (AXES, (KERNEL, "seed")):
        text = rendered(rows, title=evil, axes=axes)
        assert "<script" not in text
        assert "&lt;script&gt;$x$" in text
