"""Keys of pseudonyms, tokens, the ledger and the backlog, and secrets of sources.

They are used only in memory, here and in workers, and are never written.
"""

import os
import re
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

#: The usual form of a variable's name.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
#: The shortest and the longest master key.
MIN_BYTES, MAX_BYTES = 16, 65_536


def derive_pseudonym_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    run_id: str,
    target: str,
) -> bytes:
    """Derives the key of this release's pseudonyms: 32 bytes, or empty if no column needs it.

    HKDF-SHA256 (RFC 5869) derives it from the master key, the run's id and the target. So two
    tables have no pseudonym in common, not even with the same run id. With the scope `stable`, it
    depends on the master key alone.

    Args:
        attributes: The columns, by name.
        pseudonyms: The place of the master key, and the scope.
        run_id: The id of the run.
        target: The path of the table, as its store spells it.

    Raises:
        ConfigError: There is no usable master key.
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
    """Raises ConfigError if a master key that the config names is absent or not usable."""
    derive_pseudonym_key(attributes, pseudonyms, "", "")
    derive_ledger_key(attributes, pseudonyms, release)
    derive_backlog_key(attributes, pseudonyms, release)


def derive_ledger_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    release: ReleaseSection,
) -> bytes:
    """Derives the key of the ledger's tokens: 32 bytes, or empty without a ledger.

    Raises:
        ConfigError: There is no usable master key, or it is the pseudonyms' one.
    """
    return _private_key(attributes, pseudonyms, release.ledger, "ledger")


def derive_backlog_key(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    release: ReleaseSection,
) -> bytes:
    """Derives the key of the backlog: 32 bytes, or empty without a backlog.

    `derive_entry_key` derives the keys of its entries from this key. The backlog may have the same
    master key as the ledger.

    Raises:
        ConfigError: There is no usable master key, or it is the pseudonyms' one.
    """
    return _private_key(attributes, pseudonyms, release.backlog, "backlog")


def derive_entry_key(key: bytes, run_id: str) -> bytes:
    """The key of one entry of the backlog. Each entry has its own, so nonces can't collide."""
    return _derive(key, f"entry {run_id}")


def derive_key_check(key: bytes) -> str:
    """A digest of a key, as hex text. It tells keys apart and reveals nothing else of them."""
    return _derive(key, "check").hex()


def new_token_key() -> bytes:
    """Draws a key for the tokens of one run's persons."""
    return os.urandom(32)


def read_secret_options(source: SourceSection) -> dict[str, str]:
    """Reads the secret options of a source from the environment.

    Raises:
        ConfigError: A variable is not set. The text does not name the variable, since somebody may
            have put the secret itself there by mistake.
    """
    options = {name: os.environ.get(variable, "") for name, variable in source.secrets.items()}
    text = "the environment variable that it names is not set; put the secret there"
    if missing := [Problem(f"source.secrets.{n}", text) for n, v in options.items() if not v]:
        raise ConfigError(missing)
    return options


def read_all_options(source: SourceSection) -> dict[str, str]:
    """The options of a source, with its secret ones. Raises as `read_secret_options`."""
    return {**source.options, **read_secret_options(source)}


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
        where, key = f"{where}.key_env", os.fsencode(os.environ.get(section.key_env, "")).strip()
        # Another text may be the key itself, which nobody shall read.
        shown = section.key_env if _VARIABLE.fullmatch(section.key_env) else "that it names"
        missing = f"environment variable {shown} is not set"
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
