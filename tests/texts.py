"""The code and the commands in the repository's texts, for tests that do what the texts say."""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from anonlib import registry

ROOT = Path(__file__).parents[1]
#: What stands in shown output where some is left out: a line of its own.
LEFT_OUT = "..."


@dataclass(frozen=True)
class Fenced:
    """A fenced block: its language, what else stands beside that, and its lines."""

    language: str
    name: str
    text: str


@dataclass(frozen=True)
class Shown:
    """A command and the output that is shown below it."""

    argv: tuple[str, ...]
    lines: tuple[str, ...]


def fenced(text: str) -> Iterator[Fenced]:
    """The fenced blocks of a Markdown text, in their order."""
    for found in re.finditer(r"^```(\w*) ?(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        yield Fenced(found[1], found[2], found[3])


def commands(block: Fenced) -> list[Shown]:
    """The commands of a block `console`, each after `$ `; lines that end in a backslash go on."""
    parts = re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)
    assert not parts[0], "output without a command"
    split = [part.splitlines() for part in parts[1:]]
    return [Shown(tuple(shlex.split(head)), tuple(lines)) for head, *lines in split]


def not_said(shown: Iterable[str], output: str) -> list[str]:
    """The shown lines that the output lacks, in order; blanks count as one. Lines between may be
    left out only where the text says so, those at its beginning and end as well."""
    left = [line for line in map(_squeezed, output.splitlines()) if line]
    missing, may_skip = [], False
    for line in filter(None, map(_squeezed, shown)):
        if line == LEFT_OUT:
            may_skip = True
            continue
        place = left.index(line) if line in left else -1
        if place < 0 or (place > 0 and not may_skip):
            missing.append(line)
        else:
            left, may_skip = left[place + 1 :], False
    return missing if may_skip else [*missing, *left]


def _squeezed(line: str) -> str:
    return " ".join(line.split())


# --- the examples of CONTRIBUTING.md


def contributing() -> list[Fenced]:
    return list(fenced((ROOT / "CONTRIBUTING.md").read_text("utf-8")))


def examples() -> dict[str, str]:
    """The code of each example, by the path of its file."""
    return {block.name: block.text for block in contributing() if block.language == "python"}


def entries() -> dict[str, dict[str, str]]:
    """The entry points that the text shows: group, name and class."""
    (block,) = [block for block in contributing() if block.language == "toml"]
    found: dict[str, dict[str, str]] = tomllib.loads(block.text)["project"]["entry-points"]
    return found


def write_examples(folder: Path) -> None:
    """The examples as files of a checkout in `folder`."""
    for name, code in examples().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code, "utf-8")


def install_examples(folder: Path) -> None:
    """The examples in `folder`, which is to be on the path, as if their package were installed."""
    about = folder / "contributed-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: contributed\nVersion: 1\n")
    (folder / "contributed").mkdir()
    (folder / "contributed" / "__init__.py").touch()
    groups = {f"anonlib.{family.replace(' ', '_')}": family for family in registry.FOLDERS}
    lines = []
    for group, named in entries().items():
        lines.append(f"[{group}]")
        folders = [each.replace(".", "/") for each in registry.FOLDERS[groups[group]]]
        for name, place in named.items():
            lines.append(f"{name} = {place}")
            (code,) = [
                examples()[f"{f}/{name}.py"] for f in folders if f"{f}/{name}.py" in examples()
            ]
            module = place.partition(":")[0].replace(".", "/")
            (folder / f"{module}.py").write_text(code, "utf-8")
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
