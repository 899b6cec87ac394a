"""What a page says in the units and words of its readers: values of columns, losses, models,
notes; and where its parts stand."""

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from anonlib import registry
from anonlib.loss import Metric
from anonlib.pages import render
from anonlib.pages.loss_groups import explain_absent, group_losses
from anonlib.pages.measures import find_middles, show_measures
from anonlib.pages.release import release_page
from anonlib.pages.specs import read_verdict_spec
from anonlib.pages.words import as_sentence, spell_label, spell_model
from anonlib.run.source_summary import _moments
from anonlib.table.encoding import Encoding, fit_whole
from anonlib.table.schema import Column, Role, Scale
from tests import reports


def encoding(values: list[Any], scale: Scale, type: pa.DataType, **fields: Any) -> Encoding:
    column = Column("a", "c0", Role.QUASI_IDENTIFIER, type, str(type), scale=scale, **fields)
    return fit_whole(column, pa.array(values, type))


class TestMoments:
    """A column's mean is in its own units: never in ranks, days or microseconds."""

    def test_a_month_in_months(self) -> None:
        months = encoding([1, 2, 1, 2], Scale.ORDINAL, pa.int32())
        assert months.mean == 0.5  # of ranks
        assert _moments(months, pa.int32()) == {"mean": 1.5, "sd": 0.5, "form": "number"}

    def test_a_birth_date_is_a_date(self) -> None:
        days = [date(1970, 1, 1), date(1970, 1, 11)]
        for scale in (Scale.CONTINUOUS, Scale.ORDINAL):
            found = _moments(encoding(days, scale, pa.date32()), pa.date32())
            assert found == {"mean": "1970-01-06", "sd": pytest.approx(5), "form": "date"}

    def test_a_timestamp_to_the_minute(self) -> None:
        type = pa.timestamp("us", "UTC")
        times = [datetime(2020, 1, 1, 6), datetime(2020, 1, 2, 6)]  # noqa: DTZ001
        found = _moments(encoding(times, Scale.CONTINUOUS, type), type)
        assert found == {"mean": "2020-01-01 18:00", "sd": pytest.approx(0.5), "form": "time"}

    @pytest.mark.parametrize("values", [[1, 2, 4], [1.0, 1.5, 7.0]])
    def test_numbers_at_uneven_distances_have_ranks_only(self, values: list[Any]) -> None:
        type = pa.array(values).type
        assert _moments(encoding(values, Scale.ORDINAL, type), type)["form"] == "rank"

    def test_words_have_ranks_only(self) -> None:
        order = ("low", "high")
        found = encoding(["low", "high"], Scale.ORDINAL, pa.string(), order=order)
        assert _moments(found, pa.string())["form"] == "rank"

    def test_a_date_beyond_all_calendars(self) -> None:
        far = Encoding("c0", Scale.CONTINUOUS, missing=False, mean=5e6, sd=1.0)
        assert _moments(far, pa.date32()) == {"mean": None, "sd": None, "form": "date"}

    def test_the_page_has_them(self) -> None:
        record = reports.record()
        rows: Any = [("low", 0.5, 0.5), ("mid", 0.3, 0.3), ("high", 0.1, 0.1), ("missing", 0.1, 0)]
        heads = ("category", "source", "release")
        series = [reports.series("distribution", "education", heads, rows)]
        record["overview"] = reports.findings([], series)
        table = release_page(record).source
        assert table is not None
        found = {row[0]: row[3:] for row in table.rows}
        assert found["birth_date"] == ("1975-10-20", "6,747 days")
        assert found["education"] == ("low", None)
        assert found["age"] == (49.6, 18.4)

    def test_the_middle_of_ranks(self) -> None:
        record = reports.record()
        heads = ("category", "source", "release")

        def middle(*rows: tuple[str, float, float]) -> dict[str, str]:
            series = [reports.series("distribution", "education", heads, rows)]
            return find_middles(record | {"overview": reports.findings([], series)})

        rows = (("low", 0.3, 0), ("mid", 0.3, 0), ("high", 0.2, 0))
        assert middle(*rows) == {"education": "mid"}
        assert middle(*rows, ("missing", 0.2, 0)) == {"education": "mid"}
        assert middle(("low", 0.6, 0), ("high", 0.4, 0)) == {"education": "low"}


class TestLosses:
    def test_by_what_they_look_at(self) -> None:
        groups = group_losses(reports.record()["losses"])
        assert [group.title for group in groups] == [
            "All quasi-identifiers",
            "Numbers, dates and ranks",
            "Categories",
            "Sizes of cells",
        ]
        found = {loss.name: loss for group in groups for loss in group.losses}
        assert (found["precision"].worse, found["ncp"].worse) == ("less is worse", "more is worse")
        assert found["cell size"].share is None
        assert found["ncp"].meaning.startswith("Share of its whole range that a released value")
        assert all("worse" not in loss.meaning for loss in found.values())

    def test_every_metric_says_what_it_means(self) -> None:
        for plugin in registry.plugins("metric").values():
            assert issubclass(plugin, Metric)
            assert ";" in plugin.meaning

    def test_metrics_of_other_packages(self) -> None:
        (group,) = group_losses({"unheard_of": 2.0})
        assert group.title == "All quasi-identifiers"
        assert [*explain_absent({"unheard_of": None})] == [
            "The loss unheard of is not computable: it has no value."
        ]

    def test_the_metric_is_the_last_word(self) -> None:
        text = render(reports.record())
        row = text.partition('<th role="rowheader">Share of its whole range')[2].partition("</tr>")
        assert row[0].endswith('<td role="cell">more is worse</td><td role="cell">ncp</td>')


class TestWords:
    @pytest.mark.parametrize(
        ("label", "words"),
        [
            ("k_anonymity k=10", "k-anonymity, k = 10"),
            ("l_diversity l=2 attribute=marital status", "l-diversity of marital status, l = 2"),
            ("site A: t_closeness t=0.2 attribute=a", "site A: t-closeness of a, t = 0.2"),
            ("alpha_k_anonymity alpha=0.5 k=2", "alpha k-anonymity, alpha = 0.5, k = 2"),
        ],
    )
    def test_models(self, label: str, words: str) -> None:
        assert spell_model(read_verdict_spec({"model": label})) == words

    def test_plugins(self) -> None:
        assert spell_label("mdav") == "mdav"
        label = "kmeans max_iter=20 balance=0.35"
        assert spell_label(label) == "kmeans (max iter 20, balance 0.35)"

    def test_notes_are_sentences(self) -> None:
        assert as_sentence("column age: too few") == "Column age: too few."
        assert as_sentence("It is.") == "It is."

    def test_a_note_on_all_figures_of_a_part_names_the_part(self) -> None:
        """A part with one figure of its own is named by this figure."""
        note, of = "few rows", "univariate"
        figures = [reports.figure(name, 0.5, of, note) for name in ("attack_rate", "risk", "low")]
        figures += [reports.figure("risk", 0.5, "multivariate", "none"), reports.figure("low", 0.1)]
        evaluation = {"measures": {"singling_out": reports.findings(figures)}}
        (shown,) = show_measures({"evaluation": evaluation}, risk=True)
        assert shown.notes == ("About univariate: few rows.", "About risk of multivariate: none.")


class TestPlaces:
    def test_one_histogram_of_class_sizes(self) -> None:
        text = render(reports.record())
        assert text.count("<figcaption>Sizes of classes") == 1
        assert "Class sizes" not in text
        assert text.count("Chances to be found again") == 0  # the measure has them
        assert "<caption>Chances to be found again" in render(reports.unevaluated())

    def test_what_has_charts_is_as_wide_as_the_page_and_last(self) -> None:
        evaluation = reports.record()["evaluation"]
        evaluation["measures"]["order"] = reports.findings([reports.figure("chance", 0.1)])
        shown = {each.name: each for each in show_measures({"evaluation": evaluation}, risk=True)}
        assert [each.alone for each in shown.values()] == [True, False, False]
        assert [*shown] == ["order", "reidentification", "disclosure"]
        assert [each.broad for each in shown.values()] == [True, True, True]
        assert [each.beside for each in shown.values()] == [True, True, False]
