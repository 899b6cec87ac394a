"""What is deleted of a log when a version replaced all others, and files of deleted rows."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.run import old_version
from anonlib.run.old_version import list_old_log, list_unused, locate_vector
from tests.stores import Far

LOG = f"{Far.root}/_delta_log"


def numbered(version: int, rest: str) -> str:
    return f"{version:020}.{rest}"


def parts_of(named: dict[str, list[str]]) -> Any:
    """Reads which parts checkpoints name."""

    def read(spark: Any, log: str, checkpoints: Collection[str]) -> set[str]:
        assert log == LOG
        return {f"_sidecars/{part}" for name in checkpoints for part in named.get(name, [])}

    return read


def list_old(
    monkeypatch: pytest.MonkeyPatch, names: list[str], named: dict[str, list[str]]
) -> list[str]:
    """What is old where version 4 replaced all, and 6 has a checkpoint."""
    store: Any = Far()
    store.files = dict.fromkeys((f"{LOG}/{name}" for name in names), "x")
    monkeypatch.setattr(old_version, "_list_parts", parts_of(named))
    spark: Any = None
    return list_old_log(spark, store, LOG, version=4, checkpoint=6)


def test_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is about versions up to 4, whole or not, and checkpoints that were not the last."""
    old = [
        f".{numbered(2, 'checkpoint.parquet.7f.tmp')}",
        numbered(1, "checkpoint.parquet"),
        numbered(2, f"{4:020}.compacted.json"),
        numbered(2, "crc"),
        numbered(4, "json"),
        numbered(5, "checkpoint.parquet"),
    ]
    kept = [numbered(5, "json"), numbered(6, "json"), numbered(6, "checkpoint.parquet")]
    kept += [numbered(5, "crc"), "_last_checkpoint", "mine", "_mine/file"]
    assert list_old(monkeypatch, [*kept, *old], {}) == old


def test_parts_of_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """First of all, since nothing else names them. Those that the last one names stay; files that
    no checkpoint names, and that have no version, are not Delta's."""
    two, six = numbered(2, "checkpoint.7f.json"), numbered(6, "checkpoint.8f.parquet")
    unnamed = numbered(3, "checkpoint.1.1.9f.parquet")
    named = {two: ["a.parquet", "both.parquet", "gone.parquet"], six: ["both.parquet", "c.parquet"]}
    there = ["a.parquet", "both.parquet", "c.parquet", "mine.parquet", unnamed]
    names = [two, six, *(f"_sidecars/{name}" for name in there)]
    found = list_old(monkeypatch, names, named)
    assert found == [f"_sidecars/{unnamed}", "_sidecars/a.parquet", two]


def test_only_files_in_the_table_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone names those of its source: by paths, or addresses, outside."""
    inside = ["part-0.parquet", "day=1%253A2/part-1.parquet"]
    outside = ["/source/part-2", "file:/source/part-3", "s3a://b/part-4", "../source/part-5"]
    rows = [{"kind": "data", "name": name} for name in (*inside, *outside)]
    rows.append({"kind": "vector", "name": "ab^-aqEH.-t@S}K{vb[*k^"})
    named = SimpleNamespace(join=lambda *_: named, collect=lambda: rows)
    for name, found in (("_read", None), ("_data", ""), ("_vector", ""), ("_explode", named)):
        monkeypatch.setattr(old_version, name, lambda *_, found=found: found)
    anything: Any = None
    found = list_unused(anything, LOG, [], anything)
    assert [str(path) for path in found[:-1]] == ["part-0.parquet", "day=1%3A2/part-1.parquet"]
    assert str(found[-1]).startswith("ab/deletion_vector_d2c639aa")


class Actions(list[Any]):
    """Actions of a log."""

    def unionAll(self, others: list[Any]) -> "Actions":
        return Actions([*self, *others])

    def select(self, *names: str) -> "Actions":
        return self

    def distinct(self) -> "Actions":
        return Actions(dict.fromkeys(self))

    def collect(self) -> list[Any]:
        return self


def test_parts_are_named_by_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other actions of a checkpoint name none."""
    rows = [("a%20b.parquet",), (None,), (f"{LOG}/_sidecars/c.parquet",), (None,)]
    monkeypatch.setattr(old_version, "_read", lambda *_: Actions(rows))
    anything: Any = None
    found = old_version._list_parts(anything, LOG, ["x"])
    assert found == {"_sidecars/a b.parquet", "_sidecars/c.parquet"}


def test_files_of_a_log_are_read_by_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compacted ones and checkpoints of either kind, too; what is neither has no actions."""
    spark: Any = SimpleNamespace(createDataFrame=lambda rows, schema: Actions(rows))

    def read(spark: Any, kind: str, schema: str, paths: list[str]) -> list[Any]:
        assert paths
        return [(kind, schema, path.removeprefix(f"{LOG}/")) for path in paths]

    monkeypatch.setattr(old_version, "read_exactly", read)
    names = ["2.json", "1.checkpoint.parquet", "1.compacted.json", "1.crc"]
    found = old_version._read(spark, LOG, names, "add")
    wanted = [("json", "1.compacted.json"), ("json", "2.json"), ("parquet", names[1])]
    assert found == [(kind, "add", name) for kind, name in wanted]
    assert old_version._read(spark, LOG, ["1.crc"], "add") == []


def test_files_of_deletion_vectors() -> None:
    """The example of Delta's protocol."""
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert locate_vector("ab^-aqEH.-t@S}K{vb[*k^") == f"ab/{name}"
    assert locate_vector("^-aqEH.-t@S}K{vb[*k^") == name
