"""Names over the whole package: one name for one thing, nouns for classes, verbs for functions."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import anonlib
from anonlib import registry
from tests.support import parse_source

HOME = Path(anonlib.__file__).parent
#: Names that stand for more than one thing, each with its reason.
SHARED = {
    "file core.py": "the compiled loops of the algorithm that its folder is named by",
    "file search.py": "the search of the algorithm that its folder is named by",
    "function find_baseline": "one interface of two engines, in memory and in Spark",
    "function fit_and_score": "one interface of two engines, in memory and in Spark",
}
#: Participles that don't end in -ed.
IRREGULAR = {
    *["begun", "built", "chosen", "done", "drawn", "found", "given", "grown", "held"],
    *[
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "read",
        "seen",
        "sent",
        "shown",
        "swept",
        "taken",
        "told",
    ],
    "written",
}
#: Names that look like participles, each with its reason.
NOT_PARTICIPLES = {
    "Interrupted": "an exception, named as Python's own are",
    "_locked": "the lease's file while it is locked",
    "_read": "the verb in the imperative",
}
#: The same for fields, properties and parameters. Flags may have such names: they are adjectives.
NOT_PARTICIPLES_OF_VALUES = {
    "allowed": "the values of a parameter: a key of `--json`",
    "bound": "the noun",
    "known": "what an attacker knows: a field that privacy models read",
    "left": "the opposite of right",
    "need": "the noun",
    "protected": "the columns that models protect: a field that privacy models read",
    "released": "the rows or columns of a release: the noun of the glossary",
    "required": "the bound of a verdict: a key of the public record",
    "seed": "the noun",
    "undecided": "classes that the audit must count again: a field that audit models set",
    "undefined": "why a metric has no value: a field that metrics set",
}


def named() -> Iterator[tuple[str, str]]:
    """Kind and name, and file, of everything that has a name at the top level of a module."""
    for path in sorted(HOME.rglob("*.py")):
        place = path.relative_to(HOME).as_posix()
        if path.stem not in {"__init__", "__main__"}:
            yield f"file {path.name}", place
        for node in parse_source(path).body:
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
        for name, place in definitions()
        if is_participle(name.strip("_")) and name not in NOT_PARTICIPLES
    ]
    assert not lines, "\n".join(lines)


def definitions() -> Iterator[tuple[str, str]]:
    """Name and place of every class, function and private method. Public methods that return a
    changed copy, or hear of an event, may be participles: `tree.raised(...)`, `ended(...)`. So may
    functions that answer yes or no: `_renewed()`."""
    for path in sorted(HOME.rglob("*.py")):
        place = path.relative_to(HOME).as_posix()
        tree = parse_source(path)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            answer = isinstance(node, ast.FunctionDef) and is_flag(node.returns)
            if not answer and (node in tree.body or node.name.startswith("_")):
                yield node.name, f"{place}:{node.lineno}"


def values() -> Iterator[tuple[str, str]]:
    """Name and place of every field, property and parameter that is no flag."""
    for path in sorted(HOME.rglob("*.py")):
        place = path.relative_to(HOME).as_posix()
        for node in ast.walk(parse_source(path)):
            if isinstance(node, ast.ClassDef):
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and not is_flag(each.annotation):
                        yield ast.unparse(each.target), f"{place}:{each.lineno}"
            elif isinstance(node, ast.arg) and not is_flag(node.annotation):
                yield node.arg, f"{place}:{node.lineno}"
            elif isinstance(node, ast.FunctionDef) and is_property(node):
                yield node.name, f"{place}:{node.lineno}"


def is_flag(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).split(" | ")[0] == "bool"


def is_property(function: ast.FunctionDef) -> bool:
    decorators = map(ast.unparse, function.decorator_list)
    return any("property" in each for each in decorators) and not is_flag(function.returns)


def is_participle(name: str) -> bool:
    return bool(re.fullmatch("[A-Z]?[a-z]+ed", name)) or name.lower() in IRREGULAR


def test_values_are_nouns() -> None:
    lines = [
        f"{name}: {place}"
        for name, place in values()
        if is_participle(name.strip("_")) and name not in NOT_PARTICIPLES_OF_VALUES
    ]
    assert not lines, "\n".join(lines)


def test_exceptions_are_needed() -> None:
    names = [name for name, _ in named()]
    assert NOT_PARTICIPLES_OF_VALUES.keys() <= {name for name, _ in values()}
    assert [name for name in SHARED if names.count(name) < 2] == []
    assert NOT_PARTICIPLES.keys() <= {name for name, _ in definitions()}
