"""The object stores: moto, which knows all of S3's answers but looks first and writes then, and
SeaweedFS, a real store, which checks signatures and writes on a condition in one step."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support import skip_or_fail

BUCKET = "releases"
#: Of the tests themselves. They begin as those of real ones do, and are looked for in all files.
KEY, SECRET = "CANARYID0123456789", "CANARYSECRET0123456789abcdef"
#: moto takes any signature, but tells the unsigned from the others.
_SIGNED = "AWS4-HMAC-SHA256 Credential=tests/20200101/us-east-1/s3/aws4_request, Signature=0"


@dataclass(frozen=True)
class Server:
    """A store with one bucket. `atomic`: of several conditional writes at a time one succeeds."""

    port: int
    atomic: bool
    headers: Mapping[str, str]

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer to a request for the bucket, which needs no key."""
        headers = {**self.headers, "Content-Type": "application/octet-stream"}
        url = f"http://127.0.0.1:{self.port}/{BUCKET}{path}"
        request = urllib.request.Request(url, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def keys(self, prefix: str = "") -> list[str]:
        """All objects, the marks of folders too."""
        found = ET.fromstring(self.ask("GET", f"?list-type=2&prefix={urllib.parse.quote(prefix)}"))
        assert found.findtext("{*}IsTruncated") == "false"
        return [str(key.text) for key in found.iterfind("{*}Contents/{*}Key")]

    def empty(self) -> None:
        """Makes the bucket anew: SeaweedFS still lists the folders of objects that are gone."""
        for key in self.keys():
            self.ask("DELETE", f"/{urllib.parse.quote(key)}")
        self.ask("DELETE", "")
        self.ask("PUT", "")


@contextmanager
def moto() -> Iterator[Server]:
    with _free_ports(1) as (port,):
        server = Server(port, atomic=False, headers={"Authorization": _SIGNED})
        command = [_installed("moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, server, os.environ):
        yield server


@contextmanager
def seaweed() -> Iterator[Server]:
    program = _installed("weed")
    with TemporaryDirectory() as folder:
        known = [("driver", [{"accessKey": KEY, "secretKey": SECRET}]), ("anonymous", [])]
        identities = [
            {"name": name, "credentials": credentials, "actions": ["Admin"]}
            for name, credentials in known
        ]
        Path(folder, "identities.json").write_text(json.dumps({"identities": identities}))
        names = [f"{part}.port{kind}" for part in _PARTS for kind in ("", ".grpc")]
        with _free_ports(len(names)) as ports:
            options = dict(zip(names, map(str, ports), strict=True))
        server = Server(int(options["s3.port"]), atomic=True, headers={})
        options |= {
            "dir": folder,
            "ip": "127.0.0.1",
            "filer": "true",
            "filer.localSocket": f"{folder}/filer",
            "s3": "true",
            "s3.config": f"{folder}/identities.json",
            "s3.localSocket": f"{folder}/s3",
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": "64",
            "volume.minFreeSpacePercent": "0",
            "volume.preStopSeconds": "0",
        }
        command = [program, "server", *(f"-{key}={value}" for key, value in options.items())]
        with _running(command, server, {**os.environ, "TMPDIR": folder}):  # for logs and sockets
            yield server


_PARTS = ("master", "volume", "filer", "s3")


def _installed(program: str) -> str:
    """Where `scripts/test --s3` puts it; else the test skips."""
    path = Path(sys.prefix) / "s3" / "bin" / program
    if not path.exists():
        skip_or_fail("no object store: `scripts/test --s3` installs one")
    return str(path)


@contextmanager
def _free_ports(n: int) -> Iterator[list[int]]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in held:
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in held]


@contextmanager
def _running(command: Sequence[str], server: Server, env: Mapping[str, str]) -> Iterator[None]:
    """Runs a store, from when it has the bucket."""
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 120
        while not _has_bucket(server):
            assert process.poll() is None, "the store ended"
            assert time.monotonic() < end, "the store does not answer"
            time.sleep(0.2)
        yield
    finally:
        process.kill()  # nobody needs its files any more
        process.wait()


def _has_bucket(server: Server) -> bool:
    try:
        server.ask("PUT", "")
        server.ask("PUT", "/first", b"")
    except OSError:
        return False
    return True


#: For releases: the model looks first and writes then, so that several may win a race on it.
ON_A_REAL_STORE = pytest.mark.parametrize("server", [seaweed], indirect=True, ids=["seaweed"])
