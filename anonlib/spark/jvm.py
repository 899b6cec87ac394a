"""Classes and values of the driver's JVM."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """A class by its full name, asked for at once.

    Attribute by attribute, each package is first looked for as a class, in every jar of Spark's.
    """
    return getattr(spark._jvm, name)


def none(spark: SparkSession) -> Any:
    """Scala's None."""
    return some(spark, None)


def some(spark: SparkSession, value: Any) -> Any:
    """Scala's Some of a value; its None of None."""
    return java_class(spark, "scala.Option").apply(value)


def scala_map(spark: SparkSession, values: Mapping[str, str]) -> Any:
    """An immutable map of Scala's."""
    java = java_class(spark, "java.util.HashMap")()
    for key, value in values.items():
        java.put(key, value)
    module = getattr(java_class(spark, "scala.collection.immutable.Map$"), "MODULE$")
    return getattr(module, "from")(_converters(spark).asScala(java))


def scala_seq(spark: SparkSession, values: Iterable[Any]) -> Any:
    """An immutable sequence of Scala's."""
    java = java_class(spark, "java.util.ArrayList")()
    for value in values:
        java.add(value)
    return _converters(spark).asScala(java).toSeq()


def _converters(spark: SparkSession) -> Any:
    return java_class(spark, "scala.jdk.javaapi.CollectionConverters")


def find_class(spark: SparkSession, name: str) -> Any:
    """The class as a value, java.lang.Class, by the loader of the thread. Raises what the JVM
    raises where it is not there."""
    thread = java_class(spark, "java.lang.Thread")
    loader = thread.currentThread().getContextClassLoader()
    return java_class(spark, "java.lang.Class").forName(name, False, loader)
