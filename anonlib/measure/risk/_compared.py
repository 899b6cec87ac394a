"""Columns of original rows and of what was released, made comparable: as `Encoding` has them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Floats, Ints
from anonlib.errors import InputError
from anonlib.measure.nearest import MatchedColumn, NodeDistances, ShareDistances, SpanDistances
from anonlib.recode.arrow import iso
from anonlib.recode.value_leaves import find_leaves
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Scale

#: An Arrow array of any type.
Values: TypeAlias = Any


def match_column(
    column: Column, encoding: Encoding, original: Values, released: Values
) -> MatchedColumn | None:
    """The column's part of the distances of `original` values, of the source's type, from
    `released` ones; None where all of these are the same by their recoder.

    Continuous and ordinal columns are standardized (ordinal ones by their ranks): values, and the
    ranges of intervals and of ordinal sets. Nominal columns: values, sets, shares, nodes.

    Raises InputError, with the column, where released values can't be compared.
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


def _spans(column: Column, encoding: Encoding, original: Values, released: Values) -> MatchedColumn:
    lower, upper = _ends(column, encoding, released)
    low, blank = _numbers(encoding, lower)
    high, _ = _numbers(encoding, upper)
    spans, place = np.unique(np.column_stack([low, high, blank]), axis=0, return_inverse=True)
    value, absent = _numbers(encoding, original)
    ends = spans[:, 0].copy(), spans[:, 1].copy()
    return MatchedColumn(SpanDistances(value, absent, *ends, spans[:, 2] > 0), place.ravel())


def _numbers(encoding: Encoding, values: Values) -> tuple[Floats, Bools]:
    """float64[n], standardized, missing ones at the mean; bool[n], which are missing."""
    absent: Bools = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return encoding.numeric(values)[:, 0], absent


def _ends(column: Column, encoding: Encoding, released: Values) -> tuple[Values, Values]:
    """The least and the greatest value that each released one stands for, of the column's type."""
    if column.recoder.releases == "interval" and pa.types.is_struct(released.type):
        return pc.struct_field(released, "lower"), pc.struct_field(released, "upper")
    if column.recoder.releases == "set":
        categories: Values = encoding.categories
        if categories is None:
            raise ValueError("a set of numbers")
        rank = {text: i for i, text in enumerate(iso(categories).to_pylist())}
        ranks = [_present(rank, each) for each in _elements(released)]
        lower, upper = ([end(each, default=None) for each in ranks] for end in (min, max))
        return categories.take(pa.array(lower)), categories.take(pa.array(upper))
    if column.recoder.releases == "interval":
        return _read(released, column.type)
    return released, released


def _present(rank: dict[str, int], texts: Iterable[str | None]) -> list[int]:
    return [rank[text] for text in texts if text is not None]


def _read(released: Values, type: pa.DataType) -> tuple[Values, Values]:
    """The ends of intervals as text, "[lower, upper]": as the recoder writes them."""
    if pa.types.is_string(type):
        pairs = [(None, None) if t is None else json.loads(t) for t in released.to_pylist()]
        lower, upper = zip(*pairs, strict=True)
        return pa.array(lower, type), pa.array(upper, type)
    parts = pc.split_pattern(pc.utf8_slice_codeunits(released, 1, -1), ", ")
    ends = (pc.list_element(parts, i).cast(type) for i in range(2))
    return next(ends), next(ends)


def _elements(released: Values) -> list[Sequence[str | None]]:
    """The texts of the categories of each set, missing as None; a missing set is one of that."""
    if pa.types.is_string(released.type):
        sets = (None if t is None else _parsed(t) for t in released.to_pylist())
        return [(None,) if each is None else each for each in sets]
    texts = iso(released.flatten()).to_pylist()
    counts = pc.list_value_length(released).to_pylist()
    result: list[Sequence[str | None]] = []
    start = 0
    for n in counts:
        result.append((None,) if n is None else texts[start : start + n])
        start += n or 0
    return result


def _parsed(text: str) -> list[str | None]:
    """The elements of a JSON array, as the texts that `iso` makes."""
    found = json.loads(text, parse_int=str, parse_float=str)
    return [str(each).lower() if isinstance(each, bool) else each for each in found]


def _sets(column: Column, encoding: Encoding, original: Values, released: Values) -> MatchedColumn:
    """Released values, or sets of them, of a nominal column."""
    categories = iso(encoding.categories).to_pylist()
    code: dict[str | None, int] = {text: i for i, text in enumerate(categories)}
    code[None] = len(categories)
    if column.recoder.releases == "set":
        sets = [tuple(sorted(code[text] for text in each)) for each in _elements(released)]
    else:
        sets = [(code[text],) for text in iso(released).to_pylist()]
    weighted = [tuple((each, 1.0) for each in codes) for codes in sets]
    return _shares(encoding.codes(original).astype(np.int64), weighted, len(code))


def _node_shares(column: Column, original: Values, released: Values) -> MatchedColumn:
    """Leaves with their shares; missing is the node after the last."""
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
    """Nodes by name; without a hierarchy, values by their text right under the root."""
    flat = column.hierarchy or find_leaves(encoding.categories, None).hierarchy
    leaf, hierarchy = find_leaves(original, flat)
    number: dict[str | None, int] = {name: i for i, name in enumerate(hierarchy.names)}
    number[None] = -1
    node = np.array([number[name] for name in released.to_pylist()], np.int64)
    distinct, place = np.unique(node, return_inverse=True)
    return MatchedColumn(NodeDistances(leaf, distinct, hierarchy.tree), place)
