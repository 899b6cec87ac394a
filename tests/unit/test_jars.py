"""Delta's jars: those of the Spark that is installed."""

import pytest

from anonlib.errors import InputError
from anonlib.spark.jars import jars_for


def test_jars_of_each_spark() -> None:
    found = {minor: jars_for(f"{minor}.1") for minor in ("4.0", "4.1", "4.2")}
    for minor, jars in found.items():
        assert [jar.artifact for jar in jars] == [f"delta-spark_{minor}_2.13", "delta-storage"]
    assert len({jars[0].sha256 for jars in found.values()}) == 3


def test_unknown_spark() -> None:
    with pytest.raises(InputError, match=r"this is Spark 5\.0\.0; .* for 4\.0, 4\.1, 4\.2"):
        jars_for("5.0.0")
