"""Prints what a table confirms of its certificate."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from anonlib.cli.show.parts import new_table
from anonlib.cli.show.summaries import console
from anonlib.text import printable

if TYPE_CHECKING:
    from anonlib.run.confirmation import LineVerdict

_STYLES = {"confirmed": "green", "contradicted": "bold red"}


def print_lines(lines: "Sequence[LineVerdict]") -> None:
    """Prints what the table confirms or contradicts, what nothing can tell, and how many lines only
    the record can tell."""
    from anonlib.run.confirmation import RECORD_TELLS

    to = console()
    table = new_table("line", "verdict", "found")
    table.columns[1].no_wrap = True
    for each in lines:
        if each.reason != RECORD_TELLS:
            verdict = Text(each.state, style=_STYLES.get(each.state, "yellow"))
            table.add_row(Text(printable(each.name)), verdict, Text(printable(each.reason)))
    to.print(table)
    counts = Counter(line.state for line in lines)
    text = f"{counts['confirmed']} confirmed, {counts['contradicted']} contradicted"
    to.print()
    to.print(Text(f"{text}, {counts['unsaid']} that the table can't tell", style="bold"))
    if any(each.reason == RECORD_TELLS for each in lines):
        to.print(
            Text("The private record shows what no table does, such as its source and measures:")
        )
        to.print(Text("--record RECORD compares all lines with it"))
