"""`anonlib init` on real tables, and the way from a drafted config to an audited release."""

import gzip
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anonlib import pipeline
from anonlib.cli import main
from anonlib.config.reading import load
from anonlib.errors import AnonlibError, InputError
from anonlib.guesses.draft import TableProfile, format_draft, make_draft
from anonlib.guesses.guess import ColumnProfile
from anonlib.local.column_facts import find_facts, make_profile
from anonlib.progress import Progress
from anonlib.source import sample_profile
from anonlib.source.casts import Cast, is_unreadable
from anonlib.source.contract import read_files
from anonlib.source.frame_profile import profile_frame
from anonlib.source.profile import profile
from anonlib.text import MISSING_TOKENS
from tests.missing_cases import CASES

pytestmark = pytest.mark.spark
MARK = "ZZMARKER"


def seen(source: Path | str, given: str | None = None, **options: str) -> TableProfile:
    return profile(str(source), given, options, Progress())


def columns(found: TableProfile) -> dict[str, ColumnProfile]:
    return {column.name: column for column in found.columns}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    lines = ["person id;age;city, state;zip;born;seen;height;e-mail;income"]
    for i in range(400):
        age, income = "?" if i == 7 else str(20 + i % 60), i * 7919 % 401 * 100
        lines.append(
            f"{MARK}{i};{age};{MARK}{i % 5}, x;{i % 7:05};{1960 + i % 40}-03-{1 + i % 28:02};"
            f"2024-01-{1 + i % 28:02} 10:00:00;{150 + i / 10};{MARK}{i}@example.org;{income}"
        )
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_csv(spark: SparkSession, people: Path) -> None:
    found = seen(people)
    assert found.format == "csv"
    assert found.options == {"header": "true", "delimiter": ";"}
    assert (found.n_rows, found.n_sample) == (400, 400)
    by_name = columns(found)
    assert {name: column.parses_as for name, column in by_name.items()} == {
        "person id": None,
        "age": "int",
        "city, state": None,
        "zip": None,
        "born": "date",
        "seen": "timestamp",
        "height": "double",
        "e-mail": None,
        "income": "int",
    }
    assert by_name["person id"].unique
    assert by_name["e-mail"].kind == "e-mail addresses"
    assert (by_name["age"].n_present, by_name["age"].n_distinct) == (399, 60)
    assert by_name["city, state"].n_distinct == 5


def test_numbers_that_may_mean_a_missing_value(spark: SparkSession, tmp_path: Path) -> None:
    """However they are written, but not where they are numbers as others are."""
    lines = ["age,days,grade,pay,price,cost,mark"]
    for i in range(300):
        odd = i % 50 == 0
        grade = "-999.0" if odd else f"{i % 90}.5"
        lines.append(
            f"{999 if odd else 18 + i % 60},{-1 if odd else 1 + i % 200},{grade},"
            f"{99999 if odd else 1000 + 7 * i},{999 if odd else 600 + i},"
            f"{-1 if odd else i % 40},{-1 if odd else 1 + i % 3}"
        )
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines))
    by_name = columns(seen(path))
    far = {name: each.far for name, each in by_name.items() if each.far}
    assert far == {"age": ("999",), "days": ("-1",), "pay": ("99999",)}
    assert {n: each.tokens for n, each in by_name.items() if each.tokens} == {
        "grade": {"-999.0": 6}
    }


def test_what_stands_for_a_missing_value(spark: SparkSession) -> None:
    """The same as in memory: in the profile of `init`, and in that of a DataFrame in hand."""
    n = max(len(case.values) for case in CASES)
    names = [case.name for case in CASES]
    table = pa.table(
        {
            c.name: pa.concat_arrays([c.values, pa.nulls(n - len(c.values), c.values.type)])
            for c in CASES
        }
    )
    frame = spark.createDataFrame(table)
    _, of_init, _ = sample_profile.profile_columns(
        frame.toDF(*[f"c{i}" for i in range(len(names))]), names, n
    )
    in_hand = profile_frame(frame.repartition(3), names)
    for case, found in zip(CASES, of_init, strict=True):
        for each in (found, in_hand[case.name]):
            assert (each.n_present, each.n_distinct) == (case.n_present, case.n_distinct), case
            assert (each.tokens, each.far) == (case.tokens, case.far), case


#: Texts that may be numbers and dates, or nearly, in all rows but one.
NEARLY = {
    "whole": ("7", "8"),
    "long": ("7", "4000000000"),
    "tab": ("7", "7\t"),
    "line": ("7", "7\n"),
    "blank": (" 7", "7.5 "),
    "no-break blank": ("7.5", "\u00a07.5"),
    "day": ("2024-02-29", "2023-02-28"),
    "no day": ("2024-02-29", "2023-02-30"),
    "moment": ("2023-05-07 10:00", "2023-02-28T23:59:59.5Z"),
    "no moment": ("2024-02-29 10:00", "2023-02-28 24:01"),
    "decimal": ("7", "7,5"),
    "token": ("7", "-9"),
    "word": ("flu", "k. A."),
    "office": ("31.12.2023", "1.2.2024"),
    "codes": ("123456", "654321"),
    "euros": ("7 \u20ac", "12,50 \u20ac"),
    "mail": ("a@b.example", "c@d.example"),
    "missing": ("?", "7"),
}


def test_a_draft_is_that_of_the_table_in_memory(spark: SparkSession) -> None:
    """Profiles and guesses are the same; what is read as a number or a date, Spark can read."""
    n = 60
    columns: dict[str, pa.Array] = {name: [a] * (n - 1) + [b] for name, (a, b) in NEARLY.items()}
    columns |= {
        "person id": [f"p{i}" for i in range(n)],
        "number": [*range(n)],
        "gaps": [None, *range(n - 1)],
        "pay": [-9, -9, *(1000.5 + i % 40 for i in range(n - 2))],
        "age": [999, *(20 + i % 50 for i in range(n - 1))],
        "born": [date(1950 + i % 50, 1, 1 + i % 28) for i in range(n)],
        "flag": [i % 2 == 0 for i in range(n)],
        "none": pa.nulls(n, pa.string()),
    }
    table = pa.table(columns)
    frame = spark.createDataFrame(table).repartition(3)
    raw = frame.toDF(*[f"c{i}" for i in range(len(table.column_names))])
    n_sample, found, hashes = sample_profile.profile_columns(raw, table.column_names, n)
    here = [
        make_profile(name, column.type, find_facts(column.combine_chunks()))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    assert n_sample == n
    assert [*found] == here
    # In this order, too: the first of equal columns is kept.
    assert [(name, len({*each.tolist()} - {0})) for name, each in hashes.items()] == [
        (each.name, each.n_distinct) for each in here
    ]
    of_each = [
        TableProfile("csv", "t.csv", None, n, n, tuple(c), hashes=hashes) for c in (found, here)
    ]
    in_spark, in_memory = (replace(make_draft(each), seed=0) for each in of_each)
    assert format_draft(in_spark, Path()) == format_draft(in_memory, Path())
    for each in here:
        if each.parses_as is not None:
            tokens = (*MISSING_TOKENS, *each.tokens)
            unreadable = is_unreadable(F.col(each.name), Cast(each.parses_as, each.layout), tokens)
            assert frame.where(unreadable).isEmpty(), each.name


def test_what_columns_say_of_each_other(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["seen;seen hour;seen day;account;owner;pay;town;code"]
    for i in range(400):
        hour, day, town = (i * 7) % 24, 1 + (i * 5) % 28, i % 6
        time = f"2024-01-{day:02} {hour:02}:{i % 60:02}:00"
        bank = f"{10**17 + i * 7919:018}"
        account = f"DE{98 - int(bank + '131400') % 97:02}{bank}"
        pay = "-" if i % 8 == 0 else str(1000 + i % 90)
        code = "-999" if town == 5 else town * 11
        lines.append(f"{time};{hour};{day};{account};Anna Huber{i % 90};{pay};{MARK}{town};{code}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines))
    by_name = columns(seen(path))
    parts = {name: each.part for name, each in by_name.items() if each.part}
    assert parts == {"seen hour": "the hour of seen", "seen day": "the day of the month of seen"}
    assert by_name["account"].kind == "IBANs"
    assert by_name["pay"].tokens == {"-": 50}
    assert (by_name["pay"].parses_as, by_name["pay"].n_present) == ("int", 350)
    assert by_name["code"].tokens == {"-999": 66}
    text = format_draft(make_draft(seen(path)), Path())
    assert 'missing_tokens: ["?", "", "-"]' in text
    assert MARK not in text


def test_an_index_as_pandas_writes_it(spark: SparkSession, tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"age": [20 + i * 7 % 60 for i in range(300)], "city": ["Bonn", "Cork"] * 150}
    )
    path, conf = tmp_path / "people.csv", tmp_path / "draft.yaml"
    rows.to_csv(path)
    assert path.read_text().startswith(",age,city\n")
    assert main(["init", str(path), "--out", str(conf), "--quiet"]) == 0
    config = load(conf)
    assert [a.role for a in config.attributes.values()] == ["identifier", *["quasi_identifier"] * 2]
    assert (*config.attributes, config.one_row_per_person) == ("_c0", "age", "city", "_c0")
    assert config.attributes["age"].scale == "continuous"
    assert "source" in config.review  # since it was named by its place
    assert pipeline.check(config, Progress()).n_rows == 300
    path.write_text("age,age,city\n1,2,Bonn\n3,4,Cork\n")
    with pytest.raises(InputError, match=r"people\.csv columns 1 and 2 have the same name"):
        seen(path)


UNREADABLE = {
    "times in nanoseconds.*pandas": pa.timestamp("ns"),
    "times of day": pa.time64("us"),
    "times of day,": pa.time64("ns"),
    "a type that Spark can't read, .*FLOAT16": pa.float16(),
    "times of day, which": pa.struct([("at", pa.time64("us"))]),
}


@pytest.mark.parametrize("said", UNREADABLE)
def test_types_that_spark_does_not_read(spark: SparkSession, tmp_path: Path, said: str) -> None:
    odd, path = pa.nulls(3, UNREADABLE[said]), str(tmp_path / "people.parquet")
    pq.write_table(pa.table({"age": [1, 2, 3], "odd": odd, "fine": [4, 5, 6], "other": odd}), path)
    text = f"^column odd: has {said}.*\ncolumn other: has "
    with pytest.raises(InputError, match=text):
        seen(path)
    with pytest.raises(InputError, match=text):
        read_files(spark, "parquet", path, {}, ["age", "odd"])


def test_a_type_of_one_file_that_spark_does_not_read(spark: SparkSession, tmp_path: Path) -> None:
    for name, type in (("a", pa.int64()), ("b", pa.timestamp("ns"))):
        table = pa.table({"age": [1, 2, 3], "seen": pa.nulls(3, type)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match=r"^column seen: has times in nanoseconds"):
        seen(tmp_path)


def test_draft_holds_no_value_and_fits_its_source(
    spark: SparkSession, people: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "draft.yaml"
    assert main(["init", str(people), "--out", str(out)]) == 0
    captured = capfd.readouterr()
    assert MARK not in out.read_text() + captured.out + captured.err
    assert "written: " in captured.err
    config = load(out)
    assert config.one_row_per_person == "person id"
    result = pipeline.check(config, Progress())
    assert result.n_rows == 400
    assert {column.name for column in result.columns} == set(config.attributes)


def test_from_a_draft_to_an_audited_release(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    raw, conf, table = (str(tmp_path / name) for name in ("raw", "conf.yaml", "out"))
    assert main(["generate", "--rows", "600", "--out", raw, "--format", "parquet"]) == 0
    assert main(["generate", "--rows", "600", "--out", raw]) == 2
    assert main(["init", raw, "--out", conf, "--quiet"]) == 0
    drafted = yaml.safe_load(Path(conf).read_text())
    assert drafted["attributes"]["diagnosis"] == {"role": "sensitive"}
    assert drafted["one_row_per_person"] == "national_id"
    release = ["release", conf, "--set", f"release.path={table}", "--run-id", "r-1"]
    capfd.readouterr()
    assert main(release) == 2
    assert "review: a draft: nobody has looked at attributes." in capfd.readouterr().err
    assert main(["check", conf]) == 0
    shown = capfd.readouterr().out
    assert shown.count("nobody has looked at") == 1
    assert f"nobody has looked at {len(drafted['review'])} places: attributes." in shown
    assert ", one_row_per_person, " in shown
    assert shown.splitlines()[-1].startswith("review it first  ")
    text = Path(conf).read_text().replace("\n  - ", "\n  #  ")
    Path(conf).write_text(text.replace("review:", "review: []"))
    assert main([*release, "--json", "--log-format", "json"]) == 0
    captured = capfd.readouterr()
    result = json.loads(captured.out)
    assert result["n_rows_out"] == 600
    assert result["audit"]["passed"] is True
    lines = [json.loads(line) for line in captured.err.splitlines()]
    assert {line["event"] for line in lines} == {"started", "done"}
    assert {(line["target"], line["run_id"]) for line in lines} == {(table, "r-1")}

    assert main([*release, "--quiet"]) == 0
    assert "Run r-1 is done already" in capfd.readouterr().out
    assert main(["release", conf, "--set", f"release.path={table}"]) == 2
    capfd.readouterr()
    assert main(["audit", table, "--conf", conf, "--log-format", "json"]) == 0
    captured = capfd.readouterr()
    assert "passed" in captured.out
    assert {json.loads(line)["target"] for line in captured.err.splitlines()} == {table}
    stricter = ["--set", "privacy.models.0.k=400"]
    assert main(["audit", table, "--conf", conf, *stricter]) == 3
    assert "FAILS" in capfd.readouterr().out
    assert main(["show", table, "--rows", "2"]) == 0
    out = capfd.readouterr().out
    assert "row 2" in out
    assert "national_id" not in out
    assert main(["check", conf, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["n_rows"] == 600


def test_show_refuses_what_is_not_published(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    raw = str(tmp_path / "raw")
    spark.range(3).withColumn("a.b", F.lit(MARK)).write.format("delta").option(
        "delta.columnMapping.mode", "name"
    ).save(raw)
    assert main(["show", raw]) == 2
    captured = capfd.readouterr()
    assert "no manifest" in captured.err
    assert MARK not in captured.err + captured.out
    assert main(["show", raw, "--force"]) == 0
    assert MARK in capfd.readouterr().out
    assert main(["show", str(tmp_path / "nope")]) == 2


@pytest.mark.parametrize("kind", ["parquet", "orc", "delta"])
def test_typed_formats(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "t.d")
    frame = spark.range(300).select(
        F.col("id").alias("row_number"),
        (F.col("id") % 3).cast("double").alias("few"),
        F.when(F.col("id") > 9, F.col("id") / 7).alias("many"),
        F.lit(None).cast("string").alias("none"),
        F.array("id").alias("tags"),
        F.create_map("id", "id").alias("map"),
        F.lit("x").cast("binary").alias("blob"),
        (F.col("id") % 2 == 0).alias("flag"),
        F.expr("cast(id as decimal(20,2))").alias("amount"),
        F.expr("if(id = 5, double('nan'), id)").alias("nan"),
        (F.col("id") + 491_511_234_000).alias("mobile"),
        (F.col("id") + 491_511_234_000).cast("decimal(12,0)").alias("as_decimal"),
        F.expr("if(id = 5, double('nan'), id + 491511234000)").alias("as_double"),
    )
    frame.write.format(kind).save(path)
    found = seen(path)
    assert found.format == kind
    by_name = columns(found)
    assert by_name["row_number"].unique
    assert (by_name["many"].n_present, by_name["nan"].n_present) == (290, 299)
    assert by_name["none"].n_present == 0
    assert by_name["amount"].type == "decimal(20,2)"
    assert {n: c.kind for n, c in by_name.items() if c.kind} == dict.fromkeys(
        ("mobile", "as_decimal", "as_double"), "phone numbers"
    )
    assert {n for n, c in by_name.items() if not c.n_present} >= {"tags", "map", "none"}
    assert {n for n, c in by_name.items() if not c.is_seen} == {"tags", "map", "blob"}
    lines = format_draft(make_draft(found), Path()).splitlines()
    (tags,), (none,) = ([line for line in lines if f"  {n}: " in line] for n in ("tags", "none"))
    assert tags.endswith("(array<bigint>; not looked at)")
    assert none.endswith("(string; all missing)")


def test_catalog_table(spark: SparkSession) -> None:
    spark.range(30).write.mode("overwrite").saveAsTable("drafted_people")
    try:
        for given in (None, "table"):
            found = seen("drafted_people", given)
            assert (found.format, found.table, found.path) == ("table", "drafted_people", None)
            assert found.n_rows == 30
    finally:
        spark.sql("drop table drafted_people")


def test_names_that_need_care(spark: SparkSession, tmp_path: Path) -> None:
    names = ["a.b", "c d", "`q`", "größe", "x,y", 'it"s', "no"]
    path = tmp_path / "odd.json"
    rows = [{name: 10 * i + place for place, name in enumerate(names)} for i in range(50)]
    path.write_text("\n".join(map(json.dumps, rows)))
    conf = tmp_path / "draft.yaml"
    assert main(["init", str(path), "--out", str(conf), "--quiet"]) == 0
    config = load(conf)
    assert set(config.attributes) == set(names)
    assert pipeline.check(config, Progress()).n_rows == 50


def test_compressed_json_array(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump([{"a": i} for i in range(20)], file, indent=1)
    found = seen(path)
    assert found.options == {"multiLine": "true"}
    assert found.n_rows == 20


def test_folder_and_glob_of_csv(spark: SparkSession, tmp_path: Path) -> None:
    for part in range(3):
        (tmp_path / f"p{part}.tsv").write_text("a\tb\n1\tx\n2\ty\n")
    for source in (tmp_path, tmp_path / "*.tsv"):
        found = seen(source)
        assert (found.format, found.n_rows) == ("csv", 6)
        assert found.options["delimiter"] == "\t"
    (tmp_path / "p[1].tsv").write_text("a;b\n1;x\n2;y\n3;z\n")
    found = seen(tmp_path / "p[1].tsv")
    assert (found.n_rows, found.options["delimiter"]) == (3, ";")


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_profile, "MAX_VALUES", 0)


def test_unique_in_the_sample_only(spark: SparkSession, tmp_path: Path, small_sample: None) -> None:
    path = str(tmp_path / "big.parquet")
    frame = spark.range(40_000).select(
        F.col("id"), (F.col("id") % 39_999).alias("nearly"), F.lit(1).alias("one")
    )
    frame.write.parquet(path)
    found = seen(path)
    assert found.n_rows == 40_000
    assert 800 < found.n_sample < 1_200
    by_name = columns(found)
    assert by_name["id"].unique
    assert not by_name["nearly"].unique


@pytest.mark.parametrize(
    ("name", "content", "given", "said"),
    [
        ("nope.csv", None, None, "PLACE: no such file"),
        ("empty.csv", b"", None, "PLACE: is empty"),
        ("blank.csv", b"\n\n", None, "PLACE: is empty"),
        ("what.dat", b"a,b\n", None, "PLACE: its format is not clear; name it with --format"),
        ("not.parquet", b"a,b\n1,2\n", None, "source: a file is corrupt or not of this format"),
        ("a.csv", b"a,b\n", "nosuchformat", "source: Spark knows no such format"),
    ],
)
def test_what_can_not_be_read(
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    content: bytes | None,
    given: str | None,
    said: str,
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AnonlibError) as caught:
        seen(path, given)
    assert str(caught.value).startswith(said.replace("PLACE", str(path)))


def test_a_table_without_rows_tells_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n")
    with pytest.raises(InputError, match=r"a\.csv: has no rows"):
        seen(path)


def test_a_folder_of_different_tables_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in (("a.csv", "a,b\n1,2\n"), ("b.csv", "a,c\n1,2\n")):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text(text)
    for name in ("b", "c"):
        place = tmp_path / "columns" / f"{name}.parquet"
        place.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"a": [1], name: [2]}), place)
    for folder, told in (("texts", "the header differs"), ("columns", "columns")):
        with pytest.raises(InputError, match=told):
            seen(tmp_path / folder)


def test_latin_1(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("größe,b\n1,Müller\n2,Möller\n".encode("latin-1"))
    found = seen(path)
    assert found.options["encoding"] == "windows-1252"
    assert [column.name for column in found.columns] == ["größe", "b"]


def test_same_profile_for_any_partitioning(spark: SparkSession, tmp_path: Path) -> None:
    found: list[Any] = []
    for parts in (1, 3):
        path = str(tmp_path / f"{parts}.parquet")
        spark.range(0, 500, 1, parts).withColumn("x", F.col("id") % 7).write.parquet(path)
        found.append(seen(path).columns)
    assert found[0] == found[1]
