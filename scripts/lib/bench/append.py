"""What a batch costs beside what is published: seconds of an append to a table whose rows are known
by the record of the run that left them, and to the same table without that record, which reads all
of it again.

    scripts/bench append [--rows 500000 2000000] [--batch 50000] [--runs 3]

Both are measured in turn on one session, after one append that warms it up.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import yaml

import anonlib
from anonlib.spark.delta_files import forget
from anonlib.spark.session import session

QUICKSTART = Path(__file__).parents[3] / "conf" / "quickstart.yaml"


def config(folder: Path, rows: int, seed: int, mode: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(QUICKSTART.read_text())
    return {
        **{key: value for key, value in found.items() if key != "spark"},
        "source": {"format": "generator", "rows": rows, "seed": seed},
        "kernel": {"type": "mondrian"},
        "partition": {"steps": [{"type": "mondrian"}], "max_rows": 10000},
        "release": {
            "path": str(folder / "table"),
            "mode": mode,
            # Rows of the generator have no persons in common that a ledger could find.
            **({"acknowledge_returning": True} if mode == "append" else {}),
        },
    }


def append(spark: Any, start: Path, folder: Path, batch: int, *, known: bool) -> float:
    """Seconds of an append to a copy of the table in `start`, at the place that it was made for."""
    shutil.rmtree(folder)
    shutil.copytree(start, folder)
    forget(spark, str(folder / "table"))
    if not known:
        for path in (folder / "table.private").glob("*.json"):
            path.unlink()
    begun = time.perf_counter()
    result = anonlib.release(config(folder, batch, 2, "append"))
    seconds = time.perf_counter() - begun
    if result.audit is None or result.audit.by_batch != known:
        raise SystemExit("the append did not go the way that is measured")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000])
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    spark = session({"spark.driver.memory": "2g"})
    print(f"{'rows':>10} {'batch':>8} {'known, s':>9} {'read, s':>9} {'ratio':>6}", flush=True)
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as scratch:
            folder, start = Path(scratch) / "out", Path(scratch) / "start"
            anonlib.release(config(folder, rows, 1, "error"))
            shutil.copytree(folder, start)
            append(spark, start, folder, args.batch, known=True)
            seconds: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(args.runs):
                for known, found in seconds.items():
                    found.append(append(spark, start, folder, args.batch, known=known))
            own, all_ = median(seconds[True]), median(seconds[False])
            print(f"{rows:>10,} {args.batch:>8,} {own:>9.1f} {all_:>9.1f} {all_ / own:>6.2f}")


if __name__ == "__main__":
    main()
