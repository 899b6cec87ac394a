"""The fields of a config, section by section, as frozen pydantic models."""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from anonlib.arrays import count_share
from anonlib.config.paths import find_record_folder, find_runs_folder
from anonlib.config.policies import Access, Policy
from anonlib.config.secrets import has_secret, is_secret_setting
from anonlib.kernels import Kernel
from anonlib.measure import Measure
from anonlib.partition import Partitioner
from anonlib.partition.controller import Controller
from anonlib.partition.tuples import TuplesPartitioner
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.recode import Recoder
from anonlib.table.schema import Role, Scale
from anonlib.text import MISSING_TOKENS, spell_bound

#: Prefix of the columns that a run adds; no column of a source may have it.
RESERVED_PREFIX = "__anonlib_"

#: The largest int32 and int64.
MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1

#: The most rows of a sample, which the driver holds.
MOST_SAMPLED = 5_000_000
#: The error for booleans, since yes, no, on and off in YAML would become 1 and 0.
NOT_A_NUMBER = "a number is needed, not true or false"


def takes_number(model: type[BaseModel], field: str) -> bool:
    """Whether a field is a number, or a number or None."""
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    info = fields.get(field)
    return info is not None and bool({info.annotation, *get_args(info.annotation)} & {int, float})


class Section(BaseModel):
    """Base class of the config's sections."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and takes_number(cls, info.field_name or ""):
            raise ValueError(NOT_A_NUMBER)
        return value


def _option_text(value: Any) -> Any:
    """Turns booleans and numbers of YAML into texts, as Spark's options need them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _setting_text(value: Any) -> Any:
    text = _option_text(value)
    if not isinstance(text, str):
        raise ValueError(
            "text is needed; put it in quotes, and behind --set the setting's name, too: "
            "'spark.conf.\"spark.driver.memory\"=8g'"
        )
    return text


#: Tells where credentials belong.
_ELSEWHERE = (
    "give them in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in Spark's own "
    "settings (spark-submit --properties-file) or by the machine's role"
)

_STORES = re.compile(
    r"\bfs\.s3[an]?\..*(access\.?key|secret|session\.?token|password)"
    r"|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)"
    r"|-Daws\.(accessKeyId|secretAccessKey|sessionToken)",
    re.IGNORECASE,
)


def _require_no_credentials(options: dict[str, str]) -> dict[str, str]:
    """Raises ValueError for credentials of stores, since configs are copied and committed."""
    return _require_none(options, lambda key, value: bool(_STORES.search(f"{key} {value}")))


def _require_no_secrets(settings: dict[str, str]) -> dict[str, str]:
    """Raises ValueError for any secret among Spark's settings."""
    return _require_none(settings, _is_secret)


def _is_secret(key: str, value: str) -> bool:
    # An ARN only names a key that a service keeps. true and false are no secrets either.
    harmless = value.startswith("arn:") or value.lower() in ("true", "false")
    return (is_secret_setting(key) and not harmless) or has_secret(value)


def _require_none(options: dict[str, str], secret: Callable[[str, str], bool]) -> dict[str, str]:
    if names := sorted(key for key, value in options.items() if secret(key, value)):
        raise ValueError(
            f"credentials don't belong in a config: remove {', '.join(names)}, and {_ELSEWHERE}"
        )
    return options


#: Options of readers. `check_secrets` refuses options whose names are names of secrets.
Options = Annotated[
    dict[str, Annotated[str, BeforeValidator(_option_text)]],
    AfterValidator(_require_no_credentials),
]

#: Spark's settings.
Settings = Annotated[
    dict[str, Annotated[str, BeforeValidator(_setting_text)]],
    AfterValidator(_require_no_credentials),
    AfterValidator(_require_no_secrets),
]


def _true_or_column(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        raise ValueError("must be true, or the name of a column") from None


class SourceSection(Section):
    """Where the rows come from."""

    format: str = Field(
        description="delta, parquet, csv, json, orc, jdbc, any other Spark format; table: of the "
        "catalog; generator: synthetic rows; dataframe: passed in Python"
    )
    path: str | None = Field(None, description="file or folder, or a glob of several")
    table: str | None = Field(None, description="name of a catalog table, with `format: table`")
    options: Options = Field(default_factory=dict, description="options of the Spark reader")
    secrets: dict[str, str] = Field(
        default_factory=dict,
        description="secret options, such as password: for each, the name of the environment "
        "variable that holds it",
    )
    where: str | None = Field(
        None, description="SQL condition: only rows that meet it are released"
    )
    version: int | None = Field(
        None, ge=0, le=MAX_LONG, description="Delta: version of the table; the latest by default"
    )
    rows: int = Field(100_000, ge=0, le=10_000_000_000, description="generator: number of rows")
    seed: int = Field(0, ge=-MAX_LONG - 1, le=MAX_LONG, description="generator: seed")


class Attribute(Section):
    """The role of a column, and how the column is treated."""

    role: Role
    scale: Scale | None = Field(
        None, description="quasi-identifiers and the target: scale of the values"
    )
    order: tuple[str, ...] | None = Field(
        None,
        description="text that is ordinal, or that a model measures by its order: all values, "
        "low to high",
    )
    hierarchy: str | None = Field(
        None,
        min_length=1,
        description="nominal or sensitive columns: file of the values and their generalizations, "
        "CSV in ARX's form (value first) or nested YAML (.yaml, .yml), see `anonlib hierarchy`",
    )
    type: str | None = Field(
        None,
        pattern=r"^(byte|tinyint|short|smallint|int|integer|bigint|long|float|double"
        r"|decimal\(\d+, ?\d+\)|boolean|date|timestamp|timestamp_ntz|string)$",
        description="Spark type that the column is cast to: boolean, tinyint, smallint, int, "
        "bigint, float, double, decimal(12,2), date, timestamp, timestamp_ntz, string",
    )
    layout: str | None = Field(
        None,
        description="how texts write the numbers, dates or times of `type`: 1.234,5 or 1,234.5 or "
        "1 234,5 or 1 234.5 or 1'234.5, or a pattern such as dd.MM.yyyy or d/M/yyyy H:mm",
    )
    pseudonym: bool = Field(False, description="identifiers: release a keyed pseudonym")
    public: bool = Field(False, description="target: accept that it is published unchanged")


class PrivacySection(Section):
    """The requirements for every cell of the release."""

    models: tuple[PrivacyModel, ...] = Field(description="the privacy models, named by `type`")
    suppression_limit: float = Field(
        0.0,
        ge=0.0,
        lt=1.0,
        description="largest share of the rows that may be suppressed: 0.05 is 5 %",
    )
    suppress: Literal["needed", "costliest"] = Field(
        "needed",
        description="needed: only rows that fit no cell; costliest: also the cells that lose the "
        "most, up to the limit",
    )
    joint: bool = Field(
        False,
        description="the models also hold against an attacker who knows the person's other "
        "sensitive columns",
    )
    missing_tokens: tuple[str, ...] = Field(
        MISSING_TOKENS, description="texts that stand for a missing sensitive value"
    )
    acknowledge_unique: bool | tuple[str, ...] = Field(
        False,
        description="accept what singles out rows: combinations of insensitive columns in fewer "
        "than k rows, and columns that are keys; of the columns that are listed, or true: of all. "
        "Columns that show who a person is must be listed",
    )
    acknowledge_linked: bool = Field(
        False,
        description="accept pseudonyms that link rows: who knows some rows of a person "
        "finds the others",
    )

    @field_validator("suppression_limit", mode="before")
    @classmethod
    def _is_share(cls, value: Any) -> Any:
        if isinstance(value, int | float) and value >= 1:
            raise ValueError("a share is needed, less than 1: 0.05 is 5 %")
        return value

    def names_unique(self, name: str) -> bool:
        """Whether `acknowledge_unique` lists a column."""
        return not isinstance(self.acknowledge_unique, bool) and name in self.acknowledge_unique

    def acknowledges_unique(self, name: str) -> bool:
        """Whether the config accepts that a column singles out rows."""
        return self.acknowledge_unique is True or self.names_unique(name)

    def may_suppress(self, n_rows: int) -> int:
        """The most of n_rows rows that may be suppressed."""
        return count_share(self.suppression_limit, n_rows)


def bind_models(
    models: Sequence[PrivacyModel], attributes: Mapping[str, Attribute]
) -> tuple[PrivacyModel, ...]:
    """Binds models to columns: a model without `attribute` becomes one model for each sensitive
    column."""
    sensitive = [n for n, a in attributes.items() if a.role is Role.SENSITIVE]
    result: list[PrivacyModel] = []
    for model in models:
        if "attribute" in type(model).model_fields and model.column is None:
            result += [model.model_copy(update={"attribute": name}) for name in sensitive]
        else:
            result.append(model)
    return tuple(dict.fromkeys(result))


class PartitionSection(Section):
    """How rows become blocks."""

    steps: tuple[Partitioner, ...] = Field(description="partitioners, applied in this order")
    max_rows: int = Field(20_000, ge=100, le=MAX_INT, description="most rows of a block")
    sample_rows: int | None = Field(
        None,
        ge=1_000,
        le=MOST_SAMPLED,
        description="most rows of the sample by which the table is partitioned; if none is given, "
        "100,000, or as many as the blocks of a large table need",
    )

    @property
    def by_tuples(self) -> bool:
        """Whether a search over the tuples of the whole table makes the cells."""
        return any(isinstance(step, TuplesPartitioner) for step in self.steps)

    @property
    def controller(self) -> Controller | None:
        """The step that keeps data controllers apart."""
        return next((step for step in self.steps if isinstance(step, Controller)), None)

    @property
    def controller_column(self) -> str | None:
        """The column that names the data controller of each row."""
        return None if self.controller is None else self.controller.column

    @property
    def needs_target(self) -> bool:
        """Whether a partitioner uses the target."""
        return any(step.needs_target for step in self.steps)

    @property
    def needs_context(self) -> bool:
        """Whether a partitioner uses the insensitive columns."""
        return any(step.needs_context for step in self.steps)


class RecodeSection(Section):
    """How the values of a cell become one released value: a recoder per scale or column."""

    continuous: Recoder
    ordinal: Recoder
    nominal: Recoder
    columns: dict[str, Recoder] = Field(default_factory=dict)

    def of(self, name: str, scale: Scale) -> Recoder:
        """The recoder of a quasi-identifier."""
        recoder: Recoder = self.columns.get(name) or getattr(self, scale)
        return recoder


class MasterKey(Section):
    """The place of a master key: the environment or a file, never the config."""

    key_env: str | None = Field(None, description="name of the environment variable with the key")
    key_file: str | None = Field(None, description="file with the key")


class LedgerSection(MasterKey):
    """The private ledger: keyed tokens of all persons released so far."""

    path: str | None = Field(
        None, min_length=1, description="folder of the ledger; RECORD/ledger by default"
    )


class BacklogSection(MasterKey):
    """The private backlog: encrypted rows that wait for more of their kind; `mode: append` only."""

    path: str | None = Field(
        None, min_length=1, description="folder of the backlog; RECORD/backlog by default"
    )


class ReleaseSection(Section):
    """Where and how a release is published."""

    path: str = Field(min_length=1, description="folder of the Delta table")
    mode: Literal["error", "append", "overwrite"] = Field(
        "error",
        description="if the table exists: error stops, overwrite replaces its rows, append adds "
        "rows to it (and needs it)",
    )
    ledger: LedgerSection | None = None
    backlog: BacklogSection | None = None
    acknowledge_returning: bool | Literal["unknown"] = Field(
        False,
        description="append: accept persons who were released before or can't be recognised; "
        "`unknown` accepts only that some can't be",
    )
    acknowledge_overwrite: bool = Field(
        False,
        description="overwrite, or anew where the ledger has a table that is gone: accept persons "
        "who are in the old version too; anyone with a copy of it can intersect the two",
    )
    record: str | None = Field(
        None,
        min_length=1,
        description="folder of the private run records; PATH.private by default",
    )
    run_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="at most 64 letters, digits, and . _ -; a run id is published at most once",
    )
    partition_by: tuple[str, ...] = Field(
        (),
        description="columns that partition the files: single values; dates of years 1 to 9999",
    )
    catalog_table: str | None = Field(
        None,
        alias="register",
        description="[catalog.]schema.table: name of the table in Spark's catalog",
    )
    rows_per_file: int = Field(5_000_000, ge=1_000, le=MAX_INT, description="most rows of a file")
    order: Literal["file", "table"] = Field(
        "file",
        description="what is in random order: file, the rows of each file, which has whole blocks "
        "(all rows, with `partition_by`, a `unit` or few blocks); table, all rows, by one more "
        "shuffle",
    )


class PseudonymsSection(MasterKey):
    """The master key of pseudonyms."""

    scope: Literal["release", "stable"] = Field(
        "release",
        description="release: pseudonyms differ between releases; stable: they are the same with "
        "one master key, and link its releases",
    )


class SparkSection(Section):
    """How Spark runs the release."""

    grouped_map: Literal["arrow", "pandas"] = Field(
        default="arrow", description="kind of UDF that works on the blocks"
    )
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="tasks of the main shuffle; by rows and cores by default",
    )
    conf: Settings = Field(default_factory=dict, description="settings of Spark")


class EvaluateSection(Section):
    """The measures of a release, in addition to its information losses."""

    measures: tuple[Measure, ...] = Field(
        (), description="the measures, named by `type`; the usual ones by default"
    )
    metrics: str | None = Field(
        None,
        min_length=1,
        description="folder of the private Delta table of figures; RECORD/metrics by default",
    )


def _readable(text: str) -> str:
    """Strips white space and invisible characters. Raises ValueError without letter or digit."""
    if not any(c.isalnum() for c in text):
        raise ValueError("must have letters or digits, for people to read")
    visible = [i for i, c in enumerate(text) if unicodedata.category(c)[0] not in "ZC"]
    return text[visible[0] : visible[-1] + 1]


#: A text for people to read.
Words = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_readable)]


class AccountabilitySection(Section):
    """Who answers for a release, and its purpose. The private table of runs keeps this."""

    approver: Words | None = Field(
        default=None, description="who approved the release: a role or a name"
    )
    purpose: Words | None = Field(default=None, description="purpose of the release")
    recipients: tuple[Words, ...] = Field(default=(), description="who gets the release")
    runs: str | None = Field(
        default=None,
        min_length=1,
        description="folder of the private Delta table of runs, which several configs may share; "
        "RECORD/runs by default",
    )


def _iso_date(value: Any) -> Any:
    if not isinstance(value, date) and not (isinstance(value, str) and _DATE.fullmatch(value)):
        raise ValueError("must be a date such as 2027-11-30")
    return value


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class ContextSection(Section):
    """Who can do what with a release: what its risk depends on besides its rows."""

    data: Words | None = Field(
        default=None,
        description="which persons and which time the rows are of, in words: what `source.where` "
        "keeps, which records leave out",
    )
    recipient: Words | None = Field(
        default=None, description="who works with the release: a role or a name"
    )
    access: Access | None = Field(
        default=None,
        description="public: anybody; contract: who signed one; enclave: in rooms or on machines "
        "of yours; internal: within your organization",
    )
    may_know: tuple[str, ...] = Field(
        default=(),
        description="columns that attackers may know of persons; released ones must be "
        "quasi-identifiers, or sensitive with `joint: true`. It is checked and told, and changes "
        "no count: models and attacks take all quasi-identifiers as known",
    )
    expires: Annotated[date, BeforeValidator(_iso_date)] | None = Field(
        default=None, description="the last day of use, such as 2027-11-30; none after it"
    )


class PersonSection(Section):
    """How texts that identify persons are compared."""

    fold_case: bool = Field(
        default=False,
        description="whether texts that differ in case only are one person; else the column's "
        "collation decides",
    )


class Gate(Section):
    """A bound on a figure. If the figure is outside, nothing is published."""

    figure: str = Field(description="MEASURE.FIGURE, for example reidentification.marketer")
    of: str | None = Field(
        None, description="column, model or estimator of the figure; all of them by default"
    )
    at_most: float | None = Field(
        None, allow_inf_nan=False, description="the largest value that passes"
    )
    at_least: float | None = Field(
        None, allow_inf_nan=False, description="the smallest value that passes"
    )

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that passes; infinite if not given."""
        least = -math.inf if self.at_least is None else self.at_least
        return least, math.inf if self.at_most is None else self.at_most

    @property
    def text(self) -> str:
        """The gate in words, such as `sse.relative at most 0.2`."""
        limits = [("at most", self.at_most), ("at least", self.at_least)]
        words = [f"{word} {spell_bound(limit)}" for word, limit in limits if limit is not None]
        return f"{self.figure}{f' of {self.of}' if self.of else ''} {' and '.join(words)}"


class Config(Section):
    """A config. `anonlib.load` and `anonlib.parse` make it."""

    def __repr__(self) -> str:
        """In short, without values: orders, tokens and conditions may have some."""
        sizes = [f"k={m.k}" for m in self.privacy.models if isinstance(m, KAnonymity)]
        parts = [f"{len(self.attributes)} columns", self.kernel.type, *sizes]
        return f"<Config: {', '.join(parts)}>"

    __str__ = __repr__

    source: SourceSection
    attributes: dict[str, Attribute]
    one_row_per_person: Annotated[bool | str, WrapValidator(_true_or_column)] = Field(
        False,
        description="true: declared, not checked; or the column that identifies a person, checked",
    )
    unit: tuple[str, ...] = Field(
        (), description="columns that together identify a person, who may have many rows"
    )
    person: PersonSection = PersonSection()
    privacy: PrivacySection
    partition: PartitionSection
    kernel: Kernel
    recode: RecodeSection
    release: ReleaseSection
    pseudonyms: PseudonymsSection | None = None
    evaluate: EvaluateSection | None = None
    gates: tuple[Gate, ...] = Field(
        (),
        description="bounds on the figures of `evaluate`, checked before the release is published",
    )
    policy: Policy | None = Field(
        None,
        description="rules that the release must keep: ema-0070, cms-11, hipaa-safe-harbor, pdpc, "
        "k-strict, or a YAML file of the same form",
    )
    accountability: AccountabilitySection = AccountabilitySection()
    context: ContextSection = ContextSection()
    events: str | None = Field(
        None,
        min_length=1,
        description="OpenLineage events of runs: a file on this machine to append a line for each, "
        "or a folder for a file of each run; by default the environment variable ANONLIB_EVENTS",
    )
    bound: bool = Field(
        False,
        description="also a lower bound of the loss `sse`, and how far above the optimum the "
        "release may be; takes up to minutes for a block of at most 1,500 rows and k up to 5",
    )
    max_categories: int = Field(
        10_000, ge=2, le=MAX_INT, description="most distinct values of a nominal or ordinal column"
    )
    seed: int = Field(0, ge=0, lt=2**31, description="seed of samples and partitions")
    spark: SparkSection = SparkSection()
    review: tuple[str, ...] = Field(
        (),
        description="fields that `anonlib init` has guessed and nobody has looked at, such as "
        "attributes.age; nothing is released before the list is empty",
    )

    @property
    def record_folder(self) -> str:
        """The folder of the private run records."""
        return self.release.record or find_record_folder(self.release.path)

    @property
    def metrics_folder(self) -> str:
        """The folder of the table of figures."""
        folder = self.evaluate and self.evaluate.metrics
        return folder or f"{self.record_folder.rstrip('/')}/metrics"

    @property
    def runs_folder(self) -> str:
        """The folder of the table of runs, unless the operator sets another one."""
        return self.accountability.runs or find_runs_folder(self.record_folder)

    @property
    def all_models(self) -> tuple[PrivacyModel, ...]:
        """The privacy models, including the models of single data controllers."""
        step = self.partition.controller
        own = [] if step is None else [m for models in step.models.values() for m in models]
        return (*self.privacy.models, *own)

    @property
    def bound_models(self) -> tuple[PrivacyModel, ...]:
        """The privacy models of all rows, each bound to its column."""
        return bind_models(self.privacy.models, self.attributes)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of releases."""
        return () if self.evaluate is None else self.evaluate.measures

    @property
    def target_scale(self) -> Scale | None:
        """The scale of the target, if it is given one."""
        return next((a.scale for a in self.attributes.values() if a.role is Role.TARGET), None)

    @property
    def needs_target(self) -> bool:
        """Whether the kernel or a partitioner uses the target."""
        return self.kernel.needs_target or self.partition.needs_target

    @property
    def ledger_folder(self) -> str:
        """The folder of the ledger, whether or not the config has one."""
        folder = self.release.ledger and self.release.ledger.path
        return folder or f"{self.record_folder.rstrip('/')}/ledger"

    @property
    def backlog_folder(self) -> str:
        """The folder of the backlog, whether or not the config has one."""
        folder = self.release.backlog and self.release.backlog.path
        return folder or f"{self.record_folder.rstrip('/')}/backlog"

    @property
    def k(self) -> int:
        """The most persons that a model requires in every cell; 0 without k-anonymity."""
        return max((model.min_persons for model in self.privacy.models), default=0)
