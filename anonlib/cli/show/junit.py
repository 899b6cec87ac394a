"""Results as JUnit's XML, which CI systems show test by test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from anonlib.auditing.report import count_failing, list_worst
from anonlib.cli.show.summaries import show_number
from anonlib.text import printable

if TYPE_CHECKING:
    from anonlib.auditing import AuditReport, Verdict
    from anonlib.run.confirmation import LineVerdict


@dataclass(frozen=True)
class TestCase:
    """One thing that was checked.

    Attributes:
        name: What was checked, the same at every run.
        state: How it ended; skipped where this table can't tell.
        text: What was found.
    """

    name: str
    state: Literal["passed", "failed", "skipped"]
    text: str = ""


def audit_cases(report: "AuditReport") -> Iterator[TestCase]:
    """A case for each privacy model, one for the columns, and where the report has them one with
    the premises, and one, skipped, with what the release promised and the audit did not ask."""
    for verdict in report.verdicts:
        state: Literal["passed", "failed", "skipped"] = "passed" if verdict.holds else "failed"
        state = "skipped" if verdict.at_release else state
        yield TestCase(verdict.model, state, _describe_verdict(verdict))
    sound = not report.problems and bool(report.verdicts)
    problems = "; ".join(map(str, report.problems))
    yield TestCase("columns", "passed" if sound else "failed", problems)
    if report.premises:
        yield TestCase("premises", "passed", "; ".join(report.premises))
    if report.shortfalls:
        yield TestCase("what the release promised", "skipped", "; ".join(report.shortfalls))


def _describe_verdict(verdict: "Verdict") -> str:
    """What the text shows of a verdict, in a line."""
    value = show_number(verdict.value, exact=verdict.exact)
    measured = "not measured" if verdict.value is None else f"measured {value}"
    parts = [f"{measured}, required {show_number(verdict.required)}"]
    if verdict.worst:
        n = count_failing(verdict.n_failing)
        parts.append(f"{n}, the smallest of {list_worst(verdict)} rows")
    return "; ".join([*parts, *filter(None, [verdict.note])])


def make_line_cases(lines: "Sequence[LineVerdict]") -> Iterator[TestCase]:
    """A case for each line of a certificate."""
    states: dict[str, Literal["passed", "failed", "skipped"]] = {
        "confirmed": "passed",
        "contradicted": "failed",
        "unsaid": "skipped",
    }
    for line in lines:
        yield TestCase(f"{line.line}: {line.name}", states[line.state], line.reason)


def as_junit(what: str, table: str, cases: Sequence[TestCase]) -> str:
    """The XML of some cases.

    Args:
        what: The verb.
        table: The table that was looked at.
        cases: The cases, in the order in which CI lists them.
    """
    n_failed = sum(case.state == "failed" for case in cases)
    n_skipped = sum(case.state == "skipped" for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(n_failed), "errors": "0"}
    root = ElementTree.Element("testsuites", counts)
    name = f"anonlib {what} {printable(table)}"
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": name, **counts, "skipped": str(n_skipped)}
    )
    for case in cases:
        about = {"classname": name, "name": printable(case.name), "time": "0"}
        element = ElementTree.SubElement(suite, "testcase", about)
        if case.state == "failed":
            ElementTree.SubElement(element, "failure", {"message": printable(case.text)})
        elif case.state == "skipped":
            ElementTree.SubElement(element, "skipped", {"message": printable(case.text)})
        elif case.text:
            ElementTree.SubElement(element, "system-out").text = printable(case.text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"
