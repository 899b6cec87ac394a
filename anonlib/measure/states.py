"""Mergeable states: what one pass over a table makes of its parts."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from anonlib.arrays import Floats

#: States by name: float64 arrays, which travel between Spark's tasks.
States: TypeAlias = Mapping[str, Floats]
#: Computes states from tables of rows. It runs in Spark's tasks.
Count: TypeAlias = Callable[[Iterable[pa.Table]], States]
#: Merges two states of a name. It is commutative up to rounding.
Merge: TypeAlias = Callable[[str, Floats, Floats], Floats]


def read_costs(state: Floats) -> Floats:
    """float64[x, 1 + c]. Costs of cells, then the sums for each, of a state that begins with c."""
    return state[1:].reshape(-1, 1 + int(state[0]))
