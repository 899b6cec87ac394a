"""What a released table confirms of its certificate, line by line. It does not matter what counts
the table: Spark (`anonlib.run.testimony`), or memory (`anonlib.in_hand.verification`)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from math import floor, log10
from typing import Any, Literal, TypeAlias

from anonlib import registry
from anonlib.auditing import AuditReport, AuditSpec, Verdict
from anonlib.auditing.report import split_label
from anonlib.pages.certificate import (
    OF_BATCH,
    OWN_VERSION,
    describe_chances,
    describe_smallest,
    describe_verdict,
)
from anonlib.pages.front import UNTIL
from anonlib.pages.seal import Certificate, Facts, find_changes
from anonlib.pages.specs import SEVERAL
from anonlib.pages.words import number, spell_role
from anonlib.run.manifest_persons import counts_rows, read_persons_kind, read_persons_return
from anonlib.table.table_digest import Digest
from anonlib.table.type_words import TypeWords, may_be_same
from anonlib.text import printable

#: How the line of persons begins who may have several rows.
_UNIT = "unit of "
#: The role of what classes are counted by, in words.
_QUASI = spell_role("quasi_identifier").replace("-", " ")
#: The k of a verdict of the manifest.
_K = re.compile(r"^k_anonymity k=(\d{1,18})$", re.M)
#: Why most lines are unsaid.
RECORD_TELLS = "the private record can tell: --record"
#: unsaid: the table can't tell.
LineState: TypeAlias = Literal["confirmed", "contradicted", "unsaid"]
#: Section and first text of a line that the table can tell.
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Testimony:
    """What a table tells.

    Attributes:
        columns: The names of its columns.
        types: The types of these columns.
        lists: The names of the columns of lists.
        take_digest: Of its rows and values, by the places of its columns in the order wanted.
        manifest: The public manifest beside it (`parse_manifest`); empty if none is known.
        count: Audits it by a spec.
        version: Its version; None if it has none.
    """

    columns: tuple[str, ...]
    types: tuple[TypeWords, ...]
    lists: frozenset[str]
    take_digest: Callable[[Sequence[int]], Digest]
    manifest: Mapping[str, Any]
    count: Callable[[AuditSpec], AuditReport]
    version: int | None = None


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


def confirm_lines(certificate: Certificate, testimony: Testimony) -> tuple[LineVerdict, ...]:
    """Compares the lines of a certificate with its facts, and these with the table and the record.

    Cost: an audit of the table.

    Args:
        certificate: The certificate.
        testimony: What the table tells.
    """
    page, facts, of_record = certificate
    changed = {*find_changes(page, facts)}
    audit, doubts = _compare_audit(facts, testimony)
    of_table = _found_in(testimony, audit)
    there = of_table | _found_in_manifest(testimony.manifest, facts)
    known = {} if of_record is None else of_record.lines()
    verdicts = []
    for line, cells in facts.lines().items():
        key = line.rpartition("-")[0], cells[0]
        state, reason = _compare(cells, there.get(key), key in there)
        if of_record is not None and state != "contradicted":
            same = known.get(line) == cells
            state, reason = ("confirmed", "") if same else ("contradicted", "not in the record")
        if cells[0] == UNTIL and has_passed(cells[-1], datetime.now(UTC).date()):
            state, reason = "contradicted", "this day has passed"
        if line in changed:
            state, reason = "contradicted", "its text was changed"
        verdicts.append(LineVerdict(line, cells[0], state, reason))
    whole = changed - facts.lines().keys()
    if of_record is not None and _without_version(of_record) != _without_version(facts):
        whole.add("facts")
    verdicts += [
        LineVerdict(name, "the page as a whole", "contradicted", "was changed")
        for name in sorted(whole)
    ]
    verdicts += _list_unknown(facts, audit, testimony)
    verdicts += [*_list_conflicts(facts), *_list_missing(facts, of_table)]
    verdicts += [*doubts, *_missing_columns(testimony, facts)]
    if any(each.state == "contradicted" for each in verdicts):
        verdicts += _explain_version(facts, testimony.version)
    return tuple(verdicts)


def _list_unknown(
    facts: Facts, audit: Mapping[str, Any], testimony: Testimony
) -> Iterator[LineVerdict]:
    """What a certificate of another version, or of a run of an earlier one, can't show."""
    if not facts.own_version:
        text = "another version of anonlib made it, so its layout was not compared: rely on the "
        text += "lines listed here, not on the page"
        yield LineVerdict("page", "the look of the page", "unsaid", text)
    if "digest_columns" not in audit:
        text = "the run did not note their order. An exchange of names would not show: release "
        text += "anew to have it"
        yield LineVerdict("columns", "which values have which name", "unsaid", text)
    told = audit.get("digest_types")
    if told is None or told.count(None) > testimony.types.count(None):
        text = "the certificate lacks some. Other values with the same bits, such as 150 for 1.50, "
        text += "would not show: release anew to have them"
        yield LineVerdict("types", "the types of columns", "unsaid", text)


def _explain_version(facts: Facts, there: int | None) -> Iterator[LineVerdict]:
    """What a certificate and a table differ by if the table is at another version."""
    for line, (name, *texts) in facts.lines().items():
        found = there is not None and line.startswith("data-") and name == OWN_VERSION
        own = texts[0] if texts else ""
        if found and own.isdecimal() and int(own) != there:
            text = f"the certificate is of version {own}, and version {there} of the table was "
            text += f"compared: `--version {own}` compares its own"
            yield LineVerdict("version", "the version that was compared", "unsaid", text)


def has_passed(day: str, today: date) -> bool:
    """Whether a day, as YYYY-MM-DD, has passed; False for other texts."""
    try:
        return date.fromisoformat(day) < today
    except ValueError:
        return False


def _without_version(facts: Facts) -> dict[str, Any]:
    return {name: value for name, value in facts.content.items() if name != "anonlib"}


def _compare_audit(facts: Facts, testimony: Testimony) -> tuple[dict[str, Any], list[LineVerdict]]:
    """What an audit of the table needs, and where the certificate says otherwise. It is taken from
    the manifest where that has it: a forger would otherwise choose what is counted."""
    audit, manifest = dict(facts.content["audit"]), testimony.manifest
    if not manifest:
        return audit, []
    own = _describe(manifest, testimony.lists)
    doubts = [
        LineVerdict(
            f"audit-{name}", f"what is counted: {name}", "contradicted", "the manifest differs"
        )
        for name, value in own.items()
        if audit[name] != value
    ]
    labels = [verdict["model"] for verdict in manifest["verdicts"]]
    types = registry.plugins("privacy model")
    signed = [
        cells[0]
        for line, cells in facts.lines().items()
        if line.startswith("verdict-") and split_label(cells[0])[1].split(" ")[0] in types
    ]
    for label in sorted({*map(printable, labels)} ^ {*signed}):
        text = "is not in the manifest" if label in signed else "is not on the certificate"
        doubts.append(LineVerdict("verdict", label, "contradicted", text))
    sizes = [{"type": "k_anonymity", "k": int(k)} for k in _K.findall("\n".join(labels))]
    counted = [spec for spec in audit["models"] if spec.get("type") != "k_anonymity"]
    return {**audit, **own, "models": [*sizes, *counted]}, doubts


def _list_conflicts(facts: Facts) -> Iterator[LineVerdict]:
    """Where the lines of a certificate, which people read, differ from what its audit goes by."""
    audit, lines = facts.content["audit"], facts.lines()
    columns = [cells[:2] for id, cells in lines.items() if id.startswith("column-")]
    # An earlier version wrote the role without a hyphen.
    quasi = [n for n, *role in columns if " ".join(role).replace("-", " ") == _QUASI]
    data = [cells[:2] for id, cells in lines.items() if id.startswith("data-")]
    text = " ".join(text for name, *texts in data if name == "persons" for text in texts)
    # Classes that are counted by batch have no person twice.
    several = text.startswith(_UNIT) or (text.endswith(SEVERAL) and not audit.get("bounds"))
    differ = {
        "quasi_identifiers": sorted(quasi) != sorted(map(printable, audit["quasi_identifiers"])),
        "columns": not {n for n, *_ in columns} >= {*map(printable, audit["columns"])},
        "persons": several and audit["persons"] == "rows",
    }
    for name in (name for name, differs in differ.items() if differs):
        what = f"what is counted: {name}"
        yield LineVerdict(f"lines-{name}", what, "contradicted", "the lines of the page differ")


def _list_missing(facts: Facts, there: Mapping[_Key, object]) -> Iterator[LineVerdict]:
    """What the table tells and the certificate does not say: a forger may have left it out."""
    said = {(line.rpartition("-")[0], cells[0]) for line, cells in facts.lines().items()}
    for section, name in there:
        if (section, name) not in said:
            text = "the certificate does not say it, so that a change would not show"
            yield LineVerdict(section, name, "unsaid", text)


def _describe(manifest: Mapping[str, Any], lists: frozenset[str]) -> dict[str, Any]:
    """As `describe_audit`, from the manifest."""
    columns = manifest["columns"]
    quasi = [each for each in columns if each["role"] == "quasi_identifier"]
    return {
        "columns": [each["name"] for each in columns],
        "quasi_identifiers": [each["name"] for each in quasi],
        "sets": [e["name"] for e in quasi if e["form"] == "set" and e["name"] in lists],
        "persons": "rows" if counts_rows(manifest) else "unknown",
        "classes": all(each["form"] != "shares" for each in quasi),
    }


def _compare(
    cells: tuple[str, ...], there: tuple[str, ...] | None, is_told: bool
) -> tuple[LineState, str]:
    if not is_told or there is None:
        return "unsaid", RECORD_TELLS
    if cells[1:] == there:
        return "confirmed", ""
    # Only what differs; a cell without a text is a dash.
    other = [text for own, text in zip(cells[1:], there, strict=False) if own != text]
    told = [text for text in other or there if text != "–"]
    return "contradicted", f"the table has {', '.join(told) or 'none'}"


def _missing_columns(testimony: Testimony, facts: Facts) -> Iterator[LineVerdict]:
    """Columns of the table that the certificate does not know, and the reverse."""
    told, there = {*facts.content["audit"]["columns"]}, {*testimony.columns}
    for name in sorted(told ^ there):
        text = "is not in the table" if name in told else "is not on the certificate"
        yield LineVerdict("columns", printable(name), "contradicted", text)


def _found_in(testimony: Testimony, audit: Mapping[str, Any]) -> dict[_Key, tuple[str, ...]]:
    """What the table tells: by section and first text, the other texts."""
    there = testimony.columns
    names = audit.get("digest_columns", there)
    same = sorted(names) == sorted(there)
    # By name: an exchange of names shows, and another order of the columns does not matter.
    places = [there.index(name) for name in names] if same else range(len(there))
    digest = testimony.take_digest(places)
    told = audit.get("digest_types") or [None] * len(there)
    others = [
        printable(there[place])
        for place, words in zip(places if same else (), told, strict=False)
        if not may_be_same(words, testimony.types[place])
    ]
    text = f"other types of {', '.join(others)}" if others else digest.text
    found: dict[_Key, tuple[str, ...]] = {
        ("data", "rows"): (number(digest.n_rows),),
        ("digest", "rows and values of the table"): (text if same else "other columns",),
    }
    if not audit["classes"]:
        return found
    report = testimony.count(_make_spec(audit))
    if report.n_rows and not report.n_classes:
        text = "other columns than are to be counted"
        return found | {("data", n): (text,) for n in ("classes", "rows of the smallest class")}
    bounds = audit.get("bounds") or {}
    smallest = min((size for size, _ in report.sizes), default=0)
    most, least = bounds.get("classes", -1), bounds.get("smallest", smallest + 1)
    n_classes = number(report.n_classes)
    found["data", "classes"] = (
        f"at most {number(most)}" if report.n_classes <= most else n_classes,
    )
    found["data", "rows of the smallest class"] = (
        f"at least {number(least)}" if smallest >= least else number(smallest),
    )
    if audit["persons"] == "rows":
        if smallest:  # an empty table has no classes
            known = max(report.n_classes, most), min(smallest, least)
            found |= _found_of_chances(report.n_rows, *known, by_batch=bool(bounds))
        for verdict in report.verdicts:
            stated = _as_stated(verdict, audit["verdicts"].get(verdict.model))
            if stated is not None:
                name, *rest = map(printable, describe_verdict(asdict(stated)))
                found["verdict", name] = tuple(rest)
    return found


def _found_of_chances(
    n_rows: int, n_classes: int, smallest: int, *, by_batch: bool
) -> dict[_Key, tuple[str, ...]]:
    """The lines that follow from the classes where each row is a person."""
    chances = describe_chances(smallest, n_classes, n_rows, by_batch=by_batch)
    found: dict[_Key, tuple[str, ...]] = {("risk", name): tuple(rest) for name, *rest in chances}
    return found | {("ema", "5 actual risk"): (describe_smallest(smallest),)}


def _as_stated(verdict: Verdict, claim: Mapping[str, Any] | None) -> Verdict | None:
    """A verdict in the words of the certificate, as far as they are true; else in its own. Spark
    and memory need not say the same of one table: where classes have enough values, Spark counts
    bounds.

    Args:
        verdict: The verdict on the table.
        claim: The value that the certificate has, and whether it is exact; None if it has none.

    Returns:
        The verdict; None if the table was counted up to a bound, and the exact value that is stated
        is a better one: it may be so.
    """
    if claim is None or verdict.value is None or not verdict.holds:
        return verdict
    value = claim["value"]
    low, high = sorted((verdict.required, verdict.value))
    if not claim["exact"]:
        return replace(verdict, value=value, exact=False) if low <= value <= high else verdict
    if verdict.exact or value == verdict.value:
        return replace(verdict, exact=True)
    return verdict if low <= value <= high else None


def _found_in_manifest(manifest: Mapping[str, Any], facts: Facts) -> dict[_Key, tuple[str, ...]]:
    """What the manifest tells. Of another run, as of an earlier version, nothing but that."""
    if not manifest:
        return {}
    texts = {
        "run": manifest["run_id"],
        "promise": manifest["promise_sha256"],
        "software": ", ".join(f"{n} {v}" for n, v in manifest["software"].items()),
    }
    found: dict[_Key, tuple[str, ...]] = {
        ("digest", name): (printable(text),) for name, text in texts.items()
    }
    if manifest["run_id"] != facts.content["run_id"]:
        return found
    if _is_of_another_table(manifest, facts):
        return {**found, ("digest", "run"): ("another run with this id, of other columns",)}
    for line, cells in facts.lines().items():
        key = line.rpartition("-")[0], cells[0]
        with suppress(IndexError):  # the line of a forged certificate may lack cells
            if (told := _find_told(manifest, key, cells[1:])) is not None:
                found[key] = told
    return found


def _is_of_another_table(manifest: Mapping[str, Any], facts: Facts) -> bool:
    """Whether a manifest has other columns than a certificate: ids of runs may be given, so that
    runs of two tables can have the same."""
    audit, own = facts.content["audit"], _describe(manifest, frozenset())
    return any(audit[name] != own[name] for name in ("columns", "quasi_identifiers"))


def _find_told(
    manifest: Mapping[str, Any], key: _Key, texts: tuple[str, ...]
) -> tuple[str, ...] | None:
    """What the manifest has in place of a line's texts; the same texts if it agrees with them, None
    if it can't tell.

    It has losses in fewer digits, and of persons and columns less than the certificate, so that it
    contradicts what it can't confirm."""
    section, name = key
    own = OF_BATCH if "rows_added" in manifest else ""
    if own and key == ("data", f"rows{own}"):
        return (number(manifest["rows_added"]),)
    if key == ("data", f"rows suppressed{own}"):
        n = manifest["rows_suppressed"]
        return (f"fewer than {n[1:]}" if n.startswith("<") else number(int(n)),)
    if key == ("data", "persons"):
        return _find_persons(manifest, texts)
    if section == "utility" and name.startswith("loss ") and name.endswith(own):
        value = manifest["losses"].get(name.removeprefix("loss ").removesuffix(own))
        if value is None:
            return None
        return texts if _is_same(texts[0], value) else (number(value),)
    if section == "column":
        roles = [spell_role(e["role"]) for e in manifest["columns"] if printable(e["name"]) == name]
        return (roles[0], *texts[1:]) if roles and roles[0] != texts[0] else None
    return None


def _find_persons(manifest: Mapping[str, Any], texts: tuple[str, ...]) -> tuple[str, ...] | None:
    kind = read_persons_kind(manifest)
    end = SEVERAL if read_persons_return(manifest) else ""
    if kind == "declared":
        return (f"one row per person, declared{end}",)
    begin = _UNIT if kind == "unit" else "one row per person: "
    same = texts[0].startswith(begin) and texts[0].endswith(SEVERAL) == bool(end)
    return None if same else (manifest["persons"],)


def _is_same(text: str, value: float) -> bool:
    """Whether a number in four digits, or two if it is tiny, may be that of a value in three."""
    try:
        shown = float(text.replace(",", ""))
    except ValueError:
        return False
    if not value or not shown:
        return value == shown
    digit = 10.0 ** floor(log10(abs(value)))
    return abs(shown - value) <= digit * (0.0551 if abs(value) < 1e-4 else 0.00551)


def _make_spec(audit: Mapping[str, Any]) -> AuditSpec:
    return AuditSpec(
        columns=tuple(audit["columns"]),
        quasi_identifiers=tuple(audit["quasi_identifiers"]),
        models=tuple(registry.build("privacy model", spec) for spec in audit["models"]),
        acknowledge_unique=True,
        persons=audit["persons"],
        sets=tuple(audit["sets"]),
    )
