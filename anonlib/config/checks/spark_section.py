"""Checks of `spark`."""

from collections.abc import Iterator

from anonlib.config.model import SparkSection
from anonlib.errors import Problem

#: Prefixes of Spark's settings that guard private data or belong to the operator.
GUARDED = ("spark.anonlib.", "spark.redaction.", "spark.sql.redaction.", "spark.io.encryption.")


def check_spark(spark: SparkSection) -> Iterator[Problem]:
    """Problems: settings of Spark that neither a config nor a sweep file may have."""
    for name in spark.conf:
        if name.lower().startswith(GUARDED):
            yield Problem(f"spark.conf.{name}", "a config may not set this; remove it")
