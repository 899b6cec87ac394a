"""t-closeness of a released table, with the earth mover's distance also along a hierarchy."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.auditing.class_counts import (
    ClassCounts,
    Entries,
    Floats,
    Ints,
    ValueCounts,
    sum_by_class,
)
from anonlib.auditing.models import Measures, UnverifiableError
from anonlib.auditing.models._shares import Shares, SharesAudit
from anonlib.auditing.view import View
from anonlib.hierarchy import Hierarchy
from anonlib.text import fold_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The most shares that the ordered distance holds at once in memory.
MAX_CELLS = 2**20


class TClosenessAudit(SharesAudit):
    """Measures the earth mover's distance of `attribute` in every class from the whole table.

    The ordered distance costs O(classes * values). The hierarchical distance needs the hierarchy of
    the column, and counts the persons of each class below every node.
    """

    type: ClassVar[str] = "t_closeness"
    t: float = Field(gt=0, le=1)
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"

    @property
    def required(self) -> float:
        return self.t

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        order = view.orders.get(self.attribute, ()) if self.distance == "ordered" else ()
        shares = Shares(view.sensitive[self.attribute], order)
        if self.distance == "hierarchical":
            if self.attribute not in view.hierarchies:
                raise UnverifiableError(f"the hierarchy of column {self.attribute} is not given")
            return measure_tree_distances(view.hierarchies[self.attribute], shares, rows, view)
        found, reference = shares.against(rows, view)
        if self.distance == "equal":
            more = F.transform("entries", lambda e: F.greatest(e["p"] - e["q"], F.lit(0.0)))
            value = F.aggregate(more, F.lit(0.0), lambda total, x: total + x)
            return found.select("n_rows", value.alias("value"))
        # Without an order, values stay in Spark: Python has no dates after 9999.
        ranked = reference.select("rank", "q", *["value"] * bool(order)).collect()
        known = {*order, None}
        if order and (unknown := sum(row["value"] not in known for row in ranked)):
            raise UnverifiableError(
                f"the order of column {self.attribute} lacks {unknown} of its values"
            )
        whole = [row["q"] for row in sorted(ranked, key=lambda row: row["rank"])]
        text = ",".join(map(repr, whole))  # one literal: exact, and quicker to plan than an array
        shares_of_all = F.split(F.lit(text), ",").cast("array<double>")
        value = _running(shares_of_all) / max(1, len(whole) - 1)
        return found.select("n_rows", value.alias("value"))

    def measure(self, counts: ClassCounts) -> Measures:
        column = counts.columns[self.attribute]
        found = column.entries()
        if self.distance == "equal":
            more = np.maximum(found.p - found.q, 0.0)
            return sum_by_class(found.place, more, column.n_classes)
        if self.distance == "ordered":
            places = _places(column, counts.orders.get(self.attribute, ()), self.attribute)
            return _ordered_distances(found, places, column.n_classes)
        if self.attribute not in counts.hierarchies:
            raise UnverifiableError(f"the hierarchy of column {self.attribute} is not given")
        if column.texts is None:
            raise UnverifiableError(f"values of column {self.attribute} have no texts")
        texts = [*column.texts, *[None] * (len(found.whole) - len(column.texts))]
        edges = make_edges(counts.hierarchies[self.attribute], texts, found.whole.tolist())
        return _tree_distances(found, edges, column.n_classes)


def _places(column: ValueCounts, order: tuple[str, ...], attribute: str) -> Ints:
    """The place of each value, missing included, in the order of the column."""
    own = np.arange(len(column.whole) + 1)
    if not order:
        return own
    place = {text: i for i, text in reversed([*enumerate(order)])}
    found = [place.get(text, -1) for text in column.texts or [""] * len(column.whole)]
    if unknown := found.count(-1):
        raise UnverifiableError(f"the order of column {attribute} lacks {unknown} of its values")
    own[np.argsort(np.array(found), kind="stable")] = np.arange(len(found))
    return own


def _ordered_distances(entries: Entries, places: Ints, n_classes: int) -> Floats:
    """The mean absolute running difference between each class and the whole table."""
    n_values = len(entries.whole)
    whole = np.empty(n_values)
    whole[places[:n_values]] = entries.whole
    at_place = places[entries.rank]
    order = np.argsort(entries.place, kind="stable")
    step = max(1, MAX_CELLS // max(1, n_values))
    bounds = np.searchsorted(entries.place[order], np.arange(0, n_classes + step, step))
    values = np.zeros(n_classes)
    for i, start in enumerate(range(0, n_classes, step)):
        some = order[bounds[i] : bounds[i + 1]]
        shares = np.zeros((min(step, n_classes - start), n_values))
        shares[entries.place[some] - start, at_place[some]] = entries.p[some]
        running = np.cumsum(shares - whole, axis=1)
        values[start : start + len(shares)] = np.abs(running).sum(axis=1)
    return values / max(1, n_values - 1)


def _tree_distances(entries: Entries, edges: "Edges", n_classes: int) -> Floats:
    """The same as `measure_tree_distances`, in memory. A class without persons has no value."""
    n_edges = len(edges.length)
    length, whole = np.array(edges.length), np.array(edges.whole)
    n_above = np.array([len(way) for way in edges.above], np.int64)
    above = np.array([edge for way in edges.above for edge in way], np.int64)
    first = np.cumsum(n_above) - n_above
    times = n_above[entries.rank]
    entry = np.repeat(np.arange(len(times)), times)
    step = np.arange(len(entry)) - (np.cumsum(times) - times)[entry]
    keys = entries.place[entry] * n_edges + above[first[entries.rank[entry]] + step]
    pairs, pair = np.unique(keys, return_inverse=True)
    below = np.bincount(pair, entries.p[entry], len(pairs))
    place, edge = np.divmod(pairs, n_edges)
    change = length[edge] * (np.abs(below - whole[edge]) - whole[edge])
    values = (length * whole).sum() + sum_by_class(place, change, n_classes)
    return np.where(np.bincount(entries.place, minlength=n_classes) > 0, values, np.nan)


def _running(whole: "Column") -> "Column":
    """The sum of the absolute running differences between a class and the whole table.

    One walk over all values, with a pointer into the sorted values of the class.
    """
    from pyspark.sql import functions as F

    own = F.array_sort(F.transform("entries", lambda e: F.struct(e["rank"], e["p"])))
    start = F.struct(
        F.lit(0).alias("next"),
        F.lit(0.0).alias("running"),
        F.lit(0.0).alias("total"),
        own.alias("own"),
    )

    def step(state: "Column", pair: "Column") -> "Column":
        entry = F.get(state["own"], state["next"])
        here = F.coalesce(entry["rank"] == pair["rank"], F.lit(False))
        running = state["running"] + F.when(here, entry["p"]).otherwise(F.lit(0.0)) - pair["q"]
        return F.struct(
            (state["next"] + here.cast("int")).alias("next"),
            running.alias("running"),
            (state["total"] + F.abs(running)).alias("total"),
            state["own"].alias("own"),
        )

    pairs = F.transform(whole, lambda q, i: F.struct(i.alias("rank"), q.alias("q")))
    return F.aggregate(pairs, start, step)["total"]


@dataclass(frozen=True)
class Edges:
    """The edges of a tree, each from a node to its parent. An edge has the number of its node.

    The nodes are those of the hierarchy and, after the root, a leaf for missing values. The root
    has an edge of length 0.

    Attributes:
        length: By edge: its length. The way between two leaves is as long as the height of their
            lowest common ancestor, if the root has height 1.
        whole: By edge: the share of the whole table below it.
        above: By rank of a value: the edges from its leaf up to the root, with the root's edge.
    """

    length: list[float]
    whole: list[float]
    above: list[list[int]]


def measure_tree_distances(
    hierarchy: Hierarchy, shares: Shares, rows: "DataFrame", view: View
) -> "DataFrame":
    """Measures the distance of each class from the whole table along a hierarchy.

    It is the sum over all edges of length times the absolute difference between the shares below
    the edge, in the class and in the whole table. Cost: one group per class and node with rows
    below it.

    Returns:
        `n_rows` and `value` of each class in `rows`.

    Raises:
        UnverifiableError: The hierarchy lacks values of the column.
    """
    from pyspark.sql import functions as F

    reference = shares.reference(view)
    text = F.col("value").cast("string").alias("text")
    found = sorted(reference.select("rank", text, "q").collect())
    edges = make_edges(hierarchy, [row["text"] for row in found], [row["q"] for row in found])
    # Literals are exact, and quick to plan even if they are long.
    above = F.from_json(F.lit(json.dumps(edges.above)), "array<array<int>>")
    parts = [list(pair) for pair in zip(edges.length, edges.whole, strict=True)]
    edge = F.get(F.from_json(F.lit(json.dumps(parts)), "array<array<double>>"), F.col("edge"))
    ranked = shares.ranked(rows, view, reference)
    below = ranked.select(*view.keys, "n", "rows", F.explode(F.get(above, "rank")).alias("edge"))
    sums = F.sum("n").alias("below"), F.sum("rows").alias("rows")
    by_edge = below.groupBy(*view.keys, "edge").agg(*sums)
    entry = F.struct("below", F.get(edge, 0).alias("length"), F.get(edge, 1).alias("whole"))
    # All rows of a class are below the root.
    by_class = by_edge.groupBy(*view.keys).agg(
        F.max("rows").alias("n_rows"),
        F.max("below").alias("total"),
        F.collect_list(entry).alias("entries"),
    )
    # `start` assumes that the class has no rows below any edge. Edges with rows correct that.
    start = F.lit(sum(length * whole for length, whole in parts))
    value = F.aggregate(
        "entries",
        start,
        lambda total, e: (
            total
            + e["length"]
            * (F.abs(F.try_divide(e["below"], F.col("total")) - e["whole"]) - e["whole"])
        ),
    )
    return by_class.select("n_rows", value.alias("value"))


def make_edges(hierarchy: Hierarchy, texts: Sequence[str | None], shares: Sequence[float]) -> Edges:
    """Makes the edges of a hierarchy for the values of a column.

    Args:
        hierarchy: The hierarchy, with folded names.
        texts: By rank: the text of each value; None for missing.
        shares: By rank: the share of each value in the whole table.

    Raises:
        UnverifiableError: A value is not in the hierarchy.
    """
    parent = [int(node) for node in hierarchy.tree.parent]
    root, missing = len(parent) - 1, len(parent)
    place = {hierarchy.names[leaf]: leaf for leaf in range(int(hierarchy.tree.high[root]))}
    leaves = [missing if text is None else place.get(fold_text(text), -1) for text in texts]
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
    """A node and all nodes above it."""
    way = [node]
    while parent[node] != node:
        node = parent[node]
        way.append(node)
    return way
