"""Pseudonyms of releases in memory: whatever makes the rows, none has a value of the source."""

from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anonlib
from anonlib.errors import AuditError
from anonlib.worker import task as worker

NOMINAL = {"role": "quasi_identifier", "scale": "nominal"}
#: Some look like pseudonyms themselves, some like nothing.
IDS = {
    "hashes": [sha256(f"person {i}".encode()).hexdigest() for i in range(60)],
    "numbers": [*range(10**9, 10**9 + 60)],
    "names": [f"P{i:05}p" for i in range(60)],
}
WAYS: list[tuple[str, str | dict[str, Any]]] = [
    ("peel", "tuples"),
    ("full_domain", "tuples"),
    ("greedy", "tuples"),
    ("greedy", "kmeans"),
    ("mondrian", "mondrian"),
    ("mdav", "single"),
    ("mdav", {"type": "controller", "column": "site"}),
]


def people(ids: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "person": ids,
            "sex": ["f", "m", "f"] * 20,
            "town": [*"abcde"] * 12,
            "site": np.repeat(["north", "south"], 30),
            "illness": ["flu", "gout", "cold"] * 20,
        }
    )


def config(kernel: str, step: str | dict[str, Any]) -> dict[str, Any]:
    steps = [{"type": step} if isinstance(step, str) else step]
    return {
        "attributes": {
            "person": {"role": "identifier", "pseudonym": True},
            "sex": NOMINAL,
            "town": NOMINAL,
            "site": {"role": "drop"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": "person",
        "pseudonyms": {"key_env": "OWN_KEY"},
        "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
        "partition": {"steps": steps},
        "kernel": kernel,
        "recode": {"nominal": "lca" if step == "tuples" else "mode"},
    }


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_KEY", "a key of 16 bytes or more")


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize(("kernel", "step"), WAYS)
def test_no_value_of_the_source_is_released(
    kernel: str, step: str | dict[str, Any], ids: str
) -> None:
    table = people(IDS[ids])
    released = anonlib.anonymize(table, config(kernel, step)).table["person"]
    assert released.nunique() == len(released) == 60
    assert not {*released} & {*map(str, IDS[ids])}


def test_what_is_no_pseudonym_stops_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit knows the form of pseudonyms only, which hashes in a source have, too."""
    monkeypatch.setattr(worker, "key_values", lambda columns, key: columns[0].combine_chunks())
    with pytest.raises(AuditError, match="column person: has values of the source"):
        anonlib.anonymize(pa.Table.from_pandas(people(IDS["hashes"])), config("mdav", "single"))
