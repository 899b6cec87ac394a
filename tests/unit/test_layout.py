"""What holds of the source as a whole: who imports what, and how files are laid out."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anonlib
from anonlib import registry

HOME = Path(anonlib.__file__).parent
#: Modules and packages that import without Spark.
LIGHT = [
    *("block", "config", "config_checks", "config_file", "config_yaml", "encode", "encoding"),
    *(
        "errors",
        "hierarchy",
        "hierarchy_build",
        "hierarchy_check",
        "hierarchy_learn",
        "kernels",
        "keys",
        "listing",
        "local",
        "memory",
        "partition",
        "privacy",
        "recode",
        "records",
        "report",
    ),
    *("registry", "resolve", "results", "schema", "settings", "utility", "work"),
    *("sweep.cluster", "sweep.file", "sweep.results", "sweep.settings", "sweep.trial"),
]
#: What importing or listing plug-ins must not bring with it.
HEAVY = ["pyspark", "delta", "numba", "sklearn"]


def loaded(code: str) -> set[str]:
    """The HEAVY modules that a fresh Python has after running `code`."""
    code += f"\nimport sys\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_light_modules_and_listings_need_no_spark_and_no_numba() -> None:
    names = [f"anonlib.{name}" for name in LIGHT]
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


def imports(path: Path) -> set[str]:
    """All modules that a file names in its imports, wherever they stand."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module or ""} | {f"{node.module}.{a.name}" for a in node.names}
    return found


#: What is barred, within functions too, from all that works without Spark.
SPARK = ["pyspark", "delta", "anonlib.spark"]


@pytest.mark.parametrize(
    ("files", "barred", "ours"),
    [
        ("audit/**/*.py", [], ["kernels", "partition", "recode", "block", "work"]),
        ("kernels/**/*.py", SPARK, ["audit", "partition", "recode"]),
        ("privacy/**/*.py", SPARK, ["audit", "partition", "recode", "kernels", "block"]),
        ("recode/**/*.py", SPARK, ["audit", "partition", "kernels"]),
        ("encode/**/*.py", SPARK, ["audit", "partition", "kernels", "work"]),
        ("block.py", SPARK, ["audit"]),
        ("config*.py", SPARK, ["audit"]),
        ("hierarchy*.py", SPARK, ["audit"]),
        ("schema.py", SPARK, ["audit"]),
    ],
)
def test_layers(files: str, barred: list[str], ours: list[str]) -> None:
    barred = [*barred, *(f"anonlib.{part}" for part in ours)]
    paths = [*HOME.glob(files)]
    assert paths
    for path in paths:
        for name in imports(path):
            assert not any(name == part or name.startswith(f"{part}.") for part in barred), (
                f"{path.relative_to(HOME)} imports {name}"
            )


def test_java_classes_are_asked_for_by_their_full_names() -> None:
    walked = re.compile(r"_?jvm\.(org|java|scala|io|com)\b")
    found = [path.name for path in HOME.rglob("*.py") if walked.search(path.read_text("utf-8"))]
    assert found == []  # see anonlib/spark/jvm.py


def test_files_are_short() -> None:
    lengths = {
        str(path.relative_to(HOME)): len(path.read_text("utf-8").splitlines())
        for path in HOME.rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n >= 400} == {}
