"""Leases without Spark, on disks and object stores: who counts as alive, who wins, what stays."""

import fcntl
import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest

from anonlib.errors import BusyError, InputError, StorageError
from anonlib.spark import lease as leases
from anonlib.spark.lease import Lease, tidy, work_folder
from anonlib.spark.process import find_birth, identify_process
from tests.stores import Disk, Far

NOW = 10_000.0
WORK = "s3a://bucket/_table.anonlib"
FREE = {"free": True}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_SECONDS", "READ_SECONDS", "AGAIN_SECONDS"):
        monkeypatch.setattr(leases, name, 0.01)


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still."""
    monkeypatch.setattr(leases, "time", SimpleNamespace(time=lambda: NOW))


@pytest.fixture
def far() -> Any:
    return Far()


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    return Disk(tmp_path / "table")


def of(store: Any, run_id: str = "mine", *runs: str) -> Lease:
    return Lease(store, work_folder(store.root), run_id, lambda: frozenset(runs))


def elsewhere(**changes: Any) -> dict[str, Any]:
    """The lease of a run on another host."""
    base = {"run_id": "other", "token": "t", "host": "elsewhere", "pid": 1, "every": 10.0}
    return {**base, "beat": NOW, **changes}


def here(**changes: Any) -> dict[str, Any]:
    """The lease of a living process of this host."""
    parent = os.getppid()
    return elsewhere(**identify_process() | {"pid": parent, "born": find_birth(parent)} | changes)


def gone(**changes: Any) -> dict[str, Any]:
    """The lease of a dead process of this host."""
    return here(born="another time", **changes)


def put(store: Any, holder: dict[str, Any], number: int = 1) -> str:
    path = f"{work_folder(store.root)}/lease-{number}.json"
    store.write(path, json.dumps(holder))
    return path


def content(store: Any, number: int = 1) -> Any:
    return json.loads(store.read(f"{work_folder(store.root)}/lease-{number}.json"))


# --- who counts as alive

WRITES = "is writing this target; wait for it to end"
DEAD = ""
MID = {"committing": True}
DOUBT = {"committing": True, "doubtful": True}


def again(minutes: int) -> str:
    return f"its commit may still arrive; run again in {minutes} minutes"


def dead_in(minutes: int) -> str:
    return f"{WRITES}: without a sign of life it counts as dead in {minutes} minutes"


@pytest.mark.parametrize(
    ("holder", "on_far", "on_disk"),
    [
        (None, DEAD, DEAD),
        (FREE, DEAD, DEAD),
        ({}, DEAD, DEAD),
        (elsewhere(), WRITES, WRITES),
        (elsewhere(beat=NOW - 119), dead_in(1), dead_in(1)),
        (elsewhere(beat=NOW - 120), DEAD, DEAD),
        (elsewhere(every=20, beat=NOW - 239), WRITES, WRITES),
        (elsewhere(every=20, beat=NOW - 240), DEAD, DEAD),
        (elsewhere(every="often"), DEAD, DEAD),
        (elsewhere(beat="soon"), DEAD, DEAD),
        (elsewhere(beat=None), DEAD, DEAD),
        # A clock that runs ahead, a little and too far.
        (elsewhere(beat=NOW + 120), WRITES, WRITES),
        (elsewhere(beat=NOW + 121), DEAD, DEAD),
        (elsewhere(beat=NOW + 121, **MID), dead_in(63), dead_in(63)),
        # Amid a commit: for an hour, whatever the store.
        (elsewhere(beat=NOW - 120, **MID), WRITES, WRITES),
        (elsewhere(beat=NOW - 121, **MID), again(58), again(58)),
        (elsewhere(beat=NOW - 3540, **MID), again(1), again(1)),
        (elsewhere(beat=NOW - 3541, **MID), again(1), again(1)),
        (elsewhere(beat=NOW - 3600, **MID), DEAD, DEAD),
        # Its commit has arrived, or is not that of the release.
        (elsewhere(beat=NOW - 130, run_id="done", publishing=True, **MID), DEAD, DEAD),
        (elsewhere(beat=NOW - 130, run_id="done", publishing=False, **MID), again(58), again(58)),
        (elsewhere(beat=NOW - 130, publishing=True, **MID), again(58), again(58)),
        # What it asked of a store may arrive for four minutes; disks were asked nothing.
        (elsewhere(beat=NOW - 100, **DOUBT), again(3), DEAD),
        (elsewhere(beat=NOW - 240, **DOUBT), DEAD, DEAD),
        (elsewhere(beat=NOW - 100, doubtful=True), again(1), again(1)),
        (gone(), DEAD, DEAD),
        (gone(**MID), again(4), DEAD),
        (gone(beat=NOW - 239, **MID), again(1), DEAD),
        (gone(beat=NOW - 240, **MID), DEAD, DEAD),
        (gone(run_id="done", publishing=True, **MID), DEAD, DEAD),
        (here(), WRITES, WRITES),
        (here(beat=NOW - 9000), WRITES, WRITES),
        (here(beat=NOW - 9000, **DOUBT), WRITES, WRITES),
        # This process, which has no such lease: it could not be given back.
        (here(**identify_process()), DEAD, DEAD),
        # From before a reboot: on a disk nothing arrives later.
        (here(boot="other"), WRITES, WRITES),
        (here(boot="other", beat=NOW - 130, **MID), again(58), DEAD),
    ],
)
def test_the_holder(
    far: Any, disk: Any, still: None, holder: dict[str, Any] | None, on_far: str, on_disk: str
) -> None:
    for store, wanted in ((far, on_far), (disk, on_disk)):
        run = of(store, "mine", "done")
        if wanted:
            with pytest.raises(BusyError) as error:
                run._require_dead(holder)
            assert wanted in str(error.value)
            assert f"another run ({holder and holder['run_id']}, on " in str(error.value)
        else:
            run._require_dead(holder)


@pytest.mark.parametrize(
    ("change", "alive"),
    [({"beat": NOW + 1}, True), ({}, False), ({"beat": NOW + 1, "free": True}, False)],
)
@pytest.mark.parametrize("ago", [120, 600])
def test_a_silent_holder_is_watched(
    far: Any,
    still: None,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    alive: bool,
    ago: int,
) -> None:
    """Its clock may be behind: if it beats, it lives."""
    silent = elsewhere(beat=NOW - ago)
    put(far, {**silent, **change}, 3)
    put(far, silent, 2)
    if alive:
        with pytest.raises(BusyError, match=WRITES):
            of(far)._require_dead(silent)
    else:
        of(far)._require_dead(silent)
    asked = []
    monkeypatch.setattr(leases, "wait_for", lambda what, *_, **how: asked.append((what, how)))
    of(far)._require_dead(silent)
    (what, how) = asked[0]
    assert what == "a sign of life of another run (other, on elsewhere, process 1)"
    assert how == {"most": leases.LOOK_SECONDS, "every": 1.0}


def test_a_beat_of_this_moment() -> None:
    assert leases._silent(elsewhere(), NOW) == 0.0
    assert leases._silent(elsewhere(beat=NOW - 7), NOW) == 7.0


@pytest.mark.parametrize(
    ("changes", "patience", "has_it", "state"),
    [
        ({}, 0.0, True, "alive"),
        ({}, 120.0, None, "seems alive"),
        ({"doubtful": True}, 120.0, None, "may arrive"),
        ({}, 120.0, False, "may arrive"),
        ({"beat": NOW - 119}, 120.0, None, "seems alive"),
        ({"beat": NOW - 120}, 120.0, None, "overdue"),
        ({"beat": NOW - 120}, 120.0, False, "dead"),
        ({"beat": NOW - 120}, 3600.0, None, "seems alive"),
        ({"beat": NOW - 121}, 3600.0, None, "may arrive"),
        ({}, 0.0, False, "dead"),
        ({"beat": None}, 3600.0, None, "overdue"),
    ],
)
def test_the_state_of_a_holder(
    changes: dict[str, Any], patience: float, has_it: bool | None, state: str
) -> None:
    assert leases._judge(elsewhere(**changes), NOW, patience, has_it) == state


def test_the_holder_is_gone(far: Any) -> None:
    """Nothing is renewed where the lease itself was removed."""
    of(far)._require_dead(elsewhere(beat=0.0))


# --- one of several wins


def refused(run: Lease) -> str:
    """What a run is told that can't take the lease. It holds nothing then."""
    with pytest.raises((BusyError, InputError)) as error:
        run.take()
    assert run._content["token"] not in leases._HELD
    assert not run._beat.is_alive()
    return str(error.value)


def test_a_free_lease_is_taken(far: Any) -> None:
    put(far, FREE, 7)
    far.write(f"{WORK}/staging/part-0", "of a run that died")
    run = of(far)
    run.take()
    assert run._content["token"] in leases._HELD
    assert far.listed(WORK) == ["lease-8.json"]
    assert content(far, 8)["run_id"] == "mine"
    assert content(far, 8)["token"] == run._content["token"]
    states = ("committing", "publishing", "doubtful")
    assert [content(far, 8)[state] for state in states] == [False] * 3
    assert (run.failed, run.doubtful, run.remote, run.still_held()) == (False, False, True, True)
    assert run._beat.daemon
    run.release()
    assert run._content["token"] not in leases._HELD
    assert content(far, 8) == FREE
    assert far.listed(WORK) == ["lease-8.json"]


def test_a_live_one_is_left_alone(far: Any) -> None:
    first = of(far, "first")
    first.take()
    assert refused(of(far)).endswith(WRITES)
    assert far.listed(WORK) == ["lease-1.json"]
    assert first.still_held()
    first.release()


class Interfering(Far):
    """A store where others act right before or after a run's file is made."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

    def write(self, path: str, text: str, *, new: bool = False, public: bool = False) -> None:
        if not new:
            return super().write(path, text)
        self.before()
        super().write(path, text, new=True)
        return self.after()


def test_another_made_the_file_first() -> None:
    store: Any = Interfering()
    theirs = elsewhere()
    store.before = lambda: put(store, theirs)
    assert refused(of(store)) == leases.TAKEN
    assert content(store) == theirs


def test_a_lost_answer() -> None:
    """The request was sent twice, and finds its own file."""
    store: Any = Interfering()

    def lose() -> None:
        raise FileExistsError

    store.after = lose
    run = of(store)
    run.take()
    assert run.still_held()
    run.release()


def test_a_store_without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = Far()
    write = store.write
    monkeypatch.setattr(store, "write", lambda path, text, **_: write(path, text))
    assert "the store ignores the condition of conditional writes" in refused(of(store))
    assert store.listed(WORK) == []


def test_a_slow_run_counted_as_dead() -> None:
    store: Any = Interfering()
    theirs = elsewhere()
    store.after = lambda: put(store, theirs, 2)
    assert refused(of(store)) == leases.TAKEN
    assert store.listed(WORK) == ["lease-2.json"]
    assert content(store, 2) == theirs


@pytest.mark.parametrize(
    ("dead", "now", "taken"),
    [
        (elsewhere(beat=0.0), elsewhere(beat=1.0), False),
        (elsewhere(beat=0.0), elsewhere(beat=0.0), True),
        (elsewhere(beat=0.0), FREE, True),
        ("half-writ", elsewhere(beat=0.0), False),
        ("half-writ", FREE, True),
        ("half-writ", "half-writ", True),
    ],
)
def test_the_dead_one_lives(dead: Any, now: Any, taken: bool) -> None:
    """It was slow, or amid a beat: the lease before ours is valid again."""
    store: Any = Interfering()
    path = f"{WORK}/lease-4.json"
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (dead, now)]
    store.files[path] = texts[0]
    store.after = lambda: store.files.update({path: texts[1]})
    run = of(store)
    if taken:
        run.take()
        assert store.listed(WORK) == ["lease-5.json"]
        run.release()
    else:
        assert refused(run).endswith(WRITES)
        assert store.listed(WORK) == ["lease-4.json"]


@pytest.mark.parametrize("step", ["remove_files", "_beat.start"])
def test_nothing_is_held_when_a_run_fails_as_it_begins(
    far: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What is left can't be removed, or there is no thread to be had. The list of what a dead run
    left stays."""
    far.write(f"{WORK}/{leases.FILES}", "{")
    run = of(far)

    def fail(*_: object, **__: object) -> None:
        raise StorageError("no answer")

    part, _, name = step.rpartition(".")
    monkeypatch.setattr(getattr(run, part) if part else run, name, fail)
    with pytest.raises(StorageError, match="no answer"):
        run.take()
    assert content(far) == FREE
    assert far.exists(f"{WORK}/{leases.FILES}")
    assert run._content["token"] not in leases._HELD
    assert run._ended.is_set() or run._beat.ident is None  # it never began


def test_a_lease_is_made_private(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(far, "make_private", made.append)
    of(far).take()
    assert made == [WORK]


# --- while it is held


def taken_over(store: Any, run: Lease) -> None:
    put(store, elsewhere(), run._number + 1)


def test_a_lease_is_lost(far: Any) -> None:
    run = of(far)
    run.take()
    run.require()
    taken_over(far, run)
    far.write(f"{WORK}/staging/part-0", "the other's")
    assert not run.still_held()
    with pytest.raises(StorageError, match="the lease on the target was lost"):
        run.require()
    with pytest.raises(StorageError, match="lost"), run.committing():
        raise AssertionError("it commits")
    run.release()
    assert content(far, 2) == elsewhere()
    assert far.exists(f"{WORK}/staging/part-0")
    assert run._content["token"] not in leases._HELD


def test_a_lease_under_its_number_is_anothers(far: Any) -> None:
    run = of(far)
    run.take()
    put(far, elsewhere())
    assert not run.still_held()
    with pytest.raises(StorageError, match="lost"), run.committing():
        raise AssertionError("it commits")
    assert "committing" not in content(far)
    far.delete(f"{WORK}/lease-1.json")
    assert not run.still_held()
    run.release()


def test_a_lease_that_cannot_be_looked_up(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = of(far)
    run.take()

    def fail(path: str) -> str:
        raise StorageError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(far, "read", fail)
        assert not run.still_held()
        with pytest.raises(StorageError, match="no answer"):
            run.require()
    run.release()


def test_a_commit(far: Any) -> None:
    """It is marked while it lasts, however it ends."""
    run = of(far)
    run.take()
    with run.committing():
        assert (content(far)["committing"], content(far)["publishing"]) == (True, False)
    assert not content(far)["committing"]
    marks = []
    with suppress(ValueError), run.committing(publishing=True):
        marks.append((content(far)["committing"], content(far)["publishing"]))
        raise ValueError("ours")
    assert marks == [(True, True)]
    assert not content(far)["committing"]
    run.release()


def test_a_run_that_is_overtaken_right_before_its_commit(far: Any) -> None:
    """The last look is after its own mark: one of the two sees the other."""
    run = of(far)
    run.take()
    write = far.write

    def overtaken(path: str, text: str, **more: Any) -> None:
        write(path, text, **more)
        if json.loads(text).get("committing"):
            taken_over(far, run)

    far.write = overtaken
    with pytest.raises(StorageError, match="the lease on the target was lost"), run.committing():
        raise AssertionError("it commits")
    far.write = write
    run.release()


def test_a_commit_of_unknown_outcome(far: Any) -> None:
    """The mark stays, and the lease is not given back."""
    run = of(far)
    run.take()
    with run.committing(publishing=True):
        run.doubt()
    assert run.doubtful
    assert (content(far)["committing"], content(far)["doubtful"]) == (True, True)
    run.release()
    assert content(far)["doubtful"]


def test_the_mark_may_fail_after_a_commit(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = of(far)
    run.take()
    tried = []

    def fail(*_: object, **__: object) -> None:
        tried.append(1)
        raise StorageError("no answer")

    with monkeypatch.context() as patch, run.committing():
        patch.setattr(far, "write", fail)
    run.release()
    assert tried


def test_beats(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They go on after a failure, and end with the lease."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)
    run = of(far)
    run.take()
    assert content(far)["every"] == 0.01
    failed = threading.Event()
    listed = far.listed

    def fail(path: str) -> list[str]:
        far.listed = listed
        failed.set()
        raise RuntimeError("no answer")

    far.listed = fail
    assert failed.wait(10)
    far.asked.clear()
    assert far.asked.wait(10)
    run.release()
    assert run._ended.is_set()
    assert content(far) == FREE


def test_a_lost_lease_beats_no_more(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)
    run = of(far)
    run.take()
    put(far, elsewhere())
    looked = threading.Semaphore(0)
    listed = far.listed

    def look(path: str) -> list[str]:
        looked.release()
        return list(listed(path))

    far.listed = look
    for _ in range(5):
        assert looked.acquire(timeout=10)
    assert content(far) == elsewhere()
    run.release()


def test_writes_wait_for_each_other(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older beat does not arrive after a newer one, nor is a half-written lease looked at."""
    run = of(far)
    run.take()
    for work in (run._renew, run._holds):
        other = threading.Thread(target=work)
        with run._writing:
            other.start()
            other.join(0.05)
            assert other.is_alive()
        other.join(10)
    run.release()


# --- what stays

RECORD = json.dumps({"run_id": "mine"})


@pytest.mark.parametrize(
    ("failed", "doubtful", "published", "kept"),
    [
        (False, False, True, False),
        (True, False, False, False),
        (True, False, True, True),
        (True, True, False, True),
    ],
)
def test_the_record_stays_while_it_may_be_needed(
    far: Any, failed: bool, doubtful: bool, published: bool, kept: bool
) -> None:
    run = of(far, "mine", *["mine"] * published)
    run.take()
    far.write(f"{WORK}/{leases.AHEAD}", RECORD)
    far.write(f"{WORK}/staging/part-0", "x")
    run.failed = failed
    if doubtful:
        run.doubt()
    run.release()
    assert far.listed(WORK) == ["lease-1.json", *[leases.AHEAD] * kept]


@pytest.mark.parametrize("run_id", ["mine", "next"])
@pytest.mark.parametrize(
    ("text", "runs", "kept"),
    [(RECORD, ["mine"], True), (RECORD, ["next"], False), (RECORD[:9], ["mine"], False)],
)
def test_the_record_of_a_dead_run(
    far: Any, run_id: str, text: str, runs: list[str], kept: bool
) -> None:
    """Whoever comes next finds it, if its run was committed. Only that run itself is done with it
    when it ends well: another may not have moved it."""
    far.write(f"{WORK}/{leases.AHEAD}", text)
    run = of(far, run_id, *runs)
    run.take()
    assert far.exists(f"{WORK}/{leases.AHEAD}") == kept
    run.release()
    assert far.exists(f"{WORK}/{leases.AHEAD}") == (kept and run_id != "mine")


def test_the_record_goes_where_nobody_can_say(far: Any) -> None:
    def fail() -> frozenset[str]:
        raise ValueError("no answer")

    far.write(f"{WORK}/{leases.AHEAD}", RECORD)
    run = Lease(far, WORK, "mine", fail)
    run.take()
    assert not far.exists(f"{WORK}/{leases.AHEAD}")
    run.release()


def test_a_folder_of_the_disk(disk: Any, tmp_path: Path) -> None:
    """It is there while the lease is held, and has a lock file."""
    work = tmp_path / "_table.anonlib"
    run = of(disk)
    run.take()
    assert {path.name for path in work.iterdir()} == {"lease-1.json", "lease.lock"}
    assert not run.remote
    (work / "staging").mkdir()
    run.release()
    assert not work.exists()
    run = of(disk)
    run.take()
    run.doubt()  # a disk holds no request back
    run.release()
    assert not work.exists()


def test_a_folder_that_another_run_needs(
    disk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "_table.anonlib"
    run = of(disk)
    run.take()
    clean = run._clean

    def come(**how: Any) -> None:
        clean(**how)
        (work / "of-another").write_text("x")

    monkeypatch.setattr(run, "_clean", come)
    run.release()
    assert [path.name for path in work.iterdir()] == ["of-another"]


def test_a_lease_on_a_disk_is_lost_while_it_is_given_back(
    disk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = of(disk)
    run.take()
    monkeypatch.setattr(run, "_clean", lambda **_: taken_over(disk, run))
    run.release()
    assert content(disk, 2) == elsewhere()
    assert (tmp_path / "_table.anonlib" / "lease-1.json").exists()


def test_the_lock(disk: Any, tmp_path: Path) -> None:
    """Who takes a lease waits for who looks at it; the lock holds until the file is closed."""
    work = tmp_path / "_table.anonlib"
    work.mkdir()
    run = of(disk)
    with (work / "lease.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        taking = threading.Thread(target=run.take)
        taking.start()
        taking.join(0.2)
        assert taking.is_alive()
        assert not (work / "lease-1.json").exists()
    taking.join(10)
    assert run.still_held()
    with run._one_at_a_time(), (work / "lease.lock").open("w") as file:
        assert not leases._try_lock(file)
    with (work / "lease.lock").open("w") as file:
        assert leases._try_lock(file)
    run.release()


def test_a_lease_is_given_back_under_the_lock(disk: Any, tmp_path: Path) -> None:
    run = of(disk)
    run.take()
    releasing = threading.Thread(target=run.release)
    with run._one_at_a_time():
        releasing.start()
        releasing.join(0.2)
        assert (tmp_path / "_table.anonlib" / "lease-1.json").exists()
    releasing.join(10)
    assert not (tmp_path / "_table.anonlib").exists()


def test_the_lock_of_a_folder_that_was_removed(
    disk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It protects nothing: the lock is taken again, in the new folder."""
    work = tmp_path / "_table.anonlib"
    locked: list[Any] = []
    lock = leases._try_lock

    def remove_once(file: TextIO) -> bool:
        if len(locked) < 2:
            (work / "lease.lock").unlink()
            if locked:  # and another run has made the folder again
                (work / "lease.lock").touch()
        locked.append(file)
        return lock(file)

    monkeypatch.setattr(leases, "_try_lock", remove_once)
    with of(disk)._one_at_a_time():
        there = (work / "lease.lock").stat().st_ino
        assert os.fstat(locked[-1].fileno()).st_ino == there
    assert [file.closed for file in locked] == [True] * 3


# --- `lease` and `tidy`


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch, far: Any) -> Any:
    """In place of a session: its store is the one in memory."""
    monkeypatch.setattr(leases, "Storage", lambda spark, target: far)
    return None


def test_a_lease_around_work(spark: Any, far: Any) -> None:
    with leases.lease(spark, far.root, "mine") as held:
        assert (held.work, held.failed) == (WORK, False)
        assert held.still_held()
    assert not held.failed
    assert content(far) == FREE
    with (
        pytest.raises(ValueError, match="ours"),
        leases.lease(spark, far.root, "mine", work="s3a://bucket/own") as held,
    ):
        raise ValueError("ours")
    assert held.failed
    assert json.loads(far.read("s3a://bucket/own/lease-1.json")) == FREE


@pytest.mark.parametrize(
    ("there", "left"),
    [
        ({}, []),
        ({"lease-3.json": json.dumps(FREE)}, ["lease-3.json"]),
        ({"lease-3.json": json.dumps(elsewhere(beat=0.0))}, ["lease-4.json"]),
        ({"lease-3.json": json.dumps(FREE), "staging/part-0": "x"}, ["lease-4.json"]),
        ({"staging": "x"}, ["lease-1.json"]),
    ],
)
def test_what_a_dead_run_left(spark: Any, far: Any, there: dict[str, str], left: list[str]) -> None:
    far.files = {f"{WORK}/{name}": text for name, text in there.items()}
    tidy(spark, far.root, "mine")
    assert far.listed(WORK) == left


def test_an_empty_folder_is_tidied(
    monkeypatch: pytest.MonkeyPatch, disk: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(leases, "Storage", lambda spark, target: disk)
    work = tmp_path / "_table.anonlib"
    work.mkdir()
    nothing: Any = None
    tidy(nothing, disk.root, "mine")
    assert not work.exists()


def test_the_folder_beside_a_target() -> None:
    assert work_folder("s3a://bucket/out/table/") == "s3a://bucket/out/_table.anonlib"


# --- texts of leases


def test_a_lease_that_is_read_amid_a_beat(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "READ_SECONDS", 10)
    texts = iter(["", '{"run_i', '{"run_id": "other"}'])
    put(far, FREE)
    monkeypatch.setattr(far, "read", lambda path: next(texts))
    assert of(far)._read(1) == {"run_id": "other"}
    asked = []
    monkeypatch.setattr(leases, "wait_for", lambda what, ready, **how: asked.append(how))
    assert of(far)._read(1) is None
    assert asked == [{"most": 10, "every": leases.AGAIN_SECONDS}]


@pytest.mark.parametrize("text", ["", "[1]", "null"])
def test_a_lease_that_says_nothing(far: Any, text: str) -> None:
    far.write(f"{WORK}/lease-1.json", text)
    assert of(far)._read(1) is None
    assert of(far)._read(2) is None


def test_a_lease_that_cannot_be_read(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> str:
        raise InputError("permission denied")

    put(far, elsewhere())
    monkeypatch.setattr(far, "read", fail)
    with pytest.raises(InputError, match="permission denied"):
        of(far)._read(1)


def test_the_last_lease(far: Any) -> None:
    run = of(far)
    assert run._last() == 0
    for name in ("lease-2.json", "lease-10.json", "lease-x.json", f"lease-{10**18}.json", "a"):
        far.write(f"{WORK}/{name}", "x")
    assert run._last() == 10


def test_this_process_holds_what_it_was_not_given_back(far: Any) -> None:
    run = of(far)
    run.take()
    assert leases._has_it(content(far)) is True
    run.release()
    assert leases._has_it({**identify_process(), "token": run._content["token"]}) is False
    with suppress(FileNotFoundError):
        far.delete(WORK)
