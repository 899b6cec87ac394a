"""`missing_tokens` mean the same to kernels, to the scan, and to the audit."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anonlib.arrays import MISSING
from anonlib.auditing import audit_table
from anonlib.auditing.canonical import clear_missing, fold_value
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.spark.values import find_spark_type, make_canonical
from anonlib.table.encoding import code_among, code_protected, list_protected_values
from tests.support import audit_spec

pytestmark = pytest.mark.spark

MOST = 10**38 - 1
SECONDS, CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")
TENTH = float(np.float32(0.1))


#: Type, values, and by the place of a value the tokens that mean it; by None those that mean none.
TABLE: list[tuple[pa.DataType, list[Any], dict[int | None, str]]] = [
    *[
        (
            type,
            [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, 100, 9],
            {
                0: f"{-(2 ** (bits - 1))}|{-(2 ** (bits - 1))}.00",
                1: f"{2 ** (bits - 1) - 1}| {2 ** (bits - 1) - 1}.0\t|+{2 ** (bits - 1) - 1}",
                2: "-0|0.0|0e5",
                3: "1e2|1E+2|+100",
                4: "9.|09",
                None: f"{2 ** (bits - 1)}|{-(2 ** (bits - 1)) - 1}|100.5|1e-400|"
                "1e999999999|inf|nan|0x9",
            },
        )
        for bits, type in ((8, pa.int8()), (16, pa.int16()), (32, pa.int32()), (64, pa.int64()))
    ],
    (
        pa.int64(),
        [9999999999999999, 10**16, 2**53, 2**53 + 1, 2**63 - 1],
        {
            0: "9999999999999999",
            1: "1e16",
            2: "9007199254740992",
            3: "9007199254740993|9007199254740993.0",
            4: "9223372036854775807|9.223372036854775807e18",
            None: "9223372036854775806|9223372036854775808|9007199254740992.5|1e19",
        },
    ),
    (
        pa.decimal128(38, 0),
        [Decimal(MOST), Decimal(-MOST), Decimal("99999999999999999999"), Decimal(0)],
        {
            0: f"{MOST}",
            1: f"-{MOST}.0",
            2: "99999999999999999999",
            3: "0e9|-0",
            None: f"{MOST - 1}|{MOST + 1}|1e38|1e20|0.1|inf|nan|snan|1e999999999",
        },
    ),
    (
        pa.decimal128(38, 38),
        [Decimal("0." + "9" * 38), Decimal("0." + "9" * 37 + "8"), Decimal(0), Decimal("1e-38")],
        {0: "0." + "9" * 38, 2: "-0.000", 3: "1e-38", None: "1|1e-39|0." + "9" * 39},
    ),
    (
        pa.decimal128(5, 2),
        [Decimal("0.10"), Decimal("0.11"), Decimal("999.99"), Decimal("-999.99")],
        {0: "0.1|0.1000|1e-1", 2: " 999.99", 3: "-99999e-2", None: "0.105|0.109|1000|1e30"},
    ),
    (
        pa.float64(),
        [0.1, 0.0, inf, 1e16, 1.7976931348623157e308, 2.0**53],
        {
            0: "0.1|.1|0.10000000000000001",
            1: "-0.0|0",
            2: "inf|Infinity",
            3: "1e16",
            5: "9007199254740993",
            None: "-inf|1e400|nan|x",
        },
    ),
    (
        pa.float32(),
        [TENTH, 0.0, inf, -inf, 2.0**24],
        {
            0: "0.1|0.100000001",
            1: "0",
            2: "inf",
            3: "-INF",
            4: "16777216|16777217",
            None: "1e300|1e400|-1e39|nan",
        },
    ),
    (pa.bool_(), [True, False], {0: "TRUE| true ", 1: "False", None: "1|0|t|no"}),
    (
        pa.date32(),
        [
            date(1, 1, 1),
            date(1900, 1, 1),
            date(9999, 12, 31),
            date(2000, 2, 29),
            date(1899, 12, 31),
        ],
        {
            0: "0001-01-01",
            1: "1900-01-01| 1900-1-1 |1900-01-01 00:00:00|1900-01-01T00:00Z|1900-01-01 01:00+01:00",
            2: "9999-12-31",
            3: "2000-02-29",
            None: "1900-01-01 00:00:01|2001-02-29|1900|0000-01-01|1900-01-01T00:00-24:00|"
            "1900-01-01x|19000101|1e3|0001-01-01 00:00+00:01|9999-12-31 24:00|1900-01-01 00|"
            "9999-12-31 23:00-01:00",
        },
    ),
    *[
        (
            type,
            [
                *[datetime(*day, tzinfo=zone) for day in ((1, 1, 1), (1900, 1, 1))],
                datetime(1900, 1, 1, 12, 30, tzinfo=zone),
                datetime(1900, 1, 1, 12, 30, 1, 500_000, zone),
                datetime(9999, 12, 31, 23, 59, 59, 999_999, zone),
                datetime(1899, 12, 31, 23, 0, tzinfo=zone),
            ],
            {
                0: "0001-01-01",
                1: "1900-01-01|1900-01-01 00:00:00|1900-01-01T00:00Z|1900-01-01 00:00:00.000000|"
                "1900-01-01t00:00:00 utc|1900-1-1 0:0:0",
                2: "1900-01-01 12:30|1900-01-01T12:30:00",
                3: "1900-01-01 12:30:01.5|1900-01-01 13:30:01.500 +01:00",
                4: "9999-12-31 23:59:59.999999",
                5: "1900-01-01 00:00+01:00",
                None: "1900-01-01 12:30:01.500001|9999-12-31|1900-01-01+01:00|1900-01-01 00:00 CET|"
                "-2208988800|9999-12-31 23:59:59.9999999|1900-01-01 00:00:60|"
                "1900-01-01 00:00:00+25:00|1900-01-01 00:00:00+00:60",
            },
        )
        for type, zone in ((SECONDS, UTC), (CLOCK, None))
    ],
    (
        pa.string(),
        ["N/A", "flu", "1900-01-01", "Maße", "1", "?"],
        {
            0: " n/a",
            1: "FLU\t",
            2: "1900-01-01 ",
            3: "MASSE",
            4: "1",
            5: "\u3000?",
            None: "1900-1-1|1.0|",
        },
    ),
]
CASES = [
    pytest.param(
        type,
        values,
        {t: place for place, texts in meant.items() for t in texts.split("|")},
        id=str(type),
    )
    for type, values, meant in TABLE
]


def canonical_forms(
    spark: SparkSession, column: pa.Array, tokens: list[str], form: Any
) -> list[list[Any]]:
    """For each token, the column with what it means as null."""
    frame = spark.createDataFrame(pa.table({"i": range(len(column)), "v": column}))
    forms = [form(F.col("v"), token).alias(f"t{i}") for i, token in enumerate(tokens)]
    table = frame.select("i", *forms).toArrow().sort_by("i")
    return [table.column(f"t{i}").is_null().to_pylist() for i in range(len(tokens))]


@pytest.mark.parametrize(("type", "values", "meant"), CASES)
def test_a_token_means_one_value_everywhere(
    spark: SparkSession, type: pa.DataType, values: list[Any], meant: dict[str, int | None]
) -> None:
    column = pa.array([*values, None], type)
    its = find_spark_type(type)
    scans = canonical_forms(spark, column, [*meant], lambda c, t: make_canonical(c, type, [t]))
    audits = canonical_forms(
        spark, column, [*meant], lambda c, t: clear_missing(fold_value(c, its), its, [t])
    )
    for (token, place), scan, seen in zip(meant.items(), scans, audits, strict=True):
        expected = [i == place or i == len(values) for i in range(len(column))]
        kernel = (code_protected(column, (token,)) == MISSING).tolist()
        assert (kernel, scan, seen) == (expected, expected, expected), (type, token)
        whole = list_protected_values(column, (token,))
        assert (code_among(column, (token,), whole.categories) == MISSING).tolist() == expected
    every = tuple(meant)
    expected = [i in meant.values() or i == len(values) for i in range(len(column))]
    assert (code_protected(column, every) == MISSING).tolist() == expected
    (together,) = canonical_forms(spark, column, [""], lambda c, _: make_canonical(c, type, every))
    assert together == expected


def guesses() -> Iterator[str]:
    """Texts that are nearly dates, times and numbers."""
    rng = random.Random(0)
    parts = ["1900-01-01", "0001-01-01", "9999-12-31", "1900-1-01", "T", " ", "00:00", "23:59:59"]
    parts += [".5", ".000000", "Z", "+01:00", "-23:59", "+24:00", " UTC", "1", "-", "e", "e2", "."]
    parts += ["0", "99", "_", "inf", "nan", "٣", "\u00a0", "+", "1e-2"]
    for _ in range(300):
        yield "".join(rng.choices(parts, k=rng.randint(1, 4)))


@pytest.mark.parametrize(
    "type",
    [
        pa.int8(),
        pa.int64(),
        pa.decimal128(20, 3),
        pa.float64(),
        pa.float32(),
        pa.date32(),
        SECONDS,
        CLOCK,
    ],
    ids=str,
)
def test_any_text_means_the_same_everywhere(spark: SparkSession, type: pa.DataType) -> None:
    """The literals that the audit makes of texts are the values that the kernel reads in them."""
    from anonlib.auditing import tokens as of_audit
    from anonlib.table.missing import find_missing_values

    texts = [*guesses()]
    of_kernel = [find_missing_values((text,), type) for text in texts]
    made = [of_audit.list_missing_values([text], find_spark_type(type)) or [] for text in texts]
    assert [len(each) for each in made] == [len(each) for each in of_kernel]
    literals = [each.alias(f"t{i}") for i, found in enumerate(made) for each in found]
    assert len(literals) > 10
    table = spark.range(1).select(*literals).toArrow()
    found = pa.concat_arrays([column.combine_chunks() for column in table.columns])
    assert found.equals(pa.concat_arrays(of_kernel))


def test_a_sentinel_is_no_second_value(spark: SparkSession) -> None:
    """Two values in each class, of which one means missing: the audit must not count it."""
    for type, value, sentinel, token in [
        ("bigint", 5, 9999999999999999, "9999999999999999"),
        ("bigint", 5, 2**63 - 1, str(2**63 - 1)),
        ("bigint", 5, -(2**63), str(-(2**63))),
        ("decimal(20,0)", Decimal(5), Decimal(10**20 - 1), str(10**20 - 1)),
        ("timestamp", "2020-01-01", "1900-01-01", "1900-01-01"),
        ("timestamp_ntz", "2020-01-01", "1900-01-01", "1900-01-01"),
        ("date", date(2020, 1, 1), date(1900, 1, 1), "1900-01-01 00:00:00"),
    ]:
        rows = [(q, v) for q in "ab" for v in (value, sentinel) * 2]
        texts = spark.createDataFrame([(q, str(v)) for q, v in rows], "q string, s string")
        frame = texts.select("q", F.col("s").cast(type))
        models = (KAnonymity(k=2), LDiversity(l=2, attribute="s"))
        spec = audit_spec(("q", "s"), ("q",), models, missing_tokens=(token,))
        verdict = audit_table(frame, spec).verdicts[1]
        assert (verdict.holds, verdict.value, verdict.n_failing) == (False, 1, 2), type
