"""CSV tables for fuzzing releases: each publishes a table that passes its audit and has every
row that is not suppressed, or ends with a user error."""

from pathlib import Path
from typing import Any

from fuzz_inputs import MARK, texts
from fuzz_targets import Target
from hypothesis import strategies as st

import anonlib
from anonlib import pipeline
from anonlib.spark.session import session
from tests.quick import quick

HEADER = "name,wage,city,illness"
N_ROWS = 40
#: Ways that a table is read.
OPTIONS: list[dict[str, str]] = [
    {"header": "true"},
    {"header": "false"},
    {"header": "true", "multiLine": "true"},
    {"header": "true", "mode": "DROPMALFORMED"},
    {"header": "true", "mode": "FAILFAST"},
    {"header": "true", "encoding": "UTF-16"},
    {"header": "true", "encoding": "ISO-8859-1"},
    {"header": "true", "sep": ";"},
    {"header": "true", "quote": "", "escape": ""},
    {"header": "true", "inferSchema": "true"},
    {"header": "true", "nullValue": "?", "nanValue": "NaN"},
    {"header": "true", "enforceSchema": "false"},
    {"header": "true", "comment": "#", "ignoreLeadingWhiteSpace": "true"},
]


def _table() -> bytes:
    rows = (f"{MARK}n{i},{20 + i % 7},{MARK}c{i % 3},{MARK}i{i % 4}" for i in range(N_ROWS))
    return "\n".join([HEADER, *rows, ""]).encode()


def _seeds() -> list[bytes]:
    table = _table()
    first, _, rest = table.partition(b"\n")
    wide = b",".join([first, *(b"x%d" % i for i in range(2_000))])
    return [
        table,
        b"",
        b"\n\n\n",
        first,
        first + b"\n",
        b"\xef\xbb\xbf" + table,
        table.replace(b"\n", b"\r\n"),
        table.replace(b"\n", b"\r"),
        table.decode().encode("utf-16"),
        b"name,wage,wage,illness\n" + rest,
        b"name,wage,Wage,illness\n" + rest,
        b"name,wage,,\n" + rest,
        b'name,"wa.ge`",city,illness\n' + rest,
        wide + b"\n" + rest,
        table.replace(b",20,", b",-0.0,").replace(b",21,", b",1e309,"),
        table.replace(b",20,", b",NaN,").replace(b",21,", b",,"),
        table.replace(b",20,", b",9223372036854775808,"),
        table.replace(b",20,", b",0001-01-01,"),
        table.replace(MARK.encode() + b"c", b'"' + MARK.encode() + b'c""'),
    ]


def config(folder: Path, options: dict[str, str]) -> dict[str, Any]:
    quasi = {"role": "quasi_identifier"}
    return {
        "source": {"format": "csv", "path": str(folder / "table.csv"), "options": options},
        "attributes": {
            "name": {"role": "identifier"},
            "wage": {**quasi, "scale": "continuous"},
            "city": {**quasi, "scale": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": "l_diversity", "l": 2, "attribute": "illness"},
            ],
            "suppression_limit": 0.3,
        },
        "release": {
            "path": str(folder / "out" / "table"),
            "mode": "overwrite",
            "acknowledge_overwrite": True,
        },
    }


def released(given: tuple[bytes, int], folder: Path) -> None:
    """Releases one table; raises AssertionError if rows are lost or the audit fails."""
    data, way = given
    (folder / "table.csv").write_bytes(data)
    options = OPTIONS[way]
    checked = anonlib.parse(config(folder, options))
    spark = session(checked.spark.conf)
    result = pipeline.release(checked)
    frame = spark.read.options(**options).csv(str(folder / "table.csv"))
    # As often as Spark reads it: what it drops as malformed depends on the columns asked for.
    there = len(frame.select("wage", "city", "illness").collect())
    published = spark.read.format("delta").load(result.table).count()
    if (result.n_rows_in, published) != (there, there - result.n_suppressed):
        raise AssertionError("rows in are not rows out and rows suppressed")
    if not pipeline.audit_delta(result.table, checked).passed:
        raise AssertionError("the audit of the published table fails")


def csv_target() -> Target:
    """The target; its session is started by its first try."""
    inputs = st.tuples(
        st.sampled_from(_seeds()) | texts(_seeds()), st.sampled_from(range(len(OPTIONS)))
    )
    return Target("csv", inputs, released, cpu_seconds=120.0, seconds=300.0, spark=True)


def start(folder: Path) -> None:
    """A small session whose files are all below `folder`."""
    session(quick(folder))
