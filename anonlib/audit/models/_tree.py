"""The earth mover's distance along a hierarchy, from the counts below its nodes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonlib.audit.models import UnverifiableError
from anonlib.audit.models._shares import Shares
from anonlib.audit.view import View
from anonlib.folding import fold
from anonlib.hierarchy import Hierarchy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Edges:
    """The edges from the nodes of a tree to their parents, numbered as the nodes below them: the
    hierarchy's, the root last before a leaf for missing values.

    `length`: such that the way between two leaves is as long as their lowest common ancestor is
    high, the root at 1 (its own edge has length 0). `whole`: the share of the whole table below.
    `above`: by the rank of a value, the edges from it up to the root's.
    """

    length: list[float]
    whole: list[float]
    above: list[list[int]]


def tree_distances(
    hierarchy: Hierarchy, shares: Shares, rows: "DataFrame", view: View
) -> "DataFrame":
    """`n_rows` and `value` of every class in `rows`: the sum over all edges of length times the
    difference between the shares below, in the class and in the whole table.

    Raises UnverifiableError where the hierarchy lacks values of the column. Cost: a group for each
    class and node with rows below.
    """
    from pyspark.sql import functions as F

    reference = shares.reference(view)
    text = F.col("value").cast("string").alias("text")
    found = sorted(reference.select("rank", text, "q").collect())
    edges = make_edges(hierarchy, [row["text"] for row in found], [row["q"] for row in found])
    # Literals: exact, and quick to plan however long.
    above = F.from_json(F.lit(json.dumps(edges.above)), "array<array<int>>")
    parts = [list(pair) for pair in zip(edges.length, edges.whole, strict=True)]
    edge = F.get(F.from_json(F.lit(json.dumps(parts)), "array<array<double>>"), F.col("edge"))
    ranked = shares.ranked(rows, view, reference)
    below = ranked.select(*view.keys, "rows", F.explode(F.get(above, "rank")).alias("edge"))
    by_edge = below.groupBy(*view.keys, "edge").agg(F.sum("rows").alias("below"))
    entry = F.struct("below", F.get(edge, 0).alias("length"), F.get(edge, 1).alias("whole"))
    # All rows of a class are below the root.
    by_class = by_edge.groupBy(*view.keys).agg(
        F.max("below").alias("n_rows"), F.collect_list(entry).alias("entries")
    )
    # Edges without rows of the class count with all that the whole table has below them.
    start = F.lit(sum(length * whole for length, whole in parts))
    value = F.aggregate(
        "entries",
        start,
        lambda total, e: (
            total + e["length"] * (F.abs(e["below"] / F.col("n_rows") - e["whole"]) - e["whole"])
        ),
    )
    return by_class.select("n_rows", value.alias("value"))


def make_edges(hierarchy: Hierarchy, texts: Sequence[str | None], shares: Sequence[float]) -> Edges:
    """The edges above values, by their texts (None: missing) and their shares of the whole table.

    Raises UnverifiableError where a value is not in the hierarchy.
    """
    parent = [int(node) for node in hierarchy.tree.parent]
    root, missing = len(parent) - 1, len(parent)
    place = {hierarchy.names[leaf]: leaf for leaf in range(int(hierarchy.tree.high[root]))}
    leaves = [missing if text is None else place.get(fold(text), -1) for text in texts]
    if unknown := leaves.count(-1):
        raise UnverifiableError(f"the hierarchy lacks {unknown} values of the column")
    height = [0] * (missing + 1)
    for leaf in place.values():
        for steps, node in enumerate(_way_up(parent, leaf)):
            height[node] = max(height[node], steps)
    above = [[leaf, root] if leaf == missing else _way_up(parent, leaf) for leaf in leaves]
    whole = [0.0] * (missing + 1)
    for way, share in zip(above, shares, strict=True):
        for node in way:
            whole[node] += share
    climbs = [height[up] - height[node] for node, up in enumerate([*parent, root])]
    return Edges([climb / (2 * height[root]) for climb in climbs], whole, above)


def _way_up(parent: Sequence[int], node: int) -> list[int]:
    """A node and all above it."""
    way = [node]
    while parent[node] != node:
        node = parent[node]
        way.append(node)
    return way
