"""The content of a release's page, from its private record."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from anonlib.auditing.report import EXACT_SIZES, THRESHOLD, rate_risk
from anonlib.config.summary import bare
from anonlib.pages.charts import Chart, Table, draw_bars
from anonlib.pages.front import (
    JudgedFigure,
    describe_control,
    describe_filter,
    describe_use,
    is_batch,
    judge_risks,
    judge_utilities,
    list_actions,
)
from anonlib.pages.loss_groups import LossGroup, explain_absent, group_losses, tabulate_columns
from anonlib.pages.meanings import spell_plugin
from anonlib.pages.measures import (
    ChartGroup,
    ShownMeasure,
    find_middles,
    list_distributions,
    show_measures,
)
from anonlib.pages.specs import (
    Record,
    is_k_anonymity,
    is_released,
    list_gates,
    list_verdicts,
    read_columns,
    read_findings,
    read_persons,
    read_recoder_spec,
    read_verdict_spec,
)
from anonlib.pages.words import (
    as_sentence,
    count_classes,
    number,
    say_between,
    show_measurement,
    show_moments,
    speak,
    spell_label,
    spell_model,
    spell_percent,
    spell_role,
)
from anonlib.text import count_noun, printable

Pairs = tuple[tuple[str, str], ...]

#: Most bars of equal width in the histogram of classes.
MAX_BARS = 12
#: For runs that published nothing, by outcome: the title of the page, and its first words.
_ENDINGS = {
    "stopped": (
        "Stopped release",
        "Nothing was published: a gate stopped the run. What was made has",
    ),
    "made": (
        "Release in memory",
        "A table in memory, for its caller to save. It has",
    ),
    "evaluated": (
        "Evaluation",
        "This run has measured, and published nothing. What it looked at has",
    ),
}
_INSENSITIVE = {
    "checked": "Combinations of insensitive columns rarer than k were looked for: there are none.",
    "acknowledged": "Rare combinations of insensitive columns were accepted unseen.",
    "not checked": "Insensitive columns could not be checked for rare combinations.",
}


@dataclass(frozen=True)
class ShownVerdict:
    """The verdict for a privacy model or a gate.

    Attributes:
        rule: The model or the gate.
        value: The measured value.
        bound: The value that is required; empty for gates, which contain it.
        holds: Whether the model holds, or the gate passed; None if the table can't show it, and it
            was audited at its release.
    """

    rule: str
    value: str
    bound: str
    holds: bool | None


@dataclass(frozen=True)
class ReleasePage:
    """The content of a release's page, in order. The page leaves out parts that are empty or None.

    Attributes:
        title: The title.
        run: The id of the run.
        passed: Whether all models hold and all gates passed; None without any.
        summary: Sentences.
        verdicts: Of privacy models.
        gates: Of gates.
        use: Names and values: who answers for the release, who may use it, until when, which rows.
        risks: Three risks, judged.
        utilities: Three utilities, judged.
        actions: What to do.
        policy: The rules of the config's policy.
        remarks: Notes and problems.
        losses: By what they look at.
        absent: Sentences on losses that have no value.
        by_column: Losses by column.
        utility: Findings of measures of utility.
        chances: Chances to be found again, by the sizes of classes.
        risk: Findings of measures of risk.
        other: Findings of measures of which it is not known whether they are of risk.
        control: What release the attacks are made on; empty without attacks.
        classes: The sizes of classes.
        columns: Distributions of columns before and after.
        source: Aggregates of the source's columns.
        partition: Names and values: blocks, cells, the plan.
        settings: Names and values: the config, the run, its places.
        attributes: Roles, scales and recoders of columns.
        timings: Seconds by stage and by measure.
        versions: Versions of software.
    """

    title: str
    run: str
    passed: bool | None
    summary: tuple[str, ...]
    verdicts: tuple[ShownVerdict, ...]
    gates: tuple[ShownVerdict, ...]
    use: Pairs
    risks: tuple[JudgedFigure, ...]
    utilities: tuple[JudgedFigure, ...]
    actions: tuple[str, ...]
    policy: Table | None
    remarks: tuple[str, ...]
    losses: tuple[LossGroup, ...]
    absent: tuple[str, ...]
    by_column: Table | None
    utility: tuple[ShownMeasure, ...]
    chances: Table | None
    risk: tuple[ShownMeasure, ...]
    other: tuple[ShownMeasure, ...]
    control: str
    classes: Chart | None
    columns: ChartGroup
    source: Table | None
    partition: Pairs
    settings: Pairs
    attributes: Table | None
    timings: Table | None
    versions: Table | None


def release_page(record: Record) -> ReleasePage:
    """The content of the page. Parts that the record lacks are left out."""
    verdicts, gates = tuple(_verdicts(record)), tuple(_gates(record))
    settings, losses = record.get("settings") or {}, record.get("losses", {})
    rules = record.get("policy") or ()
    is_measured = "reidentification" in read_findings(record)
    holding = [each.holds is not False for each in (*verdicts, *gates)]
    holding += [rule["state"] != "not kept" for rule in rules]
    risks, utilities = judge_risks(record), judge_utilities(record)
    return ReleasePage(
        title=f"{_ENDINGS.get(record.get('outcome', ''), ('Release',))[0]} of {find_name(record)}",
        run=printable(record["run_id"]),
        passed=all(holding) if holding else None,
        summary=tuple(_summary(record, verdicts, gates)),
        verdicts=verdicts,
        gates=gates,
        use=tuple(_use(record)),
        risks=risks,
        utilities=utilities,
        actions=tuple(list_actions(record, (*risks, *utilities))),
        policy=_policy(settings.get("policy") or "", rules),
        remarks=tuple(_remarks(record)),
        losses=group_losses(losses),
        absent=tuple(explain_absent(losses)),
        by_column=tabulate_columns(record.get("losses_by_column", {})),
        utility=show_measures(record, risk=False),
        # The measure has them as well.
        chances=None if is_measured else _chances(record),
        risk=show_measures(record, risk=True),
        other=show_measures(record, risk=None),
        control=describe_control(record),
        classes=_classes(_audit(record).get("sizes", [])),
        columns=list_distributions(record),
        source=_source(record),
        partition=tuple(_partition(record)),
        settings=tuple(_settings(record, settings)),
        attributes=_attributes(read_columns(record)),
        timings=_timings(record),
        versions=_table("Versions", ("software", "version"), record.get("software", {})),
    )


def find_name(record: Record) -> str:
    """The last part of the table's path."""
    return bare(record.get("table") or "").rstrip("/").rpartition("/")[2] or "a table"


def _audit(record: Record) -> Record:
    found: Record = record.get("audit") or {}
    return found


def _verdicts(record: Record) -> Iterator[ShownVerdict]:
    for each in list_verdicts(record):
        yield ShownVerdict(
            rule=spell_model(read_verdict_spec(each)),
            value=show_measurement(each["value"], exact=each["exact"]),
            bound=number(each["required"]),
            holds=None if each.get("at_release") else each["holds"],
        )


def _gates(record: Record) -> Iterator[ShownVerdict]:
    for each in list_gates(record):
        yield ShownVerdict(printable(each.text), printable(each.finding), "", each.passed)


def _summary(
    record: Record, verdicts: Sequence[ShownVerdict], gates: Sequence[ShownVerdict]
) -> Iterator[str]:
    """The release in a few sentences, for the person who is responsible for it."""
    audit = _audit(record)
    if audit:
        yield _describe_making(record, audit)
    n_in, n_lost = record.get("n_rows_in", 0), record.get("n_suppressed", 0)
    if n_lost and n_in:
        were = "was" if n_lost == 1 else "were"
        share = spell_percent(n_lost / n_in)
        yield f"{count_noun(n_lost, 'row')} of {n_in:,} ({share}) {were} suppressed."
    elif n_in:
        yield "No row was suppressed."
    if n_nobody := record.get("n_nobody", 0):
        yield f"{count_noun(n_nobody, 'row')} without a person: no model counts them."
    for what, judged, good in (("privacy model", verdicts, "holds"), ("gate", gates, "is passed")):
        if judged:
            yield _say_agreement(what, judged, good, by_batch=audit.get("by_batch", False))
    if rules := record.get("policy"):
        name = (record.get("settings", {}).get("policy") or "the policy").partition(":")[0]
        yield f"Rules of {printable(name)}: {count_states(rules)}."


def count_states(rules: Iterable[Record]) -> str:
    """How many rules of a policy are kept, not kept, and for a person to confirm."""
    counts = Counter(rule["state"] for rule in rules)
    states = {"not kept": "not kept", "kept": "kept", "to confirm": "for a person to confirm"}
    states["does not apply"] = "of another kind of access"
    return ", ".join(f"{counts[state]} {words}" for state, words in states.items() if counts[state])


def _use(record: Record) -> Iterator[tuple[str, str]]:
    for name, value in (*describe_use(record), ("filter", describe_filter(record))):
        yield name, printable(value)


def _policy(title: str, rules: Iterable[Record]) -> Table | None:
    rows = tuple(
        tuple(printable(rule[key]) for key in ("rule", "state", "says", "reason", "source"))
        for rule in rules
    )
    heads = ("rule", "state", "it says", "found", "source")
    return Table(f"Rules of {printable(title)}", heads, rows) if rows else None


def _describe_making(record: Record, audit: Record) -> str:
    """A sentence about the rows and classes that were published, or would have been."""
    n_rows, n_out = audit["n_rows"], record.get("n_rows_out", 0)
    counts = f"{count_noun(n_rows, 'row')} in {count_classes(audit)}"
    outcome = record.get("outcome", "published")
    if outcome != "published":
        text = f"{_ENDINGS[outcome][1]} {counts}"
    elif n_out and n_out != n_rows:
        text = f"Added {count_noun(n_out, 'row')}: the table has {counts}"
    else:
        text = f"Published {counts}"
    least = [verdict["value"] for verdict in audit["verdicts"] if is_k_anonymity(verdict)]
    if least and None not in least:
        text += f"; every class has at least {count_noun(int(min(least)), 'person')}"
    return f"{text}."


def _say_agreement(
    what: str, verdicts: Sequence[ShownVerdict], good: str, *, by_batch: bool
) -> str:
    n, failing = len(verdicts), sum(each.holds is False for each in verdicts)
    if failing:
        return f"{failing} of {count_noun(n, what)} {'fails' if failing == 1 else 'fail'}."
    if unseen := sum(each.holds is None for each in verdicts):
        return f"{unseen} of {count_noun(n, what)} can't be counted here: audited at release."
    many = {"holds": "hold", "is passed": "are passed"}[good]
    where = "in each batch as it was added" if by_batch else "on the released table itself"
    whole = f", counted {where}" if good == "holds" else ""
    every = {1: f"The {what}", 2: f"Both {what}s"}.get(n, f"All {n} {what}s")
    return f"{every} {good if n == 1 else many}{whole}."


def _remarks(record: Record) -> Iterator[str]:
    audit = _audit(record)
    if is_batch(record):
        yield (
            "The run added a batch of rows to the table: losses and measures are of this batch "
            "alone, and the audit is of the whole table."
        )
    for verdict in audit.get("verdicts", ()):
        if verdict["note"]:
            yield as_sentence(f"{spell_model(read_verdict_spec(verdict))}: {verdict['note']}")
    for problem in audit.get("problems", ()):
        yield as_sentence(f"Problem with {problem['where']}: {problem['text']}")
    if audit.get("insensitive") in _INSENSITIVE:
        yield _INSENSITIVE[audit["insensitive"]]
    for name, n in audit.get("lone", {}).items():
        if n:
            share = spell_percent(n / audit["n_rows"])
            yield (
                f"{printable(name)}: the shares tell of {count_noun(n, 'row')} ({share}) that no "
                "other row of their class has their value."
            )
    yield from map(as_sentence, record.get("notes", ()))


def _classes(sizes: Iterable[Iterable[int]]) -> Chart | None:
    """A histogram of class sizes. sizes: As in `AuditReport`."""
    ordered = sorted((size, n) for size, n in sizes)
    if not ordered:
        return None
    edges = _edges(ordered[0][0], ordered[-1][0])
    counts = np.zeros(len(edges) - 1, np.int64)
    for size, n in ordered:
        counts[np.searchsorted(edges, size, side="right") - 1] += n
    names = [say_between(a, b - 1) for a, b in pairwise(edges)]
    rows = tuple((name, int(n)) for name, n in zip(names, counts, strict=True))
    table = Table("Sizes of classes", ("rows in the class", "classes"), rows)
    return draw_bars("Sizes of classes", table)


def _chances(record: Record) -> Table | None:
    """The chances of persons to be found again; None with a unit, whose rows are no persons."""
    audit = _audit(record)
    if not audit.get("sizes") or not read_persons(record).are_rows:
        return None
    risk = rate_risk(audit["sizes"], audit["n_classes"], audit["n_rows"])
    above = f"share of persons with a chance above {THRESHOLD}"
    rows = (
        ("largest chance of a person", risk["prosecutor_max"]),
        ("mean chance of all persons", risk["marketer"]),
        (above, risk["prosecutor_at_risk"]),
    )
    return Table(
        "Chances to be found again by the quasi-identifiers", ("by class size", "value"), rows
    )


def _edges(low: int, high: int) -> list[int]:
    """The edges of ranges of sizes, which are half-open intervals. They have equal widths if `high`
    is less than 4 `low`, or if there are few sizes. Else each is twice as wide as the one before.
    Rounded sizes are between two powers of two, and so are ranges of such.
    """
    if high > EXACT_SIZES:
        return [low, *(1 << bits for bits in range(low.bit_length(), high.bit_length() + 1))]
    if high - low < MAX_BARS:
        return list(range(low, high + 2))
    if high < 4 * low:
        width = ceil((high + 1 - low) / MAX_BARS)
        return [*range(low, high + 1, width), low + width * ceil((high + 1 - low) / width)]
    edges = [low]
    while edges[-1] <= high:
        edges.append(2 * edges[-1])
    return edges


def _source(record: Record) -> Table | None:
    """A table of aggregates of the source's columns, in their own units."""
    moments, kinds = record.get("moments", {}), record.get("categories", {})
    missing = record.get("missing", {})
    names = list(dict.fromkeys([*missing, *moments, *kinds]))
    middles = find_middles(record)
    rows = []
    for name in names:
        mean, spread = show_moments(moments.get(name, {}))
        shown = middles.get(name) if mean is None else mean
        rows.append((printable(name), missing.get(name), kinds.get(name), shown, spread))
    heads = ("column", "missing", "categories", "mean, or middle of ranks", "deviation")
    return Table("The source's columns", heads, tuple(rows)) if rows else None


def _partition(record: Record) -> Iterator[tuple[str, str]]:
    n_blocks, n_cells = record.get("n_blocks", 0), record.get("n_cells", 0)
    plan, mean = record.get("plan") or {}, (record.get("losses") or {}).get("cell_size")
    if n_blocks:
        of_each = number(round(n_cells * mean / n_blocks)) if mean else ""
        yield "blocks", f"{n_blocks:,}" + (f", of {of_each} rows on average" if of_each else "")
    if n_cells:
        # The rows of the release are fewer, where the costliest cells were left out afterwards.
        yield "cells", f"{n_cells:,}" + (f", of {mean:.1f} rows on average" if mean else "")
    for key, name in (
        ("n_leaves", "leaves of the plan"),
        ("n_merged", "leaves merged upward"),
        ("largest_leaf", "rows of the largest leaf"),
        ("n_heavy_tuples", "tuples with leaves of their own"),
        ("n_tuples", "distinct tuples searched"),
    ):
        if plan.get(key) is not None:
            yield name, number(plan[key])
    if plan.get("features"):
        yield "features that cuts look at", number(len(plan["features"]))
    controllers = plan.get("controllers")
    if controllers:
        parts = (f"{controllers['n']:,}", f"{controllers['n_merged']:,} merged")
        yield "data controllers", ", ".join((*parts, f"{controllers['n_suppressed']:,} suppressed"))


def _settings(record: Record, settings: Record) -> Iterator[tuple[str, str]]:
    """The fields of the config that a page may show (`anonlib.config.summary`), and the identity
    of the run."""
    for key, value in settings.items():
        # A release in memory lies nowhere: its place is that of no table.
        in_memory = key == "release" and record.get("outcome") == "made"
        if key == "columns" or value in ([], None) or in_memory:
            continue
        if isinstance(value, Mapping):
            told = ", ".join(f"{speak(k)}: {number(v)}" for k, v in value.items())
        elif isinstance(value, list):
            told = "; ".join(spell_label(str(each)) for each in value)
        else:
            told = f"{value}" if key == "seed" else number(value)
            told = spell_label(told) if key == "kernel" else told
        yield speak(key), printable(told)
    if "seed" not in settings and "seed" in record:
        yield "seed", str(record["seed"])
    for key in ("config_sha256", "source_version", "table_version"):
        if record.get(key) is not None:
            yield speak(key), str(record[key])
    for key in ("table", "record"):
        if record.get(key):
            yield key, printable(bare(record[key]))


def _attributes(columns: Mapping[str, Record]) -> Table | None:
    heads = ("column", "role", "scale", "released")
    rows = tuple(
        (
            printable(name),
            spell_role(each["role"]),
            each.get("scale", ""),
            describe_released(each),
        )
        for name, each in columns.items()
    )
    return Table("Columns", heads, rows) if rows else None


def describe_released(column: Record) -> str:
    """How a column is released, in words."""
    if "recoder" in column:
        along = " along its hierarchy" if column.get("hierarchy") else ""
        return f"{spell_plugin('recoder', read_recoder_spec(column))}{along}"
    if not is_released(column):
        return "not released"
    return "keyed pseudonym" if column.get("pseudonym") else "as it is"


def _timings(record: Record) -> Table | None:
    seconds = {speak(name): n for name, n in record.get("seconds", {}).items()}
    measures = read_findings(record).items()
    seconds |= {f"measure {speak(m)}": found.get("seconds") for m, found in measures}
    rounded = {name: None if n is None else round(n, 1) for name, n in seconds.items()}
    return _table("Seconds", ("stage", "seconds"), rounded)


def _table(caption: str, heads: tuple[str, ...], values: Mapping[str, Any]) -> Table | None:
    return Table(caption, heads, tuple(values.items())) if values else None
