"""Which values of a column may stand for a missing one, where a config does not say so.

Each value has a code (`anonlib/local/column_facts.py`); what the codes of a column mean is said
here. Null, NaN, and texts of MISSING_TOKENS, as people see them, are missing and have none.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.guesses.guess import FEW
from anonlib.text import (
    FAR_DAYS,
    FAR_NUMBERS,
    NUMBER_TOKENS,
    NUMBERS_MISSING,
    TEXT_TOKENS,
    TWO_LETTERS,
)

#: Texts that may mean a missing value, as people see them, by their code less one. Numbers come
#: last, the plain ones first of these: numbers have the codes of their plain texts.
TOKENS = (*TEXT_TOKENS, *NUMBER_TOKENS)
#: The same, as a config names them.
SPELLED = (*TEXT_TOKENS.values(), *NUMBER_TOKENS)
#: The least code of a number that may mean one.
FIRST_NUMBER = len(TEXT_TOKENS) + 1
#: Numbers that may mean one where no others are near, by their code less the first.
FIRST_FAR = len(TOKENS) + 1
#: The codes of other numbers: of negative ones, of those near -1, and of all others up to a third
#: of 97, and so on to 99999. What is no number has the code 0, if it has not two letters.
NEGATIVE, NEAR = -1, -2
THIRDS = {number / 3: NEAR - i for i, number in enumerate(FAR_NUMBERS[1:], 1)}
#: The code of numbers above all of these.
ABOVE = NEAR - len(FAR_NUMBERS)
#: Days that may mean one where no others are near, by their code less the first.
FIRST_DAY = FIRST_FAR + len(FAR_NUMBERS)
#: The codes of other days: of years before 1910, from 2090, and between.
EARLY, LATE, USUAL = ABOVE - 1, ABOVE - 2, ABOVE - 3


def _spell_day(year: str, month: str, day: str) -> str:
    """A pattern of texts of a day, of any time of it, in each order and with each sign."""
    orders = ((year, month, day), (day, month, year), (month, day, year))
    return f"^({'|'.join('[-./]'.join(order) for order in orders)})([Tt ].*)?$"


_ANY = "[0-9]{1,2}"
#: Texts of days; then by code, in the order in which they are tried: those that have it. The
#: patterns mean the same in Java, Python and Arrow.
DAY = _spell_day("[0-9]{4}", _ANY, _ANY)
DAYS = {
    **{
        FIRST_DAY + i: _spell_day(year, month.replace("01", "0?1"), day.replace("01", "0?1"))
        for i, (year, month, day) in enumerate(text.split("-") for text in FAR_DAYS)
    },
    EARLY: _spell_day("(0[0-9]{3}|1[0-8][0-9]{2}|190[0-9])", _ANY, _ANY),
    LATE: _spell_day("(209[0-9]|2[1-9][0-9]{2}|[3-9][0-9]{3})", _ANY, _ANY),
    USUAL: DAY,
}
#: The code of texts of two letters that are no tokens, and the tokens that have two.
SHORT = -100
_SHORT_TOKENS = frozenset(i for i, t in enumerate(TOKENS, 1) if re.match(TWO_LETTERS, t))


class Meaning(NamedTuple):
    """What the codes of a column mean.

    Attributes:
        tokens: The codes of values that may stand for a missing one.
        far: Numbers and days that may since no others are near them, as texts.
    """

    tokens: frozenset[int]
    far: tuple[str, ...]


def find_code_numbers(numbers: Floats) -> Ints:
    """int64[n]. The codes of n numbers, without NaN."""
    code = np.full(len(numbers), ABOVE, np.int64)
    for third, size in sorted(THIRDS.items(), reverse=True):
        code[numbers <= third] = size
    code[numbers < 1] = NEAR
    code[numbers < 0] = NEGATIVE
    for first, known in ((FIRST_FAR, FAR_NUMBERS), (FIRST_NUMBER, NUMBERS_MISSING)):
        for i, number in enumerate(known):
            code[numbers == number] = first + i
    return code


def read_codes(
    codes: Collection[int], n_distinct: int, *, is_number: bool, is_time: bool = False
) -> Meaning:
    """What the codes of a column's values mean.

    Texts of TEXT_TOKENS may stand for a missing value, but for those of two letters where all other
    texts have two, and are many: NA is Namibia, ND North Dakota. Numbers of NUMBERS_MISSING may if
    no other number is negative.

    Args:
        codes: The codes that values have.
        n_distinct: The number of distinct values, without texts of TEXT_TOKENS.
        is_number: Whether the others are numbers, or texts of them.
        is_time: Whether they are dates or times, or texts of them.
    """
    found = {*codes}
    far = _find_far(found, n_distinct) if is_number else ()
    if is_time:
        far = _find_far_days(found)
    minus_one = set() if str(FAR_NUMBERS[0]) in far else {FIRST_FAR}
    end = FIRST_NUMBER if found & {NEGATIVE, *minus_one} else FIRST_FAR
    are_codes = n_distinct > FEW and {code for code in found if code <= 0} == {SHORT}
    tokens = frozenset(code for code in found if 0 < code < end)
    return Meaning(tokens - _SHORT_TOKENS if are_codes else tokens, far)


def _find_far(codes: Collection[int], n_distinct: int) -> tuple[str, ...]:
    """The far numbers of a column that no other number is near.

    Of -1 these are 0, parts of 1 and other negative numbers; and -1 among few values is a code as
    the others are. Of 97, 999 and the like they are those above a third of it, and negative ones.
    """
    others = {code for code in codes if code < 0}
    far = []
    for i, number in enumerate(FAR_NUMBERS):
        smaller = {NEAR - j for j in range(i + 1)}
        if number < 0:
            is_far = not others & {NEGATIVE, NEAR} and n_distinct > FEW + 1
        else:
            is_far = bool(others) and others <= smaller
        if is_far and FIRST_FAR + i in codes:
            far.append(str(number))
    return tuple(far)


def _find_far_days(codes: Collection[int]) -> tuple[str, ...]:
    """The far days of a column that has usual ones, and none that are early or late as they are."""
    if USUAL not in codes:
        return ()
    found = [day for i, day in enumerate(FAR_DAYS) if FIRST_DAY + i in codes]
    return tuple(day for day in found if (EARLY if day < "1901" else LATE) not in codes)


def name_tokens(n_rows: Mapping[int, int]) -> dict[str, int]:
    """By token, as a config names it and in alphabetical order: its rows. n_rows: By code of a
    token: its rows."""
    return dict(sorted((SPELLED[code - 1], n) for code, n in n_rows.items()))
