"""The content gate: looks at the values of columns, whatever roles the config gives them.

A released column must not show who a person is. It must not share values with an identifying
column, be a key, repeat a quasi-identifier, or have values that belong to one person each. The gate
looks at the source: digests prove that the release is made of these rows. Its rules are in
`anonlib/content/content_rules.py`, its counts in `anonlib/run/column_values.py`.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.config.model import PrivacySection
from anonlib.content.content_rules import Content, judge_columns, list_compared
from anonlib.errors import Problem
from anonlib.run.column_values import ColumnValues, Look, SourceCounter, find_values, new_key
from anonlib.source.resolved_source import Source
from anonlib.table.schema import Schema

#: Distinct values of a column that a sketch keeps, about.
SKETCH_SIZE = 50_000
#: A column with at most this many distinct values has few: all are kept.
SET_SIZE = 200_000
#: Rows that a value of an identifier is expected to have at most, on average. If it has many more,
#: its sketch is made again.
ROWS_PER_VALUE = 2
#: Values that a sketch may have missed by chance.
MISSED = 3


def plan_look(schema: Schema, n_rows: int, sample: pa.Table) -> Look:
    """What a pass over a source looks for, so that the content gate can judge it and plans have
    their categories.

    Args:
        schema: The columns.
        n_rows: The number of the source's rows.
        sample: A random sample of them, by id.
    """
    persons, candidates = list_compared(schema)
    ids = [c.id for c in dict.fromkeys([*persons, *candidates])]
    return Look(
        categorical=tuple(c.id for c in schema.columns if c.by_category),
        shares={id: _find_share(id, n_rows, sample) for id in ids},
        pairs=tuple((c.id, p.id) for c in candidates for p in persons if c.id != p.id),
        key=new_key(),
    )


def complete_sketches(
    source: Source, look: Look, values: ColumnValues, sample: pa.Table
) -> ColumnValues:
    """The values, with larger sketches of identifiers whose sketch has far less than SKETCH_SIZE
    values, since each of them is in many rows. One more pass over the source, if there are any."""
    thin = {
        id: min(1.0, SKETCH_SIZE * sketch.share / (len(sketch.hashes) + MISSED))
        for id, sketch in values.sketches.items()
        if id not in sample.column_names
        if sketch.share < 1.0 and len(sketch.hashes) < SKETCH_SIZE / 2
    }
    if not thin:
        return values
    again = find_values(source, Look((), thin, (), look.key))
    return replace(values, sketches={**values.sketches, **again.sketches})


def judge_content(
    source: Source,
    values: ColumnValues,
    key: int,
    sample: pa.Table,
    privacy: PrivacySection,
    protected: frozenset[str],
) -> tuple[Content, list[Problem]]:
    """Judges the columns of a source that are released.

    Cost: one pass over the source for all columns with about as many values as an identifier,
    together. One more for each column that looks like a key, or as if its values belong to one
    person each, for each identifier that repeats, and for each pair of columns that may repeat each
    other.

    Args:
        source: The source.
        values: What a pass over it found.
        key: The key of that pass.
        sample: A random sample of the source's rows, by id.
        privacy: The section of the config that acknowledges columns.
        protected: Names of sensitive columns with a model. They may have many distinct values.

    Returns:
        The figures, and what is wrong.
    """
    counter = SourceCounter(source, values, key, sample)
    return judge_columns(source.schema, values.sketches, values.equal, counter, privacy, protected)


def _find_share(id: str, n_rows: int, sample: pa.Table) -> float:
    """The share of a column's values that is about SKETCH_SIZE of them, or all if it has few.
    Values are counted in the sample, which lacks identifiers."""
    if n_rows <= SKETCH_SIZE:
        return 1.0
    if id not in sample.column_names:
        return min(1.0, ROWS_PER_VALUE * SKETCH_SIZE / n_rows)
    likely, most = estimate_distinct(sample.column(id), n_rows)
    # Rare values that the sample hardly shows must not fill the memory.
    return 1.0 if most <= SET_SIZE else min(1.0, SKETCH_SIZE / max(1.0, likely, most / 10))


def estimate_distinct(values: pa.ChunkedArray, n_rows: int) -> tuple[float, float]:
    """The number of distinct values in n_rows rows, by a sample of them without replacement.

    Returns:
        An estimate, and a number that it hardly exceeds: as many rows have values that the sample
        lacks as the share of values that occur once in it suggests. Both are exact if the sample
        has all rows.

    Reference: A. Chao, C.-W. Lin, Nonparametric lower bounds for species richness and shared
    species richness under sampling without replacement, Biometrics 68(3), 2012; I. J. Good, The
    population frequencies of species, Biometrika 40, 1953, for the second.
    """
    counts = pc.value_counts(values.drop_null().combine_chunks()).field("counts").to_numpy()
    n, size = len(counts), len(values)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if size >= n_rows or not once:
        return float(n), float(n)
    share = size / n_rows
    scale = 2 * twice * size / max(size - 1, 1) + once * share / (1 - share)
    return n + once * once / scale, n + (n_rows - size) * once / size
