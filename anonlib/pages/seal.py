"""Certificates as files: HTML with all its facts as JSON, so that a change of either shows."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any, NamedTuple

from anonlib import registry
from anonlib.config.summary import list_software
from anonlib.errors import ConfigError, InputError
from anonlib.pages import environment
from anonlib.pages.annexes import list_annexes
from anonlib.pages.certificate import OUTCOMES, describe_audit, list_sections, name_release
from anonlib.pages.specs import explain_damaged_record, require_run_record
from anonlib.table.type_words import are_type_words

#: Marks a file as a certificate. It is in the HTML head.
SEAL = '<meta name="generator" content="anonlib certificate">'
_FACTS = re.compile(r'<script type="application/json" id="facts">(.*?)</script>', re.S)
#: The lines that hold the digest of all facts.
_SUM = "facts"


@dataclass(frozen=True)
class Facts:
    """All that a certificate says.

    Attributes:
        content: Title, sections, annexes, and what an audit of the table needs; as JSON has it.
    """

    content: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Canonical JSON."""
        return json.dumps(self.content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical JSON, in hex. It is on the page."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def own_version(self) -> bool:
        """Whether this version of anonlib made it."""
        return bool(self.content.get("anonlib") == list_software()["anonlib"])

    def lines(self) -> dict[str, tuple[str, ...]]:
        """By id of a line: its texts."""
        sections = [*self.content["sections"], *self.content["annexes"]]
        return {
            line["id"]: tuple(line["cells"]) for section in sections for line in section["lines"]
        }

    def page(self) -> str:
        """The certificate, as HTML. It depends on the facts and the version of anonlib only."""
        # `<` can't end the element that the JSON is in.
        shown = self.text.replace("<", "\\u003c")
        template = environment().get_template("certificate.html")
        return template.render(
            facts=self.content, json=shown, sum=self.sha256, seal=SEAL, sum_id=_SUM
        )


class Certificate(NamedTuple):
    """A certificate that was read.

    Attributes:
        page: Its HTML.
        facts: Its facts.
        of_record: The facts that the private record gives; None without it.
    """

    page: str
    facts: Facts
    of_record: Facts | None


def seal_record(text: str) -> Facts:
    """The facts of a certificate, from the text of a private record.

    Raises:
        InputError: It is no private record, of no run that published, or damaged.
    """
    try:
        record = require_run_record(json.loads(text))
    except ValueError:
        raise InputError("no JSON, so no run record of anonlib") from None
    if record.get("outcome") not in OUTCOMES:
        raise InputError("the run published nothing, so there is nothing to certify")
    if record.get("table_version") == -1:
        raise InputError("the record was written before the commit: repeat the run, which ends it")
    with explain_damaged_record():
        sections, columns = list_sections(record, sha256(text.encode()).hexdigest())
        content = {
            "anonlib_certificate": 1,
            "anonlib": list_software()["anonlib"],
            "title": f"Certificate of {name_release(record)}",
            "run_id": record["run_id"],
            "signers": ["prepared by", "privacy officer", "approved by"],
            "sections": [asdict(each) for each in sections],
            "annexes": [asdict(each) for each in (*columns, *list_annexes(record))],
            "audit": describe_audit(record),
        }
    return Facts(json.loads(json.dumps(content)))


def open_seal(page: str) -> Facts:
    """The facts of a certificate. Raises InputError if the page is no certificate."""
    found = _FACTS.search(page)
    try:
        content = json.loads(found[1]) if found is not None and SEAL in page else None
        facts = Facts(content if isinstance(content, dict) else {})
        if facts.content.get("anonlib_certificate") != 1:
            raise InputError("no certificate of anonlib in HTML, or one of another version")
        facts.page()
        if not all(cells and all(map(_is_text, cells)) for cells in facts.lines().values()):
            raise TypeError("lines")
        _require_audit(facts.content["audit"])
    except (ConfigError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError("the certificate is damaged: its facts can't be read") from None
    return facts


def _is_text(cell: object) -> bool:
    return isinstance(cell, str)


def _require_audit(audit: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ConfigError if an audit can't be made by it."""
    digest_columns = audit.get("digest_columns", ())  # earlier versions did not note them
    lists = [audit[name] for name in ("columns", "quasi_identifiers", "sets")]
    for names in (*lists, digest_columns):
        if not all(isinstance(each, str) for each in names):
            raise TypeError("names of columns")
    if len({*digest_columns}) < len(digest_columns):
        raise TypeError("digest_columns")
    types = audit.get("digest_types", [None] * len(digest_columns))
    if not are_type_words(types) or len(types) != len(digest_columns):
        raise TypeError("digest_types")
    for spec in audit["models"]:
        registry.build("privacy model", spec)
    if audit["persons"] not in ("rows", "unknown") or not isinstance(audit["classes"], bool):
        raise TypeError("persons, classes")
    stated = [*audit["verdicts"].values()]
    numbers = [each["value"] for each in stated]
    if (bounds := audit.get("bounds")) is not None:
        numbers += [bounds["classes"], bounds["smallest"]]
    known = all(isinstance(each["exact"], bool) for each in stated)
    if not known or not all(isinstance(each, int | float) for each in numbers):
        raise TypeError("verdicts, bounds")


class _Reader(HTMLParser):
    """Collects the texts that a reader sees, by line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, list[str]] = {}
        self.rest: list[str] = []
        self._line = ""
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs).get("data-line")
        if named is not None:
            self._line = named
            self.lines.setdefault(named, [])
        self._hidden = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        if tag in ("tr", "p"):
            self._line = ""

    def handle_data(self, data: str) -> None:
        if self._hidden or not data.strip():
            return
        (self.lines[self._line] if self._line else self.rest).append(" ".join(data.split()))


def find_changes(page: str, facts: Facts) -> Iterator[str]:
    """The lines of a certificate that do not say what its facts say. A page of this version of
    anonlib must be what it writes, to the letter; of another version, its texts are compared."""
    expected = facts.page()
    seen, right = _Reader(), _Reader()
    seen.feed(page)
    right.feed(expected)
    wrong = [name for name in right.lines if seen.lines.get(name) != right.lines[name]]
    wrong += [name for name in seen.lines if name not in right.lines]
    yield from wrong
    if not wrong and (seen.rest != right.rest or (facts.own_version and page != expected)):
        yield "the page"
