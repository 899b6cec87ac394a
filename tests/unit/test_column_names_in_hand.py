"""A column is read by its very name, in tables of every kind: no name is an expression."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.errors import ConfigError, InfeasibleError, InputError
from anonlib.local.frames import like, require_table, to_arrow, to_arrow_with_index

N = 60


def to_polars(table: pa.Table) -> pl.DataFrame:
    frame = pl.DataFrame(table)
    frame.columns = table.column_names  # of a blank name polars makes another
    return frame


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": to_polars,
    "arrow": lambda table: table,
}
#: Expressions of polars, paths of Arrow, quoted names of Spark, names within this library.
NAMES = [
    "*",
    "^.*$",
    "^sal.*$",
    "a.b",
    ".salary",
    "[0]",
    "`x`",
    "c0",
    "salary ",
    "$..x",
    "count_all",
]
BLANK = ["", " ", "\n"]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    return KINDS[request.param]


def people(**more: Any) -> pa.Table:
    """Other columns are before and after those with the name in question."""
    ills = ["a", "b"] * (N // 2)
    first = {"salary": [*range(N)], "age": [i // 10 for i in range(N)], "ill": ills}
    return pa.table({**first, **more, "last": ["z"] * N})


def test_all_names_at_once(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({name: [i, -i] for i, name in enumerate(["salary", *NAMES, *BLANK])})
    data = require_table(make(table))
    for name in table.column_names:
        read = to_arrow(data, [name])
        assert read.column_names == [name]
        assert read.column(0).to_pylist() == table.column(name).to_pylist()
    assert to_arrow_with_index(data).to_pydict() == table.to_pydict()
    narrow = table.cast(pa.schema([pa.field(name, pa.int8()) for name in table.column_names]))
    back = like(table, make(narrow), table.column_names)
    assert to_arrow(back, table.column_names).schema == narrow.schema
    assert to_arrow(back, table.column_names).to_pydict() == table.to_pydict()


@pytest.mark.parametrize("name", NAMES)
def test_a_release(make: Callable[[pa.Table], Any], name: str, tmp_path: Path) -> None:
    values = [100 + i // 10 for i in range(N)]
    data = make(people(**{name: values}))
    found = anonlib.anonymize(
        data,
        quasi_identifiers=["age", name],
        sensitive=["ill"],
        k=5,
        l=2,
        one_row_per_person=True,
        scales={name: "continuous"},
        recode={"columns": {name: "interval"}},
    )
    released = to_arrow(found.table, [name]).column(0).to_pylist()
    assert Counter((v["lower"], v["upper"]) for v in released) == {(v, v): 10 for v in {*values}}
    found.to_parquet(tmp_path / "t.parquet")
    found.save_record(tmp_path / "t.json")
    found.certificate(tmp_path / "t.html")
    for table in (found.table, tmp_path / "t.parquet", pq.read_table(tmp_path / "t.parquet")):
        assert anonlib.audit(table, found.config).passed
        lines = anonlib.verify(tmp_path / "t.html", table, record=tmp_path / "t.json")
        assert {line.state for line in lines} == {"confirmed"}
    assert anonlib.evaluate(found.config, released=found.table, source=data).audit.passed


@pytest.mark.parametrize("name", NAMES)
def test_persons_are_those_of_the_unit(make: Callable[[pa.Table], Any], name: str) -> None:
    """Each row would be a person of its own by any other column."""
    persons = ["p" if i % 2 else "q" for i in range(N)]
    data = make(people(**{name: persons}))
    arguments: dict[str, Any] = {"quasi_identifiers": ["age"], "unit": [name], "k": 5}
    with pytest.raises(InfeasibleError, match="there are 2"):
        anonlib.anonymize(data, **arguments)
    with pytest.raises(InfeasibleError, match="there are 2"):
        anonlib.suggest(data, **arguments)


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_sees_the_column(make: Callable[[pa.Table], Any], name: str) -> None:
    table = people(**{name: [*range(N)]}).select([name, "age", "last"])
    config = anonlib.anonymize(
        make(people(**{name: ["same"] * N})),
        quasi_identifiers=["age", name],
        k=5,
        one_row_per_person=True,
    ).config
    assert not anonlib.audit(make(table.drop_columns(["last"])), config).passed


@pytest.mark.parametrize("name", BLANK)
def test_blank_names_are_refused(make: Callable[[pa.Table], Any], name: str) -> None:
    data = make(people(**{name: ["p"] * N}))
    with pytest.raises(ConfigError, match="a column name is blank"):
        anonlib.anonymize(data, quasi_identifiers=["age"], k=5, one_row_per_person=True)


def test_blank_names_are_quoted() -> None:
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "", "a", ""])
    with pytest.raises(InputError, match="the same name: a, ''; rename them"):
        require_table(frame)


def test_a_table_that_gives_another_column_is_refused() -> None:
    class Odd(pd.DataFrame):
        def __getitem__(self, key: Any) -> Any:
            return super().__getitem__("b" if key == "a" else key)

    with pytest.raises(InputError, match=r"column 'a'.*another column"):
        to_arrow(Odd({"a": [1], "b": [2]}), ["a"])
