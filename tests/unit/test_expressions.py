"""What is said of SQL in a config that Spark refuses, by the names that Spark has for it."""

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.base import PySparkException

from anonlib.config.model import RESERVED_PREFIX
from anonlib.errors import ConfigError, InputError
from anonlib.spark.expressions import explain_blame

NAMES = ["age", "größe", f"{RESERVED_PREFIX}row"]


class Unresolved(AnalysisException):
    """What Spark raises for a column that is not there."""

    def __init__(self, name: str):
        super().__init__(f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] `{name}`. SQLSTATE: 42703")
        self.name = name

    def getMessageParameters(self) -> dict[str, str]:
        return {"objectName": f"`{self.name}`"}


def told(error: Exception) -> str:
    with pytest.raises(ConfigError) as caught, explain_blame("source.where", NAMES):
        raise error
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (ParseException, "\n[PARSE_SYNTAX_ERROR] at 'x'. SQLSTATE: 42601", "not valid SQL"),
        (ParseException, "[PARSE_EMPTY_STATEMENT] x. SQLSTATE: 42617", "not valid SQL"),
        (
            ParseException,
            "[INVALID_IDENTIFIER] ä. SQLSTATE: 42602",
            "not valid SQL: names of other letters than a to z need backquotes, as in `größe`",
        ),
        (
            ParseException,
            "[UNSUPPORTED_DATATYPE] x. SQLSTATE: 0A000",
            "not valid SQL: Spark refuses it with UNSUPPORTED_DATATYPE",
        ),
        (
            AnalysisException,
            "[DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN] x. SQLSTATE: 42K09; line 1 pos 0",
            "is neither true nor false; compare, as in `age > 17`",
        ),
        (
            AnalysisException,
            "[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] x. SQLSTATE: 42K09",
            "has values of types that its functions or operators do not take",
        ),
        (
            AnalysisException,
            "[UNBOUND_SQL_PARAMETER] x. SQLSTATE: 42P02",
            "has parameters, `:name` or `?`; write values in their place",
        ),
        (
            AnalysisException,
            "[UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS] x. SQLSTATE: 42K0E",
            "an expression on the columns of one row is needed",
        ),
        (AnalysisException, "[NO_NAME_YET.X1] y. SQLSTATE: 54000", "Spark refuses it with NO_NAME"),
        (AnalysisException, "Words of an older Spark", "Spark refuses it"),
        # Neither parsed nor analyzed, it says.
        (
            PySparkException,
            "[COLLATION_INVALID_NAME] no. SQLSTATE: 42704",
            "Spark refuses it with COLLATION_INVALID_NAME",
        ),
        (Unresolved, "agee", "no column agee; did you mean age? there are: age, größe"),
        (
            Unresolved,
            "Huber",
            "an unknown column; texts need single quotes; there are: age, größe",
        ),
    ],
)
def test_what_spark_refuses(kind: type[Exception], text: str, said: str) -> None:
    """It is the config's fault: it ends with the code of a wrong config."""
    assert told(kind(text)).startswith(f"source.where: {said}")


@pytest.mark.parametrize(
    "error",
    [ConnectionError("refused"), InputError("no"), PySparkException("[X] y. SQLSTATE: 58030")],
)
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explain_blame("source.where", NAMES):
        raise error
    assert caught.value is error
