"""A sample of a source in memory, to try settings on."""

from collections.abc import Sequence
from contextlib import closing
from functools import reduce
from operator import and_
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.config.model import AccountabilitySection, Config, ReleaseSection, SourceSection
from anonlib.config.policies.judgement import narrow_policy
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.progress import Progress
from anonlib.run.operator_limits import require_minimum_k
from anonlib.run.scan import require_readable
from anonlib.source.resolved_source import open_source
from anonlib.spark.session import session
from anonlib.spark.translation import translate_errors
from anonlib.spark.values import hash_row


class SourceSample(NamedTuple):
    """A sample of a source in memory.

    Attributes:
        table: Its rows.
        config: The config of a release of them in memory: without what only a run in Spark does,
            and without casts, since the values are cast.
        is_whole: Whether these are all rows of the source.
    """

    table: pa.Table
    config: Config
    is_whole: bool


def read_sample(
    config: Config,
    most: int,
    ks: Sequence[int],
    progress: Progress,
    dataframe: DataFrame | None = None,
) -> SourceSample:
    """Reads a sample of a config's source into memory, to try settings on.

    Args:
        config: The config.
        most: About the most rows. All rows of a person are in the sample, or none. Without a unit,
            the draw depends on how the source is divided into tasks.
        ks: The k that will be tried. None may be below the operator's minimum.
        progress: Hears of every stage.
        dataframe: The rows, with `source: {format: dataframe}`. Else the config's source is read.

    Raises:
        ConfigError, InputError: As `check`.
    """
    with progress.stage("start"):
        there = None if dataframe is None else dataframe.sparkSession
        spark = session(config.spark.conf, there)
        least = KAnonymity(k=min([config.k, *ks]))
        require_minimum_k(spark, [least])
    with progress.stage("open", spark):
        source = open_source(spark, config, dataframe)
    with closing(source), progress.stage("scan", spark), translate_errors("source"):
        require_readable(source, config.privacy.missing_tokens)
        rows = source.raw.select(*[column.alias(id) for id, column in source.columns.items()])
        n = rows.count()
        if n > most and (unit := source.schema.unit):
            named = reduce(and_, [F.col(id).isNotNull() for id in unit])
            person = F.when(named, F.xxhash64(*unit)).otherwise(hash_row(rows))
            drawn = F.xxhash64(F.lit(config.seed), person)
            rows = rows.where(drawn < F.lit(int(2**64 * most / n) - 2**63))
        elif n > most:
            rows = rows.sample(fraction=most / n, seed=config.seed)
        table = rows.limit(2 * most).toArrow()  # a single person may have very many rows
    names = [source.schema.by_id(id).name for id in table.column_names]
    return SourceSample(table.rename_columns(names), _in_memory(config, names), n <= most)


def _in_memory(config: Config, names: Sequence[str]) -> Config:
    """The config of a release in memory of these columns."""
    plain = {"type": None, "layout": None, "pseudonym": False}
    attributes = {n: config.attributes[n].model_copy(update=plain) for n in names}
    source = SourceSection.model_validate({"format": "dataframe"})
    release = ReleaseSection.model_validate({"path": config.release.path})
    absent = {f"attributes.{n}" for n in config.attributes if n not in names}
    return config.model_copy(
        update={
            "review": tuple(place for place in config.review if place not in absent),
            "source": source,
            "attributes": attributes,
            "release": release,
            "accountability": AccountabilitySection(),
            "pseudonyms": None,
            "evaluate": None,
            "gates": (),
            "policy": narrow_policy(config.policy),
            "events": None,
        }
    )
