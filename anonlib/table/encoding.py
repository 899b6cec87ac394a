"""Encodes quasi-identifiers as the columns that kernels work on. Each column has one frozen
encoding, fitted on the whole table and shared by all blocks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING, Bools, Codes, Floats, Ints, snap
from anonlib.errors import BlockError, ConfigError, InputError, Problem
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.privacy import PrivacyModel, Reference
from anonlib.privacy.shares import make_reference
from anonlib.table.block import Block, Ranks
from anonlib.table.missing import find_missing_values
from anonlib.table.schema import Column, Scale, Schema
from anonlib.text import fold_text

#: No standardized value is larger than this, so that sums over a block stay exact on the grid.
MAX_RANGE = 2.0**14
#: Whole numbers are floats without a loss below this power of two.
FLOAT_BITS = 53
#: A half range below this counts as 0: dividing by it could overflow.
NO_RANGE = 2.0**-1000
#: In a day.
_MICROSECONDS = 86_400_000_000


@dataclass(frozen=True)
class Encoding:
    """The encoding of one column.

    - Continuous: (value - mean) / sd, on the grid. A missing value is encoded as the mean. With
      `missing` a 0/1 column follows, so that it is one standard deviation from a present value.
    - Ordinal: the same, of the rank among `categories`.
    - Nominal: the code among `categories`. The next code is that of missing values.

    Attributes:
        id: The id of the column.
        scale: Its scale.
        missing: Whether it has missing values.
        mean: The mean of its values or ranks.
        sd: Their standard deviation.
        low: The least present value or rank.
        high: The greatest.
        categories: The categories of an ordinal or nominal column, in order.
        tree: The hierarchy of a nominal column. Its leaves are the codes.
        is_empty: Whether all its values are missing.
    """

    id: str
    scale: Scale
    missing: bool
    mean: float = 0.0
    sd: float = 1.0
    low: float = 0.0
    high: float = 0.0
    categories: pa.Array | None = None
    tree: Tree | None = None
    is_empty: bool = False

    @property
    def nominal(self) -> bool:
        return self.scale is Scale.NOMINAL

    @property
    def moments(self) -> tuple[float, float] | None:
        """The mean and the deviation of the column's own values, as `to_float` has them; None if
        its categories are no numbers at equal distances, so that only ranks have a mean."""
        if self.scale is not Scale.ORDINAL or self.categories is None:
            return self.mean, self.sd
        kind = self.categories.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (is_number or pa.types.is_temporal(kind)) or len(self.categories) < 2:
            return None
        steps = np.diff(values := to_float(self.categories))
        if not np.allclose(steps, steps[0], rtol=1e-9, atol=0.0):
            return None
        return float(values[0] + steps[0] * self.mean), float(steps[0] * self.sd)

    @property
    def n_categories(self) -> int:
        """Codes of a nominal column, the missing one included."""
        return self._n_present + self.missing

    @property
    def n_classes(self) -> int:
        """The number of codes of a target; 0 for a numeric one."""
        return self.n_categories if self.nominal else 0

    @property
    def _n_present(self) -> int:
        return 0 if self.categories is None else len(self.categories)

    @property
    def widths(self) -> list[float]:
        """The range of each numeric column of the encoding over the whole table; 0 for one that is
        the same in all rows, such as the flag of a column without any value."""
        if self.is_empty:
            return [0.0] * (1 + self.missing)
        return [self._range] + [1.0] * self.missing

    @property
    def _range(self) -> float:
        """The range of the values or ranks."""
        ends = snap(standardize(np.array([self.low, self.high]), self.mean, self.sd))
        return float(ends[1] - ends[0])

    @property
    def ranks(self) -> list[Ranks | None]:
        """How each numeric column of the encoding codes ranks."""
        first: Ranks | None = None
        if self.scale is Scale.ORDINAL:
            n = max(1, self._n_present)
            low = float(snap(standardize(np.array([self.low]), self.mean, self.sd))[0])
            first = Ranks(n, low, self._range / (n - 1) if n > 1 else 1.0)
        return [first] + [None] * self.missing

    def numeric(self, values: pa.Array) -> Floats:
        """float64[n, 1 or 2]. The numeric columns of a continuous or ordinal column."""
        numbers, absent = self.to_standard(values)
        columns = [snap(numbers)]
        if self.missing:
            columns.append(absent.astype(np.float64))
        elif absent.any():
            raise BlockError("missing values that the scan did not see: the source has changed")
        return np.column_stack(columns)

    def to_standard(self, values: pa.Array) -> tuple[Floats, Bools]:
        """float64[n]: the standardized numbers of a continuous or ordinal column, not on the grid
        of kernels, with the mean for missing ones. bool[n]: whether each value is missing."""
        numbers = self._ranks(values) if self.categories is not None else to_float(values)
        absent = np.isnan(numbers)
        numbers[absent] = self.mean
        return standardize(numbers, self.mean, self.sd), absent

    def within(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """float64[n] each. The ranks of the first and the last category in ranges of an ordinal
        column of numbers; NaN for NaN. Ends need not be categories, since recoders round and limit
        them. A range between two categories reaches to both."""
        assert self.categories is not None
        at, n = to_float(self.categories), self._n_present
        precision = np.float32 if pa.types.is_float32(self.categories.type) else np.float64
        # Ends that were texts may differ in the last bits.
        near = [2 * np.spacing(np.abs(each).astype(precision)) for each in (low, high)]
        first = np.searchsorted(at, low - near[0], side="left")
        last = np.searchsorted(at, high + near[1], side="right") - 1
        ends = np.minimum(first, last), np.maximum(first, last)
        left, right = (np.clip(each, 0, n - 1).astype(np.float64) for each in ends)
        absent = np.isnan(low) | np.isnan(high)
        return np.where(absent, np.nan, left), np.where(absent, np.nan, right)

    def codes(self, values: pa.Array) -> Codes:
        """int32[n]. The codes of a nominal column."""
        codes: Codes = np.nan_to_num(self._ranks(values), nan=self._n_present).astype(np.int32)
        return codes

    def target(self, values: pa.Array) -> Floats:
        """float64[n]. The column as the target of a block; NaN is missing, too."""
        values = clear_nan(values)
        return self.codes(values).astype(np.float64) if self.nominal else self.numeric(values)[:, 0]

    def _ranks(self, values: pa.Array) -> Floats:
        found = pc.index_in(one_zero(values), value_set=one_zero(self.categories))
        if found.null_count != values.null_count:
            raise BlockError("a category that the scan did not see: the source has changed")
        ranks: Floats = found.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        return ranks


def standardize(values: Floats, mean: float, sd: float) -> Floats:
    """(values - mean) / sd; a column without spread has sd 1."""
    # Halved, which is exact, so that no difference overflows.
    return (values / 2 - mean / 2) / (sd / 2)


def to_float(values: pa.Array) -> Floats:
    """Numbers, days since 1970 or microseconds since 1970, as float64 with NaN for null."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).copy()
    return numbers


def count_units_per_day(type: pa.DataType) -> int:
    """A day in the numbers of `to_float`, of a type of dates or timestamps."""
    return 1 if pa.types.is_date(type) else _MICROSECONDS


def tell_time(number: float, type: pa.DataType) -> str | None:
    """A number of `to_float` as a date, or as a time to the minute; None beyond the years 1 to
    9999."""
    try:
        moment = datetime(1970, 1, 1) + timedelta(days=number / count_units_per_day(type))  # noqa: DTZ001
    except OverflowError:
        return None
    return moment.date().isoformat() if pa.types.is_date(type) else moment.isoformat(" ", "minutes")


def note_rounded(schema: Schema, encodings: Iterable[Encoding]) -> Iterator[str]:
    """A note of each continuous column whose numbers are too large for floats."""
    for encoding in encodings:
        column = schema.by_id(encoding.id)
        is_float = pa.types.is_floating(column.type) or pa.types.is_temporal(column.type)
        largest = max(abs(encoding.low), abs(encoding.high))
        if encoding.scale is Scale.CONTINUOUS and not is_float and largest >= 2.0**FLOAT_BITS:
            yield (
                f"column {column.name}: numbers of 2^{FLOAT_BITS} or more are compared and "
                "measured as floats, so that neighbours may count as equal"
            )


def find_moments(values: Floats, low: float, high: float) -> tuple[float, float]:
    """Mean and standard deviation (population) of the present values of a sample in fixed order.

    `low` and `high` are the whole table's. The deviation is at least range / MAX_RANGE. It is 1 if
    the column is constant, or nearly so, and half the range if the sample has no value.
    """
    # Halves, since the range itself may overflow.
    center, half = low / 2 + high / 2, high / 2 - low / 2
    if half < NO_RANGE:
        return (low if high >= low else 0.0), 1.0
    present = values[~np.isnan(values)]
    if not len(present):
        return center, half
    # Around the centre and in units of the range, so that huge and tiny values stay in range.
    scaled = (present / 2 - center / 2) / half
    mean = float(scaled.mean())
    sd = max(float(scaled.std()), 1.0 / MAX_RANGE)
    return center + 2 * mean * half, 2 * sd * half


def fit_encoding(
    column: Column,
    values: pa.Array,
    missing: bool,
    ends: tuple[float, float],
    categories: pa.Array | None,
    is_empty: bool,
) -> Encoding:
    """The encoding of a column that has a scale, from figures of the whole table.

    Args:
        column: The column.
        values: Values of all rows, or of a sample in fixed order. Mean and deviation are theirs.
        missing: Whether the column has missing values.
        ends: The least and the greatest number of a continuous column.
        categories: The categories of an ordinal or nominal column (`sort_categories`), else None.
        is_empty: Whether all values of the column are missing.
    """
    assert column.scale is not None
    if column.scale is Scale.NOMINAL:
        tree = None
        if column.hierarchy is not None:
            tree = column.hierarchy.over(column.hierarchy.places(categories), missing=missing)
        return Encoding(
            column.id, column.scale, missing, categories=categories, tree=tree, is_empty=is_empty
        )
    numbers = (
        to_float(values)
        if categories is None
        else to_float(pc.index_in(values, value_set=categories))
    )
    if categories is not None:
        ends = 0.0, max(0.0, len(categories) - 1.0)
    mean, sd = find_moments(numbers, *ends)
    return Encoding(
        column.id, column.scale, missing, mean, sd, *ends, categories, is_empty=is_empty
    )


def fit_whole(column: Column, values: pa.Array, missing_tokens: tuple[str, ...] = ()) -> Encoding:
    """The encoding of a column whose values are all in memory.

    In their last bits, mean and deviation depend on the order of the values. Null and NaN are
    missing. Raises ConfigError as `sort_categories`.
    """
    values = clear_nan(values)
    missing, present = values.null_count > 0, values.drop_null()
    is_empty = missing and not len(present)
    if column.by_category:
        categories = sort_categories(column, pc.unique(present), missing_tokens)
        return fit_encoding(column, values, missing, (0.0, 0.0), categories, is_empty)
    numbers = to_float(present) + 0.0  # no negative zero
    ends = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    return fit_encoding(column, values, missing, ends, None, is_empty)


def sort_categories(
    column: Column, distinct: pa.Array, missing_tokens: tuple[str, ...] = ()
) -> pa.Array:
    """The categories of a column in the order of their codes or ranks.

    That is the declared order, the order of the hierarchy's leaves, or the values' own. A declared
    order is returned whole; its categories need not occur.

    Args:
        column: An ordinal or nominal column.
        distinct: Its distinct present values.
        missing_tokens: Texts that mean a missing value in other columns: errors name them.

    Raises:
        ConfigError: The order or the hierarchy lacks some of the values.
    """
    if column.order is not None:
        known = set(column.order)
        if unknown := [value for value in distinct.to_pylist() if value not in known]:
            raise _refuse_unlisted(*(column.name, "order", unknown), missing_tokens, known)
        return pa.array(column.order, column.type)
    if column.hierarchy is None:
        return distinct.take(pc.sort_indices(distinct))
    places = column.hierarchy.places(distinct)
    if (places < 0).any():
        unknown = distinct.filter(pa.array(places < 0)).to_pylist()
        leaves = column.hierarchy.names[: column.hierarchy.tree.high[-1]]
        raise _refuse_unlisted(column.name, "hierarchy", unknown, missing_tokens, leaves)
    return distinct.take(pa.array(np.argsort(places, kind="stable")))


def _refuse_unlisted(
    name: str,
    field: str,
    unknown: Sequence[object],
    missing_tokens: tuple[str, ...],
    others: Iterable[str],
) -> ConfigError:
    """The error for values that a column's order or hierarchy lacks. It names those that the config
    has itself, as missing tokens.

    others: What the order or hierarchy has.
    """
    near = {text.strip().casefold() for text in others}
    n_near = sum(isinstance(v, str) and v.strip().casefold() in near for v in unknown)
    texts = {fold_text(value) for value in unknown if isinstance(value, str)}
    tokens = [repr(token) for token in missing_tokens if fold_text(token) in texts]
    text = f"lacks {len(unknown)} of the distinct values that the column has"
    if n_near:
        text += f"; {n_near} would match in another case or without blanks around"
    if tokens:
        are = "one is a missing token" if len(tokens) == 1 else f"{len(tokens)} are missing tokens"
        text += f"; {are}: {', '.join(tokens)}, which a quasi-identifier keeps as a value"
    text += "; add them, or make them missing in the source"
    return ConfigError([Problem(f"attributes.{name}.{field}", text)])


def encode_rows(
    encodings: Sequence[Encoding], columns: Mapping[str, pa.Array], n: int
) -> tuple[Floats, Codes]:
    """The columns that kernels work on: float64[n, p] numeric ones, int32[n, q] nominal ones.

    Args:
        encodings: Encodings of the columns, in the order of the result.
        columns: By id: n values.
        n: Rows.
    """
    numeric = [each.numeric(columns[each.id]) for each in encodings if not each.nominal]
    nominal = [each.codes(columns[each.id]) for each in encodings if each.nominal]
    return (
        np.column_stack([np.empty((n, 0)), *numeric]),
        np.column_stack([np.empty((n, 0), np.int32), *nominal]).astype(np.int32),
    )


def encode_block(
    encodings: Sequence[Encoding],
    columns: Mapping[str, pa.Array],
    protected: Mapping[str, Codes],
    models: Sequence[PrivacyModel],
    target: Encoding | None,
    n: int,
) -> Block:
    """The block of rows, in their order. All engines encode blocks by this function.

    Args:
        encodings: Encodings of the quasi-identifiers.
        columns: By id: n values of each encoded column, the target's included.
        protected: By id: int32[n], codes of each column that models look at.
        models: The privacy models of the block.
        target: Encoding of the target; None if nothing looks at it.
        n: Rows.
    """
    numeric, nominal = encode_rows(encodings, columns, n)
    sensitive = np.column_stack([np.empty((n, 0), np.int32), *protected.values()])
    return Block(
        numeric=numeric,
        nominal=nominal,
        sensitive=sensitive.astype(np.int32),
        unit=None,
        widths=np.array([width for e in encodings if not e.nominal for width in e.widths]),
        n_categories=np.array([e.n_categories for e in encodings if e.nominal], np.int64),
        models=tuple(models),
        protected=tuple(protected),
        ranks=tuple(rank for e in encodings if not e.nominal for rank in e.ranks),
        trees=tuple(e.tree for e in encodings if e.nominal),
        target=None if target is None else target.target(columns[target.id]),
        n_classes=0 if target is None else target.n_classes,
    )


@dataclass(frozen=True)
class Values:
    """The present values of a protected column in the whole table, in order (text is folded), and
    the number of persons with each."""

    categories: pa.Array
    reference: Reference

    def along(self, hierarchy: Hierarchy) -> "Values":
        """The same values with the levels of a folded hierarchy.

        Raises InputError with the number of values that the hierarchy lacks.
        """
        places = hierarchy.places(self.categories)
        if unknown := int((places < 0).sum()):
            raise InputError(f"lacks {unknown} of the distinct values that the column has")
        return replace(self, reference=replace(self.reference, levels=hierarchy.levels(places)))

    def ordered(self, order: Sequence[str]) -> "Values":
        """The same values in a declared order of folded texts.

        Raises InputError with the number of values that the order lacks.
        """
        places = pc.index_in(self.categories, value_set=pa.array(order, pa.string()))
        if places.null_count:
            raise InputError(
                f"lacks {places.null_count} of the distinct values that the column has"
            )
        by_place = np.argsort(places.to_numpy(), kind="stable")
        counts = self.reference.count[by_place]
        categories = self.categories.take(pa.array(by_place))
        return replace(self, categories=categories, reference=replace(self.reference, count=counts))


def list_protected_values(
    values: pa.Array, missing_tokens: tuple[str, ...], person: Codes | None = None
) -> Values:
    """The values of a column in memory. Text is in the order of its folded letters.

    Args:
        values: The column of n rows.
        missing_tokens: Values that mean "missing".
        person: int32[n] or None. The person of each row; MISSING for nobody. None means that each
            row is a person.
    """
    codes = code_protected(values, missing_tokens)
    _, first = np.unique(codes[codes != MISSING], return_index=True)
    found = values.filter(pa.array(codes != MISSING)).take(pa.array(first))
    if pa.types.is_string(found.type):
        found = pa.array([fold_text(value) for value in found.to_pylist()], pa.string())
    found = one_zero(found).take(pc.sort_indices(found))
    places = code_among(values, missing_tokens, found).astype(np.int64)
    return Values(found, make_reference(places, len(found), person))


def code_among(values: pa.Array, missing_tokens: tuple[str, ...], categories: pa.Array) -> Codes:
    """int32[n]. The places of a protected column's values among the categories of `Values`; MISSING
    for null, NaN and tokens. Raises BlockError for a value without a place."""
    codes = code_protected(values, missing_tokens)
    present = codes != MISSING
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        texts = pa.array(
            [fold_text(value) for value in encoded.dictionary.to_pylist()], pa.string()
        )
        places = pc.index_in(texts, value_set=categories).take(encoded.indices)
    else:
        places = pc.index_in(one_zero(values), value_set=categories)
    found = places.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int32)
    if (found[present] == MISSING).any():
        raise BlockError("a sensitive value that the scan did not see: the source has changed")
    return np.where(present, found, MISSING).astype(np.int32)


def code_protected(values: pa.Array, missing_tokens: tuple[str, ...]) -> Codes:
    """int32[n]. Codes of a protected column, local to the block; MISSING for null, NaN and tokens.

    Text is compared as people see it (`fold_text`), other types by value, and so are tokens
    (`find_missing_values`). Blank text is missing. Raises InputError for a type that can't be
    protected (`is_protectable`).
    """
    if not is_protectable(values.type):
        raise InputError(f"values of type {values.type} can't be protected")
    text = pa.types.is_string(values.type)
    values = one_zero(clear_nan(values))
    if not text and len(tokens := find_missing_values(missing_tokens, values.type)):
        values = pc.if_else(pc.is_in(values, value_set=tokens), None, values)
    encoded = values.dictionary_encode()
    indices = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    codes: Codes = indices.astype(np.int32)
    if text:
        missing = {"", *map(fold_text, missing_tokens)}
        folded = [fold_text(value) for value in encoded.dictionary.to_pylist()]
        number = {value: i for i, value in enumerate(dict.fromkeys(folded))}
        recode = [MISSING if value in missing else number[value] for value in folded]
        codes = np.array([*recode, MISSING], np.int32)[codes]
    return codes


def code_known(values: pa.Array, missing_tokens: tuple[str, ...], known: Values | None) -> Codes:
    """int32[n]. Codes of a protected column: by the values of the whole table if models count them,
    else by its own.

    Args:
        values: The column.
        missing_tokens: Values that mean "missing".
        known: Its values in the whole table; None if no model counts them.
    """
    if known is not None:
        return code_among(values, missing_tokens, known.categories)
    return code_protected(values, missing_tokens)


def code_column(table: pa.Table, column: Column, missing_tokens: tuple[str, ...]) -> Codes:
    """int32[n]. `code_protected` of a column of a table that has its columns by id."""
    return code_protected(table.column(column.id).combine_chunks(), missing_tokens)


def is_protectable(type: pa.DataType) -> bool:
    """Whether the equality of values of the type is known here. Text is `string`, as `normalize`
    makes it."""
    at = pa.types
    numbers = (at.is_integer, at.is_float32, at.is_float64, at.is_decimal, at.is_boolean)
    times = (at.is_date32, at.is_timestamp, at.is_time, at.is_duration)
    return any(holds(type) for holds in (at.is_string, *numbers, *times, at.is_null))


def normalize(values: pa.Array) -> pa.Array:
    """The values in few types, with null for missing ones: all text is `string`, date64 is date32,
    NaN is null. Of dictionaries it takes the values, which are distinct and present."""
    at = pa.types
    if at.is_dictionary(values.type):
        known = pc.unique(normalize(values.dictionary)).drop_null()
        places = pc.index_in(normalize(values.dictionary_decode()), value_set=known)
        return pa.DictionaryArray.from_arrays(places, known, ordered=values.type.ordered)
    if at.is_large_string(values.type) or at.is_string_view(values.type):
        return values.cast(pa.string())
    if at.is_date64(values.type):
        return values.cast(pa.date32())
    return clear_nan(values)


def clear_nan(values: pa.Array) -> pa.Array:
    """The values with null for NaN."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), None, values)


def one_zero(values: pa.Array) -> pa.Array:
    """The values with 0.0 for -0.0, which Arrow tells apart and Spark's groups do not."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.add(values, pa.scalar(0.0, values.type))


def mix(numeric: Floats, nominal: Codes) -> Ints:
    """int64[n]. A 64-bit hash of each row's values. It gives the canonical order."""
    state = np.zeros(len(numeric), np.uint64)
    columns = [numeric[:, j].view(np.uint64) for j in range(numeric.shape[1])]
    columns += [nominal[:, j].astype(np.uint64) for j in range(nominal.shape[1])]
    for bits in columns:
        # The finalizer of splitmix64, chained over the columns.
        state = (state ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state.view(np.int64)
