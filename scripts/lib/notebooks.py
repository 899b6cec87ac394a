"""Runs the notebooks of docs/notebooks, and writes their outputs anew.

    scripts/notebooks [NAME ...]

A cell runs as in Jupyter, as far as these notebooks need it: what it prints and the value of its
last line are its outputs. A cell with the tag `varies` has another output at every run, such as
one with durations.
"""

import ast
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
#: What Jupyter calls the forms of a value, and who makes them.
FORMS = {"text/html": "_repr_html_", "text/plain": "__repr__"}


def main() -> None:
    for path in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(
        FOLDER.glob("*.ipynb")
    ):
        notebook = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for count, (cell, outputs) in enumerate(run(notebook), 1):
                cell |= {"execution_count": count, "outputs": outputs}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path.name)


def run(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The code cells and the outputs that they have now. Files are written to the working
    directory. A cell that fails raises its error."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            value = _run_cell("".join(cell["source"]), names)
        outputs: list[dict[str, Any]] = []
        if said.getvalue():
            text = _lines(said.getvalue())
            outputs.append({"name": "stdout", "output_type": "stream", "text": text})
        if value is not None:
            shown = {
                form: getattr(value, how)() for form, how in FORMS.items() if hasattr(value, how)
            }
            data = {form: _lines(text) for form, text in shown.items() if text is not None}
            result = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
            outputs.append({"data": data, **result})
        yield cell, outputs


def _run_cell(source: str, names: dict[str, Any]) -> Any:
    """Runs a cell, and returns the value of its last line; None if that is no expression, or ends
    with a semicolon."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102
    if not isinstance(last, ast.Expr):
        return None
    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    return None if source.rstrip().endswith(";") else value


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    main()
