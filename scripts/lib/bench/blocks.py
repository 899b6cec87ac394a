"""Loss by block size: k-means blocks with mdav, and with refine, over plain MDAV on the whole
table.

    scripts/bench blocks [--tables normal-4 adult ...] [--sizes 1000 3000 10000 30000] [--k 10]
        [--results out/bench/blocks.jsonl]

Resumable: results in the file are not measured again.
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
from _ta_da.plots import line, svg, text
from kernels import DATA, adult, block, loss, normal, people

from anonlib.kernels.mdav import Mdav
from anonlib.kernels.refine import Refine
from anonlib.partition.chain import FILL, cut_blocks
from anonlib.partition.kmeans import KMeansPartitioner
from anonlib.table.block import Block, part


def census_income_kdd(n: int = 100_000) -> Any:
    """The numeric columns of n random rows."""
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
    """The cells of a kernel in k-means blocks of about this many rows."""
    place = np.random.default_rng(0).permutation(b.n)
    ids, n_cells = np.empty(b.n, np.int64), 0
    for members in cut_blocks(b, [KMeansPartitioner()], int(rows / FILL), 0, place):
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
    draw(done, given.sizes, given.results.with_suffix(".svg"))


def draw(done: dict[tuple[str, int, str, int], float], sizes: list[int], path: Path) -> None:
    """A picture: by block size, the loss over that of plain MDAV on the whole table."""
    names = list(dict.fromkeys(table for table, _, _, _ in done))
    wide, parts = 210, [svg(210 * len(names), 200)]
    for i, name in enumerate(names):
        (plain,) = (v for (t, _, _, size), v in done.items() if t == name and not size)
        left, low, high = wide * i + 45, -20.0, 60.0

        def y(more: float, low: float = low, high: float = high) -> float:
            return 160 - 130 * (more - low) / (high - low)

        parts.append(text(left, 18, name))
        for tick in range(-20, 61, 20):
            color = "black" if tick == 0 else "#e5e5e5"
            parts += [line(left, y(tick), left + 150, y(tick), color)]
            parts += [text(left - 5, y(tick) + 4, f"{tick:+} %", "end")]
        for at, size in enumerate(sizes):
            parts.append(text(left + 15 + 40 * at, 176, f"{size // 1000}k", "middle"))
        for kernel, color in {"mdav": "#1f5fa8", "refine": "#e07b00"}.items():
            found = {s: v for (t, _, n, s), v in done.items() if (t, n) == (name, kernel) and s}
            at = [
                (left + 15 + 40 * sizes.index(s), y(100 * (v / plain - 1)))
                for s, v in found.items()
            ]
            corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in sorted(at))
            shape = f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="2"/>'
            parts += [shape, text(left + (0 if kernel == "mdav" else 60), 194, kernel)]
            parts.append(
                line(
                    left + (32 if kernel == "mdav" else 98),
                    190,
                    left + (52 if kernel == "mdav" else 118),
                    190,
                    color,
                    2,
                )
            )
    path.write_text("\n".join([*parts, "</svg>"]), encoding="utf-8")


KERNELS: dict[str, Any] = {"mdav": Mdav(), "refine": Refine()}

if __name__ == "__main__":
    main()
