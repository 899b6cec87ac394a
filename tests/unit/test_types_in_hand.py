"""Types of tables in hand: what comes in comes back, and what Arrow or Spark lack is told."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.errors import InputError
from anonlib.table.table_digest import digest_in_memory
from tests.unit.test_anonymize import GIVEN, people, released


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (pl.from_pandas, pl.DataFrame),
        (pa.Table.from_pandas, pa.Table),
        (pa.RecordBatch.from_pandas, pa.Table),
        (lambda frame: duckdb.sql("from frame"), pa.Table),
    ],
)
def test_the_type_that_came_in(make: Any, kind: type) -> None:
    found = released(make(people())).table
    assert isinstance(found, kind)
    expected = released(people()).table
    rows = found.rows() if kind is pl.DataFrame else [tuple(r.values()) for r in found.to_pylist()]
    assert sorted(rows) == sorted(expected.itertuples(index=False, name=None))


def test_the_same_rows_give_the_same_guess_in_every_table() -> None:
    """NaN, the other zero, `?` and blanks are no values."""
    random = np.random.default_rng(1)
    grade = random.integers(0, 12, 400).astype(float)
    grade = np.where(grade == 0, random.choice([0.0, -0.0], 400), grade)
    grade[:40] = np.nan
    note = [None if i < 40 else f"{i} words" for i in range(400)]
    marked = [note[i] or random.choice(["?", "", " "]) for i in range(400)]
    age = random.integers(20, 60, 400)
    tables: list[Any] = [
        pd.DataFrame({"grade": grade, "note": note, "age": age}),
        pl.DataFrame({"grade": grade, "note": note, "age": age}),
        pa.table({"grade": grade, "note": note, "age": age}),
        pa.table({"grade": pa.array(grade, from_pandas=True), "note": note, "age": age}),
        pa.table({"grade": grade, "note": marked, "age": age}),
    ]
    found = [
        anonlib.anonymize(
            table, quasi_identifiers=["grade", "note", "age"], one_row_per_person=True, k=5, seed=1
        ).notes
        for table in tables
    ]
    assert "taken as nominal: grade, note; `scales` can say otherwise" in found[0]
    assert any("column note: unique text" in note for note in found[0])
    assert all(notes == found[0] for notes in found)


@pytest.mark.parametrize("year", [-5, 20020])
def test_years_that_python_has_no_dates_for(year: int) -> None:
    day = np.datetime64(f"{year:05d}-01-01", "us")
    born = people()["born"].to_numpy().astype("datetime64[us]")
    born[:40] = day
    quasi = [*GIVEN["quasi_identifiers"], "born"]
    found = released(people().assign(born=born), quasi_identifiers=quasi)
    assert found.audit.passed
    assert found.report()


def test_years_of_arrow_in_pandas() -> None:
    days = pa.array(np.arange(400) % 9 + 4_000_000, pa.int32()).cast(pa.date32())
    born = pd.Series(days, dtype=pd.ArrowDtype(pa.date32()))
    found = released(people().assign(illness=born), l=2)
    assert found.table["illness"].dtype == born.dtype
    assert found.table["illness"].nunique() == 9


def test_texts_that_are_no_utf_8_are_told() -> None:
    bytes_ = pa.array([b"\xff\xfe", b"flu"] * 200, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 400, bytes_.buffers())
    table = pa.Table.from_pandas(people().drop(columns="illness")).append_column("illness", texts)
    with pytest.raises(InputError, match="column illness: has texts that are not UTF-8"):
        released(table)


def test_a_decimal_of_too_many_digits_is_told() -> None:
    much = [Decimal(10) ** 50 + i for i in range(400)]
    with pytest.raises(InputError, match="column wage: has values of type decimal256"):
        released(people().assign(wage=much))


def test_columns_that_are_not_released_may_be_anything() -> None:
    data = people()
    data["odd"] = [1, "x"] * 200
    data["complex"] = 1j
    assert len(released(data).table) == 400
    wide = pl.from_pandas(people()).with_columns(pl.lit(1).cast(pl.Int128).alias("wide"))
    assert len(released(wide).table) == 400


def test_types_that_pandas_and_polars_have_of_their_own(tmp_path: Path) -> None:
    """They come back, without what no released row has. The file is as without them."""
    data = people()
    towns = ["Nowhere", "Cork", "Bonn", "Aberdeen"]
    ill = data["illness"].mask(data.index % 7 == 0)
    years = data["age"].mask(data.index % 50 == 0)
    pandas = data.assign(
        city=pd.Categorical(data["city"], towns, ordered=True),
        illness=ill.astype("string"),
        age=years.astype("Int64"),
        row=data["row"].astype("uint16"),
        floor=pd.array([1, 2] * 200, "UInt8"),
    )
    polars = (
        pl.from_pandas(pandas)
        .cast({"city": pl.String})
        .cast({"city": pl.Enum(towns), "illness": pl.Categorical, "age": pl.UInt16})
    )
    for frame in (pandas, polars):
        both = {"sensitive": ["illness", "floor"]}
        found = released(frame, **both, recode={"columns": {"age": "median"}})
        table = found.table
        for name in ("age", "illness", "floor"):
            assert table[name].dtype == frame[name].dtype, name
        city = table["city"].dtype
        assert [*city.categories] == towns[1:]
        assert isinstance(city, pl.Enum) or city.ordered
        file = tmp_path / f"{type(frame).__module__[:6]}.parquet"
        found.to_parquet(file)
        assert pq.read_schema(file).field("city").type == pa.string()
        assert pq.read_schema(file).field("floor").type == pa.int16()
        assert anonlib.audit(table, found.config).sizes == found.audit.sizes
        assert digest_in_memory(pq.read_table(file)).text == found.record["table_digest"]
        recode = {"columns": {"city": "set", "age": "interval"}}
        sets = released(frame, recode=recode).table
        assert sets["city"].dtype != frame["city"].dtype
        assert sets["age"].dtype != frame["age"].dtype


def test_categories() -> None:
    data = people().assign(city=pd.Categorical(people()["city"], ["Cork", "Bonn", "Aberdeen", "?"]))
    plain = released(people()).table
    for each in (data, pl.from_pandas(people()).with_columns(pl.col("city").cast(pl.Categorical))):
        found = released(each).table
        frame = found if isinstance(found, pd.DataFrame) else found.to_pandas()
        assert sorted(frame["city"]) == sorted(plain["city"])
        kept = [*frame["city"].dtype.categories]
        assert sorted(kept) == ["Aberdeen", "Bonn", "Cork"]  # none that no row has
        assert each is not data or kept == sorted(kept)


def test_ordered_categories_in_chunks() -> None:
    """A value that does not occur, and null, are no categories of the config."""
    known, indices = pa.array(["S", "M", None, "XXL", "L"]), pa.array([0, 1, 2, 4] * 50, pa.int8())
    part = pa.DictionaryArray.from_arrays(indices, known, ordered=True)
    table = pa.Table.from_pandas(people()).append_column("size", pa.chunked_array([part, part]))
    found = released(table, quasi_identifiers=["age", "size"])
    assert found.config.attributes["size"].order == ("S", "M", "L")
    other = pa.DictionaryArray.from_arrays(indices, pa.array([*"abcde"]), ordered=True)
    column = pa.chunked_array([part, other])
    with pytest.raises(InputError, match="column size: parts of the table have different"):
        released(table.set_column(7, "size", column), quasi_identifiers=["age", "size"])
    cut = people().assign(age=pd.cut(people()["age"], 5))
    with pytest.raises(InputError, match="column age: its categories are neither text nor"):
        released(cut)
    cut["age"] = cut["age"].cat.rename_categories(str)
    assert released(cut).config.attributes["age"].scale == "ordinal"
    numbers = people().assign(size=pd.Categorical([3, 1, 2, 2] * 100, [3, 1, 2], ordered=True))
    with pytest.raises(InputError, match="column size: its categories are numbers in an order"):
        released(numbers, quasi_identifiers=["age", "size"])


def test_times_before_1970_are_those_of_spark() -> None:
    table = pa.table({"at": pa.array([-1500, 1500, None], pa.timestamp("ns"))})
    from anonlib.table.plain_types import to_plain_type

    read = to_plain_type("at", table.column("at"))
    assert read.cast(pa.int64()).to_pylist() == [-2, 1, None]
