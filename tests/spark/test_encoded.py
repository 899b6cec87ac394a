"""Features for Spark ML: a release with nodes and shares, read by its manifest alone."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.ml.functions import vector_to_array
from pyspark.sql import SparkSession

import anonlib
from anonlib.encode import encode, read_published_hierarchies
from anonlib.errors import InputError
from anonlib.source.generator import MARITAL_STATUSES, ZIPS
from anonlib.spark.encoded import encode_frame
from tests.spark.test_release import ROWS, config

pytestmark = pytest.mark.spark

COLUMNS = {
    "zip": {"type": "proportional", "missing": True},
    "marital_status": {"type": "fill_parent", "missing": True},
    "sex": {"type": "multi_hot", "missing": True},
    "age": {"type": "midpoint", "missing": True},
    "education": {"type": "one_hot", "missing": True},
}


def test_vectors_are_what_encode_gives(spark: SparkSession, tmp_path: Path) -> None:
    trees = {
        "zip": "".join(f"{z};{z[:2]}***;*\n" for z in ZIPS),
        "marital_status": "".join(f"{m};{m[:3] == 'mar'};*\n" for m in MARITAL_STATUSES),
    }
    given = config(tmp_path)
    for name, text in trees.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        path = str(tmp_path / f"{name}.csv")
        given["attributes"][name] = {**given["attributes"][name], "hierarchy": path}
    how = {"zip": "proportional", "marital_status": "lca", "sex": "set", "age": "interval"}
    result = anonlib.release(anonlib.parse({**given, "recode": {"columns": how}}))
    assert result.audit is not None
    assert result.audit.passed

    table = spark.read.format("delta").load(str(tmp_path / "table"))
    manifest = tmp_path / "table" / "_anonlib" / "manifest.json"
    published = read_published_hierarchies(manifest.read_text(encoding="utf-8"))
    assert set(published) == set(trees)
    frame, names = encode_frame(table, COLUMNS, published)
    assert frame.columns == [*table.columns, "features"]
    found = frame.withColumn("features", vector_to_array("features")).toArrow()
    here = encode(found, COLUMNS, published)
    assert names == here.names
    assert found.num_rows == ROWS
    assert (np.array(found.column("features").to_pylist()) == here.features.toarray()).all()

    with pytest.raises(InputError, match="column town: not in the table"):
        encode_frame(table, {"town": "one_hot"})
    with pytest.raises(InputError, match="has a column age already"):
        encode_frame(table, COLUMNS, published, output="age")
