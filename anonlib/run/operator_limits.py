"""What the operator of an installation requires of every config."""

import os
from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from anonlib.config.checks.context_section import check_expiry
from anonlib.config.environment import REQUIRE
from anonlib.config.minimum_k import check_minimum_k
from anonlib.config.model import AccountabilitySection, ContextSection
from anonlib.errors import ConfigError, Problem
from anonlib.privacy import PrivacyModel
from anonlib.spark.session import find_minimum_k

#: What may be required.
_WORDS = ("approver", "purpose", "recipients", "recipient", "access", "may_know", "expires")


def require_minimum_k(spark: SparkSession, models: Sequence[PrivacyModel]) -> None:
    """Raises ConfigError where the k of a config's models is below the operator's minimum."""
    # That of the application, which a session can't lower, and that of the session.
    if problems := [*check_minimum_k(models, *find_minimum_k(spark))]:
        raise ConfigError(problems)


def require_words(accountability: AccountabilitySection, context: ContextSection) -> None:
    """Raises ConfigError if the config lacks a field that the operator requires, if the operator's
    list of them is not valid, or if the release would have expired."""
    names = os.environ.get(REQUIRE, "")
    problems = [*_lacking(accountability, context, names), *check_expiry(context)]
    if problems:
        raise ConfigError(problems)


def _lacking(
    accountability: AccountabilitySection, context: ContextSection, names: str
) -> Iterator[Problem]:
    for name in filter(None, map(str.strip, names.split(","))):
        where = "accountability" if name in AccountabilitySection.model_fields else "context"
        section = accountability if where == "accountability" else context
        if name not in _WORDS:
            yield Problem("", f"{REQUIRE} of the environment may list {', '.join(_WORDS)} only")
        elif not getattr(section, name):
            yield Problem(f"{where}.{name}", f"required by {REQUIRE} of the environment")
