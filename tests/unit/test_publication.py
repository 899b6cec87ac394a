"""The steps of a publication, in their order, what is removed where one fails, and what a table
demands of rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import LongType, StructField, StructType

from anonlib.config.model import ReleaseSection
from anonlib.errors import InputError, StorageError
from anonlib.run import publish
from anonlib.run.publish import Target
from anonlib.table.table_digest import Digest
from tests.unit import test_target
from tests.unit.test_target import ROOT, Held, Log, Snapshot, Store, target

store, log = test_target.store, test_target.log


class Written(str):
    """Files."""

    schema: Any = "schema"

    def read(self, like: Any) -> Any:
        return self


class Publishing(Target):
    """A target of which each step is noted; one of them may fail."""

    def __init__(self, takes: bool, fails: str = "", catches_up: bool = False) -> None:
        self._spark: Any = None
        self._release = ReleaseSection(path=ROOT)
        self._made = {}
        self.version, self.done, self.fails = 0, list[str](), fails
        self.takes, self.catches_up = takes, catches_up

    def _step(self, name: str) -> str:
        self.done.append(name)
        if name == self.fails:
            raise StorageError(name)
        return name

    def _begin(self) -> Any:
        self._step("begin")
        return SimpleNamespace(read=lambda actions, like: actions)

    def _takes(self, schema: Any) -> bool:
        return self.takes

    def _order(self, rows: Any, n_rows: int) -> Any:
        self.done.append("order")
        return rows

    def _check_constraints(self, rows: Any) -> None:
        self.done.append("check")

    def _adopt(self, files: Any, *args: Any) -> Any:
        return self._step(f"adopt {files}")

    def _add(self, *args: Any) -> Any:
        return self._step("add")

    def _operation(self, text: str) -> Any:
        return text

    def require_unchanged(self) -> None:
        self._step("unchanged")
        self.version += self.catches_up

    def _begin_again(self, before: Any, actions: Any) -> Any:
        return before, self._step("again")

    def _commit(self, transaction: Any, actions: Any, operation: Any, held: Any) -> int:
        self._step(f"commit {actions}")
        return 9

    def _remove(self, actions: Any, held: Any, run_id: str) -> None:
        self.done.append(f"remove {actions}")


class Committing(Held):
    """A lease that notes when the commit is inside it."""

    def __init__(self, done: list[str]):
        super().__init__()
        self.done = done

    @contextmanager
    def committing(self, *, publishing: bool = False) -> Iterator[None]:
        self.done.append(f"lease {publishing}")
        yield
        self.done.append("ended")


@pytest.mark.parametrize(
    ("takes", "files", "fails", "catches_up", "done"),
    [
        (True, "files", "", False, "adopt files|lease True|unchanged|commit adopt files|ended"),
        (True, None, "", False, "write|adopt write|lease True|unchanged|commit adopt write|ended"),
        (False, "files", "", False, "check|add|lease True|unchanged|commit add|ended"),
        (False, None, "", True, "check|add|lease True|unchanged|again|commit again|ended"),
        (True, "files", "adopt files", False, "adopt files|remove None"),
        (True, None, "write", False, "write|remove None"),
        (False, None, "add", False, "check|add|remove None"),
        (False, None, "digest", False, "check|add|remove add"),
        (True, None, "digest", False, "write|remove None"),
        (False, None, "unchanged", False, "check|add|lease True|unchanged|remove add"),
        (False, None, "commit add", False, "check|add|lease True|unchanged|commit add|remove add"),
        (False, None, "doubt", False, "check|add|lease True|unchanged|commit add"),
    ],
)
@pytest.mark.parametrize("is_dealt", [True, False])
def test_the_steps_of_a_publication(
    monkeypatch: pytest.MonkeyPatch,
    is_dealt: bool,
    takes: bool,
    files: Any,
    fails: str,
    catches_up: bool,
    done: str,
) -> None:
    """The commit only under the lease, after the table was looked at; what failed is removed,
    unless its commit may yet arrive. Rows that are in random order already stay so: their files are
    read one by one."""
    frame: Any = SimpleNamespace(schema="schema")
    frame.select = frame.toDF = lambda *_: frame
    files = files and Written(files)

    @contextmanager
    def settle(spark: Any) -> Iterator[None]:
        made.done.append("tasks")
        yield

    @contextmanager
    def give_each_file_a_task(spark: Any) -> Iterator[None]:
        made.done.append("file by file")
        yield

    def write_files(*args: Any) -> Any:
        return Written(made._step("write"))

    monkeypatch.setattr(publish, "settle_tasks", settle)
    monkeypatch.setattr(publish, "give_each_file_a_task", give_each_file_a_task)
    monkeypatch.setattr(publish, "write_files", write_files)
    found, other = Digest(3, 1), Digest(3, 2)
    monkeypatch.setattr(publish, "digest", lambda frame: other if fails == "digest" else found)
    made = Publishing(takes, "commit add" if fails == "doubt" else fails, catches_up)
    held: Any = Committing(made.done)
    held.doubtful = fails == "doubt"

    def publish_it() -> int:
        return made.publish(frame, {"c0": "age"}, found, is_dealt, files, held, "mine", "text")

    if fails:
        with pytest.raises(StorageError):
            publish_it()
    else:
        assert publish_it() == 9
    order = "" if is_dealt else "order|"
    assert "|".join(made.done) == f"begin|{order}tasks|file by file|{done}"


def test_a_publication_that_can_not_begin() -> None:
    made = Publishing(takes=True, fails="begin")
    with pytest.raises(StorageError):
        made.publish(None, {}, Digest(), True, None, None, "mine", "text")  # type: ignore[arg-type]
    assert made.done == ["begin"]


def test_rows_are_written_in_random_order_into_files_of_the_size_asked(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "count_cores", lambda spark: 1)
    monkeypatch.setattr(publish, "order_in_table", lambda rows, n_files: (rows, n_files))
    made: Any = target(log, Snapshot(0), rows_per_file=3_000)
    assert made._order("rows", 9_000) == ("rows", 3)


# --- what a table demands of rows

Row = dict[str, bool | None]


class Condition:
    """What each row has for a condition; None where that is unknown."""

    def __init__(self, of: Callable[[Row], bool | None]):
        self.of = of

    def __invert__(self) -> "Condition":
        return Condition(lambda row: None if self.of(row) is None else not self.of(row))


class Conditions:
    """Conditions, in place of Spark's functions."""

    def expr(self, text: str) -> Condition:
        return Condition(lambda row: row[text])

    def lit(self, value: bool) -> Condition:
        return Condition(lambda row: value)

    def coalesce(self, one: Condition, other: Condition) -> Condition:
        return Condition(lambda row: other.of(row) if one.of(row) is None else one.of(row))

    def count_if(self, condition: Condition) -> Condition:
        return condition


class Rows(list[Row]):
    """Rows, as far as they are asked for constraints."""

    def agg(self, *wanted: Condition) -> Any:
        assert wanted
        counts = [sum(bool(each.of(row)) for row in self) for each in wanted]
        return SimpleNamespace(collect=lambda: [counts])


@pytest.fixture
def demands(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The constraints of a table, besides that of a column, which must not be null."""
    own: dict[str, str] = {}

    def read(spark: Any, snapshot: Any, *, of_columns: bool) -> dict[str, str]:
        return own | ({"NOT NULL of city": "city"} if of_columns else {})

    monkeypatch.setattr(publish, "read_constraints", read)
    monkeypatch.setattr(publish, "F", Conditions())
    return own


@pytest.mark.parametrize(
    ("version", "mode", "own", "rows", "broken"),
    [
        (0, "append", ["low"], [{"low": True, "city": True}], ""),
        (0, "append", ["low"], [{"low": False, "city": True}] * 2, "low does not hold in 2 rows"),
        (3, "append", ["low"], [{"low": None, "city": True}], "low does not hold in 1 rows"),
        (3, "append", [], [{"city": True}, {"city": False}], "NOT NULL of city does not hold in 1"),
        # An overwrite gives the table other columns.
        (0, "overwrite", ["low"], [{"low": True}], ""),
        (0, "overwrite", ["low"], [{"low": False}], "low does not hold in 1 rows"),
        (3, "overwrite", [], [{}], ""),
        (-1, "overwrite", ["low"], [{"low": False}], ""),
    ],
)
def test_rows_that_break_what_a_table_demands(
    store: Store,
    log: Log,
    demands: dict[str, str],
    version: int,
    mode: str,
    own: list[str],
    rows: list[Row],
    broken: str,
) -> None:
    """Also where it is unknown whether a condition holds. A new table demands nothing."""
    demands |= {name: name for name in own}
    made, given = target(log, Snapshot(version), mode=mode), Rows(rows)
    if broken:
        with pytest.raises(InputError, match=f"constraint {broken}"):
            made._check_constraints(given)  # type: ignore[arg-type]
    else:
        made._check_constraints(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("own", "refused"), [("wage", False), ("illness", True)])
def test_demands_that_can_not_be_asked(
    store: Store, log: Log, demands: dict[str, str], own: str, refused: bool
) -> None:
    """Of a column that the release lacks; whether the table's columns may be null is no matter."""

    def create(rows: list[Any], columns: StructType) -> Any:
        def select(condition: Condition) -> None:
            try:
                condition.of(dict.fromkeys(columns.names))
            except KeyError:
                raise AnalysisException("no such column") from None

        return SimpleNamespace(select=select)

    demands["low"] = own
    spark = SimpleNamespace(createDataFrame=create)
    made = target(log, Snapshot(3), spark, mode="overwrite")
    columns = StructType([StructField("wage", LongType())])
    if refused:
        with pytest.raises(InputError, match="constraint low can't be asked of the release"):
            made.require_constraints(columns)
    else:
        made.require_constraints(columns)
