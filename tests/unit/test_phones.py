"""Phone numbers, and what looks like them."""

import pytest

from anonlib.identifiers.phones import find_phone


@pytest.mark.parametrize(
    "text",
    [
        "+43 664 1234567",
        "0043-1-5880100",
        "+49 (0)151 1234567",
        "+1 (555) 123-4567 ext. 12",
        "(555) 123-4567",
        "611-548-0346",
        "(795) 704 7695",
        "1-800-555-1234",
        "0664/1234567",
        "01511234567",
        "0151.1234567",
        "06.12.34.56.78",
        "06 12 34 56 78",
        "0612345678",
        "020 7946 0958",
        "070-123 45 67",
        "661 716 957",
        "780-395-081",
        "612 34 56 78",
        "91 123 45 67",
        "347 1234567",
        "8 (912) 345-67-89",
        "138 1234 5678",
        "(11) 91234-5678",
        "491511234567",
        "48601234567",
        "Tel. 0151 8452682",
        "Tel.: 845 26 82",
        "Phone: 5550123",
        "mobil 0664 1234567",
        "Fon +49 30 123456",
        "Fax-Nr. 0711 12345",
    ],
)
def test_phone_numbers(text: str) -> None:
    assert find_phone(text).is_one


@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        ("+43 664 1234567", True),
        ("0043-1-5880100", True),
        ("00491511234567", True),
        ("00471188604", False),  # no number of Norway is so short
        ("Tel. 0151 8452682", True),
        ("(555) 123-4567", True),
        ("0711 123456 DW 12", True),
        ("491511234567", False),
        ("06 12 34 56 78", False),
        ("0151/1234567", False),
        ("201-407-2613", False),
        ("120/80", False),
    ],
)
def test_marks(text: str, is_marked: bool) -> None:
    """Codes of goods and places have groups of digits, too, but hardly such marks."""
    assert find_phone(text).is_marked == is_marked


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tel.",
        "Tel. 12",
        "+12",
        "+999 123 4567",
        "12345678",
        "0123456",
        "0800-1700",  # times
        "0456-1234",
        "08.00-17.00",
        "01-02-2024",  # days
        "2024-01-02",
        "01.02.2024 0730",
        "01.02.24-03.04.24",
        "01/2023-04/2024",  # months
        "01067-1234",  # a zip code
        "01234-5678-90",  # a drug
        "0123-4567-89",
        "01234-567-89",
        "0000123456",  # keys
        "0012345678",
        "000123456789",
        "978-3-16-148410-0",  # books and goods
        "0-306-40615-2",
        "4006381333931",
        "1700000000000",  # moments
        "202401311230",
        "12 345 678",  # amounts
        "661.716.957",
        "0.123456789",
        "192.168.100.200",
        "91.123.45.67",
        "120/80",
    ],
)
def test_other_texts(text: str) -> None:
    assert not find_phone(text).is_one
