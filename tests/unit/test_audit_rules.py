"""What holds of the audit without Spark: light imports, a model for each model. What it must not
import is in test_layout.py."""

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from pyspark.sql import types as T

from anonlib import registry
from anonlib.auditing import AuditReport, AuditSpec, Verdict, audit, by_parts, canonical, count
from anonlib.auditing.count import Counts
from anonlib.auditing.models import AuditModel, Judgement, UnverifiableError
from anonlib.auditing.models._distinct import Distinct
from anonlib.auditing.rules import find_table_problems, list_kinds
from anonlib.auditing.verdicts import Tally
from anonlib.auditing.view import View
from anonlib.errors import ConfigError, Problem
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.t_closeness import TCloseness
from tests.support import audit_spec


def test_listing_the_models_needs_no_spark() -> None:
    code = (
        "import sys; from anonlib import registry; registry.plugins('audit');"
        "assert 'pyspark' not in sys.modules, 'pyspark';"
        "assert not [m for m in sys.modules if m.startswith('anonlib.kernels')], 'kernels'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_privacy_model_has_its_audit() -> None:
    models, audits = registry.plugins("privacy model"), registry.plugins("audit")
    assert models.keys() == audits.keys()
    for name, model in models.items():
        assert model.model_fields.keys() == audits[name].model_fields.keys()


def test_an_audit_model_is_built_from_its_model() -> None:
    built = registry.build("audit", registry.spec(LDiversity(l=3, attribute="illness")))
    assert built.label == "l_diversity l=3 attribute=illness"
    assert built.protected == ("illness",)
    assert built.required == 3


def test_counting_by_token_needs_a_token() -> None:
    with pytest.raises(ValueError, match="no token"):
        audit_spec((), (), (), persons="token")


def test_a_report_passes_only_if_something_was_verified() -> None:
    good = Verdict("k_anonymity k=2", True, 2, 2, 0, ())
    bad = Verdict("k_anonymity k=3", False, 2, 3, 1, (2,))

    def passed(*verdicts: Verdict, problems: tuple[Problem, ...] = ()) -> bool:
        return AuditReport(2, 1, verdicts, problems, ((2, 1),), "none").passed

    assert passed(good)
    assert not passed()
    assert not passed(good, bad)
    assert not passed(good, problems=(Problem("", "no"),))


def test_a_table_is_judged_by_its_parts_only_where_it_could_not_be_verified() -> None:
    counted = Verdict("k_anonymity k=3", True, 5, 3, 0, ())
    failing = Verdict("k_anonymity k=3", False, 2, 3, 1, (2,))
    unknown = Verdict("k_anonymity k=3", False, None, 3, 0, (), note="persons can't be counted")
    too_small = Verdict("k_anonymity k=3", False, None, 3, 1, (2,), note="persons can't be counted")

    def holds(table: Verdict, added: Verdict) -> bool:
        whole, part = (AuditReport(9, 2, (v,), (), ((4, 2),), "none") for v in (table, added))
        found = by_parts(whole, part)
        assert (found.n_rows, found.verdicts[0].note != "") == (9, table.note != "")
        return found.passed

    assert holds(unknown, counted)
    assert not holds(unknown, failing)
    assert not holds(too_small, counted)
    assert not holds(failing, counted)
    assert holds(counted, counted)

    # Parts may have been looked at in more ways than the whole.
    whole = AuditReport(9, 2, (unknown,), (), (), "none")
    part = AuditReport(4, 1, (counted,), (), (), "none")
    assert by_parts(whole, part.and_("each controller", part)).passed


# --- the verdicts, from counts that are given


INT, TEXT, ODD = T.IntegerType(), T.StringType(), T.VariantType()
MAP = T.MapType(INT, INT)
SHARES = T.ArrayType(T.StructType().add("node", INT).add("share", T.DoubleType()))


class Frame:
    """A table of which the audit sees the columns and, where it can't be grouped, the rows."""

    def __init__(self, **types: T.DataType):
        self.schema = T.StructType([T.StructField(name, type) for name, type in types.items()])
        self.columns = list(types)

    def count(self) -> int:
        return 7


@dataclass
class Counted:
    """What the counts in Spark are said to be. `asked` are the models, keys and columns."""

    patch: pytest.MonkeyPatch
    tallies: list[Tally]
    rare: Callable[[Any], int] = lambda keys: 0
    sizes: Counter[int] = field(default_factory=lambda: Counter({5: 2, 3: 1}))
    n_rows: int = 13
    of_parts: list[Tally] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    def audit(self, frame: Any, spec: AuditSpec) -> AuditReport:
        return self.audit_parts(frame, spec, ())[0]

    def audit_parts(self, frame: Any, spec: AuditSpec, parts: tuple[str, ...]) -> list[AuditReport]:
        def view(
            df: Any,
            spec: AuditSpec,
            protected: Any,
            insensitive: Any,
            whole: Any,
            parts: Any,
            *,
            sort: bool,
        ) -> View:
            self.asked.append((protected, tuple(insensitive)))
            sensitive = {name: f"s{i}" for i, name in enumerate(protected)}
            insensitive = tuple(f"i{i}" for i in range(len(insensitive)))
            token = "t" if spec.persons == "token" else None
            names = tuple(f"p{i}" for i in range(len(parts)))
            return View(df, df, ("q0",), sensitive, insensitive, spec.persons, token, {}, {}, names)

        def tally(views: Sequence[View], models: Any) -> list[Counts]:
            keys = views[0].keys if len(views) == 1 else [view.keys for view in views]
            self.asked.append((keys, [model.label for model in models]))
            each = [self.tallies, *[self.of_parts for _ in views[1:]]]
            return [Counts(self.sizes, self.n_rows, tuple(t[: len(models)])) for t in each]

        def count_rare(view: View, keys: Any, k: int) -> tuple[int, int]:
            self.asked.append((keys, k))
            return self.rare(keys), 9

        self.patch.setattr(audit, "make_view", view)
        self.patch.setattr(count, "tally", tally)
        self.patch.setattr(count, "count_rare", count_rare)
        self.patch.setattr(audit, "find_lone_rows", lambda view, spec: {"shares": 2})
        return audit.audit_parts(frame, spec, parts)


K3, L2 = KAnonymity(k=3), LDiversity(l=2, attribute="ill")
SPEC = audit_spec(("age", "ill", "job"), ("age",), (K3, L2), insensitive=("job",))
TABLE: dict[str, T.DataType] = {"age": INT, "ill": TEXT, "job": TEXT}
FINE = Tally(value=4)
FEW = Tally(value=1, failing=Counter({3: 1, 2: 4, 8: 9}))


def test_a_table_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch, [FINE, Tally(value=2, exact=False)])
    found = counted.audit(Frame(**TABLE), SPEC)
    assert found.passed
    assert (found.n_rows, found.n_classes, found.sizes) == (13, 3, ((3, 1), (5, 2)))
    assert (found.insensitive, found.problems, found.lone) == ("checked", (), {"shares": 2})
    k, diverse = found.verdicts
    assert k == Verdict("k_anonymity k=3", True, 4, 3, 0, ())
    assert diverse == Verdict("l_diversity l=2 attribute=ill", True, 2, 2, 0, (), exact=False)
    assert counted.asked == [
        (("ill",), ("job",)),
        (("q0",), [k.model, diverse.model]),
        (("i0",), 3),
        (("q0", "i0"), 3),
    ]


def test_parts_have_verdicts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [Tally(value=2), Tally(value=1, failing=Counter({3: 1}))]
    counted = Counted(monkeypatch, [FINE, FINE], of_parts=few)
    table, part = counted.audit_parts(Frame(**TABLE, file=TEXT), SPEC, ("file",))
    assert table.passed
    assert table.insensitive == "checked"
    assert not part.passed
    assert [(v.value, v.holds) for v in part.verdicts] == [(2, True), (1, False)]
    assert (part.problems, part.lone) == ((), {})
    assert counted.asked[1][0] == [("q0",), ("q0", "p0")]


def test_parts_of_a_table_without_the_columns_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch, [FINE, FINE])
    table, part = counted.audit_parts(Frame(age=INT, job=TEXT, file=TEXT), SPEC, ("file",))
    assert not table.passed
    assert [problem.where for problem in table.problems] == ["ill"]
    assert not part.passed
    assert not part.problems


def test_a_table_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Counted(monkeypatch, [FINE, FEW]).audit(Frame(**TABLE), SPEC)
    assert not found.passed
    assert not found.at_release
    assert [v.holds for v in found.verdicts] == [True, False]
    assert (found.verdicts[1].n_failing, found.verdicts[1].worst) == (14, (2, 2, 2, 2, 3))
    assert (found.verdicts[1].value, found.verdicts[1].exact) == (1, True)


def test_a_table_whose_persons_are_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be counted may fail; else the model was audited at the release."""
    spec = replace(SPEC, persons="unknown", models=(K3,), insensitive=())
    for tally, n_failing in ((FINE, 0), (FEW, 14)):
        found = Counted(monkeypatch, [tally]).audit(Frame(**TABLE), spec)
        (verdict,) = found.verdicts
        assert (verdict.holds, verdict.value, verdict.exact) == (False, None, False)
        assert (verdict.n_failing, verdict.at_release) == (n_failing, n_failing == 0)
        assert "persons can't be counted" in verdict.note
        assert verdict.note.endswith(f"; {n_failing} classes fail by their rows")
        assert (found.passed, found.at_release) == (False, n_failing == 0)


def test_shares_among_rows_prove_nothing_of_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person of many rows can make a share too large that is not among persons."""
    models: dict[str, dict[str, Any]] = {
        "k_anonymity": {"k": 3},
        "l_diversity": {"l": 2, "attribute": "s"},
        "p_sensitive": {"p": 2, "attribute": "s"},
    }
    by_shares: list[PrivacyModel] = [
        LDiversity(l=2, attribute="s", kind="entropy"),
        LDiversity(l=2, attribute="s", kind="recursive", c=2.0),
        TCloseness(t=0.2, attribute="s"),
    ]
    for model in by_shares:
        spec = replace(audit_spec(("age", "s"), ("age",), (model,)), persons="unknown")
        found = Counted(monkeypatch, [FEW]).audit(Frame(age=INT, s=TEXT), spec)
        (verdict,) = found.verdicts
        assert (verdict.holds, verdict.at_release, verdict.n_failing) == (False, True, 0)
        assert not found.passed
        assert "by their rows" not in verdict.note
    for type, parameters in models.items():
        assert registry.build("audit", {"type": type, **parameters}).fails_by_rows


def test_a_model_that_can_not_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Counted(monkeypatch, [FINE, Tally(note="no order")]).audit(Frame(**TABLE), SPEC)
    verdict = found.verdicts[1]
    assert (verdict.holds, verdict.note, verdict.at_release) == (False, "no order", False)
    assert (verdict.value, verdict.exact) == (None, False)


def test_a_table_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch, [FINE, FINE], sizes=Counter(), n_rows=0)
    found = counted.audit(Frame(**TABLE), replace(SPEC, joint=("ill", "job")))
    assert (found.n_rows, found.n_classes, found.verdicts, found.lone) == (0, 0, (), {})
    assert found.problems == (Problem("", "the table has no rows"),)
    assert len(counted.asked) == 2
    assert not found.passed


@pytest.mark.parametrize(
    ("table", "spec", "groups", "state"),
    [
        (TABLE, SPEC, True, "checked"),
        # What classes are made of is missing, or can't be grouped.
        ({**TABLE, "age": MAP}, SPEC, False, "not checked"),
        ({"age": INT, "job": TEXT}, SPEC, False, "not checked"),
        (TABLE, replace(SPEC, persons="token", token="who"), False, "not checked"),
        # An insensitive column is missing, or is too odd: the rest is counted.
        ({"age": INT, "ill": TEXT}, SPEC, True, "not checked"),
        ({**TABLE, "job": ODD}, SPEC, True, "not checked"),
        (TABLE, replace(SPEC, acknowledge_unique=True), True, "acknowledged"),
        (TABLE, replace(SPEC, models=(L2,)), True, "not checked"),
        (TABLE, replace(SPEC, models=(), joint=("ill",)), True, "not checked"),
        (TABLE, replace(SPEC, insensitive=()), True, "none"),
    ],
)
def test_what_is_counted(
    monkeypatch: pytest.MonkeyPatch,
    table: dict[str, T.DataType],
    spec: AuditSpec,
    groups: bool,
    state: str,
) -> None:
    counted = Counted(monkeypatch, [FINE, FINE])
    found = counted.audit(Frame(**table), spec)
    assert found.insensitive == state
    assert (found.n_rows, found.n_classes) == ((13, 3) if groups else (7, 0))
    assert bool(found.verdicts) == (groups and spec.models != ())
    assert bool(counted.asked) == groups
    if groups:
        assert counted.asked[0] == (("ill",), ("job",) if state == "checked" else ())
        assert any(isinstance(keys, tuple) and k == 3 for keys, k in counted.asked) == (
            state == "checked"
        )
    assert found.passed == (groups and not found.problems)


@pytest.mark.parametrize(
    ("rare", "texts"),
    [
        (lambda keys: 0, []),
        (lambda keys: len(keys) - 1, ["1 of 9 combinations of the quasi-identifiers and the ins"]),
        (
            len,
            ["1 of 9 combinations of the insensitive columns belong to fewer than k=3", "2 of 9"],
        ),
    ],
)
def test_rare_combinations(
    monkeypatch: pytest.MonkeyPatch, rare: Callable[[Any], int], texts: list[str]
) -> None:
    found = Counted(monkeypatch, [FINE, FINE], rare).audit(Frame(**TABLE), SPEC)
    assert [p.where for p in found.problems] == ["insensitive"] * len(texts)
    for problem, text in zip(found.problems, texts, strict=True):
        assert problem.text.startswith(text)
    assert found.passed == (not texts)


def test_models_of_joint_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the other columns known; models that look at none are not asked again."""
    l3 = LDiversity(l=3, attribute="job")
    spec = replace(SPEC, insensitive=(), models=(K3, L2, l3, LDiversity(l=4, attribute="job")))
    counted = Counted(monkeypatch, [FINE] * 4)
    found = counted.audit(Frame(**TABLE), replace(spec, joint=("ill", "job")))
    assert counted.asked[0] == (("ill", "job"), ())
    first, ill, job = counted.asked[1:]
    assert first[0] == ("q0",)
    assert ill == (("q0", "s1"), ["l_diversity l=2 attribute=ill"])
    assert job == (
        ("q0", "s0"),
        ["l_diversity l=3 attribute=job", "l_diversity l=4 attribute=job"],
    )
    assert [v.model for v in found.verdicts[4:]] == [
        f"{label} joint=True" for label in (*ill[1], *job[1])
    ]


# --- columns and their types


@pytest.mark.parametrize(
    ("table", "spec", "where", "text"),
    [
        ({**TABLE, "more": INT}, SPEC, "more", "the release should not have this column"),
        ({"age": INT, "ill": TEXT}, SPEC, "job", "the table does not have this column"),
        ({**TABLE, "age": MAP}, SPEC, "age", "a column of type map can't be grouped"),
        ({**TABLE, "job": ODD}, SPEC, "job", "a column of type variant can't be grouped"),
        ({**TABLE, "ill": ODD}, SPEC, "ill", "a column of type variant can't be grouped"),
        (TABLE, replace(SPEC, sets=("age",)), "age", "said to be a set, which takes an array, not"),
        (TABLE, replace(SPEC, shares={"age": None}), "age", "said to be shares, which are of type"),
        (TABLE, replace(SPEC, models=(L2,)), "privacy.models", "there is no k-anonymity among"),
        (TABLE, replace(SPEC, persons="token", token="who"), "who", "the table does not have this"),
        # Fine: in any order, private ones beside, maps where they may be.
        ({"job": TEXT, "ill": TEXT, "age": INT}, SPEC, "", ""),
        ({**TABLE, "who": TEXT}, replace(SPEC, persons="token", token="who"), "", ""),
        ({**TABLE, "who": TEXT}, replace(SPEC, token="who"), "", ""),
        (TABLE, replace(SPEC, token="who"), "", ""),
        ({**TABLE, "own": INT}, replace(SPEC, private=("own",)), "", ""),
        (TABLE, replace(SPEC, private=("own",)), "", ""),
        ({**TABLE, "job": MAP, "ill": MAP}, SPEC, "", ""),
        ({**TABLE, "job": T.BinaryType()}, SPEC, "", ""),
        ({**TABLE, "job": ODD}, replace(SPEC, acknowledge_unique=True), "", ""),
        ({**TABLE, "age": T.ArrayType(INT)}, replace(SPEC, sets=("age",)), "", ""),
        (
            {**TABLE, "age": SHARES},
            replace(SPEC, shares={"age": 4}),
            "",
            "",
        ),
    ],
)
def test_columns(table: dict[str, T.DataType], spec: AuditSpec, where: str, text: str) -> None:
    frame: Any = Frame(**table)
    models: Any = [registry.build("audit", registry.spec(model)) for model in spec.models]
    problems, broken = find_table_problems(frame.columns, list_kinds(frame), spec, models)
    assert [problem.where for problem in problems] == [where] * bool(where)
    assert all(problem.text.startswith(text) for problem in problems)
    fits = not where or text.startswith(("the release should not", "there is no k-anonymity"))
    assert broken == (frozenset() if fits else {where})


def test_two_private_columns_of_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem, yet all can be counted: nobody counts persons by them."""
    frame: Any = Frame(**TABLE, who=TEXT)
    frame.columns.append("who")
    spec = replace(SPEC, token="who")
    found = Counted(monkeypatch, [FINE, FINE]).audit(frame, spec)
    assert found.problems == (Problem("who", "the table has 2 columns of this name"),)
    assert found.n_rows == 13


def test_columns_of_one_name() -> None:
    frame: Any = Frame(**TABLE)
    frame.columns.append("age")
    models: Any = [registry.build("audit", registry.spec(K3))]
    problems, broken = find_table_problems(
        frame.columns, list_kinds(frame), replace(SPEC, models=(K3,)), models
    )
    assert problems == [Problem("age", "the table has 2 columns of this name")]
    assert broken == {"age"}


def struct(**types: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, type) for name, type in types.items()])


@pytest.mark.parametrize(
    ("dtype", "groups", "with_maps"),
    [
        *[(type, True, True) for type in (INT, TEXT, T.BinaryType(), T.BooleanType())],
        *[(type, True, True) for type in (T.DateType(), T.DecimalType(4, 1), T.NullType())],
        (T.DayTimeIntervalType(), True, True),
        (ODD, False, False),
        (T.ArrayType(ODD), False, False),
        (T.ArrayType(TEXT), True, True),
        (struct(a=INT, b=struct(c=INT)), True, True),
        (struct(a=INT, A=INT), False, False),
        (struct(a=INT, b=ODD), False, False),
        (MAP, False, True),
        (T.MapType(TEXT, ODD), False, False),
        (T.MapType(ODD, TEXT), False, False),
        (T.MapType(TEXT, MAP), False, True),
        (T.ArrayType(MAP), False, True),
        (struct(a=MAP), False, True),
    ],
)
def test_types_that_can_be_grouped(dtype: T.DataType, groups: bool, with_maps: bool) -> None:
    assert canonical.is_groupable(dtype, maps=False) is groups
    assert canonical.is_groupable(dtype, maps=True) is with_maps


@pytest.mark.parametrize(
    "other", [T.BinaryType(), T.DayTimeIntervalType(), T.YearMonthIntervalType()]
)
def test_types_of_protected_columns(other: T.DataType) -> None:
    frame: Any
    models: Any = [registry.build("audit", registry.spec(model)) for model in SPEC.models]
    for kind in (
        *(INT, TEXT, T.BooleanType(), T.DateType(), T.TimestampNTZType(), T.VarcharType(9)),
        *(T.ArrayType(TEXT), MAP, struct(a=INT), T.NullType()),
    ):
        frame = Frame(**{**TABLE, "ill": kind})
        assert find_table_problems(frame.columns, list_kinds(frame), SPEC, models) == (
            [],
            frozenset(),
        )
    for kind in (other, T.ArrayType(other), struct(a=INT, b=other), T.MapType(TEXT, other)):
        frame = Frame(**{**TABLE, "ill": kind})
        problems, broken = find_table_problems(frame.columns, list_kinds(frame), SPEC, models)
        assert [str(p)[:28] for p in problems] == ["ill: can't be judged here: a"]
        assert broken == {"ill"}


# --- models


@pytest.mark.parametrize(
    ("name", "parameters", "good", "bad", "protected"),
    [
        ("k_anonymity", {"k": 3}, 3, 2, ()),
        ("p_sensitive", {"p": 3, "attribute": "s"}, 3, 2, ("s",)),
        ("l_diversity", {"l": 3, "attribute": "s"}, 3, 2, ("s",)),
        ("l_diversity", {"l": 3, "attribute": "s", "kind": "entropy"}, 3 - 1e-9, 3 - 1e-8, ("s",)),
        ("l_diversity", {"l": 3, "attribute": "s", "kind": "recursive", "c": 2.0}, 1.99, 2, ("s",)),
        ("alpha_k", {"alpha": 0.5, "attribute": "s"}, 0.5, math.nextafter(0.5, 1), ("s",)),
        ("beta_likeness", {"beta": 0.5, "attribute": "s"}, 0.5 + 9e-10, 0.5 + 1e-8, ("s",)),
        ("t_closeness", {"t": 0.5, "attribute": "s"}, 0.5 + 9e-10, 0.5 + 1e-8, ("s",)),
        ("delta_disclosure", {"delta": 0.5, "attribute": "s"}, 0.5, 0.5 + 1e-8, ("s",)),
    ],
)
def test_what_models_require(
    name: str, parameters: dict[str, Any], good: Any, bad: Any, protected: tuple[str, ...]
) -> None:
    model: Any = registry.build("audit", {"type": name, **parameters})
    assert model.holds(good)
    assert not model.holds(bad)
    assert model.greater_is_better == (good > bad)
    assert model.protected == protected
    assert model.persons == (3 if name == "k_anonymity" else 0)
    required = parameters.get("c", next(iter(parameters.values())))
    assert model.required == required


class AtMost(AuditModel):
    """A model of somebody else's, of which smaller values are better."""

    type: ClassVar[str] = "at_most"

    @property
    def greater_is_better(self) -> bool:
        return False

    @property
    def required(self) -> float:
        return 2.0

    def judge(self, view: View, part: Any) -> Judgement:
        return Judgement(part["n_rows"])


def test_a_model_of_ones_own() -> None:
    model: Any = AtMost()
    assert model.holds(2)
    assert not model.holds(2.1)
    assert (model.partial(VIEW), model.persons, model.protected) == ({}, 0, ())
    with pytest.raises(NotImplementedError, match="at_most leaves nothing undecided"):
        model.exact(VIEW, VIEW.rows)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("k_anonymity", {"k": 1}),
        ("p_sensitive", {"p": 1, "attribute": "s"}),
        ("l_diversity", {"l": 1, "attribute": "s"}),
        ("alpha_k", {"alpha": 0, "attribute": "s"}),
        ("alpha_k", {"alpha": 1.1, "attribute": "s"}),
        ("t_closeness", {"t": 0, "attribute": "s"}),
        ("t_closeness", {"t": 1.1, "attribute": "s"}),
        ("beta_likeness", {"beta": 0, "attribute": "s"}),
        ("delta_disclosure", {"delta": 0, "attribute": "s"}),
    ],
)
@pytest.mark.parametrize("family", ["audit", "privacy model"])
def test_parameters_of_no_model(family: str, name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(parameters))):
        registry.build(family, {"type": name, **parameters})


@pytest.mark.parametrize(
    ("required", "words"), [(2, 1), (4, 1), (5, 2), (8, 4), (9, 6), (16, 16), (99, 16)]
)
def test_words_of_a_sketch(required: int, words: int) -> None:
    assert Distinct("s0", required).n_words == words


def test_counts_of_all_sizes() -> None:
    """The worst value by the model's own direction; sizes without failing classes are left out."""
    rows: Any = [
        {"m0_size": None, "m0_value": 4, "m0_failing": 0, "m0_open": b"\x01\x80"},
        {"m0_size": 5, "m0_value": None, "m0_failing": 2, "m0_open": b"\x04\x00"},
        {"m0_size": 7, "m0_value": 6, "m0_failing": 1, "m0_open": b"\x00\x00"},
    ]
    more: Any = registry.build("audit", {"type": "k_anonymity", "k": 3})
    less: Any = registry.build("audit", {"type": "alpha_k", "alpha": 0.5, "attribute": "s"})
    bits = 0x8005
    assert count._gather(more, rows, "m0_") == Tally(4, False, Counter({5: 2, 7: 1}), bits)
    assert count._gather(less, rows, "m0_") == Tally(6, False, Counter({5: 2, 7: 1}), bits)
    plain = [{name: row[name] for name in ("m0_size", "m0_value", "m0_failing")} for row in rows]
    assert count._gather(more, plain, "m0_") == Tally(4, True, Counter({5: 2, 7: 1}), 0)  # type: ignore[arg-type]
    assert count._gather(more, [], "m0_") == Tally(None, True, Counter(), 0)


class Said:
    """An expression of Spark's. What it says is for the tests with Spark."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def same(self, *_: object) -> "Said":
        return self

    __ge__ = __le__ = __add__ = __sub__ = __invert__ = same
    __eq__ = same  # type: ignore[assignment]
    __hash__ = object.__hash__


class Functions:
    """The functions of Spark. `literals` are those with arrays."""

    def __init__(self) -> None:
        self.literals: list[Any] = []

    def lit(self, value: Any) -> Said:
        if isinstance(value, np.ndarray):
            self.literals.append(value)
        return Said()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: Said()


VIEW = View(Said(), Said(), ("q0",), {}, (), "rows", None, {}, {})  # type: ignore[arg-type]


@pytest.mark.parametrize("buckets", [[0], [63, 64, 32767], [*range(0, 32768, 2)]])
def test_classes_in_some_buckets(monkeypatch: pytest.MonkeyPatch, buckets: list[int]) -> None:
    """By one table of words; bit 63 of a word is its sign."""
    functions = Functions()
    monkeypatch.setattr(count, "F", functions)
    count._in_buckets(VIEW, sum(1 << bucket for bucket in buckets))
    (words,) = functions.literals
    assert words.dtype == np.int64
    unsigned = [int(word) % 2**64 for word in words]
    assert [64 * i + j for i, w in enumerate(unsigned) for j in range(64) if w >> j & 1] == buckets


def test_most_buckets_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = Functions()
    monkeypatch.setattr(count, "F", functions)
    bits = (1 << 16385) - 1
    count._in_buckets(VIEW, bits)
    assert functions.literals == []
    count._in_buckets(VIEW, bits >> 1)
    assert len(functions.literals) == 1


@pytest.mark.parametrize(
    ("kind", "before", "exactly", "value", "exact"),
    [
        ("k_anonymity", 5, 3, 3, True),
        ("k_anonymity", 3, 5, 3, False),
        ("k_anonymity", 3, 3, 3, True),
        ("k_anonymity", None, 5, 5, True),
        ("k_anonymity", 3, None, 3, False),
        ("k_anonymity", None, None, None, True),
        ("alpha_k", 0.5, 0.3, 0.5, False),
        ("alpha_k", 0.3, 0.5, 0.5, True),
    ],
)
def test_undecided_classes_are_counted_exactly(
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    before: float | None,
    exactly: float | None,
    value: float | None,
    exact: bool,
) -> None:
    """The worst value of all classes; it is exact if an exactly counted class has it."""
    own = {"k": 3} if kind == "k_anonymity" else {"alpha": 0.5, "attribute": "s"}
    model = registry.build("audit", {"type": kind, **own})

    class Classes:
        def groupBy(self, *_: Any) -> "Classes":
            return self

        agg = groupBy

        def collect(self) -> list[dict[str, Any]]:
            return [{"size": 4, "value": exactly, "failing": 2}]

    monkeypatch.setattr(count, "F", Functions())
    monkeypatch.setattr(type(model), "exact", lambda self, view, rows: Classes())
    found = count._settle(VIEW, model, Tally(before, False, Counter({9: 1}), 1))  # type: ignore[arg-type]
    assert found == Tally(value, exact, Counter({4: 2}))


def test_nothing_is_counted_where_all_is_decided() -> None:
    model: Any = registry.build("audit", {"type": "k_anonymity", "k": 3})
    decided = Tally(4, True, Counter({9: 1}))
    assert count._settle(VIEW, model, decided) is decided


def test_what_can_not_be_verified_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = registry.build("audit", {"type": "alpha_k", "alpha": 0.5, "attribute": "s"})

    def fail(self: Any, view: Any, rows: Any) -> None:
        raise UnverifiableError("no order")

    monkeypatch.setattr(count, "F", Functions())
    monkeypatch.setattr(type(model), "exact", fail)
    assert count._settle(VIEW, model, Tally(undecided=1)) == Tally(note="no order")


# --- the report


def test_what_is_said_of_a_report() -> None:
    good = Verdict("k_anonymity k=2", True, 2, 2, 0, ())
    later = Verdict(
        "k_anonymity k=3", False, None, 3, 0, (), exact=False, note="x", at_release=True
    )
    bad = Verdict("k_anonymity k=4", False, 2, 4, 1, (2,))

    def made(*verdicts: Verdict, problems: tuple[Problem, ...] = ()) -> AuditReport:
        return AuditReport(2, 1, verdicts, problems, ((2, 1),), "none")

    assert made(good, later).at_release
    assert not made(good).at_release
    assert not made(later, bad).at_release
    assert not made(later, problems=(Problem("", "no"),)).at_release
    both = made(good, problems=(Problem("b", "y"),)).and_(
        "apart", made(bad, problems=(Problem("a", "x"),))
    )
    assert [v.model for v in both.verdicts] == ["k_anonymity k=2", "apart: k_anonymity k=4"]
    assert both.problems == (Problem("a", "apart: x"), Problem("b", "y"))
    told = replace(made(good, later), lone={"a": 1}, notes=("n",)).to_dict()
    assert (told["passed"], told["at_release"], told["sizes"]) == (False, True, [[2, 1]])
    assert (told["verdicts"][0]["worst"], told["lone"], told["notes"]) == ([], {"a": 1}, ["n"])


def test_verdicts_of_parts_are_no_exact_values() -> None:
    unknown = Verdict("k_anonymity k=3", False, None, 3, 0, (), note="x", at_release=True)
    counted = Verdict("k_anonymity k=3", True, 5, 3, 0, ())
    whole, part = (AuditReport(9, 2, (v,), (), (), "none") for v in (unknown, counted))
    (found,) = by_parts(whole, part).verdicts
    assert (found.holds, found.value, found.exact) == (True, 3, False)
