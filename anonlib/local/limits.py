"""What can't be done: with a number of rows, and in memory."""

import os
from collections.abc import Iterator
from math import ceil

from anonlib.arrays import Ints
from anonlib.config.model import Config, PartitionSection
from anonlib.errors import ConfigError, Problem
from anonlib.partition.chain import FILL

#: The environment variables by which an operator asks for an account of every run.
ACCOUNTS = ("ANONLIB_RUNS", "ANONLIB_EVENTS", "ANONLIB_REQUIRE")
#: The fewest sampled rows of a leaf that plans aim at.
MIN_PER_LEAF = 8


def refuse_large(partition: PartitionSection, n_rows: Ints) -> None:
    """Raises ConfigError if a step that keeps a table whole gets too many rows.

    n_rows: int64[r]. The rows of each tree.
    """
    for i, step in enumerate(partition.steps):
        if step.max_block_rows is not None and n_rows.max() > step.max_block_rows:
            raise ConfigError(
                [
                    Problem(
                        f"partition.steps.{i}",
                        (
                            f"one block takes at most {step.max_block_rows} rows, the source has "
                            f"{n_rows.max()}; use kmeans"
                        ),
                    )
                ]
            )


def refuse_thin(max_rows: int, share: float, n_rows: int) -> None:
    """Raises ConfigError if a sample has too few rows per block: a plan can't aim at such blocks.

    Args:
        max_rows: The most rows of a block.
        share: The sampled share of the rows.
        n_rows: The rows of the table.
    """
    per_leaf = FILL * max_rows * share
    if share < 1.0 and per_leaf < MIN_PER_LEAF:
        wanted = ceil(MIN_PER_LEAF * n_rows / (FILL * max_rows))
        raise ConfigError(
            [
                Problem(
                    "partition.sample_rows",
                    (
                        f"blocks of max_rows need a sample of at least {wanted} rows of these "
                        f"{n_rows}; or raise max_rows"
                    ),
                )
            ]
        )


def find_unsupported(config: Config) -> Iterator[Problem]:
    """What a config asks for that only a run in Spark does. Sections that say where and how a run
    works (source, spark, the rest of release) are not among it: they are not used in memory."""
    text = "only a release in Spark does this; leave it out for a table in memory"
    release = config.release
    asked = {
        "source.where": config.source.where is not None,
        "release.ledger": release.ledger is not None,
        "release.backlog": release.backlog is not None,
        "release.mode": release.mode == "append",
        "release.partition_by": bool(release.partition_by),
        "release.register": release.catalog_table is not None,
        "accountability.runs": config.accountability.runs is not None,
        "events": config.events is not None,
        "partition.steps": config.partition.controller is not None,
        "privacy.suppress": config.privacy.suppress == "costliest",
    }
    yield from (Problem(where, text) for where, found in asked.items() if found)
    for name, attribute in config.attributes.items():
        if attribute.pseudonym:
            yield Problem(f"attributes.{name}.pseudonym", text)


def find_accounts() -> Iterator[Problem]:
    """The accounts of runs that an operator asks for, which no release in memory keeps."""
    for variable in ACCOUNTS:
        if os.environ.get(variable):
            yield Problem(
                f"environment variable {variable}",
                "the operator keeps account of all runs, which only a release in Spark does",
            )
