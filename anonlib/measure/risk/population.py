"""How well persons are hidden in a population that another table lists."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from anonlib.arrays import MISSING, Ints, average_ratio
from anonlib.errors import InputError
from anonlib.measure import Figure, Findings, Measure, Subjects
from anonlib.measure.features import as_one_array, encode_distinct
from anonlib.measure.regions import (
    ColumnRegions,
    Members,
    Ranges,
    RegionCounts,
    Regions,
    Subtrees,
)
from anonlib.measure.risk._compared import find_elements, find_ends
from anonlib.recode import EXTENTS
from anonlib.recode.interval import Interval
from anonlib.recode.value_leaves import find_leaves
from anonlib.table.encoding import Encoding, to_float
from anonlib.table.schema import Column, Role, may_be_continuous
from anonlib.text import count_noun

if TYPE_CHECKING:
    from anonlib.measure.case import Case, PersonRows

#: The most classes of a release.
MOST_CLASSES = 100_000

MANY = f"more than {MOST_CLASSES} classes; name fewer columns"
ROWS = (
    "released persons can't be told apart: F is at least the fewest that may have the rows, and "
    "the mean and presence count each row as a person"
)
#: The figure that may be worse for persons than for rows: most of these may be in large classes.
MEAN = "journalist_mean"


class Population(Measure):
    """How well persons are hidden in a population that another table lists, one row per person.

    `source` is that table, as the config's own source; `columns` says which of its columns stands
    for each quasi-identifier that an attacker could look up there. Quasi-identifiers that are not
    named are unknown to the attacker.

    A class is what the release has in these columns: a region with f rows of the release and F
    persons of the population.

    - `k_map`: the least F. A release is a k-map if it is k or more.
    - `journalist_max`, `journalist_mean`: the chance 1/F of a person to be found by an attacker who
      does not know who is in the release, at most and on average over the released rows.
    - `presence_min`, `presence_max`: the least and the largest f/F: how sure an attacker is that a
      person of the region is in the release (delta-presence).

    A region contains the values of an interval, both ends included, of a set, or below a node. An
    end at the recoder's `bottom` or `top` contains all that is less or more. A range or set without
    a value contains everything. Missing values are in such regions, in the root of a hierarchy, and
    in sets with a missing value. Columns that are released as points (`centroid`, `median`, `mode`)
    or as shares have no region: who is in the class could be anywhere. There are no figures then;
    release intervals, sets or nodes. Persons of the release are persons of the population, so F
    counts as f at least; a note says how often it was less. With a `unit`, f is not known: F counts
    at least as the rows, less all those of nobody, over the most rows of a person; presence is of
    the rows, at most 1, and so is the mean, by which no gate passes.
    Unlike here, `reidentification` and `uniqueness` only model a population (Pitman, Zayatz).

    Cost: one aggregate of the release and of the population, by these columns; then tasks compare
    the distinct values. The driver holds at most 100,000 classes.
    """

    type: ClassVar[str] = "population"
    is_risk: ClassVar[bool] = True
    usual: ClassVar[bool] = False
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "k_map": "persons of the population in the class that has fewest; a number, more is safer",
        "journalist_max": "largest chance of a person to be found in the population; 0 to 1, less "
        "is safer",
        "journalist_mean": "mean chance of released rows to be found in the population; 0 to 1, "
        "less is safer",
        "presence_min": "share of a class's persons in the population who are released, at the "
        "least; 0 to 1, for comparison",
        "presence_max": "share of a class's persons in the population who are released, at the "
        "most; 0 to 1, less is safer",
    }
    reference: ClassVar[str] = (
        "L. Sweeney, k-anonymity: a model for protecting privacy, International Journal on "
        "Uncertainty, Fuzziness and Knowledge-based Systems 10(5), 2002 (k-map); M. E. Nergiz, M. "
        "Atzori, C. Clifton, Hiding the presence of individuals from shared databases, SIGMOD 2007"
    )
    source: dict[str, Any] = Field(
        description="the table of the population, with the fields of the config's `source`"
    )
    columns: dict[str, str] = Field(
        min_length=1, description="by quasi-identifier: the column of the population"
    )

    @property
    def named_columns(self) -> Mapping[str, tuple[Role, ...]]:
        return dict.fromkeys(self.columns, (Role.QUASI_IDENTIFIER,))

    def measure(self, case: "Case") -> Findings:
        columns = [c for c in case.schema.quasi_identifiers if c.name in self.columns]
        points = [c.name for c in columns if c.recoder.releases not in EXTENTS]
        if points:
            return self.nothing(f"{', '.join(points)}: released values are no regions")
        known = [c for c in columns if c.recoder.releases != "nothing"]
        found = case.tuples([c.id for c in known], MOST_CLASSES, released=True)
        if found is None:
            return self.nothing(MANY)
        classes, n_rows = found
        if not len(n_rows):
            return self.nothing("nobody was released")
        try:
            regions = make_regions(known, case.encodings, classes)
        except (pa.ArrowException, ValueError, KeyError):  # their texts may hold values
            raise InputError("population: released values can't be read as regions") from None
        named = {column.id: self.columns[column.name] for column in known}
        persons = case.count_population(self.source, named, regions)
        of_persons = case.person_rows() if case.schema.unit else None
        return self._compare(n_rows, persons, of_persons)

    def _compare(
        self, n_rows: Ints, persons: RegionCounts, of_persons: "PersonRows | None"
    ) -> Findings:
        """The figures.

        Args:
            n_rows: int64[t]. The released rows of each class.
            persons: F of each class, as counted.
            of_persons: How rows belong to persons; None if each row is a person.
        """
        # The persons who were released, at least: no class is without one.
        fewest = n_rows
        if of_persons is not None:
            fewest = np.array(
                [max(of_persons.count_fewest(n), 1) for n in n_rows.tolist()], np.int64
            )
        at_least = np.maximum(persons.in_region, fewest)
        fewer = int((persons.in_region < fewest).sum())
        few = count_noun(fewer, "class has", "classes have")
        notes = [f"of {persons.n_rows} persons", f"{few} fewer persons there" * (fewer > 0)]
        note = "; ".join(filter(None, [*notes, ROWS * (of_persons is not None)]))
        chance, presence = 1.0 / at_least, np.minimum(n_rows / at_least, 1.0)
        values = (
            float(at_least.min()),
            float(chance.max()),
            average_ratio(n_rows, at_least, int(n_rows.sum())),
            float(presence.min()),
            float(presence.max()),
        )
        figures = [
            Figure(
                name,
                value,
                note=note,
                by_rows=name == MEAN and of_persons is not None and of_persons.most > 1,
            )
            for name, value in zip(self.names, values, strict=True)
        ]
        if persons.n_several:
            # A class releases some of these persons, others another one: its share says little.
            why = f"{persons.n_several} persons are in the regions of several classes"
            figures[3:] = [Figure(each.name, None, note=why) for each in figures[3:]]
        return Findings(tuple(figures))


def make_regions(
    columns: list[Column], encodings: Mapping[str, Encoding], classes: pa.Table
) -> Regions:
    """The regions of classes.

    Args:
        columns: The columns.
        encodings: Their encodings, by id.
        classes: t classes: their released values.
    """
    places, parts = [np.zeros((classes.num_rows, 0), np.int64)], []
    for column in columns:
        distinct, place = encode_distinct(as_one_array(classes.column(column.id)))
        parts.append(_regions(column, encodings[column.id], distinct))
        places.append(place.reshape(-1, 1))
    return Regions(tuple(c.id for c in columns), tuple(parts), np.column_stack(places))


def _regions(column: Column, encoding: Encoding, released: Any) -> ColumnRegions:
    """The regions of the released values of a column."""
    if column.recoder.releases == "interval":
        return _spans(column, encoding, released)
    if column.recoder.releases == "set":
        return _members(released)
    flat = column.hierarchy or find_leaves(encoding.categories, None).hierarchy
    number = {name: i for i, name in enumerate(flat.names)}
    nodes = [MISSING if name is None else number[name] for name in released.to_pylist()]
    return Subtrees(flat, np.array(nodes, np.int64))


def _spans(column: Column, encoding: Encoding, released: Any) -> Ranges:
    ends = find_ends(column, encoding, released)
    order = None if may_be_continuous(column.type) else encoding.categories
    if order is not None:
        ends = tuple(pc.index_in(each, value_set=order) for each in ends)
    low, high = (to_float(each) for each in ends)
    if isinstance(column.recoder, Interval):
        low, high = column.recoder.open_ends(low, high, column.type)
    return Ranges(low, high, np.isnan(low) | np.isnan(high), order)


def _members(released: Any) -> Members:
    elements = find_elements(released)
    known = sorted({text for each in elements for text in each if text is not None})
    place: dict[str | None, int] = {text: i for i, text in enumerate(known)}
    place[None] = len(known)
    among = np.zeros((len(elements), len(known) + 2), np.bool_)
    for i, each in enumerate(elements):
        among[i, [place[text] for text in each]] = True
    among[released.is_null().to_numpy(zero_copy_only=False)] = True
    return Members(pa.array(known, pa.string()), among)
