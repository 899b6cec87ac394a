"""Losses of what is released, where it is more than the values of cells, or less than all rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anonlib
from anonlib import registry
from anonlib.in_hand.released_table import Release
from anonlib.loss import Metric, ReleasedBlock, list_metrics
from anonlib.loss.ncp import penalize
from anonlib.partition.cuts import no_cuts
from anonlib.partition.repair import deal_one_each
from anonlib.partition.settlement import Controllers
from anonlib.recode import Cells, Domain
from anonlib.run.block_plan import BlockPlan
from anonlib.table.block import Block, part
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Scale
from anonlib.table.table_digest import Digest
from anonlib.worker.least_extents import find_least_extents
from anonlib.worker.task import Totals
from tests.support import make_block

METRICS: list[Metric] = [registry.build("metric", spec) for spec in list_metrics(bound=False)]


def people(n: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": random.permutation(np.arange(n) % 100),
            "born": pd.Timestamp("1980-03-01") + pd.to_timedelta(random.integers(0, 999, n), "D"),
            "city": random.choice(["Aberdeen", "Bonn", "Cork", "Delft"], n),
        }
    )


def released(table: pd.DataFrame, recode: Any, **changes: Any) -> Release:
    given: dict[str, Any] = {
        "quasi_identifiers": [*table],
        "one_row_per_person": True,
        "k": 3,
        "seed": 1,
        "recode": {"columns": recode},
    }
    return anonlib.anonymize(table, **{**given, **changes})


def mean_share(spans: Any, low: Any, high: Any, least: Any, most: Any) -> float:
    """The mean share of least..most that intervals cover. Ends at `low` and `high` are open."""
    lower, upper = spans.str["lower"], spans.str["upper"]
    lower = lower.where(lower != low, least).clip(least, most)
    upper = upper.where(upper != high, most).clip(least, most)
    return float(((upper - lower) / (most - least)).mean())


@pytest.mark.parametrize("form", ["struct", "text"])
@pytest.mark.parametrize(
    "ends",
    [
        {},
        {"round_to": 7},
        {"round_to": 50},
        {"round_to": 1000},
        {"bottom": 40, "top": 41},
        {"round_to": 5, "bottom": 20, "top": 80},
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", ["continuous", "ordinal"])
def test_intervals(ends: dict[str, Any], form: str, scale: str) -> None:
    """Every number of 0..99 is there, so that ranks are as far apart as numbers."""
    table, given = people()[["age"]], {"type": "interval", **ends}
    own = {"scales": {"age": scale}, "k": 5}
    seen = released(table, {"age": given}, **own)
    found = released(table, {"age": {**given, "form": form}}, **own)
    spans = seen.table["age"]
    low, high = ends.get("bottom"), ends.get("top")
    assert found.losses["ncp"] == pytest.approx(mean_share(spans, low, high, 0, 99))
    if ends.get("round_to") == 1000:
        assert found.losses["ncp"] == 1
    assert 0 < (found.losses["ncp"] or 0) <= 1


def test_dates() -> None:
    table = people()[["born"]]
    found = released(table, {"born": {"type": "interval", "round_to": "year"}})
    days = table["born"]
    share = mean_share(found.table["born"], None, None, days.min(), days.max())
    assert found.losses["ncp"] == pytest.approx(share)
    assert (found.losses["ncp"] or 0) > 0.3


def test_nothing_is_all_lost() -> None:
    table = people()
    table.loc[:20, "age"] = None
    recode = dict.fromkeys(table, "suppress")
    assert released(table, recode).losses["ncp"] == 1
    assert released(table, recode).losses["nllm"] == 1


def test_a_column_that_is_not_released_changes_no_other() -> None:
    table = people()[["age", "city"]]
    table["town"] = table["city"]
    found = released(table, {"age": "interval", "city": "set", "town": "set"})
    other = released(table, {"age": "interval", "city": "set", "town": "suppress"})
    lost = 3 * (other.losses["ncp"] or 0) - 3 * (found.losses["ncp"] or 0)
    sets = found.table["town"].map(len)
    assert lost == pytest.approx(1 - ((sets - 1) / 3).mean())


def test_a_star_covers_all_categories() -> None:
    table = people()[["city"]].assign(age=people()["age"])
    table["age"] = table["age"].mean()  # does not vary
    table["city"] = np.where(np.arange(len(table)) < 298, "Bonn", "Cork")
    found = released(table, {"city": "lca"})
    assert found.losses["ncp"] == pytest.approx((found.table["city"] == "*").mean())
    assert (found.losses["ncp"] or 0) > 0


@pytest.mark.parametrize("recoder", ["interval", "centroid", "median"])
def test_null_covers_all_unless_all_values_are_missing(recoder: str) -> None:
    values = pa.array([1.0, None, None, None, None, None, 2.0, 3.0, None])
    encoding = Encoding("age", Scale.CONTINUOUS, missing=True, mean=2.0, low=1.0, high=3.0)
    block = make_block(encoding.numeric(values))
    # The column and its flag: all and all, nothing, half and all.
    assert lose(block, encoding, values, recoder) == pytest.approx([1, 0, 0.75])


def test_a_null_set_covers_all_unless_all_values_are_missing() -> None:
    values = pa.array(["a", None, None, None, None, None, "b", "b", "c"])
    categories = pa.array(["a", "b", "c"])
    encoding = Encoding("city", Scale.NOMINAL, missing=True, categories=categories)
    block = make_block(np.zeros((9, 0)), encoding.codes(values)[:, None])
    assert lose(block, encoding, values, "set") == pytest.approx([1, 0, 1 / 3])


def lose(block: Block, encoding: Encoding, values: Any, recoder: str) -> Any:
    """The penalties of cells of three rows each."""
    own = registry.build("recoder", {"type": recoder})
    cells = Cells(np.repeat(np.arange(3), 3), 3)
    released = {encoding.id: own.recode(values, cells, Domain())}
    assert released[encoding.id].is_null().to_pylist() == [True, True, False]
    types = {encoding.id: values.type}
    extents = find_least_extents(block, cells, [encoding], {encoding.id: own}, released, types)
    return penalize(ReleasedBlock(block, cells.id, 3, least_extents=extents))


def test_rows_that_a_kernel_leaves_out_have_lost_all() -> None:
    table = people()[["city"]].assign(town=people(300)["city"].to_numpy()[::-1])
    table.loc[:8, "city"] = [f"hamlet {i}" for i in range(9)]
    given = {"kernel": "full_domain", "partition": {"steps": [{"type": "tuples"}]}}
    recode = {"city": "lca", "town": "lca"}
    found = released(table, recode, **given, privacy={"suppression_limit": 0.1})
    lost = found.record["n_suppressed"] / len(table)
    assert lost > 0
    stars = sum((found.table[name] == "*").mean() for name in recode) / 2
    assert found.losses["ncp"] == pytest.approx((1 - lost) * stars + lost)
    assert found.losses["nllm"] == found.losses["ncp"]
    assert found.losses["precision"] == pytest.approx((1 - lost) * (1 - stars))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.type)
def test_rows_of_no_block_count_as_rows_without_a_cell(metric: Metric) -> None:
    random = np.random.default_rng(3)
    numbers, codes = random.normal(size=(40, 2)), random.integers(0, 3, (40, 2))
    # Lost rows have the values of the others.
    block = make_block(np.tile(numbers, (2, 1)), np.tile(codes, (2, 1)))
    cells = np.append(np.repeat(np.arange(10), 4), np.full(40, -1))
    kept = ReleasedBlock(part(block, np.arange(40)), cells[:40], 10)
    whole = metric.update(ReleasedBlock(block, cells, 10))
    added = metric.add_lost(metric.update(kept), 40)
    value = metric.value(whole)
    assert metric.value(added) == (None if value is None else pytest.approx(value))


def test_rows_of_suppressed_controllers_have_lost_all() -> None:
    block = make_block(np.arange(20)[:, None] / 20, np.arange(20)[:, None] % 3)
    seen = ReleasedBlock(block, np.arange(20) // 4, 5)
    metrics = ({"type": "ncp"}, {"type": "nllm"}, {"type": "precision"}, {"type": "sse"})
    built = [registry.build("metric", spec) for spec in metrics]
    states = tuple(metric.update(seen) for metric in built)
    before = [metric.value(state) for metric, state in zip(built, states, strict=True)]
    rows = np.array([20, 5])
    lost = Controllers(np.arange(2), rows, np.array([0, -1]), np.ones((2, 1), np.bool_), ((),), {})
    plan = BlockPlan(
        n_rows=20,
        values={},
        controllers=lost,
        features=(),
        cuts=no_cuts(0, 2),
        heavy={},
        deal=deal_one_each(2),
    )
    task: Any = SimpleNamespace(metrics=metrics, encodings=(), counters=())
    schema: Any = None  # no encoding has a column
    found = plan.add_up(Digest(), [Totals(20, 0, 0, states=states)], schema, task).losses
    worse = [0.8 * before[0] + 0.2, 0.8 * before[1] + 0.2, 0.8 * before[2], before[3]]
    assert [*found.values()] == pytest.approx(worse)
