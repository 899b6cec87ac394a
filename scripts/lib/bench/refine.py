"""Loss and time of refining: 100 SSE / SST of MDAV, after the descents, and after a search.
CPU time is a multiple of a plain compiled MDAV loop in the same run, and includes the starts.

    scripts/bench refine [--k 3 5 10 50] [--rows 10000 30000 100000] [--effort 100] [--penalty]

A search runs on the two small tables only, in CPU seconds. With --penalty: 100 NCP of intervals,
after descents by squares, by the penalty, and by one after the other, from several starts.
"""

import argparse
from statistics import median
from typing import Any

import numpy as np
from kernels import DATA, adult, block, loss, mdav_loop, normal, seconds

from anonlib import registry
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.refine import Refine
from anonlib.loss import ReleasedBlock
from anonlib.loss.ncp import Ncp


def casc(name: str) -> Any:
    return np.loadtxt(DATA / "casc" / f"{name}.csv", delimiter=",", skiprows=1)


def tables(rows: list[int]) -> dict[str, Any]:
    found = {name: casc(name) for name in ("tarragona", "census")}
    return found | {"adult": adult()[0]} | {f"normal {n:,}": normal(n) for n in rows}


def penalty(b: Any, cells: Any) -> float:
    """100 NCP."""
    state = Ncp().update(ReleasedBlock(b, cells, int(cells.max()) + 1))
    return 100 * float(Ncp().value(state) or 0)


def print_penalties(name: str, x: Any, k: int) -> None:
    b = block(x, k)
    for start in ("mondrian", "mdav"):
        squares = {"type": "refine", "start": start, "loss": "sse"}
        kernels = {
            "start": registry.build("kernel", {"type": start}),
            "squares": Refine(start=start, loss="sse"),
            "penalty": Refine(start=start, loss="ncp"),
            "squares, then penalty": Refine(start=squares, loss="ncp"),
        }
        found = {label: penalty(b, kernel.cells(b)) for label, kernel in kernels.items()}
        line = "  ".join(f"{label} {value:6.3f}" for label, value in found.items())
        print(f"{name:15} k = {k:2}  {start:8}  {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=[3, 5, 10, 50])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--effort", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--penalty", action="store_true")
    given = parser.parse_args()
    if given.penalty:
        for name, x in tables(given.rows).items():
            for k in given.k:
                print_penalties(name, x, k)
        return
    lower, shares = [], []
    for name, x in tables(given.rows).items():
        for k in given.k:
            b = block(x, k)
            loop = seconds(lambda b=b, k=k: mdav_loop(b.numeric, k), given.repeat)
            losses, line = [], f"{name:15} k = {k:2}  loop {loop:7.3f} s"
            for label, kernel in (("mdav", Mdav()), ("descent", Refine())):
                cost = seconds(lambda b=b, kernel=kernel: kernel.cells(b), given.repeat)
                losses.append(loss(b, kernel.cells(b)))
                line += f"  {label} {losses[-1]:7.3f} {cost / loop:6.2f}"
            lower.append(100 * (1 - losses[1] / losses[0]))
            shares.append(cost / loop)
            line += f"  ({lower[-1]:.1f} % lower)"
            if name in ("tarragona", "census") and given.effort > 0:
                kernel = Refine(effort=given.effort)
                cost = seconds(lambda b=b, kernel=kernel: kernel.cells(b), 1)
                line += f"  search {loss(b, kernel.cells(b)):7.3f} {cost:6.2f} s"
            print(line, flush=True)
    print(f"descent, medians: {median(lower):.1f} % lower, {median(shares):.2f} of the loop's time")


if __name__ == "__main__":
    main()
