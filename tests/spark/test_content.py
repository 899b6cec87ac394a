"""The content gate: columns that show who a person is are found by what they hold."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.content import gate
from anonlib.content.text_columns import to_text_columns
from anonlib.errors import InfeasibleError
from anonlib.run import content
from anonlib.run.column_values import Look, SourceCounter, find_values
from anonlib.run.content import complete_sketches, judge_content, plan_look
from anonlib.source.resolved_source import open_source
from anonlib.table.schema import Role
from tests.content_cases import (
    FLAGS,
    FORMS,
    HARMLESS,
    MADE,
    NO_FORMS,
    PUBLIC,
    QUASI,
    RARE_FLAG,
    SENSITIVE,
    SHOWS,
    N,
    config_of,
    table,
)
from tests.spark.support import scan_of

pytestmark = pytest.mark.spark


def judged(
    spark: SparkSession,
    path: Path,
    cases: Sequence[tuple[str, Any, Any]],
    *,
    with_models: bool,
    n_sampled: int = N,
) -> dict[str, list[str]]:
    """What the gate says of columns, by name, where each case is a column of one table: its name,
    its values and its attribute. with_models: whether a model names each of them."""
    rows = table()
    for name, x, _ in cases:
        rows[name] = x(rows)
    models = [{"type": "l_diversity", "l": 2, "attribute": name} for name, *_ in cases]
    privacy = {"models": [{"type": "k_anonymity", "k": 4}, *(models if with_models else [])]}
    attributes = {name: attribute for name, _, attribute in cases}
    config = anonlib.parse(config_of(path, None, privacy=privacy, attributes=attributes))
    source = open_source(spark, config, spark.createDataFrame(rows))
    protected = frozenset(source.schema.by_id(id).name for id in source.schema.protected)
    roles = Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET  # as `list_sampled` has them
    sample = source.rows().select(*[c.id for c in source.schema.of(*roles)])
    some = sample.toArrow().take(pa.array(np.random.default_rng(5).permutation(N)[:n_sampled]))
    look = plan_look(source.schema, N, some)
    found = complete_sketches(source, look, find_values(source, look), some)
    _, problems = judge_content(source, found, look.key, some, config.privacy, protected)
    source.close()
    said: dict[str, list[str]] = {name: [] for name, *_ in cases}
    for problem in problems:
        said[problem.where.removeprefix("column ")].append(problem.text)
    return said


def shrink_sketches(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Sketches have this many values. Their number of all values is then off by 9 %, which may be
    too far for a key: the values that they keep are the same in each run of a test."""
    for name in ("SKETCH_SIZE", "SET_SIZE"):
        monkeypatch.setattr(content, name, size)
    monkeypatch.setattr(secrets, "randbits", lambda n: 7)


def test_what_is_made_of_an_identifier(spark: SparkSession, tmp_path: Path) -> None:
    found = judged(spark, tmp_path, [(*made, SENSITIVE) for made in MADE], with_models=True)
    says = re.compile(r"shows who a person is: in \d+ rows")
    assert [name for name, texts in found.items() if not any(map(says.match, texts))] == []


def test_what_shows_persons(spark: SparkSession, tmp_path: Path) -> None:
    """Each table has one target, and the first all other columns."""
    tables = [[case] for case in SHOWS if case[2] is PUBLIC]
    tables[0] += [case for case in SHOWS if case[2] is not PUBLIC]
    for cases in tables:
        found = judged(spark, tmp_path, [case[:3] for case in cases], with_models=False)
        assert "P-0" not in str(found)
        missed = [name for name, *_, said in cases if not any(said in t for t in found[name])]
        assert missed == []


def test_texts_of_a_column_that_the_sample_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """Insensitive columns are in no sample. Tokens for missing values tell nothing of a kind."""
    rows = table().assign(x=[None if i % 2 else "NA" if i % 3 else f"t{i % 4}" for i in range(N)])
    config = anonlib.parse(config_of(tmp_path, {"role": "insensitive"}))
    source = open_source(spark, config, spark.createDataFrame(rows))
    column = source.schema["x"]
    values = find_values(source, Look((), {column.id: 1.0}, (), 1))
    samples = [{}, {column.id: pa.array(rows["x"])}, {column.id: pa.array(["t0", None])}]
    for sample in samples:  # the last one lacks a text
        counter = SourceCounter(source, values, 1, pa.table(sample))
        assert {*counter.list_texts(column)} == {"t0", "t2"}
    source.close()


def test_forms_of_quasi_identifiers(spark: SparkSession, tmp_path: Path) -> None:
    cases = [(name, x, SENSITIVE) for name, x, *_ in [*FORMS, *NO_FORMS]]
    found = judged(spark, tmp_path, [*QUASI, *cases], with_models=False)
    missed = [
        name for name, _, quasi in FORMS if f"the quasi-identifier {quasi}" not in str(found[name])
    ]
    assert missed == []
    assert [name for name, _ in NO_FORMS if "quasi-identifier" in str(found[name])] == []


def test_flags_that_repeat_a_quasi_identifier(spark: SparkSession, tmp_path: Path) -> None:
    """Insensitive ones, too, which no sample has."""
    roles = {"of a patient": SENSITIVE, "of anybody": {"role": "insensitive"}}
    cases = [(f"{f} {of}", x, role) for f, x, _ in FLAGS for of, role in roles.items()]
    found = judged(spark, tmp_path, [RARE_FLAG, *cases], with_models=False)
    says = f"equals the quasi-identifier {RARE_FLAG[0]}"
    assert {name: says in str(texts) for name, texts in found.items() if name != RARE_FLAG[0]} == {
        f"{flag} {of}": repeats for flag, _, repeats in FLAGS for of in roles
    }


def test_few_values_of_many_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A sketch keeps all values of a column that has few, however many rows there are."""
    shrink_sketches(monkeypatch, 90)  # 72 ages, 400 identifiers
    names = ("a copy", "repeats", "repeats where there is one", "coded ages", "equal at times")
    cases = [case for case in SHOWS if case[0] in names]
    found = judged(spark, tmp_path, [case[:3] for case in cases], with_models=False)
    assert [name for name, *_, said in cases if not any(said in t for t in found[name])] == []
    assert "in 400 rows" in str(found["repeats"])
    assert "72 in all" in str(found["coded ages"])


def test_a_sample_of_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sketches that are set up by a sample see what all rows show; of keys they see a part."""
    shrink_sketches(monkeypatch, 100)
    names = ("a copy", "repeats", "a key", "coded ages", "equal at times")
    cases = [case for case in SHOWS if case[0] in names]
    together = [case[:3] for case in cases]
    found = judged(spark, tmp_path, together, with_models=False, n_sampled=200)
    says = {"a key": "is a key: "}
    missed = [
        name
        for name, *_, said in cases
        if not any(says.get(name, said) in text for text in found[name])
    ]
    assert missed == []


def test_identifiers_with_few_values(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each of their values is in many rows, so that a first sketch has hardly any of them."""
    shrink_sketches(monkeypatch, 20)
    firm = [f"firm {i % 40}" for i in range(N)]
    cases: list[tuple[str, Any, Any]] = [
        ("firm", lambda rows: firm, {"role": "identifier"}),
        ("partner", lambda rows: [*firm[1:], firm[0]], SENSITIVE),  # never in the same row
    ]
    found = judged(spark, tmp_path, cases, with_models=False)["partner"]
    assert any("more values with column firm" in text for text in found)


def test_nothing_is_published_then(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    rows["x"] = rows["id"]
    frame = spark.createDataFrame(rows)
    shows = "column x: shows who a person is"
    with pytest.raises(InfeasibleError, match=shows) as caught:
        anonlib.release(config_of(tmp_path, SENSITIVE), dataframe=frame)
    assert "P-0" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    quasi = config_of(tmp_path, {"role": "quasi_identifier", "scale": "nominal"})
    with pytest.raises(InfeasibleError, match=shows) as caught:
        scan_of(spark, quasi, frame)
    assert "P-0" not in str(caught.value)


def test_what_chance_explains(spark: SparkSession, tmp_path: Path) -> None:
    for cases in (
        [h for h in HARMLESS if h[2] is SENSITIVE],
        [h for h in HARMLESS if h[2] is PUBLIC],
    ):
        found = judged(spark, tmp_path, cases, with_models=False)
        assert {name: texts for name, texts in found.items() if texts} == {}


def test_what_is_acknowledged(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    rows["x"] = rows["id"]
    frame = spark.createDataFrame(rows)
    with pytest.raises(InfeasibleError, match="who a person is"):  # true is not enough for that
        scan_of(spark, config_of(tmp_path, SENSITIVE, privacy={"acknowledge_unique": True}), frame)
    listed = config_of(tmp_path, SENSITIVE, privacy={"acknowledge_unique": ["x"]})
    assert anonlib.release(listed, dataframe=frame).n_rows_out == N
    rows["x"] = [f"k{i * i}" for i in range(N)]
    every = config_of(tmp_path / "b", SENSITIVE, privacy={"acknowledge_unique": True})
    assert scan_of(spark, every, spark.createDataFrame(rows)).n_rows == N


def test_a_rich_column_with_a_model(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    rows["x"] = [f"k{i * i}" for i in range(N)]
    models = [{"type": "k_anonymity", "k": 4}, {"type": "l_diversity", "l": 3, "attribute": "x"}]
    given = config_of(tmp_path, SENSITIVE, privacy={"models": models})
    assert scan_of(spark, given, spark.createDataFrame(rows)).n_rows == N


@pytest.mark.parametrize("model", [False, True])
def test_what_tells_whose_a_row_is(spark: SparkSession, tmp_path: Path, *, model: bool) -> None:
    """A hash of the person, in several rows of each, whether a model names it or not."""
    rows = table()
    rows["id"] = np.repeat(rows["id"][: N // 4].to_numpy(), 4)
    rows["x"] = [hashlib.sha256(f"salt {id}".encode()).hexdigest() for id in rows["id"]]
    models = [{"type": "k_anonymity", "k": 4}]
    models += [{"type": "l_diversity", "l": 2, "attribute": "x"}] if model else []
    given = config_of(
        tmp_path, SENSITIVE, privacy={"models": models}, unit=["id"], one_row_per_person=False
    )
    with pytest.raises(
        InfeasibleError, match="tells whose a row is: of the 100 values that several rows have, 100"
    ):
        scan_of(spark, given, spark.createDataFrame(rows))


def test_persons_are_told_apart_as_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Names that look alike are of one person, and a missing one is where it is: the size of a
    table must not decide what is refused."""
    rows = pa.table(
        {
            "id": ["ann", "ANN", "bob", "bob", None, "u", "u", None, None, "\uff43y", "cy", "CY "],
            "age": pa.array([1.0, 1.0, 2.0, 2.5, 3.0, 3.0, None, None, 5.0, None, None, None]),
            "dead": [True, True, True, True, None, None, True, True, None, None, None, None],
            "x": ["a", "a", "b", "b", "c", "c", "d", "d", "e", "f", "f", "F"],
            "town": [1] * 12,
        }
    )
    names = ["id", "age", "dead"]
    roles = dict.fromkeys(names, "identifier") | {"x": "sensitive"}
    config = anonlib.parse(
        {
            "source": {"format": "dataframe"},
            "attributes": {
                **{name: {"role": role} for name, role in roles.items()},
                "town": {"role": "quasi_identifier", "scale": "continuous"},
            },
            "unit": names,
            "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
            "release": {"path": str(tmp_path / "out")},
        }
    )
    source = open_source(spark, config, spark.createDataFrame(rows).repartition(3))
    schema = source.schema
    counter = SourceCounter(source, find_values(source, Look((), {}, (), 1)), 1, pa.table({}))
    by_id = rows.rename_columns([schema[name].id for name in rows.column_names])
    columns = {id: by_id.column(id).combine_chunks() for id in by_id.column_names}
    texts = to_text_columns(columns, gate._number_texts)
    in_memory = gate._TextCounter(texts, by_id, schema.unit)
    assert counter.count_alone(schema["x"]) == in_memory.count_alone(schema["x"]) == (5, 2)
    source.close()


def test_categories_of_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """All values of a column, once each, with the hashes that Spark has of them, also under a
    collation by which some of them are equal."""
    rows = table()
    rows["town"] = [f"{town}{i % 9}" for i, town in enumerate(rows["town"])]
    rows["town"] = rows["town"].where(rows.index % 2 == 0, rows["town"].str.lower())
    plain = spark.createDataFrame(pd.concat([rows] * 3)).repartition(3)
    collated = plain.withColumn("town", F.collate("town", "UTF8_LCASE"))
    for frame in (plain, collated):
        changes = {"partition": {"sample_rows": 1000}, "one_row_per_person": True}
        given = config_of(tmp_path, None, **changes)
        found = scan_of(spark, given, frame)
        (id,) = (each.id for each in found.encodings if each.nominal)
        expected = plain.select(F.xxhash64("town")).distinct().collect()
        assert sorted(found.hashes[id].tolist()) == sorted(row[0] for row in expected)
        n_shared = {c: figure for c, figure in found.content.distinct.items() if c == "town"}
        assert n_shared == {"town": rows["town"].str.lower().nunique()}


def test_check_tells_it_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    rows["x"] = rows["id"]
    spark.createDataFrame(rows).write.parquet(str(tmp_path / "people"))
    given = config_of(tmp_path, SENSITIVE)
    given["source"] = {"format": "parquet", "path": str(tmp_path / "people")}
    with pytest.raises(InfeasibleError, match="column x: shows who a person is"):
        anonlib.check(given)


def test_the_private_record_has_the_figures(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    rows["x"] = np.random.default_rng(0).integers(0, 110, N)
    result = anonlib.release(config_of(tmp_path, SENSITIVE), dataframe=spark.createDataFrame(rows))
    import json

    figures = json.loads(Path(result.record).read_text())["content"]
    assert figures["share"] == 1
    assert figures["distinct"]["town"] == 4
    assert {"column": "x", "identifier": "serial"}.items() <= next(
        pair for pair in figures["shared"] if pair["column"] == "x"
    ).items()
