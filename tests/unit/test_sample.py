"""Which rows of a source are its sample."""

from hypothesis import given
from hypothesis import strategies as st

from anonlib.run.sample import limit_sample


@given(st.integers(1, 10**7), st.integers(1, 10**11))
def test_a_limit_is_a_hash_below_which_enough_rows_are(size: int, n_rows: int) -> None:
    limit = limit_sample(size, n_rows)
    if limit is None:
        assert n_rows <= 1.2 * size
    else:
        assert -(2**63) <= limit < 2**63  # Spark takes no other number
        assert (limit + 2**63) / 2**64 * n_rows >= 1.09 * size


def test_tables_of_a_few_more_rows_than_the_sample() -> None:
    assert {limit_sample(1000, n) for n in range(1001, 1100)} == {None}
    assert limit_sample(1000, 1200) is not None
