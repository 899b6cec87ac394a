"""The two records of a run: the public manifest, an allow-list, and the private record."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from anonlib.auditing import BY_PARTS
from anonlib.config.model import Config
from anonlib.config.summary import (
    bare,
    describe_config,
    find_persons,
    list_software,
)
from anonlib.hierarchy import Hierarchy
from anonlib.recode import Recoder
from anonlib.run.manifest_persons import WHOLE, describe_persons
from anonlib.run.promise import Promise
from anonlib.run.result import ReleaseResult
from anonlib.run.source_summary import summarize_source
from anonlib.table.schema import Role, Scale
from anonlib.text import ALL_TOKENS, is_few

if TYPE_CHECKING:
    from anonlib.auditing import AuditReport
    from anonlib.run.plan import Plan, StagedFigures
    from anonlib.run.scan import Scan
    from anonlib.source.resolved_source import Source


def format_manifest(
    config: Config,
    run_id: str,
    report: "AuditReport",
    figures: "StagedFigures",
    n_rows_in: int,
    split_by: tuple[str, ...] = (),
    hierarchies: Mapping[str, tuple[Hierarchy, Collection[int]]] | None = None,
    *,
    promise: Promise,
    levels: Mapping[str, int] | None = None,
    persons_return: bool = False,
) -> str:
    """The public manifest, as JSON text: only what this function lists.

    Args:
        config: The config.
        run_id: The run.
        report: The audit of the whole table. Verdicts and released rows come from it; all else is
            of the run, which may have added a part of the table: then the manifest says so.
        figures: Of the rows that the run released.
        n_rows_in: Rows of the source.
        split_by: Columns of the plan's single-column cuts.
        hierarchies: By column that is released as nodes: its hierarchy, and the released nodes.
            Readers need them. The shape of the whole tree is public; names of other nodes are not.
        promise: The promise of the release.
        levels: By column: the least height of its released nodes in the table, if the run chose one
            height for all cells (`find_least_levels`).
        persons_return: Whether persons may be in several batches of the table.
    """
    n_added = figures.digest.n_rows
    few = is_few(n_rows_in - n_added, config.k)
    content = {
        "anonlib_manifest": 1,
        "run_id": run_id,
        "persons": describe_persons(config, persons_return=persons_return),
        "persons_kind": find_persons(config)[0],
        **({"persons_return": True} if persons_return else {}),
        "promise_sha256": promise.digest,
        "verdicts": [
            {"model": verdict.model, "holds": verdict.holds} for verdict in report.verdicts
        ],
        "rows_released": report.n_rows,
        "partition": {
            "steps": [step.type for step in config.partition.steps],
            "split_columns": list(split_by),
        },
        "columns": [*_columns(config, levels or {})],
        **(_of_batch(report, n_added) if config.release.mode == "append" else {}),
        "rows_suppressed": _coarse(n_rows_in - n_added, config.k),
        **({"suppress": "costliest"} if config.privacy.suppress == "costliest" else {}),
        "losses": {
            name: None if value is None else float(f"{value:.3g}")
            # Suppressed rows are among them: they would tell how few these are.
            for name, value in ({} if few else figures.losses).items()
        },
        **({"hierarchies": _nodes(hierarchies)} if hierarchies else {}),
        "software": list_software(),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _of_batch(report: "AuditReport", n_added: int) -> dict[str, Any]:
    """What is of the added rows alone, and whether the audit has counted them apart."""
    apart = report.by_batch or any(verdict.note == BY_PARTS for verdict in report.verdicts)
    return {
        "rows_added": n_added,
        "of_rows_added": ["rows_suppressed", "losses", "partition"],
        "audited": "each batch when it was added" if apart else WHOLE,
    }


def format_record(
    config: Config,
    result: ReleaseResult,
    source: "Source",
    scan: "Scan",
    plan: "Plan | None",
    promise: Promise,
) -> str:
    """The private record, as JSON text: all figures, seeds and the plan, no raw values. plan: None
    if nothing was staged."""
    content = {
        "anonlib_record": 1,
        **result.to_dict(),
        **{name: bare(getattr(result, name)) for name in ("table", "manifest", "record", "report")},
        "overview": result.overview and asdict(result.overview),
        **describe_config(config),
        "promise": promise.to_dict(),
        "source_version": source.version,
        **source.summarize_files(),
        "plan": plan and plan.to_dict(),
        "content": scan.content.to_dict(),
        **summarize_source(source.schema, scan.encodings, scan.n_missing, scan.n_rows, config.k),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _columns(config: Config, levels: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """What readers need to know of each released column. Of parameters of recoders they get those
    that are public: what can be read off the released values, and no value of the source."""
    tokens = config.privacy.missing_tokens
    # Others may be values of the table: they are counted.
    usual = [token for token in tokens if token.strip().lower() in ALL_TOKENS]
    missing = {"missing": {"texts": usual, "n_others": len(tokens) - len(usual)}} if tokens else {}
    for name, attribute in config.attributes.items():
        column: dict[str, Any] = {"name": name, "role": str(attribute.role)}
        read = attribute.scale is Scale.CONTINUOUS or attribute.type not in (None, "string")
        if read or attribute.role in (Role.SENSITIVE, Role.TARGET):
            column |= missing
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not None:
            recoder = config.recode.of(name, attribute.scale)
            own = {name: getattr(recoder, name) for name in sorted(recoder.public_parameters)}
            if name in levels and "level" in own:
                own["level"] = max(own["level"], levels[name])
            told = {"parameters": found} if (found := _set_parameters(recoder, own)) else {}
            yield {**column, "recoder": recoder.type, "form": recoder.releases, **told}
        elif attribute.pseudonym or attribute.role not in (Role.DROP, Role.IDENTIFIER):
            yield column


def _set_parameters(recoder: Recoder, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not as by default."""
    defaults = {name: field.default for name, field in type(recoder).model_fields.items()}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _nodes(hierarchies: Mapping[str, tuple[Hierarchy, Collection[int]]]) -> dict[str, Any]:
    """By column: what `anonlib.encode.read_published_hierarchies` reads, the names of released
    nodes and of their ancestors. Other names may be values that the release hides."""
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
    """A number of rows, as public text: small numbers are hidden."""
    return f"<{k}" if is_few(n_rows, k) else str(n_rows)
