"""SQL in configs: only expressions on the columns of one row are allowed.

The SQL runs in the session of the run, where it could reach other tables and any Java method.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.config.model import RESERVED_PREFIX
from anonlib.errors import ConfigError, Problem, did_you_mean
from anonlib.spark.jvm import find_java_class
from anonlib.spark.translation import find_conditions

#: Most columns, values and functions in a condition: Spark's analysis takes quadratic time.
MAX_PARTS = 5_000
SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
#: By class name of an expression of Spark: why it is refused.
_REFUSED = {
    "CallMethodViaReflection": "reflect and java_method call any code",
    "RaiseError": "raise_error and assert_true show values in Spark's own logs",
    "ApplyFunctionExpression": "functions of catalogs may be any code",
    "VariableReference": "variables are not in the config; write their values",
}
#: Expressions that fail on values they can't read, and have no field that says so.
_FAILING = {"ToNumber", "ToBinary", "AesDecrypt", "StringToMap"}
#: What IDENTIFIER(...) is, before Spark puts what it names in its place.
_NAMING = "ExpressionWithUnresolvedIdentifier"
_CAST = "org.apache.spark.sql.catalyst.expressions.Cast"
_WHOLE = ("tinyint", "smallint", "int", "bigint", "decimal")
_TIME = "now, current_date, current_user and the like change from one reading to the next"
_ONE_ROW = "an expression on the columns of one row is needed"
#: (the beginning of Spark's name of an error, what is said of SQL that Spark refuses with it). The
#: first match counts.
_MEANINGS = (
    (
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
        "is neither true nor false; compare, as in `age > 17`",
    ),
    ("DATATYPE_MISMATCH", "has values of types that its functions or operators do not take"),
    ("PARSE_", "not valid SQL"),
    (
        "INVALID_IDENTIFIER",
        "not valid SQL: names of other letters than a to z need backquotes, as in `größe`",
    ),
    ("UNBOUND_SQL_PARAMETER", "has parameters, `:name` or `?`; write values in their place"),
    ("UNRESOLVED_ROUTINE", "Spark knows no such function"),
    ("WRONG_NUM_ARGS", "has a function with too few or too many arguments"),
    ("WINDOW_FUNCTION", _ONE_ROW),
    ("UNSUPPORTED_GENERATOR", _ONE_ROW),
)


def quote_name(name: str) -> str:
    """A name, or a path, as SQL and `F.col` take it."""
    return "`" + name.replace("`", "``") + "`"


def require_plain(frame: DataFrame, text: str, where: str) -> Any:
    """Spark's expression for SQL on the columns of a DataFrame.

    Raises ConfigError if Spark refuses it, if it has a subquery, calls functions that are not
    Spark's own, may give different results for the same row (rows are read several times), or goes
    by variables, which the config does not show.
    """
    if "${" in text:
        raise ConfigError(
            [
                Problem(
                    where,
                    "Spark would replace ${ by a variable or a setting; rename the column",
                )
            ]
        )
    with explain_blame(where, frame.columns):
        return _analyze(frame, text, where)


def _analyze(frame: DataFrame, text: str, where: str) -> Any:
    spark: Any = frame.sparkSession
    parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    # Must come before Spark's analysis, which looks for other tables.
    if find_java_class(spark, SUBQUERY).hasSubquery(parsed):
        raise ConfigError([Problem(where, "subqueries are not allowed; join in a view first")])
    if _NAMING in _names(parsed):
        raise ConfigError([Problem(where, "IDENTIFIER(...) is not allowed; write the name itself")])
    plan = frame.select(F.expr(text))._jdf.queryExecution().analyzed()
    # Windows and generators make columns of several rows, in a plan below.
    columns = frame._jdf.queryExecution().analyzed().output()
    if plan.getClass().getSimpleName() != "Project" or not plan.child().output().equals(columns):
        raise ConfigError([Problem(where, _ONE_ROW)])
    expression = plan.projectList().apply(0)
    if wrong := [Problem(where, said) for said in _wrong(expression)]:
        raise ConfigError(wrong)
    return expression


@contextmanager
def explain_blame(where: str, names: Sequence[str]) -> Iterator[None]:
    """Raises ConfigError for what Spark refuses while it parses and analyzes SQL in the body.

    Args:
        where: The field of the config that has the SQL.
        names: The columns that the SQL may use.
    """
    try:
        yield
    except Exception as error:
        name, state = next(iter(find_conditions(error)), ("", ""))
        if not isinstance(error, AnalysisException) and state[:2] not in ("22", "42"):
            raise
        text = _describe(error, name, names)
    else:
        return
    raise ConfigError([Problem(where, text)])


def _describe(error: Exception, name: str, names: Sequence[str]) -> str:
    """What is said of SQL that Spark refuses with an error of this name."""
    if name.startswith("UNRESOLVED_COLUMN") and isinstance(error, AnalysisException):
        return _describe_column(error, names)
    for beginning, meaning in _MEANINGS:
        if name.startswith(beginning):
            return meaning
    refusal = f"Spark refuses it with {name}" if name else "Spark refuses it"
    return f"not valid SQL: {refusal}" if isinstance(error, ParseException) else refusal


def _describe_column(error: AnalysisException, names: Sequence[str]) -> str:
    """Which columns there are. The one that is not is named only if it is nearly the name of one:
    else it may be a text without quotes, a value."""
    parameters = error.getMessageParameters() or {}
    name = parameters.get("objectName", "").replace("`", "")
    own = [each for each in names if not each.startswith(RESERVED_PREFIX)]
    near = did_you_mean(name, own)
    what = f"no column {name}{near}" if near else "an unknown column; texts need single quotes;"
    return f"{what} there are: {', '.join(own)}"


def _wrong(expression: Any) -> Iterator[str]:
    if expression.collectLeaves().size() > MAX_PARTS:
        yield f"more than {MAX_PARTS:,} columns and values"
        return
    names = _names(expression)
    yield from (_REFUSED[name] for name in sorted(names & {*_REFUSED}))
    if any(name.endswith("UDF") or name.startswith("SQLFunction") for name in names):
        yield "user-defined functions may be any code"
    if any(name.startswith("Current") or name in ("Now", "LocalTimestamp") for name in names):
        yield _TIME
    if not expression.deterministic() and not names & {*_REFUSED}:
        yield "rand, uuid, input_file_name and the like change from one reading to the next"


def reads_floats(expression: Any) -> bool:
    """Whether an expression uses a column that has floating numbers."""
    columns = expression.references().toSeq()
    types = [columns.apply(i).dataType().simpleString() for i in range(columns.size())]
    return any(re.search(r"\b(float|double)\b", type) for type in types)


def _names(expression: Any) -> set[str]:
    """The names of the classes of an expression's parts."""
    return {node["class"].rpartition(".")[2] for node in json.loads(expression.toJSON())}


def find_fallible(expression: Any, text: str, spark: SparkSession) -> set[str]:
    """The parts of an expression that fail on texts or numbers they can't read."""
    found = {"FAILFAST"} if "failfast" in text.lower() else set()  # readers of JSON, CSV, XML
    nodes = json.loads(expression.toJSON())
    strict = {
        node["class"] for node in nodes if node.get("failOnError") or node.get("ansiEnabled")
    } | {node["class"] for node in nodes if node["class"].rpartition(".")[2] in _FAILING}
    return found | {*_fallible_parts(expression, strict, find_java_class(spark, _CAST))}


def _fallible_parts(expression: Any, strict: set[str], casts: Any) -> Iterator[str]:
    """Functions that parse text; and casts, explicit or not, of text to other types or of numbers
    to narrower ones. Constants don't count: they are evaluated before any row is read."""
    kind, children = expression.getClass().getName(), expression.children()
    below = [children.apply(i) for i in range(children.size())]
    if kind == _CAST and str(expression.evalMode()) == "ANSI" and not below[0].foldable():
        of, to = below[0].dataType(), expression.dataType()
        of_name, to_name = of.simpleString(), to.simpleString()
        text = re.search(r"\b(string|char|varchar)\b", of_name) is not None  # inside lists, too
        reads = text and not _is_text(to_name) and to_name not in (of_name, "binary")
        narrow = to_name.startswith(_WHOLE) and of_name != "boolean"
        if reads or (narrow and not casts.canUpCast(of, to)):
            yield f"cast({of_name} as {to_name})"
    elif kind in strict and any(_is_text(child.dataType().simpleString()) for child in below):
        yield re.sub(r"(?<!^)(?=[A-Z])", "_", kind.rpartition(".")[2]).lower()
    for child in below:
        yield from _fallible_parts(child, strict, casts)


def _is_text(type: str) -> bool:
    return type.startswith(("string", "char", "varchar"))
