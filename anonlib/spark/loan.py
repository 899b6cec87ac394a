"""A Spark session that a verb finds is lent to it: the settings that it changes are put back."""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: A setting that a verb changed: the settings of the session, its name, its value before.
Change: TypeAlias = tuple[Any, str, str | None]
#: What the running verb changed; None outside of verbs.
_CHANGES: ContextVar[list[Change] | None] = ContextVar("changes", default=None)


def change_setting(conf: Any, key: str, value: str) -> None:
    """Changes a setting of a session, within a verb until the verb ends.

    Args:
        conf: The settings of the session: `spark.conf`.
        key: The name of the setting.
        value: Its value.
    """
    before = conf.get(key, None)
    if before == value:
        return
    changes = _CHANGES.get()
    if changes is not None:
        changes.append((conf, key, before))
    conf.set(key, value)


def return_session(verb: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The verb, which leaves the settings of a session as it found them, also after an error.

    A DataFrame that the verb returns is computed later, by the settings of its session then.
    """

    @wraps(verb)
    def public(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        changes: list[Change] = []
        token = _CHANGES.set(changes)
        try:
            return verb(*args, **options)
        finally:
            _CHANGES.reset(token)
            for conf, key, before in reversed(changes):
                with suppress(Exception):  # the session may be over, and hides no other error
                    conf.unset(key) if before is None else conf.set(key, before)

    return public
