"""Keys of pseudonyms, tokens, the ledger and the backlog, derived and used in workers, and secrets
of sources: written nowhere."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from anonlib.config.model import Config, MasterKey, SourceSection
from anonlib.errors import ConfigError, Problem

MIN_BYTES, MAX_BYTES = 16, 65_536


def pseudonym_key(config: Config, run_id: str) -> bytes:
    """The key of this release's pseudonyms, 32 bytes; empty when no column asks for any.

    Derived by HKDF-SHA256 (RFC 5869) from the master key and the release's id, or from the
    master key alone where the scope is stable. Raises ConfigError when there is no master key.
    """
    if config.pseudonyms is None or not any(a.pseudonym for a in config.attributes.values()):
        return b""
    scope = run_id if config.pseudonyms.scope == "release" else ""
    master = _master(config.pseudonyms, "pseudonyms")
    return _derived(master, f"pseudonyms {config.pseudonyms.scope} {scope}")


def ledger_key(config: Config) -> bytes:
    """The key of the ledger's tokens, 32 bytes; empty without a ledger.

    Raises ConfigError when there is no master key, or it is that of the pseudonyms.
    """
    return _private_key(config, config.release.ledger, "ledger")


def backlog_key(config: Config) -> bytes:
    """The key that those of the backlog's entries are derived from, 32 bytes; empty without a
    backlog. Its master key may be the ledger's.

    Raises ConfigError when there is no master key, or it is that of the pseudonyms.
    """
    return _private_key(config, config.release.backlog, "backlog")


def entry_key(key: bytes, run_id: str) -> bytes:
    """The key of one entry of the backlog: each has its own, so that nonces can't meet."""
    return _derived(key, f"entry {run_id}")


def key_check(key: bytes) -> str:
    """What tells two keys apart and says nothing else of them, as hex text."""
    return _derived(key, "check").hex()


def token_key() -> bytes:
    """A fresh key for the tokens of one run's persons."""
    return os.urandom(32)


def secret_options(source: SourceSection) -> dict[str, str]:
    """The options of a source that are secret, from the environment.

    Raises ConfigError where a variable is not set; its name may be the secret, put there by
    mistake, so no text has it.
    """
    found = {name: os.environ.get(variable, "") for name, variable in source.secrets.items()}
    text = "the environment variable that it names is not set; put the secret there"
    if missing := [Problem(f"source.secrets.{n}", text) for n, value in found.items() if not value]:
        raise ConfigError(missing)
    return found


def _private_key(config: Config, section: MasterKey | None, name: str) -> bytes:
    if section is None:
        return b""
    where = f"release.{name}"
    master = _master(section, where)
    used = config.pseudonyms if pseudonym_key(config, "") else None
    if used is not None and master == _master(used, "pseudonyms"):
        raise ConfigError([Problem(where, "the pseudonyms' key; make another one for this")])
    return _derived(master, name)


def _derived(key: bytes, purpose: str) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=f"anonlib {purpose}".encode()).derive(key)


def _master(section: MasterKey, where: str) -> bytes:
    if section.key_env is not None:
        where, key = f"{where}.key_env", os.fsencode(os.environ.get(section.key_env, ""))
        missing = f"environment variable {section.key_env} is not set"
    else:
        where, missing = f"{where}.key_file", "the file can't be read"
        try:
            with Path(section.key_file or "").open("rb") as file:
                key = file.read(MAX_BYTES + 1).strip()
        except (OSError, ValueError):
            key = b""
    if not key:
        raise ConfigError([Problem(where, f"{missing}; put the master key there")])
    if len(key) < MIN_BYTES:
        raise ConfigError([Problem(where, f"the master key is shorter than {MIN_BYTES} bytes")])
    if len(key) > MAX_BYTES:
        raise ConfigError([Problem(where, f"the master key is longer than {MAX_BYTES:,} bytes")])
    return key
