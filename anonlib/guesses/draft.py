"""Drafts a first config for a table, for a person to review: the guesses, their evidence, and the
list of what is left to be looked at. The draft shows names, types, counts, and texts that usually
stand for a missing value, but no other value of the table.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

import yaml

from anonlib.arrays import Ints
from anonlib.config.checks.attributes import HIDDEN
from anonlib.config.paths import name_file, relate
from anonlib.config.places import overlap
from anonlib.guesses.guess import ColumnProfile, Guess, ask_of_doubt, guess_role
from anonlib.guesses.person_key import find_person_key
from anonlib.guesses.sketch import (
    find_copies,
    find_equal,
    find_sources,
    rank_singling,
    rate_unique,
)
from anonlib.identifiers.column_names import LANGUAGES
from anonlib.identifiers.direct import PHONE_KINDS
from anonlib.table.schema import Role, Scale
from anonlib.text import MISSING_TOKENS, NUMBER_TOKENS, printable

DEFAULT_MAX_CATEGORIES = 10_000
#: The most characters of a line of prose.
WIDTH = 90
#: How many columns that single out rows are named.
N_SINGLING = 3
#: What classes may add to guessing a sensitive value, besides the 1/k that small classes add.
GAIN = 0.2
#: The least k whose chance to be found, 1/k, is within the 0.09 that reports judge by.
LEAST_K = 12
#: Names of labels, the likely ones first.
_TARGETS = ("target", "label", "class", "y", "outcome", "response", "class_label", "income")
#: How many rows persons have, where nothing else tells them; and roles of what may count them.
ROWS_OF_PERSON = (2, 20)
_MAY_COUNT = (Role.IDENTIFIER, Role.QUASI_IDENTIFIER)


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
        notes: Notes on how the table is read, for the user to review.
        hashes: By column, as far as its values can be hashed: int64[n_sample]. They are in no
            draft.
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
    hashes: Mapping[str, Ints] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Persons:
    """How persons are counted.

    Attributes:
        unit: The columns that identify a person who may have several rows; empty for none.
        column: Without a unit: the column that is another one in every row; None: declared.
        why: Why.
    """

    unit: tuple[str, ...]
    column: str | None
    why: str

    @property
    def place(self) -> str:
        """The field of the config that says it."""
        return "unit" if self.unit else "one_row_per_person"


@dataclass(frozen=True)
class Draft:
    """A config before it is text.

    Attributes:
        profile: The table.
        guesses: By column.
        sources: By column whose values follow from those of another one: that one.
        persons: How persons are counted.
        k: The fewest persons of a cell.
        kernel: The type of the kernel.
        partitioner: The type of the partitioner.
        evidence: Why these two, without values of the table; empty if nothing was tried.
        answers: Places of the config that a person has looked at.
        seed: The seed, drawn once for the file.
    """

    profile: TableProfile
    guesses: Mapping[str, Guess]
    sources: Mapping[str, str]
    persons: Persons
    k: int = 10
    kernel: str = "mdav"
    partitioner: str = "kmeans"
    evidence: str = ""
    answers: frozenset[str] = frozenset()
    seed: int = field(default_factory=lambda: secrets.randbits(31))

    @property
    def review(self) -> list[str]:
        """The places that are left to be looked at, in the order of the file."""
        places = [
            *(["source"] if self.profile.notes else []),
            *[f"attributes.{column.name}" for column in self.profile.columns],
            self.persons.place,
            "privacy.models",
            *(["privacy.missing_tokens"] if self.missing_tokens else []),
            *(["max_categories"] if self.most_categories > DEFAULT_MAX_CATEGORIES else []),
            "gates",
            "release.path",
        ]
        return [place for place in places if place not in self.answers]

    @property
    def missing_tokens(self) -> list[str]:
        """Texts that may mean a missing value. A number means one in protected columns only."""
        tokens: dict[str, None] = {}
        for column in self.profile.columns:
            role = self.guesses[column.name].role
            numbers = () if role in (Role.SENSITIVE, Role.TARGET) else NUMBER_TOKENS
            if role not in HIDDEN:
                tokens |= {token: None for token in column.tokens if token not in numbers}
        return [*tokens]

    @property
    def most_categories(self) -> int:
        """The most values of a nominal column."""
        nominal = [c for c in self.profile.columns if self.guesses[c.name].scale is Scale.NOMINAL]
        return max([0, *[column.n_distinct for column in nominal]])

    def list_by_role(self, role: Role) -> list[str]:
        """The columns of a role."""
        return [name for name, guess in self.guesses.items() if guess.role is role]


def make_draft(profile: TableProfile) -> Draft:
    """Guesses a config for a table."""
    guesses = _guess_target(profile, {c.name: guess_role(c) for c in profile.columns})
    _drop_equal(profile, guesses)
    for group in find_copies(_kept_hashes(profile, guesses)):
        kept = max(group, key=lambda name: guesses[name].role in (Role.SENSITIVE, Role.TARGET))
        for name in group:
            if name != kept:
                guesses[name] = Guess(Role.DROP, None, f"says the same as {write_scalar(kept)}")
    key = _guess_key(profile, guesses)
    sources = find_sources(_kept_hashes(profile, guesses))
    return Draft(profile, guesses, sources, _guess_persons(profile, guesses, key))


def format_draft(draft: Draft, folder: Path) -> str:
    """The draft as YAML with comments. `load` accepts it.

    Args:
        draft: The draft, whose paths are relative to the working directory.
        folder: The folder of the file that it is for.
    """
    lines = [
        *_head(draft),
        *_source(draft.profile, folder),
        "",
        *_singling(draft),
        *_names(draft),
        *_attributes(draft),
        "",
        *_persons(draft.persons, answered=draft.persons.place in draft.answers),
        "",
        *_privacy(draft),
        "",
        *_rest(draft, folder),
    ]
    return "\n".join(lines) + "\n"


def write_scalar(text: str) -> str:
    """A text as YAML: without quotes if that is safe, else in double quotes."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_/.-]*", text) and yaml.safe_load(text) == text:
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**6)
    return quoted.removesuffix("\n")


def _guess_target(profile: TableProfile, guesses: dict[str, Guess]) -> dict[str, Guess]:
    lower = {column.name.lower(): column for column in reversed(profile.columns)}
    for name in _TARGETS:
        column = lower.get(name)
        most = 2 if name == "income" else 50
        if column is not None and 2 <= column.n_distinct <= most and not column.is_time:
            guess = Guess(Role.TARGET, None, "named like a label, few values")
            return {**guesses, column.name: guess}
    return guesses


def _drop_equal(profile: TableProfile, guesses: dict[str, Guess]) -> None:
    """Drops columns that equal another one in every row, and keeps the one that matters most."""
    rank = {Role.IDENTIFIER: 2, Role.SENSITIVE: 1, Role.TARGET: 1}
    hashes = {n: h for n, h in profile.hashes.items() if guesses[n].role is not Role.DROP}
    for group in find_equal(hashes):
        kept = max(group, key=lambda name: rank.get(guesses[name].role, 0))
        for name in group:
            if name != kept:
                guesses[name] = Guess(Role.DROP, None, f"equals {write_scalar(kept)} in every row")


def _kept_hashes(profile: TableProfile, guesses: Mapping[str, Guess]) -> dict[str, Ints]:
    """The hashes of the columns that may be released."""
    return {name: h for name, h in profile.hashes.items() if guesses[name].role not in HIDDEN}


def _guess_key(profile: TableProfile, guesses: dict[str, Guess]) -> str | None:
    """The column that stands for persons although its name doesn't say so, which is an identifier
    then; None if another one does."""
    columns = {column.name: column for column in profile.columns}
    named = [columns[n] for n, guess in guesses.items() if guess.role is Role.IDENTIFIER]
    if any(c.names_person and (c.unique or c.repeats) for c in named):
        return None
    quasi = [columns[n] for n, guess in guesses.items() if guess.role is Role.QUASI_IDENTIFIER]
    found = find_person_key(quasi, _kept_hashes(profile, guesses))
    if not found:
        return None
    key, *followers = found
    why = f"repeats, and {len(followers)} other columns follow from it"
    guesses[key] = Guess(Role.IDENTIFIER, None, why)
    return key


def _guess_persons(profile: TableProfile, guesses: Mapping[str, Guess], key: str | None) -> Persons:
    """How persons are counted. key: A column that stands for them by what other columns say."""
    if key is not None:
        return Persons((key,), None, "other columns follow from it; does it stand for a person?")
    identifiers = [c for c in profile.columns if guesses[c.name].role is Role.IDENTIFIER]
    numbered = sorted(identifiers, key=lambda c: not c.is_numbered)  # in the table's order
    repeated = [c for c in numbered if c.names_person and c.repeats]
    unique = [
        c.name for c in sorted(numbered, key=lambda c: not c.is_named_for_persons) if c.unique
    ]
    if any(c.is_named_for_persons and c.unique for c in numbered):
        # What only looks like phones may be those of shops, or codes.
        repeated = [c for c in repeated if c.is_named_for_persons or c.kind not in PHONE_KINDS]
    if repeated:
        finest = max(repeated, key=lambda c: c.n_distinct)  # the first of equal ones
        return Persons((finest.name,), None, "it repeats, so a person seems to have several rows")
    if unique:
        return Persons((), unique[0], "unique; does it stand for a person?")
    again = next((write_scalar(c.name) for c in numbered if c.repeats), "")
    if again:
        return Persons((), None, f"{again} repeats values")
    return Persons((), None, _ask_of_texts(profile, guesses))


def _ask_of_texts(profile: TableProfile, guesses: Mapping[str, Guess]) -> str:
    """Asks about the column of texts that may stand for persons with several rows, by how often its
    values are there; empty for none."""
    low, high = ROWS_OF_PERSON
    names = {name for role in _MAY_COUNT for name, guess in guesses.items() if guess.role is role}
    fitting = [
        c
        for c in profile.columns
        if c.name in names and c.is_text and c.repeats and not c.is_postal
        if low <= 1 / c.distinct_share <= high
    ]
    if not fitting:
        return ""
    finest = max(fitting, key=lambda c: c.n_distinct)  # the first of equal ones
    n = round(1 / finest.distinct_share)
    return f"{write_scalar(finest.name)} has about {n} rows for each of its values"


def _head(draft: Draft) -> list[str]:
    profile = draft.profile
    seen = f"{profile.n_rows:,} rows"
    if profile.n_sample < profile.n_rows:
        seen += f"; the figures below are of a sample of {profile.n_sample:,} of them"
    left = [f"  - {write_scalar(place)}" for place in draft.review]
    return [
        "# A draft by `anonlib init`: guesses, each with its evidence. Look at every place that",
        "# `review` lists, correct it, and take its name off the list. `anonlib check` says what",
        "# is left; `anonlib release` refuses this file before the list is empty. Nominal columns",
        "# that have an order may be ordinal: numbers as they are, texts with",
        "# `order: [lowest, ..., highest]`.",
        "# Paths are relative to the folder of this file.",
        f"# Seen: {seen}.",
        *(["review:", *left] if left else ["review: []"]),
        "",
    ]


def _source(profile: TableProfile, folder: Path) -> list[str]:
    lines = [
        *[f"# {printable(note)}" for note in profile.notes],
        "source:",
        f"  format: {write_scalar(profile.format)}",
    ]
    if profile.table is not None:
        lines.append(f"  table: {write_scalar(profile.table)}")
    elif profile.path is not None:
        lines.append(f"  path: {write_scalar(relate(profile.path, folder))}")
    if profile.options:
        lines.append("  options:")
        lines += [
            f"    {write_scalar(key)}: {write_scalar(text)}"
            for key, text in profile.options.items()
        ]
    if profile.secrets:
        lines.append("  secrets:  # each by the name of the environment variable that has it")
        lines += [
            f"    {write_scalar(key)}: {write_scalar(text)}"
            for key, text in profile.secrets.items()
        ]
    return lines


def _singling(draft: Draft) -> Iterator[str]:
    """Which quasi-identifiers single out most rows, as comments."""
    quasi = draft.list_by_role(Role.QUASI_IDENTIFIER)
    hashes = {name: h for name, h in draft.profile.hashes.items() if name in quasi}
    if not hashes or not draft.profile.n_sample:
        return
    whole = rate_unique([*hashes.values()])
    if not whole:
        return
    ranked = [*rank_singling(hashes, N_SINGLING)]
    do = "Few columns do most of that"
    if ranked[-1][1] <= whole / 2:
        do = f"It takes many columns: these {len(ranked)} do less than half of it"
    if len(ranked) == len(hashes):
        do = "By column, each with those before it"
    text = (
        f"{format_share(whole)} of the rows have quasi-identifiers that no other row has. {do}. "
        "Each costs information: drop or coarsen what nobody needs."
    )
    yield from (f"# {line}" for line in wrap(text, WIDTH))
    for i, (name, share) in enumerate(ranked):
        yield f"#   {'with ' * bool(i)}{write_scalar(name)}: {format_share(share)}"


def _names(draft: Draft) -> list[str]:
    """How names were read, as comments."""
    text = f"Names are read in {LANGUAGES}."
    if not draft.list_by_role(Role.SENSITIVE):
        text = (
            "No sensitive column was recognised: name what nobody may find out about a person. "
            f"{text}"
        )
    return [f"# {line}" for line in wrap(text, WIDTH)]


def _attributes(draft: Draft) -> list[str]:
    rows = []
    for column in draft.profile.columns:
        guess = draft.guesses[column.name]
        fields = [f"role: {guess.role}"]
        if guess.scale is not None:
            fields.append(f"scale: {guess.scale}")
        if column.parses_as is not None and guess.role not in HIDDEN:
            fields.append(f"type: {column.parses_as}")
            if column.layout is not None:
                fields.append(f"layout: {write_scalar(column.layout)}")
        left = f"  {write_scalar(column.name)}: {{{', '.join(fields)}}}"
        rows.append((left, f"# {explain_guess(draft, column)}"))
    width = max([0, *[len(left) for left, _ in rows if len(left) <= 72]])
    return ["attributes:", *[f"{left:<{width}}  {comment}" for left, comment in rows]]


def explain_guess(draft: Draft, column: ColumnProfile) -> str:
    """Why a column has its role, with the evidence: types, counts, relations. On one line, though a
    type may have names of fields, and these line breaks."""
    guess, source = draft.guesses[column.name], draft.sources.get(column.name)
    parts = [*_evidence(draft.profile, column)]
    if source is not None:
        parts.append(f"follows from {write_scalar(source)}")
    numbers = [token for token in column.tokens if token in NUMBER_TOKENS]
    if numbers and guess.role is Role.QUASI_IDENTIFIER:
        parts.append(f"make {', '.join(numbers)} null in the source, else it counts as a number")
    if column.far and guess.role not in HIDDEN:
        parts.append(f"{column.far_question} in the source")
    if doubt := ask_of_doubt(column, guess):
        parts.append(f"look like {doubt}")
    return printable(f"{guess.why} ({'; '.join(parts)})")


def _evidence(profile: TableProfile, column: ColumnProfile) -> Iterator[str]:
    written = f" written as {column.layout}" if column.layout else ""
    all_of_it = f", all of it {column.parses_as}{written}" if column.parses_as else ""
    yield f"{column.type}{all_of_it}"
    if not column.is_seen:
        yield "not looked at"
        return
    if not column.n_present:
        yield "all missing"
        return
    if column.unique:
        yield "unique"
    else:
        yield f"{column.n_distinct:,} distinct, {format_share(column.distinct_share)}"
    missing = 1 - column.n_present / profile.n_sample
    spelled = f", some as {', '.join(column.tokens)}" if column.tokens else ""
    yield f"{format_share(missing)} missing{spelled}" if missing else "none missing"


def format_share(share: float) -> str:
    """A share in per cent, such as `5.7 %`."""
    if share and share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.1f} %"


def _persons(persons: Persons, *, answered: bool) -> list[str]:
    if persons.unit:
        return [f"unit: [{', '.join(map(write_scalar, persons.unit))}]  # {persons.why}"]
    if persons.column is not None:
        return [f"one_row_per_person: {write_scalar(persons.column)}  # {persons.why}"]
    if answered:
        return ["one_row_per_person: true"]
    found = f"; {printable(persons.why)}" if persons.why else ""
    text = (
        f"Nothing unique was found{found}. Is every row another person? Else name the columns that "
        "identify a person: `unit: [COLUMNS]`."
    )
    return [*[f"# {line}" for line in wrap(text, WIDTH)], "one_row_per_person: true"]


def _privacy(draft: Draft) -> list[str]:
    safer = f"  # k = {LEAST_K} keeps the chance to be found within 0.09 (EMA, Health Canada)"
    comment = safer if draft.k < LEAST_K else ""
    lines = ["privacy:", "  models:", f"    - {{type: k_anonymity, k: {draft.k}}}{comment}"]
    if draft.list_by_role(Role.SENSITIVE):
        lines.append("    - {type: l_diversity, l: 2}  # for every sensitive column")
    for name in draft.list_by_role(Role.TARGET):
        lines += [
            "    # Protects the target. If all may know it, put `public: true` on it and take this",
            "    # line away, which keeps far more of what can be learned.",
            f"    - {{type: l_diversity, l: 2, attribute: {write_scalar(name)}}}",
        ]
    if draft.missing_tokens:
        tokens = ", ".join(
            write_scalar(token) for token in (*MISSING_TOKENS, *draft.missing_tokens)
        )
        lines += [
            "  # Texts that mean a missing value in sensitive columns, in the target, and where",
            "  # text is read as numbers or dates: take away those that don't. In other columns",
            "  # they stay values, which an `order` must list: make them null in the source.",
            f"  missing_tokens: [{tokens}]",
        ]
    return [*lines, "  suppression_limit: 0.0"]


def _rest(draft: Draft, folder: Path) -> list[str]:
    lines, most = [], draft.most_categories
    path = write_scalar(relate(_release_path(draft.profile), folder))
    if most > DEFAULT_MAX_CATEGORIES:
        why = "# is this really nominal, with that many categories?"
        lines.append(f"max_categories: {2 * most}  {why}")
    return [
        *lines,
        *[f"# {line}" for line in wrap(printable(draft.evidence), WIDTH)],
        f"partition: {{steps: [{{type: {draft.partitioner}}}], max_rows: 20000}}",
        f"kernel: {{type: {draft.kernel}}}",
        "recode: {continuous: centroid, ordinal: median, nominal: mode}",
        "# What the release is worth and how risky it is: the usual measures (`anonlib measures`).",
        "evaluate: {}",
        *_gates(draft),
        f"release: {{path: {path}, mode: error}}",
        "# Drawn for this file: who knows it can test guesses at how cells were made.",
        f"seed: {draft.seed}",
    ]


def _gates(draft: Draft) -> list[str]:
    """A bound that a release can break: k-anonymity alone keeps bounds on the chance to be found,
    but not those on what classes tell."""
    lines = [
        "# Bounds on their figures; outside them nothing is published. Another one, for example:",
        "# - {figure: queries.median, at_most: 0.2}",
    ]
    if not draft.list_by_role(Role.SENSITIVE):
        return [*lines, "gates: []"]
    return [
        *lines,
        "# `gain`: how much more often a sensitive value is guessed right by who knows the class.",
        "gates:",
        f"  - {{figure: disclosure.gain, at_most: {bound_gain(draft.k)}}}",
    ]


def bound_gain(k: int) -> float:
    """The most by which classes of k rows may make guesses of a sensitive value better."""
    return float(f"{1 / k + GAIN:.2g}")


def _release_path(profile: TableProfile) -> str:
    """A folder for the release, which does not overlap with the source."""
    table = profile.table or profile.options.get("dbtable", "")
    folder = name_file(table.split(".")[-1] if profile.path is None else profile.path)
    places = [f"{parent}/{folder}" for parent in ("out", "released", "../released")]
    free = [place for place in places if profile.path is None or not overlap(profile.path, place)]
    return [*free, *places][0]
