"""Where the DAG of jobs/airflow stops, and what it tries again: its runs as `airflow dags test` has
them, without a scheduler."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.airflow.running import Airflow, ended, hides

pytestmark = pytest.mark.airflow
DATE = {"date": "1990-01-01"}


def test_stops_at_the_release_where_a_gate_is_not_passed(airflow: Airflow) -> None:
    conf = {"config": "gated.yaml", **DATE}
    done = airflow.run("2026-02-02T00:00:00+00:00", conf, done_already="check")
    assert done.states["release"] == ("failed", 1), done.log
    assert done.states["audit"][0] == done.states["notify"][0] == "upstream_failed"
    assert "release failed. release: a gate was not passed; " in airflow.told[-1]["text"]
    assert "reidentification.marketer" in airflow.told[-1]["text"]
    assert not (airflow.tables / "gated/_delta_log").exists()
    hides(airflow, done)


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
