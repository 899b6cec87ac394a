"""Hashes without a salt, and other codes that anybody can compute of a value."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from uuid import NAMESPACE_DNS, NAMESPACE_OID, NAMESPACE_URL, NAMESPACE_X500, UUID, uuid3, uuid5

#: Letters and digits of a code that are no coincidence: a code may be cut to them.
LEAST_LETTERS = 6
#: The code of a text.
Code = Callable[[str], bytes]

#: The hashes that are sought in every text of their length, since few rows may have them.
_COMMON: tuple[Callable[..., Any], ...] = (hashlib.md5, hashlib.sha1, hashlib.sha256)
_HASHES: tuple[Callable[..., Any], ...] = (
    *(*_COMMON, hashlib.sha224, hashlib.sha384, hashlib.sha512),
    *(hashlib.sha3_224, hashlib.sha3_256, hashlib.sha3_384, hashlib.sha3_512),
    *(hashlib.blake2b, hashlib.blake2s),
    *(partial(hashlib.blake2b, digest_size=size) for size in (8, 16, 20, 32)),
    *(partial(hashlib.blake2s, digest_size=size) for size in (8, 16)),
)
_SPACES = (NAMESPACE_DNS, NAMESPACE_URL, NAMESPACE_OID, NAMESPACE_X500)
#: What base64 has beside letters and digits.
_MARKS = str.maketrans("", "", "+/=")


def _hash(text: str, make: Callable[..., Any], end: str) -> bytes:
    digest: bytes = make((text + end).encode(), usedforsecurity=False).digest()
    return digest


def _name(text: str, space: UUID, make: Callable[[UUID, str], UUID]) -> bytes:
    return make(space, text).bytes


#: The codes: the text itself, its usual hashes, also of a line, and UUIDs of versions 3 and 5 in
#: the usual namespaces.
CODES: tuple[Code, ...] = (
    str.encode,
    *(partial(_hash, make=make, end=end) for make in _HASHES for end in ("", "\n")),
    *(partial(_name, space=space, make=make) for space in _SPACES for make in (uuid3, uuid5)),
)

#: By the number of its letters in hexadecimal: the common hash that has so many.
WHOLE_HASHES: dict[int, Code] = {
    2 * make().digest_size: partial(_hash, make=make, end="") for make in _COMMON
}


def is_whole_hash(letters: str, forms: Iterable[str]) -> bool:
    """Whether letters and digits in lower case, as many as one of WHOLE_HASHES has, are that hash
    of one of some texts, in hexadecimal."""
    code = WHOLE_HASHES[len(letters)]
    return any(code(form).hex() == letters for form in forms)


def find_codes(
    letters: Sequence[str], forms: Sequence[Sequence[str]]
) -> Iterator[tuple[int, Code]]:
    """The codes of CODES, and the places of the forms, by which some of the texts are made.

    Cost: each code of each form of each text.

    Args:
        letters: n texts, their letters and digits in lower case.
        forms: For each form of the values that they may be made of: n texts.
    """
    for code in CODES:
        for place, form in enumerate(forms):
            if any(is_code(text, other, code) for text, other in zip(letters, form, strict=True)):
                yield place, code


def is_code(letters: str, text: str, code: Code) -> bool:
    """Whether letters and digits in lower case are a code of a text, or enough of it: in
    hexadecimal or in base64."""
    if len(letters) < LEAST_LETTERS:
        return False
    digest = code(text)
    return letters in digest.hex() or letters in _as_base64(digest)


def _as_base64(digest: bytes) -> str:
    return b64encode(digest).decode().translate(_MARKS).lower()
