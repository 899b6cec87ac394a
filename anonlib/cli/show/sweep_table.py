"""Prints a sweep: means over seeds, no data."""

from rich.text import Text

from anonlib.cli.show.parts import new_pairs
from anonlib.cli.show.summaries import console, local
from anonlib.sweeps.results import SweepResult, summarize_cases
from anonlib.text import count_noun, printable


def print_sweep(result: SweepResult) -> None:
    """Prints the means of each case, errors, notes, and the paths of all results."""
    to = console()
    for each in summarize_cases(result):
        to.print(Text(printable(each.case), style="bold"))
        lines = [[printable(cell) for cell in line] for line in (each.heads, *each.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            to.print(Text("  ".join(padded).rstrip()), soft_wrap=True)
        to.print()
    failed = [row for row in result.rows if row.error is not None]
    if failed:
        to.print(Text(f"{count_noun(len(failed), 'point')} failed", style="bold red"))
        for text in dict.fromkeys(f"{row.case}: {row.error}" for row in failed[:1000]):
            to.print(Text(f"  - {printable(text)}"), soft_wrap=True)
        to.print()
    for note in result.notes:
        to.print(Text(printable(note)), soft_wrap=True)
        to.print()
    points = f"{result.n_points:,}, of which {result.n_new:,} tried now"
    to.print(
        new_pairs(
            [
                ("points", points),
                ("results", f"{local(result.table)} (private)"),
                ("also as", f"{local(result.out)}/results.csv, summary.md, report.html"),
            ]
        )
    )
