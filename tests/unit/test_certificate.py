"""The certificate of a release: its lines, its annexes, and changes of its file."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from anonlib import registry
from anonlib.auditing import Verdict
from anonlib.errors import InputError
from anonlib.pages import render, secrecy
from anonlib.pages.certificate import list_sections
from anonlib.pages.front import judge_risks, judge_utilities
from anonlib.pages.output import certify, read_certificate
from anonlib.pages.seal import Facts, find_changes, open_seal, seal_record
from anonlib.pages.specs import read_persons
from anonlib.run.confirmation import _as_stated, has_passed
from anonlib.text import MISSING_TOKENS
from tests import reports
from tests.support import skip_or_fail

TOKENS = sorted(sha256(text.encode()).hexdigest() for text in MISSING_TOKENS)
ISO = [
    *["6.2.2", "6.2.3", "6.3.2", "6.3.3", "7.2.2", "7.2.3", "7.2.4", "7.2.5", "7.3.2", "7.3.3"],
    *["7.3.4", "8.2.2", "8.2.3", "8.3.2", "8.3.3", "8.3.4", "9.2.2", "9.2.3", "9.2.4", "9.2.5"],
    *["9.3.2", "9.4"],
]


def record(**changes: Any) -> dict[str, Any]:
    base = reports.record()
    settings = base["settings"] | {
        "kernel": "mdav",
        "models": ["k_anonymity k=10", "l_diversity l=2 attribute=diagnosis"],
        "policy": "ours: what we ask",
        "release": {"path": "out/people", "mode": "error"},
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "scale": "continuous", "recoder": "interval"},
            "jobs": {"role": "quasi_identifier", "scale": "nominal", "recoder": "set form=array"},
            "diagnosis": {"role": "sensitive"},
            "city": {"role": "insensitive"},
        },
    }
    models = [
        {"type": "k_anonymity", "k": 10},
        {"type": "l_diversity", "l": 2, "kind": "distinct", "c": None, "attribute": "diagnosis"},
    ]
    promise = {"models": models, "persons": "declaration", "missing_tokens": TOKENS}
    rule = {"says": "It is so.", "source": "a law", "where": ""}
    return {
        **base,
        "settings": settings,
        "promise": promise,
        "time": "2026-01-31T10:15:00+00:00",
        "table_digest": "30000:00ff",
        "accountability": {"approver": "data office", "purpose": "a <study>"},
        "context": {"access": "contract", "data": "adults of 2025", "expires": "2027-11-30"},
        "policy": [
            {**rule, "rule": "classes", "state": "kept", "reason": "k is 10"},
            {**rule, "rule": "signed", "state": "to confirm", "reason": "no config can show this"},
        ],
        **changes,
    }


def facts(**changes: Any) -> Facts:
    return seal_record(json.dumps(record(**changes)))


def texts(given: Facts, section: str) -> dict[str, str]:
    """By first text: the others, in the section of a title that begins so."""
    sections = [*given.content["sections"], *given.content["annexes"]]
    (found,) = [each for each in sections if each["title"].startswith(section)]
    return {line["cells"][0]: " | ".join(line["cells"][1:]) for line in found["lines"]}


def attack(name: str, *subjects: tuple[str, float, float, float | None]) -> dict[str, Any]:
    figures = []
    for of, risk, low, high in subjects:
        values = {"attack_rate": risk + 0.1, "control_rate": 0.1, "attempts": 2000}
        values |= {"risk": risk, "low": low, "high": high}
        figures += [reports.figure(key, value, of) for key, value in values.items()]
    return {name: reports.findings(figures)}


def test_the_first_pages() -> None:
    found = facts()
    use = texts(found, "Who, what for")
    assert use["purpose"] == "a <study>"
    assert use["recipients"] == "not given"
    assert use["until"] == "2027-11-30"
    data = texts(found, "Which data")
    assert data["filter"] == "none: all rows, which the config calls: adults of 2025"
    assert not any("without a person" in name for name in data)
    assert (data["rows"], data["rows of the smallest class"]) == ("30,000", "10")
    columns = texts(found, "Columns")
    assert columns["name"] == "identifier | not released | –"
    assert columns["age"].startswith(
        "quasi-identifier | interval | distribution changed by 0.014; 0.021 of its variance lost"
    )
    assert columns["city"] == "insensitive | as it is | –"
    verdicts = texts(found, "Verdicts")
    assert verdicts["ours: what we ask"].startswith("1 kept, 1 for a person to confirm")
    risks = texts(found, "Risks")
    assert risks["singling out"] == "not attacked | – | not covered | no gate"
    assert risks["largest chance to be found by class size"] == "0.1 | – | exact | above 0.09"
    utilities = texts(found, "Three utilities")
    assert len(utilities) == 5
    assert utilities["worst subgroup"].startswith("not covered")
    assert (
        texts(found, "Digests")["promise"]
        == sha256(json.dumps(record()["promise"], sort_keys=True).encode()).hexdigest()
    )


def test_small_counts_stay_hidden() -> None:
    for n, shown in ((0, "0"), (1, "fewer than 10"), (9, "fewer than 10"), (12, "12")):
        assert texts(facts(n_suppressed=n), "Which data")["rows suppressed"] == shown
        data = texts(facts(n_nobody=n), "Which data")
        assert data.get("rows without a person, which no model counts", "0") == shown


def test_measures_without_a_value_are_none() -> None:
    """A measure that was named may have found nothing."""
    names = ("population", "uniqueness", "linkage", "disclosure", "membership", "queries")
    empty = {
        name: reports.findings([reports.figure("risk", None, note="nobody")]) for name in names
    }
    found = facts(evaluation={"measures": empty, "gates": []})
    iso = texts(found, "Annex: ISO/IEC")
    assert iso["7.3.3 population or sample"] == "the table itself is taken for the population"
    assert iso["8.2.3 adversarial testing"] == "not covered"
    assert texts(found, "Annex: EMA")["3 data utility"] == "information loss"
    empty["uniqueness"]["figures"] = [reports.figure("release_unique", 0.0)]
    iso = texts(facts(evaluation={"measures": empty, "gates": []}), "Annex: ISO/IEC")
    assert iso["7.3.3 population or sample"] == "the table itself is taken for the population"
    empty["uniqueness"]["figures"] += [reports.figure("population_unique", 0.1, "pitman")]
    evaluation = {"measures": empty, "gates": []}
    for spec, told in (
        ({}, "is taken for the population"),
        ({"population": 6000}, "6,000 persons"),
    ):
        specs = {"measures": [{"type": "uniqueness", **spec}]}
        iso = texts(facts(evaluation=evaluation, specs=specs), "Annex: ISO/IEC")
        assert iso["7.3.3 population or sample"].endswith(told)


def test_roles_in_words() -> None:
    given = record()
    given["settings"]["columns"]["note"] = {"role": "drop"}
    iso = texts(seal_record(json.dumps(given)), "Annex: ISO/IEC")
    assert iso["7.2.4 attribute types"] == (
        "1 identifier, 2 quasi-identifiers, 1 sensitive, 1 insensitive, 1 dropped"
    )


def test_the_time_as_in_the_report() -> None:
    assert texts(facts(), "Who, what for")["released"] == "2026-01-31 10:15 UTC"


def test_chances_of_persons_of_a_unit() -> None:
    given = record()
    given["settings"]["persons"] = "unit of 1 columns: id"
    given["audit"]["verdicts"][0]["value"] = 20
    del given["evaluation"]
    risks = texts(seal_record(json.dumps(given)), "Risks")
    assert risks["largest chance to be found by class size"] == "0.05 | – | exact | within 0.09"
    assert risks["mean chance to be found by class size"].startswith("not covered")
    average = "7.3.2 maximum or average risk"
    largest = "largest chance by class size, in persons"
    assert texts(seal_record(json.dumps(given)), "Annex: ISO/IEC")[average] == largest
    means = reports.findings([reports.figure("prosecutor_mean", 0.04)])
    given["evaluation"] = {"measures": {"reidentification": means}, "gates": []}
    given["audit"]["verdicts"][0] |= {"value": 10, "exact": False}
    risks = texts(seal_record(json.dumps(given)), "Risks")
    assert risks["largest chance to be found by class size"] == "0.1 | – | at most | above 0.09"
    assert risks["mean chance to be found by class size"] == (
        "0.04 | – | measured, each person by the smallest class | within 0.09"
    )
    iso = texts(seal_record(json.dumps(given)), "Annex: ISO/IEC")
    assert iso[average] == f"{largest}, and the mean as measured"
    given["audit"]["verdicts"][0]["value"] = None
    risks = texts(seal_record(json.dumps(given)), "Risks")
    assert risks["largest chance to be found by class size"].startswith("not covered")


def fairness(suppressed: float = 0.2) -> dict[str, Any]:
    """Two columns of groups; the first named has the worse figures, the last has none of some."""
    heads = ("group", "rows released", "loss", "suppressed", "risk")
    figures = [
        *(reports.figure("worst_loss", 0.4, "race"), reports.figure("worst_loss", 0.1, "sex")),
        *(reports.figure("worst_suppression", suppressed, "race"),),
        *(reports.figure("worst_suppression", 0.0, "sex"),),
        *(reports.figure("worst_risk", 0.05, "race"), reports.figure("worst_risk", None, "sex")),
    ]
    groups = [("Inuit", 80, 0.4, suppressed, 0.02), ("others", 800, 0.1, 0.0, 0.05)]
    return {
        "fairness": reports.findings(figures, [reports.series("groups", "race", heads, groups)])
    }


def test_the_worst_group_of_all_columns() -> None:
    found = facts(evaluation={"measures": fairness(), "gates": []})
    utilities = texts(found, "Three utilities")
    assert utilities["worst subgroup: worst loss"] == "0.4, Inuit (race)"
    assert utilities["worst subgroup: worst suppression"] == "0.2, Inuit (race)"
    assert utilities["worst subgroup: worst risk"] == "0.05, others (race)"
    measures = fairness()
    for figure in measures["fairness"]["figures"]:
        figure["by_rows"] = figure["name"] == "worst_risk"
    utilities = texts(facts(evaluation={"measures": measures, "gates": []}), "Three utilities")
    assert utilities["worst subgroup: worst risk"] == (
        "0.05, others (race); by rows: the risk of a person may be larger"
    )
    assert utilities["worst subgroup: worst loss"] == "0.4, Inuit (race)"
    found = facts(evaluation={"measures": fairness(0.0), "gates": []})
    assert (
        texts(found, "Three utilities")["worst subgroup: worst suppression"] == "0 in every group"
    )


@pytest.mark.parametrize(
    ("shown", "named"), [(0.415523, "missing (race)"), (0.415, "race"), (None, "race")]
)
def test_the_worst_group_is_found_by_its_rounded_number(shown: float | None, named: str) -> None:
    """The list of groups has fewer digits than the figures, and may have joined the group."""
    heads = ("group", "rows released", "loss", "suppressed", "risk")
    groups = [("Inuit", 80, 0.4, 0.0, None), ("missing", 78, shown, 0.0, None)]
    figures = [reports.figure("worst_loss", 0.4155230525, "race")]
    measures = {
        "fairness": reports.findings(figures, [reports.series("groups", "race", heads, groups)])
    }
    found = facts(evaluation={"measures": measures, "gates": []})
    told = texts(found, "Three utilities")["worst subgroup: worst loss"]
    assert told == f"0.4155, {named}"


@pytest.mark.parametrize(("n_suppressed", "suppressed"), [(3, 0.0), (12, 0.024)])
def test_figures_that_tell_of_few_suppressed_rows(n_suppressed: int, suppressed: float) -> None:
    """Of all rows, or of a group: 80 rows are 0.976 of 82."""
    measures = fairness(suppressed)
    measures["marginals"] = reports.findings([reports.figure("total_variation", 0.0321, "age")])
    text = "fairness.suppression_gap at most 0.5"
    gates = [{"gate": text, "passed": True, "found": f"{text}: 0.0123 of race"}]
    changes = {"n_suppressed": n_suppressed, "losses_by_column": {}}
    found = facts(**changes, evaluation={"measures": measures, "gates": gates})
    utilities = texts(found, "Three utilities")
    withheld = "withheld: it would tell of fewer than 10 suppressed rows"
    assert utilities["worst subgroup: worst loss"] == withheld
    assert utilities["worst subgroup: worst suppression"] == withheld
    assert utilities["worst subgroup: worst risk"] == "0.05, others (race)"
    assert texts(found, "Verdicts")[f"gate {text}"].startswith(withheld)
    assert "0.0123" not in found.text
    assert ("0.0321" in found.text) is (n_suppressed == 12)


def test_only_figures_of_the_released_rows_stand_beside_few_suppressed_rows() -> None:
    """A share of 0.0123 of categories tells of as many rows."""
    release = ["reidentification.prosecutor_max", "disclosure.gain", "population.k_map"]
    both = ["overview.total_variation", "associations.mean", "queries.median", "learning.r2_loss"]
    gates = [
        {"gate": f"{name} at most 0.5", "passed": True, "found": f"{name} at most 0.5: 0.0123"}
        for name in (*release, *both, "plugin.of_others")
    ]
    measures = {
        "associations": reports.findings([reports.figure("mean", 0.0321)]),
        "learning": reports.findings([reports.figure("accuracy_loss", 0.0321, "city")]),
    }
    notes = ["sse: at most 0.0321 % above the optimum"]
    changes = {"evaluation": {"measures": measures, "gates": gates}, "notes": notes}
    few, many = facts(**changes, n_suppressed=3), facts(**changes, n_suppressed=12)
    for found, withheld in ((few, True), (many, False)):
        verdicts = texts(found, "Verdicts")
        for name in (*release, *both, "plugin.of_others"):
            hidden = verdicts[f"gate {name} at most 0.5"].startswith("withheld")
            assert hidden is (withheld and name not in release)
        assert ("0.0321" in found.text) is not withheld
    told = texts(few, "Three utilities")["utilities"]
    assert told == "withheld: it would tell of fewer than 10 suppressed rows"


def test_figures_that_are_told_are_there() -> None:
    known = registry.plugins("measure")
    for figure in secrecy._TOLD:
        measure, _, name = figure.partition(".")
        assert name in known[measure].names, figure


def test_utilities_are_those_of_the_report() -> None:
    """The worst column of all: `marginals` looks at some only, by a figure of their own."""
    of = {"age": 0.34, "sex": 0.01}
    overview = {
        "figures": [reports.figure("total_variation", n, column) for column, n in of.items()],
        "series": [],
    }
    marginals = [reports.figure("total_variation", 0.01, "sex")]
    marginals.append(reports.figure("wasserstein", 0.05, "age"))
    measures = {"marginals": reports.findings(marginals)}
    given = record(overview=overview, evaluation={"measures": measures, "gates": []})
    told = texts(seal_record(json.dumps(given)), "Three utilities")
    for each in judge_utilities(given):
        assert told[each.title] == f"{each.state}: {each.reason}"
    assert "0.34 of age. Beyond 0.1" in told["Distribution of each column"]
    columns = texts(seal_record(json.dumps(given)), "Columns")
    assert "| distribution changed by 0.34" in columns["age"]


def test_how_near_a_loss_is_to_its_bound() -> None:
    text = "sse: at most 1.2 % above the optimum (bound by the nearest rows of each row)"
    found = texts(facts(notes=["an index", text]), "Three utilities")
    assert found["lower bound of the loss"] == text


def test_losses_with_few_suppressed_rows_stay_hidden() -> None:
    """As in the manifest: they would tell of these rows."""
    shown, hidden = facts(), facts(n_suppressed=3)
    assert "loss ncp" in texts(shown, "Three utilities")
    assert not any(name.startswith("loss") for name in texts(hidden, "Three utilities"))
    age = [texts(each, "Columns")["age"] for each in (shown, hidden)]
    assert ["variance" in each for each in age] == [True, False]
    assert "withheld" in age[1]


def test_what_remains_follows_from_the_config() -> None:
    rest = texts(facts(), "What remains")
    assert rest["attackers"] == "who know more than the quasi-identifiers are not counted"
    known = texts(facts(context={"may_know": ["age"]}), "What remains")["attackers"]
    assert known == f"{rest['attackers']}; attacks took all quasi-identifiers as known"
    assert "persons" not in rest  # checked, by a column
    assert "batches" not in rest
    several = facts(persons_return=True)
    assert "batches" in texts(several, "What remains")
    shown = texts(several, "Which data")["persons"]
    assert shown.endswith("in every batch; persons may be in several")
    assert rest["city"].startswith("published as they are; rare combinations: checked")
    assert "within the models" in rest["diagnosis"]
    assert rest["policy"] == "1 rule for a person to confirm, in the annex"
    assert "earlier releases" not in rest
    plain = record()
    plain["promise"]["models"] = plain["promise"]["models"][:1]
    plain["settings"]["release"]["mode"] = "overwrite"
    plain["settings"]["persons"] = "one row per person, declared"
    plain["policy"] = []
    plain["content"] = {"repetitions": [{"column": "mrn"}]}
    rest = texts(seal_record(json.dumps(plain)), "What remains")
    assert rest["mrn"].startswith("repeats: if it stands for a person, classes may have fewer")
    assert "no model protects it" in rest["diagnosis"]
    assert {"earlier releases", "persons", "attackers"} <= rest.keys()
    assert "policy" not in rest


def test_a_released_column_with_a_value_of_its_own_in_each_row() -> None:
    """Accepted or not: classes say nothing of who knows it. A column under a model is no such."""
    content = {"distinct": {"city": 30012, "diagnosis": 30012, "age": 30012}}
    found = facts(content=content)
    told = "nearly every row has its own value: whoever knows it finds the row"
    lines = [
        line.cells
        for section in list_sections(record(content=content), "")[0]
        for line in section.lines
        if line.cells[-1] == told
    ]
    assert lines == [("city", told)]
    assert texts(found, "Annex: EMA")["1 direct identifiers"] == (
        "removed: name; released, with a value of its own in nearly every row: city"
    )
    text = "city is released as it is, and nearly every row has its own value."
    assert judge_risks(record(content=content))[0].reason.endswith(text)
    assert text not in render(record(content={"distinct": {"city": 20_000}}))


def test_what_pseudonyms_link() -> None:
    """Rows of one person, unless each row was checked to be another one."""

    def told(kind: str, **changes: Any) -> str:
        given = record(**changes)
        given["settings"]["columns"]["name"] = {"role": "identifier", "pseudonym": True}
        given["settings"]["pseudonyms"] = changes.pop("scope", "release")
        given["specs"] = {"persons": {"kind": kind, "columns": ["name"]}}
        return texts(seal_record(json.dumps(given)), "What remains")["name"]

    assert told("checked") == "pseudonyms: each row has its own"
    linked = "pseudonyms: rows of one person are known to belong together"
    assert told("unit") == told("checked", persons_return=True) == linked
    assert told("checked", scope="stable") == f"{linked}, in all releases under this key"


def test_a_table_in_memory_has_the_name_that_the_config_gives_it() -> None:
    def told(**changes: Any) -> str:
        given = record(outcome="made", **changes)
        return texts(seal_record(json.dumps(given)), "Which data")["source"]

    assert told() == "a table in memory; the config calls it: adults of 2025"
    assert told(context={}) == "a table in memory; context.data can name it"


def test_words_instead_of_parameters() -> None:
    """Those that are as by default are left out."""
    given = record()
    columns = given["settings"]["columns"]
    spec = {"type": "interval", "form": "struct", "round_to": 5.0}
    columns["age"] |= {"recoder": "interval form=struct round_to=5.0", "recoder_spec": spec}
    columns["x"] = {"role": "quasi_identifier", "scale": "continuous"}
    columns["x"]["recoder"] = "centroid keep_type=true restore_variance=true"
    given["settings"]["kernel"] = "mdav variant=figure4"
    sealed = seal_record(json.dumps(given))
    found = texts(sealed, "Columns")
    assert found["age"].split(" | ")[1] == "interval (round to 5)"
    assert found["jobs"].split(" | ")[1] == "set"
    assert found["x"].split(" | ")[1] == "centroid (restore variance true)"
    method = texts(sealed, "Annex: EMA")["6 methodology"]
    assert method == "mdav; k-anonymity, k = 10; l-diversity of diagnosis, l = 2"


def test_batches_that_were_counted_apart_give_bounds() -> None:
    audit = {**record()["audit"], "by_batch": True}
    found = facts(audit=audit)
    data, n = texts(found, "Which data"), audit["n_classes"]
    smallest = min(size for size, _ in audit["sizes"])
    assert data["classes"] == f"at most {n:,}"
    assert data["rows of the smallest class"] == f"at least {smallest:,}"
    bounds = found.content["audit"]["bounds"]
    assert (bounds["classes"], bounds["smallest"]) == (n, smallest)
    assert facts().content["audit"]["bounds"] is None
    broken = {**found.content["audit"], "bounds": {**bounds, "classes": "many"}}
    with pytest.raises(InputError, match="the certificate is damaged"):
        open_seal(Facts({**found.content, "audit": broken}).page())


def batch() -> dict[str, Any]:
    """The record of a run that added rows to a table."""
    text = "disclosure.certain at most 0.5"
    gates = [{"gate": text, "passed": True, "found": f"{text}: 0.1"}]
    evaluation = {"measures": fairness() | attack("inference", ("city", 0.3, 0.2, 0.1))}
    made = record(evaluation={**evaluation, "gates": gates}, n_rows_out=900)
    made["settings"] = {**made["settings"], "release": {"path": "out/people", "mode": "append"}}
    return made


def test_figures_of_a_batch_are_called_so() -> None:
    """What is measured is of the added rows alone; what the audit counts is of the table."""
    found = seal_record(json.dumps(batch()))
    told = {line.rpartition("-")[0] + ": " + cells[0] for line, cells in found.lines().items()}
    of_batch = {text for text in told if text.endswith(" of the batch")}
    measured = ("utility: ", "verdict: gate", "risk: inf", "risk: link", "risk: sing", "risk: att")
    wanted = {text for text in told if text.startswith((*measured, "data: rows suppressed"))}
    assert of_batch == {*wanted, "data: rows of the batch"}
    assert len(wanted) > 8
    assert texts(found, "Which data")["rows of the batch"] == "900"
    assert [each["heads"][-1] for each in found.content["sections"] if each["title"] == "Columns"]
    assert "loss of the batch" in found.page()
    assert " of the batch" not in facts().page()


@pytest.mark.parametrize(
    ("found", "bound", "stated"),
    [(12, 10, 10), (12, 12, 12), (12, 13, 12), (12, 2, 12), (12, None, 12), (0.1, 0.2, 0.2)],
)
def test_a_bound_is_confirmed_if_the_table_is_no_worse(
    found: float, bound: float | None, stated: float
) -> None:
    """A better bound than what was found is no bound, nor is one below what is required."""
    required = 0.3 if found < 1 else 3
    text = None if bound is None else {"value": bound, "exact": False}
    verdict = _as_stated(Verdict("m", True, found, required, 0, ()), text)
    assert verdict is not None
    assert (verdict.value, verdict.exact) == (stated, bound != stated)


@pytest.mark.parametrize(
    ("stated", "shown"), [(12, (12, True)), (14, None), (10, (12, False)), (3, (12, False))]
)
def test_an_exact_value_where_the_table_was_counted_up_to_a_bound(
    stated: float, shown: tuple[float, bool] | None
) -> None:
    """The table has 12 or better: it may be 14, it can't be 10."""
    counted = Verdict("m", True, 12, 3, 0, (), exact=False)
    verdict = _as_stated(counted, {"value": stated, "exact": True})
    assert (verdict and (verdict.value, verdict.exact)) == shown
    failing = replace(counted, holds=False)
    assert _as_stated(failing, {"value": stated, "exact": True}) == failing


def test_annexes_have_every_point() -> None:
    found = facts()
    iso = texts(found, "Annex: ISO/IEC 27559:2022")
    assert [name.split()[0] for name in iso] == ISO
    assert iso["6.3.3 privacy-related harms"] == "not covered"
    assert iso["9.2.2 roles and responsibilities"] == "data office"
    ema = texts(found, "Annex: EMA Policy 0070")
    assert {name[0] for name in ema} >= set("1234567")
    assert "3.1.3 differential privacy" in texts(found, "Annex: Opinion 05/2014 (WP216)")
    rules = texts(found, "Annex: policy ours")
    assert rules["signed"] == "to confirm | It is so. | no config can show this | a law"
    assert not [s for s in facts(policy=[]).content["annexes"] if "policy" in s["title"]]


def test_many_columns_have_an_annex() -> None:
    many = record()
    many["settings"]["columns"] |= {f"c{i}": {"role": "drop"} for i in range(20)}
    found = seal_record(json.dumps(many))
    assert texts(found, "Columns, listed in an annex")["dropped"] == "20 columns"
    assert len(texts(found, "Annex: columns")) == 25


def test_what_the_audit_gets() -> None:
    audit = facts().content["audit"]
    assert audit["quasi_identifiers"] == ["age", "jobs"]
    assert audit["sets"] == ["jobs"]
    assert audit["columns"] == ["age", "jobs", "diagnosis", "city"]
    assert [model["type"] for model in audit["models"]] == ["k_anonymity", "l_diversity"]
    assert audit["persons"] == "rows"

    def changed(**changes: Any) -> Mapping[str, Any]:
        given = record()
        given["promise"] |= changes
        found: Mapping[str, Any] = seal_record(json.dumps(given)).content["audit"]
        return found

    # Tokens of the config's own are values of the table, and are told to nobody.
    assert [m["type"] for m in changed(missing_tokens=[])["models"]] == ["k_anonymity"]
    given = record()
    given["settings"]["persons"] = "unit of 1 columns: one row per person"
    assert seal_record(json.dumps(given)).content["audit"]["persons"] == "unknown"
    assert not read_persons(given).are_rows
    specs = {"persons": {"kind": "checked", "columns": ["unit of 1 columns: a"]}}
    sealed = seal_record(json.dumps({**given, "specs": specs}))
    assert sealed.content["audit"]["persons"] == "rows"


def test_a_page_is_made_of_its_facts_only() -> None:
    given = facts()
    page = given.page()
    assert page == facts().page()
    assert open_seal(page) == given
    assert [*find_changes(page, given)] == []
    assert "a &lt;study&gt;" in page
    assert "a <study>" not in page
    assert given.sha256 in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_digit_that_was_changed() -> None:
    """Each digit of the page, in texts, facts and style, or a letter of a line."""
    page = facts().page()
    places = [found.start() for found in re.finditer(r"\d", page)]
    for place in places[:: len(places) // 60]:
        other = f"{page[:place]}{(int(page[place]) + 1) % 10}{page[place + 1 :]}"
        with suppress(InputError):  # it is no certificate any more
            assert [*find_changes(other, open_seal(other))] != [], page[place - 40 : place + 40]
    other = page.replace("30,000", "31,000", 1)
    assert [*find_changes(other, open_seal(other))] == ["data-7"]
    assert facts().lines()["data-7"] == ("rows", "30,000")


def test_a_page_of_another_version() -> None:
    """Its style may differ, its texts may not."""
    content = json.loads(facts().text) | {"anonlib": "0.0.9"}
    page = Facts(content).page().replace("font-size: 15pt", "font-size: 14pt")
    assert [*find_changes(page, open_seal(page))] == []
    other = page.replace("What is said here", "What is not said here")
    assert [*find_changes(other, open_seal(other))] == ["the page"]


def test_facts_that_no_audit_can_be_made_by() -> None:
    for name, value in (
        ("columns", [1]),
        ("models", [{"type": "k_anonymity", "k": "x"}]),
        ("verdicts", {"k_anonymity k=10": {"value": "x", "exact": True}}),
        ("verdicts", {"k_anonymity k=10": {"value": 10}}),
    ):
        content = json.loads(facts().text)
        content["audit"][name] = value
        with pytest.raises(InputError, match="the certificate is damaged"):
            open_seal(Facts(content).page())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "no JSON"),
        ("{}", "no run record"),
        (json.dumps(record(outcome="stopped")), "nothing to certify"),
        (json.dumps(record(audit={})), "damaged (KeyError)"),
        (json.dumps(record(table_version=-1)), "written before the commit"),
    ],
)
def test_what_can_not_be_certified(given: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        seal_record(given)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "r1.json"
    path.write_text(json.dumps(record()))
    place = certify(path)
    assert place == str(tmp_path / "r1.certificate.html")
    assert Path(place).stat().st_mode & 0o077 == 0
    page, found, recorded = read_certificate(certify(path), str(path))  # it is replaced
    assert (page, found) == (facts().page(), recorded)
    other = tmp_path / "other.html"
    other.write_text("mine")
    with pytest.raises(InputError, match="is not a certificate; name another file"):
        certify(path, out=other)
    with pytest.raises(InputError, match="no certificate of anonlib in HTML"):
        read_certificate(str(other), None)
    with pytest.raises(InputError, match="no such file; CERTIFICATE"):
        read_certificate(str(tmp_path / "none.html"), None)


def test_pdf(tmp_path: Path) -> None:
    path = tmp_path / "r1.json"
    path.write_text(json.dumps(record()))
    try:
        import weasyprint  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match="pip install weasyprint"):
            certify(path, out=tmp_path / "r1.pdf")
        return
    place = Path(certify(path, out=tmp_path / "r1.pdf"))
    assert place.read_bytes().startswith(b"%PDF-")
    with pytest.raises(InputError, match="is there already"):
        certify(path, out=place)


def rich_record() -> dict[str, Any]:
    """The longest that docs/privacy/certificate.md promises two pages for: 12 columns, three of
    them sensitive, the attacks of WP216 and others, a policy and eight gates."""
    full = record()
    columns = full["settings"]["columns"]
    protected = [f"measurement_{i}" for i in range(3)]
    del columns["diagnosis"]
    columns |= {name: {"role": "sensitive"} for name in protected}
    columns |= {f"column_{i}": columns["age"] for i in range(12 - len(columns))}
    classes, diversity = full["audit"]["verdicts"][:2]
    named = [{**diversity, "model": f"l_diversity l=2 attribute={name}"} for name in protected]
    full["audit"]["verdicts"] = [classes, *named]
    models = full["promise"]["models"]
    full["promise"]["models"] = [models[0], *({**models[1], "attribute": n} for n in protected)]
    risks = [(name, 0.1354, 0.0123, 0.4658) for name in protected]
    shapes = [(kind, 0.8963, 0.8362, 0.9563) for kind in ("univariate", "multivariate")]
    figures = ("worst_loss", "worst_suppression", "worst_risk")
    full["evaluation"]["measures"] |= {
        **attack("singling_out", *shapes),
        **attack("linkability", ("", 0.0012, 0.0, 0.0021)),
        **attack("inference", *risks),
        **attack("membership", ("", 0.0617, 0.0023, 0.1212)),
        "disclosure": reports.findings([reports.figure("certain", 0.1, n) for n in protected]),
        "fairness": reports.findings([reports.figure(name, 0.1234, "age") for name in figures]),
    }
    bounds = ("singling_out.high", "inference.high", "membership.high", "marginals.wasserstein")
    full["evaluation"]["gates"] += [
        {"gate": f"{name} at most 0.5", "passed": True, "found": f"{name} at most 0.5: 0.1"}
        for name in (*bounds, "disclosure.gain", "learning.auc_loss")
    ]
    return full


@pytest.mark.parametrize("given", [record, rich_record])
def test_two_pages_and_annexes(tmp_path: Path, given: Callable[[], dict[str, Any]]) -> None:
    """As a browser prints it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        skip_or_fail("no Chromium: install Debian's package chromium")
    content = json.loads(seal_record(json.dumps(given())).text)
    for annexes, most in ((content["annexes"], 6), ([], 2)):
        page = tmp_path / "page.html"
        page.write_text(Facts({**content, "annexes": annexes}).page())
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        pdf = tmp_path / "page.pdf"
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [chromium, *arguments, profile, f"--print-to-pdf={pdf}", page.as_uri()]
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        n_pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf.read_bytes()))
        assert 0 < n_pages <= most


def test_a_day_that_has_passed() -> None:
    today = date(2026, 3, 1)
    assert has_passed("2026-02-28", today)
    assert not has_passed("2026-03-01", today)  # the last day is one of use
    assert not has_passed("no last day is set", today)


def test_what_identifies_directly_is_told_by_its_role() -> None:
    given = record()
    given["settings"]["policy"] = None
    given["settings"]["columns"] |= {
        "weight": {"role": "drop"},
        "code": {"role": "identifier", "pseudonym": True},
    }
    gates = [
        {"gate": f"{figure} at most 0.9", "passed": True, "found": "x"}
        for figure in ("disclosure.gain", "reidentification.prosecutor_max")
    ]
    certain = [reports.figure("certain", 0.1, of) for of in ("diagnosis", "income")]
    own = {"gate": "disclosure.certain of income at most 0.2", "passed": True, "found": "x"}
    measures = {"disclosure": reports.findings(certain)}
    given["evaluation"] = {"measures": measures, "gates": [*gates, own]}
    found = seal_record(json.dumps(given))
    ema = texts(found, "Annex: EMA")
    assert ema["1 direct identifiers"] == (
        "removed: name; as pseudonyms: code; other columns that are removed: weight"
    )
    assert ema["4 threshold"] == (
        "0.09 by EMA and Health Canada: the largest chance is above 0.09; k = 10, so at most 1/10; "
        "gates: reidentification.prosecutor_max at most 0.9"
    )
    assert ema["5 actual risk"] == "at most 1/10 by class size: above 0.09"
    assert ema["recoding of subject numbers"] == "pseudonyms: code; removed: name"
    risks = texts(found, "Risks")
    assert risks["rows whose class all but tells diagnosis"].endswith("| no gate")
    assert risks["rows whose class all but tells income"].endswith("| " + own["gate"])
