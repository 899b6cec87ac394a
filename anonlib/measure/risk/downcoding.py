"""An attack: narrows released values down by what recoders are known to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints, Sparse
from anonlib.measure import Findings, Subjects
from anonlib.measure.features import list_predictors
from anonlib.measure.nearest import Distances, MatchedColumn
from anonlib.measure.risk._attack import AttackMeasure, Victims, list_attempts
from anonlib.measure.risk._passes import search_release
from anonlib.measure.risk._reach import Search
from anonlib.measure.risk._regions import LineRegions, Sets, read_regions
from anonlib.table.schema import Column

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case

#: What a value is narrowed down from.
WIDE = ("interval", "set", "node", "shares")


class Downcoding(AttackMeasure):
    """How often a generalized value is narrowed down to a person's own value.

    For each column that is released as intervals, sets, nodes or shares: an attacker knows the
    other quasi-identifiers of a person, and looks for the nearest released rows. Recoders release
    no more than they must: somebody of the class is at each end of an interval, and has each value
    of a set. So the attacker guesses one of both ends, one of the values of the set, or one of the
    values below the node, all with the same chance. A person counts by the chance that the guess is
    right. The root of a nominal column is not narrowed down, and neither is a null interval or set.

    Of persons held out, the guess says only how frequent such values are. So `risk` is what the
    tightness of classes tells of those in them. It falls with k, since more persons of a class are
    not at its ends, and with `round_to`, `bottom` and `top` of recoders, and levels of nodes.
    What it tells that a kernel found nothing narrower is a matter of `minimality`.

    Distances are those of the measure `linkage`. Persons without a value are left out.
    Cost: one pass over the release. For each column, a bounded number of persons is compared with
    its classes.
    """

    type: ClassVar[str] = "downcoding"
    subjects: ClassVar[Subjects] = "columns"
    reference: ClassVar[str] = (
        "A. Cohen, Attacks on deidentification's defenses, USENIX Security 2022 (downcoding); R. "
        "C. Wong et al., Minimality attack in privacy preserving data publishing, VLDB 2007"
    )

    def measure(self, case: "Case") -> Findings:
        known = list_predictors(case.schema, (), "quasi_identifiers")
        wide = [column for column in known if column.recoder.releases in WIDE]
        if not wide:
            return self.nothing("no column is released as intervals, sets, nodes or shares")
        tables = self.tables(case)
        if not tables.n_released:
            return self.nothing("nothing was released", [column.name for column in wide])
        persons = [self._draw(case, tables, known, column) for column in wide]
        searches = [
            Search(
                persons=each.table,
                groups=(tuple(other for other in known if other != column),),
                encodings=case.encodings,
                payload_ids=(column.id,),
                pair_payload=partial(match_guesses, column),
            )
            for column, each in zip(wide, persons, strict=True)
        ]
        every = search_release(searches, tables.fold_released)
        right = [found.total[:, 0] / found.n_rows[:, 0] for found in every]
        return Findings(list_attempts(wide, persons, right))

    def _draw(
        self, case: "Case", tables: "AttackTables", known: Sequence[Column], column: Column
    ) -> Victims:
        return self.draw(
            case,
            tables,
            columns=known,
            keep=lambda each: each.filter(each.column(column.id).is_valid()),
        )


@dataclass(frozen=True, eq=False)
class EndGuesses(Distances):
    """The chance that one of both ends of a range is a number.

    Attributes:
        value: float64[n]. The numbers.
        low: float64[d]. The lower ends of the ranges.
        high: float64[d]. The upper ends.
    """

    value: Floats
    low: Floats
    high: Floats

    def squared(self, rows: slice) -> Floats:
        value = self.value[rows, None]
        result: Floats = ((value == self.low) + (value == self.high).astype(np.float64)) / 2
        return result


@dataclass(frozen=True, eq=False)
class MemberGuesses(Distances):
    """The chance that a member of a set is a value.

    Attributes:
        code: int64[n]. The values.
        share: csr_matrix[c, d]. The chance of each value to be guessed from each set.
    """

    code: Ints
    share: Sparse

    def squared(self, rows: slice) -> Floats:
        result: Floats = self.share[self.code[rows]].toarray()
        return result


def match_guesses(column: Column, persons: pa.Table, released: pa.Table) -> MatchedColumn:
    """The chances that guesses from released values of a column are the values of persons, in the
    form of distances."""
    values, regions = (
        read_regions(column, table.column(column.id), released=is_released, raw_ends=True)
        for table, is_released in ((persons, False), (released, True))
    )
    if isinstance(values, LineRegions) and isinstance(regions, LineRegions):
        ends, place = np.unique(
            np.column_stack([regions.low, regions.high]), axis=0, return_inverse=True
        )
        low, high = ends[:, 0].copy(), ends[:, 1].copy()
        return MatchedColumn(EndGuesses(values.low, low, high), place.ravel())
    assert isinstance(values, Sets)
    assert isinstance(regions, Sets)
    return MatchedColumn(_guess_members(values, regions), regions.index)


def _guess_members(values: Sets, regions: Sets) -> MemberGuesses:
    from scipy.sparse import csr_matrix

    points = [next(iter(each)) for each in values.distinct]
    code = {text: i for i, text in enumerate(points)}
    chances = [
        (code[text], place, 1 / len(region))
        for place, region in enumerate(regions.distinct)
        for text in region
        if text in code
    ]
    row, place, chance = zip(*chances, strict=True) if chances else ((), (), ())
    shape = len(code), len(regions.distinct)
    return MemberGuesses(values.index, csr_matrix((chance, (row, place)), shape))
