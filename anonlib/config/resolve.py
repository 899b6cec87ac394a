"""Matches the columns of a config with the columns of its source. Reports all problems at once."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from anonlib.config.model import (
    RESERVED_PREFIX,
    Attribute,
    Config,
    PartitionSection,
    PrivacySection,
    RecodeSection,
    SourceSection,
    bind_models,
)
from anonlib.errors import ConfigError, InputError, Problem, did_you_mean
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.kernels import Kernel
from anonlib.privacy import PrivacyModel
from anonlib.table.schema import (
    Column,
    Field,
    Role,
    Scale,
    Schema,
    find_target_scale,
    is_atomic,
    is_storable,
    may_be_continuous,
)
from anonlib.text import find_alike, fold_text

#: The columns by which a feed of a Delta table's changes is known.
_FEED = {"_change_type", "_commit_version", "_commit_timestamp"}


def resolve(config: Config, fields: Sequence[Field]) -> Schema:
    """Makes the schema of a run.

    Args:
        config: The config.
        fields: The columns of the source, after the casts of the config.

    Raises:
        ConfigError: All problems: columns without a role, roles without a column, types that a role
            or a recoder does not support.
    """
    problems = [
        *_check_names(fields, config.attributes, config.source),
        *_check_changes({field.name for field in fields}, config.source.where or ""),
        *_check_target(config.attributes, config.kernel, config.partition),
    ]
    ordered = find_ordered_columns(config.all_models, config.attributes)
    controller = config.partition.controller_column
    needed = {*config.unit, controller}
    columns = []
    for i, field in enumerate(fields):
        attribute = config.attributes.get(field.name)
        if attribute is None or (attribute.role is Role.DROP and field.name not in needed):
            continue
        wrong = list(_check_type(field, attribute, config.unit, controller, config.recode))
        wrong += _check_comparable(field, attribute, config.privacy)
        if field.name in ordered:
            wrong += _check_order(field, attribute.order)
        problems += wrong
        if not wrong and field.arrow is not None:
            column = _column(f"c{i}", field, attribute, config.kernel, config.partition)
            columns.append(_with_recoder(column, attribute, config.recode))
    problems += _check_layout(columns, config.release.partition_by)
    if problems:
        raise ConfigError(problems)
    ids = {column.name: column.id for column in columns}
    models = bind_models(config.all_models, config.attributes)
    joint = find_joint_columns(models, config.attributes, joint=config.privacy.joint)
    protected = {model.column for model in models} | {*joint}
    return Schema(
        tuple(columns),
        unit=tuple(ids[name] for name in config.unit),
        protected=tuple(c.id for c in columns if c.name in protected),
        controller=ids.get(controller or ""),
        joint=config.privacy.joint,
    )


def find_unacknowledged(
    attributes: Mapping[str, Attribute], privacy: PrivacySection
) -> tuple[str, ...]:
    """The insensitive columns whose combinations must not be rare."""
    insensitive = [n for n, a in attributes.items() if a.role is Role.INSENSITIVE]
    return tuple(name for name in insensitive if not privacy.acknowledges_unique(name))


def find_joint_columns(
    models: Sequence[PrivacyModel], attributes: Mapping[str, Attribute], *, joint: bool
) -> tuple[str, ...]:
    """The sensitive columns, and a target with a privacy model. Empty without `privacy.joint`.

    With `privacy.joint`, an attacker may know all of these columns but the one that a model
    protects.
    """
    if not joint:
        return ()
    modelled = {model.column for model in bind_models(models, attributes)}
    return tuple(
        name
        for name, attribute in attributes.items()
        if attribute.role is Role.SENSITIVE or name in modelled
    )


def read_protected_hierarchies(
    models: Sequence[PrivacyModel], attributes: Mapping[str, Attribute]
) -> dict[str, Hierarchy]:
    """By column: the folded hierarchy, for models that measure their column along it."""
    names = {model.column for model in bind_models(models, attributes) if model.by_hierarchy}
    paths = {n: a.hierarchy for n, a in attributes.items() if n in names}
    return {name: read_hierarchy(path).folded() for name, path in paths.items() if path}


def find_ordered_columns(
    models: Sequence[PrivacyModel], attributes: Mapping[str, Attribute]
) -> set[str]:
    """The columns whose models use the order of the values."""
    bound = bind_models(models, attributes)
    return {model.column for model in bound if model.by_order and model.column is not None}


def find_orders(
    models: Sequence[PrivacyModel], attributes: Mapping[str, Attribute]
) -> dict[str, tuple[str, ...]]:
    """By column: the declared order, folded, for models that use the order of the values."""
    orders = {name: attributes[name].order for name in find_ordered_columns(models, attributes)}
    return {name: tuple(map(fold_text, order)) for name, order in orders.items() if order}


def with_ids(models: Sequence[PrivacyModel], schema: Schema) -> tuple[PrivacyModel, ...]:
    """Replaces the names of columns in models by the columns' ids, as blocks need them."""
    result = []
    for model in models:
        name = model.column
        update = {} if name is None else {"attribute": schema[name].id}
        result.append(model.model_copy(update=update))
    return tuple(result)


def with_names(models: Sequence[PrivacyModel], schema: Schema) -> tuple[PrivacyModel, ...]:
    """Replaces the ids of columns in models by the columns' names."""
    result = []
    for model in models:
        update = {} if model.column is None else {"attribute": schema.by_id(model.column).name}
        result.append(model.model_copy(update=update))
    return tuple(result)


def _check_layout(columns: Sequence[Column], partition_by: Sequence[str]) -> Iterator[Problem]:
    """Names of folders are values of one part, as text."""
    types = {column.name: column.released_type for column in columns}
    for i, name in enumerate(partition_by):
        type = types.get(name, pa.null())
        if pa.types.is_nested(type):
            yield Problem(
                f"release.partition_by.{i}",
                f"column {name} is released with values of several parts ({type}), and "
                "files can be laid out by single values only; remove it, or give it another "
                "recoder, such as one with `form: text`",
            )
        if pa.types.is_binary(type):  # all kinds of bytes in Spark
            yield Problem(
                f"release.partition_by.{i}",
                f"column {name} is released as bytes ({type}), which the name of a folder can't "
                "have; remove it",
            )


def _dialect(source: SourceSection) -> str:
    """What else may be wrong where no name is known."""
    text = ", and with the `sep` and `encoding` of source.options"
    return text if source.format == "csv" else ""


def _check_names(
    fields: Sequence[Field], attributes: Mapping[str, Attribute], source: SourceSection
) -> Iterator[Problem]:
    names = [field.name for field in fields]
    if attributes and not {*names} & {*attributes}:
        # The names may be the first row of a table without a header: they are not shown.
        yield Problem(
            "source",
            f"none of its {len(names)} columns is among the {len(attributes)} under "
            f"`attributes`; is it the right table, with a header{_dialect(source)}?",
        )
        return
    unknown = [name for name in names if name not in attributes]
    if source.format == "csv" and 2 * len(unknown) > len(names):
        # For example, the header has lost its line end, and runs into the first row.
        yield Problem(
            "source",
            f"{len(unknown)} of its {len(names)} columns have no role. Their names are not shown, "
            "since they may be values: is the header complete? Then add the others to `attributes`",
        )
        names = [name for name in names if name in attributes]
    alike = find_alike(names)
    for name in names:
        where = f"column {name}"
        if name in alike:
            yield Problem(where, "another column of the source differs in case only; rename one")
        if name.lower().startswith(RESERVED_PREFIX):
            yield Problem(
                where, f"names that begin with {RESERVED_PREFIX} are reserved; rename the column"
            )
        if name not in attributes:
            yield Problem(
                where, f"has no role; add it under `attributes` with one of: {', '.join(Role)}"
            )
    missing = [name for name in attributes if name not in names]
    # A search in names for each of many would take long, and tell little.
    searched = names if len(missing) <= 20 else []
    others = [name for name in searched if name not in attributes]
    for name in missing:
        near = did_you_mean(name, others) or did_you_mean(name, searched)
        yield Problem(f"attributes.{name}", f"the source has no such column{near}")


def _check_changes(names: Collection[str], where: str) -> Iterator[Problem]:
    """Checks that a feed of a Delta table's changes is not taken for its rows."""
    if {*names} >= _FEED and "_change_type" not in where.lower():
        yield Problem(
            "source.where",
            "the source is a feed of changes, which has rows that were deleted, and rows before "
            'and after an update: choose by a condition on _change_type, such as "_change_type IN '
            "('insert', 'update_postimage')\", or release the table itself",
        )


def _check_target(
    attributes: Mapping[str, Attribute], kernel: Kernel, partition: PartitionSection
) -> Iterator[Problem]:
    targets = {n: a.scale for n, a in attributes.items() if a.role is Role.TARGET}
    steps = enumerate(partition.steps)
    plugins = [("kernel", kernel.type)] if kernel.needs_target else []
    plugins += [(f"partition.steps.{i}", step.type) for i, step in steps if step.needs_target]
    for where, type in plugins if not targets else ():
        yield Problem(where, f"{type} needs a target; give a column `role: target`")
    for name, scale in targets.items():
        if kernel.needs_classes and scale is Scale.CONTINUOUS:
            yield Problem(
                f"attributes.{name}.scale",
                f"must be nominal: kernel {kernel.type} needs a target of classes",
            )


def check_storable(field: Field) -> Iterator[Problem]:
    """Whether a column is of a type that a release may have."""
    if field.arrow is None or not is_storable(field.arrow):
        yield Problem(
            f"column {field.name}", f"type {field.type} is not supported; give it `role: drop`"
        )


def _check_type(
    field: Field,
    attribute: Attribute,
    unit: Sequence[str],
    controller: str | None,
    recode: RecodeSection,
) -> Iterator[Problem]:
    where = f"column {field.name}"
    if unfit := [*check_storable(field)]:
        if attribute.role is Role.DROP:
            what = "name data controllers" if field.name == controller else "identify a person"
            unfit = [Problem(where, f"type {field.type} can't {what}")]
        yield from unfit
        return
    if attribute.role in (Role.SENSITIVE, Role.TARGET) and not is_atomic(field.arrow):
        yield Problem(
            where, f"type {field.type} can't be {attribute.role}; {_other_roles(field.type)}"
        )
    if field.name == controller and (
        not is_atomic(field.arrow) or pa.types.is_floating(field.arrow)
    ):
        yield Problem(where, f"type {field.type} can't name data controllers")
    quasi = attribute.role is Role.QUASI_IDENTIFIER
    if attribute.hierarchy is not None and not quasi and not _has_one_text(field.arrow):
        yield Problem(
            where,
            f"type {field.type} can't have a hierarchy; a protected column with a hierarchy must "
            "be text, whole numbers, booleans or dates",
        )
    if field.name in unit and not is_atomic(field.arrow):
        yield Problem(where, f"type {field.type} can't identify a person")
    if attribute.pseudonym and not is_atomic(field.arrow):
        yield Problem(where, f"type {field.type} can't become a pseudonym")
    if quasi and not is_atomic(field.arrow):
        yield Problem(where, f"type {field.type} can't be anonymized; {_other_roles(field.type)}")
    elif attribute.scale is not None and is_atomic(field.arrow):
        yield from _check_scale(field, attribute, field.arrow, attribute.scale, recode)


#: A variant, alone or within another type; no field of that name.
_VARIANT = re.compile(r"(^|[<,:])variant($|[>,])")


def _other_roles(type: str) -> str:
    """What a column of a type that isn't atomic can be."""
    if _VARIANT.search(type):
        return "it can be dropped, or insensitive if `privacy.acknowledge_unique` names it"
    return "it can be insensitive or dropped"


def _check_comparable(
    field: Field, attribute: Attribute, privacy: PrivacySection
) -> Iterator[Problem]:
    """Checks that the audit can tell the values of an insensitive column apart: it counts how rare
    they are, unless that is acknowledged."""
    if attribute.role is not Role.INSENSITIVE or privacy.acknowledges_unique(field.name):
        return
    if field.arrow is not None and _VARIANT.search(field.type):
        yield Problem(
            f"column {field.name}",
            f"type {field.type} can't be compared by value, so nobody can count how rare its "
            "values are; give it `role: drop`, or accept rare ones: name it in "
            "`privacy.acknowledge_unique`",
        )


def _check_order(field: Field, order: tuple[str, ...] | None) -> Iterator[Problem]:
    """Checks the order of a column whose model uses the order of the values."""
    is_text = field.arrow is not None and pa.types.is_string(field.arrow)
    if is_text and order is None:
        yield Problem(
            f"attributes.{field.name}.order",
            "required, since t_closeness goes by the order of the values and the column is text: "
            "all values, low to high; or add `type` if these are numbers or dates",
        )
    if not is_text and order is not None:
        yield Problem(
            f"attributes.{field.name}.order",
            f"only for text; type {field.type} has an order of its own, remove it",
        )


def _has_one_text(type: pa.DataType) -> bool:
    """Whether each value has the same text everywhere, so that a file can name it."""
    at = pa.types
    return any(holds(type) for holds in (at.is_string, at.is_integer, at.is_boolean, at.is_date))


def _check_scale(
    field: Field, attribute: Attribute, type: pa.DataType, scale: Scale, recode: RecodeSection
) -> Iterator[Problem]:
    """Checks that the scale of a quasi-identifier or a target fits the column's type."""
    where = f"column {field.name}"
    text_column = pa.types.is_string(type)
    if scale is Scale.CONTINUOUS and not may_be_continuous(type):
        if text_column:
            yield Problem(
                where,
                f"type {field.type} is not continuous; if these are numbers or dates stored as "
                "text, add `type: double` (int, date, ...); else choose another scale",
            )
        else:
            yield Problem(where, f"type {field.type} is not continuous; use `scale: nominal`")
        return
    if attribute.role is Role.TARGET:
        return
    if scale is Scale.ORDINAL:
        if text_column and attribute.order is None:
            yield Problem(
                f"attributes.{field.name}.order",
                "required, since the column is text: all categories, low to high",
            )
        if not text_column and attribute.order is not None:
            yield Problem(
                f"attributes.{field.name}.order",
                f"only for text; type {field.type} has an order of its own, remove it",
            )
        if pa.types.is_boolean(type):
            yield Problem(where, "a boolean has no order; use `scale: nominal`")
    try:
        recode.of(field.name, scale).output(type)
    except InputError as error:
        yield Problem(where, str(error))


def _column(
    id: str, field: Field, attribute: Attribute, kernel: Kernel, partition: PartitionSection
) -> Column:
    """A column by the config. `_with_recoder` adds the other fields of a quasi-identifier."""
    assert field.arrow is not None
    column = Column(
        name=field.name,
        id=id,
        role=attribute.role,
        type=field.arrow,
        source_type=field.type,
        cast=attribute.type,
        pseudonym=attribute.pseudonym,
    )
    if attribute.role is Role.TARGET and (kernel.needs_target or partition.needs_target):
        scale = attribute.scale or find_target_scale(field.arrow, kernel.needs_classes)
        return replace(column, scale=scale)
    if attribute.role is Role.INSENSITIVE and partition.needs_context and is_atomic(field.arrow):
        return replace(column, scale=find_target_scale(field.arrow, needs_classes=False))
    return column


def _with_recoder(column: Column, attribute: Attribute, recode: RecodeSection) -> Column:
    """Adds scale, order, recoder and hierarchy to a quasi-identifier. Others stay as they are."""
    if attribute.role is not Role.QUASI_IDENTIFIER or attribute.scale is None:
        return column
    recoder = recode.of(column.name, attribute.scale)
    hierarchy = None if attribute.hierarchy is None else read_hierarchy(attribute.hierarchy)
    return replace(
        column,
        scale=attribute.scale,
        order=attribute.order,
        recoder=recoder,
        hierarchy=hierarchy,
    )
