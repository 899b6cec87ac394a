"""HDFS and YARN on loopback: the real daemons, one of each, from the jar that Hadoop has for it."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from anonlib.spark.jars import Jar, ensure, find_jar_folder
from tests.cluster.standalone import SPARK_HOME, Packed, Submitted, environment, free_port, wait_for
from tests.quick import INTERPRETED, JAVA

#: Hadoop's servers, of the version of the clients in pyspark; and what they need besides.
JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-client-minicluster",
        "3.5.0",
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    Jar(
        "org.bouncycastle",
        "bcprov-jdk18on",
        "1.82",
        "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce",
    ),
    Jar(
        "org.bouncycastle",
        "bcpkix-jdk18on",
        "1.82",
        "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63",
    ),
    Jar(
        "org.bouncycastle",
        "bcutil-jdk18on",
        "1.82",
        "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d",
    ),
)
HDFS = "org.apache.hadoop.hdfs.server"
YARN = "org.apache.hadoop.yarn.server"
#: What the servers take of Spark's jars.
OF_SPARK = ("hadoop-client-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*", "*servlet-api-*")


@dataclass
class Hadoop:
    """A file system and a cluster for two executors, with all their files in one folder."""

    folder: Path
    hdfs: str = ""
    submitted: list[Submitted] = field(default_factory=list)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def conf(self) -> Path:
        return self.folder / "conf"

    def start(self) -> None:
        self.conf.mkdir()
        self.hdfs = f"hdfs://127.0.0.1:{free_port()}"
        self._configure()
        self._daemon(f"{HDFS}.namenode.NameNode", "-format", "-force").wait(120)
        self._daemon(f"{HDFS}.namenode.NameNode")
        self._daemon(f"{YARN}.resourcemanager.ResourceManager")
        self._daemon(f"{HDFS}.datanode.DataNode")
        self._daemon(f"{YARN}.nodemanager.NodeManager")
        wait_for("the file system", lambda: "DatanodeRegistration" in self._said("NameNode"))
        running = "from NEW to RUNNING"
        wait_for("the cluster", lambda: running in self._said("ResourceManager"))

    def stop(self) -> None:
        for run in self.submitted:
            run.kill()
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def logs(self) -> dict[str, str]:
        """What the servers and all containers said, by file."""
        paths = [*self.folder.glob("*.log"), *self.folder.glob("logs/*/*/*")]
        return {str(p.relative_to(self.folder)): p.read_text("utf-8", "replace") for p in paths}

    def files(self) -> str:
        """The listing of the whole file system: modes, owners, names."""
        return self._shell("-ls", "-R", "/")

    def put(self, file: Path, path: str) -> None:
        self._shell("-mkdir", "-p", path.rpartition("/")[0])
        self._shell("-put", str(file), path)

    def _shell(self, *arguments: str) -> str:
        command = self._command("org.apache.hadoop.fs.FsShell", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    def _said(self, name: str) -> str:
        paths = sorted(self.folder.glob(f"{name}-*.log"))
        return paths[-1].read_text("utf-8", "replace")

    def _daemon(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"{name.rpartition('.')[2]}-{len(self._processes)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                self._command(name, *arguments),
                env=environment(self.folder),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process

    def _command(self, name: str, *arguments: str) -> list[str]:
        folder = find_jar_folder() / "hadoop"
        ensure({folder / jar.name: jar for jar in JARS})
        jars = [folder / jar.name for jar in JARS]
        jars += [path for each in OF_SPARK for path in sorted((SPARK_HOME / "jars").glob(each))]
        path = ":".join(map(str, [self.conf, *jars]))
        return ["java", "-Xmx256m", *JAVA.split(), "-cp", path, name, *arguments]

    def _configure(self) -> None:
        any_port = "127.0.0.1:0"
        self._write("core-site", {"fs.defaultFS": self.hdfs, "hadoop.tmp.dir": self._place("tmp")})
        addresses = ("datanode.address", "datanode.http.address", "datanode.ipc.address")
        hdfs = {f"dfs.{name}": any_port for name in (*addresses, "namenode.http-address")}
        hdfs |= {"dfs.namenode.name.dir": self._place("names"), "dfs.replication": "1"}
        self._write("hdfs-site", {**hdfs, "dfs.datanode.data.dir": self._place("blocks")})
        of_nodes = ("nodemanager.address", "nodemanager.localizer.address")
        yarn = {f"yarn.{name}": any_port for name in (*of_nodes, "nodemanager.webapp.address")}
        for name in ("address", "scheduler.address", "resource-tracker.address", "admin.address"):
            yarn[f"yarn.resourcemanager.{name}"] = f"127.0.0.1:{free_port()}"
        yarn["yarn.resourcemanager.webapp.address"] = f"127.0.0.1:{free_port()}"
        most = "max-disk-utilization-per-disk-percentage"
        yarn |= {
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.local-dirs": self._place("local"),
            "yarn.nodemanager.log-dirs": self._place("logs"),
            "yarn.nodemanager.resource.memory-mb": "6000",
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.vmem-check-enabled": "false",
            f"yarn.nodemanager.disk-health-checker.{most}": "99.9",
            "yarn.scheduler.minimum-allocation-mb": "128",
        }
        self._write("yarn-site", yarn)
        queue = "yarn.scheduler.capacity"
        queues = {f"{queue}.root.queues": "default", f"{queue}.root.default.capacity": "100"}
        share = {f"{queue}.maximum-am-resource-percent": "0.9"}  # the driver's
        self._write("capacity-scheduler", {**queues, **share})
        (self.conf / "log4j2.properties").write_text(
            "rootLogger.level = info\nrootLogger.appenderRef.err.ref = err\n"
            "appender.err.type = Console\nappender.err.name = err\n"
            "appender.err.target = SYSTEM_ERR\nappender.err.layout.type = PatternLayout\n"
            "appender.err.layout.pattern = %p %m%n%ex\n"
        )

    def _place(self, name: str) -> str:
        return str(self.folder / name)

    def _write(self, name: str, values: dict[str, str]) -> None:
        lines = [
            f"<property><name>{key}</name><value>{escape(value)}</value></property>"
            for key, value in values.items()
        ]
        text = f"<configuration>{''.join(lines)}</configuration>"
        (self.conf / f"{name}.xml").write_text(text)


def submit(
    hadoop: Hadoop,
    made: Packed,
    folder: Path,
    config: Path,
    *,
    mode: str,
    trouble: str,
) -> Submitted:
    """Submits a release to YARN with the settings of conf/yarn.conf, at the size of these tests. A
    driver on the cluster sends the environment along; one outside of it shares the unpacked one."""
    folder.mkdir(parents=True)
    (folder / "environment").symlink_to(made.environment)
    (folder / "trouble").mkdir()
    settings = {
        "spark.driver.memory": "600m",
        "spark.executor.memory": "600m",
        "spark.executor.memoryOverhead": "600m",
        "spark.executor.cores": "1",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        # Spark's own jars are on the node; without this they are sent with each run.
        "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
        "spark.executorEnv.TROUBLE": trouble,
        "spark.executorEnv.TROUBLE_DIR": str(folder / "trouble"),
        **INTERPRETED,
    }
    if mode == "client":
        settings["spark.pyspark.python"] = str(made.environment / "bin" / "python")
        settings["spark.executorEnv.NUMBA_CACHE_DIR"] = str(made.environment / "numba")
    jars = ",".join(str(path) for path in sorted((made.folder / "jars").iterdir()))
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode]
    command += ["--properties-file", str(made.folder / "conf" / "yarn.conf"), "--jars", jars]
    if mode == "cluster":
        command += ["--archives", f"{made.one('*-environment.tar.gz')}#environment"]
    command += ["--py-files", str(made.plugin), "--files", str(config)]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    where = config.name if mode == "cluster" else str(config)
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, str(made.folder / "jobs" / "release.py"), where],
            env={**environment(folder), "HADOOP_CONF_DIR": str(hadoop.conf)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    hadoop.submitted.append(Submitted(process, folder))
    return hadoop.submitted[-1]
