"""Results as JUnit's XML: what CI counts is what the exit code says."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from anonlib.auditing.report import AuditReport, Verdict
from anonlib.cli import main
from anonlib.cli.show.junit import as_junit, audit_cases, make_line_cases
from anonlib.errors import Problem
from anonlib.run.confirmation import LineVerdict

HOLDS = Verdict("k_anonymity k=10", True, 10, 10, 0, ())
FAILS = Verdict("l_diversity l=2 attribute=<\x1b>", False, 1, 2, 1234, (10, 11), note="so so")
LATER = Verdict("t_closeness t=0.2", False, None, 0.2, 0, (), note="by person", at_release=True)


def report(*verdicts: Verdict, problems: tuple[Problem, ...] = ()) -> AuditReport:
    return AuditReport(20, 2, verdicts, problems, ((10, 2),), "none")


def suite(text: str) -> Any:
    return ElementTree.fromstring(text)[0]


def states(xml: Any) -> dict[str, str]:
    found = {}
    for case in xml:
        marks = [each.tag for each in case if each.tag in ("failure", "skipped")]
        found[case.get("name")] = marks[0] if marks else "passed"
    return found


def test_a_case_for_each_model() -> None:
    xml = suite(as_junit("audit", "out/t", [*audit_cases(report(HOLDS, FAILS, LATER))]))
    assert xml.attrib == {
        "name": "anonlib audit out/t",
        "tests": "4",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    assert states(xml) == {
        "k_anonymity k=10": "passed",
        r"l_diversity l=2 attribute=<\x1b>": "failure",
        "t_closeness t=0.2": "skipped",
        "columns": "passed",
    }
    assert xml[1][0].get("message") == (
        "measured 1, required 2; 1,234 classes fail, the smallest of 10, 11 rows; so so"
    )
    assert xml[0][0].text == "measured 10, required 10"
    assert xml[2][0].get("message") == "not measured, required 0.2; by person"


@pytest.mark.parametrize(
    "told",
    [
        report(HOLDS),
        report(FAILS),
        report(HOLDS, LATER),
        report(HOLDS, problems=(Problem("a", "should not be there"),)),
        report(problems=(Problem("", "the table has no rows"),)),
        report(),
    ],
)
def test_a_failure_where_the_exit_code_is_one(told: AuditReport) -> None:
    failed = "failure" in states(suite(as_junit("audit", "t", [*audit_cases(told)]))).values()
    assert failed == (not told.passed and not told.at_release)


def test_lines_of_a_certificate() -> None:
    line = LineVerdict("rows", "rows", "confirmed", "")
    other = [replace(line, state="contradicted", reason="21"), replace(line, state="unsaid")]
    xml = suite(as_junit("verify", "out/t", [*make_line_cases([line, *other])]))
    assert [[each.tag for each in case] for case in xml] == [[], ["failure"], ["skipped"]]


@pytest.mark.parametrize(
    ("flags", "begins"),
    [
        ([], "Audit of out/t: passed"),
        (["--json"], '{\n  "passed": true'),
        (["--format", "json"], '{\n  "passed": true'),
        (["--format", "junit"], "<?xml version="),
    ],
)
def test_formats(
    flags: list[str],
    begins: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("anonlib.cli.load_config", lambda args: None)
    monkeypatch.setattr("anonlib.pipeline.audit_delta", lambda *_, **more: report(HOLDS))
    assert main(["audit", "out/t", "--conf", "t.yaml", *flags]) == 0
    assert capsys.readouterr().out.startswith(begins)
    monkeypatch.setattr("anonlib.pipeline.audit_delta", lambda *_, **more: report(FAILS))
    assert main(["audit", "out/t", "--conf", "t.yaml", *flags]) == 3
