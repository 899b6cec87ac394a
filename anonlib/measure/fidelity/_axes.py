"""The columns that measures compare, as they are known before the pass over the rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Ints, snap
from anonlib.encode.texts import texts
from anonlib.hierarchy import Hierarchy
from anonlib.recode import Form
from anonlib.recode.value_leaves import ROOT
from anonlib.table.encoding import MAX_RANGE, NO_RANGE, Encoding, standardize
from anonlib.table.schema import Column, Role, Scale, is_atomic, may_be_continuous

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The most distinct values of a sensitive column or a target that associations and queries use.
#: Numeric columns may have more.
MOST_VALUES = 100


class AxisNodes(NamedTuple):
    """The nodes above a column's categories, the root last.

    Attributes:
        names: string[nodes]. Their names.
        low: int64[nodes]. The codes below node i are low[i] .. high[i] - 1.
        high: int64[nodes]. See `low`.
    """

    names: Any
    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False)
class Axis:
    """A column, with its values in the source and its form in the release.

    Attributes:
        id: Its name between reading and writing.
        name: Its name in the release.
        encoding: How its values are coded.
        type: Its type in the source.
        form: What its recoder releases.
        hierarchy: Its hierarchy, if it has one.
    """

    id: str
    name: str
    encoding: Encoding
    type: pa.DataType
    form: Form = "value"
    hierarchy: Hierarchy | None = None

    @property
    def is_line(self) -> bool:
        """Whether it is continuous. Other columns have categories."""
        return self.encoding.scale is Scale.CONTINUOUS

    @property
    def is_numeric(self) -> bool:
        """Whether it is continuous or ordinal, so that means are defined."""
        return self.encoding.scale is not Scale.NOMINAL

    @property
    def n_categories(self) -> int:
        """The number of categories, without the missing one. It is also the code of missing."""
        return 0 if self.encoding.categories is None else len(self.encoding.categories)

    @property
    def ends(self) -> Floats:
        """float64[2]. The least and the greatest value of the source, standardized."""
        return self.position(np.array([self.encoding.low, self.encoding.high]))

    def position(self, numbers: Floats) -> Floats:
        """Standardizes numbers, or ranks of an ordinal column, as for kernels. The result is on
        GRID; NaN stands for missing values."""
        return snap(standardize(numbers, self.encoding.mean, self.encoding.sd))

    @cached_property
    def positions(self) -> Floats:
        """float64[n_categories + 1]. The standardized ranks, then 0 for missing values."""
        return np.append(self.position(np.arange(self.n_categories, dtype=np.float64)), 0.0)

    @cached_property
    def texts(self) -> pa.Array:
        """string[n_categories]. The categories as recoders write them."""
        return texts(self.encoding.categories)

    @cached_property
    def leaves(self) -> Ints:
        """int64[n_categories]. The leaf of each category in the hierarchy."""
        assert self.hierarchy is not None
        return self.hierarchy.places(self.encoding.categories)

    @cached_property
    def nodes(self) -> AxisNodes:
        """The nodes that `lca` and `suppress` release."""
        c = self.n_categories
        if self.hierarchy is None:
            names = pa.concat_arrays([self.texts, pa.array([ROOT])])
            low, high = np.append(np.arange(c), 0), np.append(np.arange(1, c + 1), c)
        else:
            names = pa.array(self.hierarchy.names, pa.string())
            tree = self.hierarchy.tree
            low, high = (np.searchsorted(self.leaves, each) for each in (tree.low, tree.high))
        # Missing values are below the root if they are a category.
        high[-1] += self.encoding.missing and not self.is_numeric
        return AxisNodes(names, low, high)


@dataclass(frozen=True)
class Axes:
    """The columns of a release and its source, as they are known before the pass over their rows.

    Attributes:
        axes: The quasi-identifiers first, then sensitive columns and the target, which are
            released as they are.
        n_quasi: The number of quasi-identifiers.
        n_source: Rows of the source.
        n_released: Rows of the release.
        least: A number of rows that surely belong to at least k persons.
        seed: The config's seed.
        left_out: Names of columns that are left out: they have too many values or an unsupported
            type.
    """

    axes: tuple[Axis, ...]
    n_quasi: int
    n_source: int
    n_released: int
    least: int
    seed: int
    left_out: tuple[str, ...] = ()

    @property
    def quasi(self) -> tuple[Axis, ...]:
        return self.axes[: self.n_quasi]

    @property
    def note(self) -> str:
        """The columns that are left out, and why; empty if there are none."""
        names = ", ".join(self.left_out)
        return f"without {names}: too many values, or of an odd type" if names else ""

    def __getitem__(self, id: str) -> Axis:
        return next(axis for axis in self.axes if axis.id == id)


def read_axes(case: "Case") -> Axes:
    """The columns to compare.

    Cost: one or two passes over the source for columns without an encoding, and another pass if
    persons have several rows.
    """
    quasi = [
        make_axis(column, case.encodings[column.id]) for column in case.schema.quasi_identifiers
    ]
    others = case.schema.of(Role.SENSITIVE, Role.TARGET)
    encodings = _encodings(case, others)
    known = [make_axis(column, encodings[column.id]) for column in others if column.id in encodings]
    return Axes(
        axes=(*quasi, *known),
        n_quasi=len(quasi),
        n_source=case.n_source,
        n_released=case.n_released,
        least=case.person_rows().count_sure(case.k),
        seed=case.seed,
        left_out=tuple(column.name for column in others if column.id not in encodings),
    )


def make_axis(column: Column, encoding: Encoding) -> Axis:
    """A column with its encoding."""
    form: Form = "value" if column.recoder is None else column.recoder.releases
    return Axis(column.id, column.name, encoding, column.type, form, column.hierarchy)


def _encodings(case: "Case", columns: tuple[Column, ...]) -> dict[str, Encoding]:
    """Encodings of columns that are released as they are, by id. Only numbers and columns with few
    distinct values have one."""
    figures = case.summarize([column for column in columns if is_atomic(column.type)])
    result, few = {}, []
    for column in columns:
        if column.id not in figures:
            continue
        if may_be_continuous(column.type):
            result[column.id] = _of_numbers(column.id, *figures[column.id])
        elif figures[column.id][0] <= 2 * MOST_VALUES:
            few.append(column.id)
    return {**result, **_by_values(case, few)}


def _of_numbers(id: str, low: float, high: float, mean: float, sd: float) -> Encoding:
    """The encoding of numbers. Moments are rounded, since Spark's depend on the order of rows."""
    sd = max(sd, (high / 2 - low / 2) / (MAX_RANGE / 2))
    sd = 2.0 ** np.rint(np.log2(sd)) if sd > NO_RANGE else 1.0
    return Encoding(id, Scale.CONTINUOUS, True, float(np.rint(mean / sd)) * sd, sd, low, high)


def _by_values(case: "Case", ids: list[str]) -> dict[str, Encoding]:
    found = {}
    for id, values in case.distinct_values(ids).items():
        if len(values) <= MOST_VALUES:
            values = values.take(pc.sort_indices(values))
            found[id] = Encoding(id, Scale.NOMINAL, True, categories=values)
    return found
