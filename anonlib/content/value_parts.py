"""What a column shows of the values of another one: parts of them, hashes, other layouts."""

import re
from collections.abc import Sequence

import numpy as np

from anonlib.arrays import MISSING, Ints
from anonlib.content.content_rules import MAX_HARMLESS_VALUES
from anonlib.content.digests import (
    LEAST_LETTERS,
    WHOLE_HASHES,
    find_codes,
    is_code,
    is_whole_hash,
)
from anonlib.content.relations import find_on_line
from anonlib.content.text_columns import TextColumn, as_raw

#: A costly form is tried on N_TRIED pairs first (codes on N_CODED), and on all if more than
#: LEAST_SHARE of those have it.
N_TRIED, N_CODED, LEAST_SHARE = 200, 8, 0.02
#: The share of the pairs that a line of numbers must hold: some lie on any line.
ON_LINE = 0.9
_WORD = re.compile(r"[^\W_]+")


def count_parts(own: TextColumn, person: TextColumn, sizes: Sequence[int]) -> list[int]:
    """By size: the rows in which a column shows at least as many letters and digits of an
    identifier (`ContentCounter.count_parts`)."""
    parts, n_rows = _find_parts(own, person)
    return [int(n_rows[parts >= size].sum()) for size in sizes]


def _find_parts(own: TextColumn, person: TextColumn) -> tuple[Ints, Ints]:
    """How many letters and digits of an identifier a column shows (`ContentCounter.count_parts`).

    Returns:
        int64[u], for each pair of values that a row has; and int64[u], its rows.
    """
    both = (own.code != MISSING) & (person.code != MISSING)
    width = max(1, len(person.values))
    pairs, n_rows = np.unique(own.place[both] * width + person.place[both], return_counts=True)
    i, j = pairs // width, pairs % width
    texts, others = own.letters, person.letters
    shown = map(texts.__getitem__, i.tolist())
    parts = np.array([*map(_measure_part, shown, map(others.__getitem__, j.tolist()))], np.int64)
    # Hashes are computed for texts of their lengths alone.
    lengths = np.array([*map(len, texts)], np.int64)[i]
    long = np.flatnonzero(np.isin(lengths, [*WHOLE_HASHES]))
    forms = _list_forms(person) if len(long) else []
    for each in long.tolist():
        if is_whole_hash(texts[i[each]], [form[j[each]] for form in forms]):
            parts[each] = lengths[each]
    left = np.flatnonzero(parts == 0)
    for find in (_find_words, _find_line, _find_codes):
        some = left[:: max(1, len(left) // N_TRIED)]
        tried = find(own.pick(i[some]), person.pick(j[some])) > 0
        if tried.sum() > LEAST_SHARE * len(some):
            parts[left] = find(own.pick(i[left]), person.pick(j[left]))
            left = left[parts[left] == 0]
    return parts, n_rows


def _find_words(own: TextColumn, person: TextColumn) -> Ints:
    """int64[v]: the letters and digits that v pairs of values show, if the words of the first are
    those of the second, or the beginnings of some, in any order."""
    texts, others = (column.texts.fill_null("").to_pylist() for column in (own, person))
    return np.array([*map(_measure_words, texts, others)], np.int64)


def _measure_words(text: str, other: str) -> int:
    words = _WORD.findall(text)
    if len(words) < 2:
        return 0
    left = sorted(_WORD.findall(other), key=len)
    # The longest words first: they fit fewest others.
    for word in sorted(words, key=len, reverse=True):
        whole = next((each for each in left if each.startswith(word)), None)
        if whole is None:
            return 0
        left.remove(whole)
    return sum(map(len, words))


def _find_line(own: TextColumn, person: TextColumn) -> Ints:
    """int64[v]: the letters and digits of the second of v pairs of values, if numbers or days of
    both are on one line, as most are: one has another layout or unit, or was moved."""
    few = any(len(c.values.unique()) <= MAX_HARMLESS_VALUES for c in (own, person))
    for x in () if few else person.readings:
        for y in own.readings:
            on_line = find_on_line(x, y)
            if on_line.mean() >= ON_LINE:
                return np.where(on_line, [*map(len, person.letters)], 0)
    return np.zeros(len(own.values), np.int64)


def _find_codes(own: TextColumn, person: TextColumn) -> Ints:
    """int64[v]: the letters and digits that v pairs of values show, if the first is a code of the
    second (`CODES`), or a part of one. Codes are sought that some of the pairs have."""
    texts, found = own.letters, np.zeros(len(own.values), np.int64)
    # Numbers are in many codes by chance.
    likely = [i for i, text in enumerate(texts) if not text.isdigit()]
    some = likely[:: max(1, len(likely) // N_CODED)]
    if not any(len(texts[i]) >= LEAST_LETTERS for i in some):
        return found
    forms = _list_forms(person)
    few = [[form[i] for i in some] for form in forms]
    codes = [*find_codes([texts[i] for i in some], few)]
    for i in likely if codes else ():
        if any(is_code(texts[i], forms[place][i], code) for place, code in codes):
            found[i] = len(texts[i])
    return found


def _measure_part(text: str, other: str) -> int:
    """The letters and digits that a text shows of another one by having it in it, by being it
    backwards, or by being a part of it."""
    if len(text) < len(other):
        return len(text) if text in other else 0
    is_backwards = len(text) == len(other) and text[::-1] == other
    return len(other) if is_backwards or other in text else 0


def _list_forms(column: TextColumn) -> list[list[str]]:
    """The texts that hashes of the v values may be made of: one list for each form of them."""
    forms: list[list[str]] = []
    for texts in (as_raw(column.values), column.texts.fill_null("")):
        plain = texts.to_pylist()
        for form in (plain, [text.upper() for text in plain]):
            if form not in forms:
                forms.append(form)
    return forms
