"""What is set and changes nothing is told, in a run, a check and a call with a table in hand."""

import copy
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anonlib
from anonlib.config.model import ReleaseSection, SparkSection
from anonlib.config.reading import parse
from anonlib.config.unused import SPARK_ONLY, note_unused, note_unused_in_memory
from tests.unit.test_anonymize import people, released
from tests.unit.test_config import GOOD

#: A config without such fields.
USED: dict[str, Any] = {
    **GOOD,
    "privacy": {"models": [*GOOD["privacy"]["models"], {"type": "l_diversity", "l": 2}]},
}
TREE = str(Path(__file__).parents[2] / "conf/hierarchies/education.yaml")


def changed(sections: dict[str, Any]) -> dict[str, Any]:
    """USED with other fields of its sections."""
    raw = copy.deepcopy(USED)
    for name, value in sections.items():
        raw[name] = {**raw.get(name, {}), **value} if isinstance(value, dict) else value
    return raw


def with_tree(name: str, **fields: Any) -> dict[str, Any]:
    attribute = {**GOOD["attributes"][name], "hierarchy": TREE}
    return {"attributes": {**GOOD["attributes"], name: attribute}, **fields}


BY_TREE = {"type": "t_closeness", "t": 0.5, "distance": "hierarchical"}
MODELS = USED["privacy"]["models"]


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ({"privacy": GOOD["privacy"]}, "no model protects illness: released as it is"),
        ({"pseudonyms": {"key_env": "KEY"}}, "pseudonyms: changes nothing"),
        ({"privacy": {"acknowledge_linked": True}}, "privacy.acknowledge_linked: changes nothing"),
        (
            {"one_row_per_person": True, "person": {"fold_case": True}},
            "person.fold_case: changes nothing",
        ),
        (
            {"kernel": {"type": "mdav_generic", "nominal": "hierarchy"}},
            "kernel.nominal: changes nothing",
        ),
        (with_tree("illness"), "attributes.illness.hierarchy: changes nothing"),
    ],
)
def test_what_changes_nothing(sections: dict[str, Any], text: str) -> None:
    raw = changed({k: v for k, v in sections.items() if k != "privacy"})
    raw["privacy"] = {**USED["privacy"], **sections.get("privacy", {})}
    (note,) = note_unused(parse(raw))
    assert note.startswith(text)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"person": {"fold_case": True}},
        {"kernel": {"type": "mdav_generic"}},
        with_tree("city", kernel={"type": "mdav_generic", "nominal": "hierarchy"}),
        with_tree("illness", privacy={"models": [*MODELS, BY_TREE]}),
        {
            "attributes": {**GOOD["attributes"], "id": {"role": "identifier", "pseudonym": True}},
            "pseudonyms": {"key_env": "KEY"},
            "privacy": {"models": MODELS, "acknowledge_linked": True},
        },
        {
            "attributes": {**GOOD["attributes"], "id": {"role": "identifier", "pseudonym": True}},
            "pseudonyms": {"key_env": "KEY"},
            "privacy": {"models": MODELS, "acknowledge_linked": True},
            "one_row_per_person": True,
            "person": {"fold_case": True},
        },
    ],
)
def test_what_is_used(sections: dict[str, Any]) -> None:
    assert [*note_unused(parse(changed(sections)))] == []


def pseudonymous(**changes: Any) -> dict[str, Any]:
    """A config of `members` with a pseudonym, that release's alone."""
    return {
        "attributes": {
            "name": {"role": "identifier", "pseudonym": True},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "illness": {"role": "sensitive"},
        },
        "privacy": {"models": MODELS, "acknowledge_linked": True},
        "pseudonyms": {"key_env": "PSEUDONYM_KEY"},
        "seed": 1,
        **changes,
    }


def members() -> pd.DataFrame:
    """Persons with two rows each, of which one has the name in capitals."""
    data = people()[["name", "age", "illness"]]
    return pd.concat([data, data.assign(name=data["name"].str.upper())], ignore_index=True)


def test_fold_case_changes_pseudonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSEUDONYM_KEY", "0123456789abcdef" * 4)
    for fold_case, n in ((True, 400), (False, 800)):
        given = pseudonymous(one_row_per_person=True, person={"fold_case": fold_case})
        found = anonlib.anonymize(members(), given)
        assert found.table["name"].nunique() == n
        assert "fold_case" not in " ".join(found.notes)


def test_fields_of_spark_are_read_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with a table in memory reads no field that the note lists, and the note lists all
    others: aside from the code that checks, refuses or tells what a config says."""
    monkeypatch.setenv("PSEUDONYM_KEY", "0123456789abcdef" * 4)
    names = set()
    for section, type in (("release", ReleaseSection), ("spark", SparkSection)):
        fields = {*type.model_fields}

        def note(self: Any, name: str, section: str = section, fields: set[str] = fields) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if name in fields and not caller.startswith(
                ("anonlib.config", "anonlib.local.spark_only")
            ):
                names.add(f"{section}.{name}")
            return object.__getattribute__(self, name)

        monkeypatch.setattr(type, "__getattribute__", note)
    given = pseudonymous(
        unit=["name"],
        person={"fold_case": True},
        evaluate={"measures": [{"type": "reidentification"}]},
    )
    found = anonlib.anonymize(members(), given)
    assert anonlib.audit(found.table, found.config).passed
    assert found.report()
    every = {
        f"{section}.{name}"
        for section, type in (("release", ReleaseSection), ("spark", SparkSection))
        for name in type.model_fields
    }
    assert names == every - {f"{s}.{name}" for s, those in SPARK_ONLY.items() for name in those}


def test_what_only_spark_uses() -> None:
    release = {"path": "out/people", "order": "table", "run_id": "x", "rows_per_file": 1_000}
    returning = changed({"release": {"path": "released", "acknowledge_returning": True}})
    assert [*note_unused_in_memory(parse(returning))] == []
    given = changed({"release": release, "spark": {"partitions": 3}})
    (note,) = note_unused_in_memory(parse({**given, "evaluate": {"metrics": "out/figures"}}))
    assert note.endswith(
        ": release.path, release.run_id, release.rows_per_file, release.order, spark.partitions, "
        "evaluate.metrics"
    )
    assert [*note_unused_in_memory(parse(changed({"release": {"path": "released"}})))] == []


def test_arguments() -> None:
    notes = released(people(), target_is_public=True, hierarchies={"born": TREE}, path="out").notes
    for text in (
        "target_is_public: changes nothing",
        "hierarchies: changes nothing for column born",
        "a release in memory is written nowhere, so this changes nothing: release.path",
    ):
        assert [note.startswith(text) for note in notes].count(True) == 1, notes
    bare = anonlib.anonymize(people(), released(people(), l=None, kernel="mondrian").config)
    assert "no model protects illness" in " ".join(bare.notes)
    assert "changes nothing" not in " ".join(bare.notes)
