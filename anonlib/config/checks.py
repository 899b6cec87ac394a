"""Checks of a config beyond the types of its fields, before any table is read."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from anonlib import registry
from anonlib.config.environment import SQL_OPTIONS
from anonlib.config.model import (
    RESERVED_PREFIX,
    Attribute,
    Config,
    ContextSection,
    EvaluateSection,
    Gate,
    PrivacySection,
    PseudonymsSection,
    RecodeSection,
    ReleaseSection,
    SourceSection,
    SparkSection,
)
from anonlib.config.places import check_places
from anonlib.config.policies.judgement import check_policy
from anonlib.config.reader_options import check_reader_options
from anonlib.config.resolve import bind_models, find_joint_columns, find_ordered_columns
from anonlib.config.secrets import has_secret, is_secret_setting
from anonlib.errors import ConfigError, InputError, Problem, did_you_mean, problems_of
from anonlib.hierarchy import read_hierarchy
from anonlib.kernels import Kernel
from anonlib.measure import Measure
from anonlib.partition import TaskPartitioner, TreePartitioner
from anonlib.partition.controller import Controller
from anonlib.partition.tuples import TuplesPartitioner
from anonlib.privacy import PrivacyModel
from anonlib.recode import Recoder
from anonlib.table.schema import Role, Scale
from anonlib.text import is_share

#: Formats of files and folders.
FILES = ("delta", "parquet", "csv", "json", "orc")

#: Prefixes of Spark's settings that guard private data or belong to the operator.
GUARDED = ("spark.anonlib.", "spark.redaction.", "spark.sql.redaction.", "spark.io.encryption.")

#: Roles of columns that are not released.
HIDDEN = (Role.DROP, Role.IDENTIFIER)

#: URLs of Oracle's drivers. They have a user and a password before the @, and no //.
_ORACLE = re.compile(r":(?:thin|oci8?):(?!@)(.*)", re.IGNORECASE | re.DOTALL)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_BOUNDS = ("partitionColumn", "lowerBound", "upperBound")


def check_config(config: Config) -> list[Problem]:
    """All problems that can be found without the source. Reads the files of hierarchies."""
    attributes, models = config.attributes, config.all_models
    measures = () if config.evaluate is None else config.evaluate.measures
    return [
        *_check_source(config.source),
        *check_spark(config.spark),
        *_check_names(attributes),
        *_check_attributes(attributes, config.kernel, config.privacy, models),
        *_check_hierarchies(attributes, models),
        *_check_persons(attributes, config.one_row_per_person, config.unit),
        *_check_pseudonyms(
            attributes, config.pseudonyms, config.privacy, config.one_row_per_person
        ),
        *_check_keys(config.release, config.pseudonyms),
        *_check_ledger(config.release, config.one_row_per_person, config.unit),
        *_check_models(attributes, config.privacy, models),
        *_check_unit_models(config.unit, models, config.release, config.partition.controller),
        *_check_recoders(attributes, config.recode),
        *_check_steps(config),
        *_check_suppression(config.privacy, models),
        *_check_partition_by(config.release.partition_by, attributes),
        *check_places(config),
        *check_measures(measures, attributes),
        *check_gates(config.gates, config.evaluate, attributes),
        *_check_context(config.context, attributes, models, joint=config.privacy.joint),
        *check_policy(config),
        *_check_review(config.review, attributes),
    ]


def _check_source(source: SourceSection) -> Iterator[Problem]:
    if source.format != source.format.lower():
        yield Problem("source.format", "write it in lower case")
    if source.format in ("generator", "dataframe"):
        for field in ("path", "table", "version", "options", "secrets"):
            if getattr(source, field) not in (None, {}):
                yield Problem(
                    f"source.{field}", f"not used with `format: {source.format}`; remove it"
                )
    elif source.format == "table":
        if source.table is None:
            yield Problem("source.table", "required with `format: table`: a catalog table's name")
        if source.path is not None:
            yield Problem("source.path", "a catalog table is named by `table`; remove it")
    else:
        if source.table is not None:
            yield Problem("source.table", "only used with `format: table`; remove it")
        if source.format == "jdbc":
            yield from check_database(source)
        elif not source.path and _needs_path(source):
            yield Problem("source.path", f"required with `format: {source.format}`")
    if source.format != "generator":
        for field in sorted({"rows", "seed"} & source.model_fields_set):
            yield Problem(f"source.{field}", "only used with `format: generator`; remove it")
    if source.version is not None and source.format not in ("delta", "table"):
        yield Problem("source.version", "only Delta tables have versions; remove it")
    yield from check_reader_options(source)
    yield from check_secrets(source)


def _needs_path(source: SourceSection) -> bool:
    """Whether `path` is required: no option says where the rows are."""
    if source.format in FILES:
        return "path" not in map(str.lower, source.options)
    return not source.options


def check_spark(spark: SparkSection) -> Iterator[Problem]:
    """Problems: settings of Spark that neither a config nor a sweep file may have."""
    for name in spark.conf:
        if name.lower().startswith(GUARDED):
            yield Problem(f"spark.conf.{name}", "a config may not set this; remove it")


def _check_names(attributes: Mapping[str, Attribute]) -> Iterator[Problem]:
    if not attributes:
        yield Problem("attributes", "give every column of the source a role")
    folded = Counter(name.casefold() for name in attributes)
    for name in attributes:
        where = f"attributes.{name}"
        if folded[name.casefold()] > 1:
            yield Problem(where, "another column differs from this one in case only; rename one")
        if name.startswith(RESERVED_PREFIX):
            yield Problem(
                where, f"names that begin with {RESERVED_PREFIX} are reserved; rename the column"
            )
        if not name.strip():
            yield Problem("attributes", "a column name is blank; rename the column")


def _check_attributes(
    attributes: Mapping[str, Attribute],
    kernel: Kernel,
    privacy: PrivacySection,
    models: Sequence[PrivacyModel],
) -> Iterator[Problem]:
    by_role: Counter[Role] = Counter(a.role for a in attributes.values())
    if not by_role[Role.QUASI_IDENTIFIER]:
        yield Problem("attributes", "at least one column must have `role: quasi_identifier`")
    if by_role[Role.TARGET] > 1:
        yield Problem(
            "attributes", f"{by_role[Role.TARGET]} columns have `role: target`; at most one may"
        )
    columns = {model.column for model in privacy.models}
    ordered = find_ordered_columns(models, attributes)
    for name, attribute in attributes.items():
        yield from _check_scale(kernel, name, attribute)
        where = f"attributes.{name}"
        if attribute.order is not None:
            if attribute.scale is not Scale.ORDINAL and name not in ordered:
                yield Problem(
                    f"{where}.order",
                    "only ordinal columns, and columns under a model that goes by their order "
                    "(t_closeness with `distance: ordered`), have an order; remove it",
                )
            if len(attribute.order) < 2 or len(set(attribute.order)) < len(attribute.order):
                yield Problem(f"{where}.order", "give at least two categories, each once")
        if attribute.pseudonym and attribute.role is not Role.IDENTIFIER:
            yield Problem(f"{where}.pseudonym", "only identifiers can become pseudonyms; remove it")
        if attribute.public and attribute.role is not Role.TARGET:
            yield Problem(f"{where}.public", "only a target can be public; remove it")
        if attribute.role is Role.TARGET and not attribute.public and name not in columns:
            yield Problem(
                f"{where}.public",
                "the target is published: set `public: true` to accept that, or protect the "
                "column with a privacy model",
            )


def _check_scale(kernel: Kernel, name: str, attribute: Attribute) -> Iterator[Problem]:
    where = f"attributes.{name}.scale"
    quasi = attribute.role is Role.QUASI_IDENTIFIER
    if quasi and attribute.scale is None:
        yield Problem(where, f"required; one of: {', '.join(Scale)}")
    elif quasi and _must_be_nominal(kernel, attribute):
        yield Problem(where, f"must be nominal: kernel {kernel.type} generalizes along hierarchies")
    if attribute.role is Role.TARGET and attribute.scale is Scale.ORDINAL:
        yield Problem(where, "a target must be continuous or nominal")
    elif not quasi and attribute.role is not Role.TARGET and attribute.scale is not None:
        yield Problem(where, "only quasi-identifiers and the target have a scale; remove it")


def _must_be_nominal(kernel: Kernel, attribute: Attribute) -> bool:
    return kernel.needs_nominal and attribute.scale is not Scale.NOMINAL


def _check_hierarchies(
    attributes: Mapping[str, Attribute], models: Sequence[PrivacyModel]
) -> Iterator[Problem]:
    modelled = {model.column for model in models}
    for name, attribute in attributes.items():
        where = f"attributes.{name}.hierarchy"
        if attribute.hierarchy is None:
            continue
        protected = attribute.role is Role.SENSITIVE or (
            attribute.role is Role.TARGET and name in modelled
        )
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not Scale.NOMINAL:
            yield Problem(where, "only nominal columns have a hierarchy; remove it")
        elif attribute.role is not Role.QUASI_IDENTIFIER and not protected:
            yield Problem(
                where,
                "only quasi-identifiers, sensitive columns and a target with a privacy model "
                "have a hierarchy; remove it",
            )
        else:
            try:
                hierarchy = read_hierarchy(attribute.hierarchy)
                if protected:
                    hierarchy.folded()
            except InputError as error:
                yield Problem(where, str(error))


def _check_persons(
    attributes: Mapping[str, Attribute], one_row_per_person: bool | str, unit: Sequence[str]
) -> Iterator[Problem]:
    if bool(one_row_per_person) == bool(unit):
        yield Problem(
            "one_row_per_person",
            "say how persons are counted, by exactly one of: `one_row_per_person: COLUMN` (a "
            "unique identifier), `one_row_per_person: true` (a declaration), `unit: [COLUMNS]`",
        )
    if isinstance(one_row_per_person, str):
        attribute = attributes.get(one_row_per_person)
        if attribute is None or attribute.role is not Role.IDENTIFIER:
            yield Problem(
                "one_row_per_person", "must be true, or name a column with `role: identifier`"
            )
    if len(set(unit)) < len(unit):
        yield Problem("unit", "a column is named twice; remove one")
    for i, name in enumerate(unit):
        attribute = attributes.get(name)
        if attribute is None:
            near = did_you_mean(name, attributes)
            yield Problem(f"unit.{i}", f"no such column under `attributes`{near}")
        elif attribute.role not in HIDDEN:
            yield Problem(f"unit.{i}", "must name a column with `role: identifier` or `role: drop`")


def _check_pseudonyms(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    privacy: PrivacySection,
    one_row_per_person: bool | str,
) -> Iterator[Problem]:
    """Pseudonyms need a key. Rows with the same pseudonym are linked, but models count the persons
    of each class on its own. So pseudonyms must be unique, or the links must be acknowledged."""
    names = [n for n, a in attributes.items() if a.role is Role.IDENTIFIER and a.pseudonym]
    if names and not pseudonyms:
        yield Problem(
            "pseudonyms", "required by an identifier with `pseudonym: true`: key_env or key_file"
        )
    if privacy.acknowledge_linked:
        return
    for name in names:
        if name != one_row_per_person:
            yield Problem(
                f"attributes.{name}.pseudonym",
                "rows with one pseudonym are linked: who knows some of them finds the others. If "
                "no two rows have the same, name the column in `one_row_per_person`; else set "
                "privacy.acknowledge_linked: true",
            )


def _check_keys(release: ReleaseSection, pseudonyms: PseudonymsSection | None) -> Iterator[Problem]:
    sections = {"release.ledger": release.ledger, "release.backlog": release.backlog}
    for where, section in {"pseudonyms": pseudonyms, **sections}.items():
        if section is not None and (section.key_env is None) == (section.key_file is None):
            yield Problem(where, "give exactly one of key_env and key_file")
    for where, section in sections.items():
        for field in ("key_env", "key_file"):
            key = getattr(section, field, None)
            if key is not None and key == getattr(pseudonyms, field, None):
                yield Problem(f"{where}.{field}", "the pseudonyms' key; make another one for this")


def _check_ledger(
    release: ReleaseSection, one_row_per_person: bool | str, unit: Sequence[str]
) -> Iterator[Problem]:
    """Checks the ledger, by which later releases recognise persons."""
    if release.ledger is not None and one_row_per_person is True:
        yield Problem(
            "release.ledger",
            "`one_row_per_person: true` names nobody; name a column or a `unit`, or remove this",
        )
    if release.mode != "append" or release.ledger is not None:
        return
    if unit:
        yield Problem(
            "release.ledger",
            "required by `mode: append` with a `unit`, to count the persons published before",
        )
    elif not release.acknowledge_returning:
        yield Problem(
            "release.ledger",
            "required by `mode: append`, to recognise persons who were released before; or set "
            "`acknowledge_returning: true`",
        )


def _check_models(
    attributes: Mapping[str, Attribute], privacy: PrivacySection, models: Sequence[PrivacyModel]
) -> Iterator[Problem]:
    models = bind_models(models, attributes)
    if not any(model.type == "k_anonymity" for model in privacy.models):
        yield Problem("privacy.models", "k_anonymity is required: {type: k_anonymity, k: 10}")
    listed = privacy.acknowledge_unique
    for i, name in enumerate(() if isinstance(listed, bool) else listed):
        if name not in attributes:
            text = f"no column {name} under `attributes`{did_you_mean(name, attributes)}"
            yield Problem(f"privacy.acknowledge_unique.{i}", text)
    yield from _check_protected(attributes, privacy.models, "privacy.models")
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


def _check_protected(
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


def _check_recoders(
    attributes: Mapping[str, Attribute], recode: RecodeSection
) -> Iterator[Problem]:
    for scale in Scale:
        yield from _check_recoder_scale(getattr(recode, scale), scale, f"recode.{scale}")
    for name, recoder in recode.columns.items():
        where = f"recode.columns.{name}"
        attribute = attributes.get(name)
        if attribute is None or attribute.role is not Role.QUASI_IDENTIFIER:
            quasi = [n for n, a in attributes.items() if a.role is Role.QUASI_IDENTIFIER]
            near = did_you_mean(name, quasi)
            yield Problem(where, f"must name a column with `role: quasi_identifier`{near}")
        elif attribute.scale is not None:
            yield from _check_recoder_scale(recoder, attribute.scale, where)
    for name, attribute, recoder in _column_recoders(attributes, recode):
        if recoder.needs_hierarchy and attribute.hierarchy is None:
            yield Problem(
                f"attributes.{name}.hierarchy",
                f"required by recoder {recoder.type}: a file of the values and their "
                "generalizations",
            )


def _check_recoder_scale(recoder: Recoder, scale: Scale, where: str) -> Iterator[Problem]:
    if scale not in recoder.scales:
        yield Problem(
            where, f"recoder {recoder.type} is for scale {', '.join(sorted(recoder.scales))} only"
        )


def _column_recoders(
    attributes: Mapping[str, Attribute], recode: RecodeSection
) -> Iterator[tuple[str, Attribute, Recoder]]:
    """Yields name, attribute and recoder of the quasi-identifiers that have a scale."""
    for name, attribute in attributes.items():
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not None:
            yield name, attribute, recode.of(name, attribute.scale)


def _check_suppression(
    privacy: PrivacySection, models: Sequence[PrivacyModel]
) -> Iterator[Problem]:
    if privacy.suppress != "costliest":
        return
    if privacy.suppression_limit == 0:
        yield Problem("privacy.suppress", "costliest needs a suppression_limit above 0")
    if relative := _relative(models):
        yield Problem(
            "privacy.suppress",
            f"{relative} measure cells against all released rows, which change with every "
            "suppressed cell; use `needed`",
        )


def _check_unit_models(
    unit: Sequence[str],
    models: Sequence[PrivacyModel],
    release: ReleaseSection,
    controller: Controller | None,
) -> Iterator[Problem]:
    """Models that count persons by their values need to know which rows belong to one person. This
    is unknown in the published table, and in the rows of controllers that are left out."""
    relative = _relative(models)
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
    counting = ", ".join(sorted({m.type for m in models if m.looks_at == "counts"}))
    if unit and counting and release.mode == "append" and release.acknowledge_returning:
        yield Problem(
            "release.acknowledge_returning",
            f"{counting} may fail in the table although they hold in each batch, if persons of a "
            "`unit` are in several; remove this, and leave out the persons that return",
        )


def _relative(models: Sequence[PrivacyModel]) -> str:
    """The names of the models that compare cells with the whole table."""
    return ", ".join(sorted({model.type for model in models if model.relative}))


def _check_context(
    context: ContextSection,
    attributes: Mapping[str, Attribute],
    models: Sequence[PrivacyModel],
    *,
    joint: bool,
) -> Iterator[Problem]:
    """What attackers may know and is released must be among what models count: quasi-identifiers,
    and with `joint` the sensitive columns."""
    counted = find_joint_columns(models, attributes, joint=joint)
    for i, name in enumerate(context.may_know):
        where, attribute = f"context.may_know.{i}", attributes.get(name)
        if attribute is None:
            near = did_you_mean(name, attributes)
            yield Problem(where, f"no column {name} under `attributes`{near}")
        elif attribute.role in (Role.SENSITIVE, Role.TARGET) and name not in counted:
            yield Problem(
                where,
                f"{name} is released and no model counts on attackers who know it: set "
                "privacy.joint: true with a model that protects it, make it a quasi-identifier, or "
                "drop it",
            )
        elif attribute.role is Role.INSENSITIVE:
            yield Problem(
                where,
                f"{name} is released as insensitive, and attackers may know it: make it a "
                "quasi-identifier, or drop it",
            )


def _check_partition_by(
    names: Sequence[str], attributes: Mapping[str, Attribute]
) -> Iterator[Problem]:
    released = {name for name, attribute in attributes.items() if attribute.role not in HIDDEN}
    for i, name in enumerate(names):
        if name not in released:
            yield Problem(f"release.partition_by.{i}", "not a column that is released")
        if name in names[:i]:
            yield Problem(f"release.partition_by.{i}", "this column is named twice; remove one")


def _check_steps(config: Config) -> Iterator[Problem]:
    steps = config.partition.steps
    if not steps:
        yield Problem("partition.steps", "give at least one step; `{type: single}` is one block")
    if config.kernel.finds_levels and not config.partition.by_tuples:
        yield Problem(
            "partition.steps",
            f"kernel {config.kernel.type} finds one level for the whole table: use tuples",
        )
    for i, step in enumerate(steps):
        where = f"partition.steps.{i}"
        if isinstance(step, Controller):
            if i:
                yield Problem(where, "controller must be the first step")
            yield from _check_controller(step, config.attributes, where)
        if isinstance(step, TuplesPartitioner):
            yield from _check_tuples(config, where)
        if isinstance(step, TaskPartitioner) and i < len(steps) - 1:
            yield Problem(where, f"{step.type} works inside the blocks: it must be the last step")
        if step.max_block_rows is not None and any(isinstance(s, TreePartitioner) for s in steps):
            yield Problem(where, f"{step.type} keeps the table whole; remove the steps that cut it")


def _check_tuples(config: Config, where: str) -> Iterator[Problem]:
    """Problems: settings that one search over the tuples of the whole table does not support."""
    kernel = config.kernel
    if len(config.partition.steps) > 1:
        yield Problem(where, "tuples searches the whole table: it must be the only step")
    if not kernel.takes_weights:
        yield Problem(
            "kernel.type",
            f"kernel {kernel.type} does not work with tuples; these do: "
            f"{_weighted_types('kernel')}",
        )
    if config.unit:
        yield Problem(where, "tuples counts rows, but a unit has several; use kmeans")
    relative = _relative(config.all_models)
    if kernel.suppresses and config.privacy.suppression_limit and relative:
        yield Problem(
            "privacy.suppression_limit",
            f"{relative} measure cells against all released rows, which change when "
            f"{kernel.type} suppresses some; set it to 0",
        )
    if config.privacy.suppress != "needed":
        yield Problem("privacy.suppress", "costliest does not work with tuples; use `needed`")
    for name, attribute, recoder in _column_recoders(config.attributes, config.recode):
        if _must_be_nominal(kernel, attribute):
            continue
        if not recoder.takes_weights:
            yield Problem(
                f"recode.columns.{name}",
                f"recoder {recoder.type} does not work with tuples; these do: "
                f"{_weighted_types('recoder')}",
            )
        elif kernel.finds_levels and "level" not in type(recoder).model_fields:
            yield Problem(
                f"recode.columns.{name}",
                f"kernel {kernel.type} finds levels of hierarchies; use recoder lca",
            )


def _weighted_types(family: str) -> str:
    """The names of the kernels or recoders that take rows with weights."""
    known = registry.plugins(family).items()
    names = (name for name, p in known if issubclass(p, (Kernel, Recoder)) and p.takes_weights)
    return ", ".join(names)


def _check_controller(
    step: Controller, attributes: Mapping[str, Attribute], where: str
) -> Iterator[Problem]:
    attribute = attributes.get(step.column)
    if attribute is None:
        text = f"no column {step.column} under `attributes`{did_you_mean(step.column, attributes)}"
        yield Problem(f"{where}.column", text)
    elif attribute.role not in (Role.QUASI_IDENTIFIER, Role.DROP):
        yield Problem(
            f"{where}.column",
            "the column must have `role: quasi_identifier`, or `role: drop`, which does not "
            "publish it",
        )
    for name, models in step.models.items():
        yield from _check_protected(attributes, models, f"{where}.models.{name}")


def check_secrets(source: SourceSection) -> Iterator[Problem]:
    """Problems: secrets in the config itself, and wrong names of their variables."""
    for name, value in source.options.items():
        sql = name.lower() in SQL_OPTIONS  # in SQL, `token = 1` is a condition
        if is_secret_setting(name):
            yield Problem(
                f"source.options.{name}",
                "a secret does not belong in a config: remove it, and name an environment "
                "variable that has it under source.secrets",
            )
        elif (has_secret(value) and not sql) or (name.lower() == "url" and _has_user(value)):
            yield Problem(
                f"source.options.{name}",
                "has a user or a password in it: give the user as an option of its own, and "
                "name an environment variable that has the password under source.secrets",
            )
    options = {name.lower() for name in source.options}
    for name, variable in source.secrets.items():
        where = f"source.secrets.{name}"
        if name.lower() in options:
            yield Problem(where, "is under source.options too; remove one of them")
        if not _VARIABLE.fullmatch(variable):  # it may be the secret itself: never shown
            yield Problem(
                where, "must be the name of an environment variable, of letters, digits and _"
            )


def _has_user(url: str) -> bool:
    """Whether the URL of a database has a user or a password before its host. A password may
    contain a slash."""
    host = re.split(r"[?#;]", url.partition("//")[2], maxsplit=1)[0]
    oracle = _ORACLE.search(url)
    return "@" in host or (oracle is not None and "@" in oracle[1])


def check_database(source: SourceSection) -> Iterator[Problem]:
    """Checks the options of `format: jdbc`. Spark ignores the case of their names."""
    options = {name.lower(): text for name, text in source.options.items()}
    where = "source.options"
    if source.path is not None:
        yield Problem("source.path", "a database is named by options.url; remove it")
    if not options.get("url", "").startswith("jdbc:"):
        yield Problem(
            f"{where}.url",
            "required with `format: jdbc`, for example jdbc:postgresql://HOST/DATABASE",
        )
    if ("dbtable" in options) == ("query" in options):
        yield Problem(
            where, "give exactly one of dbtable (a table, or `(SELECT ...) AS t`) and query"
        )
    for name in ("numPartitions", "fetchsize"):
        text = options.get(name.lower(), "1")
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            yield Problem(f"{where}.{name}", "must be a whole number, at least 1")
    yield from _check_parts(options)


def _check_parts(options: Mapping[str, str]) -> Iterator[Problem]:
    """Checks the options for reading a database's table in parts. Names are in lower case."""
    wanted = [*_BOUNDS, "numPartitions"]
    present = [name for name in wanted if name.lower() in options]
    for name in wanted:
        if present and name not in present:
            yield Problem(
                f"source.options.{name}",
                f"required with {', '.join(present)}: to read a table in parts, give all four",
            )
    if "query" in options and "partitioncolumn" in options:
        yield Problem(
            "source.options.query",
            "a query can't be read in parts: use `dbtable: (SELECT ...) AS t` instead",
        )
    low, high = (_whole_number(options.get(name.lower(), "")) for name in _BOUNDS[1:])
    if low is not None and high is not None and low >= high:
        yield Problem("source.options.lowerBound", "must be less than upperBound")


def _whole_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,30}", text) else None


def check_gates(
    gates: Sequence[Gate], evaluate: EvaluateSection | None, attributes: Mapping[str, Attribute]
) -> Iterator[Problem]:
    """Checks the bounds of gates, and whether a measure gives their figure."""
    measures = () if evaluate is None else evaluate.measures
    measure_of = {f"{m.type}.{name}": m for m in measures for name in m.names}
    for i, gate in enumerate(gates):
        where = f"gates.{i}"
        least, most = gate.bounds
        if gate.at_most is None and gate.at_least is None:
            yield Problem(where, "give `at_most`, `at_least` or both")
        elif least > most:
            yield Problem(where, "`at_least` is above `at_most`: nothing could pass")
        if evaluate is None:
            yield Problem(where, "needs a measure; add `evaluate`")
        elif gate.figure not in measure_of:
            near = did_you_mean(gate.figure, measure_of)
            measure = gate.figure.partition(".")[0]
            own = [name for name in measure_of if name.startswith(f"{measure}.")]
            whose = f"{measure} has" if own else "they have"
            yield Problem(
                f"{where}.figure",
                f"no measure under `evaluate` has this figure{near or ';'} {whose}: "
                f"{', '.join(sorted(own or measure_of))}",
            )
        else:
            yield from _check_share(gate, measure_of[gate.figure], where)
            if gate.of is not None:
                yield from _check_subject(
                    measure_of[gate.figure], gate.of, attributes, f"{where}.of"
                )


def _check_share(gate: Gate, measure: Measure, where: str) -> Iterator[Problem]:
    """Checks that the bounds of a share are shares, and no percentages."""
    if is_share(measure.names[gate.figure.partition(".")[2]]):
        for name, bound in (("at_most", gate.at_most), ("at_least", gate.at_least)):
            if bound is not None and not 0 <= bound <= 1:
                yield Problem(f"{where}.{name}", "this figure is from 0 to 1: 0.05 is 5 %")


def _check_subject(
    measure: Measure, subject: str, attributes: Mapping[str, Attribute], where: str
) -> Iterator[Problem]:
    """Checks the column, model or estimator that a gate names."""
    if measure.subjects == "table":
        yield Problem(where, f"figures of {measure.type} are about the whole table; remove it")
    elif measure.subjects == "columns":
        released = [name for name, a in attributes.items() if a.role not in HIDDEN]
        if subject not in released:
            yield Problem(where, f"must be a column that is released: {', '.join(released)}")


def _check_review(review: Sequence[str], attributes: Mapping[str, Attribute]) -> Iterator[Problem]:
    """Checks that the list of what is to be looked at names fields that there are."""
    places = [*[f"attributes.{name}" for name in attributes], *Config.model_fields]
    for i, place in enumerate(review):
        section = place.partition(".")[0]
        if place not in places and (section == "attributes" or section not in places):
            yield Problem(
                f"review.{i}",
                f"names no field of this config{did_you_mean(place, places)}; take it off the list",
            )


def check_expiry(context: ContextSection) -> Iterator[Problem]:
    """Checks that the last day of a release is not over."""
    if context.expires is not None and context.expires < datetime.now(UTC).date():
        text = "is over: nobody may use the release; name a later day"
        yield Problem("context.expires", text)


def require_current(context: ContextSection) -> None:
    """Raises ConfigError if the last day of a release is over."""
    if problems := [*check_expiry(context)]:
        raise ConfigError(problems)


def require_reviewed(review: Sequence[str]) -> None:
    """Raises ConfigError if guesses of a draft are left that nobody has looked at."""
    if review:
        raise ConfigError(
            [
                Problem(
                    "review",
                    f"a draft: nobody has looked at {', '.join(review)}; correct each, and take "
                    "its name off this list",
                )
            ]
        )


def _check_other_source(source: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Checks the table that a measure reads besides the source."""
    try:
        section = SourceSection.model_validate(dict(source))
    except ValidationError as error:
        yield from problems_of(error, SourceSection, f"{where}.source")
        return
    if section.format in ("dataframe", "jdbc", "generator"):
        text = "must be a table or files: delta, table, parquet, csv, json, orc"
        yield Problem(f"{where}.source.format", text)
        return
    for problem in _check_source(section):
        yield Problem(f"{where}.{problem.where}", problem.text)


def check_measures(
    measures: Sequence[Measure], attributes: Mapping[str, Attribute]
) -> Iterator[Problem]:
    """Checks that each type of measure is named once, and the columns that it names."""
    types = [measure.type for measure in measures]
    for i, measure in enumerate(measures):
        if measure.type in types[:i]:
            yield Problem(f"evaluate.measures.{i}", f"{measure.type} is named twice; remove one")
        if measure.other_source is not None:
            yield from _check_other_source(measure.other_source, f"evaluate.measures.{i}")
        for name, roles in measure.named_columns.items():
            if name not in attributes or attributes[name].role not in roles:
                known = [n for n, a in attributes.items() if a.role in roles]
                yield Problem(
                    f"evaluate.measures.{i}.columns",
                    f"{name} must be a column of role {', '.join(roles)}"
                    f"{did_you_mean(name, known)}; there are: {', '.join(known)}",
                )
