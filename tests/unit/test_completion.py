"""What a run owes once it is committed, and who does it, without Spark."""

import json
from copy import copy
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.config.paths import find_dictionary_path, find_manifest_path
from anonlib.errors import InputError
from anonlib.pages import output
from anonlib.run import completion
from anonlib.run.completion import complete_last, is_owed, write_ahead
from anonlib.run.history import Commit
from anonlib.spark.lease import AHEAD, work_folder
from tests.stores import Far

TABLE, RECORDS = Far.root, f"{Far.root}.private"
WORK, OWN = work_folder(TABLE), f"{RECORDS}/two.json"
ROWS = {"rows_released": 9, "rows_suppressed": "none"}
MANIFEST = json.dumps({"run_id": "two", "verdicts": [], "losses": {}, **ROWS})
RECORD = {"run_id": "two", "record": OWN, "purpose": "für alle"}
SPARK: Any = None


class Store(Far):
    """One store, by any of its paths; knows which of its files everybody may read."""

    files: dict[str, str]
    public: set[str]

    def at(self, path: str) -> "Store":
        other = copy(self)
        other.root = path
        return other

    def write(self, path: str, text: str, *, new: bool = False, public: bool = False) -> None:
        super().write(path, text, new=new, public=public)
        if public:
            self.public.add(path)


class Table:
    """A table that the run `two` has committed to, in place of another."""

    path = TABLE

    def __init__(self, store: Store):
        self._store = store
        self.log = [Commit(1, "two", "Overwrite", MANIFEST)]
        self.places_are_free = True

    def commits(self) -> list[Commit]:
        return self.log

    def runs(self) -> frozenset[str]:
        return frozenset({"one", "two"})

    def manifest(self) -> str:
        return self._store.files.get(find_manifest_path(TABLE), "")

    def version_of(self, run_id: str) -> int:
        """That of the last commit of its purge."""
        return 1 if self.log[-1].mode == "Overwrite" else 3

    def require_places(self) -> None:
        if not self.places_are_free:
            raise InputError("a folder is in the place of the manifest")

    def purge(self, *_: Any) -> None:
        self.log = [Commit(3, "two", None, MANIFEST, 1)]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    made.public = set()
    monkeypatch.setattr(completion, "Storage", lambda spark, path: made.at(path))

    def draw(path: str) -> None:
        made.files[path.replace(".json", ".html")] = "a page"

    monkeypatch.setattr(output, "report", draw)
    return made


@pytest.fixture
def table(store: Store, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Table(store)
    monkeypatch.setattr(completion, "purge", made.purge)
    return made


def complete(table: Any) -> None:
    config: Any = SimpleNamespace(record_folder=RECORDS)
    lease: Any = SimpleNamespace(work=WORK)
    complete_last(SPARK, config, table, lease)


def test_all_that_a_run_owes(store: Store, table: Any) -> None:
    """The version in the record is that which its purge left, as if the run had not died."""
    write_ahead(SPARK, WORK, json.dumps(RECORD))
    assert is_owed(SPARK, table)
    complete(table)
    public = {find_manifest_path(TABLE), find_dictionary_path(TABLE)}
    assert store.files.keys() == {*public, OWN, OWN.replace(".json", ".html")}
    assert store.public == public
    assert table.manifest() == MANIFEST
    kept = {**RECORD, "table_version": 3}
    # As a run writes its own: people read it.
    assert store.files[OWN] == json.dumps(kept, indent=2, ensure_ascii=False)
    assert not is_owed(SPARK, table)
    store.files.clear()
    store.files[find_manifest_path(TABLE)] = MANIFEST
    complete(table)
    assert [*store.files] == [find_manifest_path(TABLE)]


def test_each_of_it_is_owed_alone(store: Store, table: Any) -> None:
    assert is_owed(SPARK, table)
    table.purge()
    assert is_owed(SPARK, table)
    store.files[find_manifest_path(TABLE)] = MANIFEST
    assert not is_owed(SPARK, table)
    write_ahead(SPARK, WORK, json.dumps(RECORD))
    assert is_owed(SPARK, table)
    store.files.clear()
    table.log = []  # as after a clean-up of Delta's log
    assert not is_owed(SPARK, table)


@pytest.mark.parametrize("text", ["", '{"run_id": "tw', "{}", json.dumps({"run_id": "three"})])
def test_a_record_of_no_run_that_was_committed(store: Store, table: Any, text: str) -> None:
    """Its run is writing it, or was refused: nothing is owed of it."""
    table.purge()
    store.files[find_manifest_path(TABLE)] = MANIFEST
    write_ahead(SPARK, WORK, text)
    before = {**store.files}
    assert not is_owed(SPARK, table)
    complete(table)
    assert store.files == before


@pytest.mark.parametrize("record", [None, "s3a://…@bucket/private/two.json"])
def test_a_record_whose_place_is_not_known(store: Store, table: Any, record: str | None) -> None:
    """Records leave out passwords. It goes to the folder of the run that finds it."""
    write_ahead(SPARK, WORK, json.dumps({**RECORD, "record": record}))
    complete(table)
    assert json.loads(store.files[OWN])["run_id"] == "two"


def test_a_record_in_its_place_stays(store: Store, table: Any) -> None:
    """Its run died between writing it and removing the other."""
    store.files[OWN] = "kept"
    write_ahead(SPARK, WORK, json.dumps(RECORD))
    complete(table)
    assert store.files[OWN] == "kept"
    assert f"{WORK}/{AHEAD}" not in store.files


def test_a_page_that_can_not_be_made(
    store: Store, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: str) -> None:
        raise RuntimeError

    monkeypatch.setattr(output, "report", fails)
    write_ahead(SPARK, WORK, json.dumps(RECORD))
    complete(table)
    assert OWN in store.files


def test_what_is_in_the_place_of_the_manifest_is_told(store: Store, table: Any) -> None:
    table.places_are_free = False
    with pytest.raises(InputError, match="in the place of the manifest"):
        is_owed(SPARK, table)
