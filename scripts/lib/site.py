"""A hook of mkdocs: adds the texts at the root, the notebooks and the pages that scripts/docs
generated, and turns links that leave docs/ into links to these, or into plain text."""

import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
#: Texts at the root of the checkout, by their page.
TEXTS = {
    "security.md": "SECURITY.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
#: The site has a style of its own for tables without one.
PANDAS_TABLE = '<table border="1" class="dataframe">'
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    for page, name in TEXTS.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    for path in sorted(Path(os.environ["ANONLIB_REFERENCE"]).glob("*.md")):
        content = path.read_text("utf-8")
        files.append(File.generated(config, f"reference/{path.name}", content=content))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        page = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, page, content=_show_notebook(path)))
    return files


def _show_notebook(path: Path) -> str:
    """A notebook as Markdown: its texts, its code, and the outputs that the file has."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else _fence("python", source))
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text")})
            html = "".join(data.get("text/html", ())).replace(PANDAS_TABLE, "<table>")
            parts.append(html or _fence("text", "".join(data["text/plain"])))
    return "\n\n".join([*parts, f'<a href="{path.name}">This page as a notebook</a>'])


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links are those of the files in the checkout, so that they work there as well."""
    source = page.file.src_uri
    own = TEXTS.get(source)
    folder = PurePosixPath(own or f"docs/{source}").parent

    def link(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups(default="")
        if not target or "://" in target:
            return found[0]
        place = os.path.normpath(folder / target).replace(os.sep, "/")
        known = {name: page for page, name in TEXTS.items()}
        if place.startswith("docs/"):
            place = place.removeprefix("docs/").replace(".ipynb", ".md")
        elif place in known:
            place = known[place]
        elif (ROOT / place).exists():
            return text  # a file of the checkout
        else:
            raise ValueError(f"{source}: the link to {target} leads nowhere")
        return f"{mark}[{text}]({os.path.relpath(place, PurePosixPath(source).parent)}{anchor})"

    return LINK.sub(link, markdown)
