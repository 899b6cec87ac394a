"""What a release promised and the config of an audit does not ask; what an audit rests on."""

from contextlib import nullcontext
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

import anonlib
from anonlib import pipeline
from anonlib.auditing.report import AuditReport, Verdict
from anonlib.cli.show.junit import audit_cases
from anonlib.config.reading import parse
from anonlib.evaluation.published_spec import list_premises
from anonlib.run.manifest_reading import Publication
from anonlib.run.shortfalls import find_shortfalls

NOMINAL = {"role": "quasi_identifier", "scale": "nominal"}
CONFIG: dict[str, Any] = {
    "source": {"format": "parquet", "path": "in"},
    "attributes": {
        "zip": NOMINAL,
        "sex": NOMINAL,
        "ill ness": {"role": "sensitive"},
        "note": {"role": "insensitive"},
        "id": {"role": "identifier"},
    },
    "one_row_per_person": "id",
    "privacy": {
        "models": [
            {"type": "k_anonymity", "k": 5},
            {"type": "l_diversity", "l": 3, "attribute": "ill ness"},
        ]
    },
    "release": {"path": "out"},
}
MANIFEST: dict[str, Any] = {
    "columns": [
        {"name": "zip", "role": "quasi_identifier", "recoder": "mode", "form": "value"},
        {"name": "sex", "role": "quasi_identifier", "recoder": "mode", "form": "value"},
        {"name": "ill ness", "role": "sensitive"},
        {"name": "note", "role": "insensitive"},
    ],
    "persons": "one row per person: checked",
    "verdicts": [
        {"model": "k_anonymity k=5", "holds": True},
        {"model": "l_diversity l=3 attribute=ill ness", "holds": True},
        {"model": "each controller: k_anonymity k=9", "holds": True},
        {"model": "1 controller with its own models: k_anonymity k=30", "holds": True},
        {"model": "2,000 controllers with their own models: k_anonymity k=40", "holds": True},
    ],
}


def shortfalls(changes: dict[str, Any], **manifest: Any) -> str:
    config = parse({**CONFIG, **changes})
    return "; ".join(find_shortfalls(config, {**MANIFEST, **manifest}))


def privacy(*models: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"privacy": {"models": [*models], **more}}


def columns(**changes: Any) -> dict[str, Any]:
    return {"attributes": {**CONFIG["attributes"], **changes}}


K5, K4, K6 = ({"type": "k_anonymity", "k": k} for k in (5, 4, 6))
L3, L2, L4 = ({"type": "l_diversity", "l": n, "attribute": "ill ness"} for n in (3, 2, 4))
NO_MODEL = "was promised, and no model of this config implies it"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        (privacy(K6, L4), ""),
        (privacy(K4, L3), f"k_anonymity k=5 {NO_MODEL}"),
        (privacy(K5, L2), f"l_diversity l=3 attribute=ill ness {NO_MODEL}"),
        (privacy(K5), f"l_diversity l=3 attribute=ill ness {NO_MODEL}"),
        (
            columns(sex={"role": "insensitive"}),
            (
                "column sex was published as quasi-identifier of form value, and is audited as "
                "insensitive"
            ),
        ),
        (
            {"recode": {"columns": {"zip": "set"}}},
            (
                "column zip was published as quasi-identifier of form value, and is audited as "
                "quasi-identifier of form set"
            ),
        ),
        (
            columns(sex={"role": "drop"}),
            (
                "column sex was published as quasi-identifier of form value, and is audited as not "
                "released"
            ),
        ),
        (
            {"one_row_per_person": True},
            (
                "persons were checked to have one row each, and the audit takes them as declared "
                "to have one row each"
            ),
        ),
    ],
)
def test_a_config_that_asks_less(changes: dict[str, Any], text: str) -> None:
    assert shortfalls(changes) == text


def test_how_persons_were_counted() -> None:
    by_unit = {"persons": "counted by unit"}
    unit = {**CONFIG, "unit": ["id"]}
    del unit["one_row_per_person"]
    assert find_shortfalls(parse(unit), {**MANIFEST, **by_unit}) == ()
    assert shortfalls({}, **by_unit).startswith("persons were counted by unit, and the audit takes")
    batches = "one row per person in every batch: checked; persons may be in several"
    assert shortfalls({}, persons=batches) == ""
    assert shortfalls({}, persons="one row per person: declared, not checked") == ""
    assert shortfalls({}, persons="at will").startswith("persons were counted in another way")
    assert shortfalls({}, persons="in new words", persons_kind="checked") == ""


def test_models_that_were_promised() -> None:
    joint = [{"model": "l_diversity l=3 attribute=ill ness joint=True"}]
    assert shortfalls({}, verdicts=joint).endswith(NO_MODEL)
    both = {**privacy(K5, L3, joint=True), **columns(note={"role": "sensitive"})}
    published = [*MANIFEST["columns"][:3], {"name": "note", "role": "sensitive"}]
    assert shortfalls(both, verdicts=joint, columns=published) == ""
    for strange in ("of_others n=3", "k_anonymity k=5 k=4", "k_anonymity k=many", "k_anonymity"):
        assert shortfalls({}, verdicts=[{"model": strange}]) == f"{strange} {NO_MODEL}"


def test_manifests_that_tell_nothing() -> None:
    config = parse(CONFIG)
    assert find_shortfalls(config, {}) == ()
    (unknown,) = find_shortfalls(config, None)
    assert unknown.startswith("what the release promised is unknown: neither")


def test_shortfalls_are_in_every_output(capsys: pytest.CaptureFixture[str]) -> None:
    """They can't be overlooked, and fail nothing."""
    from anonlib.cli.show.summaries import print_audit

    holds = Verdict("k_anonymity k=4", True, 5, 4, 0, ())
    lacking = ("k_anonymity k=5 was promised",)
    report = AuditReport(9, 1, (holds,), (), ((9, 1),), "none", shortfalls=lacking)
    assert report.passed
    assert "passed; 9 rows in 1 class; k_anonymity k=4 holds; asks less than" in repr(report)
    assert report.to_dict()["shortfalls"] == [*lacking]
    assert AuditReport.from_dict(report.to_dict()) == report
    print_audit(report, "out/t")
    said = capsys.readouterr().out
    assert "passed, and it asks less than the release promised" in said
    assert lacking[0] in said
    cases = {case.name: (case.state, case.text) for case in audit_cases(report)}
    assert cases["what the release promised"] == ("skipped", lacking[0])


def test_an_audit_says_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    from anonlib.cli.show.summaries import print_audit

    table = pa.table(
        {"zip": ["a"] * 6, "sex": ["f"] * 6, "ill ness": [*"abcabc"], "note": [*"xxxxyy"]}
    )
    privacy = {**CONFIG["privacy"], "acknowledge_unique": ["note"]}
    report = anonlib.audit(table, {**CONFIG, "privacy": privacy})
    assert report.passed
    expected = (
        "quasi-identifiers: zip, sex",
        "persons: each row is one; id was to be checked when the table was released",
        "rare combinations acknowledged: note, not counted",
    )
    assert report.premises == expected
    print_audit(report, "t")
    said = capsys.readouterr().out
    (case,) = (case for case in audit_cases(report) if case.name == "premises")
    for line in expected:
        assert line in said
        assert line in repr(report)
        assert line in case.text
        assert line in report.to_dict()["premises"]


def test_how_an_audit_counts_persons() -> None:
    def persons(**changes: Any) -> str:
        config = {**CONFIG, **changes}
        if "unit" in changes:
            del config["one_row_per_person"]
        return list_premises(parse(config))[1]

    assert persons(one_row_per_person=True) == "persons: each row is one, as the config declares"
    unit = "persons: not counted, the table does not tell them by id"
    assert persons(unit=["id"]) == unit
    named = columns(id={"role": "identifier", "pseudonym": True})
    assert persons(**named, pseudonyms={"key_env": "KEY"}) == "persons: counted by the pseudonym id"


def test_what_can_not_be_counted_does_not_fail() -> None:
    """The report of a unit's table, whose persons the table lacks."""
    config = {**CONFIG, "unit": ["id"]}
    del config["one_row_per_person"]
    table = pa.table(
        {"zip": ["a"] * 6, "sex": ["f"] * 6, "ill ness": [*"abcabc"], "note": ["x"] * 6}
    )
    report = anonlib.audit(table, config)
    assert report.at_release
    begin = "AuditReport(can't be counted here; 6 rows in 1 class; k_anonymity k=5 can't be counted"
    assert repr(report).startswith(begin)
    assert "fails" not in repr(report)


@pytest.mark.parametrize(
    ("publication", "returns", "n_premises", "n_shortfalls"),
    [
        (Publication(None, None), True, 1, 1),
        (Publication(None, 4), True, 2, 1),
        (Publication({}, None), False, 1, 0),
        (Publication({**MANIFEST, "rows_released": 9}, None), False, 1, 0),
        (Publication({**MANIFEST, "rows_released": 8}, None), False, 2, 0),
        (Publication({**MANIFEST, "persons_return": True}, None), True, 1, 0),
    ],
)
def test_an_audit_of_a_delta_table(
    monkeypatch: pytest.MonkeyPatch,
    publication: Publication,
    returns: bool,
    n_premises: int,
    n_shortfalls: int,
) -> None:
    """What is unknown of its release is taken for the worse, and said."""
    spark, asked = MagicMock(), list[bool]()

    def audit(rows: Any, config: Any, *, persons_return: bool) -> AuditReport:
        asked.append(persons_return)
        return AuditReport(9, 1, (), (), ((9, 1),), "none", premises=("persons: some",))

    for name, stand_in in (
        ("session", lambda _: spark),
        ("require_minimum_k", lambda *_: None),
        ("explain_damage", lambda *_: nullcontext()),
        ("read_publication", lambda *_: publication),
        ("audit_published", audit),
    ):
        monkeypatch.setattr(pipeline, name, stand_in)
    report = pipeline.audit_delta("out", parse(CONFIG), MagicMock())
    assert asked == [returns]
    assert len(report.premises) == n_premises
    assert len(report.shortfalls) == n_shortfalls
