"""Counts the persons of a population in the regions of a release."""

from operator import add

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.evaluation.fold import fold
from anonlib.measure.regions import IN_ALL, IN_REGION, N_ROWS, Regions


def count_regions(rows: DataFrame, regions: Regions) -> tuple[Ints, int]:
    """The rows in each region, and all rows. Distinct rows are counted first, then compared with
    the regions in tasks. Regions are sent with the function.

    Args:
        rows: The rows, with the columns of the regions.
        regions: t regions.

    Returns:
        int64[t], and the number of rows.
    """
    distinct = rows.groupBy(*regions.ids).agg(F.count("*").alias(N_ROWS))
    found = fold(distinct, regions.count, lambda name, a, b: add(a, b))
    return np.rint(found[IN_REGION]).astype(np.int64), int(found[IN_ALL][0])
