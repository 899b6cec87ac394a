"""Full-domain recoding of Adult's 30,162 complete rows with the hierarchies and quasi-identifiers
of ARX's own example: the kernel's node beside the best of all 6,480
nodes of the lattice, and the number of nodes that the kernel looks at.

    scripts/bench full_domain [--k 5 10] [--limits 0 0.02 0.1]

Every case is looked at by k-anonymity alone, and with distinct 2-diversity of salary-class. The
plain search groups the rows of every node with numpy, once for all cases.
"""

import argparse
from dataclasses import replace
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from kernels import DATA

from anonlib.arrays import GRID
from anonlib.kernels.full_domain import FullDomain
from anonlib.kernels.full_domain.search import HeightLattice, LatticeSearch
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block
from tests.arx import NAMES, adult


def cases(block: Block, ks: list[int], limits: list[float]) -> list[Block]:
    n = int(block.weight.sum())
    plain = replace(block, sensitive=block.sensitive[:, :0], protected=())
    found = []
    for k, limit in product(ks, limits):
        models = (KAnonymity(k=k),)
        found.append(replace(plain, models=models, may_suppress=int(limit * n)))
        diverse = (*models, LDiversity(l=2, attribute="salary-class"))
        found.append(replace(block, models=diverse, may_suppress=int(limit * n)))
    return found


def at_all_nodes(block: Block, given: list[Block]) -> list[tuple[int, int, tuple[int, ...]]]:
    """The best of each case: loss in steps, sum of heights, heights."""
    best: list[Any] = [(2**62, 0, ())] * len(given)
    weight = block.weight
    for heights in product(*(range(tree.heights[-1] + 1) for tree in block.trees)):
        key, left = np.zeros(block.n, np.int64), np.zeros(block.n, np.int64)
        for j, (tree, h) in enumerate(zip(block.trees, heights, strict=True)):
            node = tree.raised(block.nominal[:, j].astype(np.int64), h)
            key = key * len(tree.parent) + node
            left += np.rint((1 - tree.loss[node]) / GRID).astype(np.int64)
        id = np.unique(key, return_inverse=True)[1]
        by_label = [np.bincount(id, weight * (block.sensitive[:, 0] == c)) for c in (0, 1)]
        for i, case in enumerate(given):
            fails = sum(by_label) < case.min_rows
            if case.protected:
                fails = fails | (np.minimum(*by_label) == 0)
            lost = fails[id]
            if weight[lost].sum() <= case.may_suppress:
                kept = int(weight[~lost] @ left[~lost])
                loss = int(weight.sum()) * len(heights) * round(1 / GRID) - kept
                best[i] = min(best[i], (loss, sum(heights), heights))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--limits", type=float, nargs="+", default=[0.0, 0.02, 0.1])
    given = parser.parse_args()
    block = adult(DATA, NAMES)
    compared = cases(block, given.k, given.limits)
    began = perf_counter()
    expected = at_all_nodes(block, compared)
    plain = perf_counter() - began
    n = int(block.weight.sum())
    print(
        f"{n:,} rows, {block.n:,} distinct with the label; all nodes in {plain:.1f} s", flush=True
    )
    FullDomain().find(compared[0])  # compiles
    for case, (loss, _, heights) in zip(compared, expected, strict=True):
        began = perf_counter()
        search = LatticeSearch(HeightLattice(case))
        found = search.run()
        seconds = perf_counter() - began
        lost = loss * GRID / (n * len(heights))
        print(
            f"k {case.min_rows:2} {'l 2' if case.protected else '   '} "
            f"may suppress {case.may_suppress:5}  node {found} "
            f"{'as found among all' if (found, search.least) == (heights, loss) else 'DIFFERS'}  "
            f"loss {lost:.4f}  looked at {search.lattice.n_looks} of {search.floor.size} nodes "
            f"in {seconds:.3f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
