"""Past runs on the terminal, and how a person is named."""

import io
import json
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib import cli
from anonlib.cli.grammar import utc_time
from anonlib.cli.show.run_list import print_person, print_runs
from anonlib.run.history import Commit
from anonlib.run.run_table import find_replacements, list_replaced


def run(run_id: str, **found: Any) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "ended": "2026-01-31T12:34:56Z",
        "outcome": "published",
        "target": "/out/adult",
        "rows_out": 1_234_567,
        "verdicts": [{"model": "k", "holds": True}, {"model": "l", "holds": True}],
        "gates": [],
        "error": None,
        **found,
    }


def printed(runs: list[dict[str, Any]]) -> list[str]:
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv("COLUMNS", "80")
        print_runs(runs)
    return [line.rstrip() for line in out.getvalue().splitlines()]


class TestRuns:
    def test_lines(self) -> None:
        long = "20260131T123456Z-0123abcd"
        failed = {"outcome": "audit failed", "rows_out": None, "error": "AuditError"}
        found = printed(
            [
                run(long),
                run("b", target="/out/other", gates=[{"gate": "g", "passed": False}]),
                run("c", verdicts=[{"model": "k", "holds": False}], **failed),
                run("d", verdicts=[], outcome="failed", rows_out=None, error="InputError"),
            ]
        )
        assert max(map(len, found)) <= 80
        text = " ".join(found)
        assert found[0] == "/out/adult"
        (first,) = (line for line in found if long in line)
        assert first.split()[:5] == ["2026-01-31", "12:34", long, "published", "1,234,567"]
        assert found.index("/out/other") > found.index(next(x for x in found if "refused" in x))
        for told in ("2/2 hold, 0/1 gates", "0/1", "audit failed", "failed"):
            assert told in text

    def test_a_run_that_failed_says_by_what(self) -> None:
        """Also where the audit of an earlier release was counted."""
        failed = {"outcome": "failed", "rows_out": None, "error": "ConfigError"}
        text = " ".join(" ".join(printed([run("a", verb="evaluate", **failed)])).split())
        assert "evaluate: config refused" in text
        assert "hold" not in text
        assert "OddError" in " ".join(printed([run("b", **(failed | {"error": "OddError"}))]))
        assert "trial: 2/2 hold" in " ".join(printed([run("c", verb="trial", outcome="evaluated")]))

    def test_none(self) -> None:
        assert printed([]) == ["no runs"]

    def test_nothing_that_a_terminal_obeys(self) -> None:
        assert "\x1b" not in "".join(printed([run("a\x1b[31m", target="\x1b[2J")]))


class TestPerson:
    def test_whose_rows_were_replaced(self) -> None:
        modes = {"jan": "ErrorIfExists", "feb": "Append", "ov": "Overwrite", "mar": "Append"}
        modes["again"] = "Overwrite"
        commits = [
            Commit(2 * i, run_id, mode, "{}") for i, (run_id, mode) in enumerate(modes.items())
        ]
        commits.insert(3, Commit(5, "ov", None, "{}", purge_of=4))
        replaced = list_replaced(commits[::-1])
        assert replaced == {"ov": {"jan", "feb"}, "again": {"jan", "feb", "ov", "mar"}}
        firsts = {**dict.fromkeys(["jan", "feb"], "ov"), **dict.fromkeys(["ov", "mar"], "again")}
        assert find_replacements(replaced) == firsts
        assert find_replacements(dict(reversed(replaced.items()))) == firsts
        assert find_replacements({}) == {}

    def test_words(self, capsys: pytest.CaptureFixture[str]) -> None:
        fates = ["released", "not released", "unknown", "released or suppressed"]
        fates += ["waits, not searched", "released, replaced by run ov"]
        print_person({f"r{i}": fate for i, fate in enumerate(fates)})
        said = capsys.readouterr().out
        lines = said.splitlines()
        assert [line.split(maxsplit=1)[1].strip() for line in lines[1:7]] == fates
        for note in (
            *("the ledger lacks the run", "does not tell whose", "encrypted in the backlog"),
            "the ledger keeps the person's keyed token",
        ):
            assert note in " ".join(said.split())
        print_person({"r1": "released", "r2": "not released"})
        assert "notes" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        "text", ["Ann", "[]", "{}", '{"a": null}', '{"a": 1.5}', '{"a": true}']
    )
    def test_files_that_name_nobody(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
    ) -> None:
        (tmp_path / "person.json").write_text(text)
        assert self.main(tmp_path, str(tmp_path / "person.json")) == 2
        said = capsys.readouterr().err
        assert "--person: it is a file with a JSON object such as" in said
        assert "Ann" not in said

    def test_no_file_no_config(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.main(tmp_path, str(tmp_path / "none")) == 2
        said = capsys.readouterr().err
        assert "--person: can't be read" in said
        assert "or - for the same on stdin; values themselves are no arguments" in said
        assert cli.main(["runs", str(tmp_path), "--person", "-"]) == 2
        assert "needs a config" in capsys.readouterr().err

    def test_stdin_and_no_ledger(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given = SimpleNamespace(buffer=io.BytesIO(b'{"name": "Ann", "year": 1980}'))
        monkeypatch.setattr("sys.stdin", given)
        assert self.main(tmp_path, "-") == 2
        said = capsys.readouterr().err
        assert "release.ledger: required" in said
        assert "Ann" not in said

    def main(self, folder: Path, person: str) -> int:
        """The exit code with a config that has no ledger."""
        config = {
            "source": {"format": "generator", "rows": 10},
            "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}},
            "one_row_per_person": True,
            "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
            "release": {"path": str(folder / "out")},
        }
        path = folder / "config.yaml"
        path.write_text(json.dumps(config))
        return cli.main(["runs", str(path), "--person", person])


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_times(text: str, time: datetime) -> None:
    assert utc_time(text) == time


def test_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", "out", "--since", "yesterday"]) == 2
    assert "--since: a date such as 2026-01-31 is needed" in capsys.readouterr().err
