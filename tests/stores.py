"""Stores without Spark, with the methods of `anonlib.spark.storage.Storage` that leases use."""

import shutil
import threading
from contextlib import suppress
from pathlib import Path

from anonlib.errors import InputError
from anonlib.spark.storage import Storage


class Far:
    """A store in memory, like an object store: no folders, no locks. Writes by the thread of a
    lease wait for `answer`."""

    local = False
    root = "s3a://bucket/table"
    has_table = Storage.has_table
    delete_files = Storage.delete_files

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.asked, self.answer = threading.Event(), threading.Event()
        self.answer.set()

    def listed(self, path: str) -> list[str]:
        inside = [name[len(path) + 1 :] for name in self.files if name.startswith(f"{path}/")]
        return sorted({name.partition("/")[0] for name in inside})

    def has_files_beside_log(self, path: str) -> bool:
        return any(name != "_delta_log" for name in self.listed(path))

    def is_folder(self, path: str) -> bool:
        return bool(self.listed(path))

    def exists(self, path: str) -> bool:
        return path in self.files or bool(self.listed(path))

    def read(self, path: str) -> str:
        if path not in self.files:
            raise InputError(f"{path}: no such file")
        return self.files[path]

    def write(self, path: str, text: str, *, new: bool = False, public: bool = False) -> None:
        if new and path in self.files:
            raise FileExistsError(path)
        if threading.current_thread() is not threading.main_thread():
            self.asked.set()
            self.answer.wait(10)
        self.files[path] = text

    def delete(self, path: str) -> None:
        for name in [name for name in self.files if name == path or name.startswith(f"{path}/")]:
            del self.files[name]

    def make_private(self, path: str) -> None:
        pass


class Disk:
    """A folder on this machine's disks."""

    local = True
    has_table = Storage.has_table
    delete_files = Storage.delete_files

    def __init__(self, root: Path):
        self.root = f"file:{root}"

    def local_path(self, path: str) -> str:
        return path.removeprefix("file:")

    def _place(self, path: str) -> Path:
        return Path(self.local_path(path))

    def listed(self, path: str) -> list[str]:
        folder = self._place(path)
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def is_folder(self, path: str) -> bool:
        return self._place(path).is_dir()

    def exists(self, path: str) -> bool:
        return self._place(path).exists()

    def read(self, path: str) -> str:
        if not self._place(path).is_file():
            raise InputError(f"{path}: no such file")
        return self._place(path).read_text("utf-8")

    def write(self, path: str, text: str, *, new: bool = False, public: bool = False) -> None:
        self._place(path).parent.mkdir(parents=True, exist_ok=True)
        with self._place(path).open("x" if new else "w", encoding="utf-8") as file:
            file.write(text)

    def delete(self, path: str) -> None:
        place = self._place(path)
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def delete_empty(self, path: str) -> None:
        if self.exists(path) and not self.listed(path):
            with suppress(OSError):
                self._place(path).rmdir()

    def make_private(self, path: str) -> None:
        self._place(path).mkdir(mode=0o700, parents=True, exist_ok=True)
