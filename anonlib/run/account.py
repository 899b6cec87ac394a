"""The account of a run: who is responsible for it, what it read, and how it ended. The table of
runs keeps it. It is private, and holds figures and names, no data."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonlib.config.environment import RUNS
from anonlib.config.model import Config
from anonlib.config.places import lies_in
from anonlib.config.summary import bare, digest_config, label_plugin, list_software
from anonlib.errors import (
    AnonlibError,
    AuditError,
    GateError,
    InfeasibleError,
    InputError,
)
from anonlib.run.result import ReleaseResult
from anonlib.text import drop_file_scheme

if TYPE_CHECKING:  # this imports Spark
    from anonlib.auditing import AuditReport

#: How a run ended that raised one of these; anything else is "failed".
_ENDINGS: dict[type[BaseException], str] = {
    GateError: "stopped",
    AuditError: "audit failed",
    InfeasibleError: "infeasible",
    KeyboardInterrupt: "interrupted",
}


def find_runs_path(path: str, release: str) -> str:
    """The path of the table of runs: the operator's (RUNS), else the config's; `release` is the
    folder of the release.

    Raises InputError if it lies in the release.
    """
    given = os.environ.get(RUNS)
    if given and lies_in(given, release):
        raise InputError(f"{RUNS}: lies in the release, which is public; it is private")
    return given or path


@dataclass
class Account:
    """A run, and what is known of it so far.

    Attributes:
        verb: release, evaluate or trial.
        run_id: Its id.
        config: Its config.
        target: A plain path on this machine's disk, else a path with its scheme.
        start: When it began.
        source_version: The pinned version of the source, if it has versions.
        n_rows_in: Rows of the source.
        report: The latest audit.
        result: The result, also if a gate stopped the run.
        outcome: How it ended.
        error: The type of the error that ended it.
        exit_code: The exit code of the command line.
    """

    verb: str
    run_id: str
    config: Config
    target: str
    start: datetime = field(default_factory=lambda: datetime.now(UTC))
    source_version: int | None = None
    n_rows_in: int | None = None
    report: "AuditReport | None" = None
    result: ReleaseResult | None = None
    outcome: str = ""
    error: str = ""
    exit_code: int = 0

    def end(self, result: ReleaseResult) -> ReleaseResult:
        """Notes that the run succeeded."""
        self.result, self.outcome = result, result.outcome
        return result

    def fail(self, error: BaseException) -> None:
        """Notes the type of the error that ended the run, not its text, which may name data."""
        self.error = type(error).__name__
        self.exit_code = error.exit_code if isinstance(error, AnonlibError) else 1
        known = (ending for kind, ending in _ENDINGS.items() if isinstance(error, kind))
        self.outcome = next(known, "failed")

    def row(self) -> dict[str, Any]:
        """The row of the table of runs."""
        config, words = self.config, self.config.accountability
        return {
            "run_id": self.run_id,
            "verb": self.verb,
            "begun": self.start,
            "ended": datetime.now(UTC),
            "outcome": self.outcome,
            "error": self.error or None,
            "exit_code": self.exit_code,
            "target": self.target,
            "source_format": config.source.format,
            "source": config.source.table or (config.source.path and bare(config.source.path)),
            "source_version": self.source_version,
            "config_sha256": digest_config(config),
            "anonlib": list_software()["anonlib"],
            "k": config.k,
            "models": [label_plugin(model) for model in config.all_models],
            **self._describe_outcome(),
            "approver": words.approver,
            "purpose": words.purpose,
            "recipients": [*words.recipients],
            "recipient": config.context.recipient,
            "access": config.context.access,
            "may_know": [*config.context.may_know],
            "expires": config.context.expires,
            "policy": config.policy and config.policy.name,
        }

    def _describe_outcome(self) -> dict[str, Any]:
        """The results of the run, as far as it got."""
        result, report = self.result or ReleaseResult(self.run_id, "done"), self.report
        gates = () if result.evaluation is None else result.evaluation.gates
        verdicts = () if report is None else report.verdicts
        has_record = result.outcome in ("published", "stopped", "evaluated")
        return {
            "version": result.table_version if result.table_version >= 0 else None,
            "verdicts": [(verdict.model, verdict.holds) for verdict in verdicts],
            "gates": [(gate.gate.text, gate.passed) for gate in gates],
            "rows_in": self.n_rows_in,
            "rows_out": result.n_rows_out if has_record else None,
            "rows_suppressed": result.n_suppressed if has_record else None,
            "rows_waiting": result.n_waiting or None,
            "record": spell_path(result.record) if has_record else None,
            "report": spell_path(result.report) if has_record and result.report else None,
        }


def spell_path(path: str) -> str:
    """The one spelling of a path: absolute if it is on this machine's disk, and without secrets."""
    plain = drop_file_scheme(path)
    return bare(plain) if "://" in plain else str(Path(plain).absolute())
