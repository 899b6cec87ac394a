"""What the first lines of a CSV file say: the header's line, units, quotes that break lines."""

import pytest

from anonlib.source.csv_start import (
    breaks_lines,
    find_lower_header,
    find_names,
    guess_delimiter,
    has_header,
    seems_of_units,
    split_cells,
    split_lines,
)

ROWS = ["name;age;city", "Ann;41;Bonn", "Bob;27;Cork", "Cy;33;Graz"]


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ([], None),
        (["", "  "], None),  # Spark skips blank lines
        ([" ", "\t"], 3),  # but not this one
        (["Export vom 01.03.2026;;"], 2),
        (["Export vom 01.03.2026"], 2),
        (["Export vom 01.03.2026", "", "by Ann Lee;;", ";;"], 5),
        (["sep=;"], 2),
        (['"sep=;"', ""], 3),
        (["SEP=;", "Export;;"], 3),
        (["Ward;3", "From;01.03.2026;;;"], 3),
        (["\u00e0;b;c;d"], 2),
    ],
)
def test_header_below_other_lines(above: list[str], line: int | None) -> None:
    assert find_lower_header([*above, *ROWS], ";") == line


@pytest.mark.parametrize(
    "lines",
    [
        [",age,city", "0,41,Bonn", "1,27,Cork"],
        [",age", "0,41", "1,27"],
        ["age,,", "41,Bonn,x", "27,Cork,y"],  # the next line has a number
        ["x,,no", "y,flu,no", "z,flu,yes", "z,no,no"],
        ["a", "Bonn", "Cork"],
        ["1,2,3", "4,5,6"],
        ["a b", '"1" 41 Bonn', '"2" 27 Cork'],
        ["a,b"],
    ],
)
def test_the_first_line_is_the_header_or_a_row(lines: list[str]) -> None:
    assert find_lower_header(lines, ",") is None


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("wage", True),
        ("Kowalski Jan", True),  # nothing tells it from a name
        ("2023 Q1", True),
        ("12", False),
        ("1e3", False),
        ("1.200,50", False),
        ("1 200", False),
        ("1'200.5", False),
        ("1981-02-01", False),
        ("1981-02-01 14:30", False),
        ("1.2.1981", False),
        ("2/1/1981 14:30", False),
    ],
)
def test_no_column_is_named_as_values_are(cell: str, names: bool) -> None:
    """A person's row would become names of columns, which reports and drafts show."""
    below = ["3", "1990-01-31", "1990-01-31 07:15", "31.1.1990", "31/1/1990 7:15", "x"]
    assert has_header([["name", cell], *[[f"P{i}", each] for i, each in enumerate(below)]]) == names


@pytest.mark.parametrize(
    ("cell", "below"),
    [
        ("2020-05-03", ["", "", ""]),  # of discharge: most have none
        ("2020-05-03", ["3", "", "5"]),
        ("2020-05-03", ["3.5.2020", "4.5.2020", "5.5.2020"]),
        ("2020-05-03", ["unknown", "unknown", "unknown"]),
        ("2020-05-03", ["1944", "2001", "1987"]),
        ("2020-05-03 10:00", ["", "", ""]),
        ("01/02/1977", ["", "", ""]),
        ("3.5.20", ["", "", ""]),
        ("3 May 2020", ["", "", ""]),
        ("82 kg", ["", "", ""]),
        ("1,234.5", ["", "", ""]),
        ("1,234.5", ["3", "7", "12"]),
        ("2020-05-03", []),
    ],
)
def test_a_date_is_a_value_unless_each_row_has_a_number(cell: str, below: list[str]) -> None:
    """A date of death, in the first row only, made a person's row the names of columns."""
    rows = [["Ann Lee", "Bonn"], ["Bob Ray", "Cork"], ["Cy Poe", "Graz"], ["Di Fox", "Ulm"]]
    below = [cell, *below]
    assert not has_header([[*row, text] for row, text in zip(rows, below, strict=False)])


@pytest.mark.parametrize("figure", ["1,234.5", "1.0e3", "7", "-3"])
def test_months_above_numbers_in_any_spelling(figure: str) -> None:
    assert has_header([["region", "31.01.2024"], ["North", figure], ["South", "4"]])


def test_a_header_of_months_below_a_title() -> None:
    """Months above gaps are names there: else the title, with a person's name, would be one."""
    lines = ["Report of Ann Lee;;", "region;31.01.2024;29.02.2024", "North;1;", "South;3;4"]
    assert find_lower_header(lines, ";") == 2


@pytest.mark.parametrize("names", [("2020-01-01", "2020-02-01"), ("1.1.2020", "1.2.2020")])
def test_columns_are_named_by_months(names: tuple[str, str]) -> None:
    assert has_header([["region", *names], ["R1", "5", "2020"], ["R2", "7", "8"]])


def test_rows_below_sep_without_a_header() -> None:
    assert find_lower_header(["sep=;", "1;2", "3;4"], ";") == 2
    assert find_lower_header(["sep=;"], ";") is None


def test_delimiter_that_excel_is_told() -> None:
    assert guess_delimiter(["sep=|", "a;b|c", "a;b|c"]) == "|"
    assert guess_delimiter(["a;b", "1,5;2,5", "1,5;2,5"]) == ";"


def test_names_are_found_in_any_order() -> None:
    lines = ["Export", "", "city; name ;age", "Bonn;Ann;41"]
    assert find_names(lines, ";", ["name", "age"]) == 3
    assert find_names(lines, ";", ["name", "wage"]) is None
    assert find_names([*[""] * 30, *lines], ";", ["name"]) is None
    assert find_names(["x||y"], "||", ["x", "y"]) == 1


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("kg;cm;", True),
        ("[kg];[cm];x", True),
        ("81,5;180;x", False),
        (";;x", False),
        ("NA;-;x", False),
        ("81;cm;x", False),  # a row in which a number is missing, by a word of its own
    ],
)
def test_units(first: str, told: bool) -> None:
    rows = [first, "81;180;Bonn", "70,5;;Cork", "60;170;Graz", "90;190;Bonn", "71;171;x", "7;1;y"]
    assert seems_of_units([split_cells(row, ";") for row in rows]) == told
    assert not seems_of_units([split_cells(row, ";") for row in rows[:4]])


def test_lines() -> None:
    text = "a,b\r\n1,2\r\r3,\u20ac\n"
    lines = ["a,b", "1,2", "", "3,\u20ac", ""]
    assert split_lines(text.encode("utf-8-sig"), "UTF-8") == lines
    assert split_lines(text.encode("cp1252"), "windows-1252") == lines
    assert split_lines(text.encode("utf-16"), "UTF-16") == lines
    assert split_lines(b"a\xe9", "x-nobody-knows-it") == ["a\u00e9"]


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ('1,"a', True),
        ('"a,b', True),
        ('1,"a, ""b"" c"', False),
        ('1,5" wide', False),
        ('"he said \\"no\\"",""', False),
        ("1,a", False),
    ],
)
def test_quotes_that_break_lines(line: str, broken: bool) -> None:
    assert breaks_lines(["x,y", line], ",") == broken
