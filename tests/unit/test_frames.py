"""Tables of pandas, polars and Arrow: what they have that Spark has not, and back."""

import enum
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.errors import ConfigError, InfeasibleError, InputError
from anonlib.in_hand.released_table import Release

N = 60
LARGE = 2**53 + 1


def people(x: Any) -> pd.DataFrame:
    """A class of ten persons for each age, and a further column."""
    ages = [i // 10 for i in range(N)]
    return pd.DataFrame({"age": ages, "x": x, "ill": ["a", "b"] * (N // 2)})


def with_x(x: pa.Array) -> pa.Table:
    table = pa.Table.from_pandas(people(0), preserve_index=False)
    return table.set_column(1, "x", x)


def released(data: Any, recoder: str | None = None, **changes: Any) -> Release:
    given: dict[str, Any] = {
        "quasi_identifiers": ["age", "x"],
        "sensitive": ["ill"],
        "k": 5,
        "l": 2,
        "one_row_per_person": True,
        **({} if recoder is None else {"recode": {"columns": {"x": recoder}}}),
        **changes,
    }
    return anonlib.anonymize(data, **given)


def missing_in_tens(make: Any) -> list[Any]:
    return [None if i < 10 else make(i) for i in range(N)]


# --- nested columns


@pytest.mark.parametrize("recoder", ["interval", "set"])
def test_whole_numbers_within_values_stay_whole(recoder: str, tmp_path: Path) -> None:
    """Floats have no place for 2**53 + 1, and pandas makes floats of them beside a missing one."""
    numbers = missing_in_tens(lambda i: LARGE + 2 * (i % 10))
    data = people(pd.array(numbers, dtype="Int64"))
    scales = {"x": "nominal" if recoder == "set" else "continuous"}
    found = released(data, recoder, scales=scales)
    there = [each for each in found.table["x"] if each is not None]
    values = {v for each in there for v in (each.values() if recoder == "interval" else each)}
    assert {type(each) for each in values} <= {int, type(None)}
    assert values & {*numbers} - {None}
    assert values <= {*numbers}
    found.to_parquet(tmp_path / "t.parquet")
    inner = pq.read_schema(tmp_path / "t.parquet").field("x").type
    parts = [inner.value_type] if recoder == "set" else [field.type for field in inner.fields]
    assert {*parts} == {pa.int64()}


@pytest.mark.parametrize("values", [[None] * N, [np.nan] * N, missing_in_tens(lambda _: "a")])
@pytest.mark.parametrize("recoder", ["set", "mode"])
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_what_has_no_value_is_confirmed(
    values: list[Any], recoder: str, library: str, tmp_path: Path
) -> None:
    """pandas does not know the type of a column that has none."""
    data: Any = people(values if values[0] is not None else pd.Series(values, dtype=object))
    if library == "arrow":
        data = pa.Table.from_pandas(data, preserve_index=False)
    if library == "polars":
        data = pl.from_pandas(data)
    found = released(data, recoder)
    file = tmp_path / "t.parquet"
    found.to_parquet(file)
    found.save_record(tmp_path / "t.json")
    found.certificate(tmp_path / "t.html")
    for table in (found.table, file):
        assert anonlib.audit(table, found.config).passed
        lines = anonlib.verify(tmp_path / "t.html", table, record=tmp_path / "t.json")
        assert {line.state for line in lines} == {"confirmed"}
    kind = pq.read_schema(file).field("x").type
    assert pa.types.is_list(kind) == (recoder == "set")
    assert not pa.types.is_null(kind)
    pd.read_parquet(file)


def test_shares_in_pandas(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,ab,*\nb,ab,*\nc,cd,*\nd,cd,*\n")
    data = people(["abcd"[i % 4] for i in range(N)])
    found = released(data, "proportional", hierarchies={"x": tmp_path / "x.csv"})
    assert anonlib.audit(found.table, found.config).passed
    found.to_parquet(tmp_path / "t.parquet")
    assert anonlib.audit(tmp_path / "t.parquet", found.config).passed


def test_texts_of_polars_in_a_file(tmp_path: Path) -> None:
    data = pl.from_pandas(people(["abc"[i % 3] for i in range(N)]))
    released(data, "set").to_parquet(tmp_path / "t.parquet")
    assert pq.read_schema(tmp_path / "t.parquet").field("x").type.value_type == pa.string()


# --- columns that are only looked at


IDS = [uuid.UUID(int=7 * i) for i in range(N)]
LOOKED_AT = {
    "uuid": pa.array(IDS),
    "bytes": pa.array([each.bytes for each in IDS], pa.binary(16)),
    "decimal": pa.array([Decimal(10**40 + i) for i in range(N)], pa.decimal256(60, 2)),
    "large": pa.array([2**64 - 1 - i for i in range(N)], pa.uint64()),
    "runs": pa.RunEndEncodedArray.from_arrays([*range(1, N + 1)], [f"p{i}" for i in range(N)]),
}


@pytest.mark.parametrize("kind", LOOKED_AT)
def test_identities_of_types_that_spark_has_not(kind: str) -> None:
    column = LOOKED_AT[kind]
    roles: dict[str, Any] = {"quasi_identifiers": ["age"]}
    assert released(with_x(column), **roles, one_row_per_person="x").audit.passed
    assert released(with_x(column), **roles, identifiers=["x"]).audit.passed
    one = pa.array([True] * (N - 1) + [False])
    twice = (
        pa.compute.if_else(one, pa.compute.run_end_decode(column), column[0].as_py())
        if (kind == "runs")
        else pa.concat_arrays([column[: N - 1], column[:1]])
    )
    with pytest.raises(InfeasibleError, match="column x repeats or is missing"):
        released(with_x(twice), **roles, one_row_per_person="x")
    found = released(with_x(twice), **roles, one_row_per_person=None, unit=["x"])
    assert sum(size * n for size, n in found.audit.sizes) == N
    assert found.config.unit == ("x",)


def test_an_identity_is_found_in_a_released_column() -> None:
    data = people(IDS).assign(ill=[str(each).upper() for each in IDS])
    given: dict[str, Any] = {"quasi_identifiers": ["age"], "identifiers": ["x"]}
    with pytest.raises(InfeasibleError, match="shares more values with column x"):
        released(data, **given)


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
def test_such_a_column_is_not_released(role: str) -> None:
    given: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"]}
    given[role] = [*given.get(role, []), "x"]
    with pytest.raises(ConfigError, match=r"column x: type extension<arrow.uuid> is not supp"):
        released(people(IDS), **given)


# --- columns without a value


@pytest.mark.parametrize(
    "data",
    [
        people(pd.Series([None] * N, dtype=object)),
        people(np.nan),
        pl.from_pandas(people(0)).with_columns(pl.lit(None).alias("x")),
        with_x(pa.nulls(N)),
    ],
    ids=["object", "NaN", "polars", "arrow"],
)
def test_a_column_without_a_value(data: Any) -> None:
    found = released(data)
    table = found.table
    x = table.column("x").to_pylist() if isinstance(table, pa.Table) else [*table["x"]]
    assert all(pd.isna(each) for each in x)
    assert anonlib.audit(table, found.config).passed
    with pytest.raises(InfeasibleError, match="column x has 0"):
        released(data, quasi_identifiers=["age"], sensitive=["x"])


# --- what is refused


UNION = pa.UnionArray.from_sparse(
    pa.array([0] * N, pa.int8()), [pa.array([i % 3 for i in range(N)])]
)


class Stage(enum.Enum):
    LOW = 1


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive", "identifiers"])
@pytest.mark.parametrize(
    ("x", "says"),
    [
        (UNION, "sparse_union.* make a column of each of its types"),
        (pa.array([[1, 2]] * N), "list.* make columns of its parts"),
        (pa.array([1] * N, pa.duration("s")), r"duration.*pandas and polars `\.dt\.total_seconds"),
        (pa.array([1] * N, pa.time32("s")), r"time32.*\.astype\(str\).*\.cast\(pl\.String\)"),
    ],
    ids=["union", "list", "duration", "time"],
)
def test_types_that_nothing_reads(x: pa.Array, says: str, role: str) -> None:
    """Each says at once what helps, whatever the role."""
    given: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"]}
    given[role] = [*given.get(role, []), "x"]
    with pytest.raises(ConfigError, match=f"^column x: type {says}") as error:
        released(with_x(x), **given)
    assert "insensitive or dropped" not in str(error.value)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        ([1, "a"] * (N // 2), "not of one type that Arrow has, but of int, str;"),
        ([1j] * N, r"complex numbers; make two columns of them \(`\.real`, `\.imag`\)"),
        ([Stage.LOW] * N, "Arrow has no type for values of Stage; convert them"),
        ([10**30] * N, r"whole numbers of more than 64 bits; make them text"),
        (["\ud800"] * N, "texts that are not Unicode"),
    ],
    ids=["mixed", "complex", "enum", "large", "surrogates"],
)
def test_values_that_arrow_has_not(x: list[Any], says: str) -> None:
    with pytest.raises(InputError, match=f"^column x: .*{says}"):
        released(people(x))


def test_periods_are_told() -> None:
    periods = pd.Series(pd.period_range("2020-01", periods=N, freq="M"))
    with pytest.raises(ConfigError, match=r"column x: .*dt\.to_timestamp"):
        released(people(periods))


def test_sparse_columns_are_read() -> None:
    data = people(pd.arrays.SparseArray([i % 3 for i in range(N)]))
    assert {*released(data).table["x"]} <= {0, 1, 2}


@pytest.mark.parametrize("kind", [pl.Int128, pl.Object])
def test_columns_of_polars_are_named(kind: Any) -> None:
    """Arrow would get the addresses of objects."""
    x = pl.Series("x", [object()] * N, dtype=kind) if kind is pl.Object else pl.lit(1, kind)
    data = pl.from_pandas(people(0)).with_columns(x.alias("x"))
    with pytest.raises(InputError, match=f"^column x: Arrow has no type for {kind.__name__}; cast"):
        released(data, quasi_identifiers=["age"], identifiers=["x"])


# --- types that come back

NUMBERS = pa.array([i % 7 for i in range(N)], pa.int64())
LETTERS = pa.array(["xyz"[i % 3] for i in range(N)])
OWN = {
    "dictionary": LETTERS.dictionary_encode(),
    "numbers in a dictionary": NUMBERS.dictionary_encode(),
    "large": LETTERS.cast(pa.large_string()),
    "view": LETTERS.cast(pa.string_view()),
    "decimal": pa.array([Decimal(i % 7) for i in range(N)], pa.decimal32(7, 2)),
    "date64": NUMBERS.cast(pa.int32()).cast(pa.date32()).cast(pa.date64()),
    "seconds": NUMBERS.cast(pa.timestamp("s")),
    "zone": NUMBERS.cast(pa.timestamp("us", "Europe/Berlin")),
    "unsigned": NUMBERS.cast(pa.uint64()),
    "half": NUMBERS.cast(pa.float32()).cast(pa.float16()),
}


@pytest.mark.parametrize("kind", OWN)
def test_types_of_arrow_come_back(kind: str, tmp_path: Path) -> None:
    column = OWN[kind]
    found = released(with_x(column), quasi_identifiers=["age"], sensitive=["x"])
    assert found.table.schema.field("x").type == column.type
    assert sorted(found.table.column("x").to_pylist()) == sorted(column.to_pylist())
    assert anonlib.audit(found.table, found.config).passed
    found.to_parquet(tmp_path / "t.parquet")
    found.certificate(tmp_path / "t.html")
    for table in (found.table, tmp_path / "t.parquet"):
        states = {line.state for line in anonlib.verify(tmp_path / "t.html", table)}
        assert "contradicted" not in states
    kept = pq.read_schema(tmp_path / "t.parquet").field("x").type
    assert not pa.types.is_dictionary(kept)


def test_categories_of_arrow() -> None:
    """Those that no released row has are not released, and tell nothing of the order of rows."""
    indices = pa.array([2, 1] * (N // 2), pa.int8())
    names = pa.array(["no", "b", "a", "none"])
    for ordered, there in ((True, ["b", "a"]), (False, ["a", "b"])):
        coded = pa.DictionaryArray.from_arrays(indices, names, ordered=ordered)
        found = released(with_x(coded), quasi_identifiers=["age"], sensitive=["x"]).table
        assert found.schema.field("x").type == coded.type
        assert found.column("x").chunk(0).dictionary.to_pylist() == there


@pytest.mark.parametrize("recoder", ["interval", "set"])
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_times_within_values_have_the_zone_of_their_column(
    recoder: str, library: str, tmp_path: Path
) -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=N, freq="D", tz="Asia/Tokyo"))
    frame = people(days.dt.as_unit("us"))
    data: Any = frame
    if library != "pandas":
        data = pa.Table.from_pandas(frame, preserve_index=False)
        data = pl.from_arrow(data) if library == "polars" else data
    scales = {"x": "nominal" if recoder == "set" else "continuous"}
    found = released(data, recoder, scales=scales)
    table = found.table
    first = table.column("x")[0].as_py() if library == "arrow" else table["x"][0]
    time = first[0] if recoder == "set" else first["lower"]
    assert time.utcoffset().total_seconds() == 9 * 3600
    assert time.hour == 0
    found.to_parquet(tmp_path / "t.parquet")
    found.certificate(tmp_path / "t.html")
    kind = pq.read_schema(tmp_path / "t.parquet").field("x").type
    part = kind.value_type if recoder == "set" else kind.field(0).type
    assert part == pa.timestamp("us", "UTC")
    for each in (table, tmp_path / "t.parquet"):
        assert anonlib.audit(each, found.config).passed
        states = {line.state for line in anonlib.verify(tmp_path / "t.html", each)}
        assert "contradicted" not in states


def test_cut_times_are_told() -> None:
    times = pd.Timestamp("2020-01-01") + pd.to_timedelta([i % 2 * 7 for i in range(N)], "ns")
    found = released(people(times), quasi_identifiers=["age"], insensitive=["x"], k=2)
    assert "column x: nanoseconds are cut to microseconds, as Spark has them" in found.notes
    found = released(people(times.floor("us")), quasi_identifiers=["age"], insensitive=["x"])
    assert not [note for note in found.notes if "nanoseconds" in note]
