"""Which columns and combinations of columns single persons out."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from anonlib.arrays import Bools, Floats, Ints
from anonlib.measure import Figure, Findings, Measure, Series
from anonlib.measure.alike import Combination, list_combinations

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The most combinations of columns.
MOST_COMBINATIONS = 5_000
#: The most rows of a sample, and the most counts of its rows in combinations.
MOST_ROWS, MOST_COUNTS = 10_000, 2_000_000
#: The most combinations that a report shows.
MOST_LISTED = 20
HEADS = ("combination", "singled out", "score", "chance", "chance after")


class SpecialUniques(Measure):
    """Which columns and combinations of few columns single persons out, before and after.

    A row is singled out by a combination of quasi-identifiers if no other row has its values there;
    before, with a `unit`, if no row of another person has.
    The combination is minimal if no part of it does so alone. Rows that few columns single out are
    special uniques: an attacker who knows little of a person finds them.

    - `singled_out`: the share of rows that a combination of at most `max_size` columns singles out,
      before. `singled_out_after`: the same in the release.
    - `score`: the mean SUDA score of all rows, before: for each minimal combination of k of d
      columns, the product of d - i over i = k .. m, with m = `max_size`, and at most d - 1.
      `score_after`: the same in the release.
    - `contribution`, for each column: the share of the sum of scores before that minimal
      combinations with this column have.

    Series `combinations` has those with the highest scores: the share of rows that they single out
    minimally, their share of the sum of scores, and the mean chance 1/f of a row to be found again
    by them, among f rows that agree, before and after.

    With a `unit`, f before is the row and those of other persons. In the release all rows count,
    even those of one person: where several persons have the values of a row, nobody is singled out
    either way, but the chance may be larger.

    Released values are compared as they are. Rows of a sample of about 10,000 stand for all; each
    is compared with the whole table.
    Cost: for each table one aggregate and one pass, O(n c) for c combinations: 92 of at most 3 of 8
    columns, 175 of 10; twice as many in a source with a `unit`.
    """

    type: ClassVar[str] = "special_uniques"
    is_risk: ClassVar[bool] = True
    usual: ClassVar[bool] = False
    names: ClassVar[Mapping[str, str]] = {
        "singled_out": "share of rows in the source that at most `max_size` columns single out; 0 "
        "to 1, less is safer",
        "singled_out_after": "share of rows in the release that at most `max_size` columns single "
        "out; 0 to 1, less is safer",
        "score": "mean SUDA score of rows in the source; 0 or more, less is safer",
        "score_after": "mean SUDA score of rows in the release; 0 or more, less is safer",
        "contribution": "share of the scores in the source that are of combinations with this "
        "column; 0 to 1, for comparison",
    }
    reference: ClassVar[str] = (
        "M. J. Elliot, A. M. Manning, R. W. Ford, A computational algorithm for handling the "
        "special uniques problem, International Journal of Uncertainty, Fuzziness and "
        "Knowledge-Based Systems 10(5), 2002; scores as in suda2 of sdcMicro"
    )
    max_size: int = Field(3, ge=1, le=6, description="m: the most columns of a combination")

    def measure(self, case: "Case") -> Findings:
        columns = case.schema.quasi_identifiers
        choices = list_combinations(len(columns), self.max_size)
        if not choices or len(choices) > MOST_COMBINATIONS:
            why = f"{len(choices)} combinations of columns, {MOST_COMBINATIONS} at most; lower "
            why = f"{why}max_size" if choices else "there is no quasi-identifier"
            return Findings(tuple(Figure(name, None, note=why) for name in self.names))
        size = min(MOST_ROWS, MOST_COUNTS // len(choices))
        before, after = (
            Special.of(case.count_alike(choices, size, released=released), choices, len(columns))
            for released in (False, True)
        )
        names = [column.name for column in columns]
        notes = [
            f"{found.n:,} of {n:,} rows" if found.n < n else ""
            for found, n in zip((before, after), (case.n_source, case.n_released), strict=True)
        ]
        figures = (
            Figure("singled_out", before.share, note=notes[0]),
            Figure("singled_out_after", after.share, note=notes[1]),
            Figure("score", before.mean_score, note=notes[0]),
            Figure("score_after", after.mean_score, note=notes[1]),
            *before.contributions(names),
        )
        return Findings(figures, (_list(before, after, names),))


class Special(NamedTuple):
    """The minimal combinations of s rows.

    Attributes:
        choices: The c combinations.
        minimal: bool[c, s]. Whether each is minimal for each row.
        weight: float64[c]. What each adds to the score of a row.
        chance: float64[c]. The mean chance of a row to be found by each.
    """

    choices: Sequence[Combination]
    minimal: Bools
    weight: Floats
    chance: Floats

    @classmethod
    def of(cls, counts: Ints, choices: Sequence[Combination], n_columns: int) -> "Special":
        """Finds minimal combinations.

        Args:
            counts: int64[c, s]. The rows that agree with each row in each combination, itself
                included.
            choices: The combinations: all up to some size, small ones first.
            n_columns: d, the number of columns.
        """
        place = {each: i for i, each in enumerate(choices)}
        unique = counts == 1
        minimal = unique.copy()
        for i, each in enumerate(choices):
            # What is unique in a part is unique in the whole, so the largest parts are enough.
            for j in range(len(each) if len(each) > 1 else 0):
                minimal[i] &= ~unique[place[each[:j] + each[j + 1 :]]]
        weight = np.array([score_suda(len(each), len(choices[-1]), n_columns) for each in choices])
        chance = (
            (1.0 / np.maximum(counts, 1)).mean(axis=1) if counts.size else np.zeros(len(choices))
        )
        return cls(choices, minimal, weight, chance)

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.minimal.shape[1])

    @property
    def share(self) -> float | None:
        """The share of rows that are singled out."""
        return float(self.minimal.any(axis=0).mean()) if self.n else None

    @property
    def scores(self) -> Floats:
        """float64[c]. The sum of scores of each combination."""
        return np.asarray(self.weight * self.minimal.sum(axis=1))

    @property
    def mean_score(self) -> float | None:
        return float(self.scores.sum() / self.n) if self.n else None

    def contributions(self, names: Sequence[str]) -> list[Figure]:
        """The contribution of each column."""
        total = float(self.scores.sum())
        if not total:
            return [Figure("contribution", None, name, "nobody is singled out") for name in names]
        return [
            Figure(
                "contribution",
                sum(s for s, of in zip(self.scores.tolist(), self.choices, strict=True) if j in of)
                / total,
                name,
            )
            for j, name in enumerate(names)
        ]


def score_suda(size: int, largest: int, n_columns: int) -> float:
    """What a minimal combination adds to the score of a row.

    Args:
        size: k, its columns.
        largest: m, the most columns of a combination.
        n_columns: d, all columns.
    """
    return float(prod(n_columns - i for i in range(size, min(largest, n_columns - 1) + 1)))


def _list(before: Special, after: Special, names: Sequence[str]) -> Series:
    """The combinations with the highest scores before."""
    scores, total = before.scores, max(float(before.scores.sum()), 1.0)
    order = np.argsort(-scores, kind="stable")[:MOST_LISTED]
    rows = tuple(
        (
            " × ".join(names[j] for j in before.choices[i]),
            float(before.minimal[i].mean()),
            float(scores[i]) / total,
            float(before.chance[i]),
            float(after.chance[i]),
        )
        for i in order.tolist()
        if scores[i]
    )
    return Series("combinations", "", HEADS, rows)
