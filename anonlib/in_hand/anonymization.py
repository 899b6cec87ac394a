"""Anonymizes a table in hand, a DataFrame or an Arrow table: `anonymize` returns a release of the
same type, `suggest` tries several."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anonlib.auditing.report import THRESHOLD, AuditReport, rate_risk
from anonlib.config.checks.context_section import require_current, require_reviewed
from anonlib.config.keys import derive_pseudonym_key
from anonlib.config.minimum_k import check_minimum_k
from anonlib.config.model import Config, SourceSection
from anonlib.config.policies.judgement import require_policy, require_rules
from anonlib.config.reading import GivenConfig
from anonlib.config.summary import (
    describe_config,
    note_seed,
)
from anonlib.config.unused import note_unused_in_memory
from anonlib.errors import ConfigError, InputError
from anonlib.evaluation import require_gates_of_releases
from anonlib.in_hand.proof import audit_release, require_harmless
from anonlib.in_hand.released_table import Release
from anonlib.local.advice import note_table
from anonlib.local.arguments import (
    Arguments,
    config_from_arguments,
    config_in_hand,
    name_arguments,
)
from anonlib.local.frames import (
    is_of_spark,
    like,
    list_index,
    list_names,
    require_table,
    to_arrow,
)
from anonlib.local.spark_only import find_accounts, find_unsupported
from anonlib.run.promise import make_promise
from anonlib.run.source_summary import summarize_source
from anonlib.table.schema import Column
from anonlib.table.type_words import spell_column
from anonlib.text import is_few

if TYPE_CHECKING:
    from anonlib.evaluation.memory_case import MemoryCase
    from anonlib.guesses.guess import ColumnProfile
    from anonlib.in_hand.suggestion import Suggestion, SuggestOptions
    from anonlib.local.engine import MemoryRelease
    from anonlib.local.rows import Rows
    from anonlib.progress import Progress

#: The arguments of `anonymize`, without sections.
_ARGUMENTS = [f.name for f in fields(Arguments) if f.name != "sections"]


def anonymize(
    data: Any,
    config: GivenConfig | None = None,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    identifiers: Sequence[str] | None = None,
    insensitive: Sequence[str] | None = None,
    target: str | None = None,
    target_is_public: bool = False,
    k: int | None = None,
    l: int | None = None,  # noqa: E741 (the name in the literature)
    unit: Sequence[str] | None = None,
    one_row_per_person: bool | str | None = None,
    scales: Mapping[str, str] | None = None,
    hierarchies: Mapping[str, str | Path] | None = None,
    kernel: str | Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    **sections: Any,
) -> Release:
    """Anonymizes a table, audits the result, and returns it. Nothing is published, unless the table
    is a Spark DataFrame.

    Columns that no argument names are not in the release. Scales are guessed, and notes say so.
    Tables in memory need no Spark. The released rows are those of a release in Spark of the same
    rows, config and seed (unless blocks had to be merged), in a new random order, since the order
    of a table can tell whose a row is. Times are in microseconds and UTC, as in Spark.

    Args:
        data: A pandas, polars or Arrow table, or a Spark DataFrame.
        config: A whole config instead of the arguments below: a dict, the path of a YAML file, or a
            Config. Its source is not read; a dict needs none, and in memory no `release` either.
        quasi_identifiers: Columns by which persons can be recognised.
        sensitive: Columns that are released as they are, and protected by models.
        identifiers: Columns that name persons. They are not released; what is released must not
            show them.
        insensitive: Columns that are released as they are.
        target: The column that models predict. It is protected like a sensitive column.
        target_is_public: Accepts that the target is released as it is, also without a model.
        k: The fewest persons who share their quasi-identifiers; 10 by default.
        l: The fewest values of each sensitive column, and of a target that is not public, that
            these persons have.
        unit: Columns that together identify a person, who may have several rows.
        one_row_per_person: True: declared; or the column that is checked to identify a person. This
            or `unit` is required.
        scales: By column: continuous, ordinal or nominal, where the guess is wrong.
        hierarchies: By column: the file of its hierarchy.
        kernel: The kernel: its `type`, or a mapping with parameters; mdav by default.
        path: The folder of the Delta table that a Spark DataFrame is published as.
        sections: Further sections of a config, such as recode, partition, privacy or policy.
            Without a seed one is drawn.

    Raises:
        InputError: Data or arguments can't be used.
        ConfigError: The config is not valid, does not fit the table, or does not keep its policy.
        InfeasibleError: The models can't hold, or a column shows who a person is.
        AuditError: A model does not hold.
        GateError: A figure is outside its gate.

    Example:
        anonlib.anonymize(
            frame, quasi_identifiers=["age", "city"], sensitive=["illness"], k=5, l=2,
            one_row_per_person=True,
        ).table
    """
    arguments = Arguments(
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        insensitive=insensitive,
        target=target,
        target_is_public=target_is_public,
        k=k,
        l=l,
        unit=unit,
        one_row_per_person=one_row_per_person,
        scales=scales,
        hierarchies=hierarchies,
        kernel=kernel,
        path=path,
        sections=sections,
    )
    make = _release_in_spark if is_of_spark(data) else _release_in_memory
    with nullcontext() if config is not None else name_arguments(arguments):
        return make(data, config, arguments)


def suggest(
    data: Any,
    config: GivenConfig | None = None,
    *,
    seconds: float = 60.0,
    rows: int = 20_000,
    ks: Sequence[int] = (5, 10, 20, 50),
    kernels: Sequence[str] = (),
    partitioners: Sequence[str] = (),
    **arguments: Any,
) -> "Suggestion":
    """Tries kernels and k on a sample of a table in hand, and suggests three configs: that of the
    least loss, one of the next safer k, and the quickest at the same k. If there is no safer or
    quicker one, the next best takes its place. If fewer than three attempts passed, there are
    fewer, and a note says so.

    Losses are of the sample. Where that is a part of the table, those of the whole table are
    smaller. Nothing is released, so that no account of runs is kept.

    Args:
        data: A pandas, polars or Arrow table, or a Spark DataFrame, whose sample is tried in
            memory. For that one the arguments have a `path`, as in `anonymize`.
        config: A whole config, or none and the arguments of `anonymize`.
        seconds: The time after which no attempt is begun.
        rows: About the most rows of the sample. All rows of a person are in it, or none.
        ks: The k to try, besides that of the config.
        kernels: The kernels to try; by default some that suit the config.
        partitioners: Partitioners to compare with that of the config, in blocks of a quarter of
            the sample. All other attempts have the best one.
        arguments: The arguments of `anonymize`.

    Raises:
        As `anonymize`. An attempt that fails raises nothing: its error is in a note.

    Example:
        found = anonlib.suggest(frame, quasi_identifiers=["age", "city"], one_row_per_person=True)
        anonlib.anonymize(frame, found.choices[0].config)
    """
    from anonlib.in_hand.suggestion import SuggestOptions, suggest_settings
    from anonlib.local.rows import sample_rows

    options = SuggestOptions(seconds, rows, ks, kernels, partitioners)
    names = {name: arguments.pop(name) for name in [*arguments] if name in _ARGUMENTS}
    given = Arguments(**names, sections=arguments)
    naming = nullcontext() if config is not None else name_arguments(given)
    if is_of_spark(data):
        with naming:
            chosen, notes = _configure_in_spark(data, config, given)
            return suggest_for_source(chosen, options, notes=notes, dataframe=data)
    with naming:
        chosen, notes, read = _read(data, config, given)
    require_harmless(read, chosen)
    return suggest_settings(sample_rows(read, rows), chosen, options, notes)


def suggest_for_source(
    config: Config,
    options: "SuggestOptions",
    progress: "Progress | None" = None,
    *,
    notes: Sequence[str] = (),
    dataframe: Any = None,
) -> "Suggestion":
    """The suggestion for a config, by a sample of its source, which Spark reads.

    Args:
        config: The config.
        options: What is tried.
        progress: Hears of every stage; silent by default.
        notes: Notes on the config.
        dataframe: The rows, with `source: {format: dataframe}`. Else the config's source is read.

    Raises:
        As `suggest`. A value that is rare in the sample may be common in the source, so
        InfeasibleError comes only if all rows of the source are in the sample.
    """
    from anonlib.in_hand.suggestion import suggest_settings
    from anonlib.local.rows import sample_rows
    from anonlib.progress import Progress
    from anonlib.run.source_sample import read_sample

    progress = progress or Progress()
    sample = read_sample(config, options.rows, options.ks, progress, dataframe)
    with progress.stage("suggest"):
        chosen, _, read = _read(sample.table, sample.config, Arguments())
        if sample.is_whole:
            require_harmless(read, chosen)
        tried = sample_rows(read, options.rows)
        found = suggest_settings(tried, chosen, options, notes, gates_of=config)
    return found.for_table(config)


def _release_in_spark(data: Any, config: GivenConfig | None, arguments: Arguments) -> Release:
    from anonlib.pages.output import open_record
    from anonlib.pipeline import release

    chosen, notes = _configure_in_spark(data, config, arguments)
    result = release(chosen, dataframe=data)
    if result.audit is None:
        raise InputError(
            "no release was made: these rows wait in the backlog, or the run was published before; "
            "anonlib.release says which"
        )
    # Spark takes a path without a scheme for one of its own store, which the config's is.
    table = data.sparkSession.read.format("delta").load(chosen.release.path)
    record = open_record(result.record)
    risk = _value_risk(result.audit, chosen.unit)
    notes = (*notes, *note_persons(chosen, result.n_nobody), *result.notes)
    found = result.evaluation
    return Release(table, result.audit, result.losses, risk, notes, chosen, record, found)


def _configure_in_spark(
    data: Any, config: GivenConfig | None, arguments: Arguments
) -> tuple[Config, tuple[str, ...]]:
    """The config of a call for a DataFrame in Spark, and notes on what was guessed."""
    from anonlib.source.frame_profile import profile_frame, take_no_rows
    from anonlib.source.given import require_columns, require_frame
    from anonlib.spark.translation import translate_errors

    arguments.require_kinds()
    require_frame(data, "data")
    if config is not None:
        arguments.refuse_beside_config()
        chosen = config_in_hand(config, in_memory=False)
        plain = {"format": "dataframe", "where": chosen.source.where}
        return chosen.model_copy(update={"source": SourceSection.model_validate(plain)}), ()
    if arguments.path is None:
        raise InputError("path: name the folder of the Delta table that is published")
    kept = [name for name in data.columns if name in arguments.names]
    require_columns(data, kept)
    guarded = partial(translate_errors, "data", permission_error=InputError)
    with guarded():
        empty = take_no_rows(data, kept)

    def profile(names: Sequence[str]) -> Mapping[str, "ColumnProfile"]:
        with guarded():
            return profile_frame(data, names)

    return config_from_arguments(empty, data.columns, arguments, profile)


def _read(
    data: Any, config: GivenConfig | None, arguments: Arguments
) -> tuple[Config, tuple[str, ...], "Rows"]:
    """The config of a call, notes on what was guessed, and the rows of a table in memory."""
    from anonlib.local.rows import list_needed, note_cut_times, read_rows

    arguments.require_kinds()
    notes: tuple[str, ...] = ()
    data = require_table(data)
    index = list_index(data)
    if lost := [name for name in index if name in arguments.names]:
        raise InputError(
            f"column {', '.join(lost)}: is in the index, which is left out; call `reset_index()`, "
            "which makes it a column"
        )
    if config is None:
        table = to_arrow(data, arguments.names)
        chosen, notes = config_from_arguments(table, list_names(data), arguments)
    else:
        arguments.refuse_beside_config()
        chosen = config_in_hand(config, in_memory=True)
    problems = [*find_unsupported(chosen), *check_minimum_k(chosen.all_models)]
    if problems:
        raise ConfigError(problems)
    if index:
        notes = (*notes, "the index is left out: `reset_index()` makes it a column")
    table = to_arrow(data, list_needed(chosen))
    rows = read_rows(table, list_names(data), chosen)
    require_policy(chosen, rows.schema)
    return chosen, (*notes, *note_cut_times(table, rows.schema)), rows


def _release_in_memory(
    data: Any, whole_config: GivenConfig | None, arguments: Arguments
) -> Release:
    from anonlib.in_hand.measuring import evaluate_release, make_case, mark_rows
    from anonlib.local.engine import make_release
    from anonlib.table.table_digest import digest_in_memory
    from anonlib.worker.marks import find_marks

    if problems := [*find_accounts()]:
        raise ConfigError(problems)
    config, notes, rows = _read(data, whole_config, arguments)
    require_reviewed(config.review)
    require_current(config.context)
    require_gates_of_releases(config.gates, config.evaluate)
    run_id = f"in-memory-{secrets.token_hex(16)}"  # pseudonyms of two runs must differ
    key = derive_pseudonym_key(config.attributes, config.pseudonyms, run_id, "")
    content = require_harmless(rows, config)
    marks = find_marks(config.evaluate)
    if config.evaluate is not None:
        rows = mark_rows(rows, config.seed, marks)
    release = make_release(rows, config, secrets.token_bytes(32), marks, key)
    report = audit_release(release, rows, config)
    rules = require_rules(config, rows.schema, report.smallest_class or 0, content.kinds)
    case = make_case(release, rows, config, marks.link_key)
    evaluation, overview = evaluate_release(case, config)
    # The kernel's order tells of the source, and so does the source's own.
    order = pa.array(np.random.default_rng().permutation(release.table.num_rows))
    schema = rows.schema
    released = pa.table({c.name: release.table.column(c.id) for c in schema.released}).take(order)
    told = note_table(schema, content, rows.table, len(rows.table), release.encodings, config)
    notes = (*notes, *told, *_note(rows, config), *release.notes)
    record = _make_record(run_id, release, rows, report, config, notes)
    record["content"] = content.to_dict()
    record["policy"] = [asdict(verdict) for verdict in rules]
    record["overview"] = asdict(overview)
    record["evaluation"] = evaluation and evaluation.to_dict()
    risk = _value_risk(report, config.unit, case)
    table = like(released, data, [c.name for c in schema.released if _keeps_type(c)])
    names = list_names(table)
    in_arrow = to_arrow(table, names)
    record["table_digest"] = digest_in_memory(in_arrow).text
    record["table_columns"] = list(names)
    record["table_types"] = [*map(spell_column, in_arrow.columns)]
    losses, types = release.losses, released.schema
    return Release(table, report, losses, risk, notes, config, record, evaluation, types)


def _keeps_type(column: Column) -> bool:
    """Whether a column is released as values of its own kind: not as intervals, sets or nodes."""
    form = "value" if column.recoder is None else column.recoder.releases
    return form == "value" and not column.pseudonym and column.released_type == column.type


def _note(rows: "Rows", config: Config) -> Iterator[str]:
    """What only a release in memory says: there is no check before it, and no run."""
    yield from note_persons(config, rows.n_nobody)
    yield from note_seed(config.seed)
    yield from note_unused_in_memory(config)


def note_persons(config: Config, n_nobody: int) -> Iterator[str]:
    """What rows count for that were not checked. n_nobody: Rows without a person."""
    if config.one_row_per_person is True:
        yield "each row counts as another person: declared, not checked"
    if n_nobody:
        count = f"fewer than {config.k}" if is_few(n_nobody, config.k) else f"{n_nobody:,}"
        yield f"{count} rows have no person: no model counts them"


def _value_risk(
    report: AuditReport, unit: Sequence[str], case: "MemoryCase | None" = None
) -> dict[str, float]:
    """Risks by the sizes of classes.

    Args:
        report: The report of the audit.
        unit: The columns that identify a person, if rows are no persons. Then audits know the
            persons of the smallest class only, which tell the largest chance.
        case: The release in memory, in which each person can be counted by their smallest class.
    """
    if not unit:
        return rate_risk(report.sizes, report.n_classes, report.n_rows)
    fewest = report.of_whole.smallest_class
    if not fewest:
        return {}
    largest = {"prosecutor_max": 1 / fewest}
    if case is None:
        return largest
    sizes = case.sizes
    above = sizes.share_above(THRESHOLD)
    return {**largest, "marketer": sizes.mean_chance, "prosecutor_at_risk": above}


def _make_record(
    run_id: str,
    release: "MemoryRelease",
    rows: "Rows",
    report: AuditReport,
    config: Config,
    notes: tuple[str, ...],
) -> dict[str, Any]:
    n_in = rows.table.num_rows
    quasi = rows.schema.quasi_identifiers
    n_missing = {column.id: rows.table.column(column.id).null_count for column in quasi}
    return {
        "anonlib_record": 1,
        "run_id": run_id,
        "outcome": "made",
        "n_rows_in": n_in,
        "n_rows_out": report.n_rows,
        "n_suppressed": n_in - report.n_rows,
        "n_nobody": rows.n_nobody,
        "n_blocks": release.n_blocks,
        "n_cells": release.n_cells,
        "plan": {}
        if release.controllers is None
        else {"controllers": release.controllers.to_dict()},
        "audit": report.to_dict(),
        "losses": release.losses,
        "losses_by_column": release.losses_by_column,
        "notes": list(notes),
        **describe_config(config),
        "promise": make_promise(config, rows.schema).to_dict(),
        **summarize_source(rows.schema, release.encodings, n_missing, n_in, config.k),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
