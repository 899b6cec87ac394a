"""Facts of a column, of which its profile is made. Those of parts of a table add up to those of the
whole, so that a guess doesn't depend on the order of the rows, or on where they are."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Ints
from anonlib.content.text_columns import fold_texts
from anonlib.guesses.guess import ColumnProfile
from anonlib.guesses.token_codes import (
    DAY,
    DAYS,
    FIRST_FAR,
    FIRST_NUMBER,
    NEGATIVE,
    SHORT,
    TOKENS,
    code_numbers,
    name_tokens,
    read_codes,
)
from anonlib.identifiers.direct import MOST_TEXTS, count_kinds, main_kind
from anonlib.table.encoding import one_zero
from anonlib.table.layouts import (
    DECIMALS,
    LAYOUTS,
    LEAST_CODE,
    Reading,
    choose_doubt,
    choose_reading,
    find_doubts,
)
from anonlib.table.plain_types import name_type
from anonlib.table.schema import is_atomic
from anonlib.text import DECIMAL_TEXT, MISSING_TOKENS, TEXT_TYPES, TWO_LETTERS

#: The most distinct values that facts keep: those of the least hashes.
MOST_VALUES = 2 * MOST_TEXTS
#: The least whole number that is kept: of fewer digits, none is a code or reaches a person.
LEAST_LONG = 10 ** (LEAST_CODE - 1)
#: How many 64-bit hashes there are.
N_HASHES = 2.0**64


@dataclass(frozen=True)
class ColumnFacts:
    """Facts of some values of a column.

    Attributes:
        n_present: Present values that can't stand for a missing one.
        n_distinct: Distinct ones; of several parts with more than MOST_VALUES, an estimate.
        least: By hash, ascending: the distinct values of the least hashes, at most MOST_VALUES: the
            texts, and whole numbers from LEAST_LONG as texts; of others, the hashes alone.
        sizes: The codes of these values, ascending (`anonlib/guesses/token_codes.py`).
        tokens: By hash of a value that may stand for a missing one: its code, and its rows.
    """

    n_present: int
    n_distinct: int
    least: Mapping[int, str | None]
    sizes: tuple[int, ...]
    tokens: Mapping[int, tuple[int, int]]

    def merge(self, other: "ColumnFacts") -> "ColumnFacts":
        """Those of both parts together."""
        least = dict(sorted({**self.least, **other.least}.items())[:MOST_VALUES])
        n_distinct = len(least)
        if n_distinct == MOST_VALUES:
            # So many hashes, spread evenly, are below the largest of them.
            share = (max(least) + N_HASHES / 2) / N_HASHES
            n_distinct = max(n_distinct, round((MOST_VALUES - 1) / share))
        tokens = dict(self.tokens)
        for key, (code, n) in other.tokens.items():
            tokens[key] = (code, n + tokens.get(key, (code, 0))[1])
        return ColumnFacts(
            self.n_present + other.n_present,
            n_distinct,
            least,
            tuple(sorted({*self.sizes, *other.sizes})),
            tokens,
        )

    def to_json(self) -> str:
        pairs = [[*map(list, each.items())] for each in (self.least, self.tokens)]
        return json.dumps([self.n_present, self.n_distinct, self.sizes, *pairs])

    @staticmethod
    def from_json(text: str) -> "ColumnFacts":
        n_present, n_distinct, sizes, least, tokens = json.loads(text)
        counts = {key: (code, n) for key, (code, n) in tokens}
        return ColumnFacts(n_present, n_distinct, dict(least), tuple(sizes), counts)


#: Those of no rows.
NO_FACTS = ColumnFacts(0, 0, {}, (), {})


def find_facts(values: pa.Array) -> ColumnFacts:
    """The facts of a column.

    Args:
        values: In a type that Spark has. Nested ones are not looked at.

    Cost: O(n), and a hash of each distinct value.
    """
    from anonlib.table.hashes import hash_values  # this imports numba

    if not is_atomic(values.type):
        return replace(NO_FACTS, n_present=len(values) - values.null_count)
    if pa.types.is_floating(values.type):
        values = one_zero(pc.if_else(pc.is_nan(values), None, values))
    counts = pc.value_counts(values.drop_null())
    distinct, n_rows = counts.field("values"), counts.field("counts").to_numpy()
    is_text = pa.types.is_string(values.type)
    if is_text:
        folded = fold_texts(distinct)
        there = pc.invert(pc.is_in(folded.fill_null(""), pa.array(MISSING_TOKENS)))
        distinct, n_rows = distinct.filter(there), n_rows[there.to_numpy(zero_copy_only=False)]
        code = _code_texts(folded.filter(there))
    else:
        code = _code_values(distinct)
    hashes = hash_values(distinct)
    is_token = (code > 0) & (code < FIRST_FAR)
    others = np.flatnonzero(~is_token)
    first = others[np.argsort(hashes[others])[:MOST_VALUES]]
    values = distinct.take(pa.array(first))
    texts = values.to_pylist() if is_text else _list_numbers(values)
    pairs = zip(code[is_token].tolist(), n_rows[is_token].tolist(), strict=True)
    return ColumnFacts(
        int(n_rows[others].sum()),
        len(others),
        dict(zip(hashes[first].tolist(), texts, strict=True)),
        tuple(np.unique(code[others]).tolist()),
        dict(zip(hashes[is_token].tolist(), pairs, strict=True)),
    )


def make_profile(name: str, type: pa.DataType, facts: ColumnFacts) -> ColumnProfile:
    """The profile of a column, by the facts of all its values."""
    if not is_atomic(type):
        return ColumnProfile(name, name_type(type), facts.n_present, 0)
    texts = [text or "" for text in facts.least.values()][:MOST_TEXTS]
    numbers = [TOKENS[code - 1] for code, _ in facts.tokens.values() if code >= FIRST_NUMBER]
    is_text = pa.types.is_string(type)
    reading = parse_texts([*texts, *numbers]) if is_text else None
    parses_as, layout = (None, None) if reading is None else reading
    meaning = read_codes(
        {*facts.sizes, *(code for code, _ in facts.tokens.values())},
        facts.n_distinct + len(numbers),
        is_number=parses_as in ("bigint", "double") if is_text else _is_number(type),
        is_time=parses_as in ("date", "timestamp") if is_text else pa.types.is_temporal(type),
    )
    tokens: Counter[int] = Counter()
    n_values, n_distinct = facts.n_present, facts.n_distinct
    for code, n in facts.tokens.values():
        if code in meaning.tokens:
            tokens[code] += n
        else:
            n_values, n_distinct = n_values + n, n_distinct + 1
    return ColumnProfile(
        name,
        name_type(type),
        n_present=n_values,
        n_distinct=n_distinct,
        unique=n_values == n_distinct,
        parses_as=parses_as,
        layout=layout,
        kind=main_kind(count_kinds(texts), is_number=not is_text),
        tokens=name_tokens(tokens),
        far=meaning.far,
        doubt=choose_doubt(find_doubts([*texts, *numbers]), reading, is_number=not is_text),
    )


def parse_texts(texts: Iterable[str]) -> Reading | None:
    """The narrowest type that all texts can be read as; None for none."""
    plain = [text.strip() for text in texts]

    def fits(shape: str) -> bool:
        return bool(plain) and all(re.match(shape, text) for text in plain)

    marked = any(re.search(DECIMALS, text) for text in plain)
    type = next((t for t, shape in TEXT_TYPES.items() if fits(shape)), None)
    fitting = (name for name, (_, shape) in LAYOUTS.items() if fits(shape))
    return choose_reading(fitting, plain=type, marked=marked)


def _list_numbers(values: pa.Array) -> list[str | None]:
    """The whole numbers from LEAST_LONG as texts; None for other values."""
    if not _is_number(values.type):
        return [None] * len(values)
    whole = [LEAST_LONG <= each < 1e18 and each % 1 == 0 for each in values.to_pylist()]
    pairs = zip(whole, values.to_pylist(), strict=True)
    return [str(int(each)) if long else None for long, each in pairs]


def _is_number(type: pa.DataType) -> bool:
    at = pa.types
    return any(check(type) for check in (at.is_integer, at.is_floating, at.is_decimal))


def _code_texts(texts: pa.Array) -> Ints:
    """int64[n]: the codes of n texts as people see them."""
    found = pc.index_in(texts, pa.array(TOKENS)).fill_null(-1).to_numpy() + 1
    code: Ints = found.astype(np.int64)
    is_number = pc.match_substring_regex(texts, DECIMAL_TEXT).to_numpy(zero_copy_only=False)
    is_short = pc.match_substring_regex(texts, TWO_LETTERS).to_numpy(zero_copy_only=False)
    code[is_short.astype(bool) & (code == 0)] = SHORT
    places = np.flatnonzero(is_number & (code == 0))
    numbers = [float(text) for text in texts.take(pa.array(places)).to_pylist()]
    size = code_numbers(np.array(numbers, np.float64))
    # A token written in an unusual way, as -9.000, is a negative number as others are.
    code[places] = np.where((size >= FIRST_NUMBER) & (size < FIRST_FAR), NEGATIVE, size)
    return np.where(code == 0, _code_days(texts), code)


def _code_days(texts: pa.Array) -> Ints:
    """int64[n]: the codes of n texts that are days; 0 for others."""
    code = np.zeros(len(texts), np.int64)
    places = np.flatnonzero(_fits(texts, DAY))
    days = texts.take(pa.array(places))
    for each, shape in reversed(DAYS.items()):
        code[places[_fits(days, shape)]] = each
    return code


def _fits(texts: pa.Array, shape: str) -> Bools:
    """bool[n]: whether n texts have a pattern."""
    fits: Bools = pc.match_substring_regex(texts, shape).to_numpy(zero_copy_only=False)
    return fits


def _code_values(values: pa.Array) -> Ints:
    """int64[n]: the codes of n values that are no texts."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return _code_days(values.cast(pa.string()))
    if not _is_number(values.type):
        return np.zeros(len(values), np.int64)
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return code_numbers(numbers)
