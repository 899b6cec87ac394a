"""A DAG of one table, as the docstring of jobs/airflow/anonlib_airflow.py has it: it releases its
own config, of its own day, and nobody who triggers it can ask for another."""

import re
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.airflow.running import ROOT, Airflow, ended

pytestmark = pytest.mark.airflow
#: Says what it was called with.
SUBMIT = """#!/bin/sh
printf '%s\\n' "$@" >"$0.$(date +%s.%N)"
"""
#: Of a table in which nobody can count persons.
UNAUDITED = """from anonlib_airflow import release_dag
dag = release_dag("visits_daily", config="people.yaml", audit=False)
"""
CLUSTER = '{"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}'


@pytest.fixture(scope="module")
def daily(airflow: Airflow, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    """With the files of jobs/airflow in a DAG folder, and a file beside them."""
    folder = tmp_path_factory.mktemp("dags")
    for path in (ROOT / "jobs/airflow").glob("*.py"):
        shutil.copy(path, folder)
    text = (folder / "anonlib_airflow.py").read_text()
    [file] = re.findall(r"\n\n((?:    .*\n)*    dag = .*\n)", text)
    assert file.endswith(")\n")
    own = 'env_vars={"TZ": "UTC", "ANONLIB_MIN_K": "2"}'
    (folder / "people_daily.py").write_text(f"{textwrap.dedent(file)[:-2]}, {own})\n")
    (folder / "visits_daily.py").write_text(UNAUDITED)
    settings = {"AIRFLOW__CORE__DAGS_FOLDER": str(folder), "ANONLIB_JOBS": str(ROOT / "jobs")}
    made = replace(airflow, environment=airflow.environment | settings)
    made.command("airflow", "dags", "reserialize")
    return made


@pytest.mark.parametrize("conf", ['{"config": "gated.yaml"}', '{"date": "2026-01-31"}'])
def test_nobody_names_another_config_or_another_day(daily: Airflow, conf: str) -> None:
    before = daily.query("select run_id from dag_run")
    [name] = re.findall('^{"([a-z]+)"', conf)
    days = ["--from-date=2026-01-01", "--to-date=2026-01-02"]
    for command in (
        ["trigger", "people_daily", f"--conf={conf}"],
        ["backfill", "create", "--dag-id=people_daily", *days, f"--dag-run-conf={conf}"],
    ):
        verb = ["dags"] if command[0] == "trigger" else []
        with pytest.raises(AssertionError, match=f"Invalid input for param {name}: "):
            daily.command("airflow", *verb, *command)
    assert daily.query("select run_id from dag_run") == before


def test_its_own_config_of_its_own_day_within_the_operators_limits(
    daily: Airflow, tmp_path: Path
) -> None:
    """Where drivers run on a cluster, without the worker's environment."""
    stub = daily.submitting(tmp_path, SUBMIT)
    given = {"AIRFLOW_CONN_SPARK_DEFAULT": CLUSTER, "ANONLIB_MIN_K": "20"}
    yarn = replace(stub, environment=stub.environment | given)
    done = yarn.run("2026-02-07T00:00:00+00:00", {}, dag="people_daily")
    assert done.states == ended(*["success"] * 4), done.log
    calls = [path.read_text().splitlines() for path in sorted(tmp_path.glob("spark-submit.*"))]
    assert len(calls) == 3
    for call in calls:
        found = {each for each in call if each.startswith("spark.yarn.appMasterEnv.")}
        expected = {"TZ=UTC", "ANONLIB_MIN_K=20", "ANONLIB_DATE=2026-02-07"}
        assert found == {f"spark.yarn.appMasterEnv.{each}" for each in expected}
        assert any(each.endswith("/configs/people.yaml") for each in call)


def test_without_an_audit_of_what_is_published(daily: Airflow, tmp_path: Path) -> None:
    stub = daily.submitting(tmp_path, SUBMIT)
    before = daily.query("select count(*) from asset_event")
    done = stub.run("2026-02-08T00:00:00+00:00", {"date": "2026-02-08"}, dag="visits_daily")
    passed = ("success", 1)
    assert done.states == dict.fromkeys(("check", "release", "notify"), passed), done.log
    assert daily.query("select count(*) from asset_event") == [(before[0][0] + 1,)]
    assert len([*tmp_path.glob("spark-submit.*")]) == 2
