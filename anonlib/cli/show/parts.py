"""Tables and lists for the terminal."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from anonlib.text import printable


class NumberHead(str):
    """The head of a column of numbers, which stand on the right."""


def new_table(*heads: str) -> Table:
    """An empty table with these heads."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        side: Literal["left", "right"] = "right" if isinstance(head, NumberHead) else "left"
        table.add_column(Text(head), justify=side, overflow="fold")
    return table


def new_pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """A table with one line per name and value."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(printable(name)), Text(printable(value)))
    return table


def print_places(to: Console, places: Iterable[tuple[str, str]]) -> None:
    """Prints each path or command on one line, however long, so that the user can copy it."""
    for name, place in places:
        to.print(Text.assemble((f"{name:<10}", "dim"), "  ", printable(place)), soft_wrap=True)


def print_bullets(to: Console, title: str, lines: Sequence[str]) -> None:
    """Prints a title and a bullet per line; nothing without lines."""
    if lines:
        to.print()
        to.print(Text(title, style="bold"))
    for line in lines:
        to.print(Text(f"  - {line}"), soft_wrap=True)
