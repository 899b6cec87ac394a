"""What is purged of a replaced table, and the name of a release in the catalog, without Spark."""

from contextlib import nullcontext
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.config.model import ReleaseSection
from anonlib.errors import InputError, StorageError
from anonlib.run import purge as module
from anonlib.run.history import Commit
from anonlib.run.purge import find_owed_purge, is_registered, purge, register

METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def commit(version: int, mode: str | None) -> Commit:
    return Commit(version, f"run-{version}", mode, "{}")


@pytest.mark.parametrize(
    ("commits", "owed"),
    [
        ([], None),
        ([commit(0, "Overwrite")], None),  # in place of nothing
        ([commit(1, "Overwrite"), commit(0, "ErrorIfExists")], 1),
        ([commit(3, "Append"), commit(2, None), commit(1, "Overwrite")], 1),
        ([commit(4, "Overwrite"), commit(1, "Overwrite")], 4),
        ([commit(2, None), commit(1, "Append"), commit(0, "ErrorIfExists")], None),
    ],
)
def test_the_newest_commit_that_replaced_a_table(commits: list[Commit], owed: int | None) -> None:
    target: Any = SimpleNamespace(commits=lambda: commits)
    found = find_owed_purge(target)
    assert (None if found is None else found.version) == owed


def test_readers_find_a_whole_table_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint without the old version comes first; what names its files goes after them, and
    the commit that tells of an owed purge last."""
    steps: list[str] = []
    committed = SimpleNamespace(run_id="two", mode="Overwrite", version=1)
    target: Any = SimpleNamespace(
        path="odd`name",
        commits=lambda: [committed],
        version_of=lambda run_id: 1,
        checkpoint=lambda: steps.append("checkpoint") or 2,
        files=lambda: "files",
    )
    log = [f"{version:020}.json" for version in (0, 1)]
    store = SimpleNamespace(
        delete=steps.append,
        delete_files=lambda root, files: steps.extend(f"{root}/{file}" for file in files),
    )
    fork = SimpleNamespace(sql=lambda text: steps.append(text.partition(" TBLP")[0]))
    given: dict[str, Any] = {
        "Storage": lambda *_: store,
        "fork_session": lambda spark, settings: fork if settings == {METADATA: "mark"} else None,
        "mark_purge": lambda newest, version: "mark" if (newest, version) == (committed, 1) else "",
        "list_old_log": lambda *given: log if given[-2:] == (1, 2) else [],
        "list_unused": lambda *given: [PurePosixPath("a=1/old")] if given[-1] == "files" else [],
    }
    for name, value in given.items():
        monkeypatch.setattr(module, name, value)
    spark: Any = None
    lease: Any = SimpleNamespace(committing=nullcontext)
    purge(spark, target, lease)
    table = "ALTER TABLE delta.`odd``name`"
    removed = [f"odd`name/{name}" for name in ("a=1/old", f"_delta_log/{log[0]}")]
    last = f"odd`name/_delta_log/{log[1]}"
    assert steps == [f"{table} SET", "checkpoint", *removed, f"{table} UNSET", last]
    steps.clear()
    committed.mode = "Append"
    purge(spark, target, lease)
    assert steps == []


# --- the name in the catalog

PLACE = "file:/it's out"
DELTA = {"Provider": "delta", "Location": PLACE}


class DeltaError(Exception):
    """An error as Spark raises it."""

    def __init__(self, condition: str | None):
        self._condition = condition

    def getCondition(self) -> str | None:
        return self._condition


class Catalog:
    """A catalog with the schema `s`, and details of its tables. keeps: Whether it keeps names."""

    def __init__(self, tables: dict[str, dict[str, str]], *, keeps: bool = True):
        self.tables, self.keeps = tables, keeps
        self.error: Exception | None = None
        self.catalog = self

    def databaseExists(self, name: str) -> bool:
        return name == "`s`"

    def tableExists(self, name: str) -> bool:
        if self.error is not None:
            raise self.error
        return name in self.tables

    def createTable(self, name: str, *, path: str, source: str) -> None:
        assert (path, source) == (PLACE, "delta")
        if self.keeps:
            self.tables[name] = DELTA

    def sql(self, query: str) -> Any:
        name = query.removeprefix("DESCRIBE TABLE EXTENDED ")
        rows = [("Location", "string"), ("Provider", "int"), ("# Detailed Table Information", "")]
        rows += self.tables[name].items()
        return SimpleNamespace(
            collect=lambda: [{"col_name": key, "data_type": value} for key, value in rows]
        )


def catalog(details: dict[str, str] | None = None, *, keeps: bool = True) -> Any:
    return Catalog({} if details is None else {"`s`.`people`": details}, keeps=keeps)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Storage", lambda spark, path: SimpleNamespace(root=path))


def release(name: str | None = "s.people") -> ReleaseSection:
    return ReleaseSection(path=PLACE, register=name)


def test_names_that_are_there() -> None:
    assert is_registered(catalog(DELTA), release())
    assert not is_registered(catalog(), release())
    assert not is_registered(catalog(DELTA), release(None))


@pytest.mark.parametrize(
    "details",
    [
        {**DELTA, "Provider": "parquet"},
        {**DELTA, "Location": "file:/other"},
        {"Provider": "delta"},
        {"Location": PLACE},
        {},
    ],
)
def test_names_of_other_tables(details: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"s\.people is in the catalog, and is not the table at"):
        is_registered(catalog(details), release())


def test_names_in_no_schema() -> None:
    with pytest.raises(InputError, match="the catalog has no schema `t`; make it"):
        is_registered(catalog(DELTA), release("t.people"))


def test_names_of_tables_that_are_gone() -> None:
    spark = catalog(DELTA)
    spark.error = DeltaError("DELTA_TABLE_NOT_FOUND")
    with pytest.raises(InputError, match="no table is where it points to"):
        is_registered(spark, release())
    for error in (DeltaError("NO_ACCESS"), DeltaError(None), ValueError()):
        spark.error = error
        with pytest.raises(StorageError) as caught:
            is_registered(spark, release())
        assert "no table is where" not in str(caught.value)


def test_a_release_gets_its_name_once() -> None:
    spark = catalog()
    register(spark, release(None))
    assert spark.tables == {}
    register(spark, release())
    assert is_registered(spark, release())
    spark.createTable = None  # is called no more
    register(spark, release())


def test_a_name_that_is_not_given_is_told_with_what_makes_it() -> None:
    said = (
        r"did not keep the name; the catalog lacks the table, which is made by: CREATE TABLE "
        r"IF NOT EXISTS `s`\.`people` USING DELTA LOCATION 'file:/it\\'s out'$"
    )
    with pytest.raises(StorageError, match=said):
        register(catalog(keeps=False), release())
