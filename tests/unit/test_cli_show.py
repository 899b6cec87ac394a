"""What the terminal shows: summaries and progress."""

import importlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anonlib.auditing.report import AuditReport, Verdict
from anonlib.cli.progress_lines import JsonProgress, LogProgress, ShownProgress, make_progress
from anonlib.cli.show.summaries import (
    print_audit,
    print_check,
    print_evaluation,
    print_release,
    print_rows,
    program,
)
from anonlib.config.model import Gate
from anonlib.errors import Problem
from anonlib.evaluation import Evaluation, GateVerdict
from anonlib.measure import Figure, Findings
from anonlib.run.result import CheckResult, ColumnPlan, ReleaseResult

VERDICTS = (
    Verdict("k_anonymity k=10", True, 10, 10, 0, ()),
    Verdict("l_diversity l=2 attribute=diagnosis", False, 1, 2, 1234, (10, 11), note="so so"),
    Verdict("t_closeness t=0.2", True, 0.12345678, 0.2, 0, (), exact=False),
    Verdict("other", False, None, 2, 0, ()),
)
PROBLEMS = (Problem("a\x1b[31m", "the release should not have this column"),)
REPORT = AuditReport(100_000, 9_000, VERDICTS, PROBLEMS, ((10, 9_000),), "none")
RESULT = ReleaseResult(
    run_id="r1",
    outcome="published",
    n_rows_in=100_000,
    n_rows_out=99_990,
    n_suppressed=10,
    n_blocks=12,
    n_cells=9_090,
    audit=REPORT,
    losses={"ncp": 0.123456, "sse": None, "cell_size": 11.0},
    table=f"file:{Path.cwd()}/out/it's here",
    table_version=3,
    manifest="s3a://bucket/table/_anonlib/manifest.json",
    record="/elsewhere/" + "x" * 90 + ".json",
    seconds={"scan": 1.5, "publish": 2.5},
)


def shown(function: Any, *args: Any, **more: Any) -> str:
    with redirect_stdout(io.StringIO()) as out:
        function(*args, **more)
    assert "\x1b" not in out.getvalue()
    return re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE)


class TestRelease:
    def test_figures_verdicts_and_losses(self) -> None:
        text = shown(print_release, RESULT, "my conf.yaml", ["seed=3"])
        assert "100,000 in, 99,990 out, 10 suppressed" in text
        assert "9,090, of 11.0 rows on average" in text
        assert re.search(r"k_anonymity k=10 +10 +10 +holds", text)
        assert re.search(r"attribute=diagnosis +1 +2 +FAILS", text)
        assert "0.123457 or better" in text
        assert "not measured" in text
        assert re.search(r"ncp +0.1235\n", text)
        assert re.search(r"sse +not computable\n", text)
        assert "sse: no continuous or ordinal column varies" in text

    def test_rows_that_wait(self) -> None:
        """What was not published is not pointed to."""
        waiting = ReleaseResult(
            "r1", "waiting", n_waiting=1234, notes=("k_anonymity: \x1b[31mtoo few",)
        )
        text = shown(print_release, waiting, "conf.yaml")
        assert "Run r1 published nothing: 1,234 rows wait in the backlog" in text
        assert "  - k_anonymity: \\x1b[31mtoo few\n" in text
        assert "look at it" not in text

    def test_what_was_measured(self) -> None:
        """Figures of few columns or models stand side by side, gates and notes are told once."""
        many = [Figure(f"n{i}", i / 8, of) for i in range(5) for of in ("a", "b\x1b[31m")]
        findings = {
            "few": Findings((Figure("x", 0.25, "a"), Figure("y", 1234.0, "b"), Figure("z", 0.5))),
            "many": Findings(tuple(many)),
            "none": Findings((Figure("w", None, note="too few rows"),)),
        }
        gate = Gate(figure="few.z", at_most=0.4)
        evaluation = Evaluation(findings, (GateVerdict(gate, False, Figure("z", 0.5)),))
        text = shown(print_release, replace(RESULT, evaluation=evaluation), "conf.yaml")
        assert re.search(r"few +x +y\s*\na +0.25\s*\nb +1,234\nz +0.5\n", text)
        assert re.search(r"many +a +b\\x1b\[31m\nn0 +0 +0\nn1 +0.125 +0.125\n", text)
        assert re.search(r"none\nw +–\n", text)
        assert text.count("none.w: too few rows") == 1
        assert "failed  few.z at most 0.4: 0.5" in text
        trial = replace(RESULT, evaluation=evaluation, outcome="evaluated", table_version=-1)
        text = shown(print_evaluation, trial, "conf.yaml")
        assert "a trial release, not published" in text
        assert "failed  few.z at most 0.4: 0.5" in text

    def test_places_and_commands_are_whole_lines(self) -> None:
        lines = shown(print_release, RESULT, "my conf.yaml", ["seed=3"]).splitlines()
        quoted = "'out/it'\"'\"'s here'"
        assert "table       out/it's here (version 3)" in lines
        assert f"record      {RESULT.record} (private)" in lines
        assert "dictionary  out/it's here/_anonlib/dictionary.md" in lines
        assert f"look at it  {program()} show {quoted}" in lines
        command = f"{program()} audit {quoted} --conf 'my conf.yaml' --set seed=3"
        assert f"audit it    {command}" in lines

    def test_other_lines_fit(self) -> None:
        head = shown(print_release, RESULT, "conf.yaml").split("table  ")[0]
        assert all(len(line) <= 80 for line in head.splitlines())

    def test_done_already(self) -> None:
        done = ReleaseResult("r1", "done", table="out/t", table_version=0)
        text = shown(print_release, done, "conf.yaml")
        assert "Run r1 is done already" in text
        assert "suppressed" not in text
        assert f"{program()} show out/t" in text

    def test_picture(self, tmp_path: Path) -> None:
        picture = importlib.import_module("scripts.lib.picture")
        picture.draw_summary(RESULT, tmp_path / "a.svg", "conf.yaml")
        text = (tmp_path / "a.svg").read_text()
        assert text.startswith("<svg")
        assert "FAILS" in text


class TestAudit:
    def test_sizes_notes_and_problems(self) -> None:
        text = shown(print_audit, REPORT, "out/t")
        assert "Audit of out/t: failed" in text
        assert re.search(r"attribute=diagnosis +1,234 +10, 11\n", text)
        assert "- l_diversity l=2 attribute=diagnosis: so so" in text
        assert r"- a\x1b[31m: the release should not have this column" in text

    def test_passed(self) -> None:
        report = AuditReport(20, 2, VERDICTS[:1], (), ((10, 2),), "none")
        text = shown(print_audit, report, "out/t")
        assert "Audit of out/t: passed" in text
        assert "problems" not in text

    def test_empty_table(self) -> None:
        report = AuditReport(9, 0, (), (Problem("age", "is not in the table"),), (), "none")
        assert "not counted, see problems" in shown(print_audit, report, "t")
        report = AuditReport(0, 0, (), (Problem("", "the table has no rows"),), (), "none")
        assert "- the table has no rows" in shown(print_audit, report, "out/t")


def test_names_of_columns_are_no_layout() -> None:
    text = shown(print_rows, [">50K", "[b]x"], [["1", "2"], ["30", "40"]])
    head, first, _ = text.splitlines()
    assert (head.split(), first[0]) == ([">50K", "[b]x"], "1")


def test_check() -> None:
    columns = (
        ColumnPlan("age", "quasi_identifier", "continuous", "int", "centroid (int)"),
        ColumnPlan("[bold]x[/]\n", "drop", None, "string", "dropped"),
        ColumnPlan("n" * 200, "drop", None, "string", "dropped"),
        ColumnPlan("bmi", "drop", None, "decimal(10,2)", "set (array<struct<value:string>>)"),
    )
    result = CheckResult(1000, columns, ("k_anonymity k=2",), "mdav", "kmeans", ("mind this",))
    text = shown(print_check, result, "conf.yaml")
    assert "conf.yaml: fits its source" in text
    assert r"[bold]x[/]\n" in text
    assert "- mind this" in text
    for whole in ("quasi_identifier", "continuous", "decimal(10,", "string>>)"):
        assert re.search(rf"(^|\s){re.escape(whole)}(\s|$)", text)
    assert f"{program()} release conf.yaml" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_draft_is_to_be_reviewed_before_it_is_released() -> None:
    notes = ("review: nobody has looked at 2 places: attributes.age, gates",)
    result = CheckResult(9, (), (), "mdav", "kmeans", notes, review=("attributes.age", "gates"))
    assert shown(print_check, result, "conf.yaml").splitlines()[-1] == "review it first  conf.yaml"
    assert "release it" not in shown(print_check, result, "conf.yaml")


def test_what_is_in_the_way_of_a_release_stands_in_the_place_of_its_command() -> None:
    result = CheckResult(9, (), (), "mdav", "kmeans", obstacles=("release.path: a table is there",))
    text = shown(print_check, result, "conf.yaml")
    assert text.startswith("conf.yaml: fits its source; release would be refused\n")
    assert text.rstrip().endswith("until this is changed\n  - release.path: a table is there")
    assert "release it" not in text


class TestRows:
    def test_narrow(self) -> None:
        text = shown(print_rows, ["a", "b"], [["1", None], ["x" * 99, "[red]\x1b"]])
        assert re.match(r"a +b\n1 +null\nx+… +\[red\]\\x1b\n", text)

    def test_wide(self) -> None:
        names = [f"column {i}" for i in range(20)]
        text = shown(print_rows, names, [["v"] * 20, ["w"] * 20])
        assert text.startswith("row 1\ncolumn 0   v\n")
        assert "row 2\n" in text

    def test_none(self) -> None:
        assert shown(print_rows, ["a"], []).strip() == "a"


@pytest.mark.parametrize(
    ("called", "name"),
    [("/bin/anonlib", "anonlib"), ("/x/anonlib/cli/__init__.py", "anonlib"), ("pytest", "anonlib")],
)
def test_program(called: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert program().split("/")[-1] == name


def stages(progress: Any) -> None:
    with progress:
        with progress.stage("scan"):
            progress.note("a note")
        try:
            with progress.stage("publish"):
                raise ValueError("s3cret")
        except ValueError:
            with progress.stage("clean"):
                pass


class TestProgress:
    def test_lines(self, capsys: pytest.CaptureFixture[str]) -> None:
        stages(LogProgress())
        lines = capsys.readouterr().err.splitlines()
        assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in lines)
        texts = [re.sub(r"\d+\.\d s", "S", line[9:]) for line in lines]
        assert texts == [
            *("scan: started", "a note", "scan: done in S"),
            *("publish: started", "publish: failed after S"),
            *("clean: started", "clean: done in S"),
        ]

    def test_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        progress = JsonProgress()
        progress.note("no run yet")
        progress.run_id, progress.target = "r1", "/out/table"
        stages(progress)
        first, *events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        assert (first["event"], first["text"]) == ("note", "no run yet")
        assert not {"run_id", "target", "stage"} & {*first}
        assert {(e["run_id"], e["target"]) for e in events} == {("r1", "/out/table")}
        assert [(e["event"], e["stage"]) for e in events] == [
            *(("started", "scan"), ("note", "scan"), ("done", "scan")),
            *(("started", "publish"), ("failed", "publish")),
            *(("started", "clean"), ("done", "clean")),
        ]

    def test_what_stops_a_stage_is_no_failure(self, capsys: pytest.CaptureFixture[str]) -> None:
        """As of a batch that can't hold the models alone, and waits."""
        for progress in (LogProgress(), JsonProgress()):
            progress.stops = lambda error: str(error) == "s3cret"
            stages(progress)
        text = capsys.readouterr().err
        assert re.search(r"publish: stopped after \d", text)
        assert '"event": "stopped"' in text
        assert "fail" not in text

    def test_quiet(self, capsys: pytest.CaptureFixture[str]) -> None:
        for log_format in ("text", "json"):
            progress = make_progress(log_format, quiet=True)  # type: ignore[arg-type]
            stages(progress)
            assert type(progress) is ShownProgress
            assert set(progress.seconds) == {"scan", "publish", "clean"}
        captured = capsys.readouterr()
        assert captured.err == captured.out == ""

    def test_choice(self) -> None:
        assert type(make_progress("json", quiet=False)) is JsonProgress
        assert type(make_progress("text", quiet=False)) is LogProgress

    def test_spark_submit_has_one_stream(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It writes what comes on stderr to stdout, where programs read JUnit or JSON."""
        for output in ("text", "json", "junit"):
            assert type(make_progress("text", quiet=False, output=output)) is LogProgress
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
        assert type(make_progress("text", quiet=False)) is LogProgress
        for output in ("json", "junit"):
            assert type(make_progress("json", quiet=False, output=output)) is ShownProgress

    def test_terminal(self) -> None:
        code = """
            import time
            from anonlib.cli.progress_lines import TerminalProgress, make_progress
            class Tracker:
                def getJobIdsForGroup(self, group): return [1] if group == "anonlib r scan" else []
                def getJobInfo(self, job): return type("J", (), {"stageIds": [1, 2]})
                def getStageInfo(self, id):
                    return type("S", (), {
                        "numTasks": 8, "numCompletedTasks": 5 * (id == 1), "numActiveTasks": 0})
            class Spark:
                sparkContext = property(lambda self: self)
                def statusTracker(self): return Tracker()
                def setJobGroup(self, *args): Tracker.jobs = True
                def getLocalProperty(self, key): return None
                def setLocalProperty(self, key, value): pass
            progress = make_progress("text", quiet=False)
            assert type(progress) is TerminalProgress
            progress.run_id = "r"
            Tracker.getJobIdsForGroup = lambda self, group, seen=[]: (seen.append(1), seen[1:])[1]
            with progress:
                with progress.stage("scan", Spark()):
                    time.sleep(1.5)
                progress.note("a [note]")
                try:
                    with progress.stage("publish"): raise ValueError
                except ValueError: pass
        """
        text = on_a_terminal(textwrap.dedent(code))
        assert "5/8 tasks" in text
        assert re.search(r"✓ scan +1\.\d s  5 tasks\r\n", text)
        assert "· a [note]\r\n" in text
        assert re.search(r"✗ publish +0\.0 s\r\n", text)
        assert "Traceback" not in text


def on_a_terminal(code: str) -> str:
    """What a program writes to a terminal, without colours and cursor movements."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LANG": "C.UTF-8"},
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # how a terminal ends on Linux
            break
        if not more:
            break
        data += more
    os.close(ours)
    assert process.wait(60) == 0, data.decode()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode())
