"""What only a run in Spark does."""

import os
from collections.abc import Iterator

from anonlib.config.environment import EVENTS, REQUIRE, RUNS
from anonlib.config.model import Config
from anonlib.errors import Problem

#: The environment variables by which an operator asks for an account of every run.
ACCOUNTS = (RUNS, EVENTS, REQUIRE)


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
    }
    yield from (Problem(where, text) for where, found in asked.items() if found)


def find_accounts() -> Iterator[Problem]:
    """The accounts of runs that an operator asks for, which no release in memory keeps."""
    for variable in ACCOUNTS:
        if os.environ.get(variable):
            yield Problem(
                f"environment variable {variable}",
                "the operator keeps account of all runs, which only a release in Spark does",
            )
