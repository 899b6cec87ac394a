"""The two records of a run: the public manifest, an allow-list, and the private record."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from anonlib.config.model import Config, ReleaseSection
from anonlib.config.summary import bare, digest_config, software, summarize_config
from anonlib.hierarchy import Hierarchy
from anonlib.run.promise import Promise
from anonlib.run.result import ReleaseResult

if TYPE_CHECKING:
    from anonlib.auditing import AuditReport
    from anonlib.run.plan import Outcome, Plan
    from anonlib.run.scan import Scan
    from anonlib.source import Source


def manifest(
    config: Config,
    run_id: str,
    report: "AuditReport",
    outcome: "Outcome",
    n_rows_in: int,
    split_by: tuple[str, ...] = (),
    hierarchies: Mapping[str, tuple[Hierarchy, Collection[int]]] | None = None,
    *,
    promise: Promise,
) -> str:
    """The public manifest: nothing but what is listed here, as JSON text. Verdicts and released
    rows are of the whole table; the rest is of the run, which may have added a part of it.
    `split_by` names the columns that single-column cuts of the plan are of; `hierarchies` are those
    whose nodes the release has, without which it can't be read, and which these are: the shape of
    the whole trees is public, the names of other nodes are not."""
    n_added = outcome.digest.n_rows
    few = 0 < n_rows_in - n_added < config.k
    hidden = few and config.privacy.suppress == "costliest"
    content = {
        "anonlib_manifest": 1,
        "run_id": run_id,
        "persons": _persons(config.unit, config.one_row_per_person, config.release),
        "promise_sha256": promise.digest,
        "verdicts": [
            {"model": verdict.model, "holds": verdict.holds} for verdict in report.verdicts
        ],
        "rows_released": report.n_rows,
        "partition": {
            "steps": [step.type for step in config.partition.steps],
            "split_columns": list(split_by),
        },
        **({"rows_added": n_added} if config.release.mode == "append" else {}),
        "rows_suppressed": _coarse(n_rows_in - n_added, config.k),
        "losses": {
            name: None if value is None else float(f"{value:.3g}")
            # With those of suppressed cells among them, they would tell how few rows these have.
            for name, value in ({} if hidden else outcome.losses).items()
        },
        **({"hierarchies": _nodes(hierarchies)} if hierarchies else {}),
        "software": software(),
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def record(
    config: Config,
    result: ReleaseResult,
    source: "Source",
    scan: "Scan",
    plan: "Plan | None",
    promise: Promise,
) -> str:
    """The private record, as JSON text: all figures, seeds and the plan, no raw values. `plan` is
    None where nothing was made."""
    content = {
        "anonlib_record": 1,
        **result.to_dict(),
        **{name: bare(getattr(result, name)) for name in ("table", "manifest", "record", "report")},
        "config_sha256": digest_config(config),
        "settings": summarize_config(config),
        "promise": promise.to_dict(),
        "seed": config.seed,
        "source_version": source.version,
        "plan": plan and plan.to_dict(),
        "content": scan.content.to_dict(),
        "moments": {
            source.schema.by_id(e.id).name: {"mean": e.mean, "sd": e.sd}
            for e in scan.encodings
            # The mean of a constant column, or of a few values, would tell these.
            if not e.nominal
            and e.low < e.high
            and scan.n_rows - scan.n_missing.get(e.id, 0) >= config.k
        },
        "missing": {
            source.schema.by_id(id).name: _coarse(n, config.k) if 0 < n < config.k else n
            for id, n in scan.n_missing.items()
        },
        "categories": {
            source.schema.by_id(e.id).name: e.n_categories for e in scan.encodings if e.nominal
        },
        "software": software(),
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _persons(unit: tuple[str, ...], one_row_per_person: bool | str, release: ReleaseSection) -> str:
    if unit:
        return "counted by unit"
    if one_row_per_person is True:
        return "one row per person: declared, not checked"
    if release.mode == "append" and release.acknowledge_returning:
        return "one row per person in every batch: checked; persons may be in several"
    return "one row per person: checked"


def _nodes(hierarchies: Mapping[str, tuple[Hierarchy, Collection[int]]]) -> dict[str, Any]:
    """What `anonlib.encode.published_hierarchies` reads, by column: the names of nodes that are
    released, and of those above them. The others may be values that the release hides."""
    nodes = {}
    for name, (each, released) in hierarchies.items():
        parent = each.tree.parent.tolist()
        named = {*released}
        for node, above in enumerate(parent):  # a node comes before its parent
            if node in named:
                named.add(above)
        names = [text if node in named else None for node, text in enumerate(each.names)]
        nodes[name] = {"names": names, "parents": parent}
    return nodes


def _coarse(n_rows: int, k: int) -> str:
    """A number of rows of which a few may not be told."""
    return f"<{k}" if 0 < n_rows < k else str(n_rows)
