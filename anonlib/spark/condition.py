"""SQL in configs: what it may say of a row. It is read in the session of the run, so it could reach
other tables and any Java method there."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.errors import ConfigError, Problem
from anonlib.spark.errors import translated
from anonlib.spark.jvm import java_class

#: Columns, values and functions in a condition; Spark takes the square of it to tell what they are.
MAX_PARTS = 5_000
SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
#: Expressions of Spark's by the name of their class -> why they are refused.
_REFUSED = {
    "CallMethodViaReflection": "reflect and java_method call any code",
    "RaiseError": "raise_error and assert_true show values in Spark's own logs",
    "ApplyFunctionExpression": "functions of catalogs may be any code",
}
#: Those that fail on what they can't read, and say so by no field of theirs.
_FAILING = {"ToNumber", "ToBinary", "AesDecrypt"}
#: Those that say so, and show a place in a list, not what is there.
_SHOWING_NOTHING = {"GetArrayItem", "ElementAt", "Elt"}
_CAST = "org.apache.spark.sql.catalyst.expressions.Cast"
_WHOLE = ("tinyint", "smallint", "int", "bigint", "decimal")
_READ = "a value that can't be read would stand in Spark's event log and UI: use the try_ form of "
_TIME = "now, current_date, current_user and the like say other things at other times"


def filtered(frame: DataFrame, condition: str | None) -> DataFrame:
    """The rows for which the config's `source.where` is true; all without one.

    Raises ConfigError where it is more than a condition on the columns of a row, InputError where
    it is no SQL.
    """
    if not condition:
        return frame
    with translated("source.where"):
        require_plain(frame, condition, "source.where")
        return frame.where(condition)


def require_plain(frame: DataFrame, text: str, where: str) -> None:
    """Raises ConfigError unless an SQL expression on a frame's columns has no subquery, calls
    nothing but Spark's own functions, fails on no value, whose text Spark would keep, and says the
    same of a row whenever it is asked: rows are read several times."""
    if "${" in text:
        said = "Spark would replace ${ here, by a variable or a setting; rename the column"
        raise ConfigError([Problem(where, said)])
    spark: Any = frame.sparkSession
    parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    # Before Spark looks for other tables.
    if java_class(spark, SUBQUERY).hasSubquery(parsed):
        raise ConfigError([Problem(where, "subqueries are not allowed; join in a view first")])
    plan = frame.select(F.expr(text))._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "Project":
        raise ConfigError([Problem(where, "an expression on the columns of one row is needed")])
    expression = plan.projectList().apply(0)
    wrong = [*_wrong(expression)]
    if not wrong and (fallible := _fallible(expression, text, spark)):
        wrong = [_READ + ", ".join(sorted(fallible))]
    if wrong:
        raise ConfigError([Problem(where, said) for said in wrong])


def _wrong(expression: Any) -> Iterator[str]:
    if expression.collectLeaves().size() > MAX_PARTS:
        yield f"more than {MAX_PARTS:,} columns and values"
        return
    names = {node["class"].rpartition(".")[2] for node in json.loads(expression.toJSON())}
    yield from (_REFUSED[name] for name in sorted(names & {*_REFUSED}))
    if any(name.endswith("UDF") or name.startswith("SQLFunction") for name in names):
        yield "functions that users define may be any code"
    if any(name.startswith("Current") or name in ("Now", "LocalTimestamp") for name in names):
        yield _TIME
    if not expression.deterministic() and not names & {*_REFUSED}:
        yield "rand, uuid, input_file_name and the like say other things of a row each time"


def _fallible(expression: Any, text: str, spark: SparkSession) -> set[str]:
    """What in an expression fails on values it can't read."""
    found = {"FAILFAST"} if "failfast" in text.lower() else set()  # readers of JSON, CSV, XML
    nodes = json.loads(expression.toJSON())
    for node in nodes:
        name = node["class"].rpartition(".")[2]
        strict = node.get("failOnError") or node.get("ansiEnabled")
        if name in _FAILING or (strict and name not in _SHOWING_NOTHING):
            found.add(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())
    if any(node["class"] == _CAST for node in nodes):
        found |= {*_fallible_casts(expression, java_class(spark, _CAST))}
    return found


def _fallible_casts(expression: Any, casts: Any) -> Iterator[str]:
    """The same of casts, written or implied: of texts to other types, of numbers to narrower ones.
    Constants are cast before a row is read."""
    if expression.getClass().getName() == _CAST and str(expression.evalMode()) == "ANSI":
        child, to = expression.child(), expression.dataType()
        of, to_name = child.dataType().simpleString(), to.simpleString()
        text = of.startswith(("string", "char", "varchar"))
        narrow = to_name.startswith(_WHOLE) and not casts.canUpCast(child.dataType(), to)
        if not child.foldable() and ((text and to_name not in (of, "binary")) or narrow):
            yield f"cast({of} as {to_name})"
    children = expression.children()
    for i in range(children.size()):
        yield from _fallible_casts(children.apply(i), casts)
