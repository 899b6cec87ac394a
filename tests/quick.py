"""Settings of Spark sessions as small and quick as the tables of tests, all files in one folder."""

from pathlib import Path

_SMALL = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
#: For runs of seconds: the JVM's second compiler would cost more than its code saves. Alone, the
#: first one has little room for code by default, and compiles again what it threw away.
JAVA = f"{_SMALL} -XX:TieredStopAtLevel=1"
#: For sessions of many runs: the second compiler, which takes two thirds of the first release, has
#: what is called ten times as often as by default.
LATER = 10
JAVA_LONG = " ".join(
    [
        _SMALL,
        f"-XX:Tier4InvocationThreshold={5000 * LATER}",
        f"-XX:Tier4MinInvocationThreshold={600 * LATER}",
        f"-XX:Tier4CompileThreshold={15000 * LATER}",
        f"-XX:Tier4BackEdgeThreshold={40000 * LATER}",
    ]
)
#: So would compiling the code that Spark generates for each query.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def quick(folder: Path, memory: str = "1g", java: str = JAVA) -> dict[str, str]:
    """For `anonlib.spark.session.session`: two cores, `memory` for the driver's JVM.

    Python's own temporary files are the caller's matter (TMPDIR).
    """
    temporary = folder / "temporary"
    temporary.mkdir(parents=True, exist_ok=True)
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={temporary} {java}",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **INTERPRETED,
    }
