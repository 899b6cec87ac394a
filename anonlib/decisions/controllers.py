"""The controllers of a table before any is merged or suppressed: their names, what each must hold,
where each lies."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.config.model import Attribute, PartitionSection, bind_models
from anonlib.config.resolve import with_ids
from anonlib.partition.controller import Controller
from anonlib.partition.settlement import Controllers
from anonlib.privacy import PrivacyModel
from anonlib.table.encoding import Encoding, Values
from anonlib.table.schema import Schema
from anonlib.text import identify


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
