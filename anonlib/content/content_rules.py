"""The rules of the content gate: which columns show who a person is, by the values that they have.

They need no engine. Spark (`anonlib/run/content.py`) and tables in memory
(`anonlib/content/gate.py`) give them sketches of columns, and count rows where sketches leave a
doubt.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.config.model import PrivacySection
from anonlib.content.relations import correct_chance
from anonlib.errors import Problem
from anonlib.guesses.guess import ColumnProfile
from anonlib.identifiers.column_names import name_words, translate_name
from anonlib.identifiers.direct import (
    DIRECT_KINDS,
    LEAST_NUMBER,
    MOST_TEXTS,
    count_kinds,
    find_main_kind,
    is_sure,
    tell_signs,
)
from anonlib.table.schema import Column, Role, Schema, is_atomic, is_number

#: A column with at most this many distinct values identifies nobody, unless it repeats an
#: identifying column in nearly all rows, or shares values with a larger one that don't coincide by
#: chance.
MAX_HARMLESS_VALUES = 20
#: This many shared values, or equal rows, more than expected by chance are still an accident.
MAX_ACCIDENTS = 5
#: Neighbours of a number among an identifier's that tell how densely numbers are used there.
N_NEIGHBOURS = 100
#: The share that counts as nearly all: distinct values of a key among its present ones, equal rows
#: of two columns that repeat each other, values that belong to one person each.
NEARLY_ALL = 0.95
#: A share of rows, corrected for chance, that chance explains.
BY_CHANCE = 0.5
#: An identifier this long inside another text is no coincidence. In letters and digits.
MIN_PART = 6
#: The same where half of the rows hold theirs.
MIN_USUAL_PART = 2
#: The share of rows in which a long number may hold a short one by chance.
CHANCE_SHARE = 0.001
#: Texts of whole numbers, also with zeros before them.
WHOLE_NUMBER = r"^[+-]?[0-9]{1,18}$"


@dataclass(frozen=True)
class Overlap:
    """What a released column and an identifying one have in common.

    Attributes:
        column: The released column.
        identifier: The identifying column.
        n_values: Values of the sketch that both have.
        by_chance: The number of shared values that chance explains.
        n_rows: Rows where both are equal, of all rows.
        rows_by_chance: The largest number of equal rows that chance explains.
    """

    column: str
    identifier: str
    n_values: int
    by_chance: float
    n_rows: int
    rows_by_chance: float

    @property
    def shows(self) -> bool:
        """Whether they have more in common than chance explains."""
        most = self.by_chance + 6 * sqrt(self.by_chance) + MAX_ACCIDENTS
        return self.n_values > most or self.n_rows > MAX_ACCIDENTS + 6 * self.rows_by_chance


@dataclass(frozen=True)
class Repetition:
    """An identifier that may stand for persons, and whose values several rows have.

    Attributes:
        column: The identifier.
        n_values: Its distinct values, counted as persons are told apart.
        n_rows: The rows that have one.
    """

    column: str
    n_values: int
    n_rows: int


@dataclass(frozen=True)
class Content:
    """The figures of the gate, for the private record.

    Attributes:
        share: The least share of a column's values that its sketch keeps; 1 is all of all columns.
        distinct: By released column: the number of its distinct values, an estimate where its
            sketch does not keep all.
        overlaps: Pairs of columns with values in common.
        kinds: By column that is released with texts of the source: what they look like, if they
            name or reach a person (`anonlib.identifiers.direct`).
        repetitions: Identifiers of persons who seem to have several rows; none with a unit, which
            counts these persons.
    """

    share: float
    distinct: Mapping[str, int]
    overlaps: tuple[Overlap, ...]
    kinds: Mapping[str, str]
    repetitions: tuple[Repetition, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        pairs = [asdict(pair) for pair in self.overlaps]
        return {
            "share": self.share,
            "distinct": dict(self.distinct),
            "shared": pairs,
            "kinds": dict(self.kinds),
            "repetitions": [asdict(each) for each in self.repetitions],
        }


@dataclass(frozen=True)
class Sketch:
    """A random part of a column's values. Of two columns, the smaller part is within the larger.

    Attributes:
        share: The share of the column's values that it keeps.
        hashes: int64[u], each there once. Keyed hashes of the values; with all values, any numbers
            that tell them apart in all columns.
        numbers: float64[u]. The values that are whole numbers or times, NaN for others.
        n_present: Rows of the whole column that have a value.
    """

    share: float
    hashes: Ints
    numbers: Floats
    n_present: int

    @property
    def n_values(self) -> float:
        """The distinct values of the column, an estimate if the share is less than 1."""
        return len(self.hashes) / self.share

    def within(self, share: float) -> "Sketch":
        """The part of the sketch that keeps at most this share of the column's values."""
        if share >= self.share:
            return self
        kept = self.hashes <= bound_hashes(share)
        return Sketch(share, self.hashes[kept], self.numbers[kept], self.n_present)


class ContentCounter(ABC):
    """Counts rows and values of whole columns, for what sketches leave open."""

    @abstractmethod
    def count_equal(self, column: Column, other: Column) -> int:
        """The rows where both columns have the same value."""

    @abstractmethod
    def expect_equal(self, column: Column, other: Column) -> float:
        """The share of the rows with both values where these would be the same by chance, by the
        number of rows that each value has."""

    @abstractmethod
    def count_distinct(self, column: Column) -> int:
        """The distinct values of a column."""

    @abstractmethod
    def count_identities(self, column: Column) -> int:
        """The distinct values of an identifying column, as persons are told apart: case may count,
        though people hardly see it."""

    @abstractmethod
    def count_pairs(self, column: Column, other: Column, share: float) -> tuple[int, int, int]:
        """The distinct values of the first column, of the second, and of both together.

        Counts the rows that have both, and whose first value is in a sketch of this share.
        """

    @abstractmethod
    def count_parts(
        self, pairs: Sequence[tuple[Column, Column]], sizes: Sequence[int]
    ) -> list[list[int]]:
        """By pair and by size: the rows where the first column is made of the second, and shows at
        least that many of its letters and digits.

        It shows those of the second column if it has them in it or is them backwards. It shows its
        own if it is a part of the second column or a hash of it.
        """

    @abstractmethod
    def is_form_of(self, column: Column, quasi: Column) -> bool:
        """Whether the column is the quasi-identifier in another form, by a sample of rows."""

    @abstractmethod
    def list_texts(self, column: Column) -> list[str]:
        """Some distinct texts of a column of texts or bytes, as `list_source_texts` does."""

    @abstractmethod
    def count_alone(self, column: Column) -> tuple[int, int]:
        """The values that several rows have, and those of them that belong to one person.

        Persons whose names look alike are one: where they alone have a value, it tells both. A
        missing name is a name.
        """


def list_compared(schema: Schema) -> tuple[list[Column], list[Column]]:
    """The identifying columns and the released ones, as far as their values can be compared."""
    persons = [c for c in schema.identifying if not pa.types.is_boolean(c.type)]
    candidates = [c for c in schema.released if not c.pseudonym]
    return [*filter(_is_comparable, persons)], [*filter(_is_comparable, candidates)]


def _is_comparable(column: Column) -> bool:
    return pa.types.is_binary(column.type) or is_atomic(column.type)


def bound_hashes(share: float) -> int:
    """The hash that this share of all hashes is not above."""
    return min(2**63 - 1, int(2**64 * share) - 2**63)


def judge_columns(
    schema: Schema,
    sketches: Mapping[str, Sketch],
    equal: Mapping[tuple[str, str], int],
    counter: ContentCounter,
    privacy: PrivacySection,
    protected: frozenset[str],
) -> tuple[Content, list[Problem]]:
    """Judges the released columns by their sketches.

    Args:
        schema: The columns.
        sketches: By id: the sketches of the columns that `list_compared` lists.
        equal: By the ids of a released and an identifying column: the rows where both are equal.
        counter: Counts what sketches leave open.
        privacy: The section of the config that acknowledges columns.
        protected: Names of sensitive columns with a model. They may have many distinct values.

    Returns:
        The figures, and what is wrong.
    """
    persons, candidates = list_compared(schema)
    pairs = [(column, person) for column in candidates for person in persons]
    pairs = [(column, person) for column, person in pairs if column.id != person.id]
    overlaps = [
        compare_sketches(c, p, sketches[c.id], sketches[p.id], equal[c.id, p.id]) for c, p in pairs
    ]
    distinct = {c.name: round(sketches[c.id].n_values) for c in candidates}
    rich = {p.name for p in persons if sketches[p.id].n_values > MAX_HARMLESS_VALUES}
    present = {c.name: sketches[c.id].n_present for c in candidates}
    kinds = _find_kinds(candidates, sketches, counter)
    problems = [
        *_direct_problems(kinds, privacy),
        *_overlap_problems(overlaps, distinct, present, rich, privacy),
        *_made_problems(pairs, sketches, counter, privacy),
        *_key_problems(candidates, sketches, counter, privacy, protected),
        *_repeated_problems(candidates, sketches, counter, privacy),
        *_telling_problems(schema.unit, candidates, sketches, counter, privacy),
    ]
    content = Content(
        min((sketch.share for sketch in sketches.values()), default=1.0),
        distinct,
        tuple(each for each in overlaps if each.n_values or each.n_rows),
        kinds,
        () if schema.unit else tuple(_find_repetitions(persons, sketches, counter)),
    )
    return content, problems


def _find_repetitions(
    persons: list[Column], sketches: Mapping[str, Sketch], counter: ContentCounter
) -> Iterator[Repetition]:
    """Identifiers of persons who have several rows. Only those are counted whose sketches leave no
    doubt that people see a value in several rows."""
    for c in persons:
        own, n_kept = sketches[c.id], len(sketches[c.id].hashes)
        n_rows = own.n_present
        most = n_kept if own.share >= 1.0 else (n_kept + 6 * sqrt(n_kept)) / own.share
        profile = ColumnProfile(c.name, c.source_type, n_rows, n_rows)
        if most >= n_rows or not profile.may_stand_for_persons:  # not even if all values differ
            continue
        n_values = counter.count_identities(c)
        if n_values < n_rows and replace(profile, n_distinct=n_values).may_stand_for_persons:
            yield Repetition(c.name, n_values, n_rows)


def compare_sketches(
    column: Column, person: Column, own: Sketch, others: Sketch, n_rows: int
) -> Overlap:
    """Compares a released column with an identifying one. They are equal in n_rows rows."""
    a, b = own.within(others.share), others.within(own.share)
    chance = expect_by_chance(_line(a.numbers), _line(b.numbers))
    # The rows of one value of the identifier, on average: by chance, a column is equal in one row
    # of each value.
    rows_by_chance = others.n_present / max(1.0, others.n_values)
    n_values = _count_shared(a.hashes, b.hashes)
    return Overlap(column.name, person.name, n_values, chance, n_rows, rows_by_chance)


def _count_shared(a: Ints, b: Ints) -> int:
    """The hashes that two sketches share."""
    return len(np.intersect1d(a, b, assume_unique=True))


def _line(numbers: Floats) -> Floats:
    return np.sort(numbers[~np.isnan(numbers)])


def expect_by_chance(numbers: Floats, others: Floats) -> float:
    """The number of `numbers` that are expected among `others` by chance.

    Where the others use every second number of the line, every second number is expected to be
    among them. Texts are never equal by chance.

    Args:
        numbers: float64[u], ascending.
        others: float64[v], ascending. From the same sketch.
    """
    if not len(numbers) or len(others) < 2:
        return float(len(numbers) * len(others) > 0)
    width = min(N_NEIGHBOURS, len(others) - 1)
    place = np.searchsorted(others, numbers)
    first = np.clip(place - width // 2, 0, len(others) - 1 - width)
    span = others[first + width] - others[first]
    within = (numbers >= others[0]) & (numbers <= others[-1])
    return float(np.minimum(1.0, (width + 1) / (span + 1.0))[within].sum())


def _find_kinds(
    columns: list[Column], sketches: Mapping[str, Sketch], counter: ContentCounter
) -> dict[str, str]:
    """By name of a column that is released with values of the source, where bytes are read as
    texts: what these look like."""
    kinds = {}
    for c in columns:
        own, is_text = sketches[c.id], pa.types.is_string(c.type) or pa.types.is_binary(c.type)
        if _hides_values(c) or not (is_text or _has_long_numbers(c.type, own)):
            continue
        texts = counter.list_texts(c) if is_text else _list_numbers(own)
        kind = find_main_kind(count_kinds(texts), is_number=not is_text)
        words = translate_name(c.name).union(name_words(c.name))
        sizes = (own.n_values, own.n_present)
        if kind and is_sure(kind, *sizes, words=words, is_number=not is_text):
            kinds[c.name] = kind
    return kinds


def _list_numbers(sketch: Sketch) -> list[str]:
    """Some values of a column of numbers, as `list_texts` of direct identifiers gives them: the
    whole ones of the least hashes, so that the order of rows changes nothing."""
    from anonlib.table.hashes import hash_values  # this imports numba

    whole = sketch.numbers[np.isfinite(sketch.numbers)]
    n_values = min(len(sketch.numbers), MOST_TEXTS)
    n_whole = round(n_values * len(whole) / max(1, len(sketch.numbers)))
    least = np.argsort(hash_values(pa.array(whole)), kind="stable")[:n_whole]
    texts = [str(int(n)) if 0 <= n < 1e18 else "" for n in whole[least].tolist()]
    return texts + [""] * (n_values - n_whole)


def _has_long_numbers(type: pa.DataType, sketch: Sketch) -> bool:
    """Whether a column of numbers has some with as many digits as those that reach a person."""
    return is_number(type) and bool((sketch.numbers >= LEAST_NUMBER).any())


def _direct_problems(kinds: Mapping[str, str], privacy: PrivacySection) -> Iterator[Problem]:
    """Columns whose values reach a person by themselves, in whatever role."""
    for name, kind in kinds.items():
        if kind in DIRECT_KINDS and not privacy.names_unique(name):
            yield Problem(
                f"column {name}",
                f"shows who a person is: it seems to have {kind}, and the release would "
                f"have some of them (told by {tell_signs(kind)}); give it `role: drop`, or, if it "
                "is something else, name it under privacy.acknowledge_unique. How each is told: "
                "docs/privacy/protection.md, Texts that reach a person",
            )


def _overlap_problems(
    overlaps: list[Overlap],
    distinct: Mapping[str, int],
    present: Mapping[str, int],
    rich: Collection[str],
    privacy: PrivacySection,
) -> Iterator[Problem]:
    """Columns with values of an identifier. rich: the identifiers with more than a few values."""
    for pair in overlaps:
        few = distinct[pair.column] <= MAX_HARMLESS_VALUES
        repeats = pair.n_rows >= NEARLY_ALL * present[pair.column]
        # Texts and rare numbers do not come by chance.
        typed = pair.by_chance < 1 and pair.identifier in rich
        if pair.shows and (repeats or typed or not few) and not privacy.names_unique(pair.column):
            yield Problem(
                f"column {pair.column}",
                f"shows who a person is: it shares more values with column {pair.identifier} than "
                f"chance explains, and equals it in {pair.n_rows} rows; give it `role: drop` or "
                "mend the source, or name it under privacy.acknowledge_unique",
            )


def _made_problems(
    pairs: list[tuple[Column, Column]],
    sketches: Mapping[str, Sketch],
    counter: ContentCounter,
    privacy: PrivacySection,
) -> Iterator[Problem]:
    """Columns whose values are made of the identifier in the same row. They are nearly as many; if
    they are few, nearly all are made of it."""
    pairs = [
        (c, p)
        for c, p in pairs
        if not (_hides_values(c) or privacy.names_unique(c.name))
        if sketches[c.id].n_values > MAX_ACCIDENTS
        if sketches[c.id].n_values >= 0.5 * sketches[p.id].n_values
    ]
    if not pairs:
        return
    counts = counter.count_parts(pairs, (MIN_PART, MIN_USUAL_PART))
    for (c, p), n_made in zip(pairs, counts, strict=True):
        few = sketches[c.id].n_values <= MAX_HARMLESS_VALUES
        shares = (NEARLY_ALL, NEARLY_ALL) if few else (CHANCE_SHARE, 0.5)
        for n, most in zip(n_made, shares, strict=True):
            if n <= max(MAX_ACCIDENTS, most * sketches[c.id].n_present):
                continue
            yield Problem(
                f"column {c.name}",
                f"shows who a person is: in {n} rows it is a part, a hash or another form of "
                f"column {p.name}; give it `role: drop`, or name it under "
                "privacy.acknowledge_unique",
            )
            break


def _hides_values(column: Column) -> bool:
    """Whether the column is released as means, nodes and the like."""
    return column.role is Role.QUASI_IDENTIFIER and column.recoder.blends


def is_key(n_values: int, n_rows: int) -> bool:
    """Whether nearly every row has a value of its own, and there are more values than a few."""
    return n_values > MAX_HARMLESS_VALUES and n_values >= NEARLY_ALL * n_rows


def _key_problems(
    columns: list[Column],
    sketches: Mapping[str, Sketch],
    counter: ContentCounter,
    privacy: PrivacySection,
    protected_names: frozenset[str],
) -> Iterator[Problem]:
    for c in columns:
        n, n_values = sketches[c.id].n_present, round(sketches[c.id].n_values)
        # Combinations of insensitive columns are counted elsewhere.
        protected = c.role in (Role.QUASI_IDENTIFIER, Role.INSENSITIVE) or c.name in protected_names
        if protected or privacy.acknowledges_unique(c.name):
            continue
        if n_values <= MAX_HARMLESS_VALUES or n_values < 0.9 * NEARLY_ALL * n:
            continue
        exact = counter.count_distinct(c)
        if is_key(exact, n):
            yield Problem(
                f"column {c.name}",
                f"is a key: {exact} distinct values in {n} rows, published unchanged; give it "
                "`role: drop` or coarsen it, protect it by a model such as l_diversity, or name it "
                "under privacy.acknowledge_unique",
            )


def _repeated_problems(
    columns: list[Column],
    sketches: Mapping[str, Sketch],
    counter: ContentCounter,
    privacy: PrivacySection,
) -> Iterator[Problem]:
    """Columns that are released unchanged and equal a quasi-identifier, have one value for each of
    its values, or are it in another form."""
    quasi = [c for c in columns if c.role is Role.QUASI_IDENTIFIER]
    for c in columns:
        if c.role is Role.QUASI_IDENTIFIER or privacy.names_unique(c.name):
            continue
        for q in quasi:
            if says := _tell_repetition(c, q, sketches, counter):
                yield Problem(
                    f"column {c.name}",
                    f"{says}, and would be published unchanged; give it `role: drop`, or name it "
                    "under privacy.acknowledge_unique",
                )


def _tell_repetition(
    c: Column, q: Column, sketches: Mapping[str, Sketch], counter: ContentCounter
) -> str:
    """How a column repeats a quasi-identifier; empty if it does not."""
    own, other = sketches[c.id], sketches[q.id]
    n_present, n_values = own.n_present, own.n_values
    rich, few = n_values > 0.5 * n_present, n_values <= MAX_HARMLESS_VALUES
    if _alike(own.within(other.share).hashes, other.within(own.share).hashes):
        n = counter.count_equal(c, q)
        if n >= NEARLY_ALL * n_present and not (few and _is_by_chance(n, c, q, own, counter)):
            return f"equals the quasi-identifier {q.name} in {n} rows"
    elif not (rich or few) and 0.8 <= n_values / max(1.0, other.n_values) <= 1.25:
        n, n_other, n_pairs = counter.count_pairs(c, q, own.share)
        if NEARLY_ALL * n_pairs <= min(n, n_other):
            n_all = round(n / own.share)
            return f"has one value for each of the quasi-identifier {q.name}, {n_all} in all"
    # Combinations of insensitive columns with quasi-identifiers are counted elsewhere.
    if c.role is not Role.INSENSITIVE and counter.is_form_of(c, q):
        return f"is the quasi-identifier {q.name} in another form, in nearly all rows"
    return ""


def _is_by_chance(n: int, c: Column, q: Column, own: Sketch, counter: ContentCounter) -> bool:
    """Whether two columns may be equal in n of nearly all rows by chance, as two rare flags are."""
    if n == own.n_present:
        return False
    return correct_chance(n / own.n_present, counter.expect_equal(c, q)) < BY_CHANCE


def _alike(a: Ints, b: Ints) -> bool:
    """Whether two columns have nearly the same values, and more than one."""
    n_shared = _count_shared(a, b)
    return len(a) > 1 and n_shared >= 0.8 * (len(a) + len(b) - n_shared)


def _telling_problems(
    unit: tuple[str, ...],
    columns: list[Column],
    sketches: Mapping[str, Sketch],
    counter: ContentCounter,
    privacy: PrivacySection,
) -> Iterator[Problem]:
    """Columns with values that several rows have, but only one person."""
    n_persons = max((sketches[id].n_values for id in unit if id in sketches), default=0.0)
    if n_persons <= MAX_HARMLESS_VALUES:
        return
    for c in columns:
        if c.role is Role.QUASI_IDENTIFIER or privacy.names_unique(c.name):
            continue
        if sketches[c.id].n_values < 0.8 * n_persons:
            continue
        n, alone = counter.count_alone(c)
        if n >= MAX_ACCIDENTS and alone >= NEARLY_ALL * n:
            yield Problem(
                f"column {c.name}",
                f"tells whose a row is: of the {n} values that several rows have, {alone} belong "
                "to one person each; give it `role: drop` or coarsen it, or name it under "
                "privacy.acknowledge_unique",
            )
