"""What the commits of a Delta log did with files, as the files of the log have it."""

import json
from collections.abc import Iterable
from typing import Any

from anonlib.spark.delta_files import read_commit
from anonlib.spark.storage import Storage

#: A kind of action, such as `add`, and what the log has of it.
Action = tuple[str, dict[str, Any]]


def read_actions(storage: Storage, table: str, version: int) -> list[Action] | None:
    """The actions of a version's commit; None if the log does not have them any more."""
    path = f"{table}/_delta_log/{version:020}.json"
    if version < 0 or not storage.exists(path):
        return None
    return [(kind, each) for line in read_commit(storage, path) for kind, each in line.items()]


def find_restored(storage: Storage, table: str, version: int) -> int:
    """The version whose files a RESTORE gave back: the newest one before it that had just the files
    that it left. -1 if the log does not tell.

    A RESTORE to a time notes a text in the time zone of whoever ran it, and a copy of a table has
    other times of its versions: its files tell it in any case.

    Cost: reads all commits before it that the log still has.

    Args:
        storage: The store of the table.
        table: The table.
        version: The version that the RESTORE made.
    """
    last = read_actions(storage, table, version)
    if last is None:
        return -1
    commits = [last]
    while (before := read_actions(storage, table, version - len(commits))) is not None:
        commits.insert(0, before)
    first = version - len(commits) + 1
    known = _find_known(commits) if first else frozenset[_File]()
    if known is None:
        return -1
    there = known
    states = [(first - 1, there)]
    for i, actions in enumerate(commits):
        there = _apply(there, actions)
        states.append((first + i, there))
    wanted = states.pop()[1]
    return next((own for own, files in reversed(states) if files == wanted), -1)


#: The path of a data file, and which of its rows are deleted.
_File = tuple[str, str]


def _apply(there: frozenset[_File], actions: Iterable[Action]) -> frozenset[_File]:
    """The files after a commit."""
    added = {_name(each) for kind, each in actions if kind == "add"}
    removed = {_name(each) for kind, each in actions if kind == "remove"}
    return (there - removed) | added if added or removed else there


def _find_known(commits: Iterable[Iterable[Action]]) -> frozenset[_File] | None:
    """The files before a log's first commits, of those that these tell of: a file that is removed
    was there. None where that is in doubt: a commit may add a file that is there, with other
    figures on it, and then says that no row was changed."""
    seen: set[_File] = set()
    there: set[_File] = set()
    for actions in commits:
        for kind, each in actions:
            if kind in ("add", "remove") and (name := _name(each)) not in seen:
                seen.add(name)
                if kind == "remove":
                    there.add(name)
                elif each["dataChange"] is False:
                    return None
    return frozenset(there)


def _name(file: dict[str, Any]) -> _File:
    vector = file.get("deletionVector") or {}
    return file["path"], json.dumps([vector.get(key) for key in ("pathOrInlineDv", "offset")])
