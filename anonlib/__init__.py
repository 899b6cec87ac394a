"""anonlib anonymizes huge tables about people on Spark, audits the result and publishes it.

The verbs. All but anonymize and cells are in the command line, too (`python -m anonlib --help`),
where certify is `certificate`:

    anonymize   anonymize a table in hand: pandas, polars, Arrow (without Spark), or Spark
    suggest     try kernels and k on a sample of a table in hand, and suggest three
    check       resolve a config against its source; publishes nothing
    release     partition, anonymize, audit and publish a table
    evaluate    measure what a release, published or in hand, is worth, and how risky it is
    audit       count again whether a table, Delta or in hand, holds the privacy models of a config
    sweep       try many configs on small tables in memory
    report      write the page of a run
    certify     write the certificate of a run, for a privacy officer to sign
    verify      compare a certificate with the table that it is of, Delta, Parquet or in hand
    cells       group the rows of a table in memory, without Spark

A config is a dict, the path of a YAML file, or the Config that `load` or `parse` made of one.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonlib.config.reading import load, parse
    from anonlib.in_hand.anonymization import anonymize, suggest
    from anonlib.in_hand.assessment import audit, evaluate
    from anonlib.in_hand.verification import verify
    from anonlib.local.cell_grouping import cells
    from anonlib.pages.output import certify, report
    from anonlib.pipeline import check, release, sweep

    __version__: str

_HOMES = {
    "anonymize": "anonlib.in_hand.anonymization",
    "audit": "anonlib.in_hand.assessment",
    "cells": "anonlib.local.cell_grouping",
    "certify": "anonlib.pages.output",
    "check": "anonlib.pipeline",
    "evaluate": "anonlib.in_hand.assessment",
    "load": "anonlib.config.reading",
    "parse": "anonlib.config.reading",
    "release": "anonlib.pipeline",
    "report": "anonlib.pages.output",
    "suggest": "anonlib.in_hand.anonymization",
    "sweep": "anonlib.pipeline",
    "verify": "anonlib.in_hand.verification",
}

__all__ = [
    "__version__",
    "anonymize",
    "audit",
    "cells",
    "certify",
    "check",
    "evaluate",
    "load",
    "parse",
    "release",
    "report",
    "suggest",
    "sweep",
    "verify",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: workers and `--help` need neither Spark nor scikit-learn.
    if name == "__version__":
        try:
            return version("anonlib")
        except PackageNotFoundError:  # run from a bare checkout
            return "unknown"
    if name not in _HOMES:
        near = ""
        if not name.startswith("_"):  # those are asked for by Python, which is to stay quick
            from anonlib.errors import did_you_mean

            near = did_you_mean(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{near}")
    from anonlib.errors import is_spark_missing, stand_in, without_cause

    try:
        verb = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if not is_spark_missing(error):
            raise
        verb = stand_in(_HOMES[name], name)
    from anonlib.spark.loan import return_session

    found = globals()[name] = without_cause(return_session(verb))
    return found


def __dir__() -> list[str]:
    return __all__
