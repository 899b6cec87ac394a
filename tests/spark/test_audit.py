"""What the audit refuses, and what it copes with: names, types, insensitive columns."""

import json
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.auditing import AuditReport, audit_parts, audit_table
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from tests.property.test_recode_nodes import released
from tests.support import audit_spec

pytestmark = pytest.mark.spark

K2 = (KAnonymity(k=2),)


def texts(report: AuditReport) -> list[str]:
    return [str(problem) for problem in report.problems]


def simple(df: DataFrame, quasi: tuple[str, ...], **changes: Any) -> AuditReport:
    """An audit of all columns, 2-anonymous unless said otherwise."""
    changes = {"columns": tuple(df.columns), "models": K2, **changes}
    return audit_table(df, audit_spec(quasi_identifiers=quasi, **changes))


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    rows = [("a", "x", 1), ("a", "y", 2), ("a", "x", 2), ("b", "x", 3), ("b", "y", 4)]
    return spark.createDataFrame(rows, "zip string, illness string, person int").cache()


def test_a_sound_release_passes(people: DataFrame) -> None:
    models: tuple[PrivacyModel, ...] = (*K2, LDiversity(l=2, attribute="illness"))
    spec = audit_spec(("illness", "zip"), ("zip",), models, persons="token", token="person")
    report = audit_table(people, spec)
    assert report.passed
    assert [v.model for v in report.verdicts] == [
        "k_anonymity k=2",
        "l_diversity l=2 attribute=illness",
    ]
    assert report.sizes == ((2, 1), (3, 1))
    assert report.insensitive == "none"
    told = report.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["passed"]
    assert told["verdicts"][0] == {
        "model": "k_anonymity k=2",
        "holds": True,
        "value": 2,
        "required": 2,
        "n_failing": 0,
        "worst": [],
        "exact": False,
        "note": "",
        "at_release": False,
        "spec": {"type": "k_anonymity", "k": 2},
    }


def test_persons_that_cannot_be_counted(people: DataFrame) -> None:
    report = simple(people.drop("person"), ("zip",), models=(KAnonymity(k=3),), persons="unknown")
    (verdict,) = report.verdicts
    assert not report.passed
    assert (verdict.holds, verdict.value, verdict.n_failing, verdict.worst) == (
        False,
        None,
        1,
        (2,),
    )
    assert "persons can't be counted" in verdict.note


@pytest.mark.parametrize(
    ("change", "problem", "counted"),
    [
        ({"columns": ("zip", "illness")}, "person: the release should not have", True),
        ({"columns": ("zip", "illness", "person", "more")}, "more: the table does not", True),
        ({"columns": ("Zip", "illness", "person")}, "zip: the release should not have", True),
        ({"columns": ("Zip", "illness", "person")}, "Zip: the table does not", True),
        ({"quasi_identifiers": ("Zip",)}, "Zip: the table does not", False),
        ({"models": (*K2, LDiversity(l=2, attribute="x"))}, "x: the table does not", False),
        ({"persons": "token", "token": "nobody"}, "nobody: the table does not", False),
        ({"models": (LDiversity(l=2, attribute="illness"),)}, "no k-anonymity", True),
        ({"models": ()}, "no k-anonymity", True),
        ({"sets": ("zip",)}, "zip: said to be a set", False),
        ({"insensitive": ("other",)}, "other: the table does not", True),
    ],
)
def test_spec_and_columns_must_fit(
    people: DataFrame, change: dict[str, Any], problem: str, *, counted: bool
) -> None:
    spec: dict[str, Any] = {"columns": tuple(people.columns), "models": K2}
    report = audit_table(people, audit_spec(**{**spec, "quasi_identifiers": ("zip",), **change}))
    assert not report.passed
    assert any(problem in text for text in texts(report)), texts(report)
    assert report.n_rows == 5
    assert (report.n_classes == 2) == counted


def test_parts_are_judged_as_if_each_were_alone(spark: SparkSession) -> None:
    """In the pass over the table: by the models' sketches, which are merged for the table."""
    dealt = [(f"{n % 4}", n // 4 % 5, n % 7, n // 4 % 3, n % 5 // 2) for n in range(96)]
    rows = spark.createDataFrame(dealt, "zip string, illness int, job int, file int, owner int")
    diverse = [LDiversity(l=n, attribute=name) for n in (2, 3) for name in ("illness", "job")]
    models: tuple[PrivacyModel, ...] = (KAnonymity(k=5), *diverse)
    spec = audit_spec(
        ("zip", "illness", "job"), ("zip",), models, joint=("illness", "job"), private=("person",)
    )
    table, *parts = audit_parts(rows, spec, ("file", "owner"))
    plain = rows.drop("file", "owner")
    assert table == audit_table(plain, spec)
    for name, part in zip(("file", "owner"), parts, strict=True):
        frame = rows.select(*plain.columns, name)
        alone = audit_table(frame, replace(spec, apart=name, private=(name,)))
        assert part == alone
        assert part.n_classes > table.n_classes


def test_no_rows_and_no_quasi_identifiers(people: DataFrame) -> None:
    for quasi in [("zip",), ()]:
        report = simple(people.where("false"), quasi)
        assert texts(report) == ["the table has no rows"]
        assert (report.passed, report.n_classes, report.verdicts) == (False, 0, ())
    report = simple(people, ())
    assert (report.passed, report.sizes) == (True, ((5, 1),))


def test_private_columns_are_ignored(people: DataFrame) -> None:
    spec = audit_spec(("zip", "illness"), ("zip",), K2, private=("person", "not there"))
    assert audit_table(people, spec).passed


def test_two_columns_of_one_name(people: DataFrame) -> None:
    twice = people.select("zip", "illness", F.col("person").alias("zip"))
    report = simple(twice, ("zip",), columns=("zip", "illness"))
    assert "zip: the table has 2 columns of this name" in texts(report)
    assert report.n_classes == 0
    report = simple(twice.toDF("id", "zip", "id"), ("zip",), columns=("id", "zip"))
    assert (report.passed, report.n_classes) == (False, 2)


def test_any_name_and_names_that_differ_in_case(spark: SparkSession) -> None:
    names = ["a.b", "a`b", "x, (y) = `z`", "Größe", "größe", "日本", " ", "c0"]
    rows = [tuple(f"{name}{i % 3}" for name in names) for i in range(12)]
    df = spark.createDataFrame(rows, [f"c{i}" for i in range(len(names))]).toDF(*names)
    models: tuple[PrivacyModel, ...] = (KAnonymity(k=4), LDiversity(l=3, attribute="Größe"))
    report = simple(df, tuple(names[:3] + names[4:]), models=models)
    assert [v.holds for v in report.verdicts] == [True, False]
    assert report.n_classes == 3


def test_types_that_cannot_be_grouped(spark: SparkSession) -> None:
    df = spark.sql(
        """select map(1, 2) as m, array(map(1, 2)) as deep, parse_json('{}') as v,
           make_interval(1) as i, interval 1 day as fine, X'00' as also from range(3)"""
    )
    report = simple(df, tuple(df.columns))
    assert sorted(problem.where for problem in report.problems) == ["deep", "i", "m", "v"]
    report = simple(df, ("fine", "also"), insensitive=("m", "deep"))
    assert report.passed
    assert report.insensitive == "checked"
    report = simple(df, ("fine", "also"), insensitive=("m", "v"))
    assert [problem.where for problem in report.problems] == ["v"]
    assert report.insensitive == "not checked"
    assert simple(df, ("fine",), insensitive=("v",), acknowledge_unique=True).passed


def test_collations_hide_no_difference(spark: SparkSession) -> None:
    df = spark.sql(
        "select collate(v, 'UTF8_LCASE') as q, array(collate(v, 'UTF8_LCASE')) as r, "
        "collate(v, 'UTF8_LCASE') as s from values ('a'), ('A'), ('a'), ('A') as t(v)"
    )
    report = simple(df, ("q",), models=(*K2, LDiversity(l=2, attribute="s")))
    assert [v.holds for v in report.verdicts] == [True, False]
    assert report.n_classes == simple(df, ("r",)).n_classes == 2


def test_rare_insensitive_combinations(spark: SparkSession) -> None:
    df = spark.sql(
        """select id % 2 as q, id % 2 as even, if(id = 7, 'odd one', 'usual') as text,
           map('k', id % 3, 'j', 1) as m, array(id % 4, 0) as a, id div 8 as person
           from range(24)"""
    )
    columns = tuple(df.columns[:-1])

    def check(*insensitive: str, k: int = 2, **changes: Any) -> AuditReport:
        spec = {"columns": columns, "private": ("person",), "insensitive": insensitive, **changes}
        return simple(df, ("q",), models=(KAnonymity(k=k),), **spec)

    assert check("even", "m").passed
    alone, together = check("m", "a", k=3).problems  # 12 kinds, twice each
    assert alone.where == together.where == "insensitive"
    alone, together = check("even", "text").problems
    assert "1 of 3 combinations of the insensitive columns" in alone.text
    assert "1 of 3 combinations of the quasi-identifiers" in together.text
    assert "odd one" not in alone.text + together.text
    acknowledged = check("even", "text", acknowledge_unique=True)
    assert (acknowledged.passed, acknowledged.insensitive) == (True, "acknowledged")
    assert check("a", k=6).passed
    assert "4 of 4 combinations of the insensitive" in check("a", k=7).problems[0].text
    by_token: dict[str, Any] = {"persons": "token", "token": "person", "private": ()}
    assert check("a", k=3, **by_token).passed
    assert "4 of 4 combinations of the insensitive" in check("a", k=4, **by_token).problems[0].text


def test_large_classes_are_bucketed(spark: SparkSession) -> None:
    df = spark.range(9000).selectExpr("if(id < 1024, 0, if(id < 3000, 1, 2)) as q", "0 as s")
    report = simple(df, ("q",), models=(KAnonymity(k=7000), LDiversity(l=2, attribute="s")))
    assert report.sizes == ((1024, 1), (1976, 1), (6000, 1))
    assert report.n_rows == 9000
    assert [v.value for v in report.verdicts] == [1024, 1]
    assert report.verdicts[0].worst == (1024, 1976, 6000)


@pytest.mark.parametrize("steps", [None, 1, 3, 30])
def test_shares_tell_of_single_rows(spark: SparkSession, steps: int | None) -> None:
    """Against all classes of up to 5 rows: a value counts if every class of that size which shows
    its share for a value has one row there (at least then, if shares are rounded)."""
    cells = ["".join(c) for n in range(1, 6) for c in combinations_with_replacement("012", n)]
    shares, _ = released(*cells, steps=steps)
    shown = shares.to_pylist()
    possible: dict[tuple[int, float], set[int]] = {}
    for cell, pairs in zip(cells, shown, strict=True):
        for each in pairs:
            counts = possible.setdefault((len(cell), each["share"]), set())
            counts.add(cell.count(str(each["node"])))
    sure = sum(
        possible[len(cell), each["share"]] == {1}
        for cell, pairs in zip(cells, shown, strict=True)
        for each in pairs
    )
    rows = [
        (i, [tuple(each.values()) for each in pairs])
        for i, pairs in enumerate(shown)
        for _ in cells[i]
    ]
    frame = spark.createDataFrame(rows, "cell int, city array<struct<node:int,share:double>>")
    found = simple(frame, ("cell", "city"), shares={"city": steps})
    assert found.to_dict()["lone"] == found.lone
    if steps is None or steps == 30:  # at least so fine that nothing is hidden
        assert found.lone == {"city": sure}
    else:
        assert 0 < found.lone["city"] <= sure
    if steps == 1:
        assert found.lone == {"city": 3}  # a class of one row can't hide
    assert simple(frame, ("cell", "city")).lone == {}


def test_shares_of_another_type_are_a_problem(people: DataFrame) -> None:
    report = simple(people.select("zip", "illness"), ("zip",), shares={"zip": None})
    assert texts(report) == [
        "zip: said to be shares, which are of type array<struct<node:int,share:double>>"
    ]
