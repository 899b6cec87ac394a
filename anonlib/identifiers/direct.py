"""Texts that name a person, or reach one, by themselves: e-mail addresses, phone numbers, accounts.

They are told by their form, and by check digits where they have some. Some hundred distinct texts
of a column are enough to tell what most of them are. Kinds with a form of their own are sought
within texts, too: a few of them in remarks are a leak.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from ipaddress import ip_address
from math import sqrt

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.identifiers.addresses import find_street, is_address
from anonlib.identifiers.check_digits import find_numbers
from anonlib.identifiers.phones import PHONE_WORDS, find_phone
from anonlib.text import ALL_TOKENS, see_text

#: The most distinct texts that are looked at in one go, and letters of each of them. Only short
#: ones can be of a kind as a whole.
MOST_TEXTS, MOST_LETTERS, MOST_SHORT = 1_000, 1_000, 200
#: The share of a column's distinct texts that must look alike, and of a column's numbers: many
#: others pass by chance.
MIN_SHARE, MIN_NUMBERS = 0.8, 0.95

_WORD = r"[^\W\d_][^\W\d_]*(?:['’-][^\W\d_]+)*"
_NAME = re.compile(rf"{_WORD},? (?:(?:{_WORD}\.?|van|von|de|der|da|di|del|la|le) ){{0,2}}{_WORD}")
_SHAPES = {
    "web addresses": r"(?:https?://|www\.)\S+",
    "UUIDs": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "MAC addresses": r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}",
}
_MAIL = re.compile(
    r"[\w.!#$%&'*+=?^`{|}~-]{1,64}@(?:[\w-]{1,63}\.){1,8}(?:xn--[\w-]+|[^\W\d_]{2,})"
)
_SSN = re.compile(r"(?<![\w-])\d{3}-\d\d-\d{4}(?![\w-])", re.ASCII)
_SSN_GIVEN = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", re.ASCII)


#: How spreadsheets keep a number as a text.
_KEPT = re.compile(r"""=?"(.*)"|'(.*)""")
#: A whole number as programs write one that was a float.
_FLOAT = re.compile(r"\d+(?:[.,]0+|(?:\.\d+)?[eE]\+?\d{1,2})", re.ASCII)


def _make_plain(text: str) -> str:
    """The one form of a text that all kinds are sought in: as people see it, without what
    spreadsheets and programs add to numbers. Letters after the first MOST_LETTERS are left out."""
    plain = see_text(text[:MOST_LETTERS])
    if kept := _KEPT.fullmatch(plain):
        plain = (kept[1] or kept[2] or "").strip()
    if _FLOAT.fullmatch(plain):
        number = Decimal(plain.replace(",", "."))
        return str(int(number)) if number == number.to_integral_value() else plain
    return plain


def _find_strict(text: str) -> Iterator[tuple[str, str, bool]]:
    """What has the form of a strict kind in a text: the kind, what it is, and whether it passes the
    kind's check. US social security numbers have none, but some are never given (SSA)."""
    if "@" in text:
        yield from (("e-mail addresses", match.lower(), True) for match in _MAIL.findall(text))
    for number in _SSN.findall(text):
        yield "social security numbers", number, bool(_SSN_GIVEN.fullmatch(number))
    yield from find_numbers(text)


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


#: Kinds with a form of their own, which are sought within texts.
_STRICT = (
    "e-mail addresses",
    "social security numbers",
    "IBANs",
    "card numbers",
    "national numbers of persons",
)
#: By other kind: whether a text is of it.
_WHOLE: dict[str, Callable[[str], bool]] = {
    **{kind: _matcher(shape) for kind, shape in _SHAPES.items()},
    "IP addresses": _is_ip,
    "phone numbers": lambda text: find_phone(text).is_one,
    "postal addresses": is_address,
    "names of persons": _is_name,
}
#: Phone numbers that only their digits tell: codes of goods, accounts and places have such groups.
BARE_PHONES = "phone numbers by their digits alone"
PHONE_KINDS = ("phone numbers", BARE_PHONES)
#: Names with a comma, which hardly anything else has but places: `Ulm, Germany`.
LISTED_NAMES = "names of persons, the surname first"
#: Kinds that other columns may look like: they need many different values, too.
LOOSE_KINDS = ("postal addresses", "names of persons", LISTED_NAMES, BARE_PHONES)
#: Kinds of which a person has one for long, so that its rows can be found by it.
PERSONAL_KINDS = (
    "e-mail addresses",
    "social security numbers",
    "IBANs",
    "national numbers of persons",
    "phone numbers",
)
#: By strict kind: the kind of texts of which some hold one.
_HOLDERS = {kind: f"texts with {kind}" for kind in _STRICT}
_WHOLE_DIRECT = (*PERSONAL_KINDS, "card numbers", "postal addresses")
#: Kinds that show who a person is: no release has them unasked.
DIRECT_KINDS = (*_WHOLE_DIRECT, BARE_PHONES, *_HOLDERS.values())
#: By strict kind: how many different ones in a column's texts are a leak, although most texts have
#: none. One or two may be those of a desk or a house, in many texts; the third is of somebody else.
_LEAST_EXAMPLES = dict.fromkeys(_STRICT, 3)
#: One in ten numbers passes for a card's by chance: five in a row do not. Of a column of numbers,
#: all kinds with one digit to check need so many.
_LEAST_CHECKED = 5
_LEAST_EXAMPLES["card numbers"] = _LEAST_CHECKED
#: Strict kinds without a check digit.
_UNCHECKED = ("e-mail addresses", "social security numbers")
#: The fewest different streets that make a column one of addresses: names of parts and findings are
#: fewer.
_LEAST_STREETS = 10
#: Kinds that numbers can be of, too.
_NUMBER_KINDS = ("card numbers", "national numbers of persons", "phone numbers")
#: The digits of the shortest of these kinds, and the least number that has so many.
_LEAST_DIGITS, LEAST_NUMBER = 9, 100_000_000
_NAMES: dict[str, tuple[str, ...]] = {
    "e-mail addresses": ("email",),
    "web addresses": ("url",),
    "UUIDs": ("uuid",),
    "MAC addresses": ("device",),
    "social security numbers": ("ssn",),
    "national numbers of persons": ("ssn",),
    "IBANs": ("iban", "account number"),
    "card numbers": ("account number",),
    "IP addresses": ("ip",),
    "phone numbers": ("phone",),
    BARE_PHONES: ("phone",),
    "postal addresses": ("address",),
    "names of persons": ("name",),
    LISTED_NAMES: ("name",),
}
#: By kind: names that a column of it may well have. Rules of policies ask for names.
KIND_NAMES = {**_NAMES, **{holder: _NAMES[kind] for kind, holder in _HOLDERS.items()}}
#: A loose kind is told of columns with at least this many different texts, which are more than this
#: share of the present ones. Phone numbers that are no texts are told by their first digits only:
#: they need as many, and nearly all must be different.
LEAST_LOOSE, LOOSE_SHARE, UNIQUE_SHARE = 20, 0.2, 0.9
#: The fewest different bare phone numbers: fewer are taken for codes.
_LEAST_BARE = 5


@dataclass(frozen=True)
class KindCounts:
    """What texts are of.

    Attributes:
        n_texts: All texts.
        n_direct: Those that show who a person is, of whatever kind.
        of_kind: By kind: its texts. Of a strict kind, those that hold one.
        candidates: By strict kind: how many different things have its form. Of `BARE_PHONES`: the
            phone numbers that nothing but their digits tells; of `LISTED_NAMES`: names with a
            comma; of `streets`: what may be one.
        n_examples: By strict kind, and for streets: how many different ones there are.
    """

    n_texts: int = 0
    n_direct: int = 0
    of_kind: Counter[str] = field(default_factory=Counter)
    candidates: Counter[str] = field(default_factory=Counter)
    n_examples: Counter[str] = field(default_factory=Counter)


def list_texts(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Some distinct texts of a column, without those that may stand for a missing value; of a
    column of numbers, the whole ones as texts, and empty texts for others."""
    distinct = pc.unique(values).drop_null().slice(0, MOST_TEXTS)
    if not pa.types.is_string(distinct.type):
        numbers = distinct.to_pylist()
        return [str(int(n)) if 0 <= n < 1e18 and n % 1 == 0 else "" for n in numbers]
    return [text for text in distinct.to_pylist() if text.strip().lower() not in ALL_TOKENS]


def count_kinds(texts: Iterable[str]) -> KindCounts:
    """What the texts are of. Cost: some ten microseconds for a short text."""
    of_kind: Counter[str] = Counter()
    candidates: Counter[str] = Counter()
    examples: defaultdict[str, set[str]] = defaultdict(set)
    forms: defaultdict[str, set[str]] = defaultdict(set)
    n_texts = n_direct = 0
    for text in texts:
        plain, n_texts = _make_plain(text), n_texts + 1
        if not plain or (len(plain) < _LEAST_DIGITS and plain.isdecimal()):
            continue
        kinds = [kind for kind, fits in _WHOLE.items() if len(plain) <= MOST_SHORT and fits(plain)]
        found = [*_find_strict(plain)]
        passed = [(kind, each) for kind, each, passes in found if passes]
        for kind, each in passed:
            examples[kind].add(each)
        for kind, each, _ in found:
            forms[kind].add(each)
        kinds += {kind for kind, _ in passed}
        if "phone numbers" in kinds and not find_phone(plain).is_marked:
            candidates[BARE_PHONES] += 1
        candidates[LISTED_NAMES] += "names of persons" in kinds and "," in plain
        street = "" if "postal addresses" in kinds else find_street(plain[:MOST_SHORT])
        if street:
            candidates["streets"] += 1
            examples["streets"].add(street)
        of_kind.update(kinds)
        n_direct += not {*kinds}.isdisjoint(_WHOLE_DIRECT)
    n_examples = Counter({kind: len(each) for kind, each in examples.items()})
    candidates.update({kind: len(each) for kind, each in forms.items()})
    return KindCounts(n_texts, n_direct, of_kind, candidates, n_examples)


def is_sure(
    kind: str,
    n_distinct: float,
    n_present: int,
    *,
    words: Collection[str] = (),
    is_number: bool = False,
) -> bool:
    """Whether a column is of the kind that its texts look like: few names may be those of towns,
    and few numbers those of goods. words: Those of its name, as English has them."""
    if kind == BARE_PHONES:  # in a table of visits, persons and their phones repeat
        return n_distinct >= _LEAST_BARE or not PHONE_WORDS.isdisjoint(words)
    if is_number and kind == "phone numbers":
        return n_distinct >= LEAST_LOOSE and n_distinct > UNIQUE_SHARE * n_present
    if is_number:
        return n_distinct >= _LEAST_CHECKED
    varied = n_distinct >= LEAST_LOOSE and n_distinct > LOOSE_SHARE * n_present
    return varied or kind not in LOOSE_KINDS


def find_main_kind(counts: KindCounts, *, is_number: bool = False) -> str | None:
    """What most texts are of, or what some of them hold; None if there is none. What shows who a
    person is comes first.

    Args:
        counts: Of the distinct texts of a column.
        is_number: Whether they are numbers.
    """
    n, of_kind = counts.n_texts, counts.of_kind
    if not n:
        return None
    if is_number:
        fitting = (kind for kind in _NUMBER_KINDS if of_kind[kind] >= MIN_NUMBERS * n)
        return next(fitting, None)
    is_direct = counts.n_direct >= MIN_SHARE * n
    main = max(_WHOLE_DIRECT, key=lambda kind: of_kind[kind])
    # Of real ones, some have a mark.
    n_bare = counts.candidates[BARE_PHONES]
    n_phones = of_kind["phone numbers"]
    are_bare = main == "phone numbers" and n_bare >= max(MIN_SHARE * n, MIN_NUMBERS * n_phones)
    if is_direct and main not in LOOSE_KINDS and not are_bare:
        return main
    for kind, least in _LEAST_EXAMPLES.items():
        n_passed, n_tried = counts.n_examples[kind], counts.candidates[kind]
        others = MIN_SHARE * n_tried if kind in _UNCHECKED else _bound_chance(n_tried)
        if n_passed >= max(least, others):
            return _HOLDERS[kind]
    if are_bare:
        return BARE_PHONES
    n_streets = counts.n_examples["streets"]
    places = of_kind["postal addresses"] + counts.candidates["streets"]
    if is_direct or (n_streets >= _LEAST_STREETS and places >= MIN_SHARE * n):
        return "postal addresses"
    if counts.candidates[LISTED_NAMES] >= MIN_SHARE * n:
        return LISTED_NAMES
    return next((kind for kind in _WHOLE if of_kind[kind] >= MIN_SHARE * n), None)


def _bound_chance(n: int) -> float:
    """So many of n numbers don't pass a check by chance. Where codes are made of dates, one in
    seven passes that of some state; this is one in five, and three standard deviations."""
    return 0.2 * n + 1.2 * sqrt(n)


def tell_signs(kind: str) -> str:
    """By what a text is told to be of a kind of DIRECT_KINDS."""
    plain = kind.removeprefix("texts with ")
    signs = {
        "phone numbers": "a country code, a label or brackets",
        BARE_PHONES: "digits as phones have, in many numbers or a column named for phones",
        "postal addresses": "a word for a street and a number",
        "e-mail addresses": "their form",
        "social security numbers": "their form",
    }
    return signs.get(plain, "check digits")
