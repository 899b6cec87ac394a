"""Does the order of the published rows say anything?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure import Figure, Findings, Measure
from anonlib.table.columns import LINK

if TYPE_CHECKING:  # these import Spark
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from anonlib.evaluation.case import Case

#: Most distinct rows that are looked at.
MAX_ROWS = 10_000
#: No correlation is larger by chance than so many standard deviations, which are (m - 1)^(-1/2) for
#: m rows.
DEVIATIONS = 4.0

BEFORE = "rows get their random order when they are published: `evaluate` the published table"


class Order(Measure):
    """Whether the order of the published rows tells anything of what they hold.

    `correlation`: Spearman's rank correlation, without its sign, of where rows stand in the
    published files with what they hold, by released column; `chance`: what a random order stays
    below.

    A table written in its source's order, or block by block, would show it wherever that order has
    to do with a released column. What it can't show is an order by something that is not released;
    against that, publication orders rows by a hash of their released values with a fresh secret,
    whatever the source's order was.

    That puts equal rows side by side, which says nothing: each counts once, where it stands first.
    Files stand in the order of their names; where they are laid out by columns, only places within
    files are compared. Intervals count by their lower end, sets and shares by their first element,
    text by its letters. Before the commit rows are not in their order yet: there is no value then,
    and no release goes with a gate on it. One aggregate of the release.
    """

    type: ClassVar[str] = "order"
    names: ClassVar[Mapping[str, str]] = {
        "correlation": "how far rows stand in the order of the column's values, either way; 0 to "
        "1, above `chance` the order tells something",
        "chance": "what correlations stay below in a random order; 0 to 1, for comparison",
    }
    of_published: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True  # by their links, staged rows are told from published ones

    def measure(self, case: "Case") -> Findings:
        if LINK in case.released.columns:
            return Findings((Figure("correlation", None, note=BEFORE),))
        columns = case.schema.released
        types = {column.id: column.released_type for column in columns}
        rows = _placed(case.released, types)
        if rows.num_rows < 2:
            return Findings((Figure("correlation", None, note="less than two distinct rows"),))
        place = _places(rows, within_files=bool(case.config.release.partition_by))
        figures = [_figure(place, rows.column(c.id), c.name) for c in columns]
        chance = min(1.0, DEVIATIONS / float(np.sqrt(rows.num_rows - 1)))
        note = f"{rows.num_rows} distinct rows"
        return Findings((*figures, Figure("chance", chance, note=note)))


def _placed(released: "DataFrame", types: dict[str, pa.DataType]) -> pa.Table:
    """`file`, `start` and `offset` of the first of equal rows, and what each column is ranked by:
    of those distinct rows whose hashes are the smallest."""
    from pyspark.sql import functions as F

    from anonlib.spark.values import row_hash, spark_type

    place = F.struct(
        F.col("_metadata.file_name").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
        F.monotonically_increasing_id().alias("offset"),
    )
    released = released.select(
        place.alias("place"),
        row_hash(released.select(*types)).alias("row"),
        *[_leading(F.col(id), spark_type(type)).alias(id) for id, type in types.items()],
    )
    distinct = released.groupBy("row").agg(
        F.min("place").alias("place"), *[F.first(id).alias(id) for id in types]
    )
    return distinct.orderBy("row").limit(MAX_ROWS).select("place.*", *types).toArrow()


def _leading(column: "SparkColumn", type: Any) -> "SparkColumn":
    """A number or a text to rank values by."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(type, T.StructType) and type.fields:
        return _leading(column.getField(type.names[0]), type.fields[0].dataType)
    if isinstance(type, T.ArrayType):
        return _leading(F.get(column, F.lit(0)), type.elementType)
    return column.cast("double" if isinstance(type, T.NumericType) else "string")


def _places(rows: pa.Table, *, within_files: bool) -> Floats:
    """float64[m]: the ranks of where rows stand in the table, or in their files."""
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
