"""Prints what `anonlib suggest` tried and chose."""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from anonlib.cli.show.parts import NumberHead, new_table, print_bullets, print_places
from anonlib.cli.show.summaries import console, program
from anonlib.config.model import Config
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.text import spell_figure

if TYPE_CHECKING:
    from anonlib.in_hand.suggestion import Suggestion


def print_suggestion(
    suggestion: "Suggestion",
    config: str,
    own: Config,
    overrides: Sequence[str] = (),
    page: str | None = None,
) -> None:
    """Prints the attempts, the choices, and the commands that release by them, or check them where
    the config is a draft that nobody has looked at.

    Args:
        suggestion: The suggestion.
        config: The path of the config.
        own: The config that is there.
        overrides: Its overrides, as given with `--set`.
        page: The file of the page, if it was written.
    """
    to = console()
    table = new_table(
        "kernel",
        NumberHead("k"),
        NumberHead("loss"),
        NumberHead("1 / k" if own.unit else "mean chance"),
        NumberHead("seconds"),
    )
    for each in suggestion.attempts:
        risk = spell_figure(None if each.loss is None else each.risk, "")
        loss = spell_figure(each.loss, "failed")
        table.add_row(each.kernel, str(each.k), loss, risk, f"{each.seconds:.1f}")
    to.print(table)
    for choice in suggestion.choices:
        to.print()
        to.print(Text(choice.name, style="bold"))
        to.print(Text(choice.reason))
        more = [*overrides, *_list_overrides(choice.config, own)]
        words = [shlex.quote(config), *[f"--set {shlex.quote(text)}" for text in more]]
        verb = "check" if own.review else "release"
        print_places(to, [(f"{verb} it", f"{program()} {verb} {' '.join(words)}")])
    print_bullets(to, "notes", suggestion.notes)
    if page is not None:
        to.print()
        print_places(to, [("page", f"{page} (private)")])


def _list_overrides(new: Config, own: Config) -> Iterator[str]:
    """What `--set` needs to make one config of another: its partitioner, its kernel and its k."""
    if new.partition.steps != own.partition.steps:
        yield f"partition.steps=[{{type: {new.partition.steps[0].type}}}]"
    if new.kernel != own.kernel:
        yield f"kernel={new.kernel.type}"
    models = zip(new.privacy.models, own.privacy.models, strict=True)
    for i, (model, before) in enumerate(models):
        if isinstance(model, KAnonymity) and model != before:
            yield f"privacy.models.{i}.k={model.k}"
