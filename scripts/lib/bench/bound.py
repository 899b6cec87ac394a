"""Lower bounds of the loss, and how far above them the cells of a kernel are: 100 SSE / SST.

    scripts/bench bound [--table tarragona census] [--k 3 5 10] [--effort 1]

CPU time is a multiple of that of refining, in the same run, which makes the cells; `--effort` is
that of `refine`.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from kernels import block
from refine import casc

from anonlib.kernels.refine import Refine
from anonlib.loss import ReleasedBlock
from anonlib.loss._bound import price_nearest
from anonlib.loss.sse import Sse
from anonlib.loss.sse_bound import SseBound


def once(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the CPU seconds."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", nargs="+", default=["tarragona", "census"])
    parser.add_argument("--k", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--effort", type=int, default=1)
    given = parser.parse_args()
    warm = block(np.random.default_rng(0).normal(size=(30, 2)), 3)  # compiles
    SseBound().update(ReleasedBlock(warm, Refine().cells(warm), 10))
    for name in given.table:
        for k in given.k:
            b, kernel = block(casc(name), k), Refine(effort=given.effort)
            cells, refining = once(lambda b=b, kernel=kernel: kernel.cells(b))
            released = ReleasedBlock(b, cells, int(cells.max()) + 1)
            state, seconds = once(lambda released=released: SseBound().update(released))
            total = ((b.numeric - b.numeric.mean(axis=0)) ** 2).sum()
            loss, bound = Sse().value(Sse().update(released)), SseBound().value(state)
            nearest = price_nearest(b.numeric, k).sum() / total
            print(f"{name:10} k = {k:2}  nearest {100 * nearest:7.3f}", end="  ")
            print(f"bound {100 * bound:7.4f}  refine {100 * loss:7.3f}", end="  ")
            print(
                f"{seconds:6.1f} s, {seconds / refining:6.1f}  {SseBound().describe(state)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
