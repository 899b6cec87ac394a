"""A small table is scanned in memory: what is found is what Spark finds."""

from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib.errors import BusyError, ConfigError, InfeasibleError
from anonlib.run import small_table
from anonlib.run.scan import Scan, scan
from anonlib.source.resolved_source import open_source

pytestmark = pytest.mark.spark

QUASI = {"role": "quasi_identifier"}
NOMINAL = {**QUASI, "scale": "nominal"}
CONTROLLER = {"type": "controller", "column": "owner", "merge": True}


def people(n: int = 400) -> pa.Table:
    """Columns of each type, some with missing values, blank texts, NaN and negative zeros."""
    random = np.random.default_rng(8)
    born = random.integers(0, 9_000, n)
    price = [None if i % 9 == 0 else Decimal(int(i % 7)) / 4 for i in range(n)]
    gain = np.where(random.random(n) < 0.2, np.nan, random.choice([-0.0, 0.0, 1.5, 2.25], n))
    return pa.table(
        {
            "age": pa.array(random.integers(18, 60, n), pa.int16()),
            "gain": pa.array(gain),
            "born": pa.array(born.astype(np.int32)).cast(pa.date32()),
            "seen": pa.array(born * 86_400_000_000, pa.timestamp("us", "UTC")),
            "price": pa.array(price, pa.decimal128(9, 2)),
            "flag": pa.array(random.random(n) < 0.5, mask=random.random(n) < 0.1),
            "city": pa.array(random.choice(["Ĝ", "b ", "B", "", "long" * 12], n)),
            "size": pa.array(random.choice(["S", "M"], n)),
            "owner": pa.array(random.choice(["x", "y"], n)),
            "illness": pa.array([f" Ill {i % 5}" if i % 6 else "" for i in range(n)]),
            "dose": pa.array(random.integers(0, 4, n)),
            "label": pa.array(random.choice([1.0, 2.0], n)),
            "note": pa.array(["n"] * n),
            "person": pa.array([f" P{i} " if i % 50 else "" for i in range(n)]),
        }
    )


def config(**changes: Any) -> Any:
    attributes = {
        "age": {**QUASI, "scale": "continuous"},
        "gain": NOMINAL,
        "born": {**QUASI, "scale": "continuous"},
        "seen": {"role": "drop"},
        "price": {**QUASI, "scale": "ordinal"},
        "flag": NOMINAL,
        "city": NOMINAL,
        "size": {**QUASI, "scale": "ordinal", "order": ["S", "M", "L"]},
        "owner": {"role": "drop"},
        "illness": {"role": "sensitive"},
        "dose": {"role": "sensitive"},
        "label": {"role": "target", "public": True},
        "note": {"role": "insensitive"},
        "person": {"role": "identifier"},
    }
    models = [
        {"type": "k_anonymity", "k": 4},
        {"type": "t_closeness", "t": 0.9, "attribute": "illness"},
        {"type": "l_diversity", "l": 2, "attribute": "dose"},
    ]
    return anonlib.parse(
        {
            "source": {"format": "dataframe"},
            "attributes": {**attributes, **changes.pop("attributes", {})},
            "unit": ["person"],
            "privacy": {"models": models, "joint": True},
            "partition": {"steps": [CONTROLLER, {"type": "kmeans"}]},
            "kernel": {"type": "mdav"},
            "release": {"path": "unused"},
            **changes,
        }
    )


def both(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: pa.Table, chosen: Any
) -> list[Any]:
    """What both scans find, or the problems that they raise: Spark's, then that in memory."""
    found: list[Any] = []
    for most in (-1, small_table.MOST_BYTES):
        monkeypatch.setattr(small_table, "MOST_BYTES", most)
        source = open_source(spark, chosen, spark.createDataFrame(table).repartition(3))
        try:
            found.append(scan(source, chosen))
        except (ConfigError, InfeasibleError) as error:
            found.append((type(error), error.problems))
    return found


def plain(value: Any) -> Any:
    """In a form that == compares."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, pa.Table):
        return {
            name: value.column(name).combine_chunks().to_pylist() for name in value.schema.names
        }
    if isinstance(value, pa.Array):
        return [repr(each) for each in value.to_pylist()]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    return repr(value)


#: Where a label that is an illness, and a note that is a name, are refused.
RICH = {"attributes.label", "privacy.acknowledge_unique", "column note"}


def test_it_finds_what_spark_finds(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    its, here = both(spark, monkeypatch, people(), config())
    for field in fields(Scan):
        assert plain(getattr(here, field.name)) == plain(getattr(its, field.name)), field.name


def test_it_refuses_what_spark_refuses(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = people()
    rich = table.set_column(11, "label", pa.array([f"{i % 5}!" for i in range(400)]))
    rich = rich.set_column(12, "note", table.column("person"))
    many = {
        "attributes": {"age": NOMINAL, "size": {**QUASI, "scale": "ordinal", "order": ["S", "L"]}},
        "max_categories": 9,
    }
    gain = pa.array([float("inf"), *[1.0] * 399])
    endless = table.set_column(1, "gain", gain)
    # Spark does not go on to orders where it would collect too much.
    unlisted = {"attributes.size.order"}
    ills = {"role": "sensitive", "order": ["Ill 0", "Ill 1"]}
    (tmp_path / "dose.csv").write_text("0;*\n1;*\n")
    doses = {"role": "sensitive", "hierarchy": str(tmp_path / "dose.csv")}
    distances = [
        {"type": "t_closeness", "t": 0.9, "attribute": name, "distance": distance}
        for name, distance in (("illness", "ordered"), ("dose", "hierarchical"))
    ]
    lacking = config(
        attributes={"illness": ills, "dose": doses},
        privacy={"models": [{"type": "k_anonymity", "k": 4}, *distances]},
    )
    places = {"attributes.illness.order", "attributes.dose.hierarchy"}
    cases: list[tuple[pa.Table, Any, set[str], set[str]]] = [
        (rich, config(), RICH, set()),
        (table, config(**many), {"column age"}, unlisted),
        (endless, config(**many), {"column age", "column gain"}, unlisted),
        (table, lacking, places, set()),
    ]
    for rows, chosen, both_say, memory_says in cases:
        its, here = both(spark, monkeypatch, rows, chosen)
        assert here[0] is its[0]
        assert {problem.where for problem in its[1]} == both_say
        more = [problem for problem in here[1] if problem not in its[1]]
        assert {problem.where for problem in more} == memory_says
        assert sorted(here[1], key=str) == sorted([*its[1], *more], key=str)


def test_rows_that_change_meanwhile(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures and what is fetched are of the same rows."""
    chosen = config()
    source = open_source(spark, chosen, spark.createDataFrame(people()))
    fetch = small_table._fetch
    monkeypatch.setattr(small_table, "_fetch", lambda *given: fetch(*given).slice(1))
    with pytest.raises(BusyError, match="it changed while it was read"):
        scan(source, chosen)


def test_texts_that_python_can_not_read(spark: SparkSession) -> None:
    """They are judged in Spark, as those of a large table are."""
    broken = F.when(F.col("age") > 40, F.expr("cast(unhex('FF') as string)")).otherwise("fine")
    frame = spark.createDataFrame(people()).withColumn("note", broken)
    assert scan(open_source(spark, config(), frame), config()).n_rows == 400
