"""The manifest of a published table: which run left a version, and what others changed after it."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from anonlib.errors import InputError
from anonlib.run.manifest_reading import (
    Publication,
    choose_manifest,
    parse_manifest,
    read_manifest,
    read_publication,
)
from anonlib.run.publish import APP
from tests.unit import test_history
from tests.unit.test_history import CHANGE, FORM, KEEP, ONE, TWO, session
from tests.unit.test_target import ROOT, Log, Snapshot, Store, target

store, log, no_columns = test_history.store, test_history.log, test_history.no_columns


def test_the_manifest_of_an_earlier_version(store: Store, log: Log, no_columns: None) -> None:
    """That of the run that left the version, as far as the log tells."""
    store.files[f"{ROOT}/_anonlib/manifest.json"] = "newest"
    runs = f"{APP}one", f"{APP}two"
    rows = (5, TWO, "Append"), (2, ONE, None)
    made = target(log, Snapshot(7, runs), session(*rows))
    assert [choose_manifest(made, version) for version in (7, 5, 4, 2)] == [TWO, TWO, ONE, ONE]
    assert choose_manifest(made, 1) == "{}"
    # The log does not describe a third run, which may have left it.
    assert choose_manifest(target(log, Snapshot(7, (*runs, f"{APP}x")), session(*rows)), 1) == ""
    assert choose_manifest(target(log, Snapshot(7, runs), session()), 1) == "newest"
    restored = target(log, Snapshot(7, runs), session((6, None, "to 2"), *rows))
    assert [choose_manifest(restored, version) for version in (7, 6, 5, 4)] == [ONE, ONE, TWO, ONE]


def test_the_manifest_of_the_latest_version(store: Store, log: Log, no_columns: None) -> None:
    """As the log has it: beside the table lies that of a run which a RESTORE took back, until the
    next run."""
    place = f"{ROOT}/_anonlib/manifest.json"
    store.files[place] = TWO
    runs = f"{APP}one", f"{APP}two"
    rows = (1, TWO, "Append"), (0, ONE, "ErrorIfExists")
    restored = target(log, Snapshot(2, runs), session((2, None, "to 0"), *rows))
    assert choose_manifest(restored, None) == ONE
    assert choose_manifest(target(log, Snapshot(1, runs), session(*rows)), None) == TWO
    assert choose_manifest(target(log, Snapshot(1, runs), session()), None) == TWO
    del store.files[place]
    # Runs published, and which of them left the rows is unknown.
    assert choose_manifest(target(log, Snapshot(1, runs), session()), None) == ""
    lost = session((2, None, "to"), *rows)
    assert [choose_manifest(target(log, Snapshot(2, runs), lost), v) for v in (None, 2)] == ["", ""]
    assert choose_manifest(target(log, Snapshot(1), session()), None) == "{}"


def test_the_manifest_of_a_table_that_forgets_its_runs(
    store: Store, log: Log, no_columns: None
) -> None:
    rows = (1, TWO, "Append"), (0, ONE, "ErrorIfExists")
    made = target(log, Snapshot(1, forgets=True), session(*rows))
    assert [choose_manifest(made, version) for version in (None, 0)] == ["", ""]
    store.files[f"{ROOT}/_anonlib/manifest.json"] = TWO
    assert [choose_manifest(made, version) for version in (None, 0)] == [TWO, ""]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"run_id": "one"}'])
def test_a_manifest_that_is_unknown_or_damaged(
    store: Store, log: Log, no_columns: None, text: str
) -> None:
    """It is not taken for that of a table without runs, which promises nothing."""
    spark = session()
    log.snapshot = Snapshot(1, (f"{APP}one",))
    store.files[f"{ROOT}/_anonlib/manifest.json"] = text
    assert read_publication(spark, ROOT, None).manifest is None
    with pytest.raises(InputError, match="is damaged, in its log or in") if text else nullcontext():
        assert read_manifest(spark, ROOT, None) is None
    store.files[f"{ROOT}/_anonlib/manifest.json"] = ONE
    assert read_manifest(spark, ROOT, None) == FORM
    store.files.clear()
    log.snapshot = Snapshot(2)
    assert read_manifest(spark, ROOT, None) == {}


#: Parts that a manifest must have.
REQUIRED = {*FORM} - {"persons_kind", "persons_return", "rows_released", "rows_added"}
#: What no part of it is, nor a part of one.
WRONG = (None, 5.5, -1, [], [None], [{}], {"x": {}}, {"x": []}, float("nan"), 10**400)


@pytest.mark.parametrize("part", FORM)
def test_a_manifest_of_which_a_part_is_damaged(part: str) -> None:
    """Readers rely on its form: an audit asks for what was promised, and `verify` reads it."""
    less = {name: value for name, value in FORM.items() if name != part}
    assert parse_manifest(json.dumps(less)) == (None if part in REQUIRED else less)
    allowed = {"columns": ([],), "verdicts": ([],)}.get(part, ())
    for wrong in (each for each in WRONG if each not in allowed):
        assert parse_manifest(json.dumps({**FORM, part: wrong})) is None, wrong


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("columns", {"role": "sensitive"}),
        ("columns", {"name": "sex", "role": None}),
        ("columns", {"name": "sex", "role": "quasi_identifier"}),
        ("verdicts", {"model": None}),
        ("verdicts", {"holds": True}),
    ],
)
def test_a_manifest_of_which_an_entry_is_damaged(part: str, wrong: dict[str, Any]) -> None:
    assert parse_manifest(json.dumps({**FORM, part: [*FORM[part], wrong]})) is None


def test_a_manifest_of_strange_figures() -> None:
    for value in (float("inf"), float("nan"), "0.25", 10**400, True):
        assert parse_manifest(json.dumps({**FORM, "losses": {"ncp": value}})) is None
    for text in ("", "few", "<", "-1", "9" * 19, "5\n"):
        assert parse_manifest(json.dumps({**FORM, "rows_suppressed": text})) is None
    assert parse_manifest("[" * 100_000) is None


@pytest.mark.parametrize(
    ("rows", "commits", "version", "after"),
    [
        ([], {}, None, None),
        ([], {2: KEEP}, None, None),
        ([], {2: CHANGE}, None, 1),
        ([], {2: KEEP, 3: CHANGE, 4: KEEP}, None, 1),
        ([], {2: KEEP, 3: CHANGE, 4: KEEP}, 2, None),
        ([], {2: KEEP, 3: CHANGE, 4: KEEP}, 3, 1),
        ([(4, None, "to 2")], {2: KEEP, 3: CHANGE, 4: CHANGE}, None, None),
        ([(4, None, "to 3")], {2: KEEP, 3: CHANGE, 4: CHANGE}, None, 1),
        # The run before it left what came back.
        ([(4, None, "to 0")], {2: KEEP, 3: CHANGE, 4: CHANGE}, None, None),
        ([(3, None, "to 0")], {2: KEEP, 3: CHANGE, 4: CHANGE}, None, 0),
    ],
)
def test_what_others_changed_after_the_newest_run(
    store: Store, log: Log, no_columns: None, rows: Any, commits: Any, version: Any, after: Any
) -> None:
    for each, actions in commits.items():
        lines = "\n".join(map(json.dumps, actions))
        store.files[f"{ROOT}/_delta_log/{each:020}.json"] = lines
    log.snapshot = Snapshot(max(commits, default=1), (f"{APP}one", f"{APP}two"))
    spark = session(*rows, (1, TWO, "Append"), (0, ONE, "ErrorIfExists"))
    found = read_publication(spark, ROOT, version)
    assert found.changed_after == after
    doubts = found.list_premises(9)
    assert len(doubts) == (after is not None)
    assert (
        not doubts
        or f"others changed the table after version {after}; no run checked whose" in doubts[0]
    )


def test_a_change_is_told_whatever_the_manifest(store: Store, log: Log, no_columns: None) -> None:
    """Who damages it hides no rows."""
    lines = "\n".join(map(json.dumps, CHANGE))
    store.files[f"{ROOT}/_delta_log/{1:020}.json"] = lines
    log.snapshot = Snapshot(1, (f"{APP}one",))
    damaged = json.dumps({**FORM, "losses": {"ncp": "x"}})
    found = read_publication(session((0, damaged, "ErrorIfExists")), ROOT, None)
    assert (found.manifest, found.changed_after) == (None, 0)


@pytest.mark.parametrize(("runs", "text"), [((f"{APP}one",), ""), ((), "{}")])
def test_an_empty_manifest_is_of_no_run(
    store: Store, log: Log, no_columns: None, runs: tuple[str, ...], text: str
) -> None:
    store.files[f"{ROOT}/_anonlib/manifest.json"] = "{}"
    assert choose_manifest(target(log, Snapshot(1, runs), session()), None) == text


def test_rows_that_others_changed_by_their_number() -> None:
    """Where the log does not describe the run any more."""
    found = Publication({"rows_released": 9}, None)
    assert found.list_premises(9) == ()
    assert found.list_premises(8)[0].startswith("rows: others changed the table after its release;")
    for manifest in (None, {}, {"run_id": "one"}):
        assert Publication(manifest, None).list_premises(9) == ()
