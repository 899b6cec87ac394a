"""How far means and variances of columns are from the source's."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure import Cell, Figure, Findings, Series, Subjects
from anonlib.measure.fidelity._axes import Axes, Axis
from anonlib.measure.fidelity._tally import ColumnMeasure, Counter, Sums, TableStates, round_stably
from anonlib.table.encoding import count_units_per_day, tell_time


class Moments(ColumnMeasure):
    """How far the mean and the variance of each column are from the source's.

    For each continuous and ordinal quasi-identifier, over its present values:

    - `mean`: the absolute difference of the means, in standard deviations of the source.
    - `variance`: the absolute difference of the variances, divided by that of the source.

    Ordinal columns count as ranks. A value that stands for several values (`_reading`) adds the
    variance among them.

    Reference: on keeping both: MDAV-generic, section III.C.1; on comparing them:
    J. Domingo-Ferrer, V. Torra, Disclosure control methods and information loss for microdata,
    2001, cited from memory.
    Cost: one pass over each table, shared with other measures of columns.
    """

    type: ClassVar[str] = "moments"
    subjects: ClassVar[Subjects] = "columns"
    names: ClassVar[Mapping[str, str]] = {
        "mean": "how far the mean has moved; in standard deviations of the source, 0 is best, more "
        "is worse",
        "variance": "how much the variance has changed, either way; as a share of the source's, 0 "
        "is best, more is worse",
    }

    def parts(self, view: Axes) -> dict[str, Counter]:
        return {f"sums {axis.id}": Sums(axis.id) for axis in view.quasi if axis.is_numeric}

    def findings(self, table_states: TableStates) -> Findings:
        figures, rows = [], []
        for axis in table_states.view.quasi:
            if not axis.is_numeric:
                continue
            ours, theirs = (
                read_moments(states[f"sums {axis.id}"])
                for states in (table_states.source, table_states.released)
            )
            if note := explain_undefined(axis, ours, theirs):
                figures += [Figure(name, None, axis.name, note) for name in self.names]
                continue
            mean = abs(theirs.mean - ours.mean) / np.sqrt(ours.variance)
            variance = abs(theirs.variance / ours.variance - 1)
            figures.append(Figure("mean", round_stably(mean), axis.name))
            figures.append(Figure("variance", round_stably(variance), axis.name))
            if may_show(ours.n, theirs.n, table_states.view.least):
                rows.append((axis.name, *_in_units(axis, ours), *_in_units(axis, theirs)))
        return Findings(tuple(figures), (Series("moments", "", _HEADS, tuple(rows)),))


_HEADS = (
    *("column", "mean of the source", "deviation of the source"),
    *("mean of the release", "deviation of the release"),
)


def may_show(n_source: float, n_released: float, least: int) -> bool:
    """Whether the means of the source and of the release may be shown side by side.

    Both must have at least `least` values, and their numbers of values must be equal or differ by
    at least `least`. Otherwise the means would reveal the few suppressed rows, since cells may keep
    sums.
    """
    apart = abs(n_source - n_released)
    return min(n_source, n_released) >= least and (apart < 0.5 or apart >= least)


class Moment(NamedTuple):
    """The moments of a column.

    Attributes:
        n: The number of present values.
        mean: Their mean, standardized.
        variance: Their variance, standardized.
    """

    n: float
    mean: float
    variance: float


def read_moments(sums: Floats) -> Moment:
    """The moments from the state of `Sums`. NaN without values."""
    n, first, second = sums.tolist()
    if n <= 0:
        return Moment(0.0, np.nan, np.nan)
    return Moment(n, first / n, max(second / n - (first / n) ** 2, 0.0))


def explain_undefined(axis: Axis, ours: Moment, theirs: Moment) -> str:
    """Why differences can't be given in deviations of the source; empty if they can."""
    if not ours.n or axis.ends[0] == axis.ends[1] or not ours.variance:
        return "the source's values do not vary"
    return "" if theirs.n else "all values of the release are missing"


def _in_units(axis: Axis, moment: Moment) -> tuple[Cell, Cell]:
    """Mean and deviation in the units of the column: numbers, ranks from 0, or texts of a date or
    time and of days. None for a date beyond the calendar."""
    scale, center = axis.encoding.sd, axis.encoding.mean
    mean = round_stably(center + scale * moment.mean)
    deviation = round_stably(scale * float(np.sqrt(moment.variance)))
    if not axis.is_line or not pa.types.is_temporal(axis.type):
        return mean, deviation
    days = float(f"{deviation / count_units_per_day(axis.type):.4g}")
    return tell_time(mean, axis.type), f"{days:,g} days"
