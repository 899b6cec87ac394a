"""How texts write dates and numbers: layouts are told by all texts of a column, and never guessed
where they leave a doubt."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonlib
from anonlib.errors import ConfigError
from anonlib.local.column_facts import parse_texts
from anonlib.table.layouts import (
    DATES,
    LAYOUTS,
    NUMBERS,
    Reading,
    choose_doubt,
    find_doubts,
    is_date_pattern,
)

TOLD = [
    (["01.02.1980", "31.12.2001"], Reading("date", "d.M.yyyy")),
    (["1.2.1980"], Reading("date", "d.M.yyyy")),
    (["13/02/1980", "01/02/1980"], Reading("date", "d/M/yyyy")),
    (["02/13/1980", "01/02/1980"], Reading("date", "M/d/yyyy")),
    (["01/02/1980", "03/04/1981"], None),  # nobody knows which is the month
    (["32.01.1980"], None),
    (["01.02.80"], None),  # of which century?
    (["1980-02-01"], Reading("date")),
    (["31.12.1980 14:30", "1.1.1980 7:05"], Reading("timestamp", "d.M.yyyy H:mm")),
    (["14:30", "15:45"], None),
    (["1.234,50", "7,00", "100"], Reading("double", "1.234,5")),
    (["12,5", "-7,25"], Reading("double", "1.234,5")),
    (["1,234.50", "7.00"], Reading("double", "1,234.5")),
    (["1,234", "5,678"], None),  # thousands, or decimals?
    (["1,234", "5,6"], Reading("double", "1.234,5")),
    (["1 234,50", "7,00"], Reading("double", "1 234,5")),
    (["1\u00a0234,50"], Reading("double", "1 234,5")),
    (["1'234.50"], Reading("double", "1'234.5")),
    (["661 716 957", "502 113 004"], None),  # whole numbers in groups may be keys or phones
    (["12.5", "7"], Reading("double")),
    (["12 %"], None),
    (["0,512", "1,234"], Reading("double", "1.234,5")),  # groups don't begin with 0
    (["20240131", "19991231"], Reading("date", "yyyyMMdd")),
    (["202401312359", "199912310000"], Reading("timestamp", "yyyyMMddHHmm")),
    (["20240131", "20241331"], Reading("int")),
    (["20240131", "18991231"], Reading("int")),
    (["202401312459"], Reading("bigint")),
    (["20240131", "-9"], Reading("int")),
    ([" +2147483647 ", "-2147483648"], Reading("int")),
    (["7", "2147483648"], Reading("bigint")),
    (["7\t"], None),  # what is no blank stays: Spark would not read it in all types
    (["\u00a07.5"], None),
    (["2024-02-28", "2023-02-29"], None),
    (["2024-02-29"], Reading("date")),
    (["0001-01-01", "9999-12-31"], Reading("date")),
    (["2024-02-29 23:59", "2023-01-01T00:00:59.1234567+01:00"], Reading("timestamp")),
    (["2023-02-29 23:59"], None),
    (["2024-02-29 24:00"], None),
    (["2024-02-29 23:60"], None),
    (["2024-02-29 23:59:60"], None),
    ([], None),
]
#: What texts look like that are not read so; numbers that are no texts, as texts.
LEFT = [
    (["01/02/1980", "03/04/1981 7:15"], "dates of which day and month can't be told apart"),
    (["01.02.80"], "dates with a year of two digits"),
    (["3 May 2024", "12. M\u00e4rz 2023"], "dates with the name of a month"),
    (["March 3, 2024"], "dates with the name of a month"),
    (["12,50 \u20ac", "1.200,00\u00a0\u20ac"], "numbers with a unit or a currency"),
    (["$12", "45,3 %"], "numbers with a unit or a currency"),
    (["1,234", "5,678"], "numbers in groups of three digits, or with a decimal mark"),
    (["202405", "202312"], "months written as yyyyMM"),
    (["1700000000", "1700000001"], "codes of 10 digits"),
    (["100000"], "codes of 6 digits"),
    (["99999"], None),
    (["100000", "1000000"], None),
    (["12 A", "7 B"], None),
    (["1.2.3.4"], None),
    (["31.12.1980"], None),
    (["0,512"], None),
    (["2024-01-31"], None),
    ([], None),
]


@pytest.mark.parametrize(("texts", "doubt"), LEFT)
def test_doubts(texts: list[str], doubt: str | None) -> None:
    """They are told, and end where texts can be read."""
    found = choose_doubt(find_doubts(texts), parse_texts(texts), is_number=False)
    assert found == doubt


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("20240131", "days written as yyyyMMdd"),
        ("202401311230", "moments written as yyyyMMddHHmm"),
        ("20241331", "codes of 8 digits"),
        ("", None),
    ],
)
def test_doubts_of_numbers(text: str, doubt: str | None) -> None:
    assert choose_doubt(find_doubts([text]), None, is_number=True) == doubt


@pytest.mark.parametrize(("texts", "reading"), TOLD)
def test_readings(texts: list[str], reading: Reading | None) -> None:
    assert parse_texts(texts) == reading


@given(st.dates(), st.sampled_from(sorted(DATES)))
def test_dates(day: date, layout: str) -> None:
    """Each day is of its own layout, whatever its year."""
    parts = {"d": str(day.day), "M": str(day.month), "yyyy": f"{day.year:04}"}
    text = re.sub("[a-zA-Z]+", lambda part: parts[part[0]], layout)
    assert re.match(LAYOUTS[layout][1], text)


@given(st.integers(-(10**12), 10**12), st.integers(0, 99), st.sampled_from(sorted(NUMBERS)))
def test_numbers(whole: int, hundredths: int, layout: str) -> None:
    groups, decimal = NUMBERS[layout]
    text = f"{whole:,}".replace(",", groups[0]) + f"{decimal}{hundredths:02}"
    assert re.match(LAYOUTS[layout][1], text)
    assert text.translate({ord(g): None for g in groups} | {ord(decimal): "."}) == (
        f"{whole}.{hundredths:02}"
    )


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [
        ("dd.MM.yyyy", True),
        ("d MMM yyyy", True),
        ("yyyyMMdd", True),
        ("yyyyMMddHHmm", True),
        ("yyyyMM", False),
        ("yyyyMMddyyyy", False),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", True),
        ("d.M.yy", False),
        ("MM/yyyy", False),
        ("dd.MM.yyyy dd", False),
        ("dd.MM.yyyy z", False),
        ("", False),
    ],
)
def test_patterns(pattern: str, holds: bool) -> None:
    assert is_date_pattern(pattern) == holds


def test_a_config_names_them() -> None:
    """With a type that they fit; types are no matter of Spark's reader."""
    quasi = {"role": "quasi_identifier", "scale": "continuous"}
    config = {
        "source": {
            "format": "csv",
            "path": "people.csv",
            "options": {"inferSchema": "true", "dateFormat": "dd.MM.yyyy"},
        },
        "attributes": {
            "day": {**quasi, "type": "date", "layout": "dd.MM.yyyy"},
            "pay": {**quasi, "type": "decimal(12,2)", "layout": "1.234,5"},
            "century": {**quasi, "type": "date", "layout": "dd.MM.yy"},
            "marks": {**quasi, "type": "double", "layout": "1.23,4"},
            "typeless": {**quasi, "layout": "1.234,5"},
            "text": {**quasi, "type": "string", "layout": "1.234,5"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": "out"},
    }
    with pytest.raises(ConfigError) as error:
        anonlib.parse(config)
    assert {
        (problem.where, problem.text.partition(" ")[0]) for problem in error.value.problems
    } == {
        ("attributes.century.layout", "must"),
        ("attributes.marks.layout", "must"),
        ("attributes.typeless.layout", "says"),
        ("attributes.text.layout", "says"),
        ("source.options.inferSchema", "Spark"),
        ("source.options.dateFormat", "Spark"),
    }
