"""A PostgreSQL server of the tests' own: a private cluster on loopback, with a password."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import skip_or_fail

#: PostgreSQL refuses to run as root: Debian's package makes this user.
USER = "postgres"
TIMEOUT = 120


@dataclass(frozen=True)
class Server:
    """A running server. Its user `owner` has the password, which nothing else may have."""

    port: int
    password: str

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def __call__(self, sql: str) -> str:
        """Runs statements; what they print."""
        command = [
            "psql",
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        done = subprocess.run(
            [*command, "-U", "owner", "-c", sql, "postgres"],
            env={**os.environ, "PGPASSWORD": self.password},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()


@contextmanager
def server() -> Iterator[Server]:
    """A server that lives as long as the body. Skips where PostgreSQL is not installed."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="anonlib-postgres-"))  # pytest's is closed to others
    try:
        password = secrets.token_urlsafe(16)
        (folder / "password").write_text(password)
        if os.geteuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, USER, USER)
        data = str(folder / "data")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        make = [str(programs / "initdb"), "-D", data, "-U", "owner", "-A", "scram-sha-256"]
        make += ["--pwfile", str(folder / "password"), "-E", "UTF8", "--locale", "C", "--no-sync"]
        _run(make)
        control = [str(programs / "pg_ctl"), "-D", data, "-w", "-s", "-l", str(folder / "log")]
        settings = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories=''"
        _run([*control, "-o", f"{settings} -c fsync=off", "start"])
        try:
            yield Server(port, password)
        finally:
            _run([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder of the newest PostgreSQL's programs."""
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    found = [path for path in [*on_path, *reversed(debian)] if (path / "initdb").exists()]
    if not found or not shutil.which("psql"):
        skip_or_fail("no PostgreSQL: install it (Debian: apt-get install postgresql)")
    return found[0]


def _run(command: list[str]) -> None:
    user = [] if os.geteuid() else ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups"]
    subprocess.run(
        [*user, *command],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=TIMEOUT,
        check=True,
    )
