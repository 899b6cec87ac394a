"""What holds of the source as a whole: who imports what, and how files are laid out."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import anonlib
from anonlib import registry

HOME = Path(anonlib.__file__).parent
#: Modules and packages that import without Spark; those not written yet are passed over.
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
    names = [f"anonlib.{name}" for name in LIGHT if find_spec(f"anonlib.{name}")]
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


@pytest.mark.parametrize(
    ("folder", "barred"),
    [
        ("audit", ["kernels", "partition", "recode", "block", "work"]),
        ("kernels", ["spark", "audit", "partition", "recode"]),
        ("privacy", ["spark", "audit", "partition", "recode", "kernels", "block"]),
        ("recode", ["spark", "audit", "partition", "kernels"]),
        ("encode", ["spark", "audit", "partition", "kernels", "work"]),
    ],
)
def test_layers(folder: str, barred: list[str]) -> None:
    for path in (HOME / folder).rglob("*.py"):
        for name in imports(path):
            assert not any(
                name == f"anonlib.{part}" or name.startswith(f"anonlib.{part}.") for part in barred
            ), f"{path.relative_to(HOME)} imports {name}"


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


def test_every_privacy_model_has_its_audit() -> None:
    for path in (HOME / "privacy").glob("[!_]*.py"):
        assert (HOME / "audit/models" / path.name).is_file(), path.name
