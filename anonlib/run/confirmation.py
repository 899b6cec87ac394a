"""What a published table confirms of its certificate, line by line."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from anonlib import auditing, registry
from anonlib.auditing import AuditReport, AuditSpec
from anonlib.pages.certificate import describe_verdict
from anonlib.pages.seal import Facts, find_changes
from anonlib.pages.words import number
from anonlib.run.past import digest_table
from anonlib.run.publish import manifest_path
from anonlib.spark.storage import Storage
from anonlib.text import printable

#: unsaid: the table can't tell.
LineState: TypeAlias = Literal["confirmed", "contradicted", "unsaid"]
#: Section and first text of a line that the table can tell.
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class LineVerdict:
    """What became of a line.

    Attributes:
        line: Its id.
        name: Its first text.
        state: Whether it is confirmed.
        reason: What was found instead, or who can tell.
    """

    line: str
    name: str
    state: LineState
    reason: str


def confirm_lines(
    page: str, facts: Facts, table: DataFrame, folder: str, of_record: Facts | None
) -> tuple[LineVerdict, ...]:
    """Compares the lines of a certificate with its facts, and these with the table and the record.

    Cost: an audit of the table, and a pass for its digest.

    Args:
        page: The certificate, as HTML.
        facts: Its facts.
        table: The published table.
        folder: Its folder, for the manifest.
        of_record: The facts that the private record gives; None without it.
    """
    changed = {*find_changes(page, facts)}
    there = _found_in(table, folder, facts.content["audit"])
    known = {} if of_record is None else of_record.lines()
    verdicts = []
    for line, cells in facts.lines().items():
        key = line.rpartition("-")[0], cells[0]
        state, reason = _compare(cells, there.get(key), key in there)
        if of_record is not None and state != "contradicted":
            same = known.get(line) == cells
            state, reason = ("confirmed", "") if same else ("contradicted", "not in the record")
        if line in changed:
            state, reason = "contradicted", "its text was changed"
        verdicts.append(LineVerdict(line, cells[0], state, reason))
    whole = changed - facts.lines().keys()
    if of_record is not None and of_record.content != facts.content:
        whole.add("facts")
    verdicts += [
        LineVerdict(name, "the page as a whole", "contradicted", "was changed")
        for name in sorted(whole)
    ]
    return (*verdicts, *_missing_columns(table, facts))


def _compare(
    cells: tuple[str, ...], there: tuple[str, ...] | None, is_told: bool
) -> tuple[LineState, str]:
    if not is_told or there is None:
        return "unsaid", "the private record can tell: --record"
    if cells[1:] == there:
        return "confirmed", ""
    return "contradicted", f"the table has {', '.join(there)}"


def _missing_columns(table: DataFrame, facts: Facts) -> Iterator[LineVerdict]:
    """Columns of the table that the certificate does not know, and the reverse."""
    told, there = {*facts.content["audit"]["columns"]}, {*table.columns}
    for name in sorted(told ^ there):
        text = "is not in the table" if name in told else "is not on the certificate"
        yield LineVerdict("columns", printable(name), "contradicted", text)


def _found_in(
    table: DataFrame, folder: str, audit: Mapping[str, Any]
) -> dict[_Key, tuple[str, ...]]:
    """What the table tells: by section and first text, the other texts."""
    digest = digest_table(table)
    found: dict[_Key, tuple[str, ...]] = {
        ("data", "rows"): (number(digest.n_rows),),
        ("digest", "rows and values of the table"): (digest.text,),
    }
    found |= _found_in_manifest(table.sparkSession, folder)
    if not audit["classes"]:
        return found
    report = _count(table, audit)
    smallest = min((size for size, _ in report.sizes), default=0)
    found["data", "classes"] = (number(report.n_classes),)
    found["data", "rows of the smallest class"] = (number(smallest),)
    if audit["persons"] == "rows":
        for verdict in report.verdicts:
            name, *rest = map(printable, describe_verdict(asdict(verdict)))
            found["verdict", name] = tuple(rest)
    return found


def _found_in_manifest(spark: SparkSession, folder: str) -> dict[_Key, tuple[str, ...]]:
    storage = Storage(spark, folder)
    path = manifest_path(storage.root)
    try:
        manifest = json.loads(storage.read(path)) if storage.exists(path) else {}
        texts = {
            "run": manifest["run_id"],
            "promise": manifest["promise_sha256"],
            "software": ", ".join(f"{n} {v}" for n, v in manifest["software"].items()),
        }
    except (ValueError, KeyError, AttributeError, TypeError):
        return {}
    return {("digest", name): (printable(text),) for name, text in texts.items()}


def _count(table: DataFrame, audit: Mapping[str, Any]) -> AuditReport:
    spec = AuditSpec(
        columns=tuple(audit["columns"]),
        quasi_identifiers=tuple(audit["quasi_identifiers"]),
        models=tuple(registry.build("privacy model", spec) for spec in audit["models"]),
        acknowledge_unique=True,
        persons=audit["persons"],
        sets=tuple(audit["sets"]),
    )
    return auditing.audit_table(table, spec)
