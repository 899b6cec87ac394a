"""Columns that the content gate must find, and harmless ones. Both gates, in Spark and in memory,
are judged by them."""

import hashlib
from base64 import b64encode
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import numpy as np
import pandas as pd

N = 400


def days(numbers: Any) -> "pd.Series[Any]":
    return pd.Series(pd.Timestamp("1950-01-01") + pd.to_timedelta(numbers, unit="D"))


def table() -> pd.DataFrame:
    random, more = np.random.default_rng(3), np.random.default_rng(4)
    names = more.choice([*"abcdefghijklmnopqrstuvwxyz"], (N, 12))
    return pd.DataFrame(
        {
            "id": [f"P-{i:05}" for i in random.permutation(90_000)[:N]],
            "number": random.permutation(10**9 * np.arange(1, N + 1) + 7),
            "serial": np.arange(N),  # as dense as ages: chance explains what they share
            "age": random.integers(18, 90, N),
            "town": random.choice(["Ulm", "Bonn", "Jena", "Kiel"], N),
            "ill": random.choice(["a", "b", "c"], N),
            "flag": random.integers(0, 2, N).astype(bool),
            "name": [f"{''.join(n[:5])} {''.join(n[5:])}".title() for n in names],
            "birthday": days(more.permutation(20_000)[:N]).dt.date,
        }
    )


def pesel(i: int) -> int:
    """A number that Poland may have given to a person: the last digit checks the others."""
    digits = [*map(int, f"850{1 + i % 9}{10 + i % 19}{1000 + i}")]
    total = sum(d * w for d, w in zip(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), strict=True))
    return int("".join(map(str, [*digits, -total % 10])))


def widen(text: str) -> str:
    """The text in full width."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


def config_of(path: Path, x: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    """x: the attribute of the column x; None if there is none."""
    more = {} if x is None else {"x": x}
    return {
        "source": {"format": "dataframe"},
        "attributes": {
            "id": {"role": "identifier"},
            "number": {"role": "identifier"},
            "serial": {"role": "identifier"},
            "name": {"role": "identifier"},
            "birthday": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "town": {"role": "quasi_identifier", "scale": "nominal"},
            "ill": {"role": "sensitive"},
            "flag": {"role": "sensitive"},
            **more,
            **changes.pop("attributes", {}),
        },
        "one_row_per_person": "id",
        "privacy": {"models": [{"type": "k_anonymity", "k": 4}], **changes.pop("privacy", {})},
        "kernel": {"type": "mdav"},
        "release": {"path": str(path / "out")},
        **changes,
    }


SENSITIVE = {"role": "sensitive"}
PUBLIC = {"role": "target", "public": True}
#: What x holds, its attribute, and what is said.
SHOWS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("a copy", lambda t: t["id"], SENSITIVE, "values with column id"),
    ("bytes", lambda t: t["id"].map(str.encode), {"role": "insensitive"}, "values with column id"),
    ("a public target", lambda t: t["id"], PUBLIC, "values with column id"),
    ("other forms", lambda t: "  " + t["id"].str.lower(), SENSITIVE, "values with column id"),
    ("numbers as text", lambda t: t["number"].astype(str), SENSITIVE, "values with column number"),
    ("whole floats", lambda t: t["number"].astype(float), SENSITIVE, "values with column number"),
    (
        "leading zeros",
        lambda t: "00" + t["number"].astype(str),
        PUBLIC,
        "values with column number",
    ),
    ("someone else's", lambda t: np.roll(t["id"], 7), SENSITIVE, "values with column id"),
    ("a few", lambda t: t["id"].where(t.index % 20 == 0, t["ill"]), SENSITIVE, "column id"),
    ("typed into few values", lambda t: t["id"].where(t.index < 17, t["ill"]), SENSITIVE, "id"),
    ("dense numbers", lambda t: t["serial"], SENSITIVE, "equals it in 400 rows"),
    (
        "a quasi-identifier",
        lambda t: t["id"],
        {"role": "quasi_identifier", "scale": "nominal"},
        "id",
    ),
    ("a key", lambda t: [f"k{i * i}" for i in range(N)], SENSITIVE, "is a key: 400 distinct"),
    ("a key as target", lambda t: [f"k{i * i}" for i in range(N)], PUBLIC, "is a key"),
    ("nearly a key", lambda t: [f"k{i % 390}" for i in range(N)], SENSITIVE, "is a key: 390"),
    ("repeats", lambda t: t["age"], SENSITIVE, "equals the quasi-identifier age"),
    ("coded ages", lambda t: (t["age"] * 7 + 3).map("c{}".format), SENSITIVE, "value for each of"),
    ("invisible letters", lambda t: t["id"] + "\u200b\u00a0", SENSITIVE, "values with column id"),
    ("full width", lambda t: t["id"].map(widen), SENSITIVE, "values with column id"),
    ("equal at times", lambda t: t["serial"] % 60, SENSITIVE, "equals it in 60 rows"),
    ("repeats a name", lambda t: t["town"].str.upper(), PUBLIC, "equals the quasi-identifier town"),
    (
        "repeats where there is one",
        lambda t: t["age"].astype(str).where(t.index % 2 == 0, "\u00a0 "),
        SENSITIVE,
        "equals the quasi-identifier age in 200 rows",
    ),
    (
        "reached by mail",
        lambda t: [f"p{i * 7 % 300}@example.com" for i in range(N)],
        {"role": "quasi_identifier", "scale": "nominal"},
        "it seems to have e-mail addresses",
    ),
    (
        "reached by mail in bytes",
        lambda t: [f"p{i * 7 % 300}@example.com".encode() for i in range(N)],
        {"role": "insensitive"},
        "it seems to have e-mail addresses",
    ),
    (
        "reached by phone",
        lambda t: [f"+49 89 12345{i % 3}" for i in range(N)],
        {"role": "insensitive"},
        "it seems to have phone numbers",
    ),
    (
        "reached by phone in groups alone",
        lambda t: [f"0151/12345{i % 90:02}" for i in range(N)],
        SENSITIVE,
        "it seems to have phone numbers by their digits alone, and the release would",
    ),
    (
        "reached by mail or by phone",
        lambda t: [f"p{i}@web.de" if i % 2 else f"0151.12345{i % 40:02}" for i in range(N)],
        SENSITIVE,
        "it seems to have e-mail addresses",
    ),
    (
        "some mail in remarks",
        lambda t: [f"ask {'abc'[i % 3]}@web.de" if i % 80 < 3 else f"r{i % 90}" for i in range(N)],
        SENSITIVE,
        "it seems to have texts with e-mail addresses",
    ),
    (
        "reached by numbers",
        lambda t: 491_511_234_000 + 7 * np.arange(N),
        {"role": "insensitive"},
        "it seems to have phone numbers",
    ),
    (
        "numbers of the state",
        lambda t: [pesel(i % 200) for i in range(N)],
        SENSITIVE,
        "it seems to have national numbers of persons",
    ),
]


def hashed(kind: str, texts: "pd.Series[str]") -> "pd.Series[str]":
    return texts.map(lambda text: hashlib.new(kind, text.encode()).hexdigest())


#: What x holds, which a model names: rich as it may be, it is made of an identifier.
MADE: list[tuple[str, Any]] = [
    ("a part", lambda t: t["id"].str[1:]),
    ("a small part", lambda t: t["id"].str[-3:]),
    ("a small part of numbers", lambda t: t["number"] // 10**9),
    ("the number in it", lambda t: t["id"].str.extract(r"(\d+)")[0].astype(int)),
    ("within", lambda t: "came as " + t["id"] + ", alone"),
    ("an address", lambda t: t["id"].str.lower() + "@example.org"),
    ("backwards", lambda t: t["id"].str[::-1]),
    ("other marks", lambda t: t["id"].str.replace("-", "/")),
    ("md5", lambda t: hashed("md5", t["id"])),
    ("sha1", lambda t: hashed("sha1", t["id"].str.lower())),
    ("sha256", lambda t: hashed("sha256", t["id"]).str.upper()),
    ("hash of a number", lambda t: hashed("sha256", t["number"].astype(str))),
    ("thousands", lambda t: t["number"].map("{:,}".format)),
    ("cents", lambda t: t["number"].map(lambda n: Decimal(n).scaleb(-2))),
    ("tenfold", lambda t: t["number"] * 10),
    (
        "words in another order",
        lambda t: t["name"].str.upper().str.split().str[::-1].str.join(", "),
    ),
    ("an initial", lambda t: t["name"].str.replace(r"(\w)\w* (\w+)", r"\2, \1.", regex=True)),
    ("one more", lambda t: t["number"] + 1),
    ("negative", lambda t: -t["number"]),
    ("a seventh", lambda t: t["number"] / 7),
    ("a birthday", lambda t: pd.to_datetime(t["birthday"]).dt.strftime("%d %B %Y")),
    ("a birthday, day first", lambda t: pd.to_datetime(t["birthday"]).dt.strftime("%d/%m/%Y")),
    ("the day after", lambda t: (pd.to_datetime(t["birthday"]) + pd.Timedelta(days=1)).dt.date),
    ("blake2b", lambda t: hashed("blake2b", t["id"])),
    ("sha3 of a line", lambda t: hashed("sha3_256", t["id"] + "\n")),
    ("sha512, cut", lambda t: hashed("sha512", t["id"]).str[:12]),
    ("base64", lambda t: t["id"].map(lambda id: b64encode(id.encode()).decode())),
    (
        "sha256 in base64",
        lambda t: t["id"].map(lambda id: b64encode(hashlib.sha256(id.encode()).digest()).decode()),
    ),
    ("a name by a space", lambda t: t["id"].map(lambda id: str(uuid5(NAMESPACE_DNS, id)))),
    (
        "in half the rows",
        lambda t: t["id"].str[::-1].where(t.index % 2 == 0, "k" + t["id"].str[:1]),
    ),
]


HARMLESS: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "bytes that are no texts",
        lambda t: [bytes([255, i % 7]) for i in range(N)],
        {"role": "insensitive"},
    ),
    ("a boolean", lambda t: ~t["flag"], SENSITIVE),
    ("few values", lambda t: t.index % 15, SENSITIVE),
    ("ages", lambda t: np.random.default_rng(0).integers(0, 110, N), SENSITIVE),
    ("dense numbers", lambda t: np.random.default_rng(0).integers(0, 500, N), PUBLIC),
    ("some towns", lambda t: np.roll(t["town"], 1), SENSITIVE),
    (
        "codes of other ages",
        lambda t: (np.random.default_rng(1).permutation(t["age"]) * 7).astype(str),
        SENSITIVE,
    ),
    ("two figures", lambda t: np.random.default_rng(0).integers(10, 100, N), SENSITIVE),
    ("amounts", lambda t: np.random.default_rng(0).integers(0, 300, N) * 10, SENSITIVE),
    ("numbers of parcels", lambda t: 44_051_400_000 + 7 * np.arange(N) % 210, SENSITIVE),
    ("cost centres", lambda t: [f"0{4100 + i % 4}.120.33" for i in range(N)], SENSITIVE),
    ("goods", lambda t: [f"201-407-26{i % 4:02}" for i in range(N)], SENSITIVE),
    ("companies", lambda t: [552_100_000_000_11 + 7 * (i % 60) for i in range(N)], SENSITIVE),
    (
        "mail of two desks",
        lambda t: [f"ask {'ab'[i % 2]}@x.de" if i % 80 < 2 else f"r{i % 90}" for i in range(N)],
        SENSITIVE,
    ),
    # 4 to 9 % of them stand for a missing value: they are far away, and the others near each other.
    *(
        (
            f"measured values, and a code in {share:.0%}",
            lambda t, share=share: np.where(
                np.random.default_rng(1).random(N) < share,
                999_999_999,
                np.random.default_rng(0).normal(100, 15, N).round(2),
            ),
            SENSITIVE,
        )
        for share in (0.04, 0.07, 0.09)
    ),
]


NUMBERS = {"role": "quasi_identifier", "scale": "continuous"}
NAMES = {"role": "quasi_identifier", "scale": "nominal"}


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


#: Quasi-identifiers that the columns below are other forms of.
QUASI: list[tuple[str, Any, dict[str, Any]]] = [
    ("born", lambda t: days(drawn(1).integers(0, 20_000, N)).dt.date, NUMBERS),
    ("income", lambda t: drawn(2).integers(1000, 90_000, N), NUMBERS),
    (
        "gain",
        lambda t: np.where(drawn(3).random(N) < 0.9, 0, drawn(4).integers(1, 999, N)),
        NUMBERS,
    ),
    ("sex", lambda t: drawn(5).choice(["m", "f"], N), NAMES),
    ("school", lambda t: drawn(6).choice([f"e{i}" for i in range(16)], N), NAMES),
    ("zip", lambda t: drawn(7).choice([f"Z{i}" for i in range(40, 99)], N), NAMES),
]


def dates(layout: str) -> Any:
    return lambda t: pd.to_datetime(t["born"]).dt.strftime(layout)


def count_days(t: pd.DataFrame, since: str) -> "pd.Series[int]":
    return (pd.to_datetime(t["born"]) - pd.Timestamp(since)).dt.days


#: A quasi-identifier that is true in 2 % of the rows.
RARE_FLAG = ("rare", lambda t: drawn(10).random(N) < 0.02, NAMES)
#: Flags, and whether they repeat it beyond chance: all differ from it in at most 5 % of the rows.
FLAGS: list[tuple[str, Any, bool]] = [
    ("the flag", RARE_FLAG[1], True),
    ("a flag", lambda t: drawn(11).random(N) < 0.02, False),
    ("yes or no", lambda t: np.where(drawn(11).random(N) < 0.02, "true", "false"), False),
    ("a row more", lambda t: RARE_FLAG[1](t) | (t.index == 5), True),
    ("2 % of errors", lambda t: RARE_FLAG[1](t) ^ (t.index % 50 == 3), True),
    ("4 % of errors", lambda t: RARE_FLAG[1](t) ^ (t.index % 25 == 3), False),
]


#: What x holds, and the quasi-identifier that it is in another form.
FORMS: list[tuple[str, Any, str]] = [
    ("day first", dates("%d/%m/%Y"), "born"),
    ("month first", dates("%m/%d/%Y"), "born"),
    ("points", dates("%d.%m.%y"), "born"),
    ("names of months", dates("%d %B %Y"), "born"),
    ("digits", lambda t: dates("%Y%m%d")(t).astype(int), "born"),
    ("digits, day first", dates("%d%m%Y"), "born"),
    ("days since 1970", lambda t: count_days(t, "1970-01-01"), "born"),
    ("days of spreadsheets", lambda t: count_days(t, "1899-12-30"), "born"),
    ("the next day", lambda t: days(count_days(t, "1950-01-01") + 1).dt.date, "born"),
    ("noon", lambda t: days(count_days(t, "1950-01-01") + 0.5), "born"),
    ("age by birth", lambda t: count_days(t, "2020-01-01") // -365, "born"),
    ("one more", lambda t: t["income"] + 1, "income"),
    ("thousands of it", lambda t: t["income"] / 1000, "income"),
    ("a tax", lambda t: t["income"] * 0.2, "income"),
    ("negative", lambda t: -t["income"], "income"),
    ("dollars", lambda t: "$" + t["income"].astype(str), "income"),
    ("with cents", lambda t: t["income"].astype(str) + ".00", "income"),
    ("rounded", lambda t: t["income"].round(-2), "income"),
    ("a logarithm", lambda t: np.log(t["income"]), "income"),
    ("most of it", lambda t: (t["income"] + 1).where(t.index % 50 > 0, 7), "income"),
    ("codes of sexes", lambda t: t["sex"].map({"m": "male", "f": "female"}), "sex"),
    ("whether male", lambda t: t["sex"] == "m", "sex"),
    ("hashes of schools", lambda t: hashed("md5", t["school"]).str[:8], "school"),
    ("numbers of schools", lambda t: t["school"].str[1:].astype(int) * 7 % 16, "school"),
    ("two columns", lambda t: t["age"].astype(str) + "/" + t["zip"], "zip"),
]
#: Columns that have much in common with a quasi-identifier, but are no form of it.
NO_FORMS: list[tuple[str, Any]] = [
    ("strangers' births", lambda t: drawn().permutation(t["born"])),
    ("strangers' digits", lambda t: drawn().permutation(dates("%Y%m%d")(t)).astype(int)),
    ("near it", lambda t: t["income"] + drawn().integers(-2000, 2000, N)),
    ("hidden in half the rows", lambda t: t["income"].where(t.index % 2 > 0, 7) + 1),
    ("a group of it", lambda t: t["income"] // 10_000),
    ("a group of ages", lambda t: t["age"] // 10),
    ("other zeros", lambda t: np.where(drawn(8).random(N) < 0.9, 0, drawn(9).integers(1, 999, N))),
    ("the same zeros", lambda t: np.where(t["gain"] == 0, 0, drawn(9).integers(1, 9, N))),
    ("a rare flag", lambda t: np.where(t.index % 200 == 3, "yes", "no")),
    ("a flag for zeros", lambda t: np.where(t["gain"] == 0, "none", "some")),
    ("nearly a sex", lambda t: t["sex"].where(drawn().random(N) < 0.8, "m").str.upper() + "x"),
    ("whether, by chance", lambda t: drawn().random(N) < 0.5),
    ("two figures", lambda t: drawn().integers(10**9, 10**10, N).astype(str)),
    ("a text and a number", lambda t: t["ill"] + drawn().integers(0, 99, N).astype(str)),
]
