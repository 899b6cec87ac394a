"""A release in memory has the rows that a release in Spark has."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import ConfigError, InfeasibleError, InputError
from anonlib.local.column_facts import MOST_VALUES, find_facts, make_profile
from anonlib.local.engine import make_release
from anonlib.local.rows import list_needed, read_rows
from anonlib.progress import Progress
from anonlib.run.scan import scan
from anonlib.run.staging import Place, stage_release
from anonlib.source.frame_profile import profile_frame
from anonlib.source.resolved_source import open_source
from anonlib.worker.marks import NO_MARKS

QUASI = {"role": "quasi_identifier"}


def people(n: int = 1500) -> pa.Table:
    """Rows of every scale, with missing values, negative zeros and rows that are equal."""
    random = np.random.default_rng(3)
    age = random.integers(18, 90, n)
    gain = np.where(random.random(n) < 0.6, -0.0, random.normal(1000, 300, n).round(1))
    city = random.choice(list("abcde"), n, p=[0.4, 0.3, 0.2, 0.06, 0.04])
    rich = age + random.normal(0, 9, n) > 50
    return pa.table(
        {
            "age": pa.array(age, pa.int32()),
            "gain": pa.array(np.where(random.random(n) < 0.1, np.nan, gain)),
            "born": pa.array(random.integers(0, 20_000, n).astype(np.int32)).cast(pa.date32()),
            "city": pa.array(np.where(random.random(n) < 0.05, None, city), pa.string()),
            "size": pa.array(random.choice(["S", "M", "L"], n)),
            "illness": pa.array([f"Ill {i}" for i in random.integers(0, 6, n) + (age > 60) * 2]),
            "income": pa.array([None if i % 19 == 0 else bool(x) for i, x in enumerate(rich)]),
            "person": pa.array([f" p{i} " for i in np.arange(n) // 2]),
            "number": pa.array(np.arange(n)),
        }
    )


def config(
    tmp_path: Path, attributes: Mapping[str, Any] = MappingProxyType({}), **changes: Any
) -> dict[str, Any]:
    """The config of `people`; `attributes` are added to, other sections replaced."""
    models = [{"type": "k_anonymity", "k": 4}, {"type": "l_diversity", "l": 2}]
    illnesses = tmp_path / "illness.csv"
    illnesses.write_text("".join(f"Ill {i};pair {i // 2};*\n" for i in range(8)))
    return {
        "source": {"format": "dataframe"},
        "attributes": {
            "age": {**QUASI, "scale": "continuous"},
            "gain": {**QUASI, "scale": "continuous"},
            "born": {**QUASI, "scale": "continuous"},
            "city": {**QUASI, "scale": "nominal"},
            "size": {**QUASI, "scale": "ordinal", "order": ["S", "M", "L"]},
            "illness": {"role": "sensitive", "hierarchy": str(illnesses)},
            "income": {"role": "target", "public": True},
            "person": {"role": "identifier"},
            "number": {"role": "identifier"},
            **attributes,
        },
        "one_row_per_person": "number",
        "privacy": {"models": models},
        "partition": {"steps": [{"type": "kmeans"}], "max_rows": 200, "sample_rows": 1000},
        "release": {"path": str(tmp_path / "table")},
        "seed": 11,
        **changes,
    }


def rows_of(table: pa.Table) -> list[str]:
    """The rows as text, sorted."""
    return sorted(map(repr, table.to_pylist()))


def staged(spark: SparkSession, tmp_path: Path, table: pa.Table, chosen: Any) -> pa.Table:
    """The rows that a run in Spark stages."""
    source = open_source(spark, chosen, spark.createDataFrame(table).repartition(3))
    seen = scan(source, chosen)
    names = {column.id: column.name for column in source.schema.released}
    place = Place(str(tmp_path / "staging"), names, "run")
    staging = stage_release(source, seen, chosen, place, b"", b"key", NO_MARKS, Progress())
    return staging.rows.select(*names).toArrow().rename_columns([*names.values()])


def in_memory(table: pa.Table, chosen: Any) -> pa.Table:
    needed = [name for name in table.column_names if name in list_needed(chosen)]
    rows = read_rows(table.select(needed), table.column_names, chosen)
    made = make_release(rows, chosen, b"key").table
    names = {column.id: column.name for column in rows.schema.released}
    return made.select([*names]).rename_columns([*names.values()])


def partition(*steps: str, **more: Any) -> dict[str, Any]:
    kinds = [{"type": step} for step in steps]
    return {"partition": {"steps": kinds, "max_rows": 200, "sample_rows": 1000, **more}}


def models(*more: dict[str, Any]) -> dict[str, Any]:
    return {"privacy": {"models": [{"type": "k_anonymity", "k": 4}, *more]}}


DIVERSE = {"type": "l_diversity", "l": 2, "attribute": "illness"}
CASES: dict[str, dict[str, Any]] = {
    "sampled": {"unit": ["person"]},
    "whole": {**partition("target_tree", sample_rows=5000), "kernel": {"type": "lda_mdav"}},
    "mondrian": {
        **partition("mondrian"),
        "kernel": {"type": "mondrian"},
        "recode": {"continuous": "interval", "nominal": "set"},
    },
    "restored": {"recode": {"continuous": {"type": "centroid", "restore_variance": True}}},
    "blocks_that_fail": models({"type": "l_diversity", "l": 6}),
    "counts": models(
        {"type": "t_closeness", "t": 0.6},
        {"type": "t_closeness", "t": 0.5, "distance": "hierarchical", "attribute": "illness"},
        {"type": "l_diversity", "l": 2, "attribute": "income"},
        {"type": "l_diversity", "l": 2, "kind": "entropy", "attribute": "illness"},
        {"type": "alpha_k", "alpha": 0.7, "attribute": "illness"},
        {"type": "delta_disclosure", "delta": 3, "attribute": "income"},
    ),
    "joint": {
        "attributes": {"income": {"role": "sensitive"}},
        "privacy": {"models": [{"type": "k_anonymity", "k": 4}, DIVERSE], "joint": True},
    },
    "by_pandas": {"spark": {"grouped_map": "pandas"}},
}


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES)
def test_same_rows(spark: SparkSession, tmp_path: Path, case: str) -> None:
    table = people()
    changes = CASES[case]
    persons = {"one_row_per_person": False} if "unit" in changes else {}
    chosen = anonlib.parse(config(tmp_path, **changes, **persons))
    found = in_memory(table, chosen)
    assert found.num_rows == table.num_rows
    assert rows_of(found) == rows_of(staged(spark, tmp_path, table, chosen))


def with_hospitals(table: pa.Table) -> pa.Table:
    """Rows of five hospitals of very different sizes, of one that has a single illness, and of
    none."""
    random = np.random.default_rng(8)
    shares = [0.5, 0.25, 0.14, 0.05, 0.01, 0.05]
    names = random.choice(
        ["north", "south", "east", "west", "tiny", None], table.num_rows, p=shares
    )
    names[:7] = "lone"
    ill = np.where(names == "lone", "Ill 0", table.column("illness").to_pylist())
    place = table.column_names.index("illness")
    return table.set_column(place, "illness", pa.array(ill)).append_column(
        "hospital", pa.array(names, pa.string())
    )


def apart(*steps: str, **controller: Any) -> dict[str, Any]:
    """A chain that keeps hospitals apart."""
    first = {"type": "controller", "column": "hospital", **controller}
    kinds = [{"type": step} for step in steps]
    return {"partition": {"steps": [first, *kinds], "max_rows": 100, "sample_rows": 1000}}


def limited(limit: float, *more: dict[str, Any]) -> dict[str, Any]:
    return {"privacy": {**models(*more)["privacy"], "suppression_limit": limit}}


OWN = {
    "north": [{"type": "k_anonymity", "k": 30}],
    "west": [{"type": "l_diversity", "l": 3, "attribute": "illness"}],
}
CLOSE = {"type": "t_closeness", "t": 0.7, "attribute": "illness"}
CLASSES = {"kernel": {"type": "lda_mdav"}}
TWICE = {"unit": ["person"], "one_row_per_person": False}
ENTROPY = {"type": "l_diversity", "l": 2, "kind": "entropy"}
#: By case: the changes of the config, and the rows that are lost.
CONTROLLERS: dict[str, tuple[dict[str, Any], int]] = {
    "left_out": ({**apart("kmeans"), **CLASSES, **limited(0.03, DIVERSE)}, 7),
    "merged": ({**apart("mondrian", merge=True), **limited(0.0, DIVERSE)}, 0),
    "own_models_merged": (
        {**apart("target_tree", "kmeans", merge=True, models=OWN), **limited(0.0, DIVERSE)},
        0,
    ),
    "relative": ({**apart("kmeans", models=OWN), **limited(0.03, DIVERSE, CLOSE)}, 7),
    "blocks_that_fail": ({**apart("kmeans", merge=True), **limited(0.0, {**DIVERSE, "l": 5})}, 0),
    "unit_left_out": ({**apart("kmeans"), **TWICE, **limited(0.03, DIVERSE)}, 7),
    "unit_counts": ({**apart("kmeans", merge=True), **TWICE, **limited(0.0, ENTROPY, CLOSE)}, 0),
    "joint": (
        {
            **apart("kmeans", merge=True),
            "attributes": {"income": {"role": "sensitive"}},
            "privacy": {"models": [{"type": "k_anonymity", "k": 4}, DIVERSE], "joint": True},
        },
        0,
    ),
    "released": (
        {
            **apart("kmeans", models=OWN),
            "attributes": {"hospital": {**QUASI, "scale": "nominal"}},
            **limited(0.03, DIVERSE),
        },
        7,
    ),
    "large_leaf": ({**apart("kmeans"), **limited(0.03, DIVERSE)}, 7),
    "heavy_tuple": ({**apart("kmeans"), **limited(0.03, DIVERSE)}, 7),
}


#: By case: of so many rows all but one agree in all quasi-identifiers. Those of the largest
#: hospital are more than a task takes as one leaf, or as one tuple.
CROWDS = {"large_leaf": 3, "heavy_tuple": 8}


def with_crowd(table: pa.Table, n: int) -> pa.Table:
    """Of n rows all but one agree in all quasi-identifiers."""
    crowd = pa.array(np.arange(table.num_rows) % n > 0)
    for place, name in enumerate(("age", "gain", "born", "city", "size")):
        column = table.column(name)
        table = table.set_column(place, name, pc.if_else(crowd, column[3], column))
    return table


@pytest.mark.spark
@pytest.mark.parametrize("case", CONTROLLERS)
def test_same_rows_of_controllers(spark: SparkSession, tmp_path: Path, case: str) -> None:
    changes, n_lost = CONTROLLERS[case]
    table = with_hospitals(people())
    table = with_crowd(table, CROWDS[case]) if case in CROWDS else table
    attributes = {"hospital": {"role": "drop"}, **changes.get("attributes", {})}
    chosen = anonlib.parse(config(tmp_path, **{**changes, "attributes": attributes}))
    found = in_memory(table, chosen)
    assert found.num_rows == table.num_rows - n_lost
    assert rows_of(found) == rows_of(staged(spark, tmp_path, table, chosen))


@pytest.mark.spark
def test_same_rows_by_tuples(spark: SparkSession, tmp_path: Path) -> None:
    """One search over the distinct tuples, which suppresses some."""
    (tmp_path / "city.csv").write_text("a;ab;*\nb;ab;*\nc;cd;*\nd;cd;*\ne;e;*\n")
    (tmp_path / "size.csv").write_text("S;*\nM;*\nL;*\n")
    nominal = {**QUASI, "scale": "nominal"}
    attributes = {
        "city": {**nominal, "hierarchy": str(tmp_path / "city.csv")},
        "size": {**nominal, "hierarchy": str(tmp_path / "size.csv")},
        **{name: {"role": "drop"} for name in ("age", "gain", "born", "person", "income")},
    }
    chosen = anonlib.parse(
        config(
            tmp_path,
            attributes=attributes,
            kernel={"type": "full_domain"},
            partition={"steps": [{"type": "tuples"}]},
            recode={"nominal": "lca"},
            privacy={"models": [{"type": "k_anonymity", "k": 20}], "suppression_limit": 0.05},
        )
    )
    table = people()
    found = in_memory(table, chosen)
    assert 0.95 * table.num_rows <= found.num_rows < table.num_rows
    assert rows_of(found) == rows_of(staged(spark, tmp_path, table, chosen))


@pytest.mark.spark
def test_same_pseudonyms(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stable key, whoever makes the release; the texts of one person are one."""
    monkeypatch.setenv("OWN_KEY", "0123456789abcdef")
    table = people(300)
    named = [None if i % 50 == 0 else f"p{i // 2}" + " " * (i % 2) for i in range(300)]
    table = table.set_column(table.column_names.index("person"), "person", pa.array(named))
    chosen = config(
        tmp_path,
        attributes={
            "person": {"role": "identifier", "pseudonym": True},
            "illness": {"role": "drop"},
        },
        one_row_per_person=False,
        unit=["person"],
        pseudonyms={"key_env": "OWN_KEY", "scope": "stable"},
        privacy={"models": [{"type": "k_anonymity", "k": 4}], "acknowledge_linked": True},
    )
    here = anonlib.anonymize(table, chosen).table
    anonlib.release(anonlib.parse(chosen), dataframe=spark.createDataFrame(table))
    there = spark.read.format("delta").load(str(tmp_path / "table")).toArrow()
    assert rows_of(here) == rows_of(there.select(here.column_names))
    assert here.column("person").null_count == 6
    assert len(here.column("person").unique()) == 1 + 150


@pytest.mark.spark
def test_a_dataframe_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is published; the call is the same, and so are the rows."""
    table = people(300)
    table = table.rename_columns(["a`ge" if n == "age" else n for n in table.column_names])
    given: dict[str, Any] = {
        "quasi_identifiers": ["a`ge", "city"],
        "sensitive": ["illness"],
        "one_row_per_person": "number",
        "k": 4,
        "l": 2,
        "seed": 5,
    }
    with pytest.raises(InputError, match="path: name the folder"):
        anonlib.anonymize(spark.createDataFrame(table), **given)
    found = anonlib.anonymize(spark.createDataFrame(table), **given, path=str(tmp_path / "t"))
    here = anonlib.anonymize(table, **given)
    assert rows_of(found.table.toArrow()) == rows_of(here.table)
    assert {**found.risk} == {**here.risk}
    page = Path(anonlib.report(found.record["record"]).removeprefix("file:")).read_text("utf-8")
    assert found.report() == page
    assert "Published 300 rows" in page
    found.certificate(tmp_path / "c.html")
    for one in (found.table, found.table.toArrow()):
        lines = anonlib.verify(tmp_path / "c.html", one, record=found.record["record"])
        assert [line for line in lines if line.state != "confirmed"] == []
    with pytest.raises(InputError, match="the run has written its record"):
        found.save_record(tmp_path / "r.json")
    assert anonlib.audit(found.table, found.config).passed
    monkeypatch.setenv("ANONLIB_MIN_K", "5")
    with pytest.raises(ConfigError, match="no k below 5"):
        anonlib.audit(found.table, found.config)
    with pytest.raises(InputError, match="a Delta table already"):
        found.to_parquet(tmp_path / "x.parquet")


@pytest.mark.spark
@pytest.mark.parametrize("persons", [{"one_row_per_person": True}, {"unit": ["person"]}])
def test_notes_of_a_dataframe(spark: SparkSession, tmp_path: Path, persons: dict[str, Any]) -> None:
    """They are those in memory: what is declared, rows of nobody; a column of nothing but null."""
    table = people(120).select(["age", "size", "person"]).append_column("x", pa.nulls(120))
    person = pc.if_else(pa.array(np.arange(120) < 20), None, table["person"])
    table = table.set_column(2, "person", person)
    given: dict[str, Any] = {"quasi_identifiers": ["age", "x"], "sensitive": ["size"], "k": 3}
    given |= {"seed": 5, **persons}
    here = anonlib.anonymize(table, **given)
    frame = spark.createDataFrame(table)
    assert frame.schema["x"].dataType.simpleString() == "void"
    found = anonlib.anonymize(frame, **given, path=str(tmp_path / "t"))
    assert sorted(found.notes) == sorted(here.notes)
    told = ["20 rows have no person", "each row counts as another person"]
    assert [
        note[: len(text)] for note in found.notes for text in told if note.startswith(text)
    ] == [told["one_row_per_person" in persons]]
    assert rows_of(found.table.toArrow()) == rows_of(here.table)


@pytest.mark.spark
def test_infinite_values_of_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"age": [math.inf, *map(float, range(59))]})
    given: dict[str, Any] = {"quasi_identifiers": ["age"], "one_row_per_person": True, "k": 3}
    for data, more in ((table, {}), (spark.createDataFrame(table), {"path": f"{tmp_path}/t"})):
        with pytest.raises(ConfigError, match=r"^column age: 1 infinite values; make them missing"):
            anonlib.anonymize(data, **given, **more)


@pytest.mark.spark
def test_guesses_are_of_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Of a DataFrame, too: not of the rows that come first."""
    n = 12_000
    table = pa.table(
        {
            "age": [i % 3 if i < 11_000 else i % 40 for i in range(n)],
            "town": [f"t{i % 7}" for i in range(n)],
            "illness": [("flu", "cold", "gout")[i % 3] if i < n - 50 else "none" for i in range(n)],
            "note": ["ok" if i < 11_000 else f"p{i}@mail.example" for i in range(n)],
        }
    )
    given: dict[str, Any] = {
        "quasi_identifiers": ["age", "town"],
        "k": 5,
        "one_row_per_person": True,
        "seed": 5,
    }
    frame, path = spark.createDataFrame(table), str(tmp_path / "t")
    found = anonlib.anonymize(frame, **given, sensitive=["illness"], path=path)
    here = anonlib.anonymize(table, **given, sensitive=["illness"])
    assert found.config.attributes == here.config.attributes
    assert "none" in found.config.privacy.missing_tokens
    assert found.config.privacy == here.config.privacy
    names = ["age", "illness", "note"]
    assert profile_frame(frame.coalesce(1), names) == profile_frame(frame.repartition(7), names)
    assert profile_frame(frame.where("age < 0"), names)["note"].n_present == 0
    with pytest.raises(InfeasibleError, match="column note: shows who a person is"):
        anonlib.anonymize(frame, **given, sensitive=["illness", "note"], path=f"{path}2")
    assert not Path(f"{path}2").exists()


@pytest.mark.spark
def test_many_values_are_counted_as_in_memory(spark: SparkSession) -> None:
    """Each of them: of a column of which every row has its own, nothing says that it repeats."""
    n = MOST_VALUES + 2_000
    numbers = np.random.default_rng(4).permutation(10**6)[:n]
    table = pa.table(
        {
            "ref": numbers,
            "phone": [f"+49 151 {1_000_000 + i}" for i in range(n)],
            "nearly": ["x", "x", *[f"x{i}" for i in range(n - 2)]],
            "wage": [*[-0.0, 0.0, math.nan, -999.0, None], *[i / 2 for i in range(n - 5)]],
            "text": [*["?", "NA", "none", ""], *[f"u{i}" for i in range(n - 4)]],
            "as many": [f"w{i % MOST_VALUES}" for i in range(n)],
            "few": numbers % 7,
        }
    )
    here = {
        name: make_profile(name, values.type, find_facts(values))
        for name in table.column_names
        for values in [table[name].combine_chunks()]
    }
    assert [name for name, column in here.items() if column.unique] == ["ref", "phone"]
    frame = spark.createDataFrame(table)
    for parts in (1, 3):
        assert profile_frame(frame.repartition(parts), [*here]) == here


MEASURES: list[dict[str, Any]] = [
    {"type": "learning", "models": ["logistic_regression"]},
    {"type": "fairness", "columns": ["size"]},
    *(
        {"type": type}
        for type in (
            *("moments", "associations", "reidentification", "uniqueness", "linkage"),
            *("disclosure", "singling_out", "membership", "downcoding", "minimality"),
            "special_uniques",
        )
    ),
]


@pytest.mark.spark
def test_same_figures(spark: SparkSession, tmp_path: Path) -> None:
    """Measures of a release in memory draw the persons that Spark draws, and count the same."""
    parquet.write_table(people(), tmp_path / "people.parquet")
    forms = {
        "recode": {"continuous": "interval", "ordinal": "set", "nominal": "set"},
        **models({"type": "l_diversity", "l": 5}),
    }
    before = tmp_path / "before.parquet"
    anonlib.anonymize(people(), config(tmp_path, seed=6, **forms)).to_parquet(before)
    other = {"type": "differencing", "source": {"format": "parquet", "path": str(before)}}
    chosen = config(tmp_path, evaluate={"measures": [*MEASURES, other]}, **forms)
    in_memory = anonlib.anonymize(people(), chosen).evaluation
    source = {"format": "parquet", "path": str(tmp_path / "people.parquet")}
    in_spark = anonlib.evaluate({**chosen, "source": source}, trial=True).evaluation
    assert in_memory is not None
    assert in_spark is not None
    found, expected = (
        {(measure, f.name, f.of): (f.value, f.note) for measure, f in each.figures()}
        for each in (in_memory, in_spark)
    )
    assert found.keys() == expected.keys()
    assert len(found) > 60
    assert found["differencing", "attack_rate", "illness"][0]
    assert found["minimality", "attempts", "illness"][0] > 100
    for key, (value, note) in found.items():
        assert (value, note) == (pytest.approx(expected[key][0], rel=1e-9), expected[key][1]), key
