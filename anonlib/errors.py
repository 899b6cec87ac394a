"""The errors a user can cause or must act on; any other exception is a bug of ours.

Texts name fields, columns, types and counts: never a raw data value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: where it is (a config path or a column) and what to do about it."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


class AnonlibError(Exception):
    """Base of all user errors; `exit_code` is what the command line ends with."""

    exit_code = 1


class ProblemsError(AnonlibError):
    """Several problems found together, reported together."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]):
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ConfigError(ProblemsError):
    """The config is wrong in itself, or does not fit its source."""


class InfeasibleError(ProblemsError):
    """No release of these rows can satisfy the config's privacy models."""


class InputError(AnonlibError):
    """A file, table or argument can't be used."""

    exit_code = 2


class AuditError(AnonlibError):
    """The audit did not pass; nothing was published."""

    exit_code = 3


class GateError(AnonlibError):
    """The release is not worth what the config's gates ask, or too risky; nothing was published."""

    exit_code = 4


class StorageError(AnonlibError):
    """Reading or writing failed on the way: no space, no permission, a broken file."""


class BusyError(AnonlibError):
    """Another run holds the target's lease, or changed the target meanwhile."""


class BlockError(AnonlibError):
    """Work on one block failed; the cause is named by type only, since its text may hold data."""


def run_sanitized(what: str, work: Callable[[], Result]) -> Result:
    """Does work on rows in a task; errors are raised as BlockError without their cause, whose text
    may hold data."""
    try:
        return work()
    except AnonlibError as error:
        text = str(error)
    except Exception as error:
        text = f"{what} failed with {type(error).__name__}"
    raise BlockError(text) from None
