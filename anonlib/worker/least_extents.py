"""What released values cover of their columns' whole ranges, where cells alone do not tell it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Floats
from anonlib.encode.texts import text_ends
from anonlib.recode import Cells, Recoder
from anonlib.table.block import Block
from anonlib.table.encoding import Encoding, to_float


def find_least_extents(
    block: Block,
    cells: Cells,
    encodings: Sequence[Encoding],
    recoders: Mapping[str, Recoder],
    of_cells: Mapping[str, Any],
    types: Mapping[str, pa.DataType],
) -> dict[int, Floats]:
    """`ReleasedBlock.least_extents`. Cost O(m) for m cells, and O(n) for columns with null cells
    and nominal ones released as nodes without a hierarchy.

    Args:
        block: The n rows, all of them in cells.
        cells: The cells.
        encodings: The encodings of the columns.
        recoders: By id: the column's recoder.
        of_cells: By id: the released value of each cell.
        types: By id: the column's own type.
    """
    found: dict[int, Floats] = {}
    for encoding, place in _list_places(encodings, len(block.widths)):
        recoder, values = recoders[encoding.id], of_cells[encoding.id]
        if recoder.releases == "nothing":
            columns = range(place, place + 1 + _has_flag(encoding))
            found |= dict.fromkeys(columns, np.ones(cells.m))
            continue
        least: list[Floats] = []
        if recoder.releases == "interval" and recoder.exceeds_cells:
            least.append(_cover_intervals(encoding, recoder, values, types[encoding.id]))
        if recoder.releases == "node" and encoding.tree is None:
            same = _agree(block.nominal[:, place - len(block.widths)], cells)
            least.append((~same).astype(np.float64))
        if values.null_count:
            absent: Bools = values.is_null().to_numpy(zero_copy_only=False)
            whole = absent & ~_is_missing(encoding, block, cells, place)
            least.append(whole.astype(np.float64))
        if least:
            found[place] = np.maximum.reduce(least)
    return found


def _list_places(encodings: Sequence[Encoding], n_numeric: int) -> Iterator[tuple[Encoding, int]]:
    """The encodings, each with the place of its first column: numeric ones are before nominal
    ones."""
    numeric, nominal = 0, n_numeric
    for encoding in encodings:
        if encoding.nominal:
            yield encoding, nominal
            nominal += 1
        else:
            yield encoding, numeric
            numeric += 1 + _has_flag(encoding)


def _has_flag(encoding: Encoding) -> bool:
    return encoding.missing and not encoding.nominal


def _agree(values: Any, cells: Cells) -> Bools:
    """bool[m]. Whether all rows of a cell have the same value. values: [n]."""
    sorted_values = values[cells.order]
    same: Bools = np.minimum.reduceat(sorted_values, cells.start) == np.maximum.reduceat(
        sorted_values, cells.start
    )
    return same


def _is_missing(encoding: Encoding, block: Block, cells: Cells, place: int) -> Bools:
    """bool[m]. Whether all values of a cell are missing, for cells that are released as null."""
    if encoding.nominal:
        return _agree(block.nominal[:, place - len(block.widths)], cells)
    if not encoding.missing:
        return np.zeros(cells.m, np.bool_)
    missing: Bools = np.minimum.reduceat(block.numeric[cells.order, place + 1], cells.start) > 0
    return missing


def _cover_intervals(
    encoding: Encoding, recoder: Recoder, values: Any, column: pa.DataType
) -> Floats:
    """float64[m]. The share of the column's range that is in each released interval; 0 for null."""
    low, high = recoder.open_ends(*_read_ends(values), column)
    if encoding.categories is None:
        first, last = encoding.low, encoding.high
        low, high = (np.clip(each, first, last) for each in (low, high))
    else:
        first, last = 0.0, len(encoding.categories) - 1.0
        low, high = _find_ranks(encoding, low, high)
    # Halved, which is exact, so that no difference overflows.
    extent, whole = high / 2 - low / 2, last / 2 - first / 2
    if whole <= 0:
        return np.zeros(len(values))
    share: Floats = np.nan_to_num(np.clip(extent / whole, 0.0, 1.0), nan=0.0)
    return share


def _find_ranks(encoding: Encoding, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """float64[m] each. The ranks of the first and the last category within intervals. Categories
    are numbers, dates or timestamps."""
    categories = np.sort(to_float(encoding.categories))
    first = np.searchsorted(categories, low, "left")
    last = np.searchsorted(categories, high, "right") - 1
    return first.astype(np.float64), last.astype(np.float64)


def _read_ends(values: Any) -> tuple[Floats, Floats]:
    """float64[m] each. The ends of released intervals, structs or texts; NaN for null."""
    if pa.types.is_struct(values.type):
        absent = values.is_null().to_numpy(zero_copy_only=False)
        ends = (to_float(pc.struct_field(values, name)) for name in ("lower", "upper"))
        low, high = (np.where(absent, np.nan, each) for each in ends)
        return low, high
    encoded = values.dictionary_encode()
    lower, upper = text_ends(encoded.dictionary)
    index = encoded.indices.fill_null(len(lower)).to_numpy(zero_copy_only=False)
    return np.append(lower, np.nan)[index], np.append(upper, np.nan)[index]
