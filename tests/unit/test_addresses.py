"""Postal addresses, and what looks like them."""

import pytest

from anonlib.identifiers.addresses import find_street, is_address


@pytest.mark.parametrize(
    "text",
    [
        "12 Baker Street, London",
        "221b Baker St.",
        "350 5th Ave",
        "1600 Pennsylvania Avenue NW",
        "Mariahilfer Straße 12a, 1060 Wien",
        "Hauptstr. 5",
        "Karl-Marx-Allee 34",
        "Am Mühlweg 3",
        "Keizersgracht 12",
        "rue de Rivoli 21",
        "12 rue de Rivoli",
        "12 bis, avenue Foch",
        "chemin Voltaire 12",
        "C/ Sol 734",
        "C/Sol 734",
        "Calle Mayor, 5",
        "via Roma 3",
        "ul. Nowa 311/10",
    ],
)
def test_addresses(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    ("text", "street"),
    [
        ("Am See 681", "am see"),
        ("An der Alten Mühle 4a", "an der alten mühle"),
        ("Nowa 311/10", "nowa"),
        ("Jana Pawła II 7/3, Kraków", "jana pawła ii"),
        ("Kölner Ring 12", "kölner ring"),
        ("Drehring 12", "drehring"),
        ("Blutdruck 120/80", "blutdruck"),
        ("Station 12", ""),
        ("August 2021", ""),
        ("120/80", ""),
        ("Ring", ""),
    ],
)
def test_what_may_be_an_address(text: str, street: str) -> None:
    assert not is_address(text)
    assert find_street(text) == street


@pytest.mark.parametrize(
    "text",
    [
        "Ford 12",
        "Test 12",
        "Post 4",
        "3 way",
        "10 ml via pump",
        "2 square",
        "Umweg",
        "ruelle 3",
        "",
    ],
)
def test_other_texts(text: str) -> None:
    assert not is_address(text)
    assert find_street(text) == ""
