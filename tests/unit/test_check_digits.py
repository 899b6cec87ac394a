"""Numbers with check digits: examples of those who give them, and others."""

import random

import pytest

from anonlib.identifiers.check_digits import find_numbers

IBANS, CARDS, PERSONS = "IBANs", "card numbers", "national numbers of persons"


def passing(text: str) -> set[tuple[str, str]]:
    return {(kind, plain) for kind, plain, passes in find_numbers(text) if passes}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        # ISO 13616's own examples
        (IBANS, "GB82 WEST 1234 5698 7654 32"),
        (IBANS, "DE89370400440532013000"),
        (IBANS, "AT611904300234573201"),
        (IBANS, "CH93-0076-2011-6238-5295-7"),
        # the numbers that card companies give for tests
        (CARDS, "4111 1111 1111 1111"),
        (CARDS, "5555-5555-5555-4444"),
        (CARDS, "378282246310005"),
        (PERSONS, "44051401359"),  # Poland
        (PERSONS, "86 095 742 719"),  # Germany
        (PERSONS, "85.07.30-033.28"),  # Belgium
        (PERSONS, "01051100145"),  # Belgium, born in 2001
        (PERSONS, "756.9217.0769.85"),  # Switzerland
        (PERSONS, "2 55 08 14 168 025 38"),  # France
        (PERSONS, "111222333"),  # Netherlands
        (PERSONS, "RSSMRA85T10A562S"),  # Italy
        (PERSONS, "RSSMRA85T10A56NH"),  # Italy, with a letter for a digit
        (PERSONS, "12345678Z"),  # Spain
        (PERSONS, "X-1234567-L"),  # Spain, of a foreigner
        (PERSONS, "1237 010180"),  # Austria
        (PERSONS, "943 476 5919"),  # United Kingdom
        (PERSONS, "811218-9876"),  # Sweden
        (PERSONS, "198112189876"),  # Sweden, with the century
        (PERSONS, "151086 95088"),  # Norway
        (PERSONS, "131052-308T"),  # Finland
        (PERSONS, "390.533.447-05"),  # Brazil
    ],
)
def test_examples(kind: str, text: str) -> None:
    """Each passes, also in lower case, and does not if its last digit or letter is another."""
    plain = "".join(letter for letter in text if letter.isalnum())
    assert (kind, plain) in passing(text)
    assert (kind, plain.upper()) in passing(text.lower())
    others = "ABCDEFGHJKLMNPQRSTVWXYZ" if text[-1].isalpha() else "0123456789"
    kept = [text[:-1] + last for last in others if passing(text[:-1] + last)]
    assert [each for each in kept if kind in {k for k, _ in passing(each)}] == [text]


def test_within_texts() -> None:
    text = "IBAN: DE89 3704 0044 0532 0130 00 / BIC COBADEFF, born (PESEL 44051401359)."
    assert {(IBANS, "DE89370400440532013000"), (PERSONS, "44051401359")} <= passing(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "000000000",
        "DE00",
        "XX89370400440532013000",  # no such country
        "DE8937040044053201300",  # too short
        "DE893704004405320130001",  # too long
        "0.44051401359",
        "A44051401359",
        "44051401359-7",
        "case 111222333",  # nine digits are too usual to be told within a text
        "call 943 476 5919",
        "44054401359",  # no such day
        "00000000000",
        "11111111111",
    ],
)
def test_other_texts(text: str) -> None:
    assert passing(text) == set()


def test_chance() -> None:
    """Few numbers of any one length pass by chance."""
    draw = random.Random(1)
    for n in range(7, 20):
        numbers = [str(draw.randrange(10 ** (n - 1), 10**n)) for _ in range(2_000)]
        for kind in (CARDS, PERSONS):
            n_passed = sum(kind in {k for k, _ in passing(number)} for number in numbers)
            assert n_passed < 0.14 * len(numbers), (n, kind)
