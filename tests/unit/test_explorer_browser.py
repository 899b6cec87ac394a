"""Choosing settings on a page, in a real browser: by keys, on a desk and a phone, with and without
scripts. Skipped without Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import anonlib
from anonlib.pages import render_sweep
from anonlib.sweeps.results import render_results as page_of
from tests.explored import swept
from tests.support import skip_or_fail
from tests.unit.test_explorer import GOALS, suggestion_page

pytestmark = pytest.mark.slow
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        skip_or_fail("no Chromium: install Debian's package chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_or_fail("no Playwright: it is in scripts/lock/anonlib.txt")
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_of(swept()), "utf-8")
    return path


class Visit:
    """A page in the browser, and what it did that pages must not do."""

    def __init__(self, browser: Any, file: Path, width: int, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self.wrong.append(said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda asked: self.wrong.append(asked.url))
        self.page.goto(file.as_uri())
        assert self.wrong == [file.as_uri()]
        self.wrong.clear()

    def focus(self, name: str) -> None:
        """Goes on by the tabulator until a control has the focus, and shows it."""
        for _ in range(80):
            self.page.keyboard.press("Tab")
            if (
                self.page.evaluate("document.activeElement.id || document.activeElement.name")
                == name
            ):
                style = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert style == "solid", name
                return
        raise AssertionError(f"{name}: no focus by keys")

    def text(self, id: str) -> str:
        return str(self.page.locator(f"#{id}").text_content())

    def fits(self) -> bool:
        """Whether nothing that is seen is beyond the right edge."""
        return not self.page.evaluate(
            """[...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length
              && !e.closest(".wide, .skip, pre")
              && e.getBoundingClientRect().right > document.body.clientWidth + 1).length"""
        )

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_setting_is_chosen_by_keys_and_its_config_copied(
    browser: Any, file: Path, width: int
) -> None:
    visit = Visit(browser, file, width, permissions=["clipboard-read", "clipboard-write"])
    assert visit.fits()
    assert visit.text("explore-name") == "single, mdav, k 2"
    first, figures = visit.text("explore-said"), visit.text("explore-figures")
    visit.focus("kernel")
    visit.page.keyboard.press("ArrowDown")
    assert visit.text("explore-name") == "single, mondrian, k 2"
    visit.focus("k")
    for _ in range(2):
        visit.page.keyboard.press("ArrowDown")
    assert visit.text("explore-name") == "single, mondrian, k 10"
    assert visit.text("explore-said") != first
    assert visit.text("explore-figures") != figures
    assert "largest chance to be found is 0.1, accuracy 0.82" in visit.text("explore-said")
    assert "Not on the frontier" in visit.text("explore-said")
    visit.focus("explore-copy")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_function("document.getElementById('explore-copied').textContent !== ''")
    assert visit.text("explore-copied") == "Copied."
    config = anonlib.parse(yaml.safe_load(visit.page.evaluate("navigator.clipboard.readText()")))
    assert (config.k, config.kernel.type) == (10, "mondrian")
    assert [step.type for step in config.partition.steps] == ["single"]
    assert visit.fits()
    visit.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_along_the_frontier_by_keys_and_by_the_plot(browser: Any, file: Path, width: int) -> None:
    visit = Visit(browser, file, width)
    for k in (5, 10, 20, 50):
        visit.page.locator("#explore-safer").press("Enter")
        assert visit.text("explore-name") == f"single, mdav, k {k}"
        assert "On the frontier" in visit.text("explore-said")
    assert visit.page.locator("#explore-safer").get_attribute("aria-disabled") == "true"
    visit.page.locator("#explore-safer").press("Enter")  # the last one stays
    assert visit.text("explore-name") == "single, mdav, k 50"
    visit.page.locator("#explore-useful").press("Enter")
    assert visit.text("explore-name") == "single, mdav, k 20"
    # Another figure: fewer of it are better. What is on the frontier is counted anew.
    visit.page.select_option("#explore-utility", label="sse")
    assert visit.text("explore-axes") == "sse (less is better) by largest chance to be found"
    assert "sse 0.25" in visit.text("explore-said")
    visit.page.locator("#explore-plot .line-3").last.dispatch_event("click")
    assert "vmdav" in visit.text("explore-name")
    visit.close()


def test_a_setting_that_failed_says_why(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.html"
    path.write_text(page_of(swept(seeds=1)), "utf-8")
    visit = Visit(browser, path, 1280)
    for axis, value in (("partitioner", "kmeans"), ("kernel", "vmdav"), ("k", "50")):
        visit.page.select_option(f"select[name={axis}]", label=value)
    assert visit.text("explore-said") == "It failed: E: <too few>"
    assert visit.page.locator("#explore-plot circle").count() == 0
    assert visit.page.locator("#explore-classes").is_hidden()
    visit.close()


def test_seeds_that_failed_are_said_and_keep_a_setting_off_the_frontier(
    browser: Any, file: Path
) -> None:
    visit = Visit(browser, file, 1280)
    for axis, value in (("partitioner", "kmeans"), ("kernel", "vmdav"), ("k", "50")):
        visit.page.select_option(f"select[name={axis}]", label=value)
    assert "Figures of 1 of 2 seeds: 1 failed, so it is not compared with others." in visit.text(
        "explore-said"
    )
    assert "frontier" not in visit.text("explore-said")
    bars = "[...document.querySelectorAll('#explore-sizes i')].map((e) => e.style.width)"
    widths = [float(width.removesuffix("%")) for width in visit.page.evaluate(bars)]
    assert sum(widths) == pytest.approx(100, abs=0.1)  # the track is all rows
    visit.close()


def test_tables_are_not_compared_with_each_other(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "two.html"
    path.write_text(page_of(swept(cases=("people", "</script>"), seeds=1)), "utf-8")
    visit = Visit(browser, path, 1280)
    marks = visit.page.locator("#explore-plot .point")
    assert marks.count() == 30
    visit.page.select_option("select[name=case]", label="</script>")
    assert visit.text("explore-name") == "</script>, single, mdav, k 2"
    assert marks.count() == 29  # one failed
    visit.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_without_scripts(browser: Any, file: Path, width: int) -> None:
    visit = Visit(browser, file, width, java_script_enabled=False)
    assert visit.page.locator("#explore-live").is_hidden()
    assert visit.page.locator("#explore-still svg").is_visible()
    assert visit.page.locator("#points").is_visible()
    visit.context.close()


def test_on_paper(browser: Any, file: Path) -> None:
    visit = Visit(browser, file, 1280)
    visit.page.emulate_media(media="print")
    assert visit.page.locator("#explore-safer").is_hidden()
    assert visit.page.locator("#explore-plot").is_visible()
    assert visit.page.locator("#explore-said").is_visible()
    visit.close()


def test_no_other_script_runs(browser: Any, file: Path, tmp_path: Path) -> None:
    """The content policy names the one script by its hash."""
    path, text = tmp_path / "changed.html", file.read_text("utf-8")
    evil = "<script>document.title = 'evil'</script><img src=x onerror=\"document.title='evil'\">"
    path.write_text(text.replace("<main ", f"{evil}<main "), "utf-8")
    visit = Visit.__new__(Visit)
    visit.context = browser.new_context()
    visit.page = visit.context.new_page()
    visit.page.goto(path.as_uri())
    assert visit.page.title() == "Sweep people"
    assert visit.text("explore-name") == "single, mdav, k 2"
    visit.context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_suggestion_opens_on_its_first_choice(browser: Any, tmp_path: Path, width: int) -> None:
    """Choices have labels; bounds are lines whose labels are in the plot; it says which hold."""
    gates = [{"figure": "reidentification.prosecutor_max", "at_most": 0.15}]
    text, *_ = suggestion_page(evaluate={"measures": ["reidentification"]}, gates=gates)
    path = tmp_path / "tried.html"
    path.write_text(text, "utf-8")
    visit = Visit(browser, path, width)
    assert visit.fits()
    assert visit.text("explore-name") == "refine, k 5 (1 least loss)"
    assert "Mean chance to be found: outside 0.09 EMA/Health Canada. Largest" in visit.text(
        "explore-said"
    )
    asides = visit.page.locator("#explore-plot .aside")
    assert asides.all_text_contents() == ["0.09 EMA/Health Canada", "1 least loss", "2 safer"]
    visit.focus("explore-risk")
    visit.page.keyboard.press("ArrowDown")
    assert asides.first.text_content() == "0.09 EMA/Health Canada"
    assert asides.nth(1).text_content() == "gate ≤ 0.15"
    assert visit.page.locator("#explore-plot .bound").count() == 2
    visit.focus("k")
    visit.page.keyboard.press("ArrowDown")
    assert "Largest chance to be found: within gate ≤ 0.15." in visit.text("explore-said")
    assert visit.page.evaluate(
        """(() => { const plot = document.getElementById("explore-plot").getBoundingClientRect();
          return [...document.querySelectorAll("#explore-plot .aside")].every((e) => {
            const box = e.getBoundingClientRect();
            return box.left >= plot.left - 1 && box.right <= plot.right + 1
              && box.top >= plot.top - 1 && box.bottom <= plot.bottom + 1; }); })()"""
    )
    for goal in ("ArrowUp", "ArrowDown"):
        visit.focus("explore-risk")
        visit.page.keyboard.press(goal)
        assert visit.page.evaluate(APART) == []
    visit.close()


def test_equal_settings_are_all_on_the_frontier(browser: Any, tmp_path: Path) -> None:
    """And less risk is less risk: the next setting is no equal one."""
    rows = [
        {"kernel": kernel, "k": k, "risk": 1 / k, "loss": loss, "seed": 0}
        for kernel, k, loss in (
            *(("a", 5, 0.1), ("b", 5, 0.1), ("c", 5, 0.2)),
            *(("a", 10, 0.3), ("b", 10, 0.3), ("c", 10, 0.3)),
        )
    ]
    path = tmp_path / "equal.html"
    axes, figures = ("kernel", "k", "seed"), ("loss",)
    path.write_text(render_sweep(rows, title="t", axes=axes, figures=figures, goals=GOALS), "utf-8")
    visit = Visit(browser, path, 1280)
    for kernel, where in (("b", "On"), ("c", "Not on"), ("a", "On")):
        visit.page.select_option("select[name=kernel]", label=kernel)
        assert f"{where} the frontier" in visit.text("explore-said")
    visit.page.locator("#explore-safer").press("Enter")
    assert visit.text("explore-name").endswith("k 10")
    assert visit.page.locator("#explore-safer").get_attribute("aria-disabled") == "true"
    visit.page.select_option("select[name=kernel]", label="c")
    assert "On the frontier" in visit.text("explore-said")
    visit.page.locator("#explore-useful").press("Enter")
    assert visit.text("explore-name") == "a, k 5"
    visit.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_lie_over_no_point(browser: Any, tmp_path: Path, width: int) -> None:
    """Where settings are near to each other."""
    found = {
        "refine": [(5, 0.174, 0.055), (10, 0.083, 0.11), (20, 0.0415, 0.196), (50, 0.02, 0.335)],
        "mondrian": [(5, 0.152, 0.075), (10, 0.072, 0.13), (20, 0.036, 0.205), (50, 0.015, 0.358)],
        "mdav": [(5, 0.2, 0.07), (10, 0.1, 0.147), (20, 0.058, 0.197), (50, 0.02, 0.405)],
    }
    tags = {
        ("refine", 10): "1 least loss",
        ("refine", 20): "2 safer",
        ("mondrian", 10): "3 quicker",
    }
    rows = [
        {"kernel": kernel, "k": k, "risk": risk, "loss": loss, "seed": 0}
        | {"tag": tags.get((kernel, k), "")}
        for kernel, points in found.items()
        for k, risk, loss in points
    ]
    path, axes, figures = tmp_path / "near.html", ("kernel", "k", "seed"), ("loss",)
    path.write_text(render_sweep(rows, title="t", axes=axes, figures=figures, goals=GOALS), "utf-8")
    visit = Visit(browser, path, width)
    assert visit.page.locator("#explore-plot .aside").count() == 3
    assert visit.page.evaluate(APART) == []
    visit.close()


#: The labels of a plot that are over each other, or over a point.
APART = """(() => {
  const all = (names) => [...document.querySelectorAll(names)]
    .map((e) => [e, e.getBoundingClientRect()]);
  const over = ([e, a], [f, b]) => e !== f && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const labels = all("#explore-plot .aside"), points = all("#explore-plot .point");
  const bounds = all("#explore-plot .bound");
  const across = ([e, a], [, b]) => !e.hasAttribute("transform") && a.left + 1 < b.left
    && b.right < a.right - 1;
  return labels.filter((each) => labels.some((other) => over(each, other))
    || bounds.some((bound) => across(each, bound))
    || points.some((point) => over(each, point)))
    .map(([e]) => e.textContent); })()"""
