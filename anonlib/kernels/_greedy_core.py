"""The compiled core of greedy: merges the smallest failing class with the class of least cost.

Losses are int64, in units of 2^-20.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Ints
from anonlib.compiled import njit
from anonlib.kernels._trees import Trees

#: The status of a class: it fails the models (FAILS), the caller must judge it (ASK), or it holds
#: them (HOLDS).
FAILS, ASK, HOLDS = 0, 1, 2
#: Losses are summed for this many classes at a time, column by column.
RUN = 512


class LiveClasses(NamedTuple):
    """The classes of m tuples. A class has the number of its first tuple.

    Live classes are at the places 0..live[0] - 1, in any order. A class is dead after it was merged
    into another. The first six attributes are by place.

    Attributes:
        node: int32[q, m]. The node in each nominal column.
        low: int64[p, m]. The lower end of the range in each numeric column, in units of loss.
        high: int64[p, m]. The upper end.
        rows: int64[m]. The rows.
        loss: int64[m]. The loss.
        id: int64[m]. The class at each place.
        place: int64[m]. The place of each class; -1 if it is dead.
        into: int64[m]. The class that each class was merged into, dead or live; itself while live.
        status: int64[m]. The status of each class: FAILS, ASK or HOLDS.
        heap: int64[2 m]. A heap of rows * m + class, for classes that may fail. An entry is stale
            if its class has changed since.
        live: int64[1]. The number of live classes.
        heap_size: int64[1]. The number of entries of the heap.
    """

    node: Codes
    low: Ints
    high: Ints
    rows: Ints
    loss: Ints
    id: Ints
    place: Ints
    into: Ints
    status: Ints
    heap: Ints
    live: Ints
    heap_size: Ints


@njit
def merge_classes(classes: LiveClasses, trees: Trees, min_rows: int, status: int) -> bool:
    """Merges until every class holds (returns True), or the next class must be judged (False).

    A merged class with min_rows rows gets the status `status`. Cost O(live (p + q)) per merge.
    """
    m = len(classes.id)
    met = np.empty(len(trees.parent), np.int64)
    loss = np.empty(len(trees.parent), np.int64)
    total = np.empty(RUN, np.int64)
    while classes.heap_size[0] > 0:
        rows, small = divmod(classes.heap[0], m)
        place = classes.place[small]
        if place < 0 or classes.rows[place] != rows or classes.status[small] == HOLDS:
            _pop(classes)
            continue
        if classes.status[small] == ASK:
            return False
        _pop(classes)
        _to_end(classes, place)
        place = classes.live[0]
        _measure(trees, classes.node[:, place], met, loss)
        other = _cheapest(classes, loss, total)
        merged = min(small, classes.id[other])
        _join(classes, trees, met, other)
        if classes.rows[other] >= min_rows:
            classes.status[merged] = status
        if classes.status[merged] != HOLDS:
            _push(classes, classes.rows[other] * m + merged)
    return True


@njit
def _to_end(classes: LiveClasses, place: int) -> None:
    """Takes a class out of the live ones: moves it to the place after the last live class."""
    last = classes.live[0] - 1
    classes.live[0] = last
    for array in (classes.low, classes.high):
        for j in range(len(array)):
            array[j, place], array[j, last] = array[j, last], array[j, place]
    node = classes.node
    for j in range(len(node)):
        node[j, place], node[j, last] = node[j, last], node[j, place]
    for array in (classes.rows, classes.loss, classes.id):
        array[place], array[last] = array[last], array[place]
    classes.place[classes.id[place]] = place


@njit
def _measure(trees: Trees, of: Codes, met: Ints, loss: Ints) -> None:
    """Writes to `met` the lowest common ancestor of every node and the class's node in the same
    column, and to `loss` the loss of that ancestor. of: int32[q], the nodes of the class."""
    for j in range(len(of)):
        low, high = trees.low[of[j]], trees.high[of[j]]
        for node in range(trees.start[j + 1] - 1, trees.start[j] - 1, -1):
            above = trees.low[node] <= low and high <= trees.high[node]
            met[node] = node if above else met[trees.parent[node]]
            loss[node] = trees.loss[met[node]]


@njit
def _cheapest(classes: LiveClasses, node_loss: Ints, total: Ints) -> int:
    """The place of the live class whose merger with the class after the last one costs least."""
    n = classes.live[0]
    rows, loss = classes.rows[n], classes.loss[n]
    best, least = -1, np.int64(2**62)
    for start in range(0, n, RUN):
        stop = min(start + RUN, n)
        total[: stop - start] = 0
        for j in range(len(classes.node)):
            node = classes.node[j, start:stop]
            for i in range(len(node)):
                # Unsigned: the loop vectorises, as negative indices need no check.
                total[i] += node_loss[np.uint32(node[i])]
        for j in range(len(classes.low)):
            low, high = classes.low[j, start:stop], classes.high[j, start:stop]
            a, b = classes.low[j, n], classes.high[j, n]
            for i in range(len(low)):
                total[i] += max(high[i], b) - min(low[i], a)
        lowest = least
        for i in range(stop - start):
            grown = total[i]
            total[i] = rows * (grown - loss)
            total[i] += classes.rows[start + i] * (grown - classes.loss[start + i])
            lowest = min(lowest, total[i])
        for i in range(stop - start):
            if total[i] == lowest and (lowest < least or _precedes(classes, start + i, best)):
                best, least = start + i, lowest
    return best


@njit
def _precedes(classes: LiveClasses, place: int, other: int) -> bool:
    """Whether the class at `place` is preferred to another of the same cost."""
    if classes.rows[place] != classes.rows[other]:
        return bool(classes.rows[place] < classes.rows[other])
    return bool(classes.id[place] < classes.id[other])


@njit
def _join(classes: LiveClasses, trees: Trees, met: Ints, place: int) -> None:
    """Merges the class after the last live one into the class at `place`. met: see `_measure`."""
    end = classes.live[0]
    loss = np.int64(0)
    for j in range(len(classes.node)):
        node = met[classes.node[j, place]]
        classes.node[j, place] = node
        loss += trees.loss[node]
    for j in range(len(classes.low)):
        classes.low[j, place] = min(classes.low[j, place], classes.low[j, end])
        classes.high[j, place] = max(classes.high[j, place], classes.high[j, end])
        loss += classes.high[j, place] - classes.low[j, place]
    classes.rows[place] += classes.rows[end]
    classes.loss[place] = loss
    one, other = classes.id[place], classes.id[end]
    merged, dead = min(one, other), max(one, other)
    classes.id[place] = merged
    classes.place[dead], classes.place[merged] = -1, place
    classes.into[dead] = merged
    classes.status[merged] = FAILS


@njit
def _push(classes: LiveClasses, key: int) -> None:
    heap, i = classes.heap, classes.heap_size[0]
    classes.heap_size[0] += 1
    while i > 0 and heap[(i - 1) // 2] > key:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = key


@njit
def _pop(classes: LiveClasses) -> None:
    """Removes the least entry of the heap."""
    heap, n = classes.heap, classes.heap_size[0] - 1
    classes.heap_size[0] = n
    key, i = heap[n], 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = key
