"""What the tests on object stores share: before a server (`tests/s3/servers.py`) a proxy that loses
requests and stops when it is told to."""

import http.client
import random
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

from tests.s3.servers import Server

#: Headers that are between neighbours.
_HOP = {"connection", "date", "expect", "keep-alive", "server", "transfer-encoding"}


@dataclass
class Store:
    """An object store behind a proxy. `requests` are all that came, lost ones too, as METHOD PATH;
    `lost` counts those that were not answered as they should be.

    One request in `one_in` is lost, by a generator of fixed seed: every other time it is refused,
    else it is carried out and its answer lost. Once `stops_at` is true of a request the store is
    gone: that request and all after it find nobody until `start`; `how` says whether that request
    is carried out, or whether it is the only one, whose answer is lost. Where it is "late", the
    store stays, answers no such request, and carries the first of them out when it `arrives`. A
    `deaf` store does not know of conditional writes. `first` is called with each request before
    anything is done about it.
    """

    server: Server
    one_in: int = 0
    stops_at: Callable[[str], bool] = lambda request: False
    first: Callable[[str], object] = lambda request: None
    how: Literal["before", "after", "once", "late"] = "before"
    late: list[Callable[[], object]] = field(default_factory=list)
    stopped: bool = False
    deaf: bool = False
    requests: list[str] = field(default_factory=list)
    lost: int = 0
    port: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _counting: threading.Lock = field(default_factory=threading.Lock)
    conditional: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """The store is there, and well."""
        self.one_in, self.stopped, self.deaf = 0, False, False
        self.stops_at, self.how = lambda request: False, "before"

    def arrives(self) -> None:
        """What was held back is carried out."""
        self.late[0]()

    def fate(self, request: str) -> str:
        """What becomes of a request: "well", "refused", "unanswered", "late" or "gone"."""
        with self._counting:
            self.requests.append(request)
            if self.how == "late" and self.stops_at(request):
                return "late"
            if not self.stopped and self.stops_at(request):
                if self.how == "once":
                    self.stops_at = lambda request: False
                self.stopped = self.how != "once"
                if self.how != "before":
                    return "unanswered"
            ill = self.stopped or (self.one_in and self._random.random() < 1 / self.one_in)
            if not ill:
                return "well"
            self.lost += 1
            if self.stopped:
                return "gone"
            return "refused" if self.lost % 2 else "unanswered"

    def put(self, key: str, body: bytes) -> None:
        self.server.ask("PUT", f"/{urllib.parse.quote(key)}", body)

    def get(self, key: str) -> bytes:
        return self.server.ask("GET", f"/{urllib.parse.quote(key)}")

    def keys(self, prefix: str = "") -> set[str]:
        """The objects, without the marks of folders."""
        return {key for key in self.server.keys(prefix) if not key.endswith("/")}

    def texts(self) -> dict[str, bytes]:
        return {key: self.get(key) for key in self.keys()}

    def save(self, folder: Path) -> Path:
        """Copies all objects to a folder of the disk."""
        for key, data in self.texts().items():
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def _pass_on(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        request = f"{self.command} {urllib.parse.unquote(self.path)}"
        self.store.first(request)
        fate = self.store.fate(request)
        if fate == "refused":
            self._answer(500, [], b"")
            return
        if fate == "late":
            self.store.late.append(lambda: self._through(body))
        lost = fate in ("gone", "late")
        status, headers, data = (0, [], b"") if lost else self._through(body)
        if fate != "well":
            self.close_connection = True
            self.connection.close()
            return
        self._answer(status, headers, data)

    def _through(self, body: bytes | None) -> tuple[int, list[tuple[str, str]], bytes]:
        sent = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        if self.store.deaf:
            sent.pop("If-None-Match", None)
        server = http.client.HTTPConnection("127.0.0.1", self.store.server.port, timeout=120)
        alone = "If-None-Match" in sent and not self.store.server.atomic
        with self.store.conditional if alone else nullcontext():
            server.request(self.command, self.path, body, sent)
            answer = server.getresponse()
            kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in _HOP]
            data = answer.read()
        server.close()
        return answer.status, kept, data

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for key, value in headers:
            if key.lower() != "content-length" or self.command == "HEAD":
                self.send_header(key, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(data)))
        elif status == 500:
            self.send_header("Content-Length", "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@contextmanager
def before(server: Server) -> Iterator[Store]:
    """The proxy before a server, which is empty."""
    server.empty()
    found = Store(server)
    handler = type("Proxy", (_Proxy,), {"store": found})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.daemon_threads = True
    found.port = proxy.server_port
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        proxy.shutdown()
        proxy.server_close()


def spark_settings(endpoint: str) -> dict[str, str]:
    """Hadoop's settings for a store on this machine: few new tries, and quick, where it is gone."""
    settings = {
        "endpoint": endpoint,
        "path.style.access": "true",
        "attempts.maximum": "4",
        "retry.limit": "2",
        "retry.interval": "50ms",
        "retry.throttle.limit": "2",
        "retry.throttle.interval": "50ms",
        "connection.timeout": "20s",
    }
    return {f"fs.s3a.{key}": value for key, value in settings.items()}
