"""The operator's minimum k: nothing is released or measured with a smaller one, whatever a config
says.
"""

import os
from collections.abc import Iterator

from anonlib.config.model import MAX_INT, Config
from anonlib.errors import Problem
from anonlib.privacy.k_anonymity import KAnonymity

#: Where operators set it; the largest counts.
VARIABLE, PROPERTY = "ANONLIB_MIN_K", "spark.anonlib.minimumK"


def check_minimum_k(config: Config, *properties: str | None) -> Iterator[Problem]:
    """What in a config is below the minimum in the environment and in values of PROPERTY (None:
    not set). A minimum that can't be read is a problem too: it was meant to be one."""
    given = [(f"environment variable {VARIABLE}", os.environ.get(VARIABLE))]
    given += [(f"Spark property {PROPERTY}", value) for value in properties]
    least = 0
    for where, text in given:
        number = _number(text)
        if number is None:
            yield Problem(where, f"the minimum k must be a whole number from 1 to {MAX_INT}")
        else:
            least = max(least, number)
    asked = [(m.k, i) for i, m in enumerate(config.privacy.models) if isinstance(m, KAnonymity)]
    k, place = max(asked, default=(0, 0))
    if k < least:
        text = f"k is {k}; the operator of this installation allows no k below {least}"
        yield Problem(f"privacy.models.{place}.k", text)


def _number(text: str | None) -> int | None:
    """The minimum in a text, 0 where there is none; None where it is not valid."""
    if text is None:
        return 0
    valid = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_INT))
    return int(text) if valid and 1 <= int(text) <= MAX_INT else None
