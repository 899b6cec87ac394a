"""A feature for each category."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Sparse
from anonlib.encode import Column, Encoder, EncoderDomain
from anonlib.encode.texts import Unknown, find_categories, require_categories, texts


class OneHot(Encoder):
    """1 for the category that a value is, by its text, and 0 for all others.

    Cost O(n).
    """

    type: ClassVar[str] = "one_hot"
    needs_categories: ClassVar[bool] = True
    unknown: Unknown = Field(
        default="error", description="a value that is not a category: an error, or all 0"
    )

    def found(self, values: Column) -> set[str]:
        return set(texts(values).unique().drop_null().to_pylist())

    def _names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        return tuple(f"{column}={name}" for name in require_categories(domain))

    def _matrix(self, values: Column, domain: EncoderDomain) -> Sparse:
        from scipy.sparse import csr_matrix

        column = find_categories(texts(values), require_categories(domain), self.unknown)
        rows = np.flatnonzero(column >= 0)
        shape = (len(values), len(require_categories(domain)) + 1)
        return csr_matrix((np.ones(len(rows)), (rows, column[rows])), shape)
