"""How quasi-identifiers become the columns that kernels work on: one frozen encoding per column,
fitted on the whole table, shared by all blocks."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.block import MISSING, Codes, Floats, Ints, snap
from anonlib.errors import BlockError
from anonlib.schema import Scale

#: No standardized value is larger than this, so that sums over a block stay exact on the grid.
MAX_RANGE = 2.0**14


@dataclass(frozen=True)
class Encoding:
    """One quasi-identifier.

    Continuous columns: (value - mean) / sd, on the grid; a missing value stands at the mean, and
    with `missing` a 0/1 column follows, so that it is one standard deviation from a present one.
    Ordinal columns: the same of the rank among `categories`. Nominal columns: the code among
    `categories`; the next code is the missing category. `low` and `high` are the smallest and
    largest present value (or rank).
    """

    id: str
    scale: Scale
    missing: bool
    mean: float = 0.0
    sd: float = 1.0
    low: float = 0.0
    high: float = 0.0
    categories: pa.Array | None = None

    @property
    def nominal(self) -> bool:
        return self.scale is Scale.NOMINAL

    @property
    def n_categories(self) -> int:
        """Codes of a nominal column, the missing one included."""
        return self._n_present + self.missing

    @property
    def _n_present(self) -> int:
        return 0 if self.categories is None else len(self.categories)

    @property
    def widths(self) -> list[float]:
        """The range over the whole table of each numeric column it becomes."""
        ends = snap(standardize(np.array([self.low, self.high]), self.mean, self.sd))
        return [float(ends[1] - ends[0])] + [1.0] * self.missing

    def numeric(self, values: pa.Array) -> Floats:
        """float64[n, 1 or 2] of a continuous or ordinal column."""
        numbers = self._ranks(values) if self.categories is not None else to_float(values)
        absent = np.isnan(numbers)
        numbers[absent] = self.mean
        columns = [snap(standardize(numbers, self.mean, self.sd))]
        if self.missing:
            columns.append(absent.astype(np.float64))
        elif absent.any():
            raise BlockError("missing values that the scan did not see: the source has changed")
        return np.column_stack(columns)

    def codes(self, values: pa.Array) -> Codes:
        """int32[n] of a nominal column."""
        codes: Codes = np.nan_to_num(self._ranks(values), nan=self._n_present).astype(np.int32)
        return codes

    def _ranks(self, values: pa.Array) -> Floats:
        found = pc.index_in(values, value_set=self.categories)
        if found.null_count != values.null_count:
            raise BlockError("a category that the scan did not see: the source has changed")
        ranks: Floats = found.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        return ranks


def standardize(values: Floats, mean: float, sd: float) -> Floats:
    """(values - mean) / sd; a column without spread has sd 1."""
    return (values - mean) / sd


def to_float(values: pa.Array) -> Floats:
    """Numbers, days since 1970 or microseconds since 1970, as float64 with NaN for null."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).copy()
    return numbers


def moments(values: Floats, low: float, high: float) -> tuple[float, float]:
    """Mean and standard deviation (population) of the present values of a sample in fixed order.

    The deviation is at least range / MAX_RANGE and 1 where the column is constant.
    """
    present = values[~np.isnan(values)]
    if not len(present) or high <= low:
        return (low if high >= low else 0.0), 1.0
    center = (low + high) / 2
    # Around the centre and in units of the range, so that huge and tiny values stay in range.
    scaled = (present - center) / (high - low)
    mean = float(scaled.mean())
    sd = max(float(scaled.std()), 1.0 / MAX_RANGE)
    return center + mean * (high - low), sd * (high - low)


def protected_codes(values: pa.Array, missing_tokens: tuple[str, ...]) -> Codes:
    """int32[n]: codes of a protected column, local to the block; MISSING for null, NaN and tokens.

    Text is compared trimmed and case-folded, numbers by value.
    """
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, pc.add(values, 0.0))
    encoded = values.dictionary_encode()
    indices = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    codes: Codes = indices.astype(np.int32)
    if pa.types.is_string(values.type):
        tokens = {token.strip().casefold() for token in missing_tokens}
        folded = [value.strip().casefold() for value in encoded.dictionary.to_pylist()]
        number = {text: i for i, text in enumerate(dict.fromkeys(folded))}
        recode = [MISSING if text in tokens else number[text] for text in folded]
        codes = np.array([*recode, MISSING], np.int32)[codes]
    return codes


def mix(numeric: Floats, nominal: Codes) -> Ints:
    """int64[n]: a 64-bit mix of each row's values, equal for equal rows: the canonical order."""
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
