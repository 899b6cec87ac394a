"""The audit measures what pycanon measures: random tables in Spark, Adult and Bank in memory.
Nothing is missing in them. `test_audit_in_memory_as_spark`: both audits say the same.

Where the two differ, the test says why and counts it again:
- pycanon leaves rows with null out of its classes: these tables have none.
- its entropy l is rounded down to a whole number.
- its c of recursive (c,l)-diversity puts the rarest value where the definition has the most
  frequent one: it sorts the counts upwards.
- its delta passes over values that a class lacks, which have no finite |log(p / q)|.
- its enhanced beta is min(basic beta, -log of the smallest share), for all values at once; by the
  definition, each value has a bound of its own.
- it has neither p-sensitivity (which counts as distinct l-diversity does) nor the hierarchical
  distance, which is compared with the constraint's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pycanon import anonymity
from pyspark.sql import SparkSession

from anonlib import registry
from anonlib.auditing import AuditReport, AuditSpec, Verdict, audit_in_memory, audit_table
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.privacy import CellCounts, PrivacyModel, Reference
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import count_sparse
from anonlib.text import fold_text
from tests.support import audit_spec, data_dir

#: An audit of a table.
Audit = Callable[[pd.DataFrame, AuditSpec], AuditReport]
#: Bounds that all classes keep, so that the measured value is the worst of all.
NEVER = 99.0


@dataclass(frozen=True)
class Table:
    """A table, and two sensitive columns of it: one of text, one of numbers."""

    frame: pd.DataFrame
    quasi: list[str]
    text: str
    number: str
    hierarchy: Hierarchy | None = None

    def classes(self, column: str) -> list["pd.Series[Any]"]:
        """The values of a column in each class."""
        return [rows[column] for _, rows in self.frame.groupby(self.quasi)]

    def shares(self) -> "pd.Series[float]":
        """The shares of the texts in the whole table."""
        return self.frame[self.text].value_counts(normalize=True)


def adult() -> Table:
    folder = data_dir()
    quasi, text, number = ["sex", "race"], "occupation", "hours-per-week"
    path = folder / "adult" / "adult_train.csv.gz"
    frame = pd.read_csv(path, usecols=[*quasi, text, number])
    path = folder / "adult_hierarchies" / "arx" / "adult_hierarchy_occupation.csv"
    known = frame[frame[text] != "?"].reset_index(drop=True)
    return Table(known, quasi, text, number, read_hierarchy(path).folded())


def bank() -> Table:
    path = data_dir() / "bank_marketing" / "bank-full.csv.gz"
    frame = pd.read_csv(path, sep=";", usecols=["job", "marital", "education", "campaign"])
    return Table(frame, ["job", "marital"], "education", "campaign")


def invented(seed: int) -> Table:
    """Classes of all sizes; those of the first seed have every value."""
    random = np.random.default_rng(seed)
    n = 600
    columns = {
        "q": random.choice(["a", "b", "c"], n, p=[0.9, 0.07, 0.03]),
        "r": random.integers(0, 2, n),
        "s": random.choice(["flu", "cold", "gout"] if seed == 0 else list("abcdefgh"), n),
        "x": random.integers(-3, 9, n) / 2,
    }
    return Table(pd.DataFrame(columns), ["q", "r"], "s", "x")


def in_memory(frame: pd.DataFrame, spec: AuditSpec) -> AuditReport:
    return audit_in_memory(pa.Table.from_pandas(frame, preserve_index=False), spec)


def in_spark(spark: SparkSession, folder: Path) -> Audit:
    """The table as a file: each model reads it again, and Spark plans local data by walking it."""

    def audit(frame: pd.DataFrame, spec: AuditSpec) -> AuditReport:
        frame.to_parquet(folder / "table.parquet", index=False)
        return audit_table(spark.read.parquet(str(folder / "table.parquet")), spec)

    return audit


def measured(audit: Audit, table: Table, models: dict[str, PrivacyModel]) -> dict[str, Verdict]:
    """The verdicts, by the models' names here."""
    columns = [*table.quasi, table.text, table.number]
    spec = audit_spec(
        tuple(columns),
        tuple(table.quasi),
        tuple(models.values()),
        hierarchies={} if table.hierarchy is None else {table.text: table.hierarchy},
    )
    return dict(zip(models, audit(table.frame[columns], spec).verdicts, strict=True))


def all_models(table: Table) -> dict[str, PrivacyModel]:
    """Every model; the distinct ones ask for more than there is, so that they are counted out."""
    text = {"attribute": table.text}
    l = anonymity.l_diversity(table.frame, table.quasi, [table.text])  # noqa: E741
    models: dict[str, PrivacyModel] = {
        "k": KAnonymity(k=2),
        "distinct": LDiversity(l=l + 1, **text),
        "p": PSensitive(p=l + 1, **text),
        "entropy": LDiversity(l=2, kind="entropy", **text),
        "recursive": LDiversity(l=l, kind="recursive", c=NEVER, **text),
        "alpha": AlphaK(alpha=1, **text),
        "equal": TCloseness(t=1, **text),
        "ordered": TCloseness(t=1, distance="ordered", attribute=table.number),
        "delta": DeltaDisclosure(delta=NEVER, **text),
        "beta": BetaLikeness(beta=NEVER, **text),
        "enhanced": BetaLikeness(beta=NEVER, kind="enhanced", **text),
    }
    if table.hierarchy is not None:
        models["hierarchical"] = TCloseness(t=1, distance="hierarchical", **text)
    return models


@pytest.mark.spark
@pytest.mark.parametrize("seed", [0, 1])
def test_every_model_measures_what_pycanon_does(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    check(in_spark(spark, tmp_path), invented(seed))


@pytest.mark.parametrize("make", [adult, bank])
def test_every_model_on_public_tables(make: Callable[[], Table]) -> None:
    check(in_memory, make())


def check(audit: Audit, table: Table) -> None:
    models = all_models(table)
    assert {model.type for model in models.values()} == set(registry.plugins("privacy model"))
    verdicts = measured(audit, table, models)
    values = {name: verdict.value for name, verdict in verdicts.items()}
    one = (table.frame, table.quasi, [table.text])
    equal = {
        "k": anonymity.k_anonymity(*one[:2]),
        "distinct": anonymity.l_diversity(*one),
        "p": anonymity.l_diversity(*one),
        "alpha": anonymity.alpha_k_anonymity(*one)[0],
        "equal": anonymity.t_closeness(*one),
        "ordered": anonymity.t_closeness(*one[:2], [table.number]),
        "beta": anonymity.basic_beta_likeness(*one),
    }
    assert {name: values[name] for name in equal} == pytest.approx(equal)
    assert floor(values["entropy"] + 1e-9) == anonymity.entropy_l_diversity(*one)
    check_recursive(table, values["recursive"])
    check_delta(table, verdicts["delta"])
    check_enhanced(table, values["enhanced"])
    if table.hierarchy is not None:
        assert values["hierarchical"] == pytest.approx(constraint(table, models["hierarchical"]))


def check_recursive(table: Table, value: float | None) -> None:
    c, l = anonymity.recursive_c_l_diversity(table.frame, table.quasi, [table.text])  # noqa: E741
    down = [sorted(values.value_counts(), reverse=True) for values in table.classes(table.text)]
    assert value == pytest.approx(max(counts[0] / sum(counts[l - 1 :]) for counts in down))
    up = [counts[::-1] for counts in down]
    assert c == max(floor(counts[0] / sum(counts[l - 1 :]) + 1) for counts in up)


def check_delta(table: Table, verdict: Verdict) -> None:
    whole = table.shares()
    worst = []
    for values in table.classes(table.text):
        share = values.value_counts(normalize=True).reindex(whole.index, fill_value=0.0)
        worst.append([abs(log(p / q)) if p else inf for p, q in zip(share, whole, strict=True)])
    complete = [max(each) for each in worst if inf not in each]
    assert verdict.n_failing == len(worst) - len(complete)
    # What complete classes have would look like a pass beside those that fail.
    expected = None if verdict.n_failing else pytest.approx(max(complete))
    assert verdict.value == expected
    present = max(x for each in worst for x in each if x < inf)
    assert anonymity.delta_disclosure(table.frame, table.quasi, [table.text]) == pytest.approx(
        present
    )


def check_enhanced(table: Table, value: float | None) -> None:
    """Scaled so that a gain of -log q, the bound here, counts as beta."""
    whole = table.shares()
    gains = [
        max(
            (p / whole[v] - 1) / -log(whole[v])
            for v, p in values.value_counts(normalize=True).items()
        )
        for values in table.classes(table.text)
    ]
    assert value == pytest.approx(max(gains) * NEVER)
    one = (table.frame, table.quasi, [table.text])
    theirs = min(anonymity.basic_beta_likeness(*one), -log(whole.min()))
    assert anonymity.enhanced_beta_likeness(*one) == pytest.approx(theirs)


def constraint(table: Table, model: PrivacyModel) -> float:
    """The largest distance of a class as the model itself measures it."""
    assert isinstance(model, TCloseness)
    assert table.hierarchy is not None
    names, codes = np.unique(table.frame[table.text].map(fold_text), return_inverse=True)
    cell = table.frame.groupby(table.quasi).ngroup().to_numpy()
    levels = table.hierarchy.levels(table.hierarchy.places(pa.array(names)))
    reference = Reference(np.bincount(codes), 0, levels)
    counts = count_sparse(cell, codes.astype(np.int32))
    size = np.bincount(cell)
    found = CellCounts(size, size, {table.text: counts}, {table.text: reference})
    return float(model.distances(found).max())


def test_where_the_other_sensitive_column_is_known() -> None:
    """`joint` is what pycanon calls `gen=False`: other sensitive columns are quasi-identifiers."""
    frame = bank().frame
    names = ("education", "marital")
    text = {"marital": 3, "education": 4}
    models: list[PrivacyModel] = [KAnonymity(k=2)]
    for name in names:
        models += [
            LDiversity(l=text[name] + 1, attribute=name),
            LDiversity(l=2, kind="entropy", attribute=name),
            AlphaK(alpha=1, attribute=name),
            TCloseness(t=1, attribute=name),
            BetaLikeness(beta=NEVER, attribute=name),
        ]
    columns = ("job", *names)
    spec = audit_spec(columns, ("job",), tuple(models), joint=names)
    verdicts = in_memory(frame[list(columns)], spec).verdicts
    assert [v.model.endswith(" joint=True") for v in verdicts] == [False] * 11 + [True] * 10
    pairs = list(zip(verdicts[11:16], verdicts[16:], strict=True))
    values = [[verdict.value or 0.0 for verdict in pair] for pair in pairs]
    both = (frame, ["job"], list(names))
    assert min(values[0]) == anonymity.l_diversity(*both, gen=False)
    assert floor(min(values[1]) + 1e-9) == anonymity.entropy_l_diversity(*both, gen=False)
    assert [max(each) for each in values[2:]] == pytest.approx(
        [
            anonymity.alpha_k_anonymity(*both, gen=False)[0],
            anonymity.t_closeness(*both, gen=False),
            anonymity.basic_beta_likeness(*both, gen=False),
        ]
    )
