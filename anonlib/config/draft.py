"""Drafts a first config for a table: guesses the roles of its columns and gives the evidence.

Guesses err on the side of protection: a column that fits no rule becomes a quasi-identifier, never
insensitive. The draft shows names, types and counts, but no value of the table.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import yaml

from anonlib.config.places import overlap
from anonlib.table.schema import Role, Scale

#: A column of numbers with at most this many distinct values is nominal.
FEW = 12
#: Fewer values than this do not show that a column is unique.
MIN_UNIQUE = 20
DEFAULT_MAX_CATEGORIES = 10_000

_TIMES = ("date", "timestamp", "timestamp_ntz")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDENTIFIER = _words(
    "id ids uuid guid ssn nin nino pesel bsn cpf curp aadhaar passport email mail phone telephone "
    "tel mobile fax iban name surname forename firstname lastname fullname nickname username login "
    "address street url uri ip imei vin mrn"
)
_PERSON = _words(
    "patient person customer client member employee user student subject citizen national account "
    "card policy holder owner"
)
_NUMBER = _words("id no nr num number key ref")
_SENSITIVE = _words(
    "diagnosis diagnoses disease illness disorder icd icd9 icd10 symptom symptoms medication drug "
    "treatment therapy hiv disability religion religious faith belief political politics "
    "orientation sexuality conviction criminal offence offense income salary wage wages earnings "
    "debt"
)
_TARGETS = ("target", "label", "class", "y", "outcome", "response", "class_label", "income")
_CODES = _words("zip zipcode postcode postal plz code")


@dataclass(frozen=True)
class ColumnProfile:
    """Counts and types of a column, without values.

    Attributes:
        name: The name of the column.
        type: Its Spark type.
        n_present: Present values in the sample.
        n_distinct: Distinct values in the sample.
        unique: Whether every row of the whole table has a different value.
        parses_as: The Spark type that all texts of the column can be read as; None if there is
            none.
        emails: The share of the texts that look like e-mail addresses.
    """

    name: str
    type: str
    n_present: int
    n_distinct: int
    unique: bool = False
    parses_as: str | None = None
    emails: float = 0.0

    @property
    def read_as(self) -> str:
        """The Spark type that the column is read as."""
        return self.parses_as or self.type

    @property
    def is_number(self) -> bool:
        kind = self.read_as
        return kind in (*_INTEGERS, *_TIMES, "float", "double") or kind.startswith("decimal")

    @property
    def is_text(self) -> bool:
        return self.read_as == "string" or self.read_as.startswith(("char(", "varchar("))


@dataclass(frozen=True)
class TableProfile:
    """The profiles of a table and its columns, and how the table is read.

    Attributes:
        format: The format of the source.
        path: The path of the source, or None.
        table: The name in the catalog, or None.
        n_rows: Rows of the table.
        n_sample: Rows of the sample that `columns` describe.
        columns: The columns, in the order of the table.
        options: Options of the reader.
        secrets: By option of the reader: the environment variable that holds it.
        notes: Notes for the user to review.
    """

    format: str
    path: str | None
    table: str | None
    n_rows: int
    n_sample: int
    columns: tuple[ColumnProfile, ...]
    options: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    """The probable role and scale of a column, and why."""

    role: Role
    scale: Scale | None
    why: str


def draft(profile: TableProfile) -> str:
    """Drafts a config as YAML with comments, for a person to review. `load` accepts it."""
    guesses = _guesses(profile)
    lines = [
        *_head(profile),
        *_source(profile),
        "",
        *_attributes(profile, guesses),
        "",
        *_persons(profile, guesses),
        "",
        *_privacy(guesses),
        "",
        *_rest(profile, guesses),
    ]
    return "\n".join(lines) + "\n"


def guess_role(column: ColumnProfile) -> Guess:
    """Guesses the role and scale of a column by its name and counts. Only `draft` guesses the
    target, since this needs all columns."""
    return _unfit(column) or _identifier(column) or _sensitive(column) or guess_scale(column)


def guess_scale(column: ColumnProfile) -> Guess:
    """Guesses the scale of a quasi-identifier by its type, its name and its counts."""
    if column.read_as in _TIMES:
        return Guess(Role.QUASI_IDENTIFIER, Scale.CONTINUOUS, "dates")
    if column.is_number and _CODES & set(name_words(column.name)):
        return Guess(Role.QUASI_IDENTIFIER, Scale.NOMINAL, "the name of a code")
    if column.is_number and column.n_distinct > FEW:
        return Guess(Role.QUASI_IDENTIFIER, Scale.CONTINUOUS, "numbers, many of them")
    if column.is_number:
        return Guess(Role.QUASI_IDENTIFIER, Scale.NOMINAL, "few numbers")
    return Guess(Role.QUASI_IDENTIFIER, Scale.NOMINAL, "categories")


def scalar(text: str) -> str:
    """A text as YAML: without quotes if that is safe, else in double quotes."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_/.-]*", text) and yaml.safe_load(text) == text:
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**6)
    return quoted.removesuffix("\n")


def name_words(name: str) -> list[str]:
    """The words of a column name, in lower case: `nationalID` gives national, id."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+", name)
    return [word.lower() for word in words]


def _guesses(profile: TableProfile) -> dict[str, Guess]:
    guesses = {column.name: guess_role(column) for column in profile.columns}
    lower = {column.name.lower(): column for column in reversed(profile.columns)}
    for name in _TARGETS:
        column = lower.get(name)
        most = 2 if name == "income" else 50
        if column is not None and 2 <= column.n_distinct <= most and column.read_as not in _TIMES:
            guesses[column.name] = Guess(Role.TARGET, None, "the name of a label, few values")
            break
    return guesses


def _unfit(column: ColumnProfile) -> Guess | None:
    if column.is_number or column.is_text or column.type == "boolean":
        return None
    return Guess(Role.DROP, None, "a type that can't be anonymized")


def _identifier(column: ColumnProfile) -> Guess | None:
    words = name_words(column.name)
    if _IDENTIFIER & {*words, "".join(words)} or _numbered_person(words):
        return Guess(Role.IDENTIFIER, None, "the name of an identifier")
    if column.emails > 0.5:
        return Guess(Role.IDENTIFIER, None, "looks like e-mail addresses")
    enough = column.n_present >= MIN_UNIQUE
    if column.is_text and enough and column.n_distinct == column.n_present:
        return Guess(Role.IDENTIFIER, None, "unique text")
    if column.is_text and column.n_distinct > 1_000 and _share(column) > 0.5:
        return Guess(Role.IDENTIFIER, None, "text that hardly repeats")
    if column.read_as in _INTEGERS and column.unique and column.n_present >= 1_000:
        return Guess(Role.IDENTIFIER, None, "every row has a whole number of its own")
    return None


def _sensitive(column: ColumnProfile) -> Guess | None:
    if _SENSITIVE & set(name_words(column.name)) and column.n_distinct >= 2:
        return Guess(Role.SENSITIVE, None, "the name of something confidential")
    return None


def _numbered_person(words: Sequence[str]) -> bool:
    return bool(_PERSON & set(words)) and bool(_NUMBER & set(words))


def _share(column: ColumnProfile) -> float:
    return column.n_distinct / max(1, column.n_present)


def _head(profile: TableProfile) -> list[str]:
    seen = f"{profile.n_rows:,} rows"
    if profile.n_sample < profile.n_rows:
        seen += f"; the figures below are of a sample of {profile.n_sample:,} of them"
    return [
        "# A draft by `anonlib init`. Every line with `review` is a guess: read it, correct it,",
        "# and take the mark away. Then `anonlib check` this file. Nominal columns that have an",
        "# order may be ordinal: numbers as they are, texts with `order: [lowest, ..., highest]`.",
        f"# Seen: {seen}.",
        *[f"# review: {note}" for note in profile.notes],
    ]


def _source(profile: TableProfile) -> list[str]:
    lines = ["source:", f"  format: {scalar(profile.format)}"]
    if profile.table is not None:
        lines.append(f"  table: {scalar(profile.table)}")
    elif profile.path is not None:
        lines.append(f"  path: {scalar(profile.path)}")
    if profile.options:
        lines.append("  options:")
        lines += [f"    {scalar(key)}: {scalar(text)}" for key, text in profile.options.items()]
    if profile.secrets:
        lines.append("  secrets:  # each by the name of the environment variable that has it")
        lines += [f"    {scalar(key)}: {scalar(text)}" for key, text in profile.secrets.items()]
    return lines


def _attributes(profile: TableProfile, guesses: dict[str, Guess]) -> list[str]:
    rows = []
    for column in profile.columns:
        guess = guesses[column.name]
        fields = [f"role: {guess.role}"]
        if guess.scale is not None:
            fields.append(f"scale: {guess.scale}")
        hidden = guess.role in (Role.DROP, Role.IDENTIFIER)
        if column.parses_as is not None and not hidden:
            fields.append(f"type: {column.parses_as}")
        left = f"  {scalar(column.name)}: {{{', '.join(fields)}}}"
        rows.append((left, f"# review: {guess.why} ({_evidence(profile, column)})"))
    width = max([0, *[len(left) for left, _ in rows if len(left) <= 72]])
    return ["attributes:", *[f"{left:<{width}}  {comment}" for left, comment in rows]]


def _evidence(profile: TableProfile, column: ColumnProfile) -> str:
    kind = column.type
    if column.parses_as:
        kind = f"{column.type}, all of it {column.parses_as}"
    if not column.n_present:
        return f"{kind}; all missing"
    parts = [kind, f"{column.n_distinct:,} distinct, {_percent(_share(column))}"]
    if column.unique:
        parts[1] = "unique"
    missing = 1 - column.n_present / profile.n_sample
    return "; ".join([*parts, f"{_percent(missing)} missing" if missing else "none missing"])


def _percent(share: float) -> str:
    if share and share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.1f} %"


def _persons(profile: TableProfile, guesses: dict[str, Guess]) -> list[str]:
    identifiers = [c for c in profile.columns if guesses[c.name].role is Role.IDENTIFIER]
    repeated = [c for c in identifiers if _numbered_person(name_words(c.name)) and _repeats(c)]
    unique = [c for c in identifiers if c.unique]
    if repeated:
        why = "# review: it repeats, so a person seems to have several rows"
        return [f"unit: [{scalar(repeated[0].name)}]  {why}"]
    if unique:
        best = min(unique, key=lambda c: not (_NUMBER & set(name_words(c.name))))
        why = "# review: unique; does it stand for a person?"
        return [f"one_row_per_person: {scalar(best.name)}  {why}"]
    return [
        "# review: nothing unique was found. Is every row another person? Else name the columns",
        "# that identify a person: `unit: [COLUMNS]`.",
        "one_row_per_person: true",
    ]


def _repeats(column: ColumnProfile) -> bool:
    return column.n_present > 0 and not column.unique and _share(column) < 0.999


def _privacy(guesses: dict[str, Guess]) -> list[str]:
    lines = ["privacy:", "  models:", "    - {type: k_anonymity, k: 10}  # review"]
    if any(guess.role is Role.SENSITIVE for guess in guesses.values()):
        lines.append("    - {type: l_diversity, l: 2}  # review: for every sensitive column")
    for name, guess in guesses.items():
        if guess.role is Role.TARGET:
            lines += [
                "    # review: protects the target. If all may know it, put `public: true` on it",
                "    # and take this line away, which keeps far more of what can be learned.",
                f"    - {{type: l_diversity, l: 2, attribute: {scalar(name)}}}",
            ]
    return [*lines, "  suppression_limit: 0.0"]


def _rest(profile: TableProfile, guesses: dict[str, Guess]) -> list[str]:
    lines = []
    nominal = [c for c in profile.columns if guesses[c.name].scale is Scale.NOMINAL]
    most = max([0, *[column.n_distinct for column in nominal]])
    if most > DEFAULT_MAX_CATEGORIES:
        why = "# review: is this really nominal, with that many categories?"
        lines.append(f"max_categories: {2 * most}  {why}")
    return [
        *lines,
        "partition: {steps: [{type: kmeans}], max_rows: 20000}",
        "kernel: {type: mdav}",
        "recode: {continuous: centroid, ordinal: median, nominal: mode}",
        f"release: {{path: {_release_path(profile)}, mode: error}}  # review",
        "# Drawn for this file: who knows it can test guesses at how cells were made.",
        f"seed: {secrets.randbits(31)}",
    ]


def _release_path(profile: TableProfile) -> str:
    """A folder for the release, which does not overlap with the source."""
    table = profile.table or profile.options.get("dbtable", "")
    stem = table.split(".")[-1] if profile.path is None else _stem(profile.path)
    folder = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_") or "table"
    places = [f"{parent}/{folder}" for parent in ("out", "released", "../released")]
    free = [place for place in places if profile.path is None or not overlap(profile.path, place)]
    return [*free, *places][0]


def _stem(path: str) -> str:
    return PurePosixPath(path).name.split(".")[0]
