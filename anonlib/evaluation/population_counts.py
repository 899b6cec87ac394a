"""Counts the persons of a population in the regions of a release."""

from operator import add

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.evaluation.fold import fold
from anonlib.measure.regions import (
    IN_ALL,
    IN_REGION,
    IN_SEVERAL,
    N_ROWS,
    RegionCounts,
    Regions,
)


def count_regions(rows: DataFrame, regions: Regions) -> RegionCounts:
    """Counts rows in regions. Distinct rows are counted first, then compared with the regions in
    tasks. Regions are sent with the function.

    Args:
        rows: The rows, with the columns of the regions.
        regions: t regions.
    """
    distinct = rows.groupBy(*regions.ids).agg(F.count("*").alias(N_ROWS))
    found = fold(distinct, regions.count, lambda name, a, b: add(a, b))
    inside = np.rint(found[IN_REGION]).astype(np.int64)
    return RegionCounts(inside, int(found[IN_ALL][0]), int(found[IN_SEVERAL][0]))
