"""What bad input gets: one clear message, the exit code, no raw value, nothing left behind."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anonlib.run import steps
from tests.spark.support import (
    MARKER,
    NUMBER,
    Said,
    Shell,
    left,
    people,
    settings,
    write_config,
    write_people,
)

pytestmark = pytest.mark.spark

QUASI = {"role": "quasi_identifier"}
CONTINUOUS, NOMINAL = {**QUASI, "scale": "continuous"}, {**QUASI, "scale": "nominal"}
N = 60


def clean(said: Said, code: int, *texts: str) -> None:
    """The exit code, the texts in a message that shows no value and no traceback."""
    assert said.code == code, said.err
    assert said.error.count("error:") == 1
    for text in texts:
        assert text in said.error
    assert len(said.error.splitlines()) <= 2, said.error
    assert said.out == ""
    for forbidden in (MARKER, NUMBER, "Traceback", "Exception", "Py4J", "org.apache", "--debug"):
        assert forbidden not in said.err


def nothing_left(folder: Path) -> None:
    """But the note that a run failed."""
    assert left(folder / "out") <= {"table.private"}
    assert left(folder / "out" / "table.private") <= {"runs"}


def with_infinities(frame: pd.DataFrame) -> pd.DataFrame:
    weight = np.where(np.arange(len(frame)) == 7, np.inf, float(NUMBER))
    return frame.assign(weight=weight)


#: name -> what becomes of the table, of the config; what the message says
TABLES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "missing column": (
        lambda f: f,
        {"attributes": {"height": CONTINUOUS}},
        "attributes.height: the source has no such column",
    ),
    "column without a role": (
        lambda f: f.assign(extra=1),
        {},
        "column extra: has no role; add it under `attributes`",
    ),
    "empty table": (lambda f: f[:0], {}, "source: has no rows"),
    "numbers stored as text": (
        lambda f: f.assign(wage=f["wage"].astype(str)),
        {},
        (
            "column wage: type string is not continuous; if these are numbers or dates stored as "
            "text, add `type: double`"
        ),
    ),
    "text that is no number": (
        lambda f: f.assign(wage=f["wage"].astype(str).where(f.index > 1, MARKER)),
        {"attributes": {"wage": {**CONTINUOUS, "type": "bigint"}}},
        "column wage: 2 values can't be read as bigint",
    ),
    "a missing token that an order lacks, in a table that is larger than the sample": (
        lambda f: people(5000).assign(city="?"),
        {
            "attributes": {"city": {**QUASI, "scale": "ordinal", "order": ["north", "south"]}},
            "partition": {"sample_rows": 1000},
        },
        "of the distinct values that the column has; one is a missing token: '?', which a quasi",
    ),
    "condition on a column that is not there": (
        lambda f: f,
        {"source": {"format": "parquet", "where": f"wages = '{MARKER}'"}},
        "source.where: no column wages; did you mean wage? there are: name, wage, ",
    ),
    "condition on what may be a text": (
        lambda f: f,
        {"source": {"format": "parquet", "where": f"city = {MARKER}"}},
        "source.where: an unknown column; texts need single quotes; there are: name, wage, ",
    ),
    "condition that is no SQL": (
        lambda f: f,
        {"source": {"format": "parquet", "where": f"city = = '{MARKER}'"}},
        "source.where: not valid SQL",
    ),
    "condition that is no condition": (
        lambda f: f,
        {"source": {"format": "parquet", "where": "wage"}},
        "source.where: is neither true nor false; compare",
    ),
    "condition that can't be computed": (
        lambda f: f,
        {"source": {"format": "parquet", "where": f"wage / 0 > 1 or city = '{MARKER} MALFORMED'"}},
        "an expression fails on a value, with DIVIDE_BY_ZERO: one of `where`, or of the view",
    ),
}


@pytest.mark.parametrize("case", list(TABLES))
def test_tables(shell: Shell, tmp_path: Path, case: str) -> None:
    """A check says it sooner than a release, which looks the same way first."""
    change, changes, text = TABLES[case]
    write_people(tmp_path, change(people(N)))
    config = settings(tmp_path, **changes)
    config["source"].setdefault("path", str(tmp_path / "people.parquet"))
    clean(shell("check", write_config(tmp_path, config)), 2, text)
    assert left(tmp_path / "out") == set()


@pytest.mark.parametrize("role", ["quasi_identifier", "sensitive", "identifier"])
def test_texts_that_are_not_utf8(shell: Shell, tmp_path: Path, role: str) -> None:
    """What can't be coded is told with its column; identifiers are compared all the same."""
    rows = people(1200)
    texts = pa.array([f"{MARKER}-{i % 7}".encode() + b"\xff" for i in range(len(rows))])
    table = pa.Table.from_pandas(rows).append_column(
        "x", pa.StringArray.from_buffers(len(texts), *texts.buffers()[1:])
    )
    pq.write_table(table, tmp_path / "people.parquet")
    x = {"role": role, **({"scale": "nominal"} if role == "quasi_identifier" else {})}
    changes = {"attributes": {"x": x}, "partition": {"sample_rows": 1000}}
    said = shell("check", write_config(tmp_path, settings(tmp_path, **changes)))
    if role == "identifier":
        assert said.code == 0
        assert MARKER not in said.out + said.err
    else:
        clean(said, 2, "column x: 1200 texts are not UTF-8; ")


def test_all_problems_of_a_table_together(shell: Shell, tmp_path: Path) -> None:
    rows = with_infinities(people(9000)).assign(city=[f"c{i % 20}" for i in range(9000)])
    write_people(tmp_path, rows)
    partition = {"sample_rows": 1000, "max_rows": 100}
    changes = {"attributes": {"weight": CONTINUOUS}, "max_categories": 10, "partition": partition}
    said = shell("check", write_config(tmp_path, settings(tmp_path, **changes)))
    assert said.code == 2
    for text in (
        "3 problems",
        "column weight: 1 infinite values",
        "column city: more than max_categories = 10 distinct values",
        "partition.sample_rows: blocks of max_rows need a sample of at least 1440 rows of these 90",
    ):
        assert text in said.error


# --- files


def no_file(path: Path) -> None:
    """Nothing there."""


def broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def no_parquet(path: Path) -> None:
    path.write_text(f"{MARKER}\n" * 100)


def cut_off(path: Path) -> None:
    people().to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])


def garbled(path: Path) -> None:
    """The footer is right, the pages are not."""
    people().to_parquet(path, compression="gzip")
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(len(data) - 2000) + data[-1996:])


def empty_file(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize(
    ("verb", "make", "text"),
    [
        ("check", no_file, "source.path: no such file: "),
        ("check", broken_link, "source.path: no such file: "),
        ("check", no_parquet, "source: a file is corrupt or not of this format"),
        ("check", cut_off, "source: a file is corrupt or not of this format"),
        ("release", garbled, "source: a file is corrupt or not of this format"),
        ("check", empty_file, "source: a file is corrupt or not of this format"),
    ],
)
def test_files(shell: Shell, tmp_path: Path, verb: str, make: Any, text: str) -> None:
    """Both verbs open the source alike. Only a garbled file is found no sooner than by its rows."""
    make(tmp_path / "people.parquet")
    clean(shell(verb, write_config(tmp_path, settings(tmp_path))), 2, text)
    nothing_left(tmp_path)


def test_unknown_format(shell: Shell, tmp_path: Path) -> None:
    config = settings(tmp_path, source={"format": "punched.cards", "path": str(tmp_path / "cards")})
    said = shell("check", write_config(tmp_path, config))
    clean(said, 2, "source.format: Spark knows no format punched.cards; it has")


# --- the target


@pytest.mark.usefixtures("noted")
def test_target_is_there(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    write_people(tmp_path)
    target = tmp_path / "out" / "table"
    spark.range(3).write.format("delta").save(str(target))
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    said = shell.release(settings(tmp_path))
    clean(said, 2, "release.path: a table is already at", "`mode: overwrite`")
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*")} == before
    assert left(tmp_path / "out") == {"table", "table.private"}


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("is_file", [True, False])
def test_target_is_something_else(shell: Shell, tmp_path: Path, is_file: bool) -> None:
    write_people(tmp_path)
    other = tmp_path / "out" / "table" if is_file else tmp_path / "out" / "table" / "thesis.txt"
    other.parent.mkdir(parents=True)
    other.write_text("years of work")
    for mode in ("error", "overwrite"):
        said = shell.release(settings(tmp_path, release={"mode": mode}))
        clean(said, 2, "release.path: ", "holds other files; choose another path")
    assert other.read_text() == "years of work"
    assert left(tmp_path / "out") == {"table", "table.private"}


def test_a_target_of_empty_folders(shell: Shell, tmp_path: Path) -> None:
    """Some object stores go on to list the folders of objects that were removed."""
    write_people(tmp_path)
    (tmp_path / "out" / "table" / "_anonlib" / "older").mkdir(parents=True)
    assert shell.release(settings(tmp_path)).code == 0


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("/proc/anonlib/table", "the folder can't be made"),
        ("/dev/null/table", "a file is where a folder of this path should be"),
        ("file/table", "a file is where a folder of this path should be"),
    ],
)
def test_no_permission_to_write(shell: Shell, tmp_path: Path, place: str, text: str) -> None:
    """Not even root may write there."""
    write_people(tmp_path)
    (tmp_path / "file").touch()
    release = {"path": str(tmp_path / place), "record": str(tmp_path / "records")}
    clean(shell.release(settings(tmp_path, release=release)), 1, "error: path ", text)


def test_no_permission_to_write_the_record(shell: Shell, tmp_path: Path) -> None:
    """Found before anything is published."""
    write_people(tmp_path)
    said = shell.release(settings(tmp_path, release={"record": "/proc/anonlib/records"}))
    clean(said, 1, "path file:/proc/anonlib/records: the folder can't be made")
    nothing_left(tmp_path)


@contextmanager
def no_space(spark: SparkSession) -> Iterator[None]:
    """No file of the JVM may grow beyond 64 kB: the nearest to a full disk without a small one."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("stage", ["anonymize", "publish"])
def test_no_space_left(shell: Shell, spark: SparkSession, tmp_path: Path, stage: str) -> None:
    noise = np.random.default_rng(0).bytes(N * 2000).hex()
    note = [MARKER + noise[i * 4000 : (i + 1) * 4000] for i in range(N)]
    write_people(tmp_path, people(N).assign(note=note))
    release = {"order": "table"} if stage == "publish" else {}
    config = settings(tmp_path, attributes={"note": {"role": "insensitive"}}, release=release)
    config["privacy"]["acknowledge_unique"] = True
    full = no_space(spark)
    hooks = {
        f"{stage} started": full.__enter__,
        f"{stage} ended": lambda: full.__exit__(None, None, None),
    }
    clean(shell.release(config, hooks=hooks), 1, "the system's limit of file sizes is reached")
    nothing_left(tmp_path)
    assert shell.release(config).code == 0


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("stage", ["scan", "anonymize", "publish"])
def test_interrupted(shell: Shell, tmp_path: Path, stage: str) -> None:
    write_people(tmp_path)
    hooks = {f"{stage} started": lambda: os.kill(os.getpid(), signal.SIGINT)}
    said = shell.release(settings(tmp_path), hooks=hooks)
    assert said.code == 1
    assert said.error.startswith("interrupted: ")
    assert len(said.error.splitlines()) == 1
    assert MARKER not in said.err
    nothing_left(tmp_path)


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("late", [False, True])
def test_interrupted_after_the_commit(shell: Shell, tmp_path: Path, *, late: bool) -> None:
    """Who stops a run then learns that its rows are published, and how to finish it. late: When
    only the lease is left to be given back."""
    write_people(tmp_path)
    config = settings(tmp_path, release={"run_id": "r1"})

    def stop(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with shell.patch.context() as patch:
        if late:
            patch.setattr(steps, "register", stop)
        said = shell.release(config, hooks={} if late else {"publish ended": stop})
    assert said.code == 1
    assert said.error.startswith("interrupted: the release is published all the same (version 0 ")
    assert "--run-id r1" in said.error
    assert shell.release(config).code == 0
    assert left(tmp_path / "out") == {"table", "table.private"}


# --- what looks odd and is released


def test_constant_empty_and_nan_columns(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    n = 30
    frame = pa.table(
        {
            "constant": pa.array([4.5] * n),
            "same": pa.array(["x"] * n),
            "nothing": pa.array([None] * n, pa.float64()),
            "no_text": pa.array([None] * n, pa.string()),
            "no_day": pa.array([None] * n, pa.date32()),
            "nan": pa.array([float("nan")] * n),
            "some_nan": pa.array([float("nan") if i % 3 else i / 2 for i in range(n)]),
            "one_nan": pa.array([float("nan") if i == 3 else i / 2 for i in range(n)]),
            "illness": pa.array([float(i % 4) if i % 5 else float("nan") for i in range(n)]),
        }
    )
    pq.write_table(frame, tmp_path / "people.parquet")
    config = settings(tmp_path, one_row_per_person=True)
    config["attributes"] = {
        **{name: {**CONTINUOUS} for name in frame.column_names},
        "same": {**NOMINAL},
        "no_text": {**NOMINAL},
        "illness": {"role": "sensitive"},
    }
    assert shell.release(config).code == 0
    found = spark.read.format("delta").load(config["release"]["path"]).toPandas()
    assert len(found) == n
    assert set(found["constant"]) == {4.5}
    assert set(found["same"]) == {"x"}
    for name in ("nothing", "no_text", "no_day", "nan"):
        assert found[name].isna().all()
    assert found["one_nan"].notna().all()  # a cell's mean is that of its present values
    # What is sensitive comes through as it is.
    assert sorted(found["illness"].astype(str)) == sorted(map(str, frame["illness"].to_pylist()))
