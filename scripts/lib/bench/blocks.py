"""What blocks cost: the loss of k-means blocks, then mdav, then refine, over that of plain MDAV on
the whole table, by block size.

    scripts/bench blocks [--tables normal-4 adult ...] [--sizes 1000 3000 10000 30000] [--k 10]
        [--results out/bench/blocks.jsonl]

Resumable: what is in the results is not measured again.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from kernels import DATA, adult, block, loss, normal, people

from anonlib.block import Block
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.refine import Refine
from anonlib.partition._bisect import part
from anonlib.partition._chain import FILL, blocks
from anonlib.partition.kmeans import KMeans


def census_income_kdd(n: int = 100_000) -> Any:
    """The numbers of the first rows in an order of chance."""
    table = pd.read_csv(DATA / "census_income_kdd" / "census_income_kdd_train.csv.gz")
    numbers = table.select_dtypes("number")
    varied = numbers.loc[:, numbers.nunique() > 20]
    return varied.sample(n, random_state=0).to_numpy(np.float64)


TABLES: dict[str, Callable[[], Any]] = {
    "normal-4": lambda: normal(100_000, 4),
    "normal-8": lambda: normal(100_000, 8),
    "people-8": lambda: people(100_000),
    "adult": lambda: adult()[0],
    "census-income-kdd": census_income_kdd,
}


def in_blocks(b: Block, kernel: Any, rows: int) -> Any:
    """The cells of a kernel in k-means blocks of about so many rows."""
    place = np.random.default_rng(0).permutation(b.n)
    ids, n_cells = np.empty(b.n, np.int64), 0
    for members in blocks(b, [KMeans()], int(rows / FILL), 0, place):
        found = kernel.cells(part(b, members))
        ids[members] = found + n_cells
        n_cells += int(found.max()) + 1
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10_000, 30_000])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("out/bench/blocks.jsonl"))
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    done = {(r["table"], r["k"], r["kernel"], r["size"]): r["loss"] for r in map(json.loads, lines)}
    for name in given.tables:
        b = block(TABLES[name](), given.k)
        print(f"{name} {b.n:,} x {b.numeric.shape[1]}, k = {given.k}", flush=True)
        plain = None
        cases = [("mdav", Mdav(), 0)]
        cases += [(n, k, s) for s in given.sizes for n, k in KERNELS.items() if s < b.n]
        for kernel, plugin, size in cases:
            key = (name, given.k, kernel, size)
            if key not in done:
                ids = in_blocks(b, plugin, size) if size else plugin.cells(b)
                done[key] = loss(b, ids)
                row = dict(zip(("table", "k", "kernel", "size"), key, strict=True))
                with given.results.open("a") as file:
                    file.write(json.dumps({**row, "loss": done[key]}) + "\n")
            plain = done[key] if plain is None else plain
            where = f"blocks of {size:>6,}" if size else "the whole table "
            more = 100 * (done[key] / plain - 1)
            print(f"    {kernel:13} {where}  loss {done[key]:8.4f}  {more:+6.2f} %", flush=True)


KERNELS: dict[str, Any] = {"mdav": Mdav(), "mdav, refine": Refine()}

if __name__ == "__main__":
    main()
