"""What each recoder releases, in tables of every kind: audited, confirmed and written."""

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.local.frames import to_arrow
from anonlib.table.hashes import hash_rows

N = 60
SIZES = ["S", "M", "L"]
TEXTS: list[str | None] = [None, "", "ä", "a text that is longer than twelve bytes"]


def people() -> pa.Table:
    """Each age ten times; most ages with all sizes and towns."""
    columns = {
        "age": [i // 10 for i in range(N)],
        "born": [date(1970, 1, 1) + timedelta(7 * (i % 13)) for i in range(N)],
        "size": [SIZES[i % 3] for i in range(N)],
        "town": [["Bonn", "Cork", "Ulm"][i % 3] for i in range(N)],
        "ill": ["ab"[i % 2] for i in range(N)],
    }
    for name in ("born", "size", "town"):
        columns[name] = [None if i % 10 == 9 else x for i, x in enumerate(columns[name])]
    return pa.table(columns)


def to_enums(table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(table).cast({"size": pl.Enum(SIZES), "town": pl.Categorical})


def to_categories(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    sizes = pd.Categorical(frame["size"], SIZES, ordered=True)
    return frame.assign(size=sizes, town=frame["town"].astype("category"))


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "categories": to_categories,
    "polars": pl.DataFrame,
    "enums": to_enums,
    "arrow": lambda table: table,
}
RECODERS = {
    "age": ["centroid", "interval", "median", "suppress"],
    "born": ["centroid", "interval", "median"],
    "size": ["interval", "median", "mode", "set", "suppress"],
    "town": ["lca", "mode", "proportional", "set"],
}


def release(data: Any, name: str, recoder: str, towns: Path) -> Any:
    towns.write_text("Bonn,Germany,*\nCork,Ireland,*\nUlm,Germany,*\n")
    roles: dict[str, dict[str, Any]] = {
        "age": {"scale": "continuous"},
        "born": {"scale": "continuous"},
        "size": {"scale": "ordinal", "order": SIZES},
        "town": {"scale": "nominal", "hierarchy": str(towns)},
    }
    attributes: dict[str, Any] = {
        column: {"role": "quasi_identifier", **role}
        if column in ("age", name)
        else {"role": "drop"}
        for column, role in roles.items()
    }
    config = {
        "attributes": {**attributes, "ill": {"role": "sensitive"}},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
        "kernel": {"type": "mdav"},
        "recode": {"columns": {name: recoder}},
        "seed": 1,
    }
    return anonlib.anonymize(data, config)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("name", "recoder"), [(name, each) for name, those in RECODERS.items() for each in those]
)
def test_each_release_in_each_kind_of_table(
    name: str, recoder: str, make: Callable[[pa.Table], Any], tmp_path: Path
) -> None:
    found = release(make(people()), name, recoder, tmp_path / "towns.csv")
    file = tmp_path / "t.parquet"
    found.to_parquet(file)
    found.save_record(tmp_path / "t.json")
    found.certificate(tmp_path / "t.html")
    for table in (found.table, file, pl.from_arrow(pq.read_table(file))):
        assert anonlib.audit(table, found.config).passed
        lines = anonlib.verify(tmp_path / "t.html", table, record=tmp_path / "t.json")
        assert {line.state for line in lines} == {"confirmed"}
    same = release(people(), name, recoder, tmp_path / "towns.csv").table
    back = to_arrow(found.table, same.column_names)
    assert sorted(map(str, back.to_pylist())) == sorted(map(str, same.to_pylist()))


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(TEXTS[1:])], ids=str)
@pytest.mark.parametrize("form", ["value", "list", "struct", "structs"])
def test_texts_of_polars_hash_as_texts(form: str, dtype: Any) -> None:
    """At any depth: their type in Arrow is a view, or a dictionary of views."""
    values: list[Any] = [TEXTS[i % 4] for i in range(N)]
    if form == "list":
        values, dtype = [[each, each] for each in values], pl.List(dtype)
    if form in ("struct", "structs"):
        values, dtype = [{"a": each} for each in values], pl.Struct({"a": dtype})
    if form == "structs":
        values, dtype = [[each] for each in values], pl.List(dtype)
    column = pa.table(pl.DataFrame({"x": values}, {"x": dtype})).column(0).combine_chunks()
    plain = pa.array(values)
    assert column.type != plain.type
    assert (hash_rows([column]) == hash_rows([plain])).all()
    assert (hash_rows([column[7:]]) == hash_rows([plain[7:]])).all()
