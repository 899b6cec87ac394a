"""Sealed rows: back as they were with the key, and nothing without it."""

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anonlib.errors import BlockError
from anonlib.run.backlog import NONCE_BYTES, seal, unseal

KEY = bytes(range(32))
ROWS = pa.RecordBatch.from_pydict(
    {
        "name": ["SECRET-1", None, "SECRET-3"],
        "wage": pa.array([2**53 + 1, None, 3], pa.int64()),
        "seen": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    }
)


def test_back_as_they_were() -> None:
    sealed = seal(ROWS, KEY)
    assert unseal(sealed, KEY).equals(ROWS)
    assert b"SECRET" not in sealed
    assert seal(ROWS, KEY)[:NONCE_BYTES] != sealed[:NONCE_BYTES]


def test_as_documented() -> None:
    """By the library's own AES-256-GCM, nonce first."""
    sealed = seal(ROWS, KEY)
    stream = AESGCM(KEY).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
    assert pa.ipc.open_stream(stream).read_all().to_pydict() == ROWS.to_pydict()


@pytest.mark.parametrize("at", [0, NONCE_BYTES, -1])
def test_changed_by_a_bit(at: int) -> None:
    sealed = bytearray(seal(ROWS, KEY))
    sealed[at] ^= 1
    with pytest.raises(BlockError, match="were changed, or sealed with another key"):
        unseal(bytes(sealed), KEY)


def test_with_another_key() -> None:
    with pytest.raises(BlockError) as caught:
        unseal(seal(ROWS, KEY), KEY[::-1])
    assert "SECRET" not in str(caught.value)
