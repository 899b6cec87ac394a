"""What the tests on Spark share: a small table of marked values, its config, the command line in
this process or in one of its own, and ways to look at what a run leaves on the disk."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

import anonlib
from anonlib import cli
from anonlib.cli.progress_lines import LogProgress
from anonlib.run.scan import Scan, scan
from anonlib.source.resolved_source import open_source
from tests.quick import quick
from tests.spark.ui import SHOWN, save_pages
from tests.support import processes_of

ROOT = Path(__file__).parents[2]
#: In every text of `people`; numbers begin with NUMBER.
MARKER, NUMBER = "RAWVALUE", "9876543"
#: A JVM's start included, on a machine that may be very busy.
TIMEOUT = 900


def people(n: int = 60) -> pd.DataFrame:
    """Names (unique), wages, cities and illnesses, with ties; every value is marked."""
    return pd.DataFrame(
        {
            "name": [f"{MARKER}-name-{i}" for i in range(n)],
            "wage": [int(NUMBER) * 1000 + i * 37 % 50 for i in range(n)],
            "city": [f"{MARKER}-city-{i * i % 7 % 4}" for i in range(n)],
            "illness": [f"{MARKER}-illness-{i % 5}" for i in range(n)],
        }
    )


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    """The config of `people` as Parquet in `folder`, released to `folder`/out/table.

    Keys of `attributes` and `release` are added to; all else is replaced.
    """
    base: dict[str, Any] = {
        "source": {"format": "parquet", "path": str(folder / "people.parquet")},
        "attributes": {
            "name": {"role": "identifier"},
            "wage": {"role": "quasi_identifier", "scale": "continuous"},
            "city": {"role": "quasi_identifier", "scale": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": "name",
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": "l_diversity", "l": 2, "attribute": "illness"},
            ]
        },
        "release": {"path": str(folder / "out" / "table")},
        "seed": 7,
    }
    for key, value in changes.items():
        added = key in ("attributes", "release")
        base[key] = {**base[key], **value} if added else value
    return base


def write_people(folder: Path, frame: pd.DataFrame | None = None) -> None:
    (people() if frame is None else frame).to_parquet(folder / "people.parquet", index=False)


def write_config(folder: Path, config: Mapping[str, Any]) -> str:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True), "utf-8")
    return str(path)


def measure_methods(frame: DataFrame) -> int:
    """Bytes of the largest method that Spark generates for a query."""
    plan: Any = frame._jdf.queryExecution().executedPlan()
    package = getattr(frame.sparkSession._jvm.org.apache.spark.sql.execution.debug, "package$")
    stages = getattr(package, "MODULE$").codegenStringSeq(plan)
    return max(stages.apply(i)._3().maxMethodCodeSize() for i in range(stages.size()))


def multiset(frame: DataFrame) -> Counter[str]:
    """A table's rows, whatever the order of rows and columns."""
    found = frame.toPandas()
    return Counter(found[sorted(found.columns)].astype(str).agg("|".join, axis=1))


def forget_cached(spark: SparkSession) -> None:
    """Readers of another process have read no version of a table before."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def left(folder: Path) -> set[str]:
    """The names in a folder, if it is there."""
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def scan_of(spark: SparkSession, config: Mapping[str, Any], frame: DataFrame | None = None) -> Scan:
    """What a release finds before it writes anything, or the error that ends it there."""
    parsed = anonlib.parse(config)
    with closing(open_source(spark, parsed, frame)) as source:
        return scan(source, parsed)


# --- the command line in this process


@dataclass(frozen=True)
class Said:
    """What a run of the command line ended with."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """What stderr has besides the lines of progress, such as `12:00:00 scan: started`."""
        lines = self.err.splitlines(keepends=True)
        return "".join(line for line in lines if not re.match(r"\d\d:\d\d:\d\d ", line))


class Hooked(LogProgress):
    """Progress that calls back at moments such as "scan started" and "scan ended"."""

    def __init__(self, hooks: Mapping[str, Callable[[], None]]):
        super().__init__()
        self._hooks = hooks

    def started(self, name: str, spark: Any) -> None:
        super().started(name, spark)
        self._call(f"{name} started")

    def ended(self, name: str, seconds: float) -> None:
        super().ended(name, seconds)
        self._call(f"{name} ended")

    def _call(self, moment: str) -> None:
        if moment in self._hooks:
            self._hooks[moment]()


@dataclass
class Shell:
    """Runs `anonlib` on the tests' session. `hooks` are called at moments of the progress."""

    capsys: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch
    folder: Path

    def __call__(self, *argv: str, hooks: Mapping[str, Callable[[], None]] | None = None) -> Said:
        self.capsys.readouterr()
        with self.patch.context() as patch:
            patch.setattr(cli, "open_progress", lambda args: Hooked(hooks or {}))
            code = cli.main(argv)
        return Said(code, *self.capsys.readouterr())

    def release(self, config: Mapping[str, Any], *argv: str, **more: Any) -> Said:
        return self("release", write_config(self.folder, config), *argv, **more)


def start_from(shell: Shell, folder: Path, config: Mapping[str, Any], *argv: str) -> None:
    """A release of `config` to `folder`/out, to go on from: made once, then as it was then."""
    out, copy = folder / "out", folder / "copy"
    if copy.exists():
        shutil.rmtree(out)
        shutil.copytree(copy, out)
        forget_cached(SparkSession.getActiveSession())
    else:
        assert shell.release(config, *argv).code == 0
        shutil.copytree(out, copy)


# --- the command line in a process of its own


@dataclass
class Step:
    """A run of the command line, after `sql`; `send` goes to the process group at `moment`, or as
    soon as a file matches `seen` from then on."""

    argv: list[str]
    moment: str = ""
    send: int = 0
    seen: list[str] = field(default_factory=list)  # folder, pattern
    sql: str = ""


def process(
    folder: Path, steps: Iterable[Step], *, ui: bool = False, **env: str
) -> tuple[list[int], str, str]:
    """Runs steps one after the other in one new process with a session of its own, whose files
    are all below `folder`: exit codes, stdout, stderr. After a SIGKILL there is no further code.
    With `ui`, all that Spark's UI shows in the end is saved in the folder of that name. The JVM,
    which ends a little later and removes its files, is waited for."""
    for name in ("temporary", "local", "cwd", *["ui"] * ui):
        (folder / name).mkdir(parents=True)
    given = json.dumps([vars(step) for step in steps])
    path = os.pathsep.join(filter(None, [str(ROOT), env.pop("PYTHONPATH", "")]))
    places = {"PYTHONPATH": path, "TMPDIR": str(folder / "temporary")}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.support", str(folder), given],
            env={**os.environ, **places, **env},
            cwd=folder / "cwd",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            child.wait(TIMEOUT)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    _wait_for_processes(folder / "temporary")
    codes = folder / "codes"
    found = [int(line) for line in codes.read_text().split()] if codes.exists() else []
    texts = [(folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr")]
    return found, *texts


def installed(folder: Path, kernel: str, code: str) -> str:
    """A folder for PYTHONPATH with a kernel, as if its package were installed: its type, and the
    code of its module, where its class is the type with a capital."""
    about = folder / f"{kernel}-1.dist-info"
    about.mkdir(parents=True)
    (folder / f"{kernel}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {kernel}\nVersion: 1\n")
    entry = f"[anonlib.kernel]\n{kernel} = {kernel}:{kernel.capitalize()}\n"
    (about / "entry_points.txt").write_text(entry)
    return str(folder)


def _wait_for_processes(temporary: Path) -> None:
    """Waits for the driver, its JVM and workers, which are in sessions of their own."""
    end = time.monotonic() + TIMEOUT
    while processes_of(temporary):
        if time.monotonic() > end:
            raise TimeoutError("processes of the run do not end")
        time.sleep(0.05)


def _run_steps(folder: Path, steps: Iterable[Step]) -> None:
    from anonlib.spark.session import session

    pages = folder / "ui"
    spark = session(quick(folder) | (SHOWN if pages.exists() else {}))
    for step in steps:
        if step.sql:
            spark.sql(step.sql)
        hooks = {step.moment: lambda step=step: _signal(step)}
        cli.open_progress = lambda args, hooks=hooks: Hooked(hooks)
        code = cli.main(step.argv)
        with (folder / "codes").open("a") as file:
            file.write(f"{code}\n")
    if pages.exists():
        save_pages(spark, pages)


def _signal(step: Step) -> None:
    def wait() -> None:
        while not any(Path(step.seen[0]).rglob(step.seen[1])):
            time.sleep(0.005)
        _send(step.send)

    if step.seen:
        threading.Thread(target=wait, daemon=True).start()
    else:
        _send(step.send)


def _send(number: int) -> None:
    """Sends a signal to this process group. What nobody can survive also ends the JVM, which has a
    session of its own, before it sees that we are gone: a machine that dies."""
    jvm = SparkContext._gateway.proc if number == signal.SIGKILL else None
    if jvm is not None:
        os.killpg(jvm.pid, number)
    os.killpg(0, number)


# --- what is on the disk


def texts_in(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder; of Parquet files, the decoded columns as well."""
    found = {}
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".parquet" and data[-4:] == b"PAR1":  # else cut off by a kill
            data += str(pq.read_table(path).to_pydict()).encode()
        found[str(path.relative_to(folder))] = data
    return found


def holding(marker: str, folder: Path) -> list[str]:
    """The files below a folder that have the marker in them, in UTF-8 or UTF-16."""
    forms = [marker.encode(), marker.encode("utf-16-le"), marker.encode("utf-16-be")]
    return [name for name, data in texts_in(folder).items() if any(f in data for f in forms)]


if __name__ == "__main__":
    _run_steps(Path(sys.argv[1]), [Step(**step) for step in json.loads(sys.argv[2])])
