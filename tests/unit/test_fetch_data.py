"""scripts/fetch_data: the table it makes, where it takes it from, what it says when it can't."""

import gzip
import hashlib
import importlib.machinery
import importlib.util
import io
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support import data_dir, skip_or_fail

ROOT = Path(__file__).resolve().parents[2]
RAW = b"|a comment\n1, x, yes.\n2,  y, no.\n\n"
TABLE = b"n,letter,answer\n1,x,yes\n2,y,no\n"


def load() -> ModuleType:
    path = str(ROOT / "scripts" / "fetch_data")
    loader = importlib.machinery.SourceFileLoader("fetch_data", path)
    spec = importlib.util.spec_from_loader("fetch_data", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script with one small made-up table, `tiny`, whose home is a file in tmp_path."""
    module = load()
    spec = {
        "sha256": hashlib.sha256(TABLE).hexdigest(),
        "raw": "tiny.data",
        "urls": [(tmp_path / "home" / "tiny.data").as_uri(), (tmp_path / "home/tiny.zip").as_uri()],
        "steps": ["drop_comments", "strip_cells", "drop_blank_lines", "drop_final_dots"],
        "header": "n,letter,answer",
    }
    tables = {"tiny": {"home": "https://example.org/tiny", "files": {"tiny.csv.gz": spec}}}
    monkeypatch.setattr(module, "TABLES", tables)
    monkeypatch.delenv("ANONLIB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "mine").mkdir()
    return module


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def name_of_file(value: Any) -> str:
    """Compressed bytes have the time in them: as names of tests they would change."""
    return value if isinstance(value, str) else "content"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("mine/tiny.csv", TABLE),
        ("mine/tiny.csv.gz", gzip.compress(TABLE)),
        ("mine/tiny.data", RAW),
        ("mine/tiny.data.gz", gzip.compress(RAW.replace(b"\n", b"\r\n"))),
        ("mine/tiny.zip", zipped(tiny__data=RAW)),
    ],
    ids=name_of_file,
)
def test_from_folder(script: ModuleType, tmp_path: Path, file: str, content: bytes) -> None:
    (tmp_path / file).write_bytes(content)
    assert script.main(["tiny", "--from", "mine", "--to", "there"]) == 0
    assert gzip.decompress((tmp_path / "there/tiny/tiny.csv.gz").read_bytes()) == TABLE


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("home/tiny.data", RAW),
        ("home/tiny.zip", zipped(other__txt=b"?", inner__zip=zipped(tiny__data=RAW))),
    ],
    ids=name_of_file,
)
def test_from_home(script: ModuleType, tmp_path: Path, file: str, content: bytes) -> None:
    (tmp_path / file).write_bytes(content)
    assert script.main(["tiny"]) == 0
    written = tmp_path / "data/tiny/tiny.csv.gz"
    assert gzip.decompress(written.read_bytes()) == TABLE
    assert list(written.parent.iterdir()) == [written]


def test_a_file_in_a_folder_of_its_table(script: ModuleType, tmp_path: Path) -> None:
    """Its original may lie anywhere `--from` looks."""
    files = script.TABLES["tiny"]["files"]
    files["parts/tiny.csv"] = files.pop("tiny.csv.gz")
    (tmp_path / "mine/tiny.data").write_bytes(RAW)
    assert script.main(["tiny", "--from", "mine"]) == 0
    assert (tmp_path / "data/tiny/parts/tiny.csv").read_bytes() == TABLE


def test_anonlib_data_comes_before_home(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONLIB_DATA", str(tmp_path / "mine"))
    (tmp_path / "mine/tiny.csv").write_bytes(TABLE)
    assert script.main(["tiny"]) == 0


def test_present_and_right_is_kept_wrong_is_replaced(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "home/tiny.data").write_bytes(RAW)
    written = tmp_path / "data/tiny/tiny.csv.gz"
    written.parent.mkdir(parents=True)
    written.write_bytes(b"broken")
    assert script.main(["tiny"]) == 0
    (tmp_path / "home/tiny.data").unlink()
    assert script.main(["tiny"]) == 0
    assert gzip.decompress(written.read_bytes()) == TABLE


@pytest.mark.parametrize("content", [RAW + b"3, z, no.\n", b"\x1f\x8bbroken", b"\xff", b""])
def test_wrong_content_is_refused(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (tmp_path / "mine/tiny.data").write_bytes(content)
    assert script.main(["tiny", "--from", "mine"]) == 2
    assert "not the content expected" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("arguments", [["tiny"], ["tiny", "--from", "mine"]])
def test_missing_says_how_to_get_it(
    script: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert script.main(arguments) == 2
    said = capsys.readouterr().err
    assert "https://example.org/tiny" in said
    assert "tiny.data" in said
    assert "scripts/fetch_data tiny --from DIR" in said


def test_unknown_name_lists_the_known(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["other"]) == 2
    assert "no table named 'other'; known: tiny" in capsys.readouterr().err


def real_tables() -> list[tuple[str, str]]:
    tables: dict[str, Any] = load().TABLES
    return [(name, file) for name, table in tables.items() for file in table["files"]]


@pytest.mark.parametrize(("name", "file"), real_tables())
def test_real_table(name: str, file: str) -> None:
    module = load()
    folder = data_dir()
    if not (folder / name / file).is_file():
        skip_or_fail(f"no {name}/{file} in ANONLIB_DATA or ../shared/data")
    spec = module.TABLES[name]["files"][file]
    table = module.from_folder(folder, name, file, spec)
    assert hashlib.sha256(table).hexdigest() == spec["sha256"]
    raw = folder / name / "raw"
    if raw.is_dir():
        originals = [path for path in raw.iterdir() if path.name.startswith(spec["raw"])]
        assert module.finished(originals[0].read_bytes(), file, spec) == table
