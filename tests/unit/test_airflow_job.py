"""What the Airflow DAG asks of jobs, and what it makes of their exit codes; without Airflow."""

import ast
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from anonlib.cli.parser import parse_args
from anonlib.config.environment import EVENTS, REQUIRE, RUNS
from anonlib.config.minimum_k import VARIABLE
from anonlib.config.model import ReleaseSection
from anonlib.config.summary import _CONTAINERS, bare

FOLDER = Path(__file__).parents[2] / "jobs" / "airflow"
SETTINGS = {"ANONLIB_CONFIGS": "/srv/conf", "ANONLIB_TABLES": "s3a://lake/releases/"}


@pytest.fixture(scope="module")
def jobs() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        import anonlib_job
    finally:
        sys.path.remove(str(FOLDER))
    return anonlib_job


def event(**fields: object) -> str:
    return json.dumps({"time": "2026-01-31T00:00:00", "event": "error", **fields})


def test_the_dag_imports_neither_anonlib_nor_spark() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"anonlib", "pyspark"}, path


def test_run_ids_fit_and_tell_runs_apart(jobs: ModuleType) -> None:
    given = [
        ("people", "manual__2026-01-31T00:00:00+00:00"),
        ("people", "manual__2026-01-31T00-00-00+00:00"),
        ("others", "manual__2026-01-31T00:00:00+00:00"),
        ("people", "x" * 250),
        ("people", "x" * 249),
        ("people", "../../é\n"),
        ("people", "--set=seed=1"),
    ]
    ids = [jobs.run_id(*names) for names in given]
    assert ids == [jobs.run_id(*names) for names in given]
    assert len({*ids}) == len(ids)
    pattern = ReleaseSection.model_json_schema()["properties"]["run_id"]["anyOf"][0]["pattern"]
    assert all(re.fullmatch(pattern, id) and id[0] not in ".-" for id in ids)


def test_jobs_of_the_verbs(jobs: ModuleType) -> None:
    check, release, audit = (
        jobs.job(verb, "eu-people.yaml", "2026-01-31", "run-1", SETTINGS)
        for verb in ("check", "release", "audit")
    )
    places = (
        '--set=release.path="s3a://lake/releases/eu-people"',
        '--set=release.record="s3a://lake/releases/eu-people.private"',
        "--log-format=json",
    )
    conf = "/srv/conf/eu-people.yaml"
    assert check.arguments == (conf, *places)
    assert release.arguments == (conf, "--run-id=run-1", *places)
    assert audit.arguments == ("s3a://lake/releases/eu-people", f"--conf={conf}", *places)
    for job in (check, release, audit):
        assert Path(job.application).is_file()
        parsed = parse_args([Path(job.application).stem, *job.arguments], "1")
        assert parsed.conf == conf
        assert job.environment == {"ANONLIB_DATE": "2026-01-31"}
    assert release.report == release.link == "s3a://lake/releases/eu-people.private/run-1.html"


@pytest.mark.parametrize("verb", ["check", "release", "audit"])
def test_limits_of_the_operator_go_with_every_job(jobs: ModuleType, verb: str) -> None:
    """To a driver on the cluster, too, which does not have the worker's environment."""
    limits = {VARIABLE: "20", REQUIRE: "approver,purpose", RUNS: "/srv/runs", EVENTS: "/srv/ev/"}
    assert {*jobs.HANDED_ON} == {*limits}
    given = SETTINGS | limits | {"PSEUDONYM_KEY": "secret", "ANONLIB_DATE": "1990-01-01"}
    assert jobs.job(verb, "people.yaml", "", "run-1", given).environment == limits
    dated = jobs.job(verb, "people.yaml", "2026-01-31", "run-1", given)
    assert dated.environment == {**limits, "ANONLIB_DATE": "2026-01-31"}
    # Set to nothing it is no minimum that can be read, which is refused there as here.
    empty = jobs.job(verb, "people.yaml", "", "run-1", SETTINGS | {VARIABLE: ""})
    assert empty.environment == {VARIABLE: ""}


def test_settings_move_jobs_records_and_links(jobs: ModuleType) -> None:
    settings = {
        "ANONLIB_CONFIGS": "/srv/conf",
        "ANONLIB_TABLES": "/srv/out",
        "ANONLIB_RECORDS": "/srv/private",
        "ANONLIB_JOBS": "/opt/jobs",
        "ANONLIB_SPARK_CONF": "/srv/yarn.conf",
    }
    job = jobs.job("release", "people.yaml", "", "run-1", settings)
    assert job.application == "/opt/jobs/release.py"
    assert (job.table, job.report) == ("/srv/out/people", "/srv/private/people/run-1.html")
    assert (job.properties_file, job.environment) == ("/srv/yarn.conf", {})
    assert job.link == "file:///srv/private/people/run-1.html"
    shown = settings | {"ANONLIB_REPORTS_URL": "https://reports.example/"}
    link = jobs.job("release", "people.yaml", "", "run-1", shown).link
    assert link == "https://reports.example/people/run-1.html"


@pytest.mark.parametrize(
    "config",
    [
        *(
            "../people.yaml",
            "eu/people.yaml",
            "people.private.yaml",
            "people.yml",  # it would have the table of people.yaml
            "/etc/people.yaml",
            "-people.yaml",
            "people",
        ),
        *("people.yaml\n", ".people.yaml", "a//b.yaml", "é.yaml", "a b.yaml", "${HOME}.yaml", ""),
    ],
)
def test_configs_stay_in_their_folder(jobs: ModuleType, config: str) -> None:
    with pytest.raises(jobs.RefusedError, match="config: "):
        jobs.job("release", config, "", "run-1", SETTINGS)


@pytest.mark.parametrize(
    "day",
    ["2026-1-31", "20260131", "2026-02-30", "2026-01-31\n", "2026-01-31' OR '1'='1", "٢٠٢٦-01-31"],
)
def test_dates_are_dates(jobs: ModuleType, day: str) -> None:
    with pytest.raises(jobs.RefusedError, match="date: "):
        jobs.job("release", "people.yaml", day, "run-1", SETTINGS)


@pytest.mark.parametrize("scheme", _CONTAINERS)
def test_places_may_be_containers(jobs: ModuleType, scheme: str) -> None:
    tables = f"{scheme}://releases-1@account.dfs.core.windows.net/out"
    job = jobs.job("release", "people.yaml", "", "run-1", SETTINGS | {"ANONLIB_TABLES": tables})
    assert job.table == f"{tables}/people" == bare(job.table)
    assert parse_args(["release", *job.arguments], "1").overrides[0].endswith(f'"{job.table}"')


@pytest.mark.parametrize(
    "place",
    [
        *("", "out", "/", "://lake/out", "//key:secret@lake/out", "s3a://key:secret@lake/out"),
        "s3a://secret@lake/out",
        "s3a://key:sec/ret@lake/out",
        "abfss://releases:secret@account.dfs.core.windows.net/out",
        "abfss://key:secret@releases@account.dfs.core.windows.net/out",
        "abfss://@account.dfs.core.windows.net/out",
        "wasbs://releases@account.blob.core.windows.net/out?sig=secret",
        "releases@account.dfs.core.windows.net/out",
    ],
)
def test_places_are_absolute_and_without_credentials(jobs: ModuleType, place: str) -> None:
    with pytest.raises(jobs.RefusedError, match="ANONLIB_TABLES: ") as refused:
        jobs.job("release", "people.yaml", "", "run-1", SETTINGS | {"ANONLIB_TABLES": place})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "code", "final"),
    [
        ("Cannot execute: spark-submit release.py. Error code is: 1.", 1, False),
        ("Cannot execute: spark-submit release.py. Error code is: 2.", 2, True),
        ("Cannot execute: spark-submit release.py. Error code is: 3.", 3, True),
        ("Cannot execute: spark-submit release.py. Error code is: 4.", 4, True),
        ("Cannot execute: spark-submit release.py. Error code is: -9.", -9, False),
        ("Error code is: 1.\nLast spark-submit output:\nNo space left on device", 1, False),
        # A driver on the cluster: spark-submit's own code is 1, the manager has the driver's.
        ("Error code is: 1.\ndiagnostics: User application exited with status 3", 3, True),
        ("YARN application a ended\nDiagnostics: User application exited with status 1", 1, False),
        ("Error code is: 1. Kubernetes spark exit code is: 4", 4, True),
        ("Error code is: 0. Kubernetes spark exit code is: None", 0, False),
        ("YARN application a ended with state: KILLED", None, False),
    ],
)
def test_exit_codes(jobs: ModuleType, words: str, code: int | None, final: bool) -> None:
    failed = jobs.failure(words)
    assert (failed.code, failed.final) == (code, final)
    assert failed.text


def test_a_failure_is_told_in_the_jobs_own_words(jobs: ModuleType) -> None:
    problems = [{"where": "privacy.models.0", "text": "k is 301"}, {"where": "", "text": "no"}]
    lines = [
        "Cannot execute: spark-submit check.py. Error code is: 2.",
        "WARN Executor: task 3 failed on Ms Doe, born 1970-01-01",
        event(error="InfeasibleError", exit_code=2, problems=problems),
        json.dumps({"event": "note", "text": "a note"}),
        "[1, 2]",
    ]
    text = jobs.failure("\n".join(lines)).text
    assert text == f"{jobs.FINAL[2]}; privacy.models.0: k is 301; no"
    busy = event(error="BusyError", exit_code=1, text="another run holds the target")
    assert jobs.failure(f"Error code is: 1.\n{busy}").text == "another run holds the target"
    assert "not known" in jobs.failure("killed").text
