"""PostgreSQL by Spark's JDBC: its driver, and the state of a table that several connections see."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from anonlib.spark.jars import ensure_postgresql_jar
from anonlib.spark.jvm import find_class, find_java_class, make_scala_map

REPEATABLE_READ = 4  # java.sql.Connection.TRANSACTION_REPEATABLE_READ


def add_driver(spark: SparkSession, driver: str) -> None:
    """Makes PostgreSQL's driver, a class, known to the session, unless it is on the class path."""
    try:
        find_class(spark, driver)
    except Exception:
        java: Any = spark._jsparkSession
        java.sessionState().resourceLoader().addJar(str(ensure_postgresql_jar()))


def take_snapshot(spark: SparkSession, options: Mapping[str, str]) -> tuple[Any, str]:
    """A connection with an open transaction, and the name of its snapshot for other connections.

    https://www.postgresql.org/docs/current/sql-set-transaction.html
    """
    jdbc = find_java_class(spark, "org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions")
    java = jdbc(make_scala_map(spark, options))
    dialect = find_java_class(spark, "org.apache.spark.sql.jdbc.JdbcDialects").get(options["url"])
    connection = dialect.createConnectionFactory(java).apply(-1)
    try:
        connection.setReadOnly(True)
        connection.setTransactionIsolation(REPEATABLE_READ)
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        statement.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        found = statement.executeQuery("SELECT pg_export_snapshot()")
        found.next()
        snapshot = str(found.getString(1))
        # Locks the table against TRUNCATE and ALTER, which change what a snapshot sees.
        statement.execute(f"SELECT 1 FROM {java.tableOrQuery()} LIMIT 0")
    except BaseException:
        connection.close()
        raise
    return connection, snapshot
