"""How rows and persons are drawn: by hashes modulo MODULUS, so that every engine draws the same."""

from math import ceil

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints

#: The modulus of hashes.
MODULUS = 2**20
#: Most pairs of an original and a released row for an attack.
MAX_PAIRS = 10_000
#: Draw this many times the attempts: a draw yields the wanted number only on average.
SLACK = 1.25

#: What is hashed before the values of a row or a person: a draw's purpose. `{}` is a seed.
PAIRS = "pairs"
HELD_OUT = "held out {}"
ATTACKED = "attacked {}"
RELEASED_ROWS = "released rows {}"
SAMPLE = "sample {}"


def limit_pairs(n_rows: int) -> int:
    """The hash below which rows are sampled for pairs.

    The sample aims at 97 % of MAX_PAIRS rows. It may have more than MAX_PAIRS rows by chance, if
    rows repeat, or if the table has more than about 3 * 10^8 rows, since the share is rounded up to
    a multiple of 2^-20.
    """
    return ceil(min(MODULUS, 0.97 * MODULUS * MAX_PAIRS / max(n_rows, 1)))


def limit_share(share: float) -> int:
    """The hash below which about a share of all persons are."""
    return int(share * MODULUS)


def limit_size(size: float, n: float) -> int:
    """The hash below which about `size` of n rows or persons are."""
    return min(MODULUS, ceil(MODULUS * size / max(n, 1.0)))


def match_links(theirs: pa.Array, ours: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The places of equal hashes on both sides, in the order of the first side. Each place is used
    once. Rows with equal hashes are equal in all that the run reads, so any of them may be paired.
    """
    left, right = theirs.to_numpy(), ours.to_numpy()
    first, second = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    left, right = left[first], right[second]
    among = np.arange(len(right)) - np.searchsorted(right, right)
    place = np.searchsorted(left, right) + among
    there = place < np.searchsorted(left, right, side="right")
    mine, other = first[place[there]], second[there]
    # Keyed hashes differ between runs. Figures must be repeatable, so they can't use that order.
    order = np.argsort(mine)[:MAX_PAIRS]
    return pa.array(mine[order]), pa.array(other[order])


def list_persons(person_hash: Ints, deal: Ints, *, one_each: bool) -> Ints:
    """int64. The places of rows in the order of their persons' hashes.

    Args:
        person_hash: int64[n]. The hash of each row's person.
        deal: int64[n]. The hash of each row.
        one_each: Whether to list the first row of each person only.
    """
    order = np.lexsort((deal, person_hash))
    if one_each:
        order = order[np.unique(person_hash[order], return_index=True)[1]]
    return order.astype(np.int64)
