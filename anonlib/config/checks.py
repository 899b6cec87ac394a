"""What a config must satisfy beyond the types of its fields, before any table is looked at.

What a config says of databases, secrets and catalogs, checked without them.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from anonlib import registry
from anonlib.config.environment import SQL_OPTIONS
from anonlib.config.model import (
    RESERVED_PREFIX,
    Attribute,
    Config,
    Gate,
    SourceSection,
    SparkSection,
)
from anonlib.config.places import check_places
from anonlib.config.resolve import bind_models, joint_columns
from anonlib.config.secrets import has_secret, is_secret_setting
from anonlib.errors import InputError, Problem
from anonlib.hierarchy import read_hierarchy
from anonlib.kernels import Kernel
from anonlib.measure import Measure
from anonlib.partition import TaskPartitioner, TreePartitioner
from anonlib.partition.controller import Controller
from anonlib.partition.tuples import Tuples
from anonlib.privacy import PrivacyModel
from anonlib.recode import Recoder
from anonlib.table.schema import Role, Scale

#: Formats of files and folders.
FILES = ("delta", "parquet", "csv", "json", "orc")

#: Settings of Spark that guard what is private, or that are the operator's.
GUARDED = ("spark.anonlib.", "spark.redaction.", "spark.sql.redaction.", "spark.io.encryption.")


def check_config(config: Config) -> list[Problem]:
    """All problems that are visible without the source."""
    return [
        *_source(config),
        *check_spark(config.spark),
        *_names(config),
        *_attributes(config),
        *_hierarchies(config),
        *_persons(config),
        *_keys(config),
        *_later(config),
        *_models(config),
        *_recoders(config),
        *_steps(config),
        *_others(config),
        *check_places(config),
        *check_measures(config),
        *check_gates(config),
    ]


def _source(config: Config) -> Iterator[Problem]:
    source = config.source
    if source.format != source.format.lower():
        yield Problem("source.format", "write it in lower case")
    if source.format in ("generator", "dataframe"):
        for field in ("path", "table", "version", "options", "secrets"):
            if getattr(source, field) not in (None, {}):
                text = f"a {source.format} has no such thing; remove it"
                yield Problem(f"source.{field}", text)
    elif source.format == "table":
        if source.table is None:
            yield Problem("source.table", "required with `format: table`: a catalog table's name")
        if source.path is not None:
            yield Problem("source.path", "a catalog table is named by `table`; remove it")
    else:
        if source.table is not None:
            yield Problem("source.table", "only with `format: table`")
        if source.format == "jdbc":
            yield from check_database(source)
        elif not source.path and _needs_path(source):
            yield Problem("source.path", f"required with `format: {source.format}`")
    if source.format != "generator":
        for field in sorted({"rows", "seed"} & source.model_fields_set):
            yield Problem(f"source.{field}", "only with `format: generator`; remove it")
    if source.version is not None and source.format not in ("delta", "table"):
        yield Problem("source.version", "only Delta tables have versions")
    yield from check_secrets(source)


def _needs_path(source: SourceSection) -> bool:
    """Whether nothing says where the rows are."""
    if source.format in FILES:
        return "path" not in map(str.lower, source.options)
    return not source.options


def check_spark(spark: SparkSection) -> Iterator[Problem]:
    """The settings of Spark that a config or a sweep file may not make."""
    for name in spark.conf:
        if name.lower().startswith(GUARDED):
            yield Problem(f"spark.conf.{name}", "is not for configs to set; remove it")


def _names(config: Config) -> Iterator[Problem]:
    if not config.attributes:
        yield Problem("attributes", "give every column of the source a role")
    folded = Counter(name.casefold() for name in config.attributes)
    for name in config.attributes:
        where = f"attributes.{name}"
        if folded[name.casefold()] > 1:
            yield Problem(where, "another column differs from this one in case only; rename one")
        if name.startswith(RESERVED_PREFIX):
            yield Problem(where, f"names that begin with {RESERVED_PREFIX} are anonlib's own")
        if not name.strip():
            yield Problem("attributes", "a column name is blank")


def _attributes(config: Config) -> Iterator[Problem]:
    by_role: Counter[Role] = Counter(a.role for a in config.attributes.values())
    if not by_role[Role.QUASI_IDENTIFIER]:
        yield Problem("attributes", "at least one column must be a quasi_identifier")
    if by_role[Role.TARGET] > 1:
        yield Problem("attributes", f"{by_role[Role.TARGET]} targets; at most one is allowed")
    modelled = {model.column for model in config.privacy.models}
    for name, attribute in config.attributes.items():
        where = f"attributes.{name}"
        quasi = attribute.role is Role.QUASI_IDENTIFIER
        if quasi and attribute.scale is None:
            yield Problem(f"{where}.scale", f"required; one of: {', '.join(Scale)}")
        elif quasi and _must_be_nominal(config, attribute):
            text = f"kernel {config.kernel.type} generalizes along hierarchies; make it nominal"
            yield Problem(f"{where}.scale", text)
        if attribute.role is Role.TARGET and attribute.scale is Scale.ORDINAL:
            yield Problem(f"{where}.scale", "a target is continuous or nominal")
        elif not quasi and attribute.role is not Role.TARGET and attribute.scale is not None:
            text = "only quasi-identifiers and the target have a scale; remove it"
            yield Problem(f"{where}.scale", text)
        if attribute.order is not None:
            if attribute.scale is not Scale.ORDINAL:
                yield Problem(f"{where}.order", "only ordinal columns have an order; remove it")
            if len(attribute.order) < 2 or len(set(attribute.order)) < len(attribute.order):
                yield Problem(f"{where}.order", "at least two categories, each once")
        if attribute.pseudonym and attribute.role is not Role.IDENTIFIER:
            yield Problem(f"{where}.pseudonym", "only identifiers can become pseudonyms")
        if attribute.public and attribute.role is not Role.TARGET:
            yield Problem(f"{where}.public", "only a target is acknowledged as public")
        if attribute.role is Role.TARGET and not attribute.public and name not in modelled:
            text = "the target is published: acknowledge it (true), or give it a privacy model"
            yield Problem(f"{where}.public", text)


def _must_be_nominal(config: Config, attribute: Attribute) -> bool:
    return config.kernel.needs_hierarchies and attribute.scale is not Scale.NOMINAL


def _hierarchies(config: Config) -> Iterator[Problem]:
    modelled = {model.column for model in config.all_models}
    for name, attribute in config.attributes.items():
        where = f"attributes.{name}.hierarchy"
        if attribute.hierarchy is None:
            continue
        protected = attribute.role is Role.SENSITIVE or (
            attribute.role is Role.TARGET and name in modelled
        )
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not Scale.NOMINAL:
            yield Problem(where, "only nominal columns have a hierarchy; remove it")
        elif attribute.role is not Role.QUASI_IDENTIFIER and not protected:
            text = "only quasi-identifiers, sensitive columns and a target with a privacy model "
            yield Problem(where, f"{text}have a hierarchy; remove it")
        else:
            try:
                found = read_hierarchy(attribute.hierarchy)
                if protected:
                    found.folded()
            except InputError as error:
                yield Problem(where, str(error))


def _persons(config: Config) -> Iterator[Problem]:
    column = config.one_row_per_person
    if bool(column) == bool(config.unit):
        text = (
            "say how persons are counted, by exactly one of: `one_row_per_person: COLUMN` (a "
            "unique identifier), `one_row_per_person: true` (a declaration), `unit: [COLUMNS]`"
        )
        yield Problem("one_row_per_person", text)
    if isinstance(column, str):
        attribute = config.attributes.get(column)
        if attribute is None or attribute.role is not Role.IDENTIFIER:
            yield Problem("one_row_per_person", "names a column with role identifier, or is true")
    if len(set(config.unit)) < len(config.unit):
        yield Problem("unit", "a column is named twice")
    for i, name in enumerate(config.unit):
        attribute = config.attributes.get(name)
        if attribute is None:
            yield Problem(f"unit.{i}", "no such column under `attributes`")
        elif attribute.role not in (Role.IDENTIFIER, Role.DROP):
            yield Problem(f"unit.{i}", "a unit column has role identifier or drop")
    yield from _pseudonyms(config)


def _pseudonyms(config: Config) -> Iterator[Problem]:
    """What is wrong with pseudonyms: a key is needed; and those that several rows may have link
    these, while models count the persons of each class by itself."""
    found = [n for n, a in config.attributes.items() if a.role is Role.IDENTIFIER and a.pseudonym]
    if found and not config.pseudonyms:
        text = "required since an identifier has `pseudonym: true`: key_env or key_file"
        yield Problem("pseudonyms", text)
    if config.privacy.acknowledge_linked:
        return
    for name in found:
        if name != config.one_row_per_person:
            text = "rows with one pseudonym are linked, so who knows some of them finds the others;"
            text += " name it in `one_row_per_person`, if no two rows have the same, or set "
            yield Problem(f"attributes.{name}.pseudonym", f"{text}privacy.acknowledge_linked: true")


def _keys(config: Config) -> Iterator[Problem]:
    release, pseudonyms = config.release, config.pseudonyms
    sections = {"release.ledger": release.ledger, "release.backlog": release.backlog}
    for where, section in {"pseudonyms": pseudonyms, **sections}.items():
        if section is not None and (section.key_env is None) == (section.key_file is None):
            yield Problem(where, "exactly one of key_env and key_file")
    for where, section in sections.items():
        for field in ("key_env", "key_file"):
            key = getattr(section, field, None)
            if key is not None and key == getattr(pseudonyms, field, None):
                yield Problem(f"{where}.{field}", "the pseudonyms' key; make another one for this")


def _later(config: Config) -> Iterator[Problem]:
    """What releases after the first need."""
    release = config.release
    if release.ledger is not None and config.one_row_per_person is True:
        text = "`one_row_per_person: true` names nobody; name a column or a `unit`, or remove this"
        yield Problem("release.ledger", text)
    if release.mode != "append" or release.ledger is not None:
        return
    if config.unit:
        text = "required by `mode: append` with a `unit`: who counted the published persons is here"
        yield Problem("release.ledger", text)
    elif not release.acknowledge_returning:
        text = (
            "required by `mode: append`, to recognise persons who were released before; or set "
            "`acknowledge_returning: true`"
        )
        yield Problem("release.ledger", text)


def _models(config: Config) -> Iterator[Problem]:
    if not any(model.type == "k_anonymity" for model in config.privacy.models):
        yield Problem("privacy.models", "k_anonymity is required: {type: k_anonymity, k: 10}")
    yield from _attributes_of(config, config.privacy.models, "privacy.models")
    yield from _without_hierarchy(config)
    yield from _joint(config)


def _attributes_of(config: Config, models: Sequence[PrivacyModel], where: str) -> Iterator[Problem]:
    """What is wrong with the columns that models look at."""
    roles = {name: attribute.role for name, attribute in config.attributes.items()}
    sensitive = [name for name, role in roles.items() if role is Role.SENSITIVE]
    for i, model in enumerate(models):
        if "attribute" not in type(model).model_fields:
            continue
        place, attribute = f"{where}.{i}.attribute", model.column
        if attribute is None and not sensitive:
            yield Problem(place, "no column is sensitive; name one, or remove the model")
        elif attribute is not None and roles.get(attribute) not in (Role.SENSITIVE, Role.TARGET):
            allowed = ", ".join(sensitive) or "none is"
            yield Problem(place, f"must be a sensitive column or the target; sensitive: {allowed}")


def _joint(config: Config) -> Iterator[Problem]:
    known = joint_columns(config)
    if config.privacy.joint and len(known) < 2:
        text = (
            f"takes two sensitive columns, or one and a target with a model; there is {len(known)}"
        )
        yield Problem("privacy.joint", text)
    elif config.privacy.joint and not any(
        m.column for m in bind_models(config.all_models, config.attributes)
    ):
        yield Problem("privacy.joint", "no model protects a column: add one, or remove this")


def _without_hierarchy(config: Config) -> Iterator[Problem]:
    """Columns that a model measures by a hierarchy which they lack."""
    for model in bind_models(config.all_models, config.attributes):
        attribute = config.attributes.get(model.column or "")
        if model.by_hierarchy and attribute is not None and attribute.hierarchy is None:
            text = f"required by {model.type}: a file of the values and their generalizations"
            yield Problem(f"attributes.{model.column}.hierarchy", text)


def _recoders(config: Config) -> Iterator[Problem]:
    for scale in Scale:
        recoder = getattr(config.recode, scale)
        if scale not in recoder.scales:
            text = f"{recoder.type} is for scale {_listed(recoder.scales)}"
            yield Problem(f"recode.{scale}", text)
    for name, recoder in config.recode.columns.items():
        where = f"recode.columns.{name}"
        attribute = config.attributes.get(name)
        if attribute is None or attribute.role is not Role.QUASI_IDENTIFIER:
            yield Problem(where, "not a quasi_identifier of this config")
        elif attribute.scale is not None and attribute.scale not in recoder.scales:
            yield Problem(where, f"{recoder.type} is for scale {_listed(recoder.scales)}")
    for name, attribute in config.attributes.items():
        if attribute.role is not Role.QUASI_IDENTIFIER or attribute.scale is None:
            continue
        recoder = config.recode.of(name, attribute.scale)
        if recoder.needs_hierarchy and attribute.hierarchy is None:
            text = f"required by recoder {recoder.type}: a file of the values and their "
            yield Problem(f"attributes.{name}.hierarchy", f"{text}generalizations")


def _others(config: Config) -> Iterator[Problem]:
    if config.privacy.suppress == "costliest":
        if config.privacy.suppression_limit == 0:
            text = "costliest needs a suppression_limit above 0"
            yield Problem("privacy.suppress", text)
        if relative := [m.type for m in config.all_models if m.relative]:
            text = (
                f"{', '.join(sorted({*relative}))} measure cells against all rows released, which "
                "change with every suppressed cell; use `needed`"
            )
            yield Problem("privacy.suppress", text)
    released = {
        name
        for name, attribute in config.attributes.items()
        if attribute.role not in (Role.DROP, Role.IDENTIFIER)
    }
    for i, name in enumerate(config.release.partition_by):
        if name not in released:
            yield Problem(f"release.partition_by.{i}", "not a column that is released")
        if name in config.release.partition_by[:i]:
            yield Problem(f"release.partition_by.{i}", "named twice")


def _steps(config: Config) -> Iterator[Problem]:
    steps = config.partition.steps
    if not steps:
        yield Problem("partition.steps", "at least one step; `{type: single}` is one block")
    if config.kernel.finds_levels and not config.partition.by_tuples:
        text = f"kernel {config.kernel.type} finds one level for the whole table: use tuples"
        yield Problem("partition.steps", text)
    for i, step in enumerate(steps):
        where = f"partition.steps.{i}"
        if isinstance(step, Controller):
            if i:
                yield Problem(where, "controller is the first step")
            yield from _controller(config, step, where)
        if isinstance(step, Tuples):
            yield from _by_tuples(config, where)
        if isinstance(step, TaskPartitioner) and i < len(steps) - 1:
            yield Problem(where, f"{step.type} is the last step: it works inside the blocks")
        if step.whole is not None and any(isinstance(s, TreePartitioner) for s in steps):
            yield Problem(where, f"{step.type} keeps the table whole; remove the steps that cut it")


def _by_tuples(config: Config, where: str) -> Iterator[Problem]:
    """What one search over the whole table can't do."""
    if len(config.partition.steps) > 1:
        yield Problem(where, "tuples is one search over the whole table: it is the only step")
    if not config.kernel.takes_weights:
        text = f"kernel {config.kernel.type} works on rows; with tuples: {_weighing('kernel')}"
        yield Problem("kernel.type", text)
    if config.unit:
        yield Problem(where, "tuples counts rows, and a unit has several; use kmeans")
    relative = sorted({m.type for m in config.all_models if m.relative})
    if config.kernel.suppresses and config.privacy.suppression_limit and relative:
        text = f"{', '.join(relative)} measure cells against all rows released, which rows that "
        text += f"{config.kernel.type} suppresses would change; set it to 0"
        yield Problem("privacy.suppression_limit", text)
    if config.privacy.suppress != "needed":
        yield Problem("privacy.suppress", "costliest works on blocks; with tuples use needed")
    for name, attribute in config.attributes.items():
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not None:
            recoder = config.recode.of(name, attribute.scale)
            if _must_be_nominal(config, attribute):
                continue
            if not recoder.takes_weights:
                text = f"{recoder.type} works on rows; with tuples: {_weighing('recoder')}"
                yield Problem(f"recode.columns.{name}", text)
            elif config.kernel.finds_levels and recoder.type != "lca":
                text = f"kernel {config.kernel.type} finds levels, which lca releases"
                yield Problem(f"recode.columns.{name}", text)


def _weighing(family: str) -> str:
    """The plug-ins that take rows which stand for several."""
    known = registry.plugins(family).items()
    able = (name for name, p in known if issubclass(p, (Kernel, Recoder)) and p.takes_weights)
    return ", ".join(able)


def _controller(config: Config, step: Controller, where: str) -> Iterator[Problem]:
    attribute = config.attributes.get(step.column)
    if attribute is None:
        yield Problem(f"{where}.column", f"no column {step.column} under attributes")
    elif attribute.role not in (Role.QUASI_IDENTIFIER, Role.DROP):
        text = "must be a quasi_identifier, or drop: it is then not published"
        yield Problem(f"{where}.column", text)
    for name, models in step.models.items():
        yield from _attributes_of(config, models, f"{where}.models.{name}")


def _listed(scales: frozenset[Scale]) -> str:
    return ", ".join(sorted(scales))


#: Oracle's drivers take a user and a password before the @ of a URL without //.
_ORACLE = re.compile(r":(?:thin|oci8?):(?!@)(.*)", re.IGNORECASE | re.DOTALL)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_BOUNDS = ("partitionColumn", "lowerBound", "upperBound")


def check_secrets(source: SourceSection) -> Iterator[Problem]:
    """Secrets that stand in the config, or are not named as they should be."""
    kept = "name an environment variable that has it under source.secrets"
    for name, value in source.options.items():
        sql = name.lower() in SQL_OPTIONS  # where `token = 1` is a condition
        if is_secret_setting(name):
            yield Problem(f"source.options.{name}", f"is secret: take it out, and {kept}")
        elif (has_secret(value) and not sql) or (name.lower() == "url" and _has_user(value)):
            text = "has a user or a password in it: give the user as an option of its own, and "
            yield Problem(f"source.options.{name}", f"{text}{kept}")
    plain = {name.lower() for name in source.options}
    for name, variable in source.secrets.items():
        where = f"source.secrets.{name}"
        if name.lower() in plain:
            yield Problem(where, "is under source.options too; keep one of them")
        if not _VARIABLE.fullmatch(variable):  # it may be the secret itself: never shown
            text = "must be the name of an environment variable, of letters, digits and _"
            yield Problem(where, text)


def _has_user(url: str) -> bool:
    """Whether a user or a password stands before the host in the URL of a database. A password may
    have a slash."""
    host = re.split(r"[?#;]", url.partition("//")[2], maxsplit=1)[0]
    oracle = _ORACLE.search(url)
    return "@" in host or (oracle is not None and "@" in oracle[1])


def check_database(source: SourceSection) -> Iterator[Problem]:
    """What is wrong with the options of `format: jdbc`. Spark takes their names in any case."""
    given = {name.lower(): text for name, text in source.options.items()}
    where = "source.options"
    if source.path is not None:
        yield Problem("source.path", "a database is named by options.url; remove it")
    url = given.get("url", "")
    if not url.startswith("jdbc:"):
        text = "required with `format: jdbc`, for example jdbc:postgresql://HOST/DATABASE"
        yield Problem(f"{where}.url", text)
    if ("dbtable" in given) == ("query" in given):
        yield Problem(where, "exactly one of dbtable (a table, or `(SELECT ...) AS t`) and query")
    for name in ("numPartitions", "fetchsize"):
        text = given.get(name.lower(), "1")
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            yield Problem(f"{where}.{name}", "must be a whole number, at least 1")
    yield from _parts(given)


def _parts(given: dict[str, str]) -> Iterator[Problem]:
    """What is wrong with how a table is read in parts."""
    wanted = [*_BOUNDS, "numPartitions"]
    there = [name for name in wanted if name.lower() in given]
    for name in wanted:
        if there and name not in there:
            text = f"required with {', '.join(there)}: a table is read in parts by all four"
            yield Problem(f"source.options.{name}", text)
    if "query" in given and "partitioncolumn" in given:
        text = "a query can't be read in parts: use `dbtable: (SELECT ...) AS t` instead of it"
        yield Problem("source.options.query", text)
    low, high = (_whole(given.get(name.lower(), "")) for name in _BOUNDS[1:])
    if low is not None and high is not None and low >= high:
        yield Problem("source.options.lowerBound", "must be less than upperBound")


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,30}", text) else None


#: The roles of columns that are not released.
HIDDEN = (Role.DROP, Role.IDENTIFIER)


def _bounds(gate: Gate) -> tuple[float, float]:
    least = -math.inf if gate.at_least is None else gate.at_least
    return least, math.inf if gate.at_most is None else gate.at_most


def check_gates(config: Config) -> Iterator[Problem]:
    """What is wrong with the config's gates."""
    measures = () if config.evaluate is None else config.evaluate.measures
    known = {f"{m.type}.{name}": m for m in measures for name in m.names}
    for i, gate in enumerate(config.gates):
        where = f"gates.{i}"
        least, most = _bounds(gate)
        if gate.at_most is None and gate.at_least is None:
            yield Problem(where, "give `at_most`, `at_least` or both")
        elif least > most:
            yield Problem(where, "`at_least` is above `at_most`, which nothing can be")
        if config.evaluate is None:
            yield Problem(where, "nothing is measured; add `evaluate`")
        elif gate.figure not in known:
            text = f"no measure of `evaluate` finds it; they find: {', '.join(sorted(known))}"
            yield Problem(f"{where}.figure", text)
        elif gate.of is not None:
            yield from _subject_problems(config, known[gate.figure], gate.of, f"{where}.of")


def _subject_problems(config: Config, measure: Measure, of: str, where: str) -> Iterator[Problem]:
    """What is wrong with what a gate is about."""
    if measure.subjects == "table":
        yield Problem(where, f"figures of {measure.type} are about the whole table; remove it")
    elif measure.subjects == "columns":
        released = [n for n, a in config.attributes.items() if a.role not in HIDDEN]
        if of not in released:
            yield Problem(where, f"no column that is released; these are: {', '.join(released)}")


def check_measures(config: Config) -> Iterator[Problem]:
    """What is wrong with the config's measures."""
    measures = () if config.evaluate is None else config.evaluate.measures
    types = [measure.type for measure in measures]
    for i, type in enumerate(types):
        if type in types[:i]:
            yield Problem(f"evaluate.measures.{i}", f"{type} is there twice; remove one")
