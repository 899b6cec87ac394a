"""Leases where files have no locks: of several runs one wins, and nobody takes another's."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from anonlib.errors import BusyError, InputError, StorageError
from anonlib.spark import lease as module
from anonlib.spark.lease import FILES, Lease, tidy, work_folder
from anonlib.spark.process import identify_process
from anonlib.spark.storage import Storage
from tests.s3.servers import BUCKET, moto
from tests.s3.store import Store

pytestmark = [pytest.mark.s3, pytest.mark.spark]

TARGET = f"s3a://{BUCKET}/out/table"
WORK = "out/_table.anonlib"
RUNS = 4


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.2)


def new_lease(storage: Storage, run_id: str, *runs: str) -> Lease:
    return Lease(storage, work_folder(storage.root), run_id, lambda: frozenset(runs))


def race(storage: Storage) -> tuple[list[Lease], list[str]]:
    """Several runs take the lease at the same time: the winners, and what the others are told."""
    start = Barrier(RUNS)

    def take(i: int) -> Lease | str:
        held = new_lease(storage, f"run-{i}")
        start.wait()
        try:
            held.take()
        except BusyError as error:
            return str(error)
        return held

    with ThreadPoolExecutor(RUNS) as pool:
        found = [*pool.map(take, range(RUNS))]
    return [r for r in found if isinstance(r, Lease)], [r for r in found if isinstance(r, str)]


def holder(**changes: Any) -> bytes:
    """The lease of a run on another host."""
    base = {"run_id": "other", "token": "t", "host": "elsewhere", "pid": 1, "every": 10.0}
    return json.dumps({**base, "beat": time.time(), **changes}).encode()


def test_one_of_several_wins(storage: Storage, s3: Store) -> None:
    """A new target, a lease that was given back, and one of a dead run."""
    s3.put("out/table/part-0.parquet", b"of a run that died")
    for number, dead in ((1, False), (2, False), (7, True)):
        if dead:
            s3.put(f"{WORK}/lease-6.json", holder(beat=time.time() - 600))
            listed = {"run_id": "other", "files": ["part-0.parquet"]}
            s3.put(f"{WORK}/{FILES}", json.dumps(listed).encode())
            s3.put(f"{WORK}/staging/part-0.parquet", b"staged")
        winners, told = race(storage)
        assert (len(winners), len(told)) == (1, RUNS - 1)
        for text in told:
            assert "is writing this target; wait for it to end" in text or "just taken" in text
        assert s3.keys("out/") == {
            f"{WORK}/lease-{number}.json",
            *(() if dead else ("out/table/part-0.parquet",)),
        }
        with pytest.raises(BusyError, match=r"another run \(run-\d, on .*, process \d+\) is wri"):
            new_lease(storage, "late").take()
        winners[0].release()
        assert json.loads(s3.get(f"{WORK}/lease-{number}.json")) == {"free": True}
    before = len(s3.requests)
    tidy(storage._spark, TARGET, "next")
    assert not [request for request in s3.requests[before:] if request.startswith("PUT")]


def test_a_run_that_was_taken_for_dead(storage: Storage, s3: Store) -> None:
    """It commits nothing more, and neither its beat nor its end touches the other's lease."""
    held = new_lease(storage, "slow")
    held.take()
    with held.committing():
        assert json.loads(s3.get(f"{WORK}/lease-1.json"))["committing"]
    other = holder()
    s3.put(f"{WORK}/lease-2.json", other)
    s3.put(f"{WORK}/staging/part-0.parquet", b"the other's")
    assert not held.still_held()
    with pytest.raises(StorageError, match="the lease on the target was lost"), held.committing():
        raise AssertionError("it commits")
    held._renew()
    held.release()
    assert s3.get(f"{WORK}/lease-2.json") == other
    assert f"{WORK}/staging/part-0.parquet" in s3.keys(WORK)
    with pytest.raises(BusyError, match=r"another run \(other, on elsewhere"):
        new_lease(storage, "next").take()


@pytest.mark.parametrize("beats", [0, 1, 2, 99])
def test_a_lease_that_beats_while_it_is_read(storage: Storage, s3: Store, beats: int) -> None:
    """Between the look at its version and the reading: it is read again, a few times."""
    s3.put(f"{WORK}/lease-1.json", b"before")
    done = 0

    def beat(request: str) -> bool:
        nonlocal done
        if request.startswith("GET") and done < beats:
            done += 1
            s3.put(f"{WORK}/lease-1.json", f"beat {done}".encode())
        return False

    s3.stops_at = beat
    path = f"{work_folder(storage.root)}/lease-1.json"
    if beats < 99:
        assert storage.read(path) == (f"beat {beats}" if beats else "before")
        return
    with pytest.raises(StorageError, match=r"lease-1\.json: it changes whenever it is read"):
        storage.read(path)


COMMITTING = {"committing": True, "publishing": True}
GONE = {**identify_process(), "born": "before"}


@pytest.mark.parametrize(
    ("who", "silent", "minutes"),
    [
        # What a process that is gone has sent may arrive a little later; of one elsewhere it is
        # not known whether it is gone, unless it said that it gave up.
        ({**GONE, **COMMITTING}, 100, 3),
        ({**GONE, **COMMITTING}, 300, 0),
        (GONE, 1, 0),
        (COMMITTING, 300, 55),
        ({**COMMITTING, "doubtful": True}, 100, 3),
        ({**COMMITTING, "doubtful": True}, 300, 0),
        # Its release has arrived: another commit of it may not have.
        ({**COMMITTING, "run_id": "done"}, 130, 0),
        ({**COMMITTING, "run_id": "done", "publishing": False}, 300, 55),
    ],
)
def test_who_ended_amid_a_commit(
    storage: Storage, s3: Store, who: dict[str, Any], silent: float, minutes: int
) -> None:
    s3.put(f"{WORK}/lease-1.json", holder(beat=time.time() - silent, **who))
    held = new_lease(storage, "next", "done")
    if minutes:
        with pytest.raises(BusyError, match=f"arrive; run again in {minutes} minutes"):
            held.take()
    else:
        held.take()
        held.release()


def test_a_clock_that_is_behind(storage: Storage, s3: Store) -> None:
    """What beats is alive, whatever its clock says."""
    s3.put(f"{WORK}/lease-1.json", holder(beat=time.time() - 600))
    reads = 0

    def beat(request: str) -> bool:
        nonlocal reads
        if request.startswith(f"GET /{BUCKET}/{WORK}/lease-1.json"):
            reads += 1
            if reads == 2:
                s3.put(f"{WORK}/lease-1.json", holder(beat=time.time() - 590))
        return False

    s3.stops_at = beat
    with pytest.raises(BusyError, match=r"another run \(other, on elsewhere.* is writing this"):
        new_lease(storage, "next").take()
    assert s3.keys(WORK) == {f"{WORK}/lease-1.json"}


def test_the_slow_one_comes_back(storage: Storage, s3: Store) -> None:
    """A run that seemed dead when it was looked at, and beats before its lease is taken."""
    s3.put(f"{WORK}/lease-1.json", holder(beat=time.time() - 600))
    held = new_lease(storage, "hasty")
    write = storage.write

    def beats_first(path: str, text: str, **more: Any) -> None:
        s3.put(f"{WORK}/lease-1.json", holder())
        write(path, text, **more)

    storage.write = beats_first  # type: ignore[method-assign]
    with pytest.raises(BusyError, match=r"another run \(other, on elsewhere"):
        held.take()
    assert s3.keys(WORK) == {f"{WORK}/lease-1.json"}


def test_a_lost_answer(storage: Storage, s3: Store) -> None:
    """The first lease is written, and nobody hears of it."""
    s3.stops_at = lambda request: request.startswith("PUT") and "/lease-1.json" in request
    s3.how = "once"
    held = new_lease(storage, "one")
    held.take()
    assert held.still_held()
    held.release()


@pytest.mark.parametrize("server", [moto], indirect=True)  # of others signatures would be wrong
def test_stores_that_ignore_conditions(storage: Storage, s3: Store) -> None:
    s3.deaf = True
    with pytest.raises(InputError, match="ignores the condition"):
        new_lease(storage, "one").take()
    assert s3.keys() == set()


def test_stores_without_conditional_writes(storage: Storage, s3: Store) -> None:
    storage._spark.conf.set("fs.s3a.create.conditional.enabled", "false")
    try:
        plain = Storage(storage._spark, TARGET)
        with pytest.raises(InputError, match="s3a:// has no conditional writes here"):
            new_lease(plain, "one").take()
    finally:
        storage._spark.conf.unset("fs.s3a.create.conditional.enabled")
    assert s3.keys() == set()
