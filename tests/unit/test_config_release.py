"""What a config must say about releases after the first."""

from typing import Any

import pytest

from anonlib.config.checks.persons import note_links
from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.errors import ConfigError

ENV = {"key_env": "LEDGER"}
LINKED = {"models": [{"type": "k_anonymity", "k": 3}], "acknowledge_linked": True}


RAW: dict[str, Any] = {
    "source": {"format": "parquet", "path": "people"},
    "attributes": {
        "id": {"role": "identifier", "pseudonym": True},
        "age": {"role": "quasi_identifier", "scale": "continuous"},
    },
    "one_row_per_person": "id",
    "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
    "pseudonyms": {"key_env": "PSEUDONYMS"},
}


def made(**changes: Any) -> Config:
    return parse({**RAW, **changes})


def problems(release: dict[str, Any], **changes: Any) -> dict[str, str]:
    """The problems of a config with this release section."""
    try:
        made(**{"release": {"path": "out/people", **release}, **changes})
    except ConfigError as error:
        return {problem.where: problem.text for problem in error.problems}
    return {}


@pytest.mark.parametrize(
    "release",
    [
        {"mode": "append", "ledger": ENV},
        {"mode": "append", "ledger": ENV, "backlog": ENV},
        {"mode": "append", "acknowledge_returning": True, "backlog": {"key_file": "LEDGER"}},
        {"mode": "overwrite", "acknowledge_overwrite": True},
        {"mode": "overwrite"},  # nothing may be there
        {"ledger": {**ENV, "path": "elsewhere"}},
        {"record": "out/private", "ledger": ENV},
    ],
)
def test_right(release: dict[str, Any]) -> None:
    assert problems(release) == {}


@pytest.mark.parametrize(
    ("release", "where", "text"),
    [
        ({"mode": "append"}, "release.ledger", "or set `acknowledge_returning: true`"),
        ({"ledger": {}}, "release.ledger", "exactly one of key_env and key_file"),
        ({"ledger": {**ENV, "key_file": "x"}}, "release.ledger", "exactly one"),
        ({"backlog": {"path": "x"}}, "release.backlog", "exactly one"),
        ({"ledger": {"key_env": "PSEUDONYMS"}}, "release.ledger.key_env", "the pseudonyms' key"),
        ({"backlog": {"key_env": "PSEUDONYMS"}}, "release.backlog.key_env", "the pseudonyms' key"),
        ({"ledger": {**ENV, "path": "out/people/_l"}}, "release.ledger", "lies in the release"),
        ({"backlog": {**ENV, "path": "out/people"}}, "release.backlog", "lies in the release"),
    ],
)
def test_wrong(release: dict[str, Any], where: str, text: str) -> None:
    found = problems(release)
    assert list(found) == [where]
    assert text in found[where]


def test_persons_that_nobody_can_name() -> None:
    declared = {"one_row_per_person": True, "privacy": LINKED}
    found = problems({"mode": "append", "ledger": ENV}, **declared)
    assert "names nobody" in found["release.ledger"]
    accepted = {"mode": "append", "acknowledge_returning": True}
    assert problems(accepted, **declared) == {}


def test_units_need_the_ledger() -> None:
    of_unit = {"one_row_per_person": False, "unit": ["id"], "privacy": LINKED}
    found = problems({"mode": "append", "acknowledge_returning": True}, **of_unit)
    assert "with a `unit`" in found["release.ledger"]
    assert problems({"mode": "append", "ledger": ENV}, **of_unit) == {}


def with_model(model: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A config with a unit and a model of a sensitive column."""
    attributes = {
        "id": {"role": "identifier", "pseudonym": True},
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "town": {"role": "drop"},
        "ill": {"role": "sensitive"},
    }
    models = [{"type": "k_anonymity", "k": 3}, model]
    persons = {"one_row_per_person": False, "unit": ["id"], "attributes": attributes}
    return {**persons, "privacy": {"models": models, "acknowledge_linked": True}, **more}


def test_models_that_count_persons_of_several_batches() -> None:
    """Where persons can't be counted by their values, models that need it are refused."""
    batch = {"mode": "append", "ledger": ENV}
    close = with_model({"type": "t_closeness", "t": 0.3})
    assert "t_closeness compare cells" in problems(batch, **close)["release.mode"]
    assert problems({"mode": "overwrite"}, **close) == {}
    alpha = with_model({"type": "alpha_k", "alpha": 0.5})
    assert problems(batch, **alpha) == {}
    found = problems({**batch, "acknowledge_returning": True}, **alpha)
    assert "alpha_k may fail in the table" in found["release.acknowledge_returning"]
    distinct = with_model({"type": "l_diversity", "l": 2})
    assert problems({**batch, "acknowledge_returning": True}, **distinct) == {}
    # Also where each row is a person of its batch.
    for model in (close, alpha):
        rows = {**model, "unit": [], "one_row_per_person": "id"}
        assert problems(batch, **rows) == {}
        found = problems({**batch, "acknowledge_returning": True}, **rows)
        assert "may fail in the table" in found["release.acknowledge_returning"]


def test_controllers_that_are_left_out_change_what_persons_are_compared_with() -> None:
    close = {"type": "t_closeness", "t": 0.3}
    for merge in (False, True):
        steps = [{"type": "controller", "column": "town", "merge": merge}]
        found = problems({}, **with_model(close, partition={"steps": steps}))
        assert [*found] == ([] if merge else ["partition.steps.0.merge"])


@pytest.mark.parametrize(
    ("changes", "where", "text"),
    [
        (
            {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "HUSH"}}},
            "spark.conf",
            "credentials don't belong in a config: remove spark.hadoop.fs.s3a.secret.key",
        ),
        ({"spark": {"conf": {"fs.s3a.bucket.b.access.key": "HUSH"}}}, "spark.conf", "b.access.key"),
        ({"spark": {"conf": {"spark.executorEnv.AWS_SESSION_TOKEN": "HUSH"}}}, "spark.conf", "TOK"),
        (
            {"spark": {"conf": {"spark.driver.extraJavaOptions": "-Daws.secretAccessKey=HUSH"}}},
            "spark.conf",
            "remove spark.driver.extraJavaOptions",
        ),
        (
            {
                "source": {
                    "format": "csv",
                    "path": "s3a://bucket/a.csv",
                    "options": {"fs.s3a.session.token": "HUSH"},
                }
            },
            "source.options",
            "remove fs.s3a.session.token, and give them in the environment (AWS_ACCESS_KEY_ID",
        ),
        *(
            ({"spark": {"conf": {name: "HUSH"}}}, "spark.conf", f"remove {name}, and give")
            for name in (
                "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net",
                "fs.azure.sas.container.store.blob.core.windows.net",
                "spark.hadoop.fs.gs.auth.service.account.private.key",
                "fs.s3a.encryption.key",
                "spark.ssl.keyPassword",
                "spark.authenticate.secret",
                "spark.kubernetes.authenticate.oauthToken",
                "spark.executorEnv.DB_PASSWORD",
            )
        ),
        (
            {"spark": {"conf": {"spark.driver.extraJavaOptions": "-Djavax.trustPassword=HUSH"}}},
            "spark.conf",
            "remove spark.driver.extraJavaOptions",
        ),
        ({"spark": {"conf": {"a.proxy": "http://a:HUSH@h:1/"}}}, "spark.conf", "remove a.proxy"),
        ({"source": {"format": "csv", "path": "hdfs://a:HUSH@h/x"}}, "source.path", "before the @"),
        ({"release": {"path": "s3://ID:HUSH@bucket/a"}}, "release.path", "before the @"),
        ({"release": {"path": "s3a://bucket/"}}, "release.path", "name a folder in the bucket"),
        ({"release": {"path": "s3a://ID:HUSH@bucket/a"}}, "release.path", "before the @"),
        ({"release": {"path": "a", "record": "s3a://b"}}, "release.record", "name a folder"),
    ],
)
def test_object_stores(changes: dict[str, Any], where: str, text: str) -> None:
    """Their credentials never stand in a config, and never in what is said of it."""
    found = problems(**{"release": {}, **changes})
    assert text in found[where]
    assert "HUSH" not in str(found)


def test_settings_of_object_stores() -> None:
    conf = {
        "spark.hadoop.fs.s3a.endpoint": "http://localhost:9",
        "fs.s3a.path.style.access": True,
        "fs.s3a.aws.credentials.provider": "software.amazon.Provider",
        "spark.hadoop.hadoop.security.credential.provider.path": "jceks://file/x",
        "spark.security.credentials.hive.enabled": False,
        "fs.azure.account.auth.type": "OAuth",
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/etc/key.json",
        "spark.sql.shuffle.partitions": 8,
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Da=b",
    }
    assert problems({"path": "s3a://bucket/people"}, spark={"conf": conf}) == {}


@pytest.mark.parametrize(
    ("persons", "linked"),
    [
        ({}, False),
        ({"one_row_per_person": True}, True),
        ({"one_row_per_person": False, "unit": ["id"]}, True),
    ],
)
def test_pseudonyms_that_link_rows(persons: dict[str, Any], linked: bool) -> None:
    """Who knows some rows of a pseudonym finds the others, however large their classes are."""
    found = problems({}, **persons)
    assert ("attributes.id.pseudonym" in found) == linked
    if linked:
        assert "privacy.acknowledge_linked" in found["attributes.id.pseudonym"]
        assert problems({}, **persons, privacy=LINKED) == {}


@pytest.mark.parametrize(
    ("scope", "release", "linked"),
    [
        ("stable", {"mode": "append", "ledger": ENV, "acknowledge_returning": True}, True),
        ("release", {"mode": "append", "ledger": ENV, "acknowledge_returning": True}, False),
        ("stable", {"mode": "append", "ledger": ENV}, False),
        ("stable", {"mode": "overwrite"}, False),
    ],
)
def test_pseudonyms_that_link_batches(scope: str, release: dict[str, Any], linked: bool) -> None:
    """Persons who return have the pseudonym of their earlier rows, if it is stable."""
    given = {"pseudonyms": {"key_env": "PSEUDONYMS", "scope": scope}}
    found = problems(release, **given)
    assert ("attributes.id.pseudonym" in found) == linked
    if linked:
        assert "a person who returns" in found["attributes.id.pseudonym"]
        assert problems(release, **given, privacy=LINKED) == {}
    raw = {**given, "privacy": LINKED, "release": {"path": "out/people", **release}}
    assert [note.startswith("pseudonyms: a person who ") for note in note_links(made(**raw))] == (
        [True] if linked else []
    )
    unnamed = {"id": {"role": "identifier"}, "age": RAW["attributes"]["age"]}
    assert [*note_links(made(**raw, attributes=unnamed))] == []
