"""The files of a table that was begun and never committed: those that a run listed go, no other."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from anonlib.errors import StorageError
from anonlib.spark.lease import FILES, Lease, work_folder
from anonlib.spark.process import identify_process
from tests.stores import Disk


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    return Disk(tmp_path / "table")


def of(store: Any, runs: frozenset[str] | None = frozenset(), run_id: str = "mine") -> Lease:
    known = None if runs is None else lambda: runs
    return Lease(store, work_folder(store.root), run_id, known)


def list_files(disk: Any, paths: list[str], run_id: str = "mine") -> None:
    """The list of a run."""
    text = json.dumps({"run_id": run_id, "files": paths})
    disk.write(f"{work_folder(disk.root)}/{FILES}", text)


def begun(disk: Any, tmp_path: Path, written: list[str], others: list[str]) -> set[str]:
    """What is left of a target after the files that a dead run listed were removed."""
    target = tmp_path / "table"
    for name in [*written, *others]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text("rows")
    list_files(disk, written)
    of(disk).remove_files()
    assert not (tmp_path / "_table.anonlib" / "added.json").exists()
    assert target.exists() == bool(others)
    return {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}


TEMPORARY = f"_delta_log/.{0:020}.json.{uuid4()}.tmp"


@pytest.mark.parametrize("others", [[], ["notes.txt"], ["a=1/b=2/mine"], ["_delta_log/mine"]])
def test_only_listed_files_are_removed(disk: Any, tmp_path: Path, others: list[str]) -> None:
    written = ["part-0.parquet", "c=1/part-1.parquet", "a=1/b=2/part-2.parquet"]
    target = tmp_path / "table" / "_delta_log"
    target.mkdir(parents=True)
    for name in (TEMPORARY, f"{TEMPORARY}.crc", f"_delta_log/..{0:020}.json.x.tmp.crc"):
        (tmp_path / "table" / name).write_text("{}")
    assert begun(disk, tmp_path, written, others) == {*others}


@pytest.mark.parametrize(
    ("runs", "committing", "left"),
    [
        (frozenset({"mine"}), False, True),
        (None, False, True),
        (frozenset({"yours"}), False, False),
        (frozenset({"yours"}), True, True),
    ],
)
def test_files_of_a_table_that_is_there(
    disk: Any, tmp_path: Path, runs: frozenset[str] | None, committing: bool, left: bool
) -> None:
    """They stay if the commit of the run that listed them has arrived, or may have."""
    log, part = tmp_path / "table" / "_delta_log", tmp_path / "table" / "part-0.parquet"
    log.mkdir(parents=True)
    commit, temporary = log / f"{0:020}.json", tmp_path / "table" / TEMPORARY
    for place in (commit, temporary, part):
        place.write_text("{}")
    list_files(disk, ["part-0.parquet"])
    # Unless it is said, the run did not end during a commit.
    of(disk, runs, "another").remove_files(**{"committing": True} if committing else {})
    assert part.exists() is left
    assert commit.exists()
    assert temporary.exists()


def test_nothing_is_removed_without_a_list(disk: Any, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    of(disk).remove_files()
    assert (tmp_path / "table").exists()


def test_a_dead_runs_table_is_removed(disk: Any, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part-0.parquet").write_text("rows")
    dead = {**identify_process(), "run_id": "other", "born": "another time", "beat": 0.0}
    disk.write(f"{work_folder(disk.root)}/lease-1.json", json.dumps(dead))
    list_files(disk, ["part-0.parquet"])
    run = of(disk)
    run.take()
    assert not (tmp_path / "table").exists()
    run.release()


def test_a_list_that_was_not_written_in_full(disk: Any, tmp_path: Path) -> None:
    """No file was moved before: nothing is removed."""
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part-0.parquet").write_text("rows")
    disk.write(f"{work_folder(disk.root)}/{FILES}", '{"run_id": "mine", "files": ["part-0')
    of(disk).remove_files()
    assert (tmp_path / "table" / "part-0.parquet").exists()


def test_only_who_holds_the_lease_lists_files(disk: Any, tmp_path: Path) -> None:
    """Else the list of another run would be lost."""
    list_files(disk, ["part-0.parquet"], "other")
    with pytest.raises(StorageError, match="the lease on the target was lost"):
        of(disk).list_files(["part-1.parquet"])
    assert "part-0" in (tmp_path / "_table.anonlib" / FILES).read_text()
    run = of(disk)
    run.take()
    run.list_files(["part-1.parquet"])
    assert "part-1" in (tmp_path / "_table.anonlib" / FILES).read_text()
    run.release()
    assert not (tmp_path / "_table.anonlib").exists()


def test_a_list_stays_after_a_failure(disk: Any, tmp_path: Path) -> None:
    """Its files may still be there: the next run removes them."""
    run = of(disk)
    run.take()
    run.list_files(["part-0.parquet"])
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part-0.parquet").write_text("rows")
    run.failed = True
    run.release()
    assert (tmp_path / "_table.anonlib" / FILES).exists()
    then = of(disk, run_id="next")
    then.take()
    assert not (tmp_path / "table").exists()
    then.release()
