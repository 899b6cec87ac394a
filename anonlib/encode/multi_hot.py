"""A feature for each category that a set can have."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Sparse
from anonlib.encode import Column, Encoder, EncoderDomain
from anonlib.encode.texts import Unknown, find_categories, require_categories, sets


class MultiHot(Encoder):
    """1 for each category in the set, by its text, and 0 for all others.

    For columns recoded by `set`, as arrays or as JSON text. A null in the set, and a null in place
    of the set, are missing values.

    Cost O(size of the sets), plus one parse per distinct text.
    """

    type: ClassVar[str] = "multi_hot"
    needs_categories: ClassVar[bool] = True
    unknown: Unknown = Field(
        default="error", description="a value that is not a category: an error, or all 0"
    )

    def found(self, values: Column) -> set[str]:
        return set(sets(values).flatten().unique().drop_null().to_pylist())

    def _names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        return tuple(f"{column}={name}" for name in require_categories(domain))

    def _matrix(self, values: Column, domain: EncoderDomain) -> Sparse:
        from scipy.sparse import csr_matrix

        lists = sets(values)
        missing = np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False))
        sizes = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        rows = np.append(np.repeat(np.arange(len(lists)), sizes), missing)
        column = find_categories(lists.flatten(), require_categories(domain), self.unknown)
        column = np.append(column, np.full(len(missing), len(require_categories(domain))))
        rows, column = rows[column >= 0], column[column >= 0]
        shape = (len(lists), len(require_categories(domain)) + 1)
        return csr_matrix((np.ones(len(rows)), (rows, column)), shape)
