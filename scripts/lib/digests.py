"""Digests of the rows that the shipped configs release, each as a multiset.

A config of `conf/` is released into a temporary folder; another library reads its Delta table.
For a sweep in `conf/papers/`, points of seed 0 are anonymized in memory, as the sweep does: at most
`--points` points of each case, evenly spread over its grid.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

import anonlib
from anonlib.errors import AnonlibError
from anonlib.spark.session import session
from anonlib.sweeps.file import load_sweep
from anonlib.sweeps.in_spark import _items
from anonlib.sweeps.point_work import _PointWork, _sample

ROOT = Path(__file__).parents[2]
CONFIGS = ["quickstart", "adult", "adult_hierarchies", "bank"]


def digest(table: pa.Table) -> str:
    """Equal for equal multisets of rows, whatever their order and that of the columns."""
    names = sorted(table.column_names)
    columns = [table.column(name).to_pylist() for name in names]
    rows = sorted(sha256(repr(row).encode()).digest() for row in zip(*columns, strict=True))
    return sha256(repr(names).encode() + b"".join(rows)).hexdigest()[:32]


def of_config(path: Path) -> str:
    """The line of a config that is released."""
    with tempfile.TemporaryDirectory(prefix="anonlib-digests-") as folder:
        places = [f"release.path={folder}/table", f"release.record={folder}/records"]
        anonlib.release(anonlib.load(path, [*places, "release.mode=error"]))
        table = DeltaTable(f"{folder}/table").to_pyarrow_table()
    return f"{path.relative_to(ROOT)} {table.num_rows} rows {digest(table)}"


def of_sweep(spark: Any, path: Path, n_points: int) -> Iterator[str]:
    """A line for each case of a sweep."""
    with tempfile.TemporaryDirectory(prefix="anonlib-digests-") as folder:
        tables, items = _items(spark, load_sweep(path, ["seeds=1", f"out={folder}/out"]))
    cases: dict[str, dict[str, Any]] = defaultdict(dict)
    for item in items:
        point = item.point
        release = repr((point.config, point.settings.sample, point.settings.controllers))
        cases[point.case].setdefault(release, item)  # points that differ in what is learned only
    for case, releases in cases.items():
        chosen = [*releases.values()][:: max(1, len(releases) // n_points)]
        yield f"{path.relative_to(ROOT)} {case} {len(chosen)} points {of_points(tables, chosen)}"


def of_points(tables: Sequence[pa.Table], items: Sequence[Any]) -> str:
    """The digest of the releases of these points; an infeasible point counts by its error."""
    whole = sha256()
    for item in items:
        table = _sample(item.point, tables[item.table], item.schema)
        try:
            made = _PointWork(item.point, table, item.schema, item.version)._anonymize(table)
        except AnonlibError as error:
            whole.update(type(error).__name__.encode())
            continue
        whole.update(digest(made.released).encode() + made.rows.tobytes())
    return whole.hexdigest()[:32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="CONFIG", help="all by default")
    parser.add_argument("--points", type=int, default=14, help="of each case of a sweep, at most")
    given = parser.parse_args()
    sweeps = sorted((ROOT / "conf" / "papers").glob("*.yaml"))
    paths = [path.resolve() for path in given.paths]
    paths = paths or [*(ROOT / "conf" / f"{name}.yaml" for name in CONFIGS), *sweeps]
    spark = session({"spark.driver.memory": "2g", "spark.master": "local[2]"})
    for path in paths:
        lines = of_sweep(spark, path, given.points) if path in sweeps else [of_config(path)]
        for line in lines:
            print(line, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
