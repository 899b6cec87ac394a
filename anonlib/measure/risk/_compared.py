"""Distances between original and released values of a column, on the scales of its `Encoding`."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.encode import about
from anonlib.encode.texts import texts
from anonlib.errors import InputError
from anonlib.measure.nearest import MatchedColumn, NodeDistances, ShareDistances, SpanDistances
from anonlib.recode.arrow import write_iso
from anonlib.recode.interval import Interval
from anonlib.recode.value_leaves import find_leaves
from anonlib.table.encoding import Encoding, find_moments, standardize, to_float
from anonlib.table.schema import Column, Scale, may_be_continuous

#: An Arrow array of any type.
Values: TypeAlias = Any


def match_column(
    column: Column, encoding: Encoding, original: Values, released: Values
) -> MatchedColumn | None:
    """Makes a column of an attack: the distances between original and released values.

    Values of continuous columns and ranks of ordinal columns are standardized. Intervals and
    ordinal sets count as ranges, intervals of ordinal numbers as those of the categories in them.
    An end at the recoder's `bottom` or `top` is infinite. In nominal columns, released values are
    values, sets, shares or nodes.

    Args:
        column: The column.
        encoding: Its encoding.
        original: The original values, of the source's type.
        released: The released values.

    Returns:
        The column; None if its recoder releases nothing, because all distances are equal then.

    Raises:
        InputError: Released values can't be compared. The text names the column.
    """
    if column.recoder.releases == "nothing":
        return None
    try:
        if column.scale is not Scale.NOMINAL:
            return _spans(column, encoding, original, released)
        if column.recoder.releases == "shares":
            return _node_shares(column, original, released)
        if column.recoder.releases == "node":
            return _nodes(column, encoding, original, released)
        return _sets(column, encoding, original, released)
    except (pa.ArrowException, ValueError, KeyError):  # their texts may hold values
        raise InputError(
            f"column {column.name}: released as {released.type}, which has no distance here"
        ) from None


def match_plain(column: Column, original: Values, released: Values) -> MatchedColumn:
    """Makes a column of an attack from a column that is released as it is.

    Numbers are standardized by the original values. Other values are equal or not.

    Raises InputError as `match_column`.
    """
    if may_be_continuous(column.type) and may_be_continuous(released.type):
        low, high = 0.0, -1.0
        numbers = [to_float(each) for each in (original, released)]
        numbers = [np.where(np.isfinite(each), each, np.nan) for each in numbers]
        if not np.isnan(numbers[0]).all():
            low, high = float(np.nanmin(numbers[0])), float(np.nanmax(numbers[0]))
        mean, sd = find_moments(numbers[0], low, high)
        absent = [np.isnan(each) for each in numbers]
        value, ends = (
            standardize(np.where(gone, mean, each), mean, sd)
            for gone, each in zip(absent, numbers, strict=True)
        )
        spans, place = np.unique(np.column_stack([ends, absent[1]]), axis=0, return_inverse=True)
        end = spans[:, 0].copy()
        return MatchedColumn(
            SpanDistances(value, absent[0], end, end, spans[:, 1] > 0), place.ravel()
        )
    with about(column.name):
        both = [texts(each).to_pylist() for each in (original, released)]
    code = {text: i for i, text in enumerate(dict.fromkeys([*both[0], *both[1]]))}
    points: list[tuple[tuple[int, float], ...]] = [((code[text], 1.0),) for text in both[1]]
    return _shares(np.array([code[text] for text in both[0]], np.int64), points, len(code))


def _spans(column: Column, encoding: Encoding, original: Values, released: Values) -> MatchedColumn:
    lower, upper = find_ends(column, encoding, released)
    first, last = _find_categories(column, encoding, lower, upper)
    # On the grid of kernels, values that are equally far from another one would differ in that.
    low, blank = encoding.to_standard(first)
    high, _ = encoding.to_standard(last)
    if isinstance(column.recoder, Interval) and may_be_continuous(column.type):
        ends = column.recoder.open_ends(to_float(lower), to_float(upper), column.type)
        low, high = (np.where(np.isinf(e), e, at) for e, at in zip(ends, (low, high), strict=True))
    spans, place = np.unique(np.column_stack([low, high, blank]), axis=0, return_inverse=True)
    value, absent = encoding.to_standard(original)
    ends = spans[:, 0].copy(), spans[:, 1].copy()
    return MatchedColumn(SpanDistances(value, absent, *ends, spans[:, 2] > 0), place.ravel())


def _find_categories(
    column: Column, encoding: Encoding, lower: Values, upper: Values
) -> tuple[Values, Values]:
    """The first and the last category of ordinal ranges of numbers; the ends of others."""
    if column.scale is not Scale.ORDINAL or not may_be_continuous(column.type):
        return lower, upper
    assert encoding.categories is not None
    ranks = encoding.within(to_float(lower), to_float(upper))
    places = (pa.array(each, from_pandas=True).cast(pa.int64()) for each in ranks)
    first, last = map(encoding.categories.take, places)
    return first, last


def find_ends(column: Column, encoding: Encoding, released: Values) -> tuple[Values, Values]:
    """The least and the greatest value in each released range, of the column's type."""
    if column.recoder.releases == "interval" and pa.types.is_struct(released.type):
        return pc.struct_field(released, "lower"), pc.struct_field(released, "upper")
    if column.recoder.releases == "set":
        categories: Values = encoding.categories
        if categories is None:
            raise ValueError("a set of numbers")
        rank = {text: i for i, text in enumerate(write_iso(categories).to_pylist())}
        ranks = [_present(rank, each) for each in find_elements(released)]
        lower, upper = ([end(each, default=None) for each in ranks] for end in (min, max))
        return categories.take(pa.array(lower)), categories.take(pa.array(upper))
    if column.recoder.releases == "interval":
        return _read(released, column.type)
    return released, released


def _present(rank: dict[str, int], texts: Iterable[str | None]) -> list[int]:
    return [rank[text] for text in texts if text is not None]


def _read(released: Values, type: pa.DataType) -> tuple[Values, Values]:
    """The ends of intervals that are released as texts "[lower, upper]"."""
    if pa.types.is_string(type):
        pairs = [(None, None) if t is None else json.loads(t) for t in released.to_pylist()]
        lower, upper = zip(*pairs, strict=True)
        return pa.array(lower, type), pa.array(upper, type)
    parts = pc.split_pattern(pc.utf8_slice_codeunits(released, 1, -1), ", ")
    ends = (pc.list_element(parts, i).cast(type) for i in range(2))
    return next(ends), next(ends)


def find_elements(released: Values) -> list[Sequence[str | None]]:
    """The texts of the categories in each set; None for missing. A missing set is (None,)."""
    if pa.types.is_string(released.type):
        sets = (None if t is None else _parse_nodes(t) for t in released.to_pylist())
        return [(None,) if each is None else each for each in sets]
    texts = write_iso(released.flatten()).to_pylist()
    counts = pc.list_value_length(released).to_pylist()
    result: list[Sequence[str | None]] = []
    start = 0
    for n in counts:
        result.append((None,) if n is None else texts[start : start + n])
        start += n or 0
    return result


def _parse_nodes(text: str) -> list[str | None]:
    """The elements of a JSON array, as texts like those of `iso`."""
    found = json.loads(text, parse_int=str, parse_float=str)
    return [str(each).lower() if isinstance(each, bool) else each for each in found]


def _sets(column: Column, encoding: Encoding, original: Values, released: Values) -> MatchedColumn:
    """A nominal column that is released as values or as sets. Those that only another release has
    get codes after those of the source."""
    categories = write_iso(encoding.categories).to_pylist()
    if column.recoder.releases == "set":
        found = find_elements(released)
    else:
        found = [(text,) for text in write_iso(released).to_pylist()]
    every = dict.fromkeys([*categories, None, *(text for each in found for text in each)])
    code: dict[str | None, int] = {text: i for i, text in enumerate(every)}
    sets = [tuple(sorted(code[text] for text in each)) for each in found]
    weighted = [tuple((each, 1.0) for each in codes) for codes in sets]
    return _shares(encoding.codes(original).astype(np.int64), weighted, len(code))


def _node_shares(column: Column, original: Values, released: Values) -> MatchedColumn:
    """A column that is released as shares of leaves. Missing has the code after the last node."""
    leaf, hierarchy = find_leaves(original, column.hierarchy)
    missing = len(hierarchy.names)
    pairs = [
        tuple((each["node"], each["share"]) for each in shares) for shares in released.to_pylist()
    ]
    return _shares(np.where(leaf < 0, missing, leaf), pairs, missing + 1)


def _shares(
    code: Ints, released: list[tuple[tuple[int, float], ...]], n_codes: int
) -> MatchedColumn:
    from scipy.sparse import csr_matrix

    number = {each: i for i, each in enumerate(dict.fromkeys(released))}
    place = np.array([number[each] for each in released], np.int64)
    rows = [row for each in number for row, _ in each]
    columns = np.repeat(np.arange(len(number)), [len(each) for each in number])
    shares = [share for each in number for _, share in each]
    matrix = csr_matrix((shares, (rows, columns)), (n_codes, len(number)))
    return MatchedColumn(ShareDistances(code, matrix), place)


def _nodes(column: Column, encoding: Encoding, original: Values, released: Values) -> MatchedColumn:
    """A column that is released as names of nodes. Without a hierarchy, all values are children of
    the root."""
    flat = column.hierarchy or find_leaves(encoding.categories, None).hierarchy
    leaf, hierarchy = find_leaves(original, flat)
    number: dict[str | None, int] = {name: i for i, name in enumerate(hierarchy.names)}
    number[None] = -1
    names = released.to_pylist()
    if column.hierarchy is None:  # values that only another release has are like no other
        number = {**dict.fromkeys(names, -2), **number}
    node = np.array([number[name] for name in names], np.int64)
    distinct, place = np.unique(node, return_inverse=True)
    return MatchedColumn(NodeDistances(leaf, distinct, hierarchy.tree), place)
