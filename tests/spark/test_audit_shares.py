"""The audit of models that look at counts, against plain Python."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import exp, inf, isclose, log
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anonlib.auditing import AuditReport, audit_in_memory, audit_table
from anonlib.cli.show.summaries import print_audit
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.privacy import PrivacyModel
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.t_closeness import TCloseness
from tests.spark.support import Shell, settings, write_config
from tests.support import audit_spec

pytestmark = pytest.mark.spark

TEXT, NUMBER = "illness", "days"
#: One value of each class: None where there is none, which fails.
Measure = Callable[[list[Any], list[Any]], float | None]


def entropy(values: list[Any], whole: list[Any]) -> float | None:
    present = [v for v in values if v is not None]
    n = len(present)
    return exp(-sum(c / n * log(c / n) for c in Counter(present).values())) if n else None


def recursive(values: list[Any], whole: list[Any]) -> float | None:
    frequent = sorted(Counter(v for v in values if v is not None).values(), reverse=True)
    return frequent[0] / sum(frequent[1:]) if len(frequent) >= 2 else None


def frequent(values: list[Any], whole: list[Any]) -> float | None:
    found = Counter(v for v in values if v is not None)
    return max(found.values()) / found.total() if found else None


def distinct(values: list[Any], whole: list[Any]) -> float:
    return len({v for v in values if v is not None})


def pairs(values: list[Any], whole: list[Any]) -> list[tuple[float, float]]:
    """(p, q) of every value of the table in order, missing last."""
    cell, table = Counter(values), Counter(whole)
    order = [*sorted(v for v in table if v is not None), *([None] if None in table else [])]
    return [(cell[v] / len(values), table[v] / len(whole)) for v in order]


def equal(values: list[Any], whole: list[Any]) -> float:
    return sum(abs(p - q) for p, q in pairs(values, whole)) / 2


def ordered(values: list[Any], whole: list[Any]) -> float:
    found, total, running = pairs(values, whole), 0.0, 0.0
    for p, q in found:
        running += p - q
        total += abs(running)
    return total / max(1, len(found) - 1)


def hierarchical(values: list[Any], whole: list[Any]) -> float:
    """What the infections even out among themselves counts half of what the root evens out."""
    order = sorted({v for v in whole if v is not None})
    extra = dict(zip([*order, None], [p - q for p, q in pairs(values, whole)], strict=False))
    infections = [extra.pop("flu", 0.0), extra.pop("cold", 0.0)]
    inside = min(sum(max(x, 0) for x in infections), sum(max(-x, 0) for x in infections))
    return inside / 2 + sum(max(x, 0) for x in [sum(infections), *extra.values()])


def disclosure(values: list[Any], whole: list[Any]) -> float | None:
    worst = max(abs(log(p / q)) if p else inf for p, q in pairs(values, whole))
    return None if worst == inf else worst


def likeness(values: list[Any], whole: list[Any]) -> float:
    return max([p / q - 1 for p, q in pairs(values, whole)] + [0.0])


def enhanced(values: list[Any], whole: list[Any]) -> float:
    scaled = [(p / q - 1) * 2 / min(2, -log(q)) for p, q in pairs(values, whole) if p > q]
    return max([*scaled, 0.0])


MODELS: list[tuple[PrivacyModel, Measure]] = [
    (LDiversity(l=2, kind="entropy", attribute=TEXT), entropy),
    (LDiversity(l=3, kind="entropy", attribute=NUMBER), entropy),
    (LDiversity(l=2, kind="recursive", c=1.45, attribute=TEXT), recursive),
    (PSensitive(p=3, attribute=TEXT), distinct),
    (AlphaK(alpha=0.6, attribute=NUMBER), frequent),
    (TCloseness(t=0.35, attribute=TEXT), equal),
    (TCloseness(t=0.2, distance="ordered", attribute=NUMBER), ordered),
    (TCloseness(t=0.3, distance="ordered", attribute=TEXT), ordered),
    (TCloseness(t=0.3, distance="hierarchical", attribute=TEXT), hierarchical),
    (DeltaDisclosure(delta=1.2, attribute=TEXT), disclosure),
    (BetaLikeness(beta=2, attribute=NUMBER), likeness),
    (BetaLikeness(beta=2, kind="enhanced", attribute=TEXT), enhanced),
]


#: Two of the values of TEXT are nearer to each other.
ILLNESSES = "Flu;infection;*\nCold ;infection;*\ngout;*\nacne;*\nmumps;infection;*\n"


@pytest.fixture
def illnesses(tmp_path: Path) -> dict[str, Hierarchy]:
    (tmp_path / "illnesses.csv").write_text(ILLNESSES)
    return {TEXT: read_hierarchy(tmp_path / "illnesses.csv").folded()}


def make_rows(seed: int, *, missing: bool) -> list[tuple[str, str | None, float | None]]:
    """Classes of all sizes, some diverse, some not."""
    rng = random.Random(seed)
    texts = ["flu", "Flu ", "cold", "gout", *(["?", None] if missing else ["acne"])]
    numbers = [1.0, 2.0, 2.5, 40.0, *([None, float("nan")] if missing else [41.0])]
    rows = []
    for i in range(40):
        some = rng.choice([1, 2, 4, 6, 6, 6])
        for _ in range(rng.choice([2, 5, 12, 40])):
            rows.append((f"q{i}", rng.choice(texts[:some]), rng.choice(numbers[:some])))
    rng.shuffle(rows)
    return rows


def report_of(
    spark: SparkSession | None,
    rows: Sequence[Any],
    models: Sequence[Any],
    hierarchies: Mapping[str, Hierarchy] | None = None,
    joint: tuple[str, ...] = (),
) -> AuditReport:
    """Of the audit in Spark, or without a session of the one in memory."""
    columns = ("q", TEXT, NUMBER)
    spec = audit_spec(
        columns,
        ("q",),
        (KAnonymity(k=2), *models),
        missing_tokens=("?",),
        hierarchies=hierarchies or {},
        joint=joint,
    )
    if spark is None:
        cells = zip(*rows, strict=True)
        return audit_in_memory(pa.table(dict(zip(columns, map(list, cells), strict=True))), spec)
    df = spark.createDataFrame(rows, f"q string, {TEXT} string, {NUMBER} double")
    return audit_table(df.repartition(3), spec)


def test_verdicts_agree_with_definitions(
    spark: SparkSession, illnesses: dict[str, Hierarchy]
) -> None:
    rows = make_rows(5, missing=True)
    report = report_of(spark, rows, [model for model, _ in MODELS], illnesses)
    check_verdicts(report, rows, MODELS)


def test_dates_that_python_lacks(spark: SparkSession) -> None:
    """Two classes, one with three dates of four before the year 1, one with one."""
    day = "make_date(if(id % 4 < if(id < 4, 3, 1), -5, 12000), 1, 1) as day"
    rows = spark.range(8).selectExpr("if(id < 4, 'a', 'b') as q", day)
    model = TCloseness(t=0.5, attribute="day", distance="ordered")
    report = audit_table(rows, audit_spec(("q", "day"), ("q",), (KAnonymity(k=2), model)))
    assert not report.problems
    assert report.verdicts[1].value == pytest.approx(0.25)


def test_the_other_sensitive_column_is_known(illnesses: dict[str, Hierarchy]) -> None:
    """Missing is one value of it. `test_audit_in_memory_as_spark` has that Spark says the same."""
    rows, joint = make_rows(5, missing=True), (NUMBER, TEXT)
    report = report_of(None, rows, [model for model, _ in MODELS], illnesses, joint)
    in_order = [*MODELS, *sorted(MODELS, key=lambda pair: pair[0].column != TEXT)]
    check_verdicts(report, rows, in_order)


def check_verdicts(
    report: AuditReport, rows: Sequence[Any], in_order: Sequence[tuple[PrivacyModel, Measure]]
) -> None:
    """The models of `in_order` after the first ones are `joint`."""
    assert not report.problems
    pairs = zip(report.verdicts[1:], in_order, strict=True)
    for i, (verdict, (model, measure)) in enumerate(pairs):
        known = i >= len(MODELS)
        assert verdict.model.endswith(" joint=True") == known
        place = 1 if model.column == TEXT else 2
        whole = [known_value(row[place]) for row in rows]
        classes = defaultdict(list)
        for row, value in zip(rows, whole, strict=True):
            classes[row[0], known and known_value(row[3 - place])].append(value)
        values = [measure(values, whole) for values in classes.values()]
        less = isinstance(model, PSensitive) or getattr(model, "kind", "") == "entropy"
        good = [
            # Up to rounding: three values of equal frequency have an entropy of log(3).
            v is not None and (v - verdict.required) * (1 if less else -1) >= -1e-9
            for v in values
        ]
        assert 0 < good.count(False) < len(good), model  # or nothing would be shown
        assert verdict.n_failing == good.count(False), model
        measured = [v for v in values if v is not None]
        assert verdict.value is not None
        assert isclose(verdict.value, min(measured) if less else max(measured)), model
        assert not verdict.holds


def known_value(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip().casefold()
        return None if text == "?" else text
    return None if value is None or value != value else value


def test_hierarchies_that_can_not_be_used(
    spark: SparkSession, illnesses: dict[str, Hierarchy]
) -> None:
    rows = [("x", "flu", 1.0), ("x", "secret", 1.0)]
    models = [TCloseness(t=1, distance="hierarchical", attribute=TEXT)]
    for given, note in (
        ({}, "the hierarchy of column illness is not given"),
        (illnesses, "the hierarchy lacks 1 values of the column"),
    ):
        report = report_of(spark, rows, models, given)
        verdict = report.verdicts[1]
        assert (verdict.holds, verdict.value, verdict.exact) == (False, None, False)
        assert verdict.note == note
        assert not report.passed


def test_the_bound_itself(spark: SparkSession, illnesses: dict[str, Hierarchy]) -> None:
    """Classes that just reach what is asked, in spite of rounding."""
    rows = [(q, t, float(len(t))) for q in ("x", "y") for t in ("flu", "cold", "mumps")]
    models = [
        LDiversity(l=3, kind="entropy", attribute=TEXT),
        AlphaK(alpha=1 / 3, attribute=TEXT),
        TCloseness(t=1e-12, attribute=TEXT),
        TCloseness(t=1e-12, distance="ordered", attribute=NUMBER),
        TCloseness(t=1e-12, distance="hierarchical", attribute=TEXT),
        DeltaDisclosure(delta=1e-12, attribute=TEXT),
        BetaLikeness(beta=1e-12, kind="enhanced", attribute=TEXT),
    ]
    report = report_of(spark, rows, models, illnesses)
    assert [verdict.holds for verdict in report.verdicts] == [True] * 8
    strict = report_of(spark, rows, [LDiversity(l=3, kind="recursive", c=1.0, attribute=TEXT)])
    assert [verdict.holds for verdict in strict.verdicts] == [True, False]  # 1 < 1 * 1 is false


#: No class of ROWS has a value by one of these: two values missing, or no value at all.
UNMEASURED: list[PrivacyModel] = [
    LDiversity(l=2, kind="entropy", attribute=TEXT),
    LDiversity(l=3, kind="recursive", c=2.0, attribute=TEXT),
    AlphaK(alpha=0.5, attribute=TEXT),
    DeltaDisclosure(delta=1.0, attribute=NUMBER),
]
ROWS = [("x", None, 1.0), ("x", "?", 1.0), ("y", " ? ", 2.0), ("y", None, 2.0), ("y", "?", 2.0)]


def test_no_class_can_be_measured(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Then all of them fail, alone and where the other column is known."""
    report = report_of(spark, ROWS, UNMEASURED, joint=(NUMBER, TEXT))
    assert not report.passed
    assert len(report.verdicts) == 1 + 2 * len(UNMEASURED)
    for verdict in report.verdicts[1:]:
        assert (verdict.holds, verdict.value, verdict.n_failing) == (False, None, 2), verdict
        assert verdict.worst == (2, 3)
    told = report.to_dict()
    assert json.loads(json.dumps(told)) == told
    print_audit(report, "t")
    assert capsys.readouterr().out.count("not measured") == 2 * len(UNMEASURED)


def test_a_class_that_can_be_measured_beside_others(spark: SparkSession) -> None:
    """Its value is told if it fails, too; one that passes would say nothing of the others."""
    for last, value in (("cold", None), ("flu", pytest.approx(1))):
        report = report_of(spark, [*ROWS, ("z", "flu", 1.0), ("z", last, 1.0)], UNMEASURED[:1])
        verdict = report.verdicts[1]
        n_failing = 2 if value is None else 3
        assert (verdict.holds, verdict.value, verdict.n_failing) == (False, value, n_failing)


def test_the_command_line_tells_what_is_not_measured(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(ROWS, "city string, illness string, wage double")
    table = str(tmp_path / "table")
    frame.drop("wage").write.format("delta").save(table)
    models = [
        {"type": "k_anonymity", "k": 2},
        {"type": "alpha_k", "alpha": 0.5, "attribute": TEXT},
    ]
    config = settings(tmp_path, privacy={"models": models}, one_row_per_person=True)
    del config["attributes"]["wage"]
    path = write_config(tmp_path, config)
    said = shell("audit", table, "--conf", path)
    assert (said.code, "not measured" in said.out, "FAILS" in said.out) == (3, True, True), said
    told = json.loads(shell("audit", table, "--conf", path, "--json").out)
    verdict = told["verdicts"][1]
    assert (verdict["value"], verdict["holds"], verdict["n_failing"]) == (None, False, 2)
