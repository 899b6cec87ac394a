"""Interruptions (Ctrl-C, SIGTERM, SIGHUP) of a run.

Work runs in a thread of its own, so that a signal never strikes in the middle of a call to the JVM
and the clean-up can still talk to it. py4j keeps one connection per thread: an exception between a
command and its answer would leave the answer to the next command, and the command would go on. So
with a JVM, work stops before its next command.
"""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

#: Seconds between looks at whether the work is over.
_TICK = 0.2


class Interrupted(KeyboardInterrupt):
    """The user, or the system, asked to stop."""


def run_interruptible(work: Callable[[], int]) -> int:
    """The outcome of `work`, which SIGINT, SIGTERM and SIGHUP end with Interrupted.

    Running Spark jobs are cancelled, then `work` may clean up; a second signal raises
    Interrupted here without waiting for that.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[int] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the caller, all of it
            failure.append(error)

    thread = threading.Thread(target=body, name="anonlib", daemon=True)
    signals: list[int] = []
    stopped: threading.Event | None = None
    with _handlers(signals), _restored():
        thread.start()
        while thread.is_alive():
            thread.join(_TICK)
            if signals and stopped is None:
                stopped = _stop(thread)
            if stopped is not None and not stopped.is_set():
                _cancel_jobs()  # again and again: the next one may be on its way
            if len(signals) > 1:
                raise Interrupted
    if failure and stopped is not None:  # what a cancelled job raises is a consequence
        raise Interrupted from failure[0]
    if failure:
        raise failure[0]
    return outcome[0]


def _stop(thread: threading.Thread) -> threading.Event:
    """Has Interrupted raised in the thread, before its next command to the JVM or, without one, as
    soon as it is back in Python: the event."""
    raised = threading.Event()
    client = _client()
    if client is not None:
        send = client.send_command

        def stop_or_send(*args: Any, **more: Any) -> Any:
            if threading.current_thread() is thread and not raised.is_set():
                raised.set()
                raise Interrupted
            return send(*args, **more)

        client.send_command = stop_or_send
        return raised

    class Raised(Interrupted):
        def __init__(self) -> None:  # called in the thread, when it is raised
            raised.set()

    target = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(Raised))
    return raised


@contextmanager
def _restored() -> Iterator[None]:
    """Afterwards py4j's client sends commands as ever."""
    try:
        yield
    finally:
        client = _client()
        if client is not None:
            vars(client).pop("send_command", None)  # what _stop put before the method


def _client() -> Any:
    """py4j's client, where there is a JVM."""
    gateway = getattr(_context_class(), "_gateway", None)
    return getattr(gateway, "_gateway_client", None)


def _context_class() -> Any:
    return getattr(sys.modules.get("pyspark"), "SparkContext", None)


def _cancel_jobs() -> None:
    context = getattr(_context_class(), "_active_spark_context", None)
    if context is not None:
        with suppress(Exception):  # the JVM may be going down, too
            context.cancelAllJobs()


@contextmanager
def _handlers(signals: list[int]) -> Iterator[None]:
    def note(number: int, _frame: FrameType | None) -> None:
        signals.append(number)

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
