"""The audit in memory, without Spark: each model against the literature and plain Python."""

import math
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonlib
from anonlib import registry
from anonlib.auditing import AuditReport, audit_in_memory, join_reports
from anonlib.auditing.arrow_values import (
    RowNumbers,
    can_number,
    combine,
    number_keys,
    number_protected,
)
from anonlib.auditing.models import t_closeness
from anonlib.auditing.report import list_worst
from anonlib.auditing.verdicts import round_sizes
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import parse_csv
from anonlib.privacy import CellCounts, PrivacyModel, SparseCounts
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.t_closeness import TCloseness
from tests.support import audit_spec

K2 = KAnonymity(k=2)


def audit(columns: Mapping[str, Any], /, *models: PrivacyModel, **spec: Any) -> AuditReport:
    """The audit of a table with the quasi-identifier `q`."""
    table = pa.table(dict(columns))
    private = {spec.get("token"), spec.get("apart")}
    spec = {"columns": tuple(n for n in columns if n not in private), **spec}
    spec = {
        "quasi_identifiers": ("q",),
        "models": models,
        "private": tuple(private - {None}),
        **spec,
    }
    return audit_in_memory(table, audit_spec(**spec))


def value(columns: Mapping[str, Any], /, model: PrivacyModel, **spec: Any) -> float | None:
    return audit(columns, model, **spec).verdicts[0].value


def test_no_spark_is_needed() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import pyarrow as pa\n"
        "from anonlib.auditing import AuditSpec, audit_in_memory\n"
        "from anonlib.privacy.k_anonymity import KAnonymity\n"
        "more = {'acknowledge_unique': False, 'persons': 'rows', 'sets': ()}\n"
        "spec = AuditSpec(('q',), ('q',), (KAnonymity(k=2),), **more)\n"
        "assert audit_in_memory(pa.table({'q': [1, 1]}), spec).passed"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Values of the literature.

#: Li, Li, Venkatasubramanian (2007): salaries of nine people in three classes.
SALARIES = {"q": [1, 1, 1, 2, 2, 2, 3, 3, 3], "s": [3, 4, 5, 6, 11, 8, 7, 9, 10]}


@pytest.mark.parametrize(("q", "distance"), [(1, 0.375), (2, 0.167), (3, 0.236)])
def test_t_closeness_of_the_paper(q: int, distance: float) -> None:
    """The paper gives 0.375 for {3, 4, 5} and 0.167 for {6, 8, 11}; the third follows alike."""
    order = [q, *({1, 2, 3} - {q})]
    alone = {"q": SALARIES["q"], "s": SALARIES["s"], "a": [order.index(x) for x in SALARIES["q"]]}
    found = audit(alone, TCloseness(t=0.1, attribute="s", distance="ordered"), apart="a", only=(0,))
    assert found.verdicts[0].value == pytest.approx(distance, abs=6e-4)
    assert found.n_rows == 3


#: Machanavajjhala et al. (2007), figure 3: three 4-anonymous classes; the last has one disease.
HOSPITAL = {
    "q": ["130**<30"] * 4 + ["1485*>=40"] * 4 + ["130**3*"] * 4,
    "s": ["Heart", "Heart", "Viral", "Viral", "Cancer", "Heart", "Viral", "Viral", *["Cancer"] * 4],
}


def test_l_diversity_of_the_paper() -> None:
    found = audit(HOSPITAL, KAnonymity(k=4), LDiversity(l=2, attribute="s"))
    assert [(v.holds, v.value, v.worst) for v in found.verdicts] == [
        (True, 4, ()),
        (False, 1, (4,)),
    ]
    assert isinstance(found.verdicts[0].value, int)
    assert (found.passed, found.n_classes, found.sizes) == (False, 3, ((4, 3),))


# Every model against plain Python.

Measure = Callable[[list[Any], list[Any]], float | None]
ORDER = ("d", "b", "a", "c")
TREE = Hierarchy.of(parse_csv("a;ab;*\nb;ab;*\nc;cd;*\nd;cd;*"))


def present(values: list[Any]) -> Counter[Any]:
    return Counter(v for v in values if v is not None)


def distinct(values: list[Any], whole: list[Any]) -> float | None:
    return len(present(values))


def entropy(values: list[Any], whole: list[Any]) -> float | None:
    n = present(values).total()
    parts = [-c / n * math.log(c / n) for c in present(values).values()]
    return math.exp(sum(parts)) if n else None


def recursive(values: list[Any], whole: list[Any]) -> float | None:
    counts = sorted(present(values).values(), reverse=True)
    return counts[0] / sum(counts[1:]) if len(counts) >= 2 else None


def commonest(values: list[Any], whole: list[Any]) -> float | None:
    counts = present(values)
    return max(counts.values()) / counts.total() if counts else None


def shares(values: list[Any], whole: list[Any], order: Sequence[str] = "abcd") -> list[Any]:
    """(p, q) of each value of the table, missing last."""
    there = [v for v in [*order, None] if v in whole]
    return [(values.count(v) / len(values), whole.count(v) / len(whole)) for v in there]


def equal(values: list[Any], whole: list[Any]) -> float | None:
    return sum(abs(p - q) for p, q in shares(values, whole)) / 2


def ordered(values: list[Any], whole: list[Any]) -> float | None:
    pairs = shares(values, whole, ORDER)
    running = [sum(p - q for p, q in pairs[: i + 1]) for i in range(len(pairs))]
    return sum(map(abs, running)) / max(1, len(pairs) - 1)


def along_tree(values: list[Any], whole: list[Any]) -> float | None:
    def extra(*names: Any) -> float:
        share = sum(values.count(v) / len(values) - whole.count(v) / len(whole) for v in names)
        return abs(share)

    # Edges of leaves and of groups cover half of the height each; missing goes to the root.
    below = sum(extra(v) for v in "abcd") / 4 + (extra("a", "b") + extra("c", "d")) / 4
    return below + extra(None) / 2


def gain(values: list[Any], whole: list[Any]) -> float | None:
    return max(p / q - 1 if p > q else 0.0 for p, q in shares(values, whole))


def enhanced(values: list[Any], whole: list[Any]) -> float | None:
    return max(
        (p / q - 1) * 1.5 / min(1.5, -math.log(q)) if p > q else 0.0
        for p, q in shares(values, whole)
    )


def disclosure(values: list[Any], whole: list[Any]) -> float | None:
    pairs = shares(values, whole)
    return max(abs(math.log(p / q)) for p, q in pairs) if all(p for p, _ in pairs) else None


MODELS: list[tuple[PrivacyModel, Measure]] = [
    (KAnonymity(k=3), lambda values, whole: len(values)),
    (LDiversity(l=2, attribute="s"), distinct),
    (LDiversity(l=3, attribute="s"), distinct),
    (LDiversity(l=2, attribute="s", kind="entropy"), entropy),
    (LDiversity(l=2, attribute="s", kind="recursive", c=2.0), recursive),
    (PSensitive(p=2, attribute="s"), distinct),
    (AlphaK(alpha=0.5, attribute="s"), commonest),
    (TCloseness(t=0.3, attribute="s"), equal),
    (TCloseness(t=0.2, attribute="s", distance="ordered"), ordered),
    (TCloseness(t=0.25, attribute="s", distance="hierarchical"), along_tree),
    (BetaLikeness(beta=1.0, attribute="s"), gain),
    (BetaLikeness(beta=1.5, attribute="s", kind="enhanced"), enhanced),
    (DeltaDisclosure(delta=1.0, attribute="s"), disclosure),
]
ALL = tuple(model for model, _ in MODELS)
SMALL = {"orders": {"s": ORDER}, "hierarchies": {"s": TREE}, "missing_tokens": ("?",)}


def holds(model: PrivacyModel, found: float | None) -> bool:
    """Whether a class holds, by the definition, with room for the last bits."""
    required = registry.build("audit", registry.spec(model)).required
    greater = registry.build("audit", registry.spec(model)).greater_is_better
    if found is None:
        return False
    if getattr(model, "kind", "") == "recursive":
        return found < required
    return found >= required - 1e-8 if greater else found <= required + 1e-9


cells = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "c", "d", "?", None])),
    min_size=1,
    max_size=25,
)


@given(cells)
def test_every_model_against_plain_python(rows: list[tuple[int, str | None]]) -> None:
    classes, whole = defaultdict(list), [None if s == "?" else s for _, s in rows]
    for (q, _), s in zip(rows, whole, strict=True):
        classes[q].append(s)
    found = audit({"q": [q for q, _ in rows], "s": pa.array([s for _, s in rows], pa.string())},
                  *ALL, **SMALL)  # fmt: skip
    assert found.sizes == tuple(sorted(Counter(map(len, classes.values())).items()))
    for (model, measure), verdict in zip(MODELS, found.verdicts, strict=True):
        check_verdict(model, [(measure(v, whole), len(v)) for v in classes.values()], verdict)


def check_verdict(model: PrivacyModel, by_class: list[tuple[Any, int]], verdict: Any) -> None:
    values = [v for v, _ in by_class if v is not None]
    greater = registry.build("audit", registry.spec(model)).greater_is_better
    worst = (min if greater else max)(values, default=None)
    failing = sorted(n for v, n in by_class if not holds(model, v))
    if failing and worst is not None and holds(model, worst):
        worst = None  # those that fail have no value
    assert verdict.value == (None if worst is None else pytest.approx(worst)), verdict
    assert (verdict.n_failing, verdict.worst) == (len(failing), tuple(failing[:5])), verdict
    assert verdict.holds == (not failing)
    assert verdict.exact
    assert not verdict.note


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 2, st.sampled_from([None, 1, 2, 3])), min_size=1))
def test_persons_against_plain_python(rows: list[tuple[int, int, int | None]]) -> None:
    """A person counts once for each of its values; without a token a row is nobody's."""
    columns = {"q": [r[0] for r in rows], "s": [r[1] for r in rows], "t": pa.array(
        [r[2] for r in rows], pa.int64())}  # fmt: skip
    models = (K2, LDiversity(l=2, attribute="s"), AlphaK(alpha=0.5, attribute="s"))
    report = audit(columns, *models, persons="token", token="t", insensitive=("s",))
    persons, values, pairs = defaultdict(set), defaultdict(set), defaultdict(set)
    for q, s, t in rows:
        persons[q] |= {t} - {None}
        values[q] |= {s} if t is not None else set()
        pairs[q, s] |= {t} - {None}
    k, diverse, alpha = report.verdicts
    assert k.value == min(map(len, persons.values()))
    assert diverse.value == min(map(len, values.values()))
    largest = [len(pairs[q, s]) / len(persons[q]) for q, s in pairs if persons[q]]
    nobody = not all(persons.values())  # fails, and has no share
    told = largest and not (nobody and max(largest) <= 0.5)
    assert alpha.value == (max(largest) if told else None)
    rare = sum(len(found) < 2 for found in pairs.values())
    text = f"{rare} of {len(pairs)} combinations of the quasi-identifiers and"
    assert any(p.text.startswith(text) for p in report.problems) == (rare > 0)


# What classes and values are.


def n_classes(column: Any, **spec: Any) -> int:
    return audit({"q": column}, K2, **spec).n_classes


def test_equal_released_values() -> None:
    odd = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]
    assert n_classes([0.0, -0.0, math.nan, odd, None]) == 3
    assert n_classes(pa.array([0.0, -0.0, math.nan, None], pa.float32())) == 3
    assert n_classes(pa.array(np.array([0.0, -0.0, math.nan], np.float16))) == 2
    assert n_classes(["a", "A", "a ", None, "\uff41"]) == 5
    assert n_classes([["x", "y"], ["y", "x"], ["x", "x", "y"], [], None, [None]]) == 6
    assert n_classes([["x", "y"], ["y", "x"], ["x", "x", "y"]], sets=("q",)) == 2
    assert n_classes([["ab"], ["a", "b"], ["a"], ["b", "a"]]) == 4
    struct = [{"a": 0.0, "b": None}, {"a": -0.0, "b": None}, {"a": None, "b": None}, None]
    assert n_classes(struct) == 3
    assert n_classes([[{"a": [1]}], [{"a": [1, None]}], [{"a": None}], [None]]) == 4
    assert n_classes(pa.array([[1, 2], None, [1, 2], [2, 1]], pa.list_(pa.int8(), 2))) == 3
    assert n_classes(pa.array(["a", "b", "a"]).dictionary_encode()) == 2
    assert n_classes(pa.nulls(3)) == 1
    assert n_classes(pa.array(["x", "y", "x"], pa.string_view())) == 2
    assert n_classes(pa.array([b"ab", b"ab", b"cd"], pa.binary(2))) == 2


def test_categories_of_polars() -> None:
    """They are dictionaries of views, which Arrow can't decode, in several parts as in one."""
    words = ["x", "y", "X", None, "x"]
    categories = pl.Series(words, dtype=pl.Categorical)
    enum = pl.Series(words, dtype=pl.Enum(["y", "X", "x", "unused"]))
    other = pl.Series(["z", "y"], dtype=pl.Categorical)
    for kind, more in ((categories, other), (enum, enum)):
        column = pl.DataFrame({"c": kind}).to_arrow(compat_level=pl.CompatLevel.newest())["c"]
        assert column.type.value_type == pa.string_view()
        assert n_classes(column) == 4
        assert diverse(column) == 2
        both = pl.DataFrame({"c": more}).to_arrow(compat_level=pl.CompatLevel.newest())["c"]
        chunks = pa.chunked_array([*column.chunks, *both.chunks], column.type)
        assert diverse(chunks) == (3 if more is other else 2)
    nested = pl.DataFrame({"c": pl.Series([["x"], [], ["X", None]], dtype=pl.List(pl.Categorical))})
    assert diverse(nested.to_arrow(compat_level=pl.CompatLevel.newest())["c"]) == 2


def test_columns_in_parts_and_slices() -> None:
    column = pa.chunked_array([[[1], [2, 3]], [[1], None], [[2, 3]]])
    assert n_classes(column) == 3
    assert n_classes(column.slice(1, 3)) == 3
    pairs = pa.array([{"a": 1}, {"a": 2}, None, {"a": 2}]).slice(1)
    assert n_classes(pairs) == 2
    maps = pa.array([[("z", 0)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)], None],
                    pa.map_(pa.string(), pa.int8()))  # fmt: skip
    assert number_keys(pa.chunked_array([maps.slice(1)])).of_row.tolist() == [1, 1, 0]


def diverse(column: Any, *tokens: str) -> float | None:
    whole = {"q": [0] * len(column), "s": column}
    return value(whole, LDiversity(l=2, attribute="s"), missing_tokens=tokens)


def test_equal_protected_values() -> None:
    assert diverse(["Flu", " flu\u200b", "ＦＬＵ", "f lu", None, "", "n/A", "\u3000"], "N/a") == 2
    assert diverse([0.0, -0.0, math.nan, None, -9.0], "-9") == 1
    assert diverse([["A", "?"], ["a ", None], ["a"], [], None], "?") == 2
    assert diverse([{"x": "A", "y": 1}, {"x": "a", "y": -9}, {"x": "a", "y": None}], "-9") == 2
    maps = pa.array([[("B", 1), ("a", 2)], [("A", 2), ("b", 1)]], pa.map_(pa.string(), pa.int8()))
    assert diverse(maps) == 1
    assert diverse(pa.nulls(2)) == 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[], [None], ["?"], None], pa.list_(pa.string())),
        pa.array([[], [None], [[]], [["?", None]]], pa.list_(pa.list_(pa.string()))),
        pa.array([None, {"a": None, "b": None}, {"a": "?", "b": []}, {"a": "", "b": ["?"]}]),
        pa.array([[], None, [("?", None)], [("", "?")]], pa.map_(pa.string(), pa.string())),
        pa.array([[None, None], ["?", ""], None, ["", "?"]], pa.list_(pa.string(), 2)),
        pa.array([[], [None], [], None], pa.list_(pa.null())),
    ],
)
def test_nested_values_without_a_part_are_missing(column: pa.Array) -> None:
    """Of any form: they tell nothing of a person, so they are no values of a model."""
    assert diverse(column, "?") == 0
    both = pa.chunked_array([column.slice(1), column])
    assert diverse(both, "?") == 0
    found = number_protected(pa.chunked_array([pa.array([["?"], ["a"], [], ["b"]])]), ["?"])
    assert (found.of_row.tolist(), found.size) == ([0, 1, 0, 2], 3)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"flu", b"FLU", b"?", b""]),
        pa.array([b"ab", b"cd", b"ef", b"gh"], pa.binary(2)),
        pa.array([[b"a"], [b"A"], [], None]),
        pa.array([{"a": 1, "b": b"x"}] * 4),
        pa.array([[("a", b"b")]] * 4, pa.map_(pa.string(), pa.binary())),
        pa.array([b"x", b"X", b"x", b"y"]).dictionary_encode(),
    ],
)
def test_bytes_are_no_values_of_a_model(column: pa.Array) -> None:
    """No release has them there: a text as bytes would be another value in each spelling."""
    columns = {"q": [0] * 4, "s": column}
    found = audit(columns, K2, LDiversity(l=2, attribute="s"))
    assert [str(p)[:26] for p in found.problems] == ["s: can't be judged here: a"]
    assert (found.passed, found.verdicts) == (False, ())
    assert audit(columns, K2).passed  # no model looks at it


@pytest.mark.parametrize(
    ("values", "dtype", "tokens", "left"),
    [
        ([-9, 5, 127], pa.int8(), ["-9.0", " 5 ", "127.5", "1e999999", "300", "?"], 1),
        ([0, 255], pa.uint8(), ["-1", "255"], 1),
        ([2**63 - 1, 1], pa.int64(), ["9223372036854775807", "9223372036854775808"], 1),
        ([0.1, math.inf, 3.0], pa.float64(), ["0.1", "1e999", "nan"], 2),
        ([0.1, math.inf, 3.0], pa.float32(), ["0.1", "1e39"], 2),
        ([math.inf, 3.0], pa.float64(), ["Infinity"], 1),
        ([0.0, 3.0], pa.float64(), ["-0"], 1),
        ([Decimal("1.50"), Decimal("-9.00")], pa.decimal128(4, 2), ["1.5", "-9.001", "1e9"], 1),
        ([True, False], pa.bool_(), [" TRUE", "0"], 1),
        ([date(2020, 1, 1), date(2021, 1, 1)], pa.date32(), ["2020-01-01", "2021-01-01 01:00"], 1),
        ([date(2020, 1, 1), date(2021, 1, 1)], pa.date64(), ["2020-1-1"], 1),
        ([1577847600, 1577923200], pa.timestamp("s"),
         ["2020-01-01 04:00+01:00", "2020-01-02T00:00:00.5"], 1),
        ([datetime(2020, 1, 1, tzinfo=UTC), None], pa.timestamp("ns", "UTC"), ["2020-01-01"], 0),
        ([1577836800 * 10**9, None], pa.timestamp("ns"), ["9999-01-01", "2500-01-01"], 1),
        ([7258118400 * 10**9, None], pa.timestamp("ns"), ["2200-01-01"], 0),
        ([500, 1], pa.timestamp("ms"), ["1970-01-01 00:00:00.5"], 1),
        ([500, 1], pa.timestamp("us"), ["1970-01-01 00:00:00.0005"], 1),
        ([True, False], pa.bool_(), ["true", "FALSE"], 0),
        ([-128, 127, 0], pa.int8(), ["-128", "127"], 1),
        ([sys.float_info.max, 1.0], pa.float64(), ["1.7976931348623157e308"], 1),
        ([Decimal("1.50"), Decimal("2.00")], pa.decimal128(4, 2), ["2.000", "1.505"], 1),
    ],
)  # fmt: skip
def test_tokens_by_value(values: list[Any], dtype: Any, tokens: list[str], left: int) -> None:
    assert diverse(pa.array(values, dtype), *tokens) == left


@pytest.mark.parametrize("width", [32, 64])
def test_short_decimals(width: int) -> None:
    kind = {32: pa.decimal32, 64: pa.decimal64}[width](5, 2)
    column = pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal("1.50")], kind)
    assert number_keys(pa.chunked_array([column])).of_row.tolist() == [2, 0, 1, 2]


def test_types_that_have_no_numbers() -> None:
    inner = pa.map_(pa.string(), pa.int8())
    assert can_number(pa.map_(pa.string(), inner), maps=True)
    assert not can_number(pa.list_(inner), maps=False)
    assert number_protected(pa.chunked_array([[b"a", None, b""]]), ["a"]).of_row.tolist() == [
        2,
        0,
        1,
    ]
    with pytest.raises(TypeError, match="duration"):
        number_protected(pa.chunked_array([pa.array([1], pa.duration("s"))]), [])


def test_lists_within_values_keep_their_order() -> None:
    inside = pa.array([{"x": [1, 2]}, {"x": [2, 1]}, {"x": [1, 2]}])
    assert number_keys(pa.chunked_array([inside]), is_set=True).of_row.tolist() == [1, 2, 1]


def test_numbers_are_in_the_order_of_values() -> None:
    for values in (
        [None, False, True],
        [None, -1.5, 0.0, 2.0],
        [None, "", "a", "b", "é", "\U0001f600"],
        [None, [], [None], [None, 1], [1], [1, 1], [300]],
        [None, {"a": None, "b": 1}, {"a": 1, "b": None}, {"a": 1, "b": 3}, {"a": 2, "b": 0}],
        [None, date(1, 1, 1), date(1970, 1, 1)],
    ):
        column = pa.chunked_array([pa.array(values[::-1])])
        assert number_keys(column).of_row.tolist() == [*range(len(values))][::-1]
    text = number_protected(pa.chunked_array([["B", "a", "?", "b "]]), ["?"])
    assert text.of_row.tolist() == [2, 1, 0, 2]
    assert text.values.to_pylist() == ["a", "b"]


def test_combinations_of_many_columns() -> None:
    """The product of their sizes is far above 64 bits."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 900, (1000, 12))
    rows[500:] = rows[:500]
    parts = [number_keys(pa.chunked_array([column])) for column in rows.T]
    both = combine(parts, 1000)
    assert (both.size, set(both.of_row)) == (500, set(range(500)))
    assert (both.of_row[:500] == both.of_row[500:]).all()
    assert combine([], 3).of_row.tolist() == [0, 0, 0]


@pytest.mark.parametrize("sizes", [(2**31, 2**31, 2**31), (2**40, 2**31)])
def test_combinations_of_wide_columns(sizes: tuple[int, ...]) -> None:
    """The rows differ in the first column alone, by what 64 bits would lose."""
    rows = [np.array([0, sizes[0] // 2**7]), *[np.zeros(2, np.int64)] * (len(sizes) - 1)]
    parts = [RowNumbers(its, size) for its, size in zip(rows, sizes, strict=True)]
    assert combine(parts, 2).of_row.tolist() == [0, 1]


# The rest of the report.

PEOPLE = {"q": [1, 1, 1, 2, 2], "s": ["x", "y", "x", "x", "y"], "o": ["m", "m", "n", "n", "n"]}


def test_sizes_are_rounded_above_1024() -> None:
    q = np.repeat(np.arange(5), [1024, 1025, 2047, 2048, 1])
    found = audit({"q": q}, KAnonymity(k=3000))
    assert found.sizes == ((1, 1), (1024, 1), (1025, 2), (2048, 1))
    assert found.verdicts[0].worst == (1, 1024, 1025, 1025, 2048)
    assert (
        list_worst(found.verdicts[0]) == "1, 1,024, at least 1,025, at least 1,025, at least 2,048"
    )


@pytest.mark.parametrize("rows", [[1500, 1900], [1024, 1300], [2500, 2049, 5000]])
def test_the_smallest_size_is_exact(rows: list[int]) -> None:
    found = audit({"q": np.repeat(np.arange(len(rows)), rows)}, K2)
    assert found.sizes[0][0] == min(rows) == found.verdicts[0].value
    both = join_reports(found, audit({"q": [1] * 1400}, K2), audit_spec(("q",), ("q",), (K2,)))
    assert both is not None
    assert both.sizes[0][0] == min(1400, *rows)
    assert len({size.bit_length() for size, _ in both.sizes if size > 1024}) == sum(
        size > 1024 for size, _ in both.sizes
    )


def test_insensitive_columns() -> None:
    found = audit(PEOPLE, K2, insensitive=("o",))
    text = (
        "1 of 3 combinations of the quasi-identifiers and the insensitive columns belong to fewer"
    )
    assert [p.text.startswith(text) for p in found.problems] == [True]
    assert (found.insensitive, found.passed) == ("checked", False)
    assert audit(PEOPLE, K2, insensitive=("o",), acknowledge_unique=True).passed
    found = audit(PEOPLE, LDiversity(l=2, attribute="s"), insensitive=("o",))
    assert found.insensitive == "not checked"


def test_joint() -> None:
    models = (K2, LDiversity(l=2, attribute="s"), LDiversity(l=2, attribute="o"))
    found = audit(PEOPLE, *models, joint=("s", "o"))
    assert [(v.model, v.value, v.worst) for v in found.verdicts[3:]] == [
        ("l_diversity l=2 attribute=s joint=True", 1, (1,)),
        ("l_diversity l=2 attribute=o joint=True", 1, (1, 1, 1)),
    ]


def test_joint_groups_of_nobody_hold() -> None:
    """The last row has a value of its own, and no person: there is nobody to protect. A person
    with that value is."""
    rows = {"q": [1] * 5, "s": [*"abaab"], "o": [*"xxxxy"]}
    model = LDiversity(l=2, attribute="s")
    for last, found in ((None, (True, 2)), ("5", (False, 1))):
        persons = {**rows, "person": ["1", "2", "3", "4", last]}
        verdicts = audit(
            persons, K2, model, joint=("s", "o"), persons="token", token="person"
        ).verdicts
        assert (verdicts[-1].holds, verdicts[-1].value) == found
    nobody = {**rows, "person": pa.nulls(5, pa.string())}
    joint = audit(nobody, K2, model, joint=("s", "o"), persons="token", token="person")
    assert not joint.passed


def test_unknown_persons() -> None:
    (k, many) = audit(PEOPLE, K2, KAnonymity(k=3), persons="unknown").verdicts
    assert (k.holds, k.value, k.at_release, k.exact, k.n_failing) == (False, None, True, False, 0)
    assert (many.holds, many.at_release, many.worst) == (False, False, (2,))
    assert many.note.startswith("persons can't be counted")
    assert many.note.endswith("; 1 class fails by their rows")


def test_lone_rows_of_shares() -> None:
    kind = pa.list_(pa.struct([("node", pa.int32()), ("share", pa.float64())]))
    halves, most = [(0, 0.5), (1, 0.5)], [(0, 0.75), (1, 0.25)]
    q = pa.array([halves] * 2 + [most] * 4 + [None], kind)
    found = audit({"q": q}, K2, shares={"q": None})
    assert found.lone == {"q": 3}
    assert audit({"q": pa.array([halves] * 20, kind)}, K2, shares={"q": 4}).lone == {"q": 0}
    assert audit({"q": q}, K2, shares={"q": 100}).lone == {"q": 3}
    parts = {"q": q, "a": [0, 0, 1, 1, 1, 1, 1]}
    assert audit(parts, K2, shares={"q": None}, apart="a", only=(0,)).lone == {"q": 2}


@pytest.mark.parametrize("steps", [4, 10, 20, 100])
def test_lone_rows_of_rounded_shares(steps: int) -> None:
    """Against all counts that a rounded share leaves open."""
    kind = pa.list_(pa.struct([("node", pa.int32()), ("share", pa.float64())]))
    for n in range(1, 60):
        taken = [round(count / n * steps) for count in range(1, n + 1)]
        shares = pa.array([[(i, each / steps) for i, each in enumerate(taken)]] * n, kind)
        step = Fraction(1, steps)
        left_open = [
            [m for m in range(1, n + 1) if abs(Fraction(m, n) - each * step) < step]
            for each in taken
        ]
        found = audit({"q": shares}, K2, shares={"q": steps}).lone
        assert found == {"q": left_open.count([1])}, n


def test_batches_are_counted_apart() -> None:
    columns = {"q": [1, 1, 1, 1], "a": [0, 0, 0, 1]}
    assert value(columns, K2) == 4
    assert value(columns, K2, apart="a") == 1
    assert value(columns, K2, apart="a", only=(0,)) == 3


def test_a_table_without_rows_or_quasi_identifiers() -> None:
    empty = audit(
        {"q": pa.array([], pa.string()), "s": pa.array([], pa.int64())}, K2, *ALL, **SMALL
    )
    assert [p.text for p in empty.problems] == ["the table has no rows"]
    assert (empty.passed, empty.n_rows, empty.n_classes, empty.verdicts) == (False, 0, 0, ())
    found = audit(PEOPLE, K2, quasi_identifiers=())
    assert (found.passed, found.sizes) == (True, ((5, 1),))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"columns": ("q", "s")}, "o: the release should not have this column"),
        ({"columns": ("q", "s", "o", "z")}, "z: the table does not have this column"),
        ({"quasi_identifiers": ("Q",)}, "Q: the table does not have this column"),
        ({"persons": "token", "token": "t"}, "t: the table does not have this column"),
        ({"models": ()}, "privacy.models: there is no k-anonymity"),
        ({"sets": ("q",)}, "q: said to be a set, which takes an array, not int64"),
        ({"shares": {"q": 4}}, "q: said to be shares, which are of type array<struct<node:int,"),
    ],
)
def test_what_does_not_fit(change: dict[str, Any], problem: str) -> None:
    found = audit(PEOPLE, K2, **change)
    assert not found.passed
    assert [str(p)[: len(problem)] for p in found.problems] == [problem]


def test_columns_that_are_no_values() -> None:
    maps = pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int8()))
    for column in (maps, pa.array([1, 2], pa.duration("s")), pa.array([1, 2], pa.time32("s"))):
        (problem,) = audit({"q": column}, K2).problems
        assert problem.text.endswith("can't be grouped by value here")
    assert can_number(maps.type, maps=True)
    assert not can_number(pa.list_(pa.time64("us")), maps=True)
    twice = pa.table([[1, 1], [2, 2]], names=["q", "q"])
    found = audit_in_memory(twice, audit_spec(("q",), ("q",), (K2,)))
    assert [p.text for p in found.problems] == ["the table has 2 columns of this name"]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"hierarchies": {}}, "the hierarchy of column s is not given"),
        (
            {"hierarchies": {"s": Hierarchy.of(parse_csv("a;*\nb;*"))}},
            "the hierarchy lacks 2 values",
        ),
        ({"orders": {"s": ("a", "b")}}, "the order of column s lacks 2 of its values"),
    ],
)
def test_models_that_lack_something(change: dict[str, Any], note: str) -> None:
    distances: Any = ("ordered", "hierarchical")
    models = [TCloseness(t=1, attribute="s", distance=distance) for distance in distances]
    columns = {"q": [1] * 4, "s": ["a", "b", "c", "d"]}
    verdicts = audit(columns, *models, **{**SMALL, **change}).verdicts
    (lacking,) = [verdict for verdict in verdicts if verdict.note]
    assert lacking.note.startswith(note)
    assert (lacking.holds, lacking.value, lacking.exact) == (False, None, False)


def test_every_model_measures_in_memory() -> None:
    """Each with a `measure` of its own; the values of no row are in a report."""
    assert {model.type for model in ALL} == registry.plugins("audit").keys()
    secret = {"q": ["Xanadu"] * 2 + ["Yeti"], "s": ["Zorro", "Zorro", None]}
    found = audit(secret, *ALL, orders={"s": ("a",)}, hierarchies={"s": TREE}, insensitive=("s",))
    assert not any(name in str(found.to_dict()) for name in ("Xanadu", "Yeti", "orro"))


def test_a_failing_model_has_no_value_that_passes() -> None:
    """A class without a value that the model needs has no value of its own."""
    data = pa.table({"q": ["u"] * 6 + ["v"] * 6, "s": [*"aabbcc", *"aabbab"]})
    config = {
        "attributes": {
            "q": {"role": "quasi_identifier", "scale": "nominal"},
            "s": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 2},
                {"type": "delta_disclosure", "delta": 1.0, "attribute": "s"},
            ]
        },
        "recode": {"nominal": "mode"},
    }
    verdict = anonlib.audit(data, config).verdicts[1]
    assert (verdict.holds, verdict.value, verdict.n_failing) == (False, None, 1)


def key_of(person: int) -> str:
    """A pseudonym, as keyed hashes are written."""
    return sha256(str(person).encode()).hexdigest()


#: One row per person, by a pseudonym that is released.
NAMED: dict[str, Any] = {
    "source": {"format": "parquet", "path": "in"},
    "attributes": {
        "q": {"role": "quasi_identifier", "scale": "nominal"},
        "p": {"role": "identifier", "pseudonym": True},
    },
    "one_row_per_person": "p",
    "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
    "pseudonyms": {"key_env": "KEY"},
    "release": {"path": "out"},
}
#: Pseudonyms of two classes of two rows, the smallest class by persons, and words of the problem.
PERSONS: list[tuple[list[Any], int, str]] = [
    ([key_of(i) for i in range(4)], 2, ""),
    ([key_of(i // 2) for i in range(4)], 1, "2 rows repeat that of another row"),
    ([key_of(i % 2) for i in range(4)], 2, "2 rows repeat that of another row"),
    ([*[key_of(i) for i in range(3)], None], 1, "1 row has none"),
    ([None] * 4, 0, "4 rows have none"),
    (["Ann", "Bo", "Cy", "Di"], 2, "4 rows have a value that is no pseudonym"),
    ([*[key_of(i) for i in range(3)], key_of(3).upper()], 2, "1 row has a value that is no"),
    ([*[key_of(i) for i in range(3)], key_of(3) + "\n"], 2, "1 row has a value that is no"),
    ([*[key_of(i) for i in range(3)], ""], 2, "1 row has a value that is no pseudonym"),
]


@pytest.mark.parametrize(("persons", "smallest", "text"), PERSONS)
def test_the_person_column_of_a_table(persons: list[Any], smallest: int, text: str) -> None:
    """That each row is another person is seen in the table, where the table has the person."""
    table = pa.table({"q": [*"aabb"], "p": pa.array(persons, pa.string())})
    report = anonlib.audit(table, NAMED)
    assert report.smallest_class == smallest
    assert report.passed == (not text)
    problems = [str(problem) for problem in report.problems]
    assert any(text in each for each in problems) == bool(text)
    encoded = table.set_column(1, "p", table["p"].dictionary_encode())
    assert anonlib.audit(encoded, NAMED) == report
    numbers = table.set_column(1, "p", pa.array([1, 2, 3, 4]))
    (problem,) = anonlib.audit(numbers, NAMED).problems
    assert str(problem) == "p: said to be a pseudonym, which is text, not int64"


def test_pseudonyms_of_a_unit() -> None:
    """They may repeat, and rows of nobody have none; other values are no pseudonyms."""
    linked = {"models": [{"type": "k_anonymity", "k": 2}], "acknowledge_linked": True}
    config = {**NAMED, "unit": ["p"], "privacy": linked}
    del config["one_row_per_person"]
    persons = [key_of(0), key_of(0), key_of(1), None]
    found = anonlib.audit(pa.table({"q": [*"aaaa"], "p": persons}), config)
    assert (found.passed, found.smallest_class) == (True, 2)
    persons[0] = "Ann"
    found = anonlib.audit(pa.table({"q": [*"aaaa"], "p": persons}), config)
    assert [problem.where for problem in found.problems] == ["p"]
    assert "Ann" not in str(found.problems)


def test_persons_who_may_return() -> None:
    """With stable pseudonyms a person who was released twice has two rows, which is no problem, and
    counts once."""
    again = {
        "path": "out",
        "mode": "append",
        "acknowledge_returning": True,
        "ledger": {"key_env": "LEDGER"},
    }
    stable = {"key_env": "KEY", "scope": "stable"}
    privacy = {**NAMED["privacy"], "acknowledge_linked": True}
    config = {**NAMED, "release": again, "pseudonyms": stable, "privacy": privacy}
    persons = [key_of(0), key_of(1), key_of(0), key_of(0)]
    found = anonlib.audit(pa.table({"q": [*"aaaa"], "p": persons}), config)
    assert (found.passed, found.smallest_class) == (True, 2)


#: Sets of one class, and whether their order tells rows apart.
SETS: list[tuple[list[Any], bool]] = [
    ([["a", "b"]] * 4, False),
    ([["b", "a"]] * 4, False),  # by an order of the column
    ([["a", "b"]] * 3 + [["b", "a"]], True),
    ([["a", None]] * 2 + [[None, "a"]] * 2, True),
    ([None, None, [], []], False),
    ([["a", "a", "b"]] * 2 + [["a", "b", "a"]] * 2, True),
]


@pytest.mark.parametrize(("sets", "tells"), SETS)
def test_equal_sets_in_several_orders(sets: list[Any], tells: bool) -> None:
    """They are one class, and readers can see the order."""
    found = audit({"q": pa.array(sets, pa.list_(pa.string()))}, K2, sets=("q",))
    assert [problem.where for problem in found.problems] == ["q"] * tells
    assert found.n_classes == (1 if sets[0] else 2)


def test_a_share_is_compared_as_it_is() -> None:
    """No share above alpha holds, each that is alpha does, and kernels say the same."""
    rows = {"q": ["a"] * 3, "s": ["x", "y", "z"]}
    for alpha, holds in ((0.3333333333, False), (1 / 3, True)):
        (verdict,) = audit(rows, AlphaK(alpha=alpha, attribute="s")).verdicts
        assert verdict.holds == holds
    place = np.zeros(2, np.int64)
    for known in range(2, 80):
        for largest in range((known + 1) // 2, known):
            counts = SparseCounts(place, np.array([0, 1]), np.array([largest, known - largest]))
            n = np.array([known])
            for alpha in (largest / known, math.nextafter(largest / known, 0)):
                model = AlphaK(alpha=alpha, attribute="s")
                own = registry.build("audit", registry.spec(model))
                holds = alpha == largest / known
                assert own.holds(np.array([largest]) / n) == [holds]
                assert model.holds(CellCounts(n, n, {"s": counts})) == [holds]


@pytest.mark.parametrize("most", [1, 7, 40])
def test_classes_are_measured_some_at_a_time(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    rng = np.random.default_rng(3)
    columns = {"q": rng.integers(0, 30, 200).tolist(), "s": rng.integers(0, 9, 200).tolist()}
    model = TCloseness(t=1.0, attribute="s", distance="ordered")
    at_once = value(columns, model)
    monkeypatch.setattr(t_closeness, "MAX_CELLS", most)
    assert value(columns, model) == at_once


def test_small_sizes_are_no_powers() -> None:
    """1500 has 11 binary digits."""
    assert round_sizes({11: 3, 1500: 2, 2000: 1}) == {11: 3, 1500: 3}
