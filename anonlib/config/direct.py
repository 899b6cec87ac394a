"""Texts that name a person, or reach one, by themselves: e-mail addresses, phone numbers, accounts.

They are told by their form, and by check digits where they have some. A few thousand distinct texts
of a column are enough to tell.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from ipaddress import ip_address

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.text import MISSING_TOKENS, NUMBER_TOKENS, TEXT_TOKENS

#: The most distinct texts that are looked at in one go.
MOST_TEXTS = 1_000
#: The share of a column's distinct texts that must look alike.
MIN_SHARE = 0.8

_STREETS = (
    r"(?:straße|strasse|str|gasse|weg|platz|allee|ring|ufer|street|st|road|rd|avenue|ave|lane|ln|"
    r"drive|dr|court|ct|boulevard|blvd|way|square|rue|via|calle|piazza|plaza|laan|straat|ulica|ul)"
)
_ADDRESS = re.compile(
    rf"(?:\d{{1,5}}[a-z]? .*\b{_STREETS}\b\.?.*|.*{_STREETS}\b\.? ?\d{{1,4}} ?[a-z]?(?:[ ,/-].*)?"
    r"|(?:rue|via|calle|ulica|ul\.) .*\d{1,4}.*)",
    re.IGNORECASE,
)
_WORD = r"[^\W\d_][^\W\d_]*(?:['’-][^\W\d_]+)*"
_NAME = re.compile(rf"{_WORD},? (?:(?:{_WORD}\.?|van|von|de|der|da|di|del|la|le) ){{0,2}}{_WORD}")
_SHAPES = {
    "e-mail addresses": r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}",
    "web addresses": r"(?:https?://|www\.)\S+",
    "UUIDs": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "MAC addresses": r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}",
    "social security numbers": r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}",
}
_PHONE = re.compile(r"(?:\+|00)[1-9][\d ()/.-]+|\(?0\d{1,5}\)?[ /-][\d /-]+|\(\d{3}\) ?\d{3}-\d{4}")
_DAY = re.compile(r"\d{2,4}[-./]\d{1,2}[-./]\d{2,4}")


def _is_phone(text: str) -> bool:
    n_digits = sum(c.isdigit() for c in text)
    return bool(_PHONE.fullmatch(text)) and 7 <= n_digits <= 15 and not _DAY.fullmatch(text)


def _is_iban(text: str) -> bool:
    """ISO 13616: the number that its letters and digits spell is 1 modulo 97."""
    plain = text.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain, re.ASCII):
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    """ISO/IEC 7812: 13 to 19 digits whose weighted sum is a multiple of 10 (Luhn)."""
    plain = re.sub(r"[ -]", "", text)
    if not re.fullmatch(r"[2-6]\d{12,18}", plain, re.ASCII):
        return False
    digits = [int(c) for c in reversed(plain)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "." in text or ":" in text


def _is_name(text: str) -> bool:
    """Two to four words that begin with a capital letter, but for words such as `von`."""
    parts = re.split(r",? ", text)
    return bool(_NAME.fullmatch(text)) and parts[0][0].isupper() and parts[-1][0].isupper()


def _matcher(shape: str) -> Callable[[str], bool]:
    pattern = re.compile(shape)
    return lambda text: bool(pattern.fullmatch(text))


#: By kind: whether a text is of it. The first kind that most texts of a column are of is told.
_KINDS: dict[str, Callable[[str], bool]] = {
    **{kind: _matcher(shape) for kind, shape in _SHAPES.items()},
    "IBANs": _is_iban,
    "card numbers": _is_card,
    "IP addresses": _is_ip,
    "phone numbers": _is_phone,
    "postal addresses": lambda text: bool(_ADDRESS.fullmatch(text)),
    "names of persons": _is_name,
}
#: Texts that may stand for a missing value.
_TOKENS = {*MISSING_TOKENS, *TEXT_TOKENS, *NUMBER_TOKENS}
#: Kinds that other columns may look like: they need many different values, too.
LOOSE_KINDS = ("postal addresses", "names of persons")
#: Kinds of which a person has one for long, so that its rows can be found by it.
PERSONAL_KINDS = ("e-mail addresses", "social security numbers", "IBANs", "phone numbers")
#: Kinds that show who a person is: no release has them unasked.
DIRECT_KINDS = (*PERSONAL_KINDS, "card numbers", "postal addresses")
#: By kind: names that a column of it may well have. Rules of policies ask for names.
KIND_NAMES: dict[str, tuple[str, ...]] = {
    "e-mail addresses": ("email",),
    "web addresses": ("url",),
    "UUIDs": ("uuid",),
    "MAC addresses": ("device",),
    "social security numbers": ("ssn",),
    "IBANs": ("iban", "account number"),
    "card numbers": ("account number",),
    "IP addresses": ("ip",),
    "phone numbers": ("phone",),
    "postal addresses": ("address",),
    "names of persons": ("name",),
}
#: A loose kind is told of columns with at least this many different texts, which are more than this
#: share of the present ones.
LEAST_LOOSE, LOOSE_SHARE = 20, 0.2


def list_texts(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Some distinct texts of a column, without those that may stand for a missing value."""
    texts = pc.unique(values).drop_null().slice(0, MOST_TEXTS).to_pylist()
    return [text for text in texts if text.strip().lower() not in _TOKENS]


def count_kinds(texts: Iterable[str]) -> Counter[str]:
    """How many texts are of each kind, and under the empty name how many there are."""
    counts: Counter[str] = Counter()
    for text in texts:
        plain = text.strip()[:200]
        counts[""] += 1
        counts.update(kind for kind, fits in _KINDS.items() if fits(plain))
    return counts


def is_sure(kind: str, n_distinct: float, n_present: int) -> bool:
    """Whether a column is of the kind that its texts look like: few names may be those of towns."""
    varied = n_distinct >= LEAST_LOOSE and n_distinct > LOOSE_SHARE * n_present
    return varied or kind not in LOOSE_KINDS


def main_kind(counts: Counter[str]) -> str | None:
    """The kind that most texts of `count_kinds` are of; None if there is none."""
    least = MIN_SHARE * counts[""]
    return next((kind for kind in _KINDS if counts[""] and counts[kind] >= least), None)
