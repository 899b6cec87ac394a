"""Attacks on Spark: persons are drawn, tables are read, and figures are those in memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anonlib.errors import ConfigError
from anonlib.measure.attack_tables import OUT, PERSON, ROW
from anonlib.measure.attempts import estimate_rate
from anonlib.measure.risk.differencing import Differencing
from anonlib.measure.risk.inference import Inference
from anonlib.measure.risk.minimality import Minimality
from anonlib.measure.risk.singling_out import SinglingOut
from tests.attack_tables import MemoryTables, figures_of
from tests.spark.cases import along, make_case

pytestmark = pytest.mark.spark

N = 400
CONFIG: dict[str, Any] = {
    "source": {"format": "parquet", "path": "unused/source"},
    "attributes": {
        "person": {"role": "drop"},
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "city": {"role": "quasi_identifier", "scale": "nominal"},
        "illness": {"role": "sensitive"},
    },
    "unit": ["person"],
    "privacy": {"models": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 3}]},
    "recode": {"columns": {"age": "interval", "city": "set"}},
    "release": {"path": "unused/release"},
    "seed": 7,
}


def people() -> Any:
    random = np.random.default_rng(3)
    person = np.arange(N) * 3 // 4  # every third person has two rows
    return pa.table(
        {
            "person": person,
            "age": np.round(random.normal(50, 20, N), 1),
            "city": random.choice([*"abcd"], N),
            "illness": random.choice(["flu", "gout", "cold"], N),
        }
    ).to_pandas()


def test_attacks_in_spark_are_those_in_memory(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(spark, CONFIG, people(), along("c1", 24))
    tables = case.attack_tables(0.3, 40)
    assert tables is case.attack_tables(0.3, 40)
    members, others = tables.persons()
    assert members.num_rows == others.num_rows == 40
    ids = [column.id for column in case.schema.released]
    source = tables.source.select(*ids, OUT, PERSON).toArrow().combine_chunks()
    released = tables.released.toArrow().combine_chunks()

    # All rows of a person are on one side, one row of a person is attacked.
    out = source.column(OUT).to_numpy(zero_copy_only=False)
    person = source.column(PERSON).to_numpy()
    assert not {*person[out].tolist()} & {*person[~out].tolist()}
    assert len({*person.tolist()}) == len({*people()["person"]})
    for rows, side in ((members, ~out), (others, out)):
        its = source.filter(pa.array(side)).select(ids).to_pylist()
        assert all(row in its for row in rows.to_pylist())
    assert tables.n_released == released.num_rows == (~out).sum()

    # Rows are numbered as they are equal; samples have each once.
    equal = {str(row): number for *row, number in map(dict.values, released.to_pylist())}
    assert len(equal) == len({*released.column(ROW).to_pylist()})
    some = tables.sample(ids, 10**6)
    assert sorted(some.column(ROW).to_pylist()) == sorted(equal.values())

    memory = MemoryTables(source, released, members, others)
    same = replace(case, cache={("attack_tables", 0.3, 40): memory})
    for measure in (SinglingOut, Inference, Minimality):
        ours = figures_of(measure(attempts=40).measure(case))
        assert all(value is not None for value in ours.values())
        assert ours == figures_of(measure(attempts=40).measure(same))

    # The states of many tasks are merged in tasks, those of few on the driver.
    ours = figures_of(SinglingOut(attempts=40).measure(case))
    monkeypatch.setattr("anonlib.evaluation.fold.FEW_TASKS", 0)
    assert ours == figures_of(SinglingOut(attempts=40).measure(case))


def test_another_release_must_have_the_columns_in_the_same_form(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = make_case(spark, CONFIG, people(), along("c1", 6))
    named = {column.id: column.name for column in case.schema.released}
    before = case.released.select(*(F.col(id).alias(name) for id, name in named.items()))
    before.write.format("delta").save(str(tmp_path / "before"))
    before.withColumn("age", F.col("age.lower")).write.parquet(str(tmp_path / "ends"))
    before.drop("illness").write.parquet(str(tmp_path / "bare"))

    def find(kind: str, name: str) -> dict[tuple[str, str], float | None]:
        source = {"format": kind, "path": str(tmp_path / name)}
        return figures_of(Differencing(attempts=40, source=source).measure(case))

    found = find("delta", "before")
    assert found["attempts", "illness"] == 40
    assert found["attack_rate", "illness"] == pytest.approx(estimate_rate(0, 40).value)
    for name, text in (
        ("ends", "the column age is double there, and struct<lower:double,upper:double> here"),
        ("bare", "the table has no column illness"),
    ):
        with pytest.raises(ConfigError) as caught:
            find("parquet", name)
        assert f"measure differencing: columns: {text}" in str(caught.value)
