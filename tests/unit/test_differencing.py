"""What two releases tell together: candidates against a slow oracle, tables whose answer is known,
and releases in memory."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import anonlib
from anonlib.arrays import Ints
from anonlib.errors import ConfigError
from anonlib.measure import Figure
from anonlib.measure.attempts import estimate_rate
from anonlib.measure.risk._candidates import MOST_CANDIDATES, Candidates, number_values
from anonlib.measure.risk._passes import search_release
from anonlib.measure.risk.differencing import Differencing, are_told
from tests.attack_tables import AttackedCase, by_cells, figures_of, make_case

QUASI = {"role": "quasi_identifier"}
NUMBER = {**QUASI, "scale": "continuous"}
CONFIG: dict[str, Any] = {
    "source": {"format": "parquet", "path": "unused/source"},
    "attributes": {
        "age": {**QUASI, "scale": "continuous"},
        "grade": {**QUASI, "scale": "ordinal", "order": ["low", "mid", "top"]},
        "town": {**QUASI, "scale": "nominal"},
        "illness": {"role": "sensitive"},
    },
    "one_row_per_person": True,
    "recode": {"columns": {"age": "interval", "grade": "interval", "town": "set"}},
    "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
    "release": {"path": "unused/release"},
    "seed": 7,
}
OTHER: Any = Differencing(source={"format": "parquet", "path": "unused/other"})
RANK = {"low": 0, "mid": 1, "top": 2}


def people(n: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    illness = random.choice(["flu", "gout", "cold", "none", ""], n)
    return pa.table(
        {
            "age": random.integers(0, 9, n),
            "grade": random.choice([*RANK], n),
            "town": random.choice([*"abcd"], n),
            "illness": pa.array([str(each) or None for each in illness], pa.string()),
        }
    )


def cells_by(seed: int, size: int) -> Callable[[pa.Table], Ints]:
    """Cells of neighbours in a random order of the values, the same whoever else is there."""

    def choose(table: pa.Table) -> Ints:
        order = np.random.default_rng(seed).random(9)[table.column("c0").to_numpy()]
        return np.argsort(np.argsort(order, kind="stable")) // size

    return choose


def holds(row: dict[str, Any], person: dict[str, Any]) -> bool:
    """Whether a released row may be a person's, by the quasi-identifiers."""
    ends = row["c1"]
    return (
        row["c0"]["lower"] <= person["c0"] <= row["c0"]["upper"]
        and RANK[ends["lower"]] <= RANK[person["c1"]] <= RANK[ends["upper"]]
        and person["c2"] in row["c2"]
    )


def slow_candidates(person: dict[str, Any], released: pa.Table) -> set[str | None]:
    return {row["c3"] for row in released.to_pylist() if holds(row, person)}


def two_releases(n: int, seed: int, size: int, n_parts: int) -> AttackedCase:
    case = make_case(people(n, seed), CONFIG, by_cells(cells_by(seed, size)))
    other = by_cells(cells_by(seed + 1, size))(case.rows)
    return replace(case, other=other, n_parts=n_parts)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_candidates_are_the_values_of_classes_that_hold_a_person(
    seed: int, size: int, n_parts: int
) -> None:
    """Of the persons in the release there are some; of those held out there may be none."""
    case = two_releases(40, seed, size, n_parts)
    tables = case.attack_tables(0.3, 20)
    *known, secret = case.schema.released
    whole = partial(case.fold, released=True)
    for persons, released, fold in (
        (tables.members, case.make(case.rows), whole),
        (tables.others, tables.released, tables.fold_released),
    ):
        search = Candidates(persons, tuple(known), secret, case.encodings)
        [found] = search_release([search], fold)
        for person, numbers in zip(persons.to_pylist(), found, strict=True):
            expected = slow_candidates(person, released)
            assert expected or fold != whole
            names = pa.table({"c3": pa.array(sorted(expected, key=str), pa.string())})
            assert sorted(number_values(secret, names).tolist()) == numbers.tolist()


def test_of_released_numbers_the_nearest_rows_are_those_of_a_person() -> None:
    attributes = {"age": NUMBER, "illness": {"role": "sensitive"}}
    data = pa.table({"age": [1, 3, 11, 13, 40], "illness": [*"abcde"]})
    cells = by_cells(lambda table: np.searchsorted([10, 20], table.column("c0").to_numpy()))
    case = make_case(data, {**CONFIG, "attributes": attributes, "recode": {}}, cells)
    known, secret = case.schema.released
    search = Candidates(case.rows.table, (known,), secret, case.encodings)
    [found] = search_release([search], partial(case.fold, released=True))
    names = {1: "ab", 3: "ab", 11: "cd", 13: "cd", 40: "e"}
    for age, numbers in zip(case.rows.table.column("c0").to_pylist(), found, strict=True):
        expected = number_values(secret, pa.table({"c1": [*names[age]]}))
        assert numbers.tolist() == sorted(expected.tolist())


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 3))
def test_successes_are_those_of_an_oracle(seed: int, size: int, n_parts: int) -> None:
    case = two_releases(60, seed, size, n_parts)
    tables, ours = case.attack_tables(0.3, 2000), case.make(case.rows)
    members, others = (
        [person for person in each.to_pylist() if person["c3"] is not None]
        for each in (tables.members, tables.others)
    )
    n, succeeded = min(len(members), len(others)), 0
    for i in range(n):
        person = members[i * len(members) // n]
        own = person["c3"]
        a, b = (slow_candidates(person, each) for each in (ours, cast(pa.Table, case.other)))
        succeeded += len(a) > 1 and len(b) > 1 and a & b == {own}
    found = figures_of(case.findings(OTHER))
    assert found["attempts", "illness"] == n
    assert found["attack_rate", "illness"] == pytest.approx(estimate_rate(succeeded, n).value)


TOWNS: dict[str, Any] = {
    **CONFIG,
    "attributes": {"town": {**QUASI, "scale": "nominal"}, "illness": {"role": "sensitive"}},
    "recode": {"columns": {"town": "set"}},
}
#: Here {a, b} and {c, d} are together, there {a, c} and {b, d}.
HERE, THERE = {"a": 0, "b": 0, "c": 1, "d": 1}, {"a": 0, "b": 1, "c": 0, "d": 1}


#: Wages that nobody shares.
WAGES: dict[str, Any] = {
    **CONFIG,
    "attributes": {"age": NUMBER, "size": NUMBER, "wage": {"role": "sensitive"}},
    "recode": {"continuous": "interval"},
    "privacy": {**CONFIG["privacy"], "acknowledge_unique": ["wage"]},
}


def in_towns(together: dict[str, int]) -> Any:
    def choose(table: pa.Table) -> Ints:
        place = [together[town] for town in table.column("c0").to_pylist()]
        return np.unique(place, return_inverse=True)[1]

    return by_cells(choose)


def attack_towns(illness: dict[str, str], there: dict[str, int] = THERE, n: int = 400) -> Any:
    """The figures of persons who have the illness of their town."""
    town = [*"abcd"] * (n // 4)
    data = pa.table({"town": town, "illness": [illness[each] for each in town]})
    case = make_case(data, TOWNS, in_towns(HERE))
    return figures_of(replace(case, other=in_towns(there)(case.rows)).findings(OTHER))


def test_all_are_told_whose_illness_differs_from_all_others() -> None:
    found = attack_towns({"a": "flu", "b": "gout", "c": "cold", "d": "none"})
    assert found["attack_rate", "illness"] > 0.98


def test_what_one_release_tells_alone_is_no_success() -> None:
    """Persons of a and c are told there: all of their class have flu. Only b and d remain."""
    found = attack_towns({"a": "flu", "b": "gout", "c": "flu", "d": "cold"})
    n = found["attempts", "illness"]
    assert found["attack_rate", "illness"] == pytest.approx(0.5, abs=2 / n + 0.04)


def test_what_holds_for_a_town_is_no_risk_of_persons() -> None:
    """Who is held out is told by others of the town."""
    found = attack_towns({"a": "flu", "b": "gout", "c": "cold", "d": "none"})
    assert found["control_rate", "illness"] > 0.95
    assert found["low", "illness"] == 0


def test_the_same_release_once_more_tells_nothing() -> None:
    illness = {"a": "flu", "b": "gout", "c": "cold", "d": "none"}
    found = attack_towns(illness, HERE)
    n = found["attempts", "illness"]
    assert found["attack_rate", "illness"] == pytest.approx(estimate_rate(0, n).value)
    assert found["risk", "illness"] == 0


def test_persons_are_told_by_their_own_rows_only() -> None:
    """Classes of five along other columns: who is held out is not told, since this release lacks
    the wage."""
    random = np.random.default_rng(2)
    n = 600
    columns = {"age": random.random(n), "size": random.random(n)}

    def along(id: str) -> Any:
        def choose(table: pa.Table) -> Ints:
            rank = np.argsort(np.argsort(table.column(id).to_numpy()))
            return np.minimum(rank // 5, len(rank) // 5 - 1)

        return by_cells(choose)

    data = pa.table({**columns, "wage": random.permutation(n) / 8})
    case = make_case(data, WAGES, along("c0"))
    found = figures_of(replace(case, other=along("c1")(case.rows)).findings(OTHER))
    assert found["attack_rate", "wage"] > 0.9
    assert found["control_rate", "wage"] < 0.05
    assert found["risk", "wage"] > 0.85


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ([1, 2], [2, 3], True),
        ([1, 2], [1, 3], False),  # another value
        ([1, 2], [1, 2], False),  # two are left
        ([2], [2, 3], False),  # told by one alone
        ([1, 2], [2], False),
        ([], [2, 3], False),
        ([1, 3], [4, 5], False),
        (range(2, MOST_CANDIDATES + 2), [1, 2], True),
        (range(2, MOST_CANDIDATES + 3), [1, 2], False),  # too many to have seen all
    ],
)
def test_two_releases_tell_what_neither_tells_alone(
    ours: list[int], theirs: list[int], told: bool
) -> None:
    assert are_told(np.array(ours, np.int64), np.array(theirs, np.int64), 2) is told


def test_classes_with_many_values_are_cut_the_same_in_any_parts() -> None:
    attributes = {**TOWNS["attributes"], "illness": {"role": "sensitive"}}
    n = 3 * MOST_CANDIDATES
    data = pa.table({"town": ["a"] * n, "illness": [f"{i:03}" for i in range(n)]})
    config = {**TOWNS, "attributes": attributes}
    case = make_case(data, config, by_cells(lambda table: np.zeros(table.num_rows, np.int64)))
    known, secret = case.schema.released
    search = Candidates(case.rows.table.slice(0, 2), (known,), secret, case.encodings)
    every = np.sort(number_values(secret, case.rows.table))
    for n_parts in (1, 2, 7):
        fold = partial(replace(case, n_parts=n_parts).fold, released=True)
        for found in search_release([search], fold)[0]:
            assert found.tolist() == every[: MOST_CANDIDATES + 1].tolist()


def test_values_that_only_the_other_release_has_are_of_nobody_here() -> None:
    town = [*"abcd"] * 40
    illness = {"a": "flu", "b": "gout", "c": "cold", "d": "none"}
    data = pa.table({"town": town, "illness": [illness[each] for each in town]})
    for recoder in ("set", "lca"):
        config = {**TOWNS, "recode": {"columns": {"town": recoder}}}
        case = make_case(data, config, by_cells(lambda t: np.arange(t.num_rows) % 4))
        other = case.make(case.rows)
        strange = [["z"]] * 2 if recoder == "set" else ["z"] * 2
        more = pa.table({"c0": pa.array(strange, other.column("c0").type), "c1": ["flu", "gout"]})
        found = figures_of(replace(case, other=pa.concat_tables([other, more])).findings(OTHER))
        assert found["attack_rate", "illness"] == pytest.approx(
            estimate_rate(0, cast(int, found["attempts", "illness"])).value
        )


def test_what_can_not_be_attacked_says_why() -> None:
    def notes(data: pa.Table, config: dict[str, Any], other: pa.Table | None = None) -> set[str]:
        case = replace(make_case(data, config), other=other)
        return {figure.note for figure in case.findings(OTHER).figures}

    data = pa.table({"town": [*"ab"] * 20, "illness": [*"fg"] * 20})
    bare = {**TOWNS, "attributes": {"town": TOWNS["attributes"]["town"]}}
    assert notes(data.select(["town"]), bare) == {"no sensitive column is released"}
    hidden = {**TOWNS, "recode": {"columns": {"town": "suppress"}}}
    assert notes(data, hidden) == {"there is no quasi-identifier to compare by"}
    empty = pa.table({"c0": pa.array([], pa.list_(pa.string())), "c1": pa.array([], pa.string())})
    assert notes(data, TOWNS, empty) == {"one of both releases has no rows"}


def released(data: pa.Table, *, k: int, source: Any = None, **options: Any) -> Any:
    measures = [{"type": "differencing", "source": source, **options}] if source else ["moments"]
    config = {
        **WAGES,
        "privacy": {**WAGES["privacy"], "models": [{"type": "k_anonymity", "k": k}]},
        "evaluate": {"measures": measures},
    }
    return anonlib.anonymize(data, config)


def workers() -> pa.Table:
    random = np.random.default_rng(4)
    n = 300
    columns = {"age": random.integers(18, 80, n), "size": random.integers(150, 200, n)}
    return pa.table({**columns, "wage": random.permutation(n)})


def figures(*, k: int, source: Any, **options: Any) -> list[Figure]:
    evaluation = released(workers(), k=k, source=source, **options).evaluation
    return [figure for measure, figure in evaluation.figures() if measure == "differencing"]


def test_another_release_is_read_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "before.parquet"
    released(workers(), k=9).to_parquet(path)
    source = {"format": "parquet", "path": str(path)}
    found = {figure.name: figure.value or 0 for figure in figures(k=5, source=source)}
    assert found["attack_rate"] > found["control_rate"] + 0.03
    same = {figure.name: figure.value for figure in figures(k=9, source=source)}
    assert same["risk"] == 0


def test_what_is_wrong_with_the_other_release_is_noted(tmp_path: Path) -> None:
    path = str(tmp_path / "before.parquet")
    source = {"format": "parquet", "path": path}

    def note(**options: Any) -> str:
        found = figures(k=5, **{"source": source, **options})
        assert {figure.value for figure in found} == {None}
        return found[0].note

    assert "no Parquet files that can be read" in note()
    assert "from Parquet files only" in note(source={"format": "csv", "path": path})
    table = released(workers(), k=7).table
    parquet.write_table(table.drop_columns(["size"]), path)
    assert "columns: the table has no column size" in note()
    assert figures(k=5, source=source, columns=["age"])[0].value is not None
    strange = pa.array(["MARKER"] * len(table))
    parquet.write_table(table.set_column(0, "age", strange), path)
    assert "the column age is string there, and struct" in note()
    assert "MARKER" not in note()


@pytest.mark.parametrize(
    ("options", "where", "text"),
    [
        ({}, "source", "required"),
        ({"source": {"format": "delta"}}, "source.path", "required"),
        ({"source": {"format": "delta", "path": "p"}, "columns": ["agee"]}, "columns", "mean age?"),
        ({"source": {"format": "delta", "path": "p"}, "columns": ["illness"]}, "columns", "role"),
    ],
)
def test_problems_are_told_before_a_run(options: dict[str, Any], where: str, text: str) -> None:
    measures = [{"type": "differencing", **options}]
    with pytest.raises(ConfigError) as caught:
        anonlib.parse({**CONFIG, "evaluate": {"measures": measures}})
    (problem,) = caught.value.problems
    assert problem.where == f"evaluate.measures.0.{where}"
    assert text in problem.text
