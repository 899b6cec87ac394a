"""The packages of the packed environment are the tested ones."""

import re
from pathlib import Path

LOCKS = Path(__file__).parents[2] / "scripts" / "lock"


def pins(name: str) -> dict[str, str]:
    text = (LOCKS / name).read_text("utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_runtime_lock() -> None:
    runtime, tested = pins("runtime.txt"), pins("anonlib.txt")
    assert runtime.items() <= tested.items()
    assert {"numba", "pyarrow", "delta-spark"} <= runtime.keys()
    # The cluster brings them; development needs the others.
    assert not runtime.keys() & {"pyspark", "py4j", "pytest", "ruff"}
