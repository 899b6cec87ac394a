"""Counts distinct values per class: by a sketch that gives a lower bound, or exactly, in two
levels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonlib.auditing.models import Judgement, Partial
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The most 64-bit words of a sketch.
MAX_WORDS = 16


@dataclass(frozen=True)
class Distinct:
    """Counts distinct non-null values that persons have.

    Values with different hashes differ. So the number of bits that the hashes set is at most the
    number of values. If two values are required, the least and the greatest hash are compared
    instead. With about 4 l^2 bits, most classes of exactly l values are proved.

    Attributes:
        column: The column of the view.
        required: The least distinct values of a class, l.
        token: The column of the persons' tokens, null for nobody; None if each row is a person.
    """

    column: str
    required: int
    token: str | None = None

    @property
    def n_words(self) -> int:
        """How many words the sketch has."""
        return min(MAX_WORDS, -(-4 * self.required**2 // 64))

    def partial(self) -> dict[str, Partial]:
        """The sketch of a class."""
        from pyspark.sql import functions as F

        # Spark's hash of null is a number.
        hashed = F.when(self._counts(), F.xxhash64(self.column))
        if self.required == 2:
            return {"low": Partial(F.min(hashed), F.min), "high": Partial(F.max(hashed), F.max)}
        place = F.pmod(hashed, F.lit(64 * self.n_words)).cast("int")
        bit = F.call_function("shiftleft", F.lit(1).cast("long"), place.bitwiseAND(63))
        words = [F.when(F.shiftright(place, 6) == i, bit) for i in range(self.n_words)]
        return {f"word{i}": Partial(F.bit_or(word), F.bit_or) for i, word in enumerate(words)}

    def judge(self, part: "Mapping[str, Column]") -> Judgement:
        """The sketch's count. A class is undecided if it is less than required."""
        from pyspark.sql import functions as F

        if self.required == 2:
            low, high = part["low"], part["high"]
            value = F.when(low.isNull(), 0).when(low == high, 1).otherwise(2)
        else:
            value = F.lit(0)
            for i in range(self.n_words):
                value = value + F.coalesce(F.bit_count(part[f"word{i}"]), F.lit(0))
        return Judgement(value, undecided=value < self.required)

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        """`n_rows` and `value` of every class in `rows`."""
        from pyspark.sql import functions as F

        held = F.max(self._counts()).alias("held")
        by_value = rows.groupBy(*view.keys, self.column).agg(F.count("*").alias("n"), held)
        by_class = by_value.groupBy(*view.keys)
        return by_class.agg(F.sum("n").alias("n_rows"), F.count_if("held").alias("value"))

    def _counts(self) -> "Column":
        """Whether a row's value counts."""
        from pyspark.sql import functions as F

        there = F.col(self.column).isNotNull()
        return there if self.token is None else there & F.col(self.token).isNotNull()
