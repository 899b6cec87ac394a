"""Entries of the backlog that a driver left half written."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from anonlib.config.keys import derive_key_check
from anonlib.errors import InputError
from anonlib.run import backlog as module
from anonlib.run.backlog import Backlog, Waiting
from tests.stores import Far

KEY = b"a key of thirty-two bytes, or so"
ONE = Waiting("one", "table", derive_key_check(KEY), ("age",), "{}", n_rows=3)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Far:
    made = Far()
    monkeypatch.setattr(module, "Storage", lambda spark, path: made)
    return made


def put(store: Far, run_id: str, text: str) -> None:
    store.files[f"{Far.root}/run-{run_id}/entry.json"] = text


def backlog() -> Backlog:
    spark: Any = None
    return Backlog(spark, Far.root, "table", KEY)


def test_complete_entries_wait(store: Far) -> None:
    put(store, "one", json.dumps(asdict(ONE)))
    put(store, "half", json.dumps(asdict(replace(ONE, run_id="half", n_rows=None))))
    assert backlog().waiting(frozenset()) == [ONE]
    assert backlog().waiting(frozenset({"one"})) == [ONE]


@pytest.mark.parametrize("text", ["", '{"run_id": "tor', "{}", "[1]"])
def test_entries_that_were_cut_off(store: Far, text: str) -> None:
    """No rows were written yet: nothing waits, and others go on. With rows beside it, an entry that
    is damaged stops the run: they may be of a batch that nobody else has."""
    put(store, "one", json.dumps(asdict(ONE)))
    put(store, "torn", text)
    assert backlog().waiting(frozenset()) == [ONE]
    store.files[f"{Far.root}/run-torn/rows/part-0"] = "sealed"
    with pytest.raises(InputError, match=r"run-torn/entry.json is damaged.*rows of run torn anew"):
        backlog().waiting(frozenset())
