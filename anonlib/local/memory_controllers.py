"""The data controllers of a table in memory."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.config.model import Attribute
from anonlib.decisions.controllers import make_controllers
from anonlib.decisions.refusals import MAX_CONTROLLERS, refuse_absent, refuse_controllers
from anonlib.errors import ConfigError, Problem
from anonlib.local.leaf_counts import count_in_memory
from anonlib.partition.controller import Controller
from anonlib.partition.repair import BlockCounts
from anonlib.partition.settlement import Controllers, merge_controllers, suppress_controllers
from anonlib.privacy import build_models
from anonlib.table.schema import Schema
from anonlib.worker.task import Task


def find_controllers(
    rows: pa.Table,
    schema: Schema,
    step: Controller,
    attributes: Mapping[str, Attribute],
    task: Task,
) -> tuple[Controllers, Ints]:
    """The controllers of a table before any of them is merged or suppressed, and int64[n], the
    controller of each row.

    Raises ConfigError if there are too many, or `models` names others.
    """
    from anonlib.table.hashes import hash_values  # this imports numba

    assert schema.controller is not None
    column = rows.column(schema.controller).combine_chunks()
    hashes, first, controller, n_rows = np.unique(
        hash_values(column), return_index=True, return_inverse=True, return_counts=True
    )
    if len(hashes) > MAX_CONTROLLERS:
        raise ConfigError([refuse_controllers(step)])
    names = _name_values(column.take(pa.array(first)), step) if step.models else [None] * len(first)
    if absent := sum(name not in names for name in step.models):
        raise ConfigError([refuse_absent(step, absent)])
    models = build_models(task.models)
    found = make_controllers(step, hashes, names, n_rows, models, attributes, schema, task.values)
    return found, controller


def _name_values(values: pa.Array, step: Controller) -> list[str | None]:
    """The values as Spark writes them as text."""
    kind = values.type
    same = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
    if not any(check(kind) for check in same):
        raise ConfigError(
            [
                Problem(
                    "partition.steps.0.models",
                    f"column {step.column} is of type {kind}, whose values have no text in memory "
                    "that is certain to be Spark's; make texts of them, or release in Spark",
                )
            ]
        )
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def settle_controllers(
    controllers: Controllers,
    controller: Ints,
    rows: pa.Table,
    schema: Schema,
    missing_tokens: tuple[str, ...],
    centers: Floats | None,
    max_suppressed: int,
) -> Controllers:
    """Decides which controllers are kept, merged or suppressed.

    Args:
        controllers: All of them.
        controller: int64[n]. The controller of each row.
        rows: The rows, by id.
        schema: The columns.
        missing_tokens: Texts that mean a missing value.
        centers: float64[c, p]. Their centres, if those that fail are merged with the nearest;
            otherwise, they are suppressed.
        max_suppressed: The most rows to suppress.

    Raises InfeasibleError if controllers can't hold their models.
    """
    models = [model for models in controllers.sets for model in models]

    def count(all_controllers: Controllers) -> BlockCounts:
        its = all_controllers.head[controller]
        kept = np.flatnonzero(its >= 0)
        return count_in_memory(
            rows.take(pa.array(kept)),
            its[kept],
            len(all_controllers.head),
            schema,
            all_controllers.values,
            models,
            missing_tokens,
            exact=True,
        )

    if centers is not None:
        return merge_controllers(controllers, count, centers)
    return suppress_controllers(controllers, count, max_suppressed, len(controller))
