"""Anonymization of huge tables on Spark and Delta Lake: partition, anonymize, audit, publish."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonlib.config.reading import load, parse
    from anonlib.local import cells
    from anonlib.pipeline import check, release

_HOMES = {
    "cells": "anonlib.local",
    "check": "anonlib.pipeline",
    "load": "anonlib.config.reading",
    "parse": "anonlib.config.reading",
    "release": "anonlib.pipeline",
}

__all__ = ["cells", "check", "load", "parse", "release"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: workers and `--help` need neither Spark nor scikit-learn.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
