"""Releases of files that break the contract of sources: nothing is published, no value is shown."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import ConfigError, InputError
from anonlib.source.resolved_source import open_source
from tests.spark.support import MARKER, Shell, left, people, settings, write_config

pytestmark = pytest.mark.spark

TABLE = people().to_csv(index=False)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def config(folder: Path, kind: str = "csv", **changes: Any) -> dict[str, Any]:
    options = {"header": "true", **changes.pop("options", {})} if kind == "csv" else {}
    source = {"format": kind, "path": str(folder / "in"), "options": options}
    return settings(folder, source={**source, **changes.pop("source", {})}, **changes)


TURNED = people()[["illness", "wage", "city", "name"]].to_csv(index=False)
ATTACKS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "columns in another order": ({"a.csv": TABLE, "b.csv": TURNED}, {}, "the header differs"),
    "a column more": (
        {"a.csv": TABLE, "b.csv": people().assign(more=1).to_csv(index=False)},
        {},
        "the header differs",
    ),
    "a comma": ({"a.csv": f"{TABLE}{MARKER}-x,98765,a, b,c\n"}, {}, "1 rows have too few"),
    "a line break": ({"a.csv": f'{TABLE}{MARKER}-x,98765,a,"b\nc"\n'}, {}, "multiLine"),
    "malformed rows are dropped": (
        {"a.csv": f"{TABLE}{MARKER}-x\n"},
        {"mode": "DROPMALFORMED"},
        "rows would be lost",
    ),
    "the first malformed row ends it": (
        {"a.csv": f"{TABLE}{MARKER}-x\n"},
        {"mode": "FAILFAST"},
        "1 rows have too few",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_csv(shell: Shell, tmp_path: Path, attack: str) -> None:
    files, options, said = ATTACKS[attack]
    write(tmp_path, files)
    found = shell.release(config(tmp_path, options=options))
    assert found.code == 2
    assert said in found.err
    assert MARKER not in found.err
    assert not left(tmp_path / "out" / "table")


NOT_UTF8 = "source: bytes that are no characters of UTF-8 in 1 lines, as in "
#: name -> format, the bytes in a text of the table, options, changes of roles; what is said
ENCODINGS: dict[str, tuple[str, bytes, dict[str, str], dict[str, Any], str]] = {
    "latin letters": ("csv", b"caf\xe9", {}, {}, NOT_UTF8),
    "with their encoding": ("csv", b"caf\xe9", {"encoding": "ISO-8859-1"}, {}, ""),
    "letters in ASCII": (
        "csv",
        "café".encode(),
        {"encoding": "US-ASCII"},
        {},
        "source: bytes that are no characters of US-ASCII; set source.options.encoding",
    ),
    "written as unreadable": ("csv", "caf\ufffd".encode(), {}, {}, ""),
    "both": ("csv", b"caf\xe9\xef\xbf\xbd", {}, {}, NOT_UTF8),
    "where values hold line breaks": ("csv", b"caf\xe9", {"multiLine": "true"}, {}, NOT_UTF8),
    "in a column that nobody reads": ("csv", b"caf\xe9", {}, {"city": {"role": "drop"}}, ""),
    "in JSON": ("json", b"caf\xe9", {}, {}, "can't be read, as in "),
}


@pytest.mark.parametrize("case", ENCODINGS)
def test_bytes_of_another_encoding(shell: Shell, tmp_path: Path, case: str) -> None:
    """Spark would read one character for all of them: different texts would become equal."""
    kind, letters, options, roles, said = ENCODINGS[case]
    rows = TABLE if kind == "csv" else people().to_json(orient="records", lines=True)
    (tmp_path / "in").mkdir()
    first, rest = rows.encode().split(b"city-0", 1)
    (tmp_path / "in" / "a").write_bytes(first + letters + rest)
    more = {"options": options} if options else {}
    given = config(tmp_path, kind, attributes=roles, **more)
    found = shell("check", write_config(tmp_path, given))
    assert (found.code, said in found.err) == (2 if said else 0, True), found.err
    assert MARKER not in found.err


def _touched(folder: Path) -> None:
    (folder / "a.csv").write_text(TABLE.replace("illness-1", "illness-2"))


def _added(folder: Path) -> None:
    (folder / "b.csv").write_text(TABLE)


@pytest.mark.parametrize("moment", ["scan started", "scan ended", "audit ended"])
@pytest.mark.parametrize("change", [_touched, _added])
def test_files_that_change(
    shell: Shell, tmp_path: Path, moment: str, change: Callable[[Path], None]
) -> None:
    write(tmp_path, {"a.csv": TABLE})
    hooks = {moment: lambda: change(tmp_path / "in")}
    found = shell.release(config(tmp_path), hooks=hooks)
    assert found.code != 0
    assert "its files changed while they were read" in found.err
    assert MARKER not in found.err
    assert not left(tmp_path / "out" / "table" / "_delta_log")


def test_harmless(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, {"a.csv": TABLE, "b.csv": TABLE.replace("name-", "name-b")})
    found = shell.release(config(tmp_path, options={"mode": "FAILFAST"}))
    assert found.code == 0, found.err
    assert spark.read.format("delta").load(str(tmp_path / "out" / "table")).count() == 120


@pytest.mark.parametrize("path", ["*/", "{in,out*}/", "in/../*", "?u*/../[i]n"])
def test_globs_that_reach_into_the_release(shell: Shell, tmp_path: Path, path: str) -> None:
    """Whether the release is there yet, or not; what of a glob reaches there, and what does not."""
    write(tmp_path, {"a.csv": TABLE})
    made = config(tmp_path, source={"path": f"{tmp_path}/{path}"})
    made["release"]["path"] = str(tmp_path / "out")
    for name in ("out", "_out.anonlib", "out.private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text(TABLE)
        found = shell.release(made)
        assert found.code == 2
        (tmp_path / name / "a.csv").unlink()
        assert "release.path: the source is in it, or it is in the source" in found.error


WHERE = """name,wage,city,illness,zip,consent
a,17,x,i,007,1
b,18,x,i,010,1
c,19.5,x,i,7,0
d,?,x,i,08,1
e,100,x,i,9,oops
"""


def opened(spark: SparkSession, folder: Path, where: str, **types: str) -> int:
    write(folder, {"a.csv": WHERE})
    attributes = {"zip": {"role": "insensitive"}, "consent": {"role": "drop"}}
    made = config(folder, source={"where": where}, attributes=attributes)
    for name, type in types.items():
        made["attributes"][name]["type"] = type
    source = open_source(spark, anonlib.parse(made))
    with closing(source):
        return source.fresh.count()


@pytest.mark.parametrize(
    ("where", "types", "n"),
    [
        ("wage >= 18", {}, 3),
        ("WAGE >= 18", {}, 3),
        ("wage = 19.5 or wage is null", {}, 2),
        ("wage between 18 and 50 and zip = '010'", {}, 1),
        ("zip = '007'", {}, 1),
        ("zip = 7", {"zip": "int"}, 2),
        ("try_cast(wage as double) >= 18", {}, 3),
        ("consent = '1'", {}, 3),
        ("wage >= 18 and city = 'x'", {"wage": "decimal(5,1)"}, 3),
    ],
)
def test_conditions_see_types(
    spark: SparkSession, tmp_path: Path, where: str, types: dict[str, str], n: int
) -> None:
    assert opened(spark, tmp_path, where, **types) == n


def test_conditions_lose_no_row_that_they_cannot_read(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        opened(spark, tmp_path, "consent = 1", consent="int")
    assert "can't read 1 values as int in column consent" in str(caught.value)
    assert "oops" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"try_ form of cast\(string as bigint\)"):
        opened(spark, tmp_path, "consent = 1")
    with pytest.raises(InputError, match="can't be cast"):
        opened(spark, tmp_path, "wage = 'many'")
