"""Settings of Spark sessions as small and quick as the tables of tests, all files in one folder."""

from pathlib import Path

#: The JVM's second compiler would cost more than its code saves, even in sessions of many runs.
#: Alone, the first one has little room for code by default, and compiles again what it threw away.
JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
#: So would compiling the code that Spark generates for each query.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: Nor is what helps large tables, or against broken disks, worth its cost in so many small ones:
#: plans that change while they run, and checksums of Delta's log, Delta's own and Hadoop's.
BARE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
#: All of these as users have them, for a session that runs.
USUAL = {
    "spark.sql.adaptive.enabled": "true",
    "spark.databricks.delta.writeChecksumFile.enabled": "true",
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
}
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
#: A log of a few versions is read by one task sooner than by two.
SHORT_LOGS = {"spark.databricks.delta.snapshotPartitions": "1"}


def quick(folder: Path, memory: str = "1g") -> dict[str, str]:
    """For `anonlib.spark.session.session`: two cores, `memory` for the driver's JVM.

    Python's own temporary files are the caller's matter (TMPDIR).
    """
    temporary = folder / "temporary"
    temporary.mkdir(parents=True, exist_ok=True)
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={temporary} {JAVA}",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # VACUUM lists even a table of three files by so many tasks, 10,000 by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **INTERPRETED,
        **SHORT_LOGS,
    }
