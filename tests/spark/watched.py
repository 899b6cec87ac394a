"""Runs the command line in a process of its own, and looks at what can be seen meanwhile: staging,
pages of Spark's UI, command lines of processes."""

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession

from anonlib import cli
from anonlib.spark.session import session
from tests.spark.support import Hooked

#: Pages of the UI, below the application's, that have no parameters.
PAGES = ("environment/", "jobs/", "stages/", "storage/", "executors/", "SQL/")
#: The same of the REST API, below the application.
ANSWERS = ("environment", "jobs", "stages?details=true", "storage/rdd", "allexecutors")


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
    cli.progress_of = lambda args: Hooked(hooks)
    with (folder / "codes").open("w") as codes:
        for line in lines:
            codes.write(f"{cli.main(line)}\n")
    _pages(spark, seen)
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


def _pages(spark: SparkSession, seen: Path) -> None:
    """All pages of the UI and all answers of its REST API, those of every query included."""
    base = spark.sparkContext.uiWebUrl
    api = f"{base}/api/v1/applications/{spark.sparkContext.applicationId}"
    queries = "sql?details=true&planDescription=true&length=10000"
    addresses = [*(f"{base}/{page}" for page in PAGES), *(f"{api}/{each}" for each in ANSWERS)]
    addresses.append(f"{api}/{queries}")
    for address in addresses:
        name = re.sub(r"\W+", "-", address.removeprefix(api).removeprefix(base)).strip("-")
        kind = "answer" if address.startswith(api) else "page"
        (seen / f"{kind}-{name}").write_bytes(_get(address))
    ids = [query["id"] for query in json.loads(_get(addresses[-1]))]
    for id in ids:
        (seen / f"query-{id}").write_bytes(_get(f"{base}/SQL/execution/?id={id}"))
    (seen / "n_queries").write_text(str(len(ids)))


def _get(address: str) -> bytes:
    if not re.match(r"http://(127\.0\.0\.1|localhost):", address):
        raise ValueError("the UI is on loopback only")
    with urlopen(address, timeout=60) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    # Not as arguments: these are looked at, too.
    main(Path(sys.argv[1]), *json.load(sys.stdin))
