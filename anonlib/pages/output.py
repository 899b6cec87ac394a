"""Reads private records and writes reports beside them. Starts Spark only if a store is not the
local disk."""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from anonlib.config.model import Config
from anonlib.config.paths import find_record_path
from anonlib.config.reading import as_config
from anonlib.config.summary import bare
from anonlib.errors import InputError, StorageError, refuse_to_write
from anonlib.pages import MARK, render, render_comparison
from anonlib.pages.seal import SEAL, Certificate, open_seal, seal_record
from anonlib.pages.specs import require_run_record
from anonlib.text import drop_file_scheme

if TYPE_CHECKING:  # this imports Spark
    from anonlib.spark.storage import Storage

_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: What is read where a verb asks for a run, and for a certificate.
_RUN = (
    "RUN is the path of a private record, as TABLE.private/RUN_ID.json, or with --conf CONF the id "
    "of a run"
)
_CERTIFICATE = (
    "CERTIFICATE is a file in HTML that `anonlib certificate` wrote; it comes first, then TABLE"
)


def report(
    run: str | Path,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    out: str | Path | None = None,
    *,
    against: str | Path | None = None,
) -> str:
    """Writes the page of a run from its private record, or a page that compares two runs. Only its
    owner can read the page.

    Args:
        run: The path of a private record; with a config, the id of a run.
        config: The config of the run: a dict, the path of a YAML file, or a Config.
        out: The file to write; by default beside the record. An existing report is replaced, any
            other file is not.
        against: Another run, named as `run`. The page shows where the two differ, their models,
            losses, risks and utilities side by side, and which is better by each figure, if their
            figures can be compared. It is beside the record of `run`: RUN.against.OTHER.html.

    Returns:
        The path of the page.

    Raises:
        InputError: A record does not exist or is not a record, both are of one run, or `out` is
            another file, does not end in .html, or is in no folder.
        StorageError: The page can't be written.

    Example:
        anonlib.report("out/adult.private/RUN_ID.json")
        anonlib.report("out/k10.private/RUN_ID.json", against="out/k5.private/OTHER_ID.json")
    """
    _require_ending(out, ".html")
    record = _place_record(run, config)
    stem = record.removesuffix(".json")
    if against is None:
        page, name = _render_one(record, render), f"{stem}.html"
    else:
        other = _place_record(against, config)
        second = open_record(other)
        page = _render_one(record, lambda this: render_comparison(this, second))
        name = f"{stem}.against.{other.removesuffix('.json').rpartition('/')[2]}.html"
    place = str(out or name)
    if _is_other_file(place):
        raise InputError(
            f"{place}: is there already, and is not a report; name another file with --out"
        )
    _write(place, page)
    return place


def certify(
    run: str | Path,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    out: str | Path | None = None,
) -> str:
    """Writes the certificate of a run from its private record: HTML, or PDF if `out` ends in .pdf.

    Args:
        run: The path of a private record; with a config, the id of a run.
        config: The config of the run: a dict, the path of a YAML file, or a Config.
        out: The file to write; by default RUN.certificate.html beside the record. An existing
            certificate in HTML is replaced, any other file is not.

    Returns:
        The path of the certificate.

    Raises:
        InputError: The record is not there or not of a run that published, `out` is another file,
            has another ending or no folder, or PDF is asked for without WeasyPrint.
        StorageError: The file can't be written.

    Example:
        anonlib.certify("out/adult.private/RUN_ID.json")
    """
    _require_ending(out, ".html", ".pdf")
    record = _place_record(run, config)
    place = str(out or f"{record.removesuffix('.json')}.certificate.html")
    text = _read(record)
    try:
        page = seal_record(text).page()
    except InputError as error:
        raise InputError(f"{record}: {error}") from None
    write_certificate(place, page)
    return place


def write_certificate(path: str | Path, page: str) -> None:
    """Writes a certificate: as PDF to a new file if `path` ends in .pdf, else as HTML. A
    certificate in HTML that is there is replaced.

    Raises:
        InputError: Another file is there, the path has another ending or no folder, or PDF is
            asked for without WeasyPrint.
        StorageError: The file can't be written.
    """
    place = str(path)
    _require_ending(place, ".html", ".pdf")
    if place.lower().endswith(".pdf"):
        _write_pdf(place, page)
        return
    if (there := _existing(place)) is not None and SEAL not in there[:2000]:
        raise InputError(f"{place}: is there already, and is not a certificate; name another file")
    _write(place, page)


def read_certificate(path: str | Path, record: str | Path | None) -> Certificate:
    """Reads a certificate, and the record if it is named.

    Raises:
        InputError: A file is not there, or is no certificate, or no record.
    """
    path = str(path)
    page = _read(path, _CERTIFICATE)
    try:
        facts = open_seal(page)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    of_record = None if record is None else seal_record(_read(str(record)))
    return Certificate(page, facts, of_record)


def _place_record(run: str | Path, config: Config | Mapping[str, Any] | str | Path | None) -> str:
    """The path of a run's record, named by itself or by a config and an id. Raises InputError for
    what is neither a path nor an id."""
    if not isinstance(run, str | Path):
        raise InputError(
            "run: must be the path of a private record, or the id of a run; a Release in hand has "
            "`report(PATH)` and `certificate(PATH)` of its own"
        )
    return str(run) if config is None else _record_path(str(run), as_config(config).record_folder)


def _render_one(path: str, render_page: Callable[[Mapping[str, Any]], str]) -> str:
    """A page of a record. Errors name its file."""
    content = open_record(path)
    try:
        return render_page(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def open_record(path: str) -> Mapping[str, Any]:
    """A private record. Raises InputError, with the file's name, if there is none."""
    try:
        content = json.loads(_read(path))
    except ValueError:
        content = None
    try:
        return require_run_record(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _write_pdf(path: str, page: str) -> None:
    """Writes a page to a new PDF on this machine. Pages need nothing else, and nothing is
    fetched."""
    try:
        from weasyprint import HTML
    except (ImportError, OSError):  # OSError: the system lacks Pango, which it loads
        raise InputError(
            "PDF needs WeasyPrint, and Pango of the system: pip install weasyprint; or print "
            "the HTML from a browser"
        ) from None

    def refuse(url: str) -> NoReturn:
        raise ValueError(f"a certificate has no links, and {bare(url)} is not fetched")

    _write_new(path, HTML(string=page, url_fetcher=refuse).write_pdf())


def _require_ending(path: str | Path | None, *endings: str) -> None:
    """Raises InputError for a file whose name tells another format than is written."""
    if path is not None and not str(path).lower().endswith(endings):
        raise InputError(f"{path}: the name must end in {' or '.join(endings)}")


def require_new_page(path: str | Path) -> None:
    """Raises InputError if a file is there, or the name is not that of a page."""
    _require_ending(path, ".html")
    if Path(path).exists():
        raise InputError(f"{path}: is there already; name another file")


def replace_page(path: str | Path, page: str) -> None:
    """Writes a page to a local file that only its owner can read. A page of anonlib that is there
    is replaced. Raises InputError if another file is there, or the page can't be written."""
    _require_ending(path, ".html")
    try:
        if _is_other_file(str(path)):
            raise InputError(f"{path}: is there already, and is not a report; name another file")
        _write(str(path), page)
    except StorageError as error:
        raise InputError(str(error)) from None


def write_page(path: str | Path, page: str) -> None:
    """Writes a page to a new local file that only its owner can read. Raises InputError if the file
    is there, or can't be written."""
    _write_new(path, page.encode())


def _write_new(path: str | Path, content: bytes) -> None:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError as error:
        raise refuse_to_write(path, error) from None


def _record_path(run: str, folder: str) -> str:
    """The path of a run's private record. Raises InputError if `run` is no id of a run."""
    if not _RUN_ID.fullmatch(run):
        raise InputError("RUN: no run id; leave out --conf to name the file of a record")
    return find_record_path(folder, run)


def _read(path: str, hint: str = _RUN) -> str:
    text = _existing(path, hint)
    if text is None:
        raise InputError(f"{path}: no such file; {hint}")
    return text


def _is_other_file(path: str) -> bool:
    """Whether a file is there that is not a report."""
    return (there := _existing(path)) is not None and MARK not in there[:2000]


def _existing(path: str, hint: str = "name a file") -> str | None:
    """The text of a file; None if there is no file. Bytes that are not UTF-8 are replaced.

    Raises InputError if a folder is there. hint: What a file is wanted for.
    """
    local, refusal = _local(path), InputError(f"{path}: is a folder; {hint}")
    if local is None:
        storage = _storage(path)
        if storage.is_folder(path):
            raise refusal
        return storage.read(path) if storage.exists(path) else None
    if local.is_dir():
        raise refusal
    with _said(path):
        return local.read_text("utf-8", errors="replace") if local.exists() else None


def _write(path: str, text: str) -> None:
    local = _local(path)
    if local is None:
        _storage(path).write(path, text)
        return
    if not local.parent.is_dir():
        raise refuse_to_write(path, FileNotFoundError())
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
    plain = drop_file_scheme(path)
    return None if "://" in plain else Path(plain)


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
