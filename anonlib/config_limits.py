"""How large configs and sweep files may be: what is larger is refused before any work on it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from anonlib.errors import Problem

#: Of a file.
MAX_BYTES = 1_000_000
#: Mappings and lists within each other.
MAX_DEPTH = 30
#: Keys and values in all.
MAX_NODES = 100_000
#: Characters of a text, of a key and of a number.
MAX_TEXT, MAX_KEY, MAX_NUMBER = 100_000, 1_000, 100
#: The most items of single fields.
MAX_ITEMS = {
    "attributes": 10_000,
    "unit": 100,
    "privacy.models": 100,
    "privacy.missing_tokens": 1_000,
    "partition.steps": 20,
    "evaluate.measures": 100,
    "release.partition_by": 100,
    "gates": 1_000,
    "source.options": 1_000,
    "spark.conf": 1_000,
}


def too_many(tree: Mapping[str, Any]) -> Iterator[Problem]:
    """The fields of a config with more items than they may have."""
    for where, most in MAX_ITEMS.items():
        found: Any = tree
        for part in where.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if isinstance(found, Collection) and not isinstance(found, str) and len(found) > most:
            yield Problem(where, f"{len(found):,} items; at most {most:,}")
