"""What `anonlib.anonymize` refuses, in words that say what to do."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import anonlib
from anonlib.errors import AuditError, ConfigError, InfeasibleError, InputError
from anonlib.local.arguments import KINDS, Arguments
from tests.unit.test_anonymize import people, released


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"quasi_identifiers": []}, "quasi_identifiers: name the columns"),
            ({"one_row_per_person": None}, "one_row_per_person: say that"),
            ({"quasi_identifiers": ["aeg"]}, "column aeg: not in the table; did you mean age"),
            ({"sensitive": ["age"]}, "column age: has 2 roles"),
            ({"sensitive": ["illness"] * 2}, "illness: is named 2 times as sensitive; name it onc"),
            ({"scales": {"illness": "nominal"}}, "illness is no quasi-identifier"),
            ({"scales": {"city": "ordinal"}}, "column city is text, whose order is not known"),
            ({"scales": {"city": "continuous"}}, r"city is text, .* convert it .*pd.to_numeric"),
            ({"quasi_identifiers": "age"}, "quasi_identifiers: must be a list of names"),
            ({"quasi_identifiers": ["age", 3]}, "quasi_identifiers: the names of columns must be"),
            ({"target": ["age"]}, "target: must be the name of a column"),
            ({"one_row_per_person": 1}, "one_row_per_person: must be True, or the name"),
            ({"target_is_public": "no"}, "^target_is_public: must be True or False"),
            ({"path": 3}, "^path: must be the path of a folder"),
            ({"privacy": "x"}, "privacy: must be a mapping"),
            ({"privacy": {"models": []}}, "k: privacy.models has the models: .* l: privacy.models"),
            ({"quasi_identifer": ["age"]}, "did you mean quasi_identifiers"),
            ({"sensitive": None}, "l: no column needs it: name a sensitive column"),
            (
                {"sensitive": None, "target": "illness", "target_is_public": True},
                "l: no column needs it: name a sensitive column, or a target that is not public",
            ),
            ({"hierarchies": {"city": {"a": ["b"]}}}, "hierarchies: give the path of a file"),
            ({"kernel": 42}, "kernel: must be the name of a kernel"),
            ({"attributes": {}}, "attributes: arguments stand for this section"),
            ({"release": {}}, "release: arguments stand for this section"),
            ({"target": "city", "l": None, "quasi_identifiers": ["age"]}, "target_is_public"),
        ],
    )
    def test_arguments(self, changes: dict[str, Any], text: str) -> None:
        with pytest.raises(InputError, match=text):
            released(people(), **changes)

    @pytest.mark.parametrize("value", [[1], {"a": 1}])
    def test_nested_columns(self, value: Any) -> None:
        data = people()
        data["visits"] = [value] * len(data)
        text = "^column visits: type .* is not supported in memory, only in Spark"
        with pytest.raises(ConfigError, match=text):
            released(data, insensitive=["visits"])

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"k": 1}, r"^k: "),
            (
                {"scales": {"age": "continous"}},
                r"^scales \(column age\): must be 'continuous', .*; did you mean continuous\?$",
            ),
            ({"l": 0}, r"^l: "),
            ({"unit": ["age"], "one_row_per_person": None}, r"^unit: must name a column with"),
            ({"kernel": "peel"}, r"^scales \(column age\): must be nominal"),
            (
                {"kernel": {"type": "refine", "start": ["mdav", "peel"]}},
                r"^scales \(column age\): must be nominal",
            ),
            ({"hierarchies": {"age": "no.csv"}}, r"^hierarchies \(column age\): .*no\.csv"),
            ({"k": 500}, r"^k: asks for 500 rows"),
            (
                {"k": None, "l": None, "privacy": {"models": [{"type": "k_anonymity", "k": 1}]}},
                r"^privacy\.models\.0\.k: ",
            ),
        ],
    )
    def test_problems_speak_of_arguments(self, changes: dict[str, Any], text: str) -> None:
        with pytest.raises((ConfigError, InfeasibleError)) as caught:
            released(people(), **changes)
        assert re.search(text, str(caught.value), re.MULTILINE), str(caught.value)

    def test_each_argument_has_a_kind(self) -> None:
        """Else one of another kind would count by its truth: "no" is true."""
        assert {f.name for f in fields(Arguments)} == {*KINDS} - {"privacy"}

    @pytest.mark.parametrize(
        "names",
        [
            pd.Index(["age", "city"]),
            np.array(["age", "city"]),
            pd.Series(["age", "city"]),
            {"city", "age"},
            ("age", "city"),
        ],
    )
    def test_lists_of_names(self, names: Any) -> None:
        made = released(people(), quasi_identifiers=names)
        assert [n for n, a in made.config.attributes.items() if a.scale] == ["age", "city"]

    def test_no_lists_of_names(self) -> None:
        for names in (np.array([["age", "city"]]), {"age": "city"}, np.array([1, 2])):
            with pytest.raises(InputError, match=r"^quasi_identifiers: "):
                released(people(), quasi_identifiers=names)

    def test_rare_values_are_accepted_by_an_argument(self) -> None:
        said = r'are rarer than k = 5; .* accept it: `privacy=\{"acknowledge_unique": \["born"\]\}`'
        with pytest.raises(InfeasibleError, match=said):
            released(people(), insensitive=["born"])
        with pytest.raises(InfeasibleError, match=r"row: nearly .* name it in `identifiers`;"):
            released(people(), insensitive=["row"], one_row_per_person=True)
        accepted = released(
            people(),
            insensitive=["row"],
            one_row_per_person=True,
            privacy={"acknowledge_unique": ["row"]},
        )
        told = "column row: published as it is, and nearly every row has its own value: whoever"
        assert [note.startswith(told) for note in accepted.notes].count(True) == 1
        data = people().assign(flag=[i % 3 for i in range(400)])
        with pytest.raises(AuditError, match="drop or coarsen flag, or accept it: name them under"):
            released(data, insensitive=["flag"])

    def test_columns_that_can_not_be_used_are_to_be_left_out(self) -> None:
        data = people().assign(parts=[[1]] * len(people()))
        with pytest.raises(
            ConfigError, match=r"in memory, only in Spark; make .*, or leave it out$"
        ):
            released(data, insensitive=["parts"])

    def test_a_category_of_texts_is_text(self) -> None:
        data = people()
        data["age"] = pd.Categorical(data["age"].astype(str), ordered=True)
        with pytest.raises(InputError, match="column age is text, which is not continuous"):
            released(data, scales={"age": "continuous"})

    def test_columns_of_the_same_name(self) -> None:
        data = people().rename(columns={"wage": "age", "row": "city"})
        with pytest.raises(InputError, match="have the same name: age, city; rename them"):
            released(data)

    def test_all_at_once(self) -> None:
        with pytest.raises(InputError) as caught:
            anonlib.anonymize(people(), sensitive=["ilness"])
        for text in ("quasi_identifiers:", "one_row_per_person:", "did you mean illness?"):
            assert text in str(caught.value)

    @pytest.mark.parametrize(
        ("changes", "texts"),
        [
            ({"sensitive": ["ilness"]}, ["column ilness: not in the table"]),
            ({"quasi_identifiers": None}, ["quasi_identifiers: name the columns"]),
            ({"unit": "name"}, ["unit: must be a list"]),
            ({"quasi_identifer": ["age"]}, ["did you mean quasi_identifiers"]),
            (
                {"privacy": {"modles": []}, "one_row_per_person": None, "seed": "x"},
                ["one_row_per_person: say that", "privacy.modles: unknown field", "seed: "],
            ),
        ],
    )
    def test_arguments_and_settings_at_once(
        self, changes: dict[str, Any], texts: list[str]
    ) -> None:
        """Whoever repairs all that is said does not hear of more, nor of what follows from it."""
        settings = {"kernel": "mdva", "k": 1, "evaluate": {"measures": ["margnals"]}}
        with pytest.raises(InputError) as caught:
            released(people(), **{**settings, **changes})
        said = str(caught.value).split("; ")
        texts = [*texts, "did you mean mdav", "k: ", "did you mean marginals"]
        assert not [text for text in texts if not any(text in each for each in said)], said
        assert [each.partition(":")[0] for each in said].count("k") == 1
        assert "attributes" not in str(caught.value)

    def test_wrong_kinds_of_settings(self) -> None:
        """They are told once, and the others too."""
        with pytest.raises(InputError) as caught:
            released(people(), kernel=42, privacy="x", k=1)
        said = str(caught.value).split("; ")
        assert [each.partition(":")[0] for each in said] == ["privacy", "kernel", "k"]

    def test_config_and_arguments(self) -> None:
        with pytest.raises(InputError, match="k, unit: give a config or arguments"):
            anonlib.anonymize(people(), {}, k=10, unit=["name"])

    def test_the_minimum_of_the_operator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        config = released(people()).config
        table = released(people()).table
        for minimum, text in (("6", "no k below 6"), ("junk", "must be a whole number")):
            monkeypatch.setenv("ANONLIB_MIN_K", minimum)
            for verb in (lambda: released(people()), lambda: anonlib.audit(table, config)):
                with pytest.raises(ConfigError, match=text):
                    verb()

    @pytest.mark.parametrize("variable", ["ANONLIB_RUNS", "ANONLIB_EVENTS", "ANONLIB_REQUIRE"])
    def test_the_account_of_the_operator(
        self, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        monkeypatch.setenv(variable, "runs")
        with pytest.raises(ConfigError, match=f"variable {variable}: the operator keeps account"):
            released(people())

    def test_columns_of_types_that_spark_has_not(self) -> None:
        data = people()
        data["age"] = pd.PeriodIndex(data["born"], freq="D")
        with pytest.raises(ConfigError, match=r"column age: type .* is not supported"):
            released(data)
        times = pa.Table.from_pandas(people()).append_column(
            "when", pa.array([10**14] * 400, pa.timestamp("s"))
        )
        with pytest.raises(InputError, match="column when: has values of type timestamp"):
            released(times, sensitive=["illness", "when"])

    def test_no_table(self) -> None:
        for data in ([1, 2], pl.Series([1]), pa.chunked_array([[1]])):
            with pytest.raises(InputError, match="is not a table"):
                released(data)
        for path in ("people.csv", Path("people.csv")):
            with pytest.raises(InputError, match="data: is a path, not a table; read it first"):
                released(path)
        with pytest.raises(InputError, match="data: has no rows"):
            released(people().iloc[:0])
        with pytest.raises(InputError, match="LazyFrame is not a table"):
            released(pl.from_pandas(people()).lazy())

    def test_mixed_values_are_not_shown(self) -> None:
        data = people()
        data["city"] = data["city"].where(data.index > 0, 5)
        with pytest.raises(InputError) as caught:
            released(data)
        assert "column city: its values are not of one type" in str(caught.value)
        assert "Bonn" not in str(caught.value)

    def test_unknown_kernels_and_sections(self) -> None:
        with pytest.raises(ConfigError, match="did you mean mdav"):
            released(people(), kernel="mdva")
        with pytest.raises(InputError, match=r"recoed: no argument .* did you mean recode"):
            released(people(), recoed={})
        said = r'; it is a field of a section: privacy=\{"suppression_limit": 0.1\}$'
        with pytest.raises(InputError, match=said):
            released(people(), suppression_limit=0.1)
        models = [{"type": "t_closeness", "t": 0.3, "attribute": "illness"}]
        said = r'^k: privacy.models has the models: put \{"type": "k_anonymity", "k": 12\} there'
        with pytest.raises(InputError, match=said):
            released(people(), k=12, l=None, privacy={"models": models})
        with pytest.raises(ConfigError, match="or a Config, not a list"):
            anonlib.anonymize(people(), ["age", "city"])

    def test_who_is_not_unique(self) -> None:
        data = people()
        data.loc[3, "row"] = 4
        with pytest.raises(InfeasibleError, match="one_row_per_person: column row repeats"):
            released(data)

    def test_a_column_that_names_persons(self) -> None:
        data = people()
        data["illness"] = data["name"].str.upper()
        with pytest.raises(InfeasibleError, match="column illness"):
            released(data)

    def test_models_that_cannot_hold(self) -> None:
        with pytest.raises(InfeasibleError, match="asks for 500 rows"):
            released(people(), k=500)

    def test_what_only_spark_does(self) -> None:
        raw = yaml.safe_load(released(people()).config_yaml)
        raw["release"]["partition_by"] = ["illness"]
        raw["accountability"] = {"approver": "A", "runs": "runs"}
        raw["source"]["where"] = "age > 20"
        with pytest.raises(ConfigError) as caught:
            anonlib.anonymize(people(), raw)
        places = [problem.where for problem in caught.value.problems]
        assert places == ["accountability.runs", "release.partition_by", "source.where"]

    def test_casts(self) -> None:
        raw = yaml.safe_load(released(people()).config_yaml)
        raw["attributes"]["age"]["type"] = "double"
        with pytest.raises(
            ConfigError, match="a table in memory is not cast: the column is bigint"
        ):
            anonlib.anonymize(people(), raw)

    def test_a_result_that_does_not_hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The audit sees what the worker made, not what it meant to make."""
        from anonlib.local import engine

        def careless(table: pa.Table, task: Any) -> Any:
            made, totals = anonymize_blocks(table, task)
            first = made.column("c1").combine_chunks().to_pylist()
            place = made.schema.get_field_index("c1")
            return made.set_column(place, "c1", pa.array([first[0] + 1, *first[1:]])), totals

        anonymize_blocks = engine.anonymize_blocks
        monkeypatch.setattr(engine, "anonymize_blocks", careless)
        with pytest.raises(AuditError, match="k_anonymity k=5"):
            released(people())

    def test_a_result_that_lost_a_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from anonlib.local import engine

        def careless(table: pa.Table, task: Any) -> Any:
            made, totals = anonymize_blocks(table, task)
            return made.slice(20), totals

        anonymize_blocks = engine.anonymize_blocks
        monkeypatch.setattr(engine, "anonymize_blocks", careless)
        with pytest.raises(AuditError):
            released(people())
