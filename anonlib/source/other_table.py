"""Reads another table that a measure compares a release with: a population, another release."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from anonlib.config.model import SourceSection
from anonlib.errors import ConfigError, InputError, Problem, StorageError
from anonlib.measure import Measure
from anonlib.source.casts import Cast, require_readable_as
from anonlib.source.readers import read_source
from anonlib.source.resolved_source import read_plain, rename_columns
from anonlib.spark.translation import translate_errors
from anonlib.spark.values import find_spark_type


def require_other_tables(spark: SparkSession, measures: Sequence[Measure]) -> None:
    """Opens the tables that measures read besides the source: a run would else work for nothing.

    Raises:
        ConfigError, InputError, StorageError: As for the source, with the place of the measure.
    """
    for i, measure in enumerate(measures):
        if measure.other_source is None:
            continue
        section, where = SourceSection(**measure.other_source), f"evaluate.measures.{i}"
        try:
            with translate_errors("source", permission_error=InputError):
                frame, _ = read_source(spark, section, set())
                rename_columns(frame, section.where, {})
        except ConfigError as error:
            found = [Problem(f"{where}.{each.where}", each.text) for each in error.problems]
            raise ConfigError(found) from None
        except (InputError, StorageError) as error:
            raise type(error)(f"{where}.{error}") from None


def open_other_table(
    spark: SparkSession,
    source: Mapping[str, Any],
    columns: Mapping[str, tuple[str, pa.DataType]],
    missing_tokens: tuple[str, ...],
    where: str,
) -> DataFrame:
    """The rows of another table, with columns of a release.

    Args:
        spark: The session.
        source: The table, as a config's `source`.
        columns: By id: the column of the table, and the type that its values are read as.
        missing_tokens: Texts that mean a missing value.
        where: The measure, for errors.

    Raises:
        ConfigError: The table lacks a column, or an array or a struct has another type.
        InputError: Values can't be read as their type. The text says how many.
    """
    section = SourceSection(**source)
    with translate_errors(where, permission_error=InputError):
        frame, _ = read_source(spark, section, {name for name, _ in columns.values()})
        named, raw = rename_columns(frame, section.where, {})
        places = {name: f"c{i}" for i, name in enumerate(named.columns)}
        if missing := [name for name, _ in columns.values() if name not in places]:
            text = f"the table has no column {', '.join(missing)}"
            raise ConfigError([Problem(f"{where}: columns", text)])
        casts, names, values = {}, {}, []
        for id, (name, type) in columns.items():
            wanted, there = find_spark_type(type).simpleString(), raw.schema[places[name]].dataType
            if there.simpleString() != wanted:
                if pa.types.is_nested(type) or isinstance(there, (ArrayType, StructType)):
                    text = (
                        f"the column {name} is {there.simpleString()} there, and {wanted} here; "
                        "`columns` names the quasi-identifiers that agree"
                    )
                    raise ConfigError([Problem(f"{where}: columns", text)])
                casts[places[name]] = Cast(wanted)
            names[places[name]] = name
            value = read_plain(F.col(places[name]), casts.get(places[name]), type)
            values.append(value.alias(id))
        require_readable_as(raw, casts, missing_tokens, names)
        return raw.select(*values)
