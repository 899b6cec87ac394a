"""Storage where others write in the same folder."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.errors import AnonlibError
from anonlib.spark import storage
from anonlib.spark.storage import Storage


def test_files_that_vanish_while_a_folder_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver's commit renames or deletes its temporary files; the others are closed."""
    (tmp_path / "log").mkdir(mode=0o755)
    (tmp_path / "log" / "kept").touch(mode=0o644)
    tmp_path.chmod(0o700)
    walk = os.walk

    def slow(folder: Path) -> Iterator[Any]:
        for place, folders, files in walk(folder):
            yield place, [*folders, "gone folder"], ["gone file", *files]

    monkeypatch.setattr(os, "walk", slow)
    object.__new__(Storage)._close_local(tmp_path)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "log" / "kept").stat().st_mode) == 0o600


@pytest.mark.parametrize("gone", [True, False])
def test_the_same_by_hadoop(monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    """A file that is there, and can't be closed, is an error."""
    closed: list[str] = []

    def close(path: str, mode: Any) -> None:
        if path == "b":
            raise OSError("AccessControlException")
        closed.append(path)

    left = [SimpleNamespace(getPath=lambda path=path: path) for path in "abc"]
    files = SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0))
    permission = SimpleNamespace(toShort=lambda: 0o700)
    made: Any = object.__new__(Storage)
    made.root, made._path, made._spark = "hdfs://host/table", str, None
    made._fs = SimpleNamespace(
        getFileStatus=lambda path: SimpleNamespace(getPermission=lambda: permission),
        listFiles=lambda path, recursive: files,
        setPermission=close,
        exists=lambda path: not gone,
    )
    monkeypatch.setattr(storage, "java_class", lambda spark, name: int)
    if gone:
        made.close("table")
        assert closed == ["a", "c"]
    else:
        with pytest.raises(AnonlibError, match="permission denied"):
            made.close("table")
