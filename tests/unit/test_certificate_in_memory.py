"""The certificate of a release in memory, against the table that was saved. No Spark is needed."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

import anonlib
from anonlib.cli.show.line_verdicts import print_lines
from anonlib.errors import InputError
from anonlib.in_hand.released_table import Release
from anonlib.pages.seal import Facts, open_seal
from anonlib.run.confirmation import LineVerdict
from anonlib.table.type_words import may_be_same, spell_column, spell_type
from tests.unit.test_anonymize import people, released

#: What a table tells of its certificate.
TOLD = {
    *["rows", "classes", "rows of the smallest class", "rows and values of the table"],
    *["largest chance to be found by class size", "mean chance to be found by class size"],
    "5 actual risk",
    *["k_anonymity k=5", "l_diversity l=2 attribute=illness"],
}
#: The illness `none` is a value: a table can't tell which other texts counted as missing.
USUAL = {"missing_tokens": ["?", ""]}


@dataclass(frozen=True)
class Certified:
    """A release, and the files that were written of it."""

    release: Release
    table: Path
    certificate: Path
    record: Path


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return save(
        released(
            people(),
            privacy=USUAL,
            evaluate={"measures": ["marginals"]},
            accountability={"approver": "data office", "purpose": "a study"},
            context={"access": "contract", "expires": "2999-11-30"},
        ),
        tmp_path_factory.mktemp("certified"),
    )


def save(release: Release, folder: Path) -> Certified:
    paths = folder / "k=5" / "people.parquet", folder / "people.html", folder / "record.json"
    paths[0].parent.mkdir()  # the name of a folder is no column
    release.to_parquet(paths[0])
    release.certificate(paths[1])
    release.save_record(paths[2])
    return Certified(release, *paths)


def states(lines: Sequence[LineVerdict]) -> dict[str, set[str]]:
    """By state: the first texts of lines."""
    found: dict[str, set[str]] = {}
    for line in lines:
        found.setdefault(line.state, set()).add(line.name)
    return found


def test_what_the_table_confirms(certified: Certified) -> None:
    for table in (certified.table, certified.release.table):
        found = states(anonlib.verify(certified.certificate, table))
        assert found.keys() == {"confirmed", "unsaid"}
        assert found["confirmed"] == TOLD
        assert "purpose" in found["unsaid"]
    lines = anonlib.verify(certified.certificate, certified.table, record=certified.record)
    assert states(lines).keys() == {"confirmed"}


def test_what_it_says(certified: Certified) -> None:
    page = certified.certificate.read_text()
    said = dict(cells[:2] for cells in open_seal(page).lines().values())
    assert open_seal(page).content["title"] == "Certificate of a release in memory"
    assert (said["approved by"], said["purpose"]) == ("data office", "a study")
    assert (said["source"], said["rows"]) == ("a table in memory; context.data can name it", "400")
    assert said["released"].startswith("20")
    assert said["version of the table"] == "not versioned"
    assert said["earlier releases"].startswith("no account is kept")
    assert said["6.3.2 transparency, stakeholders"] == "not covered"  # there is no manifest
    assert said["private record"] == sha256(certified.record.read_bytes()).hexdigest()
    assert said["config"] == certified.release.record["config_sha256"]
    for value in ("Aberdeen", "Person 0", "flu"):
        assert value not in page


def test_a_source_that_was_not_read(tmp_path: Path) -> None:
    """A whole config may name one, and a table to overwrite: neither is of this release."""
    config = yaml.safe_load(released(people()).config_yaml)
    config["source"] = {"format": "csv", "path": "unread.csv"}
    config["release"] = {"path": "out/unwritten", "mode": "overwrite"}
    anonlib.anonymize(people(), config).certificate(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "unread" not in page
    assert "unwritten" not in page


def test_the_page_of_the_record(certified: Certified, tmp_path: Path) -> None:
    """The record makes the same page, as that of a run in Spark does."""
    place = anonlib.certify(certified.record, out=tmp_path / "again.html")
    assert Path(place).read_text() == certified.certificate.read_text()
    page = anonlib.report(certified.record, out=tmp_path / "report.html")
    assert Path(page).read_text() == certified.release.report()


def add_row(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, rows[:1]], ignore_index=True)


def remove_row(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[1:]


def swap_row(rows: pd.DataFrame) -> pd.DataFrame:
    """One row less, and another twice."""
    return pd.concat([rows[1:], rows[1:2]], ignore_index=True)


def change_value(rows: pd.DataFrame) -> pd.DataFrame:
    rows.loc[0, "illness"] = next(x for x in ("flu", "cold") if x != rows.loc[0, "illness"])
    return rows


@pytest.mark.parametrize("change", [add_row, remove_row, swap_row, change_value])
def test_a_table_changed_by_one_row(
    certified: Certified, tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    other = change(pd.read_parquet(certified.table, partitioning=None))
    other.to_parquet(tmp_path / "other.parquet")
    for table in (tmp_path / "other.parquet", other):
        wrong = states(anonlib.verify(certified.certificate, table))["contradicted"]
        assert "rows and values of the table" in wrong
        assert ("rows" in wrong) == (change in (add_row, remove_row))


def test_the_order_of_rows_is_no_matter(certified: Certified) -> None:
    other = certified.release.table.sample(frac=1, random_state=1).reset_index(drop=True)
    assert "contradicted" not in states(anonlib.verify(certified.certificate, other))


def test_other_columns(certified: Certified) -> None:
    table = certified.release.table
    wrong = states(anonlib.verify(certified.certificate, table.rename(columns={"age": "years"})))
    assert {"age", "years"} <= wrong["contradicted"]
    for other in (table.drop(columns="age"), table.assign(extra=1)):
        wrong = states(anonlib.verify(certified.certificate, other))["contradicted"]
        assert "rows and values of the table" in wrong


def test_values_under_other_names(certified: Certified, tmp_path: Path) -> None:
    """Names that were exchanged are another table; columns in another order are the same one."""
    table = certified.release.table
    renamed = table.rename(columns={"city": "illness", "illness": "city"})
    exchanged = renamed[[*table.columns]]
    for other in (renamed, exchanged, pl.from_pandas(renamed), pa.Table.from_pandas(renamed)):
        wrong = states(anonlib.verify(certified.certificate, other, record=certified.record))
        assert "rows and values of the table" in wrong["contradicted"]
    in_other_order = table[[*table.columns[::-1]]]
    in_other_order.to_parquet(tmp_path / "other.parquet")
    for other in (in_other_order, tmp_path / "other.parquet"):
        found = states(anonlib.verify(certified.certificate, other, record=certified.record))
        assert found.keys() == {"confirmed"}


def test_a_certificate_without_the_order_of_columns(
    certified: Certified, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As earlier versions made it: it can't tell which values have which name, and says so."""
    record = json.loads(certified.record.read_text())
    assert record.pop("table_columns") == [*certified.release.table.columns]
    assert len(record.pop("table_types")) == len(certified.release.table.columns)
    (tmp_path / "record.json").write_text(json.dumps(record))
    page = anonlib.certify(tmp_path / "record.json", out=tmp_path / "c.html")
    for given in ({}, {"record": tmp_path / "record.json"}):
        found = states(anonlib.verify(page, certified.table, **given))
        assert "rows and values of the table" in found["confirmed"]
        assert {"which values have which name", "the types of columns"} <= found["unsaid"]
        assert "contradicted" not in found
    for given, hint in (({}, True), ({"record": tmp_path / "record.json"}, False)):
        print_lines(anonlib.verify(page, certified.table, **given))
        printed = capsys.readouterr().out
        assert "the types of columns" in printed
        assert ("purpose" in printed) is not hint  # the table can't tell it
        assert ("--record RECORD" in printed) is hint
    content = json.loads(open_seal(certified.certificate.read_text()).text)
    for key, value in (
        *(("digest_columns", names) for names in (7, ["age", 7], ["age", "age"])),
        *(("digest_types", types) for types in (7, ["date"], [7] * 5)),
    ):
        forged = {**content, "audit": {**content["audit"], key: value}}
        with pytest.raises(InputError, match="damaged"):
            open_seal(Facts(forged).page())


def test_values_of_other_types_with_the_same_bits(tmp_path: Path) -> None:
    """Their hashes are equal, and they are other values."""
    random = np.random.default_rng(1)
    cents = random.integers(100_000, 100_020, 300)
    data = pa.table(
        {
            "age": random.integers(18, 60, 300),
            "pay": pa.array([Decimal(int(each)) / 100 for each in cents], pa.decimal128(10, 2)),
            "amount": random.choice([1.5, 2.0, -5.0], 300),
            "well": random.choice([True, False], 300),
            "day": pa.array(random.integers(0, 20, 300).astype(np.int32)).view(pa.date32()),
        }
    )
    release = anonlib.anonymize(
        data,
        quasi_identifiers=["age"],
        insensitive=["pay", "amount", "well", "day"],
        recode={"columns": {"age": "interval"}},
        one_row_per_person=True,
        k=5,
        privacy={"acknowledge_unique": True},
    )
    saved, (low, high) = save(release, tmp_path), release.table["age"].combine_chunks().flatten()

    def states_with(name: str, values: pa.Array) -> set[str]:
        table = release.table
        table = table.set_column(table.column_names.index(name), name, values)
        pq.write_table(table, tmp_path / "other.parquet")
        lines = anonlib.verify(saved.certificate, tmp_path / "other.parquet", record=saved.record)
        return {line.state for line in lines}

    table = {name: release.table[name].combine_chunks() for name in release.table.column_names}
    hundredfold = pc.multiply(table["pay"], 100).cast(pa.int64())
    small = pa.array([each.scaleb(-3) for each in table["pay"].to_pylist()], pa.decimal128(10, 5))
    for name, values in (
        ("pay", hundredfold),
        ("pay", hundredfold.cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 0))),
        ("pay", small),
        ("amount", pa.array(table["amount"].to_numpy().view(np.int64))),
        ("well", table["well"].cast(pa.int32())),
        ("day", table["day"].view(pa.int32())),
        ("age", pa.StructArray.from_arrays([low, high], ["upper", "lower"])),
        (
            "age",
            pa.StructArray.from_arrays([low.view(pa.timestamp("us")), high], ["lower", "upper"]),
        ),
    ):
        assert "contradicted" in states_with(name, values), (name, values.type)
    wider = table["pay"].cast(pa.decimal128(15, 2))
    texts = pa.array([each.as_py() for each in table["day"]], pa.date64())
    for name, values in (("pay", wider), ("day", texts), ("well", table["well"])):
        assert states_with(name, values) == {"confirmed"}


def test_a_certificate_that_contradicts_itself(certified: Certified) -> None:
    """A forger seals it anew: what is counted must be what its lines say."""
    facts = open_seal(certified.certificate.read_text())

    def forge(change: Callable[[Any, Any], None], table: Any = certified.table) -> dict[str, Any]:
        content = json.loads(facts.text)
        sections = content["sections"]
        lines = {
            (line["id"].rpartition("-")[0], line["cells"][0]): (section["lines"], line)
            for section in sections
            for line in section["lines"]
        }
        change(content["audit"], lines)
        forged = certified.certificate.with_name("forged.html")
        forged.write_text(Facts(content).page())
        return states(anonlib.verify(forged, table))

    def narrow(audit: Any, _: Any) -> None:
        audit["quasi_identifiers"] = audit["quasi_identifiers"][:1]

    def widen(_: Any, lines: Any) -> None:
        lines["column", "illness"][1]["cells"][1] = "quasi-identifier"

    def count_rows(_: Any, lines: Any) -> None:
        lines["data", "persons"][1]["cells"][1] = "unit of 1 column: name"

    def rename(audit: Any, _: Any) -> None:
        audit["columns"] = [*audit["columns"], "other"]

    for change, what in (
        (narrow, "quasi_identifiers"),
        (widen, "quasi_identifiers"),
        (count_rows, "persons"),
        (rename, "columns"),
    ):
        assert f"what is counted: {what}" in forge(change)["contradicted"]

    def forget_types(audit: Any, _: Any) -> None:
        audit["digest_types"] = [None] * len(audit["digest_types"])

    assert "the types of columns" in forge(forget_types)["unsaid"]

    def drop_types(audit: Any, _: Any) -> None:
        del audit["digest_types"]

    table = certified.release.table.assign(illness=None)  # its type does not matter, others' do
    assert "the types of columns" in forge(drop_types, table)["unsaid"]
    for cells in ([], [7], ["column", 7]):
        content = json.loads(facts.text)
        content["sections"][0]["lines"][0]["cells"] = cells
        with pytest.raises(InputError, match="damaged"):
            open_seal(Facts(content).page())

    def shorten(_: Any, lines: Any) -> None:
        for _, line in lines.values():
            del line["cells"][1:]

    assert "what is counted: quasi_identifiers" in forge(shorten)["contradicted"]

    told = {
        ("digest", "rows and values of the table"),
        ("verdict", "k_anonymity k=5"),
        ("data", "rows of the smallest class"),
    }

    def leave_out(_: Any, lines: Any) -> None:
        for key in told:
            section, line = lines[key]
            section.remove(line)

    assert {name for _, name in told} <= forge(leave_out)["unsaid"]


def test_words_of_types() -> None:
    texts = pa.dictionary(pa.int8(), pa.string())
    assert spell_type(texts) == spell_type(pa.large_string()) == spell_type(pa.string_view())
    ends = [("lower", pa.int32()), ("upper", pa.int64())]
    assert may_be_same(spell_type(pa.struct(ends)), spell_type(pa.struct([*dict(ends).items()])))
    assert not may_be_same(spell_type(pa.struct(ends)), spell_type(pa.struct(ends[::-1])))
    assert may_be_same(spell_type(pa.list_(pa.null())), spell_type(pa.list_(pa.date32())))
    assert not may_be_same(spell_type(pa.list_(pa.int32())), spell_type(pa.list_(pa.date32())))
    assert may_be_same(spell_column(pa.chunked_array([[None, None]], pa.float64())), "date")


def test_categories_of_polars(certified: Certified) -> None:
    table = pl.from_pandas(certified.release.table)
    words = table["city"].unique().drop_nulls()
    for kind in (pl.Categorical, pl.Enum(words)):
        lines = anonlib.verify(certified.certificate, table.with_columns(pl.col("city").cast(kind)))
        assert states(lines)["confirmed"] == TOLD


def test_an_index_is_a_column(certified: Certified) -> None:
    """As every writer of pandas makes it."""
    names = pd.Index([f"RAW{i}" for i in range(400)], name="name")
    lines = anonlib.verify(certified.certificate, certified.release.table.set_index(names))
    assert {"name", "rows and values of the table"} <= states(lines)["contradicted"]
    assert "RAW" not in str(lines)


def test_a_certificate_changed_by_one_digit(certified: Certified, tmp_path: Path) -> None:
    page, other = certified.certificate.read_text(), tmp_path / "other.html"
    places = [found.start() for found in re.finditer(r"\d", page)]
    for place in places[:: len(places) // 12]:
        other.write_text(f"{page[:place]}{(int(page[place]) + 1) % 10}{page[place + 1 :]}")
        try:
            found = states(anonlib.verify(other, certified.table))
        except InputError:  # it is no certificate any more
            continue
        assert found["contradicted"], page[place - 40 : place + 40]


def test_facts_that_were_sealed_again(certified: Certified, tmp_path: Path) -> None:
    """The table tells, or the record."""
    content = json.loads(open_seal(certified.certificate.read_text()).text)
    for section in content["sections"]:
        for line in section["lines"]:
            forged = {"rows": "401", "purpose": "sale"}
            line["cells"][1] = forged.get(line["cells"][0], line["cells"][1])
    (tmp_path / "forged.html").write_text(Facts(content).page())
    given = tmp_path / "forged.html", certified.table
    assert states(anonlib.verify(*given))["contradicted"] == {"rows"}
    wrong = states(anonlib.verify(*given, record=certified.record))["contradicted"]
    assert wrong == {"rows", "purpose", "the page as a whole"}


def test_rows_that_were_changed_before_it_was_written(tmp_path: Path) -> None:
    """It is of the rows that the audit has seen."""
    found = released(people())
    found.table.loc[0, "illness"] = "another"
    (tmp_path / "a").mkdir()
    changed = save(found, tmp_path / "a")
    wrong = states(anonlib.verify(changed.certificate, changed.table))["contradicted"]
    assert "rows and values of the table" in wrong


def to_polars(data: pd.DataFrame) -> pl.DataFrame:
    return pl.from_pandas(data)


def to_arrow(data: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(data, preserve_index=False)


@pytest.mark.parametrize("make", [pd.DataFrame, to_polars, to_arrow])
def test_tables_of_all_kinds(tmp_path: Path, make: Callable[[pd.DataFrame], Any]) -> None:
    """Saved by anonlib, or by the table's own library; with sets, times, missing values."""
    data = people()
    data["age"] = data["age"].where(data["age"] > 30).astype("Int64")
    data["city"] = data["city"].where(data["age"] > 25)
    data["born"] = data["born"].dt.tz_localize("UTC")
    data["flag"] = [None, True, False, True] * 100
    found = released(
        make(data),
        quasi_identifiers=["age", "wage", "city", "born"],
        insensitive=["flag"],
        recode={"columns": {"city": {"type": "set", "form": "array"}, "wage": "interval"}},
        privacy={**USUAL, "acknowledge_unique": ["flag"]},
    )
    saved = save(found, tmp_path)
    own = tmp_path / "own.parquet"
    if isinstance(found.table, pd.DataFrame):
        found.table.to_parquet(own)
    elif isinstance(found.table, pl.DataFrame):
        found.table.write_parquet(own)
    else:
        pq.write_table(found.table, own)
    for table in (saved.table, own, found.table):
        states_found = states(anonlib.verify(saved.certificate, table))
        assert "contradicted" not in states_found
        assert states_found["confirmed"] == TOLD


def test_persons_with_many_rows(tmp_path: Path) -> None:
    """They are not counted in a table that does not have them."""
    data = people().assign(patient=[i // 3 for i in range(400)])
    saved = save(released(data, unit=["patient"], one_row_per_person=None), tmp_path)
    found = states(anonlib.verify(saved.certificate, saved.table))
    assert "contradicted" not in found
    assert "k_anonymity k=5" in found["unsaid"]


def test_files(certified: Certified, tmp_path: Path) -> None:
    found, place = certified.release, tmp_path / "c.html"
    found.certificate(place)
    found.certificate(place)  # a notebook's cell runs again and again
    assert place.stat().st_mode & 0o777 == 0o600
    assert certified.record.stat().st_mode & 0o777 == 0o600
    place.write_text("mine")
    with pytest.raises(InputError, match=r"c\.html: is there already, and is not a certificate"):
        found.certificate(place)
    with pytest.raises(InputError, match="is there already"):
        found.save_record(place)
    with pytest.raises(InputError, match=r"nowhere/c\.html: there is no folder"):
        found.certificate(tmp_path / "nowhere" / "c.html")
    assert [each.name for each in tmp_path.iterdir()] == ["c.html"]


def test_pdf(certified: Certified, tmp_path: Path) -> None:
    try:
        import weasyprint  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match="pip install weasyprint"):
            certified.release.certificate(tmp_path / "c.pdf")
        return
    certified.release.certificate(tmp_path / "c.pdf")
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF-")


def test_tables_that_can_not_be_read(certified: Certified, tmp_path: Path) -> None:
    for table, text in (
        (certified.record, r"record\.json: can't be read as Parquet; TABLE is"),
        (7, "a int is not a table"),
        (pa.table({"age": [1]}, pa.schema([("age", pa.time64("us"))])), "can't be hashed"),
    ):
        with pytest.raises(InputError, match=text):
            anonlib.verify(certified.certificate, table)
    with pytest.raises(InputError, match="version: only a Delta table has versions"):
        anonlib.verify(certified.certificate, certified.table, version=1)


def shell(*words: object) -> subprocess.CompletedProcess[str]:
    """The command line where Spark is not installed."""
    code = "import sys; sys.modules['pyspark'] = None; from anonlib.cli import main; "
    code += "sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_command_line_without_spark(certified: Certified, tmp_path: Path) -> None:
    done = shell("verify", certified.certificate, certified.table)
    assert (done.returncode, "9 confirmed, 0 contradicted" in done.stdout) == (0, True), done
    remove_row(certified.release.table).to_parquet(tmp_path / "other.parquet")
    done = shell("verify", certified.certificate, tmp_path / "other.parquet", "--json")
    assert done.returncode == 3, done
    lines = json.loads(done.stdout)
    assert "rows" in {line["name"] for line in lines if line["state"] == "contradicted"}
    done = shell("verify", certified.certificate, tmp_path)
    assert (done.returncode, "pip install 'anonlib[spark]'" in done.stderr) == (1, True), done
