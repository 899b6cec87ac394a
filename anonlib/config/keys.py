"""Keys of pseudonyms, tokens, the ledger and the backlog, and secrets of sources.

They are used in memory, here and in workers, and written nowhere.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from anonlib.config.model import (
    Attribute,
    MasterKey,
    PseudonymsSection,
    ReleaseSection,
    SourceSection,
)
from anonlib.errors import ConfigError, Problem

#: The lengths of a master key.
MIN_BYTES, MAX_BYTES = 16, 65_536


def derive_pseudonym_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    run_id: str,
    target: str,
) -> bytes:
    """The key of this release's pseudonyms, 32 bytes; empty when no column asks for any.

    Derived by HKDF-SHA256 (RFC 5869) from the master key, the run's id and the target, or from the
    master key alone where the scope is stable: two tables have no pseudonym in common, not even
    under one run id. Raises ConfigError when there is no master key.

    Args:
        attributes: The columns, by name.
        pseudonyms: The place of the master key, and the scope.
        run_id: The run.
        target: The path of the table as its store spells it.
    """
    if pseudonyms is None or not any(a.pseudonym for a in attributes.values()):
        return b""
    scope = f"{run_id} {target}" if pseudonyms.scope == "release" else ""
    master = _read_master(pseudonyms, "pseudonyms")
    return _derive(master, f"pseudonyms {pseudonyms.scope} {scope}")


def require_master_keys(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    release: ReleaseSection,
) -> None:
    """Raises ConfigError where a master key that the config names is not there or not usable."""
    derive_pseudonym_key(attributes, pseudonyms, "", "")
    derive_ledger_key(attributes, pseudonyms, release)
    derive_backlog_key(attributes, pseudonyms, release)


def derive_ledger_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    release: ReleaseSection,
) -> bytes:
    """The key of the ledger's tokens, 32 bytes; empty without a ledger.

    Raises ConfigError when there is no master key, or it is that of the pseudonyms.
    """
    return _private_key(attributes, pseudonyms, release.ledger, "ledger")


def derive_backlog_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    release: ReleaseSection,
) -> bytes:
    """The key of the backlog, 32 bytes; empty without a backlog.

    `derive_entry_key` derives the keys of its entries from it. Its master key may be
    that of the ledger.

    Raises ConfigError when there is no master key, or it is that of the pseudonyms.
    """
    return _private_key(attributes, pseudonyms, release.backlog, "backlog")


def derive_entry_key(key: bytes, run_id: str) -> bytes:
    """The key of one entry of the backlog: each has its own, so that nonces can't meet."""
    return _derive(key, f"entry {run_id}")


def derive_key_check(key: bytes) -> str:
    """A digest that tells keys apart and reveals nothing else of them, as hex text."""
    return _derive(key, "check").hex()


def new_token_key() -> bytes:
    """A fresh key for the tokens of one run's persons."""
    return os.urandom(32)


def read_secret_options(source: SourceSection) -> dict[str, str]:
    """The secret options of a source, from the environment.

    Raises ConfigError where a variable is not set. Its text does not name the variable, since the
    name may be the secret itself, put there by mistake.
    """
    options = {name: os.environ.get(variable, "") for name, variable in source.secrets.items()}
    text = "the environment variable that it names is not set; put the secret there"
    if missing := [Problem(f"source.secrets.{n}", text) for n, v in options.items() if not v]:
        raise ConfigError(missing)
    return options


def _private_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    section: MasterKey | None,
    name: str,
) -> bytes:
    if section is None:
        return b""
    where = f"release.{name}"
    master = _read_master(section, where)
    used = pseudonyms if derive_pseudonym_key(attributes, pseudonyms, "", "") else None
    if used is not None and master == _read_master(used, "pseudonyms"):
        raise ConfigError([Problem(where, "the pseudonyms' key; make another one for this")])
    return _derive(master, name)


def _derive(key: bytes, purpose: str) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=f"anonlib {purpose}".encode()).derive(key)


def _read_master(section: MasterKey, where: str) -> bytes:
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
