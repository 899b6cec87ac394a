"""Results of the experiment: one line of JSON for each run."""

import json
from pathlib import Path
from typing import NamedTuple


class Key(NamedTuple):
    """What a run measures; k and l are 0 for the raw table, protocol is "" if the task has only
    one."""

    task: str
    dataset: str
    k: int
    l: int  # noqa: E741
    method: str
    protocol: str
    seed: int


class Result(NamedTuple):
    key: Key
    values: dict[str, float]


def read(path: Path) -> list[Result]:
    """The results in a file; none without the file. An incomplete line is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue  # the call was killed while it wrote
        key = Key(*(fields.pop(name) for name in Key._fields))
        found.append(Result(key, fields))
    return found


def by_seed(results: list[Result], metric: str) -> dict[Key, dict[int, float]]:
    """The metric by seed, for each key with its seed set to 0."""
    found: dict[Key, dict[int, float]] = {}
    for key, values in results:
        found.setdefault(key._replace(seed=0), {})[key.seed] = values[metric]
    return dict(sorted(found.items()))
