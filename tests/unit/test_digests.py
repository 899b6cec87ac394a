"""Codes that anybody can compute of a value."""

import hashlib
import uuid
from base64 import b64encode
from typing import Any

import pytest

from anonlib.content.digests import CODES, WHOLE_HASHES, find_codes, is_code, is_whole_hash

TEXT = "Ann Smith"
SHA = hashlib.sha512(TEXT.encode())


def found(letters: str, *forms: str) -> list[int]:
    """The places of the forms that the letters are a code of."""
    return [place for place, _ in find_codes([letters], [[form] for form in forms or [TEXT]])]


@pytest.mark.parametrize(
    "letters",
    [
        SHA.hexdigest(),
        SHA.hexdigest()[:6],
        SHA.hexdigest()[-9:],
        b64encode(SHA.digest()).decode().translate({43: "", 47: "", 61: ""}).lower(),
        hashlib.blake2s(f"{TEXT}\n".encode()).hexdigest(),
        hashlib.blake2b(TEXT.encode(), digest_size=16).hexdigest(),
        hashlib.sha3_224(TEXT.encode()).hexdigest(),
        TEXT.encode().hex(),
        uuid.uuid5(uuid.NAMESPACE_URL, TEXT).hex,
    ],
)
def test_codes(letters: str) -> None:
    assert found(letters, "other", TEXT) == [1]


@pytest.mark.parametrize(
    "letters",
    ["", SHA.hexdigest()[:5], "0" * 64, hashlib.sha256(b"salt Ann Smith").hexdigest(), TEXT],
)
def test_what_is_no_code(letters: str) -> None:
    assert found(letters) == []


def test_one_of_several_texts_is_enough() -> None:
    letters = ["none", hashlib.md5(b"b").hexdigest()]
    ((place, code),) = find_codes(letters, [["x", "y"], ["a", "b"]])
    assert place == 1
    assert is_code(letters[1], "b", code)
    assert not is_code(letters[1], "a", code)
    assert len({code("a") for code in CODES}) == len(CODES)


@pytest.mark.parametrize("make", [hashlib.md5, hashlib.sha1, hashlib.sha256])
def test_whole_hashes(make: Any) -> None:
    """Those of texts, but no parts of them; each is one of CODES."""
    letters = make(TEXT.encode()).hexdigest()
    assert is_whole_hash(letters, ["other", TEXT])
    assert not is_whole_hash(letters, ["other", TEXT.upper()])
    assert not is_whole_hash(letters[::-1], [TEXT])
    assert found(letters)
    assert len(letters) in WHOLE_HASHES
    assert len(letters) - 1 not in WHOLE_HASHES
