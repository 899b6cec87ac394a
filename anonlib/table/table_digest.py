"""Digests of tables: a row count and a hash that does not depend on the order of rows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.table.plain_types import to_plain_type


@dataclass(frozen=True)
class Digest:
    """The digest of a multiset of rows; the order of rows does not matter.

    Hashes are added up, not combined by exclusive or: a row that occurs twice counts twice.

    Attributes:
        n_rows: The number of rows.
        low: The sum of the low halves of the rows' 128-bit hashes, modulo 2**64.
        high: The sum of their high halves, modulo 2**64.
    """

    n_rows: int = 0
    low: int = 0
    high: int = 0

    @property
    def text(self) -> str:
        """Rows and sums, in hex, as a certificate has them."""
        return f"{self.n_rows}:{self.low:016x}{self.high:016x}"

    @classmethod
    def from_text(cls, text: str) -> "Digest":
        """The inverse of `text`. Raises ValueError for other texts."""
        n_rows, _, sums = text.partition(":")
        if len(sums) != 32:
            raise ValueError("a digest has 32 hex digits after the rows")
        return cls(int(n_rows), int(sums[:16], 16), int(sums[16:], 16))

    def __add__(self, other: "Digest") -> "Digest":
        """The digest of both multisets together."""
        return Digest(
            self.n_rows + other.n_rows,
            (self.low + other.low) % 2**64,
            (self.high + other.high) % 2**64,
        )


def digest_in_memory(table: pa.Table) -> Digest:
    """The digest of a table in memory: that which `anonlib.spark.digest.digest` gives for the same
    rows. Names of columns don't matter.

    Cost: O(bytes).

    Raises InputError for a column of a type that Spark has not, or whose values can't be hashed
    here.
    """
    from anonlib.table.hashes import hash_rows, hash_values  # this imports numba

    columns = [to_plain_type(name, table.column(name)) for name in table.column_names]
    # A literal before the columns makes the second hash.
    seed = int(hash_values(pa.array([1], pa.int32()))[0])
    low, high = _add_up(hash_rows(columns)), _add_up(hash_rows(columns, seed))
    return Digest(table.num_rows, low, high)


def _add_up(hashes: Ints) -> int:
    """The sum of hashes, modulo 2**64."""
    return int(hashes.view(np.uint64).sum())
