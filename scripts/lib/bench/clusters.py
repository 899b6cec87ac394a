"""target_clusters beside k-means-constrained, which solves a min-cost flow at every step: sum of
squares within clusters, CPU seconds, and the clusters that k-means finds in the release.

    scripts/bench clusters [--only nursery bank customer] [--k 20] [--seeds 3]

Needs the package k-means-constrained, which anonlib does not depend on. Both use one start, the
same number of clusters, the same least size and the same distances; each data controller's rows are
clustered apart, as in `ta_da`.
"""

import argparse
import time
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from _ta_da.clusters import N_CONTROLLERS, agreement
from _ta_da.tables import SOURCES, cells, controllers, load
from threadpoolctl import threadpool_limits

from anonlib.arrays import Ints
from anonlib.partition import TaskPartitioner
from anonlib.partition.target_clusters import TargetClusters, find_points
from anonlib.table.block import Block

PACKAGE = "k_means_constrained"


def coordinates(points: Block) -> Any:
    """float64[n, f]: rows of different categories are at squared distance 1, as in kernels."""
    columns = zip(points.nominal.T, points.n_categories.tolist(), strict=True)
    indicators = [(codes[:, None] == np.arange(c)) * np.sqrt(0.5) for codes, c in columns]
    return np.column_stack([points.numeric, *indicators])


class Constrained(TaskPartitioner):
    """Constrained k-means by the package, by k-anonymity alone."""

    type: ClassVar[str] = "constrained"

    def parts(self, block: Block, seed: int) -> list[Ints]:
        from k_means_constrained import KMeansConstrained

        k = block.min_rows
        n_clusters = max(block.n // (2 * k), 1)
        model = KMeansConstrained(n_clusters, size_min=k, n_init=1, random_state=seed, n_jobs=1)
        label = model.fit_predict(coordinates(find_points(block, "mismatch")))
        return [np.flatnonzero(label == c) for c in range(n_clusters)]


class Watched(TaskPartitioner):
    """Another partitioner, with its seconds and its sum of squares."""

    type: ClassVar[str] = "watched"
    step: TaskPartitioner
    seconds: list[float]
    squares: list[float]
    sizes: list[int]

    def parts(self, block: Block, seed: int) -> list[Ints]:
        begun = time.process_time()
        found = self.step.parts(block, seed)
        self.seconds.append(time.process_time() - begun)
        x = coordinates(find_points(block, "mismatch"))
        self.squares.append(sum(((x[r] - x[r].mean(axis=0)) ** 2).sum() for r in found))
        self.sizes.extend(map(len, found))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*SOURCES], default=["nursery", "customer"])
    parser.add_argument("--k", type=int, nargs="+", default=[20])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    steps: list[TaskPartitioner] = [TargetClusters()]
    if find_spec(PACKAGE):
        steps.append(Constrained())
    else:
        print(f"no package {PACKAGE}: target_clusters alone")
    line("nursery", 50, 0, TargetClusters())  # so that all is compiled
    for name in given.only:
        for k in given.k:
            for seed in range(given.seeds):
                for step in steps:
                    with threadpool_limits(1):
                        print(line(name, k, seed, step), flush=True)


def line(name: str, k: int, seed: int, step: TaskPartitioner) -> str:
    table, watched = load(name), Watched(step=step, seconds=[], squares=[], sizes=[])
    owners = controllers(table.n, N_CONTROLLERS[name], seed)
    found = agreement(name, cells(table, owners, k, 1, [watched], seed), seed, seed)
    values = [found[f"{encoding}ari_from_raw"] for encoding in ("", "one_hot_")]
    sizes = f"{len(watched.sizes):5} of {min(watched.sizes)} to {max(watched.sizes)}"
    spent = f"SSE {sum(watched.squares):9.0f}  {sum(watched.seconds):8.2f} s"
    text = f"{name:9} k={k:<2} seed {seed}  {step.type:15} {sizes:18} {spent}"
    return text + "  ARI from raw {:.3f}, one-hot {:.3f}".format(*values)


if __name__ == "__main__":
    main()
