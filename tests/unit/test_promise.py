"""What a release promises, and which promises are stronger."""

import itertools
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.errors import InputError
from anonlib.privacy import CellCounts, PrivacyModel, SparseCounts
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.shares import make_reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.run.history import Commit
from anonlib.run.promise import (
    DECLARED,
    Promise,
    describe_change,
    find_promise,
    make_promise,
    require_kept,
)
from anonlib.run.publish import Target
from anonlib.table.schema import Field, Schema

MODELS: list[PrivacyModel] = [
    *(KAnonymity(k=k) for k in (2, 5, 10)),
    *(
        LDiversity(l=l, attribute="s", kind=kind)  # type: ignore[arg-type]
        for l in (2, 3)  # noqa: E741
        for kind in ("distinct", "entropy")
    ),
    *(LDiversity(l=l, attribute="s", kind="recursive", c=c) for l in (2, 3) for c in (1.0, 3.0)),  # noqa: E741
    *(PSensitive(p=p, attribute="s") for p in (2, 3)),
    *(AlphaK(alpha=alpha, attribute="s") for alpha in (0.4, 0.7)),
    *(
        TCloseness(t=t, attribute="s", distance=distance)  # type: ignore[arg-type]
        for t in (0.2, 0.5)
        for distance in ("equal", "ordered")
    ),
    *(DeltaDisclosure(delta=delta, attribute="s") for delta in (0.5, 1.5)),
    *(
        BetaLikeness(beta=beta, attribute="s", kind=kind)  # type: ignore[arg-type]
        for beta in (0.5, 2.0)
        for kind in ("basic", "enhanced")
    ),
]
PAIRS = [(a, b) for a, b in itertools.permutations(MODELS, 2) if a.implies(b)]


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=6))
@settings(max_examples=200)
def test_a_model_that_implies_another_holds_no_cell_that_fails_it(cells: list[list[int]]) -> None:
    values = [np.array(cell) for cell in cells]
    everything = np.concatenate(values)
    entries = [np.unique(cell, return_counts=True) for cell in values]
    counts = SparseCounts(
        np.concatenate([np.full(len(value), i) for i, (value, _) in enumerate(entries)]),
        np.concatenate([value for value, _ in entries]),
        np.concatenate([count for _, count in entries]),
    )
    sizes = np.array([len(cell) for cell in cells])
    seen = CellCounts(sizes, sizes, {"s": counts}, {"s": make_reference(everything, 5)})
    holds = {model: model.holds(seen) for model in MODELS}
    for strong, weak in PAIRS:
        assert not (holds[strong] & ~holds[weak]).any(), (strong, weak)


def test_every_model_implies_itself_and_what_is_weaker() -> None:
    assert all(model.implies(model) for model in MODELS)
    assert KAnonymity(k=10).implies(KAnonymity(k=2))
    assert not KAnonymity(k=2).implies(KAnonymity(k=10))
    assert LDiversity(l=2, attribute="s", kind="entropy").implies(LDiversity(l=2, attribute="s"))
    assert not LDiversity(l=2, attribute="s").implies(LDiversity(l=2, attribute="t"))
    assert TCloseness(t=0.1, attribute="s").implies(TCloseness(t=0.2, attribute="s"))
    weaker = TCloseness(t=0.2, attribute="s", distance="ordered")
    assert not TCloseness(t=0.1, attribute="s").implies(weaker)


FIRST = Promise(
    models=(KAnonymity(k=10), LDiversity(l=3, attribute="s")),
    controllers={"ab12": (KAnonymity(k=20),)},
    columns={"age": "quasi_identifier centroid", "s": "sensitive"},
    persons=DECLARED,
    joint=True,
    tokens=("t1", "t2"),
    rules={"rule class-size of policy own": "d1"},
    exempt=("note",),
    apart="merged column inst",
    orders={"order of column s": "o1", "hierarchy of column s": "h1"},
)
STRONGER: list[dict[str, Any]] = [
    {},
    {"models": (KAnonymity(k=11), LDiversity(l=3, attribute="s"))},
    {"models": (*FIRST.models, TCloseness(t=0.1, attribute="s"))},
    {"models": (KAnonymity(k=30), LDiversity(l=3, attribute="s")), "controllers": {}},
    {"persons": "column id"},
    {"tokens": ("t1", "t2", "t3")},
    {"rules": {**FIRST.rules, "rule gate of policy own": "d2"}},
    {"exempt": ()},
    {"apart": "column inst"},
    {"orders": {**FIRST.orders, "order of column t": "o2"}},
]
WEAKER: list[dict[str, Any]] = [
    {"models": (KAnonymity(k=2), LDiversity(l=3, attribute="s"))},
    {"models": (KAnonymity(k=10),)},
    {"models": (KAnonymity(k=10), LDiversity(l=3, attribute="t"))},
    {"controllers": {}},
    {"controllers": {"cd34": (KAnonymity(k=20),)}},
    {"columns": {"age": "quasi_identifier centroid", "s": "insensitive"}},
    {"columns": {"age": "quasi_identifier interval", "s": "sensitive"}},
    {"columns": {"age": "insensitive", "s": "sensitive"}},
    {"columns": {"s": "sensitive"}},
    {"columns": {**FIRST.columns, "more": "insensitive"}},
    {"persons": "unit id"},
    {"joint": False},
    {"tokens": ("t1",)},
    {"rules": {}},
    {"rules": {"rule class-size of policy own": "d2"}},
    {"exempt": ("note", "remark")},
    {"apart": ""},
    {"apart": "column other"},
    {"apart": "merged column other"},
    {"orders": {}},
    {"orders": {**FIRST.orders, "order of column s": "o2"}},
    {"orders": {**FIRST.orders, "hierarchy of column s": "h2"}},
]


@pytest.mark.parametrize("change", STRONGER)
def test_stronger(change: dict[str, Any]) -> None:
    assert not [*replace(FIRST, **change).weaknesses(FIRST)]


@pytest.mark.parametrize("change", WEAKER)
def test_weaker(change: dict[str, Any]) -> None:
    other = replace(FIRST, **change)
    assert [*other.weaknesses(FIRST)]
    assert other.digest != FIRST.digest


def test_record_and_back() -> None:
    again = Promise.from_dict(FIRST.to_dict())
    assert again.digest == FIRST.digest
    assert not [*again.weaknesses(FIRST)]
    assert not [*FIRST.weaknesses(again)]
    without = Promise.from_dict({**FIRST.to_dict(), "rules": {}})  # as before there were policies
    assert "rules" not in without.to_dict()
    assert without.digest != FIRST.digest
    assert again.exempt == FIRST.exempt
    assert (again.apart, again.orders) == (FIRST.apart, FIRST.orders)
    plain = replace(FIRST, exempt=(), apart="", orders={})
    optional = {"rules", "exempt", "apart", "orders"}
    assert plain.to_dict().keys() == FIRST.to_dict().keys() - (optional - {"rules"})
    for name in FIRST.to_dict().keys() - optional:
        content = {key: value for key, value in FIRST.to_dict().items() if key != name}
        with pytest.raises(InputError, match="damaged"):
            Promise.from_dict(content)


# --- what a table promises


ROOT, RECORD = "file:/out/people", "file:/out/people.private/one.json"


class Records:
    """The folder of the private records, with that of the run `one` if there is a text."""

    root = RECORD.rpartition("/")[0]

    def __init__(self, text: str | None):
        self._files = {} if text is None else {RECORD: text}

    def exists(self, path: str) -> bool:
        return path in self._files

    def read(self, path: str) -> str:
        return self._files[path]


def manifest_of(promise: Promise, run_id: str = "one", *steps: str) -> str:
    partition = {"steps": steps or ["controller"] * bool(promise.apart)}
    told = {"promise_sha256": promise.digest, "run_id": run_id, "partition": partition}
    return json.dumps(told)


def record_of(promise: Promise) -> str:
    return json.dumps({"promise": promise.to_dict()})


def table(*logged: str, manifest: str = "") -> Any:
    """A table: the manifests that its log has, newest first, and the one beside it."""
    commits = [Commit(9 - i, "any", "Append", text) for i, text in enumerate(logged)]
    made = SimpleNamespace(path=ROOT, commits=lambda: commits, manifest=lambda: manifest)
    made._list_events = made.commits
    made.newest_manifest = lambda: Target.newest_manifest(made)  # type: ignore[arg-type]
    return made


def records(text: str | None) -> Any:
    return Records(text)


OTHER = replace(FIRST, models=FIRST.models[:1])


def test_the_log_counts_and_not_the_manifest() -> None:
    """Anybody who may write there can edit the file beside the table."""
    there = table(manifest_of(FIRST), manifest_of(OTHER), manifest=manifest_of(OTHER, "two"))
    forgotten = table(manifest=manifest_of(FIRST))
    for each in (there, forgotten):
        known = find_promise(each, records(record_of(FIRST)))
        assert known.promise is not None
        assert known.digest == known.promise.digest == FIRST.digest
        assert find_promise(each, records(None)) == (FIRST.digest, None, True)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", '{"run_id": "one"}', '{"promise_sha256": "d", "run_id": "one"}'],
)
def test_a_manifest_that_does_not_say(text: str) -> None:
    for there in (table(text), table(manifest=text)):
        with pytest.raises(InputError, match=f"^release.path: the manifest of {ROOT} does not say"):
            find_promise(there, records(record_of(FIRST)))


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"promise": 1}'])
def test_a_record_that_is_damaged(text: str) -> None:
    with pytest.raises(InputError, match="damaged"):
        find_promise(table(manifest_of(FIRST)), records(text))


def test_a_record_of_another_promise() -> None:
    said = f"^release.record: the promise in {RECORD} is not that in the manifest of {ROOT}: "
    there, edited = table(manifest_of(FIRST)), records(record_of(OTHER))
    with pytest.raises(InputError, match=said):
        find_promise(there, edited)
    for promise in (FIRST, OTHER):
        with pytest.raises(InputError, match=said):
            require_kept(promise, there, edited)


def test_a_promise_that_is_kept() -> None:
    there = table(manifest_of(FIRST))
    for change in STRONGER:
        require_kept(replace(FIRST, **change), there, records(record_of(FIRST)))
    require_kept(FIRST, there, records(None))


def test_a_promise_that_is_not_kept() -> None:
    there, known = table(manifest_of(FIRST)), records(record_of(FIRST))
    for change in WEAKER:
        with pytest.raises(InputError, match="; a batch may only strengthen it: change the "):
            require_kept(replace(FIRST, **change), there, known)
    weak = replace(FIRST, models=(KAnonymity(k=2),))
    with pytest.raises(InputError) as caught:
        require_kept(weak, there, known)
    lacking = "was promised, and no model of this config implies it"
    assert str(caught.value) == (
        f"release.path: the table at {ROOT} promises more than this config: "
        f"k_anonymity k=10 {lacking}; l_diversity l=3 attribute=s kind=distinct {lacking}; "
        "a batch may only strengthen it: change the config, or publish all rows anew (`mode: "
        "overwrite`)"
    )


def test_without_the_record_no_other_promise_is_known() -> None:
    """A stronger one neither."""
    for change in (*STRONGER[1:], *WEAKER):
        with pytest.raises(InputError, match=f"its private record is not in {Records.root}, so "):
            require_kept(replace(FIRST, **change), table(manifest_of(FIRST)), records(None))


EARLIER = replace(FIRST, apart="", orders={})


def test_a_promise_of_an_earlier_version() -> None:
    """It had no orders and no column of controllers. Where the batch needs none it is the same;
    where they can't be known, no batch is as strong."""
    plain = table(manifest_of(EARLIER))
    for where in (records(record_of(EARLIER)), records(None)):
        require_kept(EARLIER, plain, where)
    require_kept(replace(EARLIER, apart="column x"), plain, records(record_of(EARLIER)))
    by_controller = table(manifest_of(EARLIER, "one", "controller", "kmeans"))
    for own in ("", "column inst"):
        batch = replace(EARLIER, apart=own)
        said = "models were promised for each controller of a column that the record, of an earl"
        with pytest.raises(InputError, match=said):
            require_kept(batch, by_controller, records(record_of(EARLIER)))
        with pytest.raises(InputError, match="its private record is not in"):
            require_kept(batch, by_controller, records(None))
        assert [*describe_change(batch, by_controller, records(None))]


def test_what_an_earlier_version_did_not_record_is_no_loss_of_a_table_that_is_replaced() -> None:
    by_controller = table(manifest_of(EARLIER, "one", "controller", "kmeans"))
    now = replace(EARLIER, apart="column inst", orders={"order of column s": "o"})
    assert [*describe_change(now, by_controller, records(record_of(EARLIER)))] == []
    plain = table(manifest_of(FIRST))
    other = replace(FIRST, orders={**FIRST.orders, "order of column s": "o2"})
    said = ["the replaced table promised more: the order of column s was another one"]
    assert [*describe_change(other, plain, records(record_of(FIRST)))] == said


@pytest.mark.parametrize(
    ("models", "columns", "orders", "is_known"),
    [
        ((), {"s": "sensitive"}, {"order of column s": "o"}, True),  # a new model goes by it
        (
            (TCloseness(t=0.1, attribute="s", distance="ordered"),),
            {"s": "sensitive"},
            {"order of column s": "o"},
            False,
        ),
        (
            (TCloseness(t=0.1, attribute="s", distance="ordered"),),
            {"s": "sensitive"},
            {"hierarchy of column s": "h"},
            True,
        ),
        (
            (TCloseness(t=0.1, attribute="s", distance="hierarchical"),),
            {"s": "sensitive"},
            {"hierarchy of column s": "h"},
            False,
        ),
        ((), {"s": "quasi_identifier interval"}, {"order of column s": "o"}, False),
    ],
)
def test_orders_that_an_earlier_version_did_not_record(
    models: tuple[PrivacyModel, ...],
    columns: dict[str, str],
    orders: dict[str, str],
    is_known: bool,
) -> None:
    prior = replace(EARLIER, models=models, columns=columns)
    of_controller = replace(prior, models=(), controllers={"ab12": models})
    for each in (prior, of_controller):
        found = [*replace(each, orders=orders).weaknesses(each)]
        what = next(iter(orders))
        said = f"the {what} is not in the record, which is of an earlier version of anonlib"
        assert found == ([] if is_known else [said])


def test_what_a_replaced_table_promised() -> None:
    there, known = table(manifest_of(FIRST)), records(record_of(FIRST))
    assert [*describe_change(FIRST, there, known)] == []
    assert [*describe_change(FIRST, there, records(None))] == []
    (text,) = describe_change(OTHER, there, known)
    assert text.startswith("the replaced table promised more: l_diversity l=3 attribute=s ")
    unknown = "the replaced table promised something else; its private record was not found"
    assert [*describe_change(OTHER, there, records(None))] == [unknown]
    assert [*describe_change(FIRST, table(""), known)] == [
        "what the replaced table promised is unknown"
    ]


def promise_of(**changes: Any) -> Promise:
    wage = {"role": "quasi_identifier", "scale": "continuous"}
    config = parse(
        {
            "source": {"format": "dataframe"},
            "one_row_per_person": True,
            "privacy": {"models": [{"type": "k_anonymity", "k": 20}]},
            "release": {"path": "out/people"},
            **changes,
            "attributes": {"wage": wage, "age": wage, **changes.get("attributes", {})},
        }
    )
    texts = ("grade", "ill")
    fields = [
        Field(name, "string", pa.string()) if name in texts else Field(name, "int", pa.int32())
        for name in config.attributes
    ]
    return make_promise(config, resolve(config, fields))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"recode": {"columns": {"wage": "median"}}}, "quasi_identifier median now"),
        (
            {"recode": {"columns": {"wage": {"type": "centroid", "restore_variance": True}}}},
            "quasi_identifier centroid keep_type=true restore_variance=true now",
        ),
        (
            {"attributes": {"wage": {"role": "quasi_identifier", "scale": "ordinal"}}},
            "quasi_identifier median now",
        ),
        ({"attributes": {"wage": {"role": "insensitive"}}}, "insensitive now"),
        ({"attributes": {"wage": {"role": "drop"}}}, "not released now"),
    ],
)
def test_columns_are_promised(changes: dict[str, Any], said: str | None) -> None:
    found = [*promise_of(**changes).weaknesses(promise_of())]
    centroid = "quasi_identifier centroid keep_type=true restore_variance=false"
    expected = f"column wage was {centroid}, and is {said}"
    assert found == ([] if said is None else [expected])


IDS = {name: {"role": "identifier"} for name in ("id", "wave")}
UNIT = {"attributes": IDS, "unit": ["wave", "id"], "one_row_per_person": False}


@pytest.mark.parametrize(
    ("changes", "persons"),
    [
        ({}, DECLARED),
        ({"attributes": IDS, "one_row_per_person": "id"}, "column id"),
        (UNIT, "unit id, wave"),
        ({**UNIT, "person": {"fold_case": True}}, "unit id, wave, case folded"),
    ],
)
def test_what_identifies_persons_is_promised(changes: dict[str, Any], persons: str) -> None:
    assert promise_of(**changes).persons == persons


def test_controllers_are_promised_their_own_models() -> None:
    models = {"north": [{"type": "k_anonymity", "k": 30}]}
    steps = [{"type": "controller", "column": "place", "models": models}, {"type": "kmeans"}]
    found = promise_of(attributes={"place": {"role": "drop"}}, partition={"steps": steps})
    assert found.controllers == {sha256(b"north").hexdigest(): (KAnonymity(k=30),)}
    assert found.apart == "column place"
    merging = {"steps": [{"type": "controller", "column": "place", "merge": True}, steps[1]]}
    found = promise_of(attributes={"place": {"role": "drop"}}, partition=merging)
    assert found.apart == "merged column place"
    said = "models were promised for each controller of column place (merged where they fail), and "
    assert [*promise_of().weaknesses(found)] == [f"{said}are for all rows together now"]
    other = replace(found, apart="column town")
    assert [*other.weaknesses(found)] == [f"{said}are for each controller of column town now"]
    assert promise_of().apart == ""


GRADE = {"role": "quasi_identifier", "scale": "ordinal", "order": ["lo", "mid", "hi"]}
OTHER_ORDER = {**GRADE, "order": ["mid", "hi", "lo"]}
ILL = {"role": "sensitive", "order": ["none", "mild", "bad"]}


def by(distance: str) -> dict[str, Any]:
    close = {"type": "t_closeness", "t": 0.5, "attribute": "ill", "distance": distance}
    return {"models": [{"type": "k_anonymity", "k": 20}, close]}


def ordered(grade: Any, recoder: str) -> Promise:
    return promise_of(attributes={"grade": grade}, recode={"columns": {"grade": recoder}})


@pytest.mark.parametrize("recoder", ["interval", "median", "mode", "set"])
def test_the_order_of_released_intervals_is_promised(recoder: str) -> None:
    """Sets and single values mean the same by any order: with them, it may change."""
    found = [*ordered(OTHER_ORDER, recoder).weaknesses(ordered(GRADE, recoder))]
    said = ["the order of column grade was another one"]
    assert found == (said if recoder == "interval" else [])
    assert "lo" not in json.dumps(ordered(GRADE, recoder).to_dict()).split('"')


def test_the_order_that_a_model_measures_by_is_promised() -> None:
    def made(order: list[str], privacy: Any) -> Promise:
        return promise_of(attributes={"ill": {**ILL, "order": order}}, privacy=privacy)

    first = made(["none", "mild", "bad"], by("ordered"))
    assert [*made(["None ", "MILD", "bad"], by("ordered")).weaknesses(first)] == []
    found = [*made(["mild", "none", "bad"], by("ordered")).weaknesses(first)]
    assert found == ["the order of column ill was another one"]


def test_the_hierarchy_that_a_model_measures_by_is_promised(tmp_path: Path) -> None:
    def made(text: str) -> Promise:
        path = tmp_path / "tree.csv"
        path.write_text(text)
        ill = {"role": "sensitive", "hierarchy": str(path)}
        return promise_of(attributes={"ill": ill}, privacy=by("hierarchical"))

    flat = made("flu;*\nhiv;*\n")
    assert [*made("Flu;*\nhiv;*\n").weaknesses(flat)] == []
    for other in ("flu;g;*\nhiv;g;*\nzz;y;*\n", "flu;*\nleg;*\n", "flu;*\nhiv;*\nleg;*\n"):
        found = [*made(other).weaknesses(flat)]
        assert found == ["the hierarchy of column ill was another one"]
    assert "flu" not in json.dumps(flat.to_dict())


@pytest.mark.parametrize(
    ("accepted", "exempt"),
    [(False, ()), (["id", "wage", "note"], ("note",)), (True, ("note", "x"))],
)
def test_acknowledged_combinations_are_promised(accepted: Any, exempt: tuple[str, ...]) -> None:
    """Of insensitive columns only: no others are looked at for rare combinations."""
    attributes = {**IDS, "note": {"role": "insensitive"}, "x": {"role": "insensitive"}}
    privacy = {"models": [{"type": "k_anonymity", "k": 20}], "acknowledge_unique": accepted}
    assert promise_of(attributes=attributes, privacy=privacy).exempt == exempt


def _promise(*rules: dict[str, Any]) -> Promise:
    named = [
        {"id": f"r{i}", "says": "It is so.", "source": "a law", **each}
        for i, each in enumerate(rules)
    ]
    config = {
        "source": {"format": "dataframe"},
        "attributes": {"wage": {"role": "quasi_identifier", "scale": "continuous"}},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 20}]},
        "release": {"path": "out/people"},
        **({"policy": {"name": "own", "title": "a policy", "rules": named}} if rules else {}),
    }
    return make_promise(parse(config), Schema(()))


def test_rules_of_a_policy_are_promised() -> None:
    size = {"type": "class_size", "at_least": 20}
    model = {"type": "model", "any_of": [{"type": "k_anonymity", "k": 3}]}
    first = _promise(size, model)
    assert not [*_promise({**size, "says": "In other words."}, model).weaknesses(first)]
    assert not [*_promise(size, model, {"type": "confirm"}).weaknesses(first)]
    lacking = "rule r1 of policy own was promised, and this config's policy has no such rule"
    assert [*_promise(size).weaknesses(first)] == [lacking]
    weaker = {"type": "model", "any_of": [{"type": "k_anonymity", "k": 2}]}
    assert [*_promise(size, weaker).weaknesses(first)] == [lacking]
    assert len([*_promise().weaknesses(first)]) == 2
    assert not [*first.weaknesses(_promise())]


def test_digests_are_those_of_tables_that_are_out() -> None:
    """Manifests have them: with others, a table whose record is gone would take no batch again."""
    rule = {"type": "model", "any_of": [{"type": "k_anonymity", "k": 3}]}
    assert EARLIER.digest.startswith("64e2fec25d2d83200002d342c48eeb45")
    (digest,) = _promise(rule).rules.values()
    assert digest.startswith("1ed5d50cdf61ccfbacfe28a8c5d7ca04")
