"""Facts of a column, of which its profile is made. Those of parts of a table add up to those of the
whole, so that a guess doesn't depend on the order of the rows, or on where they are."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.config.direct import MOST_TEXTS, count_kinds, is_no_token, main_kind
from anonlib.config.guess import ColumnProfile
from anonlib.local.rows import name_type
from anonlib.table.schema import is_atomic
from anonlib.text import (
    DATE_TEXT,
    DECIMAL_TEXT,
    NUMBER_TOKENS,
    TEXT_TOKENS,
    TIME_TEXT,
    WHOLE_TEXT,
)

#: The most distinct values that facts keep: those of the least hashes.
MOST_VALUES = 2 * MOST_TEXTS
#: How many 64-bit hashes there are.
N_HASHES = 2.0**64
#: Texts that may stand for a missing value, in lower case.
_TOKENS = pa.array([*dict.fromkeys([*TEXT_TOKENS, *NUMBER_TOKENS])], pa.string())
#: What texts are tried as, the narrowest first.
_TEXTS = {"bigint": WHOLE_TEXT, "double": DECIMAL_TEXT, "date": DATE_TEXT, "timestamp": TIME_TEXT}


@dataclass(frozen=True)
class ColumnFacts:
    """Facts of some values of a column.

    Attributes:
        n_present: Present values.
        n_distinct: Distinct ones; of several parts with more than MOST_VALUES, an estimate.
        least: By hash, ascending: the distinct values of the least hashes, at most MOST_VALUES; of
            other columns than text, the hashes alone.
        tokens: By text that may stand for a missing value: its rows.
        negatives: By negative number: its rows; of two numbers at most.
    """

    n_present: int
    n_distinct: int
    least: Mapping[int, str | None]
    tokens: Mapping[str, int]
    negatives: Mapping[float, int]

    def merge(self, other: "ColumnFacts") -> "ColumnFacts":
        """Those of both parts together."""
        least = dict(sorted({**self.least, **other.least}.items())[:MOST_VALUES])
        n_distinct = len(least)
        if n_distinct == MOST_VALUES:
            # So many hashes, spread evenly, are below the largest of them.
            share = (max(least) + N_HASHES / 2) / N_HASHES
            n_distinct = max(n_distinct, round((MOST_VALUES - 1) / share))
        negatives = Counter(self.negatives) + Counter(other.negatives)
        return ColumnFacts(
            self.n_present + other.n_present,
            n_distinct,
            least,
            Counter(self.tokens) + Counter(other.tokens),
            dict([*negatives.items()][:2]),
        )

    def to_json(self) -> str:
        pairs = [[*map(list, each.items())] for each in (self.least, self.tokens, self.negatives)]
        return json.dumps([self.n_present, self.n_distinct, *pairs])

    @staticmethod
    def from_json(text: str) -> "ColumnFacts":
        n_present, n_distinct, *pairs = json.loads(text)
        return ColumnFacts(n_present, n_distinct, *map(dict, pairs))


#: Those of no rows.
NO_FACTS = ColumnFacts(0, 0, {}, {}, {})


def find_facts(values: pa.Array) -> ColumnFacts:
    """The facts of a column.

    Args:
        values: In a type that Spark has. Nested ones are not looked at.

    Cost: O(n), and a hash of each distinct value.
    """
    from anonlib.local.hashes import hash_values  # this imports numba

    present = values.drop_null()
    if not is_atomic(values.type):
        return replace(NO_FACTS, n_present=len(present))
    distinct = present.unique()
    hashes = hash_values(distinct)
    first = np.argsort(hashes)[:MOST_VALUES]
    is_text = pa.types.is_string(values.type)
    texts = distinct.take(pa.array(first)).to_pylist() if is_text else [None] * len(first)
    least = dict(zip(hashes[first].tolist(), texts, strict=True))
    return ColumnFacts(
        len(present),
        len(distinct),
        least,
        _count_tokens(present) if is_text else {},
        _count_negatives(present),
    )


def make_profile(name: str, type: pa.DataType, facts: ColumnFacts) -> ColumnProfile:
    """The profile of a column, by the facts of all its values."""
    if not is_atomic(type):
        return ColumnProfile(name, name_type(type), facts.n_present, 0)
    tokens = dict(sorted(facts.tokens.items()))
    if len(facts.negatives) == 1:
        ((number, n),) = facts.negatives.items()
        tokens |= {f"{number:g}": n} if f"{number:g}" in NUMBER_TOKENS else {}
    texts = [text for text in facts.least.values() if text is not None and is_no_token(text)]
    texts = texts[:MOST_TEXTS]
    return ColumnProfile(
        name,
        name_type(type),
        n_present=facts.n_present - sum(tokens.values()),
        n_distinct=facts.n_distinct - len(tokens),
        parses_as=parse_texts(texts),
        kind=main_kind(count_kinds(texts)),
        tokens=tokens,
    )


def parse_texts(texts: Iterable[str]) -> str | None:
    """The narrowest type that all texts can be read as; None for none."""
    plain = [text.strip() for text in texts]
    fitting = (t for t, shape in _TEXTS.items() if all(re.match(shape, text) for text in plain))
    return next(fitting, None) if plain else None


def _count_tokens(present: pa.Array) -> dict[str, int]:
    """By text that may stand for a missing value: its rows."""
    counts = pc.value_counts(present)
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(counts.field("values")))
    return _to_dict(counts.filter(pc.is_in(plain, _TOKENS)))


def _count_negatives(present: pa.Array) -> dict[float, int]:
    """By negative number: its rows; of two numbers at most."""
    kind = present.type
    if not (pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)):
        return {}
    return _to_dict(pc.value_counts(pc.filter(present, pc.less(present, pa.scalar(0, kind))))[:2])


def _to_dict(counts: pa.StructArray) -> dict[Any, int]:
    """By value: its rows, as `value_counts` tells them."""
    values, n_rows = (counts.field(name).to_pylist() for name in ("values", "counts"))
    return dict(zip(values, n_rows, strict=True))
