"""Classes and values of the driver's JVM."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

#: The classes, as pyspark names them, that it makes columns by.
_MAKE_COLUMNS = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")


class _KnownClass(JavaClass):  # type: ignore[misc]  # py4j has no types
    """A class of the JVM that looks each of its methods up only once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember_functions(spark: SparkSession) -> None:
    """Looks up once where pyspark's functions are.

    For each column that it makes, pyspark asks the JVM for the class and then for the method, and
    the JVM looks for a class of a short name in every package that pyspark imports, in each jar.
    """
    view: Any = spark._jvm
    for name in _MAKE_COLUMNS:
        if name not in vars(view):
            found = getattr(view, name)
            setattr(view, name, _KnownClass(found._fqn, found._gateway_client))


def find_java_class(spark: SparkSession, name: str) -> Any:
    """A class by its full name, in one look-up, once for each JVM.

    Attribute by attribute would be slow: each package is first looked for as a class, in every jar
    of Spark.
    """
    view: Any = spark._jvm
    known: Any = vars(view).get(name)
    if known is None:
        known = getattr(view, name)
        if isinstance(known, JavaClass):
            known = _KnownClass(known._fqn, known._gateway_client)
            setattr(view, name, known)
    return known


def make_none(spark: SparkSession) -> Any:
    """Scala's None."""
    return make_some(spark, None)


def make_some(spark: SparkSession, value: Any) -> Any:
    """Scala's Some(value); its None for None."""
    return find_java_class(spark, "scala.Option").apply(value)


def make_scala_map(spark: SparkSession, values: Mapping[str, str]) -> Any:
    """An immutable Scala map."""
    java = find_java_class(spark, "java.util.HashMap")()
    for key, value in values.items():
        java.put(key, value)
    module = getattr(find_java_class(spark, "scala.collection.immutable.Map$"), "MODULE$")
    return getattr(module, "from")(_converters(spark).asScala(java))


def make_struct_type(schema: Any) -> StructType:
    """The schema of a JVM's StructType."""
    return StructType.fromJson(json.loads(schema.json()))


def read_scala_map(spark: SparkSession, values: Any) -> dict[str, str]:
    """A dict of a Scala map."""
    return dict(_converters(spark).asJava(values))


def make_scala_seq(spark: SparkSession, values: Iterable[Any]) -> Any:
    """An immutable Scala sequence."""
    java = find_java_class(spark, "java.util.ArrayList")()
    for value in values:
        java.add(value)
    return _converters(spark).asScala(java).toSeq()


def read_scala_seq(spark: SparkSession, values: Any) -> list[Any]:
    """A list of a Scala collection."""
    return list(_converters(spark).asJava(values.toSeq()))


def _converters(spark: SparkSession) -> Any:
    return find_java_class(spark, "scala.jdk.javaapi.CollectionConverters")


def find_class(spark: SparkSession, name: str) -> Any:
    """A class as a java.lang.Class, by the thread's class loader, ready for use. If there is none,
    the error is that of the JVM."""
    thread = find_java_class(spark, "java.lang.Thread")
    loader = thread.currentThread().getContextClassLoader()
    return find_java_class(spark, "java.lang.Class").forName(name, True, loader)
