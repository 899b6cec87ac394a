"""The values of protected columns in a table in memory."""

import pyarrow as pa

from anonlib.arrays import Codes
from anonlib.config.model import Config
from anonlib.config.resolve import bind_models, find_orders, read_protected_hierarchies
from anonlib.errors import ConfigError, InputError, Problem
from anonlib.local.refusals import MAX_VALUES, refuse_rich, refuse_unlisted
from anonlib.table.encoding import Values, list_protected_values
from anonlib.table.schema import Schema
from anonlib.worker.task import person_codes


def list_values(
    table: pa.Table, schema: Schema, config: Config, person: Codes | None
) -> tuple[dict[str, Values], list[Problem]]:
    """The values of the columns whose counts models look at.

    Args:
        table: The columns by id.
        schema: The columns.
        config: The config.
        person: int32[n] or None. The person of each row; None if each row is a person.

    Returns:
        By id: the values; and what is wrong with them.
    """
    models = bind_models(config.all_models, config.attributes)
    hierarchies = read_protected_hierarchies(config.all_models, config.attributes)
    orders = find_orders(config.all_models, config.attributes)
    found, problems = {}, []
    for name, model in {m.column: m.type for m in models if m.looks_at == "counts"}.items():
        column = schema[name or ""]
        listed = table.column(column.id).combine_chunks()
        values = list_protected_values(listed, config.privacy.missing_tokens, person)
        if len(values.categories) > MAX_VALUES:
            problems.append(refuse_rich(column.name, MAX_VALUES, model))
            continue
        field = "order"
        try:
            if column.name in orders:
                values = values.ordered(orders[column.name])
            field = "hierarchy"
            if column.name in hierarchies:
                values = values.along(hierarchies[column.name])
        except InputError as error:
            problems.append(refuse_unlisted(column.name, field, error))
        found[column.id] = values
    return found, problems


def require_values(table: pa.Table, schema: Schema, config: Config) -> dict[str, Values]:
    """By id: the values of the columns whose counts models look at. Raises ConfigError if a model
    can't use them."""
    person = person_codes([table.column(id).combine_chunks() for id in schema.unit])
    values, problems = list_values(table, schema, config, person)
    if problems:
        raise ConfigError(problems)
    return values
