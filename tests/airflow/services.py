"""Airflow's processes on loopback, as an operator starts them: the API that tasks talk to, the DAG
processor, and a scheduler that runs tasks in processes of its own."""

import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.airflow.running import AIRFLOW, Airflow, Done
from tests.cluster.standalone import free_port, wait_for

#: Of one wait, on a machine that may be very busy.
SECONDS = 600


@dataclass
class Services:
    airflow: Airflow
    processes: dict[str, subprocess.Popen[bytes]]

    def wait_until(self, query: str, *values: str) -> str:
        """What a query of the database finds first."""
        found = self.wait(f"{query} {values}", lambda: self.airflow.query(query, *values))
        return found[0][0]

    def wait(self, what: str, found: Callable[[], Any]) -> Any:
        """The first true value of `found`, as long as all processes live."""

        def alive() -> Any:
            gone = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not gone, self._said(*gone)
            return found()

        try:
            return wait_for(what, alive, SECONDS)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self._said(*self.processes)}") from None

    def over(self, config: str) -> Done:
        """The one DAG run of a config, when it is over."""
        run = "select run_id from dag_run where json_extract(conf, '$.config') = ?"
        run_id = self.wait_until(f"{run} and state in ('success', 'failed')", config)
        logs = sorted((self.airflow.home / "logs").glob(f"*/run_id={run_id}/**/*.log"))
        return Done("\n".join(log.read_text() for log in logs), self.airflow.states(run_id))

    def _said(self, *names: str) -> str:
        logs = (self.airflow.home / f"{name}.log" for name in names)
        return "\n".join(f"{log.name}: {log.read_text('utf-8', 'replace')[-5000:]}" for log in logs)


@contextmanager
def services(made: Airflow) -> Iterator[Services]:
    """They live as long as the body, with whatever they have started."""
    port = free_port()
    settings = {
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "2",  # one would rest for seconds between two tasks
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    }
    airflow = replace(made, environment=made.environment | settings)
    started = Services(airflow, {})
    try:
        _start(started, "api-server", "--host=127.0.0.1", f"--port={port}", "--workers=1")
        _start(started, "dag-processor")
        _start(started, "scheduler", "--skip-serve-logs")  # they are served on all addresses
        started.wait("the API", lambda: _listens(port))
        yield started
    finally:
        _kill({process.pid for process in started.processes.values()})
        for process in started.processes.values():
            process.wait()


def _start(started: Services, name: str, *arguments: str) -> None:
    with (started.airflow.home / f"{name}.log").open("wb") as log:
        started.processes[name] = subprocess.Popen(
            [str(AIRFLOW), name, *arguments],
            env=started.airflow.environment,
            cwd=started.airflow.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def _kill(sessions: set[int]) -> None:
    """SIGKILL for all processes of sessions: tasks have process groups of their own."""

    def ended() -> bool:
        left = [int(pid.name) for pid in Path("/proc").glob("[0-9]*") if _session(pid) in sessions]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_for("the end of Airflow's processes", ended, SECONDS)


def _session(process: Path) -> int | None:
    try:
        state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:  # it has ended
        return None
    return None if state == "Z" else int(session)
