"""Kernels that look at a hierarchy, on Spark: what the scan hands them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import ConfigError
from anonlib.source.generator import generate
from tests.spark.test_release import ROWS, config

pytestmark = pytest.mark.spark


def hierarchy(path: Path, zips: list[str]) -> dict[str, Any]:
    """Zip codes by their first digit, as the config of a column."""
    lines = [f"{code};{code[:1]}****;*" for code in zips]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"role": "quasi_identifier", "scale": "nominal", "hierarchy": str(path)}


def test_hierarchy(spark: SparkSession, tmp_path: Path) -> None:
    zips = [row.zip for row in generate(spark, ROWS, 3).select("zip").distinct().collect()]
    known = sorted(code for code in zips if code is not None)
    given = config(
        tmp_path, kernel={"type": "mondrian", "cut": "information_gain"}, max_categories=5000
    )
    given["attributes"]["zip"] = hierarchy(tmp_path / "zip.csv", known)
    result = anonlib.release(anonlib.parse(given))
    assert result.audit is not None
    assert result.audit.passed

    given["attributes"]["zip"] = hierarchy(tmp_path / "zip.csv", known[1:])
    with pytest.raises(ConfigError, match="lacks 1 of the distinct values") as caught:
        anonlib.check(anonlib.parse(given))
    assert known[0] not in str(caught.value)
