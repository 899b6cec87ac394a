"""Releases of sweeps: the cells of `anonlib.cells`, recoded, and counted again."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonlib
from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.errors import AuditError, ConfigError, InfeasibleError, InputError
from anonlib.kernels.mdav import Mdav
from anonlib.local.engine import make_release
from anonlib.local.rows import read_rows
from anonlib.privacy.l_diversity import LDiversity
from anonlib.sweeps import point_release
from anonlib.sweeps.person_splits import split_persons
from anonlib.sweeps.point_release import release_point
from anonlib.table.columns import HASH
from anonlib.table.hashes import hash_values
from anonlib.table.row_numbers import number_classes
from anonlib.table.schema import Field, Schema

QUASI = {"role": "quasi_identifier"}
DIVERSE = [
    {"type": "k_anonymity", "k": 2},
    {"type": "l_diversity", "l": 2, "attribute": "illness"},
]


def frame(n: int = 80) -> pd.DataFrame:
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": random.integers(20, 60, n),
            "wage": np.where(np.arange(n) % 9 == 4, np.nan, random.normal(3000, 500, n)),
            "city": random.choice(["a", "b", "c"], n),
            "illness": random.choice(["x", "y", "z"], n),
        }
    )


def config(k: int = 4, **changes: Any) -> Any:
    base = {
        "source": {"format": "parquet", "path": "people"},
        "attributes": {
            "age": {**QUASI, "scale": "continuous"},
            "wage": {**QUASI, "scale": "continuous"},
            "city": {**QUASI, "scale": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": k}]},
        "partition": {"steps": [{"type": "single"}]},
        "recode": {"continuous": {"type": "centroid", "keep_type": False}},
        "release": {"path": "out"},
    }
    return parse({**base, **changes})


def as_source(data: pd.DataFrame, config: Any) -> tuple[pa.Table, Schema]:
    """The columns by id, and a hash of each row, as a source has them."""
    table = pa.Table.from_pandas(data, preserve_index=False)
    fields = [Field(f.name, str(f.type), f.type) for f in table.schema]
    table = table.rename_columns([f"c{i}" for i in range(len(fields))])
    hashes = pd.util.hash_pandas_object(data, index=False).to_numpy().view(np.int64)
    return table.append_column(HASH, pa.array(hashes)), resolve(config, fields)


def groups(ids: Any) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(ids == c).tolist()) for c in np.unique(ids)}


@pytest.mark.parametrize("kernel", ["mdav", "vmdav", "mondrian"])
def test_cells_and_values(kernel: str) -> None:
    data, chosen = frame(), config(kernel={"type": kernel})
    found = release_point(*as_source(data, chosen), chosen)
    scales = {"age": "continuous", "wage": "continuous", "city": "nominal"}
    expected = anonlib.cells(data, kernel, 4, scales=scales)
    quasi = [found.released.column(f"c{i}") for i in range(3)]
    assert groups(number_classes(quasi)) == groups(expected)
    ages = data["age"].groupby(expected).transform("mean")
    assert found.released.column("c0").to_numpy() == pytest.approx(ages.to_numpy())
    assert found.released.column("c3").to_pylist() == data["illness"].tolist()
    assert found.rows.tolist() == [*range(80)]
    assert found.n_cells == expected.max() + 1
    assert found.least_persons == np.bincount(expected).min()
    assert found.losses["cell_size"] == pytest.approx(80 / found.n_cells)


def test_rows_in_any_order() -> None:
    data, chosen = frame(), config(partition={"steps": [{"type": "kmeans"}], "max_rows": 100})
    expected = release_point(*as_source(data, chosen), chosen)
    order = np.random.default_rng(1).permutation(80)
    moved = release_point(*as_source(data.iloc[order], chosen), chosen)
    assert moved.released.equals(expected.released.take(pa.array(order)))
    assert moved.losses == expected.losses


def test_blocks_that_cannot_hold_the_models_are_joined() -> None:
    data = frame(400)
    data.loc[:, "illness"] = np.where(data["age"] < 35, "x", data["illness"])
    chosen = config(
        k=3,
        partition={"steps": [{"type": "kmeans"}], "max_rows": 100},
        privacy={
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": "l_diversity", "l": 3, "attribute": "illness"},
            ]
        },
    )
    found = release_point(*as_source(data, chosen), chosen)
    cell = number_classes([found.released.column(f"c{i}") for i in range(3)])
    assert data["illness"].groupby(cell).nunique().min() >= 3
    assert len(found.rows) == 400


def test_controllers_share_no_cell() -> None:
    data, chosen = frame(), config()
    data["wage"] = 1.0
    data["city"] = "a"
    controller = np.arange(80) % 3
    found = release_point(*as_source(data, chosen), chosen, controller)
    alone = [
        anonlib.cells(data["age"].to_numpy(float)[controller == i][:, None], k=4) for i in range(3)
    ]
    ages = data["age"].to_numpy(float)
    for i, cell in enumerate(alone):
        mine = pd.Series(ages[controller == i]).groupby(cell).transform("mean").to_numpy()
        theirs = found.released.column("c0").to_numpy()[controller == i]
        # Sorted, since equal ages may be in either of two cells.
        assert np.sort(theirs) == pytest.approx(np.sort(mine))


def in_blocks(diverse: Any, steps: list[dict[str, Any]]) -> Any:
    """A config of rows in several blocks, some of which fail a model."""
    models = [
        {"type": "k_anonymity", "k": 4},
        {"type": "l_diversity", "l": 3, "attribute": "illness", **diverse},
    ]
    return config(
        attributes={
            "age": {**QUASI, "scale": "continuous"},
            "wage": {**QUASI, "scale": "continuous"},
            "city": {"role": "drop"},
            "illness": {"role": "sensitive"},
        },
        privacy={"models": models, "suppression_limit": 0.05},
        partition={"steps": steps, "max_rows": 100, "sample_rows": 1000},
        seed=9,
    )


@pytest.mark.parametrize("diverse", [{}, {"kind": "entropy", "l": 2}])
@pytest.mark.parametrize("by_city", [False, True])
def test_the_rows_of_a_release(diverse: dict[str, Any], by_city: bool) -> None:
    """Of rows in any order; controllers are given, or named by a column."""
    data = frame(1500)
    data["illness"] = np.where(data["age"] < 30, "x", data["illness"])
    data.loc[:2, "city"] = "tiny"
    steps: list[dict[str, Any]] = [{"type": "kmeans"}]
    first = [{"type": "controller", "column": "city"}] if by_city else []
    whole = in_blocks(diverse, [*first, *steps])
    rows = read_rows(pa.Table.from_pandas(data), [*data.columns], whole)
    made = make_release(rows, whole, b"").table
    assert made.num_rows == (1497 if by_city else 1500)

    order = pa.array(np.random.default_rng(1).permutation(1500))
    table, controller = rows.table.take(order), None
    if by_city:
        hashes = hash_values(table.column("c2").combine_chunks())
        controller = np.unique(hashes, return_inverse=True)[1]
    found = release_point(table, rows.schema, in_blocks(diverse, steps), controller)
    ids = found.released.column_names
    assert Counter(map(repr, found.released.to_pylist())) == Counter(
        map(repr, made.select(ids).to_pylist())
    )
    same = table.take(pa.array(found.rows)).column("c3")
    assert found.released.column("c3").to_pylist() == same.to_pylist()


def test_controllers_that_can_not_hold_the_models() -> None:
    data, controller = frame(), np.minimum(np.arange(80), 2)
    with pytest.raises(InfeasibleError, match=r"controllers: 2 of 3, with 2 of 80 rows, can't"):
        release_point(*as_source(data, config()), config(), controller)
    models = [{"type": "k_anonymity", "k": 4}]
    chosen = config(privacy={"models": models, "suppression_limit": 0.03})
    found = release_point(*as_source(data, chosen), chosen, controller)
    assert found.rows.tolist() == [*range(2, 80)]


def test_suppressed_rows_are_left_out(tmp_path: Any) -> None:
    (tmp_path / "city.csv").write_text("a;ab;*\nb;ab;*\nc;c;*\nd;d;*\n")
    data = frame()[["city", "illness"]]
    data.loc[[3, 7], "city"] = "d"
    attributes = {
        "city": {**QUASI, "scale": "nominal", "hierarchy": str(tmp_path / "city.csv")},
        "illness": {"role": "insensitive"},
    }
    models = [{"type": "k_anonymity", "k": 4}]
    chosen = config(
        attributes=attributes,
        kernel={"type": "full_domain"},
        partition={"steps": [{"type": "tuples"}]},
        recode={"nominal": "lca"},
        privacy={"models": models, "suppression_limit": 0.1},
    )
    found = release_point(*as_source(data, chosen), chosen)
    assert found.rows.tolist() == [i for i in range(80) if i not in (3, 7)]
    assert found.released.column("c0").to_pylist() == data["city"].drop([3, 7]).tolist()


class TestWhatCannotBe:
    def test_models_that_cannot_hold(self) -> None:
        chosen = config(k=81)
        with pytest.raises(InfeasibleError, match="80 rows"):
            release_point(*as_source(frame(), chosen), chosen)

    def test_a_kernel_that_breaks_the_models(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Mdav, "cells", lambda self, block: np.arange(block.n))
        chosen = config()
        with pytest.raises(AuditError, match=r"the audit failed.*k_anonymity k=4: 80 classes"):
            release_point(*as_source(frame(), chosen), chosen)

    def test_classes_that_lack_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = frame()
        data.loc[data["age"] < 40, "illness"] = "x"
        chosen = config(privacy={"models": DIVERSE})
        by_age = lambda self, block: (block.numeric[:, 0] > 0).astype(np.int64)
        monkeypatch.setattr(Mdav, "cells", by_age)
        with pytest.raises(
            AuditError, match=r"the audit failed.*l_diversity.*: \d+ class(es)? fails?"
        ):
            release_point(*as_source(data, chosen), chosen)

    def test_a_model_that_believes_its_classes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The audit counts by itself, whatever the model says of its classes."""
        data, chosen = frame(), config(privacy={"models": DIVERSE})
        data["illness"] = "x"
        data.loc[:3, "illness"] = "y"
        believe = lambda self, counts: np.ones(len(counts.n_rows), np.bool_)
        monkeypatch.setattr(Mdav, "cells", lambda self, block: np.arange(block.n) // 4)
        monkeypatch.setattr(LDiversity, "holds_within", believe)
        with pytest.raises(AuditError, match=r"l_diversity.*classes fail"):
            release_point(*as_source(data, chosen), chosen)

    def test_values_that_are_not_in_the_order(self) -> None:
        ordinal = {**QUASI, "scale": "ordinal", "order": ["a", "b"]}
        attributes = {**config().model_dump()["attributes"], "city": ordinal}
        chosen = config(attributes=attributes)
        with pytest.raises(ConfigError, match="lacks 1"):
            release_point(*as_source(frame(), chosen), chosen)

    def test_too_many_categories(self) -> None:
        chosen = config(max_categories=2)
        with pytest.raises(ConfigError, match="max_categories"):
            release_point(*as_source(frame(), chosen), chosen)


FEW = st.sampled_from([1.0, 2.0, None])
NESTED = {
    "number": (pa.float64(), FEW),
    "set": (pa.list_(pa.float64()), st.none() | st.lists(FEW, max_size=2)),
    "interval": (
        pa.struct([("low", pa.float64()), ("high", pa.float64())]),
        st.none() | st.fixed_dictionaries({"low": FEW, "high": FEW}),
    ),
    "shares": (
        pa.map_(pa.string(), pa.float64()),
        st.none() | st.lists(st.tuples(st.sampled_from("ab"), FEW), max_size=2),
    ),
    "sets": (
        pa.list_(pa.struct([("of", pa.list_(pa.float64()))])),
        st.none() | st.lists(st.fixed_dictionaries({"of": st.none() | st.lists(FEW)}), max_size=2),
    ),
}
ROWS = st.tuples(*[values for _, values in NESTED.values()])


@given(st.lists(ROWS, min_size=1, max_size=12))
def test_classes(rows: list[tuple[Any, ...]]) -> None:
    columns = [
        pa.chunked_array([pa.array([values[-1], *values], type).slice(1)])
        for values, (type, _) in zip(zip(*rows, strict=True), NESTED.values(), strict=True)
    ]
    expected = np.unique([repr(row) for row in rows], return_inverse=True)[1]
    assert groups(number_classes(columns)) == groups(expected)


class TestSplit:
    TABLE = pa.table({"id": [*range(50), *range(50)], "c": [0] * 80 + [1] * 20})

    def test_shares(self) -> None:
        test, train = split_persons(self.TABLE, [], 0.3, 1, "test")
        assert len(test) == 30
        assert sorted([*test, *train]) == [*range(100)]
        assert (np.diff(test) > 0).all()

    def test_seeds_and_purposes_differ(self) -> None:
        same = [split_persons(self.TABLE, [], 0.3, *given)[0].tolist() for given in [(1, "a")] * 2]
        others = [
            split_persons(self.TABLE, [], 0.3, *given)[0].tolist() for given in [(2, "a"), (1, "b")]
        ]
        assert same[0] == same[1]
        assert same[0] not in others

    def test_every_value_has_its_share(self) -> None:
        test, _ = split_persons(self.TABLE, [], 0.5, 1, "test", "c")
        assert (test < 80).sum() == 40
        assert (test >= 80).sum() == 10

    def test_persons_stay_together(self) -> None:
        test, train = split_persons(self.TABLE, ["id"], 0.4, 1, "test")
        assert {*(test % 50)} & {*(train % 50)} == set()
        assert len(test) == 40

    def test_persons_with_several_values_are_refused(self) -> None:
        with pytest.raises(InputError, match="several values"):
            split_persons(self.TABLE, ["id"], 0.4, 1, "test", "c")


def test_the_module_needs_no_spark() -> None:
    assert "pyspark" not in vars(point_release)


def test_persons_of_a_unit_are_counted() -> None:
    """Each once, whatever its rows; rows of nobody count for nobody."""
    data = frame(120).assign(person=[f"p{i // 2}" if i % 3 else None for i in range(120)])
    attributes = {**config().attributes, "person": {"role": "identifier"}}
    plain = {n: a if isinstance(a, dict) else a.model_dump() for n, a in attributes.items()}
    chosen = config(one_row_per_person=False, unit=["person"], attributes=plain)
    found = release_point(*as_source(data, chosen), chosen)
    classes = pd.DataFrame(
        {
            name: list(map(str, found.released.column(name).to_pylist()))
            for name in ("c0", "c1", "c2")
        }
    )
    persons = (
        data.person.iloc[found.rows]
        .reset_index(drop=True)
        .groupby([classes[name] for name in classes])
    )
    assert found.least_persons == persons.nunique().min() >= 4
