"""Facts of a column, of which its profile is made. Those of parts of a table add up to those of the
whole, so that a guess doesn't depend on the order of the rows, or on where they are."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING, Bools, Ints
from anonlib.content.text_columns import fold_texts
from anonlib.guesses.guess import MIN_UNIQUE, ColumnProfile
from anonlib.guesses.token_codes import (
    DAY,
    DAYS,
    FIRST_FAR,
    FIRST_NUMBER,
    NEGATIVE,
    SHORT,
    TOKENS,
    Meaning,
    find_code_numbers,
    name_tokens,
    read_codes,
)
from anonlib.identifiers.direct import MOST_TEXTS, count_kinds, find_main_kind
from anonlib.table.encoding import clear_nan, one_zero
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
from anonlib.table.schema import is_atomic, is_number
from anonlib.text import DECIMAL_TEXT, MISSING_TOKENS, TEXT_TYPES, TWO_LETTERS

#: The most distinct values that facts keep: those of the least hashes.
MOST_VALUES = 4 * MOST_TEXTS
#: The least whole number that is kept: of fewer digits, none is a code or reaches a person.
LEAST_LONG = 10 ** (LEAST_CODE - 1)
#: What texts are tried as, written as computers write them; the narrowest first.
_PLAIN = {"int": TEXT_TYPES["bigint"], **TEXT_TYPES}
_SHAPES = {**_PLAIN, **{name: shape for name, (_, shape) in LAYOUTS.items()}}
#: How many texts are looked at first: most shapes do not fit them.
_N_FIRST = 100
#: A time of day that there is.
_CLOCK = r"^.{11}([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.|Z|[+-]|$)|Z|[+-]|$)"


@dataclass(frozen=True)
class ColumnFacts:
    """Facts of some values of a column.

    Attributes:
        n_rows: All rows, also those without a value.
        n_present: Present values that can't stand for a missing one.
        n_distinct: Distinct ones; of merged parts at most MOST_VALUES, even if there are more.
        least: By hash, ascending: the distinct values of the least hashes, at most MOST_VALUES: the
            texts, and whole numbers from LEAST_LONG as texts; of others, the hashes alone.
        sizes: The codes of these values, ascending (`anonlib/guesses/token_codes.py`).
        tokens: By hash of a value that may stand for a missing one: its code, and its rows.
        shapes: What all texts can be read as: types, and layouts of LAYOUTS; None without a text.
            Words that may stand for a missing value don't count.
        is_marked: Whether one of them has a decimal mark.
    """

    n_rows: int
    n_present: int
    n_distinct: int
    least: Mapping[int, str | None]
    sizes: tuple[int, ...]
    tokens: Mapping[int, tuple[int, int]]
    shapes: frozenset[str] | None = None
    is_marked: bool = False

    def merge(self, other: "ColumnFacts") -> "ColumnFacts":
        """Those of both parts together."""
        least = dict(sorted({**self.least, **other.least}.items())[:MOST_VALUES])
        tokens = dict(self.tokens)
        for key, (code, n) in other.tokens.items():
            tokens[key] = (code, n + tokens.get(key, (code, 0))[1])
        shapes = [each.shapes for each in (self, other) if each.shapes is not None]
        return ColumnFacts(
            self.n_rows + other.n_rows,
            self.n_present + other.n_present,
            len(least),
            least,
            tuple(sorted({*self.sizes, *other.sizes})),
            tokens,
            frozenset.intersection(*shapes) if shapes else None,
            self.is_marked or other.is_marked,
        )

    def to_json(self) -> str:
        pairs = [[*map(list, each.items())] for each in (self.least, self.tokens)]
        shapes = None if self.shapes is None else sorted(self.shapes)
        counts = (self.n_rows, self.n_present, self.n_distinct)
        return json.dumps([*counts, *pairs, self.sizes, shapes, self.is_marked])

    @staticmethod
    def from_json(text: str) -> "ColumnFacts":
        n_rows, n_present, n_distinct, least, tokens, sizes, shapes, is_marked = json.loads(text)
        return ColumnFacts(
            n_rows,
            n_present,
            n_distinct,
            dict(least),
            tuple(sizes),
            {key: (code, n) for key, (code, n) in tokens},
            None if shapes is None else frozenset(shapes),
            is_marked,
        )


#: Those of no rows.
NO_FACTS = ColumnFacts(0, 0, 0, {}, (), {})


def find_facts(values: pa.Array) -> ColumnFacts:
    """The facts of a column; argument and cost as in `look_at_rows`."""
    return look_at_rows(values)[0]


def look_at_rows(values: pa.Array) -> tuple[ColumnFacts, Ints]:
    """The facts of a column; and int64[n]: the hash of each row's value, 0 where it is missing.

    Args:
        values: In a type that Spark has. Nested ones are not looked at: they have no hashes.

    Cost: O(n), and a hash of each distinct value.
    """
    from anonlib.table.hashes import hash_values  # this imports numba

    n = len(values)
    if not is_atomic(values.type):
        return replace(NO_FACTS, n_rows=n, n_present=n - values.null_count), np.zeros(n, np.int64)
    encoded = one_zero(clear_nan(values)).dictionary_encode()
    place = encoded.indices.fill_null(MISSING).to_numpy()
    visible = fold_texts(encoded.dictionary) if pa.types.is_string(values.type) else None
    hashes = hash_values(encoded.dictionary)
    there = np.ones(len(hashes), np.bool_)
    if visible is not None:
        missing = pc.is_in(visible.fill_null(""), pa.array(MISSING_TOKENS))
        there = ~missing.to_numpy(zero_copy_only=False)
    of_rows = np.append(np.where(there, hashes, 0), 0)[place]
    kept = np.flatnonzero(there)
    n_rows = np.bincount(place[place != MISSING], minlength=len(hashes))[kept]
    distinct = encoded.dictionary.take(pa.array(kept))
    texts = None if visible is None else visible.take(pa.array(kept))
    return _gather(distinct, texts, n_rows, hashes[kept], n), of_rows


def _gather(
    distinct: pa.Array, visible: pa.Array | None, n_rows: Ints, hashes: Ints, n: int
) -> ColumnFacts:
    """The facts of n rows.

    Args:
        distinct: Their v distinct values that are there.
        visible: The same as people see them; None for values that are no texts.
        n_rows: int64[v]. The rows of each.
        hashes: int64[v]. Their hashes.
        n: The number of all rows.
    """
    code = _code_values(distinct) if visible is None else _code_texts(visible)
    is_token = (code > 0) & (code < FIRST_FAR)
    others = np.flatnonzero(~is_token)
    first = others[np.argsort(hashes[others])[:MOST_VALUES]]
    values = distinct.take(pa.array(first))
    texts = _list_numbers(values) if visible is None else values.to_pylist()
    shapes, is_marked = None, False
    if visible is not None:
        read = _trim(distinct.filter(pa.array((code <= 0) | (code >= FIRST_NUMBER))))
        shapes, is_marked = _find_shapes(read), bool(_fits(read, DECIMALS).any())
    pairs = zip(code[is_token].tolist(), n_rows[is_token].tolist(), strict=True)
    return ColumnFacts(
        n,
        int(n_rows[others].sum()),
        len(others),
        dict(zip(hashes[first].tolist(), texts, strict=True)),
        tuple(np.unique(code[others]).tolist()),
        dict(zip(hashes[is_token].tolist(), pairs, strict=True)),
        shapes,
        is_marked,
    )


def make_profile(name: str, type: pa.DataType, facts: ColumnFacts) -> ColumnProfile:
    """The profile of a column, by the facts of all its values."""
    if not is_atomic(type):
        return ColumnProfile(name, name_type(type), facts.n_present, 0, is_seen=False)
    texts = [text or "" for text in facts.least.values()]
    numbers = [TOKENS[code - 1] for code, _ in facts.tokens.values() if code >= FIRST_NUMBER]
    is_text = pa.types.is_string(type)
    reading = _choose_reading(facts)
    parses_as, layout = (None, None) if reading is None else reading
    meaning = _read_meaning(type, facts)
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
        unique=facts.n_rows == n_values == n_distinct >= MIN_UNIQUE,
        parses_as=parses_as,
        layout=layout,
        kind=find_main_kind(count_kinds(texts), is_number=not is_text),
        tokens=name_tokens(tokens),
        far=meaning.far,
        doubt=choose_doubt(find_doubts([*texts, *numbers]), reading, is_number=not is_text),
    )


def list_token_hashes(type: pa.DataType, facts: ColumnFacts) -> list[int]:
    """The hashes of the values of a column that stand for a missing one, as its profile says."""
    tokens = _read_meaning(type, facts).tokens
    return [key for key, (code, _) in facts.tokens.items() if code in tokens]


def _read_meaning(type: pa.DataType, facts: ColumnFacts) -> Meaning:
    """What the codes of a column's values mean."""
    codes = [code for code, _ in facts.tokens.values()]
    reading = _choose_reading(facts)
    parses_as = None if reading is None else reading.type
    is_text = pa.types.is_string(type)
    return read_codes(
        {*facts.sizes, *codes},
        facts.n_distinct + sum(code >= FIRST_NUMBER for code in codes),
        is_number=parses_as in ("int", "bigint", "double") if is_text else is_number(type),
        is_time=parses_as in ("date", "timestamp") if is_text else pa.types.is_temporal(type),
    )


def _choose_reading(facts: ColumnFacts) -> Reading | None:
    """What all texts can be read as; None for none, and for values that are no texts."""
    shapes = facts.shapes or frozenset()
    plain = next((name for name in _PLAIN if name in shapes), None)
    fitting = (name for name in LAYOUTS if name in shapes)
    return choose_reading(fitting, plain=plain, marked=facts.is_marked)


def parse_texts(texts: Collection[str]) -> Reading | None:
    """The narrowest type that all texts can be read as; None for none."""
    plain = _trim(pa.array(texts, pa.string()))
    is_marked = bool(_fits(plain, DECIMALS).any())
    return _choose_reading(replace(NO_FACTS, shapes=_find_shapes(plain), is_marked=is_marked))


def _trim(texts: pa.Array) -> pa.Array:
    """Texts without the blanks around them. Of other white space, a release could not read all."""
    return pc.utf8_trim(texts, " ")


def _find_shapes(plain: pa.Array) -> frozenset[str] | None:
    """The shapes that all texts, without blanks around them, have; None without a text. Numbers and
    days in the way of computers are those that Spark can read: no February 30."""
    if not len(plain):
        return None
    first = plain.slice(0, _N_FIRST)
    names = [name for name, shape in _SHAPES.items() if _fits(first, shape).all()]
    names = [name for name in names if _fits(plain, _SHAPES[name]).all()]
    return frozenset(name for name in names if name not in _CHECKS or _CHECKS[name](plain))


def _are_short(texts: pa.Array) -> bool:
    """Whether the whole numbers in texts fit into 32 bits."""
    numbers = pc.utf8_ltrim(texts, "+").cast(pa.int64()).to_numpy()
    return bool((numbers == numbers.astype(np.int32)).all())


def _are_days(texts: pa.Array) -> bool:
    """Whether texts begin with days that there are."""
    try:
        pc.utf8_slice_codeunits(texts, 0, 10).cast(pa.date32())
    except pa.ArrowInvalid:  # its text holds a value
        return False
    return True


def _are_moments(texts: pa.Array) -> bool:
    """Whether texts of dates with a time are of days and times that there are."""
    return bool(_fits(texts, _CLOCK).all()) and _are_days(texts)


#: By shape: what else must hold for all its texts.
_CHECKS = {"int": _are_short, "date": _are_days, "timestamp": _are_moments}


def _list_numbers(values: pa.Array) -> list[str | None]:
    """The whole numbers from LEAST_LONG as texts; None for other values."""
    if not is_number(values.type):
        return [None] * len(values)
    whole = [LEAST_LONG <= each < 1e18 and each % 1 == 0 for each in values.to_pylist()]
    pairs = zip(whole, values.to_pylist(), strict=True)
    return [str(int(each)) if long else None for long, each in pairs]


def _code_texts(texts: pa.Array) -> Ints:
    """int64[n]: the codes of n texts as people see them."""
    found = pc.index_in(texts, pa.array(TOKENS)).fill_null(-1).to_numpy() + 1
    code: Ints = found.astype(np.int64)
    are_numbers = pc.match_substring_regex(texts, DECIMAL_TEXT).to_numpy(zero_copy_only=False)
    is_short = pc.match_substring_regex(texts, TWO_LETTERS).to_numpy(zero_copy_only=False)
    code[is_short.astype(bool) & (code == 0)] = SHORT
    places = np.flatnonzero(are_numbers & (code == 0))
    numbers = [float(text) for text in texts.take(pa.array(places)).to_pylist()]
    size = find_code_numbers(np.array(numbers, np.float64))
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
    if not is_number(values.type):
        return np.zeros(len(values), np.int64)
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return find_code_numbers(numbers)
