"""Rows at rest that only who has the key can read."""

import os

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anonlib.errors import BlockError

NONCE_BYTES = 12


def seal(rows: pa.RecordBatch, key: bytes) -> bytes:
    """The rows as an Arrow stream, encrypted and authenticated by AES-256-GCM (NIST SP 800-38D)
    with a key of 32 bytes, behind a fresh nonce."""
    nonce = os.urandom(NONCE_BYTES)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return nonce + AESGCM(key).encrypt(nonce, sink.getvalue().to_pybytes(), None)


def unseal(sealed: bytes, key: bytes) -> pa.RecordBatch:
    """What was sealed with this key. Raises BlockError for another key, or when a bit changed."""
    try:
        data = AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
    except InvalidTag:
        raise BlockError("sealed rows were changed, or sealed with another key") from None
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
