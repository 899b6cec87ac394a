"""Stages and their job groups, and whose run a line of the log is."""

import json
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from anonlib import progress as module
from anonlib.cli.failures import report_error
from anonlib.cli.progress_lines import JsonProgress, LogProgress
from anonlib.errors import InputError
from anonlib.progress import Progress, SilentProgress, wait_for

GROUP = "spark.jobGroup.id"


class Context:
    """A Spark context, as far as groups go; the session as well."""

    def __init__(self) -> None:
        self.properties: dict[str, str | None] = {GROUP: "mine"}
        self.sparkContext = self

    def getLocalProperty(self, key: str) -> str | None:
        return self.properties.get(key)

    def setLocalProperty(self, key: str, value: str | None) -> None:
        self.properties[key] = value

    def setJobGroup(self, group: str, description: str, interrupt: bool) -> None:
        self.properties[GROUP] = group
        self.properties["spark.job.description"] = description

    @property
    def group(self) -> str | None:
        return self.properties[GROUP]


class Watching:
    """Notes what it is told of stages."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def stage_started(self, name: str) -> None:
        self.told.append(name)

    def stage_ended(
        self, name: str, failure: BaseException | None, *, stopped: bool = False
    ) -> None:
        self.told.append((name, failure, stopped))


class TestGroups:
    def test_of_a_run_and_its_stages(self) -> None:
        spark, progress = Context(), Progress()
        progress.run_id = "r1"
        with progress.stage("scan", spark):
            assert spark.group == spark.properties["spark.job.description"] == "anonlib r1 scan"
            with progress.stage("shadow", spark):
                assert spark.group == "anonlib r1 shadow"
                with SilentProgress().stage("anonymize", spark):
                    assert spark.group == "anonlib r1 shadow"
            assert spark.group == "anonlib r1 scan"
        assert spark.properties == {
            GROUP: "mine",
            "spark.job.description": None,
            "spark.job.interruptOnCancel": None,
        }
        assert {*progress.seconds} == {"scan", "shadow"}

    def test_of_no_run(self) -> None:
        spark = Context()
        with Progress().stage("scan", spark):
            assert spark.group == "anonlib scan"

    def test_stays_after_a_failure(self) -> None:
        """Until then, its tasks may still be running."""
        spark = Context()
        with pytest.raises(ZeroDivisionError), Progress().stage("scan", spark):
            raise ZeroDivisionError
        assert spark.group == "anonlib scan"


def test_a_stage_inside_another_counts_for_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each look at the clock is worth twice the one before: every span has a length of its own.
    clock = (2.0**i for i in count())
    monkeypatch.setattr("anonlib.progress.monotonic", lambda: next(clock))
    progress = Progress()
    with progress.stage("learning"):  # 1
        with progress.stage("shadow"):  # 2 to 4
            pass
        with suppress(ValueError), progress.stage("shadow"):  # 8 to 64
            with progress.stage("scan"):  # 16 to 32
                pass
            raise ValueError("x")
    # to 128
    assert progress.seconds == {"shadow": 2 + 56 - 16, "scan": 16, "learning": 127 - 2 - 56}


def test_watchers_are_told_what_ended_a_stage() -> None:
    progress, watching, error = Progress(), Watching(), ZeroDivisionError()
    progress.watcher = watching
    with progress.stage("scan"):
        pass
    with pytest.raises(ZeroDivisionError), progress.stage("audit"):
        raise error
    progress.stops = lambda found: found is error
    with pytest.raises(ZeroDivisionError), progress.stage("plan"):
        raise error
    assert watching.told == [
        *("scan", ("scan", None, False)),
        *("audit", ("audit", error, False)),
        *("plan", ("plan", error, True)),
    ]


def test_errors_name_their_run(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    for run in ({}, {"run_id": "r1", "target": "/out"}):
        vars(progress).update(run)
        code = report_error(
            InputError("no"),
            log_format="json",
            debug=False,
            config=None,
            verb=None,
            progress=progress,
        )
        assert code == 2
        found = json.loads(capsys.readouterr().err)
        assert {key: found[key] for key in ("run_id", "target") if key in found} == run
        assert (found["event"], found["text"]) == ("error", "no")


class TestWaits:
    """Whatever waits below a verb is shown by the progress of its latest stage."""

    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "SHOWN_AFTER", 0.0)

    def wait(self, progress: Progress, asked: int, most: float = 300.0) -> bool:
        left = iter([False] * asked + [True])
        with progress.stage("start"):
            pass
        return wait_for("the lease of out/adult", lambda: next(left), most=most, every=0.001)

    def test_as_a_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.wait(LogProgress(), 3)
        (line,) = [each for each in capsys.readouterr().err.splitlines() if "waiting" in each]
        assert line.endswith(" waiting for the lease of out/adult, at most 5 min")

    def test_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.wait(JsonProgress(), 3)
        events = [json.loads(each) for each in capsys.readouterr().err.splitlines()][2:]
        assert [each["event"] for each in events] == ["waiting", "waited"]
        assert events[0]["what"] == "the lease of out/adult"
        assert events[0]["seconds_at_most"] == 300

    def test_what_is_ready_is_not_shown(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.wait(LogProgress(), 0)
        assert "waiting" not in capsys.readouterr().err

    def test_it_ends(self) -> None:
        assert not self.wait(LogProgress(), 10**6, most=0.01)

    def test_nobody_waits_elsewhere(self) -> None:
        """One helper: others would wait unseen."""
        home = Path(module.__file__).parent
        sleeping = [path for path in home.rglob("*.py") if "sleep(" in path.read_text("utf-8")]
        assert sleeping == [home / "progress.py"]
