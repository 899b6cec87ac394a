"""Prints past runs: verdicts, counts and names, no data."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from anonlib.cli.show.parts import NumberHead, new_table, print_bullets
from anonlib.cli.show.summaries import console
from anonlib.text import printable

_GOOD = ("published", "waiting", "evaluated")
#: What ended a run, by the type of its error, in words that a narrow column has room for. Texts of
#: errors are not kept, as they may name data.
_ERRORS = {
    "ConfigError": "config refused",
    "InputError": "input refused",
    "InfeasibleError": "models can't hold",
    "StorageError": "storage failed",
    "PublishedError": "failed after its commit",
    "BusyError": "target busy",
    "BlockError": "work failed",
    "ContractError": "plug-in failed",
}


def print_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    """Prints one table of runs per target. Targets are in the order of their first run."""
    to = console()
    if not runs:
        to.print(Text("no runs"))
    for i, target in enumerate(dict.fromkeys(run["target"] for run in runs)):
        if i:
            to.print()
        to.print(Text(printable(target or ""), style="bold"), soft_wrap=True)
        table = new_table("ended (UTC)", "run", "outcome", NumberHead("rows"), "verdicts")
        for column in table.columns[:-1]:
            column.no_wrap = True
        for run in runs:
            if run["target"] == target:
                table.add_row(*_cells(run))
        to.print(table)


def _cells(run: Mapping[str, Any]) -> list[Text]:
    outcome, rows = run["outcome"] or "", run.get("rows_out")
    style = "" if outcome in _GOOD else "red"
    return [
        Text((run["ended"] or "")[:16].replace("T", " ")),
        Text(printable(run["run_id"] or "")),
        Text(printable(outcome), style=style),
        Text("" if rows is None else f"{rows:,}"),
        Text(_describe_end(run)),
    ]


def _describe_end(run: Mapping[str, Any]) -> str:
    """How many models hold and how many gates passed, or what ended a run that came to neither. The
    verb if it is no release."""
    verb, error = run.get("verb") or "release", printable(run.get("error") or "")
    told = _count_verdicts(run)
    # Of a run that ended otherwise, verdicts are of what was there before it.
    if error and (run["outcome"] == "failed" or not told):
        told = _ERRORS.get(error, error)
    return told if verb == "release" else f"{printable(verb)}: {told}".removesuffix(": ")


def _count_verdicts(run: Mapping[str, Any]) -> str:
    models, gates = run.get("verdicts") or [], run.get("gates") or []
    told = [f"{sum(bool(v['holds']) for v in models)}/{len(models)} hold"] if models else []
    if gates:
        told.append(f"{sum(bool(gate['passed']) for gate in gates)}/{len(gates)} gates")
    return ", ".join(told)


#: Notes on what runs did with a person.
_FATES = {
    "released or suppressed": "the person was in the run's source; it suppressed rows, and its "
    "ledger does not tell whose",
    "replaced by run": "the table has that run's rows no more, and its old files are removed; who "
    "kept a copy has them, and the ledger keeps the person's keyed token",
    "unknown": "the ledger lacks the run, or was written with another key",
    "waits, not searched": "the run's rows are encrypted in the backlog, in the folder run-ID; to "
    "leave a person out, remove it and release the run again from its source",
}


def print_person(runs: Mapping[str, str]) -> None:
    """Prints which runs released a person.

    Args:
        runs: By run id: what it did with the person.
    """
    to = console()
    table = new_table("run", "person")
    for run_id, fate in runs.items():
        table.add_row(Text(printable(run_id)), Text(fate))
    to.print(table if runs else Text("no runs"))
    told = "\n".join(runs.values())
    if texts := [f"{fate}: {text}" for fate, text in _FATES.items() if fate in told]:
        print_bullets(to, "notes", texts)
