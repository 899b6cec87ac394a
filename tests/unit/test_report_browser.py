"""Reports in a headless Chromium: on a phone and a desk, by day and night. Skipped without one."""

import html
import json
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from anonlib.pages import render, render_comparison, render_sweep
from anonlib.pages.seal import seal_record
from tests import reports
from tests.support import skip_or_fail
from tests.unit import test_certificate as certificates

WIDTHS = (390, 1280)
#: What a frame is asked once it is there.
ASKED = """
  const page = frame.contentDocument, root = page.documentElement;
  const shown = (element) => element.getClientRects().length > 0;
  const right = (element) => element.getBoundingClientRect().right;
  const loose = [...page.querySelectorAll("body *")].filter(
    (e) => shown(e) && !e.closest("svg, .wide, .skip") && right(e) > root.clientWidth + 1);
  return {
    width: root.clientWidth, scroll: root.scrollWidth, loose: loose.map((e) => e.outerHTML),
    drawings: [...page.querySelectorAll("svg")].map((e) => [
      e.getBoundingClientRect().width, getComputedStyle(e.querySelector("text")).fill,
      e.getBoundingClientRect().width / e.viewBox.baseVal.width * 12]),
    cut: [...page.querySelectorAll("svg text")].filter((e) => {
      const text = e.getBoundingClientRect(), box = e.closest("svg").getBoundingClientRect();
      return text.left < box.left - 2 || text.right > box.right + 2;
    }).map((e) => e.textContent),
    shaded: [...page.querySelectorAll(".wide")].filter(
      (e) => e.scrollWidth > e.clientWidth).map((e) => getComputedStyle(e).backgroundAttachment),
    paper: getComputedStyle(page.body).backgroundColor,
    loaded: frame.contentWindow.performance.getEntriesByType("resource").map((e) => e.name),
  };
"""


def looked_at(pages: list[str], folder: Path, *, dark: bool) -> tuple[list[dict[str, Any]], str]:
    """What each page is at both widths, and what the browser complained of."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        skip_or_fail("no Chromium: install Debian's package chromium")
    frames = "".join(
        f'<iframe style="width:{w}px;height:900px;border:0" srcdoc="{html.escape(text)}"></iframe>'
        for text in pages
        for w in WIDTHS
    )
    wrapper = folder / "wrapper.html"
    wrapper.write_text(
        f"""<!doctype html><meta charset="utf-8"><body>{frames}<pre></pre><script>
        onload = () => {{
          const found = [...document.querySelectorAll("iframe")].map((frame) => {{ {ASKED} }});
          document.querySelector("pre").textContent = JSON.stringify(found);
          document.querySelectorAll("iframe").forEach((frame) => frame.remove());
        }};
        </script>""",
        encoding="utf-8",
    )
    arguments = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'profile'}", "--window-size=1800,1000"),
        *(("--blink-settings=preferredColorScheme=0",) if dark else ()),
        *("--virtual-time-budget=5000", "--dump-dom", wrapper.as_uri()),
    ]
    done = subprocess.run(
        [chromium, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r"<pre>(.*?)</pre>", done.stdout, re.S)
    assert found is not None
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])), "\n".join(complaints)


def sweep() -> str:
    axes = ("case", "kernel.type", "privacy.models.0.k", "seed")
    figures = ("accuracy", "sse")
    return render_sweep(reports.sweep_rows(), title="k", axes=axes, figures=figures)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_fits_reads_and_loads_nothing(dark: bool, tmp_path: Path) -> None:
    other = reports.record() | {"run_id": "20260201T101500Z-0"}
    other["settings"]["kernel"] = "mondrian"
    pages = [render(reports.record()), sweep(), render_comparison(reports.record(), other)]
    found, complaints = looked_at(pages, tmp_path, dark=dark)
    assert complaints == ""
    for (text, width), page in zip(product(pages, WIDTHS), found, strict=True):
        assert page["width"] in range(width - 20, width + 1)  # a scroll bar
        assert page["scroll"] <= page["width"]
        assert page["loose"] == []
        assert page["cut"] == []
        assert page["loaded"] == []
        assert set(page["shaded"]) <= {"local, local, scroll, scroll"}
        # Rows of many columns are stacked: nothing of a report is to be scrolled sideways.
        assert page["shaded"] == [] or width > 390 or text is not pages[0]
        assert page["paper"] == ("rgb(20, 24, 26)" if dark else "rgb(255, 255, 255)")
        assert len(page["drawings"]) == text.count("<svg")
        for drawn, colour, size in page["drawings"]:
            assert drawn <= width
            assert colour != "rgb(0, 0, 0)"  # the page's
            assert size >= 11  # pixels of a letter


@pytest.mark.slow
def test_a_certificate_fits(tmp_path: Path) -> None:
    """Also the risks, which have five columns."""
    measures = certificates.attack("inference", ("a_sensitive_column", 0.13123, 0.04321, 0.23123))
    gates = [{"gate": "inference.attempts at least 1000", "passed": True, "found": "2000"}]
    given = certificates.record(evaluation={"measures": measures, "gates": gates})
    page = seal_record(json.dumps(given)).page()
    found, complaints = looked_at([page], tmp_path, dark=False)
    assert complaints == ""
    for each in found:
        assert each["scroll"] <= each["width"]
        assert each["loose"] == []
