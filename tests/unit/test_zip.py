"""anonlib from a zip, as `--py-files` has it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import anonlib

HOME = Path(anonlib.__file__).parent
CODE = """
import json
from importlib.resources import files
import anonlib
from anonlib import registry
from anonlib.kernels import _mdav_core
print(json.dumps({
    "home": anonlib.__file__,
    "plugins": {family: sorted(registry.plugins(family)) for family in registry.FOLDERS},
    "log4j": (files("anonlib.spark") / "log4j2.properties").is_file(),
    "cached": getattr(_mdav_core.make_mdav_cells, "_cache", None).__class__.__name__,
}))
"""


def test_zip(tmp_path: Path) -> None:
    place = tmp_path / "anonlib.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for path in HOME.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(HOME.parent))
    found = {}
    for home in (place, HOME.parent):
        done = subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, "PYTHONPATH": str(home)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        found[home] = json.loads(done.stdout)
        assert found[home]["home"].startswith(str(home))
    assert found[place]["plugins"] == found[HOME.parent]["plugins"]
    assert found[place]["log4j"] is True
    # In a zip numba's cache would not see that what a core calls has changed.
    assert found[place]["cached"] == "NullCache"
    assert found[HOME.parent]["cached"] == "FunctionCache"
