"""What is worth knowing of columns in hand: the guesses of `anonlib init`, as notes."""

import re
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.config.direct import PERSONAL_KINDS, count_kinds, list_texts, main_kind
from anonlib.config.guess import ColumnProfile, guess_role
from anonlib.errors import Problem
from anonlib.local.rows import name_type
from anonlib.table.schema import Role, Scale, Schema, is_atomic
from anonlib.text import DATE_TEXT, DECIMAL_TEXT, NUMBER_TOKENS, TEXT_TOKENS, TIME_TEXT, WHOLE_TEXT

#: What texts are tried as, the narrowest first.
_TEXTS = {"bigint": WHOLE_TEXT, "double": DECIMAL_TEXT, "date": DATE_TEXT, "timestamp": TIME_TEXT}


def profile_values(name: str, values: pa.Array) -> ColumnProfile:
    """The profile of a column. values: in a type that Spark has. Cost: O(n); texts are looked at
    as far as they differ, and not all of those."""
    present = values.drop_null()
    if not is_atomic(values.type):
        return ColumnProfile(name, name_type(values.type), len(present), 0)
    tokens = _count_tokens(present)
    texts = list_texts(present) if pa.types.is_string(values.type) else []
    return ColumnProfile(
        name,
        name_type(values.type),
        n_present=len(present) - sum(tokens.values()),
        n_distinct=len(present.unique()) - len(tokens),
        parses_as=_parse(texts),
        kind=main_kind(count_kinds(texts)),
        tokens=tokens,
    )


def _count_tokens(present: pa.Array) -> dict[str, int]:
    """By value that may stand for a missing one: its rows."""
    at, kind = pa.types, present.type
    if at.is_string(kind):
        counts = pc.value_counts(present)
        known = {**TEXT_TOKENS, **{token: token for token in NUMBER_TOKENS}}
        found = zip(
            counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True
        )
        return {text: n for text, n in found if text.strip().lower() in known}
    if not (at.is_signed_integer(kind) or at.is_floating(kind)):
        return {}
    negative = pc.filter(present, pc.less(present, pa.scalar(0, kind)))
    values = pc.unique(negative).to_pylist()
    spelled = f"{values[0]:g}" if len(values) == 1 else ""
    return {spelled: len(negative)} if spelled in NUMBER_TOKENS else {}


def _parse(texts: Iterable[str]) -> str | None:
    """The narrowest type that all texts can be read as; None for none."""
    plain = [text.strip() for text in texts]
    fitting = (t for t, shape in _TEXTS.items() if all(re.match(shape, text) for text in plain))
    return next(fitting, None) if plain else None


def advise(profiles: Iterable[ColumnProfile]) -> Iterator[str]:
    """Notes on quasi-identifiers. No note has a value, except those of the lists of tokens."""
    for column in profiles:
        where = f"column {column.name}"
        if column.parses_as is not None:
            what, how = ("dates", "to_datetime") if column.is_time else ("numbers", "to_numeric")
            yield f"{where}: these texts look like {what}; convert them (in pandas `pd.{how}`)"
        guess = guess_role(column)
        if guess.role is Role.IDENTIFIER:
            yield f"{where}: {guess.why}; if it is an identifier, move it to `identifiers`"
        elif column.is_nearly_unique:
            yield f"{where}: nearly unique per row, so it costs much; leave it out, or coarsen it"
        if column.tokens:
            names = ", ".join(f"`{token}`" for token in column.tokens)
            mean, them = ("means", "it") if len(column.tokens) == 1 else ("mean", "them")
            yield f"{where}: if {names} {mean} missing, make {them} null"


def note_times(schema: Schema, sample: pa.Table) -> Iterator[str]:
    """Notes on texts that are told apart by their letters although they look like dates.

    Args:
        schema: The columns.
        sample: Rows of the source, with the quasi-identifiers by their ids.
    """
    for column in schema.quasi_identifiers:
        if not pa.types.is_string(column.type) or column.scale is not Scale.NOMINAL:
            continue
        values = sample.column(column.id).combine_chunks()
        kind = _parse(list_texts(values.drop_null()))
        if kind in ("date", "timestamp") and column.hierarchy is None:
            yield (
                f"column {column.name}: these texts look like dates; with `type: {kind}` and "
                "`scale: continuous` near ones go together"
            )


def find_direct(profiles: Iterable[ColumnProfile]) -> Iterator[Problem]:
    """The columns whose values reach a person by themselves, and would be published as they are."""
    for column in profiles:
        if column.kind in PERSONAL_KINDS:
            yield Problem(
                f"column {column.name}",
                f"shows who a person is: its texts look like {column.kind}, published unchanged; "
                "name it in `identifiers`, leave it out, or name it under "
                "privacy.acknowledge_unique",
            )


def advise_unchanged(profiles: Iterable[ColumnProfile]) -> Iterator[str]:
    """Notes on columns that are published as they are."""
    for column in profiles:
        guess = guess_role(column)
        if guess.role is Role.IDENTIFIER:
            yield (
                f"column {column.name}: {guess.why}; it is published as it is: if it is an "
                "identifier, name it in `identifiers`"
            )


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
