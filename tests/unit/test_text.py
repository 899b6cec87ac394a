"""How sensitive text is compared: as people see it."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.arrays import MISSING
from anonlib.table.encoding import code_protected
from anonlib.text import find_alike, fold_text
from tests.look_alikes import DIFFERENT, SAME


@pytest.mark.parametrize("seen", SAME)
def test_texts_that_look_the_same(seen: str) -> None:
    assert {fold_text(text) for text in [seen, *SAME[seen]]} == {seen}


def test_texts_that_do_not() -> None:
    assert len({fold_text(text) for text in DIFFERENT}) == len(DIFFERENT)


@given(st.text())
def test_plain_text_takes_the_same_way(text: str) -> None:
    """The short way of plain text is only shorter."""
    plain = "".join(c for c in text if " " <= c <= "~")
    assert fold_text(plain) == fold_text(plain + "\u200b")


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        (["Age", "age", "city"], {"Age", "age"}),
        (["age", "age"], {"age"}),
        (["stra\u00dfe", "strasse", "\u017f", "s", "\u0131", "i"], set()),
        (["\u1e9e", "\u00df", "\u0130", "i\u0307"], {"\u1e9e", "\u00df", "\u0130", "i\u0307"}),
    ],
)
def test_names_that_spark_takes_for_one(names: list[str], alike: set[str]) -> None:
    """Seen of Spark 4.2 with Delta 4.4: these it calls ambiguous, or duplicate, and no others."""
    assert find_alike(names) == alike


def test_codes_of_values() -> None:
    texts = [text for same in SAME.values() for text in same]
    codes = code_protected(pa.array(texts), ())
    groups = {}
    for seen, same in SAME.items():
        groups[seen] = {int(codes[texts.index(text)]) for text in same}
    assert groups.pop("") == {MISSING}
    assert all(len(group) == 1 for group in groups.values())
    assert len(set.union(*groups.values())) == len(groups)
