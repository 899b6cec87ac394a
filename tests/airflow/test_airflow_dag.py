"""The DAG of jobs/airflow in a real Airflow: what it publishes, and where it stops."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.airflow.running import KEY, TOKEN, Airflow, Done

pytestmark = pytest.mark.airflow
TASKS = ["check", "release", "audit", "notify"]
DATE = {"date": "1990-01-01"}


def ended(*states: str) -> dict[str, tuple[str, int]]:
    """States of the tasks, none of them tried twice; those that never ran weren't tried."""
    tries = {"success": 1, "failed": 1, "upstream_failed": 0}
    return {name: (state, tries[state]) for name, state in zip(TASKS, states, strict=True)}


def test_releases_once_however_often_it_runs(airflow: Airflow) -> None:
    when, conf = "2026-01-31T00:00:00+00:00", {"config": "people.yaml", **DATE}
    first = airflow.run(when, conf)
    assert first.states == ended(*["success"] * 4), first.log
    table = airflow.tables / "people"
    [commit] = (table / "_delta_log").glob("*.json")
    written = commit.read_bytes()
    [report] = (airflow.tables / "people.private").glob("*.html")
    shows(airflow, table, report)
    again = airflow.run(when, conf, done_already="check|audit")
    assert again.states["release"] == ("success", 1), again.log
    assert "done already" in again.log
    assert [*(table / "_delta_log").glob("*.json")] == [commit]
    assert commit.read_bytes() == written
    hides(airflow, first, again)


def shows(airflow: Airflow, table: Path, report: Path) -> None:
    """What consumers and people are told of a release, and what leads to its report."""
    run_id = json.loads((table / "_anonlib/manifest.json").read_text())["run_id"]
    [(uri, extra)] = airflow.query(
        "select uri, asset_event.extra from asset_event join asset on asset.id = asset_id"
    )
    assert uri == table.as_uri()
    assert json.loads(extra).items() >= {"run_id": run_id, "report": str(report)}.items()
    links = airflow.query("select task_id, value from xcom where key = '_link_ReportLink'")
    assert {name for name, value in links if report.as_uri() in value} == {"release", "audit"}
    assert airflow.told[-1]["text"].endswith(f"people.yaml, {run_id}: released and audited.")
    assert airflow.told[-1]["authorization"] == f"Bearer {TOKEN}"


def hides(airflow: Airflow, *done: Done) -> None:
    """The secrets of connections are in nothing that Airflow, Spark or a job has written."""
    files = [path for path in airflow.home.rglob("*") if path.is_file()]
    for secret in (KEY, TOKEN):
        assert not any(secret in run.log for run in done)
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_stops_at_the_check_where_privacy_can_not_hold(airflow: Airflow) -> None:
    conf = {"config": "infeasible.yaml", **DATE}
    done = airflow.run("2026-02-01T00:00:00+00:00", conf)
    assert done.states == ended("failed", *["upstream_failed"] * 3), done.log
    # Airflow would have tried it again.
    assert {*airflow.query("select max_tries from task_instance where task_id = 'check'")} == {(2,)}
    told = airflow.told[-1]["text"]
    assert "check failed." in told
    assert told.endswith("; privacy.models.k_anonymity: asks for 301 rows; the source has 193")
    assert not (airflow.tables / "infeasible").exists()


def test_stops_at_the_release_where_a_gate_is_not_passed(airflow: Airflow) -> None:
    conf = {"config": "gated.yaml", **DATE}
    done = airflow.run("2026-02-02T00:00:00+00:00", conf, done_already="check")
    assert done.states["release"] == ("failed", 1), done.log
    assert done.states["audit"][0] == done.states["notify"][0] == "upstream_failed"
    assert "release failed. release: a gate was not passed; " in airflow.told[-1]["text"]
    assert "reidentification.marketer" in airflow.told[-1]["text"]
    assert not (airflow.tables / "gated/_delta_log").exists()


#: The check fails once, the audit for good; what the driver's environment has, by name.
SUBMIT = """#!/bin/sh
case "$*" in
*/check.py*) [ -e "$0.tried" ] || { touch "$0.tried"; exit 1; } ;;
*/release.py*) [ "$ANONLIB_DATE" = 1990-01-01 ] && [ ${#PSEUDONYM_KEY} -gt 16 ] || exit 2 ;;
*/audit.py*) exit 3 ;;
esac
"""


def test_tries_again_what_may_pass_and_never_a_failed_audit(
    airflow: Airflow, tmp_path: Path
) -> None:
    submit = tmp_path / "spark-submit"
    submit.write_text(SUBMIT)
    submit.chmod(0o755)
    path = f"{tmp_path}:{airflow.environment['PATH']}"
    stub = replace(airflow, environment=airflow.environment | {"PATH": path})
    before = airflow.query("select count(*) from asset_event")
    done = stub.run("2026-02-04T00:00:00+00:00", {"config": "stub.yaml", **DATE})
    expected = ended("success", "success", "failed", "upstream_failed")
    assert done.states == expected | {"check": ("success", 2)}, done.log
    assert airflow.told[-1]["text"].endswith("audit failed. audit: the audit failed")
    assert airflow.query("select count(*) from asset_event") == before


def test_refuses_parameters_that_are_no_config_and_no_date(airflow: Airflow) -> None:
    conf = {"config": "../people.yaml", "date": "2026-01-31' OR 1=1"}
    with pytest.raises(AssertionError, match="ParamValidationError"):
        airflow.run("2026-02-03T00:00:00+00:00", conf)
