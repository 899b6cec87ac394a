"""Features for learning. Original and released rows have the same features, so a model that learns
from a release can be tested on original rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Ints, Sparse
from anonlib.encode import Encoder, EncoderDomain, about
from anonlib.encode.fill_child import FillChild
from anonlib.encode.fill_parent import FillParent
from anonlib.encode.midpoint import Midpoint
from anonlib.encode.multi_hot import MultiHot
from anonlib.encode.one_class import OneClass
from anonlib.encode.one_hot import OneHot
from anonlib.encode.proportional import ProportionalEncoder
from anonlib.encode.texts import texts
from anonlib.errors import InputError
from anonlib.table.encoding import find_moments, standardize
from anonlib.table.row_numbers import find_examples, number_distinct
from anonlib.table.schema import Column, Role, Scale, Schema, is_atomic, may_be_continuous

#: How nodes of a hierarchy become features. Shares of nodes are always encoded as `proportional`.
NodeEncoding: TypeAlias = Literal["one_class", "fill_parent", "fill_child"]
_NODES = {cls.type: cls for cls in (OneClass, FillParent, FillChild)}
#: The most categories of a column that get a feature. Other categories have no feature.
MOST_CATEGORIES = 100


@dataclass(frozen=True)
class Feature:
    """The features of one column. Original and released values have the same features, in the same
    order.

    Attributes:
        column: The column.
        raw: Encoder of original values.
        released: Encoder of released values.
        domain: The categories or the hierarchy, for both encoders.
        mean: The mean by which numbers are standardized.
        sd: The deviation by which numbers are standardized.
    """

    column: Column
    raw: Encoder
    released: Encoder
    domain: EncoderDomain
    mean: float = 0.0
    sd: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features; the feature for missing values is the last."""
        return self.raw.names(self.column.name, self.domain)

    def matrix(self, values: Any, *, released: bool) -> Sparse:
        """csr_matrix float64[n, f]. The features of an Arrow array of n values."""
        encoder = self.released if released else self.raw
        if not isinstance(encoder, Midpoint):
            return encoder.features(values, self.domain)
        return _matrix(_numbers(values, self.column), self.mean, self.sd)


@dataclass(frozen=True)
class Features:
    """The features of a row, made by `fit`.

    Attributes:
        columns: The features of each column.
    """

    columns: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for feature in self.columns for name in feature.names)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the columns."""
        return tuple(feature.column.id for feature in self.columns)

    def matrix(self, table: pa.Table, *, released: bool) -> Sparse:
        """The features of rows.

        Args:
            table: n rows, with columns named by id.
            released: Whether they are released rows, else original ones.

        Returns:
            csr_matrix float64[n, f].

        Raises:
            InputError: A column can't be encoded. The text names the column and no value.
        """
        from scipy.sparse import csr_matrix, hstack

        parts: list[Sparse] = [csr_matrix((table.num_rows, 0))]
        for feature in self.columns:
            with about(feature.column.name):
                values = as_one_array(table.column(feature.column.id))
                parts.append(feature.matrix(values, released=released))
        return csr_matrix(hstack(parts))


def list_predictors(
    schema: Schema, targets: Sequence[str], among: Literal["released", "quasi_identifiers"]
) -> tuple[Column, ...]:
    """The columns that models may learn from.

    Args:
        schema: All columns.
        targets: Ids of columns to leave out.
        among: All released columns, or quasi-identifiers only.

    Returns:
        The released columns, without pseudonyms, targets, nested columns and columns whose recoder
        releases nothing.
    """
    return tuple(
        column
        for column in schema.released
        if column.role is Role.QUASI_IDENTIFIER or among == "released"
        if column.role is not Role.IDENTIFIER and column.id not in targets
        if is_atomic(column.type) and (not column.recoder or column.recoder.releases != "nothing")
    )


def fit(
    columns: Sequence[Column],
    raw: pa.Table,
    *,
    encoding: NodeEncoding = "fill_parent",
    max_categories: int = MOST_CATEGORIES,
) -> Features:
    """Fits the features of released columns.

    - Numbers, dates and ordinal columns (by rank): (value - mean) / sd. An interval counts as its
      middle, a missing value as 0.
    - Nodes of a hierarchy: encoded by `encoding`.
    - Shares of nodes: encoded by `proportional`; original values by `fill_parent`.
    - Others, including sets: an indicator for each of the most frequent categories.

    The last feature of each column indicates missing values.

    Args:
        columns: The columns.
        raw: Original rows that models may learn from, or a sample of them, in a fixed order.
            Columns are named by id.
        encoding: The encoder of nodes.
        max_categories: The most categories of a column that get a feature.

    Raises:
        InputError: A column can't be encoded.
    """
    return Features(tuple(_fit_feature(c, raw, encoding, max_categories) for c in columns))


def _fit_feature(column: Column, raw: pa.Table, encoding: str, max_categories: int) -> Feature:
    form = column.recoder.releases if column.recoder else "value"
    if column.recoder and column.recoder.names_nodes and column.hierarchy is not None:
        domain = EncoderDomain(hierarchy=column.hierarchy)
        if column.recoder.releases == "shares":
            return Feature(
                column, FillParent(missing=True), ProportionalEncoder(missing=True), domain
            )
        nodes = _NODES[encoding](missing=True)
        return Feature(column, nodes, nodes, domain)
    with about(column.name):
        values = as_one_array(raw.column(column.id))
        if _is_measured(column) and form != "set":
            middle, low, high = _numbers(values, column), 0.0, -1.0
            if not np.isnan(middle).all():
                low, high = float(np.nanmin(middle)), float(np.nanmax(middle))
            mean, sd = find_moments(middle, low, high)
            numbers = Midpoint(missing=True)
            return Feature(column, numbers, numbers, EncoderDomain(), mean, sd)
        domain = EncoderDomain(categories=_most_frequent(texts(values), max_categories))
    single = OneHot(missing=True, unknown="none")
    if form == "set":
        return Feature(column, single, MultiHot(missing=True, unknown="none"), domain)
    return Feature(column, single, single, domain)


def _is_measured(column: Column) -> bool:
    """Whether its values are numbers or ordinal."""
    if column.scale is None:
        return may_be_continuous(column.type)
    return column.scale is not Scale.NOMINAL


def _most_frequent(texts: Any, n: int) -> tuple[str, ...]:
    """The n most frequent texts, sorted. Of equally frequent texts, the first ones are taken."""
    counts = texts.drop_null().value_counts()
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    return tuple(sorted(text for text, _ in sorted(pairs, key=lambda p: (-p[1], p[0]))[:n]))


def _numbers(values: Any, column: Column) -> Floats:
    """float64[n]. Numbers, ranks or middles of intervals; NaN if missing or infinite."""
    if column.order is not None:
        values = _to_ranks(values, column.order)
    features = Midpoint(missing=True).features(values, EncoderDomain()).toarray()
    absent = (features[:, 1] > 0) | ~np.isfinite(features[:, 0])
    return np.where(absent, np.nan, features[:, 0])


def _matrix(numbers: Floats, mean: float, sd: float) -> Sparse:
    from scipy.sparse import csr_matrix

    absent = np.isnan(numbers)
    scaled = np.where(absent, 0.0, standardize(np.where(absent, mean, numbers), mean, sd))
    return csr_matrix(np.column_stack([scaled, absent]))


def _to_ranks(values: Any, order: tuple[str, ...]) -> Any:
    """Replaces ordinal texts by ranks. Intervals as structs become structs of ranks. Intervals as
    JSON texts become the middle of their ranks."""
    if pa.types.is_struct(values.type):
        ends = [_to_ranks(pc.struct_field(values, name), order) for name in ("lower", "upper")]
        return pa.StructArray.from_arrays(ends, ["lower", "upper"])
    if not pa.types.is_string(values.type):
        raise InputError(f"has the type {values.type}, neither ordinal text nor intervals of it")
    place = {text: float(rank) for rank, text in enumerate(order)}
    encoded = values.dictionary_encode()
    middle = [_rank(text, place) for text in encoded.dictionary.to_pylist()]
    return pa.array(middle, pa.float64()).take(encoded.indices)


def _rank(text: str, place: dict[str, float]) -> float:
    if text in place:
        return place[text]
    try:
        lower, upper = json.loads(text)
        return (place[lower] + place[upper]) / 2
    except (ValueError, KeyError, TypeError):  # their texts may hold the value
        raise InputError("has texts that are neither in its `order` nor intervals of it") from None


def as_one_array(values: Any) -> Any:
    """The values as one Arrow array without a dictionary."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def encode_distinct(values: Any) -> tuple[Any, Ints]:
    """The distinct values of an Arrow array, lists and structs too, and int64[n]: the place of each
    value among them. Cost: as that of `number_distinct`."""
    place = number_distinct(values)
    return values.take(pa.array(find_examples(place))), place
