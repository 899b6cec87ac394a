"""Paths in configs: relative to the folder of the config's file, or to the working directory; and
those of what a release puts beside its table."""

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from anonlib.errors import did_you_mean

#: The beginning of a path that is relative to the working directory of the run.
CWD = "cwd:"
#: Variables of the environment with which paths without a scheme may lie in another store.
_OF_CLUSTERS = (
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME"),
    *("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "DATABRICKS_RUNTIME_VERSION"),
)
#: The fields that are paths, as keys from the root of a config. * is any key, or any index.
PATHS = (
    ("source", "path"),
    ("attributes", "*", "hierarchy"),
    ("release", "path"),
    ("release", "record"),
    ("release", "ledger", "path"),
    ("release", "ledger", "key_file"),
    ("release", "backlog", "path"),
    ("release", "backlog", "key_file"),
    ("pseudonyms", "key_file"),
    ("evaluate", "metrics"),
    ("evaluate", "measures", "*", "source", "path"),
    ("accountability", "runs"),
    ("events",),
)
#: The same of a sweep file.
SWEEP_PATHS = (
    ("out",),
    ("cases", "*", "config"),
    *(("cases", "*", "config", *path) for path in PATHS),
)
_ROOTED = re.compile(r"/|[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def locate(path: str, folder: Path | None) -> str:
    """Where a path of a config leads.

    Args:
        path: The path as written. An absolute one, and one with a scheme such as s3a:, stay.
        folder: The folder of the config's file; None for a config without a file, whose paths are
            relative to the working directory.
    """
    if path.startswith(CWD):
        return path.removeprefix(CWD) or "."
    if folder is None or not path or _ROOTED.match(path):
        return path
    return normpath((folder / path).absolute())


def locate_all(tree: Any, folder: Path | None) -> Any:
    """A config whose paths lead where `locate` says, as a new tree."""
    return _map_paths(tree, (), lambda path: locate(path, folder))


def from_shell(keys: tuple[str, ...], value: Any) -> Any:
    """A value whose paths are relative to the working directory, as in a command line, for a file.

    Args:
        keys: The field, as keys from the root of a config or a sweep file.
        value: The value of the field, which may have fields of its own.
    """

    def mark(path: str) -> str:
        return f"{CWD}{path}" if path and not _ROOTED.match(path) else path

    return _map_paths(value, keys, mark)


def relate(path: str, folder: Path) -> str:
    """A path that is relative to the working directory, for a config in another folder."""
    return path if not path or _ROOTED.match(path) else os.path.relpath(path, folder)


def has_scheme(path: str | Path) -> bool:
    """Whether a path has a scheme, as `file:/a`, `s3a://bucket/a` and `jdbc:h2:a` do. A single
    letter is none: it may be a drive."""
    return re.match(r"[a-z][a-z0-9+.-]+:", str(path), re.IGNORECASE) is not None


def is_local(path: str | Path) -> bool:
    """Whether Spark looks for a path on this machine, as far as that can be told before it starts:
    the path has no scheme, and nothing in the environment may name another store for such paths."""
    if has_scheme(path):
        return False
    return not any(os.environ.get(name) for name in _OF_CLUSTERS)


def hint_at_file(path: str | Path) -> str:
    """A hint at the file beside a missing one whose name is nearest; empty if none is near, and for
    a place with a scheme such as s3a:."""
    if has_scheme(path):
        return ""
    folder = Path(path).absolute().parent
    try:
        # By stems: files of one kind all end alike.
        near = did_you_mean(Path(path).stem, [each.stem for each in folder.iterdir()])
        return near and did_you_mean(Path(path).name, [each.name for each in folder.iterdir()])
    except OSError:
        return ""


def name_file(table: str) -> str:
    """A plain name for what is made of a table: the beginning of the name of its file."""
    name = PurePosixPath(table).name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "table"


def find_manifest_path(table: str) -> str:
    """The place of a table's manifest."""
    return f"{table}/_anonlib/manifest.json"


def find_dictionary_path(table: str) -> str:
    """The place of a table's data dictionary."""
    return f"{table}/_anonlib/dictionary.md"


def find_record_folder(table: str) -> str:
    """The folder of a table's private records, unless its config names another."""
    return f"{table.rstrip('/')}.private"


def find_record_path(folder: str, run_id: str) -> str:
    """The place of a run's private record in the folder of the records."""
    return f"{folder.rstrip('/')}/{run_id}.json"


def find_runs_folder(records: str) -> str:
    """The folder of the table of runs beside the private records, unless another one is named."""
    return f"{records.rstrip('/')}/runs"


def _map_paths(value: Any, keys: tuple[str, ...], change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value) if _is_path(keys) else value
    if isinstance(value, dict):
        return {key: _map_paths(each, (*keys, str(key)), change) for key, each in value.items()}
    if isinstance(value, list):
        return [_map_paths(each, (*keys, str(i)), change) for i, each in enumerate(value)]
    return value


def _is_path(keys: tuple[str, ...]) -> bool:
    return any(
        len(path) == len(keys) and all(p in ("*", k) for k, p in zip(keys, path, strict=True))
        for path in PATHS + SWEEP_PATHS
    )
