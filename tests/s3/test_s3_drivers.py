"""Two drivers at an object store, at the same time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonlib.config.reading import parse
from anonlib.pipeline import audit_delta
from anonlib.run.run_table import list_past_runs
from anonlib.spark.storage import Storage
from tests.s3.servers import BUCKET, ON_A_REAL_STORE
from tests.s3.store import Store
from tests.s3.test_s3_release import batch, config, require_whole, run
from tests.spark.support import Step

pytestmark = [pytest.mark.s3, pytest.mark.spark, pytest.mark.slow, ON_A_REAL_STORE]

RUNS = "shared/runs"


def both(
    folder: Path, s3: Store, paths: list[str], ended: Callable[[], object] = lambda: None
) -> list[tuple[str, int, str]]:
    """Releases to these paths, each by a driver of its own, with one table of runs: run id, exit
    code and what was said of each. `ended` is called when one has ended."""
    s3.put("in/first.csv", batch(0, 60))

    def release(i: int) -> tuple[str, int, str]:
        own = folder / f"driver-{i}"
        own.mkdir()
        place = {"path": f"s3a://{BUCKET}/{paths[i]}", "run_id": f"run-{i}"}
        written = Path(config(own, **place))
        raw: dict[str, Any] = yaml.safe_load(written.read_text())
        raw["accountability"] = {"runs": f"s3a://{BUCKET}/{RUNS}"}
        written.write_text(yaml.safe_dump(raw))
        codes, _, err = run(own, s3, [Step(["release", str(written)])])
        ended()
        return f"run-{i}", codes[0], err

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(release, range(2)))


def outcomes() -> list[tuple[str, str]]:
    rows = list_past_runs(f"s3a://{BUCKET}/{RUNS}")
    return sorted((row["run_id"], row["outcome"]) for row in rows)


def require_audited(folder: Path, path: str) -> None:
    raw = yaml.safe_load((folder / "driver-0" / "config.yaml").read_text())
    assert audit_delta(f"s3a://{BUCKET}/{path}", parse(raw)).passed


def test_one_target(s3: Store, storage: Storage, tmp_path: Path) -> None:
    """One wins: its files wait until the other has got its error. The table is whole."""
    over = threading.Event()

    def wait(request: str) -> None:
        if request.startswith(f"PUT /{BUCKET}/out/table/part-"):
            assert over.wait(300)

    s3.first = wait
    found = both(tmp_path, s3, ["out/table"] * 2, over.set)
    (loser, _, said), (winner, _, _) = sorted(found, key=lambda each: -each[1])
    assert sorted(code for _, code, _ in found) == [0, 1]
    told = f"error: another run ({winner}, on ", "error: another run has just taken this target's"
    assert any(text in said for text in told)
    require_whole(s3, 60)
    require_audited(tmp_path, "out/table")
    assert outcomes() == sorted([(loser, "failed"), (winner, "published")])


def test_one_table_of_runs(s3: Store, storage: Storage, tmp_path: Path) -> None:
    """Neither run's row replaces the other's: whoever writes the first waits for a second that
    comes at the same time."""
    commits = threading.Barrier(2)

    def wait(request: str) -> None:
        if request.startswith(f"PUT /{BUCKET}/{RUNS}/_delta_log/{0:020}.json"):
            try:
                commits.wait(12)
            except threading.BrokenBarrierError:  # there was none
                return

    s3.first = wait
    found = both(tmp_path, s3, ["out/one", "out/two"])
    assert [code for _, code, _ in found] == [0, 0], found
    assert outcomes() == [("run-0", "published"), ("run-1", "published")]
    # Whoever may write below the table, and nowhere else there, can add rows.
    assert all(key.startswith(f"{RUNS}/") for key in s3.keys("shared/"))
    assert any(key.startswith(f"{RUNS}/_anonlib/lease-") for key in s3.keys(RUNS))
    for path in ("out/one", "out/two"):
        require_audited(tmp_path, path)
