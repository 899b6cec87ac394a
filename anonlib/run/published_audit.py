"""What is known of the published rows without reading them: the run that left them audited them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anonlib.auditing import AuditReport
from anonlib.config.paths import find_record_path
from anonlib.config.summary import bare
from anonlib.errors import InputError
from anonlib.run.history import Commit, History
from anonlib.run.promise import Promise
from anonlib.spark.storage import Storage
from anonlib.table.table_digest import Digest


@dataclass(frozen=True)
class PublishedAudit:
    """What a run found of the table that it left.

    Attributes:
        run_id: The run.
        report: Its audit of the table.
        digest: The digest of the table's rows.
        nodes: By column that is released as nodes of its hierarchy: the numbers of nodes that the
            manifest names.
    """

    run_id: str
    report: AuditReport
    digest: Digest
    nodes: Mapping[str, frozenset[int]]


def find_published_audit(
    promise: Promise, history: History, records: Storage, n_rows: int
) -> PublishedAudit | None:
    """What the newest run found of the table, if that still holds of what is published.

    It does if the private record of that run has the same promise, the version that the run left
    and as many rows as the table, and all later commits moved the same rows to other files
    (OPTIMIZE, VACUUM). There is none with a model that compares classes with the whole table, which
    added rows change. Cost: a few small files.

    Args:
        promise: What the rows that are added promise.
        history: That of the table.
        records: The folder of the private records.
        n_rows: The number of rows of the table.

    Returns:
        What is known; None where any of it is in doubt, so that the rows must be read.
    """
    newest = next(iter(history.commits()), None)
    if newest is None or any(model.relative for model in promise.models):
        return None
    path = find_record_path(records.root, newest.run_id)
    version = history.version_of(newest.run_id)
    if not records.exists(path) or not history.keeps_rows_since(version):
        return None
    try:
        kept = json.loads(records.read(path))
        of_table = kept["table"] == bare(history.path) and kept["table_version"] == version
        same = of_table and Promise.from_dict(kept["promise"]).digest == promise.digest
        if not same or kept["outcome"] != "published":
            return None
        digest = Digest.from_text(kept["table_digest"])
        report = AuditReport.from_dict(kept["audit"])
        if {digest.n_rows, report.n_rows} != {n_rows}:
            return None
        return PublishedAudit(newest.run_id, report, digest, _find_nodes(newest))
    except (InputError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _find_nodes(commit: Commit) -> dict[str, frozenset[int]]:
    trees: Mapping[str, Any] = json.loads(commit.text).get("hierarchies", {})
    return {
        column: frozenset(i for i, name in enumerate(tree["names"]) if name is not None)
        for column, tree in trees.items()
    }
