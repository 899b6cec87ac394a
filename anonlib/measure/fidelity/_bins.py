"""Bins of columns that a report may show.

A bin has either no rows or a minimum number of rows, both in the source and in the release. Its
name shows no value of the source.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Floats, Ints
from anonlib.measure.fidelity._axes import Axis
from anonlib.measure.fidelity._distribution import Distribution
from anonlib.table.schema import Scale

#: The approximate number of bins of a continuous column.
N_SHOWN = 16
#: Bins cover the range within this many deviations of the mean.
REACH = 3.0
#: A second, and a day, in microseconds.
SECOND, DAY = 1e6, 86_400e6
#: Round parts of a day.
CLOCK_STEPS = (
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(60 * SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(3600 * SECOND * n for n in (1, 2, 3, 6, 12)),
    DAY,
)
#: The most categories to show.
MOST_SHOWN = 30
#: Masses below this are rounding errors.
NOTHING = 1e-6
OTHER, MISSING_NAME = "other", "missing"


def _may_show(counts: Floats, least: int) -> Bools:
    """bool[...]. Whether counts may be shown: in both tables, each is 0 or at least `least`.

    counts: float64[2, ...]. The counts in the source and in the release.
    """
    return np.asarray(((counts < NOTHING) | (counts > least - NOTHING)).all(axis=0))


def make_line_bins(
    axis: Axis, source: Distribution, released: Distribution, least: int
) -> tuple[list[str], Floats]:
    """Bins of a continuous column.

    The ends of ranges are round numbers. The outer ranges are open, so that the least and the
    greatest value are not shown.

    Args:
        axis: The column.
        source: Its distribution in the source.
        released: Its distribution in the release.
        least: The least number of rows that may be shown.

    Returns:
        The names of the bins.
        float64[2, bins]. Their masses in the source and in the release.
    """
    numbers = round_edges(axis)
    edges = axis.position(numbers)
    counts = np.stack(
        [np.diff(d.below(edges), prepend=0.0, append=d.total) for d in (source, released)]
    )
    return merge_bins(axis, numbers, counts, least)


def merge_bins(axis: Axis, numbers: Floats, counts: Floats, least: int) -> tuple[list[str], Floats]:
    """Merges the bins of a continuous column until they may be shown.

    Args:
        axis: The column.
        numbers: float64[e]. The edges of the bins.
        counts: float64[2, e + 1]. The masses in the source and in the release.
        least: The least number of rows that may be shown.

    Returns:
        As `make_line_bins`.
    """
    if not len(numbers):
        return [], np.zeros((2, 0))
    # `start` is where each merged bin begins.
    start, held = [0], np.zeros(2)
    for i in range(counts.shape[1]):
        held = held + counts[:, i]
        if _may_show(held, least):
            start.append(i + 1)
            held = np.zeros(2)
    start = start[:-1] if start[-1] == counts.shape[1] else start
    merged = np.add.reduceat(counts, start, axis=1)
    while len(start) > 1 and not _may_show(merged[:, -1], least):
        start = start[:-1]
        merged = np.add.reduceat(counts, start, axis=1)
    if not _may_show(merged, least).all() or len(start) < 2:
        return [], np.zeros((2, 0))
    digits = _digits(numbers)
    chosen = numbers[np.array(start[1:]) - 1].tolist()
    texts = [_text(axis.type, number, digits) for number in chosen]
    inner = [f"{low} to {high}" for low, high in pairwise(texts)]
    return [f"below {texts[0]}", *inner, f"{texts[-1]} and above"], merged


def round_edges(axis: Axis) -> Floats:
    """Round numbers within the column's range."""
    encoding = axis.encoding
    low = max(encoding.low, encoding.mean - REACH * encoding.sd)
    high = min(encoding.high, encoding.mean + REACH * encoding.sd)
    rough = max((high - low) / N_SHOWN, _finest(axis.type)) if high > low else 0.0
    if not 0 < rough < float("inf"):
        return np.zeros(0)
    step = _find_step(axis.type, rough)
    edges = np.arange(np.floor(low / step) + 1, np.ceil(high / step)) * step
    return np.unique(edges.astype(np.float64))


def _find_step(type: pa.DataType, least: float) -> float:
    """A round number that is not below `least`; of timestamps, a round part of a day or round
    days."""
    if not pa.types.is_timestamp(type):
        return _round_up(least)
    if least <= DAY:
        return next(step for step in CLOCK_STEPS if step >= least)
    return DAY * _round_up(least / DAY)


def _round_up(number: float) -> float:
    unit = float(10.0 ** np.floor(np.log10(number)))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= number)


def _finest(type: pa.DataType) -> float:
    """The least difference between ends of ranges: a day, a second, or 0 for numbers."""
    if pa.types.is_date(type):
        return 1.0
    return SECOND if pa.types.is_timestamp(type) else 0.0


def _digits(numbers: Floats) -> int:
    """The digits that are needed to distinguish neighbours."""
    step = np.diff(numbers).min() if len(numbers) > 1 else 1.0
    largest = np.abs(numbers).max()
    needed = np.ceil(np.log10(largest / step + 1)) + 1
    whole = np.ceil(np.log10(largest + 1)) if largest < 1e15 else 0  # else it is a power of ten
    return int(min(max(10, needed, whole), 17))


def _text(type: pa.DataType, number: float, digits: int) -> str:
    # numpy has years that Python's dates lack
    if pa.types.is_date(type):
        return str(np.datetime64(int(number // 1), "D"))
    if pa.types.is_timestamp(type):
        return str(np.datetime64(int(number // 10**6), "s")).replace("T", " ")
    return f"{number:.{digits}g}"


def make_category_bins(
    axis: Axis, counts: Floats, names: Floats, least: int
) -> tuple[list[str], Floats]:
    """Bins of a column with categories.

    A category that the release names is a bin of its own. Other categories belong to the lowest
    node above them that the release names. Rare bins and the root become "other".

    Args:
        axis: The column.
        counts: float64[2, size]. Rows of each category in the source and in the release.
        names: The names in the release, as in `Mass.split`.
        least: The least number of rows that may be shown.

    Returns:
        The names of the bins.
        float64[2, bins]. Their masses in the source and in the release.
    """
    group = _place_in_bins(axis, names)
    n_groups = len(names) + 1  # the last group is all others
    masses = np.stack([np.bincount(group, each, n_groups) for each in counts]).astype(np.float64)
    keep = np.flatnonzero(_may_show(masses, least) & (masses.sum(axis=0) >= NOTHING))
    keep = keep[keep < n_groups - 1]
    mass = masses[:, keep].sum(axis=0)
    # Round: the last digits of sums of shares depend on the order of rows.
    place = np.argsort(-np.round(mass / max(mass.sum(), 1.0), 9), kind="stable")
    by_mass = keep[place][:MOST_SHOWN]
    while len(by_mass):
        rest = counts.sum(axis=1) - masses[:, by_mass].sum(axis=1)
        if _may_show(rest, least):
            break
        by_mass = by_mass[:-1]
    if not len(by_mass):
        return [], np.zeros((2, 0))
    shown = np.sort(by_mass) if axis.encoding.scale is Scale.ORDINAL else by_mass
    labels = [*_texts(axis, shown)]
    if rest.max() < NOTHING:
        return labels, masses[:, shown]
    return [*labels, OTHER], np.column_stack([masses[:, shown], rest])


def _place_in_bins(axis: Axis, names: Floats) -> Ints:
    """int64[size]. The place in `names` of each category's bin; `len(names)` without a bin."""
    size = axis.n_categories + 1
    group = np.full(size, len(names))
    nodes = axis.nodes
    released = np.flatnonzero(names[size:-1][: len(nodes.low) - 1])  # without the root
    for node in sorted(released, key=lambda node: nodes.low[node] - nodes.high[node]):
        group[nodes.low[node] : nodes.high[node]] = size + node
    itself = np.flatnonzero(names[:size])
    group[itself] = itself
    if names[-1]:
        group[-1] = size - 1
    return group


def _texts(axis: Axis, groups: Ints) -> Iterator[str]:
    c = axis.n_categories
    for group in groups.tolist():
        if group == c:
            yield MISSING_NAME
        else:
            among = axis.texts if group < c else axis.nodes.names
            yield among[group if group < c else group - c - 1].as_py()
