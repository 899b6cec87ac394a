"""The contract of files: every column by its name in every file, every row whole, or an error that
tells counts and paths and no value."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anonlib.errors import BusyError, InputError
from anonlib.source.contract import read_files
from anonlib.spark.file_list import list_files, require_same_files

pytestmark = pytest.mark.spark

HEADER = "pid,age,ill\n"
ROWS = "".join(f"RAW{i},{i},SICK{i % 3}\n" for i in range(20))
GOOD = HEADER + ROWS
USED = ("pid", "age", "ill")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def rows(
    spark: SparkSession, kind: str, folder: Path, used: Any = USED, **options: str
) -> list[tuple[Any, ...]]:
    options = {"header": "true", **options} if kind == "csv" else options
    frame = read_files(spark, kind, str(folder), options, used)
    return [tuple(row) for row in frame.select("pid", "age", "ill").collect()]


def refused(spark: SparkSession, kind: str, folder: Path, **options: str) -> str:
    """Why files are refused; nothing of their rows is in it."""
    with pytest.raises(InputError) as caught:
        rows(spark, kind, folder, **options)
    text = str(caught.value)
    assert "RAW" not in text
    assert "SICK" not in text
    return text


HARMLESS: list[tuple[dict[str, str | bytes], dict[str, str]]] = [
    ({"a.csv": GOOD, "b.csv": GOOD}, {}),
    ({"a.csv": GOOD, "b.csv": ""}, {}),
    ({"a.csv": GOOD, "b.csv": HEADER}, {}),
    ({"a.csv": "\ufeff" + GOOD, "b.csv": GOOD}, {}),
    ({"a.csv": GOOD.replace("\n", "\r\n"), "b.csv": GOOD}, {}),
    ({"a.csv.gz": GOOD, "b.csv": GOOD}, {}),
    ({"a.tsv": GOOD.replace(",", "\t")}, {"sep": "\\t"}),
    ({"a.csv": GOOD.replace(",", "||")}, {"sep": "||"}),
    ({"a.csv": "\n\n" + GOOD + "\n\n"}, {}),
    ({"a.csv": "# by RAW\n" + GOOD + "# the end, of it\n"}, {"comment": "#"}),
    ({"a.csv": GOOD + 'RAW,1,"a, b"\nRAW,1,5" wide\nRAW,1,\n'}, {}),
    ({"a.csv": GOOD + 'RAW,1,"a ""b"", c"\n"","",""\n'}, {"escape": '"'}),
    ({"a.csv": GOOD + 'RAW,1,"a \\"b\\", c"\n'}, {}),
    ({"a.csv": GOOD + 'RAW,1,"a\nb, c"\n', "b.csv": GOOD}, {"multiLine": "true"}),
    ({"a.csv": GOOD + 'RAW, 1, "a, b" \n'}, {"ignoreLeadingWhiteSpace": "true"}),
    ({"a.csv": GOOD + "RAW,1,'a, b'\n"}, {"quote": "'"}),
    ({"a.csv": GOOD + 'RAW,1,"a\n'}, {"quote": ""}),
    ({"a.csv": f",,{GOOD}".replace("\nRAW", "\n1,2,RAW")}, {}),
    ({"x/a.csv": GOOD, "x/y/b.csv": GOOD}, {"recursiveFileLookup": "true"}),
    ({"day=1/a.csv": GOOD, "day=2/b.csv": GOOD}, {}),
    ({"a.csv": GOOD}, {"mode": "FAILFAST", "enforceSchema": "false"}),
]


@pytest.mark.parametrize(("files", "options"), HARMLESS)
def test_harmless_csv(
    spark: SparkSession, folder: Path, files: dict[str, str | bytes], options: dict[str, str]
) -> None:
    write(folder, files)
    found = rows(spark, "csv", folder, **options)
    assert len(found) >= 20
    assert all(str(row[0]).startswith("RAW") or row[0] is None for row in found)


OTHER = "ill,age,pid\nSICK1,1,RAW1\n"
WRONG: list[tuple[dict[str, str | bytes], dict[str, str], str]] = [
    ({"a.csv": GOOD, "b.csv": OTHER}, {}, "the header differs in file"),
    ({"a.csv": GOOD, "b.csv": OTHER}, {"enforceSchema": "true"}, "the header differs in file"),
    ({"a.csv": GOOD, "b.csv": OTHER}, {"multiLine": "true"}, "the header differs in file"),
    ({"a.csv.gz": GOOD, "b.csv.gz": OTHER}, {}, "b.csv.gz of 2"),
    ({"a.csv": GOOD, "b.csv": OTHER, "c.csv": OTHER}, {}, "the header differs in 2 files"),
    ({"a.csv": GOOD, "b.csv": HEADER.upper() + ROWS}, {}, "the header differs in file"),
    ({"a.csv": GOOD, "b.csv": "pid,age,ill,x\nRAW1,1,SICK1,2\n"}, {}, "the header differs"),
    ({"a.csv": GOOD, "b.csv": ROWS}, {}, "the header differs in file"),
    ({"a.tsv": GOOD.replace(",", "\t"), "b.tsv": OTHER}, {"sep": "\t"}, "the header differs"),
    ({"a.csv": ROWS, "b.csv": ROWS}, {"header": "false"}, "whether the 2 files"),
    ({"x/a.csv": GOOD, "x/y/b.csv": OTHER}, {"recursiveFileLookup": "true"}, "y/b.csv of 2"),
    ({"day=1/a.csv": GOOD, "day=2/b.csv": OTHER}, {}, "the header differs"),
    ({"a.csv": GOOD, "x/b.csv": GOOD}, {}, "1 files in folders below it would not be read"),
    ({"a.csv": "pid,age,pid,ill\nRAW1,1,RAW2,SICK\n"}, {}, "a.csv columns 1 and 3 have the same"),
    ({"a.csv": "RAW,SICK,raw,Raw\n1,2,3,4\n"}, {}, "columns 1, 3 and 4 have the same name, or"),
    ({"a.csv": GOOD + "RAW1,1\n"}, {}, "1 rows have too few or too many fields"),
    ({"a.csv": GOOD + "RAW1,1,SICK,RAW\n" * 3}, {}, "3 rows have too few"),
    ({"a.csv": GOOD, "b.csv": GOOD + "RAW1,1,SICK, bad\n"}, {}, "in/b.csv"),
    ({"a.csv": GOOD + "RAW1,1,SICK,\n"}, {"mode": "FAILFAST"}, "1 rows have too few"),
    ({"a.csv.gz": GOOD + "RAW1,1\n"}, {}, "1 rows have too few"),
    ({"a.csv": GOOD + 'RAW1,1,"SICK\nRAW2,2,bad"\n'}, {}, "multiLine"),
    ({"a.csv": GOOD + 'RAW1,"1\n1",SICK\n'}, {}, "multiLine"),
    ({"a.csv": GOOD + '"RAW1"x,1,SICK\n'}, {}, "in 1 lines quotes"),
    ({"a.csv": GOOD + 'RAW,1,"a ""b"" c"\n'}, {}, "escape: '\"'"),
    ({"a.csv": GOOD + 'RAW,1,"SICK\n' + ROWS}, {"multiLine": "true"}, "a quote is not closed"),
    ({"a.csv": GOOD + GOOD}, {}, "1 more headers among the rows"),
    ({"a.csv": GOOD + OTHER}, {"multiLine": "true"}, "1 more headers among the rows"),
]


@pytest.mark.parametrize(("files", "options", "said"), WRONG)
def test_refused_csv(
    spark: SparkSession,
    folder: Path,
    files: dict[str, str | bytes],
    options: dict[str, str],
    said: str,
) -> None:
    write(folder, files)
    assert said in refused(spark, "csv", folder, **options)


LINES = "".join(f'{{"pid": "RAW{i}", "age": {i}, "ill": "SICK{i % 3}"}}\n' for i in range(9))
JSON: list[tuple[dict[str, str | bytes], dict[str, str], str]] = [
    ({"a.json": LINES, "b.json": '{"ill": "SICK", "age": 1, "pid": "RAW"}\n'}, {}, ""),
    ({"a.json": LINES, "b.json": '{"ill": null, "age": 1, "pid": "RAW", "x": 1}\n'}, {}, ""),
    ({"a.json": LINES, "b.json.gz": LINES, "c.json": ""}, {}, ""),
    ({"a.json": LINES + "{}\n"}, {}, ""),
    ({"a.json": '[\n{"pid": "RAW",\n"age": 1, "ill": "SICK"}]'}, {"multiLine": "true"}, ""),
    ({"a.json": LINES, "b.json": '{"age": 1, "pid": "RAW"}\n'}, {}, "column ill: 1 of 2 files"),
    ({"a.json": LINES, "b.json": '{"ill": "SICK", "age": 1, "id": "RAW"}'}, {}, "column pid: 1 of"),
    ({"a.json": LINES + '{"pid": 7, "age": 1, "ill": "SICK"}\n'}, {}, "column pid: is text, but 1"),
    ({"a.json": LINES + '{"pid": "RAW", "age": "x", "ill": "SICK"}\n'}, {}, "column age: is text"),
    ({"a.json": LINES + '{"pid": "RAW", "age": \n'}, {}, "1 rows have too few"),
    ({"a.json": LINES + "RAW\n"}, {"mode": "FAILFAST"}, "1 rows have too few"),
    ({"a.json": "RAW\nRAW\n"}, {}, "no row can be read"),
]


@pytest.mark.parametrize(("files", "options", "said"), JSON)
def test_json(
    spark: SparkSession,
    folder: Path,
    files: dict[str, str | bytes],
    options: dict[str, str],
    said: str,
) -> None:
    write(folder, files)
    if not said:
        assert rows(spark, "json", folder, **options)
        return
    assert said in refused(spark, "json", folder, **options)


COLUMNS = "cast(id as string) pid", "cast(id as int) age", "'SICK' ill"
FRAMES: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    (COLUMNS[::-1], USED, ""),
    ((*COLUMNS, "id as more"), USED, ""),
    (COLUMNS[:2], ("pid", "age"), ""),
    (COLUMNS[:2], USED, "column ill: 1 of 3 files lack it"),
    ((*COLUMNS[:2], "'SICK' illness"), USED, "column ill: 1 of 3 files lack it"),
    (
        ("id as pid", *COLUMNS[1:]),
        USED,
        "column pid: is string, but 1 of 3 files have another type",
    ),
    ((COLUMNS[0], "id as age", COLUMNS[2]), USED, "column age: is int, but 1"),
]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize(("columns", "used", "said"), FRAMES)
def test_columnar(
    spark: SparkSession,
    folder: Path,
    kind: str,
    columns: tuple[str, ...],
    used: tuple[str, ...],
    said: str,
) -> None:
    usual = spark.range(9).selectExpr(*COLUMNS).coalesce(1)
    for _ in range(2):
        usual.write.mode("append").format(kind).save(str(folder))
    other = spark.range(9).selectExpr(*columns).coalesce(1)
    other.write.mode("append").format(kind).save(str(folder))
    if said:
        with pytest.raises(InputError, match=said):
            rows(spark, kind, folder, used)
    else:
        frame = read_files(spark, kind, str(folder), {"mergeSchema": "true"}, used)
        assert frame.count() == 27
        assert {row["pid"] for row in frame.collect()} == {str(i) for i in range(9)}


CHANGES: dict[str, Callable[[Path], object]] = {
    "added": lambda folder: (folder / "c.csv").write_text(GOOD),
    "gone": lambda folder: (folder / "a.csv").unlink(),
    "changed": lambda folder: (folder / "a.csv").write_text(GOOD.replace("SICK", "WELL")),
    "replaced": lambda folder: (folder / "b.csv").replace(folder / "a.csv"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_change(spark: SparkSession, folder: Path, change: str) -> None:
    write(folder, {"a.csv": GOOD, "b.csv": GOOD})
    frame = read_files(spark, "csv", str(folder), {"header": "true"}, USED)
    files = list_files(frame)
    assert len(files) == 2
    require_same_files(files, frame.where("age > 1"))
    CHANGES[change](folder)
    with pytest.raises(BusyError, match="its files changed"):
        require_same_files(files, frame)


NAMED: list[tuple[str, dict[str, str | bytes], dict[str, str]]] = [
    ("csv", {"a.csv": GOOD, "b.csv": OTHER}, {}),
    ("csv", {"a.csv": GOOD + "RAW1,1\n"}, {}),
    ("csv", {"a.csv": GOOD + '"RAW1"x,1,SICK\n'}, {}),
    ("csv", {"a.csv": GOOD + 'RAW,1,"SICK\n' + ROWS}, {"multiLine": "true"}),
    ("csv", {"a.csv": GOOD + GOOD}, {}),
    ("json", {"a.json": LINES, "b.json": '{"age": 1, "pid": "RAW"}\n'}, {}),
    ("json", {"a.json": LINES + '{"pid": 7, "age": 1, "ill": "SICK"}\n'}, {}),
]


@pytest.mark.parametrize(("kind", "files", "options"), NAMED)
def test_names_of_folders_show_no_value(
    spark: SparkSession,
    folder: Path,
    kind: str,
    files: dict[str, str | bytes],
    options: dict[str, str],
) -> None:
    """Folders are named by a column's values, too."""
    write(folder, {f"ward=RAW/{name}": text for name, text in files.items()})
    assert "/ward=.../" in refused(spark, kind, folder, **options)


@pytest.mark.parametrize("columns", [COLUMNS[:2], (COLUMNS[0], "id as age", COLUMNS[2])])
def test_names_of_folders_show_no_value_of_columns(
    spark: SparkSession, folder: Path, columns: tuple[str, ...]
) -> None:
    for names in (COLUMNS, COLUMNS, columns):
        frame = spark.range(9).selectExpr(*names).coalesce(1)
        frame.write.mode("append").parquet(f"{folder}/ward=RAW")
    assert "/ward=.../" in refused(spark, "parquet", folder)


def test_files_that_change_in_folders_of_values(spark: SparkSession, folder: Path) -> None:
    write(folder, {"ward=RAW/a.csv": GOOD})
    frame = read_files(spark, "csv", str(folder), {"header": "true"}, USED)
    files = list_files(frame)
    (folder / "ward=RAW/a.csv").write_text(GOOD.replace("SICK", "WELL"))
    with pytest.raises(BusyError, match=r"/ward=\.\.\./a\.csv") as caught:
        require_same_files(files, frame)
    assert "RAW" not in str(caught.value)
