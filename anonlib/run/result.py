"""The results of the verbs: plain values that the command line prints and records keep."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from anonlib.text import drop_file_scheme

if TYPE_CHECKING:  # audit imports Spark, and results must not
    from anonlib.auditing import AuditReport
    from anonlib.config.model import Config
    from anonlib.config.policies.judgement import RuleVerdict
    from anonlib.evaluation import Evaluation
    from anonlib.measure import Findings
    from anonlib.table.schema import Schema
    from anonlib.table.type_words import TypeWords

#: How a run ended: its rows are published; were published before, so nothing happened; wait for
#: others; were stopped by a gate; or the run measured only.
Ending: TypeAlias = Literal["published", "done", "waiting", "stopped", "evaluated"]


@dataclass(frozen=True)
class ColumnPlan:
    """One column as `check` resolves it: its part in the run, and its released form."""

    name: str
    role: str
    scale: str | None
    source_type: str
    released_as: str  # e.g. "centroid (int)", "as it is (string)", "dropped", "pseudonym (string)"


@dataclass(frozen=True, repr=False)
class CheckResult:
    """A config resolved against its source; problems would have been raised."""

    n_rows: int
    columns: tuple[ColumnPlan, ...]
    models: tuple[str, ...]
    kernel: str
    partition: str
    notes: tuple[str, ...] = ()
    policy: "tuple[RuleVerdict, ...]" = ()  # the rules of the config's policy
    n_nobody: int = 0  # rows without a person, which count for nobody
    review: tuple[str, ...] = ()  # fields that `init` has guessed and nobody has looked at
    obstacles: tuple[str, ...] = ()  # why `release` would be refused here and now all the same

    def __repr__(self) -> str:
        parts = [f"{self.n_rows:,} rows", f"{len(self.columns)} columns", self.kernel, *self.models]
        return f"<CheckResult: {', '.join(parts)}; notes: {len(self.notes)}>"


@dataclass(frozen=True, repr=False)
class ReleaseResult:
    """One run's outcome: only figures and places, no data."""

    run_id: str
    outcome: Ending
    n_rows_in: int = 0
    n_rows_out: int = 0
    n_suppressed: int = 0
    n_nobody: int = 0  # rows of the source without a person, which count for nobody
    n_waiting: int = 0  # rows in the backlog, where the run published nothing
    waited: bool = False  # the rows of the run itself went, or had gone, into the backlog
    notes: tuple[str, ...] = ()
    n_blocks: int = 0
    n_cells: int = 0
    audit: "AuditReport | None" = None
    losses: dict[str, float | None] = field(default_factory=dict)  # metric name -> value
    losses_by_column: dict[str, dict[str, float]] = field(default_factory=dict)
    table: str = ""
    table_version: int = -1
    time: str = ""  # when the release was about to be published, in UTC
    table_digest: str = ""  # of the table after the run; empty if nothing was published
    table_columns: tuple[str, ...] = ()  # in the order of the table, which the digest goes by
    table_types: tuple["TypeWords", ...] = ()  # of these columns
    replaces: tuple[str, ...] = ()  # the runs that had published the table that it replaced
    manifest: str = ""
    record: str = ""
    report: str = ""
    evaluation: "Evaluation | None" = None
    policy: "tuple[RuleVerdict, ...]" = ()  # the rules of the config's policy
    overview: "Findings | None" = None  # the distribution of every column, before and after
    persons_return: bool = False  # whether persons may be in several batches of the table
    auditable: bool = True  # whether persons can be counted in the table itself
    seconds: dict[str, float] = field(default_factory=dict)  # stage -> duration

    def __repr__(self) -> str:
        rows = f"{self.n_rows_in:,} rows in, {self.n_rows_out:,} out"
        return f"<ReleaseResult: {self.outcome}, {rows}; run {self.run_id}>"

    def __str__(self) -> str:
        return "\n".join([repr(self), *([] if self.evaluation is None else [str(self.evaluation)])])

    @property
    def already_done(self) -> bool:
        """Whether nothing happened, since the run was committed before."""
        return self.outcome == "done"

    def with_plain_paths(self) -> "ReleaseResult":
        """The same, for callers: places on this machine's disks as Python's `open` takes them."""
        return replace(
            self,
            table=drop_file_scheme(self.table),
            manifest=drop_file_scheme(self.manifest),
            record=drop_file_scheme(self.record),
            report=drop_file_scheme(self.report),
        )

    @classmethod
    def of_evaluation(
        cls,
        config: "Config",
        schema: "Schema",
        audit: "AuditReport",
        evaluation: "Evaluation",
        kinds: Mapping[str, str] | None = None,
        **figures: Any,
    ) -> "ReleaseResult":
        """What was measured of a table that was released earlier.

        Args:
            config: The config.
            schema: The columns of its source.
            audit: The audit of the table.
            evaluation: What was measured.
            kinds: What the texts of released columns look like, if the content gate has looked.
            figures: Other fields: the run, the rows of the source, places.
        """
        from anonlib.config.policies.judgement import judge_rules
        from anonlib.evaluation.published_spec import make_measured_spec

        again = bool(figures.get("persons_return"))
        measured = make_measured_spec(config, persons_return=again)
        # The rows of a class are no persons where one may have several of them.
        smallest = None if again and measured.persons == "unknown" else audit.smallest_class
        return cls(
            outcome="evaluated",
            n_rows_out=audit.n_rows,
            n_suppressed=figures["n_rows_in"] - audit.n_rows,
            audit=audit,
            evaluation=evaluation,
            policy=judge_rules(config, schema, smallest, uncounted=smallest is None, kinds=kinds),
            **figures,
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON output. The overview is long, and for the record and the report only."""
        known = {"audit": self.audit, "evaluation": self.evaluation}
        parts: dict[str, Any] = {key: part and part.to_dict() for key, part in known.items()}
        parts["policy"] = [asdict(verdict) for verdict in self.policy]
        own = {key: value for key, value in vars(self).items() if key != "overview"}
        return {**own, **parts, "already_done": self.already_done}
