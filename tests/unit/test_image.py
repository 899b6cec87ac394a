"""Dockerfile, which most machines that run these tests can't build: what it copies is there and is
not ignored, what it installs is locked, and nobody in it is root. scripts/image has a linter."""

import re
from fnmatch import fnmatch

from tests.texts import ROOT
from tests.unit.test_runtime_lock import pins

TEXT = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
STEPS = [
    tuple(line.split(maxsplit=1))
    for line in TEXT.splitlines()
    if line.strip() and not line.startswith("#")
]
IGNORE = [
    line
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def of(kind: str) -> list[str]:
    return [rest for step, rest in STEPS if step == kind]


def kept(path: str) -> bool:
    """Whether the build sees a file: the last pattern of it, or of a folder of it, decides."""
    places = ["/".join(path.split("/")[: i + 1]) for i in range(path.count("/") + 1)]
    state = True
    for pattern in IGNORE:
        bare = pattern.removeprefix("!")
        deep = bare.removeprefix("**/")
        names = path.split("/") if bare != deep else places
        if any(fnmatch(name, deep) for name in names):
            state = pattern.startswith("!")
    return state


def test_what_is_copied_is_there_and_not_ignored() -> None:
    sources = [name for rest in of("COPY") if "--from" not in rest for name in rest.split()[:-1]]
    assert len(sources) == 5
    for source in sources:
        assert (ROOT / source).exists(), source
        assert kept(source), source
    for private in ("data/adult.csv", "out/people/part-0.parquet", ".git/config", ".venv/bin/x"):
        assert not kept(private)
    assert not kept("anonlib/cli/__pycache__/parser.pyc")
    assert kept("anonlib/cli/example.yaml")


def test_nobody_is_root() -> None:
    stages = TEXT.split("\nFROM ")
    last = stages[-1]
    assert re.findall(r"^USER (.*)$", last, re.MULTILINE) == ["$UID"]
    assert "ARG UID=1000" in last
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert 'ENTRYPOINT ["anonlib"]' in last


def test_base_and_packages() -> None:
    bases = [rest for rest in of("FROM") if not rest.startswith("java")]
    assert bases == ["python:3.11-slim-bookworm AS java"]
    installs = re.findall(r"pip install ([^&\n]*)", TEXT)
    assert len(installs) == 2
    for install in installs:
        assert "--no-deps" in install
        assert "--require-hashes" in install or "--no-build-isolation" in install


def test_its_lock_is_the_tested_one() -> None:
    image, tested, runtime = pins("image.txt"), pins("anonlib.txt"), pins("runtime.txt")
    assert image.items() <= tested.items()
    assert image.keys() >= {*runtime, "pyspark", "py4j", "hatchling"}
    assert not image.keys() & {"pytest", "ruff", "duckdb"}
