"""Names over the whole package: one name for one thing, nouns for classes, verbs for functions."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import anonlib
from anonlib import registry

HOME = Path(anonlib.__file__).parent
#: Names that stand for more than one thing, each with its reason.
SHARED = {
    "file core.py": "the compiled loops of the algorithm that its folder is named by",
    "file search.py": "the search of the algorithm that its folder is named by",
    "function missing_values": "the audit has code of its own for what makes releases",
    "function baseline": "one interface of two engines, in memory and in Spark",
    "function fit_and_score": "one interface of two engines, in memory and in Spark",
}
#: Participles that don't end in -ed.
IRREGULAR = {
    *["begun", "built", "chosen", "done", "drawn", "found", "given", "grown", "held"],
    *["kept", "known", "left", "made", "seen", "sent", "shown", "swept", "taken", "told"],
    "written",
}
#: Names that look like participles, each with its reason.
NOT_PARTICIPLES = {"Interrupted": "an exception, named as Python's own are"}


def named() -> Iterator[tuple[str, str]]:
    """Kind and name, and file, of everything that has a name at the top level of a module."""
    for path in sorted(HOME.rglob("*.py")):
        place = path.relative_to(HOME).as_posix()
        if path.stem not in {"__init__", "__main__"}:
            yield f"file {path.name}", place
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield f"class {node.name}", place
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"function {node.name}", place


@cache
def plugins() -> set[tuple[str, str]]:
    """The classes and files of plug-ins, which are named by their `type`. Plug-ins of two families
    may share one: the kernel and the partitioner `mondrian`, a model and its audit."""
    found = set()
    for family in registry.FOLDERS:
        for plugin in registry.plugins(family).values():
            file = Path(*plugin.__module__.split(".")[1:]).with_suffix(".py")
            place = file if (HOME / file).exists() else file.with_suffix("") / "__init__.py"
            found |= {(f"class {plugin.__name__}", place.as_posix())}
            found |= {(f"file {file.name}", place.as_posix())}
    return found


def test_one_name_for_one_thing() -> None:
    places = defaultdict(list)
    for each in named():
        places[each[0]].append(each)
    twice = {
        name: [place for _, place in found]
        for name, found in places.items()
        if len(found) > 1 and name not in SHARED and not plugins().issuperset(found)
    }
    lines = [f"{name}: {', '.join(twice[name])}" for name in sorted(twice)]
    assert not lines, "\n".join(lines)


def test_classes_are_nouns_and_functions_verbs() -> None:
    lines = [
        f"{name}: {place}"
        for kind_and_name, place in named()
        for kind, _, name in [kind_and_name.partition(" ")]
        if kind != "file" and name not in NOT_PARTICIPLES
        if re.fullmatch("[A-Z]?[a-z]+ed", name) or name.lower() in IRREGULAR
    ]
    assert not lines, "\n".join(lines)


def test_exceptions_are_needed() -> None:
    names = [name for name, _ in named()]
    assert [name for name in SHARED if names.count(name) < 2] == []
    assert [name for name in NOT_PARTICIPLES if f"class {name}" not in names] == []
