"""Texts that name or reach a person: their forms and check digits."""

from collections import Counter

import pyarrow as pa
import pytest

from anonlib.config.direct import count_kinds, list_texts, main_kind


def kind_of(text: str) -> str | None:
    return main_kind(count_kinds([text]))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("anna.huber@example.org", "e-mail addresses"),
        (" anna@example.org ", "e-mail addresses"),
        ("anna@home", None),
        ("https://example.org/anna", "web addresses"),
        ("www.example.org", "web addresses"),
        ("123e4567-e89b-12d3-a456-426614174000", "UUIDs"),
        ("00:1B:44:11:3a:b7", "MAC addresses"),
        ("078-05-1120", "social security numbers"),
        ("000-05-1120", None),
        ("2001-05-1120", None),
        # ISO 13616's own examples
        ("GB82 WEST 1234 5698 7654 32", "IBANs"),
        ("DE89370400440532013000", "IBANs"),
        ("AT611904300234573201", "IBANs"),
        ("DE89370400440532013001", None),
        # the numbers that card companies give for tests
        ("4111 1111 1111 1111", "card numbers"),
        ("5555-5555-5555-4444", "card numbers"),
        ("378282246310005", "card numbers"),
        ("4111111111111112", None),
        ("192.168.0.1", "IP addresses"),
        ("2001:db8::1", "IP addresses"),
        ("300.1.1.1", None),
        ("3232235521", None),
        ("+43 664 1234567", "phone numbers"),
        ("0043-1-5880100", "phone numbers"),
        ("(555) 123-4567", "phone numbers"),
        ("0664/1234567", "phone numbers"),
        ("01-02-2024", None),
        ("2024-01-02", None),
        ("12345678", None),
        ("+12", None),
        ("12 Baker Street, London", "postal addresses"),
        ("Mariahilfer Straße 12a, 1060 Wien", "postal addresses"),
        ("Hauptstr. 5", "postal addresses"),
        ("rue de Rivoli 21", "postal addresses"),
        ("Anna Huber", "names of persons"),
        ("Huber, Anna", "names of persons"),
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


def test_most_texts_decide() -> None:
    addresses = [f"a{i}@example.org" for i in range(8)]
    assert main_kind(count_kinds([*addresses, "x", "y"])) == "e-mail addresses"
    assert main_kind(count_kinds([*addresses, "x", "y", "z"])) is None
    assert main_kind(Counter()) is None


def test_what_stands_for_a_missing_value_is_no_text() -> None:
    values = pa.chunked_array([["b", None, "NA", " n/a ", "-999"], ["b", "?", "", "a"]])
    assert list_texts(values) == ["b", "a"]
