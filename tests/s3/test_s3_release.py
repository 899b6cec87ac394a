"""Releases from and to an object store: one that loses requests, and one that stops midway."""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from anonlib.spark.jars import find_jar_folder
from tests.s3.servers import BUCKET, KEY, ON_A_REAL_STORE, SECRET
from tests.s3.store import Store, spark_settings
from tests.spark.support import (
    Step,
    holding,
    left,
    people,
    process,
    settings,
    texts_in,
    write_config,
)
from tests.support import skip_or_fail

pytestmark = [pytest.mark.s3, pytest.mark.spark, pytest.mark.slow, ON_A_REAL_STORE]

SECRETS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "ANONLIB_S3_LEDGER": "CANARYLEDGER-0123456789abcdef",
}
LOG = "out/table/_delta_log"
#: What a run that has ended leaves beside its table: the number of the next lease.
LEASE = "out/_table.anonlib/lease-"


def batch(first: int, n: int) -> bytes:
    return people(first + n).iloc[first:].to_csv(index=False).encode()


def config(folder: Path, **release: Any) -> str:
    """The config of `people` from CSV in the store to Delta there, with a ledger."""
    raw = settings(
        folder,
        source={
            "format": "csv",
            "path": f"s3a://{BUCKET}/in/first.csv",
            "options": {"header": "true"},
        },
        evaluate={"measures": ["moments"]},
    )
    raw["attributes"]["wage"]["type"] = "bigint"
    path = f"s3a://{BUCKET}/out/table"
    raw["release"] = {"path": path, "ledger": {"key_env": "ANONLIB_S3_LEDGER"}, **release}
    return write_config(folder, raw)


def run(
    folder: Path, s3: Store, steps: Iterable[Step], starts_after: Iterable[int] = ()
) -> tuple[list[int], str, str]:
    """Runs steps in a process that has the store's keys in its environment, and keeps an event
    log. After the steps of these numbers the store is started again."""
    if not (find_jar_folder() / "s3").is_dir():
        skip_or_fail("no jars of S3: `scripts/test --s3` fetches them")
    conf, home = folder / "conf", folder / "process"
    conf.mkdir()
    lines = {
        **{f"spark.hadoop.{key}": value for key, value in spark_settings(s3.endpoint).items()},
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": home.as_uri(),
        "spark.eventLog.compress": "false",
    }
    text = "".join(f"{key} {value}\n" for key, value in lines.items())
    (conf / "spark-defaults.conf").write_text(text)
    with started_after(home / "codes", s3, starts_after):
        found = process(
            home, steps, ui=True, SPARK_CONF_DIR=str(conf), AWS_REGION="us-east-1", **SECRETS
        )
    assert left(home / "local") == set(), "Spark's local files stay"
    return found


@contextmanager
def started_after(codes: Path, s3: Store, steps: Iterable[int]) -> Iterator[None]:
    """Starts the store again as soon as that many steps have ended."""
    over = threading.Event()

    def watch() -> None:
        for n in steps:
            while not codes.exists() or len(codes.read_text().split()) < n:
                if over.wait(0.02):
                    return
            s3.start()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def table(s3: Store) -> pd.DataFrame:
    """The rows as the log has them: what it names must be there."""
    added: dict[str, bool] = {}
    for commit in sorted(key for key in s3.keys(LOG) if key.endswith(".json")):
        for line in s3.get(commit).decode().splitlines():
            action = json.loads(line)
            for kind in ("add", "remove"):
                if kind in action:
                    added[action[kind]["path"]] = kind == "add"
    files = [path for path, there in added.items() if there]
    data = [s3.get(f"out/table/{path}") for path in files]
    return pd.concat([pq.read_table(BytesIO(part)).to_pandas() for part in data])


def require_whole(s3: Store, n_rows: int) -> None:
    found = table(s3)
    assert len(found) == n_rows
    classes = found.groupby(["wage", "city"], dropna=False)
    assert classes.size().min() >= 3
    assert classes["illness"].nunique().min() >= 2


def test_a_store_that_loses_requests(s3: Store, tmp_path: Path) -> None:
    """One in ten is lost, with its effect or without: all verbs do their work all the same. No
    secret is anywhere, and nothing is left behind."""
    s3.put("in/first.csv", batch(0, 60))
    s3.put("in/second.csv", batch(60, 30))
    s3.one_in = 10
    written = config(tmp_path)
    more = [f"source.path=s3a://{BUCKET}/in/second.csv", "release.mode=append"]
    second = [part for text in more for part in ("--set", text)]
    path = f"s3a://{BUCKET}/out/table"
    codes, out, err = run(
        tmp_path,
        s3,
        [
            Step(["release", written, "--run-id", "one"]),
            Step(["evaluate", written]),
            Step(["release", written, "--run-id", "two", *second]),
            Step(["release", written, "--run-id", "two", *second]),
            Step(["audit", path, "--conf", written]),
            Step(["release", written, "--run-id", "three", *second]),
        ],
    )
    assert codes == [0, 0, 0, 0, 0, 2], err
    assert s3.lost > 20
    assert "Run two is done already" in out
    assert "30 persons of the source were released before" in err
    require_whole(s3, 90)
    manifest = json.loads(s3.get("out/table/_anonlib/manifest.json"))
    assert (manifest["run_id"], manifest["rows_released"]) == ("two", 90)

    keys = s3.keys("out/")
    assert {
        f"out/table.private/{run}.{kind}" for run in ("one", "two") for kind in ("json", "html")
    } <= keys
    assert any(key.startswith("out/table.private/metrics/") for key in keys)
    assert any(key.startswith("out/table.private/ledger/run-two/tokens/") for key in keys)
    (lease,) = (key for key in keys if not key.startswith(("out/table/", "out/table.private/")))
    assert lease.startswith(LEASE)
    assert json.loads(s3.get(lease)) == {"free": True}

    seen = texts_in(tmp_path / "process")
    assert any(b"SparkListenerEnvironmentUpdate" in data for data in seen.values())
    assert b"fs.s3a.endpoint" in seen["ui/answer-environment"]
    assert int(seen["ui/n_queries"]) > 20
    assert not [name for name in seen if "s3a" in name]  # parts of files that wait to be sent
    s3.save(tmp_path / "process" / "store")
    for name, secret in SECRETS.items():
        assert secret not in out + err, name
        assert holding(secret, tmp_path / "process") == [], name


def test_a_store_that_stops(s3: Store, tmp_path: Path) -> None:
    """While files are written: there is no table. Right after the commit, whose answer is lost:
    the table is whole. The next run finds its way in both."""
    s3.put("in/first.csv", batch(0, 60))
    s3.put("in/second.csv", batch(60, 30))
    written = config(tmp_path)
    s3.stops_at = lambda request: request.startswith(f"PUT /{BUCKET}/out/table/part-")
    seen: list[set[str]] = []
    started = s3.start

    def start() -> None:
        seen.append(s3.keys("out/"))
        started()
        if len(seen) == 1:  # next it stops with the commit of the first run that comes so far
            s3.stops_at, s3.how = (
                lambda request: request.startswith(f"PUT /{BUCKET}/{LOG}/0"),
                "after",
            )

    s3.start = start  # type: ignore[method-assign]
    release = Step(["release", written, "--run-id", "one"])
    audit = Step(["audit", f"s3a://{BUCKET}/out/table", "--conf", written])
    codes, out, err = run(tmp_path, s3, [release, release, release, audit], starts_after=(1, 2))
    assert codes == [1, 1, 0, 0], err
    assert err.count(": the store does not answer, or fails") == 2
    assert "Traceback" not in err
    midway, committed = seen
    assert not [key for key in midway if key.startswith(LOG)]
    assert any(key.startswith("out/_table.anonlib/staging/") for key in midway)
    assert f"{LOG}/{0:020}.json" in committed
    assert "Run one is done already" in out
    require_whole(s3, 60)
    keys = s3.keys("out/")
    assert "out/table/_anonlib/manifest.json" in keys
    assert [key for key in keys if not key.startswith(("out/table/", "out/table.private/"))] == [
        next(key for key in keys if key.startswith(LEASE))
    ]


def test_a_commit_that_arrives_late(s3: Store, tmp_path: Path) -> None:
    """After its driver has given up: until it may have arrived nothing of it is removed, and nobody
    else begins; then the release is whole, and done."""
    s3.put("in/first.csv", batch(0, 60))
    written = config(tmp_path)
    s3.stops_at = lambda request: request.startswith(f"PUT /{BUCKET}/{LOG}/0")
    s3.how = "late"
    seen: list[set[str]] = []

    def start() -> None:
        seen.append(s3.keys("out/"))
        if len(seen) == 2:
            s3.arrives()

    s3.start = start  # type: ignore[method-assign]
    release = Step(["release", written, "--run-id", "one"])
    other = Step(["release", written, "--run-id", "two", "--set", "release.mode=overwrite"])
    audit = Step(["audit", f"s3a://{BUCKET}/out/table", "--conf", written])
    steps = [release, other, release, audit]
    codes, out, err = run(tmp_path, s3, steps, starts_after=(1, 2))
    assert codes == [1, 1, 0, 0], err
    assert "another run (one, on " in err
    assert "its commit may still arrive; run again in 4 minutes" in err
    assert "Run one is done already" in out
    assert "is not there" not in out
    given_up, refused = seen
    assert any(key.startswith("out/table/part-") for key in given_up)
    assert f"{LOG}/{0:020}.json" not in refused
    assert {key for key in given_up if key.startswith("out/table/")} <= refused
    require_whole(s3, 60)
    assert not any("/staging/" in key for key in s3.keys("out/"))


def test_a_store_that_stops_around_the_commit(s3: Store, tmp_path: Path) -> None:
    """While persons are noted: nothing is published, and the run is made again. While manifest or
    record are written: it is published, and the run that is repeated writes them."""
    for i, name in enumerate(("first", "second", "third")):
        s3.put(f"in/{name}.csv", batch(30 * i, 30))
    written = config(tmp_path)
    places = [
        "out/table.private/ledger/run-two/",
        "out/table/_anonlib/manifest.json",
        "out/table.private/three.json",
    ]
    commits: list[int] = []
    started = s3.start

    def stop_at(place: str) -> None:
        s3.stops_at = lambda request: request.startswith(f"PUT /{BUCKET}/{place}")

    def start() -> None:
        commits.append(len([key for key in s3.keys(LOG) if key.endswith(".json")]))
        started()
        if len(commits) < len(places):
            stop_at(places[len(commits)])

    s3.start = start  # type: ignore[method-assign]
    stop_at(places[0])

    def append(name: str, run_id: str) -> Step:
        more = [f"source.path=s3a://{BUCKET}/in/{name}.csv", "release.mode=append"]
        sets = [part for text in more for part in ("--set", text)]
        return Step(["release", written, "--run-id", run_id, *sets])

    two, three = append("second", "two"), append("third", "three")
    steps = [Step(["release", written, "--run-id", "one"]), two, two, two, three, three]
    audit = Step(["audit", f"s3a://{BUCKET}/out/table", "--conf", written])
    codes, out, err = run(tmp_path, s3, [*steps, audit], starts_after=(2, 3, 5))
    assert codes == [0, 1, 1, 0, 1, 0, 0], err
    assert commits == [1, 2, 3]
    assert "Run two is done already" in out
    assert "Run three is done already" in out
    assert "is not there" not in out
    require_whole(s3, 90)
    keys = s3.keys("out/")
    assert {f"out/table.private/{run}.json" for run in ("one", "two", "three")} <= keys
    manifest = json.loads(s3.get("out/table/_anonlib/manifest.json"))
    assert (manifest["run_id"], manifest["rows_released"]) == ("three", 90)
    assert not any("/staging/" in key for key in keys)
