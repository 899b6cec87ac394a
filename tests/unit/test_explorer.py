"""The part of pages where settings are chosen: what it has, what it leaves out, its policy."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml

import anonlib
from anonlib import registry
from anonlib.config.model import Config
from anonlib.in_hand.suggestion import Attempt, Choice
from anonlib.loss.ncp import Ncp
from anonlib.pages import render_sweep
from anonlib.pages.choices import render_suggestion
from anonlib.pages.explorer import Goal, find_frontier, make_explorer
from anonlib.sweeps.results import render_results
from anonlib.text import printable
from tests import reports
from tests.explored import CONFIG, KERNEL, KERNELS, KS, K, swept

AXES = {"kernel": "kernel", "k": "k"}
GOALS = (Goal("risk", "risk", risk=True), Goal("loss", "loss"))


class Scripts(HTMLParser):
    """The scripts of a page, and whether any element has a handler."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[tuple[dict[str, str | None], str]] = []
        self.handlers: list[str] = []
        self.policy = ""
        self._inside: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.handlers += [name for name in given if name.startswith("on")]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(given["content"])
        self._inside = given if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.texts.append((self._inside, data))


@cache
def usual() -> str:
    return render_results(swept())


def data_of(text: str) -> dict[str, Any]:
    [told] = [t for given, t in Scripts(text).texts if given.get("id") == "explore-data"]
    return dict(json.loads(told))


def config_of(data: dict[str, Any], i: int) -> str:
    return "\n".join(chain(*(data["lines"][a:b] for a, b in data["settings"][i]["yaml"]))) + "\n"


def test_the_meanings_of_figures_of_a_sweep() -> None:
    assert "Share of the spread of numbers and ranks that lies within cells;" in usual()
    assert "The score of the same model learning from original rows;" in usual()


def test_one_script_and_its_hash() -> None:
    found = Scripts(usual())
    [(_, script)] = [(g, t) for g, t in found.texts if g.get("type") != "application/json"]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert found.policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; style-src")
    assert "unsafe-eval" not in found.policy
    assert found.handlers == []
    for word in ("eval", "innerHTML", "fetch", "XMLHttpRequest", "import("):
        assert word not in script


def test_pages_without_a_choice_have_no_script() -> None:
    axes, figures = ("case", KERNEL, K, "seed"), ("accuracy",)
    rows = reports.sweep_rows()
    text = render_sweep(rows, title="t", axes=axes, figures=figures)
    assert Scripts(text).texts == []
    assert "script-src" not in Scripts(text).policy
    assert make_explorer([{"k": 5, "risk": 0.2, "loss": 0.1}], AXES, GOALS) is None
    assert make_explorer([{"k": k, "risk": None, "loss": k} for k in (5, 6)], AXES, GOALS) is None


def test_means_deviations_and_sizes_of_classes() -> None:
    result = swept()
    data = data_of(usual())
    labels = [label for label, *_ in data["axes"]]
    assert labels == ["partitioner", "kernel", "k"]
    assert data["colour"] == 1
    names = [label for label, *_ in data["goals"]]
    assert names[:4] == [
        "largest chance to be found",
        "mean chance to be found",
        "share of persons with a chance above 0.09",
        "accuracy",
    ]
    assert {label: less for label, less, risk in data["goals"] if not risk} == {
        "accuracy": False,
        "sse": True,
        "ncp": True,
        "precision": False,
    }
    assert "raw accuracy" not in names
    for setting in data["settings"]:
        steps, kernel, k = (data["axes"][i][1][at] for i, at in enumerate(setting["at"]))
        rows = [
            row
            for row in result.rows
            if (row.parameters[KERNEL], row.parameters[K], row.text("partition.steps"))
            == (kernel, int(k), steps)
            and row.error is None
        ]
        assert setting["n"] == len(rows)
        mean, deviation = setting["figures"][names.index("sse")]
        found = [row.figures["sse"] for row in rows]
        assert mean == pytest.approx(np.mean(found), rel=1e-4)
        if len(rows) > 1:
            assert deviation == pytest.approx(np.std(found, ddof=1), rel=1e-4)
        else:
            assert deviation is None
        assert setting["figures"][0][0] == pytest.approx(1 / int(k))
        chances = [r.n_cells / sum(s * n for s, n in r.sizes.items()) for r in rows]
        assert setting["figures"][1][0] == pytest.approx(np.mean(chances), rel=1e-4)
        assert sum(share for _, share in setting["sizes"]) == pytest.approx(1, abs=1e-4)
    two = next(s for s in data["settings"] if s["at"] == [0, 0, 0])
    assert [name for name, _ in two["sizes"]] == ["2–4"]
    ten = next(s for s in data["settings"] if s["at"] == [0, 0, 2])
    rows_of_ten = {10: 40 * 2, 11: 2 * 2, 20: 1 + 2}  # of both seeds
    total = sum(size * n for size, n in rows_of_ten.items())
    assert ten["sizes"] == [
        ["10–19", pytest.approx((800 + 44) / total, rel=1e-4)],
        ["20–49", pytest.approx(60 / total, rel=1e-4)],
    ]


def test_results_without_sizes_have_the_largest_chance() -> None:
    """Those of earlier versions, and of persons with several rows."""
    result = swept()
    rows = tuple(replace(row, sizes={}) for row in result.rows)
    data = data_of(render_results(replace(result, rows=rows)))
    assert [label for label, _, risk in data["goals"] if risk] == ["largest chance to be found"]
    assert all(setting["sizes"] == [] for setting in data["settings"])


def test_every_config_loads_and_is_that_of_its_setting() -> None:
    data = data_of(usual())
    seen = set()
    for i, setting in enumerate(data["settings"]):
        config = anonlib.parse(yaml.safe_load(config_of(data, i)))
        steps, kernel, k = (data["axes"][axis][1][at] for axis, at in enumerate(setting["at"]))
        assert (config.kernel.type, str(config.k)) == (kernel, k)
        assert [step.type for step in config.partition.steps] == [steps]
        assert config.release.path == "out/people"
        assert config.review == ()
        seen.add((steps, kernel, k))
    assert len(seen) == len(data["settings"]) == 2 * len(KERNELS) * len(KS)


def test_a_config_without_a_release_and_with_other_columns_is_to_be_reviewed() -> None:
    result = swept()
    base = {key: value for key, value in CONFIG.items() if key != "release"}
    case = result.file.cases["people"].model_copy(update={"derive": {"age": "age + 1"}})
    file = result.file.model_copy(update={"cases": {"people": case}})
    data = data_of(render_results(replace(result, bases={"people": base}, file=file)))
    config = anonlib.parse(yaml.safe_load(config_of(data, 0)))
    assert config.review == ("attributes.age", "release.path")


def test_what_the_figures_are_of_is_told_where_it_is_a_part() -> None:
    """A release by such a config is of all rows, and of one controller."""
    result = swept()
    rows = [replace(row, n_tried=500 + row.seed, n_table=2000) for row in result.rows]
    file = result.file.model_copy(update={"controllers": 3})
    text = render_results(replace(result, rows=tuple(rows), file=file))
    data = data_of(text)
    told = data["settings"][0]["part"]
    assert told == (
        "A release by this config has other figures: the figures are of 500 to 501 of 2,000 rows "
        "(sample or learn of the sweep); rows were dealt out to 3 controllers (controllers of the "
        "sweep)."
    )
    written = config_of(data, 0)
    assert 'look at it: "source"; the figures are of 500 to 501 of 2,000 rows' in written
    assert 'look at it: "partition"; rows were dealt out to 3 controllers' in written
    assert anonlib.parse(yaml.safe_load(written)).review == ("source", "partition")
    assert {setting["part"] for setting in data_of(usual())["settings"]} == {""}


def test_a_setting_some_of_whose_seeds_failed_is_not_compared() -> None:
    result = swept(ks=(5, 10))
    best = {KERNEL: "mdav", K: 10, "seed": 1}
    rows = [
        replace(row, figures={}, sizes={}, error="E", least_persons=0)
        if {**row.parameters, "seed": row.seed}.items() >= best.items()
        else row
        for row in result.rows
    ]
    text = render_results(replace(result, rows=tuple(rows)))
    broken = [(s["n"], s["of"]) for s in data_of(text)["settings"] if s["n"] < s["of"]]
    assert broken == [(1, 2), (1, 2), (1, 2)]  # two partitioners, and the last point
    still = text.split('<div id="explore-still">', 1)[1].split('<div id="explore-live"', 1)[0]
    assert re.findall(r"<td[^>]*>mdav</td>.*?>(yes|no)<", still, re.DOTALL) == [
        *("yes", "no", "no", "no")
    ]
    points = text.split('id="points"', 1)[1]
    assert ">failed</th>" in points
    assert points.count(">1 of 2</td>") == 3


def test_gates_of_a_case_are_lines_of_its_own() -> None:
    gates = [
        gate("reidentification.marketer", at_most=0.07),
        gate("reidentification.prosecutor_at_risk", at_most=0.2),
        gate("disclosure.gain", at_most=0.3),
    ]
    config = {"evaluate": {"measures": ["reidentification", "disclosure"]}, "gates": gates}
    text = render_results(swept(**config))
    assert data_of(text)["bounds"] == [[1, 0.07, "gate ≤ 0.07", True], [2, 0.2, "gate ≤ 0.2", True]]
    assert "points are not measured by them: disclosure.gain at most 0.3." in text
    two = swept(cases=("people", "others"), seeds=1, **config)
    bases = {**two.bases, "people": CONFIG}
    data = data_of(render_results(replace(two, bases=bases)))
    assert data["axes"][0][:2] == ["case", ["people", "others"]]
    assert data["bounds"][0] == [1, 0.07, "gate ≤ 0.07", True, 0, 1]


def test_figures_are_judged_by_their_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(Ncp):
        meaning: ClassVar[str] = "share that is kept; 0 to 1, less is worse"

    class Silent(Ncp):
        meaning: ClassVar[str] = "a number"

    own = registry.plugins
    added = {"kept": Kept, "silent": Silent}
    known = lambda family: {**own(family), **(added if family == "metric" else {})}
    monkeypatch.setattr(registry, "plugins", known)
    names = ["kept", "silent", "mean_error", "rmse", "r2", "nmi", "precision", "average_class_size"]
    result = swept()
    rows = [replace(row, figures=dict.fromkeys(names, 0.5)) for row in result.rows[:-1]]
    text = render_results(replace(result, rows=tuple(rows)))
    less = {label: less for label, less, risk in data_of(text)["goals"] if not risk}
    assert less == {
        "kept": False,
        "silent": True,
        "mean error": True,
        "rmse": True,
        "r2": False,
        "nmi": False,
        "precision": False,
        "average class size": True,
    }
    utilities = text.split('<select id="explore-utility"')[1].split("</select>")[0]
    offered = re.findall(r"<option[^>]*>([^<]*)<", utilities)
    # One has no direction, the other is a multiple of k.
    assert {*less} - {*offered} == {"silent", "average class size"}
    same = [row for row in rows if row.parameters[K] == 5]
    assert ">average class size</option>" in render_results(replace(result, rows=tuple(same)))


def test_the_largest_chance_is_that_of_all_seeds() -> None:
    result = swept(ks=(5, 10))
    rows = [replace(row, sizes={row.seed + 2: 9, 50: 1}) for row in result.rows[:-1]]
    data = data_of(render_results(replace(result, rows=tuple(rows))))
    assert data["settings"][0]["figures"][0] == [0.5, None]
    assert data["settings"][0]["figures"][1][1] is not None


def test_no_text_ends_its_element() -> None:
    evil = ("</script><script>x", "<!--<script>", "a & b", "\u2028")
    text = render_results(swept(ks=(5, 10), cases=evil, seeds=1))
    assert text.count("<script") == usual().count("<script") == 2
    assert text.count("</script") == usual().count("</script")
    assert "<!--" not in text
    assert data_of(text)["axes"][0] == ["case", [*map(printable, evil)], True]


def test_the_frontier_is_what_nothing_is_better_than() -> None:
    random = np.random.default_rng(1)
    for n in range(1, 30):
        points = [(float(a), float(b)) for a, b in random.integers(0, 6, (n, 2))]
        for less, sign in ((True, 1), (False, -1)):
            found = find_frontier(points, less=less)
            assert [points[i] for i in found] == sorted(points[i] for i in found)
            expected = {
                i  # of equal points all
                for i, (x, y) in enumerate(points)
                if not any(
                    (a, sign * b) != (x, sign * y) and a <= x and sign * b <= sign * y
                    for a, b in points
                )
            }
            assert {*found} == expected
            assert len(found) == len(expected)


def test_readers_without_scripts_have_a_chart_for_each_table() -> None:
    text = render_results(swept(cases=("people", "others"), seeds=1))
    still = text.split('<div id="explore-still">', 1)[1].split('<div id="explore-live"', 1)[0]
    assert re.findall(r"<figcaption>(\w+) <small>", still) == ["people", "others"]
    assert "accuracy by largest chance to be found" in still
    assert still.count(">yes<") == 2 * len(KS)


@pytest.mark.slow
def test_a_page_of_500_trials_is_small() -> None:
    result = swept(ks=range(2, 86), seeds=1)
    assert len(result.rows) > 500
    assert len(render_results(result).encode()) < 1_000_000


def suggestion_page(**config: Any) -> tuple[str, dict[str, Any], Config]:
    """The page of four attempts and one that failed, its data and its config."""
    given = anonlib.parse(CONFIG | config)
    attempts = [
        Attempt(
            kernel,
            k,
            anonlib.parse(CONFIG | {"seed": 100 * i + k}),
            k / 100,
            0.9 / k,
            0,
            1.0,
            {k: 3},
            least_persons=k,
        )
        for i, kernel in enumerate(("mdav", "refine"), 1)
        for k in (5, 10)
    ]
    failed = Attempt("mondrian", 5, anonlib.parse(CONFIG), error="the models can't hold")
    choices = [
        Choice("least loss", "It loses least.", attempts[2].config),
        Choice("safer", "It is safer.", attempts[1].config),
    ]
    text = render_suggestion(choices, [*attempts, failed], attempts[:2], ("4 attempts",), given)
    return text, data_of(text), attempts[0].config


def test_the_page_of_a_suggestion_is_the_same() -> None:
    _, data, config = suggestion_page()
    assert [label for label, *_ in data["goals"]] == [
        "mean chance to be found",
        "largest chance to be found",
        "share of persons with a chance above 0.09",
        "loss",
        "rows suppressed",
        "seconds",
    ]
    assert [setting["error"] for setting in data["settings"]][-1] == "the models can't hold"
    assert data["settings"][0]["sizes"] == [["5–9", 1.0]]
    assert [pair and pair[0] for pair in data["settings"][1]["figures"]][:4] == [
        *(0.09, 0.1, 1.0, 0.1)
    ]
    assert anonlib.parse(yaml.safe_load(config_of(data, 0))) == config


def test_choices_are_named_in_the_chart_of_a_suggestion() -> None:
    text, data, _ = suggestion_page()
    tags = [setting["tag"] for setting in data["settings"]]
    assert tags == ["", "2 safer", "1 least loss", "", ""]
    assert "<h3>1 Least loss</h3>" in text
    still = text.split('<div id="explore-still">', 1)[1].split('<div id="explore-live"', 1)[0]
    assert ">2 safer<" in still.replace("\n", "")
    assert data_of(usual())["bounds"] == []


def gate(figure: str, **bound: float) -> dict[str, Any]:
    return {"figure": figure, **bound}


@pytest.mark.parametrize(
    ("gates", "bounds"),
    [
        (
            [],
            [[0, 0.09, "0.09 EMA/Health Canada", True], [1, 0.09, "0.09 EMA/Health Canada", True]],
        ),
        (
            [
                gate("reidentification.marketer", at_most=0.05),
                gate("reidentification.prosecutor_max", at_most=0.09),
                gate("reidentification.prosecutor_at_risk", at_most=0.2),
                gate("disclosure.gain", at_most=0.3),
            ],
            [
                [0, 0.05, "gate ≤ 0.05", True],
                [1, 0.09, "gate ≤ 0.09, EMA/Health Canada", True],
                [2, 0.2, "gate ≤ 0.2", True],
                [0, 0.09, "0.09 EMA/Health Canada", True],
            ],
        ),
    ],
)
def test_gates_are_lines_in_the_chart_of_a_suggestion(
    gates: list[dict[str, Any]], bounds: list[list[Any]]
) -> None:
    measures = ["reidentification", "disclosure"]
    text, data, _ = suggestion_page(evaluate={"measures": measures}, gates=gates)
    assert data["bounds"] == bounds
    assert ("attempts are not measured by it: disclosure.gain at most 0.3." in text) == bool(gates)
    still = text.split('<div id="explore-still">', 1)[1].split('<div id="explore-live"', 1)[0]
    assert "EMA/Health Canada" in still


def test_a_gate_on_a_larger_population_is_no_line() -> None:
    """Attempts know nothing of the population, and its chances are smaller."""
    measure = {"type": "reidentification", "population": 10_000}
    gates = [gate("reidentification.marketer", at_most=0.01)]
    text, data, _ = suggestion_page(evaluate={"measures": [measure]}, gates=gates)
    assert [value for _, value, *_ in data["bounds"]] == [0.09, 0.09]
    assert "attempts are not measured by it: reidentification.marketer at most 0.01." in text
