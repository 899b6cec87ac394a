"""Many releases in one driver; memory or threads that grow with their number are a leak.

    scripts/soak [--releases 200] [--to out/soak.jsonl]

Of every six releases of a small CSV table three publish (a new table, an append to one that lasts,
an overwrite), and three must fail: no feasible release, a gate, a table that exists already. After
each, both garbage collectors run, and the driver's two processes are measured. Growth is the median
of the last quarter over that of the second quarter; in the first, caches fill. Threads are counted
at the end of each quarter, after a rest in which idle threads of Spark's pools end; without it the
count would follow the queries of the last minute. At the end the table that lasts is audited.
Exit codes: 0 nothing grew, 1 something did.
"""

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anonlib
from anonlib import pipeline
from anonlib.errors import AnonlibError, GateError, InfeasibleError, InputError
from anonlib.spark.session import session
from tests.quick import INTERPRETED, quick

N_ROWS = 60
#: The fewest releases that can be judged: two rounds of six a quarter.
LEAST = 48
#: Idle threads of Spark's pools end after 60 s.
REST_SECONDS = 75


@dataclass(frozen=True)
class Measured:
    """A quantity: its unit, and how far the last quarter may be above the second. Growth is
    reported if it exceeds both the share and the absolute bound."""

    unit: str
    share: float
    least: float


LIMITS = {
    "python_rss": Measured("MB", 0.05, 10),
    "python_objects": Measured("", 0.02, 2_000),
    "python_files": Measured("", 0.0, 3),
    "python_threads": Measured("", 0.0, 2),
    "jvm_rss": Measured("MB", 0.15, 50),
    "jvm_heap": Measured("MB", 0.10, 10),
    "jvm_nonheap": Measured("MB", 0.10, 15),
    "jvm_files": Measured("", 0.05, 10),
    "jvm_threads": Measured("", 0.05, 10),
    "workers": Measured("", 0.0, 2),
    "temporary_files": Measured("", 0.0, 5),
    "local_files": Measured("", 0.0, 5),
    "delta_logs": Measured("", 0.0, 2),
    # Each append audits the whole table, which has a file more each time.
    "seconds": Measured("s", 0.25, 0.5),
}


def config(folder: Path, target: Path, **changes: Any) -> dict[str, Any]:
    quasi = {"role": "quasi_identifier"}
    release = {"path": str(target), "acknowledge_returning": True, "acknowledge_overwrite": True}
    base: dict[str, Any] = {
        "source": {
            "format": "csv",
            "path": str(folder / "table.csv"),
            "options": {"header": "true"},
        },
        "attributes": {
            "name": {"role": "identifier"},
            "wage": {**quasi, "scale": "continuous"},
            "city": {**quasi, "scale": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": "name",
        "privacy": {"models": [{"type": "k_anonymity", "k": changes.pop("k", 3)}]},
        "release": {**release, "mode": changes.pop("mode", "error")},
    }
    return {**base, **changes}


#: The six: what is changed, and the error that it ends with.
KINDS: tuple[tuple[dict[str, Any], type[AnonlibError] | None], ...] = (
    ({}, None),
    ({"mode": "append"}, None),
    ({"k": N_ROWS + 1, "mode": "overwrite"}, InfeasibleError),
    ({"mode": "overwrite"}, None),
    (
        {
            "mode": "overwrite",
            "evaluate": {"measures": ["reidentification"]},
            "gates": [{"figure": "reidentification.marketer", "at_most": 0.0}],
        },
        GateError,
    ),
    ({}, InputError),
)


def write_table(folder: Path) -> None:
    rows = (f"n{i},{20 + i * 37 % 50},c{i % 4},i{i % 5}" for i in range(N_ROWS))
    (folder / "table.csv").write_text("\n".join(["name,wage,city,illness", *rows, ""]))


def one(folder: Path, number: int) -> None:
    """Makes one release, and checks that it ends as expected. Every round has a target of its own,
    removed after the round, except for appends."""
    round_, kind = divmod(number, len(KINDS))
    changes, expected = KINDS[kind]
    target = folder / "out" / f"table{round_}"
    if changes.get("mode") == "append":
        target = lasting(folder)
        changes = changes if round_ else {}
    try:
        result = anonlib.release(anonlib.parse(config(folder, target, **dict(changes))))
    except AnonlibError as error:
        if expected is None or not isinstance(error, expected):
            raise
    else:
        if expected is not None or result.outcome != "published":
            raise AssertionError(f"release {number} should have failed")
    if kind == len(KINDS) - 1:
        shutil.rmtree(folder / "out")


def lasting(folder: Path) -> Path:
    """The table that is appended to."""
    return folder / "lasting" / "table"


def status(pid: int, field: str) -> int:
    """A number of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1])


def n_files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def n_children(pid: int) -> int:
    """Number of processes below one; threads and processes may end during the count."""
    found = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in (task / "children").read_text().split():
                    found += 1 + n_children(int(child))
    return found


def measure(spark: Any, folder: Path) -> dict[str, float]:
    jvm = spark._jvm
    jvm.java.lang.System.gc()
    gc.collect()
    pid, own = jvm.java.lang.ProcessHandle.current().pid(), os.getpid()
    delta = getattr(getattr(jvm, "org.apache.spark.sql.delta.DeltaLog$"), "MODULE$")
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    return {
        "python_rss": status(own, "VmRSS") / 1024,
        "python_objects": len(gc.get_objects()),
        "python_files": len([*Path(f"/proc/{own}/fd").iterdir()]),
        "python_threads": status(own, "Threads"),
        "jvm_rss": status(pid, "VmRSS") / 1024,
        "jvm_heap": memory.getHeapMemoryUsage().getUsed() / 2**20,
        "jvm_nonheap": memory.getNonHeapMemoryUsage().getUsed() / 2**20,
        "jvm_files": len([*Path(f"/proc/{pid}/fd").iterdir()]),
        "workers": n_children(pid),
        "temporary_files": n_files(folder / "temporary"),
        "local_files": n_files(folder / "local"),
        "delta_logs": delta.cacheSize(),
    }


def rested_threads(spark: Any) -> int:
    time.sleep(REST_SECONDS)
    return status(spark._jvm.java.lang.ProcessHandle.current().pid(), "Threads")


def judged(measures: list[dict[str, float]]) -> tuple[list[str], bool]:
    """The lines of a table, and whether a quantity grew."""
    quarter = len(measures) // 4
    parts = [measures[i * quarter : (i + 1) * quarter] for i in range(3)]
    parts.append(measures[3 * quarter :])
    lines = [f"{'median of quarter':18}{1:>10}{2:>10}{3:>10}{4:>10}   growth   allowed"]
    grew = False
    for name, limit in LIMITS.items():
        medians = [median(m[name] for m in part if name in m) for part in parts]
        growth, allowed = medians[3] - medians[1], max(limit.least, limit.share * medians[1])
        grew |= growth > allowed
        digits = 1 if limit.unit == "s" else 0
        numbers = "".join(f"{m:10,.{digits}f}" for m in medians)
        verdict = "  GROWS" if growth > allowed else ""
        lines.append(f"{name:18}{numbers}{growth:9,.1f}{allowed:10,.1f} {limit.unit}{verdict}")
    return lines, grew


def soak(n: int, folder: Path, note: Callable[[int, dict[str, float]], None]) -> list[Any]:
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "temporary")
    write_table(folder)
    settings = quick(folder)
    # With Spark's generated code: classes that are never unloaded would be a leak, too.
    spark = session({key: value for key, value in settings.items() if key not in INTERPRETED})
    measures: list[dict[str, float]] = []
    quarter = n // 4
    for number in range(n):
        started = time.monotonic()
        one(folder, number)
        measures.append({"seconds": time.monotonic() - started, **measure(spark, folder)})
        if number + 1 in (quarter, 2 * quarter, 3 * quarter, n):
            measures[-1]["jvm_threads"] = rested_threads(spark)
        note(number, measures[-1])
    table = lasting(folder)
    n_rows = spark.read.format("delta").load(str(table)).count()
    if n_rows != N_ROWS * -(-(n - 1) // len(KINDS)):
        raise AssertionError(f"the table that lasted has {n_rows} rows")
    if not pipeline.audit_delta(str(table), anonlib.parse(config(folder, table))).passed:
        raise AssertionError("the table that lasted does not pass its audit")
    spark.stop()
    return measures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--to", type=Path, default=Path("out/soak.jsonl"), help="all measures")
    args = parser.parse_args()
    if args.releases < LEAST:
        parser.error(f"--releases: at least {LEAST}, else nothing can be judged")
    args.to.parent.mkdir(parents=True, exist_ok=True)

    with args.to.open("w") as file, tempfile.TemporaryDirectory() as work:

        def note(number: int, measured: dict[str, float]) -> None:
            file.write(json.dumps({"release": number, **measured}) + "\n")
            file.flush()

        measures = soak(args.releases, Path(work), note)
    lines, grew = judged(measures)
    print("\n".join(lines))
    print(f"{len(measures)} releases: {'something grows' if grew else 'nothing grows'}")
    return 1 if grew else 0


if __name__ == "__main__":
    sys.exit(main())
