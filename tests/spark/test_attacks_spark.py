"""Attacks on Spark: persons are drawn, tables are read, and figures are those in memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anonlib.measure.attack_tables import OUT, PERSON, ROW
from anonlib.measure.risk.inference import Inference
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
    "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
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


def test_attacks_in_spark_are_those_in_memory(spark: SparkSession) -> None:
    case = make_case(spark, CONFIG, people(), along("c1", 6))
    tables = case.attack_tables(0.3, 40)
    assert tables is case.attack_tables(0.3, 40)
    assert tables.members.num_rows == tables.others.num_rows == 40
    ids = [column.id for column in case.schema.released]
    source = tables.source.select(*ids, OUT, PERSON).toArrow().combine_chunks()
    released = tables.released.toArrow().combine_chunks()

    # All rows of a person are on one side, one row of a person is attacked.
    out = source.column(OUT).to_numpy(zero_copy_only=False)
    person = source.column(PERSON).to_numpy()
    assert not {*person[out].tolist()} & {*person[~out].tolist()}
    assert len({*person.tolist()}) == len({*people()["person"]})
    for rows, side in ((tables.members, ~out), (tables.others, out)):
        its = source.filter(pa.array(side)).select(ids).to_pylist()
        assert all(row in its for row in rows.to_pylist())
    assert tables.n_released == released.num_rows == (~out).sum()

    # Rows are numbered as they are equal; samples have each once.
    equal = {str(row): number for *row, number in map(dict.values, released.to_pylist())}
    assert len(equal) == len({*released.column(ROW).to_pylist()})
    some = tables.sample(ids, 10**6)
    assert sorted(some.column(ROW).to_pylist()) == sorted(equal.values())

    memory = MemoryTables(source, released, tables.members, tables.others)
    same = replace(case, cache={("attack_tables", 0.3, 40): memory})
    for measure in (SinglingOut, Inference):
        ours = figures_of(measure(attempts=40).measure(case))
        assert all(value is not None for value in ours.values())
        assert ours == figures_of(measure(attempts=40).measure(same))
