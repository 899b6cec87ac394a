"""An attack: predicates that hold for exactly one person."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from anonlib.arrays import Floats, Ints
from anonlib.measure import Figure, Findings
from anonlib.measure.attack_tables import OUT, PERSON, ROW
from anonlib.measure.attempts import Attempts
from anonlib.measure.features import predictors
from anonlib.measure.risk._attack import AttackMeasure
from anonlib.measure.risk._extrapolation import extrapolate
from anonlib.measure.risk._predicates import Condition, Predicates, are_single, merge_matches
from anonlib.measure.risk._regions import EVERYTHING, LineRegions, Range, Region, Sets, read_regions
from anonlib.measure.states import States
from anonlib.table.schema import Column

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case

#: The name of the state of released rows.
COUNTS = "counts"
#: Released rows that predicates are built from.
MOST_ROWS = 20_000
#: Predicates that are tried on the release, for each that is wanted.
TRIES = 2


class SinglingOut(AttackMeasure):
    """How often predicates built from the release hold for exactly one person.

    An attacker builds predicates from released rows, keeps those that hold for one released row
    only (equal rows count once), and claims that they hold for one person. Two kinds of predicates
    are tried, the `of` of the figures:

    - `univariate`: one column has a released value, or it has at least the greatest released number
      or at most the least. Values of at most MOST_ROWS rows are tried.
    - `multivariate`: all columns, or `columns` of them drawn at random, have the values of a
      released row. For a single released number: the value is it or farther from the median.

    A person has a released value if theirs is in the interval or the set, or below the node. A
    released row has it if all that the row stands for is in it. Attempts that find no predicate for
    one released row fail: `attempts` is what was tried, not what was found. The control asks the
    same predicates of the persons held out. These are fewer, so successes are extrapolated to as
    many persons (see `_extrapolation.py`).

    Pseudonyms and nested columns are left out. With a `unit`, several rows of one person are one.
    Cost: three passes over the release and one over the source.
    """

    type: ClassVar[str] = "singling_out"
    reference: ClassVar[str] = (
        "M. Giomi et al., A unified framework for quantifying privacy risk in synthetic data, "
        "PoPETs 2023(2), section 5.1"
    )
    columns: int | None = Field(
        default=None, ge=2, description="columns of a multivariate predicate; null: all"
    )

    def measure(self, case: "Case") -> Findings:
        columns = predictors(case.schema, (), "released")
        columns = tuple(c for c in columns if c.recoder is None or c.recoder.releases != "nothing")
        tables = self.tables(case)
        rows = tables.sample([column.id for column in columns], MOST_ROWS)
        if not rows.num_rows or not columns:
            return self.nothing("nothing was released to build predicates from", KINDS)
        known = [read_regions(c, rows.column(c.id), released=True) for c in columns]
        random = np.random.default_rng(case.seed)
        tried = (
            self._single(columns, known, _find_ends(tables, columns), random),
            self._several(known, rows.num_rows, random),
        )
        predicates = Predicates(columns, tuple(chain(*tried)))
        limits = [min(self.attempts, len(each)) for each in tried]
        found, kept = _keep(tables, predicates, [len(each) for each in tried], limits)
        counts = _count_persons(tables, predicates.take(chain(*kept)))
        cuts = np.cumsum([len(each) for each in kept])[:-1]
        figures: list[Figure] = []
        for kind, n, n_found, *its in zip(
            KINDS, limits, found, *(np.split(each, cuts) for each in counts[:2]), strict=True
        ):
            attempts = _compare(n, its[0], its[1], *counts[2:])
            figures += attempts.figures(kind, f"{n_found} predicates hold for one released row")
        return Findings(tuple(figures))

    def _single(
        self,
        columns: Sequence[Column],
        known: Sequence[LineRegions | Sets],
        ends: Mapping[str, Sequence[Range]],
        random: np.random.Generator,
    ) -> list[tuple[Condition, ...]]:
        """Predicates on one column."""
        every: list[tuple[Condition, ...]] = [
            ((place, region),)
            for place, (column, its) in enumerate(zip(columns, known, strict=True))
            for region in dict.fromkeys([*ends.get(column.id, ()), *its.regions()])
            if region != EVERYTHING
        ]
        return [every[i] for i in random.permutation(len(every))[: TRIES * self.attempts]]

    def _several(
        self, known: Sequence[LineRegions | Sets], n_rows: int, random: np.random.Generator
    ) -> list[tuple[Condition, ...]]:
        """Predicates on several columns of rows, all different, drawn at random."""
        n, n_columns = TRIES * self.attempts, min(self.columns or len(known), len(known))
        opened = [
            [_open(region, median) for region in its.regions()]
            for its, median in zip(known, map(_find_median, known), strict=True)
        ]
        rows = random.integers(n_rows, size=n) if n < n_rows else np.arange(n_rows)
        order = random.random((len(rows), len(known))).argsort(axis=1)[:, :n_columns]
        drawn: dict[tuple[Condition, ...], None] = {}
        for row, places in zip(rows.tolist(), np.sort(order, axis=1).tolist(), strict=True):
            conditions = [(place, opened[place][row]) for place in places]
            drawn[tuple(each for each in conditions if each[1] != EVERYTHING)] = None
        return [each for each in drawn if each]


def _keep(
    tables: "AttackTables", predicates: Predicates, sizes: Sequence[int], limits: Sequence[int]
) -> tuple[list[int], list[list[int]]]:
    """The predicates that hold for one released row.

    Args:
        tables: The release.
        predicates: Predicates of each kind, one kind after the other.
        sizes: Their number by kind.
        limits: The most to keep of each kind.

    Returns:
        By kind their number, and the places of those to keep.
    """
    ids = [column.id for column in predicates.columns]

    def count(every: Iterable[pa.Table]) -> States:
        return {COUNTS: predicates.count(every, ROW, released=True)}

    single = are_single(tables.fold_released(ids, count, merge_matches)[COUNTS], numbered=True)
    stops = np.cumsum(sizes)
    alone = [
        start + np.flatnonzero(single[start:stop])
        for start, stop in zip(stops - sizes, stops, strict=True)
    ]
    kept = [each[:most].tolist() for each, most in zip(alone, limits, strict=True)]
    return [len(each) for each in alone], kept


def _count_persons(tables: "AttackTables", predicates: Predicates) -> tuple[Ints, Ints, int, int]:
    """Counts the rows for which predicates hold: int64[predicates] of the persons in the release,
    and of those held out; then all rows of both. Several rows of one person are one; those of
    several persons count as they are."""
    ids = [column.id for column in predicates.columns]

    def count(every: Iterable[pa.Table]) -> States:
        both = list(every)
        return {
            str(out): predicates.count(
                [table.filter(pc.equal(table.column(OUT), pa.scalar(out))) for table in both],
                PERSON,
                released=False,
            )
            for out in (False, True)
        }

    states = tables.fold_source(ids, count, merge_matches)
    members, others = (states[str(out)] for out in (False, True))
    numbered = bool(np.isfinite(members[:-1].reshape(-1, 3)[:, 1]).any())
    counts = []
    for state in (members, others):
        rows = state[:-1].reshape(-1, 3)[:, 0].astype(np.int64)
        single = are_single(state, numbered=numbered)
        counts.append(np.where(single, 1, np.where(rows == 1, 2, rows)) if numbered else rows)
    return counts[0], counts[1], int(members[-1]), int(others[-1])


def _compare(n: int, members: Ints, others: Ints, n_members: int, n_others: int) -> Attempts:
    """The success of n attempts, of which some found a predicate.

    Args:
        n: The attempts.
        members: int64[predicates]. Rows of persons in the release for which predicates hold.
        others: The same of persons held out.
        n_members: All rows of persons in the release.
        n_others: All rows of persons held out.
    """
    if not n_others:
        return Attempts(n, 0, 0, 0)
    control = extrapolate(others, n_others, n_members)
    return Attempts(n, int((members == 1).sum()), n, control)


def _open(region: Region, median: float) -> Region:
    """A single number becomes itself and all that is farther from the median."""
    if not isinstance(region, Range) or region.low != region.high:
        return region
    return Range(region.low, np.inf) if region.low > median else Range(-np.inf, region.high)


def _find_median(regions: LineRegions | Sets) -> float:
    """The median of released numbers; 0 for other values."""
    if not isinstance(regions, LineRegions) or np.isnan(regions.low).all():
        return 0.0
    return float(np.nanmedian(regions.low))


def _find_ends(tables: "AttackTables", columns: Sequence[Column]) -> dict[str, tuple[Range, Range]]:
    """By id of a column that is released as numbers: all up to the least, and all from the
    greatest."""
    lines = [c for c in columns if c.recoder is None or c.recoder.releases == "value"]

    def count(every: Iterable[pa.Table]) -> States:
        found: dict[str, Floats] = {}
        for table in every:
            for column in lines:
                its = read_regions(column, table.column(column.id), released=True)
                if isinstance(its, LineRegions) and not np.isnan(its.low).all():
                    # Both are least values, so that one function merges them.
                    ends = np.array([np.nanmin(its.low), -np.nanmax(its.high)])
                    found[column.id] = _merge_ends("", found.get(column.id, ends), ends)
        return found

    states = tables.fold_released([c.id for c in lines], count, _merge_ends) if lines else {}
    return {
        id: (Range(-np.inf, float(low)), Range(-float(high), np.inf))
        for id, (low, high) in states.items()
    }


def _merge_ends(_: str, left: Floats, right: Floats) -> Floats:
    return np.minimum(left, right)


#: The kinds of predicates.
KINDS = ("univariate", "multivariate")
