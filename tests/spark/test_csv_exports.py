"""Files as offices export them: other encodings, lines above the header and below the rows, quotes
with line breaks. `init` reads them, or says how to mend them, and so do `check` and `release`."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anonlib.errors import InputError
from anonlib.guesses.draft import TableProfile, format_draft, make_draft
from anonlib.progress import Progress
from anonlib.source.contract import read_files
from anonlib.source.profile import profile
from tests.spark.support import MARKER, Shell, left, people, settings, write_config

pytestmark = pytest.mark.spark

HEADER = "name;größe;stadt"
ROWS = "".join(f"Müller{i};{160 + i % 9},5;€ „Köln“ {i % 3}\n" for i in range(30))
TEXT = f"{HEADER}\n{ROWS}"
NAMES = ["name", "größe", "stadt"]


def init(path: Path, **options: str) -> TableProfile:
    return profile(str(path), None, options, Progress())


def draft(found: TableProfile) -> str:
    return format_draft(make_draft(found), Path())


def rows(spark: SparkSession, path: Path, **options: str) -> list[tuple[Any, ...]]:
    """What a release reads by the contract."""
    found = read_files(spark, "csv", str(path), {"header": "true", **options}, NAMES)
    return sorted(tuple(row) for row in found.collect())


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


EXPECTED = sorted(tuple(line.split(";")) for line in ROWS.splitlines())


@pytest.mark.parametrize(
    ("codec", "end", "encoding"),
    [
        ("utf-8", "\r", None),
        ("utf-8-sig", "\r\n", None),
        ("cp1252", "\n", "windows-1252"),
        ("cp1252", "\r", "windows-1252"),
        ("utf-16", "\r\n", "UTF-16"),
        ("utf-16-be", "\n", "UTF-16"),
        ("utf-16-be", "\r", "UTF-16"),
    ],
)
def test_init_finds_the_encoding(
    spark: SparkSession, tmp_path: Path, codec: str, encoding: str | None, end: str
) -> None:
    """What init writes is what a release reads all texts by."""
    text = ("\ufeff" if codec == "utf-16-be" else "") + TEXT.replace("\n", end)
    path = put(tmp_path / ("a.csv.gz" if end == "\r\n" else "a.csv"), text.encode(codec))
    found = init(path)
    assert found.options.get("encoding") == encoding
    assert [column.name for column in found.columns] == NAMES
    assert found.columns[1].layout == "1.234,5"
    assert found.n_rows == 30
    assert ("  - source\n" in draft(found)) == (encoding is not None)
    assert rows(spark, path, **found.options) == EXPECTED


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    with pytest.raises(InputError, match="seems to be UTF-16 without a mark"):
        init(put(tmp_path / "a.csv", TEXT.encode(codec)))


def test_tabs_of_unicode_text(spark: SparkSession, tmp_path: Path) -> None:
    """Excel's format of this name: UTF-16, tabs, quotes around cells with line breaks."""
    odd = '"Mü\n""x""";1,5;y\n'
    text = (TEXT + odd).replace(";", "\t").replace("\n", "\r\n")
    path = put(tmp_path / "a.txt", text.encode("utf-16"))
    found = init(path)
    assert found.options["delimiter"] == "\t"
    assert ('Mü\n"x"', "1,5", "y") in rows(spark, path, **found.options)
    put(path, text.replace('"""', '""').encode("utf-16"))
    with pytest.raises(InputError, match="a quote is not closed in 1 files"):
        rows(spark, path, **found.options)


def test_a_late_letter(spark: SparkSession, tmp_path: Path) -> None:
    """The whole file is looked at, not its first lines."""
    lines = "".join(f"a{i},b\n" for i in range(20_000))
    path = put(tmp_path / "a.csv", f"x,y\n{lines}Müller,b\n".encode("cp1252"))
    assert init(path).options["encoding"] == "windows-1252"


def test_neither_encoding(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "x,y\nŹródło,1\n".encode("cp1250"))
    with pytest.raises(InputError, match="neither UTF-8 nor windows-1252; name") as caught:
        init(path)
    assert "r\u00f3d" not in str(caught.value)
    assert init(path, encoding="windows-1250").n_rows == 1


@pytest.mark.parametrize("encoding", ["windows-1252", "ISO-8859-15", "windows-1250", "iso-8859-2"])
def test_encodings_of_a_byte(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    text = "name;größe;stadt\na;1;ö\nb;2;ß\n"
    path = put(tmp_path / "a.csv", text.encode(encoding))
    assert rows(spark, path, sep=";", encoding=encoding) == [("a", "1", "ö"), ("b", "2", "ß")]


def test_bytes_without_a_character(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", TEXT.encode("cp1252") + b"a;1;\x81\nb;1;\x8d\n")
    with pytest.raises(InputError, match="bytes that are no characters of windows-1252"):
        rows(spark, path, sep=";", encoding="windows-1252")


def test_a_folder_of_two_encodings(spark: SparkSession, tmp_path: Path) -> None:
    """Else a name would be two persons: Müller, and what is read of its UTF-8 by another one."""
    folder = tmp_path / "in"
    ascii_only = TEXT.replace("ö", "o").replace("ß", "s").replace("größe", "grose")
    header = ascii_only.splitlines()[0]
    put(folder / "a.csv", f"{header}\nMüller;1;x\n".encode("cp1252"))
    put(folder / "b.csv", f"{header}\nMüller;1;x\n".encode())
    put(folder / "c.csv", f"{header}\nMuller;1;x\n".encode())
    with pytest.raises(
        InputError, match=r"files that are UTF-8: 1; that are not: 1, such as .*/a\.csv"
    ):
        init(folder)
    given = {"header": "true", "sep": ";", "encoding": "windows-1252"}
    with pytest.raises(
        InputError, match=r"files that are UTF-8, and not windows-1252: 1, such as .*/b\.csv"
    ):
        read_files(spark, "csv", str(folder), given, ["name"])
    (folder / "b.csv").unlink()
    assert read_files(spark, "csv", str(folder), given, ["name"]).count() == 2
    assert init(folder).options["encoding"] == "windows-1252"


def test_a_mark_in_every_file(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name in ("a.csv", "b.csv", "c.csv.gz"):
        put(folder / name, TEXT.encode("utf-8-sig"))
    put(folder / "d.csv", b"")
    put(folder / "e.csv", f"{HEADER}\n".encode())
    for more in ({}, {"multiLine": "true"}):
        found = init(folder, **more)
        assert [column.name for column in found.columns] == NAMES
        assert rows(spark, folder, **found.options) == sorted(EXPECTED * 3)


TITLES = {
    "title": (f"Export for {MARKER};;;", 2),
    "title without delimiters": (f"Export for {MARKER}", 2),
    "lines": (f"Export for {MARKER}\n\n;;;\nday;2026-03-01", 5),
    "Excel's line": ("sep=;", 2),
}


@pytest.mark.parametrize(
    ("case", "encoding"), [*((case, None) for case in TITLES), ("lines", "UTF-16")]
)
def test_lines_above_the_header(
    shell: Shell, tmp_path: Path, case: str, encoding: str | None
) -> None:
    """They are told by their number, since they may hold a name."""
    above, line = TITLES[case]
    text = people().to_csv(index=False, sep=";").replace(MARKER, "x")
    path = put(tmp_path / "a.csv", f"{above}\n{text}".encode(encoding or "utf-8"))
    found = shell("init", str(path))
    assert found.code == 2
    assert f"a.csv: its header seems to be line {line}, " in found.err
    assert f"`tail -n +{line} " in found.err
    options = {"header": "true", "sep": ";"}
    if encoding is not None:
        options |= {"encoding": encoding, "multiLine": "true"}
    source = {"format": "csv", "path": str(path), "options": options}
    config = write_config(tmp_path, settings(tmp_path, source=source))
    for verb in ("check", "release"):
        told = shell(verb, config)
        assert told.code == 2
        assert f"source: the header is line {line} of file " in told.err
        assert MARKER not in told.err + found.err
    assert not left(tmp_path / "out" / "table")


def test_blank_lines_above_the_header(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", f"\n  \r\n\n{TEXT}".encode())
    found = init(path)
    assert [column.name for column in found.columns] == NAMES
    assert rows(spark, path, **found.options) == EXPECTED


def test_titles_in_some_files(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.csv", TEXT.encode())
    put(tmp_path / "in" / "b.csv", f"{MARKER};;\n{TEXT}".encode())
    with pytest.raises(InputError, match=r"line 2 of file \S*/b\.csv and") as caught:
        rows(spark, tmp_path / "in", sep=";")
    assert MARKER not in str(caught.value)


def test_comments_above_the_header(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", f"# by {MARKER}\n#;;\n{TEXT}".encode())
    with pytest.raises(InputError, match="seems to be line 3"):
        init(path)
    found = init(path, comment="#")
    assert rows(spark, path, **found.options) == EXPECTED


def test_what_is_said_of_the_header_is_believed(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"note,,\nfamily,town,illness\nx,y,z\nv,w,u\n")
    with pytest.raises(InputError, match="seems to be line 2"):
        init(path)
    assert init(path, header="false").n_rows == 4
    assert init(path, header="true").n_rows == 3


def test_totals_and_units(spark: SparkSession, tmp_path: Path) -> None:
    units = "text;[cm];\n"
    path = put(tmp_path / "a.csv", f"{HEADER}\n{units}{ROWS}Summe:;4,5;\nGesamt;;\n".encode())
    found = init(path)
    assert [note.split(";")[0] for note in found.notes] == [
        "the first row has texts where all others have numbers",
        "rows that look like totals, with empty cells after a word such as Total: 2",
    ]
    assert "  - source\n" in draft(found)
    assert init(put(path, TEXT.encode())).notes == ()


def test_line_breaks_in_quotes(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", f'{HEADER}\n"Ann\r\nLee";1,5;x\n{ROWS}'.encode())
    found = init(path)
    assert found.options["multiLine"] == "true"
    assert found.n_rows == 31
    assert len(rows(spark, path, **found.options)) == 31


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,a\n1,2,3\n", "columns 1 and 3 have the same name"),
        ("a,b,A\n1,2,3\n", "columns 1 and 3 have the same name, or names that differ in case"),
        ("a,b\n", "has no rows"),
    ],
)
def test_headers_of_no_use(spark: SparkSession, tmp_path: Path, text: str, said: str) -> None:
    path = put(tmp_path / "a.csv", text.encode())
    with pytest.raises(InputError, match=said):
        init(path, header="true")


def test_header_only(shell: Shell, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"name,wage,city,illness\n")
    source = {"format": "csv", "path": str(path), "options": {"header": "true"}}
    found = shell.release(settings(tmp_path, source=source))
    assert found.code == 2
    assert "no rows" in found.err


def test_a_column_without_a_name(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b";age;city\n" + b"".join(b"%d;4;x\n" % i for i in range(30)))
    found = init(path)
    assert [column.name for column in found.columns] == ["_c0", "age", "city"]
    assert any("leaves names out" in note for note in found.notes)
