"""What is told by what a kernel did not release: counts against slow oracles, and tables whose
answer is known."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import parse_csv
from anonlib.measure.attempts import Attempts
from anonlib.measure.case import Case
from anonlib.measure.risk._attack import Victims
from anonlib.measure.risk._candidates import NO_VALUE, number_values
from anonlib.measure.risk._cut_regions import MOST_CATEGORIES, Cutter
from anonlib.measure.risk._predicates import Predicates
from anonlib.measure.risk._regions import EVERYTHING, Range, Region, read_regions
from anonlib.measure.risk._released_classes import ClassSearch, ReleasedClass
from anonlib.measure.risk.minimality import (
    NOTHING,
    Minimality,
    can_fail,
    compare,
    count_least,
    count_most,
    list_splits,
    rate_guesses,
)
from anonlib.privacy import CellCounts, PrivacyModel, SparseCounts
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.t_closeness import TCloseness
from anonlib.recode.lca import Lca
from anonlib.recode.set import Set
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Role, Scale
from tests.attack_tables import AttackedCase, Make, by_cells, figures_of, make_case

QUASI = {"role": "quasi_identifier"}
TOWNS = "a;A;*\nb;A;*\nc;C;*\nd;C;*\n"
DIVERSE = [{"type": "k_anonymity", "k": 2}, {"type": "l_diversity", "l": 2}]


def make_config(attributes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "source": {"format": "parquet", "path": "unused/source"},
        "attributes": {**attributes, "illness": {"role": "sensitive"}},
        "one_row_per_person": True,
        "privacy": {"models": DIVERSE},
        "release": {"path": "unused/release"},
        "seed": 7,
        **changes,
    }


def mixed_case(seed: int, folder: Path, town: str, n_cells: int) -> AttackedCase:
    """A table of ranges and categories, with missing ones, in cells that overlap."""
    path = folder / "towns.csv"
    path.write_text(TOWNS)
    random, n = np.random.default_rng(seed), 32
    nominal = {**QUASI, "scale": "nominal"}
    attributes = {
        "age": {**QUASI, "scale": "continuous"},
        "grade": {**QUASI, "scale": "ordinal", "order": ["low", "mid", "top"]},
        "town": nominal if town in ("set", "flat") else {**nominal, "hierarchy": str(path)},
    }
    recoder = {"flat": "lca", "node": "lca"}.get(town, town)
    recode = {"columns": {"age": "interval", "grade": "interval", "town": recoder}}
    data = pa.table(
        {
            "age": random.integers(0, 9, n),
            "grade": random.choice(["low", "mid", "top"], n),
            "town": pa.array(random.choice([*"abcd", None], n).tolist(), pa.string()),
            "illness": pa.array(random.choice([*"xyz", None], n).tolist(), pa.string()),
        }
    )
    cells = random.integers(0, n_cells, n)
    # Neighbours by age, some of them dealt at random: some classes are within others.
    rank = np.argsort(np.argsort(data.column("age").to_numpy()))
    cells = np.where(random.random(n) < 0.3, cells, rank * n_cells // n)

    def choose(table: pa.Table) -> Any:
        return np.unique(cells[: table.num_rows], return_inverse=True)[1]

    return make_case(data, make_config(attributes, recode=recode), by_cells(choose))


def holds(region: Region, point: Region) -> bool:
    if region == EVERYTHING:
        return True
    if isinstance(region, Range):
        return isinstance(point, Range) and region.low <= point.low <= region.high
    return not isinstance(point, Range) and point <= region


def lies_in(inner: Region, outer: Region) -> bool:
    """Whether a released region lies in another one."""
    if outer == EVERYTHING or inner == EVERYTHING:
        return outer == EVERYTHING
    if isinstance(outer, Range):
        return isinstance(inner, Range) and outer.low <= inner.low <= inner.high <= outer.high
    return not isinstance(inner, Range) and inner <= outer


def read_all(columns: Sequence[Column], table: pa.Table, *, released: bool) -> list[Any]:
    """The regions of each row."""
    of_columns = (read_regions(c, table.column(c.id), released=released) for c in columns)
    return [*zip(*(each.regions() for each in of_columns), strict=True)]


FORMS = st.sampled_from(["set", "flat", "node", "proportional"])


@settings(max_examples=15)
@given(st.integers(0, 10**6), FORMS, st.integers(2, 9), st.integers(1, 4))
def test_classes_and_parts_are_those_of_slow_counts(
    tmp_path_factory: pytest.TempPathFactory, seed: int, form: str, n_cells: int, n_parts: int
) -> None:
    case = mixed_case(seed, tmp_path_factory.mktemp("towns"), form, n_cells)
    tables = replace(case.attack_tables(0.3, 20), n_parts=n_parts)
    *known, secret = case.schema.released
    columns, persons = tuple(known), pa.concat_tables([tables.members, tables.others])
    classes, place = ClassSearch(persons, columns, (secret,)).find(tables)
    points = read_all(columns, persons, released=False)
    rows = read_all(columns, tables.released, released=True)
    widths = {
        row: sum(holds(r, p) for point in points for r, p in zip(row, point, strict=True))
        for row in dict.fromkeys(rows)
    }
    for point, at in zip(points, place.tolist(), strict=True):
        holding = [row for row in widths if all(map(holds, row, point))]
        assert (at < 0) == (not holding)
        if holding:
            assert classes[at].regions in holding
            assert widths[classes[at].regions] == min(widths[row] for row in holding)
    for each in classes:
        assert each.n_rows == rows.count(each.regions)
        its = [i for i, row in enumerate(rows) if row == each.regions]
        present = [v for i in its if (v := tables.released.column(secret.id)[i].as_py())]
        assert sorted(each.values[0].values()) == sorted(map(present.count, {*present}))

    splits = list_splits(cast(Case, case), columns, persons, classes, place, 1)
    most = count_most(tables, Predicates.of(columns, splits.conjunctions)).reshape(-1, 2)
    least = count_least(tables, columns, splits, classes)
    register = tables.source.filter(
        pa.array(~tables.source.column("__anonlib_out").to_numpy(False))
    )
    members = read_all(columns, register, released=False)
    for i, at in enumerate(splits.place.tolist()):
        for side in (0, 1):
            conditions = splits.conjunctions[2 * i + side]
            inside = [all(holds(r, m[j]) for j, r in conditions) for m in members]
            within = sum(all(lies_in(row[j], r) for j, r in conditions) for row in rows)
            assert most[i, side] == sum(inside) - within
            # The released rows have the order of the register.
            own = zip(rows, inside, strict=True)
            true = sum(is_in for row, is_in in own if row == classes[at].regions)
            assert least[i, side] <= true <= max(most[i, side], 0)
            if most[i].sum() == classes[at].n_rows:
                assert least[i, side] == true
    for person, split in zip(splits.person.tolist(), splits.split.tolist(), strict=True):
        assert splits.place[split] == place[person]
        assert all(holds(r, points[person][j]) for j, r in splits.conjunctions[2 * split])


def town_column(recoder: Any, tree: Hierarchy | None) -> Column:
    nominal = Scale.NOMINAL
    return Column(
        *("town", "c0", Role.QUASI_IDENTIFIER, pa.string(), "string"),
        scale=nominal,
        recoder=recoder,
        hierarchy=tree,
    )


def test_parts_are_one_step_narrower() -> None:
    tree = Hierarchy.of(parse_csv("a;A;X;*\nb;A;X;*\nc;C;X;*\nd;C;X;*\ne;E;Y;*\n"))
    encoding = Encoding("c0", Scale.NOMINAL, missing=True, categories=pa.array([*"abcde"]))

    def cut(region: Region, own: Region, recoder: Any = None, tree: Any = tree) -> Any:
        return Cutter(town_column(recoder or Lca(), tree), encoding).cut(region, own)

    one, none = frozenset("a"), frozenset([None])
    assert cut(frozenset("abcd"), one) == (frozenset("ab"), frozenset("cd"))
    assert cut(frozenset("ab"), one) == (one, frozenset("b"))
    assert cut(one, one) is None
    assert cut(frozenset("cd"), one) is None
    # Missing values are a child of the root.
    assert cut(EVERYTHING, one) == (frozenset("abcd"), frozenset(["e", None]))
    assert cut(EVERYTHING, none) == (none, frozenset("abcde"))
    # E and Y hold the same value: both are the root's child.
    assert cut(EVERYTHING, frozenset("e")) == (frozenset("e"), frozenset([*"abcd", None]))
    # What is below the recoder's level is never released.
    assert cut(frozenset("ab"), one, Lca(level=1)) is None
    assert cut(frozenset("abcd"), one, Lca(level=1)) == (frozenset("ab"), frozenset("cd"))
    assert cut(frozenset("abcd"), one, Lca(level=2)) is None
    assert cut(EVERYTHING, one, Lca(level=3)) is None
    # Without a hierarchy, values are right under the root.
    assert cut(EVERYTHING, one, tree=None) == (one, frozenset([*"bcde", None]))
    assert cut(EVERYTHING, one, Lca(level=1), tree=None) is None
    many = pa.array([str(i) for i in range(MOST_CATEGORIES + 1)])
    root = Cutter(town_column(Lca(), None), replace(encoding, categories=many))
    assert root.cut(EVERYTHING, frozenset("1")) is None
    assert cut(one, one, tree=None) is None
    assert cut(frozenset([*"abc", None]), none, Set(), None) == (none, frozenset("abc"))
    assert cut(EVERYTHING, one, Set(), None) is None  # a null: most values are missing
    own = Range(3, 3)
    assert cut(Range(0, 10), own) == (Range(0, 5), Range(np.nextafter(5, 6), 10))
    assert cut(Range(0, 4), own) == (Range(np.nextafter(2, 3), 4), Range(0, 2))
    assert cut(Range(3, 3), own) is None
    assert cut(Range(-np.inf, 4), own) is None
    assert cut(EVERYTHING, own) is None


MODELS: list[PrivacyModel] = [
    LDiversity(l=2, attribute="c1"),
    LDiversity(l=3, attribute="c1"),
    LDiversity(l=2, kind="entropy", attribute="c1"),
    LDiversity(l=3, kind="entropy", attribute="c1"),
    LDiversity(l=2, kind="recursive", c=1.5, attribute="c1"),
    PSensitive(p=2, attribute="c1"),
    AlphaK(alpha=0.5, attribute="c1"),
]


def fails(model: PrivacyModel, values: Sequence[str | None]) -> bool:
    present = [value for value in values if value is not None]
    names = sorted({*present})
    count = np.array([present.count(name) for name in names], np.int64)
    n = np.array([len(values)])
    sparse = SparseCounts(np.zeros(len(names), np.int64), np.arange(len(names)), count)
    return not model.holds(CellCounts(n, n, {"c1": sparse}))[0]


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([*"uvwxy", None]), min_size=1, max_size=9),
    st.integers(1, 9),
    st.sampled_from(MODELS),
)
def test_a_part_can_fail_if_some_rows_of_the_class_do(
    values: list[str | None], size: int, model: PrivacyModel
) -> None:
    """Some rows with a value: persons without one are not attacked."""
    present = [value for value in values if value is not None]
    if not present or size > len(values):
        return
    counts = {i: present.count(value) for i, value in enumerate(sorted({*present}))}
    found = can_fail([model], [ReleasedClass((), len(values), (counts,))], 0, np.array([size]))
    parts = [part for part in combinations(values, size) if any(part)]
    assert found[0] == any(fails(model, part) for part in parts)


def test_what_is_compared_with_the_whole_table_is_taken_to_fail() -> None:
    classes = [ReleasedClass((), 6, ({1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1},))]
    size = np.array([6])
    assert can_fail([TCloseness(t=0.2, attribute="c1")], classes, 0, size).tolist() == [True]
    assert can_fail([LDiversity(l=2, attribute="c1")], classes, 0, size).tolist() == [False]
    assert can_fail([], classes, 0, size).tolist() == [False]


def streets(n_districts: int = 40) -> tuple[pa.Table, str]:
    """Districts of two streets, and their hierarchy. In street a of a district, three persons have
    the same illness; in street b, five persons have five other ones. As many of each street are
    held out; their illness is any but that of street a."""
    rows = []
    for district in range(n_districts):
        for place in range(16):
            street = "a" if place in (0, 1, 2, 8, 9, 10) else "b"
            illness = district if place < 3 else district + place - 2 if place < 8 else None
            if illness is None:
                illness = district + 1 + (district * 5 + place) % 7
            rows.append((f"{district}{street}", f"illness {illness % 8}", place < 8))
    street, illness, known = zip(*rows, strict=True)
    tree = "".join(f"{i}{letter};{i};*\n" for i in range(n_districts) for letter in "ab")
    return pa.table({"street": street, "known": known, "illness": illness}), tree


def street_case(
    folder: Path,
    kernel: str,
    models: Any = DIVERSE,
    make: Make | None = None,
    **changes: Any,
) -> AttackedCase:
    data, tree = streets()
    if "unit" in changes:  # the last two rows are of one person
        data = data.append_column("person", pa.array([*range(data.num_rows - 1), 638]))
    (folder / "streets.csv").write_text(tree)
    street = {**QUASI, "scale": "nominal", "hierarchy": str(folder / "streets.csv")}
    config = make_config(
        {"street": street, "known": {"role": "insensitive"}, "person": {"role": "drop"}},
        **{
            "recode": {"nominal": "lca"},
            "partition": {"steps": [{"type": "tuples"}]},
            "kernel": {"type": kernel},
            "privacy": {"models": models},
            **changes,
        },
    )
    if "unit" in changes:
        del config["one_row_per_person"]
    else:
        del config["attributes"]["person"]
    case = make_case(data, config, make)
    return replace(case, find_out=lambda table: ~table.column("c1").to_numpy(False))


@pytest.mark.parametrize("kernel", ["peel", "full_domain"])
def test_a_street_that_is_not_released_has_one_illness(tmp_path: Path, kernel: str) -> None:
    """k persons live in street a, and the others of the district hold the models without them. So
    they have one illness, and no other value of the district is frequent enough."""
    case = street_case(tmp_path, kernel)
    tables = case.attack_tables(0.3, 2000)
    assert {*tables.released.column("c0").to_pylist()} == {str(i) for i in range(40)}
    found = figures_of(case.findings(Minimality()))
    assert found["attack_rate", "illness"] > 0.95
    assert found["control_rate", "illness"] < 0.05
    assert found["risk", "illness"] > 0.9
    assert found["attempts", "illness"] == 3 * 40  # nobody of street b


def test_k_alone_tells_nothing(tmp_path: Path) -> None:
    case = street_case(tmp_path, "peel", DIVERSE[:1])
    assert notes_of(case) == {
        "no model looks at sensitive values: only k kept classes from being narrower"
    }


def notes_of(case: AttackedCase) -> set[str]:
    """The notes of figures that have no value."""
    figures = case.findings(Minimality()).figures
    assert {figure.value for figure in figures} == {None}
    return {figure.note for figure in figures}


def test_a_street_with_fewer_than_k_persons_tells_nothing(tmp_path: Path) -> None:
    """Three live in street a: at k = 3 it could be a class, at k = 4 the district has two parts of
    which k forbids one."""
    three, four = ([{"type": "k_anonymity", "k": k}, DIVERSE[1]] for k in (3, 4))
    found = figures_of(street_case(tmp_path, "peel", three).findings(Minimality()))
    assert found["risk", "illness"] > 0.9
    assert notes_of(street_case(tmp_path, "peel", four)) == {NOTHING}


def test_of_persons_with_several_rows_as_many_rows_count_as_k_surely_have(tmp_path: Path) -> None:
    """One person has two rows, and may live anywhere: k = 2 persons surely have four rows, and
    street a has three. The classes are the same."""
    blocks = {"partition": {"steps": [{"type": "kmeans"}], "max_rows": 1000}}
    alone = street_case(tmp_path, "greedy", **blocks)
    several = street_case(tmp_path, "greedy", unit=["person"], **blocks)
    districts = [case.attack_tables(0.3, 10).released.column("c0") for case in (alone, several)]
    assert sorted(districts[0].to_pylist()) == sorted(districts[1].to_pylist())
    assert figures_of(alone.findings(Minimality()))["risk", "illness"] > 0.9
    assert notes_of(several) == {NOTHING}


def test_of_released_values_nobody_sees_who_is_in_a_class(tmp_path: Path) -> None:
    plain = {"recode": {"nominal": "mode"}, "partition": {"max_rows": 1000}}
    case = street_case(tmp_path, "mdav_generic", **plain)
    assert notes_of(case) == {
        "not all quasi-identifiers are released as intervals, sets, nodes or shares"
    }


def test_equally_frequent_values_share_the_chance_and_a_missing_one_is_not_guessed() -> None:
    illness = Column("illness", "c1", Role.SENSITIVE, pa.string(), "string")
    persons = Victims(pa.table({"c1": ["flu", None, "cold", "gout", "flu"]}), 3)
    flu, none, cold, gout, _ = number_values(illness, persons.table).tolist()
    counts = [{flu: 2, cold: 2, gout: 1}, {flu: 3, gout: 1}]
    found = rate_guesses(persons, illness, {0: 0, 1: 0, 2: 1, 3: 0}, counts)
    assert none == NO_VALUE
    assert found.tolist() == pytest.approx([0.5, np.nan, 0, 0, np.nan], nan_ok=True)


def test_a_class_with_more_rows_than_the_register_has_persons_for_it_tells_nothing() -> None:
    """Three persons without an age are in no interval, so that nobody knows in which part of the
    class they are."""
    data = pa.table(
        {"age": [1, 2, 8, 9, None, None, None, 50], "illness": [*"aabbccdd"]},
        pa.schema([("age", pa.int64()), ("illness", pa.string())]),
    )
    config = make_config(
        {"age": {**QUASI, "scale": "continuous"}}, recode={"continuous": "interval"}
    )
    ages = by_cells(lambda t: (t.column("c0").fill_null(0).to_numpy() > 20).astype(np.int64))
    case = make_case(data, config, ages)
    case = replace(case, find_out=lambda table: np.zeros(table.num_rows, np.bool_))
    (age, illness), tables = case.schema.released, case.attack_tables(0.3, 10)
    persons = tables.members.filter(tables.members.column("c0").is_valid())
    classes, place = ClassSearch(persons, (age,), (illness,)).find(tables)
    splits = list_splits(cast(Case, case), (age,), persons, classes, place, 1)
    assert {classes[at].n_rows for at in splits.place.tolist()} == {7}
    assert count_least(tables, (age,), splits, classes).tolist() == [[0, 0]] * 2


def test_as_many_persons_held_out_are_attacked() -> None:
    inside, outside = np.array([1, np.nan, 0, 1, 0, 0.5]), np.array([np.nan, 0.5, 0])
    assert compare(inside, outside) == Attempts(2, 2.0, 2, 0.5)
    assert compare(inside, outside[:1]) == Attempts(5, 2.5, 0, 0)
    assert compare(outside, inside) == Attempts(2, 0.5, 2, 2.0)


def test_streets_that_are_released_tell_nothing(tmp_path: Path) -> None:
    """The same streets as classes of their own: nothing was kept back."""
    case = street_case(tmp_path, "peel", make=by_cells(number_streets))
    assert notes_of(case) == {NOTHING}


def number_streets(table: pa.Table) -> Any:
    return np.unique(table.column("c0").to_numpy(zero_copy_only=False), return_inverse=True)[1]


@pytest.mark.parametrize("kernel", ["peel", "full_domain"])
def test_of_shuffled_values_nothing_is_told(tmp_path: Path, kernel: str) -> None:
    case = street_case(tmp_path, kernel)

    def shuffle(rows: Any) -> pa.Table:
        released = case.make(rows)
        order = np.random.default_rng(5).permutation(released.num_rows)
        return released.set_column(2, "c2", released.column("c2").take(pa.array(order)))

    found = figures_of(replace(case, make=shuffle, cache={}).findings(Minimality()))
    low, high = found["low", "illness"], found["high", "illness"]
    assert low == 0
    assert high is not None
    assert 0 < high < 0.4
