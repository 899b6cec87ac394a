"""Prints the results of verbs: figures, verdicts and paths. No data, except the published rows of
`show`."""

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from anonlib import registry
from anonlib.auditing.report import list_worst
from anonlib.cli.show.figures import list_figure_notes, print_figures
from anonlib.cli.show.parts import NumberHead, new_pairs, new_table, print_bullets, print_places
from anonlib.config.listing import Parameter, PluginInfo
from anonlib.config.paths import find_dictionary_path
from anonlib.loss import Metric
from anonlib.run.result import CheckResult, ReleaseResult
from anonlib.text import drop_file_scheme, printable, spell_figure

if TYPE_CHECKING:
    from anonlib.auditing import AuditReport, Verdict
    from anonlib.config.policies.judgement import RuleVerdict

#: Most characters of a released value on the screen.
MAX_VALUE = 40


def console() -> Console:
    """A console on stdout. Without a terminal: no colours, 80 columns."""
    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False)


def print_release(
    result: ReleaseResult,
    config: str,
    overrides: Sequence[str] = (),
    to: Console | None = None,
) -> None:
    """Prints the summary of a release.

    Args:
        result: The result of the run.
        config: The path of the config, for the commands that are suggested.
        overrides: The `--set` overrides, for the same commands.
        to: Where to print; by default stdout.
    """
    to = to or console()
    if result.n_waiting:
        text = (
            f"Run {printable(result.run_id)} published nothing: {result.n_waiting:,} rows wait in "
            "the backlog for the next run."
        )
        to.print(Text(text, style="bold"))
    elif result.already_done:
        to.print(Text(f"Run {printable(result.run_id)} is done already; nothing happened again."))
    else:
        to.print(Text(f"Published by run {printable(result.run_id)}\n", style="bold"))
        to.print(new_pairs(_figures(result)))
        _print_found(result, to)
    print_bullets(to, "notes", _notes(result))
    if not result.n_waiting:
        to.print()
        print_places(to, _release_places(result, config, overrides))


def print_evaluation(
    result: ReleaseResult,
    config: str,
    overrides: Sequence[str] = (),
) -> None:
    """Prints the figures of a release or of a trial. Arguments as in `print_release`."""
    to = console()
    trial = result.table_version < 0
    what = "a trial release, not published" if trial else printable(local(result.table))
    to.print(Text(f"Measured: {what}\n", style="bold"), soft_wrap=True)
    to.print(new_pairs([("rows", f"{result.n_rows_out:,} of {result.n_rows_in:,}")]))
    _print_found(result, to)
    print_bullets(to, "notes", _notes(result))
    to.print()
    print_places(to, [("record", local(result.record)), ("report", local(result.report))])
    if trial:
        print_places(
            to, [("release it", f"{program()} release {_describe_values(config, overrides)}")]
        )


def _print_found(result: ReleaseResult, to: Console) -> None:
    """Prints verdicts, losses, figures and gates, as far as the result has them."""
    if result.audit is not None:
        to.print()
        to.print(new_verdict_table(result.audit.verdicts))
    if result.losses:
        to.print()
        to.print(_losses(result.losses))
    if result.evaluation is not None:
        print_figures(result.evaluation, to)
    _print_policy(result.policy, to)


def _print_policy(verdicts: "Sequence[RuleVerdict]", to: Console) -> None:
    """Prints the rules of a policy, one per row."""
    if not verdicts:
        return
    table = new_table("rule", "state", "found", "it says")
    table.columns[1].no_wrap = True
    styles = {"kept": "green", "not kept": "bold red", "to confirm": "yellow"}
    for each in verdicts:
        state = Text(each.state, style=styles.get(each.state, "dim"))
        table.add_row(Text(each.rule), state, Text(printable(each.reason)), Text(each.says))
    to.print()
    to.print(table)


def print_audit(report: "AuditReport", table: str) -> None:
    """Prints an audit: the verdict for each model, sizes of the worst classes, notes, problems."""
    to = console()
    word, style = ("passed", "bold green") if report.passed else ("failed", "bold red")
    if report.at_release:
        word, style = "can't be counted here: audited at release", "bold yellow"
    if report.shortfalls:
        word += ", and it asks less than the release promised"
        style = "bold yellow" if report.passed else style
    to.print(Text.assemble("Audit of ", printable(table), ": ", (word, style)), soft_wrap=True)
    to.print()
    counted = report.n_classes or not report.n_rows  # else columns are absent or broken
    classes = f"{report.n_classes:,}" if counted else "not counted, see problems"
    to.print(new_pairs([("rows", f"{report.n_rows:,}"), ("classes", classes)]))
    if report.verdicts:
        to.print()
        to.print(new_verdict_table(report.verdicts))
    failing = [verdict for verdict in report.verdicts if verdict.worst]
    if failing:
        to.print()
        to.print(_worst(failing))
    notes = [
        f"{printable(verdict.model)}: {printable(verdict.note)}" for verdict in report.verdicts
    ]
    notes = [note for note, verdict in zip(notes, report.verdicts, strict=True) if verdict.note]
    print_bullets(to, "premises", report.premises)
    print_bullets(to, "notes", [*notes, *list_lone_notes(report), *report.notes])
    print_bullets(to, "promised by the release, not asked by this audit", report.shortfalls)
    print_bullets(to, "problems", [printable(str(problem)) for problem in report.problems])


def list_lone_notes(report: "AuditReport") -> list[str]:
    """Notes about columns released as shares in which single rows stand out."""
    return [
        f"{printable(name)}: the shares tell of {n:,} rows ({n / report.n_rows:.1%}) that no other "
        "row of their class has their value; round them by `steps`, or release lca"
        for name, n in report.lone.items()
        if n
    ]


def print_check(
    result: CheckResult,
    config: str,
    overrides: Sequence[str] = (),
) -> None:
    """Prints a config as resolved against its source. Arguments as in `print_release`."""
    to = console()
    head = Text.assemble(printable(config), ": ", ("fits its source", "bold green"))
    if result.obstacles:
        head.append("; release would be refused", "bold red")
    to.print(head, soft_wrap=True)
    to.print()
    table = new_table("column", "role", "scale", "type", "released as")
    table.columns[1].no_wrap = table.columns[2].no_wrap = True
    for column in result.columns:
        # Lines break only at spaces, which Spark's `struct<lower:double,upper:double>` has not.
        types = (re.sub("[,:]", r"\g<0> ", t) for t in (column.source_type, column.released_as))
        cells = (column.name, column.role, column.scale or "", *types)
        table.add_row(*[Text(printable(cell)) for cell in cells])
    to.print(table)
    to.print()
    models = ", ".join(result.models)
    rows = [("rows", f"{result.n_rows:,}"), *_nobody(result.n_nobody), ("models", models)]
    to.print(new_pairs([*rows, ("kernel", result.kernel), ("partition", result.partition)]))
    _print_policy(result.policy, to)
    print_bullets(to, "notes", [printable(note) for note in result.notes])
    print_bullets(
        to,
        "release is refused until this is changed",
        [printable(text) for text in result.obstacles],
    )
    to.print()
    if result.review:
        print_places(to, [("review it first", config)])
        return
    if result.obstacles:
        return
    print_places(to, [("release it", f"{program()} release {_describe_values(config, overrides)}")])


def print_listings(listings: Iterable[PluginInfo], verb: str) -> None:
    """Prints a line on each plug-in. verb: The verb that describes one of them."""
    to = console()
    table = new_table("name", "what it is")
    table.columns[0].no_wrap = True
    for listing in listings:
        mark = f" ({listing.default_of})" * bool(listing.default_of)
        table.add_row(listing.type, f"{listing.summary}{mark}")
    to.print(table)
    to.print()
    print_places(to, [("parameters, reference", f"{program()} {verb} NAME")])


def print_listing(listing: PluginInfo) -> None:
    """Prints the description of a plug-in."""
    to = console()
    to.print(Text(listing.type, style="bold"))
    to.print(Text(listing.summary))
    if listing.parameters:
        to.print(_parameters(listing.parameters))
    if listing.figures:
        table = new_table("figure", "meaning")
        for name, meaning in listing.figures.items():
            table.add_row(name, meaning)
        to.print(table)
    facts = [("cost", listing.cost), ("reference", listing.reference)]
    if any(text for _, text in facts):
        to.print(new_pairs([(name, text) for name, text in facts if text]))


def _parameters(parameters: Iterable[Parameter]) -> Table:
    """A table of parameters. Defaults that are lists have one line per item."""
    table = new_table("parameter", "default", "allowed", "meaning")
    table.columns[1].no_wrap = True
    for each in parameters:
        default = "required" if each.default is None else each.default.replace(", ", ",\n ")
        table.add_row(each.name, default, each.allowed, each.description)
    return table


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
    """Prints published rows as a table; with one value per line if the table would be too wide."""
    to = console()
    cells = [[_short(value) for value in row] for row in rows]
    columns = list(zip(*cells, strict=True)) if cells else [() for _ in names]
    widths = [
        max([len(name), *map(len, column)]) for name, column in zip(names, columns, strict=True)
    ]
    if sum(widths) + 2 * len(widths) <= to.width:
        table = new_table(*map(printable, names))
        for row in cells:
            table.add_row(*map(Text, row))
        to.print(table)
        return
    for i, row in enumerate(cells):
        to.print(Text(f"row {i + 1}", style="bold"))
        to.print(new_pairs(zip(names, row, strict=True)))


def program() -> str:
    """How the user called this program, for commands to copy."""
    called = Path(sys.argv[0])
    if called.name not in ("cli.py", "__main__.py"):
        return "anonlib"
    script = Path(__file__).parents[3] / "scripts" / "anonlib"
    if not script.is_file():
        return "python -m anonlib"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def _figures(result: ReleaseResult) -> list[tuple[str, str]]:
    rows = f"{result.n_rows_in:,} in, {result.n_rows_out:,} out, {result.n_suppressed:,} suppressed"
    # Of the cells as they were made: some may have been left out of the release.
    mean = result.losses.get("cell_size")
    per_cell = f", of {mean:.1f} rows on average" if mean else ""
    figures = [
        ("rows", rows),
        *_nobody(result.n_nobody),
        ("blocks", f"{result.n_blocks:,}"),
        ("cells", f"{result.n_cells:,}{per_cell}"),
    ]
    if result.seconds:
        figures.append(("time", f"{sum(result.seconds.values()):.1f} s"))
    return figures


def _nobody(n_rows: int) -> list[tuple[str, str]]:
    return [("of nobody", f"{n_rows:,} rows without a person: no model counts them")] * bool(n_rows)


def _release_places(
    result: ReleaseResult, config: str, overrides: Sequence[str]
) -> list[tuple[str, str]]:
    table = local(result.table)
    version = f" (version {result.table_version})" if result.table_version >= 0 else ""
    quoted = shlex.quote(table)
    audit = f"{program()} audit {quoted} --conf {_describe_values(config, overrides)}"
    return [
        ("table", table + version),
        ("manifest", local(result.manifest)),
        ("dictionary", local(find_dictionary_path(result.table))),
        *([("record", f"{local(result.record)} (private)")] if result.record else []),
        *([("report", f"{local(result.report)} (private)")] if result.report else []),
        ("look at it", f"{program()} show {quoted}"),
        *([("audit it", audit)] if result.auditable else []),
    ]


def _describe_values(config: str, overrides: Sequence[str]) -> str:
    """The config and its overrides, quoted for a shell."""
    return " ".join([shlex.quote(config), *[f"--set {shlex.quote(text)}" for text in overrides]])


def local(path: str) -> str:
    """A local path without `file:`, relative if it is below the working directory. Other paths
    don't change."""
    bare, here = drop_file_scheme(path), f"{Path.cwd()}/"
    return bare.removeprefix(here) if bare != here else bare


def new_verdict_table(verdicts: "Iterable[Verdict]") -> Table:
    """A table of verdicts: a privacy model per row."""
    table = new_table("privacy model", NumberHead("measured"), NumberHead("required"), "verdict")
    for verdict in verdicts:
        table.add_row(
            Text(printable(verdict.model)),
            Text(show_number(verdict.value, exact=verdict.exact)),
            Text(show_number(verdict.required)),
            _verdict(verdict),
        )
    return table


def _verdict(verdict: "Verdict") -> Text:
    if verdict.at_release:
        return Text("AT RELEASE", style="yellow")
    return Text("holds", style="green") if verdict.holds else Text("FAILS", style="bold red")


def _worst(verdicts: "Iterable[Verdict]") -> Table:
    table = new_table("privacy model", NumberHead("failing classes"), "smallest (rows)")
    for verdict in verdicts:
        n, sizes = Text(f"{verdict.n_failing:,}"), Text(list_worst(verdict))
        table.add_row(Text(printable(verdict.model)), n, sizes)
    return table


def _losses(losses: dict[str, float | None]) -> Table:
    table = new_table("information loss", NumberHead("value"))
    for name, value in losses.items():
        table.add_row(Text(printable(name)), Text(spell_figure(value, "not computable")))
    return table


def _notes(result: ReleaseResult) -> list[str]:
    found = [] if result.evaluation is None else list_figure_notes(result.evaluation)
    return [*map(printable, (*result.notes, *_explain_undefined(result.losses))), *found]


def _explain_undefined(losses: dict[str, float | None]) -> list[str]:
    """For each loss without a value, the reason."""
    known = registry.plugins("metric")
    missing = [known[name] for name, value in losses.items() if value is None and name in known]
    return [f"{p.type}: {p.undefined}" for p in missing if issubclass(p, Metric)]


def show_number(value: float | None, *, exact: bool = True) -> str:
    """A measured or required figure of a privacy model. exact: Whether it is no bound."""
    if value is None:
        return "not measured"
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:.6g}"
    return text if exact else f"{text} or better"


def _short(value: str | None) -> str:
    if value is None:
        return "null"
    text = printable(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
