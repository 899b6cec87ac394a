"""A Spark standalone cluster on loopback, from the installed pyspark, and spark-submit to it."""

import json
import os
import signal
import socket
import subprocess
import tarfile
import time
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from tests.quick import INTERPRETED, JAVA

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
#: Of one run or one wait, on a machine that may be very busy.
TIMEOUT = 900
#: The master key of pseudonyms: in drivers' environments alone.
KEY = "only-drivers-know-this-key"


def wait_for(what: str, found: Callable[[], Any], seconds: float = TIMEOUT) -> Any:
    """The first true value of `found`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.1)
    raise TimeoutError(what)


@dataclass
class Packed:
    """What scripts/package made. `environment`: the unpacked one; `plugin`: the troubled kernel."""

    folder: Path
    environment: Path
    plugin: Path

    def one(self, pattern: str) -> Path:
        (found,) = self.folder.glob(pattern)
        return found

    def without_anonlib(self) -> Path:
        """The environment without anonlib, made of links."""
        (there,) = self.environment.glob("lib/python*/site-packages")
        bare = self.environment.with_name("bare")
        packages = bare / there.relative_to(self.environment)
        packages.mkdir(parents=True)
        for path in there.iterdir():
            if not path.name.startswith("anonlib"):
                (packages / path.name).symlink_to(path)
        for name in ("bin", "pyvenv.cfg"):
            (bare / name).symlink_to(self.environment / name)
        return bare

    def class_path(self) -> dict[str, str]:
        """The settings of conf/kubernetes.conf that name the jars in an image, here in `folder`."""
        lines = (self.folder / "conf" / "kubernetes.conf").read_text().splitlines()
        found = dict(line.split() for line in lines if "extraClassPath " in line)
        return {k: v.replace("/opt/anonlib", str(self.folder)) for k, v in found.items()}


def pack(folder: Path) -> None:
    """Makes the package in a folder, with a kernel of another package."""
    made = folder / "dist"
    done = subprocess.run(
        [str(ROOT / "scripts" / "package"), "--out", str(made)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    environment = folder / "environment"
    with tarfile.open(next(made.glob("*-environment.tar.gz"))) as archive:
        archive.extractall(environment, filter="fully_trusted")
    plugin = folder / "troubled.zip"
    with zipfile.ZipFile(plugin, "w") as zipped:
        zipped.write(Path(__file__).with_name("troubled_kernel.py"), "troubled_kernel.py")
        info = "troubled-1.dist-info"
        zipped.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: troubled\nVersion: 1\n")
        entry = "[anonlib.kernel]\ntroubled = troubled_kernel:Troubled\n"
        zipped.writestr(f"{info}/entry_points.txt", entry)


@dataclass
class Cluster:
    """A master, and workers of one core; each node has an address of its own, since Spark begins a
    slow task again on another node only."""

    folder: Path
    master: str = ""
    submitted: list["Submitted"] = field(default_factory=list)
    _web: int = 0
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        port, self._web = free_port(), free_port()
        self.master = f"spark://127.0.0.1:{port}"
        where = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(self._web)]
        self._daemon("master.Master", where)
        wait_for("the master", self._state)

    def worker(self, node: int, **env: str) -> subprocess.Popen[bytes]:
        """Starts the worker of a node and waits until the master knows it."""
        before = self._n_workers()
        local, work = self.folder / f"local-{node}", self.folder / f"work-{node}"
        local.mkdir(exist_ok=True)
        where = ["--host", f"127.0.0.{node}", "--webui-port", "0", "--work-dir", str(work)]
        size = ["--cores", "1", "--memory", "700m"]
        env = {"SPARK_LOCAL_DIRS": str(local), "NODE": str(node), **env}
        started = self._daemon("worker.Worker", [*where, *size, self.master], **env)
        wait_for("a worker", lambda: self._n_workers() > before)
        return started

    def stop_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """Kills it; the master notices."""
        before = self._n_workers()
        worker.kill()
        worker.wait()
        wait_for("the end of a worker", lambda: self._n_workers() < before)

    def kill_drivers(self) -> None:
        """Those of runs that nobody waits for any more, else later ones would wait for them."""
        while self.submitted:
            self.submitted.pop().kill()

    def stop(self) -> None:
        self.kill_drivers()
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()

    def idle(self) -> bool:
        """Whether the master says that no application runs."""
        state = self._state()
        return state is not None and not state["activeapps"]

    def logs(self) -> dict[str, str]:
        """What master, workers and executors said, by file."""
        paths = [*self.folder.glob("*.log"), *self.folder.glob("work-*/app-*/*/std*")]
        named = {str(path.relative_to(self.folder)): path for path in paths}
        return {name: path.read_text("utf-8", "replace") for name, path in named.items()}

    def _daemon(self, name: str, arguments: list[str], **env: str) -> subprocess.Popen[bytes]:
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        log = self.folder / f"{name}-{len(self._processes)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, *arguments],
                env={**environment(self.folder), "SPARK_DAEMON_MEMORY": "200m", **env},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process

    def _n_workers(self) -> int:
        state = wait_for("the master's answer", self._state)
        return sum(worker["state"] == "ALIVE" for worker in state["workers"])

    def _state(self) -> dict[str, Any] | None:
        """What the master says of itself, if it does."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=5) as page:
                found: dict[str, Any] = json.load(page)
                return found
        except (OSError, ValueError):  # a master that is starting answers with another page
            return None


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def environment(folder: Path) -> dict[str, str]:
    """Of all processes: nothing of this checkout or of other Sparks on this machine."""
    empty = folder / "conf"
    empty.mkdir(exist_ok=True)
    barred = ("PYSPARK_", "SPARK_", "PYTHONPATH", "ANONLIB_", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(barred)}
    return {
        **kept,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(empty),
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
    }


@dataclass
class Submitted:
    """A driver under spark-submit, and what it said."""

    process: subprocess.Popen[bytes]
    folder: Path

    def ends(self) -> tuple[int, str]:
        """Exit code and what it printed."""
        try:
            self.process.wait(TIMEOUT)
        finally:
            self.kill()
        return self.process.returncode, (self.folder / "said").read_text("utf-8", "replace")

    def kill(self) -> None:
        """SIGKILL for the driver and its JVM."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def submit(
    cluster: Cluster,
    made: Packed,
    folder: Path,
    job: str,
    *arguments: str,
    archives: bool = False,
    zipped: bool = False,
    **conf: str,
) -> Submitted:
    """Starts a job with the settings of conf/standalone.conf, at the size of these tests, and
    `conf`. Executors unpack the environment themselves with `archives`, else share one, and the
    kernels that it has compiled. With `zipped` that one lacks anonlib, which comes by --py-files,
    and the jars are on the class path, as in conf/kubernetes.conf."""
    folder.mkdir(parents=True)
    there = made.without_anonlib() if zipped else made.environment
    (folder / "environment").symlink_to(there)
    shared = {
        "spark.pyspark.python": str(there / "bin" / "python"),
        "spark.executorEnv.NUMBA_CACHE_DIR": str(made.environment / "numba"),
    }
    settings = {
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.driver.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        **INTERPRETED,
        **({} if archives else shared),
        **conf,
    }
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.master]
    command += ["--properties-file", str(made.folder / "conf" / "standalone.conf")]
    if zipped:
        settings |= made.class_path()
        command += ["--py-files", f"{made.plugin},{made.one('*.zip')}"]
    else:
        jars = sorted(map(str, (made.folder / "jars").iterdir()))
        command += ["--jars", ",".join(jars), "--py-files", str(made.plugin)]
    if archives:
        command += ["--archives", f"{made.one('*-environment.tar.gz')}#environment"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, str(made.folder / "jobs" / f"{job}.py"), *arguments],
            env={**environment(folder), "PSEUDONYM_KEY": KEY},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,  # spark-submit itself puts the driver's two streams into one
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    cluster.submitted.append(Submitted(process, folder))
    return cluster.submitted[-1]
