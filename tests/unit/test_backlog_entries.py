"""Entries of the backlog: those that a driver left half written, and those whose rows are gone."""

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


def test_rows_that_were_published_wait_no_more(store: Far) -> None:
    """Not even if the table is dropped, and made anew without the run that took them; and rows
    that a run left there when it was stopped are removed then, too."""
    put(store, "one", json.dumps(asdict(replace(ONE, taken_by="two"))))
    rows = f"{Far.root}/run-one/rows/part-0"
    store.files[rows] = "sealed"
    delete, store.delete = store.delete, lambda path: None  # type: ignore[method-assign]
    backlog().settle(frozenset({"two"}))
    assert backlog().waiting(frozenset()) == []
    store.delete = delete  # type: ignore[method-assign]
    backlog().settle(frozenset())
    assert rows not in store.files
    assert backlog().waiting(frozenset()) == []
    assert backlog().of("one") == replace(ONE, taken_by="two", settled=True)


@pytest.mark.parametrize(("taken_by", "why"), [(None, ""), ("two", ": run two took them, which ")])
def test_rows_that_are_gone(store: Far, taken_by: str | None, why: str) -> None:
    """As an earlier version left them, which kept no note that they were published."""
    entry = replace(ONE, taken_by=taken_by)
    put(store, "one", json.dumps(asdict(entry)))
    said = f"the rows that run one left are not there{why}.*; remove {Far.root}/run-one"
    with pytest.raises(InputError, match=said):
        backlog().rows([entry])
