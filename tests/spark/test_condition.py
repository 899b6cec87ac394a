"""What `source.where` may say: no more than a condition on the columns of one row."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.config.model import RESERVED_PREFIX
from anonlib.errors import ConfigError, InputError
from anonlib.source.condition import PUSHDOWN, filter_rows
from anonlib.spark import expressions as limits
from anonlib.spark.expressions import require_plain
from anonlib.spark.loan import return_session
from anonlib.spark.translation import translate_errors

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    spark.range(3).createOrReplaceTempView("anonlib_other")
    # A function of the session's, as a catalog or a notebook may have it.
    spark.udf.register("anonlib_double", lambda x: 2 * x, "long")
    spark.sql("DECLARE OR REPLACE VARIABLE anonlib_least INT DEFAULT 4")
    spark.sql("DECLARE OR REPLACE VARIABLE anonlib_name STRING DEFAULT 'id'")
    yield spark.range(6).selectExpr("id", "cast(id as string) as `a.b`", "array(id) as many")
    spark.catalog.dropTempView("anonlib_other")
    spark.sql("DROP TEMPORARY FUNCTION anonlib_double")
    spark.sql("DROP TEMPORARY VARIABLE anonlib_least")
    spark.sql("DROP TEMPORARY VARIABLE anonlib_name")


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        (None, 6),
        ("id > 1 and `a.b` in ('2', '3', 'reflect(x)') or id is null", 2),
        ("exists(many, x -> x > 4)", 1),
        ("try_cast(`a.b` as date) is null and `a.b` like '%3'", 1),
        # What can't fail, or shows no value when it does.
        ("cast(array(`a.b`) as string) like '%2%'", 1),
        ("id = 2.0 and id + 1 > 0.5 and cast(id as string) = `a.b` and id in ('2', '3')", 1),
        ("cast(timestamp_seconds(id) as date) = '1970-01-01' and many[0] = element_at(many, 1)", 6),
        ("try_to_timestamp(`a.b`, 'MM') is null and try_to_number(`a.b`, '9') = 3", 1),
        ("abs(id) < 5 and -id < 5 and round(id / 2) >= 0 and int(id = 1) + 1 > 0", 5),
        ("to_date(timestamp_seconds(id)) = '1970-01-01' and make_date(1970, 1, 1) is not null", 6),
    ],
)
def test_conditions(frame: DataFrame, condition: str | None, n: int) -> None:
    assert filter_rows(frame, condition).count() == n


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("id in (select id from anonlib_other)", "subqueries are not allowed"),
        ("id > (select max(id) from no_such_table)", "subqueries are not allowed"),
        ("exists(select 1) or id > 1", "subqueries are not allowed"),
        ("reflect('java.lang.Math', 'abs', 1) = '1'", "reflect and java_method call any code"),
        ("java_method('java.lang.Math', 'abs', 1) = '1'", "reflect and java_method"),
        ("try_reflect('java.lang.Math', 'abs', 1) = '1'", "reflect and java_method"),
        ("raise_error(`a.b`) is null", "raise_error and assert_true"),
        ("assert_true(id > 9, `a.b`) is null", "raise_error and assert_true"),
        ("anonlib_double(id) = 2", "user-defined functions"),
        ("id > anonlib_least", "variables are not in the config"),
        ("exists(many, x -> x > session.anonlib_least)", "variables are not in the config"),
        ("identifier(anonlib_name) > 4", "IDENTIFIER(...) is not allowed"),
        ("rand() > 0.5", "rand, uuid, input_file_name and the like change"),
        ("uuid() = `a.b`", "rand, uuid, input_file_name and the like change"),
        ("input_file_name() = ''", "rand, uuid, input_file_name and the like change"),
        ("monotonically_increasing_id() > 1", "rand, uuid, input_file_name and the like change"),
        ("now() > timestamp'2024-01-01'", "now, current_date, current_user and the like change"),
        (
            "current_date() > date'2024-01-01'",
            "now, current_date, current_user and the like change",
        ),
        ("unix_timestamp() > 1", "now, current_date, current_user and the like change"),
        ("localtimestamp() is null", "now, current_date, current_user and the like change"),
        ("current_user() = 'root'", "now, current_date, current_user and the like change"),
        ("max(id) > 1", "one row"),
        ("row_number() over (order by id) > 2", "one row"),
        ("window(timestamp'2020-01-01', '1 day') is null", "one row"),
        ("explode(many) > 1", "one row"),
        ("id", "is neither true nor false"),
        ("if(id, 1, 0) = 1", "has values of types that"),
        ("id > :a", "has parameters"),
        ("ä ö > 1", "not valid SQL: names of other letters"),
        ("`a.b` collate nosuch = 'a'", "Spark refuses it with COLLATION_INVALID_NAME"),
        ("`a.b` = '${env:HOME}'", "Spark would replace"),
        ("`a.b` > 5", "the try_ form of cast(string as bigint)"),
        ("id + `a.b` > 5", "the try_ form of cast(string as bigint)"),
        ("cast(`a.b` as int) > 5", "the try_ form of cast(string as int)"),
        ("year(`a.b`) > 2000", "the try_ form of cast(string as date)"),
        ("exists(many, x -> cast(x as tinyint) > 4)", "the try_ form of cast(bigint as tinyint)"),
        ("cast(id * 0.1 as decimal(2,1)) > 1", "as decimal(2,1))"),
        ("cast(array(`a.b`) as array<int>)[0] > 1", "cast(array<string> as array<int>)"),
        ("str_to_map(`a.b`)['k'] = 'v'", "string_to_map"),
        ("to_date(`a.b`) is null", "the try_ form of parse_to_date"),
        ("to_timestamp(`a.b`, 'yyyy') is null", "the try_ form of parse_to_timestamp"),
        ("to_number(`a.b`, '9') > 1", "the try_ form of to_number"),
        ("to_binary(`a.b`, 'hex') is null", "the try_ form of to_binary"),
        ("url_decode(`a.b`) = 'x'", "the try_ form of url_decode"),
        ("from_json(`a.b`, 'x int', map('mode', 'FailFast')) is null", "FAILFAST"),
    ],
)
def test_refused(frame: DataFrame, condition: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        filter_rows(frame, condition)
    (problem,) = caught.value.problems
    assert problem.where == "source.where"
    assert said in problem.text


def test_not_sql(frame: DataFrame) -> None:
    for condition in ("id >", "id > 1; drop table x", "id > 1 union select 1"):
        with pytest.raises(ConfigError, match=r"^source\.where: not valid SQL$"):
            filter_rows(frame, condition)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("10 / id > 1", "with DIVIDE_BY_ZERO: one of `where`, or of the view or DataFrame"),
        ("many[id] = 1", "with INVALID_ARRAY_INDEX"),
        ("decode(unhex('ff'), 'utf-8') = `a.b`", "with MALFORMED_CHARACTER_CODING"),
    ],
)
def test_values_that_a_condition_fails_on(frame: DataFrame, condition: str, said: str) -> None:
    rows = filter_rows(frame, condition)
    with pytest.raises(InputError) as caught, translate_errors("source"):
        rows.collect()
    assert said in str(caught.value)


def test_columns_that_are_not_there(frame: DataFrame) -> None:
    """A name that is near no column's may be a value: it is not repeated."""
    with pytest.raises(ConfigError) as caught:
        filter_rows(frame, "idd > 1")
    near = "source.where: no column idd; did you mean id? there are: id, "
    assert str(caught.value).startswith(near)
    with pytest.raises(ConfigError) as caught:
        filter_rows(frame, "id = Huber")
    text = "source.where: an unknown column; texts need single quotes; there are: id, "
    assert str(caught.value).startswith(text)
    with pytest.raises(ConfigError) as caught:
        filter_rows(frame.withColumn(f"{RESERVED_PREFIX}row", F.lit(1)), "idd > 1")
    assert RESERVED_PREFIX not in str(caught.value)


def test_long_ones(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PARTS", 4)
    assert filter_rows(frame, "id in (1, 2, 3)").count() == 3
    with pytest.raises(ConfigError, match=r"source\.where: more than 4 columns and values"):
        filter_rows(frame, "id in (1, 2, 3, 4)")


def test_other_expressions(frame: DataFrame) -> None:
    """Those that sweeps derive columns by."""
    require_plain(frame, "pmod(xxhash64(id, 'y'), 2) + sqrt(id)", "x")
    with pytest.raises(ConfigError, match=r"^x: reflect"):
        require_plain(frame, "reflect('java.lang.Math', 'abs', 1)", "x")


@pytest.mark.parametrize("form", ["parquet", "delta"])
@pytest.mark.parametrize(
    "condition", ["f = 0", "f in (0, 1)", "f > 1000", "exists(many, x -> x = 0)"]
)
def test_floats_of_files(spark: SparkSession, tmp_path: Path, form: str, condition: str) -> None:
    """Readers leave out no rows that fulfil a condition: -0.0 is 0.0, and NaN the greatest."""
    floats = pa.array([float("nan"), -0.0, *map(float, range(2, 60))] * 4, pa.float64())
    table = pa.table({"f": floats, "many": pa.array([[value] for value in floats.to_pylist()])})
    if form == "parquet":
        parquet.write_table(table, tmp_path / "t")
    else:
        spark.createDataFrame(table).coalesce(1).write.format("delta").save(f"{tmp_path}/t")

    @return_session
    def count() -> int:
        return filter_rows(spark.read.format(form).load(f"{tmp_path}/t"), condition).count()

    assert count() == 4
    assert spark.conf.get(PUSHDOWN) == "true"
