"""What holds of the source as a whole: who imports what, how files are laid out, and names."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import anonlib
from anonlib import registry
from anonlib.compiled import FOLDERS
from tests.support import parse_source

HOME = Path(anonlib.__file__).parent
#: From the ground up. A module imports from its own package and from layers below its own, within
#: functions and for typing, too; packages of one layer do not import each other.
LAYERS = [
    ["errors", "arrays", "text", "progress"],
    ["compiled", "registry"],
    ["hierarchy"],
    ["privacy"],
    ["table"],
    ["recode", "kernels", "loss"],
    ["partition", "encode"],
    ["measure"],
    ["identifiers"],
    ["config"],
    ["guesses"],
    ["content"],
    ["worker"],
    ["decisions"],
    ["local"],
    ["auditing"],
    ["spark"],
    ["source"],
    ["evaluation"],
    ["pages"],
    ["run"],
    ["sweeps"],
    ["pipeline"],
    ["in_hand"],
    ["__init__"],  # the public names
    ["cli"],
]
#: What never imports Spark.
SPARKLESS = [
    *["arrays", "compiled", "config", "content", "decisions", "encode", "errors", "guesses"],
    *[
        "hierarchy",
        "identifiers",
        "kernels",
        "local",
        "loss",
        "partition",
        "privacy",
        "progress",
        "recode",
    ],
    *["registry", "table", "text", "worker"],
]
#: What no session of Spark Connect has: the JVM of the driver, and what is asked of it by name.
JVM = re.compile(
    r"\b(_jvm|_jdf|_jsparkSession|sparkContext|find_java_class|find_class)\b|spark\.jvm\b"
)
#: Who needs it outside `spark/`, and why.
NEEDS_JVM = {
    "anonlib.progress": "the jobs of a stage are a group; it knows no Spark but the given session",
    "anonlib.cli.progress_lines": "counts the tasks of this group",
}
#: What reads files, or a path, by Spark.
READS = {"csv", "json", "load", "orc", "parquet", "text"}
#: Methods of these names that have nothing to do with Spark.
READ_NO_PATH = {"ax", "row", "self", "yaml"}
#: Who calls Spark's readers of files, and why; for all others there is `read_exactly`.
READS_PATHS = {
    "anonlib.source.readers": "the paths of users, who may mean patterns",
    "anonlib.source.contract": "the same, and files as they were listed, with patterns turned off",
    "anonlib.source.profile": "the paths of users",
    "anonlib.source.columnar": "the paths of users",
    "anonlib.pipeline": "Delta tables, whose paths are no patterns",
    "anonlib.run.publish": "Delta tables",
    "anonlib.spark.own_files": "it is that function",
}
#: What the audit may know: nothing of what makes releases (of privacy models, their parameters).
AUDIT_KNOWS = ["auditing", "errors", "hierarchy", "privacy", "registry", "text"]
#: What importing or listing plug-ins must not bring with it.
HEAVY = ["pyspark", "delta", "numba", "sklearn"]


def module(path: Path) -> str:
    """The dotted name of a file."""
    return ".".join(path.relative_to(HOME.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in sorted(HOME.rglob("*.py"))}


@cache
def imports(path: Path) -> frozenset[str]:
    """All modules, ours by their own name, that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(parse_source(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module or "")
    return frozenset(found)


def package(name: str) -> str:
    """What of the top level a module of ours is in; the public names are in `__init__`."""
    return [*name.split("."), "__init__"][1]


def test_the_jvm_is_behind_one_seam() -> None:
    """So that other engines can follow: all else of anonlib knows DataFrames."""
    users = {
        name
        for name, path in MODULES.items()
        if package(name) != "spark" and JVM.search(path.read_text("utf-8"))
    }
    assert users == {*NEEDS_JVM}


def test_layers() -> None:
    layer = {name: i for i, names in enumerate(LAYERS) for name in names}
    top = {package(name) for name in MODULES} - {"__main__"}
    assert top == set(layer), "every package has a layer"
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        for other in imports(path)
        if other in MODULES
        and package(name) in layer
        and package(name) != package(other)
        and layer[package(other)] >= layer[package(name)]
    ]
    assert wrong == []


def test_no_circles() -> None:
    """Also among the modules of one package, and for typing."""
    state: dict[str, int] = {}

    def visit(name: str, way: tuple[str, ...]) -> None:
        state[name] = 1
        for other in sorted(imports(MODULES[name]) & MODULES.keys()):
            assert state.get(other) != 1, " > ".join([*way, name, other])
            if other not in state:
                visit(other, (*way, name))
        state[name] = 2

    for name in MODULES:
        if name not in state and name != "anonlib":
            visit(name, ())


def test_private_modules_stay_in_their_package() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        for other in imports(path) & MODULES.keys()
        for owner, mark, _ in [other.partition("._")]
        if mark and not f"{name}.".startswith(f"{owner}.") and other != f"{owner}.__init__"
    ]
    assert wrong == []


def test_private_names_stay_in_their_module() -> None:
    wrong = [
        f"{name} imports {alias.name} of {node.module}"
        for name, path in MODULES.items()
        for node in ast.walk(parse_source(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anonlib")
        for alias in node.names
        if alias.name.startswith("_")
        and not alias.name.startswith("__")
        and f"{node.module}.{alias.name}" not in MODULES
    ]
    assert wrong == []


@pytest.mark.parametrize("part", SPARKLESS)
def test_without_spark(part: str) -> None:
    barred = ("pyspark", "delta", "anonlib.spark")
    for name, path in MODULES.items():
        if package(name) == part:
            assert not [o for o in imports(path) if o.startswith(barred)], name


def test_the_audit_is_independent() -> None:
    for name, path in MODULES.items():
        if package(name) == "auditing":
            ours = {package(other) for other in imports(path) & MODULES.keys()}
            assert ours <= set(AUDIT_KNOWS), f"{name} imports {ours}"


@cache
def compiled(name: str) -> bool:
    """Whether importing a module compiles functions."""
    tree = parse_source(MODULES[name])
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    return name == "anonlib.compiled" or any(compiled(m) for m in modules & MODULES.keys())


def loaded(code: str) -> set[str]:
    """The HEAVY modules that a fresh Python has after running `code`."""
    code += f"\nimport sys\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_light_modules_and_listings_need_no_spark_and_no_numba() -> None:
    light = [*SPARKLESS, "measure", "pages", "sweeps.cluster", "sweeps.point_work", "run.records"]
    names = [
        name
        for name in MODULES
        if any(f"{name}.".startswith(f"anonlib.{part}.") for part in light) and not compiled(name)
    ]
    assert len(names) > 100
    families = [family for family in registry.FOLDERS if family != "audit"]
    code = f"""
from importlib import import_module
for name in {names}:
    import_module(name)
from anonlib import registry
for family in {families}:
    registry.plugins(family)
"""
    assert loaded(code) == set()


def test_all_packages_with_compiled_cores_are_in_the_name_of_their_cache() -> None:
    """Else a process would load a core that was compiled from an older source."""
    compiled = {
        path.relative_to(HOME).parts[0]
        for path in HOME.rglob("*.py")
        if re.search(r"from anonlib\.compiled import .*\bnjit", path.read_text())
    }
    assert compiled == {*FOLDERS}


def test_java_classes_are_asked_for_by_their_full_names() -> None:
    walked = re.compile(r"_?jvm\.(org|java|scala|io|com)\b")
    found = [path.name for path in HOME.rglob("*.py") if walked.search(path.read_text("utf-8"))]
    assert found == []  # see anonlib/spark/jvm.py


def reads_path(node: ast.AST) -> bool:
    """Whether a call may read a path that Spark takes for a pattern. Writers and Delta do not."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in READS or not node.args:
        return False
    of = ast.unparse(node.func.value)
    return of not in READ_NO_PATH and ".write." not in of and "format('delta')" not in of


def test_files_of_ours_are_read_by_their_names() -> None:
    """A folder may be called `t[1]`, or `{name}`."""
    readers = {
        name
        for name, path in MODULES.items()
        if any(map(reads_path, ast.walk(ast.parse(path.read_text("utf-8")))))
    }
    assert readers == {*READS_PATHS}


def test_nothing_else_lies_at_the_top() -> None:
    """What a run or a script leaves there is not of the project."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=HOME.parent, capture_output=True, text=True, check=True
    )
    found = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    folders = {".ci", "anonlib", "conf", "docs", "jobs", "scripts", "tests"}
    pages = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    single = {".dockerignore", ".gitignore", "Dockerfile", "mkdocs.yml", "pyproject.toml"}
    assert found == folders | pages | single


def test_the_top_has_few_modules() -> None:
    assert len([*HOME.glob("*.py")]) <= 10


def test_sizes() -> None:
    """A file is one idea, a function fits on a screen."""
    files = {name: len(p.read_text("utf-8").splitlines()) for name, p in MODULES.items()}
    assert {name: n for name, n in files.items() if n > 800} == {}
    functions = {
        f"{name}.{node.name}": n
        for name, path in MODULES.items()
        for node in ast.walk(parse_source(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (n := length(node)) > 50
    }
    assert functions == {}


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, without its docstring."""
    doc = node.body[0] if ast.get_docstring(node) is not None else None
    own = 0 if doc is None else (doc.end_lineno or 0) - doc.lineno + 1
    return (node.end_lineno or 0) - node.lineno + 1 - own


def test_the_room_of_a_run_says_what_is_in_it() -> None:
    """Its modules are many: the docstring of the package has each of them, in groups."""
    told = re.findall(
        r"^    (\w+) ", ast.get_docstring(parse_source(HOME / "run/__init__.py")) or "", re.M
    )
    there = [path.stem for path in (HOME / "run").glob("*.py") if path.stem != "__init__"]
    assert sorted([*told, "steps"]) == sorted(there)
