"""Non-uniform entropy: the information that generalization takes away."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock

#: Tables whose hierarchies have more nodes than that together have no figure: every block reports
#: three numbers for each, and the driver has the reports of all blocks at once.
MOST_NODES = 300


class Entropy(Metric):
    """The bits that it takes to know the values again, over those it would take if all were
    released as roots: 0 nothing lost, 1 all.

    A value v that is released as node g costs -log2(f(v) / f(g)), f being how many rows of the
    whole table have values under a node; summed over rows and nominal columns. Which node counts,
    and suppressed rows, as for `nllm`. Reference: A. Gionis, T. Tassa, k-anonymization with minimal
    loss of information, IEEE TKDE 21(2), 2009.

    State: the rows, then for each node of all columns the rows whose value it is, those released as
    it, and those under it. The rows alone where there are more than MOST_NODES nodes.
    """

    type: ClassVar[str] = "entropy"
    undefined: ClassVar[str] = (
        "no nominal quasi-identifier varies, or their hierarchies have more than "
        f"{MOST_NODES:,} nodes together"
    )

    def update(self, released: ReleasedBlock) -> Floats:
        block = released.block
        own, as_node, under = [], [], []
        for j, tree in enumerate(released.trees):
            nodes = len(tree.parent)
            rows = np.bincount(block.nominal[:, j], released.weight, nodes).astype(np.float64)
            below = np.append(0.0, np.cumsum(rows))
            own.append(rows)
            as_node.append(np.bincount(released.nodes[j], released.rows, nodes))
            as_node[-1][-1] += released.n_suppressed
            under.append(below[tree.high] - below[tree.low])
        if sum(map(len, own)) > MOST_NODES:
            return np.array([released.n], np.float64)
        parts = [[released.n], *own, *as_node, *under]
        return np.concatenate(parts, dtype=np.float64)

    def value(self, state: Floats) -> float | None:
        own, as_node, under = np.split(state[1:], 3)
        n, bits = max(state[0], 1.0), np.log2(np.maximum(under, 1.0))
        # No row is without its value: log2 f(v) counts for every row, so does log2 n for the roots.
        all_lost = float(own @ (np.log2(n) - bits))
        return float((as_node - own) @ bits) / all_lost if all_lost > 0 else None
