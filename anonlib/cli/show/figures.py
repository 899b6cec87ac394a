"""Prints the measures and gates of a release."""

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from anonlib.cli.show.parts import NumberHead, new_pairs, new_table
from anonlib.evaluation import Evaluation
from anonlib.measure import Figure
from anonlib.text import printable, spell_figure

#: Most columns of figures side by side.
ACROSS = 4
#: Most figures named in a note.
NAMED = 6


def print_figures(evaluation: Evaluation, to: Console) -> None:
    """Prints all figures by measure, then the gates."""
    for measure, found in evaluation.findings.items():
        of_table = [figure for figure in found.figures if not figure.of]
        parts = [figure for figure in found.figures if figure.of]
        title = printable(measure)
        if parts:
            to.print()
            to.print(_side_by_side(title, parts))
        elif of_table:
            to.print()
            to.print(Text(title, style="bold"))
        if of_table:
            to.print(new_pairs((figure.name, spell_figure(figure.value)) for figure in of_table))
    if evaluation.gates:
        to.print()
        to.print(Text("gates", style="bold"))
    for judged in evaluation.gates:
        word, style = ("passed", "bold green") if judged.passed else ("failed", "bold red")
        to.print(
            Text.assemble("  - ", (word, style), f"  {printable(judged.text)}"), soft_wrap=True
        )


def list_figure_notes(evaluation: Evaluation) -> list[str]:
    """The notes of all figures. Figures with equal notes share one line."""
    notes: dict[str, list[str]] = defaultdict(list)
    for measure, figure in evaluation.figures():
        if figure.note:
            about = f" of {figure.of}" if figure.of else ""
            notes[figure.note].append(f"{measure}.{figure.name}{about}")
    return [f"{printable(_some(names))}: {printable(note)}" for note, names in notes.items()]


def _side_by_side(title: str, figures: Sequence[Figure]) -> Table:
    """A table of the figures of several parts: columns, pairs or models.

    Its columns are the names of figures if these are few, else the parts if those are few. If both
    are many, each figure has its own row.
    """
    names = list(dict.fromkeys(figure.name for figure in figures))
    parts = list(dict.fromkeys(figure.of for figure in figures))
    known = {(figure.name, figure.of): spell_figure(figure.value) for figure in figures}
    if len(names) <= ACROSS:
        table = new_table(title, *[NumberHead(printable(name)) for name in names])
        rows = [(part, [known.get((name, part), "") for name in names]) for part in parts]
    elif len(parts) <= ACROSS:
        table = new_table(title, *[NumberHead(printable(part)) for part in parts])
        rows = [(name, [known.get((name, part), "") for part in parts]) for name in names]
    else:
        table = new_table(title, "of", NumberHead("value"))
        rows = [
            (figure.name, [printable(figure.of), spell_figure(figure.value)]) for figure in figures
        ]
    for head, cells in rows:
        table.add_row(Text(printable(head)), *map(Text, cells))
    return table


def _some(names: list[str]) -> str:
    """The first names, and the number of the others."""
    return ", ".join(names[:NAMED]) + (
        f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    )
