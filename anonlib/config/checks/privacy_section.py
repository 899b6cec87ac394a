"""Checks of `privacy`: the models, what they protect, suppression."""

from collections.abc import Iterator, Mapping, Sequence

from anonlib.config.model import Attribute, PrivacySection, ReleaseSection, bind_models
from anonlib.config.resolve import find_joint_columns
from anonlib.errors import Problem, did_you_mean
from anonlib.partition.controller import Controller
from anonlib.privacy import PrivacyModel
from anonlib.table.schema import Role


def check_models(
    attributes: Mapping[str, Attribute], privacy: PrivacySection, models: Sequence[PrivacyModel]
) -> Iterator[Problem]:
    """Checks the privacy models and the columns that they are about."""
    models = bind_models(models, attributes)
    if not any(model.type == "k_anonymity" for model in privacy.models):
        yield Problem("privacy.models", "k_anonymity is required: {type: k_anonymity, k: 10}")
    listed = privacy.acknowledge_unique
    for i, name in enumerate(() if isinstance(listed, bool) else listed):
        if name not in attributes:
            text = f"no column {name} under `attributes`{did_you_mean(name, attributes)}"
            yield Problem(f"privacy.acknowledge_unique.{i}", text)
    yield from check_protected(attributes, privacy.models, "privacy.models")
    for model in models:
        attribute = attributes.get(model.column or "")
        if model.by_hierarchy and attribute is not None and attribute.hierarchy is None:
            yield Problem(
                f"attributes.{model.column}.hierarchy",
                f"required by {model.type}: a file of the values and their generalizations",
            )
    known = find_joint_columns(models, attributes, joint=privacy.joint)
    if privacy.joint and len(known) < 2:
        yield Problem(
            "privacy.joint",
            "needs two sensitive columns, or a sensitive column and a target with a privacy "
            f"model; the config has {len(known)}",
        )
    elif privacy.joint and not any(model.column for model in models):
        yield Problem(
            "privacy.joint", "no privacy model protects a column: add one, or remove this"
        )


def check_protected(
    attributes: Mapping[str, Attribute], models: Sequence[PrivacyModel], where: str
) -> Iterator[Problem]:
    """Models may protect sensitive columns and the target only."""
    roles = {name: attribute.role for name, attribute in attributes.items()}
    sensitive = [name for name, role in roles.items() if role is Role.SENSITIVE]
    for i, model in enumerate(models):
        if "attribute" not in type(model).model_fields:
            continue
        place, attribute = f"{where}.{i}.attribute", model.column
        if not sensitive and (attribute is None or roles.get(attribute) is not Role.TARGET):
            yield Problem(
                place,
                f"no column has `role: sensitive`; {model.type} needs one, or `attribute: TARGET`",
            )
        elif attribute is not None and roles.get(attribute) not in (Role.SENSITIVE, Role.TARGET):
            yield Problem(
                place,
                f"must be a sensitive column or the target{did_you_mean(attribute, sensitive)}; "
                f"sensitive columns: {', '.join(sensitive)}",
            )


def check_suppression(privacy: PrivacySection, models: Sequence[PrivacyModel]) -> Iterator[Problem]:
    """Checks that the models allow the way of suppressing."""
    if privacy.suppress != "costliest":
        return
    if privacy.suppression_limit == 0:
        yield Problem("privacy.suppress", "costliest needs a suppression_limit above 0")
    if relative := name_relative(models):
        yield Problem(
            "privacy.suppress",
            f"by {relative}, cells are measured against all released rows, which change with every "
            "suppressed cell; use `needed`",
        )


def check_unit_models(
    unit: Sequence[str],
    models: Sequence[PrivacyModel],
    release: ReleaseSection,
    controller: Controller | None,
) -> Iterator[Problem]:
    """Models that count persons by their values need to know which rows belong to one person. This
    is unknown in the published table, and in the rows of controllers that are left out."""
    relative = name_relative(models)
    if unit and relative and release.mode == "append":
        yield Problem(
            "release.mode",
            f"{relative} compare cells with the persons of the whole table; with a `unit` those "
            "that are published can't be counted: publish all rows anew with `mode: overwrite`, or "
            "leave these models out",
        )
    if unit and relative and controller is not None and not controller.merge:
        yield Problem(
            "partition.steps.0.merge",
            f"must be true with a `unit` and {relative}, which compare cells with the persons of "
            "the whole table: these would change with every controller that is left out",
        )
    if release.mode != "append" or not release.acknowledge_returning:
        return
    counting = sorted({m.type for m in models if m.looks_at == "counts" or m.relative})
    if counting:
        yield Problem(
            "release.acknowledge_returning",
            f"{', '.join(counting)} may fail in the table where persons are in several batches, "
            "although each batch passes; remove this, and leave out the persons who return",
        )


def name_relative(models: Sequence[PrivacyModel]) -> str:
    """The names of the models that compare cells with the whole table."""
    return ", ".join(sorted({model.type for model in models if model.relative}))
