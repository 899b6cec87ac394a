"""How the tests wait for a cluster: for what its master says, never for its silence."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.standalone import Cluster, Submitted, free_port


class Master(HTTPServer):
    """Has no answer for the first `deaf` times, then says its state."""

    deaf: int
    state: dict[str, Any]


class Page(BaseHTTPRequestHandler):
    server: Master

    def do_GET(self) -> None:
        self.server.deaf -= 1
        self.send_response(503 if self.server.deaf >= 0 else 200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.state).encode())

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def master() -> Iterator[Master]:
    server = Master(("127.0.0.1", 0), Page)
    server.deaf = 2
    server.state = {"activeapps": [], "workers": [{"state": "ALIVE"}, {"state": "DEAD"}]}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_silence_is_no_answer(master: Master, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, _web=master.server_port)
    assert not cluster.idle()
    assert cluster._n_workers() == 1
    assert cluster.idle()
    master.state = {**master.state, "activeapps": [{}]}
    assert not cluster.idle()
    assert not Cluster(tmp_path, _web=free_port()).idle()


def test_drivers_that_nobody_waits_for_are_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    command = ["sh", "-c", "sleep 600 & wait"]
    process = subprocess.Popen(command, start_new_session=True)
    cluster.submitted.append(Submitted(process, tmp_path))
    cluster.kill_drivers()
    assert process.returncode == -9
    assert cluster.submitted == []
