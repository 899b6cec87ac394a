"""An attack: predicates that hold for exactly one person."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.arrays import Floats, Ints
from anonlib.measure import Figure, Findings
from anonlib.measure.attack_tables import OUT, PERSON, ROW
from anonlib.measure.attempts import Attempts
from anonlib.measure.features import list_predictors
from anonlib.measure.risk._attack import AttackMeasure
from anonlib.measure.risk._ends import Ends, merge_ends
from anonlib.measure.risk._extrapolation import extrapolate
from anonlib.measure.risk._predicates import Conjunction, Predicates, are_single, merge_matches
from anonlib.measure.risk._regions import (
    EVERYTHING,
    LineRegions,
    Sets,
    is_on_line,
    read_regions,
)
from anonlib.measure.states import States
from anonlib.table.schema import Column

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case

#: The names of the states of released rows, of persons in the release, and of those held out.
COUNTS, MEMBERS, OTHERS = "counts", "members", "others"
#: Released rows that predicates are built from.
MOST_ROWS = 20_000
#: Predicates that an attack tries on the release.
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
    released row has it if all that the row stands for is in it. An attack tries TRIES predicates,
    and those that hold for one released row are shared out, one to an attack: an attack without one
    fails. Where fewer predicates can be built than all attacks would try, fewer attacks are made:
    so rates by different `attempts` can be compared. Anonymeter counts the attacks that it can't
    make as failures, and warns that this understates the risk. The control asks the same
    predicates of the persons held out. These are fewer, so successes are extrapolated to as many
    persons (see `_extrapolation.py`).

    Pseudonyms and nested columns are left out. With a `unit`, several rows of one person are one.
    Cost: two passes over the release and one over the source.
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
        columns = list_predictors(case.schema, (), "released")
        columns = tuple(c for c in columns if c.recoder is None or c.recoder.releases != "nothing")
        tables = self.tables(case)
        rows = tables.sample([column.id for column in columns], MOST_ROWS)
        if not rows.num_rows or not columns:
            return self.nothing("nothing was released to build predicates from", KINDS)
        known = [read_regions(c, rows.column(c.id), released=True) for c in columns]
        random = np.random.default_rng(case.seed)
        tried = self._single(known, random), self._several(known, rows.num_rows, random)
        found, n_tried = _find_single(tables, columns, tried)
        n_attacks = [min(self.attempts, -(-n // TRIES)) for n in n_tried]
        kept = [each[:n] for each, n in zip(found, n_attacks, strict=True)]
        counts = _count_persons(tables, Predicates.of(columns, [*chain(*kept)]))
        cuts = np.cumsum([len(each) for each in kept])[:-1]
        figures: list[Figure] = []
        for kind, n, n_built, its, *persons in zip(
            KINDS,
            n_attacks,
            n_tried,
            found,
            *(np.split(each, cuts) for each in counts[:2]),
            strict=True,
        ):
            attempts = _compare(n, persons[0], persons[1], *counts[2:])
            note = f"predicates that hold for exactly one released row: {len(its):,} of {n_built:,}"
            note += f"; each attack tries {TRIES}, and fails if none of these does"
            figures += attempts.figures(kind, note)
        return Findings(tuple(figures))

    def _single(
        self, known: Sequence[LineRegions | Sets], random: np.random.Generator
    ) -> list[Conjunction]:
        """Predicates on one column: it has a value of the rows."""
        every: list[Conjunction] = [
            ((place, region),)
            for place, its in enumerate(known)
            for region in its.list_distinct()
            if region != EVERYTHING
        ]
        return [every[i] for i in random.permutation(len(every))[: TRIES * self.attempts]]

    def _several(
        self, known: Sequence[LineRegions | Sets], n_rows: int, random: np.random.Generator
    ) -> list[Conjunction]:
        """Predicates on several columns of rows, all different, drawn at random."""
        n, n_columns = TRIES * self.attempts, min(self.columns or len(known), len(known))
        rows = random.permutation(n_rows)[:n]
        order = random.random((len(rows), len(known))).argsort(axis=1)[:, :n_columns]
        opened = [_open(its).regions(rows) for its in known]
        drawn: dict[Conjunction, None] = {}
        for row, places in enumerate(np.sort(order, axis=1).tolist()):
            conditions = [(place, opened[place][row]) for place in places]
            drawn[tuple(each for each in conditions if each[1] != EVERYTHING)] = None
        return [each for each in drawn if each]


def _find_single(
    tables: "AttackTables", columns: tuple[Column, ...], candidates: Sequence[Sequence[Conjunction]]
) -> tuple[list[list[Conjunction]], list[int]]:
    """The predicates that hold for one released row. Cost: one pass.

    Args:
        tables: The release.
        columns: Its columns.
        candidates: Predicates of each kind. To those on one column, the ends of columns are added.

    Returns:
        Those of each kind that hold for one released row, and how many of each kind were tried.
    """
    predicates = Predicates.of(columns, [*chain(*candidates)])
    values = (c for c in columns if c.recoder is None or c.recoder.releases == "value")
    ends = Ends(tuple(c for c in values if is_on_line(c, "value")))

    def count(every: Iterable[pa.Table]) -> States:
        found: dict[str, Floats] = {}
        counted = predicates.count(ends.watch(every, found), ROW, released=True)
        return {COUNTS: counted, **found}

    ids = [column.id for column in columns]
    states = dict(tables.fold_released(ids, count, _merge_released))
    single = are_single(states.pop(COUNTS), numbered=True)
    stops = np.cumsum([len(each) for each in candidates])
    found = [
        [predicate for predicate, alone in zip(each, flags.tolist(), strict=True) if alone]
        for each, flags in zip(candidates, np.split(single, stops[:-1]), strict=True)
    ]
    of_ends, n_ends = ends.list_single(states, columns)
    found[0] = [*of_ends, *found[0]]
    return found, [len(candidates[0]) + n_ends, *map(len, candidates[1:])]


def _merge_released(name: str, left: Floats, right: Floats) -> Floats:
    return merge_matches(name, left, right) if name == COUNTS else merge_ends(left, right)


def _count_persons(tables: "AttackTables", predicates: Predicates) -> tuple[Ints, Ints, int, int]:
    """Counts the rows for which predicates hold: int64[predicates] of the persons in the release,
    and of those held out; then all rows of both. Several rows of one person are one; those of
    several persons count as they are."""
    ids = [column.id for column in predicates.columns]

    def count(every: Iterable[pa.Table]) -> States:
        members, others = predicates.count_apart(every, PERSON, OUT)
        return {MEMBERS: members, OTHERS: others}

    states = tables.fold_source(ids, count, merge_matches)
    members, others = states[MEMBERS], states[OTHERS]
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
    return Attempts(n, int((members == 1).sum()), n, *extrapolate(others, n_others, n_members))


def _open(regions: LineRegions | Sets) -> LineRegions | Sets:
    """A single number becomes itself and all that is farther from the median."""
    if not isinstance(regions, LineRegions) or np.isnan(regions.low).all():
        return regions
    low, high = regions.low, regions.high
    single, above = low == high, low > np.nanmedian(low)
    low, high = np.where(single & ~above, -np.inf, low), np.where(single & above, np.inf, high)
    return LineRegions(low, high, regions.null)


#: The kinds of predicates.
KINDS = ("univariate", "multivariate")
