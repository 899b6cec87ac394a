"""What refining gains: its loss above the least one of the run, and its CPU time as a multiple of
that of `mdav`, by effort. Tables: Tarragona, Census, `--rows` rows of Adult and normal ones.

    scripts/bench refine [--k 3 5 10] [--rows 10000] [--efforts 0 1 3 10 100]
        [--diverse] [--penalty]

With --diverse: every class has rows of both classes of the target, so that models judge steps.

With --penalty: 100 NCP of intervals, after descents and searches by squares, by the penalty, and by
one after the other, from several starts.
"""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from kernels import DATA, adult, block, loss, normal, seconds

from anonlib import registry
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.refine import Refine
from anonlib.loss import ReleasedBlock
from anonlib.loss.ncp import Ncp
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.shares import make_reference
from anonlib.table.block import Block


def casc(name: str) -> Any:
    return np.loadtxt(DATA / "casc" / f"{name}.csv", delimiter=",", skiprows=1)


def tables(rows: int) -> dict[str, Any]:
    people = adult()[0]
    some = np.sort(np.random.default_rng(0).permutation(len(people))[:rows])
    found = {name: casc(name) for name in ("tarragona", "census")}
    return found | {"adult": people[some], "normal": normal(rows)}


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


def diverse_block(x: Any, k: int) -> Block:
    """A block whose classes need both values of a sensitive column."""
    b = block(x, k)
    codes = (b.target > 0).astype(np.int32)
    return replace(
        b,
        sensitive=codes[:, None],
        protected=("class",),
        references={"class": make_reference(codes, 2)},
        models=(*b.models, LDiversity(l=2, attribute="class")),
    )


def print_efforts(name: str, b: Block, k: int, efforts: list[int]) -> None:
    kernels: dict[str, Any] = {"mdav": Mdav()}
    kernels |= {f"effort {effort}": Refine(effort=effort) for effort in efforts}
    costs = {label: seconds(lambda b=b, e=each: e.cells(b), 3) for label, each in kernels.items()}
    losses = {label: loss(b, each.cells(b)) for label, each in kernels.items()}
    line = "  ".join(
        f"{label} {100 * (losses[label] / min(losses.values()) - 1):4.1f} % "
        f"{cost / costs['mdav']:5.1f}"
        for label, cost in costs.items()
    )
    print(f"{name:10} k = {k:2}  {line}  least {min(losses.values()):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--efforts", type=int, nargs="+", default=[0, 1, 3, 10, 100])
    parser.add_argument("--diverse", action="store_true")
    parser.add_argument("--penalty", action="store_true")
    given = parser.parse_args()
    for name, x in tables(given.rows).items():
        for k in given.k:
            if given.penalty:
                print_penalties(name, x, k)
            else:
                make = diverse_block if given.diverse else block
                print_efforts(name, make(x, k), k, given.efforts)


if __name__ == "__main__":
    main()
