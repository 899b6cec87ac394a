"""What earlier runs left for this one, in private: who was released, and which rows wait."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from anonlib.audit import AuditReport
from anonlib.config import Config
from anonlib.spark.backlog import Backlog, Waiting
from anonlib.spark.digest import Digest
from anonlib.spark.ledger import Ledger
from anonlib.spark.publish import Target
from anonlib.spark.source import Source


@dataclass(frozen=True)
class Past:
    """The ledger and the backlog, if the config has them, and what waits and goes with this run."""

    ledger: Ledger | None
    backlog: Backlog | None
    waiting: tuple[Waiting, ...]

    def waiting_rows(self) -> list[DataFrame]:
        """The rows that wait, by the run that left them."""
        return self.backlog.rows(self.waiting) if self.backlog else []

    def before_commit(
        self,
        run_id: str,
        source: Source,
        after: Digest | None,
        whole: AuditReport,
    ) -> None:
        """Notes what a run is about to publish: it counts once the run is committed. `after` is
        the digest of the table as it will be, `whole` its audit."""
        if self.ledger is not None:
            verdicts = [verdict.model for verdict in whole.verdicts]
            self.ledger.write(run_id, source, after, verdicts, whole.insensitive)
        if self.backlog is not None:
            self.backlog.take(run_id, self.waiting)

    def after_commit(self, target: Target) -> None:
        """Removes the rows that have been published."""
        if self.backlog is not None:
            self.backlog.settle(target.runs())


def open_past(
    spark: SparkSession, config: Config, target: Target, ledger_key: bytes, backlog_key: bytes
) -> Past:
    """What is there for the target. Only batches wait, and take along what waits."""
    ledger = Ledger(spark, config, target.path, ledger_key) if ledger_key else None
    if config.release.mode != "append" or not backlog_key:
        return Past(ledger, None, ())
    backlog = Backlog(spark, config, target.path, backlog_key)
    return Past(ledger, backlog, tuple(backlog.waiting(target.runs())))
