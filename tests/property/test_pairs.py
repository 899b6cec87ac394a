"""Rows of the source and of the release matched by their hashes, each used once."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anonlib.measure.draws import MAX_PAIRS, match_links

HASHES = st.lists(st.integers(-4, 4), max_size=30)


@given(HASHES, HASHES)
def test_as_many_as_both_sides_have(theirs: list[int], ours: list[int]) -> None:
    sides = [pa.chunked_array([pa.array(side, pa.int64())]) for side in (theirs, ours)]
    left, right = (places.to_pylist() for places in match_links(*sides))
    assert len(set(left)) == len(left) == len(set(right)) == len(right)
    assert [theirs[i] for i in left] == [ours[i] for i in right]
    assert Counter(theirs[i] for i in left) == Counter(theirs) & Counter(ours)


def test_no_more_than_may_be() -> None:
    side = pa.chunked_array([pa.array(range(MAX_PAIRS + 10), pa.int64())])
    left, right = match_links(side, side)
    assert len(left) == len(right) == MAX_PAIRS
