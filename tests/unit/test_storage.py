"""Storage where others write in the same folder."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.errors import AnonlibError, StorageError
from anonlib.spark import storage
from anonlib.spark.storage import Storage
from tests.stores import Disk


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


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EPERM, "this disk has no hard links"),
        (errno.EOPNOTSUPP, "this disk has no hard links"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Spark failed with OSError"),
        (errno.EEXIST, None),
    ],
)
def test_disks_that_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str | None
) -> None:
    """All is an error of anonlib but that the file is there."""

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    made: Any = object.__new__(Storage)
    made.root, made.local_path = f"file:{tmp_path}", str
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(AnonlibError, match=said) if said else pytest.raises(FileExistsError):
        made.write(f"{tmp_path}/lease", "x", new=True)
    if said and code == errno.EACCES:
        monkeypatch.setattr(Path, "replace", refuse)
        with pytest.raises(AnonlibError, match=said):
            made.write(f"{tmp_path}/lease", "x")
    assert [*tmp_path.iterdir()] == []


def test_writers_of_one_pid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two containers that share a disk may have the same process id: neither writes into the file
    of the other."""
    made: Any = object.__new__(Storage)
    made.root, made.local_path = f"file:{tmp_path}", str
    sync, left = os.fsync, ["second"]

    def interfere(handle: int) -> None:
        if left:
            made.write(f"{tmp_path}/lease", left.pop(), new=True)
        sync(handle)

    monkeypatch.setattr(os, "fsync", interfere)
    with pytest.raises(FileExistsError):
        made.write(f"{tmp_path}/lease", "first", new=True)
    assert (tmp_path / "lease").read_text() == "second"
    assert [*tmp_path.iterdir()] == [tmp_path / "lease"]


class Busy(Disk):
    """A disk on which another writer puts a file into a folder right after that was listed."""

    def listed(self, path: str) -> list[str]:
        found = super().listed(path)
        if path.endswith("a=1/b=1"):
            self.write(f"{path}/late", "x")
        return found


@pytest.mark.parametrize(
    ("kind", "left"),
    [(Disk, ["a=2", "a=2/mine"]), (Busy, ["a=1", "a=1/b=1", "a=1/b=1/late", "a=2", "a=2/mine"])],
)
def test_files_go_with_their_folders(tmp_path: Path, kind: type[Disk], left: list[str]) -> None:
    """Names of folders are values. Files of others stay, also those that come meanwhile."""
    old = ["a=1/b=1/old", "a=1/b=2/old", "a=2/b=1/old", "old"]
    store: Any = kind(tmp_path)
    for name in [*old, "a=2/mine"]:
        store.write(f"{store.root}/{name}", "x")
    store.delete_files(store.root, map(PurePosixPath, old))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == left


@pytest.mark.parametrize("late", [True, False])
def test_a_folder_that_seemed_empty(late: bool) -> None:
    """It is refused where another writer was quicker, and that is no error."""
    names = iter([[], ["late"] if late else []])
    asked: list[tuple[str, bool]] = []

    def refuse(path: str, recursive: bool) -> None:
        asked.append((path, recursive))
        raise OSError("Directory is not empty")

    made: Any = object.__new__(Storage)
    made._path, made.listed = str, lambda path: next(names)
    made._fs = SimpleNamespace(exists=lambda path: True, delete=refuse)
    with nullcontext() if late else pytest.raises(StorageError):
        made.delete_empty("a=1")
    assert asked == [("a=1", False)]


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
    monkeypatch.setattr(storage, "find_java_class", lambda spark, name: int)
    if gone:
        made.close("table")
        assert closed == ["a", "c"]
    else:
        with pytest.raises(AnonlibError, match="permission denied"):
            made.close("table")
