"""The audit against counting in plain Python."""

import math
import random
import sys
from collections import defaultdict
from datetime import date
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anonlib.auditing import audit_table
from anonlib.auditing.canonical import fold_value
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from tests.support import audit_spec

pytestmark = pytest.mark.spark

TOKENS = ("?", "", " N/A ", "-9", "1900-01-01")
TYPES = {
    "name": "string",
    "real": "double",
    "small": "float",
    "whole": "long",
    "range": "struct<lower:double,upper:double>",
    "bag": "array<string>",
    "shares": "array<double>",
    "text": "string",
    "number": "double",
    "code": "int",
    "day": "date",
    "flag": "boolean",
    "many": "array<string>",
    "fields": "struct<a:string,b:float>",
    "person": "long",
}
SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in TYPES.items())
QUASI = tuple(TYPES)[:7]
SENSITIVE = tuple(TYPES)[7:-1]

#: Released tuples; each is a list of forms that are the same to an attacker.
CLASSES: list[list[tuple[Any, ...]]] = [
    [("a", 0.0, 0.0, 1, (0.0, math.nan), ["x", "y"], [0.0, 1.0]),
     ("a", -0.0, -0.0, 1, (-0.0, math.nan), ["y", "x"], [-0.0, 1.0])],
    [("A", 0.0, 0.0, 1, (0.0, math.nan), ["x", "y"], [0.0, 1.0])],
    [("a ", 0.0, 0.0, 1, (0.0, math.nan), ["x", "y"], [0.0, 1.0])],
    [("a", math.nan, math.nan, 1, (0.0, math.nan), ["x", "y"], [0.0, 1.0])],
    [("a", None, math.nan, 1, (0.0, math.nan), ["x", "y"], [0.0, 1.0])],
    [("a", 0.0, 0.0, 1, (0.0, None), ["x", "y"], [0.0, 1.0])],
    [("a", 0.0, 0.0, 1, (0.0, math.nan), ["x", "y"], [1.0, 0.0]),
     ("a", 0.0, 0.0, 1, (0.0, math.nan), ["y", "x"], [1.0, -0.0])],
    [("a", 0.0, 0.0, 1, (0.0, math.nan), ["x", None], [0.0, 1.0]),
     ("a", 0.0, -0.0, 1, (0.0, math.nan), [None, "x"], [0.0, 1.0])],
    [(None, None, None, None, None, None, None)],
    [(None, None, None, None, (None, None), None, None)],
    [(None, None, None, None, None, [], [])],
    [(None, None, None, None, None, [None], [math.nan, None])],
]  # fmt: skip


def _sensitive(rng: random.Random, n_values: int) -> tuple[Any, ...]:
    """Values of the sensitive columns, some in several forms, of at most n_values kinds each."""
    texts = [["?", "", " \u3000", None, "n/A", "\u00a0?\t"], ["Flu", "flu ", "\u2003FLU\n"],
             ["Maße", "MASSE", "MAẞE"], ["ΣΑΣ", "σας", "σασ"], ["a b"], ["ab", "AB\x85"],
             ["x"]]  # fmt: skip
    numbers = [[None, math.nan, -9.0], [0.0, -0.0], [1.0], [1.0000001], [-1.0], [math.inf], [9.0]]
    text = rng.choice(rng.choice(texts[: n_values + 1]))
    number = rng.choice(rng.choice(numbers[: n_values + 1]))
    return (
        text,
        number,
        rng.choice([None, -9, 0, 1, -1, 7][: n_values + 2]),
        rng.choice([None, date(1900, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2000, 2, 2)]),
        rng.choice([None, True, False]),
        rng.choice([None, [text], [text, "b"], []]),
        rng.choice([None, (text, 0.5), ("q", rng.choice([-0.0, 0.0]))]),
    )


def make_rows(seed: int) -> list[tuple[Any, ...]]:
    """Rows of SCHEMA: every class has a few rows and its own diversity."""
    rng = random.Random(seed)
    rows = []
    for forms in rng.sample(CLASSES, rng.randint(1, len(CLASSES))):
        n_values = rng.randint(0, 6)
        persons = [rng.randint(0, 10**9) for _ in range(rng.randint(1, 8))]
        for _ in range(rng.choice([1, 2, 3, 5, 9, 30])):
            person = rng.choice([*persons, None])
            rows.append((*rng.choice(forms), *_sensitive(rng, n_values), person))
    rng.shuffle(rows)
    return rows


def key(value: Any) -> Any:
    """What an attacker tells apart; lists are in order already."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return tuple(map(key, value)) if isinstance(value, tuple | list) else value


def in_order(bag: Any) -> Any:
    return bag and sorted(bag, key=lambda x: (x is not None, x or ""))


def class_of(row: tuple[Any, ...]) -> Any:
    name, real, small, whole, bounds, bag, shares = row[: len(QUASI)]
    return key((name, real, small, whole, bounds, in_order(bag), shares))


def has_several_orders(rows: list[tuple[Any, ...]]) -> bool:
    """Whether equal sets are in several orders."""
    bags = {key(row[QUASI.index("bag")]) for row in rows}
    return len(bags) > len({key(in_order(bag)) for bag in bags})


def known(value: Any) -> Any:
    """The form in which a sensitive value counts; None if missing."""
    if isinstance(value, str):
        text = value.strip().casefold()
        return None if text in {"?", "", "n/a", "-9", "1900-01-01"} else text
    if isinstance(value, float):
        return None if math.isnan(value) or value == -9 else value + 0.0
    if isinstance(value, tuple | list):
        parts = tuple(map(known, value))
        return parts if any(part is not None for part in parts) else None
    return None if value in (-9, date(1900, 1, 1)) else value


def oracle(
    rows: list[tuple[Any, ...]], column: str, *, by_token: bool = False
) -> list[tuple[int, int]]:
    """For every class its distinct present values of a column (persons, or rows if it is "") and
    its rows. By tokens, rows without one count for nobody."""
    place = list(TYPES).index(column) if column else 0
    classes = defaultdict(list)
    for row in rows:
        classes[class_of(row)].append(row)
    found = []
    for group in classes.values():
        named = [row for row in group if not by_token or row[-1] is not None]
        values = [known(row[place]) for row in named] if column else []
        n_rows = len(group)
        found.append((len({v for v in values if v is not None}) if column else n_rows, n_rows))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_agree_with_plain_counting(spark: SparkSession, seed: int) -> None:
    rows = make_rows(seed)
    df = spark.createDataFrame(rows, SCHEMA).repartition(3)
    by_token = seed > 0
    diverse = {name: 2 + (seed + i) % 3 for i, name in enumerate(SENSITIVE)}
    columns = tuple(df.columns[:-1])
    spec = audit_spec(
        columns=columns if by_token else (*columns, "person"),
        quasi_identifiers=QUASI,
        models=(
            *[KAnonymity(k=k) for k in (2, 5)],
            *[LDiversity(l=least, attribute=name) for name, least in diverse.items()],
        ),
        missing_tokens=TOKENS,
        persons="token" if by_token else "rows",
        token="person" if by_token else None,
        sets=("bag",),
    )
    report = audit_table(df, spec)
    counted = ["person" if by_token else ""] * 2 + list(diverse)
    assert [problem.where for problem in report.problems] == ["bag"] * has_several_orders(rows)
    assert report.n_rows == len(rows)
    assert report.n_classes == len(oracle(rows, ""))
    for verdict, column in zip(report.verdicts, counted, strict=True):
        classes = oracle(rows, column, by_token=by_token)
        failing = sorted(n for value, n in classes if value < verdict.required)
        smallest = min(value for value, _ in classes)
        assert verdict.n_failing == len(failing), verdict
        assert verdict.worst == tuple(failing[:5])
        assert verdict.holds == (not failing)
        if verdict.exact:
            assert verdict.value == smallest
        else:
            assert verdict.required <= verdict.value <= smallest
    sizes = [n for size, count in report.sizes for n in [size] * count]
    assert sizes == sorted(n for _, n in oracle(rows, ""))


def test_folding_merges_what_unicode_does(spark: SparkSession) -> None:
    """Every character whose case folding differs from itself, and every white space around."""
    characters = [chr(i) for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]
    pairs = [(c, c.casefold()) for c in characters if c.casefold() != c]
    pairs += [(f"{c}a b{c * 2}", "A B") for c in characters if c.isspace()]
    df = spark.createDataFrame(pairs, "one string, two string")
    forms = [fold_value(F.col(name), StringType()) for name in df.columns]
    assert len(pairs) > 1500
    assert df.where(forms[0] != forms[1]).count() == 0


def test_values_that_share_their_bits_are_counted_again(spark: SparkSession) -> None:
    """Three values of one bit in the sketch; the class beside them has two values indeed."""
    for required in (3, 4):
        bits = 64 * -(-4 * required**2 // 64)
        place = F.pmod(F.xxhash64("v"), F.lit(bits))
        names = spark.range(4000).select(F.concat(F.lit("v"), "id").alias("v"))
        same = names.groupBy(place.alias("p")).agg(F.collect_list("v").alias("v")).first()
        assert same is not None
        values = same["v"][:required]
        rows = [(1, v) for v in values] * 2 + [(2, v) for v in values[:-1]] * 5
        many = [(i, f"w{j}") for i in range(3, 9) for j in range(40)]
        df = spark.createDataFrame(rows + many, "q int, v string")
        spec = audit_spec(("q", "v"), ("q",), (LDiversity(l=required, attribute="v"),))
        (verdict,) = audit_table(df, spec).verdicts
        assert (verdict.value, verdict.exact) == (required - 1, True)
        assert verdict.n_failing == 1
        assert verdict.worst == (5 * (required - 1),)
        (verdict,) = audit_table(df.where("q != 2"), spec).verdicts
        assert (verdict.value, verdict.exact, verdict.holds) == (required, True, True)
