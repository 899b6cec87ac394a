"""What a run holds when its audit has passed."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from anonlib.auditing import AuditReport
from anonlib.config.policies.judgement import RuleVerdict
from anonlib.run.plan import StagedFigures
from anonlib.run.staging import Staging


@dataclass(frozen=True)
class AuditedRelease:
    """A staged release that passed its audit.

    Attributes:
        staging: The staged rows, and how they were made.
        rows: The staged rows that are released.
        figures: Counts, losses and digests of the released rows.
        report: The audit of these rows.
        table_report: The audit of the table with these rows.
        nodes: By column: the nodes of its hierarchy that the release has.
        rules: The rules of the config's policy, judged on these audits.
        least_cost: The least cost of suppressed cells; None if no cell is.
    """

    staging: Staging
    rows: DataFrame
    figures: StagedFigures
    report: AuditReport
    table_report: AuditReport
    nodes: dict[str, frozenset[int]]
    rules: tuple[RuleVerdict, ...]
    least_cost: int | None
