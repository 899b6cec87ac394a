"""Whether the release is as useful and as safe for every group of persons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow.compute as pc
from pydantic import Field

from anonlib.arrays import Floats, Ints, snap
from anonlib.encode.texts import texts
from anonlib.measure import DeclaredColumn, Figure, Findings, Series, Subjects
from anonlib.measure.case import CellSums, PersonRows
from anonlib.measure.cell_sums import (
    CellMeasure,
    CellParts,
    OriginalCells,
    name_of,
    read_name,
)
from anonlib.table.schema import Column, Role, Schema, is_atomic
from anonlib.text import count_noun

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The most groups of a column.
MOST_GROUPS = 200
ROLES = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET, Role.INSENSITIVE)
MISSING_GROUP, OTHER_GROUPS, GONE_GROUPS = "missing", "other groups", "groups left out"

AFTERWARDS = "once a release is published, nothing tells whose rows were suppressed or lost what"
MANY = f"more than {MOST_GROUPS} groups; name a column with fewer values"
UNKNOWN = "with the partitioner `tuples`, only quasi-identifiers and protected columns are counted"
ROWS = "each row counts; by the smallest cell that a person is in, the chance may be larger"
#: Figures of chances, which are of rows.
RISKS = ("worst_risk", "risk_gap")
HEADS = ("group", "rows released", "loss", "suppressed", "risk")
FEW = "no group has enough rows to be told apart"
#: Digits of what the series shows; figures have all, since gates are judged by them.
N_DIGITS = 6
#: Bits of a limb: sums of numbers on this grid (`anonlib.arrays.GRID`) are exact in any order.
LIMB = 20
#: Limbs of a loss, which is a float, and of a chance, which is a fraction: enough that their sums
#: are rounded once, as a figure.
LOSS_LIMBS, CHANCE_LIMBS = 3, 4


class PersonGroup(NamedTuple):
    """Rows of the source that have a value, or one of several.

    Attributes:
        name: The value, or what stands for it.
        n_source: Their rows in the source.
        n_released: Their rows in the release.
        n_persons: The persons in the source, at least.
        n_left: The persons in the release, at least.
        loss: The sum of the losses of the released rows.
        chance: The sum of the chances of the released rows to be found again.
    """

    name: str
    n_source: int
    n_released: int
    n_persons: int
    n_left: int
    loss: Fraction
    chance: Fraction

    @classmethod
    def of(
        cls, name: str, n_source: int, n_persons: int, of_persons: PersonRows, sums: Floats
    ) -> "PersonGroup":
        """A group by the sums of its rows, as `Fairness.count` makes them. of_persons: How rows
        of the source belong to persons."""
        n_released, *limbs = map(int, (sums * [1, *[1 << LIMB] * (sums.size - 1)]).tolist())
        loss, chance = limbs[:LOSS_LIMBS], limbs[LOSS_LIMBS:]
        # A row that is left out takes at most one person with it.
        n_left = max(n_persons - (n_source - n_released), of_persons.count_fewest(n_released))
        return cls(
            name,
            n_source,
            n_released,
            n_persons,
            n_left,
            _join_limbs(loss),
            _join_limbs(chance),
        )

    @property
    def mean_loss(self) -> Fraction:
        """The mean loss of the rows of the source: a suppressed row has lost all."""
        return (self.loss + self.n_source - self.n_released) / self.n_source

    @property
    def suppression(self) -> Fraction:
        """The share of rows that are not in the release."""
        return Fraction(self.n_source - self.n_released, self.n_source)

    @property
    def risk(self) -> Fraction | None:
        """The mean chance of the released rows; None without any."""
        return self.chance / self.n_released if self.n_released else None


class Fairness(CellMeasure):
    """Whether some groups of persons lose more by the release, or are safer in it, than others.

    A group has one value in a column that `columns` names, before the release. For each column, the
    series `groups` has, with the worst group in front:

    - `loss`: the mean information loss of the group's rows (`ncp` of their cells). A suppressed row
      has lost all.
    - `suppressed`: the share of the group's rows that are not released.
    - `risk`: the mean chance 1/f of the group's released rows to be found again, in a cell of f
      persons. Where a person has several rows, each counts: by the smallest cell of each person the
      chance may be larger, so a note says so, and no gate passes by it.

    Figures are about the worst group of each column, and how far it is from all rows together.
    Groups are told apart if they have at least k persons in the source, and none or k in the
    release. All others are one group, if they are enough together; the figures have a note of
    them. The series shows a name if k persons of the group are released; so that a few persons
    can't be told from the sums of the others, it joins the smallest group with them if they are
    too few.

    Cost O(n log n) per column, by workers, while they make the cells; one aggregate of the source
    per column if the plan suppressed rows itself, and another one with a `unit`. At most 200 groups
    per column.
    """

    type: ClassVar[str] = "fairness"
    is_risk: ClassVar[bool] = True
    usual: ClassVar[bool] = False
    subjects: ClassVar[Subjects] = "columns"
    names: ClassVar[Mapping[str, str]] = {
        "worst_loss": "mean information loss of the group that loses most; 0 to 1, more is worse",
        "loss_gap": "what the group that loses most loses more than all rows together; 0 to 1, "
        "more is worse",
        "worst_suppression": "share of suppressed rows in the group that has most of them; 0 to 1, "
        "more is worse",
        "suppression_gap": "share of suppressed rows in the group that has most of them, less that "
        "of all rows; 0 to 1, more is worse",
        "worst_risk": "mean chance of rows to be found again, by persons of the cell, in the group "
        "that is found most easily; 0 to 1, less is safer",
        "risk_gap": "mean chance of rows to be found again in the group that is found most easily, "
        "less that of all rows; 0 to 1, less is safer",
    }
    reference: ClassVar[str] = (
        "the question: H. Xu, N. Zhang, Implications of data anonymization on the statistical "
        "evidence of disparity, Management Science 68(4), 2022"
    )
    columns: tuple[str, ...] = Field(
        min_length=1, description="columns of the release: each value before it is a group"
    )

    @property
    def named_columns(self) -> Mapping[str, tuple[Role, ...]]:
        return dict.fromkeys(self.columns, ROLES)

    def list_subjects(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> Sequence[str]:
        return self.columns

    def choose_columns(self, schema: Schema) -> tuple[Column, ...]:
        return tuple(column for column in schema.released if column.name in self.columns)

    def count(self, cells: OriginalCells) -> dict[str, CellParts]:
        each = np.column_stack([_cut_floats(cells.penalty), _cut_inverses(cells.persons)])
        found: dict[str, CellParts] = {}
        for id, values in cells.values.items():
            if not is_atomic(values.type):
                continue
            coded = pc.dictionary_encode(texts(values), null_encoding="encode")
            names = coded.dictionary.to_pylist()
            if len(names) > MOST_GROUPS:
                nothing = np.zeros((1, 1 + each.shape[1]))
                found[name_of(id)] = CellParts(np.zeros(1, np.int64), nothing)
                continue
            pair = coded.indices.to_numpy().astype(np.int64) * cells.m + cells.id
            distinct, place = np.unique(pair, return_inverse=True)
            rows = np.bincount(place, cells.weight, len(distinct))
            group, cell = distinct // cells.m, distinct % cells.m
            sums = np.column_stack([rows, rows[:, None] * each[cell]])
            for i, name in enumerate(names):
                own = group == i
                found[name_of(id, name)] = CellParts(cell[own], sums[own])
        return found

    def measure(self, case: "Case") -> Findings:
        sums = case.cell_sums(self.type)
        k, of_persons = max(1, case.k), case.person_rows()
        figures: list[Figure] = []
        series: list[Series] = []
        for column in self.choose_columns(case.schema):
            found = AFTERWARDS if sums is None else _find_groups(case, column, sums, of_persons)
            if isinstance(found, str):
                figures += [Figure(name, None, column.name, found) for name in self.names]
                continue
            groups = _tell_apart(found.values(), k, of_persons)
            there = groups.list_compared()
            whole = _join([*found.values()], "", of_persons)
            values = _compare(there, whole) if there else (None,) * 6
            for name, value in zip(self.names, values, strict=True):
                by_rows = of_persons.most > 1 and name in RISKS
                note = "; ".join(filter(None, [groups.note, ROWS * by_rows]))
                figures.append(Figure(name, value, column.name, note, by_rows))
            rows = tuple((g.name, g.n_released, *_show(g)) for g in groups.list_shown())
            series.append(Series("groups", column.name, HEADS, rows))
        return Findings(tuple(figures), tuple(series))


def _find_groups(
    case: "Case", column: Column, sums: Mapping[str, CellSums], of_persons: PersonRows
) -> dict[str | None, PersonGroup] | str:
    """All groups of a column, by value; or why there are none."""
    named = {read_name(name): each for name, each in sums.items()}
    own = {value: each for (id, value), each in named.items() if id == column.id}
    if () in own or len(own) > MOST_GROUPS:
        return MANY
    if not own:
        return UNKNOWN
    counts = {value: float(each.whole[0]) for (value,), each in own.items()}
    if sum(counts.values()) < case.n_source:  # the plan left rows out
        found = case.tuples([column.id], MOST_GROUPS, released=False)
        if found is None:
            return MANY
        values = texts(found[0].column(column.id).combine_chunks()).to_pylist()
        counts = dict(zip(values, found[1].tolist(), strict=True))
    persons: Mapping[str | None, float] = counts
    if case.schema.unit:
        distinct, n_persons = case.count_value_persons(column.id)
        persons = dict(zip(texts(distinct).to_pylist(), n_persons.tolist(), strict=True))
    none = np.zeros(1 + LOSS_LIMBS + CHANCE_LIMBS)
    return {
        value: PersonGroup.of(
            MISSING_GROUP if value is None else value,
            int(n),
            int(persons.get(value, 0)),
            of_persons,
            own[value,].released if (value,) in own else none,
        )
        for value, n in counts.items()
    }


@dataclass(frozen=True)
class SortedGroups:
    """The groups of a column.

    Attributes:
        k: The persons of a group that may be told apart.
        of_persons: How rows of the source belong to persons.
        apart: Those that may be told apart, the largest first.
        gone: Those of k persons without released rows.
        few: The others.
    """

    k: int
    of_persons: PersonRows
    apart: tuple[PersonGroup, ...]
    gone: tuple[PersonGroup, ...]
    few: tuple[PersonGroup, ...]

    @property
    def note(self) -> str:
        """What becomes of groups that are not compared by themselves."""
        if not self.list_compared():
            return FEW
        if not self.few:
            return ""
        how = "count as one" if self._join_few(self.few) else "are left out"
        return f"{count_noun(len(self.few), 'group')} of fewer than k persons: they {how}"

    def list_compared(self) -> list[PersonGroup]:
        """Those that figures are of."""
        gone = [_join(self.gone, GONE_GROUPS, self.of_persons)] if self.gone else []
        return [*self.apart, *gone, *self._join_few(self.few)]

    def list_shown(self) -> list[PersonGroup]:
        """Those that the series shows, the worst in front."""
        apart, few = [*self.apart], [*self.few]
        while few and apart and not self._join_few(few):
            few.append(apart.pop())
        shown = replace(self, apart=tuple(apart), few=tuple(few)).list_compared()
        return sorted(shown, key=lambda group: (-group.mean_loss, -group.suppression, group.name))

    def _join_few(self, few: Sequence[PersonGroup]) -> list[PersonGroup]:
        """Some groups as one; none if they are too few together."""
        others = [_join(few, OTHER_GROUPS, self.of_persons)] if few else []
        return [group for group in others if _may_stand_alone(group, self.k)]


def _tell_apart(groups: Iterable[PersonGroup], k: int, of_persons: PersonRows) -> SortedGroups:
    apart: list[PersonGroup] = []
    gone: list[PersonGroup] = []
    few: list[PersonGroup] = []
    for group in sorted(groups, key=lambda group: (-group.n_source, group.name)):
        small = not _may_stand_alone(group, k)
        (few if small else apart if group.n_released else gone).append(group)
    return SortedGroups(k, of_persons, tuple(apart), tuple(gone), tuple(few))


def _may_stand_alone(group: PersonGroup, k: int) -> bool:
    """Whether a group has k persons in the source, and none or k in the release."""
    return group.n_persons >= k and (not group.n_released or group.n_left >= k)


def _join(groups: Sequence[PersonGroup], name: str, of_persons: PersonRows) -> PersonGroup:
    """Several groups as one. A person may have rows in several."""
    n_source, n_released = (sum(getattr(g, n) for g in groups) for n in ("n_source", "n_released"))
    return PersonGroup(
        name,
        n_source,
        n_released,
        max(of_persons.count_fewest(n_source), *(group.n_persons for group in groups)),
        max(of_persons.count_fewest(n_released), *(group.n_left for group in groups)),
        sum((group.loss for group in groups), Fraction()),
        sum((group.chance for group in groups), Fraction()),
    )


def _show(group: PersonGroup) -> tuple[float | None, ...]:
    """The numbers of a group, as the series has them."""
    found = _list_numbers(group)
    return tuple(None if value is None else round(float(value), N_DIGITS) for value in found)


def _list_numbers(group: PersonGroup) -> tuple[Fraction | None, ...]:
    """Loss, suppression and risk of a group."""
    return group.mean_loss, group.suppression, group.risk


def _compare(groups: Sequence[PersonGroup], whole: PersonGroup) -> tuple[float | None, ...]:
    """By figure: the worst group's, and how far it is from that of all rows."""
    values: list[float | None] = []
    of_each = zip(*map(_list_numbers, groups), strict=True)
    for own, of_all in zip(of_each, _list_numbers(whole), strict=True):
        worst = max((value for value in own if value is not None), default=None)
        gap = None if worst is None or of_all is None else max(Fraction(), worst - of_all)
        values += [None if value is None else float(value) for value in (worst, gap)]
    return tuple(values)


def _cut_floats(values: Floats) -> Floats:
    """float64[m, LOSS_LIMBS]. Numbers on the grid: a value is the first, and the next by 2^-LIMB,
    and so on."""
    limbs, rest = [], values
    for _ in range(LOSS_LIMBS):
        limbs.append(snap(rest))
        rest = (rest - limbs[-1]) * (1 << LIMB)
    return np.column_stack(limbs)


def _cut_inverses(numbers: Ints) -> Floats:
    """float64[m, CHANCE_LIMBS]. The same for 1 / numbers, by long division; 1 for no person."""
    divisor = np.maximum(numbers, 1)
    limbs, rest = [], np.ones(len(divisor), np.int64)
    for _ in range(CHANCE_LIMBS):
        digit, rest = np.divmod(rest << LIMB, divisor)
        limbs.append(digit / (1 << LIMB))
    return np.column_stack(limbs)


def _join_limbs(limbs: Sequence[int]) -> Fraction:
    """The sum of numbers, from the sums of their limbs, which are multiples of the grid."""
    return sum((Fraction(n, 1 << LIMB * (i + 1)) for i, n in enumerate(limbs)), Fraction())
