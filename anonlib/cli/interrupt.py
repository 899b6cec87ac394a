"""Interruptions (Ctrl-C, SIGTERM, SIGHUP) of a run.

Work runs in its own thread. So a signal never interrupts a call to the JVM, and the clean-up can
still call it.

py4j keeps one connection per thread. After an exception between a command and its answer, the next
command would read that answer, and the first command would still be running. So with a JVM, work
stops just before its next command.
"""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from anonlib.errors import PublishedError

#: What is said after a second signal: nothing is known of what the work has done meanwhile.
AGAIN = (
    "interrupted again: the clean-up was not waited for; the next run does the rest. Whether a "
    "release is published, the table's history and `anonlib runs` tell"
)
#: Seconds between checks whether the work is done.
_TICK = 0.2


class Interrupted(KeyboardInterrupt):
    """The user or the system asked the process to stop."""


def run_interruptible(work: Callable[[], int]) -> int:
    """Runs `work` in a thread. SIGINT, SIGTERM and SIGHUP end it.

    The first signal cancels the running Spark jobs and raises Interrupted inside `work`, which may
    clean up. A second signal does not wait for the clean-up. Outside the main thread, which alone
    can handle signals, `work` runs in the calling thread and is not interrupted.

    Returns:
        What `work` returned.

    Raises:
        Interrupted: A signal arrived.
        BaseException: Whatever `work` raised.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[int] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # raised again in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=body, name="anonlib", daemon=True)
    signals: list[int] = []
    delivery = threading.Event()
    unused = [delivery]

    def stop() -> None:
        # The handler runs between any two steps of the main thread: only one call gets the event.
        if signals and thread.is_alive():
            with suppress(IndexError):
                _stop(thread, unused.pop())

    with _handlers(signals, stop), _restore_handler():
        thread.start()
        while thread.is_alive():
            thread.join(_TICK)
            stop()
            if signals and not delivery.is_set():
                _cancel_jobs()  # repeatedly: the thread may just be starting another job
            if len(signals) > 1 and thread.is_alive():
                raise Interrupted(AGAIN)
    if failure and not unused and not isinstance(failure[0], PublishedError):
        # The error may come from a cancelled job; an interruption may say what is published.
        said = failure[0].args if isinstance(failure[0], KeyboardInterrupt) else ()
        raise Interrupted(*said) from failure[0]
    if failure:
        raise failure[0]
    if not outcome:  # the signal came before the work had begun
        raise Interrupted
    return outcome[0]


def _stop(thread: threading.Thread, delivery: threading.Event) -> None:
    """Makes the thread raise Interrupted: before its next command to the JVM or, without a JVM,
    as soon as it executes Python code again. The event is set at that moment."""
    client = _client()
    if client is not None:
        send = client.send_command

        def stop_or_send(*args: Any, **more: Any) -> Any:
            if threading.current_thread() is thread and not delivery.is_set():
                delivery.set()
                raise Interrupted
            return send(*args, **more)

        client.send_command = stop_or_send
        return

    class Raised(Interrupted):
        def __init__(self) -> None:  # called in the thread, when the exception is raised
            delivery.set()

    target = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(Raised))


@contextmanager
def _restore_handler() -> Iterator[None]:
    """Undoes what `_stop` did to py4j's client."""
    try:
        yield
    finally:
        client = _client()
        if client is not None:
            vars(client).pop("send_command", None)  # the method of the class is visible again


def _client() -> Any:
    """py4j's client; None without a JVM."""
    gateway = getattr(_context_class(), "_gateway", None)
    return getattr(gateway, "_gateway_client", None)


def _context_class() -> Any:
    return getattr(sys.modules.get("pyspark"), "SparkContext", None)


def _cancel_jobs() -> None:
    context = getattr(_context_class(), "_active_spark_context", None)
    if context is not None:
        with suppress(Exception):  # the JVM may be stopping, too
            context.cancelAllJobs()


@contextmanager
def _handlers(signals: list[int], stop: Callable[[], None]) -> Iterator[None]:
    """Signals are noted, and stop the work at once."""

    def note(number: int, _frame: FrameType | None) -> None:
        signals.append(number)
        stop()

    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            before[number] = signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
