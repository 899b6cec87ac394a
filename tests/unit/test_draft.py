"""Drafted configs: the guesses, and YAML that loads whatever the columns are called."""

from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.config.checks.context_section import require_reviewed
from anonlib.config.model import RESERVED_PREFIX, Config
from anonlib.config.reading import load, parse
from anonlib.config.summary import digest_config
from anonlib.config.yaml import read_yaml
from anonlib.errors import ConfigError
from anonlib.evaluation import Evaluation, judge
from anonlib.guesses.draft import LEAST_K, TableProfile, format_draft, make_draft, write_scalar
from anonlib.guesses.guess import ColumnProfile, guess_role
from anonlib.identifiers.column_names import name_words
from anonlib.identifiers.direct import BARE_PHONES
from anonlib.measure import Figure, Findings
from anonlib.source.profile import sniff

N = 10_000


def column(name: str, type: str = "string", distinct: int = 5, **more: Any) -> ColumnProfile:
    return ColumnProfile(name, type, more.pop("present", N), distinct, **more)


def table(*columns: ColumnProfile, **more: Any) -> TableProfile:
    fields = {"format": "csv", "path": "in/people.csv", "table": None, "n_rows": N, "n_sample": N}
    return TableProfile(**{**fields, **more}, columns=columns)


def draft(profile: TableProfile) -> str:
    return format_draft(make_draft(profile), Path())


def loaded(profile: TableProfile, folder: Path) -> Config:
    """As `anonlib init` in that folder drafts it, and as it is read again."""
    path = folder / "draft.yaml"
    path.write_text(draft(profile), encoding="utf-8")
    return load(path)


AGE = column("age", "int", 80)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (column("national_id", distinct=N), "identifier"),
        (column("customerNumber", "bigint", 900), "identifier"),
        (column("e_mail", distinct=N), "identifier"),
        (column("First Name", distinct=300), "identifier"),
        (column("contact", kind="e-mail addresses"), "identifier"),
        (column("contact", "bigint", kind="card numbers"), "identifier"),
        (column("holder of it", distinct=900, kind="names of persons"), "quasi_identifier nominal"),
        (column("holder of it", distinct=3_000, kind="names of persons"), "identifier"),
        (column("remarks", distinct=N), "identifier"),
        (column("remarks", distinct=7_000), "identifier"),
        (column("row", "bigint", N, unique=True), "identifier"),
        (column("_c0", "string", 300, present=300, unique=True, parses_as="int"), "identifier"),
        (column("Unnamed: 0", "bigint", 300, present=300, unique=True), "identifier"),
        (column("points", "bigint", 300, present=300, unique=True), "quasi_identifier continuous"),
        (column("_c1", "int", 80), "quasi_identifier continuous"),
        (column("diagnosis"), "sensitive"),
        (column("annualIncome", "double", 5_000), "sensitive"),
        (column("diagnosis", distinct=1), "drop"),
        (column("one", "int", 1), "drop"),
        (column("iban", distinct=1), "drop"),
        (column("iban", distinct=1, kind="IBANs"), "drop"),
        (column("customer id", "int", distinct=1), "drop"),
        (column("one", "int", 1, present=3), "quasi_identifier nominal"),
        (column("visited at", "int", 24, part="the hour of visit"), "drop"),
        (column("age", "int", 80), "quasi_identifier continuous"),
        (column("age", "string", 80, parses_as="int"), "quasi_identifier continuous"),
        (column("height", "decimal(5,2)", 80), "quasi_identifier continuous"),
        (column("height", "double", N, unique=True), "quasi_identifier continuous"),
        (column("born", "date", 3_000), "quasi_identifier continuous"),
        (column("children", "int", 5), "quasi_identifier nominal"),
        (column("zip", "int", 2_000), "quasi_identifier nominal"),
        (column("city", "string", 500), "quasi_identifier nominal"),
        (column("smoker", "boolean", 2), "quasi_identifier nominal"),
        (column("workclass"), "quasi_identifier nominal"),
        (column("tags", "array<string>", 0, present=0), "drop"),
        (column("blob", "binary", 0, present=0), "drop"),
        (column("nothing", "string", 0, present=0), "drop"),
    ],
)
def test_role_and_scale(profile: ColumnProfile, expected: str) -> None:
    found = guess_role(profile)
    assert " ".join(filter(None, [found.role, found.scale])) == expected


@given(
    st.text(),
    st.sampled_from(["string", "int", "double", "date", "boolean", "map<string,int>", "void"]),
    st.integers(0, N),
    st.booleans(),
)
def test_nothing_is_guessed_to_be_harmless(name: str, type: str, distinct: int, one: bool) -> None:
    assert guess_role(column(name, type, distinct, unique=one)).role != "insensitive"


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        (column("patient_id", distinct=900), "named like an identifier"),
        (column("patient_id"), "named like an identifier"),
        (column("patient_id", distinct=4), "named like an identifier, but 4 values in 10,000 rows"),
        (
            column("no_show_patient", "int", 1, present=9),
            "named like an identifier, but 1 value in 9",
        ),
        (column("zip", "bigint"), "named like a code"),
        (column("diagnosis"), "named like something confidential"),
        (column("state", distinct=1), "constant where present"),
    ],
)
def test_why_it_is_guessed(profile: ColumnProfile, why: str) -> None:
    assert guess_role(profile).why.removesuffix(" rows") == why.removesuffix(" rows")


def test_few_rows_prove_nothing() -> None:
    assert guess_role(column("city", distinct=10, present=10)).role == "quasi_identifier"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nationalID", ["national", "id"]),
        ("e-mail", ["e", "mail"]),
        ("SSN", ["ssn"]),
        ("icd10 code", ["icd", "10", "code"]),
        ("Größe", ["grosse"]),
        ("PRÉNOM Łódź", ["prenom", "lodz"]),
        ("", []),
    ],
)
def test_words_of_a_name(name: str, words: list[str]) -> None:
    assert name_words(name) == words


def test_whole_draft(tmp_path: Path) -> None:
    profile = table(
        column("person_id", distinct=N, unique=True),
        column("age", "string", 80, parses_as="int"),
        column("city", distinct=4_000),
        column("diagnosis"),
        column("label", distinct=2),
        column("class", distinct=2),
        options={"header": "true", "delimiter": ";"},
        n_rows=5 * N,
    )
    config = loaded(profile, tmp_path)
    roles = {name: attribute.role.value for name, attribute in config.attributes.items()}
    assert roles == {
        "person_id": "identifier",
        "age": "quasi_identifier",
        "city": "quasi_identifier",
        "diagnosis": "sensitive",
        "label": "target",
        "class": "quasi_identifier",
    }
    assert config.one_row_per_person == "person_id"
    assert config.attributes["age"].type == "int"
    assert [model.type for model in config.privacy.models] == [
        *("k_anonymity", "l_diversity", "l_diversity")
    ]
    assert config.source.options == {"header": "true", "delimiter": ";"}
    assert not config.attributes["label"].public
    assert config.review == (
        *[f"attributes.{name}" for name in roles],
        *("one_row_per_person", "privacy.models", "gates", "release.path"),
    )
    assert config.evaluate is not None
    assert config.evaluate.measures
    assert [gate.text for gate in config.gates] == ["disclosure.gain at most 0.3"]
    usual = make_draft(profile)
    for k in (LEAST_K - 1, LEAST_K):
        told = "# k = 12 keeps the chance to be found within 0.09" in (
            format_draft(replace(usual, k=k), Path())
        )
        assert told is (k < LEAST_K)
    assert "a sample of 10,000" in draft(profile)


def test_repeated_person_is_a_unit(tmp_path: Path) -> None:
    columns = (column("order_id", distinct=N, unique=True), column("customer_id", distinct=900))
    config = loaded(table(*columns, AGE), tmp_path)
    assert config.unit == ("customer_id",)
    assert config.one_row_per_person is False


def test_an_identifier_that_repeats_is_asked_about() -> None:
    """By its name it may be a person's, or not."""
    text = draft(table(column("id", distinct=9_000), AGE))
    assert "# Nothing unique was found; id repeats values. Is every row another person?" in text
    assert "one_row_per_person: true" in text
    assert "# Nothing unique was found. Is" in draft(table(column("id", distinct=3), AGE))


def test_texts_that_come_again_are_asked_about() -> None:
    """Where nothing else counts persons: those that have the most values."""
    wards, towns, codes = (
        column(n, distinct=d) for n, d in (("ward", 600), ("town", 900), ("q", 5))
    )
    found = (
        "# Nothing unique was found; town has about 11 rows for each of its values. Is every row"
    )
    assert found in draft(table(wards, towns, codes, AGE))
    assert "one_row_per_person: true" in draft(table(wards, towns, AGE))
    for other in (
        column("town", distinct=400),
        column("town", distinct=6_000),
        column("plz", distinct=900),
    ):
        assert "rows for each" not in draft(table(other, AGE))
    assert "rows for each" not in draft(table(towns, column("order id", distinct=N, unique=True)))


def test_a_unit_has_enough_values_and_the_most(tmp_path: Path) -> None:
    """Not a constant, nor a number of few values: classes of persons need more persons than k."""
    one, few = column("iban", distinct=1), column("member no", distinct=7)
    assert loaded(table(one, few, AGE), tmp_path).one_row_per_person is True
    account, person = column("account no", distinct=300), column("customer id", distinct=900)
    assert loaded(table(few, account, person, AGE), tmp_path).unit == ("customer id",)
    assert loaded(table(person, account, AGE), tmp_path).unit == ("customer id",)


def test_nobody_identified(tmp_path: Path) -> None:
    config = loaded(table(AGE), tmp_path)
    assert config.one_row_per_person is True
    assert "Nothing unique was found" in draft(table(AGE))


def test_a_person_who_repeats_is_known_by_an_address(tmp_path: Path) -> None:
    address = column("contact", distinct=900, kind="e-mail addresses")
    place = column("place", distinct=3_000, kind="postal addresses")
    order = column("order id", distinct=N, unique=True)
    assert loaded(table(place, order, address, AGE), tmp_path).unit == ("contact",)
    assert loaded(table(place, order, AGE), tmp_path).one_row_per_person == "order id"


def test_a_number_of_every_person_says_more_than_what_looks_like_one(tmp_path: Path) -> None:
    """A shop's phone repeats, and so does a cost centre in the form of one."""
    phone = column("desk", distinct=900, kind="phone numbers")
    bare = column("cost centre", distinct=900, kind=BARE_PHONES)
    person = column("Personalnummer", "bigint", N, unique=True)
    assert loaded(table(phone, person, AGE), tmp_path).one_row_per_person == "Personalnummer"
    assert loaded(table(phone, AGE), tmp_path).unit == ("desk",)
    mail = column("contact", distinct=900, kind="e-mail addresses")
    assert loaded(table(mail, person, AGE), tmp_path).unit == ("contact",)
    assert loaded(table(bare, AGE), tmp_path).one_row_per_person is True
    again = column("customer id", distinct=900)
    assert loaded(table(phone, person, again, AGE), tmp_path).unit == ("customer id",)


def test_what_may_be_missing(tmp_path: Path) -> None:
    profile = table(
        column("age", "int", 80, tokens={"-999": 12}),
        column("salary", "int", 80, tokens={"-9": 3}),
        column("city", tokens={"NA": 5, "-": 2}, present=N - 7),
        column("e-mail", distinct=900, tokens={"none": 5}),
    )
    config = loaded(profile, tmp_path)
    assert config.privacy.missing_tokens == ("?", "", "-9", "NA", "-")
    assert "privacy.missing_tokens" in config.review
    text = draft(profile)
    assert "none" not in text.replace("none missing", "")
    assert "make -999 null in the source" in text
    assert "some as NA, -" in text
    assert loaded(table(AGE), tmp_path).privacy.missing_tokens == ("?", "")


def test_what_values_look_like_is_asked(tmp_path: Path) -> None:
    """Of quasi-identifiers, and of codes that would be averaged."""
    days, codes = "days written as yyyyMMdd", "codes of 8 digits"
    asked = [
        column("seen", "int", 300, doubt=days),
        column("paid", doubt="numbers with a unit or a currency"),
        column("contract", "bigint", 300, doubt=codes),
    ]
    text = draft(table(AGE, *asked))
    assert f"look like {days}; if they are that, make dates of them in the source" in text
    assert "look like numbers with a unit or a currency; if they are that, convert them" in text
    assert f"look like {codes}; if they are that, make them nominal" in text
    silent = [
        column("salary", "int", 300, doubt=codes),
        column("zip", "int", 300, doubt=codes),
        column("kind", "int", 3, doubt=codes),
        column("Belegnr", "bigint", N, unique=True, doubt=codes),
    ]
    assert "look like" not in draft(table(AGE, *silent))
    compact = column("day", distinct=300, parses_as="date", layout="yyyyMMdd")
    assert loaded(table(AGE, compact), tmp_path).attributes["day"].layout == "yyyyMMdd"


def test_numbers_far_from_all_others_are_asked_about() -> None:
    """They stay values: nothing but a question is in the draft."""
    profile = table(
        column("age", "int", 80, far=("999",)), column("salary", "int", 80, far=("-1",))
    )
    text = draft(profile)
    assert text.count("mean missing? Then make it null in the source") == 2
    assert "does 999 mean missing?" in text
    assert "does -1 mean missing?" in text
    ever = draft(table(AGE, column("until", "date", 80, far=("1900-01-01", "9999-12-31"))))
    told = "does 1900-01-01 or 9999-12-31 mean missing, or no end? Then make it null in the source"
    assert told in ever
    assert "missing_tokens" not in text
    hidden = table(AGE, column("customer id", "int", 900, far=("999",)))
    assert "mean missing" not in draft(hidden)


def test_a_token_stays_a_value_in_a_quasi_identifier_of_text() -> None:
    text = draft(table(AGE, column("city", tokens={"NA": 5}, present=N - 5)))
    assert "In other columns\n  # they stay values" in text
    assert "every column" not in text


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028"])
def test_no_text_of_the_table_makes_a_line_of_the_draft(tmp_path: Path, end: str) -> None:
    evil = f"a{end}release: {{path: /tmp/x}} #"
    profile = table(
        AGE,
        column("blob", f"struct<{evil}:int>"),
        column("hour", part=f"the hour of {evil}"),
        notes=(f"noted {evil}",),
    )
    config, plain = loaded(profile, tmp_path), draft(table(AGE, column("blob"), column("hour")))
    assert config.release.path == str(tmp_path / "out/people")
    extra = 2  # the note, and its place in the review
    assert len(draft(profile).splitlines()) == len(plain.splitlines()) + extra


def test_a_drafted_gate_can_fail(tmp_path: Path) -> None:
    """By how well classes tell a sensitive value: no bound on it follows from k."""
    config = loaded(table(AGE, column("diagnosis")), tmp_path)
    (gate,) = config.gates
    told = (Figure("gain", 0.31, "diagnosis"), Figure("gain", 0.0, "illness"))
    assert not judge(gate, Evaluation({"disclosure": Findings(told)})).passed
    assert loaded(table(AGE), tmp_path).gates == ()


def test_columns_that_say_the_same(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    town = r.integers(0, 50, N)
    hashes = {"zip": town * 7, "town": town, "region": town // 10, "label": r.integers(0, 2, N)}
    hashes["y"] = hashes["label"] * 3
    profile = table(*[column(name) for name in hashes], hashes=hashes)
    config, text = loaded(profile, tmp_path), draft(profile)
    roles = {name: attribute.role.value for name, attribute in config.attributes.items()}
    quasi = "quasi_identifier"
    assert roles == {"zip": quasi, "town": "drop", "region": quasi, "label": "target", "y": "drop"}
    assert "says the same as zip" in text
    assert "says the same as label" in text
    follows = [line for line in text.splitlines() if "follows from zip" in line]
    assert [line.split(":")[0] for line in follows] == ["  region"]


def test_columns_that_are_equal(tmp_path: Path) -> None:
    """Though no value repeats, and if one of them is an identifier."""
    hashes = {name: np.arange(N) for name in ("weight", "mass")}
    hashes |= {name: np.arange(N) // 3 for name in ("nr", "customer id", "height")}
    hashes["height"] = hashes["height"][::-1].copy()
    numbers = [column(name, "double", N if i < 2 else N // 3) for i, name in enumerate(hashes)]
    profile = table(*numbers, hashes=hashes)
    roles = {name: a.role.value for name, a in loaded(profile, tmp_path).attributes.items()}
    quasi = "quasi_identifier"
    assert roles == {
        "weight": quasi,
        "mass": "drop",
        "nr": "drop",
        "customer id": "identifier",
        "height": quasi,
    }
    assert "equals weight in every row" in draft(profile)
    assert 'equals "customer id" in every row' in draft(profile)


def spoken(text: str) -> str:
    """A draft without the marks of comments and the ends of lines."""
    return " ".join(text.replace("#", " ").split())


def test_columns_that_single_out(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    hashes = {"sex": r.integers(0, 2, N), "weight": r.integers(0, 2**60, N)}
    text = draft(table(*[column(name) for name in hashes], hashes=hashes))
    assert "100 % of the rows have quasi-identifiers that no other row has." in spoken(text)
    assert "By column, each with those before it. Each costs" in spoken(text)
    assert "#   weight: 100 %" in text
    hashes |= {name: r.integers(0, 3, N) for name in ("a", "b", "c")}
    few = draft(table(*[column(name) for name in hashes], hashes=hashes))
    assert "Few columns do most of that. Each costs" in spoken(few)
    many = {f"c{i}": r.integers(0, 3, N) for i in range(12)}
    text = draft(table(*[column(name) for name in many], hashes=many))
    assert "It takes many columns: these 3 do less than half of it. Each costs" in spoken(text)
    constant = {"sex": np.zeros(N, np.int64)}
    assert "no other row" not in draft(table(column("sex"), hashes=constant))


def test_a_review_names_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "draft.yaml").write_text(draft(table(AGE)))
    conf = tmp_path / "draft.yaml"
    assert load(conf, ["review=[unit, attributes.age, source.path]"]).review
    with pytest.raises(ConfigError, match=r"review.1: names no field .* mean attributes.age"):
        load(conf, ["review=[unit, attributes.aga]"])
    with pytest.raises(ConfigError, match=r"review.0: names no field"):
        load(conf, ["review=[nothing.at.all]"])


def test_a_draft_is_not_released(tmp_path: Path) -> None:
    config = loaded(table(AGE), tmp_path)
    with pytest.raises(ConfigError, match=r"review: a draft: nobody has looked at attributes.age,"):
        require_reviewed(config.review)
    require_reviewed(())
    assert digest_config(config) == digest_config(config.model_copy(update={"review": ()}))


def test_income_is_a_label_only_with_two_values(tmp_path: Path) -> None:
    for distinct, role in [(2, "target"), (500, "sensitive")]:
        config = loaded(table(AGE, column("income", distinct=distinct)), tmp_path)
        assert config.attributes["income"].role == role


def test_many_categories(tmp_path: Path) -> None:
    profile = table(AGE, column("town", distinct=20_000, present=90_000), n_sample=90_000)
    assert loaded(profile, tmp_path).max_categories == 40_000


def test_catalog_table(tmp_path: Path) -> None:
    profile = table(AGE, format="table", table="shop.people", path=None)
    config = loaded(profile, tmp_path)
    assert (config.source.format, config.source.table) == ("table", "shop.people")
    assert config.release.path == str(tmp_path / "out/people")


@pytest.mark.parametrize(
    ("source", "release"),
    [
        ("data/people.csv.gz", "out/people"),
        ("out/people", "released/people"),
        ("out/*", "released/table"),
        ("*/*.csv", "out/table"),
        ("*/*", "../released/table"),
        (".", "../released/table"),
        ("s3a://bucket/shop/", "out/shop"),
    ],
)
def test_releases_lie_beside_their_sources(source: str, release: str, tmp_path: Path) -> None:
    path = loaded(table(AGE, path=source), tmp_path).release.path
    assert path == normpath(tmp_path / release)


def test_a_draft_for_another_folder_names_the_same_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    text = format_draft(make_draft(table(AGE, path="data/people.csv")), Path("conf"))
    Path("conf/people.yaml").write_text(text)
    monkeypatch.chdir("/")
    config = load(tmp_path / "conf/people.yaml")
    assert config.source.path == str(tmp_path / "data/people.csv")
    assert config.release.path == str(tmp_path / "out/people")


def test_secrets_are_named(tmp_path: Path) -> None:
    secrets = {"password": "PGPASSWORD", "odd: token": "A_B"}
    found = loaded(table(AGE, secrets=secrets, options={"header": "true"}), tmp_path)
    assert found.source.secrets == secrets
    assert found.source.options == {"header": "true"}
    assert "secrets" not in draft(table(AGE))


def test_every_draft_has_a_seed_of_its_own(tmp_path: Path) -> None:
    seeds = {loaded(table(AGE), tmp_path).seed for _ in range(5)}
    assert len(seeds) > 1  # all the same: once in 10^37
    assert all(0 <= seed < 2**31 for seed in seeds)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda name: name.strip() and not name.startswith(RESERVED_PREFIX)
)
ODD = [
    "no",
    "null",
    "~",
    "1",
    "1.5",
    "2020-01-01",
    "a: b",
    "# x",
    "{}",
    "a.b",
    "`q`",
    "y",
    "<<",
    "=",
    "${HOME}",
    "${",
    "a ${NOT_SET_ANYWHERE:-${x}} ..",
    "${PGPASSWORD}",
]


@given(st.lists(NAMES | st.sampled_from(ODD), min_size=1, unique_by=str.casefold, max_size=6))
def test_any_names(tmp_path: Path, names: list[str]) -> None:
    columns = [column(name, distinct=3) for name in names]
    config = loaded(table(AGE, *[c for c in columns if c.name.casefold() != "age"]), tmp_path)
    assert set(config.attributes) == {"age", *[n for n in names if n.casefold() != "age"]}


@pytest.mark.parametrize("name", [name for name in ODD if "$" in name])
def test_a_column_named_as_a_variable(tmp_path: Path, name: str) -> None:
    """Wherever a draft names it: it stays a name."""
    person = column(f"person id {name}", distinct=N, unique=True)
    config = loaded(table(person, AGE, column(name, distinct=3)), tmp_path)
    assert config.one_row_per_person == person.name
    assert f"attributes.{name}" in config.review
    config = loaded(table(column(f"person id {name}", distinct=N // 3), AGE), tmp_path)
    assert config.unit == (f"person id {name}",)
    raw = read_yaml(draft(table(AGE, column(name, distinct=3))))
    raw["attributes"][name] = {"role": "target"}
    raw["privacy"]["models"].append({"type": "l_diversity", "l": 2, "attribute": name})
    raw["review"] = [f"attributes.{each}" for each in raw["attributes"]]
    config = parse(raw)
    assert config.privacy.models[-1].model_dump()["attribute"] == name


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(ODD))
def test_scalars(text: str) -> None:
    assert "\n" not in write_scalar(text)
    assert read_yaml(f"{{{write_scalar(text)}: [{write_scalar(text)}]}}") == {text: [text]}


class TestSniff:
    def options(self, *head: str, **given: str) -> dict[str, str]:
        options = dict(given)
        sniff("csv", head, options, [])
        return options

    @pytest.mark.parametrize("delimiter", [";", "\t", "|"])
    def test_delimiter(self, delimiter: str) -> None:
        head = [f"a{delimiter}b{delimiter}c, d", f'"x, y"{delimiter}2{delimiter}"1,5"']
        assert self.options(*head) == {"header": "true", "delimiter": delimiter}

    def test_comma(self) -> None:
        assert self.options("a,b", "1;2,3", "4,5") == {"header": "true"}

    def test_one_column(self) -> None:
        assert self.options("a", "x y", "z") == {"header": "true"}

    @pytest.mark.parametrize("first", ["1,x", ",", "x,-1.5", "39, State-gov", ",y", "y,y"])
    def test_no_header(self, first: str) -> None:
        notes: list[str] = []
        options: dict[str, str] = {}
        sniff("csv", [first, "2,y"], options, notes)
        assert options["header"] == "false"
        assert notes

    @pytest.mark.parametrize("first", ["x,flu,no", "x,no,no", "x,,no", "flu,,no"])
    def test_rows_of_texts(self, first: str) -> None:
        """What is a value further down is no name of the column."""
        assert self.options(first, "y,flu,no", "z,flu,yes", "z,no,no")["header"] == "false"

    @pytest.mark.parametrize(
        ("first", "noted"), [(",age,city", True), ("age,city,", True), ("age,age,city", False)]
    )
    def test_names_left_out_or_repeated(self, first: str, noted: bool) -> None:
        """As pandas writes its index, for one: the other cells are names all the same."""
        notes: list[str] = []
        options: dict[str, str] = {}
        sniff("csv", [first, "0,41,Bonn", "1,27,Cork", first], options, notes)
        assert options == {"header": "true"}
        assert [*map(bool, notes)] == [True] * noted

    def test_a_name_that_is_also_a_value(self) -> None:
        assert self.options("sex,smoker", "m,smoker", "f,none", "f,none")["header"] == "true"
        assert self.options("f,smoker,x", "m,smoker,y", "f,none,z")["header"] == "false"

    def test_blanks_after_commas(self) -> None:
        found = self.options("a, b, c", "1, x, y")
        assert found == {"header": "true", "ignoreLeadingWhiteSpace": "true"}

    def test_doubled_quotes(self) -> None:
        assert self.options("a,b", '"he said ""no""",1')["escape"] == '"'
        assert "escape" not in self.options("a,b", '"he said \\"no\\"",""')
        assert "escape" not in self.options("a,b", '"",""')

    def test_given_tab(self) -> None:
        assert self.options("a,\tb", "1,\t2", Sep="\\t") == {"header": "true", "Sep": "\\t"}

    def test_what_is_given_stays(self) -> None:
        assert self.options("1;2", "3;4", header="true", sep=",") == {"header": "true", "sep": ","}
        assert self.options("a,b", Delimiter=";")["Delimiter"] == ";"

    def test_json(self) -> None:
        for head, found in [(["["], {"multiLine": "true"}), (['{"a": 1}'], {})]:
            options: dict[str, str] = {}
            sniff("json", head, options, [])
            assert options == found
