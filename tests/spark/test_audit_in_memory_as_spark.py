"""The audit in memory says what the audit in Spark says: whole reports of the same tables."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anonlib.auditing import AuditReport, AuditSpec, audit_in_memory, audit_table
from anonlib.config.reading import parse
from anonlib.evaluation.published_spec import make_auditable_spec
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import parse_csv
from anonlib.privacy import PrivacyModel
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.t_closeness import TCloseness
from tests.spark.test_audit_oracle import QUASI, SCHEMA, SENSITIVE, TOKENS, make_rows
from tests.support import audit_spec
from tests.unit.test_audit_in_memory import NAMED, PERSONS, SETS

pytestmark = pytest.mark.spark

TREE = Hierarchy.of(
    parse_csv("flu;infection;*\ncold;infection;*\nbroken leg;injury;*\nburn;injury;*")
)
ORDER = ("flu", "cold", "burn", "broken leg")


def every_model(name: str) -> tuple[PrivacyModel, ...]:
    """Every model and kind, of one column."""
    return (
        *[KAnonymity(k=k) for k in (2, 4)],
        *[LDiversity(l=least, attribute=name) for least in (2, 3)],
        LDiversity(l=2, attribute=name, kind="entropy"),
        LDiversity(l=2, attribute=name, kind="recursive", c=2.0),
        PSensitive(p=3, attribute=name),
        AlphaK(alpha=0.6, attribute=name),
        TCloseness(t=0.4, attribute=name),
        TCloseness(t=0.3, attribute=name, distance="ordered"),
        BetaLikeness(beta=1.5, attribute=name),
        BetaLikeness(beta=1.5, attribute=name, kind="enhanced"),
        DeltaDisclosure(delta=1.5, attribute=name),
    )


def assert_same(df: DataFrame, spec: AuditSpec) -> AuditReport:
    """Whole reports are equal, but for the last bits of logarithms, and bounds in Spark."""
    by_spark, here = audit_table(df, spec), audit_in_memory(df.toArrow(), spec)
    assert replace(here, verdicts=()) == replace(by_spark, verdicts=())
    for mine, theirs in zip(here.verdicts, by_spark.verdicts, strict=True):
        if theirs.exact or theirs.value is None:
            assert mine == replace(theirs, value=mine.value)
            assert mine.value == (None if theirs.value is None else pytest.approx(theirs.value))
        else:
            assert mine == replace(theirs, value=mine.value, exact=True)
            assert mine.value is not None
            assert mine.required <= theirs.value <= mine.value
    return here


def patients(spark: SparkSession, seed: int) -> DataFrame:
    rng = random.Random(seed)
    ill = ["flu", "Flu ", "ＦＬＵ", "cold", "co\u200bld", "burn", "broken  leg", "?", "", None]
    rows = [
        (
            rng.randint(0, 3),
            rng.choice("ab"),
            rng.choice(ill),
            rng.choice([None, 0, 1, 2]),
            rng.choice("xyz"),
            rng.choice([None, *range(20)]),
            rng.randint(0, 1),
        )
        for _ in range(120)
    ]
    return spark.createDataFrame(
        rows, "age int, sex string, ill string, days int, job string, person int, part int"
    )


PATIENTS = audit_spec(
    columns=("age", "sex", "ill", "days", "job"),
    quasi_identifiers=("age", "sex"),
    models=(*every_model("ill"), TCloseness(t=0.3, attribute="ill", distance="hierarchical")),
    token="person",
    private=("part",),
    hierarchies={"ill": TREE},
    orders={"ill": ORDER},
)


def test_every_model_with_persons_and_joint(spark: SparkSession) -> None:
    spec = replace(PATIENTS, persons="token", joint=("ill", "days"), insensitive=("job",))
    found = assert_same(patients(spark, 1), spec)
    assert found.n_classes == 8
    assert len(found.verdicts) == len(spec.models) * 2 - 2


def test_controllers_some_of_them(spark: SparkSession) -> None:
    models = (KAnonymity(k=3), *[TCloseness(t=0.4, attribute=name) for name in ("ill", "days")])
    spec = replace(PATIENTS, apart="part", persons="token", models=models)
    df = patients(spark, 2)
    assert assert_same(df, spec).n_classes == 16
    assert assert_same(df, replace(spec, only=(1,), insensitive=("job",))).n_classes == 8
    assert assert_same(df, replace(spec, only=(7,))).n_rows == 0


def test_nested_and_odd_values(spark: SparkSession) -> None:
    """Values of every type, in several forms that are equal."""
    df = spark.createDataFrame(make_rows(5), SCHEMA)
    spec = audit_spec(
        columns=tuple(df.columns[:-1]),
        quasi_identifiers=QUASI,
        models=(
            KAnonymity(k=3),
            *[LDiversity(l=2 + i % 2, attribute=name) for i, name in enumerate(SENSITIVE)],
            *[TCloseness(t=0.3, attribute=name, distance="ordered") for name in SENSITIVE],
        ),
        insensitive=("many", "real"),
        missing_tokens=TOKENS,
        persons="token",
        token="person",
        sets=("bag",),
    )
    assert_same(df, spec)


TEXTS = ["Maße", "MASSE", "ΣΑΣ", "σας", "ﬁn", "FIN", "İ", "i\u0307", "ı", "I", "\u2800", "ﾊﾟ", "パ",
         "e\u0301", "É", "a\u00adb", "AB", "\ue0001", "x\U000e0041", "X", "ſ", "S", "Ⅷ", "viii",
         "ẞ", "ss", "\u3164", "?", "？", "ΐ", "\u1fd3", "Ǆ", "ǆ", "\t a\x85b ", "A B"]  # fmt: skip


def test_odd_texts(spark: SparkSession) -> None:
    df = spark.createDataFrame([(text, text) for text in TEXTS * 2], "q string, s string")
    models = (AlphaK(alpha=0.5, attribute="s"), TCloseness(t=0.1, attribute="s"))
    models += (LDiversity(l=2, attribute="s", kind="entropy"),)
    assert_same(df, audit_spec(("q", "s"), (), models))
    assert_same(df, audit_spec(("q", "s"), ("q",), models))


def test_tokens_of_other_types(spark: SparkSession) -> None:
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    rows: list[Any] = [
        (Decimal("-9.00"), moment, True, {"a": "?", "b": "x"}, date(2020, 1, 1), 0.5, 1),
        (Decimal("9.50"), moment.replace(hour=3), False, {"b": "X", "a": None}, None, -9.0, 2),
        (None, None, None, {}, date(2020, 1, 2), -9.0, 2),
    ]
    names = ["money", "moment", "flag", "map", "day", "real", "q"]
    schema = """money decimal(6,2), moment timestamp, flag boolean,
        map map<string,string>, day date, real float, q int"""
    df = spark.createDataFrame(rows * 2, schema)
    tokens = ("?", "-9", "2020-01-01", "TRUE", "2020-01-01 04:00+01:00", "1e999", "inf")
    models = [LDiversity(l=2, attribute=name, kind="entropy") for name in names[:-1]]
    assert_same(df, audit_spec(tuple(names), ("q",), tuple(models), missing_tokens=tokens))


def test_bytes_and_values_without_a_part(spark: SparkSession) -> None:
    rows: list[Any] = [
        (1, b"?", [], {}, (None, []), [[None]]),
        (1, b"", [None], {"?": ""}, ("?", ["?"]), [[], None]),
        (1, None, ["?"], None, None, [["?"]]),
        (1, b"a", ["a"], {"?": "a"}, (None, ["b"]), [[], ["a"]]),
    ]
    names = ("q", "bytes", "list", "map", "fields", "deep")
    schema = """q int, bytes binary, list array<string>, map map<string,string>,
        fields struct<a:string,b:array<string>>, deep array<array<string>>"""
    df = spark.createDataFrame(rows, schema)
    models = [LDiversity(l=2, attribute=name) for name in names[2:]]
    spec = audit_spec(names, ("q",), (KAnonymity(k=2), *models), missing_tokens=("?",))
    assert [v.value for v in assert_same(df, spec).verdicts] == [4, 1, 1, 1, 1]
    on_bytes = replace(spec, models=(KAnonymity(k=2), LDiversity(l=2, attribute="bytes")))
    assert [p.where for p in assert_same(df, on_bytes).problems] == ["bytes"]


def test_shares_and_large_classes(spark: SparkSession) -> None:
    rows = [(1, [(0, 0.999), (1, 0.001)])] * 1500 + [(2, [(0, 0.5), (1, 0.5)])] * 2 + [(3, None)]
    df = spark.createDataFrame(rows, "q int, s array<struct<node:int,share:double>>")
    for steps in (None, 20, 1000):
        spec = audit_spec(("q", "s"), ("q", "s"), (KAnonymity(k=2),), shares={"s": steps})
        assert assert_same(df, spec).sizes == ((1, 1), (2, 1), (1500, 1))
    assert assert_same(df, replace(spec, shares={"s": None})).lone["s"] > 0


CLOSE = tuple(
    TCloseness(t=0.4, attribute="ill", distance=distance)
    for distance in ("ordered", "hierarchical")
)
BRIEF = replace(PATIENTS, models=(KAnonymity(k=3), LDiversity(l=2, attribute="ill")))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ("age", "ill")},
        {"columns": (*PATIENTS.columns, "more")},
        {"quasi_identifiers": ("Age",)},
        {"persons": "token", "token": "nobody"},
        {"models": ()},
        {"models": (LDiversity(l=2, attribute="ill"),)},
        {"sets": ("sex",)},
        {"shares": {"sex": None}},
        {"models": CLOSE, "orders": {"ill": ("flu",)}, "hierarchies": {}},
        {"models": CLOSE, "hierarchies": {"ill": Hierarchy.of(parse_csv("flu;*\ncold;*"))}},
        {"insensitive": ("job",), "acknowledge_unique": True},
    ],
)
def test_what_fails(spark: SparkSession, change: dict[str, Any]) -> None:
    assert_same(patients(spark, 3), replace(BRIEF, **change))


@pytest.mark.parametrize(("persons", "smallest", "text"), PERSONS)
def test_the_person_column_of_a_table(
    spark: SparkSession, persons: list[Any], smallest: int, text: str
) -> None:
    rows = [*zip("aabb", persons, strict=True)]
    table = spark.createDataFrame(rows, "q string, p string")
    report = assert_same(table, make_auditable_spec(parse(NAMED)))
    assert (report.smallest_class, report.passed) == (smallest, not text)


def test_equal_sets_in_several_orders(spark: SparkSession) -> None:
    spec = audit_spec(("q",), ("q",), (KAnonymity(k=2),), sets=("q",))
    for sets, tells in SETS:
        table = spark.createDataFrame([(each,) for each in sets], "q array<string>")
        assert bool(assert_same(table, spec).problems) == tells


def test_no_rows(spark: SparkSession) -> None:
    assert_same(patients(spark, 3).where("false"), PATIENTS)


def test_types_of_arrow_that_spark_reads_alike(spark: SparkSession) -> None:
    """Arrow has several types for one of Spark's."""
    plain = pa.table({"q": ["a", "a", "b", "b"], "s": [["x"], ["y"], None, []], "n": [1, 2, 1, 1]})
    wide = pa.table(
        {
            "q": plain["q"].dictionary_encode(),
            "s": plain["s"].cast(pa.large_list(pa.large_string())),
            "n": plain["n"].cast(pa.int16()),
        }
    )
    models = (KAnonymity(k=2), *[LDiversity(l=2, attribute=name) for name in "sn"])
    spec = audit_spec(("q", "s", "n"), ("q",), models)
    assert audit_in_memory(wide, spec) == assert_same(spark.createDataFrame(plain), spec)
