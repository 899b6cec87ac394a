"""Keys: derived as RFC 5869 says, apart by release or not, and never in an error's text."""

import hmac
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from anonlib.config.keys import (
    MAX_BYTES,
    MIN_BYTES,
    derive_backlog_key,
    derive_entry_key,
    derive_key_check,
    derive_ledger_key,
    derive_pseudonym_key,
    new_token_key,
    require_master_keys,
)
from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.errors import ConfigError
from tests.support import OneCell

MASTER = b"a master key of thirty-two bytes"


def config(pseudonyms: dict[str, Any] | None, *, asked: bool = True, **release: Any) -> Config:
    return parse(
        {
            "source": {"format": "parquet", "path": "in"},
            "attributes": {
                "age": {"role": "quasi_identifier", "scale": "continuous"},
                "name": {"role": "identifier", "pseudonym": asked},
            },
            "one_row_per_person": "name",
            "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
            "kernel": OneCell(),
            "release": {"path": "out", **release},
            **({"pseudonyms": pseudonyms} if pseudonyms else {}),
        }
    )


def pseudonym_key(made: Config, run_id: str, target: str) -> bytes:
    return derive_pseudonym_key(made.attributes, made.pseudonyms, run_id, target)


def ledger_key(made: Config) -> bytes:
    return derive_ledger_key(made.attributes, made.pseudonyms, made.release)


def backlog_key(made: Config) -> bytes:
    return derive_backlog_key(made.attributes, made.pseudonyms, made.release)


def hkdf(master: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt, 32 bytes: one step of each half."""
    extracted = hmac.new(bytes(32), master, sha256).digest()
    return hmac.new(extracted, info + b"\x01", sha256).digest()


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANONLIB_TEST_KEY", MASTER.decode())
    return "ANONLIB_TEST_KEY"


def test_the_oracle_is_rfc_5869() -> None:
    """Its test case 3, the first 32 of 42 bytes."""
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert hkdf(b"\x0b" * 22, b"").hex() == expected


def test_release_scope_depends_on_the_run(env: str) -> None:
    made = config({"key_env": env})
    first = pseudonym_key(made, "run-1", "t")
    assert first == hkdf(MASTER, b"anonlib pseudonyms release run-1 t")
    assert first != pseudonym_key(made, "run-1", "u")
    assert first == pseudonym_key(made, "run-1", "t")
    assert first != pseudonym_key(made, "run-2", "t")
    assert len(first) == 32


def test_stable_scope_does_not(env: str) -> None:
    made = config({"key_env": env, "scope": "stable"})
    assert pseudonym_key(made, "run-1", "t") == pseudonym_key(made, "run-2", "u")
    assert pseudonym_key(made, "x", "t") == hkdf(MASTER, b"anonlib pseudonyms stable ")
    released = config({"key_env": env})
    assert pseudonym_key(released, "stable", "t") != pseudonym_key(made, "stable", "t")
    assert pseudonym_key(released, "", "t") != pseudonym_key(made, "", "t")


def test_key_from_a_file(tmp_path: Path, env: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks around it are no part of it, as in a variable."""
    path = tmp_path / "key"
    path.write_bytes(b" " + MASTER + b"\n")
    expected = pseudonym_key(config({"key_env": env}), "run", "t")
    assert pseudonym_key(config({"key_file": str(path)}), "run", "t") == expected
    monkeypatch.setenv("ANONLIB_TEST_KEY", f" {MASTER.decode()}\n")
    assert pseudonym_key(config({"key_env": "ANONLIB_TEST_KEY"}), "run", "t") == expected


def test_no_key_where_none_is_asked(env: str) -> None:
    assert pseudonym_key(config(None, asked=False), "run", "t") == b""
    unset = config({"key_env": "ANONLIB_NO_SUCH_KEY"}, asked=False)
    assert pseudonym_key(unset, "run", "t") == b""


def test_token_keys_are_fresh() -> None:
    assert len(new_token_key()) == 32
    assert new_token_key() != new_token_key()


def failure(made: Config) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        pseudonym_key(made, "run", "t")
    assert caught.value.__cause__ is None
    (problem,) = caught.value.problems
    return problem.where, problem.text


def test_a_key_in_place_of_its_name_is_not_shown() -> None:
    for name in ("my-secret-master-key", "3f2a9c", "hunter2hunter2hunter2"):
        where, text = failure(config({"key_env": name}))
        assert (where, name in text) == ("pseudonyms.key_env", False)


def test_missing_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANONLIB_TEST_KEY", raising=False)
    where, text = failure(config({"key_env": "ANONLIB_TEST_KEY"}))
    assert where == "pseudonyms.key_env"
    assert "ANONLIB_TEST_KEY is not set" in text
    monkeypatch.setenv("ANONLIB_TEST_KEY", "")
    assert failure(config({"key_env": "ANONLIB_TEST_KEY"})) == (where, text)
    for path in (tmp_path / "no such file", tmp_path, "a\0b"):
        where, text = failure(config({"key_file": str(path)}))
        assert where == "pseudonyms.key_file"
        assert "can't be read" in text


def test_short_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    short = "s3cret" * 2
    assert len(short) < MIN_BYTES
    monkeypatch.setenv("ANONLIB_TEST_KEY", short)
    path = tmp_path / "key"
    path.write_text(short + " " * MIN_BYTES + "\n", "utf-8")
    for made in (config({"key_env": "ANONLIB_TEST_KEY"}), config({"key_file": str(path)})):
        _, text = failure(made)
        assert text == f"the master key is shorter than {MIN_BYTES} bytes"
        assert "s3cret" not in text
    monkeypatch.setenv("ANONLIB_TEST_KEY", "x" * MIN_BYTES)
    assert pseudonym_key(config({"key_env": "ANONLIB_TEST_KEY"}), "run", "t")


def test_long_key(tmp_path: Path) -> None:
    """A file of data, taken for a key by mistake, is no key."""
    assert MAX_BYTES == 2**16
    path = tmp_path / "key"
    made = config({"key_file": str(path)})
    path.write_bytes(b"x" * MAX_BYTES + b"\n")
    assert pseudonym_key(made, "run", "t")
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    assert failure(made) == ("pseudonyms.key_file", "the master key is longer than 65,536 bytes")


@pytest.mark.parametrize("name", ["pseudonyms", "release.ledger", "release.backlog"])
def test_all_master_keys_are_asked_for(env: str, name: str) -> None:
    """Before a run does any work."""
    there, gone = {"key_env": env}, {"key_env": "ANONLIB_NO_SUCH_KEY"}
    given: dict[str, Any] = {"release.ledger": None, "release.backlog": None}
    given |= {"pseudonyms": None, name: there}

    def made() -> Config:
        release = {"ledger": given["release.ledger"], "backlog": given["release.backlog"]}
        return config(given["pseudonyms"], asked=name == "pseudonyms", **release)

    found = made()
    require_master_keys(found.attributes, found.pseudonyms, found.release)
    given[name] = gone
    found = made()
    with pytest.raises(ConfigError, match=f"{name}.key_env: environment variable"):
        require_master_keys(found.attributes, found.pseudonyms, found.release)


def test_key_of_any_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is no UTF-8 is a key all the same, from both places."""
    master = bytes(range(128, 160))
    path = tmp_path / "key"
    path.write_bytes(master)
    monkeypatch.setenv("ANONLIB_TEST_KEY", master.decode("utf-8", "surrogateescape"))
    expected = hkdf(master, b"anonlib pseudonyms release run t")
    assert pseudonym_key(config({"key_env": "ANONLIB_TEST_KEY"}), "run", "t") == expected
    assert pseudonym_key(config({"key_file": str(path)}), "run", "t") == expected


def test_keys_of_the_ledger_and_the_backlog(env: str) -> None:
    """Of one master key, yet apart; an entry of the backlog has a key of its own."""
    made = config(None, asked=False, ledger={"key_env": env}, backlog={"key_env": env})
    assert ledger_key(made) == hkdf(MASTER, b"anonlib ledger")
    assert backlog_key(made) == hkdf(MASTER, b"anonlib backlog")
    key = backlog_key(made)
    assert derive_entry_key(key, "run-1") == hkdf(key, b"anonlib entry run-1")
    assert derive_key_check(key) == hkdf(key, b"anonlib check").hex()
    without = config(None, asked=False)
    assert ledger_key(without) == backlog_key(without) == b""


@pytest.mark.parametrize("name", ["ledger", "backlog"])
def test_the_pseudonyms_key_is_no_other_key(env: str, tmp_path: Path, name: str) -> None:
    """By another way, the same bytes."""
    path = tmp_path / "key"
    path.write_bytes(MASTER + b"\n")
    read = {"ledger": ledger_key, "backlog": backlog_key}[name]
    with pytest.raises(ConfigError) as caught:
        read(config({"key_env": env}, **{name: {"key_file": str(path)}}))
    (problem,) = caught.value.problems
    assert problem.where == f"release.{name}"
    assert "the pseudonyms' key" in problem.text
    path.write_bytes(MASTER[::-1])
    assert len(read(config({"key_env": env}, **{name: {"key_file": str(path)}}))) == 32
    path.unlink()
    with pytest.raises(ConfigError, match=f"release.{name}.key_file: the file can't be read"):
        read(config({"key_env": env}, **{name: {"key_file": str(path)}}))
