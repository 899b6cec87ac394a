"""The rules of the content gate at their limits, by sketches and counts as its two engines give
them. What they find in tables is tested in `test_gate_in_memory.py`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.config.model import PrivacySection
from anonlib.content.content_rules import (
    Content,
    ContentCounter,
    Overlap,
    Repetition,
    Sketch,
    _list_numbers,
    bound_hashes,
    expect_by_chance,
    judge_columns,
    list_compared,
)
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.schema import Column, Role, Schema

TEXT = pa.string()


class Blend:
    """A recoder whose values are of a whole class."""

    blends = True


def column(name: str, role: Role, type: pa.DataType = TEXT) -> Column:
    recoder = Blend() if role is Role.QUASI_IDENTIFIER else None
    return Column(name, name, role, type, "string", recoder=recoder)


def sketch(
    n_values: int, n_present: int = 1000, *, first: int = 0, share: float = 1.0, numbers: Any = ()
) -> Sketch:
    """That of a column with the texts `first`, `first` + 1 and so on, and these numbers at the
    begin of them."""
    line = np.full(n_values, np.nan)
    line[: len(numbers)] = numbers
    return Sketch(share, np.arange(first, first + n_values), line, n_present)


@dataclass
class Counts(ContentCounter):
    """What counts say; those without a figure must not be asked for: each is a pass.

    Attributes:
        made: For what is made of another column: letters and digits that it shows, and rows.
    """

    equal: int | None = None
    distinct: int | None = None
    identities: int | None = 0
    pairs: tuple[int, int, int] | None = None
    made: Sequence[tuple[int, int]] | None = None
    alone: tuple[int, int] | None = None
    form: bool = False
    chance: float = 0.0
    texts: Sequence[str] = ()
    shares: list[float] = field(default_factory=list)

    def count_equal(self, column: Column, other: Column) -> int:
        assert self.equal is not None
        return self.equal

    def expect_equal(self, column: Column, other: Column) -> float:
        return self.chance

    def count_distinct(self, column: Column) -> int:
        assert self.distinct is not None
        return self.distinct

    def count_identities(self, column: Column) -> int:
        assert self.identities is not None
        return self.identities

    def count_pairs(self, column: Column, other: Column, share: float) -> tuple[int, int, int]:
        assert self.pairs is not None
        self.shares.append(share)
        return self.pairs

    def count_parts(
        self, pairs: Sequence[tuple[Column, Column]], sizes: Sequence[int]
    ) -> list[list[int]]:
        assert self.made is not None
        shown = [sum(n for letters, n in self.made if letters >= size) for size in sizes]
        return [shown for _ in pairs]

    def is_form_of(self, column: Column, quasi: Column) -> bool:
        return self.form

    def list_texts(self, column: Column) -> list[str]:
        return [*self.texts]

    def count_alone(self, column: Column) -> tuple[int, int]:
        assert self.alone is not None
        return self.alone


FAR = 10**6


def judge(
    x: Sketch,
    counts: Counts | None = None,
    *,
    person: Sketch | None = None,
    quasi: Sketch | None = None,
    n_equal: int = 0,
    unit: tuple[str, ...] = (),
) -> tuple[Content, list[str]]:
    """What is found of a sensitive column x beside an identifier, by default one of many values
    that x has not, and a quasi-identifier, if there is one."""
    sketches = {"id": person or sketch(10**5, first=FAR), "x": x}
    columns = [column("id", Role.IDENTIFIER), column("x", Role.SENSITIVE)]
    if quasi is not None:
        sketches["q"] = quasi
        columns.append(column("q", Role.QUASI_IDENTIFIER))
    equal = {("x", "id"): n_equal, ("q", "id"): 0}
    privacy = PrivacySection(models=(KAnonymity(k=2),))
    schema = Schema(tuple(columns), unit)
    counts = counts or Counts()
    content, problems = judge_columns(schema, sketches, equal, counts, privacy, frozenset())
    assert {problem.where for problem in problems} <= {"column x"}
    return content, [problem.text for problem in problems]


def says(text: str, *how: Any, **given: Any) -> bool:
    """Whether just that is found."""
    found = judge(*how, **given)[1]
    assert len(found) <= 1
    return any(text in each for each in found)


# --- sketches and chance


@pytest.mark.parametrize(
    ("share", "most"),
    [(1.0, 2**63 - 1), (0.75, 2**62), (0.5, 0), (0.25, -(2**62)), (0.0, -(2**63))],
)
def test_a_share_of_all_hashes(share: float, most: int) -> None:
    assert bound_hashes(share) == most


def test_a_part_of_a_sketch() -> None:
    whole = Sketch(0.75, np.array([-9, 0, 1, 2**62]), np.array([1.0, 2.0, 3.0, 4.0]), 80)
    assert whole.n_values == pytest.approx(4 / 0.75)
    half = whole.within(0.5)
    assert (half.share, half.n_present, half.n_values) == (0.5, 80, 4.0)
    assert half.hashes.tolist() == [-9, 0]
    assert half.numbers.tolist() == [1.0, 2.0]
    assert whole.within(1.0) is whole


@pytest.mark.parametrize(
    ("numbers", "others", "expected"),
    [
        ([], [1, 2], 0.0),
        ([5], [], 0.0),
        ([5], [7], 1.0),  # how densely numbers lie, one does not tell
        ([0, 5, 20], [0, 9], 2 * 0.2),  # two of ten numbers, for those within
        ([-1, 0, 199, 200], range(200), 2.0),
        (np.arange(200) / 4, np.arange(200) / 4, 200.0),  # times: each is there at most
        ([0], [0, *range(10**6, 10**6 + 200)], 101 / (10**6 + 100)),
    ],
)
def test_what_chance_explains(numbers: Any, others: Any, expected: float) -> None:
    found = expect_by_chance(np.array(numbers, np.float64), np.array(others, np.float64))
    assert found == pytest.approx(expected)


def test_neighbours_on_both_sides_count() -> None:
    """Numbers beside a gap are as rare from above as from below."""
    others = np.array([*range(0, 2000, 2), *range(10**9, 10**9 + 4000, 4)], np.float64)
    numbers = np.arange(1801, 2000, 2.0)
    found, mirrored = (
        expect_by_chance(numbers, others),
        expect_by_chance(-numbers[::-1], -others[::-1]),
    )
    assert found == pytest.approx(25, rel=0.1)
    assert found == pytest.approx(mirrored, rel=0.05)


@pytest.mark.parametrize(
    ("n_values", "chance", "n_rows", "rows", "shows"),
    [
        (21, 4.0, 0, 1.0, False),  # 4, six deviations of 2, and 5 accidents
        (22, 4.0, 0, 1.0, True),
        (0, 4.0, 17, 2.0, False),
        (0, 4.0, 18, 2.0, True),
    ],
)
def test_more_than_chance_explains(
    n_values: int, chance: float, n_rows: int, rows: float, shows: bool
) -> None:
    assert Overlap("x", "id", n_values, chance, n_rows, rows).shows is shows


# --- what is compared, and kept


def test_columns_that_are_compared() -> None:
    """A column of the unit identifies, whatever its role. Lists are not compared, and truth values
    only with quasi-identifiers: they do not identify persons."""
    types = [pa.string(), pa.binary(), pa.int64(), pa.bool_(), pa.list_(pa.int64())]
    columns = [column(f"x{i}", Role.SENSITIVE, type) for i, type in enumerate(types)]
    columns.append(replace(column("p", Role.IDENTIFIER), pseudonym=True))
    columns.append(column("b", Role.IDENTIFIER, pa.bool_()))
    persons, candidates = list_compared(Schema((*columns,), unit=("x2",)))
    assert [each.name for each in persons] == ["x2", "p"]
    assert [each.name for each in candidates] == ["x0", "x1", "x2", "x3"]


def test_figures_for_the_record() -> None:
    """Pairs that have values in common, or equal rows."""
    x, person = sketch(4, share=0.5), sketch(1, 10)
    for n_equal in (0, 3):
        content = judge(x, Counts(made=()), person=person, n_equal=n_equal)[0].to_dict()
        pair = {"column": "x", "identifier": "id", "n_values": 1, "by_chance": 0.0}
        # An identifier of one value is equal in all of its rows by chance.
        pair |= {"n_rows": n_equal, "rows_by_chance": 10.0}
        assert json.loads(json.dumps(content)) == {
            "share": 0.5,
            "distinct": {"x": 8},
            "shared": [pair],
            "kinds": {},
            "repetitions": [],
        }
    assert judge(x, n_equal=3)[0].overlaps[0].n_values == 0
    assert judge(x)[0].overlaps == ()
    nothing = judge_columns(Schema(()), {}, {}, Counts(), PrivacySection(models=()), frozenset())
    assert nothing == (Content(1.0, {}, (), {}), [])


# --- identifiers of persons


@pytest.mark.parametrize(
    ("name", "n_values", "share", "identities", "is_told"),
    [
        ("patient_id", 60, 1.0, 60, True),
        ("patient_id", 600, 1.0, 1000, False),  # as people see texts, two persons have one
        ("patient_id", 600, 1.0, 999, True),
        ("patient_id", 999, 1.0, 999, True),
        ("patient_id", 1000, 1.0, None, False),
        ("patient_id", 300, 0.5, 601, True),
        ("patient_id", 485, 0.5, None, False),  # 970 by estimate: that may be 1000
        ("patient_id", 0, 1.0, None, False),
        ("surname", 60, 1.0, None, False),
    ],
)
def test_identifiers_of_persons_that_repeat(
    name: str, n_values: int, share: float, identities: int | None, is_told: bool
) -> None:
    """Persons are counted only where sketches leave no doubt. With a unit its persons are."""
    schema = Schema((column(name, Role.IDENTIFIER), column("u", Role.DROP)))
    n_present = 1000 if n_values else 0
    sketches = dict.fromkeys((name, "u"), sketch(n_values, n_present, share=share))
    privacy = PrivacySection(models=(KAnonymity(k=2),))
    counts = Counts(identities=identities)
    found = judge_columns(schema, sketches, {}, counts, privacy, frozenset())[0].repetitions
    assert found == ((Repetition(name, identities or 0, n_present),) if is_told else ())
    by_unit = replace(schema, unit=("u",))
    content, _ = judge_columns(by_unit, sketches, {}, Counts(), privacy, frozenset())
    assert content.repetitions == ()


# --- texts and numbers that reach a person


MAILS, NAMES = (
    [each.format(chr(97 + i // 26), chr(97 + i % 26)) for i in range(40)]
    for each in ("{}{}@example.org", "Ann B{}{}")
)
NUMBER, MOMENT = pa.int64(), pa.timestamp("us")


@pytest.mark.parametrize(
    ("role", "type", "texts", "listed", "kind", "shows"),
    [
        (Role.SENSITIVE, TEXT, MAILS, False, "e-mail addresses", True),
        (Role.SENSITIVE, TEXT, MAILS, True, "e-mail addresses", False),
        (Role.SENSITIVE, TEXT, NAMES, False, "names of persons", False),  # perhaps of towns
        (Role.QUASI_IDENTIFIER, TEXT, MAILS, False, None, False),  # it releases no text of one row
        (Role.SENSITIVE, NUMBER, [], False, "phone numbers", True),
        (Role.SENSITIVE, MOMENT, [], False, None, False),
    ],
)
def test_columns_that_reach_a_person(
    role: Role, type: pa.DataType, texts: list[str], listed: bool, kind: str | None, shows: bool
) -> None:
    phones = [] if texts else range(4_915_112_345_600, 4_915_112_345_640)
    own, counts = {"x": sketch(40, 40, numbers=phones)}, Counts(distinct=0, texts=texts)
    schema = Schema((column("x", role, type),))
    privacy = PrivacySection(models=(), acknowledge_unique=["x"] if listed else False)
    content, problems = judge_columns(schema, own, {}, counts, privacy, frozenset())
    assert content.kinds == ({} if kind is None else {"x": kind})
    assert [f"it seems to have {kind}" in each.text for each in problems] == [True] * shows


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([], []),
        ([7.0], ["7"]),
        ([0.0, -1.0, 1e18, 10.0**17], ["", "", "0", str(10**17)]),
        ([5.0, np.nan, 6.0, np.nan, np.inf], ["", "", "", "5", "6"]),
    ],
)
def test_numbers_that_are_looked_at_as_texts(numbers: list[float], texts: list[str]) -> None:
    """Those that are not whole, below 0 or too long count, too."""
    assert sorted(_list_numbers(sketch(len(numbers), numbers=numbers))) == texts


# --- values of an identifier


SHARES = "it shares more values with column id"


@pytest.mark.parametrize(("n", "shows"), [(20, False), (21, True)])
def test_rows_equal_to_an_identifier_of_dense_numbers(n: int, shows: bool) -> None:
    """Where a column has few values, equal rows may be flags."""
    x, person = sketch(n, 100, numbers=range(n)), sketch(100, 100, first=FAR, numbers=range(100))
    assert says(SHARES, x, Counts(made=()), person=person, n_equal=94) is shows


@pytest.mark.parametrize(("n_equal", "shows"), [(94, False), (95, True)])
def test_few_values_in_nearly_all_rows(n_equal: int, shows: bool) -> None:
    x, person = sketch(3, 100, numbers=range(3)), sketch(100, 100, first=FAR, numbers=range(100))
    assert says(SHARES, x, person=person, n_equal=n_equal) is shows


@pytest.mark.parametrize(("numbers", "shows"), [((), True), ((7,), False), ((7, 9, 10), False)])
def test_few_values_that_do_not_come_by_chance(numbers: tuple[int, ...], shows: bool) -> None:
    """Texts and rare numbers. One number alone, or more than one that chance explains, are none."""
    x, person = sketch(20, numbers=numbers), sketch(30, numbers=numbers)
    if len(numbers) > 1:
        assert 1 < expect_by_chance(*2 * [np.array(numbers, np.float64)]) < 3
    assert says(SHARES, x, Counts(made=()), person=person) is shows


@pytest.mark.parametrize(("n", "shows"), [(20, False), (21, True)])
def test_few_values_of_an_identifier_of_few(n: int, shows: bool) -> None:
    x, person = sketch(12), sketch(n)
    assert says(SHARES, x, Counts(made=()), person=person) is shows


# --- forms of an identifier


MADE = "is a part, a hash or another form of column id"


@pytest.mark.parametrize(
    ("n_values", "n_persons", "looked_at"),
    [(5, 10, False), (6, 12, True), (6, 13, False), (50, 100, True), (49, 100, False)],
)
def test_columns_with_about_as_many_values_may_be_made_of_it(
    n_values: int, n_persons: int, looked_at: bool
) -> None:
    person = sketch(n_persons, first=FAR)
    counts = Counts(made=[(9, 1000)] if looked_at else None)
    assert says(MADE, sketch(n_values), counts, person=person) is looked_at


@pytest.mark.parametrize(
    ("n_values", "n_present", "made", "shows"),
    [
        # Of many values, some rows will do: six letters are no coincidence.
        (21, 1000, [(6, 6)], True),
        (21, 1000, [(6, 5)], False),
        (21, 1000, [(5, 500)], False),
        # In a large table a few rows are.
        (21, 10_000, [(6, 10)], False),
        (21, 10_000, [(6, 11)], True),
        # Two letters in more than half of the rows are none.
        (21, 1000, [(2, 501)], True),
        (21, 1000, [(2, 500)], False),
        (21, 1000, [(1, 1000)], False),
        # Of few values, nearly all must be.
        (20, 1000, [(6, 950)], False),
        (20, 1000, [(2, 951)], True),
    ],
)
def test_rows_that_show_the_identifier(
    n_values: int, n_present: int, made: list[tuple[int, int]], shows: bool
) -> None:
    x, person = sketch(n_values, n_present), sketch(30, first=FAR)
    assert says(MADE, x, Counts(made=made), person=person) is shows


# --- keys


@pytest.mark.parametrize(
    ("n_values", "n_present", "distinct", "shows"),
    [
        (100, 100, 95, True),
        (100, 100, 94, False),
        (90, 100, 96, True),  # the sketch may be an estimate
        (85, 100, None, False),
        (21, 21, 21, True),
        (21, 21, 20, False),
        (20, 20, None, False),
    ],
)
def test_keys(n_values: int, n_present: int, distinct: int | None, shows: bool) -> None:
    counts = Counts(distinct=distinct)
    found = says(f"is a key: {distinct} distinct values", sketch(n_values, n_present), counts)
    assert found is shows


# --- copies of a quasi-identifier


@pytest.mark.parametrize(
    ("n_values", "n_others", "equal", "shows"),
    [
        (10, 10, 950, True),
        (10, 10, 949, False),
        (8, 10, 950, True),  # four of five values of both
        (7, 10, None, False),
        (2, 2, 1000, True),
        (1, 1, None, False),  # a constant
    ],
)
def test_columns_that_equal_a_quasi_identifier(
    n_values: int, n_others: int, equal: int | None, shows: bool
) -> None:
    quasi = sketch(n_others)
    says_so = f"equals the quasi-identifier q in {equal} rows"
    assert says(says_so, sketch(n_values), Counts(equal=equal), quasi=quasi) is shows
    # That all rows are equal is no chance.
    for chance, explains in ((0.899, False), (0.901, True)):
        counts = Counts(equal=equal, chance=chance)
        found = says(says_so, sketch(n_values), counts, quasi=quasi)
        assert found is (shows and not (explains and equal == 950))


CODED = "has one value for each of the quasi-identifier q, "


@pytest.mark.parametrize(
    ("n_values", "n_present", "n_others", "pairs", "shows"),
    [
        (100, 1000, 100, (95, 96, 100), True),
        (100, 1000, 100, (96, 95, 100), True),
        (100, 1000, 100, (96, 94, 100), False),
        (100, 1000, 100, (94, 96, 100), False),
        (80, 1000, 100, (80, 80, 80), True),
        (79, 1000, 100, None, False),
        (125, 1000, 100, (100, 100, 100), True),
        (126, 1000, 100, None, False),
        (100, 1000, 0, None, False),
        # So many, or so few, that others may well have one each.
        (100, 200, 100, (100, 100, 100), True),
        (100, 199, 100, None, False),
        (20, 1000, 20, None, False),
        (21, 1000, 21, (21, 21, 21), True),
    ],
)
def test_columns_with_a_value_for_each_of_a_quasi_identifier(
    n_values: int, n_present: int, n_others: int, pairs: Any, shows: bool
) -> None:
    x, quasi = sketch(n_values, n_present), sketch(n_others, first=2 * FAR)
    assert says(CODED, x, Counts(pairs=pairs), quasi=quasi) is shows


def test_codes_that_share_some_values_with_their_quasi_identifier() -> None:
    """As codes of ages do that are numbers."""
    x, quasi, counts = sketch(100), sketch(100, first=90), Counts(pairs=(100, 100, 100))
    assert says(CODED, x, counts, quasi=quasi)


def test_codes_are_counted_in_the_share_of_the_sketch() -> None:
    x, quasi = sketch(50, share=0.25), sketch(200, first=2 * FAR)
    counts = Counts(pairs=(50, 50, 50))
    assert says(f"{CODED}200 in all", x, counts, quasi=quasi)
    assert counts.shares == [0.25]


def test_columns_that_are_a_quasi_identifier_in_another_form() -> None:
    """A sample tells it, whatever the sketches have in common."""
    says_so, counts = "is the quasi-identifier q in another form", Counts(form=True)
    assert says(says_so, sketch(30), counts, quasi=sketch(100, first=2 * FAR))
    assert says(says_so, sketch(2), counts, quasi=sketch(2, first=2 * FAR))
    assert says(says_so, sketch(10), Counts(equal=949, form=True), quasi=sketch(10))
    coded = Counts(pairs=(94, 96, 100), form=True)
    assert says(says_so, sketch(100), coded, quasi=sketch(100, first=2 * FAR))


# --- whose a row is


TELLS = "tells whose a row is: of the "


@pytest.mark.parametrize(
    ("n_values", "n_persons", "alone", "shows"),
    [
        (100, 100, (5, 5), True),
        (100, 100, (4, 4), False),
        (100, 100, (100, 95), True),
        (100, 100, (100, 94), False),
        (80, 100, (40, 40), True),
        (79, 100, None, False),
        (21, 21, (21, 21), True),
        (20, 20, None, False),
    ],
)
def test_values_of_one_person_each(
    n_values: int, n_persons: int, alone: tuple[int, int] | None, shows: bool
) -> None:
    person, unit = sketch(n_persons, first=FAR), ("id",)
    counts = Counts(made=(), alone=alone)
    assert says(TELLS, sketch(n_values), counts, person=person, unit=unit) is shows


def test_a_unit_of_columns_that_are_not_compared() -> None:
    """Truth values: of them alone there are few persons."""
    assert not says(TELLS, sketch(100), unit=("flag",))
