"""The steps of a publication, in their order, and what is removed where one fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.config.model import ReleaseSection
from anonlib.errors import StorageError
from anonlib.run import publish
from anonlib.run.publish import Target
from anonlib.table.table_digest import Digest
from tests.unit.test_target import ROOT, Held


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
