"""Persons are persons, however they are written: units, unique identifiers, ledger, pseudonyms."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.content.content_rules import Repetition
from anonlib.errors import ConfigError, InfeasibleError
from anonlib.source.identity import identify_person
from anonlib.text import identify
from tests.spark.support import Shell, people, scan_of, settings, write_config

pytestmark = pytest.mark.spark

KEY = "KEY-0123456789abcdef"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_TEST_KEY", KEY)
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", f"{KEY}-ledger")


def frame_of(spark: SparkSession, ids: list[str], collation: str = "UTF8_BINARY") -> DataFrame:
    frame = pd.DataFrame({"id": ids, "age": range(len(ids)), "ill": ["a", "b"] * (len(ids) // 2)})
    return spark.createDataFrame(frame).withColumn("id", F.collate("id", collation))


def config_of(path: Path, **changes: Any) -> dict[str, Any]:
    return {
        "source": {"format": "dataframe"},
        "attributes": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "ill": {"role": "sensitive"},
        },
        "unit": ["id"],
        "privacy": {"models": [{"type": "k_anonymity", "k": 4}]},
        "kernel": {"type": "mdav"},
        "release": {"path": str(path / "out")},
        **changes,
    }


OTHER_CASE = ["Ana", "ANA", "ana ", "aNa", "B\u00e9", "BE\u0301", "b\u00e9", "be\u0301 "]
OTHER_BLANKS = ["Ana", "Ana ", "\tAna", "\ufeffA\u200bna\u00a0"]
OTHER_BLANKS += ["B\u00e9", "Be\u0301", " B\u00e9", "Be\u0301 "]
#: Eight rows of two persons, in forms that are no others by this collation.
FORMS = {
    "UTF8_BINARY": OTHER_BLANKS,
    "UTF8_LCASE": OTHER_CASE,
    "UNICODE_CI": OTHER_CASE,
}


def test_forms(spark: SparkSession) -> None:
    """Each is one person, whichever column of a source it is in."""
    forms = [(*each, False) for each in FORMS.items()] + [("UTF8_BINARY", OTHER_CASE, True)]
    for collation, ids, fold_case in forms:
        frame = frame_of(spark, ids, collation)
        type_name = dict(frame.dtypes)["id"]
        rows = frame.select(identify_person(F.col("id"), type_name, fold_case)).collect()
        found = [row[0] for row in rows]
        assert len({*found[:4]}) == len({*found[4:]}) == 1, collation
        assert found[0] != found[4]


def test_unit(spark: SparkSession, tmp_path: Path) -> None:
    """Two persons in eight rows are no four, by columns of every collation."""
    frame = frame_of(spark, OTHER_BLANKS)
    for collation in ("UTF8_LCASE", "UNICODE_CI"):
        texts = F.array(*map(F.lit, OTHER_CASE))
        column = F.element_at(texts, (F.col("age") + 1).cast("int"))
        frame = frame.withColumn(collation, F.collate(column, collation))
    given = config_of(tmp_path, unit=["id", "UTF8_LCASE", "UNICODE_CI"])
    given["attributes"] |= {name: {"role": "identifier"} for name in given["unit"]}
    with pytest.raises(InfeasibleError, match="asks for 4 persons; there are 2"):
        scan_of(spark, given, frame)


@pytest.mark.parametrize("fold_case", [False, True])
def test_unique_identifier(spark: SparkSession, tmp_path: Path, *, fold_case: bool) -> None:
    given = config_of(tmp_path, unit=[], one_row_per_person="id", person={"fold_case": fold_case})
    frame = frame_of(spark, OTHER_CASE, "UTF8_BINARY" if fold_case else "UNICODE_CI")
    with pytest.raises(InfeasibleError, match="column id repeats") as caught:
        scan_of(spark, given, frame)
    assert "Ana" not in str(caught.value)


@pytest.mark.parametrize("is_small", [True, False])
def test_identifiers_that_differ_in_case_do_not_repeat(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_small: bool
) -> None:
    """They are of two persons, as the run itself has checked."""
    monkeypatch.setattr("anonlib.run.scan.is_small", lambda *_: is_small)
    frame = frame_of(spark, [*"abcdABCD"])
    given = config_of(tmp_path, unit=[], one_row_per_person="id")
    assert scan_of(spark, given, frame).content.repetitions == ()


@pytest.mark.parametrize("is_small", [True, False])
def test_an_identifier_that_repeats_where_rows_count_as_persons(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_small: bool
) -> None:
    """By what the content gate has found anyway; a release tells it, too."""
    monkeypatch.setattr("anonlib.run.scan.is_small", lambda *_: is_small)
    frame = frame_of(spark, ["a", "b", "c", "d"] * 2).withColumnRenamed("id", "patient_id")
    given = config_of(tmp_path, unit=[], one_row_per_person=True)
    given["attributes"] = {"patient_id": {"role": "identifier"}, **given["attributes"]}
    del given["attributes"]["id"]
    found = scan_of(spark, given, frame).content.repetitions
    assert found == (Repetition("patient_id", 4, 8),)
    if is_small:
        result = anonlib.release(given, dataframe=frame)
        told = (
            "column patient_id: each row counts as another person, but values repeat: 4 values in 8"
        )
        assert any(note.startswith(told) for note in result.notes)
        record = json.loads(Path(result.record.removeprefix("file:")).read_text())
        assert [each["column"] for each in record["content"]["repetitions"]] == ["patient_id"]


def test_case_is_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Without a collation that folds it, and without `fold_case`, case tells persons apart."""
    ids = ["a", "A", "b", "B", "c", "C", "d", "D"]
    given = config_of(tmp_path, privacy={"models": [{"type": "k_anonymity", "k": 8}]})
    assert scan_of(spark, given, frame_of(spark, ids)).n_rows == 8


def test_unit_of_two_columns(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, ["Ana", "ANA", "ana", "Ana "] * 2, "UTF8_LCASE")
    frame = frame.withColumn(
        "born", F.collate(F.when(F.col("age") < 4, "x").otherwise("X "), "UNICODE_CI")
    )
    given = config_of(tmp_path, unit=["id", "born"])
    given["attributes"]["born"] = {"role": "identifier"}
    with pytest.raises(InfeasibleError, match="asks for 4 persons; there are 1"):
        scan_of(spark, given, frame)


def test_collation_that_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, list("abcdefgh"), "UNICODE_AI")
    with pytest.raises(ConfigError, match="column id: its type string collate UNICODE_AI does not"):
        scan_of(spark, config_of(tmp_path), frame)


def test_blank_names_are_nobody(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, ["a", "b", "c", "d", "", "  ", "\u00a0", "\t"])
    given = config_of(tmp_path, privacy={"models": [{"type": "k_anonymity", "k": 5}]})
    with pytest.raises(InfeasibleError, match="asks for 5 persons; there are 4"):
        scan_of(spark, given, frame)


def test_pseudonyms_and_ledger(spark: SparkSession, tmp_path: Path) -> None:
    ledger = {"key_env": "ANONLIB_LEDGER_KEY"}
    given = config_of(tmp_path, unit=[], one_row_per_person="id")
    given["attributes"]["id"]["pseudonym"] = True
    given["pseudonyms"] = {"key_env": "ANONLIB_TEST_KEY", "scope": "stable"}
    given["release"] |= {"ledger": ledger}
    first = [f"p{i}" for i in range(8)]
    anonlib.release(given, dataframe=frame_of(spark, first))
    again = [*(f" p{i}\u00a0" for i in range(3)), *(f"q{i}" for i in range(5))]
    given["release"] |= {"mode": "append"}
    with pytest.raises(ConfigError, match="3 persons of the source were released before"):
        anonlib.release(given, dataframe=frame_of(spark, again))
    given["release"] |= {"acknowledge_returning": True}
    given["privacy"] |= {"acknowledge_linked": True}
    result = anonlib.release(given, dataframe=frame_of(spark, again))
    assert any("quasi-identifiers in two batches" in note for note in result.notes)
    rows = spark.read.format("delta").load(str(tmp_path / "out")).select("id").collect()
    assert len({row["id"] for row in rows}) == 13
    # After batches of persons who are new, too, some of the table are in several.
    given["release"] |= {"acknowledge_returning": False}
    result = anonlib.release(given, dataframe=frame_of(spark, [f"r{i}" for i in range(8)]))
    assert result.persons_return
    manifest = json.loads(Path(result.manifest).read_text())
    assert manifest["persons"].endswith("persons may be in several")
    report = anonlib.audit(str(tmp_path / "out"), given)
    assert report.passed
    assert "persons: counted by the pseudonym id" in report.premises


def test_one_text_agrees_with_the_column(spark: SparkSession) -> None:
    texts = [
        "Ana ",
        "Ana\n",
        "\u00c9va\n",
        "\u1e9e",
        "\u00df",
        "\u0130x",
        "\u0131",
        "e\u0301",
        "\ufb01",
        " \u3000",
        "\u03c2",
        "\ufeffe\u200b\u0301\u00ad",
        "a\tb\x00\u3164",
        "\u200b \u2800\u200f",
    ]
    frame = spark.createDataFrame(pd.DataFrame({"x": texts}))
    for folded in (False, True):
        rows = frame.select("x", identify_person(F.col("x"), "string", folded).alias("y"))
        for row in rows.collect():
            assert (row["y"] or "") == identify(row["x"], folded=folded)


@pytest.mark.parametrize("pseudonym", [False, True])
def test_audit_of_a_published_table_of_a_unit(
    shell: Shell, spark: SparkSession, tmp_path: Path, pseudonym: bool
) -> None:
    """Without the persons in it, the table can't be audited by itself: that is no failure, and the
    release doesn't tell users to try. What it tells them to do passes."""
    frame = people(60).assign(person=[f"p{i // 2}" for i in range(60)])
    frame.to_parquet(tmp_path / "people.parquet", index=False)
    given = settings(
        tmp_path,
        attributes={"person": {"role": "identifier", "pseudonym": pseudonym}},
        one_row_per_person=None,
        unit=["person"],
        pseudonyms={"key_env": "ANONLIB_TEST_KEY"} if pseudonym else None,
    )
    given["privacy"]["acknowledge_linked"] = pseudonym
    said = shell.release(given)
    assert said.code == 0, said.err
    assert ("audit it" in said.out) is pseudonym
    audited = shell("audit", str(tmp_path / "out/table"), "--conf", str(tmp_path / "config.yaml"))
    assert audited.code == (0 if pseudonym else 5)
    assert ("can't be counted here: audited at release" in audited.out) is not pseudonym
    # What fails whoever the persons are is a failure.
    given["privacy"]["models"] = [{"type": "k_anonymity", "k": 40}]
    write_config(tmp_path, given)
    audited = shell("audit", str(tmp_path / "out/table"), "--conf", str(tmp_path / "config.yaml"))
    assert audited.code == 3
