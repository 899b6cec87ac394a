"""Non-uniform entropy: the information that generalization removes."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject

#: There is no figure if the hierarchies of a table have more nodes in total. Every block reports
#: three numbers per node, and the driver holds the reports of all blocks at once.
MOST_NODES = 300


class Entropy(Metric):
    """Share of the information lost (non-uniform entropy): 0 nothing, 1 all.

    A value v released as node g loses -log2(f(v) / f(g)) bits, where f counts the rows of the whole
    table with a value at or under a node. Bits are summed over rows and nominal columns, and
    divided by the sum for a release of roots only. Released nodes and suppressed rows are those of
    `nllm`; rows with suppressed controllers count as if their values were spread as the others'.

    Reference: A. Gionis, T. Tassa, k-anonymization with minimal loss of information, IEEE TKDE
    21(2), 2009.

    State: n; further rows that have lost all; then, for each node of all columns, the rows with
    this value; then the rows released as each node; then the rows with a value at or under each
    node. Only n if there are more than MOST_NODES nodes.
    """

    type: ClassVar[str] = "entropy"
    subject: ClassVar[Subject] = "categories"
    meaning: ClassVar[str] = (
        "share of the information in categories that is gone; 0 to 1, more is worse"
    )
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
        parts = [[released.n, 0], *own, *as_node, *under]
        return np.concatenate(parts, dtype=np.float64)

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        added = state.copy()
        added[1:2] += n_rows  # not there with too many nodes
        return added

    def value(self, state: Floats) -> float | None:
        own, as_node, under = np.split(state[2:], 3)
        n, bits = max(state[0], 1.0), np.log2(np.maximum(under, 1.0))
        # Every row has a value, since missing is a value too. So n is f of every root.
        all_lost = float(own @ (np.log2(n) - bits))
        if all_lost <= 0:
            return None
        lost, further = float((as_node - own) @ bits) / all_lost, float(state[1])
        return float((lost * n + further) / (n + further))
