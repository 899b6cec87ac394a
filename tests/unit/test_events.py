"""Events in OpenLineage's format, and what a run says of itself in the table of runs."""

import json
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from anonlib.auditing.report import AuditReport, Verdict
from anonlib.config.environment import EVENTS, REQUIRE
from anonlib.config.model import AccountabilitySection, Config, ContextSection
from anonlib.config.reading import parse
from anonlib.errors import (
    AuditError,
    BlockError,
    ConfigError,
    GateError,
    InfeasibleError,
    InputError,
)
from anonlib.progress import Progress
from anonlib.run.account import Account, spell_path
from anonlib.run.events import Events
from anonlib.run.operator_limits import require_words
from anonlib.run.result import ReleaseResult

RUN = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
VERDICTS = (Verdict("k_anonymity k=3", True, 3, 3, 0, ()), Verdict("l=2", False, 1, 2, 1, (3,)))
REPORT = AuditReport(57, 19, VERDICTS, (), ((3, 19),), "none")
MADE = ReleaseResult(
    run_id="r1",
    outcome="published",
    n_rows_in=60,
    n_rows_out=57,
    n_suppressed=3,
    table="file:/data/out",
    table_version=4,
    record="file:/data/out.private/r1.json",
)


def config(events: str | None = None, **changes: Any) -> Config:
    raw: dict[str, Any] = {
        "source": {"format": "delta", "path": "s3a://lake/people?sig=secret"},
        "attributes": {"wage": {"role": "quasi_identifier", "scale": "continuous"}},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": "/data/out"},
        **changes,
    }
    return parse(raw if events is None else {**raw, "events": events})


def account(events: Path | str | None = None, verb: str = "release", **changes: Any) -> Account:
    made = config(None if events is None else str(events), **changes)
    return Account(verb, "r1", made, "/data/out")


def run(account: Account, fails: BaseException | None = None, **found: Any) -> list[Any]:
    """The events of a run with two stages, of which the second may fail."""
    events, progress = Events(account), Progress()
    events.begin()
    progress.watcher = events
    account.source_version = 7
    try:
        with progress.stage("scan"):
            pass
        with progress.stage("audit"):
            account.report = REPORT
            if fails is not None:
                raise fails
    except BaseException as error:
        account.fail(error)
    else:
        account.end(replace(MADE, **found))
    events.end()
    path = Path(account.config.events or "")
    lines = (path / "r1.jsonl" if path.is_dir() else path).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


class TestEvents:
    def test_one_of_each_stage_and_run(self, tmp_path: Path) -> None:
        events = run(account(tmp_path / "events.jsonl"))
        name = "release /data/out"
        assert [(e["eventType"], e["job"]["name"]) for e in events] == [
            ("START", name),
            *(("START", f"{name}.scan"), ("COMPLETE", f"{name}.scan")),
            *(("START", f"{name}.audit"), ("COMPLETE", f"{name}.audit")),
            ("COMPLETE", name),
        ]
        whole, scan, scanned, audit, audited, over = (UUID(e["run"]["runId"]) for e in events)
        assert whole == over
        assert scan == scanned
        assert audit == audited
        assert len({whole, scan, audit}) == 3
        for event in events[1:5]:
            parent = event["run"]["facets"]["parent"]
            assert (parent["run"]["runId"], parent["job"]["name"]) == (str(whole), name)
        assert events[-1]["run"]["facets"]["anonlib"]["runId"] == "r1"
        assert events[-1]["run"]["facets"]["anonlib"]["outcome"] == "published"

    def test_a_stage_that_is_stopped_has_not_failed(self, tmp_path: Path) -> None:
        """As of a batch that can't hold the models alone, and waits."""
        progress, error = Progress(), ValueError("no")
        events = Events(account(tmp_path / "events.jsonl"))
        events.begin()
        progress.watcher, progress.stops = events, lambda found: found is error
        with pytest.raises(ValueError, match="no"), progress.stage("scan"):
            raise error
        last = json.loads((tmp_path / "events.jsonl").read_text("utf-8").splitlines()[-1])
        assert (last["eventType"], "errorMessage" in last["run"]["facets"]) == ("ABORT", False)

    def test_what_every_event_must_have(self, tmp_path: Path) -> None:
        for event in run(account(tmp_path / "events.jsonl")):
            assert event["schemaURL"] == RUN
            assert event["producer"].startswith("urn:anonlib:")
            assert event["eventTime"].endswith("+00:00")
            assert event["job"]["namespace"] == "anonlib"
            facets = [*event["run"]["facets"].values(), *event["job"]["facets"].values()]
            for dataset in (*event["inputs"], *event["outputs"]):
                assert dataset["namespace"]
                assert dataset["name"]
                for kind in ("facets", "inputFacets", "outputFacets"):
                    facets += dataset.get(kind, {}).values()
            assert facets
            for facet in facets:
                assert facet["_producer"] == event["producer"]
                assert facet["_schemaURL"].startswith("https://openlineage.io/spec/")

    def test_datasets(self, tmp_path: Path) -> None:
        events = run(account(tmp_path / "events.jsonl"))
        (source,), (target,) = events[-1]["inputs"], events[-1]["outputs"]
        assert (source["namespace"], source["name"]) == ("s3://lake", "people…")
        assert source["facets"]["version"]["datasetVersion"] == "7"
        assert source["inputFacets"]["inputStatistics"]["rowCount"] == 60
        assert (target["namespace"], target["name"]) == ("file", "/data/out")
        assert target["facets"]["version"]["datasetVersion"] == "4"
        assert target["outputFacets"]["outputStatistics"]["rowCount"] == 57
        (audited,) = events[4]["inputs"]
        assert audited["inputFacets"]["dataQualityAssertions"]["assertions"] == [
            {"assertion": "k_anonymity k=3", "success": True},
            {"assertion": "l=2", "success": False},
        ]
        assert "secret" not in json.dumps(events)

    @pytest.mark.parametrize(
        ("n_suppressed", "told"), [(0, True), (1, False), (2, False), (3, True)]
    )
    def test_few_suppressed_rows_are_not_counted(
        self, tmp_path: Path, n_suppressed: int, told: bool
    ) -> None:
        """The manifest says <k; rows in and rows out would say how many."""
        events = run(account(tmp_path / "events.jsonl"), n_suppressed=n_suppressed)
        assert ("rowCount" in json.dumps(events[-1]["inputs"])) == told

    def test_nothing_is_counted_that_is_not_published(self, tmp_path: Path) -> None:
        for i, verb in enumerate(("release", "trial")):
            found = account(tmp_path / f"{i}.jsonl", verb)
            events = run(found, outcome="waiting" if verb == "release" else "evaluated")
            assert "rowCount" not in json.dumps(events)
            assert len(events[-1]["outputs"]) == (verb == "release")

    @pytest.mark.parametrize(
        ("error", "kind"),
        [(AuditError("RAW"), "FAIL"), (ValueError("RAW"), "FAIL"), (KeyboardInterrupt(), "ABORT")],
    )
    def test_failures(self, tmp_path: Path, error: BaseException, kind: str) -> None:
        events = run(account(tmp_path / "events.jsonl"), error)
        assert [e["eventType"] for e in events[-2:]] == [kind, kind]
        for event in events[-2:]:
            facet = event["run"]["facets"]["errorMessage"]
            assert facet["message"] == type(error).__name__
            assert facet["programmingLanguage"] == "PYTHON"
        assert "RAW" not in json.dumps(events)
        assert events[-2]["inputs"]  # with the verdicts

    def test_a_folder_gets_a_file_of_each_run(self, tmp_path: Path) -> None:
        given = account(f"{tmp_path}/new/")
        assert len(run(given)) == 6
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "new" / "r1.jsonl").stat().st_mode) == 0o600
        assert len(run(given)) == 12  # appended

    def test_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(EVENTS, str(tmp_path / "given.jsonl"))
        Events(account()).begin()
        assert (tmp_path / "given.jsonl").read_text("utf-8").count("\n") == 1
        Events(account(tmp_path / "own.jsonl")).begin()
        assert (tmp_path / "given.jsonl").read_text("utf-8").count("\n") == 1
        monkeypatch.setenv(EVENTS, "s3://bucket/events")
        with pytest.raises(InputError, match="file or folder of this machine"):
            Events(account())
        monkeypatch.setenv(EVENTS, "/data/out/events/")
        with pytest.raises(InputError, match="lies in the release"):
            Events(account())
        monkeypatch.delenv(EVENTS)
        Events(account()).begin()  # to nowhere

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match=r"events: .*file/events: can't be written"):
            Events(account(tmp_path / "file" / "events")).begin()
        events = Events(account(tmp_path / "later" / "events"))
        events.begin()
        (tmp_path / "later" / "events").unlink()
        (tmp_path / "later" / "events").mkdir()
        events.end()  # no reason to fail a run

    @pytest.mark.parametrize("path", ["/data/out/events", "s3a://bucket/events"])
    def test_places_that_are_refused(self, path: str) -> None:
        with pytest.raises(ConfigError, match="events: "):
            config(path)


class TestAccount:
    @pytest.mark.parametrize(
        ("error", "outcome", "code"),
        [
            (GateError("RAW"), "stopped", 4),
            (AuditError("RAW"), "audit failed", 3),
            (InfeasibleError([]), "infeasible", 2),
            (InputError("RAW"), "failed", 2),
            (BlockError("RAW"), "failed", 1),
            (ZeroDivisionError("RAW"), "failed", 1),
            (KeyboardInterrupt("RAW"), "interrupted", 1),
        ],
    )
    def test_failures(self, error: BaseException, outcome: str, code: int) -> None:
        found = account()
        found.n_rows_in = 60
        found.fail(error)
        row = found.row()
        assert (row["outcome"], row["exit_code"]) == (outcome, code)
        assert row["error"] == type(error).__name__
        assert row["rows_in"] == 60
        assert [row[name] for name in ("rows_out", "version", "record", "report")] == [None] * 4
        assert "RAW" not in str(row)

    def test_published(self) -> None:
        words = {"approver": "data office", "recipients": ["university", "press"]}
        found = account(accountability=words)
        found.report, found.source_version, found.n_rows_in = REPORT, 7, 60
        found.end(MADE)
        row = found.row()
        assert (row["approver"], row["purpose"]) == ("data office", None)
        assert row["recipients"] == ["university", "press"]
        assert row["verdicts"] == [("k_anonymity k=3", True), ("l=2", False)]
        assert row["models"] == ["k_anonymity k=3"]
        counts = ("rows_in", "rows_out", "rows_suppressed", "version", "k", "source_version")
        assert [row[name] for name in counts] == [60, 57, 3, 4, 3, 7]
        assert (row["source_format"], row["source"]) == ("delta", "s3a://lake/people…")
        assert (row["record"], row["report"]) == ("/data/out.private/r1.json", None)
        assert row["error"] is None
        assert row["begun"] <= row["ended"]

    def test_places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert spell_path("file:///a/b") == spell_path("file:/a/b") == spell_path("/a/b") == "/a/b"
        assert spell_path("a") == f"{tmp_path}/a"
        assert spell_path("s3a://me:secret@b/c") == "s3a://…@b/c"

    def test_the_table_is_private(self) -> None:
        with pytest.raises(ConfigError, match=r"accountability\.runs: lies in the release"):
            config(accountability={"runs": "/data/out/runs"})
        assert config().runs_folder == "/data/out.private/runs"
        assert config(accountability={"runs": "/all/runs"}).runs_folder == "/all/runs"


class TestRequired:
    def test_all_that_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        require_words(AccountabilitySection(), ContextSection())
        monkeypatch.setenv(REQUIRE, "approver, purpose,recipients,")
        with pytest.raises(ConfigError) as caught:
            require_words(AccountabilitySection(purpose="study"), ContextSection())
        assert [problem.where for problem in caught.value.problems] == [
            "accountability.approver",
            "accountability.recipients",
        ]
        words = AccountabilitySection(approver="a", purpose="p", recipients=("r",))
        require_words(words, ContextSection())
        monkeypatch.setenv(REQUIRE, "purpose,access,expires")
        with pytest.raises(ConfigError) as caught:
            require_words(words, ContextSection(access="public"))
        assert [problem.where for problem in caught.value.problems] == ["context.expires"]

    def test_what_nobody_may_use_any_more(self) -> None:
        today = datetime.now(UTC).date()
        require_words(AccountabilitySection(), ContextSection(expires=today + timedelta(2)))
        with pytest.raises(ConfigError, match=r"context\.expires: is over"):
            require_words(AccountabilitySection(), ContextSection(expires=today - timedelta(2)))

    def test_what_it_can_not_understand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(REQUIRE, "aprover")
        with pytest.raises(ConfigError, match=r"approver, purpose, recipients, .* expires only"):
            require_words(AccountabilitySection(approver="a"), ContextSection())
