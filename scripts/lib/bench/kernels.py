"""Time and loss of kernels on one core. Times are CPU seconds, the best of a few repeats; both
sides of a ratio are measured in one run.

    scripts/bench kernels [mdav mondrian tables start memory] [--rows 20000 100000] [--repeat 3]

mdav: beside a plain compiled loop of the same algorithm; the cells must agree. mondrian: beside
numpy's sort of the same number of columns. tables: all kernels side by side. start: the first call
in a fresh process, with compiled code in the cache. memory: the peak above the memory before the
call, as a multiple of the block's numeric array.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference_kernels import mdav_loop

from anonlib.arrays import snap
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.merge import join_nearest, number_by_first_row
from anonlib.kernels.mondrian import Mondrian
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.registry import plugins
from anonlib.table.block import Block
from anonlib.table.encoding import mix

DATA = Path(os.environ.get("ANONLIB_DATA", Path(__file__).parents[4] / "shared" / "data"))
ADULT = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def block(x: Any, k: int, labels: Any = None) -> Block:
    """Standardized columns in canonical order; the target is of two classes, by default whether
    the first column and as much noise are positive together."""
    spread = x.std(axis=0)
    z = snap((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    if labels is None:
        labels = z[:, 0] + np.random.default_rng(0).normal(size=len(z)) > 0
    none = np.zeros((len(z), 0), np.int32)
    order = np.argsort(mix(z, none), kind="stable")
    return Block(
        numeric=np.ascontiguousarray(z[order]),
        nominal=none,
        sensitive=none,
        unit=None,
        widths=np.ptp(z, axis=0),
        n_categories=np.zeros(0, np.int64),
        models=(KAnonymity(k=k),),
        target=labels[order].astype(np.float64),
        n_classes=2,
    )


def normal(n: int, d: int = 8) -> Any:
    return np.random.default_rng(n).normal(size=(n, d))


def people(n: int) -> Any:
    """Eight columns with the ties and the skew of the generator's people."""
    random = np.random.default_rng(n)
    age = np.minimum(18 + random.gamma(2.5, 11, n), 99).astype(int)
    hours = np.where(random.random(n) < 0.5, 40, random.integers(1, 99, n))
    gain = np.where(random.random(n) < 0.9, 0, np.round(random.lognormal(8, 1.2, n)))
    loss = np.where(random.random(n) < 0.95, 0, np.round(random.normal(1800, 300, n)))
    others = [random.integers(0, 16, n), random.poisson(1.2, n), 97 * random.integers(0, 900, n)]
    return np.column_stack(
        [age, 365 * age + random.integers(0, 365, n), hours, gain, loss, *others]
    )


def adult() -> tuple[Any, Any]:
    table = pd.read_csv(DATA / "adult" / "adult_train.csv.gz")
    labels = table["income"].str.contains(">50K").to_numpy()
    return table[ADULT].to_numpy(np.float64), labels


def seconds(work: Callable[[], Any], repeat: int) -> float:
    """CPU seconds, the best of some; after a first call, which compiles and fills caches."""
    work()
    found = []
    for _ in range(repeat):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def loss(b: Block, ids: Any) -> float:
    """100 SSE / SST."""
    sums = np.column_stack([np.bincount(ids, column) for column in b.numeric.T])
    centroids = sums / np.bincount(ids)[:, None]
    total = ((b.numeric - b.numeric.mean(axis=0)) ** 2).sum()
    return float(100 * ((b.numeric - centroids[ids]) ** 2).sum() / total)


def mdav(given: argparse.Namespace) -> None:
    k, kernel = 10, Mdav()
    tables = {"adult": adult()[0]}
    for n in given.rows:
        tables |= {f"normal {n:,}": normal(n), f"people {n:,}": people(n)}
    for name, x in tables.items():
        b = block(x, k)
        plain = number_by_first_row(join_nearest(b, mdav_loop(b.numeric, k)))
        same = "the same cells" if (kernel.cells(b) == plain).all() else "OTHER CELLS"
        loop = seconds(lambda b=b: mdav_loop(b.numeric, k), given.repeat)
        ours = seconds(lambda b=b: kernel.cells(b), given.repeat)
        size = f"{x.shape[0]:>9,} x {x.shape[1]}"
        print(f"mdav  {name:15} {size}  loop {loop:7.3f} s  mdav {ours:7.3f} s", end="  ")
        print(f"{loop / ours:5.1f} times as fast, {same}", flush=True)


def mondrian(given: argparse.Namespace) -> None:
    n = given.mondrian_rows
    for name, x in {"normal": normal(n), "people": people(n)}.items():
        b = block(x, 10)
        columns = np.ascontiguousarray(b.numeric.T)
        sort = seconds(lambda columns=columns: [np.sort(each) for each in columns], given.repeat)
        for cut in ("median", "information_gain"):
            kernel = Mondrian(cut=cut)
            ours = seconds(lambda b=b, kernel=kernel: kernel.cells(b), given.repeat)
            print(f"mondrian  {name:7} {n:,} x {x.shape[1]}  {cut:16} {ours:6.2f} s", end="  ")
            print(f"{x.shape[1]} sorts {sort:5.2f} s  {ours / sort:5.1f} of them", flush=True)


def tables(given: argparse.Namespace) -> None:
    census = np.loadtxt(DATA / "casc" / "census.csv", delimiter=",", skiprows=1)
    x, labels = adult()
    for name, b in {
        "census": block(census, given.k),
        "normal": block(normal(10_000), given.k),
        "adult": block(x, given.k, labels),
    }.items():
        unit = seconds(lambda b=b: mdav_loop(b.numeric, given.k), given.repeat)
        print(f"{name} {b.n:,} x {b.numeric.shape[1]}, k = {given.k}; mdav loop {unit:.3f} s")
        for kind, plugin in plugins("kernel").items():
            kernel: Any = plugin()
            found = loss(b, kernel.cells(b))
            ours = seconds(lambda b=b, kernel=kernel: kernel.cells(b), given.repeat)
            share = f"{ours / unit:6.2f} of the loop"
            print(f"    {kind:13} loss {found:8.4f}  {ours:7.3f} s  {share}", flush=True)


FIRST_CALL = """
import sys, time
sys.path.insert(0, {folder!r})
from kernels import block, normal, plugins
kernel, b = plugins("kernel")[{kind!r}](), block(normal(64), 3)
begun = time.process_time()
kernel.cells(b)
print(time.process_time() - begun)
"""
PEAK = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from kernels import block, normal, plugins
def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])
kernel, b = plugins("kernel")[{kind!r}](), block(normal({rows}), 10)
kernel.cells(block(normal(64), 3))
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = kilobytes("VmRSS")
kernel.cells(b)
print(1024 * (kilobytes("VmHWM") - before) / b.numeric.nbytes)
"""


def elsewhere(code: str, **fields: Any) -> float:
    """The output of the code in a fresh process."""
    # Another name for this module than __main__, which has its own `plugins`.
    text = code.format(folder=str(Path(__file__).parent), **fields)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return float(done.stdout)


def start(given: argparse.Namespace) -> None:
    for kind in plugins("kernel"):
        elsewhere(FIRST_CALL, kind=kind)
        found = min(elsewhere(FIRST_CALL, kind=kind) for _ in range(given.repeat))
        print(f"start  {kind:13} {found:5.2f} s", flush=True)


def memory(given: argparse.Namespace) -> None:
    rows = max(given.rows)
    for kind in plugins("kernel"):
        found = elsewhere(PEAK, kind=kind, rows=rows)
        print(f"memory  {kind:13} {rows:,} x 8  {found:5.2f} arrays", flush=True)


PARTS = {part.__name__: part for part in (mdav, mondrian, tables, start, memory)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--mondrian-rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10, help="of the tables")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        PARTS[part](given)


if __name__ == "__main__":
    main()
