"""Columns with values that may stand for missing ones, and what both makers of profiles, in Spark
and in memory, must find in them."""

from datetime import date, datetime
from decimal import Decimal
from math import nan
from typing import Any, NamedTuple

import pyarrow as pa


class Case(NamedTuple):
    """A column of a name, and its profile: present and distinct values, tokens, far numbers."""

    name: str
    values: pa.Array
    n_present: int
    n_distinct: int
    tokens: dict[str, int]
    far: tuple[str, ...] = ()


def case(name: str, values: list[Any], type: pa.DataType, *found: Any) -> Case:
    return Case(name, pa.array(values, type), *found)


TEXT, DOUBLE, LONG = pa.string(), pa.float64(), pa.int64()
AGES = [*range(18, 60)]
DAYS = [date(2020, 1, i) for i in range(1, 21)]
END, LATE, ZERO = date(9999, 12, 31), "2999-12-31", "0001-01-01"
STATES = ["AL", "AK", "AZ", "CA", "CO", "FL", "GA", "HI", "IA", "ME", "MI", "MN", "NY"]
CASES = [
    case("NaN", [1.5, nan, nan, 2.5, None], DOUBLE, 2, 2, {}),
    case("NaN alone", [nan, nan], DOUBLE, 0, 0, {}),
    case("float NaN", [nan, 7.0], pa.float32(), 1, 1, {}),
    case("zeros", [0.0, -0.0, 0.0, 3.0], DOUBLE, 4, 2, {}),
    case("marks", ["?", "flu", " ? ", None, "cold"], TEXT, 2, 2, {}),
    case("blanks", ["", " ", "\t", "\u00a0", "\u200b", "flu", "flu"], TEXT, 2, 1, {}),
    case("words", ["NA", " na\u00a0", "None", "flu", "nap"], TEXT, 2, 2, {"NA": 2, "none": 1}),
    case(
        "other languages",
        [
            *("HIV", "Krebs", "k.A.", "K. A.", "keine Angabe", "KEINE ANGABE", "unbekannt"),
            *("inconnu", "nicht erhoben", "brak danych", "brak_danych", "n.b.", "n. b.", "nd"),
            *("b.d.", "kA"),
        ],
        TEXT,
        2,
        2,
        {"b.d.": 1, "brak danych": 1, "brak_danych": 1, "inconnu": 1, "k. A.": 1, "k.A.": 1}
        | {"kA": 1, "keine Angabe": 2, "n. b.": 1, "n.b.": 1, "nd": 1, "nicht erhoben": 1}
        | {"unbekannt": 1},
    ),
    case("states", [*STATES, *STATES, "NA", "nd"], TEXT, 28, 15, {}),
    case(
        "a state and a word",
        [*STATES, "NA", "n/a", "unknown"],
        TEXT,
        14,
        14,
        {"N/A": 1, "unknown": 1},
    ),
    case("few of two letters", ["si", "no", "nd", "NA"], TEXT, 2, 2, {"NA": 1, "nd": 1}),
    case("not all of two letters", [*STATES, "USA", "NA"], TEXT, 14, 14, {"NA": 1}),
    case("nearly a word", ["keine", "brak", "NB", "SD", "NC", "unbekannter"], TEXT, 6, 6, {}),
    case("whole", [*AGES, -9, -9], LONG, 42, 42, {"-9": 2}),
    case("small", [*AGES, -99], pa.int16(), 42, 42, {"-99": 1}),
    case("tenths", [*AGES, -9.0], DOUBLE, 42, 42, {"-9": 1}),
    case("two codes", [*AGES, -9, -99], LONG, 42, 42, {"-9": 1, "-99": 1}),
    case("near a code", [*AGES, -9.0000001], DOUBLE, 43, 43, {}),
    case("near two", [*AGES, -9.0000001, -9.0], DOUBLE, 44, 44, {}),
    case("negative", [*AGES, -9, -4], LONG, 44, 44, {}),
    case("decimal", [*map(Decimal, AGES), Decimal(-9)], pa.decimal128(9, 2), 42, 42, {"-9": 1}),
    case("numbers", [*map(str, AGES), "-9", "-9.0"], TEXT, 42, 42, {"-9": 1, "-9.0": 1}),
    case("a part", [*map(str, AGES), "-9", "-9.0000001"], TEXT, 44, 44, {}),
    case("long", [*map(str, AGES), "-9.000"], TEXT, 43, 43, {}),
    case("both", ["flu", "NA", "-9", "cold", "?"], TEXT, 2, 2, {"NA": 1, "-9": 1}),
    case("refused", ["flu", "NA", "-9", "cold", "-3"], TEXT, 4, 4, {"NA": 1}),
    case("points", [*map(str, AGES), ".5", ".", "+", "+."], TEXT, 45, 45, {".": 1}),
    case("far", [*AGES, 999], LONG, 43, 43, {}, ("999",)),
    case("far text", [*map(str, AGES), "999", "NA"], TEXT, 43, 43, {"NA": 1}, ("999",)),
    case("answers", [1, 2, 3, 4, 5, 97, 98, 99], LONG, 8, 8, {}, ("97", "98", "99")),
    case("answers in texts", ["1", "5", "98", "NA"], TEXT, 3, 3, {"NA": 1}, ("98",)),
    case("shares", [1, 2, 40, 97, 98, 99], LONG, 6, 6, {}),
    case("not far", [*AGES, 400, 999], LONG, 44, 44, {}),
    case("words beside", ["flu", *map(str, AGES), "999"], TEXT, 44, 44, {}),
    case("minus one", [*AGES, -1, -9], LONG, 43, 43, {"-9": 1}, ("-1",)),
    case("few", [1, 2, 3, -1, -9], LONG, 5, 5, {}),
    case("for ever", [*DAYS, END, END], pa.date32(), 22, 21, {}, ("9999-12-31",)),
    case("late", [*DAYS, END, date(2150, 1, 1)], pa.date32(), 22, 22, {}),
    case("no day", [*DAYS, date(1900, 1, 1)], pa.date32(), 21, 21, {}, ("1900-01-01",)),
    case("early", [*DAYS, date(1900, 1, 1), date(1907, 3, 5)], pa.date32(), 22, 22, {}),
    case("far days alone", [END, date(1900, 1, 1)], pa.date32(), 2, 2, {}),
    case(
        "moments",
        [datetime.fromisoformat(text) for text in ("2020-01-05T10", "9999-12-31T23:59", ZERO)],
        pa.timestamp("us"),
        *(3, 3, {}, (ZERO, "9999-12-31")),
    ),
    case("days in texts", [*map(str, DAYS), str(END), "NA"], TEXT, 21, 21, {"NA": 1}, (str(END),)),
    case(
        "days of a land",
        ["5.3.2020", "17.12.2021", "31.12.2099", "1.1.1900", "01.01.1900"],
        *(TEXT, 5, 5, {}, ("1900-01-01", "2099-12-31")),
    ),
    case("moments in texts", ["2020-01-05T10:00", "2999-12-31 00:00:00"], TEXT, 2, 2, {}, (LATE,)),
    case("days among texts", [*map(str, DAYS), str(END), "flu"], TEXT, 22, 22, {}),
]
