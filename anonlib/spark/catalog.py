"""The name of a release in Spark's catalog: a second way to its folder, so it is made after the
commit, and looked at before anything is written."""

from pyspark.sql import SparkSession

from anonlib.config import Config
from anonlib.errors import AnonlibError, InputError, StorageError
from anonlib.spark.errors import translated
from anonlib.spark.storage import Storage

WHERE = "release.register"


def registered(spark: SparkSession, config: Config) -> bool:
    """Whether the config's name, if it has one, is in the catalog, and that of the table it
    releases.

    Raises InputError when the catalog has no such schema, or the name is that of something else.
    """
    name = config.release.catalog_table
    if name is None:
        return False
    quoted = _quoted(name)
    schema = quoted.rpartition(".")[0]
    with translated(WHERE):
        if not spark.catalog.databaseExists(schema):
            text = f"the catalog has no schema {schema}; make it (CREATE SCHEMA), or name another"
            raise InputError(f"{WHERE}: {text}")
        if not _exists(spark, quoted):
            return False
        found = _details(spark, quoted)
    ours = Storage(spark, config.release.path).root
    place = found.get("Location")
    if found.get("Provider") != "delta" or not place or Storage(spark, place).root != ours:
        text = f"{name} is in the catalog, and is not the table at {ours}; name another"
        raise InputError(f"{WHERE}: {text}, or drop it there")
    return True


def _exists(spark: SparkSession, quoted: str) -> bool:
    try:
        return spark.catalog.tableExists(quoted)
    except Exception as error:
        condition = getattr(error, "getCondition", str)() or ""
        if not condition.startswith("DELTA_"):
            raise
        text = f"{quoted} is in the catalog, and no table is where it points to"
        raise InputError(f"{WHERE}: {text}; drop it there (DROP TABLE), or name another") from error


def _details(spark: SparkSession, quoted: str) -> dict[str, str]:
    """What the catalog says of a table, without its columns, whose names may be anything."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    names = [row["col_name"] for row in rows]
    start = names.index("# Detailed Table Information") if names else 0
    return {row["col_name"]: row["data_type"] for row in rows[start:]}


def register(spark: SparkSession, config: Config, run_id: str, version: int) -> None:
    """Gives the published table its name, unless it has it.

    Raises StorageError where that fails, with what is published, and what is to be done.
    """
    name = config.release.catalog_table
    if name is None:
        return
    quoted, path = _quoted(name), Storage(spark, config.release.path).root
    try:
        if not registered(spark, config):
            with translated(WHERE):
                spark.catalog.createTable(quoted, path=path, source="delta")
            if not registered(spark, config):
                raise StorageError(f"{WHERE}: the catalog did not keep the name")
    except AnonlibError as error:
        place = path.replace("\\", "\\\\").replace("'", "\\'")
        text = (
            f"{error}. The release is published all the same (version {version} of {path}); only "
            f"its name in the catalog is missing. Release again with `--run-id {run_id}`, or run: "
            f"CREATE TABLE IF NOT EXISTS {quoted} USING DELTA LOCATION '{place}'"
        )
        raise StorageError(text) from error


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))
