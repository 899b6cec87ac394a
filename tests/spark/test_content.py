"""The content gate: columns that show who a person is are found by what they hold."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import InfeasibleError
from anonlib.run import content
from anonlib.run.content import judge_content
from anonlib.source import open_source

pytestmark = pytest.mark.spark

N = 400


def table() -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "id": [f"P-{i:05}" for i in random.permutation(90_000)[:N]],
            "number": random.permutation(10**9 * np.arange(1, N + 1) + 7),
            "serial": np.arange(N),  # as dense as ages: chance explains what they share
            "age": random.integers(18, 90, N),
            "town": random.choice(["Ulm", "Bonn", "Jena", "Kiel"], N),
            "ill": random.choice(["a", "b", "c"], N),
            "flag": random.integers(0, 2, N).astype(bool),
        }
    )


def widen(text: str) -> str:
    """The text in full width."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


def config_of(path: Path, x: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    """x: the attribute of the column x; None if there is none."""
    more = {} if x is None else {"x": x}
    return {
        "source": {"format": "dataframe"},
        "attributes": {
            "id": {"role": "identifier"},
            "number": {"role": "identifier"},
            "serial": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "town": {"role": "quasi_identifier", "scale": "nominal"},
            "ill": {"role": "sensitive"},
            "flag": {"role": "sensitive"},
            **more,
            **changes.pop("attributes", {}),
        },
        "one_row_per_person": "id",
        "privacy": {"models": [{"type": "k_anonymity", "k": 4}], **changes.pop("privacy", {})},
        "kernel": {"type": "mdav"},
        "release": {"path": str(path / "out")},
        **changes,
    }


SENSITIVE = {"role": "sensitive"}
INSENSITIVE = {"role": "insensitive"}
PUBLIC = {"role": "target", "public": True}
#: What x holds, its attribute, and what is said.
SHOWS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("a copy", lambda t: t["id"], SENSITIVE, "values with column id"),
    ("a public target", lambda t: t["id"], PUBLIC, "values with column id"),
    ("other forms", lambda t: "  " + t["id"].str.lower(), SENSITIVE, "values with column id"),
    ("numbers as text", lambda t: t["number"].astype(str), SENSITIVE, "values with column number"),
    ("whole floats", lambda t: t["number"].astype(float), SENSITIVE, "values with column number"),
    (
        "leading zeros",
        lambda t: "00" + t["number"].astype(str),
        PUBLIC,
        "values with column number",
    ),
    ("someone else's", lambda t: np.roll(t["id"], 7), SENSITIVE, "values with column id"),
    ("a few", lambda t: t["id"].where(t.index % 20 == 0, t["ill"]), SENSITIVE, "column id"),
    ("dense numbers", lambda t: t["serial"], SENSITIVE, "equals it in 400 rows"),
    (
        "a quasi-identifier",
        lambda t: t["id"],
        {"role": "quasi_identifier", "scale": "nominal"},
        "id",
    ),
    ("a key", lambda t: [f"k{i * i}" for i in range(N)], SENSITIVE, "is a key: 400 distinct"),
    ("a key as target", lambda t: [f"k{i * i}" for i in range(N)], PUBLIC, "is a key"),
    ("nearly a key", lambda t: [f"k{i % 390}" for i in range(N)], SENSITIVE, "is a key: 390"),
    ("repeats", lambda t: t["age"], SENSITIVE, "equals the quasi-identifier age"),
    ("coded ages", lambda t: (t["age"] * 7 + 3).map("c{}".format), SENSITIVE, "value for each of"),
    ("invisible letters", lambda t: t["id"] + "\u200b\u00a0", SENSITIVE, "values with column id"),
    ("full width", lambda t: t["id"].map(widen), SENSITIVE, "values with column id"),
    ("equal at times", lambda t: t["serial"] % 60, SENSITIVE, "equals it in 60 rows"),
    ("repeats a name", lambda t: t["town"].str.upper(), PUBLIC, "equals the quasi-identifier town"),
    (
        "repeats where there is one",
        lambda t: t["age"].astype(str).where(t.index % 2 == 0, "\u00a0 "),
        SENSITIVE,
        "equals the quasi-identifier age in 200 rows",
    ),
]


def hashed(kind: str, texts: "pd.Series[str]") -> "pd.Series[str]":
    return texts.map(lambda text: hashlib.new(kind, text.encode()).hexdigest())


#: What x holds, which a model names: rich as it may be, it is made of an identifier.
MADE: list[tuple[str, Any]] = [
    ("a part", lambda t: t["id"].str[1:]),
    ("a small part", lambda t: t["id"].str[-3:]),
    ("a small part of numbers", lambda t: t["number"] // 10**9),
    ("the number in it", lambda t: t["id"].str.extract(r"(\d+)")[0].astype(int)),
    ("within", lambda t: "came as " + t["id"] + ", alone"),
    ("an address", lambda t: t["id"].str.lower() + "@example.org"),
    ("backwards", lambda t: t["id"].str[::-1]),
    ("other marks", lambda t: t["id"].str.replace("-", "/")),
    ("md5", lambda t: hashed("md5", t["id"])),
    ("sha1", lambda t: hashed("sha1", t["id"].str.lower())),
    ("sha256", lambda t: hashed("sha256", t["id"]).str.upper()),
    ("hash of a number", lambda t: hashed("sha256", t["number"].astype(str))),
    ("thousands", lambda t: t["number"].map("{:,}".format)),
    ("cents", lambda t: t["number"].map(lambda n: Decimal(n).scaleb(-2))),
    ("tenfold", lambda t: t["number"] * 10),
    (
        "in half the rows",
        lambda t: t["id"].str[::-1].where(t.index % 2 == 0, "k" + t["id"].str[:1]),
    ),
]


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
    sample = source.rows().select(*[c.id for c in source.schema.released])
    some = sample.toArrow().take(pa.array(np.random.default_rng(5).permutation(N)[:n_sampled]))
    _, problems = judge_content(source, N, some, config.privacy, protected)
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
    """Roles that only one column may have here get a table of their own."""
    together = [case for case in SHOWS if case[2] is SENSITIVE]
    tables = [together, *([case] for case in SHOWS if case not in together)]
    for cases in tables:
        found = judged(spark, tmp_path, [case[:3] for case in cases], with_models=False)
        assert "P-0" not in str(found)
        missed = [name for name, *_, said in cases if not any(said in t for t in found[name])]
        assert missed == []


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


@pytest.mark.parametrize(
    "x", [{"role": "sensitive"}, {"role": "quasi_identifier", "scale": "nominal"}]
)
def test_nothing_is_published_then(spark: SparkSession, tmp_path: Path, x: dict[str, Any]) -> None:
    rows = table()
    rows["x"] = rows["id"]
    with pytest.raises(InfeasibleError, match="column x: shows who a person is") as caught:
        anonlib.release(config_of(tmp_path, x), dataframe=spark.createDataFrame(rows))
    assert "P-0" not in str(caught.value)
    assert not (tmp_path / "out").exists()


HARMLESS: list[tuple[str, Any, dict[str, Any]]] = [
    ("a boolean", lambda t: ~t["flag"], SENSITIVE),
    ("few values", lambda t: t.index % 15, SENSITIVE),
    ("ages", lambda t: np.random.default_rng(0).integers(0, 110, N), SENSITIVE),
    ("dense numbers", lambda t: np.random.default_rng(0).integers(0, 500, N), PUBLIC),
    ("some towns", lambda t: np.roll(t["town"], 1), SENSITIVE),
    (
        "codes of other ages",
        lambda t: (np.random.default_rng(1).permutation(t["age"]) * 7).astype(str),
        SENSITIVE,
    ),
    ("two figures", lambda t: np.random.default_rng(0).integers(10, 100, N), SENSITIVE),
    ("amounts", lambda t: np.random.default_rng(0).integers(0, 300, N) * 10, SENSITIVE),
]


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
        anonlib.release(
            config_of(tmp_path, SENSITIVE, privacy={"acknowledge_unique": True}), dataframe=frame
        )
    listed = config_of(tmp_path, SENSITIVE, privacy={"acknowledge_unique": ["x"]})
    assert anonlib.release(listed, dataframe=frame).n_rows_out == N
    rows["x"] = [f"k{i * i}" for i in range(N)]
    every = config_of(tmp_path / "b", SENSITIVE, privacy={"acknowledge_unique": True})
    assert anonlib.release(every, dataframe=spark.createDataFrame(rows)).n_rows_out == N


def test_a_rich_column_with_a_model(spark: SparkSession, tmp_path: Path) -> None:
    rows = table()
    rows["x"] = [f"k{i * i}" for i in range(N)]
    models = [{"type": "k_anonymity", "k": 4}, {"type": "l_diversity", "l": 3, "attribute": "x"}]
    given = config_of(tmp_path, SENSITIVE, privacy={"models": models})
    assert anonlib.release(given, dataframe=spark.createDataFrame(rows)).n_rows_out == N


@pytest.mark.parametrize("model", [False, True])
def test_what_tells_whose_a_row_is(spark: SparkSession, tmp_path: Path, *, model: bool) -> None:
    """A hash of the person, in several rows of each, whether a model names it or not."""
    rows = table()
    rows["id"] = np.repeat(rows["id"][: N // 4].to_numpy(), 4)
    rows["x"] = [f"h{hash(('salt', id)) % 10**12}" for id in rows["id"]]
    models = [{"type": "k_anonymity", "k": 4}]
    models += [{"type": "l_diversity", "l": 2, "attribute": "x"}] if model else []
    given = config_of(
        tmp_path, SENSITIVE, privacy={"models": models}, unit=["id"], one_row_per_person=False
    )
    with pytest.raises(
        InfeasibleError, match="tells whose a row is: of the 100 values that several rows have, 100"
    ):
        anonlib.release(given, dataframe=spark.createDataFrame(rows))


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

    figures = json.loads(Path(result.record.removeprefix("file:")).read_text())["content"]
    assert figures["share"] == 1
    assert figures["distinct"]["town"] == 4
    assert {"column": "x", "identifier": "serial"}.items() <= next(
        pair for pair in figures["shared"] if pair["column"] == "x"
    ).items()
