"""What is worth knowing of columns in hand: the guesses of `anonlib init`, as notes."""

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from anonlib.config.direct import list_texts
from anonlib.config.guess import ColumnProfile, guess_role
from anonlib.local.column_facts import parse_texts
from anonlib.table.schema import Role, Scale, Schema


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
        yield from _ask_of_far(column)


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
        kind = parse_texts(list_texts(values.drop_null()))
        if kind in ("date", "timestamp") and column.hierarchy is None:
            yield (
                f"column {column.name}: these texts look like dates; with `type: {kind}` and "
                "`scale: continuous` near ones go together"
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
        yield from _ask_of_far(column)


def _ask_of_far(column: ColumnProfile) -> Iterator[str]:
    """A note on numbers of a list that are far from all others of a column."""
    if column.far:
        numbers = " or ".join(column.far)
        yield f"column {column.name}: does {numbers} mean missing? Then make it null"


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
