"""The files of released rows: their number, their order, and how they are written."""

from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.errors import StorageError
from anonlib.run import data_files
from anonlib.run.data_files import (
    DataFiles,
    count_files,
    order_in_files,
    order_in_table,
    write_files,
)


@pytest.mark.parametrize(
    ("per_file", "n", "cores", "expected"),
    [
        (1000, 0, 4, 1),
        (1000, 1000, 4, 1),
        (1000, 1001, 4, 2),
        (10**6, 100_000, 4, 1),
        (10**6, 100_001, 4, 2),
        (10**7, 10**7, 4, 4),
        (10**6, 10**7, 4, 10),
    ],
)
def test_the_number_of_files(per_file: int, n: int, cores: int, expected: int) -> None:
    assert count_files(n, per_file, cores) == expected


class Rows:
    """A frame that notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *how: self.done.append((name, *how)) or self


KEY = "__anonlib_order"


@pytest.mark.parametrize(
    ("order", "step"),
    [
        (order_in_table, ("repartition", 3, KEY)),
        (order_in_files, ("coalesce", 3)),
    ],
)
def test_rows_are_in_the_order_of_a_fresh_secret(
    monkeypatch: pytest.MonkeyPatch, order: Any, step: tuple[Any, ...]
) -> None:
    """One of 63 bits, as many as a positive number of Spark's has. Where rows move to other tasks,
    it is hashed with the values: a task that runs again deals its rows as before."""
    bits: list[int] = []
    monkeypatch.setattr(data_files, "randbits", lambda n: bits.append(n) or 7)
    functions = SimpleNamespace(
        lit=lambda value: value, xxhash64=lambda *parts: parts, rand=lambda seed: ("rand", seed)
    )
    monkeypatch.setattr(data_files, "F", functions)
    monkeypatch.setattr(data_files, "hash_row", lambda frame: "values")
    rows: Any = Rows()
    assert order(rows, 3) is rows
    steps = [step, ("sortWithinPartitions", KEY), ("drop", KEY)]
    drawn = (7, "values") if step[0] == "repartition" else ("rand", 7)
    assert rows.done == [("withColumn", KEY, drawn), *steps]
    assert bits == [63]


@pytest.mark.parametrize("fails", [True, False])
def test_how_files_are_written(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """A commit of them names the run, a session can't cut or shuffle them, and Delta keeps no log
    of the folder."""
    given: list[Any] = []
    forgotten: list[str] = []

    def write(*how: Any) -> str:
        given.extend(how)
        if fails:
            raise StorageError("full")
        return "actions"

    own = SimpleNamespace(write=write)
    begin = SimpleNamespace(begin=lambda spark, root: own)
    monkeypatch.setattr(data_files, "Transaction", begin)
    monkeypatch.setattr(data_files, "save_mode", lambda spark, name: name)
    monkeypatch.setattr(data_files, "forget", lambda spark, root: forgotten.append(root))
    spark, frame = Any, Any
    if fails:
        with pytest.raises(StorageError, match="full"):
            write_files(spark, "work/files", frame, "mine", ("a",))
    else:
        found: Any = write_files(spark, "work/files", frame, "mine", ("a",))
        assert found == DataFiles(own, "actions")  # type: ignore[arg-type]
    options = {
        "maxRecordsPerFile": "0",
        "optimizeWrite": "false",
        "txnAppId": "anonlib:mine",
        "txnVersion": "1",
    }
    properties = {
        "delta.isolationLevel": "Serializable",
        "delta.dataSkippingNumIndexedCols": "0",
    }
    assert given == [frame, "ErrorIfExists", ("a",), options, properties]
    assert forgotten == ["work/files"]
