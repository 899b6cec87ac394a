"""The page of two runs: what differs, what is better by each figure's own direction, and what
can't be compared."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonlib
from anonlib.cli import main
from anonlib.errors import InputError
from anonlib.pages import render_comparison
from anonlib.pages.comparison import (
    ALIKE,
    OTHER,
    THIS,
    UNKNOWN,
    explain_apart,
    make_comparison_page,
)
from tests import reports

EVIL = '<script>alert("x")</script>'


def two() -> tuple[dict[str, Any], dict[str, Any]]:
    """Two runs of one source that differ in nothing but their ids."""
    return reports.record(), reports.record() | {"run_id": "20260201T101500Z-0"}


def rows(table: Any) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in table.rows}


class TestBetter:
    def test_by_the_direction_of_each_figure(self) -> None:
        this, other = two()
        this["losses"] = {"ncp": 0.1, "precision": 0.6, "sse": 0.2, "entropy": None}
        other["losses"] = {"ncp": 0.2, "precision": 0.7, "sse": 0.2, "entropy": 0.1}
        found = rows(make_comparison_page(this, other).losses)
        assert found["ncp"][:3] == (0.1, 0.2, THIS)
        assert found["precision"][:3] == (0.6, 0.7, OTHER)
        assert found["sse"][2] == ALIKE
        assert found["entropy"][:3] == (None, 0.1, UNKNOWN)
        assert "more is worse" in found["ncp"][3]

    def test_suppressed_rows_are_a_loss(self) -> None:
        this, other = two()
        this["n_suppressed"], other["n_suppressed"] = 0, this["n_rows_in"] // 2
        page = make_comparison_page(this, other)
        assert rows(page.losses)["rows suppressed"][:3] == (0, 0.5, THIS)
        assert "this run is better by 1, the other by 0" in " ".join(page.summary)
        this["n_suppressed"] = other["n_suppressed"] = 0
        assert "rows suppressed" not in rows(make_comparison_page(this, other).losses)

    def test_figures_for_comparison_are_not_judged(self) -> None:
        this, other = two()
        own = other["evaluation"]["measures"]["disclosure"]["figures"]
        own[0]["value"], own[1]["value"] = 0.9, 0.9  # `correct` is a risk, `base` is a guess
        page = make_comparison_page(this, other)
        found = rows(next(table for table in page.risks if table.caption == "disclosure"))
        assert found["correct of diagnosis"][2] == THIS
        assert found["base of diagnosis"][2] == UNKNOWN

    def test_risks_are_apart_from_utility(self) -> None:
        page = make_comparison_page(*two())
        risks = [table.caption for table in page.risks]
        assert risks == ["class sizes", "reidentification", "disclosure"]
        assert "learning" in [table.caption for table in page.utilities]
        assert page.comparable

    def test_multiples_of_k_are_not_compared_across_k(self) -> None:
        this, other = two()
        other["audit"]["verdicts"][0] |= {"model": "k_anonymity k=5", "required": 5, "value": 5}
        page = make_comparison_page(this, other)
        assert rows(page.losses)["average class size"][2] == UNKNOWN
        assert rows(page.losses)["cell size"][2] == ALIKE
        assert rows(page.models)["k-anonymity"] == ("k = 10", "10", "k = 5", "5")

    def test_chance_by_class_size(self) -> None:
        this, other = two()
        other["audit"]["sizes"] = [[5, 6000]]
        page = make_comparison_page(this, other)
        assert rows(page.risks[0])["largest chance to be found"][:3] == (0.1, 0.2, THIS)

    def test_a_measure_with_other_parameters(self) -> None:
        this, other = two()
        this["settings"]["measures"] = ["learning holdout=0.3", "queries"]
        other["settings"]["measures"] = ["learning holdout=0.2", "queries"]
        other["evaluation"]["measures"]["learning"]["figures"][0]["value"] = 0.1
        page = make_comparison_page(this, other)
        learning = next(table for table in page.utilities if table.caption == "learning")
        assert {row[3] for row in learning.rows} == {UNKNOWN}
        assert "The runs made learning with other parameters: its figures are not compared." in (
            page.notes
        )

    def test_summary(self) -> None:
        this, other = two()
        other["settings"]["kernel"] = "mondrian"
        other["losses"]["ncp"] = 0.9
        page = make_comparison_page(this, other)
        risk, utility, settings = page.summary
        assert risk.startswith("Of ")
        assert "figures of risk, this run is better by 0, the other by 0, and" in risk
        assert "of loss and utility, this run is better by 1, the other by 0, and" in utility
        assert settings == "Settings that differ: kernel."
        assert rows(page.settings) == {"kernel": ("mdav", "mondrian")}
        assert make_comparison_page(*two()).summary[-1] == "Settings that differ: none."

    def test_models_that_fail_come_first(self) -> None:
        this, other = two()
        other["audit"]["verdicts"][1]["holds"] = False
        page = make_comparison_page(this, other)
        assert page.summary[0] == "1 privacy model of the other run does not hold."
        assert rows(page.models)["l-diversity of diagnosis"][3] == "2 or better, FAILS"

    def test_names_of_columns_with_blanks(self) -> None:
        this, other = two()
        label = "l_diversity l=2 attribute=marital status kind=distinct"
        other["audit"]["verdicts"][1]["model"] = label
        found = rows(make_comparison_page(this, other).models)
        assert found["l-diversity of marital status, kind = distinct"][2] == "l = 2"

    def test_models_that_differ_in_kind_or_number(self) -> None:
        """None hides another; each kind has a row, and each number of one kind."""
        this, other = two()
        k, diverse, *_ = this["audit"]["verdicts"]
        specs = [{"l": 2}, {"l": 3, "kind": "entropy"}, {"l": 4, "kind": "entropy"}]
        this["audit"]["verdicts"] = [
            k,
            *(
                {**diverse, "spec": {"type": "l_diversity", "attribute": "a l=9", **s}}
                for s in specs
            ),
        ]
        table = make_comparison_page(this, other).models
        assert table is not None
        asked = [(row[0], row[1]) for row in table.rows]
        assert asked[1:4] == [
            ("l-diversity of a l=9", "l = 2"),
            ("l-diversity of a l=9, kind = entropy", "l = 3"),
            ("l-diversity of a l=9, kind = entropy", "l = 4"),
        ]


class TestApart:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"source_version": 7}, "other versions of the source (none and 7)"),
            ({"n_rows_in": 30013}, "the source had 30,012 and 30,013 rows"),
            ({"missing": {"age": 3}}, "other numbers of missing values in age"),
            ({"categories": {"sex": 3}}, "other numbers of categories in sex"),
            ({"n_rows_out": 400}, "other run added rows to a table"),
        ],
    )
    def test_other_rows(self, change: dict[str, Any], reason: str) -> None:
        this, other = two()
        other |= change
        self.never_better(this, other, reason)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"source": {"format": "delta", "path": "people"}}, "they read other sources"),
            ({"persons": "unit of 1 column: id"}, "they count persons in other ways"),
            (
                {"columns": {"age": {"role": "sensitive"}}},
                "differ: name, age, education, diagnosis",
            ),
        ],
    )
    def test_other_settings(self, change: dict[str, Any], reason: str) -> None:
        this, other = two()
        other["settings"] |= change
        self.never_better(this, other, reason)

    def never_better(self, this: dict[str, Any], other: dict[str, Any], reason: str) -> None:
        assert any(reason in each for each in explain_apart(this, other))
        page = make_comparison_page(this, other)
        assert not page.comparable
        assert "can't be compared" in page.summary[0]
        assert page.losses is not None
        tables = [page.losses, *page.risks, *page.utilities]
        assert {row[3] for table in tables for row in table.rows} == {UNKNOWN}
        assert reason in render_comparison(this, other).replace("&#39;", "'")

    @pytest.mark.parametrize(
        ("one", "another", "apart"),
        [
            ("<5", "<20", False),
            (3, "<5", False),
            ("<20", 12, False),
            (4, 3, True),
            (5, "<5", True),
            ("<5", 5, True),
            (0, "<5", True),
        ],
    )
    def test_counts_that_each_k_hides(
        self, one: int | str, another: int | str, apart: bool
    ) -> None:
        """Of one file, with another k."""
        this, other = two()
        this["missing"] = {"age": one}
        other["missing"] = {"age": another}
        assert make_comparison_page(this, other).comparable is not apart

    def test_releases_in_memory_of_other_rows(self) -> None:
        records = []
        for cities in ("ab", "abcd"):
            data = pd.DataFrame(
                {"age": np.arange(80.0), "city": list(cities) * (80 // len(cities))}
            )
            data.loc[data.index % len(cities) == 1, "age"] = None
            found = anonlib.anonymize(
                data,
                {
                    "attributes": {
                        "age": {"role": "quasi_identifier", "scale": "continuous"},
                        "city": {"role": "quasi_identifier", "scale": "nominal"},
                    },
                    "one_row_per_person": True,
                    "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
                },
            )
            records.append(found.record)
        assert records[0]["missing"] == {"age": 40, "city": 0}
        assert [each["categories"] for each in records] == [{"city": 2}, {"city": 4}]
        page = make_comparison_page(*records)
        assert "agree" not in page.notes[0]
        summary = page.summary[0]
        assert "other numbers of missing values in age; " in summary
        assert "other numbers of categories in city" in summary

    def test_a_recoder_is_what_is_compared(self) -> None:
        this, other = two()
        other["settings"]["columns"]["age"]["recoder"] = "centroid"
        page = make_comparison_page(this, other)
        assert page.comparable
        assert page.summary[-1] == "Columns that are released in another way: age."
        assert rows(page.columns) == {
            "age": (
                "quasi-identifier, continuous, interval",
                "quasi-identifier, continuous, centroid",
            )
        }

    def test_columns_are_named_once(self) -> None:
        this, other = two()
        del other["settings"]["columns"]["diagnosis"]
        lead = " ".join(make_comparison_page(this, other).summary)
        assert lead.count("diagnosis") == 1

    def test_what_records_cant_show_is_said(self) -> None:
        this, other = two()
        for record in (this, other):
            record["settings"]["source"] = {"format": "csv", "path": "a.csv", "filtered": True}
            record["settings"]["columns"]["age"]["hierarchy"] = True
        notes = make_comparison_page(this, other).notes
        assert [note.partition(" ")[0] for note in notes] == ["The", "Records", "Records"]
        assert "numbers of rows, missing values, categories agree, but" in notes[0]
        del other["missing"]
        del this["categories"]
        note = make_comparison_page(this, other).notes[0]
        assert "numbers of rows agree, but that the rows are the same is not shown." in note
        assert note.endswith("A record lacks the numbers of missing values, categories.")
        assert make_comparison_page(*two()).notes == ()  # the generator makes the same rows


class TestPage:
    def test_markup_stays_text(self) -> None:
        this, other = two()
        other["settings"] |= {"kernel": EVIL, "models": [EVIL]}
        other["losses"][EVIL] = 0.5
        other["audit"]["verdicts"][0]["model"] = EVIL
        figure = reports.figure(EVIL, 0.1, EVIL)
        other["evaluation"]["measures"][EVIL] = reports.findings([figure])
        other["software"] = {EVIL: EVIL}
        assert "<script" not in render_comparison(this, other)

    @pytest.mark.parametrize("key", [*reports.unevaluated(), "all"])
    def test_parts_that_are_not_there(self, key: str) -> None:
        this, other = two()
        for each in [*other] if key == "all" else [key]:
            if each not in ("anonlib_record", "run_id"):
                del other[each]
        assert "<h2" in render_comparison(this, other)

    def test_two_runs_are_two(self) -> None:
        this, other = two()
        with pytest.raises(InputError, match="both are of one run"):
            render_comparison(this, this)
        this["run_id"] = other["run_id"] = "one"
        other["table"] = "out/elsewhere"
        text = render_comparison(this, other)
        assert "one of people" in text
        assert "one of elsewhere" in text
        with pytest.raises(InputError, match="no run record"):
            render_comparison(this, {})

    def test_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        paths = [tmp_path / "a.json", tmp_path / "b.json"]
        for path, record in zip(paths, two(), strict=True):
            path.write_text(json.dumps(record))
        assert main(["report", str(paths[0]), "--against", str(paths[1])]) == 0
        out = tmp_path / "a.against.b.html"
        assert f"written: {out} (private)" in capsys.readouterr().err
        assert out.read_text("utf-8") == render_comparison(*two())
        assert out.stat().st_mode & 0o777 == 0o600
        assert anonlib.report(paths[0], against=paths[1]) == str(out)
        assert main(["report", str(paths[0]), "--against", str(tmp_path / "c.json")]) == 2
        assert "c.json: no such file" in capsys.readouterr().err
        paths[1].write_text('{"secret": 1}')
        assert main(["report", str(paths[0]), "--against", str(paths[1])]) == 2
        assert "b.json: no run record" in capsys.readouterr().err
