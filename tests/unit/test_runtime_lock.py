"""The packages of other environments are the tested ones."""

import re
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
LOCKS = SCRIPTS / "lock"


def pins(name: str) -> dict[str, str]:
    text = (LOCKS / name).read_text("utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_runtime_lock() -> None:
    runtime, tested = pins("runtime.txt"), pins("anonlib.txt")
    assert runtime.items() <= tested.items()
    assert {"numba", "pyarrow", "delta-spark"} <= runtime.keys()
    # The cluster brings them; development needs the others.
    assert not runtime.keys() & {"pyspark", "py4j", "pytest", "ruff"}


@pytest.mark.parametrize("spark", ["4.0", "4.1"])
def test_locks_of_other_sparks(spark: str) -> None:
    """What the tests need is there with every Spark; all else is the same."""
    other, tested = pins(f"upgrade-{spark}.txt"), pins("anonlib.txt")
    assert other["pyspark"].startswith(f"{spark}.")
    assert tested.keys() <= other.keys()
    differing = {name for name in tested if other[name] != tested[name]}
    assert differing <= {"pyspark", "py4j", "delta-spark"}


def test_what_upgrade_leaves_out() -> None:
    """Folders with environments of their own: all else runs, whatever its marks."""
    (given,) = re.findall(r"set -- ((?:.*\\\n)*.*)", (SCRIPTS / "upgrade").read_text("utf-8"))
    words = given.replace("\\\n", " ").split()
    ignored = {words[i + 1] for i, word in enumerate(words) if word == "--ignore"}
    assert ignored == {"tests/cluster", "tests/airflow", "tests/s3"}
    assert not {"-m", "-k", "--deselect"} & set(words)
