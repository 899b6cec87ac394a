"""What an operator sets up for the DAG of jobs/airflow, and how a test runs it."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.quick import INTERPRETED, JAVA
from tests.support import skip_or_fail

ROOT = Path(__file__).parents[2]
AIRFLOW = Path(sys.prefix) / "airflow/bin/airflow"
KEY = "only-the-driver-knows-this-key"
TOKEN = "only-the-hook-knows-this-token"
TASKS = ["check", "release", "audit", "notify"]

PEOPLE = """
source: {format: generator, rows: 300, seed: 1, where: "birth_date < DATE'${ANONLIB_DATE}'"}
attributes:
  national_id: {role: identifier, pseudonym: true}
  age: {role: quasi_identifier, scale: continuous}
  hours: {role: quasi_identifier, scale: continuous}
  sex: {role: quasi_identifier, scale: nominal}
  diagnosis: {role: sensitive}
  name: {role: drop}
  email: {role: drop}
  birth_date: {role: drop}
  zip: {role: drop}
  marital_status: {role: drop}
  education: {role: drop}
  capital_gain: {role: drop}
  income: {role: drop}
  label: {role: drop}
one_row_per_person: national_id
pseudonyms: {key_env: PSEUDONYM_KEY}
privacy:
  models: [{type: k_anonymity, k: 5}, {type: l_diversity, l: 2, attribute: diagnosis}]
partition: {steps: [{type: single}]}
release: {path: named by the DAG}
"""
GATE = """
evaluate: {measures: [reidentification]}
gates: [{figure: reidentification.marketer, at_most: 0.001}]
"""
CONFIGS = {
    "people": PEOPLE,
    "infeasible": PEOPLE.replace("k: 5", "k: 301"),
    "gated": PEOPLE + GATE,
}


@dataclass(frozen=True)
class Done:
    """A DAG run that is over. states: of its tasks, with how often each was tried."""

    log: str
    states: dict[str, tuple[str, int]]


def ended(*states: str) -> dict[str, tuple[str, int]]:
    """States of the tasks, none of them tried twice; those that never ran weren't tried."""
    tries = {"success": 1, "failed": 1, "upstream_failed": 0}
    return {name: (state, tries[state]) for name, state in zip(TASKS, states, strict=True)}


@dataclass
class Airflow:
    """home: of Airflow; tables: what is published under; told: what the web hook got."""

    home: Path
    tables: Path
    told: list[dict[str, Any]]
    environment: dict[str, str]

    def command(self, *command: str) -> str:
        """What a command of Airflow's environment says."""
        done = subprocess.run(
            [str(AIRFLOW.parent / command[0]), *command[1:]],
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def submitting(self, folder: Path, script: str) -> "Airflow":
        """The same with another spark-submit, made in a folder."""
        submit = folder / "spark-submit"
        submit.write_text(script)
        submit.chmod(0o755)
        path = {"PATH": f"{folder}:{self.environment['PATH']}"}
        return replace(self, environment=self.environment | path)

    def run(
        self,
        when: str,
        conf: dict[str, str],
        *,
        dag: str = "anonlib_release",
        done_already: str = "",
    ) -> Done:
        """The DAG run of a moment; tasks that match `done_already` are taken for done."""
        script = str(Path(__file__).with_name("run_dag.py"))
        log = self.command("python", script, dag, when, json.dumps(conf), done_already)
        return Done(log, self.states(log.splitlines()[-1]))

    def states(self, run_id: str) -> dict[str, tuple[str, int]]:
        """Of the tasks of a DAG run, with how often each was tried."""
        asked = "select task_id, state, try_number from task_instance where run_id = ?"
        return {name: (state, tries) for name, state, tries in self.query(asked, run_id)}

    def query(self, text: str, *values: str) -> list[Any]:
        with closing(sqlite3.connect(self.home / "airflow.db")) as database:
            return database.execute(text, values).fetchall()


def hides(airflow: Airflow, *done: Done) -> None:
    """The secrets of connections are in nothing that Airflow, Spark or a job has written."""
    files = [path for path in airflow.home.rglob("*") if path.is_file()]
    for secret in (KEY, TOKEN):
        assert not any(secret in run.log for run in done)
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


@contextmanager
def installed(home: Path) -> Iterator[Airflow]:
    """An Airflow with a database and a web hook of its own; skips, or fails, without an Airflow."""
    if not AIRFLOW.is_file():
        skip_or_fail("no Airflow in .venv/airflow: `scripts/test --airflow` installs it")
    for folder in ("configs", "tables", "local"):
        (home / folder).mkdir()
    for name, text in CONFIGS.items():
        (home / f"configs/{name}.yaml").write_text(text)
    with web_hook() as (url, told):
        made = Airflow(home, home / "tables", told, environment(home, url))
        made.command("airflow", "db", "migrate")
        yield made


@contextmanager
def web_hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web hook on this machine: its URL, and what it has been told."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.append({**body, "authorization": self.headers["Authorization"]})
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", told
        server.shutdown()


def environment(home: Path, url: str) -> dict[str, str]:
    """What an operator sets up for workers."""
    import pyspark

    spark = str(Path(pyspark.__file__).parent)
    master = {"deploy-mode": "client", "spark-binary": "spark-submit"}
    connections = {
        "SPARK_DEFAULT": {"conn_type": "spark", "host": "local[1]", "extra": master},
        "ANONLIB_KEYS": {"conn_type": "generic", "extra": {"PSEUDONYM_KEY": KEY}},
        "ANONLIB_NOTIFY": {"conn_type": "http", "host": url, "password": TOKEN},
    }
    settings = {f"AIRFLOW_CONN_{name}": json.dumps(value) for name, value in connections.items()}
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "PYTEST"))},
        **settings,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "jobs/airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{spark}/bin:{os.environ['PATH']}",
        "SPARK_HOME": spark,
        "PYSPARK_PYTHON": sys.executable,
        "ANONLIB_CONFIGS": str(home / "configs"),
        "ANONLIB_TABLES": str(home / "tables"),
        "ANONLIB_SPARK_CONF": str(spark_conf(home)),
    }


def spark_conf(home: Path) -> Path:
    from anonlib.spark.jars import ensure_jars

    path = home / "spark.conf"
    conf = {
        "spark.jars": ",".join(map(str, ensure_jars())),
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.ui.enabled": "false",
        "spark.local.dir": str(home / "local"),
        "spark.sql.shuffle.partitions": "1",
        **INTERPRETED,
    }
    path.write_text("".join(f"{key} {value}\n" for key, value in conf.items()))
    return path
