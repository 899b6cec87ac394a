"""The operator's minimum k: no config with a smaller k releases or measures anything."""

import os
from collections.abc import Iterator, Sequence

from anonlib.config.model import MAX_INT
from anonlib.errors import Problem
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity

#: The environment variable and the Spark property that set it. The largest value counts.
VARIABLE, PROPERTY = "ANONLIB_MIN_K", "spark.anonlib.minimumK"


def check_minimum_k(models: Sequence[PrivacyModel], *properties: str | None) -> Iterator[Problem]:
    """Problems: a k below the operator's minimum, or a minimum that can't be read.

    Args:
        models: The privacy models of the whole table.
        properties: Values of PROPERTY; None if it is not set.
    """
    minima = [(f"environment variable {VARIABLE}", os.environ.get(VARIABLE))]
    minima += [(f"Spark property {PROPERTY}", value) for value in properties]
    least = 0
    for where, text in minima:
        number = _number(text)
        if number is None:
            yield Problem(where, f"the minimum k must be a whole number from 1 to {MAX_INT}")
        else:
            least = max(least, number)
    own = [(model.k, i) for i, model in enumerate(models) if isinstance(model, KAnonymity)]
    k, place = max(own, default=(0, 0))
    if k < least:
        yield Problem(
            f"privacy.models.{place}.k",
            f"k is {k}; the operator of this installation allows no k below {least}",
        )


def _number(text: str | None) -> int | None:
    """The minimum in a text; 0 without a text, None if the text is not valid."""
    if text is None:
        return 0
    valid = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_INT))
    return int(text) if valid and 1 <= int(text) <= MAX_INT else None
