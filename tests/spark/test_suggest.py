"""`anonlib suggest`: a sample of a config's source, tried in memory."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.progress import Progress
from anonlib.run.source_sample import read_sample
from tests.spark.support import Shell
from tests.spark.test_release import config

pytestmark = pytest.mark.spark


def test_suggest(shell: Shell, tmp_path: Path) -> None:
    raw = config(tmp_path, evaluate={"measures": ["moments"]})
    (tmp_path / "c.yaml").write_text(json.dumps(raw))
    given = ["suggest", str(tmp_path / "c.yaml"), "--k", "7", "--kernels", "mondrian"]
    said = shell(*given, "--rows", "500", "--page", str(tmp_path / "page.html"))
    assert said.code == 0, said.err
    assert "least loss" in said.out
    assert f"release {tmp_path}/c.yaml" in said.out
    assert "4 of 4 attempts" in said.out
    page = tmp_path / "page.html"
    assert page.stat().st_mode & 0o777 == 0o600
    assert "Loss against mean chance to be found" in page.read_text()
    assert not Path(raw["release"]["path"]).exists()
    again = shell(*given, "--page", str(page))
    assert again.code == 2
    assert "is there already" in again.err


def test_a_sample_has_whole_persons(spark: SparkSession, tmp_path: Path) -> None:
    """And the values of the source after its casts."""
    rows = "".join(f"p{i // 4},{20 + i % 60},{'ab'[i % 2]}\n" for i in range(2000))
    (tmp_path / "t.csv").write_text(f"person,age,ill\n{rows}")
    parsed = anonlib.parse(
        {
            "source": {"format": "csv", "path": f"{tmp_path}/t.csv", "options": {"header": "true"}},
            "attributes": {
                "person": {"role": "identifier"},
                "age": {"role": "quasi_identifier", "scale": "continuous", "type": "int"},
                "ill": {"role": "sensitive"},
            },
            "unit": ["person"],
            "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
            "release": {"path": str(tmp_path / "out")},
        }
    )
    table, changed, is_whole = read_sample(parsed, 600, [], Progress())
    assert not is_whole
    counts = table.to_pandas().groupby("person").size()
    assert set(counts) == {4}
    assert 400 < len(table) < 800
    assert str(table.schema.field("age").type) == "int32"
    assert anonlib.anonymize(table, changed).audit.passed


def test_suggest_for_a_table(shell: Shell, workplace: Path) -> None:
    """From a CSV file to a draft that is tried, reviewed and released."""
    rows = "".join(f"{20 + i % 60};{'abcd'[i * i % 4]};{i * 7 % 50}\n" for i in range(400))
    (workplace / "people.csv").write_text(f"age;city;hours\n{rows}")
    quick = ["--k", "10", "--kernels", "mondrian"]
    said = shell("suggest", "people.csv", *quick, "--partitioners", "mondrian")
    assert said.code == 0, said.err
    assert "loss by partitioner, in blocks of at most 100 rows" in said.out
    text = (workplace / "people.yaml").read_text()
    assert "# The least loss by `anonlib suggest` (2 of 2 attempts, on 400 rows)" in text
    assert shell("release", "people.yaml").code == 2
    config = anonlib.load("people.yaml")
    assert "attributes.city" in config.review
    assert config.source.options["delimiter"] == ";"
    said = shell("check", "people.yaml")
    assert said.code == 0, said.err
    assert shell("release", "people.yaml", "--set", "review=[]").code == 0
    # An empty folder is a table by its place, and has no format by which it could be read.
    (workplace / "empty").mkdir()
    said = shell("suggest", "empty")
    assert said.code == 2
    assert "its format is not clear; name it with --format" in said.err


def test_suggest_for_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    """Its sample is tried in memory; the choices are configs of the whole frame."""
    rows = [(f"p{i}", 20 + i % 60, "abcd"[i * i % 4], i * 7 % 50) for i in range(600)]
    frame = spark.createDataFrame(rows, "person string, age int, city string, hours int")
    found = anonlib.suggest(
        frame,
        rows=300,
        ks=[7],
        kernels=["mondrian"],
        quasi_identifiers=["age", "city"],
        insensitive=["hours"],
        privacy={"models": [{"type": "k_anonymity", "k": 5}], "acknowledge_unique": True},
        identifiers=["person"],
        one_row_per_person="person",
        path=str(tmp_path / "out"),
    )
    assert {(each.kernel, each.k) for each in found.attempts} == {
        (kernel, k) for kernel in ("mdav", "mondrian") for k in (5, 7)
    }
    assert any("taken as continuous: age" in note for note in found.notes)
    n_rows = int(found.notes[0].split(" on ")[1].split()[0])
    assert 150 < n_rows < 450
    assert found.choices, found
    best = found.choices[0].config
    assert best.attributes["person"].role == "identifier"
    assert "Loss against mean chance" in found.report()
    assert not (tmp_path / "out").exists()
    released = anonlib.anonymize(frame, best)
    assert released.audit.passed
    assert released.table.count() == 600
