"""The content gate for tables in memory: columns that show who a person is."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.content import gate
from anonlib.content.gate import find_disclosing_columns
from anonlib.content.text_columns import to_text_columns
from anonlib.table.schema import Column, Field, Role
from tests.content_cases import (
    FLAGS,
    FORMS,
    HARMLESS,
    MADE,
    NO_FORMS,
    PUBLIC,
    QUASI,
    RARE_FLAG,
    SENSITIVE,
    SHOWS,
    N,
    config_of,
    table,
)


def judged(rows: pd.DataFrame | pa.Table, **changes: Any) -> dict[str, list[str]]:
    """What the gate says of each column, by name. The changes are those of the config."""
    data = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)
    config = parse(config_of(Path("nowhere"), None, **changes))
    schema = resolve(config, [Field(f.name, str(f.type), f.type) for f in data.schema])
    by_id = data.rename_columns([f"c{i}" for i in range(data.num_columns)])
    said: dict[str, list[str]] = {name: [] for name in data.column_names}
    for problem in find_disclosing_columns(by_id, schema, config.privacy)[1]:
        said[problem.where.removeprefix("column ")].append(problem.text)
    return said


def judged_cases(
    cases: Sequence[tuple[str, Any, Any]], *, with_models: bool = False
) -> dict[str, list[str]]:
    """What the gate says of cases, each a column of one table. with_models: whether a model names
    each of them."""
    rows = table()
    for name, x, _ in cases:
        rows[name] = x(rows)
    models = [{"type": "l_diversity", "l": 2, "attribute": name} for name, *_ in cases]
    privacy = {"models": [{"type": "k_anonymity", "k": 4}, *(models if with_models else [])]}
    said = judged(rows, privacy=privacy, attributes={name: role for name, _, role in cases})
    return {name: said[name] for name, *_ in cases}


@pytest.mark.parametrize("case", SHOWS, ids=[case[0] for case in SHOWS])
def test_what_shows_persons(case: tuple[str, Any, dict[str, Any], str]) -> None:
    name, x, role, said = case
    found = judged_cases([(name, x, role)])[name]
    assert any(said in text for text in found)
    assert "P-0" not in str(found)


def test_the_order_of_rows_hides_no_texts() -> None:
    """Of many texts, a part is looked at that does not depend on it."""
    rows = pd.concat([table()] * 8)
    rows["x"] = [f"p{i}@web.de" if i >= len(rows) - 60 else f"r{i}" for i in range(len(rows))]
    for each in (rows, rows[::-1]):
        found = judged(each, attributes={"x": SENSITIVE})["x"]
        assert any("it seems to have texts with e-mail addresses" in text for text in found)


@pytest.mark.parametrize("made", MADE, ids=[made[0] for made in MADE])
def test_what_is_made_of_an_identifier(made: tuple[str, Any]) -> None:
    name, x = made
    found = judged_cases([(name, x, SENSITIVE)], with_models=True)[name]
    says = re.compile(r"shows who a person is: in \d+ rows")
    assert any(map(says.match, found))


@pytest.mark.parametrize(
    ("recoder", "shows"),
    [("mode", True), ("set", True), ("lca", False), ("suppress", False)],
)
@pytest.mark.parametrize("name", ["md5", "within", "a part"])
def test_quasi_identifiers_made_of_an_identifier(name: str, recoder: str, shows: bool) -> None:
    """A most frequent value and a set show values of single rows; a node above them does not."""
    (make,) = [make for made, make in MADE if made == name]
    rows = table()
    rows["x"] = make(rows)
    role = {"role": "quasi_identifier", "scale": "nominal"}
    recode = {"columns": {"x": recoder}}
    found = judged(rows, attributes={"x": role}, recode=recode)["x"]
    assert bool(found) == shows, found


@pytest.mark.parametrize("harmless", HARMLESS, ids=[harmless[0] for harmless in HARMLESS])
def test_what_chance_explains(harmless: tuple[str, Any, dict[str, Any]]) -> None:
    assert judged_cases([harmless]) == {harmless[0]: []}


@pytest.mark.parametrize("form", FORMS, ids=[form[0] for form in FORMS])
def test_a_quasi_identifier_in_another_form(form: tuple[str, Any, str]) -> None:
    name, x, quasi = form
    found = judged_cases([*QUASI, (name, x, SENSITIVE)])[name]
    assert any(f"the quasi-identifier {quasi}" in text for text in found)


@pytest.mark.parametrize("case", NO_FORMS, ids=[case[0] for case in NO_FORMS])
def test_what_is_no_form_of_a_quasi_identifier(case: tuple[str, Any]) -> None:
    name, x = case
    found = judged_cases([*QUASI, (name, x, SENSITIVE)])[name]
    assert not any("quasi-identifier" in text for text in found)


def test_a_form_of_a_quasi_identifier_as_a_target_or_listed() -> None:
    name, x, _ = next(form for form in FORMS if form[0] == "one more")
    rows = table()
    rows["q"] = QUASI[1][1](rows)
    rows["x"] = x(rows.rename(columns={"q": "income"}))
    roles = {"q": QUASI[1][2], "x": PUBLIC}
    assert "q in another form" in str(judged(rows, attributes=roles)["x"]), name
    listed = {"acknowledge_unique": ["x"]}
    assert not judged(rows, attributes=roles, privacy=listed)["x"]
    # Combinations of insensitive columns are counted elsewhere.
    assert not judged(rows, attributes=roles | {"x": {"role": "insensitive"}})["x"]


@pytest.mark.parametrize("x", [lambda q: q, lambda q: ~q, lambda q: q.map({True: "y", False: "n"})])
def test_a_quasi_identifier_that_is_true_or_false(x: Any) -> None:
    rows = table()
    rows["q"] = rows["flag"]
    rows["x"] = x(rows["q"])
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    assert "quasi-identifier q" in str(judged(rows, attributes={"q": nominal, "x": SENSITIVE})["x"])


@pytest.mark.parametrize("role", [SENSITIVE, PUBLIC, {"role": "insensitive"}])
@pytest.mark.parametrize("flag", FLAGS, ids=[flag[0] for flag in FLAGS])
def test_flags_that_repeat_a_quasi_identifier(
    flag: tuple[str, Any, bool], role: dict[str, Any]
) -> None:
    name, x, repeats = flag
    rows = table()
    assert (RARE_FLAG[1](rows) == pd.Series(x(rows)).isin([True, "true"])).mean() >= 0.95
    found = judged_cases([RARE_FLAG, (name, x, role)])[name]
    assert (f"equals the quasi-identifier {RARE_FLAG[0]}" in str(found)) is repeats


@pytest.mark.parametrize(("n", "errors"), [(2000, 0.04), (60, 0.04)])
def test_a_copy_with_some_errors(n: int, errors: float) -> None:
    rows = pd.concat([table()] * 4, ignore_index=True).head(n)
    rows["q"] = rows["flag"]
    rows["x"] = rows["q"] ^ (rows.index % round(1 / errors) == 3)
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    found = judged(rows, attributes={"q": nominal, "x": SENSITIVE})["x"]
    assert "equals the quasi-identifier q" in str(found)


X = {"attributes": {"x": SENSITIVE}}
KEY = [f"k{i * i}" for i in range(N)]


class TestAcknowledgements:
    @pytest.mark.parametrize(
        "x",
        [
            lambda t: t["id"],
            lambda t: t["id"].str[::-1],
            lambda t: t["age"],
            lambda t: (t["age"] * 7 + 3).map("c{}".format),
        ],
    )
    def test_columns_that_show_persons_must_be_listed(self, x: Any) -> None:
        rows = table()
        rows["x"] = x(rows)
        assert judged(rows, **X)["x"]
        assert judged(rows, privacy={"acknowledge_unique": True}, **X)["x"]
        assert judged(rows, privacy={"acknowledge_unique": ["id"]}, **X)["x"]
        assert not judged(rows, privacy={"acknowledge_unique": ["x"]}, **X)["x"]

    def test_keys_need_not_be_listed(self) -> None:
        rows = table().assign(x=KEY)
        assert judged(rows, **X)["x"]
        assert not judged(rows, privacy={"acknowledge_unique": True}, **X)["x"]
        assert not judged(rows, privacy={"acknowledge_unique": ["x"]}, **X)["x"]

    def test_a_model_protects_a_key(self) -> None:
        models = [{"type": "k_anonymity", "k": 4}]
        models += [{"type": "l_diversity", "l": 3, "attribute": "x"}]
        assert not judged(table().assign(x=KEY), privacy={"models": models}, **X)["x"]

    def test_insensitive_keys_are_counted_elsewhere(self) -> None:
        attributes = {"x": {"role": "insensitive"}}
        assert not judged(table().assign(x=KEY), attributes=attributes)["x"]

    def test_quasi_identifiers_are_recoded(self) -> None:
        quasi = {"x": {"role": "quasi_identifier", "scale": "nominal"}}
        assert not judged(table().assign(x=KEY), attributes=quasi)["x"]


UNIT: dict[str, Any] = {"unit": ["id"], "one_row_per_person": False}


class TestPersonsWithSeveralRows:
    def rows(self, n_persons: int = N // 4) -> pd.DataFrame:
        rows = table()
        return rows.assign(id=rows["id"].to_numpy()[np.arange(N) % n_persons])

    @pytest.mark.parametrize("model", [False, True])
    def test_what_tells_whose_a_row_is(self, *, model: bool) -> None:
        rows = self.rows()
        names = {id: f"h{i * i}" for i, id in enumerate(rows["id"].unique())}
        rows["x"] = rows["id"].map(names)
        models = [{"type": "k_anonymity", "k": 4}]
        models += [{"type": "l_diversity", "l": 2, "attribute": "x"}] if model else []
        privacy = {"models": models}
        says = "tells whose a row is: of the 100 values that several rows have, 100 belong"
        assert says in str(judged(rows, privacy=privacy, **UNIT, **X)["x"])
        listed = {**privacy, "acknowledge_unique": ["x"]}
        assert not judged(rows, privacy=listed, **UNIT, **X)["x"]
        # Half of the values have rows of two persons.
        rows["x"] = np.where(np.arange(N) % 8 < 4, rows["x"].to_numpy(), np.roll(rows["x"], 1))
        assert not judged(rows, privacy=privacy, **UNIT, **X)["x"]

    def test_few_persons(self) -> None:
        rows = self.rows(20)
        names = {id: f"h{i * i}" for i, id in enumerate(rows["id"].unique())}
        assert not judged(rows.assign(x=rows["id"].map(names)), **UNIT, **X)["x"]

    @pytest.mark.parametrize("n_persons", [6, 12, 20])
    @pytest.mark.parametrize(
        "x", [lambda id: id, lambda id: id.str.lower() + " ", lambda id: "Mrs " + id + "."]
    )
    def test_few_persons_by_their_names(self, n_persons: int, x: Any) -> None:
        rows = self.rows(n_persons)
        assert "shows who" in str(judged(rows.assign(x=x(rows["id"])), **UNIT, **X)["x"])
        listed = {"acknowledge_unique": ["x"]}
        assert not judged(rows.assign(x=x(rows["id"])), privacy=listed, **UNIT, **X)["x"]
        # In nine of ten rows: a few values that are the same are no proof.
        some = np.where(np.arange(N) % 10 < 9, x(rows["id"]), "none")
        assert not judged(rows.assign(x=some), **UNIT, **X)["x"]

    @pytest.mark.parametrize(
        ("to_bytes", "to_text"),
        [
            (str.encode, str),
            (lambda name: b"\xff" + name.encode(), lambda name: "FF" + name.encode().hex()),
        ],
    )
    def test_identifiers_of_bytes(self, to_bytes: Any, to_text: Any) -> None:
        names = pd.Series([f"h{i * i}" for i in range(N)])
        rows = self.rows().assign(number=names.map(to_bytes), x=names.map(to_text))
        assert "values with column number" in str(judged(rows, **UNIT, **X)["x"])

    def test_flags_are_often_equal(self) -> None:
        flags = (np.arange(N) % 50 == 0).astype(int)
        rows = self.rows().assign(number=flags, x=np.roll(flags, 1))
        assert not judged(rows, **UNIT, **X)["x"]

    def test_a_boolean_is_part_of_a_person(self) -> None:
        """Its values are not compared: the persons are still counted by it."""
        rows = self.rows()
        rows["flag"] = np.arange(N) // 100 % 2 == 0
        names = {id: f"h{i * i}" for i, id in enumerate(rows["id"].unique())}
        rows["x"] = rows["id"].map(names)
        unit = {"unit": ["id", "flag"], "one_row_per_person": False}
        attributes = {"x": SENSITIVE, "flag": {"role": "identifier"}}
        assert not judged(rows, attributes=attributes, **unit)["x"]
        rows["x"] += rows["flag"].astype(str)
        assert "tells whose" in str(judged(rows, attributes=attributes, **unit)["x"])


class TestTexts:
    """Values that people take for one have one text."""

    #: Values, and their text.
    VALUES: tuple[tuple[Any, pa.DataType, str | None], ...] = (
        (7, pa.int64(), "7"),
        (7, pa.uint8(), "7"),
        (7.0, pa.float64(), "7"),
        (7.0, pa.float32(), "7"),
        (-0.0, pa.float64(), "0"),
        (1e15, pa.float64(), "1000000000000000"),
        (7.25, pa.float32(), "7.25"),
        (float("nan"), pa.float64(), None),
        (float("inf"), pa.float64(), "inf"),
        (Decimal("7.00"), pa.decimal128(9, 2), "7"),
        (Decimal("7.50"), pa.decimal128(9, 2), "7.50"),
        (Decimal("0"), pa.decimal128(20, 9), "0"),
        (Decimal("0.000000001"), pa.decimal128(20, 9), "1E-9"),
        (" 007", pa.string(), "7"),
        ("+7", pa.string(), "7"),
        ("-07", pa.string(), "-7"),
        ("-0", pa.string(), "0"),
        ("7.0", pa.string(), "7.0"),
        ("0" * 19, pa.string(), "0" * 19),
        ("\uff17", pa.string(), "7"),
        ("  Ab\u200b  C ", pa.string(), "ab c"),
        ("\u00a0", pa.string(), None),
        (datetime(2020, 5, 1, tzinfo=UTC).date(), pa.date32(), "2020-05-01"),
        (datetime(2020, 5, 1), pa.timestamp("us"), "2020-05-01"),  # noqa: DTZ001
        (datetime(2020, 5, 1, tzinfo=UTC), pa.timestamp("ns", "Asia/Tokyo"), "2020-05-01"),
        (datetime(2020, 5, 1, 2, 3, 4, 50_000), pa.timestamp("us"), "2020-05-01 02:03:04.05"),  # noqa: DTZ001
        (None, pa.float64(), None),
    )

    @pytest.mark.parametrize(("value", "type", "text"), VALUES)
    def test_texts(self, value: Any, type: pa.DataType, text: str | None) -> None:
        lines = to_text_columns({"c0": pa.array([value, None], type)}, gate._number_texts)
        texts = [*lines["c0"].texts.to_pylist(), None]
        assert [texts[i] for i in lines["c0"].place] == [text, None]

    def test_times_and_dates(self) -> None:
        days = pd.date_range("1950-01-01", periods=N * 40, freq="D")[::40]
        rows = table().assign(number=days.date, x=days)
        found = judged(rows, **X)["x"]
        assert "more values with column number" in str(found)
        assert "equals it in 400 rows" in str(found)

    def test_times_near_each_other_agree_by_chance(self) -> None:
        random = np.random.default_rng(0)
        days = pd.date_range("2020-01-01", periods=1000, freq="D")
        rows = table().assign(
            number=days[random.permutation(1000)[:N]].date, x=days[random.integers(0, 1000, N)].date
        )
        assert judged(rows, **X)["x"] == []

    def test_missing_values_are_no_values(self) -> None:
        rows = table()
        blank = ["", None, "\u200b", " "]
        rows = rows.assign(id=[*rows["id"][:200], *blank * 50], x=[*rows["ill"][:200], *blank * 50])
        assert judged(rows, **X)["x"] == []
        rows["x"] = rows["age"].astype(float).where(rows.index % 2 == 0)
        assert "age in 200 rows" in str(judged(rows, **X)["x"])

    def test_a_time_is_hashed_as_a_machine_writes_it(self) -> None:
        from hashlib import md5

        days = pd.date_range("1950-01-01", periods=N, freq="40D")
        rows = table().assign(number=days)
        rows["x"] = [md5(f"{day:%Y-%m-%d %H:%M:%S}".encode()).hexdigest() for day in days]
        assert "a hash or another form of column number" in str(judged(rows, **X)["x"])
        rows["x"] = [md5(f"{i} and salt".encode()).hexdigest() for i in range(N)]
        models = [{"type": "k_anonymity", "k": 4}]
        models += [{"type": "l_diversity", "l": 3, "attribute": "x"}]
        assert judged(rows, privacy={"models": models}, **X)["x"] == []


def test_a_copy_of_a_quasi_identifier_may_be_the_target_if_it_is_listed() -> None:
    rows = table()
    rows["x"] = rows["town"].str.upper()
    attributes = {"x": PUBLIC}
    assert "equals the quasi-identifier town" in str(judged(rows, attributes=attributes)["x"])
    listed = {"acknowledge_unique": ["x"]}
    assert judged(rows, attributes=attributes, privacy=listed)["x"] == []


@pytest.mark.parametrize(("n", "m"), [(9, 2), (2, 9), (1, 1)])
def test_a_number_for_each_pair(n: int, m: int) -> None:
    """Missing values, which are -1, included."""
    a, b = (each.ravel() for each in np.meshgrid(np.arange(-1, n), np.arange(-1, m)))
    assert len({*gate._pair(a, b).tolist()}) == (n + 1) * (m + 1)


def test_tables_without_rows_or_identifiers() -> None:
    none = pa.Table.from_pandas(table(), preserve_index=False)[:0]
    assert judged(none) == {name: [] for name in table()}
    rows = table().assign(x=KEY)
    persons = ("id", "number", "serial", "name", "birthday")
    attributes = {name: {"role": "drop"} for name in persons} | {"x": SENSITIVE}
    found = judged(rows, attributes=attributes, one_row_per_person=True)
    assert "is a key: 400 distinct values in 400 rows" in str(found["x"])


few, more = st.sampled_from([None, *"ab"]), st.sampled_from([None, *"abcdef"])


@given(st.lists(st.tuples(more, few, few, few), max_size=30))
@example([("a", None, "b", None), ("a", None, None, "a"), ("b", None, "a", None)])
def test_counts(rows: list[tuple[str | None, ...]]) -> None:
    """As anybody counts them: values that are there, and persons, whose missing names are names."""
    x, y, *_ = fields = [Column(n, n, Role.SENSITIVE, pa.string(), "string") for n in "xypq"]
    data = {c.id: pa.array([row[i] for row in rows], pa.string()) for i, c in enumerate(fields)}
    columns = to_text_columns(data, gate._number_texts)
    counter = gate._TextCounter(columns, pa.table(data), ("p", "q"))
    assert counter.count_distinct(x) == len({a for a, *_ in rows} - {None})
    both = {(a, b) for a, b, *_ in rows if a and b}
    found = counter.count_pairs(x, y, 1.0)
    assert found == (len({a for a, _ in both}), len({b for _, b in both}), len(both))
    persons = {a: [who for other, _, *who in rows if other == a] for a, *_ in rows if a}
    several = [each for each in persons.values() if len(each) > 1]
    n_alone = sum(all(one == each[0] for one in each) for each in several)
    assert counter.count_alone(x) == (len(several), n_alone)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rows = table()
    rows["x"] = rows["id"].where(rows.index % 20 == 0, rows["ill"])
    rows["y"] = rows["age"] * 7
    attributes = {"x": SENSITIVE, "y": SENSITIVE}
    moved = rows.sample(frac=1.0, random_state=np.random.default_rng(seed))
    assert judged(moved, attributes=attributes) == judged(rows, attributes=attributes)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["id", "number"]), st.integers(12, N))
@settings(max_examples=30, deadline=None)
def test_copies_of_identifiers_are_found(seed: int, column: str, n: int) -> None:
    """Wherever they are, however few, and however few other values there are."""
    random = np.random.default_rng(seed)
    rows = table()
    chosen = rows[column].to_numpy()[random.permutation(N)].astype(str)
    rows["x"] = np.where(random.permutation(N) < n, chosen, random.choice(["a", "b"], N))
    found = str(judged(rows, **X)["x"])
    assert f"more values with column {column}" in found


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_random_values_show_nobody(seed: int) -> None:
    random = np.random.default_rng(seed)
    top = int(random.choice([60, 110, 150]))
    assert judged(table().assign(x=random.integers(0, top, N)), **X)["x"] == []
