"""Runs the command line in a process of its own, and looks at what can be seen meanwhile: staging,
pages of Spark's UI, command lines of processes."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from anonlib import cli
from anonlib.spark.session import session
from tests.spark.support import Hooked
from tests.spark.ui import save_pages


def main(folder: Path, settings: dict[str, str], lines: Sequence[list[str]]) -> None:
    """Runs each command line, under a mask that forbids nothing, and notes its exit code."""
    os.umask(0)
    spark = session(settings)
    seen = folder / "seen"
    seen.mkdir()
    hooks = {
        "scan started": lambda: _commands(seen),
        "audit ended": lambda: _files(folder, seen),
    }
    cli.open_progress = lambda args: Hooked(hooks)
    with (folder / "codes").open("w") as codes:
        for line in lines:
            codes.write(f"{cli.main(line)}\n")
    save_pages(spark, seen)
    spark.stop()


def _commands(seen: Path) -> None:
    """The command lines of this process, its children and theirs."""
    family, found = {os.getpid()}, []
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            text = (path / "cmdline").read_text(errors="replace")
        except OSError:  # it has ended
            continue
        if parent in family or int(path.name) in family:
            family.add(int(path.name))
            found.append(text.replace("\0", " "))
    (seen / "commands").write_text("\n".join(found))


def _files(folder: Path, seen: Path) -> None:
    """What is staged, and Spark's own files."""
    for place in ((folder / "out").glob("_*.anonlib"), [folder / "local", folder / "temporary"]):
        for each in place:
            with suppress(shutil.Error):  # some vanish meanwhile
                shutil.copytree(each, seen / each.name, dirs_exist_ok=True)


if __name__ == "__main__":
    # Not as arguments: these are looked at, too.
    main(Path(sys.argv[1]), *json.load(sys.stdin))
