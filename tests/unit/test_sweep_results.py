"""What the results of a sweep come to."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest
from markupsafe import escape

from anonlib.cli.show.sweep_table import print_sweep
from anonlib.pages.sweep import name_axes
from anonlib.sweeps.results import (
    ResultRow,
    SweepResult,
    as_csv,
    format_markdown,
    list_notes,
    render_results,
    sort_figures,
    summarize_cases,
)
from anonlib.sweeps.settings import Pick, SweepCase, SweepFile
from tests.unit.test_explorer import data_of
from tests.unit.test_point_work import point

K, KERNEL, LAMBDA = "privacy.models.0.k", "kernel.type", "kernel.lambda"


def row(seed: int, accuracy: float | None, case: str = "adult", **more: Any) -> ResultRow:
    parameters = {KERNEL: "mdav", K: 5, **more.pop("parameters", {})}
    cv = more.pop("cv", None)
    figures = {"accuracy": accuracy, "sse": 0.5, **({} if cv is None else {"cv_accuracy": cv})}
    return ResultRow(f"{case}{parameters}{seed}", case, parameters, seed, figures, **more)


def result(*rows: ResultRow, **more: Any) -> SweepResult:
    file = SweepFile(cases={"adult": SweepCase(config={})}, out="out", **more)
    return SweepResult(rows, len(rows), len(rows), "out/results", "out", file)


def strip_commas(text: str) -> str:
    return text.replace(",", "")


def test_means_and_spreads_over_seeds() -> None:
    rows = [row(0, 0.7), row(1, 0.9), row(0, 0.5, parameters={K: 50})]
    [found] = summarize_cases(result(*rows))
    assert found.heads == ("k", "seeds", "accuracy", "sse")
    assert found.rows == (
        ("5", "2", "0.800 ± 0.141", "0.500 ± 0.000"),
        ("50", "1", "0.500", "0.500"),
    )


def test_seeds_that_failed_are_told() -> None:
    rows = [row(0, 0.7), row(1, 0.9), row(2, None, error="E"), row(0, 0.5, parameters={K: 50})]
    [found] = summarize_cases(result(*rows))
    assert [line[:2] for line in found.rows] == [("5", "2, 1 failed"), ("50", "1")]


def test_a_number_is_no_name_of_a_key() -> None:
    models = [{"type": "l_diversity", "l": n} for n in (2, 3)]
    rows = [row(0, 0.7, parameters={"privacy.models.2": each}) for each in models]
    [found] = summarize_cases(result(*rows))
    assert found.heads[0] == "models.2"
    assert name_axes(["privacy.models.2", "privacy.models.0.k", "kernel.type"]) == {
        "privacy.models.2": "models.2",
        "privacy.models.0.k": "k",
        "kernel.type": "kernel",
    }


def test_notes_say_what_figures_are_of() -> None:
    rows = [row(i, 0.7, n_tried=400 + i, n_table=2000) for i in range(2)]
    (told,) = list_notes((), (), rows)
    assert told == "In adult: figures are of 400 to 401 of 2,000 rows (`sample` or `learn`)."
    (dealt,) = list_notes([point(controllers=3)], (), [row(0, 0.7, n_tried=9, n_table=9)])
    assert dealt == "In people: each controller's rows were released alone (`controllers`)."


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ((1234567.0, 1234568.0, 0.25), ("1234567", "1234568", "0.25")),
        ((0.12345, 0.12346), ("0.12345", "0.12346")),
        (("5", 5), ('"5"', "5")),
        (([1, 2], ["1", "2"]), ("[1, 2]", '["1", "2"]')),
        (
            ({"type": "x", "a": 0.12345678}, {"type": "x", "a": 0.12345679}),
            ("x a=0.12345678", "x a=0.12345679"),
        ),
    ],
)
def test_values_that_look_alike_are_not_one(values: Any, names: Any) -> None:
    """Neither in the summary nor on the page."""
    n = len(values)
    rows = [
        row(0, i / n, parameters={LAMBDA: each}, sizes={i + 2: 10}, least_persons=i + 2)
        for i, each in enumerate(values)
    ]
    [found] = summarize_cases(result(*rows, figures=("accuracy",)))
    assert found.rows == tuple((name, "1", f"{i / n:.3f}") for i, name in enumerate(names))
    text = render_results(result(*rows))
    data = data_of(text)
    assert len(data["settings"]) == n
    assert [*map(strip_commas, data["axes"][0][1])] == [*map(strip_commas, names)]
    told = "".join(text.split('id="explore-data">')[0:1] + text.split("</script>")[1:])
    for part in told.split(
        'id="explore-live"'
    ):  # the table of the explorer, and that of all points
        assert all(str(escape(name)) in strip_commas(part) for name in map(strip_commas, names))


@pytest.mark.parametrize(
    ("learn", "steps", "flatters"),
    [
        ({"split": "after"}, "target_tree", True),
        ({"split": "after"}, "single", False),
        ({"split": "after", "test": "raw"}, "target_tree", False),
        ({"split": "before"}, "target_tree", False),
    ],
)
def test_figures_that_flatter_are_told(
    learn: Any, steps: str, flatters: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"model": "logistic_regression", **learn}
    found = list_notes([point({"partition.steps": [{"type": steps}]}, learn=asked)], (), ())
    assert bool(found) is flatters
    told = replace(result(row(0, 0.5)), notes=found)
    print_sweep(told)
    for text in (format_markdown(told), render_results(told), capsys.readouterr().out):
        assert ("scores are too good" in text) is flatters


def test_parameters_picked_for_each_seed() -> None:
    """Seed 0 is best at 0.9 by cross-validation, at 0.1 by test; seed 1 at 0.1 by both."""
    scores = {
        (0, 0.1): (0.8, 0.6),
        (0, 0.9): (0.7, 0.9),
        (1, 0.1): (0.6, 0.7),
        (1, 0.9): (0.5, 0.5),
    }
    rows = [
        row(seed, accuracy, cv=cv, parameters={KERNEL: "mdav_sd", LAMBDA: value, "learn.folds": 5})
        for (seed, value), (accuracy, cv) in scores.items()
    ]
    plain = [row(0, 0.55), row(1, 0.65)]
    pick = Pick(parameters=(LAMBDA,))
    [found] = summarize_cases(result(*plain, *rows, pick=pick, figures=("accuracy",)))
    assert found.heads == ("kernel", "lambda", "seeds", "accuracy")
    assert found.rows == (
        ("mdav", "", "2", "0.600 ± 0.071"),
        ("mdav_sd", "0.1", "2", "0.700 ± 0.141"),
        ("mdav_sd", "0.9", "2", "0.600 ± 0.141"),
        ("mdav_sd", "cross-validated", "2", "0.650 ± 0.071"),
        ("mdav_sd", "at maximum", "2", "0.700 ± 0.141"),
    )


def test_nothing_is_picked_without_cross_validation_or_choice() -> None:
    rows = [row(0, 0.6, parameters={LAMBDA: value}) for value in (0.1, 0.9)]
    [found] = summarize_cases(result(*rows, pick=Pick(parameters=(LAMBDA,)), figures=("accuracy",)))
    assert [line[0] for line in found.rows] == ["0.1", "0.9", "at maximum"]


def test_the_least_error_is_picked_and_seeds_without_a_choice_are_left_out() -> None:
    points = [(0, 1, 11.0), (0, 2, 6.0), (1, 1, 12.0), (1, 2, 7.0), (2, 1, 3.0)]
    rows = [
        replace(row(s, None, parameters={LAMBDA: v}), figures={"rmse": e}) for s, v, e in points
    ]
    pick = Pick(parameters=(LAMBDA,), by="rmse")
    [found] = summarize_cases(result(*rows, pick=pick, figures=("rmse",)))
    assert found.rows[-1] == ("at maximum", "2", "6.500 ± 0.707")


def test_failed_points_are_counted_and_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = row(1, None, error="InfeasibleError: block: its 3 rows", parameters={K: 9})
    given = result(row(0, 0.7), failed, row(0, 0.9, case="heart"))
    assert [(s.case, s.n_failed, len(s.rows)) for s in summarize_cases(given)] == [
        ("adult", 1, 1),
        ("heart", 0, 1),
    ]
    monkeypatch.setenv("COLUMNS", "40")
    print_sweep(given)
    said = capsys.readouterr().out
    assert "1 point failed" in said
    assert "\n\n1 point failed.\n" in format_markdown(given)
    assert "adult: InfeasibleError: block: its 3 rows" in said
    assert given.to_dict()["n_failed"] == 1


def test_figures_that_are_not_defined_are_left_empty() -> None:
    [found] = summarize_cases(result(row(0, None), row(1, None), figures=("accuracy", "f1")))
    assert found.rows == (("2", ""),)


def test_keys_of_one_last_part_are_told_apart() -> None:
    rows = [row(0, 0.7, parameters={"a.k": i, K: i}) for i in (1, 2)]
    [found] = summarize_cases(result(*rows))
    assert found.heads[:2] == (K, "a.k")


def test_parts_that_other_keys_set_are_told_by_those() -> None:
    """`k: 20` of a list of models is not what was asked for where `privacy.models.0.k` is 5."""

    def told(parameters: dict[str, Any]) -> ResultRow:
        return ResultRow("", "adult", parameters, 0, {})

    models = [{"type": "k_anonymity", "k": 20}, {"type": "l_diversity", "l": 2}]
    parts = {"privacy.models.0.k": 5, "kernel.type": "mdav"}
    found = told({"privacy.models": models, **parts})
    assert found.text("privacy.models") == "k_anonymity, l_diversity l=2"
    assert found.flat()["privacy.models"] == "k_anonymity, l_diversity l=2"
    assert found.text("privacy.models.0.k") == "5"
    assert found.text("seeds") == ""
    # What comes later has the last word; and parts of parts.
    before = told({"privacy.models.0.k": 5, "privacy.models": models})
    assert before.text("privacy.models") == "k_anonymity k=20, l_diversity l=2"
    deeper = told({"kernel": {"type": "a", "b": {"c": 1, "d": 2}}, "kernel.b.c": 3})
    assert deeper.text("kernel") == "a b=d=2"
    whole = told({"kernel": {"type": "a", "b": 1}, "kernel.b": 3, "kernel.e": 4})
    assert whole.text("kernel") == "a"


def test_files() -> None:
    given = result(row(0, 0.7, parameters={"a|b": "x|y"}), row(0, 0.8, parameters={"a|b": "z"}))
    lines = format_markdown(given).splitlines()
    assert lines[0] == "## adult"
    assert lines[2] == "| a\\|b | seeds | accuracy | sse |"
    assert lines[4] == "| x\\|y | 1 | 0.700 | 0.500 |"
    [first, _] = csv.DictReader(io.StringIO(as_csv(given)))
    assert (first["case"], first["a|b"], first["accuracy"]) == ("adult", "x|y", "0.7")


def test_no_text_is_a_formula() -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\t=1", "a=1", "", "-"]
    rows = [row(0, -0.5, parameters={"=key": text, K: -5}, error=text) for text in texts]
    [heads, *lines] = csv.reader(io.StringIO(as_csv(result(*rows))))
    assert "'=key" in heads
    for name in ("'=key", "error"):
        told = [line[heads.index(name)] for line in lines]
        assert told == ["'=1+1", "'+1", "'-1", "'@x", "'\t=1", "a=1", "", "'-"]
    assert {(line[heads.index(K)], line[heads.index("accuracy")]) for line in lines} == {
        ("-5", "-0.5")
    }


def test_points_that_lack_a_figure_have_an_empty_cell() -> None:
    told = as_csv(result(row(0, 0.5), row(1, 0.5, cv=0.25)))
    [heads, first, second] = csv.reader(io.StringIO(told))
    place = heads.index("cv_accuracy")
    assert (first[place], second[place]) == ("", "0.25")


def test_markdown_has_no_html() -> None:
    rows = [row(0, 0.5, case="<b>", parameters={"a": text}) for text in ("<img src=x>", "y|z")]
    text = format_markdown(result(*rows))
    assert "## &lt;b>" in text
    assert "| &lt;img src=x> |" in text
    assert "<" not in text


def test_figures_that_no_point_has_are_told() -> None:
    rows = [row(0, 0.7), row(1, None)]
    assert list_notes((), ("accuracy", "sse"), rows) == ()
    assert list_notes((), (), rows) == ()
    (told,) = list_notes((), ("acuracy", "sse"), rows)
    assert told == "`figures`: no point has acuracy; they have accuracy, sse."


def test_figures_have_one_order() -> None:
    """A map of Delta gives them in any."""
    names = ["ncp", "sse", "accuracy", "auc", "ari", "cv_auc", "mean_error", "raw_accuracy"]
    for given in (names, names[::-1], sorted(names)):
        mixed = replace(row(0, 0.5), figures=dict.fromkeys(given, 0.1))
        assert [*sort_figures(mixed).figures] == names
        assert sort_figures(mixed) == mixed
