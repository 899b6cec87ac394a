"""A hook of mkdocs: adds the texts at the root and the pages that scripts/docs generated, and turns
links that leave docs/ into links to these, or into plain text."""

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
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    for page, name in TEXTS.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    for path in sorted(Path(os.environ["ANONLIB_REFERENCE"]).glob("*.md")):
        content = path.read_text("utf-8")
        files.append(File.generated(config, f"reference/{path.name}", content=content))
    return files


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
            place = place.removeprefix("docs/")
        elif place in known:
            place = known[place]
        elif (ROOT / place).exists():
            return text  # a file of the checkout
        else:
            raise ValueError(f"{source}: the link to {target} leads nowhere")
        return f"{mark}[{text}]({os.path.relpath(place, PurePosixPath(source).parent)}{anchor})"

    return LINK.sub(link, markdown)
