"""An attack: reasons from what a kernel did not release to the model that forbade it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Floats, Ints
from anonlib.measure import Figure, Subjects
from anonlib.measure.attack_tables import OUT
from anonlib.measure.attempts import Attempts
from anonlib.measure.risk._attack import SecretAttack, Victims, place_evenly
from anonlib.measure.risk._candidates import NO_VALUE, number_values
from anonlib.measure.risk._cut_regions import CutRegion, Cutter
from anonlib.measure.risk._predicates import Conjunction, Predicates, merge_matches
from anonlib.measure.risk._regions import EVERYTHING, Region, read_regions
from anonlib.measure.risk._released_classes import ClassSearch, ReleasedClass
from anonlib.measure.risk.downcoding import WIDE
from anonlib.measure.states import States
from anonlib.privacy import CellCounts, PrivacyModel, SparseCounts
from anonlib.table.schema import Column

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case

#: The name of the only state of a pass that counts rows in parts of classes.
COUNTS = "counts"
#: The column that would number rows: there is none, so that all of them are counted.
NO_NUMBER = ""
NOTHING = "no class has two parts of k rows that only a model can have kept together"


class Minimality(SecretAttack):
    """How often a sensitive value is guessed because a kernel generalized further than k asks.

    For each sensitive column with a privacy model, and for the target if it has its own: an
    attacker knows the quasi-identifiers of everybody in the release (a register), and that kernels
    such as `peel`, `greedy` and `full_domain` generalize no further than k and the models ask. The
    attacker takes the narrowest class that holds a person's values, and tries each of its columns
    one step narrower: the child of the node, half of the interval, the value instead of the set.
    This cuts the class into the person's part and the rest. If both have k rows, it was not for k
    that they were not released apart. So the person's part fails a model: a value is too frequent
    in it. The most frequent value of the class is guessed; of equally frequent ones each with the
    same chance.

    Who is attacked: persons with such a part that can fail a model of the column. It can, if it
    fails with the most frequent values of the class. The persons of the register in a part may be
    in other classes, too: those that lie in the part are subtracted, and of what is left only the
    rows count that the other part has no room for. With a `unit`, a part needs as many rows as k
    persons surely have. A model that compares cells with the whole table is taken to fail. The
    control is the same guess for persons held out, by the class that they would be in.

    `full_domain` keeps a level for the sake of any class of the table, and a part may be kept for
    the sake of the rest: then the guess is that of the most frequent value, and `inference` says
    what it tells. Not attacked are several columns or steps at once, what parts of a class tell
    together, suppressed rows, and the kernel's own order, seed and loss.

    All quasi-identifiers must be released as intervals, sets, nodes or shares. Values are compared
    as they are written, and only null is missing. Without a hierarchy, the root of a column with
    more than 1,000 categories is not tried narrower.
    Cost: for all columns together two passes over the release and one over the source. The first
    compares bounded numbers of persons with its classes.
    """

    type: ClassVar[str] = "minimality"
    subjects: ClassVar[Subjects] = "columns"
    reference: ClassVar[str] = (
        "R. C. Wong, A. W. Fu, K. Wang, J. Pei, Minimality attack in privacy preserving data "
        "publishing, VLDB 2007; A. Cohen, Attacks on deidentification's defenses, USENIX Security "
        "2022"
    )

    def attack(
        self, case: "Case", known: tuple[Column, ...], secrets: tuple[Column, ...]
    ) -> list[Figure] | str:
        if not known or not all(column.recoder.releases in WIDE for column in known):
            return "not all quasi-identifiers are released as intervals, sets, nodes or shares"
        if not any(model.column == each.id for model in case.models for each in secrets):
            return "no model looks at sensitive values: only k kept classes from being narrower"
        tables = self.tables(case)
        if not tables.n_released:
            return "nothing was released to reason from"
        persons = self.draw(case, tables, known)
        classes, place = ClassSearch(persons.table, known, secrets).find(tables)
        k = max(case.person_rows().count_sure(case.k), 1)
        splits = list_splits(case, known, persons.table, classes, place, k)
        least = count_least(tables, known, splits, classes)
        shown = np.flatnonzero((least >= k).all(axis=1))
        its_classes = [classes[at] for at in splits.place[shown].tolist()]
        figures: list[Figure] = []
        for i, secret in enumerate(secrets):
            models = [model for model in case.models if model.column == secret.id]
            counts = [each.values[i] for each in classes]
            told = shown[can_fail(models, its_classes, i, least[shown, 0])]
            right = rate_guesses(persons, secret, splits.find_classes(told), counts)
            attempts = compare(*np.split(right, [persons.n_members]))
            found = attempts.figures(secret.name)
            figures += found if attempts.n else self.nothing(NOTHING, [secret.name]).figures
        return figures


class Splits(NamedTuple):
    """Classes cut in two, by one column each.

    Attributes:
        place: int64[s]. The class of each.
        conjunctions: [2 s]. Of each the part that persons are in, then the rest.
        person: int64[q]. The persons in classes, once for each split of their class that has their
            values in its first part.
        split: int64[q]. These splits.
    """

    place: Ints
    conjunctions: tuple[Conjunction, ...]
    person: Ints
    split: Ints

    def find_classes(self, some: Ints) -> dict[int, int]:
        """The persons in the first parts of some splits, and the class of each."""
        its = np.isin(self.split, some)
        return dict(
            zip(self.person[its].tolist(), self.place[self.split[its]].tolist(), strict=True)
        )


def list_splits(
    case: "Case",
    known: Sequence[Column],
    persons: pa.Table,
    classes: Sequence[ReleasedClass],
    place: Ints,
    k: int,
) -> Splits:
    """The splits of classes that hold persons, into parts that can have k rows each.

    Args:
        case: The case.
        known: The quasi-identifiers.
        persons: p original rows.
        classes: The classes.
        place: int64[p]. The class of each person; -1 for none.
        k: The rows of a part.
    """
    values = [read_regions(c, persons.column(c.id), released=False).regions() for c in known]
    cuts = [cache(Cutter(column, case.encodings[column.id]).cut) for column in known]
    number: dict[tuple[int, int, CutRegion], int] = {}
    pairs = []
    for i, at in enumerate(place.tolist()):
        if at < 0 or classes[at].n_rows < 2 * k:
            continue
        for j, region in enumerate(classes[at].regions):
            parts = cuts[j](region, values[j][i])
            if parts is not None:
                pairs.append((i, number.setdefault((at, j, parts), len(number))))
    person, split = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    narrowed = (_narrow(classes[at].regions, j, part) for at, j, both in number for part in both)
    return Splits(np.array([at for at, *_ in number], np.int64), tuple(narrowed), person, split)


def _narrow(regions: Sequence[Region], column: int, part: Region) -> Conjunction:
    """The conditions of a part of a class."""
    every = ((i, part if i == column else region) for i, region in enumerate(regions))
    return tuple((i, region) for i, region in every if region != EVERYTHING)


def count_least(
    tables: "AttackTables",
    known: tuple[Column, ...],
    splits: Splits,
    classes: Sequence[ReleasedClass],
) -> Ints:
    """int64[s, 2]. The rows of a class that are surely in each part of its splits.

    In a part are at most the persons of the register with such values, without the rows of classes
    that lie in it. What the other part can't hold of the class is in this one. If there are fewer
    persons than the class has rows, the register tells nothing of it: both are 0 then.

    Cost: one pass over the source, one over the release.
    """
    most = count_most(tables, Predicates.of(known, splits.conjunctions)).reshape(-1, 2)
    n_rows = np.array([each.n_rows for each in classes], np.int64)[splits.place]
    least = n_rows[:, None] - most[:, ::-1]
    return np.where(most.sum(axis=1, keepdims=True) < n_rows[:, None], 0, least)


def count_most(tables: "AttackTables", predicates: Predicates) -> Ints:
    """int64[predicates]. The persons of the register for whom each holds, less the released rows
    for which it holds."""
    ids = [column.id for column in predicates.columns]

    def count_persons(every: Iterable[pa.Table]) -> States:
        members = (table.filter(pc.invert(table.column(OUT))) for table in every)
        return {COUNTS: predicates.count(members, NO_NUMBER, released=False)}

    def count_rows(every: Iterable[pa.Table]) -> States:
        return {COUNTS: predicates.count(every, NO_NUMBER, released=True)}

    persons = tables.fold_source(ids, count_persons, merge_matches)[COUNTS]
    rows = tables.fold_released(ids, count_rows, merge_matches)[COUNTS]
    found: Ints = (persons[:-1:3] - rows[:-1:3]).astype(np.int64)
    return found


def can_fail(
    models: Sequence[PrivacyModel], classes: Sequence[ReleasedClass], secret: int, size: Ints
) -> Bools:
    """bool[s]. Whether parts of classes can fail a model of a secret column, in the worst case:
    with all missing values of the class but for one row, and then its most frequent values. A model
    that compares cells with the whole table is taken to fail.

    Args:
        models: The models of the column.
        classes: [s]. The class of each part.
        secret: The place of the column among the secret ones.
        size: int64[s]. The rows of each part, 1 or more.
    """
    has_values = np.array([any(each.values[secret].values()) for each in classes], np.bool_)
    if not models or any(model.relative for model in models):
        return has_values & bool(models)
    missing, counts = np.zeros(len(size), np.int64), [np.empty(0, np.int64)]
    for i, (each, n) in enumerate(zip(classes, size.tolist(), strict=True)):
        values = np.array(sorted(each.values[secret].values(), reverse=True), np.int64)
        missing[i] = min(each.n_rows - values.sum(), n - 1)
        counts.append(np.clip(n - missing[i] - np.cumsum(values) + values, 0, values))
    lengths = [len(each) for each in counts[1:]]
    count = np.concatenate(counts)
    cell = np.repeat(np.arange(len(size)), lengths)
    rank = np.concatenate([np.empty(0, np.int64), *map(np.arange, lengths)])
    some = count > 0
    sparse = SparseCounts(cell[some], rank[some], count[some], missing, size - missing)
    cells = CellCounts(size, size, {models[0].column or "": sparse})
    failing: Bools = ~np.all([model.holds_within(cells) for model in models], axis=0)
    return failing & has_values  # without a value, there is nothing to guess


def rate_guesses(
    persons: Victims, secret: Column, place: Mapping[int, int], values: Sequence[Mapping[int, int]]
) -> Floats:
    """float64[p]. The chance that the most frequent value of a person's class is the person's; of
    equally frequent ones each is guessed with the same chance. NaN for persons who are not
    attacked, or have no value.

    Args:
        persons: p persons.
        secret: The column to guess.
        place: The persons to attack, and the class of each.
        values: By class: the counts of its present values.
    """
    own = number_values(secret, persons.table).tolist()
    right = np.full(len(own), np.nan)
    for person, at in place.items():
        if own[person] != NO_VALUE:
            most = max(values[at].values())
            modes = [value for value, n in values[at].items() if n == most]
            right[person] = (own[person] in modes) / len(modes)
    return right


def compare(inside: Floats, outside: Floats) -> Attempts:
    """The success of attacks on persons in the release, and of as many on persons held out: rates
    of different numbers of attempts are drawn to a half by different amounts.

    Args:
        inside: [n]. The chance that each attack succeeds; NaN for none.
        outside: [m]. The same of persons held out.
    """
    inside, outside = (each[~np.isnan(each)] for each in (inside, outside))
    n = min(len(inside), len(outside)) if len(outside) else len(inside)
    inside, outside = (
        each[place_evenly(len(each), min(n, len(each)))] for each in (inside, outside)
    )
    successes = [round(float(each.sum()), 6) for each in (inside, outside)]
    return Attempts(n, successes[0], len(outside), successes[1])
