"""The backlog without Spark: rows that are written and read, entries that a driver left half
written, and those whose rows are gone."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from anonlib.config.keys import derive_key_check
from anonlib.errors import ConfigError, InfeasibleError, InputError, Problem, StorageError
from anonlib.run import backlog as module
from anonlib.run.backlog import Backlog, Waiting, can_wait
from anonlib.run.waiting_rows import require_same_readings
from anonlib.source.casts import Cast
from anonlib.spark.file_list import digest_listing
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
    assert backlog().unpublished(frozenset()) == [ONE]


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


# --- rows that are written and read


class Frame:
    """A frame of batches, as far as the backlog needs one. Written files are in a store."""

    def __init__(self, store: Far, *batches: pa.RecordBatch):
        self.store, self.batches = store, batches
        self.schema = StructType([StructField("c0", LongType()), StructField("c1", StringType())])
        self.write = self

    def select(self, *ids: str) -> "Frame":
        assert ids == ("c0", "c1")
        return self

    def mapInArrow(self, work: Any, schema: Any) -> "Frame":
        return Frame(self.store, *work(self.batches))

    def mode(self, mode: str) -> "Frame":
        assert mode == "overwrite"
        return self

    def parquet(self, path: str) -> None:
        assert self.store.private
        self.store.delete(path)
        files: dict[str, Any] = self.store.files  # type: ignore[assignment]
        files |= {f"{path}/part-{i}": each for i, each in enumerate(self.batches)}
        self.store.open = True

    def agg(self, how: dict[str, str]) -> Any:
        assert how == {"n": "sum"}
        counts = [n for each in self.batches for n in each.column("n").to_pylist()]
        return SimpleNamespace(collect=lambda: [[sum(counts) if counts else None]])

    def toDF(self, *names: str) -> Any:
        return names, [row for each in self.batches for row in each.to_pylist()]


class Guarded(Far):
    """A store that knows whether others can read what Spark wrote."""

    private = open = False

    def make_private(self, path: str) -> None:
        self.private = True

    def close(self, path: str) -> None:
        self.open = False


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Guarded:
    made = Guarded()

    def read(spark: Any, kind: str, schema: str, folders: list[str]) -> Frame:
        files = [made.files[name] for name in made.files if name.startswith(f"{folders[0]}/")]
        return Frame(made, *files)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "Storage", lambda spark, path: made)
    monkeypatch.setattr(module, "read_exactly", read)
    return made


PEOPLE = [{"c0": 1, "c1": "Ann"}, {"c0": 2, "c1": None}, {"c0": 3, "c1": "Zoë"}]


def source(store: Far, *batches: list[dict[str, Any]]) -> Any:
    schema = pa.schema({"c0": pa.int64(), "c1": pa.string()})
    made = [pa.RecordBatch.from_pylist(rows, schema) for rows in batches]
    columns = [SimpleNamespace(id="c0", name="größe"), SimpleNamespace(id="c1", name="name")]
    schema = SimpleNamespace(columns=columns)
    files = {"people.csv": (3, 4)}
    readings = {
        "name": Cast("date", "dd/MM/yyyy"),
        "note": None,
        "city": Cast("int", was_seen=True),
    }
    told = {"schema": schema, "version": None, "files": files, "readings": readings}
    return SimpleNamespace(fresh=Frame(store, *made), **told)


def test_rows_come_back_and_are_sealed_and_private(guarded: Guarded) -> None:
    made = backlog()
    for rows in ((PEOPLE[:1], [], PEOPLE[1:]), (PEOPLE,)):  # a second attempt leaves one file less
        made.add("one", source(guarded, *rows), "digest")
        (entry,) = made.waiting(frozenset())
        assert (made.of("one"), entry.n_rows) == (entry, 3)
        parts = [each for name, each in guarded.files.items() if "/rows/" in name]
        assert len(parts) == len([each for each in rows if each])
        assert "Ann" not in str(parts)
        names, found = made.rows([entry])["one"]  # type: ignore[misc]
        assert names == ("größe", "name")
        assert found == [{"w0": row["c0"], "w1": row["c1"]} for row in PEOPLE]
        assert not guarded.open
    assert "größe" in guarded.files[f"{Far.root}/run-one/entry.json"]  # for people, too
    del guarded.files[f"{Far.root}/run-one/rows/part-0"]
    guarded.files[f"{Far.root}/run-one/rows/mine"] = parts[0].slice(0, 0)  # type: ignore[assignment]
    with pytest.raises(StorageError, match="0 of the 3 rows that run one left are there"):
        made.rows([entry])
    made.add("none", source(guarded, []), "digest")
    found_none = made.of("none")
    assert found_none is not None
    assert found_none.n_rows == 0


def test_what_an_entry_says_of_its_source(guarded: Guarded) -> None:
    """The state of its files, or its version: whether the same is released once more."""
    of_files, of_table = source(guarded, PEOPLE), source(guarded, PEOPLE)
    of_table.version, of_table.files = 7, {}
    backlog().add("one", of_files, "digest")
    backlog().add("two", of_table, "digest")
    found = [backlog().of(run_id) for run_id in ("one", "two")]
    assert [(each.source_version, each.source_files) for each in found if each] == [
        (None, digest_listing(of_files.files)),
        (7, None),
    ]
    # As the config says it, and not what was inferred.
    assert [each.readings for each in found if each] == [{"name": "date written as dd/MM/yyyy"}] * 2


EUROPEAN, AMERICAN = Cast("double", "1.234,5"), Cast("double", "1,234.5")
INFERRED, PLAIN = Cast("double", was_seen=True), Cast("double")


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"wage": str(EUROPEAN)}, {"wage": EUROPEAN, "note": None}, None),
        ({"gone": str(EUROPEAN)}, {"wage": INFERRED}, None),
        (
            {"wage": str(EUROPEAN)},
            {"wage": AMERICAN},
            "read as double written as 1.234,5, and would be read as double written as 1,234.5 now",
        ),
        ({"wage": str(EUROPEAN)}, {"wage": PLAIN}, "1.234,5, and would be read as double now"),
        ({"wage": str(EUROPEAN)}, {"wage": INFERRED}, "and would be read without a `type` now"),
        ({"wage": str(EUROPEAN)}, {"wage": None}, "and would be read without a `type` now"),
        ({}, {"wage": AMERICAN}, "read without a `type`, and would be read as double written as"),
        (None, {"wage": None}, None),
        (None, {"wage": PLAIN}, "did not note how their texts were read: remove backlog/one, and"),
        (None, {"wage": INFERRED}, "did not note how their texts were read: remove backlog/one, "),
    ],
)
def test_texts_that_would_be_read_otherwise(
    before: dict[str, str] | None, now: dict[str, Cast | None], said: str | None
) -> None:
    """Rows of an earlier version are refused where any text is cast: nobody knows how it was."""
    given: Any = SimpleNamespace(readings=now)
    entries = [replace(ONE, readings=before), replace(ONE, run_id="two", readings=before)]
    if said is None:
        require_same_readings(given, entries, lambda run_id: f"backlog/{run_id}")
        return
    with pytest.raises(ConfigError) as caught:
        require_same_readings(given, entries, lambda run_id: f"backlog/{run_id}")
    assert [problem.where for problem in caught.value.problems] == ["attributes.wage"] * 2
    first, second = map(str, caught.value.problems)
    assert said in first
    assert "rows of run one wait in the backlog" in first
    assert "remove backlog/two, and release its rows from their source" in second


def test_an_entry_of_an_earlier_version(store: Far) -> None:
    content = {name: each for name, each in asdict(ONE).items() if name != "readings"}
    put(store, "one", json.dumps(content))
    (entry,) = backlog().waiting(frozenset())
    assert entry.readings is None


def test_rows_that_were_not_written_in_full(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not wait, and are removed by the run that comes next."""

    def die(frame: Frame, path: str) -> None:
        guarded.files[f"{path}/part-0"] = "sealed"
        raise KeyboardInterrupt

    monkeypatch.setattr(Frame, "parquet", die)
    with pytest.raises(KeyboardInterrupt):
        backlog().add("one", source(guarded, PEOPLE), "digest")
    assert backlog().of("one") is None
    assert backlog().waiting(frozenset()) == []
    backlog().settle(frozenset())
    assert guarded.files == {}


def test_rows_that_a_run_takes(guarded: Guarded) -> None:
    backlog().add("one", source(guarded, PEOPLE), "digest")
    backlog().take("two", backlog().waiting(frozenset()))
    assert len(backlog().waiting(frozenset())) == 1
    assert backlog().waiting(frozenset({"two"})) == []


def test_a_run_id_of_another_table(guarded: Guarded) -> None:
    put(guarded, "one", json.dumps(asdict(replace(ONE, table="another"))))
    before = {**guarded.files}
    with pytest.raises(ConfigError, match="run one of another table is in this backlog"):
        backlog().add("one", source(guarded, PEOPLE), "digest")
    assert guarded.files == before
    assert backlog().of("one") is None


def test_another_key(store: Far) -> None:
    put(store, "one", json.dumps(asdict(replace(ONE, key_check="x"))))
    said = (
        rf"release.backlog: it was .* another key: the rows of run one wait in {Far.root}/run-one;"
    )
    with pytest.raises(ConfigError, match=said):
        backlog().waiting(frozenset())
    assert len(backlog().unpublished(frozenset())) == 1


def test_problems_that_more_rows_may_solve() -> None:
    models, limit = Problem("privacy.models", "x"), Problem("partition.steps.0", "x")
    assert can_wait(InfeasibleError([models, limit]))
    assert not can_wait(InfeasibleError([models, Problem("column age", "x")]))
