"""Whether the order of published rows reveals anything."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure import Figure, Findings, Measure

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The most distinct rows to measure.
MAX_ROWS = 10_000
#: Correlations by chance stay below this many deviations. A deviation is (m - 1)^(-1/2) for m rows.
DEVIATIONS = 4.0

BEFORE = "of the files of a published table only: `anonlib evaluate CONF` after a release in Spark"


class Order(Measure):
    """Whether the order of the published rows reveals anything about their values.

    - `correlation`: for each released column, the absolute value of Spearman's rank correlation
      between the places of rows in the published files and their values.
    - `chance`: the bound that correlations in a random order stay below.

    The measure detects a table that is written in the order of its source, or block by block, if
    that order is related to a released column. It can't detect an order by something that is not
    released. Publication prevents both: it orders rows by a hash of their released values with a
    fresh secret, so the order of the source has no effect.

    Equal rows are next to each other. This reveals nothing, so only the first of them counts. Files
    are ordered by name. If files are laid out by columns, only places within files are compared.
    Intervals are ranked by their lower end, sets and shares by their first element, texts
    alphabetically.

    Before the commit, rows are not in their final order. So there is no value then, and no release
    passes a gate on it.
    Cost: one aggregate of the release.
    """

    type: ClassVar[str] = "order"
    is_risk: ClassVar[bool] = True
    names: ClassVar[Mapping[str, str]] = {
        "correlation": "how far rows stand in the order of the column's values, either way; 0 to "
        "1, above `chance` the order tells something, less is safer",
        "chance": "what correlations stay below in a random order; 0 to 1, for comparison",
    }
    of_published: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True  # links distinguish staged rows from published ones

    def measure(self, case: "Case") -> Findings:
        rows = case.places(MAX_ROWS)
        if rows is None:
            return Findings((Figure("correlation", None, note=BEFORE),))
        if rows.num_rows < 2:
            return Findings((Figure("correlation", None, note="less than two distinct rows"),))
        place = _places(rows, within_files=case.partitioned)
        figures = [_figure(place, rows.column(c.id), c.name) for c in case.schema.released]
        chance = min(1.0, DEVIATIONS / float(np.sqrt(rows.num_rows - 1)))
        note = f"{rows.num_rows} distinct rows"
        return Findings((*figures, Figure("chance", chance, note=note)))


def _places(rows: pa.Table, *, within_files: bool) -> Floats:
    """float64[m]. The ranks of rows by their places in the table, or in their files."""
    frame = rows.select(["file", "start", "offset"]).to_pandas()
    frame = frame.sort_values(["file", "start", "offset"])
    frame["place"] = np.arange(len(frame), dtype=np.float64)
    if within_files:
        frame["place"] = frame.groupby("file")["place"].rank(pct=True).rank()
    places: Floats = frame["place"].sort_index().to_numpy()
    return places


def _figure(place: Floats, values: pa.ChunkedArray, name: str) -> Figure:
    rank = values.to_pandas().rank(na_option="top").to_numpy()
    if not (np.ptp(rank) and np.ptp(place)):
        return Figure("correlation", None, name, "all rows have the same, or stand alone")
    return Figure("correlation", abs(float(np.corrcoef(place, rank)[0, 1])), name)
