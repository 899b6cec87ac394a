"""How rows are dealt out to tasks."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from anonlib.errors import StorageError
from anonlib.spark.loan import Loans, hold_setting
from anonlib.spark.tasks import deal_out, find_task_keys, fit_batches, fit_shuffles


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7), st.integers(1, 3))
def test_no_task_gets_much_more_than_the_best_deal_gives(sizes: list[int], n_tasks: int) -> None:
    task = deal_out(np.array(sizes), n_tasks)
    assert task.min() >= 0
    assert task.max() < n_tasks
    deals = product(range(n_tasks), repeat=len(sizes))
    best = min(np.bincount(deal, sizes, n_tasks).max() for deal in deals)
    assert np.bincount(task, sizes, n_tasks).max() <= best * (4 - 1 / n_tasks) / 3 + 1e-9


def test_equal_things_are_spread() -> None:
    task = deal_out(np.full(100, 5), 8)
    assert sorted(np.bincount(task).tolist()) == [12] * 4 + [13] * 4


@pytest.mark.parametrize("n_tasks", [1, 2, 7, 200, 4096])
def test_keys_are_one_for_each_task(n_tasks: int) -> None:
    keys = find_task_keys(n_tasks)
    assert len(set(keys.tolist())) == n_tasks
    assert keys.min() >= 0
    assert keys.max() < 2**31


@pytest.mark.parametrize(
    ("setting", "n_rows", "within"),
    [
        ("200", 10**9, "4000"),
        ("200", 50_000_001, "201"),
        ("200", 50_000_000, "200"),
        ("32", 6, "32"),
        ("auto", 10**9, "auto"),
    ],
)
def test_shuffles_follow_the_table(setting: str, n_rows: int, within: str) -> None:
    """And the session has its own setting again, also after an error."""
    conf: dict[str, str] = {"spark.sql.shuffle.partitions": setting}
    spark: Any = SimpleNamespace(
        conf=SimpleNamespace(get=lambda key, default="": conf[key], set=conf.__setitem__),
    )

    def fail() -> None:
        with fit_shuffles(spark, n_rows):
            assert conf == {"spark.sql.shuffle.partitions": within}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert conf == {"spark.sql.shuffle.partitions": setting}


@pytest.mark.parametrize(
    ("limit", "row_bytes", "within"),
    [
        ("1000b", 99, "2147483647"),
        ("1000", 99, "2147483647"),
        ("1000b", 100, "1000b"),
        ("1000b", None, "1000b"),
        ("1k", 1, "1k"),
        (None, 1, None),
    ],
)
def test_batches_that_fit_are_not_measured(
    limit: str | None, row_bytes: int | None, within: str | None
) -> None:
    """A limit that a batch may reach stays, and so does one that is not a plain number."""
    key = "spark.sql.execution.arrow.maxBytesPerBatch"
    conf = {key: limit, "spark.sql.execution.arrow.maxRecordsPerBatch": "10"}

    def get(key: str, *default: Any) -> Any:
        if conf[key] is None and not default:
            raise PySparkException("no such setting")
        return conf[key]

    spark: Any = SimpleNamespace(conf=SimpleNamespace(get=get, set=conf.__setitem__))
    with fit_batches(spark, row_bytes):
        assert conf[key] == within
    assert conf[key] == limit


def test_settings_of_runs_that_cross() -> None:
    """Threads may run several on one session: what was there before both is there after both."""
    key, values = "spark.sql.shuffle.partitions", {"spark.sql.shuffle.partitions": "7"}
    conf = SimpleNamespace(get=lambda key, default="": values[key], set=values.__setitem__)
    one, other = (hold_setting(conf, key, value) for value in ("100", "200"))
    one.__enter__()
    other.__enter__()
    assert values[key] == "200"
    one.__exit__(None, None, None)
    assert values[key] == "200"  # the other still relies on it
    other.__exit__(None, None, None)
    assert values[key] == "7"
    with hold_setting(conf, key, "3"):
        assert values[key] == "3"
    assert values[key] == "7"


def test_a_setting_before_verbs_changed_it() -> None:
    """Also where Python has another object for the settings of the same session."""
    key, values = "zone", {"zone": "Asia/Tokyo"}

    def settings() -> Any:
        return SimpleNamespace(get=lambda key, default="": values[key], set=values.__setitem__)

    loans, own, other = Loans(), settings(), settings()
    assert loans.before(own, key) == "Asia/Tokyo"
    loans.begin()
    loans.change(own, key, "UTC")
    assert not loans.are_shared
    loans.begin()
    loans.change(other, key, "UTC")
    assert loans.are_shared
    assert values[key] == "UTC"
    assert [loans.before(each, key) for each in (own, other)] == ["Asia/Tokyo"] * 2
    loans.end()
    loans.end()
    assert values[key] == "Asia/Tokyo"


def test_a_setting_that_cannot_be_restored_hides_no_error() -> None:
    """The JVM died. What the body says of it counts, such as that the table is published."""
    conf: dict[str, str] = {"spark.sql.shuffle.partitions": "1"}
    spark: Any = SimpleNamespace(
        conf=SimpleNamespace(get=lambda key, default="": conf[key], set=conf.__setitem__),
    )

    def fail() -> None:
        with fit_shuffles(spark, 10**9):
            spark.conf.set = lambda key, value: int("gone")
            raise StorageError("published")

    with pytest.raises(StorageError, match="published"):
        fail()
