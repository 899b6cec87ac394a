"""Sources that are databases, secrets of sources, and names in catalogs, as configs have them."""

from typing import Any

import pytest

from anonlib import parse
from anonlib.config.keys import read_secret_options
from anonlib.config.model import Config
from anonlib.config.summary import digest_config
from anonlib.errors import ConfigError

PASSWORD = "correct-horse"
URL = "jdbc:postgresql://localhost/people"
PARTS = {"partitionColumn": "id", "lowerBound": 1, "upperBound": "9", "numPartitions": 4}


def read(source: dict[str, Any], **release: Any) -> Config:
    return parse(
        {
            "source": source,
            "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}},
            "one_row_per_person": True,
            "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
            "release": {"path": "out", **release},
        }
    )


def jdbc(**options: Any) -> dict[str, Any]:
    given = {"url": URL, "dbtable": "people", **options}
    kept = {name: value for name, value in given.items() if value is not None}
    return {"format": "jdbc", "options": kept, "secrets": {"password": "PGPASSWORD"}}


def problems(source: dict[str, Any], **release: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        read(source, **release)
    return {problem.where: problem.text for problem in caught.value.problems}


@pytest.mark.parametrize(
    "options",
    [
        {},
        PARTS,
        {"dbtable": None, "query": "SELECT 1 AS age"},
        {"dbtable": "(SELECT age FROM people WHERE password_set = 1) AS t"},
        {"user": "ann", "fetchSize": 100, "url": f"{URL}?sslmode=verify-full&user=ann"},
        {**PARTS, "lowerBound": "2020-01-01", "upperBound": "2020-01-01"},
        {"url": "jdbc:oracle:thin:@//localhost:1521/people"},
    ],
)
def test_right(options: dict[str, Any]) -> None:
    assert read(jdbc(**options)).source.secrets == {"password": "PGPASSWORD"}


@pytest.mark.parametrize(
    ("options", "where", "text"),
    [
        ({"url": None}, "source.options.url", "required"),
        ({"url": "postgresql://localhost"}, "source.options.url", "required"),
        ({"url": f"{URL}?user=ann&password={PASSWORD}"}, "source.options.url", "a password in it"),
        ({"url": f"jdbc:mysql://ann:{PASSWORD}@localhost/p"}, "source.options.url", "a password"),
        ({"url": f"jdbc:oracle:thin:ann/{PASSWORD}@localhost"}, "source.options.url", "a password"),
        ({"url": f"jdbc:mysql://ann:{PASSWORD}/w@h/p"}, "source.options.url", "a password in it"),
        (
            {"url": f"jdbc:x://h/p?user=ann&pass={PASSWORD}"},
            "source.options.url",
            "a password in it",
        ),
        ({"url": f"jdbc:x://h;Access_Key={PASSWORD}"}, "source.options.url", "a password in it"),
        ({"proxy": f"http://ann:{PASSWORD}@h"}, "source.options.proxy", "a password in it"),
        (
            {"kafka.sasl.jaas.config": f"x username=a password='{PASSWORD}';"},
            "source.options.kafka.sasl.jaas.config",
            "a password in it",
        ),
        ({"passphrase": PASSWORD}, "source.options.passphrase", "environment variable"),
        ({"Password": PASSWORD}, "source.options.Password", "environment variable"),
        ({"sfPassword": PASSWORD}, "source.options.sfPassword", "environment variable"),
        ({"fs.s3a.secret.key": PASSWORD}, "source.options", "fs.s3a.secret.key"),
        ({"query": "SELECT 1"}, "source.options", "exactly one"),
        ({"dbtable": None}, "source.options", "exactly one"),
        ({**PARTS, "numPartitions": 0}, "source.options.numPartitions", "at least 1"),
        ({"fetchSize": 0}, "source.options.fetchsize", "at least 1"),
        ({**PARTS, "lowerBound": None}, "source.options.lowerBound", "all four"),
        ({"numPartitions": 4}, "source.options.partitionColumn", "all four"),
        ({**PARTS, "lowerBound": 9}, "source.options.lowerBound", "less than"),
        ({**PARTS, "dbtable": None, "query": "SELECT 1"}, "source.options.query", "dbtable"),
    ],
)
def test_wrong(options: dict[str, Any], where: str, text: str) -> None:
    found = problems(jdbc(**options))
    assert text in found[where]
    assert PASSWORD not in str(found)


def test_a_path_is_no_database() -> None:
    assert "remove it" in problems({**jdbc(), "path": "people"})["source.path"]


def test_secrets_of_other_readers() -> None:
    source = {"format": "csv", "path": "x", "options": {"token": PASSWORD}}
    assert "source.secrets" in problems(source)["source.options.token"]
    there = {"format": "csv", "path": "x", "secrets": {"Header": "A"}, "options": {"header": 1}}
    assert "remove one" in problems(there)["source.secrets.Header"]
    generated = {"format": "generator", "secrets": {"a": "A"}}
    assert "remove" in problems(generated)["source.secrets"]


def test_a_secret_in_place_of_its_variable_is_not_shown() -> None:
    wrong = {**jdbc(), "secrets": {"password": PASSWORD}}
    assert PASSWORD not in str(problems(wrong))
    plausible = "hunter2"  # could be a variable's name
    with pytest.raises(ConfigError, match="not set") as caught:
        read_secret_options(read({**jdbc(), "secrets": {"password": plausible}}).source)
    assert plausible not in str(caught.value)


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    config = read(jdbc())
    assert read_secret_options(config.source) == {"password": PASSWORD}
    assert PASSWORD not in repr(config.source)
    digest = digest_config(config)
    monkeypatch.setenv("PGPASSWORD", "another one")
    assert digest_config(read(jdbc())) == digest


@pytest.mark.parametrize("name", ["health.people", "main.health.people_2024"])
def test_right_names(name: str) -> None:
    assert read({"format": "generator"}, register=name).release.catalog_table == name


@pytest.mark.parametrize(
    "name", ["people", "a.b.c.d", "a.b c", "a.`b`", "a.b; DROP TABLE c", "a.", "ä.b", "a.b\n"]
)
def test_wrong_names(name: str) -> None:
    found = problems({"format": "generator"}, register=name)
    assert "[catalog.]schema.table" in found["release.register"]
