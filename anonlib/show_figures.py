"""What the terminal shows of a release's measures and gates."""

from collections import defaultdict

from rich.console import Console
from rich.text import Text

from anonlib.cli_errors import plain
from anonlib.evaluation import Evaluation
from anonlib.measure import Figure
from anonlib.show_parts import bullets, headed

#: Figures of more columns than this are shown by their worst only.
MANY = 6


def print_figures(evaluation: Evaluation, to: Console) -> None:
    """All figures, measure by measure, then what the gates say."""
    for measure, found in evaluation.findings.items():
        if not found.figures:
            continue
        shown = headed(plain(measure), "of", ">value")
        for figure in found.figures:
            shown.add_row(*[Text(plain(each)) for each in (figure.name, figure.of, _value(figure))])
        to.print()
        to.print(shown)
    notes: dict[str, list[str]] = defaultdict(list)
    for measure, figure in evaluation.figures():
        if figure.note:
            about = f" of {figure.of}" if figure.of else ""
            notes[figure.note].append(f"{measure}.{figure.name}{about}")
    bullets(to, "notes", [f"{plain(_some(names))}: {plain(note)}" for note, names in notes.items()])
    if evaluation.gates:
        to.print()
        to.print(Text("gates", style="bold"))
    for judged in evaluation.gates:
        word, style = ("passed", "bold green") if judged.passed else ("failed", "bold red")
        to.print(Text.assemble("  - ", (word, style), f"  {plain(judged.text)}"), soft_wrap=True)


def _value(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    if float(figure.value).is_integer() and abs(figure.value) >= 1:
        return f"{figure.value:,.0f}"
    return f"{figure.value:.4g}"


def _some(names: list[str]) -> str:
    """The first few of many."""
    return ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")
