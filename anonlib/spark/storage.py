"""Small files and folders, through Hadoop's file systems. So every store of Spark works: local
disks, HDFS, object stores."""

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from anonlib.errors import InputError, StorageError
from anonlib.spark.jvm import find_java_class
from anonlib.spark.translation import (
    is_refused_since_there,
    is_replaced_meanwhile,
    translate_errors,
)

#: Hadoop's option to create a file only if there is none, as decided by the store (If-None-Match).
CONDITIONAL = "fs.option.create.conditional.overwrite"
#: Stores where a plain create does the same.
ATOMIC = ("hdfs", "viewfs", "webhdfs", "ofs", "o3fs", "abfs", "abfss", "gs")
#: What disks say that have no hard links, such as FAT.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
#: Attempts to read a file that is replaced meanwhile.
TRIES = 5


class Storage:
    """The file system of one path.

    All methods raise StorageError or InputError when the store refuses.
    """

    def __init__(self, spark: SparkSession, path: str):
        self._spark = spark
        self._path = find_java_class(spark, "org.apache.hadoop.fs.Path")
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()
        with translate_errors(f"path {path}"):
            given = self._path(path)
            self._fs = given.getFileSystem(self._conf)
            self.root = self._fs.makeQualified(given).toString()

    @property
    def spelling(self) -> str:
        """The store's canonical spelling of the path. `/data`, `hdfs:///data` and
        `hdfs://namenode:8020/data` may be the same path."""
        service = None if self.local else self._fs.getCanonicalServiceName()
        if not service:
            return str(self.root)
        return (
            f"{self.root.partition('://')[0]}://{service}{self._path(self.root).toUri().getPath()}"
        )

    @property
    def local(self) -> bool:
        """Whether the path is on this machine's disks."""
        return str(self.root).startswith("file:")

    @property
    def atomic(self) -> bool:
        """Whether, of two writers that create the same file at once, one fails, by any call."""
        return self.local or self.root.partition(":")[0] in ATOMIC

    def local_path(self, path: str) -> str:
        """A path on this machine's disks, in the operating system's form."""
        return str(self._path(path).toUri().getPath())

    def exists(self, path: str) -> bool:
        with translate_errors(f"path {path}"):
            return bool(self._fs.exists(self._path(path)))

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        with translate_errors(f"path {path}"):
            place = self._path(path)
            return bool(self._fs.exists(place) and self._fs.getFileStatus(place).isDirectory())

    def listed(self, path: str) -> list[str]:
        """The names in a folder; none if there is no such folder."""
        with translate_errors(f"path {path}"):
            if not self._fs.exists(self._path(path)):
                return []
            return sorted(
                status.getPath().getName() for status in self._fs.listStatus(self._path(path))
            )

    def has_files_beside_log(self, path: str) -> bool:
        """Whether files are in a folder or below, other than those of Delta's log. Some object
        stores go on to list the folders of objects that were removed."""
        with translate_errors(f"path {path}"):
            if not self._fs.exists(self._path(path)):
                return False
            left_out = f"{self._path(path).toUri().getPath()}/_delta_log/"
            files = self._fs.listFiles(self._path(path), True)
            while files.hasNext():
                if not files.next().getPath().toUri().getPath().startswith(left_out):
                    return True
            return False

    def has_table(self, path: str) -> bool:
        """Whether a Delta table is there: one whose making was stopped has a log without commits,
        and does not count."""
        names = self.listed(f"{path}/_delta_log")
        return any(name.endswith(".json") and not name.startswith(".") for name in names)

    def read(self, path: str) -> str:
        """The text of a small file. If the file is replaced meanwhile, as leases are, it is the
        new text."""
        with translate_errors(f"path {path}"):
            for _ in range(TRIES):
                try:
                    return self._text(path)
                except Exception as error:
                    if not is_replaced_meanwhile(error):
                        raise
        raise StorageError(f"path {path}: it changes whenever it is read")

    def _text(self, path: str) -> str:
        if self.local:  # pyspark needs some 30 calls to say that there is no file
            return Path(self.local_path(path)).read_bytes().decode("utf-8")
        stream = self._fs.open(self._path(path))
        try:
            data = find_java_class(self._spark, "org.apache.commons.io.IOUtils").toByteArray(stream)
            return bytes(data).decode("utf-8")
        finally:
            stream.close()

    def write(self, path: str, text: str, *, new: bool = False, public: bool = False) -> None:
        """Writes a small file, readable by its owner only unless `public`.

        Args:
            path: The file.
            text: Its text.
            new: Whether the file must not exist yet. Then only one of several writers succeeds.
            public: Whether everybody may read it.

        Raises:
            FileExistsError: With `new`, the file exists.
            InputError: With `new`, the store can't let only one writer succeed.
        """
        if self.local:
            self._write_local(Path(self.local_path(path)), text, new, 0o644 if public else 0o600)
            return
        with translate_errors(f"path {path}"):
            written = self._store(path, text, new)
        if not written:
            raise FileExistsError(path)

    def _store(self, path: str, text: str, new: bool) -> bool:
        """Writes a file. Returns False if it must be `new`, and exists already."""
        try:
            stream = self._create(path) if new else self._fs.create(self._path(path), True)
            try:
                stream.write(text.encode("utf-8"))
            except BaseException:
                with suppress(Exception):
                    stream.close()
                raise
            stream.close()
        except Exception as error:
            if new and is_refused_since_there(error):
                return False
            raise
        return True

    def _create(self, path: str) -> Any:
        """A stream to a file that is not there yet."""
        self.require_conditional()
        place = self._path(path)
        if self.atomic:
            return self._fs.create(place, False)
        return self._fs.createFile(place).must(CONDITIONAL, "true").build()

    def require_conditional(self) -> None:
        """Raises InputError if the store can't let only one of several writers create a file."""
        if self.atomic or self._fs.hasPathCapability(self._path(self.root), CONDITIONAL):
            return
        scheme = self.root.partition(":")[0]
        raise InputError(
            f"path {self.root}: {scheme}:// has no conditional writes here, so that runs at the "
            "same time can't be kept apart; use s3a:// with fs.s3a.create.conditional.enabled, a "
            f"local path, or one of {', '.join(ATOMIC)}"
        )

    def _write_local(self, path: Path, text: str, new: bool, mode: int) -> None:
        # Hadoop's local create is not atomic, and leaves checksum files. A link or a rename of a
        # complete file is atomic, and leaves none. Containers that share a disk may share our pid.
        temporary = path.with_name(f"{path.name}.{uuid4().hex}")
        made = True
        with translate_errors(f"path {path}"):
            try:
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                if new:
                    made = _link(temporary, path)
                else:
                    temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        if not made:
            raise FileExistsError(path)

    def make_private(self, path: str) -> None:
        """Makes a folder that only its owner can read. Object stores have no permissions on
        folders, so there the bucket's policy must keep others out."""
        with translate_errors(f"path {path}"):
            if not (self._make_local_folder(path) if self.local else self._make_folder(path)):
                raise StorageError(f"path {path}: the folder can't be made; permission denied?")

    def _make_folder(self, path: str) -> bool:
        mode = find_java_class(self._spark, "org.apache.hadoop.fs.permission.FsPermission")("700")
        made = bool(self._fs.mkdirs(self._path(path), mode))
        if made:
            self._fs.setPermission(self._path(path), mode)
        return made

    def _make_local_folder(self, path: str) -> bool:
        # Hadoop would start a process to set the mode.
        place = Path(self.local_path(path))
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileNotFoundError:  # where nobody can make folders, as in /proc
            return False
        place.chmod(0o700)
        return True

    def close(self, path: str) -> None:
        """Gives all that Spark wrote in a folder the folder's own permissions: who can't read the
        folder can't read its files, wherever these are moved. Other writers may delete temporary
        files of theirs meanwhile."""
        with translate_errors(f"path {path}"):
            if self.local:
                self._close_local(Path(self.local_path(path)))
                return
            found = self._fs.getFileStatus(self._path(path)).getPermission().toShort() & 0o666
            mode = find_java_class(self._spark, "org.apache.hadoop.fs.permission.FsPermission")(
                found
            )
            files = self._fs.listFiles(self._path(path), True)
            while files.hasNext():
                place = files.next().getPath()
                try:
                    self._fs.setPermission(place, mode)
                except Exception:
                    if self._fs.exists(place):
                        raise

    def _close_local(self, folder: Path) -> None:
        mode = stat.S_IMODE(folder.stat().st_mode)
        for place, folders, files in os.walk(folder):
            modes = [(name, mode) for name in folders] + [(name, mode & 0o666) for name in files]
            for name, bits in modes:
                with suppress(FileNotFoundError):
                    Path(place, name).chmod(bits)

    def delete(self, path: str) -> None:
        """Deletes a file or folder, if it exists."""
        with translate_errors(f"path {path}"):
            self._fs.delete(self._path(path), True)

    def delete_empty(self, path: str) -> None:
        """Deletes a folder if there is nothing in it."""
        if not self.exists(path) or self.listed(path):
            return
        try:
            with translate_errors(f"path {path}"):
                self._fs.delete(self._path(path), False)
        except StorageError:
            if not self.listed(path):  # else another writer has just put something there
                raise

    def delete_files(self, root: str, files: Iterable[PurePosixPath]) -> None:
        """Deletes files below a folder, and their folders if nothing is in them then: their names
        are values. What others put there stays, whenever they do.

        Args:
            root: The folder.
            files: The files, relative to it.
        """
        places = [*files]
        for place in places:
            self.delete(f"{root}/{place}")
        folders = {folder for place in places for folder in place.parents if folder.name}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            self.delete_empty(f"{root}/{folder}")

    def move(self, path: str, to: str) -> None:
        """Moves a file within the store. Raises StorageError where it can't, or one is there."""
        with translate_errors(f"path {to}"):
            self._fs.mkdirs(self._path(to).getParent())
            moved = not self._fs.exists(self._path(to)) and self._fs.rename(
                self._path(path), self._path(to)
            )
        if not moved:
            raise StorageError(f"path {to}: a file can't be moved there")


def _link(file: Path, path: Path) -> bool:
    """Gives a file another name. Returns False if there is a file of that name.

    Raises InputError where the disk has no hard links.
    """
    try:
        path.hardlink_to(file)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise InputError(
            f"path {path}: this disk has no hard links, so that runs at the same time can't be "
            "kept apart; use another disk"
        ) from error
    return True


def spelling(spark: SparkSession, path: str) -> str:
    """The store's canonical spelling of a path; the path itself if the store can't be asked."""
    try:
        return Storage(spark, path).spelling
    except (InputError, StorageError):  # no path of a store; the error comes when it is opened
        return path
