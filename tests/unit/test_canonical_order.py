"""The fast sort gives the order of a plain one."""

import numpy as np
import pytest

from anonlib.table.canonical_order import order_rows


@pytest.mark.parametrize("n_blocks", [1, 5, 100_000])
@pytest.mark.parametrize("n_hashes", [1, 7, 200, 2**62])
def test_rows_are_in_the_order_of_all_keys(n_blocks: int, n_hashes: int) -> None:
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 1000):
        block = rng.integers(0, n_blocks, n).astype(np.int32)
        value_hash = rng.integers(-n_hashes, n_hashes, n)
        ties = [rng.integers(0, 3, n), rng.integers(0, 3, n).astype(np.float64)]
        expected = np.lexsort([*ties, value_hash, block])
        np.testing.assert_array_equal(order_rows(block, value_hash, ties), expected)


def test_blocks_need_not_be_counted_from_0() -> None:
    block = np.array([2**31 - 1, -1, 70_000, -1], np.int32)
    value_hash = np.array([1, 5, 3, -5])
    tie = np.zeros(4, np.int64)
    assert order_rows(block, value_hash, [tie]).tolist() == [3, 1, 2, 0]
