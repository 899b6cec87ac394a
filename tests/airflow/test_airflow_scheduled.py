"""The DAG of jobs/airflow under a scheduler, triggered as docs/operations/running.md says."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.running import ROOT, TOKEN, Airflow, ended, hides, installed
from tests.airflow.services import Services, services

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with (
        installed(tmp_path_factory.mktemp("scheduled")) as airflow,
        services(airflow) as started,
    ):
        started.wait_until("select dag_id from serialized_dag where dag_id = 'anonlib_release'")
        started.airflow.command("airflow", "dags", "unpause", "--yes", "anonlib_release")
        yield started


def trigger(airflow: Airflow, config: str, date: str) -> None:
    """The command of the docs, with another config and date."""
    text = (ROOT / "docs/operations/running.md").read_text("utf-8")
    [said] = re.findall(r"`(airflow dags trigger\s[^`]+)`", text)
    assert "people.yaml" in said
    assert "2026-01-31" in said
    said = said.replace("people.yaml", config).replace("2026-01-31", date)
    airflow.command(*shlex.split(said))


def test_releases_once_however_often_it_runs(scheduled: Services) -> None:
    airflow = scheduled.airflow
    trigger(airflow, "people.yaml", "2026-01-31")
    first = scheduled.over("people.yaml")
    assert first.states == ended(*["success"] * 4), first.log
    table = airflow.tables / "people"
    [commit] = (table / "_delta_log").glob("*.json")
    written = commit.read_bytes()
    [report] = (airflow.tables / "people.private").glob("*.html")
    assert f"Audit of {table}: passed" in first.log
    shows(scheduled, table, report)
    airflow.command("airflow", "tasks", "clear", "--yes", "-t", "release", "anonlib_release")
    again = scheduled.over("people.yaml")
    assert again.states == first.states | {"release": ("success", 2)}, again.log
    assert "done already" in again.log
    assert "done already" not in first.log
    assert [*(table / "_delta_log").glob("*.json")] == [commit]
    assert commit.read_bytes() == written
    hides(airflow, first, again)


def shows(scheduled: Services, table: Path, report: Path) -> None:
    """What consumers and people are told of a release, and what leads to its report."""
    airflow = scheduled.airflow
    run_id = json.loads((table / "_anonlib/manifest.json").read_text())["run_id"]
    [(uri, extra)] = airflow.query(
        "select uri, asset_event.extra from asset_event join asset on asset.id = asset_id"
    )
    assert uri == table.as_uri()
    assert json.loads(extra).items() >= {"run_id": run_id, "report": str(report)}.items()
    links = "select task_id, value from xcom where key = '_link_ReportLink'"
    scheduled.wait_until(f"{links} and task_id = 'audit'")  # a task is done a little before
    found = {name for name, value in airflow.query(links) if report.as_uri() in value}
    assert found == {"release", "audit"}
    [told] = airflow.told
    assert told["text"].endswith(f"people.yaml, {run_id}: released and audited.")
    assert told["authorization"] == f"Bearer {TOKEN}"


def test_stops_at_the_check_where_privacy_can_not_hold(scheduled: Services) -> None:
    airflow, before = scheduled.airflow, len(scheduled.airflow.told)
    trigger(airflow, "infeasible.yaml", "1990-01-01")
    done = scheduled.over("infeasible.yaml")
    assert done.states == ended("failed", *["upstream_failed"] * 3), done.log
    # Airflow would have tried it again.
    assert {*airflow.query("select max_tries from task_instance where task_id = 'check'")} == {(2,)}
    # A task has failed before its callback is called.
    [told] = scheduled.wait("the web hook", lambda: airflow.told[before:])
    assert "infeasible.yaml" in told["text"]
    assert "check failed." in told["text"]
    reason = (
        "; privacy.models.k_anonymity: asks for 301 rows; there are 193 to release: ask for fewer"
    )
    assert told["text"].endswith(reason)
    assert not (airflow.tables / "infeasible").exists()
    hides(airflow, done)
