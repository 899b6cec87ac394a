"""Which rows of a source are its sample, and which config it has."""

from hypothesis import given
from hypothesis import strategies as st

from anonlib.config.reading import parse
from anonlib.run.sample import limit_sample
from anonlib.run.source_sample import _in_memory
from tests.unit.test_config import GOOD


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


def test_what_is_left_to_review_of_a_sample() -> None:
    """The columns that are read, also if a name goes on where that of another column ends."""
    more = {"city": {"role": "drop"}, "city.part": {"role": "insensitive"}}
    attributes = {**GOOD["attributes"], **more}
    places = ["attributes.city", "attributes.city.part", "attributes.age", "gates"]
    config = parse({**GOOD, "attributes": attributes, "review": places})
    names = [name for name in attributes if name != "city"]
    assert _in_memory(config, names).review == ("attributes.city.part", "attributes.age", "gates")
