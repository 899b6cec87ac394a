"""Columns that the content gate must find, and harmless ones. Both gates, in Spark and in memory,
are judged by them."""

import hashlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N = 400


def table() -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "id": [f"P-{i:05}" for i in random.permutation(90_000)[:N]],
            "number": random.permutation(10**9 * np.arange(1, N + 1) + 7),
            "serial": np.arange(N),  # as dense as ages: chance explains what they share
            "age": random.integers(18, 90, N),
            "town": random.choice(["Ulm", "Bonn", "Jena", "Kiel"], N),
            "ill": random.choice(["a", "b", "c"], N),
            "flag": random.integers(0, 2, N).astype(bool),
        }
    )


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
        "in half the rows",
        lambda t: t["id"].str[::-1].where(t.index % 2 == 0, "k" + t["id"].str[:1]),
    ),
]


HARMLESS: list[tuple[str, Any, dict[str, Any]]] = [
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
]
