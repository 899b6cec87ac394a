"""The values of protected columns that models count, as models look at them, and those of a table
in memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from anonlib.arrays import Codes
from anonlib.config.model import Config, bind_models
from anonlib.config.resolve import find_orders, read_protected_hierarchies
from anonlib.decisions.refusals import MAX_VALUES, refuse_rich, refuse_unlisted
from anonlib.errors import ConfigError, InputError, Problem
from anonlib.hierarchy import Hierarchy
from anonlib.table.encoding import Values, list_protected_values
from anonlib.table.schema import Schema
from anonlib.worker.task import code_persons


@dataclass(frozen=True)
class CountedColumn:
    """A protected column whose values models count.

    Attributes:
        name: The column.
        model: The type of the last of these models.
        order: The declared order of its folded values, if a model uses their order.
        hierarchy: The folded hierarchy, if a model measures values along it.
    """

    name: str
    model: str
    order: tuple[str, ...] | None
    hierarchy: Hierarchy | None

    def arrange(self, values: Values) -> Values:
        """The values in the order, and with the levels of the hierarchy, that models look at.

        Raises ConfigError for more than MAX_VALUES, and for those that order or hierarchy lack.
        """
        if len(values.categories) > MAX_VALUES:
            raise ConfigError([refuse_rich(self.name, self.model)])
        field = "order"
        try:
            if self.order is not None:
                values = values.ordered(self.order)
            field = "hierarchy"
            return values if self.hierarchy is None else values.along(self.hierarchy)
        except InputError as error:
            raise ConfigError([refuse_unlisted(self.name, field, error)]) from None


def find_counted_columns(config: Config) -> Iterator[CountedColumn]:
    """The columns whose values models count."""
    models = bind_models(config.all_models, config.attributes)
    hierarchies = read_protected_hierarchies(config.all_models, config.attributes)
    orders = find_orders(config.all_models, config.attributes)
    for name, model in {m.column: m.type for m in models if m.looks_at == "counts"}.items():
        if name is not None:
            yield CountedColumn(name, model, orders.get(name), hierarchies.get(name))


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
        By id: the values; and what is wrong with others.
    """
    values: dict[str, Values] = {}
    problems: list[Problem] = []
    for counted in find_counted_columns(config):
        id = schema[counted.name].id
        listed = table.column(id).combine_chunks()
        try:
            values[id] = counted.arrange(
                list_protected_values(listed, config.privacy.missing_tokens, person)
            )
        except ConfigError as error:
            problems += error.problems
    return values, problems


def require_values(table: pa.Table, schema: Schema, config: Config) -> dict[str, Values]:
    """By id: the values of the columns whose counts models look at. Raises ConfigError if a model
    can't use them."""
    person = code_persons([table.column(id).combine_chunks() for id in schema.unit])
    values, problems = list_values(table, schema, config, person)
    if problems:
        raise ConfigError(problems)
    return values
