"""Columns of texts and numbers that name or reach a person: from which share or count on."""

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

from anonlib.identifiers.check_digits import find_numbers, passes_luhn
from anonlib.identifiers.direct import (
    BARE_PHONES,
    DIRECT_KINDS,
    KIND_NAMES,
    MOST_TEXTS,
    KindCounts,
    count_kinds,
    find_main_kind,
    is_sure,
    list_texts,
    tell_signs,
)
from tests.content_cases import pesel


def kind_of(*texts: str) -> str | None:
    return find_main_kind(count_kinds(texts))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("anna.huber@example.org", "e-mail addresses"),
        (" anna@example.org ", "e-mail addresses"),
        ("Anna M. <x@web.de>", "e-mail addresses"),
        ("a@web.de; b@gmx.de", "e-mail addresses"),
        ("mailto:o'neill+x@mail.example.co.uk", "e-mail addresses"),
        ("anna@home", None),
        ("@anna", None),
        ("https://example.org/anna", "web addresses"),
        ("www.example.org", "web addresses"),
        ("123e4567-e89b-12d3-a456-426614174000", "UUIDs"),
        ("00:1B:44:11:3a:b7", "MAC addresses"),
        ("078-05-1120", "social security numbers"),
        ("000-05-1120", None),
        ("2001-05-1120", None),
        ("GB82 WEST 1234 5698 7654 32", "IBANs"),
        ("378282246310005", "card numbers"),
        ("44051401359", "national numbers of persons"),
        ("192.168.0.1", "IP addresses"),
        ("2001:db8::1", "IP addresses"),
        ("300.1.1.1", None),
        ("3232235521", None),
        ("+43 664 1234567", "phone numbers"),
        ("12345678", None),
        ("12 Baker Street, London", "postal addresses"),
        ("Anna Huber", "names of persons"),
        ("Huber, Anna", "names of persons, the surname first"),
        ("Ludwig van Beethoven", "names of persons"),
        ("Siobhán O’Neill-Byrne", "names of persons"),
        ("Married-civ-spouse", None),
        ("some college", None),
        ("Prof specialty 1", None),
        ("", None),
    ],
)
def test_kinds(text: str, kind: str | None) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("44051401359.0", "national numbers of persons"),
        ("44051401359,00", "national numbers of persons"),
        ("4.4051401359E10", "national numbers of persons"),
        ("440514\u00a001359", "national numbers of persons"),
        ("491511234567.0", "phone numbers by their digits alone"),
        ("'+43 664 1234567", "phone numbers"),
        ('="+43 664 1234567"', "phone numbers"),
        ("\uff0b43\u2009664 1234567", "phone numbers"),
        ("\u202a+43 664\u20121234567\u202c", "phone numbers"),
        ("0151\u201312\u00a034\u00a0567", "phone numbers by their digits alone"),
        ("GB82\u00a0WEST\u202f1234  5698\t7654 32", "IBANs"),
        ("GB82.WEST.1234.5698.7654.32", "IBANs"),
        ("3782\u00a0822463\u00a010005", "card numbers"),
        ("078\u201105\u20131120", "social security numbers"),
        ("anna@\u200bexam\u00adple.org", "e-mail addresses"),
        ("anna\uff20example.org", "e-mail addresses"),
        ("anna@\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444", "e-mail addresses"),
        ("anna@example.xn--p1ai", "e-mail addresses"),
        ("4.4051401359E1", None),
        ("1e99", None),
        ("'", None),
    ],
)
def test_a_kind_is_told_however_it_is_written(text: str, kind: str | None) -> None:
    """As web pages, editors, spreadsheets and programs write it."""
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PESEL 44051401359.OK", True),
        ("Nr.44051401359", True),
        ("PL-44051401359", True),
        ("44051401359-PL", True),
        ("2024-44051401359", True),
        ("44051401359-2024", True),
        ("SEPA-GB82WEST12345698765432", True),
        ("44051401359.5", False),
        ("44051401359-17", False),
        ("17-44051401359", False),
        ("17.44051401359", False),
        ("12024-44051401359", False),
        ("44051401359-20245", False),
    ],
)
def test_numbers_within_texts(text: str, found: bool) -> None:
    """Digits beside them may be of the same number; letters and years are not."""
    assert any(passes for *_, passes in find_numbers(text)) == found


def test_most_texts_decide() -> None:
    phones = [f"+49 89 12345{i}" for i in range(8)]
    assert kind_of(*phones, "x", "y") == "phone numbers"
    assert kind_of(*phones, "x", "y", "z") is None
    assert find_main_kind(KindCounts()) is None


def mail(i: int) -> str:
    return f"p{i}@web.de"


def phone(i: int) -> str:
    return f"0151/12345{i:02}"


def street(i: int) -> str:
    return f"{chr(65 + i // 26)}{chr(97 + i % 26)}na {i}/10"


def note(i: int) -> str:
    return f"seen on 2024-01-{1 + i % 28:02}, RR {100 + i}/80"


def luhn(digits: str) -> str:
    """The digits with that which checks them."""
    return next(n for n in (f"{digits}{last}" for last in range(10)) if passes_luhn(n))


def weighed(digits: str) -> str:
    """Nine digits, the last of them changed if it must be, with one that checks them as those of
    ISBNs and NHS numbers do."""
    total = sum(int(digit) * (10 - i) for i, digit in enumerate(digits))
    return f"{digits}{-total % 11}" if -total % 11 < 10 else weighed(f"{int(digits) + 1:09}")


def group(digits: str) -> str:
    return f"{digits[:3]} {digits[3:6]} {digits[6:]}"


#: The ends of numbers of cards.
CARDS = ["1111", "1129", "1137", "1145", "1152"]
COLUMNS: list[tuple[str, Iterable[str], str | None]] = [
    ("half mail", [f(i) for i in range(50) for f in (mail, phone)], "e-mail addresses"),
    ("mostly phone", [(mail, phone, phone)[i % 3](i) for i in range(60)], "phone numbers"),
    ("70 % mail", [mail(i) if i % 10 < 7 else note(i) for i in range(600)], "texts with e-mail"),
    ("three mails", [*map(note, range(900)), *map(mail, range(3))], "texts with e-mail addresses"),
    (
        "mail within",
        [f"{note(i)}, {mail(i % 3)}" * (i < 9) for i in range(99)],
        "texts with e-mail",
    ),
    ("two mails", [*map(note, range(900)), *map(mail, range(2))], None),
    ("a desk", [f"{note(i)}; ask DESK@web.de or desk@web.de" for i in range(3)] + ["x"] * 9, None),
    (
        "mail in web addresses",
        [f"www.x.de/?{mail(i) if i < 9 else i}" for i in range(99)],
        "texts with e-mail",
    ),
    ("PESEL", [str(pesel(i)) for i in range(40)], "national numbers of persons"),
    ("PESEL within", [f"{note(i)} {pesel(i)}" for i in range(3)] + ["x"] * 99, "texts with nat"),
    ("any 11 digits", [str(44_051_400_000 + 7 * i) for i in range(900)], None),
    ("any 9 digits", [str(123_456_789 + 7 * i) for i in range(900)], None),
    ("any 10 digits", [str(1_234_567_890 + 7 * i) for i in range(900)], None),
    ("any 16 digits", [str(4_111_111_111_111_111 + 7 * i) for i in range(900)], None),
    ("four cards", ["x"] * 99 + [f"4111 1111 1111 {n}" for n in CARDS[:4]], None),
    ("five cards", ["x"] * 99 + [f"4111 1111 1111 {n}" for n in CARDS], "texts with card numbers"),
    (
        "cards among other numbers",
        [luhn(f"411111111111{i:03}") for i in range(200, 240)]
        + [f"PAY-4{i * 7919:014}" for i in range(60)],
        "texts with card numbers",
    ),
    (
        "cards among measurements",
        [f"paid by {luhn(f'411111111111{i:03}')}" for i in range(200, 240)]
        + [f"score 4.{i * 7919:015}" for i in range(60)],
        "texts with card numbers",
    ),
    (
        "codes with a day",
        [f"INV-2024{i % 12 + 1:02}{i % 28 + 1:02}{i:03}" for i in range(700)],
        None,
    ),
    ("cards by chance", [f"{n} 4111 1111 1111 {n}" for n in range(1100, 1170)], None),
    ("streets", map(street, range(40)), "postal addresses"),
    (
        "streets of all sorts",
        [*map(street, range(20)), *["Am See 681", "Weg 3", "Rue A 1"]],
        "post",
    ),
    ("sizes of parts", [f"Drehring {i}" for i in range(99)], None),
    ("ring parts", [f"{p}ring {i}" for i in range(30) for p in ("Dreh", "Spann")], None),
    ("blood pressures", [f"Blutdruck {100 + i}/80" for i in range(99)], None),
    (
        "names",
        [f"Anna H{chr(97 + i)}" for i in range(26)] + ["Huber, Anna"] * 4,
        "names of persons",
    ),
    ("visits", map(note, range(900)), None),
    ("moments", [f"2024013112{i:02}" for i in range(60)], None),
    ("EAN", [f"400638133{i:04}" for i in range(900)], None),
    ("times", [f"{8 + i % 12:02}{i % 60:02}-2000" for i in range(99)], None),
    ("spans", [f"{1 + i % 12:02}/2023-0{1 + i % 9}/2024" for i in range(99)], None),
    ("zip codes", [f"0{1000 + i}-{1234 + i}" for i in range(99)], None),
    ("drugs", [f"0{1000 + i}-{1234 + i}-{10 + i % 80}" for i in range(99)], None),
    ("keys of SAP", [f"{123_456 + i:010}" for i in range(99)], None),
    ("amounts", [f"{i} {i:03} 000" for i in range(50, 250)], None),
    ("groups alone", map(phone, range(40)), BARE_PHONES),
    ("cost centres", [f"0{4100 + i}.120.33" for i in range(12)], BARE_PHONES),
    ("goods", [f"201-407-26{i:02}" for i in range(40)], BARE_PHONES),
    (
        "one with a label in five",
        ["Tel. " * (i % 5 < 2) + phone(i) for i in range(40)],
        "phone numb",
    ),
    ("brackets", [f"(0151) 12345{i:02}" for i in range(40)], "phone numbers"),
    (
        "mail among groups alone",
        [*map(phone, range(60)), *map(mail, range(3))],
        "texts with e-mail addresses",
    ),
    ("companies", [luhn(f"{3 + i % 7}{52_100_554 + i:08}0001") for i in range(40)], None),
    ("companies of a country", [luhn(f"5{52_100_554 + i:08}0001") for i in range(40)], None),
    ("devices", [luhn(f"35270453{i:06}") for i in range(40)], None),
    ("payments", [luhn(f"37{i:013}") for i in range(40)], None),
    ("cards", [luhn(f"37828224631{i:03}") for i in range(40)], "card numbers"),
    ("books", [weighed(f"3{12_883_064 + i:08}") for i in range(40)], None),
    ("patients of England", [weighed(f"4{12_883_064 + i:08}") for i in range(40)], "national"),
    ("patients of Scotland", [weighed(f"2103{56_000 + i:05}") for i in range(40)], "national"),
    ("any with groups", [group(weighed(f"3{i:08}")) for i in range(40)], "national"),
]


@pytest.mark.parametrize(("texts", "kind"), [c[1:] for c in COLUMNS], ids=[c[0] for c in COLUMNS])
def test_columns(texts: Iterable[str], kind: str | None) -> None:
    found = kind_of(*texts)
    assert found is None if kind is None else str(found).startswith(kind)


def first(make: Callable[[int], Any], n: int = 40) -> list[Any]:
    return [make(i) for i in range(n)]


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (first(lambda i: 491_511_234_000 + i), "phone numbers"),
        (first(lambda i: float(491_511_234_000 + i)), "phone numbers"),
        ([*first(lambda i: 491_511_234_000 + i), 1, 2], "phone numbers"),
        ([*first(lambda i: 491_511_234_000 + i), 1, 2, 3], None),
        (first(pesel), "national numbers of persons"),
        (first(lambda i: 44_051_400_000 + 7 * i), None),
        (first(lambda i: 1_700_000_000_000 + i), None),
        (first(lambda i: 202_401_311_200 + i), None),
        (first(lambda i: i), None),
        (first(lambda i: i + 0.5), None),
        ([*first(lambda i: i + 0.5), 491_511_234_000.0], None),
        ([float("nan"), float("inf"), 1e300], None),
    ],
)
def test_numbers(numbers: list[Any], kind: str | None) -> None:
    """Nearly all must be of it: a few that pass a check do so by chance."""
    assert find_main_kind(count_kinds(list_texts(pa.array(numbers))), is_number=True) == kind


@pytest.mark.parametrize(
    ("kind", "n_distinct", "is_number", "sure"),
    [
        ("phone numbers", 3, False, True),
        ("phone numbers", 91, True, True),
        ("phone numbers", 90, True, False),
        ("national numbers of persons", 5, True, True),
        ("national numbers of persons", 4, True, False),
        (BARE_PHONES, 5, False, True),
        (BARE_PHONES, 4, False, False),
        ("names of persons", 21, False, True),
        ("names of persons", 20, False, False),
        ("postal addresses", 19, False, False),
    ],
)
def test_how_many_are_sure(kind: str, n_distinct: int, is_number: bool, sure: bool) -> None:
    assert is_sure(kind, n_distinct, 100, is_number=is_number) is sure


def test_a_name_makes_digits_phone_numbers() -> None:
    assert is_sure(BARE_PHONES, 3, 100, words={"home", "phone"})
    assert not is_sure(BARE_PHONES, 3, 100, words={"cost", "centre"})
    assert not is_sure("names of persons", 3, 100, words={"phone"})


def test_few_numbers_are_no_phone_numbers() -> None:
    assert is_sure("phone numbers", 20, 20, is_number=True)
    assert not is_sure("phone numbers", 19, 19, is_number=True)


def test_different_ones_are_examples() -> None:
    """One address that many texts hold is of a place, and tells nothing of persons."""
    notes = [*map(note, range(9))]
    assert kind_of(*notes, *(f"{note(i)} {mail(i % 2)}" for i in range(9))) is None
    assert kind_of(*notes, *(f"{note(i)} {mail(i % 3)}" for i in range(9))) == (
        "texts with e-mail addresses"
    )


def test_kinds_have_names_for_policies() -> None:
    assert {*DIRECT_KINDS} <= {*KIND_NAMES}
    assert KIND_NAMES["texts with IBANs"] == KIND_NAMES["IBANs"]


def test_kinds_are_told_by_something() -> None:
    assert tell_signs("texts with IBANs") == tell_signs("card numbers") == "check digits"
    assert all(tell_signs(kind) for kind in DIRECT_KINDS)


def test_what_stands_for_a_missing_value_is_no_text() -> None:
    values = pa.chunked_array([["b", None, "NA", " n/a ", "-999"], ["b", "?", "", "a"]])
    assert list_texts(values) == ["b", "a"]
    assert list_texts(pa.array([491_511_234_567, None, 7, 7])) == ["491511234567", "7"]
    assert len(list_texts(pa.array(range(2 * MOST_TEXTS)))) == MOST_TEXTS
