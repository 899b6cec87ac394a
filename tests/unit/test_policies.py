"""Policies: what each kind of rule finds in a config, and what it finds in a release."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import anonlib
from anonlib.auditing.report import AuditReport, Verdict
from anonlib.config.dump import format_config
from anonlib.config.model import Config, PrivacySection
from anonlib.config.policies import KINDS, ClassSize, build_policy, exact, list_policies
from anonlib.config.policies.judgement import (
    check_policy,
    judge_rules,
    narrow_policy,
    require_rules,
)
from anonlib.config.reading import load, parse
from anonlib.errors import AuditError, ConfigError, Problem
from anonlib.pages.release import count_states
from anonlib.table.schema import Column, Role, Schema
from tests.texts import ROOT, fenced

AGE = {"role": "quasi_identifier", "scale": "continuous"}
ZIP = {"role": "quasi_identifier", "scale": "nominal"}
RAW: dict[str, Any] = {
    "source": {"format": "dataframe"},
    "attributes": {
        "wage": {"role": "quasi_identifier", "scale": "continuous"},
        "illness": {"role": "sensitive"},
    },
    "one_row_per_person": True,
    "privacy": {"models": [{"type": "k_anonymity", "k": 20}]},
    "release": {"path": "out/people"},
}


LOW = {"models": [{"type": "k_anonymity", "k": 5}]}


def rule(**fields: Any) -> dict[str, Any]:
    return {"id": "it", "says": "It is so.", "source": "a law", **fields}


def raw(*rules: dict[str, Any], **changes: Any) -> dict[str, Any]:
    named = [{**each, "id": f"r{i}"} for i, each in enumerate(rules)]
    policy = {"name": "own", "title": "a policy", "rules": named}
    attributes = {**RAW["attributes"], **changes.pop("attributes", {})}
    return {**RAW, "attributes": attributes, "policy": policy, **changes}


def problems(*rules: dict[str, Any], **changes: Any) -> list[Problem]:
    try:
        parse(raw(*rules, **changes))
    except ConfigError as error:
        return list(error.problems)
    return []


def state(given: dict[str, Any], schema: Schema | None = None, **changes: Any) -> str:
    """The state of a rule, also of one that is not kept, for which there is no config."""
    whole = raw(given, **changes)
    policy = build_policy(whole.pop("policy"), "policy", [])
    config = parse(whole).model_copy(update={"policy": policy})
    (verdict,) = judge_rules(config, schema)
    return verdict.state


def test_what_texts_look_like_is_judged_as_a_name() -> None:
    """A name of a column may tell nothing of what it holds."""
    absent = rule(type="absent", names=["e mail", "name"])
    config = parse(raw(absent))
    named = PrivacySection(models=config.privacy.models, acknowledge_unique=("wage",))
    asked = config.model_copy(update={"privacy": named})

    def found(kinds: dict[str, str] | None, config: Config = config) -> tuple[str, str]:
        (verdict,) = judge_rules(config, kinds=kinds)
        return verdict.state, verdict.reason

    nothing = ("to confirm", "no released column has such a name or type; none may hold it")
    assert found(None) == nothing
    assert "no text of one looks like" in found({"wage": "phone numbers"})[1]
    state, says = found({"wage": "e-mail addresses"})
    assert state == "not kept"
    assert "wage (e-mail addresses); drop them, or name what" in says
    state, says = found({"wage": "e-mail addresses"}, asked)
    assert (state, says.endswith("wage (e-mail addresses)")) == ("to confirm", True)
    assert found({"illness": "names of persons"})[0] == "to confirm"


def test_the_policies_of_anonlib() -> None:
    assert [*list_policies()] == ["cms-11", "ema-0070", "hipaa-safe-harbor", "k-strict", "pdpc"]
    for name in list_policies():
        models = [
            {"type": "k_anonymity", "k": 20},
            {"type": "l_diversity", "l": 3, "attribute": "illness"},
        ]
        config = parse({**RAW, "privacy": {"models": models}, "policy": name})
        assert config.policy is not None
        assert config.policy.name == name
        states = [verdict.state for verdict in judge_rules(config)]
        assert "to confirm" in states  # no config proves all that a law asks
        assert "not kept" not in states


@pytest.mark.parametrize(
    ("policy", "least"), [("ema-0070", 12), ("cms-11", 11), ("pdpc", 5), ("k-strict", 20)]
)
def test_class_sizes_to_the_person(policy: str, least: int) -> None:
    """1/11 = 0.0909 is above 0.09: EMA and Health Canada ask for 12."""

    def wrong(k: int) -> list[str]:
        models = [
            {"type": "k_anonymity", "k": k},
            {"type": "l_diversity", "l": 3, "attribute": "illness"},
        ]
        try:
            parse({**RAW, "privacy": {"models": models}, "policy": policy})
        except ConfigError as error:
            return [problem.where for problem in error.problems]
        return []

    assert wrong(least) == []
    assert wrong(least - 1) == ["privacy.models.0.k"]


def test_a_chance_at_its_bound() -> None:
    (problem,) = problems(
        rule(type="class_size", risk_at_most=0.09),
        privacy={"models": [{"type": "k_anonymity", "k": 11}]},
    )
    assert problem.text == (
        "k is 11, a chance of 1/11 = 0.0909; 12 is the least; policy own, rule r0: It is so. "
        "(a law)"
    )


@given(st.integers(2, 10_000), st.integers(1, 10_000))
def test_least_class_of_a_chance(p: int, q: int) -> None:
    """The least n with 1/n at most a chance, as fractions."""
    chance = Fraction(1, 2) * min(Fraction(p, q), 1)
    size = ClassSize(
        id="it", type="class_size", says="s", source="s", risk_at_most=str(chance)
    ).least
    assert Fraction(1, size) <= chance
    assert size == 1 or Fraction(1, size - 1) > chance


def test_numbers_as_they_are_written() -> None:
    assert exact(0.1) + exact(0.2) == exact("0.3") == Fraction(3, 10)
    within = rule(type="setting", field="privacy.suppression_limit", at_most=0.3)
    privacy = {**RAW["privacy"], "suppression_limit": 0.3}
    assert state(within, privacy=privacy) == "kept"
    assert state(within, privacy={**privacy, "suppression_limit": 0.3000001}) == "not kept"


def test_models_of_sensitive_columns() -> None:
    wanted = rule(type="model", any_of=[{"type": "l_diversity", "l": 3}])
    (problem,) = problems(wanted)
    assert problem.where == "privacy.models"
    assert "illness: needs l_diversity l=3 kind=distinct" in problem.text
    for least, kind, kept in ((2, "distinct", False), (3, "distinct", True), (3, "entropy", True)):
        models = [*RAW["privacy"]["models"], {"type": "l_diversity", "l": least, "kind": kind}]
        assert (state(wanted, privacy={"models": models}) == "kept") == kept
    for p, kept in ((2, False), (3, True)):  # the same predicate under another name
        models = [*RAW["privacy"]["models"], {"type": "p_sensitive", "p": p}]
        assert (state(wanted, privacy={"models": models}) == "kept") == kept
    nobody = {**RAW["attributes"], "illness": {"role": "drop"}}
    assert state(wanted, attributes=nobody) == "to confirm"


def test_what_else_may_be_sensitive() -> None:
    """A target is, unless it is public; nothing shows that what is published as it is is not."""
    wanted = rule(type="model", any_of=[{"type": "l_diversity", "l": 3}])
    l_3 = {"type": "l_diversity", "l": 3, "attribute": "illness"}
    models = {"models": [*RAW["privacy"]["models"], l_3]}
    target = {"role": "target"}
    weak = {"models": [*models["models"], {**l_3, "l": 2, "attribute": "hiv"}]}
    assert state(wanted, attributes={"hiv": target}, privacy=weak) == "not kept"
    strong = {"models": [*models["models"], {**l_3, "attribute": "hiv"}]}
    assert state(wanted, attributes={"hiv": target}, privacy=strong) == "kept"
    public = {"hiv": {**target, "public": True}}
    assert state(wanted, attributes=public, privacy=models) == "to confirm"
    plain = {"note": {"role": "insensitive"}}
    assert state(wanted, attributes=plain, privacy=models) == "to confirm"


def test_settings_and_gates() -> None:
    given = rule(type="setting", field="accountability.approver")
    assert state(given) == "not kept"
    assert state(given, accountability={"approver": "data office"}) == "kept"
    unlinked = rule(type="setting", field="privacy.acknowledge_unique", one_of=[False])
    assert state(unlinked) == "kept"
    assert state(unlinked, privacy={**RAW["privacy"], "acknowledge_unique": ["wage"]}) == "not kept"
    assert state(rule(type="setting", field="privacy.nothing.else")) == "not kept"
    both = rule(type="setting", field="kernel", one_of=["mdav"], at_most=1)
    assert "give either one_of" in problems(both)[0].text
    wanted = rule(type="gate", figure="reidentification.marketer", at_most=0.05)
    evaluate = {"measures": ["reidentification"]}
    assert state(wanted) == "not kept"
    for most, kept in ((0.05, True), (0.01, True), (0.06, False)):
        gates = [{"figure": "reidentification.marketer", "at_most": most}]
        assert (state(wanted, evaluate=evaluate, gates=gates) == "kept") == kept


def test_a_gate_is_on_the_figure_that_is_meant() -> None:
    """A share of persons above a chance says nothing without the chance."""
    figure = "reidentification.prosecutor_at_risk"
    gates = [{"figure": figure, "at_most": 0}]
    plain = rule(type="gate", figure=figure, at_most=0)
    named = {**plain, "parameters": {"threshold": 0.05}}

    def measured(given: dict[str, Any], **parameters: Any) -> str:
        evaluate = {"measures": [{"type": "reidentification", **parameters}]}
        return state(given, evaluate=evaluate, gates=gates)

    assert measured(plain) == measured(plain, threshold=0.09) == "kept"
    assert measured(plain, threshold=0.5) == "to confirm"
    assert measured(named) == measured(named, threshold=0.5) == "not kept"
    assert measured(named, threshold=0.05) == "kept"
    assert measured(named, threshold=0.05, population=10**6) == "to confirm"
    assert measured({**plain, "parameters": {"threshold": 5}}) == "not kept"
    (problem,) = problems({**plain, "parameters": {"share": 0.05}})
    assert problem.text == (
        "reidentification has no parameter share; there are: population, threshold"
    )


def test_columns_that_must_not_be_there() -> None:
    names = rule(type="absent", names=["phone*", "birth date"])
    assert state(names) == "to confirm"
    for name in ("phone", "Phones", "home_phone", "birth-date", "dateOfBirthDate"):
        kept = "to confirm"
        assert state(names, attributes={name: {"role": "drop"}}) == kept
        assert state(names, attributes={name: {"role": "sensitive"}}) == "not kept"
    assert state(names, attributes={"microphone": {"role": "sensitive"}}) == "to confirm"
    # Patterns are split as names are, and a name may be written as one word.
    for written in ("date_of_birth", "DateOfBirth", "ipv4", "e-mail"):
        own = rule(type="absent", names=[written])
        assert state(own, attributes={written: {"role": "sensitive"}}) == "not kept"
    joined = rule(type="absent", names=["date of birth"])
    assert state(joined, attributes={"dateofbirth": {"role": "sensitive"}}) == "not kept"
    assert "needs a letter or a digit" in problems(rule(type="absent", names=["--"]))[0].text
    keys = {"person": {"role": "identifier", "pseudonym": True}}
    more = {"attributes": keys, "pseudonyms": {"key_env": "KEY"}, "one_row_per_person": "person"}
    assert state(names, **more) == "to confirm"
    assert state({**names, "pseudonyms": True}, **more) == "not kept"


def test_names_of_other_languages_are_judged() -> None:
    """By the English words that they mean."""

    def judged(name: str, *patterns: str) -> str:
        return state(
            rule(type="absent", names=[*patterns]), attributes={name: {"role": "sensitive"}}
        )

    for name, pattern in [
        ("Nachname", "surname"),
        ("Telefonnummer", "phone*"),
        ("Mitgliedsnummer", "member number"),
        ("kod pocztowy", "postcode"),
        ("Führerschein-Kennung", "id"),
        ("Kfz-Kennzeichen", "license plate"),
    ]:
        assert judged(name, pattern) == "not kept", name
    assert judged("Mitglied seit", "member number", "card*") == "to confirm"
    assert judged("Geschlecht", "surname", "id") == "to confirm"


def test_types_that_only_the_source_knows() -> None:
    dates = rule(type="coarse", types=["date"], period="year")
    day = {"seen": {"role": "sensitive"}}
    assert state(dates, attributes=day) == "to confirm"
    assert state(dates, attributes={"seen": {"role": "sensitive", "type": "date"}}) == "not kept"
    column = Column("seen", "c0", Role.SENSITIVE, pa.date32(), "date")
    assert state(dates, Schema((column,)), attributes=day) == "not kept"


@pytest.mark.parametrize(
    ("type", "about"),
    [
        (pa.struct([("phone", pa.string()), ("n", pa.int32())]), {"phones"}),
        (pa.struct([("a", pa.struct([("homePhone", pa.string())]))]), {"phones"}),
        (pa.struct([("birth_date", pa.date32())]), {"dates"}),
        (pa.list_(pa.timestamp("us", "UTC")), {"dates"}),
        (pa.list_(pa.struct([("phone", pa.date32())])), {"phones", "dates"}),
        (pa.map_(pa.string(), pa.list_(pa.date32())), {"dates"}),
        (pa.map_(pa.binary(), pa.string()), {"pictures"}),
        (pa.struct([("date of it", pa.string()), ("timestamp", pa.int64())]), set()),
        (pa.list_(pa.decimal128(10, 2)), set()),
    ],
)
def test_columns_that_are_nested(type: pa.DataType, about: set[str]) -> None:
    """What is in a struct, a list or a map is released as well."""
    rules = {
        "phones": rule(type="absent", names=["phone", "item"]),
        "dates": rule(type="coarse", types=["date", "timestamp"], period="year"),
        "pictures": rule(type="absent", types=["binary"]),
    }
    schema = Schema((Column("contact", "c0", Role.INSENSITIVE, type, "nested"),))
    found = {
        name
        for name, each in rules.items()
        if state(each, schema, attributes={"contact": {"role": "insensitive"}}) == "not kept"
    }
    assert found == about


ZIPS = "12345;1234*;123**;*****\n12399;1239*;123**;*****\n90001;9000*;900**;*****\n"
AGES = {
    "of ten": "{'*': {'80-89': [80, 89], '90-99': [90, 95]}}",
    "of five": "{'*': {'80-89': [80, 89], '90-94': [90, 91], '95-99': [95]}}",
    "from 95": "{'*': {'80-89': [80, 89], '95-99': [95, 96]}}",
    "of ten, and unknown": "{'*': {'80-89': [80, 89], '90-99': [90, 95], young: [unknown]}}",
}


def _at_level(path: Path, level: int) -> dict[str, Any]:
    column = {**ZIP, "hierarchy": str(path)}
    recode = {"nominal": {"type": "lca", "level": level}}
    return {"attributes": {"zip": column, "age": column}, "recode": recode}


def test_first_characters(tmp_path: Path) -> None:
    zips = rule(type="coarse", names=["zip"], characters=3)
    assert state(zips, attributes={"zip": ZIP}) == "not kept"
    assert state(zips, attributes={"zip": ZIP}, recode={"nominal": "suppress"}) == "kept"
    assert state(zips, attributes={"zip": {"role": "insensitive"}}) == "not kept"
    assert state(zips, attributes={"zip": {"role": "drop"}}) == "to confirm"
    path = tmp_path / "zip.csv"
    path.write_text(ZIPS)
    expected = {0: "not kept", 1: "not kept", 2: "kept", 3: "kept", 9: "kept"}
    assert {n: state(zips, **_at_level(path, n)) for n in expected} == expected
    path.write_text("12345;Utah;*\n84001;Utah;*\n90001;Ohio;*\n")
    assert state(zips, **_at_level(path, 1)) == "to confirm"  # are these states?


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ("of ten", "kept"),
        ("of five", "not kept"),
        ("from 95", "to confirm"),
        ("of ten, and unknown", "to confirm"),
    ],
)
def test_ages_in_one_group(tmp_path: Path, ages: str, expected: str) -> None:
    old = rule(type="coarse", names=["age"], top=90)
    path = tmp_path / "age.yaml"
    path.write_text(AGES[ages])
    assert state(old, **_at_level(path, 1)) == expected
    assert state(old, **_at_level(path, 0)) == "not kept"


@pytest.mark.parametrize(
    ("recoder", "expected"),
    [
        ("centroid", "not kept"),
        ("interval", "not kept"),
        ({"type": "interval", "top": 90}, "kept"),
        ({"type": "interval", "top": 90.5}, "not kept"),
        ({"type": "interval", "top": 85, "round_to": 5}, "kept"),
        ("suppress", "kept"),
    ],
)
def test_ages_as_numbers(recoder: Any, expected: str) -> None:
    old = rule(type="coarse", names=["age"], top=90)
    assert state(old, attributes={"age": AGE}, recode={"continuous": recoder}) == expected


def test_dates_to_the_year(tmp_path: Path) -> None:
    dates = rule(type="coarse", names=["birth"], period="year")
    birth = {"birth": {"role": "quasi_identifier", "scale": "continuous"}}
    for unit, expected in (("year", "kept"), ("month", "not kept")):
        recode = {"columns": {"birth": {"type": "interval", "round_to": unit}}}
        assert state(dates, attributes=birth, recode=recode) == expected
    path = tmp_path / "days.csv"
    path.write_text("2020-01-31;2020-01;2020;2020s;*\n2021-02-28;2021-02;2021;2020s;*\n")
    for level, expected in enumerate(["not kept", "not kept", "kept", "kept", "kept"]):
        column = {"birth": {**ZIP, "hierarchy": str(path)}}
        recode = {"nominal": {"type": "lca", "level": level}}
        assert state(dates, attributes=column, recode=recode) == expected


def test_rules_for_some_kinds_of_access() -> None:
    rules = [rule(type="confirm"), rule(type="class_size", at_least=30, access=["public"])]
    assert [p.where for p in problems(*rules)] == ["privacy.models.0.k"]  # who gets it is unknown
    assert [p.where for p in problems(*rules, context={"access": "public"})] == [
        "privacy.models.0.k"
    ]
    config = parse(raw(*rules, context={"access": "internal"}))
    verdicts = judge_rules(config)
    assert [(v.state, v.reason) for v in verdicts][1] == (
        "does not apply",
        "context.access is internal",
    )
    assert "of another kind of access" in count_states([{"state": v.state} for v in verdicts])


def test_all_problems_of_a_policy_together() -> None:
    found = {
        p.where: p.text
        for p in problems(
            rule(type="class_size"),
            rule(type="class_sise", at_least=2),
            rule(type="coarse", names=["zip"], characters=3, period="year"),
            rule(type="model", any_of=[{"type": "l_diversity"}]),
            rule(type="class_size", risk_at_most="much"),
            {"type": "confirm"},
            attributes={"wage": {"role": "quasi_identifier"}},
        )
    }
    assert found["policy.rules.0"] == "give exactly one of at_least and risk_at_most"
    assert found["policy.rules.1.type"].startswith(
        "name the kind of rule by `type`; did you mean class_size?"
    )
    assert found["policy.rules.2"] == "give exactly one of characters, period and top"
    assert "policy.rules.3.any_of.0" in found
    assert found["policy.rules.4.risk_at_most"] == "must be a number such as 0.09 or 1/11"
    assert {"policy.rules.5.says", "policy.rules.5.source"} <= found.keys()
    assert "attributes.wage.scale" in found  # with those of the config itself


def test_an_unknown_plug_in_is_one_problem() -> None:
    (model,) = problems(rule(type="model", any_of=[{"type": "l_diversitee"}]))
    assert model.where == "policy.rules.0.any_of.0"
    assert "did you mean l_diversity?" in model.text
    (none,) = problems(rule(type="model", any_of=[]))
    assert none.where == "policy.rules.0.any_of"
    asked = {"at_most": 0.09, "parameters": {"below": 3}}
    (measure,) = problems(rule(type="gate", figure="reidentificatio.marketer", **asked))
    assert measure.where == "policy.rules.0"
    assert measure.text.startswith(
        "unknown measure 'reidentificatio'; did you mean reidentification?"
    )
    (parameter,) = problems(rule(type="gate", figure="linkage.record", **asked))
    assert parameter.text.startswith("linkage has no parameter below; there are: ")


@pytest.mark.parametrize("given", ["{}", "[]", "false", "0", "''", "empty.yaml", "only.yml"])
def test_no_policy_is_a_problem(tmp_path: Path, given: str) -> None:
    """A file that was cut off must not switch all rules off."""
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "only.yml").write_text("# to be written\n")
    (tmp_path / "people.yaml").write_text(f"{format_config(parse(RAW))}policy: {given}\n")
    with pytest.raises(ConfigError, match="policy"):
        load(tmp_path / "people.yaml")


def test_a_name_that_is_taken() -> None:
    own = yaml.safe_load(list_policies()["k-strict"])
    assert build_policy(own, "policy", []) is not None
    found: list[Problem] = []
    assert build_policy({**own, "rules": own["rules"][1:]}, "policy", found) is None
    assert [problem.where for problem in found] == ["policy.name"]
    assert "comes with anonlib" in found[0].text


def test_a_release_that_is_over() -> None:
    people = pd.DataFrame({"wage": range(60), "illness": [f"i{i % 5}" for i in range(60)]})
    over = {**RAW, "context": {"expires": "2020-01-01"}}
    with pytest.raises(ConfigError, match=r"context\.expires: is over"):
        anonlib.anonymize(people, over)


def test_files_and_names(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(list_policies()["pdpc"].replace("name: pdpc", "name: ours"))
    text = format_config(parse(RAW)) + "policy: own.yaml\n"
    (tmp_path / "people.yaml").write_text(text)
    config = load(tmp_path / "people.yaml")
    assert config.policy is not None
    assert config.policy.name == "ours"
    assert parse(yaml.safe_load(format_config(config))).policy == config.policy
    for policy, said in (
        ("ema-70", "unknown policy; did you mean ema-0070?"),
        ("hipaa", "unknown policy; did you mean hipaa-safe-harbor?"),
        ("no.yaml", "can't be read (No such file or directory)"),
    ):
        with pytest.raises(ConfigError, match="policy") as caught:
            parse({**RAW, "policy": policy})
        (problem,) = caught.value.problems
        assert (problem.where, said in problem.text) == ("policy", True)


def test_the_policy_of_the_guide() -> None:
    blocks = [b for b in fenced((ROOT / "docs/privacy/policies.md").read_text()) if b.language]
    short, own = [yaml.safe_load(block.text) for block in blocks]
    assert short["policy"] in list_policies()
    found: list[Problem] = []
    policy = build_policy(own, "policy", found)
    assert found == []
    assert policy is not None
    assert {rule.type for rule in policy.rules} == {*KINDS}


def _audited(*values: float | None, holds: bool = True) -> AuditReport:
    verdicts = tuple(
        Verdict(f"k_anonymity k={i}", holds, v, 12, 0, ()) for i, v in enumerate(values)
    )
    return AuditReport(100, 5, verdicts, (), ((20, 5),), "none")


def test_the_smallest_class_of_an_audit() -> None:
    assert _audited(14).smallest_class == 14
    assert _audited(14, 13).smallest_class == 13
    assert _audited(None).smallest_class == 12  # all that the verdict says
    assert _audited(None, holds=False).smallest_class is None
    assert _audited(14).and_("each file", _audited(11)).smallest_class == 11
    other = replace(_audited(14).verdicts[0], model="l_diversity l=2", value=2)
    assert replace(_audited(14), verdicts=(other,)).smallest_class is None


def _config(**changes: Any) -> Config:
    return parse({**RAW, "policy": "ema-0070", **changes})


def test_the_audit_is_judged_again() -> None:
    """A class below the policy's is published by nobody, whatever the config says."""
    config, schema = _config(), Schema(())
    assert require_rules(config, schema, 20)[0].reason == (
        "the smallest class has 20 persons, a chance of 1/20 = 0.0500"
    )
    for smallest in (0, 11):
        with pytest.raises(AuditError, match="policy ema-0070 is not kept, nothing was released"):
            require_rules(config, schema, smallest)
    assert require_rules(parse(RAW), schema, 0) == ()


def test_classes_that_cant_be_counted_are_for_a_person_to_confirm() -> None:
    """As in a published table of a unit: what the config asks for was judged at release."""
    verdict, *_ = judge_rules(_config(), Schema(()), uncounted=True)
    assert (verdict.state, verdict.where) == ("to confirm", "unit")
    assert verdict.reason == (
        "persons can't be counted in this table; its classes were judged at release"
    )
    low = _config().model_copy(update={"privacy": parse(RAW | {"privacy": LOW}).privacy})
    verdict, *_ = judge_rules(low, Schema(()), uncounted=True)
    assert verdict.state == "not kept"
    assert verdict.reason.startswith("k is 5")


def test_what_a_sample_can_show() -> None:
    assert narrow_policy(None) is None
    narrow = narrow_policy(_config().policy)
    assert narrow is not None
    assert [each.id for each in narrow.rules] == ["risk"]
    assert [*check_policy(_config().model_copy(update={"policy": narrow}))] == []


def test_in_memory() -> None:
    people = pd.DataFrame({"wage": range(60), "illness": [f"i{i % 5}" for i in range(60)]})
    arguments: dict[str, Any] = {
        "quasi_identifiers": ["wage"],
        "sensitive": ["illness"],
        "one_row_per_person": True,
        "policy": "ema-0070",
    }
    with pytest.raises(ConfigError, match="; 12 is the least"):
        anonlib.anonymize(people, **arguments)
    release = anonlib.anonymize(people, k=12, **arguments)
    assert [rule["state"] for rule in release.record["policy"]][:2] == ["kept", "to confirm"]
    assert "the smallest class has 12 persons" in release.report()
    assert "Rules of ema-0070: 1 kept, 5 for a person to confirm." in release.report()
    found = anonlib.suggest(people, k=12, **arguments, ks=(5, 15), seconds=0.01)
    assert {attempt.k for attempt in found.attempts} <= {12, 15}
