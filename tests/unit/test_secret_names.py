"""Which names stand for secrets."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonlib.config.places import overlap
from anonlib.config.secrets import has_password, is_secret_setting, is_secret_variable


@pytest.mark.parametrize(
    "name",
    [
        "spark.executorEnv.PSEUDONYM_KEY",
        "spark.yarn.appMasterEnv.DB_PASS",
        "fs.azure.account.key.store.blob.core.windows.net",
        "fs.gs.auth.service.account.private.key",
        "db_pass",
    ],
)
def test_secret_settings(name: str) -> None:
    assert is_secret_setting(name)


@pytest.mark.parametrize(
    "name",
    [
        "spark.executorEnv.NUMBA_CACHE_DIR",
        "fs.azure.sas.token.provider.type.store.dfs.core.windows.net",
        "fs.azure.account.oauth2.refresh.token.endpoint",
        "dfs.block.access.token.enable",
        "spark.security.credentials.renewalRatio",
        "spark.kubernetes.executor.secrets.certificates",
    ],
)
def test_settings_about_secrets(name: str) -> None:
    assert not is_secret_setting(name)


def test_variables() -> None:
    for name in ("LEDGER_KEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "GOOGLE_CREDENTIALS"):
        assert is_secret_variable(name)
    for name in ("LEDGER_KEY_FILE", "KEYS_DIR", "CREDENTIALS_DIRECTORY", "AWS_ENDPOINT_URL"):
        assert not is_secret_variable(name)


def test_passwords_in_urls() -> None:
    assert has_password("s3a://AKIAX:abc/def@bucket/x")
    assert has_password("jdbc:mysql://u:p/w@host/db")
    for url in ("hdfs://nn:8020/a@b", "abfss://c@account.dfs.core.windows.net/a:b", "s3a://b/x"):
        assert not has_password(url)


def test_globs_that_no_file_of_a_release_matches() -> None:
    assert not overlap("/lake/*/people.csv", "/lake/anon")
    assert overlap("/lake/*/*.parquet", "/lake/anon")
    assert overlap("/lake/*", "/lake/anon")


@given(st.text(st.sampled_from(list(":/@?# a1;\n")), max_size=14))
@example("://:1/@")
@example("://a:1/b@c")
def test_passwords_are_found_as_by_one_search(url: str) -> None:
    user = re.findall(r"://([^/\s?#;]*)@", url)
    slashed = re.search(r"://[^@\s?#:]*:(?!\d+(?:/|$))[^@\s?#]*@", url)
    assert has_password(url) == (any(":" in each for each in user) or slashed is not None)
