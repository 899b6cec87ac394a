"""How often the values of columns are there, for hierarchies that are built from them."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import functions as F

from anonlib.config import Config
from anonlib.errors import InputError
from anonlib.progress import Progress
from anonlib.spark.errors import translated
from anonlib.spark.session import session
from anonlib.spark.source import open_columns

#: Most combinations of values that are counted.
MOST_COUNTED = 1_000_000


def count_values(config: Config, names: Sequence[str], progress: Progress) -> pa.Table:
    """The distinct combinations of the columns' values as v0, v1, ..., and how many rows have each
    as `count` (int64); null is missing. One pass over the source.

    Raises InputError for more than MOST_COUNTED, else as `open_source`.
    """
    with progress.stage("start"):
        spark = session(config.spark.conf)
    with progress.stage("count", spark), translated("source", denied=InputError):
        frame = open_columns(spark, config, names)
        counts = frame.groupBy(*frame.columns).agg(F.count("*").alias("count"))
        table = counts.limit(MOST_COUNTED + 1).toArrow()
    if len(table) > MOST_COUNTED:
        text = f"more than {MOST_COUNTED:,} distinct values, too many for a hierarchy; coarsen it"
        raise InputError(f"column {', '.join(names)}: {text}")
    return table
