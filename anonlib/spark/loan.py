"""A Spark session that a verb finds is lent to it: the settings that it changes are put back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Loans:
    """What the verbs that run in this process have changed in sessions. Threads may run several on
    one session: nothing is put back before the last of them ends, since the others rely on it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_verbs = 0
        # The settings of a session, the name of one, its value before.
        self._changes: list[tuple[Any, str, str | None]] = []
        # By the settings of a session and the name of one that bodies hold: how many do, and its
        # value before.
        self._held: dict[tuple[int, str], tuple[int, str | None]] = {}

    def begin(self) -> None:
        """A verb begins."""
        with self._lock:
            self._n_verbs += 1

    def change(self, conf: Any, key: str, value: str) -> None:
        """Changes a setting; for good if no verb runs."""
        with self._lock:
            before = conf.get(key, None)
            if before == value:
                return
            if self._n_verbs:
                self._changes.append((conf, key, before))
            conf.set(key, value)

    def end(self) -> None:
        """A verb ends."""
        with self._lock:
            self._n_verbs -= 1
            while self._changes and not self._n_verbs:
                conf, key, before = self._changes.pop()
                _restore(conf, key, before)

    def before(self, conf: Any, key: str) -> str | None:
        """The value of a setting before verbs changed it. Python may have several objects for the
        settings of one session: where these were not changed, others may stand for them."""
        with self._lock:
            changes = [(its, before) for its, name, before in self._changes if name == key]
        own = [before for its, before in changes if its is conf]
        known = own or [before for _, before in changes]
        now: str | None = conf.get(key, None)
        return known[0] if known else now

    @property
    def are_shared(self) -> bool:
        """Whether several verbs run."""
        return self._n_verbs > 1

    @contextmanager
    def hold(self, conf: Any, key: str, value: str) -> Iterator[None]:
        """Changes a setting for the body. If the bodies of several threads cross, the last to end
        puts back what was there before the first."""
        held = id(conf), key
        with self._lock:
            n_bodies, before = self._held.get(held, (0, None))
            before = before if n_bodies else conf.get(key, None)
            self._held[held] = n_bodies + 1, before
            conf.set(key, value)
        try:
            yield
        finally:
            with self._lock:
                n_bodies, before = self._held.pop(held)
                if n_bodies > 1:
                    self._held[held] = n_bodies - 1, before
                else:
                    _restore(conf, key, before)


def _restore(conf: Any, key: str, before: str | None) -> None:
    with suppress(Exception):  # the session may be over, and hides no other error
        conf.unset(key) if before is None else conf.set(key, before)


LOANS = Loans()


def change_setting(conf: Any, key: str, value: str) -> None:
    """Changes a setting of a session, until the running verbs end.

    Args:
        conf: The settings of the session: `spark.conf`.
        key: The name of the setting.
        value: Its value.
    """
    LOANS.change(conf, key, value)


def find_own_setting(conf: Any, key: str) -> str | None:
    """The value of a setting as its session had it before verbs changed it."""
    return LOANS.before(conf, key)


def shares_sessions() -> bool:
    """Whether other verbs run in this process, which rely on their settings."""
    return LOANS.are_shared


def hold_setting(conf: Any, key: str, value: str) -> AbstractContextManager[None]:
    """Changes a setting of a session for the body; arguments as for `change_setting`."""
    return LOANS.hold(conf, key, value)


def return_session(verb: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The verb, which leaves the settings of a session as it found them, also after an error.

    A DataFrame that the verb returns is computed later, by the settings of its session then.
    """

    @wraps(verb)
    def public(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        LOANS.begin()
        try:
            return verb(*args, **options)
        finally:
            LOANS.end()

    return public
