"""The result of a check: a config resolved against its source."""

from collections.abc import Iterator, Sequence

from anonlib.auditing.verdicts import JOINT
from anonlib.config.model import Attribute, Config
from anonlib.config.policies.judgement import judge_rules
from anonlib.config.summary import label_plugin, note_seed
from anonlib.local.advice import note_times
from anonlib.run.publish import note_readers
from anonlib.run.result import CheckResult, ColumnPlan
from anonlib.run.scan import Scan
from anonlib.spark.values import find_spark_type
from anonlib.table.schema import Column, Schema


def resolve_check(
    config: Config,
    schema: Schema,
    scan: Scan,
    obstacles: tuple[str, ...],
    notes: tuple[str, ...] = (),
) -> CheckResult:
    """What becomes of each column, and what is left to be trusted. It has no value of the table.
    notes: Those of the source."""
    return CheckResult(
        n_rows=scan.n_rows,
        columns=tuple(_column_plan(n, a, schema) for n, a in config.attributes.items()),
        models=tuple(_labels(config)),
        kernel=label_plugin(config.kernel),
        partition=" > ".join(label_plugin(step) for step in config.partition.steps),
        notes=(
            *notes,
            *note_readers(schema),
            *scan.list_notes(schema, config),
            *note_times(schema, scan.sample),
            *_note_persons(config.one_row_per_person),
            *note_seed(config.seed),
            *_note_review(config.review),
        ),
        review=config.review,
        policy=judge_rules(config, schema, kinds=scan.content.kinds),
        n_nobody=scan.n_nobody,
        obstacles=obstacles,
    )


def _labels(config: Config) -> Iterator[str]:
    """The privacy models, those that hold where other columns are known marked."""
    for model in config.bound_models:
        joint = config.privacy.joint and model.column is not None
        yield label_plugin(model) + (JOINT if joint else "")


def _column_plan(name: str, attribute: Attribute, schema: Schema) -> ColumnPlan:
    column: Column | None = next((c for c in schema.columns if c.name == name), None)
    if column is None or not column.released:
        released = "dropped"
    elif column.pseudonym:
        released = "pseudonym (string)"
    else:
        how = column.recoder.type if column.recoder else "as it is"
        released = f"{how} ({find_spark_type(column.released_type).simpleString()})"
    return ColumnPlan(
        name=name,
        role=attribute.role,
        scale=attribute.scale,
        source_type=column.source_type if column else "",
        released_as=released,
    )


def _note_review(review: Sequence[str]) -> Iterator[str]:
    """One note on all that a draft has guessed and nobody has looked at."""
    if review:
        places = "1 place" if len(review) == 1 else f"{len(review):,} places"
        yield f"review: nobody has looked at {places}: {', '.join(review)}"


def _note_persons(one_row_per_person: bool | str) -> Iterator[str]:
    """What a config leaves to be trusted."""
    if one_row_per_person is True:
        yield "one_row_per_person is declared, and can't be checked"
