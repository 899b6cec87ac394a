"""How files of a table differ in their columns."""

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from anonlib.source.columnar import find_differences


def columns(*names: str) -> StructType:
    """Columns of texts, and `age` of numbers."""
    types = {name: LongType() if name.lower() == "age" else StringType() for name in names}
    return StructType([StructField(name, type) for name, type in types.items()])


@pytest.mark.parametrize(
    ("second", "lacks"),
    [
        (("age", "straße", "strasse"), []),
        (("age", "strasse"), ["column straße"]),
        (("straße", "age"), ["column strasse"]),
    ],
)
def test_names_are_those_that_spark_tells_apart(second: tuple[str, ...], lacks: list[str]) -> None:
    names = ["age", "straße", "strasse"]
    footers = {"a": columns("AGE", "strasse", "STRAßE"), "b": columns(*second)}
    found = [*find_differences(footers, names, names, exact=False)]
    assert [problem.where for problem in found] == lacks
    assert all("1 of 2 files lack it" in problem.text for problem in found)
