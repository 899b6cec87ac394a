"""The page of a release: its order, what it says and shows, and what never gets in."""

import hashlib
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from anonlib import registry
from anonlib.errors import InputError
from anonlib.measure import Measure
from anonlib.pages import render
from anonlib.pages.measures import MAX_CHARTS
from anonlib.pages.release import _ENDINGS, MAX_BARS, _edges
from anonlib.run.result import Ending
from tests import reports

EVIL = '<script>alert("x")</script>'
MATHS = "$x^2$ & 'y'"


class Page(HTMLParser):
    """A page's elements as (tag, attributes), its headings, and the texts inside some tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in ("meta", "wbr"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag  # well-formed

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def inside(self, tag: str) -> str:
        return "".join(text for tags, text in self.texts if tag in tags)

    def headings(self) -> list[tuple[str, str]]:
        found = [(tags[-1], t) for tags, t in self.texts if tags and re.match(r"h\d", tags[-1])]
        return [(tag, text) for tag, text in found if text.strip()]


@pytest.fixture(scope="module")
def text() -> str:
    return render(reports.record())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


class Invented(Measure):
    """Finds what a record says."""

    type: ClassVar[str] = "invented"
    names: ClassVar[dict[str, str]] = {}


class TestStructure:
    def test_glance_and_verdicts_first(self, page: Page) -> None:
        sections = [text for tag, text in page.headings() if tag == "h2"]
        assert sections[:5] == ["At a glance", "Verdicts", "Utility", "Risk", "Classes"]
        assert sections[5:8] == ["Columns before and after", "Partition", "Settings"]
        assert sections[8:] == ["Versions and times"]

    def test_headings_in_order(self, page: Page) -> None:
        levels = [int(tag[1]) for tag, _ in page.headings()]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b <= a + 1 for a, b in pairwise(levels))

    def test_language_landmarks_and_skip_link(self, page: Page) -> None:
        tags = Counter(tag for tag, _ in page.elements)
        assert [tags[tag] for tag in ("main", "header", "nav", "footer", "title")] == [1] * 5
        assert ("html", {"lang": "en"}) in page.elements
        links = [a["href"] for tag, a in page.elements if tag == "a"]
        ids = {a["id"] for _, a in page.elements if "id" in a}
        assert links[0] == "#main"
        assert all(link[1:] in ids for link in links)

    def test_summary_for_one_who_answers_for_it(self, text: str) -> None:
        lead = re.search(r'class="lead good">\s*<p>(.*?)</p>', text)
        assert lead is not None
        assert lead[1] == (
            "Published 30,000 rows in 2,997 classes; every class has at least 10 persons. "
            "12 rows of 30,012 (0.04 %) were suppressed. "
            "All 3 privacy models hold, counted on the released table itself. "
            "Both gates are passed."
        )

    def test_failures_stand_out(self) -> None:
        record = reports.unevaluated()
        record["audit"]["verdicts"][1]["holds"] = False
        gate = {"gate": "learning.loss at most 0", "passed": False, "found": "not measured"}
        record["evaluation"] = {"measures": {}, "gates": [gate]}
        text = render(record)
        assert 'class="lead bad"' in text
        assert "1 of 3 privacy models fails. 1 of 1 gate fails." in text
        assert text.count("✗ FAILS") == 1
        assert text.count("✗ NOT PASSED") == 1

    @pytest.mark.parametrize("exact", [True, False])
    def test_what_is_not_measured_is_no_bound(self, exact: bool) -> None:
        record = reports.unevaluated()
        record["audit"]["verdicts"][1] |= {"value": None, "exact": exact, "holds": False}
        text = render(record)
        assert text.count(">not measured<") == 1
        assert "not measured or better" not in text

    def test_appended_rows(self) -> None:
        record = reports.unevaluated()
        record |= {"n_rows_in": 40, "n_rows_out": 40, "n_suppressed": 0}
        text = render(record)
        assert "Added 40 rows: the table has 30,000 rows in 2,997 classes" in text
        assert "No row was suppressed." in text

    @pytest.mark.parametrize(
        ("outcome", "title", "words"),
        [
            ("stopped", "Stopped release of people", "Nothing was published: a gate stopped"),
            ("evaluated", "Evaluation of people", "This run has measured, and published nothing."),
        ],
    )
    def test_runs_that_publish_nothing(self, outcome: str, title: str, words: str) -> None:
        text = render(reports.unevaluated() | {"outcome": outcome})
        assert f"<h1>{title}</h1>" in text
        assert words in text
        assert "has 30,000 rows in 2,997 classes; every class has at least 10 persons." in text
        assert "Published" not in text

    def test_a_table_in_memory_is_no_failure(self) -> None:
        """It lies nowhere: the place that its config may name is left out."""
        record = reports.unevaluated()
        record["settings"]["release"] = {"path": "out/nowhere", "mode": "error"}
        place = "path: out/nowhere, mode: error"
        assert place in render(record)
        text = render(record | {"outcome": "made"})
        assert "A table in memory, for its caller to save. It has 30,000 rows" in text
        assert "Nothing was published" not in text
        assert place not in text

    def test_every_outcome_with_a_record_is_known(self) -> None:
        # `made` is the ending of a release in memory, which is no run.
        assert {*_ENDINGS, "published", "done", "waiting"} == {*get_args(Ending), "made"}

    def test_risk_is_apart_from_utility(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Risk(Measure):
            """How likely a person is found again (`Code`). More of it."""

            names: ClassVar[dict[str, str]] = {}
            is_risk: ClassVar[bool] = True

        class Utility(Risk):
            """How well it is learned."""

            is_risk: ClassVar[bool] = False

        known = {
            "measure": {"reidentification": Risk, "learning": Utility},
            "metric": {},
            "recoder": {},
        }
        monkeypatch.setattr(registry, "plugins", lambda family: known[family])
        text = render(reports.record())
        assert text.index(">learning<") < text.index('id="risk"') < text.index(">reidentification<")
        assert "How likely a person is found again.</p>" in text

    def test_figures_with_their_meanings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        both, other = "two, of `it`; 0 to 1", f"{EVIL}; more is worse"
        monkeypatch.setattr(Invented, "names", {"a": both, "b": both, "c": other, "d": "not found"})
        known = {"measure": {"invented": Invented}, "metric": {}, "recoder": {}}
        monkeypatch.setattr(registry, "plugins", lambda family: known[family])
        names = ("a", "b", "c", "unknown")
        whole, parts = ([reports.figure(name, 0.5, of) for name in names] for of in ("", "age"))
        record = reports.record()
        record["evaluation"] = {"measures": {"invented": reports.findings([*whole, *parts])}}
        text = render(record)
        escaped, said = str(escape(other)), "two, of <code>it</code>; 0 to 1"
        assert EVIL not in text
        figures, _, table = text.partition('<dl class="figures">')[2].partition("</dl>")
        assert re.findall(r'<dt>(\w+)|class="meaning">(.*)</dd>', figures) == [
            *(("a", ""), ("b", ""), ("", said), ("c", ""), ("", escaped), ("unknown", "")),
        ]
        assert re.findall(r"<div><dt>(.*)</dt> <dd>(.*)</dd></div>", table) == [
            ("a, b", said),
            ("c", escaped),
        ]


class TestPlots:
    def test_a_table_behind_every_plot(self, page: Page) -> None:
        tags = Counter(tag for tag, _ in page.elements)
        assert tags["figure"] == tags["svg"] == tags["figcaption"] == 13
        within = [tags for tags, _ in page.texts if "figure" in tags and "table" in tags]
        assert all("details" in tags for tags in within)
        order = [tag for tag, _ in page.elements if tag in ("figure", "svg", "details", "table")]
        drawn = "".join(tag[0] for tag in order)  # f, s, d, t
        assert drawn.count("fsdt") == 13

    def test_tables_have_all_rows(self, page: Page) -> None:
        tables = page.inside("table")
        for series in reports.record()["evaluation"]["measures"]["marginals"]["series"]:
            for row in series["rows"]:
                assert row[0] in tables

    def test_drawings_say_what_they_show(self, page: Page) -> None:
        drawings = [attributes for tag, attributes in page.elements if tag == "svg"]
        assert all(a["role"] == "img" and len(a["aria-label"]) > 30 for a in drawings)
        labels = [a["aria-label"] for a in drawings]
        assert len(set(labels)) == len(labels)
        sizes = next(label for label in labels if "Sizes of classes" in label)
        assert "10: 2,983; 11: 9" in sizes

    def test_texts_are_texts_in_the_colours_of_the_page(self, text: str, page: Page) -> None:
        assert "2,983" in page.inside("svg")
        drawings = "".join(re.findall(r"<svg.*?</svg>", text, re.S))
        assert not re.search(r": #[0-9a-f]{6}|font-family", drawings)
        assert set(re.findall(r"var\(--([a-z0-9-]+)\)", drawings)) <= set(reports.colours(""))

    def test_ids_are_unique_and_found(self, text: str, page: Page) -> None:
        ids = Counter(a["id"] for _, a in page.elements if "id" in a)
        assert set(ids.values()) == {1}
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)

    def test_many_columns(self) -> None:
        record = reports.unevaluated()
        rows = [(f"{j}", 1 / 20, 1 / 20) for j in range(20)]
        heads = ("range", "source", "release")
        series = [reports.series("distribution", f"column {i}", heads, rows) for i in range(60)]
        found = {"marginals": reports.findings([], series)}
        record["evaluation"] = {"measures": found, "gates": []}
        text = render(record)
        assert text.count("<svg") == MAX_CHARTS + 1
        assert all(f"column {i}<" in text for i in range(60))
        assert len(text) < 500_000

    def test_size(self, text: str) -> None:
        assert len(text.encode()) < 200_000

    @given(st.integers(2, 5000), st.integers(0, 10**6))
    def test_ranges_of_class_sizes(self, low: int, more: int) -> None:
        edges = _edges(low, low + more)
        assert edges[0] == low
        assert edges[-1] > low + more >= edges[-2]
        assert edges == sorted(set(edges))
        assert len(edges) <= max(MAX_BARS, (more // low + 1).bit_length() + 1) + 1


class TestSafety:
    def evil(self) -> dict[str, Any]:
        """A record with markup wherever a text can be."""
        texts = {"run_id": EVIL, "table": EVIL, "notes": [EVIL], "software": {EVIL: EVIL}}
        record = reports.record() | texts
        record["losses"][EVIL] = 0.5
        record["audit"]["verdicts"][0] |= {"model": EVIL, "note": EVIL}
        record["audit"]["problems"] = [{"where": EVIL, "text": EVIL}]
        record["moments"] = {EVIL: {"mean": 1.0, "sd": 2.0}}
        record["settings"] = {"kernel": EVIL, "columns": {EVIL: {"role": EVIL, "recoder": EVIL}}}
        gate = {"gate": EVIL, "passed": True, "found": EVIL}
        names = (EVIL, MATHS)
        series = [
            *(reports.series("distribution", n, ("range", EVIL, "b"), [(n, 1, 1)]) for n in names),
            *(reports.series("distribution", n, ("of", EVIL, "c"), [(n, 1, 1)]) for n in names),
            reports.series(EVIL, EVIL, (EVIL, EVIL), [(MATHS, 1.0), (EVIL, 2.0)]),
            reports.series(EVIL, MATHS, (EVIL, EVIL, MATHS), [(EVIL, 1.0, 2.0)]),
            reports.series(EVIL, "", (EVIL, EVIL), [(1, 1.0), (2, 3.0)]),
            reports.series(EVIL, "t", (EVIL, EVIL), [(EVIL, EVIL)]),
        ]
        found = reports.findings([reports.figure(EVIL, None, EVIL, EVIL)], series)
        record["evaluation"] = {"measures": {EVIL: found}, "gates": [gate]}
        return record

    def test_markup_stays_text(self) -> None:
        text = render(self.evil())
        page = Page(text)
        assert not any(tag == "script" for tag, _ in page.elements)
        assert "<script" not in text
        assert "<script>" in page.inside("svg")  # a label, cut short
        assert MATHS in page.inside("svg")  # no formula
        assert EVIL in page.inside("table")
        assert EVIL.rpartition("/")[2] in page.inside("h1")

    def test_directions_and_controls_are_shown_not_obeyed(self) -> None:
        text = render(reports.unevaluated() | {"notes": ["a\u202eb\x1bc\x00d"]})
        assert "A\\u202eb\\x1bc\\x00d." in text

    def test_nothing_is_loaded(self, text: str, page: Page) -> None:
        policy = [a for tag, a in page.elements if tag == "meta" and "http-equiv" in a]
        assert policy[0]["http-equiv"] == "Content-Security-Policy"
        assert policy[0]["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
        assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text.replace("s3a://", ""))
        for tag, attributes in page.elements:
            assert tag not in ("script", "link", "img", "iframe", "object", "embed", "form")
            assert "src" not in attributes
            assert not any(name.startswith("on") for name in attributes)
            assert attributes.get("href", "#").startswith("#")

    def test_no_passwords_of_paths(self, text: str) -> None:
        assert "PASSWORD" not in text
        assert "s3a://…@bucket/out/people" in text

    def test_the_same_without_spark_in_another_process(self, text: str) -> None:
        code = """if True:
            import hashlib, sys
            from tests import reports
            from anonlib.pages import render
            print(hashlib.sha256(render(reports.record()).encode()).hexdigest())
            heavy = {"pyspark", "delta", "numba", "sklearn", "matplotlib.pyplot"}
            print(sorted(heavy & set(sys.modules)))
        """
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
        )
        assert done.stdout.split("\n")[:2] == [hashlib.sha256(text.encode()).hexdigest(), "[]"]


class TestMissing:
    @pytest.mark.parametrize("key", [*reports.unevaluated(), "all"])
    def test_parts_that_are_not_there(self, key: str) -> None:
        record = reports.unevaluated()
        for each in record if key == "all" else [key]:
            if each not in ("anonlib_record", "run_id"):
                record = {name: value for name, value in record.items() if name != each}
        assert "<h2" in render(record)

    def test_what_was_not_measured_is_said(self) -> None:
        record = reports.unevaluated()
        text = render(record)
        assert text.count("Nothing else was measured") == 2  # beside losses, and chances
        record["settings"]["persons"] = "unit of 1 columns: patient"
        by_unit = render(record)
        assert "Not measured: the config names no such measures" in by_unit
        assert "No distributions were measured." in text

    def test_chances_to_be_found_again(self) -> None:
        """By the sizes of classes, whatever was measured: not if rows are no persons."""
        record = reports.unevaluated()
        record["audit"] |= {"sizes": [[4, 5], [12, 10]], "n_rows": 140, "n_classes": 15}
        text = Page(render(record)).inside("table")
        for row in ("largest chance of a person 0.25", "mean chance of all persons 0.1071"):
            assert row in " ".join(text.split())
        assert "share of persons with a chance above 0.09 0.1429" in " ".join(text.split())
        record["settings"]["persons"] = "unit of 1 columns: patient"
        assert "largest chance" not in render(record)

    def test_losses_that_are_not_computable(self, page: Page) -> None:
        tables = page.inside("table")
        assert "0.102" in tables  # of a column
        notes = page.inside("ul")
        assert "The loss classification is not computable: there is no target of class" in notes
        assert "The loss entropy is not computable: no nominal quasi-identifier varies" in notes

    def test_figures_without_value_have_their_note(self, text: str) -> None:
        assert "About skewness of hours: the column is constant." in text
        assert "About journalist max, marketer: no population was given." in text
        assert "None" not in text
        assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.S).lower()

    @pytest.mark.parametrize(
        "record",
        [
            {},
            {"anonlib_record": 2, "run_id": "a"},
            {"anonlib_record": 1},
            {"anonlib_record": 1, "run_id": "a", "audit": {"verdicts": [{}]}},
            {"anonlib_record": 1, "run_id": "a", "evaluation": {"measures": {"a": {}}}},
            {"anonlib_record": 1, "run_id": "a", "losses": {"sse": "secret"}},
        ],
    )
    def test_no_record_or_a_damaged_one(self, record: Any) -> None:
        with pytest.raises(InputError, match="record") as caught:
            render(record)
        assert "secret" not in str(caught.value)


def test_a_measure_without_figures_says_so() -> None:
    """A heading with nothing under it could mean that nothing is wrong."""
    record = reports.record()
    record["evaluation"]["measures"]["dominance"] = reports.findings([])
    assert "Nothing was measured: the release has no column that this is about." in render(record)
    assert "Nothing was measured" not in render(reports.record())


def test_meanings_have_the_values_of_their_parameters() -> None:
    record = reports.record()
    figures = record["evaluation"]["measures"]["reidentification"]["figures"]
    figures.append(reports.figure("prosecutor_at_risk", 0.168))
    assert "(0.07)" not in render(record)
    label = "reidentification population=20,000 threshold=0.07"
    record["settings"]["measures"] = ["moments", label]
    assert "found with a chance above <code>threshold</code> (0.07) by an" in render(record)


def test_rules_of_a_policy_stand_below_each_other_on_a_phone() -> None:
    record = reports.record()
    rule = {"rule": "r", "state": "kept", "says": "It is.", "reason": "found", "source": "a law"}
    record["policy"] = [rule]
    page = render(record)
    assert '<table class="stacked" role="table">' in page
    assert '<td role="cell" data-name="it says">It is.</td>' in page
