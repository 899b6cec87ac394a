"""What an integer program makes of the cells of many searches: it picks those that hold each row
once and lose least. Beside it, one search with as many upsets as all of them.

    scripts/bench set_partition [--k 3 5 10] [--searches 20] [--effort 3] [--limit 60]

Losses are 100 SSE / SST, times CPU seconds. A program that ends by the limit has `?`.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from kernels import block, loss
from refine import casc
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_matrix

from anonlib.kernels import refine
from anonlib.kernels.refine import Refine


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    return work(), time.process_time() - begun


def search(b: Any, effort: int, seed: int) -> Any:
    with mock.patch.object(refine, "SEED", refine.SEED + 7919 * seed):
        return Refine(effort=effort).cells(b)


def list_cells(ids: Any) -> list[tuple[int, ...]]:
    ends = np.cumsum(np.bincount(ids))[:-1]
    return [tuple(rows) for rows in np.split(np.argsort(ids, kind="stable"), ends)]


def pick(x: Any, cells: list[tuple[int, ...]], limit: float) -> tuple[float, bool]:
    """The least loss of those cells that hold each row once, and whether that is proven."""
    lost = np.array([((x[list(rows)] - x[list(rows)].mean(axis=0)) ** 2).sum() for rows in cells])
    column = np.repeat(np.arange(len(cells)), [len(rows) for rows in cells])
    row = np.concatenate([np.array(rows) for rows in cells])
    held = csc_matrix((np.ones(len(row)), (row, column)), shape=(len(x), len(cells)))
    found = milp(
        lost,
        constraints=LinearConstraint(held, 1, 1),
        integrality=np.ones(len(cells)),
        bounds=Bounds(0, 1),
        options={"time_limit": limit},
    )
    total = ((x - x.mean(axis=0)) ** 2).sum()
    return 100 * found.fun / total if found.x is not None else np.nan, found.status == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--effort", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60)
    given = parser.parse_args()
    for name in ("tarragona", "census"):
        for k in given.k:
            b = block(casc(name), k)
            search(b, 1, 0)  # compiles
            every, cost = timed(
                lambda b=b: [search(b, given.effort, s) for s in range(given.searches)]
            )
            cells = list(dict.fromkeys(rows for ids in every for rows in list_cells(ids)))
            (least, proven), more = timed(lambda b=b, c=cells: pick(b.numeric, c, given.limit))
            long, alone = timed(lambda b=b: search(b, given.effort * given.searches, 0))
            best = min(loss(b, ids) for ids in every)
            line = f"{name:9} k = {k:2}  best search {best:7.3f} {cost:5.2f} s  "
            line += f"picked {least:7.3f}{' ' if proven else '?'} {more:6.2f} s  "
            print(f"{line}one search {loss(b, long):7.3f} {alone:5.2f} s", flush=True)


if __name__ == "__main__":
    main()
