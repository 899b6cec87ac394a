"""Why a table in memory can't be released: what the scan of a release in Spark says, too."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonlib
from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.decisions import protected, refusals
from anonlib.errors import ConfigError, Problem
from anonlib.local import problems as in_memory
from anonlib.local.problems import find_problems
from anonlib.table.schema import Field

N = 60


def frame() -> pd.DataFrame:
    random = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "age": random.normal(40, 9, N),
            "ill": random.permutation(np.arange(N) % 5).astype(str),
            "wage": random.permutation(np.arange(N) % 3),
            "label": np.where(random.random(N) < 0.5, "yes", "no"),
            "note": np.where(np.arange(N) < 30, "a", "b"),
        }
    )


def config_of(*models: dict[str, Any], **changes: Any) -> Config:
    """The config of `frame`: `attributes` and `privacy` are added to."""
    return parse(
        {
            "source": {"format": "dataframe"},
            "attributes": {
                "id": {"role": "identifier"},
                "age": {"role": "quasi_identifier", "scale": "continuous"},
                "ill": {"role": "sensitive"},
                "wage": {"role": "sensitive"},
                "label": {"role": "target", "public": True},
                "note": {"role": "insensitive"},
                **changes.pop("attributes", {}),
            },
            "one_row_per_person": True,
            "privacy": {
                "models": [{"type": "k_anonymity", "k": 4}, *models],
                **changes.pop("privacy", {}),
            },
            "kernel": {"type": "mdav"},
            "release": {"path": "out"},
            **changes,
        }
    )


def with_own_labels(n_twice: int) -> pd.DataFrame:
    """120 rows of 12 illnesses. Each has its own label, but for so many pairs of equally ill."""
    ill = np.repeat([f"i{i}" for i in range(12)], 10)
    rows = pd.concat([frame(), frame()], ignore_index=True).assign(id=np.arange(120), ill=ill)
    rows["label"] = np.random.default_rng(5).permutation(120) / 7
    for i in range(n_twice):
        rows.loc[10 * i + 1, "label"] = rows.loc[10 * i, "label"]
    return rows


def found(data: pd.DataFrame | pa.Table, *models: dict[str, Any], **changes: Any) -> list[Problem]:
    """The problems of a table. The changes are those of the config."""
    table = data if isinstance(data, pa.Table) else pa.Table.from_pandas(data, preserve_index=False)
    config = config_of(*models, **changes)
    schema = resolve(config, [Field(f.name, str(f.type), f.type) for f in table.schema])
    by_id = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    try:
        return find_problems(by_id, schema, config)
    except ConfigError as error:
        return [*error.problems]


def test_a_table_without_problems() -> None:
    models = [
        {"type": "l_diversity", "l": 3, "attribute": "ill"},
        {"type": "alpha_k", "alpha": 0.5, "attribute": "wage"},
    ]
    assert found(frame(), *models) == []
    assert found(frame(), *models, one_row_per_person="id") == []


class TestValues:
    def test_no_rows(self) -> None:
        table = pa.Table.from_pandas(frame(), preserve_index=False)[:0]
        assert found(table) == [refusals.refuse_no_rows()]

    def test_infinite_values(self) -> None:
        rows = frame()
        rows.loc[[3, 8], "age"] = [np.inf, -np.inf]
        (problem,) = found(rows, {"type": "l_diversity", "l": 99, "attribute": "ill"})
        assert problem.where == "column age"
        assert problem.text.startswith("2 infinite values; make them missing")
        columns: dict[str, Any] = {"quasi_identifiers": ["age"], "one_row_per_person": True}
        with pytest.raises(ConfigError, match="2 infinite values"):  # as in Spark
            anonlib.anonymize(rows, **columns, k=5)

    def test_missing_values_are_not_infinite(self) -> None:
        rows = frame()
        rows.loc[[3, 8], "age"] = np.nan
        assert found(rows) == []

    def test_infinite_values_that_nothing_measures(self) -> None:
        assert found(frame().assign(wage=np.where(np.arange(N) < 30, np.inf, 1.0))) == []

    def test_too_many_values_for_a_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = {"type": "alpha_k", "alpha": 0.5, "attribute": "ill"}
        monkeypatch.setattr(protected, "MAX_VALUES", 5)
        assert found(frame(), model) == []
        for module in (protected, refusals):
            monkeypatch.setattr(module, "MAX_VALUES", 4)
        text = "has more than 4 distinct values, too many for alpha_k; coarsen it"
        assert found(frame(), model) == [Problem("column ill", text)]

    @pytest.mark.parametrize("n_listed", [4, 5])
    def test_values_that_the_order_lacks(self, n_listed: int) -> None:
        model = {"type": "t_closeness", "t": 0.9, "distance": "ordered", "attribute": "ill"}
        ill = {"role": "sensitive", "order": [*"01234"[:n_listed]]}
        problems = found(frame(), model, attributes={"ill": ill})
        text = "lacks 1 of the distinct values that the column has; add them, or list them under "
        text += "privacy.missing_tokens"
        expected = [] if n_listed == 5 else [Problem("attributes.ill.order", text)]
        assert problems == expected

    @pytest.mark.parametrize("n_listed", [3, 5])
    def test_values_that_the_hierarchy_lacks(self, n_listed: int, tmp_path: Path) -> None:
        lines = [f"{value};{'low' if value < 2 else 'high'};*" for value in range(n_listed)]
        (tmp_path / "ill.csv").write_text("\n".join(lines))
        model = {"type": "t_closeness", "t": 0.9, "distance": "hierarchical", "attribute": "ill"}
        ill = {"role": "sensitive", "hierarchy": str(tmp_path / "ill.csv")}
        problems = found(frame(), model, attributes={"ill": ill})
        assert [problem.where for problem in problems] == (
            [] if n_listed == 5 else ["attributes.ill.hierarchy"]
        )
        text = "lacks 2 of the distinct values that the column has; add them"
        assert all(problem.text.startswith(text) for problem in problems)


class TestModels:
    def test_rows(self) -> None:
        (problem,) = found(frame()[:3], privacy={"acknowledge_unique": True})
        assert problem.where == "privacy.models.k_anonymity"
        assert problem.text == "asks for 4 rows; there are 3 to release: ask for fewer"
        assert found(frame()[:4], privacy={"acknowledge_unique": True}) == []

    @pytest.mark.parametrize("n_persons", [3, 4])
    def test_persons(self, n_persons: int) -> None:
        rows = frame()
        rows["id"] = [None, *[f"p{i % n_persons}" for i in range(1, N)]]
        problems = found(rows, unit=["id"], one_row_per_person=False)
        text = "asks for 4 persons; there are 3 to release: ask for fewer"
        assert problems == ([] if n_persons == 4 else [Problem("privacy.models.k_anonymity", text)])

    @pytest.mark.parametrize("wanted", [4, 5])
    def test_values(self, wanted: int) -> None:
        """Tokens and blank texts are no values, and texts that look the same are one."""
        rows = frame()
        rows["ill"] = rows["ill"].replace({"0": " ? ", "1": "\u00a0", "2": "Ab"})
        rows.loc[0, "ill"] = "aB "
        rows.loc[1, "ill"] = "c"
        model = {"type": "l_diversity", "l": wanted, "attribute": "ill"}
        text = "asks for 5 values; column ill has 4: ask for fewer, or leave the model out"
        assert found(rows, model) == (
            [] if wanted == 4 else [Problem("privacy.models.l_diversity", text)]
        )

    def test_values_of_nobody(self) -> None:
        rows = frame()
        rows.loc[0, "ill"] = "of nobody"
        model = {"type": "l_diversity", "l": 6, "attribute": "ill"}
        unit = {"unit": ["id"], "one_row_per_person": False}
        assert found(rows, model, **unit) == []
        rows.loc[0, "id"] = None
        (problem,) = found(rows, model, **unit)
        assert problem.text.startswith("asks for 6 values; column ill has 5: ask for fewer")

    @pytest.mark.parametrize(("alpha", "holds"), [(0.39, False), (0.4, True)])
    def test_shares(self, alpha: float, holds: bool) -> None:
        rows = frame()
        rows["ill"] = np.where(np.arange(N) < 24, "x", rows["ill"])
        problems = found(rows, {"type": "alpha_k", "alpha": alpha, "attribute": "ill"})
        text = "column ill does not hold it in all rows as one cell"
        text += ": weaken the model, or leave it out"
        assert problems == ([] if holds else [Problem("privacy.models.alpha_k", text)])

    @pytest.mark.parametrize(("alpha", "holds"), [(0.65, False), (0.67, True)])
    def test_shares_of_persons(self, alpha: float, holds: bool) -> None:
        """Two of three persons are ill, one of them in most of the rows; four are not known."""
        rows = frame()
        rows["id"] = [*["p0"] * 50, "p1", "p2", *[f"q{i % 4}" for i in range(N - 52)]]
        rows["ill"] = [*["ill"] * 51, "well", *[None] * (N - 52)]
        model = {"type": "alpha_k", "alpha": alpha, "attribute": "ill"}
        problems = found(rows, model, unit=["id"], one_row_per_person=False)
        assert len(problems) == (not holds)

    def test_a_person_with_most_rows(self) -> None:
        """Three of four persons are ill; by rows the illness has a share of a half."""
        rows = frame()
        rows["id"] = [f"p{i % 3}" if i < 30 else "p3" for i in range(N)]
        rows["ill"] = ["ill" if i < 30 else "ab"[i % 2] for i in range(N)]
        model = {"type": "alpha_k", "alpha": 0.5, "attribute": "ill"}
        (problem,) = found(rows, model, unit=["id"], one_row_per_person=False)
        assert problem.where == "privacy.models.alpha_k"

    def test_all_that_do_not_hold(self) -> None:
        """Too few values, also for a model of their distribution, hide no other model."""
        advice = ": ask for fewer, or leave the model out"
        problems = found(
            frame(),
            {"type": "alpha_k", "alpha": 0.001, "attribute": "ill"},
            {"type": "l_diversity", "l": 5, "kind": "entropy", "attribute": "label"},
        )
        assert problems == [
            Problem(
                "privacy.models.alpha_k",
                f"asks for 1000 rows; there are {N} to release: ask for fewer",
            ),
            Problem("privacy.models.alpha_k", f"asks for 1000 values; column ill has 5{advice}"),
            Problem("privacy.models.l_diversity", f"asks for 5 values; column label has 2{advice}"),
        ]

    def test_a_model_for_each_sensitive_column(self) -> None:
        problems = found(frame(), {"type": "l_diversity", "l": 4})
        (problem,) = problems
        assert problem.text.startswith("asks for 4 values; column wage has 3: ")


class TestJoint:
    MODEL = ({"type": "l_diversity", "l": 2, "attribute": "ill"},)

    def joined(self, rows: pd.DataFrame, **changes: Any) -> list[str]:
        problems = found(rows, *self.MODEL, privacy={"joint": True}, **changes)
        assert {problem.where for problem in problems} <= {"privacy.joint"}
        return [problem.text for problem in problems]

    def test_who_knows_another_column(self) -> None:
        rows = frame()
        assert self.joined(rows) == []
        rows.loc[rows["wage"] == 1, "ill"] = "4"
        (text,) = self.joined(rows)
        said = "l_diversity: column ill does not hold it where wage is known, in 1 of 3 groups of "
        assert text.startswith(said)
        assert found(rows, *self.MODEL) == []

    def test_several_columns_and_missing_values(self) -> None:
        rows = frame().assign(town=np.where(np.arange(N) < 40, "x", "?"))
        rows.loc[rows["town"] == "?", "ill"] = "4"
        (text,) = self.joined(rows, attributes={"town": {"role": "sensitive"}})
        assert "where wage, town are known, in 3 of 6 groups" in text

    def test_rows_of_nobody(self) -> None:
        """The only rows with another illness are of nobody."""
        unit = {"unit": ["id"], "one_row_per_person": False}
        rows = frame()
        others = rows["wage"] == 1
        rows.loc[others, "ill"] = np.where(np.arange(others.sum()) < 3, "3", "4")
        assert self.joined(rows, **unit) == []
        rows.loc[others & (rows["ill"] == "3"), "id"] = None
        assert len(self.joined(rows, **unit)) == 1

    @pytest.mark.parametrize("most", [14, 15])
    def test_many_combinations(self, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = frame().assign(ill=np.arange(N) % 5, wage=np.arange(N) % 3)
        for module in (in_memory, refusals):
            monkeypatch.setattr(module, "MAX_COMBINATIONS", most)
        texts = self.joined(rows)
        says = "columns ill, wage have more than 14 combinations of values, too many; coarsen or "
        assert [text.startswith(says) for text in texts] == ([True] if most == 14 else [])


class TestKeys:
    @pytest.mark.parametrize("value", ["p1", None])
    def test_keys_that_repeat_or_are_missing(self, value: str | None) -> None:
        rows = frame()
        rows.loc[0, "id"] = value
        text = "column id repeats or is missing in several rows: it does not identify one row per "
        text += "person; name a `unit` instead"
        assert found(rows, one_row_per_person="id") == [Problem("one_row_per_person", text)]
        assert found(rows) == []

    @pytest.mark.parametrize("zero", [0.0, -0.0])
    def test_there_is_one_zero(self, zero: float) -> None:
        rows = frame().assign(id=np.arange(N, dtype=float))
        rows.loc[5, "id"] = zero
        assert len(found(rows, one_row_per_person="id")) == 1


class TestTargets:
    def test_a_target_that_determines_a_sensitive_column(self) -> None:
        rows = frame().assign(label=lambda t: "l" + t["ill"])
        text = "determines the sensitive column ill: publishing it publishes both; coarsen it or "
        text += "give one of them `role: drop`"
        assert found(rows) == [Problem("attributes.label", text)]

    def test_rows_where_one_is_missing_do_not_tell(self) -> None:
        rows = frame().assign(label=lambda t: "L" + t["ill"])
        rows.loc[:3, "label"] = ["?", None, "l0 ", "l0"]
        rows.loc[2:5, "ill"] = ["?", None, "0", "0"]
        rows.loc[4:5, "label"] = "l0"
        assert [problem.where for problem in found(rows)] == ["attributes.label"]

    @pytest.mark.parametrize(("n_others", "is_told"), [(1, True), (3, True), (40, False)])
    def test_rows_that_differ(self, n_others: int, is_told: bool) -> None:
        """A few of them protect the others not: that is acknowledged, or refused."""
        rows = pd.concat([frame()] * 4, ignore_index=True).assign(label=lambda t: "l" + t["ill"])
        rows.loc[: n_others - 1, "label"] = np.roll(rows.loc[: n_others - 1, "label"], 1)
        rows.loc[0, "label"] = "l0" if rows.loc[0, "ill"] != "0" else "l1"
        says = "tells the sensitive column ill in nearly all rows"
        assert [problem.text.startswith(says) for problem in found(rows)] == [True] * is_told
        assert found(rows, privacy={"acknowledge_unique": ["label"]}) == []

    @pytest.mark.parametrize(("n_twice", "is_told"), [(0, False), (1, False), (3, True)])
    def test_a_target_of_nearly_one_row_for_each_value(self, n_twice: int, is_told: bool) -> None:
        """Its values tell nothing of others: it is acknowledged as what singles rows out. Two
        rows with one of twelve illnesses agree by chance, three pairs of such rows do not."""
        rows, others = with_own_labels(n_twice), {"attributes": {"wage": {"role": "drop"}}}
        (problem,) = found(rows, **others)
        assert problem.where == "attributes.label"
        says = "determines" if is_told else f"own ({120 - n_twice} values in 120 rows), so that"
        assert says in problem.text
        unique = {"privacy": {"acknowledge_unique": ["label"]}}
        assert bool(found(rows, **others, **unique)) is is_told

    def test_a_constant_is_determined_by_nothing(self) -> None:
        assert found(frame().assign(ill="x")) == []


class TestRareCombinations:
    def test_combinations(self) -> None:
        rows = frame()
        rows.loc[:2, "note"] = "c"
        text = "1 combinations of the insensitive columns (note) are rarer than k = 4; give them "
        text += "other roles, or accept it: `acknowledge_unique: [note]`"
        assert found(rows) == [Problem("privacy.acknowledge_unique", text)]
        assert found(rows, privacy={"acknowledge_unique": ["note"]}) == []
        assert found(rows, privacy={"acknowledge_unique": True}) == []
        rows.loc[3, "note"] = "c"
        assert found(rows) == []

    def test_a_column_that_names_rows_is_told_first(self) -> None:
        rows = frame().assign(number=[f"n{i}" for i in range(N)])
        attributes = {"number": {"role": "insensitive"}}
        (problem,) = found(rows, attributes=attributes)
        assert problem.text.startswith(
            "number: nearly every row has its own value, as with names and numbers of persons: "
            f"give it `role: identifier`; {N} combinations of the insensitive columns"
        )

    def test_several_columns(self) -> None:
        rows = frame().assign(more=np.arange(N) % 20)
        attributes = {"more": {"role": "insensitive"}}
        (problem,) = found(rows, attributes=attributes)
        assert problem.text.startswith("40 combinations of the insensitive columns (note, more)")
        alone = found(rows, attributes=attributes, privacy={"acknowledge_unique": ["more"]})
        assert alone == []

    @pytest.mark.parametrize(
        ("values", "n_rare"),
        [
            ([[1, 2]] * 30 + [[2, 1]] * 30, 0),
            ([[1, 2]] * 58 + [[2, 1]] * 2, 1),
            ([0.0, -0.0] * 30, 0),
            ([0.0] * 57 + [-0.0] * 3, 0),
            ([None] * 57 + ["x"] * 3, 1),
            ([None] * 3 + ["x"] * 57, 1),
            (["a"] * 57 + ["A"] * 3, 1),
            ([{"a": 1}] * 58 + [{"a": None}] * 2, 1),
        ],
    )
    def test_values(self, values: list[Any], n_rare: int) -> None:
        table = pa.Table.from_pandas(frame().drop(columns="note"), preserve_index=False)
        problems = found(table.append_column("note", pa.array(values)))
        assert [problem.text.split()[0] for problem in problems] == [str(n_rare)] * bool(n_rare)


FEW = st.sampled_from(["a", "b", "c", None])


@given(st.lists(st.tuples(FEW, FEW, FEW), min_size=4, max_size=30))
def test_counts_are_those_of_slow_code(rows: list[tuple[str | None, ...]]) -> None:
    n = len(rows)
    label, ill, note = zip(*rows, strict=True)
    data = {
        "id": [*map(str, range(n))],
        "age": np.arange(n, dtype=float),
        "ill": pa.array(ill, pa.string()),
        "wage": [1] * n,
        "label": pa.array(label, pa.string()),
        "note": pa.array(note, pa.string()),
    }
    places = {problem.where: problem.text for problem in found(pa.table(data))}
    n_rare = sum(count < 4 for count in Counter(note).values())
    assert places.get("privacy.acknowledge_unique", "0").split()[0] == str(n_rare)
    pairs = {(a, b) for a, b in zip(label, ill, strict=True) if a and b}
    labels, values = ({pair[i] for pair in pairs} for i in (0, 1))
    determined = len(pairs) == len(labels) and len(values) > 1
    assert ("attributes.label" in places) == determined


def test_texts_have_no_values() -> None:
    rows = frame().assign(
        label=lambda t: "secret" + t["ill"], note=[f"secret{i}" for i in range(N)]
    )
    rows.loc[0, "id"] = "p1"
    problems = found(rows, one_row_per_person="id")
    assert len(problems) == 3
    assert "secret" not in str(problems)
