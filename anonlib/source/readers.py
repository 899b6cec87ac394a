"""Reads what a config names as source: files, a catalog table, Delta, a database, the generator."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from anonlib.config.checks.source_section import FILES
from anonlib.config.keys import read_all_options
from anonlib.config.model import SourceSection
from anonlib.config.paths import has_scheme, hint_at_file, locate
from anonlib.config.summary import bare
from anonlib.errors import ConfigError, InputError, Problem, did_you_mean
from anonlib.source.contract import FORMATS, read_files, require_contract
from anonlib.source.database import read_jdbc_options
from anonlib.source.generator import generate
from anonlib.spark.delta_files import explain_damage
from anonlib.spark.file_list import (
    Listing,
    find_newest_version,
    list_files,
)
from anonlib.spark.own_files import is_pattern, spell_for_reader
from anonlib.spark.translation import translate_errors

#: Options that choose a version of a Delta table.
TRAVELS = {"versionasof", "timestampasof"}


def read_source(
    spark: SparkSession, source: SourceSection, names: Collection[str]
) -> tuple[DataFrame, int | None]:
    """The source, and its version if it is a Delta table.

    Args:
        spark: The session.
        source: The source.
        names: The columns that must be in every file.
    """
    if source.format == "dataframe":
        raise ConfigError(
            [
                Problem(
                    "source.format",
                    "dataframe is for `anonlib.release(config, dataframe=...)` in Python",
                )
            ]
        )
    if source.format == "generator":
        return generate(spark, source.rows, source.seed), None
    if source.format == "jdbc":
        return spark.read.format("jdbc").options(**read_jdbc_options(spark, source)).load(), None
    if source.format in ("delta", "table"):
        version = find_version(spark, source) if source.version is None else source.version
        with _explain_damage(spark, source):
            frame = _load_table(spark, source, version)
        if source.format == "table":
            require_contract(frame, names)
        return frame, version
    options = read_all_options(source)
    with _explain_absence(source):
        if source.format in FORMATS:
            return read_files(spark, source.format, source.path, options, names), None
        place = source.path and spell_for_reader(spark, source.path, options)
        return spark.read.options(**options).format(source.format).load(place), None


def names_pattern(spark: SparkSession, source: SourceSection) -> bool:
    if source.path is None or source.format == "delta":
        return False
    return is_pattern(spark, source.path, read_all_options(source))


def is_temporary_view(spark: SparkSession, source: SourceSection) -> bool:
    """Whether a source is a temporary view: a DataFrame that has a name."""
    name = source.table or ""
    if source.format != "table" or ("." in name and not name.startswith("global_temp.")):
        return False
    with translate_errors("source", permission_error=InputError):
        return spark.catalog.tableExists(name) and spark.catalog.getTable(name).isTemporary


@contextmanager
def _explain_absence(source: SourceSection) -> Iterator[None]:
    """Says which file is not there, and where it was looked for; which format nobody knows."""
    try:
        with translate_errors("source", permission_error=InputError):
            yield
    except InputError as error:
        text = str(error)
    else:
        return
    if text == "source: no such file" and source.path is not None:
        text = describe_absence(source.path)
    elif text == "source: Spark knows no such format":
        known = (*FILES, "jdbc", "table", "generator")
        text = (
            f"source.format: Spark knows no format {source.format}"
            f"{did_you_mean(source.format, known) or ';'} it has {', '.join(known)}, and those of "
            "jars in spark.jars"
        )
    raise InputError(text)


def describe_absence(path: str) -> str:
    """What is said of a source's path where no file is: the place that was looked at, and the file
    there whose name is nearest."""
    if has_scheme(path):
        return f"source.path: no such file: {bare(path)}"
    rule = (
        "a path in a config is relative to the folder of the config; after `cwd:`, in --set and in "
        "a dict it is relative to the working directory"
    )
    return f"source.path: no such file: {bare(locate(path, Path()))}{hint_at_file(path)} ({rule})"


def find_version(spark: SparkSession, source: SourceSection) -> int | None:
    """The version that the Delta table of a source is at; None for other tables, and views."""
    with _explain_damage(spark, source):
        return find_newest_version(_load_table(spark, source, None))


def find_files(spark: SparkSession, source: SourceSection) -> Listing | None:
    """The files that a source has now, as `Source.files` lists them; None where the config does not
    name them: for a DataFrame of the caller, or options of a reader. No rows are read."""
    if source.format == "table":
        return list_files(_load_table(spark, source, None))
    if source.path is None or source.format == "delta":
        return None
    options = read_all_options(source)
    place = spell_for_reader(spark, source.path, options)
    return list_files(spark.read.format("binaryFile").options(**options).load(place))


def _load_table(spark: SparkSession, source: SourceSection, version: int | None) -> DataFrame:
    options = read_all_options(source)
    if version is not None and not TRAVELS & {name.lower() for name in options}:
        options["versionAsOf"] = str(version)
    reader = spark.read.options(**options)
    if source.format == "table":
        return reader.table(source.table or "")
    return reader.format("delta").load(source.path)


@contextmanager
def _explain_damage(spark: SparkSession, source: SourceSection) -> Iterator[None]:
    """Explains failures of the body that come from a damaged Delta table at the source's path."""
    with ExitStack() as stack:
        if source.path is not None:
            stack.enter_context(explain_damage(spark, source.path, "source"))
        stack.enter_context(translate_errors("source", permission_error=InputError))
        yield
