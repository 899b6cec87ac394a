"""Canonical values in Arrow: rows with equal values of a column get equal numbers.

The forms are those that Spark's audit groups by (`canonical.py`), made by other means.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from anonlib.auditing.class_counts import Ints
from anonlib.auditing.token_values import DAY, finite_number, read_moment
from anonlib.text import fold_text

#: Turns distinct atomic values into their canonical form.
Form = Callable[[pa.Array], pa.Array]
#: How many of each unit of a timestamp are in a second.
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: Tables of places have at most this many entries for each row.
_ROOM = 8


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """A column, or several, as numbers in the order of the values.

    Attributes:
        of_row: int64[n]. The number of each row: 0 if its value is null.
        size: All numbers are less than this.
        values: The value of each number from 1 on; None if they are nested or of several columns.
    """

    of_row: Ints
    size: int
    values: pa.Array | None = None

    def where(self, mask: npt.NDArray[np.bool_]) -> "RowNumbers":
        """The same numbers, of some rows."""
        return RowNumbers(self.of_row[mask], self.size, self.values)


def is_list(dtype: pa.DataType) -> bool:
    """Whether values of this type are lists."""
    return any(
        check(dtype) for check in (types.is_list, types.is_large_list, types.is_fixed_size_list)
    ) or any(check(dtype) for check in (types.is_list_view, types.is_large_list_view))


def can_number(dtype: pa.DataType, *, maps: bool) -> bool:
    """Whether columns of this type can be numbered by value. `maps` says whether maps can be."""
    if types.is_dictionary(dtype):
        return can_number(dtype.value_type, maps=maps)
    if is_list(dtype):
        return can_number(dtype.value_type, maps=maps)
    if types.is_struct(dtype):
        return all(can_number(field.type, maps=maps) for field in dtype.fields)
    if types.is_map(dtype):
        return maps and all(can_number(t, maps=True) for t in (dtype.key_type, dtype.item_type))
    return _is_text(dtype) or any(
        check(dtype)
        for check in (
            *(types.is_null, types.is_boolean, types.is_integer, types.is_floating),
            *(types.is_decimal, types.is_date, types.is_timestamp, _is_binary),
        )
    )


def can_count(dtype: pa.DataType) -> bool:
    """Whether values of this type count as those of a protected column: text, numbers, booleans,
    dates and timestamps, also within other values. Bytes don't: nobody knows which mean the same,
    or which mean that a value is missing."""
    atoms = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    counted = (_is_text, *atoms, types.is_decimal, types.is_date, types.is_timestamp)
    return all(any(check(atom) for check in counted) for atom in _list_atoms(dtype))


def _list_atoms(dtype: pa.DataType) -> Iterator[pa.DataType]:
    """The types of the atomic values that a value of this type is made of."""
    if types.is_dictionary(dtype) or is_list(dtype):
        yield from _list_atoms(dtype.value_type)
    elif types.is_struct(dtype):
        for field in dtype.fields:
            yield from _list_atoms(field.type)
    elif types.is_map(dtype):
        yield from (*_list_atoms(dtype.key_type), *_list_atoms(dtype.item_type))
    else:
        yield dtype


def number_keys(column: pa.ChunkedArray, *, is_set: bool = False) -> RowNumbers:
    """The numbers of a quasi-identifier, an insensitive column or tokens of persons.

    There is one zero and one NaN. Sets are sorted and keep their duplicates, since readers can see
    them. Maps are sorted. Null and NaN stay different.
    """
    return _number(column.combine_chunks(), _key_form, is_set=is_set)


def number_protected(column: pa.ChunkedArray, tokens: Sequence[str]) -> RowNumbers:
    """The numbers of a protected column. Texts are equal if people see the same. NaN and the tokens
    of missing values are null, also within nested values. A nested value without any present part
    is missing."""

    def form(values: pa.Array) -> pa.Array:
        return _present(values, tokens)

    array = column.combine_chunks()
    numbers = _number(array, form)
    if numbers.values is not None:
        return numbers
    return _shift(RowNumbers(numbers.of_row - 1, numbers.size - 1), _has_part(array, form))


def combine(parts: Sequence[RowNumbers], n_rows: int) -> RowNumbers:
    """The combinations of several columns as numbers, in the order of the first column, then of the
    second. Each number from 0 to size - 1 is that of some row.

    Args:
        parts: The columns. Without any, all rows are equal.
        n_rows: The number of rows.
    """
    start = RowNumbers(np.zeros(n_rows, np.int64), 1)
    return _squeeze(reduce(_pair, parts, start))


def distinct(keys: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and the place of each key among them. Keys are below `size`."""
    if size <= _ROOM * len(keys) + 1024:
        there = np.zeros(size, np.bool_)
        there[keys] = True
        return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]
    encoded = pa.array(keys).dictionary_encode()
    unique = encoded.dictionary.to_numpy()
    order = np.argsort(unique)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return unique[order], place[encoded.indices.to_numpy()]


def _squeeze(numbers: RowNumbers) -> RowNumbers:
    found, place = distinct(numbers.of_row, numbers.size)
    return RowNumbers(place, len(found))


def _pair(first: RowNumbers, second: RowNumbers) -> RowNumbers:
    """Combinations of two columns. RowNumbers stay so small that a next pair can't overflow."""
    both = RowNumbers(first.of_row * second.size + second.of_row, first.size * second.size)
    return both if both.size < 2**31 else _squeeze(both)


def _number(array: pa.Array, form: Form, *, is_set: bool = False) -> RowNumbers:
    dtype = array.type
    if types.is_dictionary(dtype):
        return _number(_decode(array), form, is_set=is_set)
    if types.is_null(dtype):
        return RowNumbers(np.zeros(len(array), np.int64), 1, array[:0])
    if types.is_struct(dtype):
        fields = [_number(pc.struct_field(array, [i]), form) for i in range(dtype.num_fields)]
        return _shift(combine(fields, len(array)), ~_nulls(array))
    if types.is_map(dtype):
        parts, lengths = _pairs(array)
        pairs = combine([_number(part, form) for part in parts], len(parts[0]))
        return _number_lists(array, pairs, lengths, is_set=True)
    if is_list(dtype):
        (elements,), lengths = _elements(array)
        return _number_lists(array, _number(elements, form), lengths, is_set=is_set)
    return _number_atoms(array, form)


def _has_part(array: pa.Array, form: Form) -> npt.NDArray[np.bool_]:
    """bool[n]. Whether a value has a part that is not missing; an atomic value is its only part."""
    dtype, none = array.type, np.zeros(len(array), np.bool_)
    if types.is_dictionary(dtype):
        return _has_part(_decode(array), form)
    if types.is_struct(dtype):
        fields = [pc.struct_field(array, [i]) for i in range(dtype.num_fields)]
        return reduce(np.logical_or, (_has_part(field, form) for field in fields), none)
    if not (types.is_map(dtype) or is_list(dtype)):
        return _number(array, form).of_row > 0
    parts, lengths = _pairs(array) if types.is_map(dtype) else _elements(array)
    there = reduce(np.logical_or, (_has_part(part, form) for part in parts))
    rows = np.repeat(np.arange(len(array)), lengths)
    return np.bincount(rows[there], minlength=len(array)) > 0


def _pairs(array: pa.Array) -> tuple[tuple[pa.Array, pa.Array], Ints]:
    """The keys and the items of all maps, and how many each map has."""
    array = array.take(np.arange(len(array)))  # its keys and items begin with its first row
    return (array.keys, array.items), np.diff(array.offsets.to_numpy())


def _elements(array: pa.Array) -> tuple[tuple[pa.Array], Ints]:
    """The elements of all lists, and how many each list has."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    return (pc.list_flatten(array),), np.where(_nulls(array), 0, lengths)


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _shift(numbers: RowNumbers, there: npt.NDArray[np.bool_]) -> RowNumbers:
    """The numbers from 1 on, and 0 for rows that are not `there`. No number is without a row."""
    if there.all():
        return RowNumbers(numbers.of_row + 1, numbers.size + 1)
    found, place = distinct(numbers.of_row[there], numbers.size)
    of_row = np.zeros(len(there), np.int64)
    of_row[there] = place + 1
    return RowNumbers(of_row, len(found) + 1)


def _number_lists(
    array: pa.Array, elements: RowNumbers, lengths: Ints, *, is_set: bool
) -> RowNumbers:
    """The numbers of lists, from the numbers of all their elements. A list is a sequence of bytes:
    those of its elements' numbers, high bytes first, so that bytes have the order of lists."""
    of_element = elements.of_row
    if is_set:
        rows = np.repeat(np.arange(len(lengths)), lengths)
        of_element = np.sort(rows * elements.size + of_element) % elements.size
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = pa.py_buffer(of_element.astype(">u8"))
    buffers = [None, pa.py_buffer(8 * offsets), data]
    sequences = pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)
    numbers = _number_atoms(sequences, lambda values: values)
    return _shift(RowNumbers(numbers.of_row - 1, numbers.size - 1), ~_nulls(array))


def _number_atoms(array: pa.Array, form: Form) -> RowNumbers:
    encoded = _plain(array).dictionary_encode()
    forms = form(encoded.dictionary).dictionary_encode()
    order = pc.array_sort_indices(forms.dictionary)
    place = np.zeros(len(order) + 1, np.int64)  # the last one is for null
    place[order.to_numpy()] = np.arange(1, len(order) + 1)
    of_form = np.append(place[pc.fill_null(forms.indices, -1).to_numpy()], 0)
    of_row = of_form[pc.fill_null(encoded.indices, -1).to_numpy()]
    return RowNumbers(of_row, len(order) + 1, forms.dictionary.take(order))


def _decode(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary. Arrow can't decode one of views, as polars makes them of its
    categories."""
    return pa.DictionaryArray.from_arrays(
        array.indices, _plain(array.dictionary)
    ).dictionary_decode()


def _plain(array: pa.Array) -> pa.Array:
    """The array in a type that Arrow can sort."""
    dtype = array.type
    if types.is_decimal32(dtype) or types.is_decimal64(dtype):
        return array.cast(pa.decimal128(dtype.precision, dtype.scale))
    if types.is_float16(dtype):
        return array.cast(pa.float32())
    if types.is_date64(dtype):
        return array.cast(pa.date32())
    if _is_text(dtype):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if _is_binary(dtype) else array


def _is_text(dtype: pa.DataType) -> bool:
    return any(
        check(dtype) for check in (types.is_string, types.is_large_string, types.is_string_view)
    )


def _is_binary(dtype: pa.DataType) -> bool:
    kinds = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(check(dtype) for check in (*kinds, types.is_binary_view))


def _key_form(values: pa.Array) -> pa.Array:
    if not types.is_floating(values.type):
        return values
    numbers = values.to_numpy() + values.type.to_pandas_dtype()(0)
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers, values.type)


def _present(values: pa.Array, tokens: Sequence[str]) -> pa.Array:
    """Distinct atomic values of a protected column: folded texts, null for what is missing."""
    dtype = values.type
    if _is_text(dtype):
        words = {"", *map(fold_text, tokens)}
        texts = map(fold_text, values.to_pylist())
        return pa.array([None if text in words else text for text in texts], dtype)
    if _is_binary(dtype):
        return values
    values = _key_form(values)
    missing = pc.is_in(values, value_set=_token_set(tokens, dtype))
    if types.is_floating(dtype):
        missing = pc.or_(missing, pc.is_nan(values))
    return pc.if_else(missing, pa.scalar(None, dtype), values)


def _token_set(tokens: Sequence[str], dtype: pa.DataType) -> pa.Array:
    """The tokens as values of a type. Those that are not values of it are left out."""
    read = _reader(dtype)
    found = [value for token in tokens for value in [read(token.strip(), dtype)]]
    there = [value for value in found if value is not None]
    if types.is_date(dtype):
        return pa.array(there, pa.int32()).cast(dtype)
    if types.is_timestamp(dtype):
        return pa.array(there, pa.int64()).cast(dtype)
    return pa.array(there, dtype)


def _reader(dtype: pa.DataType) -> Callable[[str, pa.DataType], Any]:
    """The function that parses the text of a token as a value of a type. It gives None for other
    texts."""
    for check, read in (
        (types.is_boolean, _flag),
        (types.is_integer, _integer),
        (types.is_floating, _real),
        (types.is_decimal, _decimal),
        (types.is_date, _day),
        (types.is_timestamp, _timestamp),
    ):
        if check(dtype):
            return read
    raise TypeError(f"a column of type {dtype} can't be numbered")


def _flag(text: str, _: pa.DataType) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _integer(text: str, dtype: pa.DataType) -> int | None:
    number, limits = finite_number(text), np.iinfo(dtype.to_pandas_dtype())
    if number is None or not limits.min <= number <= limits.max:
        return None
    return int(number) if number == int(number) else None


def _real(text: str, dtype: pa.DataType) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    largest = float(np.finfo(dtype.to_pandas_dtype()).max)
    if math.isnan(number) or (abs(number) > largest and finite_number(text) is not None):
        return None
    return number + 0.0


def _decimal(text: str, dtype: pa.DataType) -> Decimal | None:
    number = finite_number(text)
    if number is None:
        return None
    try:
        kept = Context(prec=dtype.precision).quantize(number, Decimal((0, (1,), -dtype.scale)))
    except DecimalException:
        return None
    return kept if kept == number else None


def _day(text: str, _: pa.DataType) -> int | None:
    moment = read_moment(text)
    return None if moment is None or moment % DAY else moment // DAY


def _timestamp(text: str, dtype: pa.DataType) -> int | None:
    moment = read_moment(text)
    if moment is None:
        return None
    whole, rest = divmod(moment * _PER_SECOND[dtype.unit], 10**6)
    return None if rest or abs(whole) >= 2**63 else whole


def show_values(values: pa.Array) -> tuple[str, ...]:
    """Atomic values as the texts that a hierarchy or an order names them by."""
    shown = {bool: lambda v: str(v).lower(), Decimal: lambda v: f"{v:f}"}
    return tuple(shown.get(type(value), str)(value) for value in values.to_pylist())
