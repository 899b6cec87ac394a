"""The scan of a small table: one whose rows are all in the sample.

Its rows are fetched once, and judged in memory by the rules and the code of `anonlib.anonymize`.
That spares a dozen queries, each of which costs more than all rows of such a table.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.config.model import Config
from anonlib.decisions.protected import list_values
from anonlib.errors import ConfigError, InfeasibleError, Problem
from anonlib.local.problems import judge_rows
from anonlib.run.categories import order_categories
from anonlib.run.row_facts import RowFacts
from anonlib.run.sample import list_sampled, take_first, with_sample_columns
from anonlib.source.resolved_source import Source
from anonlib.source.steady import require_same
from anonlib.table.columns import HIGH, LOW
from anonlib.table.encoding import clear_nan
from anonlib.table.plain_types import name_type, to_plain_type
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest
from anonlib.worker.task import code_persons

#: Most bytes of the texts and bytes of a table that the driver fetches.
MOST_BYTES = 64 * 2**20


def is_small(schema: Schema, figures: Mapping[str, Any], sample_rows: int) -> bool:
    """Whether the driver can judge all rows: it has a few, and reads their values as Spark does.

    Args:
        schema: The columns.
        figures: Of all rows: `n`, their number; `n_bytes`, of texts and bytes; by id of a column
            of text `ID_broken`, its texts that are no UTF-8, which Python can't read.
        sample_rows: The most rows of a sample.
    """
    plain = all(column.source_type == name_type(column.type) for column in schema.columns)
    few = figures["n"] <= sample_rows and figures["n_bytes"] <= MOST_BYTES
    broken = any(figures.get(f"{column.id}_broken") for column in schema.columns)
    return plain and few and not broken


def scan_small_table(
    source: Source, config: Config, digest: Digest, problems: list[Problem]
) -> RowFacts:
    """Finds what the scan needs beside the figures, by one pass over the source.

    Args:
        source: The source.
        config: The config.
        digest: The digest of the rows that the figures are of.
        problems: What the figures show.

    Raises:
        ConfigError, InfeasibleError: What is wrong, these problems included.
        BusyError: The source has other rows now.
    """
    schema = source.schema
    rows = _fetch(source, config.seed)
    require_same(digest, _digest(rows))
    most, tokens = config.max_categories, config.privacy.missing_tokens
    categories, more = order_categories(schema, _find_values(rows, schema), most, tokens)
    if problems := [*problems, *more]:
        raise ConfigError(problems)
    table = pa.table({c.id: to_plain_type(c.name, rows.column(c.id)) for c in schema.columns})
    person = code_persons([table.column(id).combine_chunks() for id in schema.unit])
    values, problems = list_values(table, schema, config, person)
    if problems:
        raise ConfigError(problems)
    from anonlib.content.gate import find_disclosing_columns

    content, more = find_disclosing_columns(table, schema, config.privacy)
    if problems := [*judge_rows(table, schema, config, values, person), *more]:
        raise InfeasibleError(problems)
    sample = rows.select(list_sampled(schema))
    return RowFacts(sample, categories, values, content)


def _fetch(source: Source, seed: int) -> pa.Table:
    """All rows, in the order of the sample."""
    rows = with_sample_columns(source.rows(all_columns=True), source.schema, seed).toArrow()
    return take_first(rows, rows.num_rows)


def _digest(rows: pa.Table) -> Digest:
    low, high = (int(_as_words(rows, half).sum()) for half in (LOW, HIGH))
    return Digest(rows.num_rows, low, high)


def _as_words(rows: pa.Table, name: str) -> Any:
    """uint64[n]. Their sum is modulo 2**64."""
    return rows.column(name).to_numpy().view(np.uint64)


def _find_values(rows: pa.Table, schema: Schema) -> dict[str, tuple[pa.Array, pa.Array]]:
    """By id of a column that has categories: its distinct values, and Spark's hash of each."""
    from anonlib.table.hashes import hash_values  # this imports numba

    found = {}
    for column in (c for c in schema.columns if c.by_category):
        values = clear_nan(pc.unique(rows.column(column.id))).drop_null()
        found[column.id] = values, pa.array(hash_values(values))
    return found
