"""The size of samples, and of tables that are one block: enough for all blocks and not too much, or
the run is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonlib
from anonlib.config.model import MOST_SAMPLED, PartitionSection
from anonlib.decisions.limits import find_thin, refuse_large, size_sample
from anonlib.errors import ConfigError
from anonlib.partition.controller import Controller
from anonlib.partition.kmeans import KMeansPartitioner
from anonlib.partition.single import Single
from anonlib.partition.tuples import TuplesPartitioner


def section(**changes: Any) -> PartitionSection:
    return PartitionSection(steps=(KMeansPartitioner(),), **changes)


@pytest.mark.parametrize(
    ("max_rows", "n_rows", "size"),
    [
        (20_000, 1_000, 100_000),
        (20_000, 125_000_000, 100_000),
        # Leaves aim at half of max_rows, and at 8 sampled rows.
        (20_000, 1_000_000_000, 800_000),
        (10_000, 100_000_000, 160_000),
        (20_000, 6_250_000_000, MOST_SAMPLED),
    ],
)
def test_large_tables_have_larger_samples(max_rows: int, n_rows: int, size: int) -> None:
    partition = section(max_rows=max_rows)
    assert size_sample(partition, n_rows) == size
    assert [*find_thin(partition, n_rows)] == []


def test_a_table_may_be_too_large_for_any_sample() -> None:
    (problem,) = find_thin(section(), 6_250_001_000)
    assert (problem.where, "at least 5000001 rows" in problem.text) == (
        "partition.sample_rows",
        True,
    )
    assert [*find_thin(section(max_rows=40_000), 10_000_000_000)] == []


def test_a_search_over_tuples_needs_no_leaves() -> None:
    partition = PartitionSection(steps=(TuplesPartitioner(),), sample_rows=1_000, max_rows=100)
    assert [*find_thin(partition, 1_000_000)] == []


def people(n: int, **columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(0, 90, n), "wage": rng.random(n), **columns})


def anonymize(rows: pd.DataFrame, **partition: Any) -> Any:
    raw = {
        "attributes": {
            name: {"role": "quasi_identifier", "scale": "continuous"} for name in ("age", "wage")
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "partition": {"steps": [{"type": "kmeans"}], "max_rows": 100, **partition},
        "kernel": "mondrian",
    }
    return anonlib.anonymize(rows, raw)


def test_what_is_given_holds() -> None:
    with pytest.raises(ConfigError) as caught:
        anonymize(people(9_000), sample_rows=1_000)
    assert "need a sample of at least 1440 rows of these 9000" in str(caught.value)
    assert len(anonymize(people(9_000), sample_rows=1_440).table) == 9_000


def test_it_comes_with_the_other_problems() -> None:
    with pytest.raises(ConfigError) as caught:
        anonymize(people(9_000).assign(age=np.inf), sample_rows=1_000)
    assert {problem.where for problem in caught.value.problems} == {
        "partition.sample_rows",
        "column age",
    }


def test_a_table_that_is_one_block_has_a_limit() -> None:
    """And each controller, if they are apart."""
    whole = PartitionSection(steps=(Controller(column="x"), Single(limit=9)))
    refuse_large(whole, np.array([3, 9]))
    said = "partition.steps.1: one block takes at most 9 rows, the source has 10; use kmeans"
    with pytest.raises(ConfigError, match=said):
        refuse_large(whole, np.array([10, 3]))
    refuse_large(section(), np.array([10**9]))
