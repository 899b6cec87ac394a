"""Fixtures of all tests: the one Spark session, started by the first test that asks for it."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.quick import BARE, COMPILED, USUAL, quick
from tests.support import LONG

settings.register_profile(
    "anonlib",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("anonlib")


def _hear_signals() -> None:
    """A run in the background inherits ignored signals (nohup SIGHUP, a shell's `&` SIGINT), and so
    would every process that a test starts and signals. A handler is not inherited: such a process
    has the system's default, and this one lives on."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: lambda *_: None}
    for number, handler in usual.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


_hear_signals()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, all others in their order."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONG)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A quiet local session."""
    from anonlib.spark.session import session

    wanted = {**quick(tmp_path_factory.mktemp("spark"), "2g"), **BARE}
    # For so many runs it is worth while to compile early what would be interpreted for long.
    wanted["spark.driver.extraJavaOptions"] += " -XX:CompileThresholdScaling=0.2"
    started = session(wanted)
    _forget_yarn(started)
    yield started
    started.stop()


def _forget_yarn(spark: Any) -> None:
    """Takes YARN's settings from Hadoop's, of which they are half: every query of a file writes all
    of them down for its tasks."""
    spark._jvm.org.apache.hadoop.mapred.JobConf()  # it adds them, when it is first seen
    known = spark._jsc.hadoopConfiguration()
    for name in list(known.getPropsWithPrefix("yarn.")):
        known.unset(f"yarn.{name}")


@pytest.fixture(scope="module")
def usual(spark: Any) -> Iterator[Any]:
    """The session with the logs and the plans that users have, for all tests of a file."""
    with _changed(spark, USUAL):
        yield spark


@pytest.fixture
def compiling(spark: Any) -> Iterator[Any]:
    """The session as users have it, with code generation, which larger tables are quicker by."""
    with _changed(spark, USUAL | COMPILED):
        yield spark


@contextmanager
def _changed(spark: Any, wanted: Mapping[str, str]) -> Iterator[None]:
    """Other settings while the body runs."""
    before = {key: spark.conf.get(key, None) for key in wanted}
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
