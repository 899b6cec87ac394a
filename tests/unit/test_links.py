"""What links staged rows to their source: nothing, for who lacks the run's key."""

import hmac
from hashlib import sha256

import pyarrow as pa
import pytest

from anonlib.table import columns
from anonlib.table.columns import NO_LINK, key_links


def test_links_are_under_a_key() -> None:
    found = key_links(pa.chunked_array([pa.array([7, NO_LINK, -7, 7])]), b"key").to_pylist()
    digest = hmac.new(b"key", b"1:7", sha256).digest()
    assert found[0] == found[3] == int.from_bytes(digest[:8], "big") - 2**63
    assert found[1] == NO_LINK
    assert found[2] not in (7, -7, found[0], NO_LINK)
    other = key_links(pa.chunked_array([pa.array([7])]), b"other").to_pylist()
    assert other[0] not in (7, found[0])


def test_rows_that_repeat_are_keyed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str | None, ...]] = []
    real = columns._hmac
    monkeypatch.setattr(
        columns, "_hmac", lambda key, values: calls.append(values) or real(key, values)
    )
    chunks = pa.chunked_array([pa.array([5] * 1000 + [NO_LINK]), pa.array([5, 6])])
    found = key_links(chunks, b"key").to_pylist()
    assert sorted(calls) == [("5",), ("6",)]
    assert len(set(found)) == 3
    assert set(found[:1000]) == {found[1001]}
    assert found[1000] == NO_LINK


def test_no_rows() -> None:
    assert key_links(pa.chunked_array([], pa.int64()), b"key").to_pylist() == []
