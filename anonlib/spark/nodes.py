"""Which nodes of hierarchies a table has."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.schema import Schema


def released_nodes(table: DataFrame, schema: Schema) -> dict[str, frozenset[int]]:
    """By column released as nodes of its hierarchy: the numbers of those that the table has, under
    its published names. Costs one pass, and one more for each column of shares."""
    place = {name: f"n{i}" for i, name in enumerate(table.columns)}
    plain = table.toDF(*place.values())
    columns = {name: schema[name] for name in schema.hierarchies}
    by_name = [n for n, c in columns.items() if pa.types.is_string(c.released_type)]
    sets = [F.collect_set(place[name]) for name in by_name]
    texts = plain.agg(*sets).collect()[0] if sets else ()
    found = {}
    for name, values in zip(by_name, texts, strict=True):
        names = schema.hierarchies[name].names
        number = {each: i for i, each in enumerate(names)}
        found[name] = frozenset(number[value] for value in values)
    for name in columns.keys() - {*by_name}:
        node = plain.select(F.explode(F.col(place[name]).getField("node")).alias("node"))
        # The number after the last node is that of missing values.
        n = len(schema.hierarchies[name].names)
        found[name] = frozenset(row.node for row in node.distinct().collect() if row.node < n)
    return found
