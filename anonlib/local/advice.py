"""What is worth knowing of columns: the notes of a release, and the guesses of `anonlib init`."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.config.checks.persons import note_links
from anonlib.config.model import Config
from anonlib.config.unused import note_unused
from anonlib.content.content_rules import Content, Repetition, is_key
from anonlib.guesses.draft import write_scalar
from anonlib.guesses.guess import NAMED, ColumnProfile, ask_of_doubt, guess_role
from anonlib.guesses.person_key import find_person_key
from anonlib.identifiers.direct import LEAST_LOOSE, LISTED_NAMES, list_texts
from anonlib.local.column_facts import parse_texts
from anonlib.table.encoding import Encoding, note_rounded
from anonlib.table.layouts import DOUBTS, NUMBERS, choose_doubt, find_doubts
from anonlib.table.schema import PER_SECOND, Role, Scale, Schema
from anonlib.text import is_few


def advise(profiles: Iterable[ColumnProfile]) -> Iterator[str]:
    """Notes on quasi-identifiers. No note has a value, except those of the lists of tokens."""
    for column in profiles:
        where = f"column {column.name}"
        if column.parses_as is not None:
            what = "dates" if column.is_time else "numbers"
            written = f" written as {column.layout}" if column.layout else ""
            how = _convert(column)
            yield f"{where}: these texts look like {what}{written}; convert them ({how})"
        guess = guess_role(column)
        if guess.role is Role.IDENTIFIER or guess.why.startswith(NAMED):
            yield f"{where}: {guess.why}; if it is an identifier, move it to `identifiers`"
        elif column.is_nearly_unique:
            yield f"{where}: nearly unique per row, so it costs much; leave it out, or coarsen it"
        if doubt := ask_of_doubt(column, guess):
            what = "numbers" if column.may_be_continuous else "texts"
            yield f"{where}: these {what} look like {doubt}"
        if column.tokens:
            names = ", ".join(f"`{token}`" for token in column.tokens)
            mean, them = ("means", "it") if len(column.tokens) == 1 else ("mean", "them")
            yield f"{where}: if {names} {mean} missing, make {them} null"
        yield from _ask_of_far(column)


def ask_of_persons(
    profiles: Collection[ColumnProfile], columns: Mapping[str, Ints]
) -> Iterator[str]:
    """A note on a column that may stand for persons who have several rows, where each row is said
    to be another person.

    Args:
        profiles: The columns that may be it.
        columns: As in `anonlib.guesses.sketch.find_copies`; without them, names tell.
    """
    named = [column.name for column in profiles if column.names_person and column.repeats]
    name, *followers = named[:1] or find_person_key(profiles, columns) or [""]
    why = f"and {len(followers)} other columns follow from it" if followers else "as persons do"
    if name:
        yield (
            f"column {name}: repeats, {why}; if it stands for a person who has several rows, name "
            "it in `unit`: else classes of k rows may be of one person"
        )


def note_table(
    schema: Schema,
    content: Content,
    rows: pa.Table,
    n_rows: int,
    encodings: Iterable[Encoding],
    config: Config,
) -> Iterator[str]:
    """What a release says of its table and config, in Spark and in memory, and a check before it. A
    check says more: what to set before a release. For a table in hand, its release says that.

    Args:
        schema: The columns.
        content: What the content gate found.
        rows: All rows of the source, or some, with the quasi-identifiers by their ids.
        n_rows: The rows of the source.
        encodings: Those of the quasi-identifiers.
        config: The config.
    """
    yield from schema.notes
    yield from note_midnights(schema, rows)
    yield from note_repetitions(content.repetitions, config.k)
    yield from note_keys(schema, content, n_rows)
    yield from note_rounded(schema, encodings)
    yield from note_links(config)
    yield from note_unused(config)


def note_repetitions(repetitions: Iterable[Repetition], k: int) -> Iterator[str]:
    """Notes on identifiers of persons that repeat although each row counts as another person.
    Numbers below k are not told."""
    for each in repetitions:
        n_values, n_rows = (
            f"fewer than {k}" if is_few(n, k) else f"{n:,}" for n in (each.n_values, each.n_rows)
        )
        yield (
            f"column {each.column}: each row counts as another person, but values repeat: "
            f"{n_values} values in {n_rows} rows; if they stand for persons, name the column in "
            "`unit`: else classes of k rows may be of fewer persons"
        )


def note_keys(schema: Schema, content: Content, n_rows: int) -> Iterator[str]:
    """Notes on columns that were accepted although nearly all n_rows rows have their own value."""
    protected = {schema.by_id(id).name for id in schema.protected}
    for c in schema.released:
        plain = c.recoder is None and not c.pseudonym and c.name not in protected
        if plain and is_key(content.distinct.get(c.name, 0), n_rows):
            yield (
                f"column {c.name}: published as it is, and nearly every row has its own value: "
                "whoever knows it finds the row; if it stands for persons, make it an identifier"
            )


def note_times(schema: Schema, sample: pa.Table) -> Iterator[str]:
    """Notes on texts that are told apart by their letters although they look like dates, or like
    numbers as people write them; and on numbers that look like dates or codes.

    Args:
        schema: The columns.
        sample: Rows of the source, with the quasi-identifiers by their ids.
    """
    for column in schema.quasi_identifiers:
        is_text, at = pa.types.is_string(column.type), pa.types
        is_number = at.is_integer(column.type) or at.is_floating(column.type)
        if column.hierarchy is not None or not (
            (is_text and column.scale is Scale.NOMINAL)
            or (is_number and column.scale is Scale.CONTINUOUS)
        ):
            continue
        texts = list_texts(sample.column(column.id).combine_chunks().drop_null())
        reading = parse_texts(texts) if is_text else None
        if reading is None:
            doubt = choose_doubt(find_doubts(texts), None, is_number=not is_text)
            if doubt is not None:
                what = "texts" if is_text else "numbers"
                how = f"if they are that, {DOUBTS[doubt][1]}"
                yield f"column {column.name}: these {what} look like {doubt}; {how}"
            continue
        is_time = reading.type in ("date", "timestamp")
        if is_time or reading.layout is not None:  # plain whole numbers may be codes
            written = f", `layout: {write_scalar(reading.layout)}`" if reading.layout else ""
            what = "dates" if is_time else "numbers"
            yield (
                f"column {column.name}: these texts look like {what}; with `type: {reading.type}`"
                f"{written} and `scale: continuous` near ones go together"
            )


def _convert(column: ColumnProfile) -> str:
    """How pandas and polars make dates or numbers of the texts of a column."""
    if column.layout is None:
        if column.is_time:
            return "in pandas `pd.to_datetime`, in polars `.str.to_date()`"
        return "in pandas `pd.to_numeric`, in polars `.cast(pl.Float64)`"
    if column.layout in NUMBERS:
        layout = NUMBERS[column.layout]
        groups, mark = layout.groups[0], layout.decimal
        point = f' and make "{mark}" a point' if mark != "." else ""
        return (
            f'remove "{groups}"{point}, then in pandas `pd.to_numeric`, in polars '
            "`.cast(pl.Float64)`"
        )
    parts = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S"}
    pattern = re.sub(r"([a-zA-Z])\1*", lambda part: parts[part[1]], column.layout)
    return (
        f'in pandas `pd.to_datetime(..., format="{pattern}")`, in polars '
        f'`.str.to_datetime("{pattern}")`'
    )


def note_midnights(schema: Schema, rows: pa.Table) -> Iterator[str]:
    """Notes on times that are days: means of them are not, and days of a time zone are rounded as
    those of UTC.

    Args:
        schema: The columns.
        rows: All rows of the source, or some, with the quasi-identifiers by their ids.
    """
    how = "(`type: date` in Spark, `.dt.date` in pandas, `.dt.date()` in polars)"
    for column in schema.quasi_identifiers:
        if not pa.types.is_timestamp(column.type) or column.recoder is None:
            continue
        if column.recoder.releases == "value" and _are_midnights(rows.column(column.id)):
            yield (
                f"column {column.name}: its times look like midnights, and released ones may be "
                f"at any hour; make it a date {how}"
            )
        unit = getattr(column.recoder, "round_to", None)
        if column.type.tz is not None and unit is not None:
            yield (
                f"column {column.name}: `round_to: {unit}` is of UTC, not of the column's time "
                f"zone, whose days begin at another hour; make it a date of its zone {how}"
            )


def _are_midnights(times: pa.ChunkedArray) -> bool:
    """Whether all times may be midnights, and one is there. Those of a time zone have one or, with
    summer time, two times of the day in UTC."""
    hour = 3600 * PER_SECOND[times.type.unit]
    within = np.unique(times.cast(pa.int64()).drop_null().to_numpy() % (24 * hour))
    if times.type.tz is None:
        return bool(within.tolist() == [0])
    apart = within.max(initial=0) - within.min(initial=24 * hour)
    return bool(0 < len(within) <= 2 and apart in (0, hour, 23 * hour))


def advise_unchanged(profiles: Iterable[ColumnProfile]) -> Iterator[str]:
    """Notes on columns that are published as they are."""
    for column in profiles:
        guess = guess_role(column)
        if guess.role is Role.IDENTIFIER or guess.why.startswith(NAMED):
            yield (
                f"column {column.name}: {guess.why}; it is published as it is: if it is an "
                "identifier, name it in `identifiers`"
            )
        elif column.kind == LISTED_NAMES and column.n_distinct >= LEAST_LOOSE:
            yield (
                f"column {column.name}: may have {column.kind}; it is published as it is: if it "
                "is an identifier, name it in `identifiers`"
            )
        yield from _ask_of_far(column)


def _ask_of_far(column: ColumnProfile) -> Iterator[str]:
    """A note on numbers and days of a list that are far from all others of a column."""
    if column.far:
        yield f"column {column.name}: {column.far_question}"


def list_missing(profiles: Iterable[ColumnProfile]) -> list[str]:
    """The tokens of protected columns that may mean a missing value, each once."""
    return [*dict.fromkeys(token for column in profiles for token in column.tokens)]


def advise_protected(profiles: Iterable[ColumnProfile], missing: Collection[str]) -> Iterator[str]:
    """Notes on what counts as missing in protected columns. missing: Texts that mean it."""
    for column in profiles:
        if tokens := [token for token in column.tokens if token in missing]:
            verb = "counts" if len(tokens) == 1 else "count"
            yield (
                f"column {column.name}: {', '.join(tokens)} {verb} as missing, so that no model "
                "takes it for a value; privacy.missing_tokens can say otherwise"
            )
