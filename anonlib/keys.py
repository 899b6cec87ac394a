"""Keys of pseudonyms and tokens: derived, used in workers, written nowhere."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from anonlib.config import Config
from anonlib.errors import ConfigError, Problem

MIN_BYTES = 16


def pseudonym_key(config: Config, run_id: str) -> bytes:
    """The key of this release's pseudonyms, 32 bytes; empty when no column asks for any.

    Derived by HKDF-SHA256 (RFC 5869) from the master key and the release's id, or from the
    master key alone where the scope is stable. Raises ConfigError when there is no master key.
    """
    if config.pseudonyms is None or not any(a.pseudonym for a in config.attributes.values()):
        return b""
    master = _master(config.pseudonyms.key_env, config.pseudonyms.key_file)
    scope = run_id if config.pseudonyms.scope == "release" else ""
    info = f"anonlib pseudonyms {config.pseudonyms.scope} {scope}".encode()
    return HKDF(SHA256(), 32, salt=None, info=info).derive(master)


def token_key() -> bytes:
    """A fresh key for the tokens of one run's persons."""
    return os.urandom(32)


def _master(env: str | None, file: str | None) -> bytes:
    if env is not None:
        where, key = "pseudonyms.key_env", os.fsencode(os.environ.get(env, ""))
        missing = f"environment variable {env} is not set"
    else:
        where, missing = "pseudonyms.key_file", "the file can't be read"
        try:
            key = Path(file or "").read_bytes().strip()
        except (OSError, ValueError):
            key = b""
    if not key:
        raise ConfigError([Problem(where, f"{missing}; put the master key there")])
    if len(key) < MIN_BYTES:
        raise ConfigError([Problem(where, f"the master key is shorter than {MIN_BYTES} bytes")])
    return key
