"""The data controllers of a table of Spark: lists and counts them."""

from collections.abc import Mapping

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anonlib.config.model import Attribute, Config, PartitionSection
from anonlib.decisions.controllers import find_controller_centers, identify_names, make_controllers
from anonlib.decisions.refusals import MAX_CONTROLLERS, refuse_absent, refuse_controllers
from anonlib.errors import ConfigError
from anonlib.partition.controller import Controller
from anonlib.partition.repair import BlockCounts
from anonlib.partition.settlement import Controllers, merge_controllers, suppress_controllers
from anonlib.privacy import PrivacyModel, build_models
from anonlib.run.leaves import count_exactly, count_leaves
from anonlib.run.scan import Scan
from anonlib.source.identity import is_folded
from anonlib.spark.constants import at, look_up
from anonlib.table.columns import CONTROLLER, CONTROLLER_HASH
from anonlib.table.schema import Schema
from anonlib.worker.task import Task


def name_as_rows(config: Config, schema: Schema) -> PartitionSection:
    """The section `partition`, with the names of controllers as rows have them."""
    folded = schema.controller is not None and is_folded(
        schema.by_id(schema.controller).source_type, config.person.fold_case
    )
    return identify_names(config.partition, schema, folded=folded)


def number_rows(schema: Schema, controllers: Controllers) -> Column:
    """The controller of a row: 0..c-1; -1 for a value that was not there."""
    assert schema.controller is not None
    places = np.arange(len(controllers.hashes))
    return look_up(F.xxhash64(F.col(schema.controller)), controllers.hashes, places, -1)


def resolve_controllers(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    partition: PartitionSection,
    attributes: Mapping[str, Attribute],
    max_suppressed: int,
    task: Task,
) -> Controllers | None:
    """Decides which controllers of a table are kept, merged or suppressed.

    At most `max_suppressed` rows are suppressed. None if the config has no controllers.

    Raises:
        ConfigError: `models` names controllers that the table does not have.
        InfeasibleError: Controllers that can't hold their models have more rows than may be
            suppressed.
    """
    step = partition.controller
    if step is None:
        return None
    all_controllers = _find_controllers(
        rows, schema, scan, attributes, step, build_models(task.models)
    )

    def count(controllers: Controllers) -> BlockCounts:
        return _counts(rows, schema, task.missing_tokens, controllers)

    if step.merge:
        controller = np.searchsorted(
            all_controllers.hashes, scan.sample.column(CONTROLLER_HASH).to_numpy()
        )
        n_controllers = len(all_controllers.head)
        centers = find_controller_centers(scan.sample, scan.encodings, controller, n_controllers)
        return merge_controllers(all_controllers, count, centers)
    return suppress_controllers(all_controllers, count, max_suppressed, scan.n_rows)


def _counts(
    rows: DataFrame, schema: Schema, missing_tokens: tuple[str, ...], controllers: Controllers
) -> BlockCounts:
    """The counts of the kept controllers. They are exact where the sketches do not suffice."""
    models = tuple(model for models in controllers.sets for model in models)
    number = at(controllers.head, number_rows(schema, controllers))
    kept = rows.withColumn(CONTROLLER, number).where(F.col(CONTROLLER) >= 0)
    n = len(controllers.hashes)
    counts = count_leaves(
        kept, schema, controllers.values, models, missing_tokens, n, by=CONTROLLER
    )
    everyone = np.arange(n)
    if not controllers.demands(everyone).holds(counts)[controllers.head == everyone].all():
        counts = count_exactly(kept, schema, models, missing_tokens, counts, by=CONTROLLER)
    return counts


def _find_controllers(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    attributes: Mapping[str, Attribute],
    step: Controller,
    models: tuple[PrivacyModel, ...],
) -> Controllers:
    assert schema.controller is not None
    rows_of = list_controllers(rows, schema, step)
    return make_controllers(
        step,
        np.array([row["h"] for row in rows_of], np.int64),
        [row["value"] for row in rows_of],
        np.array([row["n"] for row in rows_of], np.int64),
        models,
        attributes,
        schema,
        scan.values,
    )


def list_controllers(rows: DataFrame, schema: Schema, step: Controller) -> list[Row]:
    """Lists the controllers of a table: `h`, Spark's hash of each value, `value` as text, and `n`,
    its rows. Cost: one aggregate.

    Raises ConfigError if there are too many, or `models` names others.
    """
    assert schema.controller is not None
    value = F.col(schema.controller)
    counts = rows.groupBy(value.alias("value")).agg(F.count(F.lit(1)).alias("n"))
    hashed = counts.select(F.xxhash64("value").alias("h"), F.col("value").cast("string"), "n")
    rows_of = hashed.orderBy("h").limit(MAX_CONTROLLERS + 1).collect()
    if len(rows_of) > MAX_CONTROLLERS:
        raise ConfigError([refuse_controllers(step)])
    names = {row["value"] for row in rows_of}
    if absent := sum(name not in names for name in step.models):
        raise ConfigError([refuse_absent(step, absent)])
    return rows_of
