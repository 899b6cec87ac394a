"""What a run is checked against of the releases before it, without Spark."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, ShortType, StringType, StructField, StructType

from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.errors import AuditError, ConfigError, InfeasibleError, InputError, Problem
from anonlib.run import past as module
from anonlib.run.ledger import TableRows
from anonlib.run.past import (
    Books,
    PriorRelease,
    _other_trees,
    have_returned,
    look_back,
    open_books,
    require_whole,
)
from anonlib.source.resolved_source import Source
from anonlib.spark import digest as digests
from anonlib.spark.digest import digest_table
from anonlib.table.schema import Column, Role, Schema
from anonlib.table.table_digest import Digest
from tests.unit.test_history import FORM

NAMES, PARENTS = ["all", "north", "south"], [0, 0, 0]
PUBLISHED = {"names": ["all", None, "south"], "parents": PARENTS}


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (json.dumps({"hierarchies": {"zip": PUBLISHED}}), True),
        (json.dumps({"hierarchies": {"zip": PUBLISHED | {"names": ["all", None, "west"]}}}), False),
        (json.dumps({"hierarchies": {"zip": PUBLISHED | {"parents": [0, 0, 1]}}}), False),
        (json.dumps({"hierarchies": {}}), False),
        ("{}", False),
        ("[]", False),
        ("", False),
    ],
)
def test_the_hierarchy_of_the_newest_manifest(text: str, is_same: bool) -> None:
    """Also where only the manifest beside the table has it, as after a clean-up of Delta's log."""
    tree = SimpleNamespace(names=NAMES, tree=SimpleNamespace(parent=np.array(PARENTS)))
    schema: Any = SimpleNamespace(hierarchies={"zip": tree})
    target: Any = SimpleNamespace(newest_manifest=lambda: text, commits=list)
    assert [*_other_trees(target, schema)] == (
        [] if is_same else ["the hierarchy of column zip differs from the table's"]
    )


@pytest.mark.parametrize(("there", "added", "audited"), [(5, 3, 8), (0, 8, 8), (8, 0, 8)])
def test_rows_that_add_up(there: int, added: int, audited: int) -> None:
    require_whole(there, added, audited)
    for other in (audited - 1, audited + 1, there - added):
        if other != audited:
            with pytest.raises(AuditError, match=f"{there} there, {added} added, {other} audited"):
                require_whole(there, added, other)


# --- the ledger and the backlog of a run


class Noted:
    """A ledger and a backlog that note what a run asks of them."""

    def __init__(self, *_: Any) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **how: self.asked.append((name, *given, *how.values())) or [name]


def test_what_a_run_notes_before_its_commit_and_removes_after_it() -> None:
    ledger, backlog, waiting = Noted(), Noted(), ("those of run one",)
    report: Any = SimpleNamespace(verdicts=[SimpleNamespace(model="k")], insensitive="checked")
    source: Any = "source"
    target: Any = SimpleNamespace(runs=lambda: {"one", "two"})
    anything: Any = (ledger, backlog, waiting)
    books = Books(*anything)
    assert books.waiting_rows() == ["rows"]  # whatever the backlog has
    books.note_commit("two", source, Digest(1), ("b", "a"), report, gap="", is_whole=True)
    books.settle(target)
    assert ledger.asked == [
        ("write", "two", "source", Digest(1), ("b", "a"), ["k"], "checked", "", True)
    ]
    taken, settled = ("take", "two", waiting), ("settle", {"one", "two"})
    assert backlog.asked == [("rows", waiting), taken, settled]
    none = Books(None, None, ())
    none.note_commit("two", source, Digest(1), ("b", "a"), report, gap="", is_whole=True)
    none.settle(target)
    assert none.waiting_rows() == {}
    none.require_new_rows(source, True)


def test_rows_wait_only_in_a_backlog_and_for_more_rows() -> None:
    few, wrong = (InfeasibleError([Problem(each, "x")]) for each in ("privacy.models.0", "source"))
    backlog: Any = Noted()
    assert Books(None, backlog, ()).can_wait(few) is True
    for error in (wrong, AuditError("privacy.models.0: x")):
        assert Books(None, backlog, ()).can_wait(error) is False
    assert Books(None, None, ()).can_wait(few) is False


def test_rows_that_wait_are_not_in_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for name in ("require_same_readings", "require_new_rows"):
        monkeypatch.setattr(module, name, lambda *given: asked.append(given))
    source, waiting = "source", ("those of run one",)
    backlog = SimpleNamespace(folder="folder")
    anything: Any = (None, backlog, waiting)
    Books(*anything).require_new_rows(source, "name")  # type: ignore[arg-type]
    assert asked == [("source", waiting, "folder"), ("source", "name", "folder")]


@pytest.mark.parametrize(
    ("mode", "ledger_key", "backlog_key", "ledger", "backlog"),
    [
        ("append", b"k", b"b", True, True),
        ("append", b"", b"b", False, True),
        ("append", b"k", b"", True, False),
        ("error", b"k", b"b", True, False),
        ("overwrite", b"", b"b", False, False),
    ],
)
def test_only_batches_use_the_backlog(
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    ledger_key: bytes,
    backlog_key: bytes,
    ledger: bool,
    backlog: bool,
) -> None:
    monkeypatch.setattr(module, "open_ledger", Noted)
    monkeypatch.setattr(module, "Backlog", Noted)
    spark: Any = None
    target: Any = SimpleNamespace(path="out", runs=frozenset)
    found = open_books(spark, config(mode), target, ledger_key, backlog_key)
    assert (found.ledger is not None, found.backlog is not None) == (ledger, backlog)
    assert found.waiting == (("waiting",) if backlog else ())


# --- what a run is checked against


class Frame:
    """Rows of a table, with their columns."""

    def __init__(self, schema: StructType, rows: Iterable[tuple[Any, ...]] = ()):
        self.schema, self.rows, self.columns = schema, [*rows], schema.names

    def count(self) -> int:
        return len(self.rows)

    def toDF(self, *names: str) -> "Frame":
        fields = zip(names, self.schema, strict=True)
        return Frame(StructType([StructField(n, f.dataType) for n, f in fields]), self.rows)

    def select(self, *names: str) -> "Frame":
        places = [self.columns.index(name) for name in names]
        rows = [tuple(row[i] for i in places) for row in self.rows]
        return Frame(StructType([self.schema[i] for i in places]), rows)

    def unionAll(self, other: "Frame") -> "Frame":
        return Frame(self.schema, [*self.rows, *other.rows])


SCHEMA = Schema(
    (
        Column("id", "c0", Role.IDENTIFIER, pa.string(), "string"),
        Column("age", "c1", Role.INSENSITIVE, pa.int32(), "int"),
        Column("town", "c2", Role.SENSITIVE, pa.string(), "string"),
    )
)
TOWN, AGE = StructField("town", StringType()), StructField("age", IntegerType())
#: In another order than the batch.
THERE = StructType([TOWN, AGE])
NOW = Digest(2, 3, 4)
SPARK: Any = SimpleNamespace(sparkSession=None)
SOURCE = Source(SPARK, SPARK, {}, {}, SCHEMA, None, (), {}, {})


class Waits:
    """A backlog in which the rows of some runs wait."""

    rows: ClassVar[dict[str, int]] = {}

    def __init__(self, *_: Any) -> None:
        pass

    def unpublished(self, runs: frozenset[str]) -> list[Any]:
        return [SimpleNamespace(run_id=id, n_rows=n) for id, n in self.rows.items()]

    def folder(self, run_id: str) -> str:
        return f"backlog/run-{run_id}"


class Table:
    """A table of two rows, that the run `one` left."""

    path = "out"

    def __init__(self, version: int = 3, *, schema: StructType = THERE, by: Iterable[str] = ()):
        self.version, self._schema, self._by = version, schema, [*by]
        self.committed = frozenset({"one"})
        self.log = [SimpleNamespace()]
        self.constraints: StructType | None = None
        self.asked_names: StructType | None = None
        self.losses: tuple[str, ...] = ()

    def runs(self) -> frozenset[str]:
        return self.committed

    def commits(self) -> list[Any]:
        return self.log

    def partitioned_by(self) -> list[str]:
        return self._by

    def published(self) -> Any:
        return Frame(self._schema, [("Ulm", 30), ("Kiel", 40)])

    def newest_manifest(self) -> str:
        return "{}"

    def describe_losses(self) -> Iterator[str]:
        yield from self.losses

    def require_names(self, columns: StructType) -> None:
        self.asked_names = columns

    def require_constraints(self, columns: StructType) -> None:
        self.constraints = columns


def are_now(rows: TableRows) -> bool:
    """Whether these are the rows of Table."""
    entry: Any = SimpleNamespace(digest=NOW, columns=(("town", "string"), ("age", "int")))
    return rows.are_of(entry)


class Ledger:
    """What a ledger knows of a table. returning: How many persons come again, and whether rows
    name nobody."""

    def __init__(
        self,
        *returning: Any,
        gap: str | None = None,
        known_gap: str | None = None,
        elsewhere: bool = False,
        proves: bool = True,
        knows: bool = True,
        runs: Iterable[str] = ("one", "two"),
        whole: bool = True,
        intact: bool = True,
    ):
        self._returning, self._gap, self._elsewhere = returning or (0, False), gap, elsewhere
        self._proves, self._knows, self._runs = proves, knows, frozenset(runs)
        self.judged: frozenset[str] | None = None
        self._known_gap = known_gap
        self._whole, self._intact = whole, intact

    def all_released(self, runs: frozenset[str]) -> bool:
        return self._whole

    def gap(self, runs: frozenset[str], rows: TableRows, schema: Schema) -> str | None:
        assert (runs, schema) == ({"one"}, SCHEMA)
        assert are_now(rows)
        return self._gap

    def known_gap(self, runs: frozenset[str], rows: TableRows) -> str | None:
        assert runs == {"one"}
        assert are_now(rows)
        return self._known_gap

    def entries(self, runs: frozenset[str]) -> list[str]:
        return [*runs] * self._intact

    def doubt(self, runs: frozenset[str], schema: Schema) -> str | None:
        self.judged = runs
        return self._gap

    def other_paths(self, runs: frozenset[str]) -> list[str]:
        return ["elsewhere"] * self._elsewhere

    def returning(self, source: Any, runs: frozenset[str]) -> Any:
        return self._returning

    def proves(self, runs: frozenset[str], rows: TableRows, verdicts: list[str]) -> bool:
        assert verdicts == ["k_anonymity k=2"]
        assert are_now(rows)
        return self._proves

    def knows(self, runs: frozenset[str], rows: TableRows) -> bool:
        return self._knows

    def list_runs(self) -> frozenset[str]:
        return self._runs


def config(mode: str, *, unit: bool = False, **release: Any) -> Config:
    return parse(
        {
            "source": {"format": "dataframe"},
            "attributes": {
                "id": {"role": "identifier"},
                "age": {"role": "quasi_identifier", "scale": "continuous"},
                "town": {"role": "sensitive"},
            },
            **({"unit": ["id"]} if unit else {"one_row_per_person": "id"}),
            "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
            "release": {"path": "out", "mode": mode, "ledger": {"key_env": "KEY"}, **release},
        }
    )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose promise was asked for. No other run's audit is known."""
    asked: list[str] = []
    for name in ("make_promise", "Storage", "find_published_audit"):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(module, "Backlog", Waits)
    monkeypatch.setattr(
        digests, "digest", lambda table: NOW if table.columns == ["c0", "c1"] else 0
    )
    monkeypatch.setattr(module, "require_kept", lambda _, table, __: asked.append(table.path))
    monkeypatch.setattr(module, "describe_change", lambda *_: iter(["it is weaker"]))
    return asked


def look(table: Any, ledger: Any = None, mode: str = "append", **how: Any) -> PriorRelease:
    return look_back(config(mode, **how), table, SOURCE, ledger)


ACCEPTED = {"acknowledge_overwrite": True}


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_table_that_was_here_before(kept: list[str], mode: str) -> None:
    """All of its runs count, but an earlier attempt of this one."""
    where = "release.acknowledge_overwrite: no table is at out, but the ledger has one that was"
    for found, why in (
        (Ledger(2, False), "2 persons of the source are in it"),
        (Ledger(0, True), "rows of the source do not say whose they are"),
        (Ledger(gap="it had another key"), "it had another key"),
    ):
        with pytest.raises(ConfigError, match=f"{where}.*and {why}: anyone"):
            look(Table(-1), found, mode, run_id="two")
        assert found.judged == {"one"}
        assert look(Table(-1), found, mode, **ACCEPTED) == PriorRelease()
    assert look(Table(-1), Ledger(), mode) == PriorRelease()
    assert look(Table(-1), Ledger(2, False, runs=["two"]), mode, run_id="two") == PriorRelease()
    prior = look(Table(-1), None, mode)
    assert (prior.rows, prior.n_rows, prior.notes, prior.gap) == (None, 0, (), "")
    assert look(Table(0), Ledger(2, False), "error") == PriorRelease()  # it is refused elsewhere
    assert kept == []


def test_a_table_that_is_replaced(kept: list[str]) -> None:
    where = "release.acknowledge_overwrite: a table exists already, and"
    for ledger, why in (
        (None, "without a ledger it is unknown who is in it"),
        (Ledger(gap="the ledger lacks 1 run"), "the ledger lacks 1 run"),
        (Ledger(known_gap="others had changed rows"), "others had changed rows"),
        (Ledger(2, False), "2 persons of the source are in it"),
        (
            Ledger(2, False, whole=False),
            "2 persons of the source are in it, or in rows that were suppressed",
        ),
        (Ledger(0, True), "rows of the source do not say whose they are"),
    ):
        with pytest.raises(ConfigError, match=f"{where} {why}: anyone who kept it"):
            look(Table(0), ledger, "overwrite")
        prior = look(Table(0), ledger, "overwrite", **ACCEPTED)
        assert (prior.rows, prior.notes) == (None, ("it is weaker",))
    table = Table(0)
    assert look(table, Ledger(), "overwrite").notes == ("it is weaker",)
    assert table.constraints == table.asked_names == StructType([AGE, TOWN])
    table.losses = ("it had comments",)
    assert look(table, Ledger(), "overwrite").notes == ("it is weaker", "it had comments")
    assert kept == []


def test_a_table_in_which_persons_are_in_several_batches(
    kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are no persons: classes can't be counted again."""
    back = {"acknowledge_returning": True}
    assert not look(Table(), Ledger()).persons_return
    for ledger in (None, Ledger()):
        prior = look(Table(), ledger, **back)
        assert prior.persons_return
        alone: Any = prior.alone(SCHEMA)
        assert (alone.columns, alone.count()) == (["town", "age"], 2)
    assert look(Table(), Ledger()).alone(SCHEMA) is None
    assert look(Table(), Ledger(), unit=True, **back).persons_return
    monkeypatch.setattr(module, "have_returned", lambda target: True)
    for ledger in (None, Ledger()):
        for how in ({}, back):
            with pytest.raises(InputError, match="persons may be in several batches of out, so"):
                look(Table(), ledger, **how)
    assert look(Table(), Ledger(), unit=True).persons_return  # the ledger proves what it holds
    known = SimpleNamespace(digest=NOW, report=SimpleNamespace(by_batch=True))
    monkeypatch.setattr(module, "find_published_audit", lambda *_: known)
    prior = look(Table(), Ledger())
    assert (prior.known, prior.persons_return) == (known, True)
    known.report.by_batch = False  # by an earlier version
    with pytest.raises(InputError, match="persons may be in several batches of out, so"):
        look(Table(), Ledger())
    # A pseudonym that is the same in all batches tells persons: the whole table is counted.
    told: Any = SimpleNamespace(persons="token")
    monkeypatch.setattr(module, "make_measured_spec", lambda *_, persons_return: told)
    prior = look(Table(), Ledger())
    assert (prior.known, prior.persons_return, prior.alone(SCHEMA)) == (None, True, None)


@pytest.mark.parametrize(
    ("text", "returned"),
    [
        ("{}", False),
        (json.dumps({**FORM, "persons_return": False}), False),
        # An earlier run had accepted it: its rows are still there.
        (json.dumps({**FORM, "persons_return": True}), True),
        # Damaged: nobody knows.
        (json.dumps({"persons_return": False}), True),
        ("", True),
    ],
)
def test_what_manifests_say_of_persons_in_several_batches(text: str, *, returned: bool) -> None:
    target: Any = SimpleNamespace(newest_manifest=lambda: text)
    assert have_returned(target) is returned


@pytest.mark.parametrize(("mode", "version"), [("overwrite", 0), ("overwrite", -1), ("error", -1)])
def test_rows_that_wait_for_a_table_that_is_made_anew(
    kept: list[str], monkeypatch: pytest.MonkeyPatch, mode: str, version: int
) -> None:
    """Nobody knows whether its source has them, too: the next batch would publish them again."""
    monkeypatch.setattr(Waits, "rows", {"one": 3, "two": 1})
    said = r"^release.backlog: .*\(3 of run one, 1 of run two\).*a second time if the source has "
    said += "them: remove backlog/run-one, backlog/run-two, and"
    with pytest.raises(ConfigError, match=said):
        look(Table(version), None, mode, **ACCEPTED)
    assert look(Table(), Ledger()).n_rows == 2


def test_a_table_that_is_appended_to(kept: list[str]) -> None:
    for ledger in (None, Ledger()):
        prior = look(Table(), ledger)
        assert (prior.n_rows, prior.digest, prior.gap) == (2, NOW, "")
        rows: Any = prior.rows
        assert rows.columns == ["c2", "c1"]
        assert prior.names(SCHEMA) == {"c2": "town", "c1": "age"}
        assert prior.columns(SCHEMA) == (("town", "string"), ("age", "int"))
        batch: Any = Frame(StructType([AGE, TOWN]), [(50, "Bonn")]).toDF("c1", "c2")
        whole: Any = prior.with_batch(batch, SCHEMA)
        assert (whole.columns, whole.rows[1:]) == (["town", "age"], [("Kiel", 40), ("Bonn", 50)])
    assert kept == ["out", "out"]
    assert look(Table(), Ledger(knows=False)).gap.startswith("others had changed or deleted rows")
    new = PriorRelease()
    assert new.names(SCHEMA) == {"c1": "age", "c2": "town"}
    assert new.with_batch(batch, SCHEMA) is None


def test_what_the_newest_run_found_is_not_looked_for_again(
    kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = SimpleNamespace(digest=NOW, report=SimpleNamespace(by_batch=False))
    monkeypatch.setattr(module, "find_published_audit", lambda *_: known)
    monkeypatch.setattr(digests, "digest", None)
    for ledger in (None, Ledger()):
        prior = look(Table(), ledger)
        assert (prior.known, prior.digest) == (known, NOW)


@pytest.mark.parametrize(
    ("ledger", "said"),
    [
        (Ledger(2, False), ["2 persons of the source were released before"]),
        (
            Ledger(2, False, whole=False),
            ["2 persons of the source were released before, or were in"],
        ),
        (Ledger(0, True), ["rows of the source do not say whose they are"]),
        (Ledger(2, True), ["2 persons of the source were", "rows of the source do not say"]),
        (Ledger(gap="rows are unknown"), ["rows are unknown; set this to `unknown` to append"]),
        (Ledger(2, False, gap="rows are unknown"), ["2 persons of the", "rows are unknown; set"]),
        (Ledger(2, False, gap="none is left", intact=False), ["none is left; set this to `unkn"]),
    ],
)
def test_persons_who_come_again(kept: list[str], ledger: Any, said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        look(Table(), ledger)
    where = "release.acknowledge_returning"
    found = [(problem.where, problem.text) for problem in caught.value.problems]
    assert len(found) == len(said)
    for (place, text), expected in zip(found, said, strict=True):
        assert (place, text.startswith(expected)) == (where, True)
    assert look(Table(), ledger, acknowledge_returning=True).n_rows == 2


def test_the_ledger_recognises_whom_it_has_in_spite_of_a_gap(kept: list[str]) -> None:
    """As after a change of the key, which stays a gap for good."""
    accepted = {"acknowledge_returning": "unknown"}
    for ledger in (Ledger(2, False, gap="another key"), Ledger(2, True)):
        with pytest.raises(ConfigError) as caught:
            look(Table(), cast(Any, ledger), **accepted)
        (problem,) = caught.value.problems
        assert problem.text.startswith("2 persons of the source were released before; leave them")
    prior = look(Table(), cast(Any, Ledger(0, True, gap="another key")), **accepted)
    assert prior.notes == ("some persons can't be recognised: another key",)
    assert look(Table(), cast(Any, Ledger()), **accepted).notes == ()
    with pytest.raises(ConfigError, match="it has another path"):
        look(Table(), Ledger(gap="it has another path", elsewhere=True), **accepted)


def test_a_gap_that_was_accepted_is_not_asked_of_again(kept: list[str]) -> None:
    """The table is as the run left it that was told so. It stays told, and noted."""
    prior = look(Table(), Ledger(known_gap="others had changed rows"))
    assert prior.notes == ("some persons can't be recognised: others had changed rows",)
    assert prior.gap == "others had changed rows"
    with pytest.raises(ConfigError, match="2 persons of the source were released before"):
        look(Table(), Ledger(2, False, known_gap="others had changed rows"))


def test_persons_who_come_again_by_where_they_are(kept: list[str]) -> None:
    """Those of waiting rows are not called the source's."""
    own, late, early = (cast(Any, SimpleNamespace(n=n)) for n in (0, 2, 1))
    whole: Any = SimpleNamespace(n=3, sparkSession=None)
    source = replace(SOURCE, raw=whole, fresh=own, waiting={"late": late, "early": early})
    ledger: Any = Ledger()
    ledger.returning = lambda part, runs: (part.raw.n, part.raw is late)
    with pytest.raises(ConfigError) as caught:
        look_back(config("append"), cast(Any, Table()), source, ledger)
    assert [problem.text.partition(";")[0] for problem in caught.value.problems] == [
        "1 persons of run early, which wait in the backlog, were released before",
        "2 persons of run late, which wait in the backlog, were released before",
        "rows of run late, which wait in the backlog, do not say whose they are",
    ]


def test_a_table_that_was_moved_is_not_to_be_accepted(kept: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        look(Table(), Ledger(gap="it has another path", elsewhere=True))
    assert caught.value.problems[0].text == "it has another path"


def test_with_a_unit_persons_were_counted(kept: list[str]) -> None:
    assert look(Table(), Ledger(), unit=True).n_rows == 2
    assert look(Table(), Ledger(proves=False)).n_rows == 2
    with pytest.raises(ConfigError, match="unit: the published rows can't be shown to hold"):
        look(Table(), Ledger(proves=False), unit=True)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (Table(schema=StructType([AGE])), "it lacks column town"),
        (
            Table(schema=StructType([TOWN, AGE, StructField("x", LongType())])),
            "the batch has no column x",
        ),
        (
            Table(schema=StructType([TOWN, StructField("age", StringType())])),
            "column age is string in the table, and int in the batch",
        ),
        (
            Table(schema=StructType([TOWN, StructField("age", ShortType())])),
            "column age is smallint in the table, and int in the batch",
        ),
        (
            Table(schema=StructType([TOWN, StructField("age", LongType())])),
            # No table can undo that.
            "column age is bigint in the table, and int in the batch: set attributes.age.type to b",
        ),
        (Table(by=["town"]), "its files are laid out by town; set release.partition_by to that"),
    ],
)
def test_tables_that_the_batch_does_not_fit(kept: list[str], table: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        look(table)
    other = "column" in said and "laid out" not in said and "attributes" not in said
    end = "altered after its release, undo that, or publish all rows anew (`mode: overwrite`)"
    text = f"release.path: nothing can be appended to out: {said}"
    text += f"; if the table was {end}" if other else "igint" * ("attributes" in said)
    assert str(caught.value) == text


def test_files_of_another_layout_or_publisher(kept: list[str]) -> None:
    with pytest.raises(InputError, match=r"laid out by no column; set release.partition_by"):
        look(Table(), partition_by=["town"])
    assert look(Table(by=["town"]), partition_by=["town"]).n_rows == 2
    table = Table()
    table.log = []  # as after a clean-up of Delta's log
    assert look(table).n_rows == 2
    table.committed = frozenset()
    with pytest.raises(InputError, match="to out: anonlib has not published it"):
        look(table)
    table.log = [SimpleNamespace()]  # of a version that noted no runs
    assert look(table).n_rows == 2


def test_a_digest_is_of_values_by_the_order_of_columns(
    kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table: Any = Table().published()
    assert digest_table(table) == NOW
    other = Digest(2, 5, 6)
    monkeypatch.setattr(digests, "digest", lambda table: other if table.columns[0] == "c1" else 0)
    rows = module._find_rows(cast(Any, Table()), NOW)
    entry: Any = SimpleNamespace(digest=other, columns=(("age", "int"), ("town", "string")))
    assert rows.are_of(entry)
