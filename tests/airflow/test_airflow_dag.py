"""Where the DAG of jobs/airflow stops, and what it tries again: its runs as `airflow dags test` has
them, without a scheduler."""

from pathlib import Path

import pytest

from tests.airflow.running import PEOPLE, Airflow, ended, hides

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
    stub = airflow.submitting(tmp_path, SUBMIT)
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


#: Its first release is killed, the driver and its JVM, as soon as a file of the table matches.
KILLING = """#!/bin/sh
PATH=${PATH#*:}
case "$*" in */release.py*) ;; *) exec spark-submit "$@" ;; esac
[ ! -e "$0.committed" ] || exec spark-submit "$@"
setsid spark-submit "$@" &
until ls TABLE/SEEN >"$0.seen" 2>&1; do kill -0 $! || exit 2; sleep 0.01; done
kill -9 -$! || exit 2
wait $!
code=$?
ls TABLE/_delta_log | grep -c 'json$' >"$0.committed"
exit $code
"""


@pytest.mark.parametrize(
    ("name", "seen", "n_commits"),
    [("publishing", "*.parquet", 0), ("committed", "_delta_log/*.json", 1)],
)
def test_a_release_that_is_killed_is_tried_again_and_published_once(
    airflow: Airflow, tmp_path: Path, name: str, seen: str, n_commits: int
) -> None:
    (airflow.home / f"configs/{name}.yaml").write_text(PEOPLE)
    table, n_told = airflow.tables / name, len(airflow.told)
    script = KILLING.replace("TABLE", str(table)).replace("SEEN", seen)
    killed = airflow.submitting(tmp_path, script)
    when = f"2026-02-0{5 + n_commits}T00:00:00+00:00"
    done = killed.run(when, {"config": f"{name}.yaml", **DATE}, done_already="check")
    assert "release: exit code 137" in done.log
    assert (tmp_path / "spark-submit.committed").read_text() == f"{n_commits}\n"
    assert done.states["release"] == ("success", 2), done.log
    assert [done.states[name] for name in ("audit", "notify")] == [("success", 1)] * 2, done.log
    assert [path.name for path in (table / "_delta_log").glob("*.json")] == [f"{0:020}.json"]
    assert f"Audit of {table}: passed" in done.log
    assert ("done already" in done.log) == (n_commits == 1)
    [told] = airflow.told[n_told:]
    assert told["text"].endswith(": released and audited.")
    # Nothing is left of the driver that was killed.
    assert {path.name for path in airflow.tables.glob(f"*{name}*")} == {name, f"{name}.private"}
    hides(airflow, done)
