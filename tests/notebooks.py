"""Runs a notebook of docs/ and compares its outputs with those in its file."""

import json
import runpy
from typing import Any

from tests.texts import ROOT

FOLDER = ROOT / "docs" / "notebooks"
run = runpy.run_path(str(ROOT / "scripts" / "lib" / "notebooks.py"))["run"]


def read_notebook(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    return notebook


def check_notebook(notebook: dict[str, Any]) -> None:
    """Runs it in the working directory. Fails if a cell fails, or if an output differs; cells with
    the tag `varies` have another one at every run. `scripts/notebooks` writes them anew."""
    for cell, outputs in run(notebook):
        source = "".join(cell["source"])
        if "varies" in cell["metadata"].get("tags", ()):
            assert outputs, source
        else:
            assert outputs == cell["outputs"], source
