"""The notebooks of docs/: what a test of one notices, and the one without Spark."""

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import FOLDER, check_notebook, read_notebook, run
from tests.texts import ROOT

NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def test_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_notebook(read_notebook("pandas"))


def notebook(*sources: str, **fields: Any) -> dict[str, Any]:
    cells = [{"cell_type": "code", "metadata": {}, "source": [each], **fields} for each in sources]
    return {"cells": [{"cell_type": "markdown", "source": ["no code"]}, *cells]}


def test_outputs_are_those_of_jupyter() -> None:
    shown = "class Shown:\n  __repr__ = lambda _: 'v'\n  _repr_html_ = lambda _: '<b>a\\nb</b>'"
    sources = ("x = 1", f"{shown}\nprint(x, 2)\nShown()", "x;")
    made = [outputs for _, outputs in run(notebook(*sources))]
    assert made == [
        [],
        [
            {"name": "stdout", "output_type": "stream", "text": ["1 2\n"]},
            {
                "data": {"text/html": ["<b>a\n", "b</b>"], "text/plain": ["v"]},
                "execution_count": 2,
                "metadata": {},
                "output_type": "execute_result",
            },
        ],
        [],
    ]


def test_what_differs_or_fails_is_noticed() -> None:
    printed = {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
    check_notebook(notebook("print(1)", outputs=[printed]))
    check_notebook(notebook("print(2)", outputs=[printed], metadata={"tags": ["varies"]}))
    with pytest.raises(AssertionError, match=r"print\(2\)"):
        check_notebook(notebook("print(2)", outputs=[printed]))
    with pytest.raises(ZeroDivisionError):
        check_notebook(notebook("1 / 0", outputs=[]))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_whole_and_of_no_machine(name: str) -> None:
    found = read_notebook(name)
    texts = ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "markdown"]
    links = re.findall(r"\]\(([^)#\s]*)", "\n".join(texts))
    assert [link for link in links if not (FOLDER / link).exists()] == []
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert len(code) <= 15
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    outputs = str([cell["outputs"] for cell in code])
    assert not [
        place for place in (tempfile.gettempdir(), Path.home(), ROOT) if str(place) in outputs
    ]
