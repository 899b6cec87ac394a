"""The ledger without Spark: which entries count, what they prove, and the tokens of persons."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anonlib.config.keys import derive_key_check
from anonlib.errors import ConfigError, InputError, StorageError
from anonlib.run import ledger as module
from anonlib.run.ledger import FOLDED, Entry, Ledger, TableRows, open_ledger
from anonlib.table.columns import key_values
from anonlib.table.schema import Column, Role, Schema, is_atomic
from anonlib.table.table_digest import Digest
from tests.stores import Far

KEY = b"a key of thirty-two bytes, or so"
NOW = Digest(9, 8, 7)
RUNS = frozenset({"one", "two"})
SCHEMA = Schema(
    (
        Column("name", "c0", Role.IDENTIFIER, pa.string(), "string"),
        Column("born", "c1", Role.IDENTIFIER, pa.int64(), "bigint"),
        Column("mail", "c2", Role.IDENTIFIER, pa.string(), "string collate UTF8_LCASE"),
    ),
    unit=("c1", "c2"),
)
ONE = Entry("one", "table", derive_key_check(KEY), (("name", "string"),), None, (), "none", 3)
TWO = replace(ONE, run_id="two", digest=NOW, verdicts=("k", "l"), insensitive="checked")


def rows(digest: Digest, *other: Digest | None) -> TableRows:
    """A table with the columns a and b. other: Its digest by b and a, which is taken once."""
    left = iter(other)
    wanted = [(1, "int"), (0, "string")]
    there = [("a", "string"), ("b", "bigint")]
    return TableRows(there, digest, lambda columns: next(left) if columns == wanted else Digest())


#: Another order of these columns, of which one was narrower.
OTHER = (("b", "int"), ("a", "string"))
THERE = rows(NOW)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Far:
    made = Far()
    monkeypatch.setattr(module, "Storage", lambda spark, path: made)
    return made


def ledger(
    person: bool | str = "name", *, insensitive: tuple[str, ...] = (), fold: bool = False
) -> Ledger:
    spark: Any = None
    return Ledger(spark, Far.root, "table", KEY, person, insensitive=insensitive, fold_case=fold)


def put(store: Far, *entries: Entry) -> None:
    for entry in entries:
        store.files[f"{Far.root}/run-{entry.run_id}/entry.json"] = json.dumps(asdict(entry))


# --- which entries count


def test_entries_of_runs_that_were_committed(store: Far) -> None:
    """Complete ones of this table, and read once."""
    put(store, TWO, ONE, replace(ONE, run_id="half", n_tokens=None))
    put(store, replace(ONE, run_id="other", table="another"))
    for run_id, text in {"torn": "", "cut": '{"run_id": "cu', "old": "{}", "list": "[1]"}.items():
        store.files[f"{Far.root}/run-{run_id}/entry.json"] = text
    made = ledger()
    runs = ["two", "one", "half", "other", "gone", "torn", "cut", "old", "list"]
    assert made.entries(runs) == [ONE, TWO]
    store.files.clear()
    assert made.entries(["two"]) == [TWO]
    put(store, replace(ONE, run_id="three"))
    assert [entry.run_id for entry in made.entries(["three", "one"])] == ["one", "three"]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([ONE, TWO], None),
        ([ONE], "the ledger lacks 1 of the 2 runs that published here"),
        ([ONE, replace(TWO, table="linked")], "the ledger has runs of this table under another p"),
        ([ONE, replace(TWO, key_check="x")], "the ledger was written with another key"),
        ([replace(ONE, persons=(("mail", "string"),)), TWO], "the ledger knows persons by other"),
        ([replace(ONE, persons=(("name", "bigint"),)), TWO], "the ledger knows persons by other"),
        ([ONE, replace(TWO, unnamed=True)], "rows that were released before name no person"),
        (
            [ONE, replace(TWO, digest=None)],
            "the table is not as any run of the ledger left it: oth",
        ),
        ([ONE, replace(TWO, digest=Digest(9, 8))], "the table is not as any run of the ledger"),
    ],
)
def test_persons_that_may_not_be_recognised(
    store: Far, entries: list[Entry], why: str | None
) -> None:
    put(store, *entries)
    found = ledger().gap(RUNS, THERE, SCHEMA)
    assert (found or "").startswith(why or "")
    assert (found is None) == (why is None)


def test_columns_that_identify_persons(store: Far) -> None:
    assert ledger()._persons(SCHEMA) == (("name", "string"),)
    assert ledger(fold=True)._persons(SCHEMA) == (("name", FOLDED),)
    by_unit = (("born", "int64"), ("mail", FOLDED))
    assert ledger(person=False)._persons(SCHEMA) == by_unit
    # The order of the columns makes no other persons.
    assert ledger(person=False)._persons(replace(SCHEMA, unit=("c2", "c1"))) == by_unit


def test_runs_of_a_table_that_was_moved_or_is_gone(store: Far) -> None:
    """By the paths that the entries name, without passwords; and all that have a whole entry."""
    moved = replace(TWO, table="s3a://user:secret@bucket/old")
    put(store, ONE, moved, replace(ONE, run_id="half", n_tokens=None))
    store.files[f"{Far.root}/notes"] = "x"
    made = ledger()
    assert made.other_paths(["one", "half", "three"]) == []
    assert made.other_paths(RUNS) == ["s3a://…@bucket/old"]
    assert made.list_runs() == {"one"}
    put(store, TWO)
    assert ledger().list_runs() == {"one", "two"}


CHECK = "no rare combinations with note"


@pytest.mark.parametrize(
    ("entry", "verdicts", "proof", "acknowledged"),
    [
        (TWO, ["k"], False, True),
        (replace(TWO, verdicts=("k", "l", CHECK)), ["l", "k"], True, True),
        (replace(TWO, verdicts=("k", CHECK + "s")), ["k"], False, True),
        (replace(TWO, verdicts=("k", "l", CHECK)), ["k", "l", "t"], False, False),
        (replace(TWO, digest=None, verdicts=("k", CHECK)), ["k"], False, False),
        (replace(TWO, gap="rows of others", verdicts=("k", CHECK)), ["k"], False, False),
        (replace(TWO, insensitive="none"), ["k"], False, True),
        (replace(TWO, insensitive="acknowledged"), ["k"], False, True),
        (replace(TWO, insensitive="not checked", verdicts=("k", CHECK)), ["k"], False, False),
    ],
)
def test_what_an_entry_proves(
    store: Far, entry: Entry, verdicts: list[str], proof: bool, acknowledged: bool
) -> None:
    """Insensitive columns that must not be rare now were checked then, each of them."""
    put(store, ONE, entry)
    assert ledger(insensitive=("note",)).proves(RUNS, THERE, verdicts) is proof
    assert ledger().proves(RUNS, THERE, verdicts) is acknowledged
    assert ledger().knows(RUNS, THERE) is (entry.digest == NOW)


def test_a_gap_that_a_run_accepted(store: Far) -> None:
    """It counts while the table is as that run left it, and where no run without it left the same
    rows. Entries of earlier versions have none."""
    put(store, ONE, replace(TWO, gap="rows of others"))
    made = ledger()
    assert made.gap(RUNS, THERE, SCHEMA) is None
    assert made.known_gap(RUNS, THERE) == "rows of others"
    assert made.known_gap(RUNS, rows(Digest(1))) is None
    put(store, replace(ONE, digest=NOW))
    assert ledger().known_gap(RUNS, THERE) is None
    text = json.dumps({name: each for name, each in asdict(TWO).items() if name != "gap"})
    store.files[f"{Far.root}/run-two/entry.json"] = text
    assert ledger().entries(["two"]) == [TWO]


def test_rows_in_another_order_of_columns(store: Far) -> None:
    """The values of each name count, and no pass is made where the number of rows differs."""
    put(store, ONE, replace(TWO, columns=OTHER))
    assert ledger().knows(RUNS, rows(Digest(9, 1), NOW))
    assert not ledger().knows(RUNS, rows(NOW, Digest(9, 1)))
    again = rows(Digest(9, 1), NOW)
    assert ledger().proves(RUNS, again, ["k"]) is ledger().knows(RUNS, again) is True
    assert not ledger().knows(RUNS, rows(Digest(8, 1)))
    # A number that is too large for the type that the column had.
    assert not ledger().knows(RUNS, rows(Digest(9, 1), None))
    for columns in (
        (("a", "string"), ("c", "bigint")),
        (("b", "string"), ("a", "string")),
        (("a", "string"),),
    ):
        put(store, replace(TWO, columns=columns))
        assert not ledger().knows(RUNS, rows(NOW))


def test_whole_numbers_that_identify_persons_are_of_one_type(store: Far) -> None:
    """Their tokens are the same."""
    put(store, replace(ONE, persons=(("born", "int32"),)))
    assert ledger(person="born").doubt(["one"], SCHEMA) is None
    put(store, replace(ONE, persons=(("born", "float"),)))
    assert "of other types" in (ledger(person="born").doubt(["one"], SCHEMA) or "")


def test_persons_of_the_same_columns_in_another_order(store: Far) -> None:
    """Entries of earlier versions have them so; tokens are compared in the order of the entry."""
    old = replace(ONE, persons=(("mail", FOLDED), ("born", "int32")))
    other = replace(ONE, run_id="other", persons=(("name", "string"),))
    put(store, old, replace(TWO, persons=(("born", "int64"), ("mail", FOLDED))), other)
    made = ledger(person=False)
    assert made.doubt(RUNS, SCHEMA) is None
    entries = made.entries([*RUNS, "other"])
    assert {
        order: [each.run_id for each in found]
        for order, found in (made._group(entries, SCHEMA).items())
    } == {("mail", "born"): ["one"], ("born", "mail"): ["other", "two"]}
    assert made._group([], SCHEMA) == {("born", "mail"): []}


def test_an_id_of_another_tables_run(store: Far) -> None:
    put(store, replace(ONE, table="another"))
    source: Any = SimpleNamespace(schema=SCHEMA)
    with pytest.raises(ConfigError, match="run one of another table is in this ledger"):
        ledger().write("one", source, NOW, (), (), "none", gap="", is_whole=True)


# --- tokens


def token(columns: list[Any]) -> bytes:
    return bytes.fromhex(key_values([pa.array([value]) for value in columns], KEY)[0].as_py())


@pytest.mark.parametrize(
    ("persons", "given", "wanted"),
    [
        ((("name", "string"),), {"name": " Ana "}, ["Ana"]),
        ((("name", FOLDED),), {"name": " Ana "}, ["ana"]),
        ((("born", "int64"), ("name", "string")), {"name": "b", "born": "7"}, [7, "b"]),
    ],
)
def test_the_token_of_a_person(persons: Any, given: dict[str, str], wanted: list[Any]) -> None:
    assert module._token(persons, given, KEY) == token(wanted)


MOMENT = datetime(2020, 1, 31, 8, 5, tzinfo=UTC)
#: By Arrow type of an identifier: texts of a value, and the value.
IDENTIFIERS: dict[pa.DataType, tuple[tuple[str, ...], Any]] = {
    pa.bool_(): (("true",), True),
    **{kind(): (("12",), 12) for kind in (pa.int8, pa.int16, pa.int32, pa.int64)},
    **{kind(): (("12", "12.0"), 12.0) for kind in (pa.float32, pa.float64)},
    pa.decimal128(10, 0): (("1003", "1003.0"), Decimal("1003")),
    pa.decimal128(12, 2): (("1003.5", "1003.50"), Decimal("1003.50")),
    pa.decimal128(38, 18): (("-0.25",), Decimal("-0.25")),
    pa.date32(): (("2020-01-31",), MOMENT.date()),
    pa.timestamp("us"): (
        ("2020-01-31 08:05:00", "2020-01-31T08:05:00.000000"),
        MOMENT.replace(tzinfo=None),
    ),
    pa.timestamp("us", "UTC"): (
        ("2020-01-31 08:05:00", "2020-01-31T08:05:00Z", "2020-01-31 10:05:00+02:00"),
        MOMENT,
    ),
}


@pytest.mark.parametrize("type", IDENTIFIERS, ids=str)
def test_the_token_of_a_person_by_every_type_that_identifies(type: pa.DataType) -> None:
    """A unit's columns, too. As a run makes it of the source's values."""
    texts, value = IDENTIFIERS[type]
    assert is_atomic(type)
    assert module._find_type(str(type)) == type
    wanted = key_values([pa.chunked_array([pa.array([value], type)])], KEY)[0].as_py()
    for text in texts:
        assert module._token((("id", str(type)),), {"id": text}, KEY).hex() == wanted
    with pytest.raises(InputError, match=r"^id: the value can't be read as .*, which the ledger"):
        module._token((("id", str(type)),), {"id": "secret"}, KEY)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"name": "a"}, "the ledger knows persons by: name, born; name these columns"),
        ({"name": "a", "born": "1", "mail": "x"}, "name these columns"),
        ({"name": "a", "born": "secret"}, "born: the value can't be read as int64, which"),
    ],
)
def test_persons_by_other_values(given: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text) as error:
        module._token((("name", "string"), ("born", "int64")), given, KEY)
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None


def test_the_tokens_of_a_source() -> None:
    """Of each row one, in its order; none where a value is missing."""
    batches = [
        pa.record_batch({"c0": ["a", None]}, pa.schema([("c0", pa.string())])),
        pa.record_batch({"c0": ["b"]}),
    ]
    found = [*module._tokens(batches, [[0]], KEY)]
    assert [batch.to_pydict() for batch in found] == [
        {"token0": [token(["a"]).hex(), None]},
        {"token0": [token(["b"]).hex()]},
    ]
    pair = pa.record_batch({"c1": [7, 7], "c2": ["b", None]})
    (found,) = module._tokens([pair], [[0, 1], [1, 0]], KEY)
    assert found.to_pydict() == {
        "token0": [token([7, "b"]).hex(), None],
        "token1": [token(["b", 7]).hex(), None],
    }


class Batches(list[pa.RecordBatch]):
    """Rows of a source."""

    def select(self, *_: Any) -> "Batches":
        return self

    def mapInArrow(self, work: Any, schema: str) -> "Batches":
        return Batches(work(self))

    def distinct(self) -> set[str | None]:
        return {token for batch in self for token in batch.column("token0").to_pylist()}


def test_a_person_has_one_token(
    store: Far, no_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of its rows."""
    raw = Batches([pa.record_batch({"c0": ["a", "b", "a"]}), pa.record_batch({"c0": ["b"]})])
    column = SimpleNamespace(alias=lambda id: id)
    source: Any = SimpleNamespace(schema=SCHEMA, raw=raw, columns={"c0": column})
    wanted = {token(["a"]).hex(), token(["b"]).hex()}
    assert ledger()._tokens(source) == wanted  # type: ignore[comparison-overlap]


def test_the_ledger_of_a_config(store: Far) -> None:
    put(store, ONE)
    config: Any = SimpleNamespace(
        ledger_folder=Far.root,
        one_row_per_person="name",
        attributes={},
        privacy=None,
        person=SimpleNamespace(fold_case=True),
    )
    spark: Any = None
    made = open_ledger(spark, config, "table", KEY)
    assert made.entries(["one"]) == [ONE]
    assert made._persons(SCHEMA) == (("name", FOLDED),)


def test_who_released_a_person(store: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(TWO, is_whole=True)
    put(store, ONE, whole, replace(ONE, run_id="three", key_check="x"))
    asked = []
    older = replace(ONE, run_id="zero")

    def has(entry: Entry, given: bytes) -> bool:
        asked.append(given)
        return entry in (whole, older)

    made = ledger()
    monkeypatch.setattr(made, "_has", has)
    found = made.released({"name": "Ana"}, ["one", "two", "three", "four"])
    told = {"one": "not released", "two": "released", "three": "unknown", "four": "unknown"}
    assert found == told
    assert asked == [token(["Ana"])] * 2
    assert made.all_released(["two"])
    # Tokens are of all in the source: where rows were suppressed, or nobody knows, it is not sure.
    text = json.dumps({name: each for name, each in asdict(older).items() if name != "is_whole"})
    store.files[f"{Far.root}/run-zero/entry.json"] = text
    assert made.released({"name": "Ana"}, ["zero"]) == {"zero": "released or suppressed"}
    assert not made.all_released(["zero", "two"])


@pytest.fixture
def no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Any_:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: self

    functions = dict.fromkeys(
        ["count_if", "col", "lit", "count", "unhex", "coalesce"], lambda *_: Any_()
    )
    monkeypatch.setattr(module, "F", SimpleNamespace(**functions))


@pytest.mark.parametrize(
    ("n", "hits", "wanted"), [(3, 1, True), (3, 0, False), (2, 1, None), (4, 1, None)]
)
def test_tokens_that_are_gone(
    store: Far,
    no_columns: None,
    monkeypatch: pytest.MonkeyPatch,
    n: int,
    hits: int,
    wanted: bool | None,
) -> None:
    read = []

    def load(paths: list[str]) -> Any:
        read.extend(paths)
        row = {"n": n, "hits": hits}
        return SimpleNamespace(agg=lambda *_: SimpleNamespace(collect=lambda: [row]))

    made = ledger()
    reader = SimpleNamespace(load=load)
    reader.schema = reader.options = reader.format = lambda *_, **__: reader
    monkeypatch.setattr(made, "_spark", SimpleNamespace(read=reader))
    if wanted is None:
        with pytest.raises(StorageError, match=f"{n} of the 3 tokens of run one are there"):
            made._has(ONE, b"t")
    else:
        assert made._has(ONE, b"t") is wanted
    assert read == [f"{Far.root}/run-one/tokens"]


class Tokens:
    """The tokens that are read: so many, and what a join with the source's finds."""

    def __init__(self, n: int, /, **found: int):
        self.n, self.found, self.paths = n, found, list[str]()

    @property
    def write(self) -> "Tokens":
        return self

    def parquet(self, path: str) -> "Tokens":
        return self.load([path])

    def load(self, paths: list[str]) -> "Tokens":
        self.paths.extend(paths)
        return self

    def count(self) -> int:
        return self.n

    def collect(self) -> list[dict[str, int]]:
        return [self.found]

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


def with_tokens(made: Ledger, tokens: Tokens, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made, "_spark", SimpleNamespace(read=tokens))
    patch.setattr(made, "_tokens", lambda source, orders=(): tokens)


@pytest.mark.parametrize(
    ("n", "unnamed"), [(5, 0), (5, 1), (4, 0), (6, 0)], ids=["all", "nobody", "fewer", "more"]
)
def test_persons_that_come_again(
    store: Far, no_columns: None, monkeypatch: pytest.MonkeyPatch, n: int, unnamed: int
) -> None:
    put(store, ONE, replace(TWO, n_tokens=2))
    made, tokens = ledger(), Tokens(n, n=3, unnamed=unnamed)
    source = SimpleNamespace(schema=SCHEMA)
    with_tokens(made, tokens, monkeypatch)
    if n == 5:
        assert made.returning(source, RUNS) == (3, bool(unnamed))  # type: ignore[arg-type]
    else:
        with pytest.raises(StorageError, match=f"{n} of its 5 tokens are there"):
            made.returning(source, RUNS)  # type: ignore[arg-type]
    assert tokens.paths == [f"{Far.root}/run-{run}/tokens" for run in ("one", "two")]


def test_a_run_that_released_nobody(
    store: Far, no_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, replace(ONE, n_tokens=0))
    made, source = ledger(), SimpleNamespace(schema=SCHEMA)
    with_tokens(made, Tokens(0, n=0, unnamed=0), monkeypatch)
    assert made.returning(source, ["one"]) == (0, False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nobody", "is_whole", "state", "verdicts"),
    [(0, True, "none", ("k",)), (1, False, "checked", ("k", CHECK))],
)
def test_a_written_entry(
    store: Far,
    no_columns: None,
    monkeypatch: pytest.MonkeyPatch,
    nobody: int,
    is_whole: bool,
    state: str,
    verdicts: tuple[str, ...],
) -> None:
    """It replaces what the run left before, and counts only when its tokens are all there. Columns
    that were checked are among the verdicts."""
    put(store, replace(ONE, digest=NOW))
    store.files[f"{Far.root}/run-one/tokens/old"] = "x"
    made, tokens = ledger(insensitive=("note",)), Tokens(0, n=4, nobody=nobody)
    with_tokens(made, tokens, monkeypatch)
    seen: list[Any] = []
    monkeypatch.setattr(store, "make_private", seen.append)
    store.close = lambda path: seen.append(
        (
            path,
            made._read("one"),
            store.listed(  # type: ignore[attr-defined]
                f"{Far.root}/run-one"
            ),
        )
    )
    source: Any = SimpleNamespace(schema=SCHEMA)
    assert made.list_runs() == {"one"}
    made.write("one", source, NOW, OTHER, ["k"], state, gap="why", is_whole=is_whole)
    begun = replace(ONE, digest=NOW, verdicts=verdicts, insensitive=state, n_tokens=None)
    begun = replace(begun, gap="why", is_whole=is_whole, columns=OTHER)
    assert seen == [Far.root, (Far.root, begun, ["entry.json"])]
    assert made.entries(["one"]) == [replace(begun, n_tokens=4, unnamed=nobody == 1)]
    assert tokens.paths == [f"{Far.root}/run-one/tokens"] * 2
