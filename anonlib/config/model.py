"""The config: one YAML file -> a frozen, validated `Config`, all problems reported together.

Settings of Spark and of its readers, as configs have them.
"""

import math
import re
import unicodedata
from collections.abc import Callable
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

from anonlib.config.secrets import has_secret, is_secret_setting
from anonlib.kernels import Kernel
from anonlib.measure import Measure
from anonlib.partition import Partitioner
from anonlib.partition.controller import Controller
from anonlib.partition.tuples import Tuples
from anonlib.privacy import PrivacyModel
from anonlib.recode import Recoder
from anonlib.table.schema import Role, Scale
from anonlib.text import MISSING_TOKENS

#: Column names with this prefix are the pipeline's own.
RESERVED_PREFIX = "__anonlib_"

#: What fits in Spark's and numpy's integers.
MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1

#: YAML reads yes, no, on and off as booleans, and pydantic booleans as 1 and 0.
NOT_A_NUMBER = "a number is needed, not true or false"


def takes_number(model: type[BaseModel], field: str) -> bool:
    """Whether the field is a number, or a number or none."""
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    info = fields.get(field)
    return info is not None and bool({info.annotation, *get_args(info.annotation)} & {int, float})


class Section(BaseModel):
    """Base of the config's sections."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and takes_number(cls, info.field_name or ""):
            raise ValueError(NOT_A_NUMBER)
        return value


def _option_text(value: Any) -> Any:
    """YAML's true and 1 as the text that Spark's options are."""
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


#: How to give what is no setting of a config.
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


def _no_credentials(options: dict[str, str]) -> dict[str, str]:
    """Settings without credentials: configs are copied, mailed and committed."""
    return _without(options, lambda key, value: bool(_STORES.search(f"{key} {value}")))


def _no_fail_fast(options: dict[str, str]) -> dict[str, str]:
    """Options of readers that do not end with the text of a row they can't read."""
    if found := [key for key, value in options.items() if value.strip().lower() == "failfast"]:
        said = "Spark's event log and UI would show the rows that can't be read"
        raise ValueError(f"remove {', '.join(found)}: FAILFAST: {said}")
    return options


def _no_secrets(settings: dict[str, str]) -> dict[str, str]:
    """The same for Spark's settings, of which none may be secret."""
    return _without(settings, _is_secret)


def _is_secret(key: str, value: str) -> bool:
    # The name of a key that a service keeps.
    named = value.startswith("arn:") or value.lower() in ("true", "false")
    return (is_secret_setting(key) and not named) or has_secret(value)


def _without(options: dict[str, str], secret: Callable[[str, str], bool]) -> dict[str, str]:
    if found := sorted(key for key, value in options.items() if secret(key, value)):
        text = f"credentials don't belong in a config: remove {', '.join(found)}, and {_ELSEWHERE}"
        raise ValueError(text)
    return options


#: Options of readers. `check_secrets` refuses those that are secret by their name.
Options = Annotated[
    dict[str, Annotated[str, BeforeValidator(_option_text)]],
    AfterValidator(_no_credentials),
    AfterValidator(_no_fail_fast),
]

#: Spark's settings.
Settings = Annotated[
    dict[str, Annotated[str, BeforeValidator(_setting_text)]],
    AfterValidator(_no_credentials),
    AfterValidator(_no_secrets),
]


def _true_or_column(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        raise ValueError("must be true, or the name of a column") from None


class SourceSection(Section):
    """Where the rows come from."""

    format: str = Field(
        description="delta, parquet, csv, json, orc, jdbc, table, generator, any Spark format, or "
        "dataframe for one that is given in Python"
    )
    path: str | None = Field(None, description="file or folder; several may match a glob")
    table: str | None = Field(None, description="a catalog table, with `format: table`")
    options: Options = Field(default_factory=dict, description="options of the Spark reader")
    secrets: dict[str, str] = Field(
        default_factory=dict,
        description="options that are secret, such as password: each the name of the environment "
        "variable that has it",
    )
    where: str | None = Field(None, description="SQL condition: the rows that are released")
    version: int | None = Field(
        None, ge=0, le=MAX_LONG, description="Delta: the version; latest if left out"
    )
    rows: int = Field(100_000, ge=0, le=10_000_000_000, description="generator: number of rows")
    seed: int = Field(0, ge=-MAX_LONG - 1, le=MAX_LONG, description="generator: seed")


class Attribute(Section):
    """What one column is and how it is treated."""

    role: Role
    scale: Scale | None = Field(None, description="quasi-identifiers, target: how it is measured")
    order: tuple[str, ...] | None = Field(
        None, description="ordinal text: all categories, low to high"
    )
    hierarchy: str | None = Field(
        None,
        min_length=1,
        description="nominal, sensitive: file of the values and their generalizations, CSV as ARX "
        "has it (value first) or nested YAML (.yaml, .yml); see `anonlib hierarchy`; its path is "
        "relative to the config file",
    )
    type: str | None = Field(
        None,
        pattern=r"^(byte|tinyint|short|smallint|int|integer|bigint|long|float|double"
        r"|decimal\(\d+, ?\d+\)|boolean|date|timestamp|timestamp_ntz|string)$",
        description="Spark type to read the column as: boolean, tinyint, smallint, int, bigint, "
        "float, double, decimal(12,2), date, timestamp, timestamp_ntz, string",
    )
    pseudonym: bool = Field(False, description="identifiers: release a keyed pseudonym")
    public: bool = Field(False, description="target: acknowledge that it is published as it is")


class PrivacySection(Section):
    """What every cell of the release must satisfy."""

    models: tuple[PrivacyModel, ...] = Field(description="the privacy models, named by `type`")
    suppression_limit: float = Field(
        0.0, ge=0.0, lt=1.0, description="largest share of rows that may be suppressed"
    )
    suppress: Literal["needed", "costliest"] = Field(
        "needed",
        description="rows that can't be placed only; or, as far as the limit goes, also the cells "
        "that lose the most",
    )
    joint: bool = Field(
        False,
        description="models hold even where the other sensitive columns of a person are known",
    )
    missing_tokens: tuple[str, ...] = Field(
        MISSING_TOKENS, description="texts that mean a missing sensitive value"
    )
    acknowledge_unique: bool = Field(
        False, description="accept combinations of insensitive columns rarer than k"
    )
    acknowledge_linked: bool = Field(
        False, description="accept pseudonyms that link rows: who knows some finds the others"
    )

    def may_suppress(self, n_rows: int) -> int:
        """The most rows that may be suppressed of so many."""
        return int(self.suppression_limit * n_rows)


class PartitionSection(Section):
    """How rows become blocks."""

    steps: tuple[Partitioner, ...] = Field(description="partitioners, applied in this order")
    max_rows: int = Field(20_000, ge=100, le=MAX_INT, description="most rows of a block")
    sample_rows: int = Field(
        100_000, ge=1_000, le=5_000_000, description="most rows of the sample that plans see"
    )

    @property
    def by_tuples(self) -> bool:
        """Whether the table is searched as a whole, tuple by tuple."""
        return any(isinstance(step, Tuples) for step in self.steps)

    @property
    def controller(self) -> Controller | None:
        """The step that keeps data controllers apart."""
        return next((step for step in self.steps if isinstance(step, Controller)), None)

    @property
    def controller_column(self) -> str | None:
        """The column that says whose a row is."""
        return None if self.controller is None else self.controller.column


class RecodeSection(Section):
    """How cells become released values: a recoder by scale, or by column."""

    continuous: Recoder
    ordinal: Recoder
    nominal: Recoder
    columns: dict[str, Recoder] = Field(default_factory=dict)

    def of(self, name: str, scale: Scale) -> Recoder:
        """The recoder of a quasi-identifier."""
        found: Recoder = self.columns.get(name) or getattr(self, scale)
        return found


class MasterKey(Section):
    """A master key: in the environment or in a file, never in the config."""

    key_env: str | None = Field(None, description="name of the environment variable with the key")
    key_file: str | None = Field(None, description="file with the key")


class LedgerSection(MasterKey):
    """Who was released: keyed tokens of persons, private."""

    path: str | None = Field(
        None, min_length=1, description="folder of the ledger; RECORD/ledger if left out"
    )


class BacklogSection(MasterKey):
    """Rows that wait, encrypted, until the models can hold; `mode: append` only."""

    path: str | None = Field(
        None, min_length=1, description="folder of the backlog; RECORD/backlog if left out"
    )


class ReleaseSection(Section):
    """Where the release goes."""

    path: str = Field(min_length=1, description="folder of the Delta table")
    mode: Literal["error", "append", "overwrite"] = Field(
        "error",
        description="if the table is there; append adds the source's rows to it, and needs it",
    )
    ledger: LedgerSection | None = None
    backlog: BacklogSection | None = None
    acknowledge_returning: bool = Field(
        False,
        description="append: accept persons who were released before, or who can't be recognised",
    )
    acknowledge_overwrite: bool = Field(
        False,
        description="overwrite: accept persons who are in the old version too; who has kept that "
        "can intersect the two",
    )
    record: str | None = Field(
        None,
        min_length=1,
        description="folder of the private run records; PATH.private if left out",
    )
    run_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="at most 64 letters, digits, and . _ -; a run that is committed is done",
    )
    partition_by: tuple[str, ...] = Field((), description="columns that the files are laid out by")
    catalog_table: str | None = Field(
        None,
        alias="register",
        description="[catalog.]schema.table: the name that the table gets in Spark's catalog",
    )
    rows_per_file: int = Field(5_000_000, ge=1_000, le=MAX_INT, description="most rows of a file")


class PseudonymsSection(MasterKey):
    """The master key of pseudonyms."""

    scope: Literal["release", "stable"] = Field(
        "release", description="stable pseudonyms link the releases of one master key"
    )


class SparkSection(Section):
    """How Spark runs it."""

    grouped_map: Literal["arrow", "pandas"] = Field(
        default="arrow", description="kind of grouped UDF"
    )
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="tasks of the main shuffle; by rows and cores if left out",
    )
    conf: Settings = Field(default_factory=dict, description="Spark's own settings")


class EvaluateSection(Section):
    """What is measured of a release, beside its losses."""

    measures: tuple[Measure, ...] = Field(
        (), description="the measures, named by `type`; the usual ones if left out"
    )
    metrics: str | None = Field(
        None,
        min_length=1,
        description="folder of the private Delta table of figures; RECORD/metrics if left out",
    )


def _readable(text: str) -> str:
    """Without blanks, and marks that nobody sees, around it."""
    if not any(c.isalnum() for c in text):
        raise ValueError("must have letters or digits, for people to read")
    seen = [i for i, c in enumerate(text) if unicodedata.category(c)[0] not in "ZC"]
    return text[seen[0] : seen[-1] + 1]


#: A text for people to read.
Words = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_readable)]


class AccountabilitySection(Section):
    """Who answers for a release, and what it is for: noted in the private table of runs."""

    approver: Words | None = Field(
        default=None, description="who approved the release: a role or a name"
    )
    purpose: Words | None = Field(default=None, description="what it is released for")
    recipients: tuple[Words, ...] = Field(default=(), description="who gets it")
    runs: str | None = Field(
        default=None,
        min_length=1,
        description="folder of the private Delta table of runs, which several configs may share; "
        "RECORD/runs if left out",
    )


class Gate(Section):
    """A bound that figures must keep, else nothing is published."""

    figure: str = Field(description="MEASURE.FIGURE, for example reidentification.marketer")
    of: str | None = Field(
        None, description="the column, model or estimator that is meant; all if left out"
    )
    at_most: float | None = Field(None, allow_inf_nan=False)
    at_least: float | None = Field(None, allow_inf_nan=False)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the most that the figures may be; infinite where not given."""
        least = -math.inf if self.at_least is None else self.at_least
        return least, math.inf if self.at_most is None else self.at_most

    @property
    def text(self) -> str:
        """The gate in words, such as `sse.relative at most 0.2`."""
        limits = [("at most", self.at_most), ("at least", self.at_least)]
        words = [f"{word} {limit:g}" for word, limit in limits if limit is not None]
        return f"{self.figure}{f' of {self.of}' if self.of else ''} {' and '.join(words)}"


class Config(Section):
    """A whole run. Made by `anonlib.load`."""

    source: SourceSection
    attributes: dict[str, Attribute]
    one_row_per_person: Annotated[bool | str, WrapValidator(_true_or_column)] = Field(
        False, description="true: declared; or the column that identifies a person, checked"
    )
    unit: tuple[str, ...] = Field((), description="columns that identify a person with many rows")
    privacy: PrivacySection
    partition: PartitionSection
    kernel: Kernel
    recode: RecodeSection
    release: ReleaseSection
    pseudonyms: PseudonymsSection | None = None
    evaluate: EvaluateSection | None = None
    gates: tuple[Gate, ...] = Field((), description="what `evaluate` must find before the commit")
    accountability: AccountabilitySection = AccountabilitySection()
    events: str | None = Field(
        None,
        min_length=1,
        description="file on this machine that OpenLineage events of runs are appended to, a line "
        "each, or a folder for a file of each run; ANONLIB_EVENTS of the environment if left out",
    )
    max_categories: int = Field(
        10_000, ge=2, le=MAX_INT, description="most distinct values of a nominal or ordinal column"
    )
    seed: int = Field(0, ge=0, lt=2**31, description="of samples and plans")
    spark: SparkSection = SparkSection()

    @property
    def record_path(self) -> str:
        """Where the private run records go."""
        return self.release.record or f"{self.release.path.rstrip('/')}.private"

    @property
    def metrics_path(self) -> str:
        """Where the table of figures is."""
        given = self.evaluate and self.evaluate.metrics
        return given or f"{self.record_path.rstrip('/')}/metrics"

    @property
    def runs_path(self) -> str:
        """Where the table of runs is, if the operator does not say."""
        return self.accountability.runs or f"{self.record_path.rstrip('/')}/runs"

    @property
    def all_models(self) -> tuple[PrivacyModel, ...]:
        """The privacy models, those of single controllers included."""
        step = self.partition.controller
        own = [] if step is None else [m for models in step.models.values() for m in models]
        return (*self.privacy.models, *own)

    @property
    def needs_target(self) -> bool:
        """Whether the kernel or a partitioner looks at the target."""
        return self.kernel.needs_target or any(s.needs_target for s in self.partition.steps)

    @property
    def needs_context(self) -> bool:
        """Whether a partitioner looks at the insensitive columns."""
        return any(step.needs_context for step in self.partition.steps)

    @property
    def ledger_path(self) -> str:
        """Where the ledger is, if there is one."""
        given = self.release.ledger and self.release.ledger.path
        return given or f"{self.record_path.rstrip('/')}/ledger"

    @property
    def backlog_path(self) -> str:
        """Where the backlog is, if there is one."""
        given = self.release.backlog and self.release.backlog.path
        return given or f"{self.record_path.rstrip('/')}/backlog"

    @property
    def k(self) -> int:
        """The largest number of persons that a model asks of every cell; 0 without k-anonymity."""
        return max((model.min_persons for model in self.privacy.models), default=0)
