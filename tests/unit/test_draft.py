"""Drafted configs: the guesses, and YAML that loads whatever the columns are called."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.config.draft import ColumnProfile, TableProfile, draft, guess_role, name_words, scalar
from anonlib.config.model import RESERVED_PREFIX, Config
from anonlib.config.reading import load
from anonlib.config.yaml import read_yaml
from anonlib.source.profile import sniff

N = 10_000


def column(name: str, type: str = "string", distinct: int = 5, **more: Any) -> ColumnProfile:
    return ColumnProfile(name, type, more.pop("present", N), distinct, **more)


def table(*columns: ColumnProfile, **more: Any) -> TableProfile:
    fields = {"format": "csv", "path": "in/people.csv", "table": None, "n_rows": N, "n_sample": N}
    return TableProfile(**{**fields, **more}, columns=columns)


def loaded(profile: TableProfile, folder: Path) -> Config:
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
        (column("contact", emails=0.9), "identifier"),
        (column("remarks", distinct=N), "identifier"),
        (column("remarks", distinct=7_000), "identifier"),
        (column("row", "bigint", N, unique=True), "identifier"),
        (column("diagnosis"), "sensitive"),
        (column("annualIncome", "double", 5_000), "sensitive"),
        (column("diagnosis", distinct=1), "quasi_identifier nominal"),
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
        (column("nothing", "string", 0, present=0), "quasi_identifier nominal"),
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


def test_few_rows_prove_nothing() -> None:
    assert guess_role(column("city", distinct=10, present=10)).role == "quasi_identifier"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nationalID", ["national", "id"]),
        ("e-mail", ["e", "mail"]),
        ("SSN", ["ssn"]),
        ("icd10 code", ["icd", "10", "code"]),
        ("Größe", ["größe"]),
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
    text = draft(profile)
    lines = text.splitlines()
    assert all("# review" in line for line in lines if line.startswith("  ") and "role:" in line)
    assert "a sample of 10,000" in text


def test_repeated_person_is_a_unit(tmp_path: Path) -> None:
    columns = (column("order_id", distinct=N, unique=True), column("customer_id", distinct=900))
    config = loaded(table(*columns, AGE), tmp_path)
    assert config.unit == ("customer_id",)
    assert config.one_row_per_person is False


def test_nobody_identified(tmp_path: Path) -> None:
    config = loaded(table(AGE), tmp_path)
    assert config.one_row_per_person is True
    assert "nothing unique was found" in draft(table(AGE))


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
    assert config.release.path == "out/people"


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
    assert loaded(table(AGE, path=source), tmp_path).release.path == release


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
]


@given(st.lists(NAMES | st.sampled_from(ODD), min_size=1, unique_by=str.casefold, max_size=6))
def test_any_names(tmp_path: Path, names: list[str]) -> None:
    columns = [column(name, distinct=3) for name in names]
    config = loaded(table(AGE, *[c for c in columns if c.name.casefold() != "age"]), tmp_path)
    assert set(config.attributes) == {"age", *[n for n in names if n.casefold() != "age"]}


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(ODD))
def test_scalars(text: str) -> None:
    assert "\n" not in scalar(text)
    assert read_yaml(f"{{{scalar(text)}: [{scalar(text)}]}}") == {text: [text]}


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

    @pytest.mark.parametrize("first", ["1,x", "a,", "a,a", "x,-1.5", "39, State-gov"])
    def test_no_header(self, first: str) -> None:
        notes: list[str] = []
        options: dict[str, str] = {}
        sniff("csv", [first, "2,y"], options, notes)
        assert options["header"] == "false"
        assert notes

    def test_blanks_after_commas(self) -> None:
        found = self.options("a, b, c", "1, x, y")
        assert found == {"header": "true", "ignoreLeadingWhiteSpace": "true"}

    def test_doubled_quotes(self) -> None:
        assert self.options("a,b", '"he said ""no""",1')["escape"] == '"'
        assert "escape" not in self.options("a,b", '"he said \\"no\\"",""')
        assert "escape" not in self.options("a,b", '"",""')

    def test_bytes_that_are_no_utf8(self) -> None:
        notes: list[str] = []
        options: dict[str, str] = {}
        sniff("csv", ["a,b", "M\ufffdller,1"], options, notes)
        assert options["encoding"] == "ISO-8859-1"
        assert notes

    def test_what_is_given_stays(self) -> None:
        assert self.options("1;2", "3;4", header="true", sep=",") == {"header": "true", "sep": ","}
        assert self.options("a,b", Delimiter=";")["Delimiter"] == ";"

    def test_json(self) -> None:
        for head, found in [(["["], {"multiLine": "true"}), (['{"a": 1}'], {})]:
            options: dict[str, str] = {}
            sniff("json", head, options, [])
            assert options == found
