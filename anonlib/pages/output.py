"""Reads private records and writes reports beside them. Starts Spark only if a store is not the
local disk."""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonlib.config.model import Config
from anonlib.config.reading import as_config
from anonlib.errors import InputError, StorageError
from anonlib.pages import MARK, render

if TYPE_CHECKING:  # this imports Spark
    from anonlib.spark.storage import Storage

_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def report(
    run: str | Path,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    out: str | Path | None = None,
) -> str:
    """Writes the page of a run from its private record. Only its owner can read the page.

    Args:
        run: The path of a private record; with a config, the id of a run.
        config: The config of the run: a dict, the path of a YAML file, or a Config.
        out: The file to write; by default beside the record. An existing report is replaced, any
            other file is not.

    Returns:
        The path of the page.

    Raises:
        InputError: The record does not exist or is not a record, or `out` is another file.
        StorageError: The page can't be written.

    Example:
        anonlib.report("out/adult.private/RUN_ID.json")
    """
    record = str(run) if config is None else _record_path(str(run), as_config(config).record_path)
    place = str(out or f"{record.removesuffix('.json')}.html")
    try:
        content = json.loads(_read(record))
        page = render(content if isinstance(content, dict) else {})
    except ValueError:
        raise InputError(f"{record}: no JSON, so no run record of anonlib") from None
    except InputError as error:
        raise InputError(f"{record}: {str(error).removeprefix(f'{record}: ')}") from None
    if (there := _existing(place)) is not None and MARK not in there[:2000]:
        raise InputError(
            f"{place}: is there already, and is no report; name another file with --out"
        )
    _write(place, page)
    return place


def require_new(path: str | Path) -> None:
    """Raises InputError if a file is there."""
    if Path(path).exists():
        raise InputError(f"{path}: is there already; name another file")


def write_page(path: str | Path, page: str) -> None:
    """Writes a page to a new local file that only its owner can read. Raises InputError if the file
    is there, or can't be written."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
    except FileExistsError:
        raise InputError(f"{path}: is there already; name another file") from None
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror or 'I/O error'})") from None


def _record_path(run: str, folder: str) -> str:
    """The path of a run's private record. Raises InputError if `run` is no id of a run."""
    if not _RUN_ID.fullmatch(run):
        raise InputError("RUN: no run id; leave out --conf to name the file of a record")
    return f"{folder.rstrip('/')}/{run}.json"


def _read(path: str) -> str:
    text = _existing(path)
    if text is None:
        raise InputError(
            f"{path}: no such file; RUN is the path of a private record, or with --conf "
            "CONF the id of a run"
        )
    return text


def _existing(path: str) -> str | None:
    """The text of a file; None if there is no file. Bytes that are not UTF-8 are replaced."""
    local = _local(path)
    if local is None:
        storage = _storage(path)
        return storage.read(path) if storage.exists(path) else None
    with _said(path):
        return local.read_text("utf-8", errors="replace") if local.exists() else None


def _write(path: str, text: str) -> None:
    local = _local(path)
    if local is None:
        _storage(path).write(path, text)
        return
    with _said(path):
        # The file is readable by its owner only, and appears in one step.
        handle, temporary = tempfile.mkstemp(prefix=f".{local.name}.", dir=local.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).replace(local)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _local(path: str) -> Path | None:
    """A path on the local disk; None for a path on another store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if "://" in path else Path(path)


def _storage(path: str) -> "Storage":
    from anonlib.spark.session import session
    from anonlib.spark.storage import Storage

    return Storage(session(), path)


@contextmanager
def _said(path: str) -> Iterator[None]:
    """Turns errors of the local disk into StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or 'I/O error'}") from None
