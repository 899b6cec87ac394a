"""With a unit every privacy model counts persons: a person once for each sensitive value, nobody
for rows without a person. Audit and kernels are compared with a third count, by hand."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.arrays import Ints
from anonlib.auditing import audit_table
from anonlib.privacy import PrivacyModel
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.shares import make_reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.registry import plugins
from tests.support import audit_spec, make_block

pytestmark = pytest.mark.spark

N_CLASSES = 12
Row = tuple[int, str | None, int | None]


def visits(seed: int) -> list[Row]:
    """(class, value, person): persons in several classes, with several values, or none."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for _ in range(400):
        cell = int(random.integers(N_CLASSES))
        value = random.choice(["a", "b", "c", "d", None], p=[0.35, 0.25, 0.2, 0.15, 0.05])
        person = int(random.integers(-8, 60))
        rows.append((cell, value, person if person >= 0 else None))
    return [*rows, (0, "only nobody has this", None)]


class Persons:
    """The third count: sets of persons."""

    def __init__(self, rows: list[Row]) -> None:
        named = [(value, person) for _, value, person in rows if person is not None]
        self.persons = {person for _, person in named}
        self.known = {person for value, person in named if value is not None}
        pairs = Counter(value for value, _ in {*named})
        self.missing = pairs.pop(None, 0)
        self.pairs = {value: n for value, n in pairs.items() if value is not None}
        self.seen = sorted({value for _, value, _ in rows if value is not None})

    @property
    def shares(self) -> dict[str | None, Fraction]:
        counts: dict[str | None, int] = {**self.pairs}
        if self.missing:
            counts[None] = self.missing
        return {value: Fraction(n, sum(counts.values())) for value, n in counts.items()}


def entropy(mine: Persons) -> float:
    total = sum(mine.pairs.values())
    return exp(-sum(n / total * log(n / total) for n in mine.pairs.values()))


def equal(mine: Persons, whole: Persons) -> float:
    p, q = mine.shares, whole.shares
    return float(sum(max(p[v] - q[v], Fraction(0)) for v in p))


def ordered(mine: Persons, whole: Persons) -> float:
    values: list[str | None] = [*whole.seen, *([None] if whole.missing else [])]
    gaps = [mine.shares.get(v, Fraction(0)) - whole.shares.get(v, Fraction(0)) for v in values]
    return float(sum(abs(g) for g in np.cumsum(np.array(gaps)))) / (len(values) - 1)


def disclosed(mine: Persons, whole: Persons) -> float:
    if mine.shares.keys() != whole.shares.keys():
        return float("inf")
    return max(abs(log(p / whole.shares[v])) for v, p in mine.shares.items())


def gain(mine: Persons, whole: Persons) -> float:
    return float(max(max(p / whole.shares[v] - 1, Fraction(0)) for v, p in mine.shares.items()))


def recursive(mine: Persons) -> float:
    counts = sorted(mine.pairs.values(), reverse=True)
    return counts[0] / sum(counts[1:]) if len(counts) > 1 else float("inf")


#: The model, its measure by hand, and whether a measure is good enough.
MODELS: list[tuple[PrivacyModel, Callable[[Persons, Persons], float], Callable[[float], bool]]] = [
    (KAnonymity(k=20), lambda m, w: len(m.persons), lambda x: x >= 20),
    (LDiversity(l=4, attribute="ill"), lambda m, w: len(m.pairs), lambda x: x >= 4),
    (PSensitive(p=4, attribute="ill"), lambda m, w: len(m.pairs), lambda x: x >= 4),
    (LDiversity(l=3, kind="entropy", attribute="ill"), lambda m, w: entropy(m), lambda x: x >= 3),
    (
        LDiversity(l=2, kind="recursive", c=0.7, attribute="ill"),
        lambda m, w: recursive(m),
        lambda x: x < 0.7,
    ),
    (
        AlphaK(alpha=0.5, attribute="ill"),
        lambda m, w: max(m.pairs.values()) / len(m.known),
        lambda x: x <= 0.5,
    ),
    (TCloseness(t=0.12, attribute="ill"), equal, lambda x: x <= 0.12),
    (TCloseness(t=0.05, distance="ordered", attribute="ill"), ordered, lambda x: x <= 0.05),
    (DeltaDisclosure(delta=0.7, attribute="ill"), disclosed, lambda x: x < 0.7),
    (BetaLikeness(beta=0.5, attribute="ill"), gain, lambda x: x <= 0.5),
]


def test_every_model_is_here() -> None:
    assert {model.type for model, *_ in MODELS} == set(plugins("privacy model"))


@pytest.mark.parametrize("seed", [0, 1])
def test_audit_and_kernels_count_persons(spark: SparkSession, seed: int) -> None:
    rows = visits(seed)
    by_class = [Persons([row for row in rows if row[0] == cell]) for cell in range(N_CLASSES)]
    whole = Persons(rows)
    frame = spark.createDataFrame(rows, "q int, ill string, who long")
    models = tuple(model for model, *_ in MODELS)
    columns = ("q", "ill")
    spec = audit_spec(columns, ("q",), models, persons="token", token="who")
    verdicts = audit_table(frame, spec).verdicts
    values = whole.seen
    code = np.array([-1 if v is None else values.index(v) for _, v, _ in rows])
    person = np.array([-1 if p is None else p for *_, p in rows], np.int32)
    block = make_block(np.zeros((len(rows), 1)), k=2, sensitive=code, unit=person)
    cell: Ints = np.array([q for q, *_ in rows])
    counts = block.counts(cell, N_CLASSES)
    reference = {"ill": make_reference(code, len(values), person)}
    counts = type(counts)(
        counts.n_rows, counts.n_persons, {"ill": counts.sensitive["disease"]}, reference
    )
    mixed = 0
    for (model, measure, good), verdict in zip(MODELS, verdicts, strict=True):
        found = [measure(mine, whole) for mine in by_class]
        wanted = [good(x) for x in found]
        assert model.holds(counts).tolist() == wanted, model
        assert verdict.n_failing == wanted.count(False), model
        mixed += 0 < sum(wanted) < N_CLASSES
        if verdict.exact and verdict.value is not None and float("inf") not in found:
            worst = min(found) if good(1e9) else max(found)
            assert verdict.value == pytest.approx(worst), model
    assert mixed >= 7, "most models hold in some classes and fail in others"


def config_of(path: Path, models: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "source": {"format": "dataframe"},
        "attributes": {
            "who": {"role": "identifier", "pseudonym": True},
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "ill": {"role": "sensitive"},
        },
        "unit": ["who"],
        "privacy": {
            "models": [{"type": "k_anonymity", "k": 3}, *models],
            "acknowledge_linked": True,
        },
        "pseudonyms": {"key_env": "ANONLIB_TEST_KEY", "scope": "stable"},
        "kernel": {"type": "mondrian"},
        "release": {"path": str(path / "out")},
        **changes,
    }


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_TEST_KEY", "KEY-0123456789abcdef")


@pytest.mark.parametrize(
    "model",
    [
        {"type": "alpha_k", "alpha": 0.65},
        {"type": "t_closeness", "t": 0.2},
        {"type": "l_diversity", "l": 3, "kind": "entropy"},
    ],
    ids=lambda model: model["type"],
)
def test_released_classes_hold_it_by_persons(
    spark: SparkSession, tmp_path: Path, model: dict[str, Any]
) -> None:
    """Several blocks, persons with rows in many of them, and rows of nobody, which are told."""
    random = np.random.default_rng(4)
    n = 1200
    age = np.sort(random.integers(18, 90, n))
    table = pd.DataFrame(
        {
            "who": [f"p{i}" for i in random.integers(0, 800, n)],
            "age": age,
            "ill": random.choice(["a", "b", "c", "d"], n, p=[0.3, 0.3, 0.2, 0.2]),
        }
    )
    table.loc[::100, "who"] = None
    given = config_of(tmp_path, [model], partition={"max_rows": 200, "steps": [{"type": "kmeans"}]})
    result = anonlib.release(given, dataframe=spark.createDataFrame(table))
    assert result.n_nobody == 12
    assert result.n_blocks > 1
    out = spark.read.format("delta").load(str(tmp_path / "out")).toPandas()
    out["age"] = out["age"].astype(str)
    rows = [(0, r.ill, None if pd.isna(r.who) else r.who) for r in out.itertuples()]
    whole = Persons(rows)
    for _, part in out.groupby("age"):
        mine = Persons([(0, r.ill, None if pd.isna(r.who) else r.who) for r in part.itertuples()])
        assert len(mine.persons) >= 3
        if model["type"] == "alpha_k":
            assert max(mine.pairs.values()) <= 0.65 * len(mine.known)
        elif model["type"] == "t_closeness":
            assert equal(mine, whole) <= 0.2 + 1e-9
        else:
            assert entropy(mine) >= 3 - 1e-9
    assert anonlib.audit(str(tmp_path / "out"), given).passed
