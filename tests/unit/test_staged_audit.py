"""The checks before a run publishes, without Spark: what is counted, and what stops a run."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anonlib import auditing
from anonlib.auditing import AuditReport, Verdict
from anonlib.config.model import Config, PrivacySection
from anonlib.config.reading import parse
from anonlib.errors import AuditError, InputError, Problem
from anonlib.evaluation.published_spec import CONTROLLERS, counts_persons, make_measured_spec
from anonlib.privacy import PrivacyModel
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.t_closeness import TCloseness
from anonlib.run import staged_audit
from anonlib.table.schema import Column, Role, Schema
from anonlib.table.table_digest import Digest
from tests.support import audit_spec

GOOD = Verdict("k_anonymity k=3", True, 3, 3, 0, ())
BAD = Verdict("l_diversity l=2", False, 1, 2, 4, (3, 3))
UNKNOWN = Verdict("k_anonymity k=3", False, None, 3, 0, (), note="persons can't be counted")


def report(n_rows: int, *verdicts: Verdict, problems: tuple[Problem, ...] = ()) -> AuditReport:
    return AuditReport(n_rows, 1, verdicts or (GOOD,), problems, ((n_rows, 1),), "none")


def limit(share: float) -> PrivacySection:
    return PrivacySection(models=(KAnonymity(k=3),), suppression_limit=share)


def require(
    scanned: int, planned: int, anonymized: int, kept: int, audited: int, share: float = 0.0
) -> None:
    found: Any = SimpleNamespace(n_rows=anonymized, digest=Digest(kept))
    plan: Any = SimpleNamespace(n_rows=planned)
    scan: Any = SimpleNamespace(n_rows=scanned)
    staged_audit.require_audited(report(audited), found, plan, scan, limit(share))


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ((100, 100, 100, 100, 100), 0.0),
        ((100, 100, 100, 90, 90), 0.1),
        ((99, 99, 99, 90, 90), 0.1),
        ((100, 95, 95, 90, 90), 0.1),
    ],
)
def test_rows_add_up(rows: tuple[int, int, int, int, int], share: float) -> None:
    require(*rows, share=share)


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        # One more suppressed than allowed.
        ((100, 100, 100, 99, 99), 0.0),
        ((100, 100, 100, 89, 89), 0.1),
        ((99, 99, 99, 89, 89), 0.1),
        # Invented, by the run or by the audit; lost on the way.
        ((100, 100, 100, 101, 101), 0.1),
        ((100, 100, 100, 100, 101), 0.1),
        ((100, 100, 100, 100, 99), 0.1),
        ((100, 100, 99, 99, 99), 0.1),
        ((100, 99, 100, 99, 99), 0.1),
    ],
)
def test_rows_that_do_not_add_up(rows: tuple[int, int, int, int, int], share: float) -> None:
    scanned, planned, anonymized, kept, audited = rows
    with pytest.raises(AuditError) as error:
        require(*rows, share=share)
    assert str(error.value) == (
        f"rows don't add up, nothing was published: {scanned} scanned, {planned} planned, "
        f"{anonymized} anonymized, {kept} kept, {audited} audited; run it again; if it comes "
        "again, it is a fault of anonlib"
    )


def test_a_share_is_rounded_down() -> None:
    assert [limit(0.1).may_suppress(n) for n in (0, 9, 10, 19, 20)] == [0, 0, 1, 1, 2]


def test_one_class_is_no_classes() -> None:
    single = replace(BAD, n_failing=1)
    failed = report(12, single, problems=(Problem("a", "no"),))
    assert repr(failed) == (
        "AuditReport(not passed; 12 rows in 1 class; l_diversity l=2 fails; 1 problem: a: no)"
    )
    many = replace(failed, problems=tuple(Problem(f"c{i}", "no") for i in range(12)))
    assert repr(many).endswith("; 12 problems: c0: no; c1: no; c2: no; c3: no; c4: no; ...)")
    with pytest.raises(AuditError, match="l_diversity l=2: 1 class fails"):
        failed.require_passed("the audit")


def test_a_failed_audit_stops_the_run() -> None:
    whole: Any = SimpleNamespace(n_rows=3, digest=Digest(3))
    for failed in (report(3, GOOD, BAD), report(3, problems=(Problem("a", "no"),))):
        with pytest.raises(AuditError, match="the audit failed, nothing was released: ") as error:
            staged_audit.require_audited(failed, whole, whole, whole, limit(0))
        assert ("l_diversity l=2: 4 classes fail" in str(error.value)) == (BAD in failed.verdicts)
        assert ("a: no" in str(error.value)) == (failed.problems != ())
        assert "k_anonymity" not in str(error.value)


# --- the table as it will be


def audited(monkeypatch: pytest.MonkeyPatch, found: AuditReport) -> list[Any]:
    """The audit answers with this report; what it is asked."""
    asked: list[Any] = []

    def audit(table: Any, spec: Any, whole: Any = None) -> AuditReport:
        asked.append((table, spec, whole))
        return found

    def audit_parts(table: Any, spec: Any, parts: Any, whole: Any) -> list[AuditReport]:
        asked.append((table, spec, parts, whole))
        return [found, *[found for _ in parts]]

    monkeypatch.setattr(auditing, "audit_table", audit)
    monkeypatch.setattr(auditing, "audit_parts", audit_parts)
    return asked


SPEC = audit_spec(("a",), ("a",), (KAnonymity(k=3),))


@pytest.mark.parametrize(
    ("whole", "added", "persons", "fails"),
    [
        (report(9), report(4), "rows", ""),
        (report(9, BAD), report(4), "rows", "the audit of the table with the batch failed"),
        (report(9, UNKNOWN), report(4), "unknown", ""),
        (report(9, UNKNOWN), report(4), "rows", "the audit of the table with the batch failed"),
        (report(9, UNKNOWN), report(4, BAD), "unknown", "the audit of the table with the batch"),
        (report(8), report(4), "rows", "rows don't add up"),
        (report(10), report(4), "rows", "rows don't add up"),
    ],
)
def test_the_table_with_a_batch(
    monkeypatch: pytest.MonkeyPatch,
    whole: AuditReport,
    added: AuditReport,
    persons: Any,
    fails: str,
) -> None:
    """What could not be counted in the whole is taken from the parts only if it never could be."""
    table: Any = "table"
    spec = replace(SPEC, persons=persons)
    asked = audited(monkeypatch, whole)
    found = staged_audit.audit_with_published(table, spec, added, None)
    if fails:
        with pytest.raises(AuditError, match=fails):
            staged_audit.require_with_published(found, spec, 5, added.n_rows)
    else:
        staged_audit.require_with_published(found, spec, 5, added.n_rows)
        assert (found.passed, found.n_rows) == (True, 9)
    assert asked == [("table", spec, None)]


@pytest.mark.parametrize(
    ("known", "added", "joined"),
    [
        (report(5), report(4), True),
        (report(5, BAD), report(4), False),
        (report(5), report(4, BAD), False),
        (replace(report(5), insensitive="acknowledged"), report(4), False),
        (report(5, replace(GOOD, model="k_anonymity k=2")), report(4), False),
        (report(5, GOOD, BAD), report(4), False),  # of another model, but it did not pass
    ],
)
def test_known_rows_are_not_audited_again(
    monkeypatch: pytest.MonkeyPatch, known: AuditReport, added: AuditReport, *, joined: bool
) -> None:
    """Unless both parts hold just the models that the table must hold."""
    table: Any = "table"
    asked = audited(monkeypatch, report(9))
    found = staged_audit.audit_with_published(table, SPEC, added, known)
    assert (found.by_batch, len(asked)) == (joined, 0 if joined else 1)
    assert (found.n_rows, found.passed) == (9, True)


@pytest.mark.parametrize("known", [None, report(5)])
def test_persons_of_several_batches_are_counted_in_each(
    monkeypatch: pytest.MonkeyPatch, known: AuditReport | None
) -> None:
    """In the whole table their rows would count as several persons."""
    table: Any = "table"
    alone: Any = "the published rows"
    asked = audited(monkeypatch, report(5))
    found = staged_audit.audit_with_published(table, SPEC, report(4), known, alone)
    assert asked == ([] if known else [(alone, SPEC, None)])
    assert (found.by_batch, found.sizes) == (True, ((4, 1), (5, 1)))
    asked = audited(monkeypatch, report(5, BAD))
    found = staged_audit.audit_with_published(table, SPEC, report(4), None, alone)
    with pytest.raises(AuditError, match="the audit of the table with the batch failed"):
        staged_audit.require_with_published(found, SPEC, 5, 4)
    audited(monkeypatch, replace(report(5), insensitive="checked"))
    with pytest.raises(AuditError, match="can't be put together, and persons may be in both"):
        staged_audit.audit_with_published(table, SPEC, report(4), None, alone)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (KAnonymity(k=9), "append by the models that they were released with"),
        (TCloseness(t=0.3, attribute="a"), "by t_closeness, .*; append fewer rows at a time"),
        (BetaLikeness(beta=1, attribute="a"), "by beta_likeness, .*append fewer rows at a time"),
        (DeltaDisclosure(delta=1, attribute="a"), "by delta_disclosure, .*append fewer rows"),
    ],
)
def test_what_to_do_where_published_rows_fail(model: PrivacyModel, advice: str) -> None:
    """The batch has passed. Its rows change what the published ones are compared with."""
    failed = report(9, replace(BAD, spec={"type": model.type}))
    spec = replace(SPEC, models=(KAnonymity(k=3), TCloseness(t=0.4, attribute="b"), model))
    with pytest.raises(AuditError, match=f"the batch holds it.*{advice}"):
        staged_audit.require_with_published(failed, spec, 5, 4)


def test_known_rows_must_be_all_that_are_there() -> None:
    table: Any = "table"
    found = staged_audit.audit_with_published(table, SPEC, report(4), report(5))
    with pytest.raises(AuditError, match=r"rows don't add up.*audited; see what is there"):
        staged_audit.require_with_published(found, SPEC, 6, 4)


def test_two_parts_make_bounds() -> None:
    """By hand: classes of both are counted apart, and the worse value is the bound."""
    models = (KAnonymity(k=3),)
    spec = audit_spec(("a",), ("a",), models)
    apart = Verdict("each controller: k_anonymity k=3", True, 4, 3, 0, ())
    one = AuditReport(
        11, 2, (replace(GOOD, value=4), apart), (), ((4, 1), (7, 1)), "none", {"a": 2}
    )
    other = AuditReport(8, 2, (GOOD,), (), ((3, 1), (5, 1)), "none", {"a": 1})
    found = auditing.join_reports(one, other, spec)
    assert found == AuditReport(
        19,
        4,
        (replace(GOOD, exact=False),),
        (),
        ((3, 1), (4, 1), (5, 1), (7, 1)),
        "none",
        {"a": 3},
        by_batch=True,
    )
    assert AuditReport.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    # Each controller holds the models in the table if it does in both parts.
    ours = replace(other, verdicts=(GOOD, replace(apart, value=3)))
    joined: Any = auditing.join_reports(one, ours, spec)
    assert joined.verdicts == (
        replace(GOOD, exact=False),
        replace(apart, value=3, exact=False),
    )
    own = replace(apart, model="2 controllers with their own models: k_anonymity k=3")
    both = [replace(each, verdicts=(*each.verdicts, own)) for each in (one, ours)]
    assert auditing.join_reports(*both, spec) == joined  # not the same two, perhaps
    unmeasured = replace(one, verdicts=(replace(GOOD, value=None),))
    assert auditing.join_reports(unmeasured, other, spec).verdicts[0].value is None  # type: ignore[union-attr]


# --- a table that is published


def config(**changes: Any) -> Config:
    return parse(
        {
            "source": {"format": "parquet", "path": "in"},
            "attributes": {
                "age": {"role": "quasi_identifier", "scale": "continuous"},
                "name": {"role": "identifier", "pseudonym": True},
                "born": {"role": "identifier"},
                "site": {"role": "drop"},
            },
            "unit": ["name"],
            "privacy": {"models": [{"type": "k_anonymity", "k": 5}], "acknowledge_linked": True},
            "pseudonyms": {"key_env": "KEY"},
            "release": {"path": "out"},
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("person", "returned", "persons"),
    [(True, False, "rows"), (True, True, "unknown"), ("name", True, "token")],
)
def test_persons_as_measures_count_them(person: Any, *, returned: bool, persons: str) -> None:
    made = config(unit=[], one_row_per_person=person, pseudonyms=STABLE)
    assert make_measured_spec(made, persons_return=returned).persons == persons


RETURNING = {
    "path": "out",
    "mode": "append",
    "acknowledge_returning": True,
    "ledger": {"key_env": "LEDGER_KEY"},
}
STABLE = {"key_env": "KEY", "scope": "stable"}


@pytest.mark.parametrize(
    ("changes", "persons", "counts"),
    [
        ({}, "token", True),
        ({"unit": ["born"]}, "unknown", False),
        ({"unit": ["name", "born"]}, "unknown", False),
        ({"unit": [], "one_row_per_person": "name"}, "token", True),
        ({"unit": [], "one_row_per_person": True}, "rows", True),
        # Who was released twice has two pseudonyms, unless they are stable.
        ({"release": RETURNING}, "unknown", False),
        ({"release": RETURNING, "pseudonyms": STABLE}, "token", True),
        ({"pseudonyms": STABLE}, "token", True),
    ],
)
def test_persons_of_a_published_table(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], persons: str, counts: bool
) -> None:
    """The config may say that persons return, or the table."""
    table: Any = "table"
    made = config(**changes)
    asked = audited(monkeypatch, report(9))
    found = staged_audit.audit_published(table, made)
    ((_, spec, _),) = asked
    assert (spec.persons, spec.token) == (persons, "name" if persons == "token" else None)
    assert counts_persons(made, persons_return=False) == counts
    assert found.notes == ()
    if "release" in changes:
        plain = config(**{name: each for name, each in changes.items() if name != "release"})
        staged_audit.audit_published(table, plain, persons_return=True)
        assert asked[1] == asked[0]
        assert counts_persons(plain, persons_return=True) == counts


@pytest.mark.parametrize("returns", [False, True])
def test_persons_of_a_table_who_may_be_in_several_batches(
    monkeypatch: pytest.MonkeyPatch, returns: bool
) -> None:
    """Whatever the config of the audit says: stable pseudonyms may then be there twice, and others
    are no persons."""
    table: Any = "table"
    asked = audited(monkeypatch, report(9))
    for pseudonyms, column, persons, premise in (
        (STABLE, "name", "token", "counted by the pseudonym name"),
        ({"key_env": "KEY"}, "name", "rows" if returns else "token", "in each batch"),
        ({"key_env": "KEY"}, "born", "rows", "in each batch"),
        ({"key_env": "KEY"}, True, "rows", "of each batch"),
    ):
        made = config(pseudonyms=pseudonyms, unit=[], one_row_per_person=column)
        found = staged_audit.audit_published(table, made, persons_return=returns)
        spec = asked[-1][1]
        assert spec.persons == persons
        assert spec.unique == ("name" if column == "name" and not returns else None)
        assert (premise in found.premises[1]) == (returns or "counted by" in premise)


def test_controllers_of_a_published_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Any = "table"
    made = config(partition={"steps": [{"type": "controller", "column": "site"}]})
    asked = audited(monkeypatch, report(9))
    assert staged_audit.audit_published(table, made).notes == (CONTROLLERS,)
    assert asked


# --- the staged rows


class Staged:
    """Staged rows, of which some controllers have none left."""

    def __init__(self, *gone: int):
        self.gone, self.asked = gone, list[Any]()

    def select(self, *columns: Any) -> Any:
        return Staged(*self.gone) if "controller" in columns else tuple(columns)

    def where(self, controllers: tuple[int, ...]) -> Any:
        return SimpleNamespace(isEmpty=lambda: set(controllers) <= set(self.gone))


SCHEMA = Schema(
    (
        Column("age", "c0", Role.QUASI_IDENTIFIER, pa.int64(), "bigint"),
        Column("name", "c1", Role.IDENTIFIER, pa.string(), "string"),
    )
)


@pytest.fixture
def no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Name(str):
        def alias(self, name: str) -> str:
            return f"{self} as {name}"

        def isin(self, *values: Any) -> Any:
            return values

    monkeypatch.setattr(staged_audit, "F", SimpleNamespace(col=Name))
    monkeypatch.setattr(staged_audit, "CONTROLLER", "controller")


def test_staged_rows_are_audited_under_their_names(
    monkeypatch: pytest.MonkeyPatch, no_columns: None
) -> None:
    plan: Any = SimpleNamespace(controllers=None)
    for schema, columns in (
        (SCHEMA, ("c0 as age",)),
        (replace(SCHEMA, unit=("c1",)), ("c0 as age", staged_audit.TOKEN)),
    ):
        asked = audited(monkeypatch, report(9))
        staged: Any = Staged()
        whole: Any = "whole"
        assert staged_audit.audit_staged(staged, SPEC, schema, plan, whole, None) == report(9)
        assert asked == [(columns, asked[0][1], [], "whole")]
        spec = asked[0][1]
        by_token = ("token", staged_audit.TOKEN) if schema.unit else ("rows", None)
        assert (spec.persons, spec.token) == by_token


@pytest.mark.parametrize("fails", [False, True])
def test_files_are_audited_apart(
    monkeypatch: pytest.MonkeyPatch, no_columns: None, fails: bool
) -> None:
    """By the table's models. How rows were dealt to files is chance: only failures are told."""
    plan: Any = SimpleNamespace(controllers=None)
    asked: list[Any] = []
    of_table, of_files = report(9), report(9, BAD) if fails else report(9)

    def audit(*given: Any) -> Any:
        asked.append(given)
        return [of_table, of_files]

    monkeypatch.setattr(staged_audit.auditing, "audit_parts", audit)
    staged: Any = Staged()
    whole: Any = "whole"
    found = staged_audit.audit_staged(staged, SPEC, SCHEMA, plan, whole, staged)
    assert asked == [(("c0 as age", staged_audit.FILE), SPEC, [staged_audit.FILE], "whole")]
    assert found.passed is not fails
    told = [v.model for v in found.verdicts if v.model.startswith("each file: ")]
    assert told == (["each file: l_diversity l=2"] if fails else [])


def test_controllers_are_audited_apart(monkeypatch: pytest.MonkeyPatch, no_columns: None) -> None:
    """All of them by the table's models, and some by their own as well, if they have rows left."""
    own = [((1, 2), (KAnonymity(k=9),)), ((3,), (KAnonymity(k=8),))]
    plan: Any = SimpleNamespace(controllers=SimpleNamespace(with_own_models=lambda: own))
    asked = audited(monkeypatch, report(9, BAD))
    staged: Any = Staged(3)
    found = staged_audit.audit_staged(staged, SPEC, SCHEMA, plan, None, None)
    assert [v.model for v in found.verdicts] == [
        "l_diversity l=2",
        "each controller: l_diversity l=2",
        "2 controllers with their own models: l_diversity l=2",
    ]
    (_, spec, parts, _), (_, theirs, _) = asked
    assert (spec, parts) == (SPEC, ["controller"])
    private = (theirs.apart, theirs.private, theirs.acknowledge_unique)
    assert private == ("controller", ("controller",), True)
    assert (theirs.only, theirs.models) == ((1, 2), (*SPEC.models, KAnonymity(k=9)))


# --- the nodes of hierarchies that are released


class Named(dict[str, Any]):
    """A schema: released columns by name, with their hierarchies."""

    @property
    def hierarchies(self) -> dict[str, Any]:
        return {name: SimpleNamespace(names=["x", "y", "all"]) for name in self}


class Texts:
    """A table, with the texts of its columns and the numbers of the nodes in shares."""

    def __init__(self, columns: list[str], texts: list[list[str]], nodes: list[int]):
        self.columns, self.texts, self.nodes = columns, texts, nodes
        self.asked: list[Any] = []

    def toDF(self, *names: str) -> "Texts":
        self.asked.append(names)
        return self

    def agg(self, *columns: Any) -> Any:
        self.asked.append(columns)
        return SimpleNamespace(collect=lambda: [self.texts])

    def select(self, column: Any) -> Any:
        self.asked.append(column)
        rows = [SimpleNamespace(node=node) for node in self.nodes]
        return SimpleNamespace(distinct=lambda: SimpleNamespace(collect=lambda: rows))


def test_nodes_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of texts by their names; of shares by their numbers, without that of missing values."""

    class Name(str):
        def getField(self, name: str) -> "Name":
            return Name(f"{self}.{name}")

        def alias(self, name: str) -> "Name":
            return self

    functions = SimpleNamespace(collect_set=lambda name: name, col=Name, explode=lambda c: c)
    monkeypatch.setattr(staged_audit, "F", functions)
    text = SimpleNamespace(released_type=pa.string())
    shares = SimpleNamespace(released_type=pa.list_(pa.struct({"node": pa.int32()})))
    table: Any = Texts(["a", "b", "c"], [["y", "all"]], [0, 2, 3])
    schema: Any = Named(c=text, b=shares)
    assert staged_audit.find_released_nodes(table, schema) == {"c": {1, 2}, "b": {0, 2}}
    assert table.asked == [("n0", "n1", "n2"), ("n2",), "n1.node"]
    assert staged_audit.find_released_nodes(table, Named(b=shares)) == {"b": {0, 2}}  # type: ignore[arg-type]
    assert staged_audit.find_released_nodes(table, Named()) == {}  # type: ignore[arg-type]
    changed: Any = Texts(["a", "b", "c"], [["y", "mine", "yours"]], [0, None, 3, 4, -1])  # type: ignore[list-item]
    for column, n, kind in (("c", 2, text), ("b", 3, shares)):
        said = rf"column {column} has values that are no nodes of its hierarchy \({n}\): others"
        with pytest.raises(InputError, match=said) as error:
            staged_audit.find_released_nodes(changed, Named({column: kind}))  # type: ignore[arg-type]
        assert "mine" not in str(error.value)
