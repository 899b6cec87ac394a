"""Makes the task of workers from a config and from what was seen of the whole table."""

from dataclasses import dataclass, field

import pyarrow as pa

from anonlib import registry
from anonlib.config.model import Config, PartitionSection
from anonlib.config.resolve import with_ids
from anonlib.loss import list_metrics
from anonlib.partition import TaskPartitioner
from anonlib.recode import Domain
from anonlib.table.columns import CONTROLLER, COST, HELD, LINK, TOKEN
from anonlib.table.encoding import Encoding, Values
from anonlib.table.schema import Role, Schema
from anonlib.worker.marks import Marks
from anonlib.worker.task import Task


@dataclass(frozen=True)
class TableFit:
    """What is known of the columns of a whole table.

    Attributes:
        encodings: The encodings of the quasi-identifiers, in the schema's order.
        target: The encoding of the target; None if nothing looks at it.
        context: The encodings of the insensitive columns; empty if nothing looks at them.
        values: By id of a protected column with a reference: its values and the reference.
    """

    encodings: tuple[Encoding, ...]
    target: Encoding | None = None
    context: tuple[Encoding, ...] = ()
    values: dict[str, Values] = field(default_factory=dict)


def make_task(config: Config, schema: Schema, table_fit: TableFit, output: pa.Schema) -> Task:
    """The task of a run's workers, without keys.

    Args:
        config: The config.
        schema: The columns.
        table_fit: What is known of the whole table.
        output: The released columns and the private ones beside them (`make_output_schema`).
    """
    models = with_ids(config.bound_models, schema)
    steps = [s for s in config.partition.steps if isinstance(s, TaskPartitioner)]
    return Task(
        encodings=table_fit.encodings,
        target=table_fit.target,
        context=table_fit.context,
        recoders=tuple(
            (c.id, registry.spec(c.recoder), Domain(c.order, c.hierarchy))
            for c in schema.quasi_identifiers
        ),
        kernel=registry.spec(config.kernel),
        models=tuple(registry.spec(model) for model in models),
        metrics=list_metrics(config.bound),
        protected=schema.protected,
        missing_tokens=config.privacy.missing_tokens,
        unit=schema.unit,
        token_key=b"",
        pseudonyms=tuple(c.id for c in schema.of(Role.IDENTIFIER) if c.pseudonym),
        pseudonym_key=b"",
        output=output,
        max_rows=_task_rows(config.partition),
        values=table_fit.values,
        steps=tuple(registry.spec(step) for step in steps),
        seed=config.seed,
        joint=schema.joint,
    )


def make_output_schema(schema: Schema, config: Config, marks: Marks) -> pa.Schema:
    """The staged columns: the released ones by id; then, if needed, the person's token, the
    controller, the cost of the cell, and what links a row to its person or holds it out.

    Args:
        schema: The columns.
        config: The config.
        marks: What measures need.
    """
    fields = [pa.field(column.id, column.released_type) for column in schema.released]
    if schema.unit:
        fields.append(pa.field(TOKEN, pa.string()))
    if schema.controller is not None:
        fields.append(pa.field(CONTROLLER, pa.int32()))
    if config.privacy.suppress == "costliest":
        fields.append(pa.field(COST, pa.int32()))
    if marks.link_key:
        fields.append(pa.field(LINK, pa.int64()))
    if marks.share:
        fields.append(pa.field(HELD, pa.bool_()))
    return pa.schema(fields)


def _task_rows(partition: PartitionSection) -> int:
    """Most rows that a kernel sees at once: a single block is not cut in its task."""
    limits = [step.max_block_rows or 0 for step in partition.steps]
    return max(partition.max_rows, *limits)
