"""Columns as texts that are equal where people see one value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import category

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING, Floats, Ints
from anonlib.content.content_rules import WHOLE_NUMBER
from anonlib.content.readings import list_readings, read_whole
from anonlib.identifiers.direct import MOST_TEXTS, list_texts
from anonlib.table.encoding import clear_nan
from anonlib.text import fold_text

_ASCII = frozenset(map(chr, range(128)))
#: Letters and signs of many languages that Unicode has as one character, that combine with no
#: neighbour, and whose case is simple.
_PLAIN = (
    r"!-~\x{c0}-\x{d6}\x{d8}-\x{de}\x{e0}-\x{f6}\x{f8}-\x{12f}\x{134}-\x{13e}\x{141}-\x{148}"
    r"\x{14a}-\x{17e}\x{400}-\x{45f}\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{4e00}-\x{9fff}"
    r"\x{ac00}-\x{d7a3}"
)
#: Words of them with one blank between them.
_SIMPLE = f"^[{_PLAIN}]+(?: [{_PLAIN}]+)*$"
#: Whole floats below it are 64-bit integers.
_LARGEST = 2.0**63

#: Gives the texts of some columns their numbers, of which `TextColumn.number` tells.
NumberTexts = Callable[[Sequence[pa.Array]], Sequence[Ints]]


@dataclass(frozen=True)
class TextColumn:
    """A column as texts that are equal where people see one value.

    Attributes:
        values: The v values of the column, each once (but see `pick`).
        place: int64[n]. The place of each row's value among them; MISSING for none.
        texts: The v texts of the values; null for blank text.
        number: int64[v]. The number of each text; MISSING for none. Texts are equal, also those of
            other columns, if their numbers are.
    """

    values: pa.Array
    place: Ints
    texts: pa.Array
    number: Ints

    @cached_property
    def code(self) -> Ints:
        """int64[n]. The number of each row's text; MISSING for none."""
        return np.append(self.number, MISSING)[self.place]

    @cached_property
    def letters(self) -> list[str]:
        """The letters and digits of the v texts; empty for blank text."""
        # One text is faster than many. Lines do not break within texts of values.
        joined = "\n".join(self.texts.fill_null("").to_pylist())
        letters = _ASCII if joined.isascii() else set(joined)
        marks = [ord(c) for c in letters if c != "\n" and category(c)[0] not in "LN"]
        return joined.translate(dict.fromkeys(marks)).split("\n")

    @cached_property
    def readings(self) -> list[Floats]:
        """The v values as numbers or days, in each way that fits (`list_readings`)."""
        return list_readings(self.values, self.texts)

    def take(self, rows: Ints) -> "TextColumn":
        """The column of some rows, with their values only."""
        place = self.place[rows]
        used = np.unique(place[place != MISSING])
        new = np.full(len(self.values) + 1, MISSING)
        new[used] = np.arange(len(used))
        values, texts = self.values.take(pa.array(used)), self.texts.take(pa.array(used))
        return TextColumn(values, new[place], texts, self.number[used])

    def pick(self, places: Ints) -> "TextColumn":
        """The column of the values at some places, also at the same, with a row for each."""
        values, texts = self.values.take(pa.array(places)), self.texts.take(pa.array(places))
        return TextColumn(values, np.arange(len(places)), texts, self.number[places])

    def unique(self, most: int = 2**63 - 1) -> tuple[Ints, Floats]:
        """int64[u]: the numbers of the texts up to `most`, each once, ascending. float64[u]: the
        texts as numbers on a line."""
        kept = np.flatnonzero((self.number <= most) & (self.number != MISSING))
        unique, first = np.unique(self.number[kept], return_index=True)
        places = pa.array(kept[first])
        return unique, read_whole(self.values.take(places), self.texts.take(places))

    def count_present(self) -> int:
        """The rows that have a text."""
        return int((self.code != MISSING).sum())

    def count_equal(self, other: "TextColumn") -> int:
        """The rows that have the same text in both columns."""
        return int(((self.code == other.code) & (self.code != MISSING)).sum())


def to_text_columns(columns: Mapping[str, pa.Array], number: NumberTexts) -> dict[str, TextColumn]:
    """By id: the columns as texts.

    Args:
        columns: By id: the values.
        number: Gives the texts their numbers.
    """
    coded = [clear_nan(values).dictionary_encode() for values in columns.values()]
    texts = [_as_texts(each.dictionary) for each in coded]
    return {
        id: TextColumn(each.dictionary, _as_places(each.indices), text, numbers)
        for id, each, text, numbers in zip(columns, coded, texts, number(texts), strict=True)
    }


def _as_places(indices: pa.Array) -> Ints:
    places: Ints = indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _as_texts(values: pa.Array) -> pa.Array:
    """Texts that are equal where people see one value: 7, 7.0 and " 007", or a date and its
    midnight. Null for blank text."""
    at = pa.types
    if at.is_binary(values.type):
        values = _decode(values)
    if at.is_string(values.type):
        return _as_plain_integers(fold_texts(values))
    if at.is_floating(values.type):
        return _as_float_texts(values, "")
    texts = as_raw(values)
    if at.is_timestamp(values.type):
        return pc.replace_substring_regex(texts, " 00:00:00$", "")
    if at.is_decimal(values.type):
        texts = pc.replace_substring_regex(texts, "^0E-[0-9]+$", "0")
        return pc.replace_substring_regex(texts, r"\.0+$", "")
    return texts


def _decode(values: pa.Array) -> pa.Array:
    """Bytes as the texts that they are in UTF-8, others in hexadecimal."""

    def text(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()

    return pa.array([text(value) for value in values.to_pylist()], pa.string())


def fold_texts(values: pa.Array) -> pa.Array:
    """Texts as people see them (`fold_text`); null for blank text."""
    # Most texts need a lower case only, which Arrow does faster.
    simple = pc.match_substring_regex(values, _SIMPLE)
    others = [fold_text(text) or None for text in values.filter(pc.invert(simple)).to_pylist()]
    folded = pc.utf8_lower(values)
    return pc.replace_with_mask(folded, pc.invert(simple), pa.array(others, pa.string()))


def _as_plain_integers(texts: pa.Array) -> pa.Array:
    """The texts with whole numbers as a machine writes them."""
    whole = pc.match_substring_regex(texts, WHOLE_NUMBER).fill_null(False)
    numbers = pc.replace_substring_regex(texts.filter(whole), r"^(?:\+|(-))?0*([0-9]+)$", r"\1\2")
    numbers = pc.if_else(pc.equal(numbers, "-0"), "0", numbers)
    return pc.replace_with_mask(texts, whole, numbers)


def list_source_texts(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Some distinct texts of a column, as `list_texts`: those of the least hashes, whatever the
    order of rows. Bytes are read as texts."""
    from anonlib.table.hashes import hash_values  # this imports numba

    distinct = pc.unique(values).drop_null()
    if len(distinct) > MOST_TEXTS:
        least = np.argsort(hash_values(distinct), kind="stable")[:MOST_TEXTS]
        distinct = distinct.take(pa.array(least))
    return list_texts(_decode(distinct) if pa.types.is_binary(distinct.type) else distinct)


def as_raw(values: pa.Array) -> pa.Array:
    """Texts of values as a machine writes them: 7.0 for a float, a time without zone, in UTC."""
    at = pa.types
    if at.is_timestamp(values.type):
        texts = values.cast(pa.timestamp(values.type.unit)).cast(pa.string())
        texts = pc.replace_substring_regex(texts, r"\.0+$", "")
        return pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$", r"\1")
    if at.is_floating(values.type):
        return _as_float_texts(values, ".0")
    if at.is_binary(values.type):
        return _decode(values)
    return values.cast(pa.string())


def _as_float_texts(values: pa.Array, end: str) -> pa.Array:
    """Floats as texts, those of whole numbers with this end."""
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    whole = (np.abs(numbers) < _LARGEST) & (numbers == np.floor(numbers))
    integers = pa.array(numbers[whole].astype(np.int64)).cast(pa.string())
    others = values.filter(pa.array(~whole)).cast(pa.string())
    place = np.empty(len(values), np.int64)
    place[whole], place[~whole] = np.arange(len(integers)), len(integers) + np.arange(len(others))
    integers = pc.binary_join_element_wise(integers, end, "")
    return pa.concat_arrays([integers, others]).take(pa.array(place))
