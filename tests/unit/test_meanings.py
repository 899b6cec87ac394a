"""Pages of records with measures whose plug-ins are not installed."""

import re
from typing import Any

import anonlib
from anonlib.pages.comparison import OTHER, make_comparison_page
from anonlib.pages.meanings import explain_figure, explain_names, find_kind
from anonlib.pages.release import release_page
from tests import reports
from tests.unit.test_certificate import facts, texts
from tests.unit.test_evaluate_in_memory import released

ABOUT = "Counts the persons that anyone finds."
SAID = {"is_risk": True, "about": ABOUT, "names": {"found": "persons; 0 to 1, more is worse"}}


def record(value: float = 0.5, **said: Any) -> dict[str, Any]:
    """A record with the measure `foreign`, of which nothing is said but `said`."""
    found = reports.findings([reports.figure("found", value)]) | said
    made = reports.record()
    made["evaluation"]["measures"]["foreign"] = found
    return made


def test_a_record_says_what_its_measures_are() -> None:
    found = released("uniqueness").record
    own = found["evaluation"]["measures"]["uniqueness"]
    assert own["is_risk"] is True
    assert own["about"].endswith(".")
    assert own["names"].keys() == {figure["name"] for figure in own["figures"]}
    assert "release_unique" in own["names"]
    kept = released("marginals").record["evaluation"]["measures"]["marginals"]
    assert kept["is_risk"] is False


def test_a_report_follows_the_record() -> None:
    found = release_page(record(**SAID))
    (shown,) = [each for each in found.risk if each.name == "foreign"]
    assert shown.about == "Counts the persons that anyone finds"
    assert shown.of_table[0].meaning == SAID["names"]["found"]
    assert "foreign" not in [each.name for each in (*found.utility, *found.other)]


def test_what_nobody_knows_is_said_to_be_unknown() -> None:
    found = release_page(record())
    assert [each.name for each in found.other] == ["foreign"]
    assert "foreign" not in [each.name for each in (*found.utility, *found.risk)]
    page = anonlib.pages.render(record())
    assert 'id="other"' in page
    assert re.search(r"Whether they are of utility or of risk is not known", page)
    assert 'id="other"' not in anonlib.pages.render(record(**SAID))


def test_a_comparison_follows_the_records() -> None:
    this, other = record(0.5, **SAID), record(0.4, **SAID) | {"run_id": "other"}
    found = make_comparison_page(this, other)
    (table,) = [each for each in found.risks if each.caption == "foreign"]
    assert table.rows == (("found", 0.5, 0.4, OTHER, SAID["names"]["found"]),)
    unknown = make_comparison_page(record(), record() | {"run_id": "other"})
    assert [each.caption for each in unknown.others] == ["foreign"]
    assert "foreign" not in [each.caption for each in (*unknown.risks, *unknown.utilities)]
    one = make_comparison_page(record(), other)
    assert "foreign" in [each.caption for each in one.risks]


def test_a_certificate_follows_the_record() -> None:
    def utility(made: dict[str, Any]) -> str:
        return texts(facts(evaluation=made["evaluation"]), "Annex: EMA")["3 data utility"]

    assert "foreign" not in utility(record(**SAID))
    assert utility(record(**SAID | {"is_risk": False})).endswith("; foreign")
    assert utility(record()).endswith("; whether of utility or of risk is not known: foreign")


def test_records_of_earlier_versions_are_read_by_the_plug_ins() -> None:
    earlier = reports.record()
    assert find_kind("disclosure", earlier) is True
    assert find_kind("moments", earlier) is False
    assert "mean" in explain_names("moments", earlier)
    assert explain_figure("foreign.found", record(), record(**SAID)) == SAID["names"]["found"]
    assert explain_figure("foreign.found", record()) == ""
