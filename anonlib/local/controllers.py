"""The data controllers of a table in memory, and what Spark asks in the same words."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.config.model import Attribute, PartitionSection, bind_models
from anonlib.config.resolve import with_ids
from anonlib.errors import ConfigError, Problem
from anonlib.local.leaf_counts import count_in_memory
from anonlib.local.refusals import MAX_CONTROLLERS, refuse_absent, refuse_controllers
from anonlib.partition.controller import Controller
from anonlib.partition.repair import BlockCounts
from anonlib.partition.settlement import Controllers, merge_controllers, suppress_controllers
from anonlib.privacy import PrivacyModel, build_models
from anonlib.table.encoding import Encoding, Values
from anonlib.table.schema import Schema
from anonlib.text import identify
from anonlib.worker.task import Task


def identify_names(
    partition: PartitionSection, schema: Schema, *, folded: bool
) -> PartitionSection:
    """The section with the names of controllers with models of their own as the column has them:
    as identities of persons, if the column identifies persons, too. Models of names that are one
    identity are joined.

    folded: Whether texts of the column that differ only in case are one person.
    """
    step = partition.controller
    persons = {column.id for column in schema.identifying if pa.types.is_string(column.type)}
    if step is None or schema.controller not in persons:
        return partition
    models: dict[str, tuple[PrivacyModel, ...]] = {}
    for name, its in step.models.items():
        known = identify(name, folded=folded)
        models[known] = (*models.get(known, ()), *its)
    named = step.model_copy(update={"models": models})
    steps = tuple(named if each is step else each for each in partition.steps)
    return partition.model_copy(update={"steps": steps})


def make_controllers(
    step: Controller,
    hashes: Ints,
    names: Sequence[str | None],
    n_rows: Ints,
    models: tuple[PrivacyModel, ...],
    attributes: Mapping[str, Attribute],
    schema: Schema,
    values: dict[str, Values],
) -> Controllers:
    """The controllers of a table before any of them is merged or suppressed.

    Args:
        step: The step that keeps them apart.
        hashes: int64[c], ascending. Spark's hash of each value.
        names: The values as texts. Those of `step.models` are among them.
        n_rows: int64[c]. Rows of each.
        models: The models of all rows.
        attributes: The columns of the config.
        schema: The columns.
        values: By id: the values of the protected columns that models count.
    """
    must_hold = np.zeros((len(names), 1 + len(step.models)), np.bool_)
    must_hold[:, 0] = True
    for s, name in enumerate(step.models, 1):
        must_hold[names.index(name), s] = True
    own = [with_ids(bind_models(each, attributes), schema) for each in step.models.values()]
    everyone = np.arange(len(names))
    return Controllers(hashes, n_rows, everyone, must_hold, (models, *own), values)


def take_controllers(
    controller: Ints, models: tuple[PrivacyModel, ...], values: dict[str, Values]
) -> Controllers:
    """The controllers of rows, by their numbers 0..c-1: int64[n]. All must hold the same models."""
    n_rows = np.bincount(controller)
    everyone = np.arange(len(n_rows))
    return Controllers(
        everyone, n_rows, everyone, np.ones((len(n_rows), 1), np.bool_), (models,), values
    )


def find_controller_centers(
    sample: pa.Table, encodings: Sequence[Encoding], controller: Ints, n_controllers: int
) -> Floats:
    """float64[c, p]. The mean of each standardized column in the sampled rows of a controller.

    Args:
        sample: m sampled rows.
        encodings: The encodings of the quasi-identifiers.
        controller: int64[m]. The controller of each row.
        n_controllers: c.
    """
    count = np.maximum(np.bincount(controller, minlength=n_controllers), 1)
    columns = [
        e.numeric(sample.column(e.id).combine_chunks())[:, 0] for e in encodings if not e.nominal
    ]
    sums = [np.bincount(controller, x, n_controllers) for x in columns]
    return np.column_stack([np.zeros((n_controllers, 1)), *sums]) / count[:, None]


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
